//! RED (random early detection). Floyd and Jacobson, ToN 1993.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Duration, Instant};

use super::{CheckQueue, DropTail, Invalid, Packet};
use crate::rng::{Draws, stream_seed};
use crate::units::FULL_SIZE_PACKET;
use crate::units::{Probability, Rate};

/// Parameters of RED. Averages are in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct RedConfig {
    /// Average queue length, in packets, below which no packet is dropped.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "the paper's simulations")))]
    pub min_packets: u32,
    /// Average queue length, in packets, from which every packet is dropped, even if it could be marked.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "the paper's simulations")))]
    pub max_packets: u32,
    /// Drop probability just below `max_packets`.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Probability>"), schemars(extend("x-origin" = "the paper's simulations")))]
    pub max_probability: Probability,
    /// Weight of a sample in the average.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Probability>"), schemars(extend("x-origin" = "the paper's simulations")))]
    pub weight: Probability,
}

impl Default for RedConfig {
    /// The values in the paper's simulations: 5 and 15 packets, 1/50, 0.002.
    fn default() -> Self {
        RedConfig {
            min_packets: MIN_PACKETS,
            max_packets: MAX_PACKETS,
            max_probability: Probability::from_parts_per_billion(MAX_PROBABILITY),
            weight: Probability::from_parts_per_billion(WEIGHT),
        }
    }
}

// The values in the paper's simulations. Probabilities are in parts per billion: 1/50 and 0.002.
const MIN_PACKETS: u32 = 5;
const MAX_PACKETS: u32 = 15;
const MAX_PROBABILITY: u32 = 20_000_000;
const WEIGHT: u32 = 2_000_000;

/// A drop-tail queue that drops arriving packets at random as its average length grows.
#[derive(Debug)]
pub(crate) struct Red {
    config: RedConfig,
    tail: DropTail,
    rate: Rate,
    draws: Draws,
    average: f64,
    /// Packets accepted since the last drop; `None` while the average is below the minimum.
    since_drop: Option<u64>,
    /// When the queue became empty.
    empty_since: Option<Instant>,
}

/// The base drop probability at this average: linear between the thresholds.
fn base_probability(average: f64, config: &RedConfig) -> f64 {
    let (min, max) = (f64::from(config.min_packets), f64::from(config.max_packets));
    config.max_probability.as_f64() * (average - min) / (max - min)
}

/// The drop probability after `since_drop` packets without a drop. It makes the gaps between drops
/// uniformly distributed.
fn spread_probability(base: f64, since_drop: u64) -> f64 {
    let left = 1.0 - since_drop as f64 * base;
    if left <= base { 1.0 } else { base / left }
}

impl Red {
    pub(crate) fn new(config: RedConfig, tail: DropTail, rate: Rate, link_seed: u64) -> Self {
        Red {
            config,
            tail,
            rate,
            draws: Draws::new(stream_seed(link_seed, "red")),
            average: 0.0,
            since_drop: None,
            empty_since: Some(Instant::ZERO),
        }
    }

    pub(crate) fn tail(&self) -> &DropTail {
        &self.tail
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.tail.set_rate(rate);
    }

    /// RFC 3168 §19.1: a router marks packets in moderate congestion, and drops packets above the
    /// upper threshold.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        mark: impl FnOnce(Packet) -> bool,
    ) -> bool {
        self.update_average(now);
        if self.drops(packet.number) {
            self.since_drop = Some(0);
            let moderate = self.average < f64::from(self.config.max_packets);
            if !(moderate && self.tail.has_room(packet) && mark(packet)) {
                return false;
            }
        }
        self.tail.enqueue(packet)
    }

    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.tail.dequeue();
        if packet.is_some() && self.tail.packets() == 0 {
            self.empty_since = Some(now);
        }
        packet
    }

    /// While the queue was empty, the average decays as if small packets had passed.
    fn update_average(&mut self, now: Instant) {
        let weight = self.config.weight.as_f64();
        if let Some(since) = self.empty_since.take() {
            let packet = self.rate.time_for(crate::units::ByteCount::new(FULL_SIZE_PACKET));
            let idle: Duration = now.saturating_since(since);
            let passed = idle.as_nanos() as f64 / packet.as_nanos().max(1) as f64;
            self.average *= libm::pow(1.0 - weight, passed);
        }
        self.average += weight * (self.tail.packets() as f64 - self.average);
        if self.tail.packets() == 0 {
            self.empty_since = Some(now);
        }
    }

    fn drops(&mut self, number: u64) -> bool {
        if self.average < self.config.min_packets as f64 {
            self.since_drop = None;
            return false;
        }
        if self.average >= f64::from(self.config.max_packets) {
            return true;
        }
        let since_drop = self.since_drop.map_or(0, |n| n + 1);
        self.since_drop = Some(since_drop);
        let probability =
            spread_probability(base_probability(self.average, &self.config), since_drop);
        self.draws.uniform(number) < probability
    }
}

