//! Pacing: segments leave in bursts at a rate, rather than as acknowledgements arrive. Linux:
//! `tcp_update_skb_after_send`, and the queue discipline fq.

use anabranch_wire::{Duration, Instant};

/// Pacing begins with this segment, so that short transfers do not wait.
const FIRST_PACED: u32 = 10;

/// Departure times of a subflow's segments.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Earliest time of the next burst.
    next: Instant,
    /// Rate in bytes a second; 0 until it is known.
    rate: u64,
    /// Bytes of the burst that is being sent.
    burst_bytes: u64,
    /// Segments that the burst may still have.
    burst_left: u64,
    /// Segments sent.
    sent: u32,
    /// The next burst waits for its time.
    waits: bool,
}

impl Pacer {
    pub(super) fn new() -> Self {
        Pacer { next: Instant::ZERO, rate: 0, burst_bytes: 0, burst_left: 0, sent: 0, waits: false }
    }

    /// Returns `true` if the next burst waits for its time.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Returns `true` if a burst has begun, and may have more segments.
    fn is_in_burst(&self) -> bool {
        self.burst_bytes > 0
    }

    /// Earliest time of the next burst.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Time of the next burst, if it waits; otherwise far in the future.
    #[inline]
    pub(super) fn departure(&self) -> Instant {
        if self.waits { self.next } else { Instant::FAR_FUTURE }
    }

    /// The time of the next burst has come.
    pub(super) fn on_time(&mut self) {
        self.waits = false;
    }

    /// A segment with `bytes` bytes was sent, at a rate in bytes a second. A new burst has at most
    /// `largest` segments.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, rate: u64, largest: u64) {
        self.rate = rate;
        if !self.is_in_burst() {
            self.burst_left = largest.max(1);
        }
        self.burst_bytes += bytes;
        self.burst_left -= 1;
        self.sent = self.sent.saturating_add(1);
        if self.burst_left == 0 {
            self.end_burst(now);
        }
    }

    /// Nothing can be added to the burst, if there is one. The next one may have to wait.
    pub(super) fn end_burst(&mut self, now: Instant) {
        if !self.is_in_burst() {
            return;
        }
        let bytes = std::mem::take(&mut self.burst_bytes);
        let late = now.saturating_since(self.next);
        self.next = self.next.max(now);
        if self.rate == 0 || self.sent < FIRST_PACED {
            return;
        }
        let length = Duration::from_nanos(
            u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(self.rate))
                .unwrap_or(u64::MAX),
        );
        // A burst that left late shortens the time to the next one, by half at most.
        self.next += length.saturating_sub(late.min(length / 2));
        self.waits = self.next > now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Bytes a second.
    const RATE: u64 = 1_000_000;

    /// A pacer that has sent the segments which it does not pace.
    fn pacer() -> Pacer {
        let mut pacer = Pacer::new();
        for _ in 1..FIRST_PACED {
            pacer.on_sent(at(1), 1000, RATE, 1);
            assert!(!pacer.waits());
        }
        pacer
    }

    #[test]
    fn bursts_leave_at_the_rate() {
        let mut pacer = pacer();
        pacer.on_sent(at(1), 1000, RATE, 2);
        assert!(pacer.is_in_burst() && !pacer.waits());
        pacer.on_sent(at(1), 1000, RATE, 2);
        assert_eq!((pacer.waits(), pacer.departure()), (true, at(3)));
        pacer.on_time();
        pacer.on_sent(at(3), 1000, RATE, 2);
        assert_eq!(pacer.departure(), Instant::FAR_FUTURE);
        pacer.end_burst(at(3));
        assert_eq!(pacer.departure(), at(4));
    }

    #[test]
    fn a_late_burst_shortens_the_next_wait_by_half_at_most() {
        let mut pacer = pacer();
        for (sent, next) in [(1, 5), (6, 9), (100, 102)] {
            pacer.on_time();
            pacer.on_sent(at(sent), 4000, RATE, 1);
            assert_eq!(pacer.departure(), at(next));
        }
    }
}
