//! Time at which timers fire: the requested time, or later because of the host's clock.

use anabranch_wire::{Duration, Instant};

/// Time at which the timers of retransmissions fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryRule {
    /// The timer wheel that holds them. `None`: they fire at the requested time.
    pub wheel: Option<TimerWheel>,
    /// Whether a tail loss probe is due no later than the timeout of the oldest outstanding segment,
    /// counted from its transmission, if the probe follows a transmission. RFC 8985 §7.2 leaves open
    /// how the remaining timeout is measured.
    pub probe_heeds_oldest: bool,
}

/// A hierarchy of buckets. The later a timer is due, the coarser is its bucket. It fires at the end of
/// the bucket (`calc_wheel_index` in Linux's kernel/time/timer.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerWheel {
    /// Ticks per second. A tick begins at time 0.
    pub hertz: u32,
}

/// Buckets of a level, less one, and the bits by which each level is coarser than the one before.
const LEVEL_BUCKETS: u64 = 63;
const LEVEL_BITS: u32 = 3;
/// The wheel has 9 levels at up to 100 Hz. No timer here needs more.
const LEVELS: u32 = 8;

impl ExpiryRule {
    /// Timers fire at the requested time.
    pub(crate) const EXACT: ExpiryRule = ExpiryRule { wheel: None, probe_heeds_oldest: false };

    /// Time at which a timer fires that is started at `now` and runs for `wait`.
    #[inline]
    pub(crate) fn fires(&self, now: Instant, wait: Duration) -> Instant {
        self.wheel.map_or(now + wait, |wheel| wheel.fires(now, wait))
    }
}

impl TimerWheel {
    fn fires(self, now: Instant, wait: Duration) -> Instant {
        let tick = Duration::from_secs(1) / u64::from(self.hertz);
        let ticks = wait.as_nanos().div_ceil(tick.as_nanos());
        let due = now.as_nanos() / tick.as_nanos() + ticks;
        let level = (0..LEVELS).find(|level| ticks < LEVEL_BUCKETS << (LEVEL_BITS * level));
        let bits = LEVEL_BITS * level.unwrap_or(LEVELS);
        Instant::from_nanos((((due >> bits) + 1) << bits) * tick.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_a_timer_is_due_the_coarser_is_the_time_at_which_it_fires() {
        let wheel = TimerWheel { hertz: 250 };
        let fires = |now_ms: u64, wait_ms: u64| {
            let now = Instant::from_nanos(now_ms * 1_000_000);
            wheel.fires(now, Duration::from_millis(wait_ms)).as_nanos() / 1_000_000
        };
        // Up to 62 ticks: a tick later than requested, from the tick in which the timer starts.
        assert_eq!([fires(1000, 200), fires(1001, 201), fires(1003, 248)], [1204, 1208, 1252]);
        // Up to 503 ticks, buckets have 32 ms, and up to 4031 ticks, 256 ms.
        assert_eq!([fires(0, 252), fires(40, 420), fires(480, 864)], [256, 480, 1376]);
        assert_eq!([fires(0, 2016), fires(0, 4_100)], [2048, 4352]);
    }
}
