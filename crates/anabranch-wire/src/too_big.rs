//! The answer to an IP packet that is too large for a link: ICMP "fragmentation needed" and "packet
//! too big". RFC 1191 §4, RFC 4443 §3.2.

use std::net::IpAddr;

use crate::ip::{self, Addresses, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP};
use crate::reader::Reader;
use crate::{Checksum, EmitError, ParseError, SeqNumber, SocketAddress, ip_header_bytes};

/// A router's message that a TCP segment exceeded the MTU of the next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTooBig {
    /// Address of the router.
    pub source: IpAddr,
    /// Address of the host that sent the segment.
    pub destination: IpAddr,
    /// MTU of the next link, in bytes of an IP packet.
    pub mtu: u16,
    /// Source of the segment, quoted from its headers.
    pub quoted_source: SocketAddress,
    /// Destination of the segment.
    pub quoted_destination: SocketAddress,
    /// Sequence number of the segment.
    pub quoted_seq: SeqNumber,
}

/// Bytes of the ICMP header, up to the quoted packet. RFC 792, RFC 4443.
const ICMP_HEADER_BYTES: usize = 8;
/// Bytes of the TCP header that are quoted: ports and sequence number. RFC 792.
const QUOTED_TCP_BYTES: usize = 8;
/// ICMP type and code. RFC 1191 §4.
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
/// ICMPv6 type and code. RFC 4443 §3.2.
const PACKET_TOO_BIG: [u8; 2] = [2, 0];
/// Offset of the checksum in the ICMP header.
const CHECKSUM_AT: usize = 2;

impl PacketTooBig {
    /// Length in bytes of the IP packet that [`PacketTooBig::emit`] writes.
    pub fn wire_len(&self) -> usize {
        2 * ip_header_bytes(self.source) + ICMP_HEADER_BYTES + QUOTED_TCP_BYTES
    }

    /// Append the message to `out` as an IP packet with correct checksums.
    ///
    /// # Errors
    /// If the addresses belong to different families. `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (from, to) = (self.quoted_source, self.quoted_destination);
        let quoted = Addresses::new(from.address, to.address)?;
        let addresses = Addresses::new(self.source, self.destination)?;
        Addresses::new(self.source, from.address)?;
        let bytes = ICMP_HEADER_BYTES + ip_header_bytes(self.source) + QUOTED_TCP_BYTES;
        let is_ipv4 = self.source.is_ipv4();
        let (protocol, kind) = protocol_and_kind(is_ipv4);
        addresses.emit(protocol, 0, bytes, out)?;
        let icmp_at = out.len();
        out.extend(kind);
        out.extend([0; 2]);
        out.extend(u32::from(self.mtu).to_be_bytes());
        quoted.emit(PROTOCOL_TCP, 0, QUOTED_TCP_BYTES, out)?;
        out.extend(from.port.to_be_bytes());
        out.extend(to.port.to_be_bytes());
        out.extend(self.quoted_seq.0.to_be_bytes());
        let mut checksum = match is_ipv4 {
            true => Checksum::new(),
            false => Checksum::of_pseudo_header(self.source, self.destination, protocol, bytes),
        };
        checksum.add(&out[icmp_at..]);
        out[icmp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum.finish().to_be_bytes());
        Ok(())
    }

    /// Parse an IP packet that contains such a message. The ICMP checksum is not verified.
    ///
    /// # Errors
    /// If the packet is truncated or another message, or if it quotes something else than TCP.
    pub fn parse(bytes: &[u8]) -> Result<PacketTooBig, ParseError> {
        let packet = ip::parse(bytes)?;
        let mut reader = Reader::new("ICMP header", packet.transport);
        let kind = [reader.u8()?, reader.u8()?];
        let is_ipv4 = packet.source.is_ipv4();
        if (packet.protocol, kind) != protocol_and_kind(is_ipv4) {
            return Err(ParseError::Protocol {
                found: packet.protocol,
                expected: "6 (TCP) or 17 (UDP)",
            });
        }
        let _checksum = reader.u16()?;
        let high = reader.u16()?;
        // IPv4 does not use these bytes.
        let high = if is_ipv4 { 0 } else { u32::from(high) << 16 };
        let mtu = high | u32::from(reader.u16()?);
        let (quoted, _) = ip::parse_cut(reader.rest())?;
        quoted.require(PROTOCOL_TCP, "6 (TCP)")?;
        if quoted.source.is_ipv4() != is_ipv4 {
            return Err(ParseError::QuotedFamily);
        }
        let mut reader = Reader::new("quoted TCP header", quoted.transport);
        let (from, to) = (reader.u16()?, reader.u16()?);
        let seq = (u32::from(reader.u16()?) << 16) | u32::from(reader.u16()?);
        Ok(PacketTooBig {
            source: packet.source,
            destination: packet.destination,
            mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
            quoted_source: SocketAddress::new(quoted.source, from),
            quoted_destination: SocketAddress::new(quoted.destination, to),
            quoted_seq: SeqNumber(seq),
        })
    }
}

