//! An IP packet with a TCP segment, a UDP datagram or a message about its size, as a plain value.
//! Links carry these values.

use std::net::IpAddr;

use crate::ip::{self, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::{
    CE, Datagram, EmitError, PacketTooBig, ParseError, Payload, Pooled, PooledSegment, Segment,
};

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A packet with a TCP segment.
    Tcp(PooledSegment),
    /// A packet with a UDP datagram.
    Udp(Pooled<Datagram>),
    /// A router's message that a TCP segment exceeded the MTU of a link.
    TooBig(Box<PacketTooBig>),
}

impl Packet {
    /// Length in bytes of the IP packet that [`Packet::emit`] writes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        match self {
            Packet::Tcp(segment) => segment.wire_len(),
            Packet::Udp(datagram) => datagram.wire_len(),
            Packet::TooBig(message) => message.wire_len(),
        }
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.source.address,
            Packet::Udp(datagram) => datagram.source.address,
            Packet::TooBig(message) => message.source,
        }
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self {
            Packet::Tcp(segment) => segment.destination.address,
            Packet::Udp(datagram) => datagram.destination.address,
            Packet::TooBig(message) => message.destination,
        }
    }

    /// Payload of the TCP segment or UDP datagram; empty for other packets.
    pub fn payload(&self) -> &Payload {
        match self {
            Packet::Tcp(segment) => &segment.payload,
            Packet::Udp(datagram) => &datagram.payload,
            Packet::TooBig(_) => const { &Payload::EMPTY },
        }
    }

    /// Mark the packet with CE if its sender supports ECN. Returns false if it does not; the queue
    /// must then drop the packet. RFC 3168 §5.
    pub fn mark(&mut self) -> bool {
        let ecn = match self {
            Packet::Tcp(segment) => &mut segment.ecn,
            Packet::Udp(datagram) => &mut datagram.ecn,
            Packet::TooBig(_) => return false,
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
    /// As [`Segment::emit`], [`Datagram::emit`] and [`PacketTooBig::emit`]; `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_start(usize::MAX, out)
    }

    /// Append the first `most` bytes of the packet to `out`.
    ///
    /// # Errors
    /// As [`Packet::emit`].
    pub fn emit_start(&self, most: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        match self {
            Packet::Tcp(segment) => return segment.emit_start(most, out),
            Packet::Udp(datagram) => datagram.emit(out)?,
            Packet::TooBig(message) => message.emit(out)?,
        }
        out.truncate(start.saturating_add(most));
        Ok(())
    }

    /// Parse an IP packet. Bytes beyond the packet's own length are ignored.
    ///
    /// # Errors
    /// If the packet is neither TCP, UDP nor a [`PacketTooBig`], or as the types' own `parse`.
    pub fn parse(bytes: &[u8]) -> Result<Packet, ParseError> {
        match ip::parse(bytes)?.protocol {
            PROTOCOL_TCP => Segment::parse(bytes).map(Packet::from),
            PROTOCOL_UDP => Datagram::parse(bytes).map(Packet::from),
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
                PacketTooBig::parse(bytes).map(|message| Packet::TooBig(Box::new(message)))
            }
            found => Err(ParseError::Protocol { found, expected: "6 (TCP) or 17 (UDP)" }),
        }
    }
}

impl From<Segment> for Packet {
    #[inline]
    fn from(segment: Segment) -> Self {
        Packet::Tcp(segment.into())
    }
}

impl From<PooledSegment> for Packet {
    #[inline]
    fn from(segment: PooledSegment) -> Self {
        Packet::Tcp(segment)
    }
}

impl From<PacketTooBig> for Packet {
    fn from(message: PacketTooBig) -> Self {
        Packet::TooBig(Box::new(message))
    }
}

impl From<Datagram> for Packet {
    fn from(datagram: Datagram) -> Self {
        Packet::Udp(datagram.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_moved_in_two_words() {
        assert_eq!(size_of::<Option<Packet>>(), 2 * size_of::<usize>());
    }
}
