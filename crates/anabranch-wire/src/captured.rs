//! TCP segments read from a capture file.

use crate::ip::{self, PROTOCOL_TCP};
use crate::{Checksum, ParseError, SocketAddress, TcpHeader, tcp};

/// A TCP segment from a capture. The capture may have truncated the payload, and with checksum
/// offload it holds the segment before the sender's network card filled in the checksums.
#[derive(Clone, Copy, Debug)]
pub struct CapturedSegment<'a> {
    /// Source address and port.
    pub source: SocketAddress,
    /// Destination address and port.
    pub destination: SocketAddress,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// Raw bytes of all options, for [`TcpOptions::parse`](crate::TcpOptions::parse).
    pub options: &'a [u8],
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// Bytes of the whole payload.
    pub payload_len: usize,
    /// TCP header and captured part of the payload.
    tcp: &'a [u8],
}

impl<'a> CapturedSegment<'a> {
    /// Parse an IP packet that contains a TCP segment. Bytes beyond the packet's own length are
    /// ignored. A truncated payload is not an error. No checksum is verified.
    ///
    /// # Errors
    /// If a header is incomplete, the lengths contradict each other, or the packet is a fragment or
    /// not TCP.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (packet, stated) = ip::parse_cut(bytes)?;
        packet.require(PROTOCOL_TCP, "6 (TCP)")?;
        let tcp = packet.transport;
        let raw = tcp::parse(tcp)?;
        Ok(CapturedSegment {
            source: SocketAddress::new(packet.source, raw.source_port),
            destination: SocketAddress::new(packet.destination, raw.destination_port),
            header: raw.header,
            options: raw.options,
            payload: raw.payload,
            payload_len: raw.payload.len() + (stated - tcp.len()),
            tcp,
        })
    }

    /// Did the capture truncate the payload?
    pub fn is_cut(&self) -> bool {
        self.payload.len() < self.payload_len
    }

    /// Is the TCP checksum correct? `None` if the payload is truncated.
    pub fn checksum_ok(&self) -> Option<bool> {
        (!self.is_cut()).then(|| {
            let (from, to) = (self.source.address, self.destination.address);
            let mut checksum = Checksum::of_tcp_pseudo_header(from, to, self.tcp.len());
            checksum.add(self.tcp);
            checksum.verifies(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::{Payload, Segment, TcpOptions};

    fn bytes(from: &str, to: &str) -> Vec<u8> {
        let endpoint = |text: &str| SocketAddress::new(text.parse::<IpAddr>().unwrap(), 80);
        let segment = Segment {
            source: endpoint(from),
            destination: endpoint(to),
            header: TcpHeader::default(),
            options: TcpOptions { mss: Some(1460), ..TcpOptions::default() },
            payload: Payload::from(bytes::Bytes::from_static(b"abcdefgh")),
            ecn: 0,
            checksum_ok: true,
        };
        let mut bytes = Vec::new();
        segment.emit(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_truncated_payload_keeps_its_length() {
        for (from, to) in [("10.0.0.1", "10.0.0.2"), ("::1", "::2")] {
            let whole = bytes(from, to);
            let segment = CapturedSegment::parse(&whole).unwrap();
            assert_eq!((segment.payload, segment.payload_len), (&b"abcdefgh"[..], 8));
            assert_eq!(segment.checksum_ok(), Some(true));
            let segment = CapturedSegment::parse(&whole[..whole.len() - 3]).unwrap();
            assert_eq!((segment.payload, segment.payload_len), (&b"abcde"[..], 8));
            assert_eq!(segment.checksum_ok(), None);
            assert!(CapturedSegment::parse(&whole[..whole.len() - 9]).is_err());
        }
    }

    #[test]
    fn fields_left_to_checksum_offload_are_not_errors() {
        let mut bytes = bytes("10.0.0.1", "10.0.0.2");
        bytes[2..4].fill(0);
        bytes[10..12].fill(0);
        bytes[36] ^= 1;
        let segment = CapturedSegment::parse(&bytes).unwrap();
        assert_eq!((segment.payload_len, segment.checksum_ok()), (8, Some(false)));
    }
}
