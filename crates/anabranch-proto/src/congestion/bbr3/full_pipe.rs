//! Detection of a full pipe: the delivery rate no longer grows although more is sent.

use crate::congestion::bandwidth::Bandwidth;

/// Round trips without growth by a quarter after which the pipe is full.
const ROUNDS: u8 = 3;

/// Detects a plateau of the delivery rate. Draft: `CheckFullBWReached`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The pipe was full once. Draft: `BBR.full_bw_reached`.
    pub(super) was_reached: bool,
    /// The pipe is full since the last restart. Draft: `BBR.full_bw_now`.
    pub(super) is_full: bool,
    baseline: Bandwidth,
    rounds: u8,
}

impl FullPipe {
    /// Look again, from a baseline on. Draft: `ResetFullBW`.
    pub(super) fn restart(&mut self, baseline: Bandwidth) {
        *self = FullPipe { was_reached: self.was_reached, baseline, ..FullPipe::default() };
    }

    /// A round trip that the application did not limit has ended with this delivery rate.
    pub(super) fn on_round(&mut self, bandwidth: Bandwidth) {
        if self.is_full {
            return;
        }
        if bandwidth.0 >= self.baseline.0 * 5 / 4 {
            self.restart(bandwidth);
            return;
        }
        self.rounds += 1;
        self.is_full = self.rounds >= ROUNDS;
        self.was_reached |= self.is_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut full = FullPipe::default();
        for (bandwidth, is_full) in
            [(100, false), (125, false), (150, false), (154, false), (155, true)]
        {
            full.on_round(Bandwidth(bandwidth));
            assert_eq!(full.is_full, is_full, "{bandwidth}");
        }
        full.restart(Bandwidth(156));
        assert!(full.was_reached && !full.is_full);
    }
}