/// Protocol of the message, and its type and code.
fn protocol_and_kind(is_ipv4: bool) -> (u8, [u8; 2]) {
    match is_ipv4 {
        true => (PROTOCOL_ICMP, FRAGMENTATION_NEEDED),
        false => (PROTOCOL_ICMPV6, PACKET_TOO_BIG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;

    #[test]
    fn a_message_of_either_family_survives_the_wire() {
        for (from, to) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let [from, to]: [IpAddr; 2] = [from, to].map(|text| text.parse().expect("an address"));
            let message = PacketTooBig {
                source: to,
                destination: from,
                mtu: 1400,
                quoted_source: SocketAddress::new(from, 50_000),
                quoted_destination: SocketAddress::new(to, 80),
                quoted_seq: SeqNumber(0x8000_0001),
            };
            let mut bytes = Vec::new();
            message.emit(&mut bytes).expect("one family");
            assert_eq!(bytes.len(), message.wire_len());
            assert_eq!(Packet::parse(&bytes), Ok(Packet::TooBig(Box::new(message))));
        }
    }

    #[test]
    fn a_message_quotes_a_packet_of_its_own_family() {
        let [v4, v6]: [IpAddr; 2] =
            ["10.0.0.1", "fd00::1"].map(|text| text.parse().expect("an address"));
        let mixed = PacketTooBig {
            source: v6,
            destination: v6,
            mtu: 1400,
            quoted_source: SocketAddress::new(v4, 50_000),
            quoted_destination: SocketAddress::new(v4, 80),
            quoted_seq: SeqNumber(1),
        };
        let mut bytes = Vec::new();
        assert!(mixed.emit(&mut bytes).is_err() && bytes.is_empty());
        let one_family = |address| PacketTooBig {
            source: address,
            destination: address,
            quoted_source: SocketAddress::new(address, 50_000),
            quoted_destination: SocketAddress::new(address, 80),
            ..mixed
        };
        one_family(v6).emit(&mut bytes).expect("one family");
        let mut quoted = Vec::new();
        one_family(v4).emit(&mut quoted).expect("one family");
        // The header of IPv6 and 8 bytes of ICMP, then a quoted packet of IPv4.
        bytes.truncate(48);
        bytes.extend(&quoted[28..]);
        let length = (bytes.len() - 40) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        assert_eq!(Packet::parse(&bytes), Err(ParseError::QuotedFamily));
    }

    #[test]
    fn each_family_has_its_own_type_and_code() {
        let from: IpAddr = [10, 0, 0, 1].into();
        let message = PacketTooBig {
            source: from,
            destination: from,
            mtu: 1400,
            quoted_source: SocketAddress::new(from, 50_000),
            quoted_destination: SocketAddress::new(from, 80),
            quoted_seq: SeqNumber(1),
        };
        let mut bytes = Vec::new();
        message.emit(&mut bytes).expect("one family");
        bytes[20..22].copy_from_slice(&PACKET_TOO_BIG);
        assert!(Packet::parse(&bytes).is_err());
    }

    #[test]
    fn the_message_of_ipv4_has_the_layout_of_rfc_1191() {
        let [from, to]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let message = PacketTooBig {
            source: to,
            destination: from,
            mtu: 1400,
            quoted_source: SocketAddress::new(from, 50_000),
            quoted_destination: SocketAddress::new(to, 80),
            quoted_seq: SeqNumber(1),
        };
        let mut bytes = Vec::new();
        message.emit(&mut bytes).expect("one family");
        // Type 3, code 4; after the checksum, two unused bytes and the MTU.
        assert_eq!((&bytes[20..22], &bytes[24..28]), (&[3, 4][..], &[0, 0, 0x05, 0x78][..]));
        let mut checksum = Checksum::new();
        checksum.add(&bytes[20..]);
        assert_eq!(checksum.finish(), 0);
    }
}
