//! TCP segments read from a capture file.

use std::net::IpAddr;

use crate::tcp::CHECKSUM_AT;
use crate::{Checksum, ParseError, SocketAddress, TcpHeader, tcp};

/// A TCP segment from a capture. The capture may have truncated its options and payload, and with
/// checksum offload it holds the segment before the sender's network card filled in the checksums.
#[derive(Clone, Copy, Debug)]
pub struct CapturedSegment<'a> {
    /// Source address and port.
    pub source: SocketAddress,
    /// Destination address and port.
    pub destination: SocketAddress,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// The captured bytes of all options, for [`TcpOptions::parse`](crate::TcpOptions::parse).
    pub options: &'a [u8],
    /// Bytes of all options.
    pub options_len: usize,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// Bytes of the whole payload.
    pub payload_len: usize,
    /// The captured part of the segment.
    tcp: &'a [u8],
}

/// The TCP checksum of a captured segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturedChecksum {
    /// It matches the segment.
    Right,
    /// The sender left it to its network card, or the receiver merged several segments: the field
    /// is 0 or the folded sum of the pseudo-header, as in Linux's CHECKSUM_PARTIAL.
    Offloaded,
    /// It does not match the segment.
    Wrong,
}

impl<'a> CapturedSegment<'a> {
    /// Parse the captured bytes of a TCP segment of `stated` bytes from the payload of an IP packet.
    /// Bytes beyond `stated` are ignored. Truncated options and a truncated payload are no error. No
    /// checksum is verified.
    ///
    /// # Errors
    /// If the fixed part of the header is incomplete, or the lengths contradict each other.
    pub fn parse(
        source: IpAddr,
        destination: IpAddr,
        bytes: &'a [u8],
        stated: usize,
    ) -> Result<Self, ParseError> {
        let tcp = &bytes[..bytes.len().min(stated)];
        let raw = tcp::parse_cut(tcp)?;
        let header_bytes = tcp::HEADER_BYTES + raw.options_len;
        let payload_len = stated.checked_sub(header_bytes).ok_or(ParseError::Truncated {
            what: "TCP header",
            needed: header_bytes,
            available: stated,
        })?;
        Ok(CapturedSegment {
            source: SocketAddress::new(source, raw.source_port),
            destination: SocketAddress::new(destination, raw.destination_port),
            header: raw.header,
            options: raw.options,
            options_len: raw.options_len,
            payload: raw.payload,
            payload_len,
            tcp,
        })
    }

    /// Returns `true` if the capture truncated the options.
    pub fn has_cut_options(&self) -> bool {
        self.options.len() < self.options_len
    }

    /// Returns `true` if the capture truncated the options or the payload.
    pub fn is_cut(&self) -> bool {
        self.has_cut_options() || self.payload.len() < self.payload_len
    }

    /// State of the TCP checksum. `None` if the segment is truncated and the field was filled in.
    pub fn checksum(&self) -> Option<CapturedChecksum> {
        let whole = tcp::HEADER_BYTES + self.options_len + self.payload_len;
        let pseudo_header = |bytes| {
            let (from, to) = (self.source.address, self.destination.address);
            Checksum::of_tcp_pseudo_header(from, to, bytes)
        };
        let is_right = (!self.is_cut()).then(|| {
            let mut checksum = pseudo_header(whole);
            checksum.add(self.tcp);
            checksum.verifies(0)
        });
        if is_right == Some(true) {
            return Some(CapturedChecksum::Right);
        }
        let field = u16::from_be_bytes([self.tcp[CHECKSUM_AT], self.tcp[CHECKSUM_AT + 1]]);
        // Some drivers ask for a sum without the length, because the card cuts the segment.
        let partial = [whole, 0].map(|bytes| !pseudo_header(bytes).finish());
        if field == 0 || partial.contains(&field) {
            return Some(CapturedChecksum::Offloaded);
        }
        is_right.map(|_| CapturedChecksum::Wrong)
    }

    /// The captured bytes: TCP header, options and payload.
    pub fn bytes(&self) -> &'a [u8] {
        self.tcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Payload, Segment, TcpOptions};

    fn segment(from: &str, to: &str) -> (IpAddr, IpAddr, Vec<u8>) {
        let [from, to] = [from, to].map(|text| text.parse::<IpAddr>().unwrap());
        let segment = Segment {
            source: SocketAddress::new(from, 80),
            destination: SocketAddress::new(to, 80),
            header: TcpHeader::default(),
            options: TcpOptions { mss: Some(1460), ..TcpOptions::default() },
            payload: Payload::from(bytes::Bytes::from_static(b"abcdefgh")),
            ecn: 0,
            checksum_ok: true,
        };
        let mut bytes = Vec::new();
        segment.emit(&mut bytes).unwrap();
        (from, to, bytes.split_off(crate::ip_header_bytes(from)))
    }

    #[test]
    fn a_truncated_payload_and_truncated_options_keep_their_lengths() {
        for (from, to) in [("10.0.0.1", "10.0.0.2"), ("::1", "::2")] {
            let (from, to, whole) = segment(from, to);
            let parse = |bytes: usize| CapturedSegment::parse(from, to, &whole[..bytes], 32);
            let segment = parse(32).unwrap();
            assert_eq!((segment.payload, segment.payload_len), (&b"abcdefgh"[..], 8));
            assert_eq!(segment.checksum(), Some(CapturedChecksum::Right));
            let segment = parse(29).unwrap();
            assert_eq!((segment.payload, segment.payload_len), (&b"abcde"[..], 8));
            assert_eq!((segment.is_cut(), segment.has_cut_options()), (true, false));
            assert_eq!(segment.checksum(), None);
            let segment = parse(23).unwrap();
            assert_eq!((segment.options.len(), segment.options_len), (3, 4));
            assert_eq!((segment.payload, segment.payload_len), (&b""[..], 8));
            assert!(segment.has_cut_options());
            assert!(parse(19).is_err());
            // The IP header says that the segment ends within its header.
            assert!(CapturedSegment::parse(from, to, &whole, 23).is_err());
        }
    }

    #[test]
    fn checksums_left_to_the_network_card_are_not_wrong() {
        for (from, to) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (from, to, mut bytes) = segment(from, to);
            let mut with = |field: u16| {
                bytes[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&field.to_be_bytes());
                CapturedSegment::parse(from, to, &bytes, 32).unwrap().checksum()
            };
            let partial = |len| !Checksum::of_tcp_pseudo_header(from, to, len).finish();
            assert_eq!(with(partial(32)), Some(CapturedChecksum::Offloaded));
            assert_eq!(with(partial(0)), Some(CapturedChecksum::Offloaded));
            assert_eq!(with(0), Some(CapturedChecksum::Offloaded));
            assert_eq!(with(partial(31)), Some(CapturedChecksum::Wrong));
        }
    }
}