impl Part for RedConfig {
    const NAME: &'static str = "red";
    const SUMMARY: &'static str =
        "Random early detection: drops packets at random as the average queue grows.";
    const SOURCE: &'static str = "Floyd and Jacobson, ToN 1993";
}

impl CheckQueue for RedConfig {
    fn check(&self) -> Result<(), Invalid> {
        let RedConfig { min_packets, max_packets, .. } = *self;
        if max_packets > min_packets {
            return Ok(());
        }
        let problem = format!("{max_packets}: must be more than min_packets, {min_packets}");
        Err(Invalid { parameter: "max_packets", problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::QueueLimit;

    #[test]
    fn the_probability_is_linear_between_the_thresholds() {
        let config = RedConfig::default();
        assert!(base_probability(5.0, &config).abs() < 1e-12);
        assert!((base_probability(10.0, &config) - 0.01).abs() < 1e-12);
        assert!((base_probability(15.0, &config) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn the_gap_between_drops_is_uniform() {
        // Floyd and Jacobson §7: with base probability p, each of the next 1/p packets is dropped
        // with the same chance. p = 1/4: 1/4, then (3/4)·(1/3) = 1/4, then (2/4)·(1/2) = 1/4, then
        // 1.
        let spread: Vec<f64> = (0..4).map(|n| spread_probability(0.25, n)).collect();
        for (got, expected) in spread.iter().zip([0.25, 1.0 / 3.0, 0.5, 1.0]) {
            assert!((got - expected).abs() < 1e-12, "{spread:?}");
        }
    }

    fn packet(number: u64) -> Packet {
        Packet { number, slot: 0, bytes: 1_500 }
    }

    #[test]
    fn packets_are_marked_in_moderate_and_dropped_in_heavy_congestion() {
        // RFC 3168 §19.1: below an average of 15 no packet is dropped, but some are marked.
        let rate = Rate::from_bits_per_second(8_000_000);
        let config = RedConfig { weight: Probability::ONE, ..RedConfig::default() };
        let certain = RedConfig { max_probability: Probability::ONE, ..config };
        let mut queue = Red::new(certain, DropTail::new(QueueLimit::Infinite, rate), rate, 1);
        let mut marked = 0;
        let accepted = (0..100).filter(|number| {
            queue.enqueue(Instant::ZERO, packet(*number), |_| {
                marked += 1;
                true
            })
        });
        assert_eq!(accepted.count(), 15);
        assert!((5..=9).contains(&marked), "{marked} marked at averages from 5 to 15");
    }

    #[test]
    fn a_short_queue_drops_nothing_and_a_long_average_drops_everything() {
        let rate = Rate::from_bits_per_second(8_000_000);
        let config = RedConfig { weight: Probability::ONE, ..RedConfig::default() };
        let tail = DropTail::new(QueueLimit::Infinite, rate);
        let mut queue = Red::new(config, tail, rate, 1);
        let mut offer = |number| queue.enqueue(Instant::ZERO, packet(number), |_| false);
        assert!((0..6).all(&mut offer));
        // At averages between 5 and 15 some packets are dropped, and all from 15.
        let accepted = (6..200).filter(|number| offer(*number)).count();
        assert!((5..=10).contains(&accepted), "{accepted}");
        assert!((200..300).all(|number| !offer(number)));
    }
}
