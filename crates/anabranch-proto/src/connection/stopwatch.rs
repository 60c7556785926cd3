//! Accumulated time.

use anabranch_wire::{Duration, Instant};

/// Accumulates the time during which a condition holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    /// When the condition began to hold; [`Instant::FAR_FUTURE`] stands for "it does not hold".
    since: Instant,
    total: Duration,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch { since: Instant::FAR_FUTURE, total: Duration::ZERO }
    }
}

impl Stopwatch {
    /// From now on, the condition holds or not.
    #[inline]
    pub(super) fn run_if(&mut self, holds: bool, now: Instant) {
        if holds {
            self.since = self.since.min(now);
        } else if self.since != Instant::FAR_FUTURE {
            self.total = self.total(now);
            self.since = Instant::FAR_FUTURE;
        }
    }

    pub(super) fn total(&self, now: Instant) -> Duration {
        self.total + now.saturating_since(self.since)
    }
}
