//! Adds segments without Multipath TCP options to a flow that uses them. RFC 8684 §3.3.2 permits a
//! host to omit a DATA_ACK that has not changed.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use std::collections::VecDeque;

use anabranch_wire::{Flags, Instant, Packet, Payload, Segment, SeqNumber, TcpOptions};

use super::flows::{Flows, KnownFlow};
use super::{BuildMiddlebox, Directions, Middlebox, Side, Site};
use crate::rng::{Draws, stream_seed};
use crate::units::Probability;

/// Parameters of the middlebox that adds bare segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct BareSegmentsConfig {
    /// Which direction is affected.
    #[cfg_attr(feature = "serde", serde(rename = "applies_to"), schemars(extend("x-origin" = "this project")))]
    pub directions: Directions,
    /// Probability that the middlebox adds a bare segment to a segment.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Probability>"), schemars(extend("x-origin" = "this project: several in each window, at every stage of a connection")))]
    pub probability: Probability,
}

/// Passes all packets, and adds segments in the sender's name that have neither payload nor
/// Multipath TCP options.
#[derive(Debug)]
struct BareSegments {
    config: BareSegmentsConfig,
    flows: Flows<[Option<LastAck>; 2]>,
    draws: Draws,
    drawn: u64,
    out: VecDeque<(Side, Packet)>,
}

/// The last acknowledgement of a host after its SYN.
#[derive(Clone, Copy, Debug)]
struct LastAck {
    ack: SeqNumber,
    window: u16,
    /// The host has sent a DATA_ACK.
    data_ack_seen: bool,
}

/// Kinds of bare segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Companion {
    /// The same acknowledgement again, after the segment.
    AckAfter,
    /// The segment's acknowledgement, before the segment.
    AckBefore,
    /// The segment's FIN, before the segment.
    FinBefore,
    /// The segment's window with the previous acknowledgement number, before the segment.
    WindowUpdate,
}

impl BareSegments {
    fn new(config: BareSegmentsConfig, seed: u64) -> Self {
        BareSegments {
            config,
            flows: Flows::default(),
            draws: Draws::new(stream_seed(seed, "bare")),
            drawn: 0,
            out: VecDeque::new(),
        }
    }

    /// The bare segment to add to `segment`, if any, and whether it goes before it.
    fn companion(&mut self, towards: Side, segment: &Segment) -> Option<(Segment, bool)> {
        let flow = self.flows.of(towards, segment).filter(|_| segment.checksum_ok)?;
        let flags = segment.header.flags;
        let counted = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        let numbering = flow.towards(towards)?;
        let before = numbering.seq(numbering.highest());
        numbering.note(segment.header.seq + (segment.payload.len() as u32 + counted));
        let after = numbering.seq(numbering.highest());
        if !flags.contains(Flags::ACK) || flags.intersects(Flags::SYN | Flags::RST) {
            return None;
        }
        let (ack, window) = (segment.header.ack, segment.header.window);
        let last = &mut flow.state[towards as usize];
        let data_ack_seen = last.is_some_and(|last| last.data_ack_seen)
            || segment.options.dss.is_some_and(|dss| dss.data_ack.is_some());
        let previous = last.replace(LastAck { ack, window, data_ack_seen });
        let n = self.drawn;
        self.drawn += 1;
        let chosen = self.draws.uniform(2 * n) < self.config.probability.as_f64();
        if !chosen || !self.config.directions.include(towards) {
            return None;
        }
        let wanted = match self.draws.bits(2 * n + 1) % 4 {
            0 => Companion::AckBefore,
            1 => Companion::WindowUpdate,
            2 if may_lack_options(segment) => Companion::FinBefore,
            _ => Companion::AckAfter,
        };
        let bare = |flags, seq, ack| bare(segment, flags, seq, ack);
        // RFC 8684 §§3.1, 3.2: the first segment after the SYN carries keys or a MAC. No segment
        // may precede it.
        let Some(previous) = previous else { return Some((bare(Flags::ACK, after, ack), false)) };
        Some(match wanted {
            Companion::AckAfter => (bare(Flags::ACK, after, ack), false),
            // RFC 8684 §3.7: the first acknowledgement of data has a DATA_ACK. Without it, the subflow
            // falls back or ends.
            Companion::AckBefore | Companion::FinBefore if !previous.data_ack_seen => {
                (bare(Flags::ACK, after, ack), false)
            }
            Companion::AckBefore => (bare(Flags::ACK, before, ack), true),
            Companion::FinBefore => (bare(Flags::ACK | Flags::FIN, segment.header.seq, ack), true),
            Companion::WindowUpdate if is_update(flow, towards, previous, segment) => {
                (bare(Flags::ACK, before, previous.ack), true)
            }
            Companion::WindowUpdate => (bare(Flags::ACK, after, ack), false),
        })
    }
}

