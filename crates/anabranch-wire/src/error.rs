//! What can be wrong with octets, and with values that should become octets.

use core::fmt;
use std::net::IpAddr;

use crate::subtype::Subtype;

/// Why octets are not a well-formed packet, header or option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer octets than the format needs.
    #[error("{what} needs {needed} octets, only {available} are there")]
    Truncated {
        /// The header or option concerned.
        what: &'static str,
        /// Octets needed.
        needed: usize,
        /// Octets available.
        available: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version is {found}, expected 4 or 6")]
    IpVersion {
        /// The version field.
        found: u8,
    },
    /// An IPv4 header length below the 20 octets of the fixed part.
    #[error("IPv4 header length is {found} octets, expected at least 20")]
    Ipv4HeaderLength {
        /// Octets, as the IHL field says.
        found: usize,
    },
    /// An IPv4 total length that does not even cover the header.
    #[error("IPv4 total length is {found} octets, its header alone has {header}")]
    Ipv4TotalLength {
        /// Octets, as the total length field says.
        found: usize,
        /// Octets, as the IHL field says.
        header: usize,
    },
    /// The IPv4 header checksum does not hold.
    #[error("IPv4 header checksum does not hold")]
    Ipv4Checksum,
    /// A fragment: segments are parsed from whole packets only.
    #[error("IPv{version} fragment; only whole packets are parsed")]
    Fragment {
        /// IP version.
        version: u8,
    },
    /// An IPv6 extension header other than hop-by-hop and destination options.
    #[error("IPv6 extension header {found} is not supported")]
    ExtensionHeader {
        /// The next header value.
        found: u8,
    },
    /// Another transport protocol than the one to be parsed.
    #[error("IP protocol is {found}, expected {expected}")]
    Protocol {
        /// The protocol (IPv4) or next header (IPv6) value.
        found: u8,
        /// Number and name of what is parsed.
        expected: &'static str,
    },
    /// A UDP length that contradicts the octets there are.
    #[error("UDP length is {found} octets, {available} are there")]
    UdpLength {
        /// Octets, as the length field says.
        found: usize,
        /// Octets of the datagram that are there.
        available: usize,
    },
    /// A TCP data offset below the 20 octets of the fixed header.
    #[error("TCP data offset is {found} octets, expected at least 20")]
    TcpDataOffset {
        /// Octets, as the data offset field says.
        found: usize,
    },
    /// A TCP option whose length does not cover its own kind and length octets.
    #[error("TCP option of kind {kind} has length {found}, expected at least 2")]
    OptionTooShort {
        /// Option kind.
        kind: u8,
        /// The length octet.
        found: u8,
    },
    /// A TCP option whose length octet contradicts the octets there are.
    #[error("TCP option of kind {kind} has length {found}, {available} octets are there")]
    OptionOverrun {
        /// Option kind.
        kind: u8,
        /// The length octet.
        found: u8,
        /// Octets from the kind to the end.
        available: usize,
    },
    /// Another kind of TCP option than the one to be parsed.
    #[error("TCP option kind is {found}, expected {expected}")]
    OptionKind {
        /// Option kind.
        found: u8,
        /// Option kind expected.
        expected: u8,
    },
    /// A TCP option with a length that its kind does not have.
    #[error("TCP option of kind {kind} has length {found}, expected {expected}")]
    OptionLength {
        /// Option kind.
        kind: u8,
        /// Octets found.
        found: usize,
        /// Octets that the kind allows.
        expected: Lengths,
    },
    /// Another Multipath TCP option than the one to be parsed.
    #[error("Multipath TCP subtype is {found}, expected {} ({expected})", *expected as u8)]
    MptcpSubtype {
        /// The subtype field.
        found: u8,
        /// Subtype expected.
        expected: Subtype,
    },
    /// A Multipath TCP option with a length that its subtype does not have, or that
    /// contradicts its flags.
    #[error("{subtype} has length {found}, expected {expected}")]
    MptcpLength {
        /// The option concerned.
        subtype: Subtype,
        /// Octets found.
        found: usize,
        /// Octets that the subtype and its flags allow.
        expected: Lengths,
    },
}

/// Why a value has no representation in octets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The options do not fit into a TCP header.
    #[error("TCP options take {octets} octets, at most 40 fit")]
    OptionsTooLong {
        /// Octets, padding included.
        octets: usize,
    },
    /// The packet is longer than its IP header can say.
    #[error("packet of {octets} octets, at most {limit} fit")]
    PacketTooLong {
        /// Octets of the whole packet.
        octets: usize,
        /// Most octets of a packet of this IP version.
        limit: usize,
    },
    /// One address is IPv4, the other IPv6.
    #[error("{from} and {to} are of different address families")]
    MixedAddressFamilies {
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
    },
}

/// The lengths, in octets and ascending, that a format allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths(pub &'static [usize]);

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            [only] => write!(f, "{only}"),
            [first, .., last] if last - first == self.0.len() - 1 && self.0.len() > 2 => {
                write!(f, "{first} to {last}")
            }
            [first, middle @ .., last] => {
                write!(f, "{first}")?;
                middle.iter().try_for_each(|length| write!(f, ", {length}"))?;
                write!(f, " or {last}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_option_and_both_lengths() {
        let error = ParseError::MptcpLength {
            subtype: Subtype::Capable,
            found: 13,
            expected: Lengths(&[4, 12, 20, 22, 24]),
        };
        assert_eq!(error.to_string(), "MP_CAPABLE has length 13, expected 4, 12, 20, 22 or 24");
        assert_eq!(Lengths(&[4, 5, 6]).to_string(), "4 to 6");
        assert_eq!(Lengths(&[12]).to_string(), "12");
        let error = ParseError::MptcpSubtype { found: 5, expected: Subtype::Join };
        assert_eq!(error.to_string(), "Multipath TCP subtype is 5, expected 1 (MP_JOIN)");
    }
}
