//! What can be wrong with bytes, and with values that should become bytes.

use core::fmt;
use std::net::IpAddr;

use crate::subtype::Subtype;

/// Why bytes are not a well-formed packet, header or option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the format needs.
    #[error("{what} needs {needed} bytes, only {available} are there")]
    Truncated {
        /// The header or option concerned.
        what: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version is {found}, expected 4 or 6")]
    IpVersion {
        /// The version field.
        found: u8,
    },
    /// An IPv4 header length below the 20 bytes of the fixed part.
    #[error("IPv4 header length is {found} bytes, expected at least 20")]
    Ipv4HeaderLength {
        /// Bytes, as the IHL field says.
        found: usize,
    },
    /// An IPv4 total length that does not even cover the header.
    #[error("IPv4 total length is {found} bytes, its header alone has {header}")]
    Ipv4TotalLength {
        /// Bytes, as the total length field says.
        found: usize,
        /// Bytes, as the IHL field says.
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
    /// A UDP length that contradicts the bytes there are.
    #[error("UDP length is {found} bytes, {available} are there")]
    UdpLength {
        /// Bytes, as the length field says.
        found: usize,
        /// Bytes of the datagram that are there.
        available: usize,
    },
    /// A TCP data offset below the 20 bytes of the fixed header.
    #[error("TCP data offset is {found} bytes, expected at least 20")]
    TcpDataOffset {
        /// Bytes, as the data offset field says.
        found: usize,
    },
    /// A TCP option whose length does not cover its own kind and length bytes.
    #[error("TCP option of kind {kind} has length {found}, expected at least 2")]
    OptionTooShort {
        /// Option kind.
        kind: u8,
        /// The length byte.
        found: u8,
    },
    /// A TCP option whose length byte contradicts the bytes there are.
    #[error("TCP option of kind {kind} has length {found}, {available} bytes are there")]
    OptionOverrun {
        /// Option kind.
        kind: u8,
        /// The length byte.
        found: u8,
        /// Bytes from the kind to the end.
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
        /// Bytes found.
        found: usize,
        /// Bytes that the kind allows.
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
        /// Bytes found.
        found: usize,
        /// Bytes that the subtype and its flags allow.
        expected: Lengths,
    },
}

/// Why a value has no representation in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The options do not fit into a TCP header.
    #[error("TCP options take {bytes} bytes, at most 40 fit")]
    OptionsTooLong {
        /// Bytes, padding included.
        bytes: usize,
    },
    /// The packet is longer than its IP header can say.
    #[error("packet of {bytes} bytes, at most {limit} fit")]
    PacketTooLong {
        /// Bytes of the whole packet.
        bytes: usize,
        /// Most bytes of a packet of this IP version.
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

/// The lengths, in bytes and ascending, that a format allows.
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
