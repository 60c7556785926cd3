//! Splits segments, as segmentation offload does below the hosts' stacks. Middleboxes between links
//! with different MTUs also split segments.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Bytes;
use std::collections::VecDeque;

use anabranch_wire::{Flags, Instant, Packet, Segment};

use super::{BuildMiddlebox, Middlebox, Side, Site};
use crate::units::ByteCount;

/// Parameters of the middlebox that splits segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct SplitSegmentsConfig {
    /// Maximum payload of each piece.
    #[cfg_attr(feature = "serde", serde(with = "Bytes::<1, { super::MAX_PACKET as u64 }>"), schemars(extend("x-origin" = "RFC 9293 §3.7.1: what every host can receive, over IPv4")))]
    pub size: ByteCount,
    /// Which pieces carry the options of the original segment. All carry its timestamps.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "Honda et al.: network cards copy the header")))]
    pub options_on: OptionCopies,
}

/// Which pieces carry the options of the original segment. All pieces carry its timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum OptionCopies {
    /// All pieces. Network cards copy the header. Honda et al., IMC 2011.
    All,
    /// The first piece.
    First,
}

/// Splits segments.
#[derive(Debug)]
struct SplitSegments {
    config: SplitSegmentsConfig,
    out: VecDeque<(Side, Packet)>,
}

impl SplitSegments {
    fn new(config: SplitSegmentsConfig) -> Self {
        SplitSegments { config, out: VecDeque::new() }
    }

    /// The bytes `from..to` of a segment as a separate segment.
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
            if self.config.options_on == OptionCopies::First {
                let timestamps = piece.options.timestamps;
                piece.options = anabranch_wire::TcpOptions { timestamps, ..Default::default() };
            }
        }
        piece
    }
}

impl Middlebox for SplitSegments {
    fn handle_packet(&mut self, _now: Instant, towards: Side, packet: Packet) {
        let size = self.config.size.as_u64().max(1) as usize;
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

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Default for SplitSegmentsConfig {
    fn default() -> Self {
        SplitSegmentsConfig { size: ByteCount::new(536), options_on: OptionCopies::All }
    }
}

impl Part for SplitSegmentsConfig {
    const NAME: &'static str = "split_segments";
    const SUMMARY: &'static str = "Splits segments, as segmentation offload does.";
    const SOURCE: &'static str = "Honda et al., IMC 2011";
}

impl BuildMiddlebox for SplitSegmentsConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        Box::new(SplitSegments::new(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::Timestamps;

    fn pieces(copies: OptionCopies, flags: Flags) -> Vec<Segment> {
        let talk = Talk::v4();
        let mut whole = talk.data(Side::Server, 0, 1_200);
        whole.header.flags = flags;
        whole.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        let config = SplitSegmentsConfig { size: ByteCount::new(500), options_on: copies };
        let out = Bench::new(Box::new(SplitSegments::new(config))).put(Side::Server, whole);
        out.into_iter().map(|(_, segment)| segment).collect()
    }

    #[test]
    fn the_pieces_add_up_to_the_original() {
        let all = Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR;
        let pieces = pieces(OptionCopies::All, all);
        let first = Talk::v4().data(Side::Server, 0, 1_200).header.seq;
        for (piece, (from, len)) in pieces.iter().zip([(0, 500), (500, 500), (1_000, 200)]) {
            assert_eq!(piece.header.seq, first + from);
            assert_eq!(piece.payload.len(), len);
            assert!(piece.payload.matches_pattern(from.into()));
            assert!(piece.options.dss.is_some(), "each piece carries the original mapping");
        }
        let flags: Vec<_> = pieces.iter().map(|piece| piece.header.flags).collect();
        let expected = [Flags::ACK | Flags::CWR, Flags::ACK, Flags::ACK | Flags::PSH | Flags::FIN];
        assert_eq!(flags, expected);
    }

    #[test]
    fn options_can_be_limited_to_the_first_piece_except_timestamps() {
        let pieces = pieces(OptionCopies::First, Flags::ACK);
        let mapped: Vec<_> = pieces.iter().map(|piece| piece.options.dss.is_some()).collect();
        assert_eq!(mapped, [true, false, false]);
        assert!(pieces.iter().all(|piece| piece.options.timestamps.is_some()));
    }

    #[test]
    fn small_segments_pass_unchanged() {
        let talk = Talk::v6();
        let mut bench = Bench::by_default::<SplitSegmentsConfig>();
        for segment in [talk.syn(), talk.data(Side::Server, 0, 536)] {
            assert_eq!(bench.cross(Side::Server, segment.clone()), segment);
        }
    }
}
