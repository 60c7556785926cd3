//! Acknowledgements that come together: data that is acknowledged beyond what the bandwidth explains
//! needs a larger window. Linux: `bbr_update_ack_aggregation`.

use anabranch_wire::{Duration, Instant};

use crate::congestion::RateSample;
use crate::congestion::bandwidth::Bandwidth;

/// Round trips of each half of the window for which an excess counts.
const ROUNDS: u32 = 5;
/// An epoch ends after this number of acknowledged segments.
const LONGEST_EPOCH: u64 = 1 << 20;
/// The window grows by at most the data of this time at the bandwidth.
const MOST: Duration = Duration::from_millis(100);

/// Excess of acknowledged segments over the bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_since: Instant,
    acked: u64,
    /// The largest excess of the current and of the previous rounds.
    largest: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch_since, self.acked) = (now, 0);
    }

    pub(super) fn on_sample(
        &mut self,
        sample: &RateSample,
        round_start: bool,
        bandwidth: Bandwidth,
        cwnd: u64,
    ) {
        if sample.acked == 0 || sample.rate.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.largest = [0, self.largest[0]];
            }
        }
        let epoch = sample.delivered_at.saturating_since(self.epoch_since);
        let mut expected = bandwidth.segments(epoch);
        if self.acked <= expected || self.acked + sample.acked >= LONGEST_EPOCH {
            self.restart(sample.delivered_at);
            expected = 0;
        }
        self.acked += sample.acked;
        let excess = (self.acked - expected).min(cwnd);
        self.largest[0] = self.largest[0].max(excess);
    }

    /// Segments by which the window grows.
    pub(super) fn extra(&self, bandwidth: Bandwidth) -> u64 {
        let largest = self.largest.into_iter().max().unwrap_or(0);
        largest.min(bandwidth.segments(MOST))
    }
}
