//! A UDP datagram in an IP packet, as a plain value. RFC 768.

use std::thread::LocalKey;

use bytes::Bytes;

use crate::ip::{self, Addresses, PROTOCOL_UDP};
use crate::pooled::{FreeBoxes, Reuse};
use crate::reader::Reader;
use crate::{Checksum, EmitError, ParseError, Payload, SocketAddress, ip_header_bytes};

/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: usize = 8;

/// A UDP datagram with the relevant fields of its IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address and port.
    pub source: SocketAddress,
    /// Destination address and port. Its address family is the same as that of `source`.
    pub destination: SocketAddress,
    /// Payload bytes.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
}

thread_local! {
    static FREE: FreeBoxes<Datagram> = const { FreeBoxes::new(Vec::new()) };
}

impl Reuse for Datagram {
    fn free() -> &'static LocalKey<FreeBoxes<Self>> {
        &FREE
    }

    #[inline]
    fn release(&mut self) {
        self.payload = Payload::EMPTY;
    }
}

impl Datagram {
    /// Length in bytes of the IP packet that [`Datagram::emit`] writes.
    pub fn wire_len(&self) -> usize {
        ip_header_bytes(self.source.address) + UDP_HEADER_BYTES + self.payload.len()
    }

    /// Append the datagram to `out` as an IP packet with correct checksums.
    ///
    /// # Errors
    /// If the addresses belong to different families, or the packet is too long for its length
    /// fields. `out` is then unchanged.
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

    /// Parse an IP packet that contains a UDP datagram. Bytes beyond the packet's own length are
    /// ignored. The payload is copied once. The UDP checksum is not verified.
    ///
    /// # Errors
    /// If the packet is truncated, a fragment or not UDP, if its IPv4 header checksum is wrong, or
    /// if its lengths contradict each other.
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

    /// The checksum over the UDP header and payload in `bytes`, whose checksum field is 0.
    fn checksum(&self, bytes: &[u8]) -> u16 {
        let (source, destination) = (self.source.address, self.destination.address);
        let mut checksum =
            Checksum::of_pseudo_header(source, destination, PROTOCOL_UDP, bytes.len());
        checksum.add(bytes);
        match checksum.finish() {
            // RFC 768: 0 means that there is no checksum, so the other one's complement zero is
            // sent.
            0 => u16::MAX,
            sum => sum,
        }
    }
}

/// Offset of the checksum in a UDP header. RFC 768.
const CHECKSUM_AT: usize = 6;
