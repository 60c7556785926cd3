//! PIE (proportional integral controller enhanced). RFC 8033, and sch_pie.c of Linux where it is more
//! precise.
//!
//! The queueing delay is the sojourn time of the packet that left last, as in Linux by default. Linux
//! updates the probability for the first time after half a second. This queue does after one interval.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::WithUnit;
use anabranch_wire::{Duration, Instant};

use super::{CheckQueue, DropTail, Invalid, Packet, Timestamped};
use crate::rng::{Draws, stream_seed};
use crate::units::{FULL_SIZE_PACKET, Probability, Rate};

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct PieConfig {
    /// Queueing delay at which the drop probability stays constant.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8033 §4.2")))]
    pub target: Duration,
    /// Time between two updates of the drop probability.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8033 §4.2")))]
    pub update_interval: Duration,
    /// Duration of a burst from which no packet is dropped.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Duration>"), schemars(extend("x-origin" = "RFC 8033 §4.4")))]
    pub max_burst: Duration,
    /// Drop probability above which packets are dropped even if they could be marked.
    #[cfg_attr(feature = "serde", serde(with = "WithUnit::<Probability>"), schemars(extend("x-origin" = "RFC 8033 §5.1")))]
    pub ecn_threshold: Probability,
}

impl Default for PieConfig {
    fn default() -> Self {
        PieConfig {
            target: TARGET,
            update_interval: UPDATE_INTERVAL,
            max_burst: MAX_BURST,
            ecn_threshold: Probability::from_parts_per_billion(ECN_THRESHOLD),
        }
    }
}

/// RFC 8033 §4.2.
const TARGET: Duration = Duration::from_millis(15);
/// RFC 8033 §4.2.
const UPDATE_INTERVAL: Duration = Duration::from_millis(15);
/// RFC 8033 §4.4.
const MAX_BURST: Duration = Duration::from_millis(150);
/// RFC 8033 §5.1: 10 %, in parts per billion.
const ECN_THRESHOLD: u32 = 100_000_000;
/// RFC 8033 §4.2: weights of the delay and of its change, in 1/s.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// RFC 8033 §4.2: upper bounds of the drop probability, and the divisors of a change below each of them.
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// RFC 8033 §5.5: largest increase of a drop probability of at least 10 %.
const LARGEST_STEP: f64 = 0.02;
/// sch_pie.c: delay above which the probability grows by another 2 %.
const HIGH_DELAY: Duration = Duration::from_millis(250);
/// sch_pie.c: decay of the probability while there is no delay.
const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// RFC 8033 §4.1: drop probability below which a delay of half the target causes no drops.
const SAFE_PROBABILITY: f64 = 0.2;
/// RFC 8033 §5.4: sums of probabilities between which a drop is random.
const RANDOM_FROM: f64 = 0.85;
const RANDOM_UNTIL: f64 = 8.5;
/// The shortest interval, which bounds the work after a pause.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// A drop-tail queue that drops arriving packets with a probability that keeps the delay at a target.
#[derive(Debug)]
pub(crate) struct Pie {
    config: PieConfig,
    tail: Timestamped,
    draws: Draws,
    /// Sojourn time of the packet that left last; zero if no other waited.
    delay: Duration,
    controller: Controller,
    next_update: Instant,
    /// Sum of the drop probabilities since the last drop.
    accumulated: f64,
}

/// The proportional integral controller: state that updates change.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Controller {
    probability: f64,
    /// Delay at the last update.
    old_delay: Duration,
    /// Time for which no packet is dropped.
    burst_allowance: Duration,
}

impl Pie {
    pub(crate) fn new(config: PieConfig, tail: DropTail, link_seed: u64) -> Self {
        Pie {
            config,
            tail: Timestamped::new(tail),
            draws: Draws::new(stream_seed(link_seed, "pie")),
            delay: Duration::ZERO,
            controller: Controller {
                probability: 0.0,
                old_delay: Duration::ZERO,
                burst_allowance: config.max_burst,
            },
            next_update: Instant::ZERO + config.update_interval,
            accumulated: 0.0,
        }
    }

    pub(crate) fn tail(&self) -> &DropTail {
        self.tail.tail()
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.tail.set_rate(rate);
    }

