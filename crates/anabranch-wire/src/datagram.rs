//! A UDP datagram in an IP packet, as a value. RFC 768.

use bytes::Bytes;

use crate::ip::{self, Addresses, PROTOCOL_UDP};
use crate::reader::Reader;
use crate::{Checksum, EmitError, ParseError, Payload, SocketAddress, ip_header_bytes};

/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: usize = 8;

/// A UDP datagram and what the IP header says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it comes from.
    pub source: SocketAddress,
    /// Where it goes; of the same address family as `source`.
    pub destination: SocketAddress,
    /// Payload bytes.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
}

impl Datagram {
    /// Bytes of the IP packet that [`Datagram::emit`] makes of this datagram.
    pub fn wire_len(&self) -> usize {
        ip_header_bytes(self.source.address) + UDP_HEADER_BYTES + self.payload.len()
    }

    /// Append the datagram as an IP packet, with its checksums.
    ///
    /// # Errors
    /// If the addresses are of different families, or the packet exceeds what its headers can
    /// count; `out` is then left as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (source, destination) = (self.source, self.destination);
        let bytes = UDP_HEADER_BYTES + self.payload.len();
        let length = u16::try_from(bytes).map_err(|_| EmitError::PacketTooLong {
            bytes: self.wire_len(),
            limit: ip_header_bytes(source.address) + usize::from(u16::MAX),
        })?;
        let addresses = Addresses::new(source.address, destination.address)?;
        addresses.emit(PROTOCOL_UDP, self.ecn, bytes, out)?;
        let udp_at = out.len();
        out.extend(source.port.to_be_bytes());
        out.extend(destination.port.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend([0; 2]);
        self.payload.for_each_slice(|bytes| out.extend_from_slice(bytes));
        let checksum = self.checksum(&out[udp_at..]).to_be_bytes();
        out[udp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum);
        Ok(())
    }

    /// Parse an IP packet with a UDP datagram inside; bytes beyond the packet's own length are
    /// ignored. The payload is copied once. The checksum is not looked at.
    ///
    /// # Errors
    /// If the packet is truncated, a fragment, not UDP, has an IPv4 header with a wrong checksum,
    /// or contradictory lengths.
    pub fn parse(bytes: &[u8]) -> Result<Datagram, ParseError> {
        let packet = ip::parse(bytes)?;
        packet.require(PROTOCOL_UDP, "17 (UDP)")?;
        let mut reader = Reader::new("UDP header", packet.transport);
        let (source_port, destination_port) = (reader.u16()?, reader.u16()?);
        let length = usize::from(reader.u16()?);
        let _checksum = reader.u16()?;
        let payload = length
            .checked_sub(UDP_HEADER_BYTES)
            .and_then(|bytes| reader.rest().get(..bytes))
            .ok_or(ParseError::UdpLength { found: length, available: packet.transport.len() })?;
        Ok(Datagram {
            source: SocketAddress::new(packet.source, source_port),
            destination: SocketAddress::new(packet.destination, destination_port),
            payload: Bytes::copy_from_slice(payload).into(),
            ecn: packet.ecn,
        })
    }

    /// The checksum of the UDP header and payload `bytes`, whose checksum field is 0.
    fn checksum(&self, bytes: &[u8]) -> u16 {
        let (source, destination) = (self.source.address, self.destination.address);
        let mut checksum =
            Checksum::of_pseudo_header(source, destination, PROTOCOL_UDP, bytes.len());
        checksum.add(bytes);
        match checksum.finish() {
            // RFC 768: 0 would mean that there is none; the other zero of one's complement counts.
            0 => u16::MAX,
            sum => sum,
        }
    }
}

/// Where the checksum stands in a UDP header. RFC 768.
const CHECKSUM_AT: usize = 6;
