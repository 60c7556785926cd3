//! A TCP segment in an IP packet, as a plain value.

use core::fmt;
use std::net::{IpAddr, SocketAddr};
use std::thread::LocalKey;

use bytes::Bytes;

use crate::ip::{self, Addresses, PROTOCOL_TCP};
use crate::pooled::{FreeBoxes, Pooled, Reuse};
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

/// A TCP segment with the relevant fields of its IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source address and port.
    pub source: SocketAddress,
    /// Destination address and port. Its address family is the same as that of `source`.
    pub destination: SocketAddress,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// TCP options.
    pub options: TcpOptions,
    /// Payload bytes.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
    /// Whether the TCP checksum is correct. A node that corrupts a segment in flight clears this
    /// flag.
    pub checksum_ok: bool,
}

// A segment is copied into its box. Beyond 256 bytes, a copy takes twice the instructions.
const _: () = assert!(size_of::<Segment>() <= 256);

impl SocketAddress {
    /// The socket address `address`:`port`.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        SocketAddress { address, port }
    }
}

impl From<SocketAddr> for SocketAddress {
    fn from(address: SocketAddr) -> Self {
        SocketAddress::new(address.ip(), address.port())
    }
}

impl From<SocketAddress> for SocketAddr {
    fn from(address: SocketAddress) -> Self {
        SocketAddr::new(address.address, address.port)
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

/// A segment in a box that is used again.
pub type PooledSegment = Pooled<Segment>;

thread_local! {
    static FREE: FreeBoxes<Segment> = const { FreeBoxes::new(Vec::new()) };
}

impl Reuse for Segment {
    fn free() -> &'static LocalKey<FreeBoxes<Self>> {
        &FREE
    }

    #[inline]
    fn release(&mut self) {
        self.payload = Payload::EMPTY;
        self.options.control = None;
        self.options.unknown = None;
        self.options.fast_open = None;
    }
}

impl PooledSegment {
    /// A segment without options and payload.
    #[inline]
    pub fn blank(source: SocketAddress, destination: SocketAddress, header: TcpHeader) -> Self {
        match Self::used() {
            Some(mut segment) => {
                segment.clear(source, destination, header);
                segment
            }
            None => Pooled::new(Segment {
                source,
                destination,
                header,
                options: TcpOptions::default(),
                payload: Payload::EMPTY,
                ecn: 0,
                checksum_ok: true,
            }),
        }
    }
}

impl Segment {
    /// Make a released segment one without options and payload. This takes fewer instructions than to
    /// copy a new one.
    #[inline]
    fn clear(&mut self, source: SocketAddress, destination: SocketAddress, header: TcpHeader) {
        debug_assert!(self.payload.is_empty(), "released");
        let Segment { source: from, destination: to, header: fixed, options, .. } = self;
        (*from, *to, *fixed) = (source, destination, header);
        options.clear();
        (self.ecn, self.checksum_ok) = (0, true);
    }

    /// Length in bytes of the IP packet that [`Segment::emit`] writes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        ip_header_bytes(self.source.address) + self.tcp_len()
    }

    /// Append the segment to `out` as an IP packet with its checksums. The TCP checksum is wrong if
    /// `checksum_ok` is false.
    ///
    /// # Errors
    /// If the addresses belong to different families, the options exceed 40 bytes, or the packet is
    /// too long for the length field of its IP header. `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_start(usize::MAX, out)
    }

    /// Append the first `most` bytes of the packet that [`Segment::emit`] appends.
    ///
    /// # Errors
    /// As [`Segment::emit`].
    pub fn emit_start(&self, most: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        let emitted = self.emit_headers(self.payload.len(), out);
        let (tcp_at, mut checksum) = emitted.inspect_err(|_| out.truncate(start))?;
        checksum.add(&out[tcp_at..]);
        checksum.add_payload(&self.payload);
        // Flipping one bit never turns one of the two one's complement zeros into the other.
        let checksum = checksum.finish() ^ u16::from(!self.checksum_ok);
        out[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
        let end = start.saturating_add(most);
        let room = end.saturating_sub(out.len()).min(self.payload.len());
        self.payload.append_start(room, out);
        out.truncate(end);
        Ok(())
    }

    /// Append the segment, followed by the payloads `more`, to `out` as one IP packet for checksum
    /// and segmentation offload. The TCP checksum field holds only the sum of the pseudo-header.
    /// Returns the offset of the TCP header in `out`. Virtio 1.2 §5.1.6.2.
    ///
    /// # Errors
    /// As [`Segment::emit`]; `out` is then unchanged.
    pub fn emit_unsummed(&self, more: &[Payload], out: &mut Vec<u8>) -> Result<usize, EmitError> {
        let start = out.len();
        let payloads = || [&self.payload].into_iter().chain(more);
        let emitted = self.emit_headers(payloads().map(Payload::len).sum(), out);
        let (tcp_at, pseudo) = emitted.inspect_err(|_| out.truncate(start))?;
        // The checksum field takes the sum itself, not its complement.
        out[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
        payloads().for_each(|payload| payload.for_each_slice(|bytes| out.extend_from_slice(bytes)));
        Ok(tcp_at)
    }

    /// Parse an IP packet that contains a TCP segment. Bytes beyond the packet's own length are
    /// ignored. The payload is copied once. A wrong TCP checksum is not an error, but clears
    /// `checksum_ok`.
    ///
    /// # Errors
    /// If the packet is truncated, a fragment or not TCP, if its IPv4 header checksum is wrong, if
    /// its lengths contradict each other, or if the lengths of its options are invalid.
    pub fn parse(bytes: &[u8]) -> Result<Segment, ParseError> {
        Segment::parse_either(bytes, true, Bytes::copy_from_slice)
    }

    /// Like [`Segment::parse`], for a packet with a checksum that offload left unfinished. The TCP
    /// checksum is not verified. The payload shares the memory of `bytes`. Virtio 1.2 §5.1.6.4.
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

    /// Append the IP header, the TCP header and the options of a packet with `payload` bytes of payload.
    /// The TCP checksum field is 0. Returns the offset of the TCP header and the sum of the pseudo-header.
    /// After an error, `out` may contain part of them.
    fn emit_headers(
        &self,
        payload: usize,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Checksum), EmitError> {
        let (source, destination) = (self.source, self.destination);
        let option_bytes = self.options.bytes_len();
        let tcp_len = HEADER_BYTES + option_bytes + payload;
        Addresses::new(source.address, destination.address)?.emit(
            PROTOCOL_TCP,
            self.ecn,
            tcp_len,
            out,
        )?;
        let tcp_at = out.len();
        self.header.emit(source.port, destination.port, option_bytes, out);
        self.options.emit_sized(option_bytes, out)?;
        let pseudo = Checksum::of_tcp_pseudo_header(source.address, destination.address, tcp_len);
        Ok((tcp_at, pseudo))
    }
}
