//! Long-term rate: the rate of a policer, which drops whatever exceeds it. Linux: `bbr_lt_bw_sampling`.

use anabranch_wire::{Duration, Instant};

use super::GAIN_UNIT;
use crate::congestion::RateSample;
use crate::congestion::bandwidth::Bandwidth;

/// Fewest round trips of an interval.
const FEWEST_ROUNDS: u32 = 4;
/// An interval with more round trips says nothing.
const MOST_ROUNDS: u32 = 4 * FEWEST_ROUNDS;
/// Losses in 256ths of the delivered segments above which a policer is suspected.
const SUSPICIOUS_LOSS: u64 = 50;
/// Rates of two intervals are equal if they differ by less than 1/8.
const EQUAL_WITHIN: u64 = 8;
/// Rates are also equal if they differ by at most this number of bytes a second.
const EQUAL_BYTES: u64 = 500;
/// Round trips for which the rate is used.
const ROUNDS_OF_USE: u32 = 48;

/// Detects a policer from two intervals with equal rates and high losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Bandwidth of the last interval.
    rate: Option<Bandwidth>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    /// Segments delivered and lost before the interval, and its begin.
    start: (u64, u64, Instant),
}

/// Effect of an acknowledgement on the use of the policer's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateUse {
    Unchanged,
    /// The use of the rate begins.
    Begins,
    /// The use of the rate ends.
    Ends,
}

impl Policer {
    /// The policer's rate, while it is used.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.rate.filter(|_| self.in_use)
    }

    /// Forget everything.
    pub(super) fn reset(&mut self, sample: &RateSample) {
        *self = Policer { start: place(sample), ..Policer::default() };
    }

    /// Handle an acknowledgement. `round_start`: it begins a round trip. `probes_bandwidth`: the use of
    /// the rate may end, because BBR is in the mode that probes the bandwidth.
    pub(super) fn on_sample(
        &mut self,
        sample: &RateSample,
        round_start: bool,
        probes_bandwidth: bool,
    ) -> RateUse {
        if self.in_use {
            if probes_bandwidth && round_start {
                self.rounds += 1;
                if self.rounds >= ROUNDS_OF_USE {
                    self.reset(sample);
                    return RateUse::Ends;
                }
            }
            return RateUse::Unchanged;
        }
        if !self.sampling {
            // Sampling begins with a loss, when the policer's bucket is empty.
            if sample.lost == 0 {
                return RateUse::Unchanged;
            }
            self.start_interval(sample);
            self.sampling = true;
        }
        if sample.rate.is_some_and(|rate| rate.app_limited) {
            self.reset(sample);
            return RateUse::Unchanged;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < FEWEST_ROUNDS {
            return RateUse::Unchanged;
        }
        if self.rounds > MOST_ROUNDS {
            self.reset(sample);
            return RateUse::Unchanged;
        }
        // An interval ends with a loss, when the bucket is empty again.
        if sample.lost == 0 {
            return RateUse::Unchanged;
        }
        self.end_interval(sample)
    }

    fn end_interval(&mut self, sample: &RateSample) -> RateUse {
        let (delivered, lost, since) = self.start;
        let delivered = sample.delivered - delivered;
        let lost = sample.lost_in_all - lost;
        let interval = sample.delivered_at.saturating_since(since);
        if delivered == 0
            || lost * GAIN_UNIT < SUSPICIOUS_LOSS * delivered
            || interval < Duration::from_millis(1)
        {
            return RateUse::Unchanged;
        }
        let rate = Bandwidth::of(delivered, interval);
        if let Some(before) = self.rate {
            let difference = before.0.abs_diff(rate.0);
            if difference * EQUAL_WITHIN <= before.0
                || Bandwidth(difference).bytes_a_second(sample.segment) <= EQUAL_BYTES
            {
                self.rate = Some(Bandwidth(u64::midpoint(before.0, rate.0)));
                (self.in_use, self.rounds) = (true, 0);
                return RateUse::Begins;
            }
        }
        self.rate = Some(rate);
        self.start_interval(sample);
        RateUse::Unchanged
    }

    fn start_interval(&mut self, sample: &RateSample) {
        self.start = place(sample);
        self.rounds = 0;
    }
}

fn place(sample: &RateSample) -> (u64, u64, Instant) {
    (sample.delivered, sample.lost_in_all, sample.delivered_at)
}
