//! Frames whose checksums and division into segments are left to whoever takes them: a header of
//! virtio's, and a packet that may be many segments in a row.

use anabranch_wire::mptcp::{Dss, Mapping, WideOrNarrow};
use anabranch_wire::{EmitError, Flags, ParseError, Payload, Segment, TcpOptions};

/// Octets of `struct virtio_net_hdr`. Virtio 1.2 §5.1.6.
pub(crate) const HEADER_OCTETS: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is left to the receiver.
const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4`, `VIRTIO_NET_HDR_GSO_TCPV6`.
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Where the checksum is in a TCP header. RFC 9293 §3.1.
const TCP_CHECKSUM_AT: u16 = 16;
/// Longest IPv4 packet; of one of IPv6 as much, its header included.
const LONGEST_PACKET: usize = 65_535;

/// Parse a frame. What was not divided into segments is one segment with a long payload.
pub(crate) fn parse(frame: &[u8]) -> Result<Segment, ParseError> {
    let (header, packet) = frame.split_at_checked(HEADER_OCTETS).unwrap_or((&[0], &[]));
    if header[0] & NEEDS_CSUM != 0 {
        Segment::parse_unsummed(packet)
    } else {
        Segment::parse(packet)
    }
}

/// Segments that one frame can hold: each but the last with as much payload as the first, and all
/// with the same header but for their places in the stream.
pub(crate) struct SuperSegment {
    first: Segment,
    more: Vec<Payload>,
    octets: usize,
    /// The last one is shorter, or is to be handed to the application at once.
    complete: bool,
}

impl SuperSegment {
    /// One segment; `more` is memory for the payloads of others.
    pub(crate) fn new(first: Segment, mut more: Vec<Payload>) -> Self {
        more.clear();
        let complete = first.payload.is_empty() || !is_plain(&first);
        SuperSegment { octets: first.payload.len(), first, more, complete }
    }

    /// Add the next segment, or hand it back if it does not fit.
    pub(crate) fn push(&mut self, next: Segment) -> Result<(), Segment> {
        let Some(dss) = self.joined(&next) else { return Err(next) };
        let len = next.payload.len();
        self.complete = len < self.first.payload.len() || next.header.flags.contains(Flags::PSH);
        self.first.options.dss = dss;
        self.first.header.flags = next.header.flags;
        self.octets += len;
        self.more.push(next.payload);
        Ok(())
    }

    /// What the DSS option becomes when `next` is added; `None` if it cannot be.
    fn joined(&self, next: &Segment) -> Option<Option<Dss>> {
        let first = &self.first;
        let (len, headers) = (next.payload.len(), first.wire_len() - first.payload.len());
        let (a, b) = (&first.header, &next.header);
        let fits = !self.complete
            && is_plain(next)
            && (1..=first.payload.len()).contains(&len)
            && headers + self.octets + len <= LONGEST_PACKET
            && (first.source, first.destination) == (next.source, next.destination)
            && a.seq + self.octets as u32 == b.seq
            && (a.ack, a.window, first.ecn) == (b.ack, b.window, next.ecn)
            && without_dss(&first.options) == without_dss(&next.options);
        if !fits {
            return None;
        }
        match (first.options.dss, next.options.dss) {
            (None, None) => Some(None),
            (Some(first), Some(next)) => follow(first, next, self.octets, len).map(Some),
            _ => None,
        }
    }

    /// Append the frame, and give back the memory for payloads.
    pub(crate) fn emit(self, out: &mut Vec<u8>) -> Result<Vec<Payload>, EmitError> {
        let start = out.len();
        out.extend([0; HEADER_OCTETS]);
        let tcp_at = self.first.emit_unsummed(&self.more, out)? - start - HEADER_OCTETS;
        let (mut gso_type, mut gso_size) = (0, 0);
        if !self.more.is_empty() {
            gso_type = if self.first.source.address.is_ipv4() { GSO_TCPV4 } else { GSO_TCPV6 };
            gso_size = self.first.payload.len() as u16;
        }
        let headers = (self.first.wire_len() - self.first.payload.len()) as u16;
        // Numbers in the host's order: the device is no older virtio's guest of another kind.
        let fields = [headers, gso_size, tcp_at as u16, TCP_CHECKSUM_AT].map(u16::to_ne_bytes);
        out[start..][..2].copy_from_slice(&[NEEDS_CSUM, gso_type]);
        out[start + 2..][..8].copy_from_slice(fields.as_flattened());
        Ok(self.more)
    }
}

/// No segment that opens or ends anything, and none with an option that is not repeatable.
fn is_plain(segment: &Segment) -> bool {
    let flags = segment.header.flags;
    let plain = flags == Flags::ACK || flags == Flags::ACK | Flags::PSH;
    let options = &segment.options;
    plain && segment.checksum_ok && options.control.is_none() && options.unknown.is_none()
}

/// What has to be the same in segments that are one.
fn without_dss(options: &TcpOptions) -> impl PartialEq {
    (options.timestamps, options.sack, options.mss, options.window_scale, options.sack_permitted)
}

/// One option for `octets` octets with `first` and the `len` octets after them with `next`, each of
/// which maps just its own. RFC 8684 §3.3.1: a mapping may cover several segments.
fn follow(first: Dss, next: Dss, octets: usize, len: usize) -> Option<Dss> {
    let (a, b) = (first.mapping?, next.mapping?);
    let data_seq = match a.data_seq {
        WideOrNarrow::Wide(at) => WideOrNarrow::Wide(at + octets as u64),
        WideOrNarrow::Narrow(at) => WideOrNarrow::Narrow(at.wrapping_add(octets as u32)),
    };
    let wanted = Mapping {
        data_seq,
        subflow_seq: a.subflow_seq + octets as u32,
        len: u16::try_from(len).ok()?,
        checksum: None,
    };
    let joins = usize::from(a.len) == octets
        && a.checksum.is_none()
        && b == wanted
        && first.data_ack == next.data_ack
        && !first.data_fin
        && !next.data_fin;
    let len = u16::try_from(octets + len).ok()?;
    joins.then_some(Dss { mapping: Some(Mapping { len, ..a }), ..first })
}
