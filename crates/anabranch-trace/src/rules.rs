//! Rules of RFC 8684 that a capture can show to be violated. RFC 6824 has most of them.

use std::fmt;

use crate::keys::Version;

/// A rule of RFC 8684. Each variant describes the violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// An option has a length that its subtype does not allow.
    OptionLength,
    /// Reserved bits are not 0.
    ReservedBits,
    /// An option has an unassigned subtype.
    UnknownSubtype,
    /// A segment carries an option of another step of the handshake.
    WrongStep,
    /// MP_CAPABLE names no crypto algorithm.
    NoAlgorithm,
    /// The keys of a handshake differ from the keys sent before.
    KeyMismatch,
    /// The third ACK contradicts the SYNs' agreement on checksums.
    ChecksumFlag,
    /// A host opens a subflow to an address whose owner denied joins.
    DeniedAddress,
    /// A join carries the token of no connection.
    TokenUnknown,
    /// A join's HMAC does not match its keys and nonces.
    JoinHmac,
    /// A join carries data before its handshake is complete.
    EarlyData,
    /// A host joins a connection that has fallen back to TCP.
    JoinAfterFallback,
    /// An announced address has a wrong HMAC.
    AddAddrHmac,
    /// The receiver does not echo an announced address.
    AddAddrUnanswered,
    /// A host echoes an address that was not announced.
    EchoUnasked,
    /// A DSS has no checksum although the hosts negotiated checksums.
    ChecksumMissing,
    /// A DSS has a checksum although the hosts negotiated none.
    ChecksumUnexpected,
    /// A mapping's checksum does not match its data.
    ChecksumWrong,
    /// Two mappings map the same bytes of a subflow differently.
    MappingChanged,
    /// A mapping covers no byte of the segment that carries it.
    MappingElsewhere,
    /// Data has no mapping.
    UnmappedData,
    /// The same data sequence numbers carry different bytes.
    DifferentData,
    /// Data lies beyond the receive window.
    OutsideWindow,
    /// A DATA_ACK acknowledges data that was not sent.
    AckBeyondData,
    /// Two DATA_FINs mark different ends of the data.
    DataFinMoved,
    /// Data follows the DATA_FIN.
    DataAfterFin,
    /// MP_FASTCLOSE carries a wrong key.
    FastcloseKey,
}

/// A clause of an RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    version: Version,
    section: &'static str,
}

