//! A fingerprint of all packets that enter a link.

use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Datagram, Instant, PacketTooBig, Segment};

/// Folds time, link, header, ECN marks, data sequence number and length of each packet into 64
/// bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn fold_segment(&mut self, now: Instant, link: usize, segment: &Segment) {
        let header = &segment.header;
        let (ack, map) = segment.options.dss.map_or((0, 0), |dss| {
            (dss.data_ack.map_or(0, number), dss.mapping.map_or(0, |map| number(map.data_seq)))
        });
        let sequence = u64::from(header.seq.0) << 32 | u64::from(header.ack.0);
        let rest = (link as u64) << 48
            | u64::from(header.flags.0) << 40
            | u64::from(header.window) << 24
            | segment.payload.len() as u64;
        let time = now.as_nanos() ^ u64::from(segment.ecn) << 62;
        for word in [time, sequence, rest, ack, map] {
            self.mix(word);
        }
    }

    pub(crate) fn fold_datagram(&mut self, now: Instant, link: usize, datagram: &Datagram) {
        let ports = u64::from(datagram.source.port) << 16 | u64::from(datagram.destination.port);
        let rest = (link as u64) << 48 | datagram.payload.len() as u64;
        for word in [now.as_nanos(), ports, rest] {
            self.mix(word);
        }
    }

    pub(crate) fn fold_too_big(&mut self, now: Instant, link: usize, message: &PacketTooBig) {
        let rest = (link as u64) << 48 | u64::from(message.mtu) << 32;
        for word in [now.as_nanos(), rest | u64::from(message.quoted_seq.0)] {
            self.mix(word);
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// Multiply-rotate mixing. Each bit of the word and of the previous state affects the result.
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.0 ^= self.0 >> 32;
    }
}

fn number(value: WideOrNarrow) -> u64 {
    match value {
        WideOrNarrow::Wide(wide) => wide.0,
        WideOrNarrow::Narrow(narrow) => u64::from(narrow),
    }
}
