//! What travels on a link: an IP packet with something in it, as a value.

use std::net::IpAddr;

use crate::ip::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::{CE, Datagram, EmitError, ParseError, Payload, Segment};

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// With a TCP segment.
    Tcp(Segment),
    /// With a UDP datagram.
    Udp(Datagram),
}

impl Packet {
    /// Bytes of the IP packet that [`Packet::emit`] makes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        match self {
            Packet::Tcp(segment) => segment.wire_len(),
            Packet::Udp(datagram) => datagram.wire_len(),
        }
    }

    /// Where it comes from.
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.source.address,
            Packet::Udp(datagram) => datagram.source.address,
        }
    }

    /// Where it goes.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.destination.address,
            Packet::Udp(datagram) => datagram.destination.address,
        }
    }

    /// What TCP or UDP carries.
    pub fn payload(&self) -> &Payload {
        match self {
            Packet::Tcp(segment) => &segment.payload,
            Packet::Udp(datagram) => &datagram.payload,
        }
    }

    /// Mark the packet instead of dropping it, if its sender lets queues do so; false if not.
    /// RFC 3168 §5.
    pub fn mark(&mut self) -> bool {
        let ecn = match self {
            Packet::Tcp(segment) => &mut segment.ecn,
            Packet::Udp(datagram) => &mut datagram.ecn,
        };
        let markable = *ecn != 0;
        if markable {
            *ecn = CE;
        }
        markable
    }

    /// Append the packet's bytes.
    ///
    /// # Errors
    /// As [`Segment::emit`] and [`Datagram::emit`]; `out` is then left as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        match self {
            Packet::Tcp(segment) => segment.emit(out),
            Packet::Udp(datagram) => datagram.emit(out),
        }
    }

    /// Parse an IP packet; bytes beyond the packet's own length are ignored.
    ///
    /// # Errors
    /// If it is neither TCP nor UDP, or as [`Segment::parse`] and [`Datagram::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Packet, ParseError> {
        match ip::parse(bytes)?.protocol {
            PROTOCOL_TCP => Segment::parse(bytes).map(Packet::Tcp),
            PROTOCOL_UDP => Datagram::parse(bytes).map(Packet::Udp),
            found => Err(ParseError::Protocol { found, expected: "6 (TCP) or 17 (UDP)" }),
        }
    }
}

impl From<Segment> for Packet {
    fn from(segment: Segment) -> Self {
        Packet::Tcp(segment)
    }
}

impl From<Datagram> for Packet {
    fn from(datagram: Datagram) -> Self {
        Packet::Udp(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_no_larger_than_a_segment() {
        // Links copy packets: what carries a segment is to cost no more than the segment.
        assert_eq!(size_of::<Packet>(), size_of::<Segment>());
        assert_eq!(size_of::<Option<Packet>>(), size_of::<Segment>());
    }
}
