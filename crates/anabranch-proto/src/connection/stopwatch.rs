//! Accumulated time.

use anabranch_wire::{Duration, Instant};

/// Accumulates the time during which a condition holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    /// From now on, the condition holds or not.
    #[inline]
    pub(super) fn run_if(&mut self, holds: bool, now: Instant) {
        if holds {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.total += now.saturating_since(since);
        }
    }

    pub(super) fn total(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