impl Clause {
    /// A section of the RFC that defines a version; of RFC 8684 if the version is unknown.
    pub(crate) const fn of(version: Option<Version>, section: &'static str) -> Self {
        let version = match version {
            Some(version) => version,
            None => Version::V1,
        };
        Clause { version, section }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} §{}", self.version.rfc(), self.section)
    }
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::OptionLength,
        Rule::ReservedBits,
        Rule::UnknownSubtype,
        Rule::WrongStep,
        Rule::NoAlgorithm,
        Rule::KeyMismatch,
        Rule::ChecksumFlag,
        Rule::DeniedAddress,
        Rule::TokenUnknown,
        Rule::JoinHmac,
        Rule::EarlyData,
        Rule::JoinAfterFallback,
        Rule::AddAddrHmac,
        Rule::AddAddrUnanswered,
        Rule::EchoUnasked,
        Rule::ChecksumMissing,
        Rule::ChecksumUnexpected,
        Rule::ChecksumWrong,
        Rule::MappingChanged,
        Rule::MappingElsewhere,
        Rule::UnmappedData,
        Rule::DifferentData,
        Rule::OutsideWindow,
        Rule::AckBeyondData,
        Rule::DataFinMoved,
        Rule::DataAfterFin,
        Rule::FastcloseKey,
    ];

    /// The rule's name in tables.
    pub const fn name(self) -> &'static str {
        self.about().0
    }

    /// The clause of RFC 8684. Violations in the form of an option name the clause of its subtype.
    pub const fn clause(self) -> &'static str {
        self.about().1
    }

    /// The clause of the RFC that defines a version; of RFC 8684 if the version is unknown.
    pub(crate) const fn clause_in(self, version: Option<Version>) -> Clause {
        match (self, version) {
            // RFC 6824 has no MP_TCPRST, so later clauses have other numbers.
            (Rule::JoinAfterFallback, Some(Version::V0)) => Clause::of(version, "3.6"),
            (Rule::UnknownSubtype, Some(Version::V0)) => Clause::of(version, "8"),
            _ => Clause::of(version, self.clause()),
        }
    }

    /// The rule's demand.
    pub const fn meaning(self) -> &'static str {
        self.about().2
    }

    /// Returns `true` if the rule can only be judged if the capture shows all data that was sent.
    pub(crate) const fn needs_everything(self) -> bool {
        matches!(
            self,
            Rule::EarlyData
                | Rule::AddAddrUnanswered
                | Rule::EchoUnasked
                | Rule::UnmappedData
                | Rule::OutsideWindow
                | Rule::AckBeyondData
        )
    }

    /// Returns `true` if the rule concerns data, and so no longer applies after a fallback to TCP.
    pub(crate) const fn ends_with_fallback(self) -> bool {
        matches!(
            self,
            Rule::ChecksumMissing
                | Rule::ChecksumUnexpected
                | Rule::ChecksumWrong
                | Rule::MappingChanged
                | Rule::MappingElsewhere
                | Rule::UnmappedData
                | Rule::DifferentData
                | Rule::OutsideWindow
                | Rule::AckBeyondData
                | Rule::DataFinMoved
                | Rule::DataAfterFin
        )
    }

    const fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Rule::OptionLength => {
                ("option_length", "3", "an option has a length that its subtype allows")
            }
            Rule::ReservedBits => ("reserved_bits", "3", "reserved bits are 0"),
            Rule::UnknownSubtype => {
                ("unknown_subtype", "7.2", "an option has an assigned subtype (9 to 14 are not)")
            }
            Rule::WrongStep => {
                ("wrong_step", "3.1", "each step of a handshake uses its own form of the option")
            }
            Rule::NoAlgorithm => ("no_algorithm", "3.1", "MP_CAPABLE names a crypto algorithm"),
            Rule::KeyMismatch => (
                "key_mismatch",
                "3.1",
                "the third ACK and the first data repeat the keys of the handshake",
            ),
            Rule::ChecksumFlag => {
                ("checksum_flag", "3.1", "the third ACK confirms the SYNs' agreement on checksums")
            }
            Rule::DeniedAddress => (
                "denied_address",
                "3.1",
                "no host opens a subflow to an address whose owner set the C flag",
            ),
            Rule::TokenUnknown => {
                ("token_unknown", "3.2", "a join carries the token of a connection")
            }
            Rule::JoinHmac => (
                "join_hmac",
                "3.2",
                "both hosts of a join prove with an HMAC that they know the keys",
            ),
            Rule::EarlyData => {
                ("early_data", "3.2", "a join carries no data before its third ACK is acknowledged")
            }
            Rule::JoinAfterFallback => {
                ("join_after_fallback", "3.7", "no host joins a connection that fell back to TCP")
            }
            Rule::AddAddrHmac => {
                ("add_addr_hmac", "3.4.1", "an announced address carries the right HMAC")
            }
            Rule::AddAddrUnanswered => {
                ("add_addr_unanswered", "3.4.1", "the receiver echoes an announced address")
            }
            Rule::EchoUnasked => ("echo_unasked", "3.4.1", "an echo repeats an announced address"),
            Rule::ChecksumMissing => {
                ("checksum_missing", "3.3", "mappings carry checksums if the hosts negotiated them")
            }
            Rule::ChecksumUnexpected => (
                "checksum_unexpected",
                "3.3",
                "mappings carry no checksums if the hosts negotiated none",
            ),
            Rule::ChecksumWrong => {
                ("checksum_wrong", "3.3.1", "a mapping's checksum matches its data")
            }
            Rule::MappingChanged => {
                ("mapping_changed", "3.3.1", "a declared mapping never changes")
            }
            Rule::MappingElsewhere => (
                "mapping_elsewhere",
                "3.3.1",
                "a mapping covers at least part of the segment that carries it",
            ),
            Rule::UnmappedData => ("unmapped_data", "3.3.1", "all data has a mapping"),
            Rule::DifferentData => {
                ("different_data", "3.3.1", "data that is sent again is unchanged")
            }
            Rule::OutsideWindow => (
                "outside_window",
                "3.3.4",
                "data lies between DATA_ACK and the window's right edge",
            ),
            Rule::AckBeyondData => {
                ("ack_beyond_data", "3.3.2", "a DATA_ACK acknowledges only data that was sent")
            }
            Rule::DataFinMoved => {
                ("data_fin_moved", "3.3.3", "all DATA_FINs mark the same end of the data")
            }
            Rule::DataAfterFin => ("data_after_fin", "3.3.3", "no data follows the DATA_FIN"),
            Rule::FastcloseKey => {
                ("fastclose_key", "3.5", "MP_FASTCLOSE carries the receiver's key")
            }
        }
    }
}
