//! Frames with offloaded checksums and segmentation: a virtio header, and a packet that may contain
//! many consecutive segments.

use anabranch_wire::mptcp::{Dss, Mapping, WideOrNarrow};
use anabranch_wire::{EmitError, Flags, ParseError, Payload, PooledSegment, Segment, TcpOptions};
use bytes::Bytes;

/// Bytes of `struct virtio_net_hdr`. Virtio 1.2 §5.1.6.
pub(crate) const HEADER_BYTES: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the receiver computes the checksum.
const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4`, `VIRTIO_NET_HDR_GSO_TCPV6`.
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Offset of the checksum in a TCP header. RFC 9293 §3.1.
const TCP_CHECKSUM_AT: u16 = 16;
/// Largest size of a packet including its IP header, for IPv4 and IPv6.
const LONGEST_PACKET: usize = 65_535;

/// Parse a frame. An unsegmented packet becomes one segment with a long payload, which shares the
/// frame's memory.
pub(crate) fn parse(frame: &Bytes) -> Result<Segment, ParseError> {
    let packet = frame.slice(HEADER_BYTES.min(frame.len())..);
    let needs_csum = frame.first().is_some_and(|flags| flags & NEEDS_CSUM != 0);
    if needs_csum { Segment::parse_unsummed(&packet) } else { Segment::parse(&packet) }
}

/// Consecutive segments in one frame. All except the last have as much payload as the first. Their
/// headers differ only in their positions in the stream.
pub(crate) struct SuperSegment {
    first: PooledSegment,
    more: Vec<Payload>,
    bytes: usize,
    /// Whether the last segment is shorter or has PSH set, so that no segment can follow.
    complete: bool,
}

impl SuperSegment {
    /// A frame with one segment. `more` is memory for the payloads of further segments.
    pub(crate) fn new(first: PooledSegment, mut more: Vec<Payload>) -> Self {
        more.clear();
        let complete = first.payload.is_empty() || !is_plain(&first);
        SuperSegment { bytes: first.payload.len(), first, more, complete }
    }

    /// Add the next segment, or return it if it does not fit.
    pub(crate) fn push(&mut self, next: PooledSegment) -> Option<PooledSegment> {
        let Some(dss) = self.joined(&next) else { return Some(next) };
        let len = next.payload.len();
        self.complete = len < self.first.payload.len() || next.header.flags.contains(Flags::PSH);
        self.first.options.dss = dss;
        self.first.header.flags = next.header.flags;
        self.bytes += len;
        self.more.push(next.into_inner().payload);
        None
    }

    /// The DSS option after adding `next`; `None` if `next` cannot be added.
    fn joined(&self, next: &Segment) -> Option<Option<Dss>> {
        let first = &self.first;
        let (len, headers) = (next.payload.len(), first.wire_len() - first.payload.len());
        let (a, b) = (&first.header, &next.header);
        let fits = !self.complete
            && is_plain(next)
            && (1..=first.payload.len()).contains(&len)
            && headers + self.bytes + len <= LONGEST_PACKET
            && (first.source, first.destination) == (next.source, next.destination)
            && a.seq + self.bytes as u32 == b.seq
            && (a.ack, a.window, first.ecn) == (b.ack, b.window, next.ecn)
            && without_dss(&first.options) == without_dss(&next.options);
        if !fits {
            return None;
        }
        match (first.options.dss, next.options.dss) {
            (None, None) => Some(None),
            (Some(first), Some(next)) => follow(first, next, self.bytes, len).map(Some),
            _ => None,
        }
    }

    /// Append the frame to `out`, and return the memory for payloads.
    pub(crate) fn emit(self, out: &mut Vec<u8>) -> Result<Vec<Payload>, EmitError> {
        let start = out.len();
        out.extend([0; HEADER_BYTES]);
        let tcp_at = self.first.emit_unsummed(&self.more, out)? - start - HEADER_BYTES;
        let (mut gso_type, mut gso_size) = (0, 0);
        if !self.more.is_empty() {
            gso_type = if self.first.source.address.is_ipv4() { GSO_TCPV4 } else { GSO_TCPV6 };
            gso_size = self.first.payload.len() as u16;
        }
        let headers = (self.first.wire_len() - self.first.payload.len()) as u16;
        // TUN devices use the host's byte order.
        let fields = [headers, gso_size, tcp_at as u16, TCP_CHECKSUM_AT].map(u16::to_ne_bytes);
        out[start..][..2].copy_from_slice(&[NEEDS_CSUM, gso_type]);
        out[start + 2..][..8].copy_from_slice(fields.as_flattened());
        Ok(self.more)
    }
}

/// Returns `true` if a segment neither opens nor ends anything, and carries no option that must not
/// be repeated.
fn is_plain(segment: &Segment) -> bool {
    let flags = segment.header.flags;
    let plain = flags == Flags::ACK || flags == Flags::ACK | Flags::PSH;
    let options = &segment.options;
    plain && segment.checksum_ok && options.control.is_none() && options.unknown.is_none()
}

/// The options that must be equal in all segments of a frame.
fn without_dss(options: &TcpOptions) -> impl PartialEq {
    (options.timestamps, options.sack, options.mss, options.window_scale, options.sack_permitted)
}

/// One option that replaces `first`, which maps `bytes` bytes, and `next`, which maps the `len` bytes
/// after them. RFC 8684 §3.3.1: a mapping may cover several segments.
fn follow(first: Dss, next: Dss, bytes: usize, len: usize) -> Option<Dss> {
    let (a, b) = (first.mapping?, next.mapping?);
    let data_seq = match a.data_seq {
        WideOrNarrow::Wide(at) => WideOrNarrow::Wide(at + bytes as u64),
        WideOrNarrow::Narrow(at) => WideOrNarrow::Narrow(at.wrapping_add(bytes as u32)),
    };
    let wanted = Mapping {
        data_seq,
        subflow_seq: a.subflow_seq + bytes as u32,
        len: u16::try_from(len).ok()?,
        checksum: None,
    };
    let joins = usize::from(a.len) == bytes
        && a.checksum.is_none()
        && b == wanted
        && first.data_ack == next.data_ack
        && !first.data_fin
        && !next.data_fin;
    let len = u16::try_from(bytes + len).ok()?;
    joins.then_some(Dss { mapping: Some(Mapping { len, ..a }), ..first })
}

#[cfg(test)]
mod tests {
    use anabranch_wire::{DataSeq, Piece, SeqNumber, SocketAddress, TcpHeader};

    use super::*;

    /// Segment number `n` of a stream, with `len` bytes. The other segments have 1400 bytes.
    fn segment(n: u32, len: u32, mptcp: bool) -> PooledSegment {
        let at = n * 1400;
        let mapping = Mapping {
            data_seq: WideOrNarrow::Wide(DataSeq(u64::MAX - 700) + u64::from(at)),
            subflow_seq: SeqNumber(1 + at),
            len: len as u16,
            checksum: None,
        };
        let dss = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
        let [source, destination] =
            [1, 2].map(|host| SocketAddress::new([10, 0, 0, host].into(), 80));
        PooledSegment::new(Segment {
            source,
            destination,
            header: TcpHeader {
                seq: SeqNumber(u32::MAX - 700) + at,
                ack: SeqNumber(9),
                flags: Flags::ACK,
                window: 100,
                urgent: 0,
            },
            options: TcpOptions { dss: mptcp.then_some(dss), ..TcpOptions::default() },
            payload: Piece::pattern(u64::from(at), len).into(),
            ecn: 0,
            checksum_ok: true,
        })
    }

    fn frame(segments: &[PooledSegment]) -> Bytes {
        let mut all = SuperSegment::new(segments[0].clone(), Vec::new());
        for segment in &segments[1..] {
            assert_eq!(all.push(segment.clone()), None);
        }
        let mut out = Vec::new();
        all.emit(&mut out).expect("short enough");
        out.into()
    }

    fn refuses(first: PooledSegment, next: PooledSegment) -> bool {
        SuperSegment::new(first, Vec::new()).push(next).is_some()
    }

    #[test]
    fn segments_in_a_row_are_one_with_one_mapping() {
        // RFC 8684 §3.3.1: a mapping may cover several segments. Both kinds of sequence numbers
        // wrap after 701 bytes.
        let all = frame(&[segment(0, 1400, true), segment(1, 1400, true), segment(2, 7, true)]);
        let one = parse(&all).expect("a packet");
        assert!(one.payload.len() == 2807 && one.payload.matches_pattern(0));
        let mapping = one.options.dss.and_then(|dss| dss.mapping).expect("it has one");
        assert_eq!((mapping.len, mapping.subflow_seq), (2807, SeqNumber(1)));
        assert_eq!(mapping.data_seq, WideOrNarrow::Wide(DataSeq(u64::MAX - 700)));
        // NEEDS_CSUM, TCPV4; headers 20 + 20 + DSS of 16 (4 + 8 + 4 + 2 is 18, padded to 20);
        // segments of 1400 = 0x578; TCP at 20, its checksum 16 further.
        let ne = |n: u16| n.to_ne_bytes();
        assert_eq!(all[..2], [1, 1]);
        assert_eq!(all[2..10], [ne(60), ne(1400), ne(20), ne(16)].concat());
    }

    #[test]
    fn a_segment_alone_is_not_to_be_divided() {
        let all = frame(&[segment(0, 1400, false)]);
        assert_eq!(all[1..2], [0]);
        assert_eq!(all[4..6], [0, 0]);
        assert_eq!(parse(&all), Ok(segment(0, 1400, false).into_inner()));
    }

    #[test]
    fn what_the_first_headers_do_not_say_is_not_added() {
        assert!(!refuses(segment(0, 1400, true), segment(1, 1400, true)));
        // A hole; a longer segment; a segment after a shorter one; a missing option.
        assert!(refuses(segment(0, 1400, true), segment(2, 1400, true)));
        assert!(refuses(segment(0, 1400, true), segment(1, 1401, true)));
        assert!(refuses(segment(0, 1400, true), segment(1, 1400, false)));
        let mut short = SuperSegment::new(segment(0, 1400, true), Vec::new());
        assert_eq!(short.push(segment(1, 1000, true)), None, "the last may be shorter");
        let mut after = segment(2, 1000, true);
        after.header.seq = segment(1, 0, true).header.seq + 1000;
        assert!(short.push(after).is_some());
        // Each of these changes concerns a single segment.
        let changes: [fn(&mut Segment); 8] = [
            |s| s.header.flags |= Flags::FIN,
            |s| s.header.ack = SeqNumber(10),
            |s| s.header.window += 1,
            |s| s.ecn = anabranch_wire::CE,
            |s| s.destination.port += 1,
            |s| s.options.dss.as_mut().expect("it has one").data_fin = true,
            |s| {
                let mapping = s.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut());
                mapping.expect("it has one").checksum = Some(1);
            },
            |s| {
                let mapping = s.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut());
                mapping.expect("it has one").data_seq = WideOrNarrow::Wide(DataSeq(5));
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut next = segment(1, 1400, true);
            change(&mut next);
            assert!(refuses(segment(0, 1400, true), next), "change {number}");
        }
    }

    #[test]
    fn a_packet_is_no_longer_than_its_header_can_say() {
        // 20 + 20 bytes of headers: 65,495 of payload, 46 times 1400 and 1095.
        let mut all = SuperSegment::new(segment(0, 1400, false), Vec::new());
        let added = (1..).take_while(|n| all.push(segment(*n, 1400, false)).is_none()).count();
        assert_eq!(added, 45);
        let mut out = Vec::new();
        all.emit(&mut out).expect("short enough");
    }

    #[test]
    fn bytes_that_are_no_frame_are_no_segment() {
        for len in 0..HEADER_BYTES + 40 {
            assert!(parse(&vec![1; len].into()).is_err());
        }
    }
}
