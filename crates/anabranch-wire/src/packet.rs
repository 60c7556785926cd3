//! An IP packet with a TCP segment or UDP datagram, as a plain value. Links carry these values.

use std::net::IpAddr;

use crate::ip::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::{CE, Datagram, EmitError, ParseError, Payload, Segment};

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A packet with a TCP segment.
    Tcp(Segment),
    /// A packet with a UDP datagram.
    Udp(Datagram),
}

impl Packet {
    /// Length in bytes of the IP packet that [`Packet::emit`] writes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        match self {
            Packet::Tcp(segment) => segment.wire_len(),
            Packet::Udp(datagram) => datagram.wire_len(),
        }
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.source.address,
            Packet::Udp(datagram) => datagram.source.address,
        }
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.destination.address,
            Packet::Udp(datagram) => datagram.destination.address,
        }
    }

    /// Payload of the TCP segment or UDP datagram.
    pub fn payload(&self) -> &Payload {
        match self {
            Packet::Tcp(segment) => &segment.payload,
            Packet::Udp(datagram) => &datagram.payload,
        }
    }

    /// Mark the packet with CE if its sender supports ECN. Returns false if it does not; the queue
    /// must then drop the packet. RFC 3168 §5.
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

    /// Append the packet to `out`.
    ///
    /// # Errors
    /// As [`Segment::emit`] and [`Datagram::emit`]; `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        match self {
            Packet::Tcp(segment) => segment.emit(out),
            Packet::Udp(datagram) => datagram.emit(out),
        }
    }

    /// Parse an IP packet. Bytes beyond the packet's own length are ignored.
    ///
    /// # Errors
    /// If the packet is neither TCP nor UDP, or as [`Segment::parse`] and [`Datagram::parse`].
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
        // Links copy packets, so a packet with a segment must cost no more than the segment.
        assert_eq!(size_of::<Packet>(), size_of::<Segment>());
        assert_eq!(size_of::<Option<Packet>>(), size_of::<Segment>());
    }
}