/// Returns `true` if a host could have sent this segment as a FIN without its options. RFC 8684
/// §3.7: a FIN that announces a fallback by an infinite mapping (length 0) needs its option.
fn may_lack_options(segment: &Segment) -> bool {
    let fin = segment.header.flags.contains(Flags::FIN) && segment.payload.is_empty();
    let mapping = segment.options.dss.and_then(|dss| dss.mapping);
    fin && mapping.is_none_or(|mapping| mapping.len > 0)
}

/// Returns `true` if the segment's window would be a window update with the previous
/// acknowledgement number. It must offer more than the previous segment, and not more than the host
/// offers now.
fn is_update(
    flow: &mut KnownFlow<[Option<LastAck>; 2]>,
    towards: Side,
    previous: LastAck,
    segment: &Segment,
) -> bool {
    let Some(numbering) = flow.towards(towards.opposite()) else { return false };
    let in_order = numbering.offset(previous.ack) <= numbering.offset(segment.header.ack);
    in_order && segment.header.window > previous.window
}

/// A segment like `model` without payload and Multipath TCP options, with these numbers.
fn bare(model: &Segment, flags: Flags, seq: SeqNumber, ack: SeqNumber) -> Segment {
    let mut segment = Segment { payload: Payload::EMPTY, ecn: 0, ..model.clone() };
    let echo = Flags(model.header.flags.0 & Flags::ECE.0);
    segment.header.flags = flags | echo;
    (segment.header.seq, segment.header.ack, segment.header.urgent) = (seq, ack, 0);
    let TcpOptions { timestamps, sack, .. } = model.options;
    segment.options = TcpOptions { timestamps, ..TcpOptions::default() };
    if ack == model.header.ack {
        segment.options.sack = sack;
    }
    segment
}

