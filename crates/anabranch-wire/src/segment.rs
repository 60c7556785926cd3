//! A TCP segment in an IP packet, as a value.

use core::fmt;
use std::net::IpAddr;

use bytes::Bytes;

use crate::ip::{self, Addresses, PROTOCOL_TCP};
use crate::tcp::{self, CHECKSUM_AT, HEADER_BYTES};
use crate::{Checksum, EmitError, ParseError, Payload, TcpHeader, TcpOptions, ip_header_bytes};

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketAddress {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
}

/// A TCP segment and what the IP header says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub source: SocketAddress,
    /// Where it goes; of the same address family as `source`.
    pub destination: SocketAddress,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// TCP options.
    pub options: TcpOptions,
    /// Payload bytes.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
    /// Would the TCP checksum hold? A node that corrupts a segment in flight clears it.
    pub checksum_ok: bool,
}

// All of it is moved some ten times on its way; beyond 256 bytes a copy takes twice the
// instructions.
const _: () = assert!(size_of::<Segment>() <= 256);

impl SocketAddress {
    /// The endpoint `address`:`port`.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        SocketAddress { address, port }
    }
}

impl fmt::Debug for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Segment {
    /// Bytes of the IP packet that [`Segment::emit`] makes of this segment.
    #[inline]
    pub fn wire_len(&self) -> usize {
        ip_header_bytes(self.source.address) + self.tcp_len()
    }

    /// Append the segment as an IP packet, with its checksums (a wrong one for TCP if
    /// `checksum_ok` is false).
    ///
    /// # Errors
    /// If the addresses are of different families, the options exceed 40 bytes, or the packet
    /// exceeds what its IP header can count; `out` is then left as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let tcp_at = self.emit_unsummed(&[], out)?;
        // The field holds the pseudo-header's part of the sum.
        let mut checksum = Checksum::new();
        checksum.add(&out[tcp_at..]);
        // Two numbers that differ in one bit are never the two zeros of one's complement.
        let checksum = checksum.finish() ^ u16::from(!self.checksum_ok);
        out[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    /// Append the segment with the payloads `more` after its own as one IP packet, whose TCP
    /// checksum (and division into segments) is left to an interface: its field holds the sum of
    /// the pseudo-header. Returns where in `out` the TCP header begins. Virtio 1.2 §5.1.6.2.
    ///
    /// # Errors
    /// As [`Segment::emit`]; `out` is then left as it was.
    pub fn emit_unsummed(&self, more: &[Payload], out: &mut Vec<u8>) -> Result<usize, EmitError> {
        let start = out.len();
        let emitted = self.emit_unwound(more, out);
        if emitted.is_err() {
            out.truncate(start);
        }
        emitted
    }

    /// Parse an IP packet with a TCP segment inside; bytes beyond the packet's own length are
    /// ignored. The payload is copied once. A TCP checksum that does not hold is no error: it
    /// clears `checksum_ok`.
    ///
    /// # Errors
    /// If the packet is truncated, a fragment, not TCP, has an IPv4 header with a wrong
    /// checksum, or contradictory lengths or options that cannot be told apart.
    pub fn parse(bytes: &[u8]) -> Result<Segment, ParseError> {
        Segment::parse_either(bytes, true, Bytes::copy_from_slice)
    }

    /// As [`Segment::parse`], for a packet whose TCP checksum was left to an interface that it did
    /// not pass: it is not looked at. The payload shares the memory of `bytes`. Virtio 1.2
    /// §5.1.6.4.
    ///
    /// # Errors
    /// As [`Segment::parse`].
    pub fn parse_unsummed(bytes: &Bytes) -> Result<Segment, ParseError> {
        Segment::parse_either(bytes, false, |payload| bytes.slice_ref(payload))
    }

    fn parse_either(
        bytes: &[u8],
        summed: bool,
        keep: impl FnOnce(&[u8]) -> Bytes,
    ) -> Result<Segment, ParseError> {
        let packet = ip::parse(bytes)?;
        packet.require(PROTOCOL_TCP, "6 (TCP)")?;
        let tcp = packet.transport;
        let raw = tcp::parse(tcp)?;
        let checksum_ok = !summed || {
            let (source, destination) = (packet.source, packet.destination);
            let mut checksum = Checksum::of_tcp_pseudo_header(source, destination, tcp.len());
            checksum.add(tcp);
            checksum.verifies(0)
        };
        Ok(Segment {
            source: SocketAddress::new(packet.source, raw.source_port),
            destination: SocketAddress::new(packet.destination, raw.destination_port),
            header: raw.header,
            options: TcpOptions::parse(raw.options)?,
            payload: keep(raw.payload).into(),
            ecn: packet.ecn,
            checksum_ok,
        })
    }

    /// Bytes of TCP header, options and payload.
    #[inline]
    fn tcp_len(&self) -> usize {
        HEADER_BYTES + self.options.bytes_len() + self.payload.len()
    }

    /// As [`Segment::emit_unsummed`], but `out` may be left with part of the packet in case of
    /// error.
    fn emit_unwound(&self, more: &[Payload], out: &mut Vec<u8>) -> Result<usize, EmitError> {
        let (source, destination) = (self.source, self.destination);
        let tcp_len = self.tcp_len() + more.iter().map(Payload::len).sum::<usize>();
        Addresses::new(source.address, destination.address)?.emit(
            PROTOCOL_TCP,
            self.ecn,
            tcp_len,
            out,
        )?;
        let tcp_at = out.len();
        let option_bytes = self.options.bytes_len();
        self.header.emit(source.port, destination.port, option_bytes, out);
        self.options.emit(out)?;
        for payload in [&self.payload].into_iter().chain(more) {
            payload.for_each_slice(|bytes| out.extend_from_slice(bytes));
        }
        let pseudo = Checksum::of_tcp_pseudo_header(source.address, destination.address, tcp_len);
        // The sum itself, not its complement.
        out[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        Ok(tcp_at)
    }
}
