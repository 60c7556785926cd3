//! Accumulated time.

use anabranch_wire::{Duration, Instant};

/// Accumulates the time during which a condition holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    #[inline]
    pub(super) fn start(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    #[inline]
    pub(super) fn stop(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_since(since);
        }
    }

    pub(super) fn total(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
