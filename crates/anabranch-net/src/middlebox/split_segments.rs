//! Segments that arrive as several: what segmentation offload does below the hosts' stacks, and
//! boxes between links of different sizes.

use std::collections::VecDeque;

use anabranch_wire::{Flags, Instant, Packet, Segment};

use super::{Middlebox, Towards};

/// How segments are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSegmentsConfig {
    /// Most payload octets of a segment that leaves; above zero.
    pub size: u32,
    /// Where the options go.
    pub copies: OptionCopies,
}

/// Which of the pieces carry the options of the whole; all keep its timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionCopies {
    /// All: network cards copy the header. Honda et al., IMC 2011.
    #[default]
    All,
    /// The first.
    First,
}

impl Default for SplitSegmentsConfig {
    fn default() -> Self {
        // RFC 9293 §3.7.1: what every host can receive, over IPv4.
        SplitSegmentsConfig { size: 536, copies: OptionCopies::All }
    }
}

/// Splits segments.
#[derive(Debug)]
pub(super) struct SplitSegments {
    config: SplitSegmentsConfig,
    out: VecDeque<(Towards, Packet)>,
}

impl SplitSegments {
    pub(super) fn new(config: &SplitSegmentsConfig) -> Self {
        SplitSegments { config: *config, out: VecDeque::new() }
    }

    /// The octets `from..to` of a segment as one of their own.
    fn piece(&self, whole: &Segment, from: usize, to: usize) -> Segment {
        let mut piece = whole.clone();
        piece.payload = whole.payload.slice(from, to);
        piece.header.seq = whole.header.seq + from as u32;
        if to < whole.payload.len() {
            let last_only = Flags::FIN | Flags::PSH;
            piece.header.flags = Flags(piece.header.flags.0 & !last_only.0);
        }
        if from > 0 {
            piece.header.flags = Flags(piece.header.flags.0 & !Flags::CWR.0);
            if self.config.copies == OptionCopies::First {
                let timestamps = piece.options.timestamps;
                piece.options = anabranch_wire::TcpOptions { timestamps, ..Default::default() };
            }
        }
        piece
    }
}

impl Middlebox for SplitSegments {
    fn handle_packet(&mut self, _now: Instant, towards: Towards, packet: Packet) {
        let size = self.config.size.max(1) as usize;
        match &packet {
            Packet::Tcp(whole) if whole.payload.len() > size => {
                let len = whole.payload.len();
                for from in (0..len).step_by(size) {
                    let piece = self.piece(whole, from, (from + size).min(len));
                    self.out.push_back((towards, piece.into()));
                }
            }
            _ => self.out.push_back((towards, packet)),
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Towards, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::MiddleboxConfig;
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::Timestamps;

    fn pieces(copies: OptionCopies, flags: Flags) -> Vec<Segment> {
        let talk = Talk::v4();
        let mut whole = talk.data(Towards::Server, 0, 1_200);
        whole.header.flags = flags;
        whole.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        let config = MiddleboxConfig::SplitSegments(SplitSegmentsConfig { size: 500, copies });
        let out = Bench::new(&config).put(Towards::Server, whole);
        out.into_iter().map(|(_, segment)| segment).collect()
    }

    #[test]
    fn the_pieces_are_the_whole() {
        let all = Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR;
        let pieces = pieces(OptionCopies::All, all);
        let first = Talk::v4().data(Towards::Server, 0, 1_200).header.seq;
        for (piece, (from, len)) in pieces.iter().zip([(0, 500), (500, 500), (1_000, 200)]) {
            assert_eq!(piece.header.seq, first + from);
            assert_eq!(piece.payload.len(), len);
            assert!(piece.payload.matches_pattern(from.into()));
            assert!(piece.options.dss.is_some(), "the mapping of the whole, on each");
        }
        let flags: Vec<_> = pieces.iter().map(|piece| piece.header.flags).collect();
        let expected = [Flags::ACK | Flags::CWR, Flags::ACK, Flags::ACK | Flags::PSH | Flags::FIN];
        assert_eq!(flags, expected);
    }

    #[test]
    fn options_may_be_on_the_first_only_but_for_timestamps() {
        let pieces = pieces(OptionCopies::First, Flags::ACK);
        let mapped: Vec<_> = pieces.iter().map(|piece| piece.options.dss.is_some()).collect();
        assert_eq!(mapped, [true, false, false]);
        assert!(pieces.iter().all(|piece| piece.options.timestamps.is_some()));
    }

    #[test]
    fn what_is_small_enough_passes() {
        let talk = Talk::v6();
        let config = MiddleboxConfig::SplitSegments(SplitSegmentsConfig::default());
        let mut bench = Bench::new(&config);
        for segment in [talk.syn(), talk.data(Towards::Server, 0, 536)] {
            assert_eq!(bench.cross(Towards::Server, segment.clone()), segment);
        }
    }
}