impl Middlebox for BareSegments {
    fn handle_packet(&mut self, _now: Instant, towards: Side, packet: Packet) {
        let companion = match &packet {
            Packet::Tcp(segment) => self.companion(towards, segment),
            Packet::Udp(_) | Packet::TooBig(_) => None,
        };
        let packet = (towards, packet);
        match companion {
            None => self.out.push_back(packet),
            Some((bare, true)) => self.out.extend([(towards, bare.into()), packet]),
            Some((bare, false)) => self.out.extend([packet, (towards, bare.into())]),
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

impl Default for BareSegmentsConfig {
    fn default() -> Self {
        BareSegmentsConfig {
            directions: Directions::Both,
            probability: Probability::from_parts_per_billion(100_000_000),
        }
    }
}

impl Part for BareSegmentsConfig {
    const NAME: &'static str = "bare_segments";
    const SUMMARY: &'static str = "Adds segments without Multipath TCP options.";
    const SOURCE: &'static str = "RFC 8684 §3.3.2";
}

impl BuildMiddlebox for BareSegmentsConfig {
    fn build(&self, site: Site) -> Box<dyn Middlebox> {
        Box::new(BareSegments::new(*self, site.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::mptcp::{Dss, WideOrNarrow};

    fn always(directions: Directions, seed: u64) -> Bench {
        let config = BareSegmentsConfig { probability: Probability::ONE, directions };
        Bench::new(Box::new(BareSegments::new(config, seed)))
    }

    /// The bare segments added to `segment`, and whether each came before it.
    fn companions(bench: &mut Bench, towards: Side, segment: &Segment) -> Vec<(Segment, bool)> {
        let out = bench.put(towards, segment.clone());
        assert!(out.iter().all(|(way, _)| *way == towards));
        let at =
            out.iter().position(|(_, each)| each == segment).expect("the box passes the segment");
        let others = out.iter().enumerate().filter(|(index, _)| *index != at);
        others.map(|(index, (_, each))| (each.clone(), index < at)).collect()
    }

    fn with_data_ack(mut segment: Segment) -> Segment {
        let dss = segment.options.dss.unwrap_or_default();
        segment.options.dss = Some(Dss { data_ack: Some(WideOrNarrow::Narrow(1)), ..dss });
        segment
    }

    #[test]
    fn syns_and_resets_get_no_companion_and_a_third_ack_gets_none_before_it() {
        let talk = Talk::v4();
        for seed in 0..20 {
            let mut bench = always(Directions::Both, seed);
            bench.cross(Side::Server, talk.syn());
            bench.cross(Side::Client, talk.syn_ack());
            // The first data segment repeats the keys, as RFC 8684 §3.1 requires.
            let first = talk.data(Side::Server, 0, 100);
            let found = companions(&mut bench, Side::Server, &first);
            let mut expected = talk.ack(Side::Server, 0);
            expected.header.seq = first.header.seq + 100;
            assert_eq!(found, [(expected, false)]);
            let mut reset = talk.ack(Side::Client, 100);
            reset.header.flags = Flags::RST | Flags::ACK;
            bench.cross(Side::Client, reset);
        }
    }

    #[test]
    fn a_companion_has_the_segments_numbers_and_no_mptcp_option() {
        let talk = Talk::v6();
        let mut bench = always(Directions::Both, 1).opened(&talk);
        companions(&mut bench, Side::Server, &with_data_ack(talk.data(Side::Server, 0, 100)));
        let mut sides = [0; 2];
        for n in 1..100 {
            let data = talk.data(Side::Server, 100 * n, 100);
            let [(bare, before)] = &companions(&mut bench, Side::Server, &data)[..] else {
                panic!("one companion")
            };
            assert!(bare.payload.is_empty() && bare.options == TcpOptions::default());
            let seq = data.header.seq + if *before { 0 } else { 100 };
            assert_eq!((bare.header.seq, bare.header.ack), (seq, data.header.ack));
            assert_eq!(bare.header.window, data.header.window);
            assert_eq!(bare.header.flags, Flags::ACK);
            sides[usize::from(*before)] += 1;
        }
        assert!(sides.iter().all(|count| *count > 10), "{sides:?}");
    }

    #[test]
    fn no_bare_acknowledgement_precedes_the_first_data_ack() {
        let talk = Talk::v4();
        let mut befores = [0; 2];
        for seed in 0..50 {
            let mut bench = always(Directions::Both, seed).opened(&talk);
            companions(&mut bench, Side::Client, &talk.ack(Side::Client, 0));
            for (n, count) in befores.iter_mut().enumerate() {
                let ack = with_data_ack(talk.ack(Side::Client, 100 * (n as u32 + 1)));
                let found = companions(&mut bench, Side::Client, &ack).remove(0);
                *count += u32::from(found.1 && found.0.header.ack == ack.header.ack);
            }
        }
        assert!(befores[0] == 0 && befores[1] > 5, "{befores:?}");
    }

    #[test]
    fn a_window_update_offers_no_more_than_the_host_does() {
        let talk = Talk::v4();
        let mut bench = always(Directions::Both, 1).opened(&talk);
        let mut ack = talk.ack(Side::Client, 0);
        companions(&mut bench, Side::Client, &ack);
        let mut updates = 0;
        for n in 1..100u16 {
            let last = ack.header;
            ack = talk.ack(Side::Client, 100 * u32::from(n));
            ack.header.window = if n.is_multiple_of(2) { 1_000 } else { 2_000 + n };
            let found = companions(&mut bench, Side::Client, &ack).remove(0).0.header;
            assert_eq!(found.window, ack.header.window);
            if found.ack == last.ack {
                assert!(found.window > last.window);
                updates += 1;
            } else {
                assert_eq!(found.ack, ack.header.ack);
            }
        }
        assert!((5..50).contains(&updates), "{updates}: a quarter of half of the segments");
    }

    #[test]
    fn a_bare_fin_may_precede_a_fin_without_payload() {
        let talk = Talk::v4();
        let mut bench = always(Directions::Both, 1).opened(&talk);
        companions(&mut bench, Side::Server, &with_data_ack(talk.data(Side::Server, 0, 100)));
        let mut fin = talk.fin(Side::Server, 100);
        fin.options.dss = Some(Dss { data_fin: true, ..Dss::default() });
        let flags: Vec<_> = (0..50)
            .flat_map(|_| companions(&mut bench, Side::Server, &fin))
            .map(|(bare, before)| (bare.header.flags.contains(Flags::FIN), before))
            .collect();
        assert!(flags.contains(&(true, true)) && flags.contains(&(false, false)));
        assert!(!flags.contains(&(true, false)));
        // A host that falls back to TCP says so with an infinite mapping: RFC 8684 §3.7.
        let mut infinite = talk.data(Side::Server, 0, 0).options.dss;
        core::mem::swap(&mut fin.options.dss, &mut infinite);
        let mut all = (0..50).flat_map(|_| companions(&mut bench, Side::Server, &fin));
        assert!(all.all(|(bare, _)| !bare.header.flags.contains(Flags::FIN)));
    }

    #[test]
    fn direction_and_probability_are_respected() {
        let talk = Talk::v4();
        let only = Directions::Reverse;
        let mut bench = always(only, 1).opened(&talk);
        bench.cross(Side::Client, talk.ack(Side::Client, 0));
        let mut bench = Bench::by_default::<BareSegmentsConfig>().opened(&talk);
        let segment = talk.ack(Side::Server, 0);
        let added: usize =
            (0..1_000).map(|_| companions(&mut bench, Side::Server, &segment).len()).sum();
        // 1000 × 10 %, with a standard deviation of √90.
        assert!((60..140).contains(&added), "{added}");
    }
}