    /// RFC 8033 §5.1: packets are marked while the probability is low.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        mark: impl FnOnce(Packet) -> bool,
    ) -> bool {
        self.catch_up(now);
        if !self.tail().has_room(packet) {
            self.accumulated = 0.0;
            return false;
        }
        let may_mark = self.controller.probability <= self.config.ecn_threshold.as_f64();
        if self.drops_early(packet.number) && !(may_mark && mark(packet)) {
            return false;
        }
        self.tail.enqueue(now, packet)
    }

    pub(crate) fn dequeue(&mut self, now: Instant) -> Option<Packet> {
        self.catch_up(now);
        let (packet, arrival) = self.tail.dequeue()?;
        let is_last = self.tail().packets() == 0;
        self.delay = if is_last { Duration::ZERO } else { now.saturating_since(arrival) };
        Some(packet)
    }

    /// Make the updates that are due by `now`. Between two calls, their input stays the same.
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            let before = self.controller;
            self.controller.update(self.delay, &self.config);
            self.next_update += self.config.update_interval;
            if self.controller == before && self.next_update <= now {
                let interval = self.config.update_interval;
                let due = now.saturating_since(self.next_update).as_nanos() / interval.as_nanos();
                self.next_update += interval * (due + 1);
            }
        }
    }

    /// RFC 8033 §4.1, §4.4 and §5.4: whether an arriving packet is dropped although there is room.
    fn drops_early(&mut self, number: u64) -> bool {
        let probability = self.controller.probability;
        let is_short = self.delay < self.config.target / 2 && probability < SAFE_PROBABILITY;
        let in_burst = !self.controller.burst_allowance.is_zero();
        if in_burst || is_short || self.tail().bytes() < 2 * FULL_SIZE_PACKET {
            return false;
        }
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        let drops = self.accumulated >= RANDOM_UNTIL
            || self.accumulated >= RANDOM_FROM && self.draws.uniform(number) < probability;
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

impl Controller {
    /// RFC 8033 §4.2 and §4.4: the periodic update.
    fn update(&mut self, delay: Duration, config: &PieConfig) {
        let change = change(self.probability, delay, self.old_delay, config.target);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if delay.is_zero() && self.old_delay.is_zero() {
            self.probability *= DECAY;
        }
        let half = config.target / 2;
        let is_calm = self.probability == 0.0 && delay < half && self.old_delay < half;
        let left = self.burst_allowance.saturating_sub(config.update_interval);
        self.burst_allowance = if is_calm { config.max_burst } else { left };
        self.old_delay = delay;
    }
}

/// RFC 8033 §4.2 and §5.5: change of the drop probability. Its size depends on the probability.
fn change(probability: f64, delay: Duration, old_delay: Duration, target: Duration) -> f64 {
    let [now, before, goal] = [delay, old_delay, target].map(Duration::as_secs_f64);
    let scale = SCALES.iter().find(|(below, _)| probability < *below);
    let divisor = scale.map_or(1.0, |(_, divisor)| *divisor);
    let mut change = (ALPHA * (now - goal) + BETA * (now - before)) / divisor;
    if scale.is_none() {
        change = change.min(LARGEST_STEP);
    }
    if delay > HIGH_DELAY { change + LARGEST_STEP } else { change }
}

impl Part for PieConfig {
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "Proportional integral controller enhanced: drops packets at random to keep a target delay.";
    const SOURCE: &'static str = "RFC 8033; sch_pie.c of Linux";
}

impl CheckQueue for PieConfig {
    fn check(&self) -> Result<(), Invalid> {
        if self.update_interval >= LEAST_INTERVAL {
            return Ok(());
        }
        let problem = "must be at least 1ms".to_owned();
        Err(Invalid { parameter: "update_interval", problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::QueueLimit;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn queue(config: PieConfig) -> Pie {
        let rate = Rate::from_bits_per_second(12_000_000);
        Pie::new(config, DropTail::new(QueueLimit::Infinite, rate), 1)
    }

    fn packet(number: u64) -> Packet {
        Packet { number, slot: 0, bytes: 1_500 }
    }

    #[test]
    fn the_change_depends_on_the_probability() {
        // RFC 8033 §4.2. 25 ms after 15 ms, with a target of 15 ms: 0.125·0.01 + 1.25·0.01 = 0.01375.
        let millis = Duration::from_millis;
        let change = |probability| change(probability, millis(25), millis(15), millis(15));
        let table = [
            (0.0, 2_048.0),
            (2e-6, 512.0),
            (2e-5, 128.0),
            (2e-4, 32.0),
            (2e-3, 8.0),
            (0.02, 2.0),
            (0.2, 1.0),
        ];
        for (probability, divisor) in table {
            assert!((change(probability) * divisor - 0.013_75).abs() < 1e-12, "{probability}");
        }
    }

    #[test]
    fn the_change_is_limited_and_larger_at_high_delays() {
        let millis = Duration::from_millis;
        // 0.125·0.085 + 1.25·0.1 = 0.135625. RFC 8033 §5.5: at most 0.02 from a probability of 0.1.
        assert_eq!(change(0.1, millis(100), millis(0), millis(15)), 0.02);
        let below = change(0.09, millis(100), millis(0), millis(15));
        assert!((below - 0.135_625 / 2.0).abs() < 1e-12);
        assert_eq!(change(0.1, millis(251), millis(0), millis(15)), 0.04);
        // Decreases have no limit: −0.125·0.015 − 1.25·0.1.
        let falling = change(0.5, millis(0), millis(100), millis(15));
        assert!((falling + 0.126_875).abs() < 1e-12);
    }

    #[test]
    fn no_packet_of_a_burst_is_dropped() {
        // 200 packets at once, of which one leaves each millisecond. The updates at 15 ms, 30 ms, …,
        // 150 ms use up the allowance. Other packets arrive each millisecond.
        let mut queue = queue(PieConfig::default());
        assert!((0..200).all(|number| queue.enqueue(ms(0), packet(number), |_| false)));
        let mut first_drop = None;
        for now in 1..1_000 {
            queue.dequeue(ms(now));
            let accepted = queue.enqueue(ms(now), packet(200 + now), |_| false);
            if !accepted {
                first_drop = first_drop.or(Some(now));
            }
        }
        assert!((150..300).contains(&first_drop.unwrap()), "{first_drop:?}");
    }

    #[test]
    fn the_delay_of_an_unresponsive_overload_is_the_target() {
        // Five packets arrive while four leave, so one in five must be dropped.
        let mut queue = queue(PieConfig::default());
        let (mut number, mut dropped, mut delays) = (0, 0, Vec::new());
        for now in 0..120_000 {
            for _ in 0..if now % 4 == 0 { 2 } else { 1 } {
                number += 1;
                let accepted = queue.enqueue(ms(now), packet(number), |_| false);
                dropped += u64::from(!accepted && now >= 60_000);
            }
            queue.dequeue(ms(now));
            if now >= 60_000 {
                delays.push(queue.delay.as_secs_f64());
            }
        }
        // 75 000 packets arrived since the 60th second.
        let rate = dropped as f64 / 75_000.0;
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((rate - 0.2).abs() < 0.005, "{rate}");
        assert!((mean - 0.015).abs() < 0.001, "{mean}");
    }

    /// The numbers of the packets that a queue drops at a constant probability of 10 %.
    fn drops(queue: &mut Pie) -> Vec<u64> {
        queue.controller = Controller {
            probability: 0.1,
            old_delay: queue.config.target,
            burst_allowance: Duration::ZERO,
        };
        queue.delay = queue.config.target;
        let offer = |number: &u64| !queue.enqueue(ms(1), packet(*number), |_| false);
        (0..20_000).filter(offer).collect()
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        // RFC 8033 §5.4: the sum of probabilities is below 0.85 for 8 packets, and 8.5 after 85.
        let dropped = drops(&mut queue(PieConfig::default()));
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (9..=86).contains(gap)), "{gaps:?}");
        // After 8 packets, a drop takes 10 more on average.
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((17.0..19.0).contains(&mean), "{mean}");
    }

    #[test]
    fn packets_are_marked_up_to_a_probability_of_10_percent() {
        for (probability, most_lost) in [(0.1, 0), (0.11, 1)] {
            let mut queue = queue(PieConfig::default());
            assert!((0..4).all(|number| queue.enqueue(ms(0), packet(number), |_| false)));
            let (delay, accumulated) = (queue.config.target, RANDOM_UNTIL);
            let burst_allowance = Duration::ZERO;
            queue.controller = Controller { probability, old_delay: delay, burst_allowance };
            (queue.delay, queue.accumulated) = (delay, accumulated);
            let accepted = queue.enqueue(ms(1), packet(4), |_| true);
            assert_eq!(u64::from(!accepted), most_lost, "{probability}");
        }
    }

    #[test]
    fn a_pause_has_the_effect_of_all_its_updates() {
        // The queue is empty at 600 ms. One is updated each millisecond, the other once.
        let run = |often: bool| {
            let mut queue = queue(PieConfig::default());
            for number in 0..400 {
                queue.enqueue(ms(number / 4), packet(number), |_| false);
            }
            (100..600).for_each(|now| _ = queue.dequeue(ms(now)));
            assert!(queue.tail().packets() == 0 && queue.controller.probability > 0.0);
            for now in 600..30_000 {
                if often || now == 29_999 {
                    queue.catch_up(ms(now));
                }
            }
            (queue.controller, queue.next_update)
        };
        let (control, next_update) = run(true);
        assert_eq!((control, next_update), run(false));
        assert_eq!((control.probability, control.burst_allowance), (0.0, MAX_BURST));
    }
}
