//! Merges adjacent segments, as receive offload and normalisers do.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::{Bytes, WithUnit};
use std::collections::{BTreeMap, VecDeque};

use anabranch_wire::{Duration, Flags, Instant, Packet, Payload, PooledSegment, Segment};

use super::flows::{FlowId, MAX_FLOWS};
use super::{BuildMiddlebox, MAX_PACKET, Middlebox, Side, Site};
use crate::units::ByteCount;

/// Parameters of the middlebox that merges segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct CoalesceConfig {
    /// Maximum payload of a merged segment.
    #[cfg_attr(feature = "serde", serde(with = "Bytes::<1, { MAX_PACKET as u64 }>"), schemars(extend("x-origin" = "this project: two full-size segments")))]
    pub size: ByteCount,
    /// Maximum time for which a segment waits for the next.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "typical of network cards")))]
    pub delay: Duration,
}

/// Merges consecutive data segments of a flow, keeping the options of the first.
#[derive(Debug)]
struct Coalesce {
    config: CoalesceConfig,
    /// The segment of each flow and direction that waits for the next one.
    held: BTreeMap<(FlowId, Side), HeldSegment>,
    out: VecDeque<(Side, Packet)>,
}

#[derive(Debug)]
struct HeldSegment {
    segment: PooledSegment,
    until: Instant,
}

impl Coalesce {
    fn new(config: CoalesceConfig) -> Self {
        Coalesce { config, held: BTreeMap::new(), out: VecDeque::new() }
    }

    /// Returns `true` if the segment may be merged with others.
    fn is_plain_data(segment: &Segment) -> bool {
        let known = (Flags::ACK | Flags::PSH).0;
        segment.checksum_ok && !segment.payload.is_empty() && segment.header.flags.0 & !known == 0
    }

    /// Returns `true` if `next` continues `held` and the merged segment respects the maximum size.
    fn fits(&self, held: &Segment, next: &Segment) -> bool {
        let len = held.payload.len() + next.payload.len();
        Self::is_plain_data(next)
            && held.header.seq + held.payload.len() as u32 == next.header.seq
            && held.ecn == next.ecn
            && len <= self.config.size.as_u64() as usize
            && held.wire_len() + next.payload.len() <= MAX_PACKET
    }

    fn release(&mut self, key: (FlowId, Side)) {
        if let Some(held) = self.held.remove(&key) {
            self.out.push_back((key.1, held.segment.into()));
        }
    }

    fn hold(&mut self, now: Instant, key: (FlowId, Side), segment: PooledSegment) {
        if self.held.len() >= MAX_FLOWS {
            let first = self.held.iter().min_by_key(|(_, held)| held.until);
            if let Some(first) = first.map(|(key, _)| *key) {
                self.release(first);
            }
        }
        self.held.insert(key, HeldSegment { segment, until: now + self.config.delay });
    }
}

/// Append `next` to `held`. The options of `held` stay, and the newer acknowledgement is kept.
fn merge(held: &mut Segment, next: &Segment) {
    held.payload = Payload::concat(&held.payload, &next.payload);
    held.header.flags |= next.header.flags;
    (held.header.ack, held.header.window) = (next.header.ack, next.header.window);
}

impl Middlebox for Coalesce {
    fn enlarges_segments(&self) -> bool {
        true
    }

    fn handle_packet(&mut self, now: Instant, towards: Side, packet: Packet) {
        let Packet::Tcp(segment) = packet else {
            return self.out.push_back((towards, packet));
        };
        let key = (FlowId::of(towards, &segment), towards);
        let fits = self.held.get(&key).is_some_and(|held| self.fits(&held.segment, &segment));
        match self.held.get_mut(&key) {
            Some(held) if fits => merge(&mut held.segment, &segment),
            _ => {
                self.release(key);
                if Self::is_plain_data(&segment) {
                    self.hold(now, key, segment);
                } else {
                    self.out.push_back((towards, segment.into()));
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let due = self.held.iter().filter(|(_, held)| held.until <= now);
        let mut due: Vec<_> = due.map(|(key, held)| (held.until, *key)).collect();
        due.sort_unstable();
        due.into_iter().for_each(|(_, key)| self.release(key));
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.held.values().map(|held| held.until).min()
    }
}

impl Default for CoalesceConfig {
    fn default() -> Self {
        CoalesceConfig { size: ByteCount::new(2_920), delay: Duration::from_millis(1) }
    }
}

impl Part for CoalesceConfig {
    const NAME: &'static str = "coalesce";
    const SUMMARY: &'static str = "Merges consecutive segments, keeping the options of the first.";
    const SOURCE: &'static str = "receive offload of network cards; Honda et al., IMC 2011";
}

impl BuildMiddlebox for CoalesceConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        Box::new(Coalesce::new(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Talk, at};
    use super::*;

    fn bench(size: u32) -> Bench {
        let delay = Duration::from_millis(5);
        Bench::new(Box::new(Coalesce::new(CoalesceConfig {
            size: ByteCount::new(size.into()),
            delay,
        })))
    }

    #[test]
    fn consecutive_segments_merge_with_the_options_of_the_first() {
        let mut bench = bench(3_000);
        let data = |from| Talk::v4().data(Side::Server, from, 1_000);
        for from in [0, 1_000, 2_000] {
            assert!(bench.put(Side::Server, data(from)).is_empty());
        }
        assert_eq!(bench.middlebox.poll_timeout(), Some(at(5)));
        // A fourth segment does not fit, so it waits on its own.
        let out = bench.put(Side::Server, data(3_000));
        let expected =
            Segment { payload: Talk::v4().data(Side::Server, 0, 3_000).payload, ..data(0) };
        assert_eq!(out, [(Side::Server, expected)]);
        assert_eq!(bench.wait_until(4), []);
        assert_eq!(bench.wait_until(5), [(Side::Server, data(3_000))]);
        assert_eq!(bench.middlebox.poll_timeout(), None);
    }

    #[test]
    fn other_segments_of_the_flow_stay_behind_the_waiting_one() {
        let talk = Talk::v6();
        for next in [
            talk.data(Side::Server, 300, 100),
            talk.data(Side::Server, 0, 100),
            talk.ack(Side::Server, 0),
            talk.fin(Side::Server, 100),
        ] {
            let mut bench = bench(1_000);
            bench.put(Side::Server, talk.data(Side::Server, 0, 100));
            let mut out = bench.put(Side::Server, next.clone());
            out.extend(bench.wait_until(99));
            let out: Vec<_> = out.into_iter().map(|(_, segment)| segment).collect();
            assert_eq!(out, [talk.data(Side::Server, 0, 100), next]);
        }
    }

    #[test]
    fn the_other_direction_and_other_flows_are_not_delayed() {
        let talk = Talk::v4();
        let mut bench = bench(1_000);
        bench.put(Side::Server, talk.data(Side::Server, 0, 100));
        bench.cross(Side::Client, talk.ack(Side::Client, 0));
        let mut syn = talk.syn();
        syn.source.port += 1;
        bench.cross(Side::Server, syn);
        assert_eq!(bench.wait_until(5).len(), 1);
    }

    #[test]
    fn held_data_is_bounded() {
        let mut bench = bench(1_000);
        let mut out = 0;
        for port in 0..MAX_FLOWS as u16 + 10 {
            let mut segment = Talk::v4().data(Side::Server, 0, 100);
            segment.source.port = port;
            out += bench.put(Side::Server, segment).len();
        }
        assert_eq!(out, 10);
        assert_eq!(bench.wait_until(5).len(), MAX_FLOWS);
    }
}
