//! A TCP segment in an IP packet, as a value.

use core::fmt;
use std::net::IpAddr;

use bytes::Bytes;

use crate::ip::{self, Addresses, PROTOCOL_TCP};
use crate::tcp::{self, CHECKSUM_AT, HEADER_OCTETS};
use crate::{Checksum, EmitError, ParseError, Payload, TcpHeader, TcpOptions, ip_header_octets};

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
}

/// A TCP segment and what the IP header says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes; of the same address family as `source`.
    pub destination: Endpoint,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// TCP options.
    pub options: TcpOptions,
    /// Payload octets.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
    /// Would the TCP checksum hold? A node that corrupts a segment in flight clears it.
    pub checksum_ok: bool,
}

impl Endpoint {
    /// The endpoint `address`:`port`.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        Endpoint { address, port }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Segment {
    /// Octets of the IP packet that [`Segment::emit`] makes of this segment.
    #[inline]
    pub fn wire_len(&self) -> usize {
        ip_header_octets(self.source.address) + self.tcp_len()
    }

    /// Append the segment as an IP packet, with its checksums (a wrong one for TCP if
    /// `checksum_ok` is false).
    ///
    /// # Errors
    /// If the addresses are of different families, the options exceed 40 octets, or the packet
    /// exceeds what its IP header can count; `out` is then left as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        let emitted = self.emit_unwound(out);
        if emitted.is_err() {
            out.truncate(start);
        }
        emitted
    }

    /// Parse an IP packet with a TCP segment inside; octets beyond the packet's own length are
    /// ignored. The payload is copied once. A TCP checksum that does not hold is no error: it
    /// clears `checksum_ok`.
    ///
    /// # Errors
    /// If the packet is truncated, a fragment, not TCP, has an IPv4 header with a wrong
    /// checksum, or contradictory lengths or options that cannot be told apart.
    pub fn parse(octets: &[u8]) -> Result<Segment, ParseError> {
        let packet = ip::parse(octets)?;
        packet.require(PROTOCOL_TCP, "6 (TCP)")?;
        let tcp = packet.transport;
        let raw = tcp::parse(tcp)?;
        let mut checksum =
            Checksum::of_tcp_pseudo_header(packet.source, packet.destination, tcp.len());
        checksum.add(tcp);
        Ok(Segment {
            source: Endpoint::new(packet.source, raw.source_port),
            destination: Endpoint::new(packet.destination, raw.destination_port),
            header: raw.header,
            options: TcpOptions::parse(raw.options)?,
            payload: Bytes::copy_from_slice(raw.payload).into(),
            ecn: packet.ecn,
            checksum_ok: checksum.verifies(0),
        })
    }

    /// Octets of TCP header, options and payload.
    #[inline]
    fn tcp_len(&self) -> usize {
        HEADER_OCTETS + self.options.octets_len() + self.payload.len()
    }

    /// As [`Segment::emit`], but `out` may be left with part of the packet in case of error.
    fn emit_unwound(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let (source, destination) = (self.source, self.destination);
        Addresses::new(source.address, destination.address)?.emit(
            PROTOCOL_TCP,
            self.ecn,
            self.tcp_len(),
            out,
        )?;
        let tcp_at = out.len();
        let option_octets = self.options.octets_len();
        self.header.emit(source.port, destination.port, option_octets, out);
        self.options.emit(out)?;
        self.payload.for_each_slice(|octets| out.extend_from_slice(octets));
        let checksum = self.tcp_checksum(&out[tcp_at..]).to_be_bytes();
        out[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum);
        Ok(())
    }

    /// The checksum of the TCP header and payload `octets`, whose checksum field is 0.
    fn tcp_checksum(&self, octets: &[u8]) -> u16 {
        let (source, destination) = (self.source.address, self.destination.address);
        let mut checksum = Checksum::of_tcp_pseudo_header(source, destination, octets.len());
        checksum.add(octets);
        // Two numbers that differ in one bit are never the two zeros of one's complement.
        checksum.finish() ^ u16::from(!self.checksum_ok)
    }
}
