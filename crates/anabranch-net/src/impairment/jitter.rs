//! Variation of the propagation delay.

use anabranch_wire::Duration;

use crate::rng::{Draws, stream_seed};

/// Effect of jitter on the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterModel {
    /// Packets are delivered in the order in which they were sent. A packet that would overtake an
    /// earlier packet is delivered together with it. Most real bearers behave like this. A delay
    /// that becomes shorter during the run does not reorder packets either.
    #[default]
    Fifo,
    /// Each packet has its own delay and may overtake earlier packets: netem's default.
    Reordering,
}

/// A random delay for each packet, uniform within ±`amount` of the link's delay and never below
/// zero. netem also draws uniformly if no distribution table is loaded.
#[derive(Debug)]
pub(crate) struct Jitter {
    draws: Draws,
    amount: Duration,
}

impl Jitter {
    /// Jitter whose draws come from the link's seed.
    pub(crate) fn new(amount: Duration, link_seed: u64) -> Self {
        Jitter { draws: Draws::new(stream_seed(link_seed, "jitter")), amount }
    }

    /// Set the amplitude of the variation to ±`amount` from now on.
    pub(crate) fn set_amount(&mut self, amount: Duration) {
        self.amount = amount;
    }

    /// The delay of packet `number` on a link with delay `delay`.
    pub(crate) fn delay_of(&self, number: u64, delay: Duration) -> Duration {
        if self.amount.is_zero() {
            return delay;
        }
        let offset = (self.draws.signed(number) * self.amount.as_nanos() as f64) as i64;
        Duration::from_nanos(delay.as_nanos().saturating_add_signed(offset))
    }

    /// The shortest possible delay of any packet on a link with delay `delay`.
    pub(crate) fn shortest(&self, delay: Duration) -> Duration {
        delay.saturating_sub(self.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(amount: u64, delay: u64) -> impl Iterator<Item = u64> {
        let jitter = Jitter::new(Duration::from_millis(amount), 1);
        (0..10_000).map(move |n| jitter.delay_of(n, Duration::from_millis(delay)).as_nanos())
    }

    #[test]
    fn delays_fill_the_interval_around_the_delay() {
        let (shortest, longest) = (delays(5, 20).min().unwrap(), delays(5, 20).max().unwrap());
        // The extremes of 10 000 uniform draws lie within 10 µs (0.1 %) of the ends, except for one
        // seed in 20 000.
        assert!((15_000_000..15_010_000).contains(&shortest), "{shortest}");
        assert!((24_990_000..=25_000_000).contains(&longest), "{longest}");
        let mean = delays(5, 20).sum::<u64>() / 10_000;
        // Standard error: 10 ms/√12/√10⁴ = 29 µs.
        assert!((19_880_000..=20_120_000).contains(&mean), "{mean}");
    }

    #[test]
    fn delays_are_clamped_at_zero() {
        let zeros = delays(10, 5).filter(|&delay| delay == 0).count();
        // A quarter of the interval ±10 ms lies below −5 ms: 2500 ± 4·√(10⁴·¼·¾) = 173.
        assert!((2_327..=2_673).contains(&zeros), "{zeros}");
    }

    #[test]
    fn without_jitter_the_delay_is_exact() {
        assert!(delays(0, 20).all(|delay| delay == 20_000_000));
    }
}
