//! Errors of parsing bytes and of emitting values.

use core::fmt;
use std::net::IpAddr;

use crate::subtype::Subtype;

/// Error of bytes that are not a well-formed packet, header or option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the format requires.
    #[error("{what} needs {needed} bytes, only {available} are available")]
    Truncated {
        /// The header or option concerned.
        what: &'static str,
        /// Bytes required.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// The IP version is neither 4 nor 6.
    #[error("IP version is {found}, expected 4 or 6")]
    IpVersion {
        /// The version field.
        found: u8,
    },
    /// The IPv4 header length is below the 20 bytes of the fixed part.
    #[error("IPv4 header length is {found} bytes, expected at least 20")]
    Ipv4HeaderLength {
        /// Bytes, according to the IHL field.
        found: usize,
    },
    /// The IPv4 total length is below the header length.
    #[error("IPv4 total length is {found} bytes, but the header alone has {header}")]
    Ipv4TotalLength {
        /// Bytes, according to the total length field.
        found: usize,
        /// Bytes, according to the IHL field.
        header: usize,
    },
    /// The IPv4 header checksum is wrong.
    #[error("IPv4 header checksum is wrong")]
    Ipv4Checksum,
    /// The packet is a fragment. Only whole packets are parsed.
    #[error("IPv{version} fragment; only whole packets are parsed")]
    Fragment {
        /// IP version.
        version: u8,
    },
    /// The packet has an IPv6 extension header other than hop-by-hop and destination options.
    #[error("IPv6 extension header {found} is not supported")]
    ExtensionHeader {
        /// The next header value.
        found: u8,
    },
    /// The packet carries a transport protocol other than the expected one.
    #[error("IP protocol is {found}, expected {expected}")]
    Protocol {
        /// The protocol (IPv4) or next header (IPv6) value.
        found: u8,
        /// Number and name of the expected protocol.
        expected: &'static str,
    },
    /// An ICMP message quotes a packet of the other IP version.
    #[error("the quoted packet is of another IP version than the message")]
    QuotedFamily,
    /// The UDP length contradicts the number of bytes available.
    #[error("UDP length is {found} bytes, but {available} are available")]
    UdpLength {
        /// Bytes, according to the length field.
        found: usize,
        /// Bytes of the datagram that are available.
        available: usize,
    },
    /// The TCP data offset is below the 20 bytes of the fixed header.
    #[error("TCP data offset is {found} bytes, expected at least 20")]
    TcpDataOffset {
        /// Bytes, according to the data offset field.
        found: usize,
    },
    /// The length of a TCP option does not cover its own kind and length bytes.
    #[error("TCP option of kind {kind} has length {found}, expected at least 2")]
    OptionTooShort {
        /// Option kind.
        kind: u8,
        /// The length byte.
        found: u8,
    },
    /// The length byte of a TCP option contradicts the number of bytes available.
    #[error("TCP option of kind {kind} has length {found}, {available} bytes are there")]
    OptionOverrun {
        /// Option kind.
        kind: u8,
        /// The length byte.
        found: u8,
        /// Bytes from the option's kind byte to the end.
        available: usize,
    },
    /// The kind of a TCP option is not the expected one.
    #[error("TCP option kind is {found}, expected {expected}")]
    OptionKind {
        /// Option kind.
        found: u8,
        /// Option kind expected.
        expected: u8,
    },
    /// The length of a TCP option is not valid for its kind.
    #[error("TCP option of kind {kind} has length {found}, expected {expected}")]
    OptionLength {
        /// Option kind.
        kind: u8,
        /// Bytes found.
        found: usize,
        /// Lengths in bytes that the kind allows.
        expected: Lengths,
    },
    /// The subtype of a Multipath TCP option is not the expected one.
    #[error("Multipath TCP subtype is {found}, expected {} ({expected})", *expected as u8)]
    MptcpSubtype {
        /// The subtype field.
        found: u8,
        /// Subtype expected.
        expected: Subtype,
    },
    /// The length of a Multipath TCP option is not valid for its subtype and flags.
    #[error("{subtype} has length {found}, expected {expected}")]
    MptcpLength {
        /// The option concerned.
        subtype: Subtype,
        /// Bytes found.
        found: usize,
        /// Lengths in bytes that the subtype and the flags allow.
        expected: Lengths,
    },
}

/// Error of a value that cannot be represented in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The options do not fit into a TCP header.
    #[error("TCP options take {bytes} bytes, but at most 40 fit")]
    OptionsTooLong {
        /// Bytes, padding included.
        bytes: usize,
    },
    /// The packet is too long for the length field of its IP header.
    #[error("packet has {bytes} bytes, but at most {limit} fit")]
    PacketTooLong {
        /// Length of the packet in bytes.
        bytes: usize,
        /// Maximum packet length in bytes for this IP version.
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

/// The lengths in bytes that a format allows, in ascending order.
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
