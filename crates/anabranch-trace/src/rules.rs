//! What a host must not do.

/// A rule of RFC 8684 that a capture can show to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// An option has a length that its subtype does not have.
    OptionLength,
    /// Bits that are to be 0 are not.
    ReservedBits,
    /// An option has a subtype that is not assigned.
    UnknownSubtype,
    /// An option stands in a segment that it does not belong to.
    WrongStep,
    /// MP_CAPABLE names no algorithm.
    NoAlgorithm,
    /// The keys of a handshake differ from those told before.
    KeyMismatch,
    /// The third ACK does not say what the SYNs agreed on about checksums.
    ChecksumFlag,
    /// A subflow is opened to an address that its owner said not to.
    DeniedAddress,
    /// A join names no connection.
    TokenUnknown,
    /// A join's HMAC is not the one that keys and nonces give.
    JoinHmac,
    /// Data is sent on a join before its handshake is over.
    EarlyData,
    /// A join after the connection went back to TCP.
    JoinAfterFallback,
    /// An announced address has a wrong HMAC.
    AddAddrHmac,
    /// An announced address is not echoed.
    AddAddrUnanswered,
    /// An echo of what was not announced.
    EchoUnasked,
    /// A DSS without checksum where they were negotiated.
    ChecksumMissing,
    /// A DSS with a checksum where none were negotiated.
    ChecksumUnexpected,
    /// A mapping's checksum does not hold.
    ChecksumWrong,
    /// Bytes of a subflow are mapped to two places.
    MappingChanged,
    /// A mapping that covers nothing of the segment that carries it.
    MappingElsewhere,
    /// Data without a mapping.
    UnmappedData,
    /// The same data sequence numbers with different bytes.
    DifferentData,
    /// Data beyond the receive window.
    OutsideWindow,
    /// A DATA_ACK of what was not sent.
    AckBeyondData,
    /// The end of the data is told at two places.
    DataFinMoved,
    /// Data behind the end.
    DataAfterFin,
    /// MP_FASTCLOSE with a wrong key.
    FastcloseKey,
}

impl Rule {
    /// All of them.
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

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        self.about().0
    }

    /// The clause of RFC 8684; options that every subtype can break give their own.
    pub const fn clause(self) -> &'static str {
        self.about().1
    }

    /// What it demands.
    pub const fn meaning(self) -> &'static str {
        self.about().2
    }

    /// Can it be judged only if the capture shows everything that was sent?
    pub(crate) const fn needs_everything(self) -> bool {
        matches!(
            self,
            Rule::EarlyData
                | Rule::EchoUnasked
                | Rule::UnmappedData
                | Rule::OutsideWindow
                | Rule::AckBeyondData
        )
    }

    /// Is it about data, and so void once a connection has gone back to TCP?
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
                ("option_length", "3", "an option has one of its subtype's lengths")
            }
            Rule::ReservedBits => ("reserved_bits", "3", "bits without a meaning are 0"),
            Rule::UnknownSubtype => ("unknown_subtype", "7.2", "subtypes 9 to 14 are not assigned"),
            Rule::WrongStep => {
                ("wrong_step", "3.1", "each step of a handshake has its own form of the option")
            }
            Rule::NoAlgorithm => ("no_algorithm", "3.1", "MP_CAPABLE names a crypto algorithm"),
            Rule::KeyMismatch => (
                "key_mismatch",
                "3.1",
                "the third ACK and the first data repeat the handshake's keys",
            ),
            Rule::ChecksumFlag => {
                ("checksum_flag", "3.1", "the third ACK confirms whether checksums are used")
            }
            Rule::DeniedAddress => (
                "denied_address",
                "3.1",
                "no subflow goes to an address whose owner set the C flag",
            ),
            Rule::TokenUnknown => {
                ("token_unknown", "3.2", "a join names a connection by its token")
            }
            Rule::JoinHmac => {
                ("join_hmac", "3.2", "both sides of a join prove that they know the keys")
            }
            Rule::EarlyData => {
                ("early_data", "3.2", "no data on a join before its third ACK was acknowledged")
            }
            Rule::JoinAfterFallback => {
                ("join_after_fallback", "3.7", "a connection that went back to TCP stays there")
            }
            Rule::AddAddrHmac => {
                ("add_addr_hmac", "3.4.1", "an announced address carries its HMAC")
            }
            Rule::AddAddrUnanswered => {
                ("add_addr_unanswered", "3.4.1", "an announced address is echoed")
            }
            Rule::EchoUnasked => ("echo_unasked", "3.4.1", "an echo repeats what was announced"),
            Rule::ChecksumMissing => {
                ("checksum_missing", "3.3", "mappings carry checksums when they were negotiated")
            }
            Rule::ChecksumUnexpected => {
                ("checksum_unexpected", "3.3", "mappings carry none when they were not")
            }
            Rule::ChecksumWrong => {
                ("checksum_wrong", "3.3.1", "a mapping's checksum fits its data")
            }
            Rule::MappingChanged => {
                ("mapping_changed", "3.3.1", "a declared mapping does not change")
            }
            Rule::MappingElsewhere => (
                "mapping_elsewhere",
                "3.3.1",
                "a mapping covers some of the segment that carries it",
            ),
            Rule::UnmappedData => ("unmapped_data", "3.3.1", "all data is mapped"),
            Rule::DifferentData => ("different_data", "3.3.1", "data sent again is the same data"),
            Rule::OutsideWindow => {
                ("outside_window", "3.3.4", "data lies within DATA_ACK and receive window")
            }
            Rule::AckBeyondData => {
                ("ack_beyond_data", "3.3.2", "a DATA_ACK acknowledges what was sent")
            }
            Rule::DataFinMoved => ("data_fin_moved", "3.3.3", "there is one end of the data"),
            Rule::DataAfterFin => ("data_after_fin", "3.3.3", "no data follows the DATA_FIN"),
            Rule::FastcloseKey => {
                ("fastclose_key", "3.5", "MP_FASTCLOSE carries the receiver's key")
            }
        }
    }
}
