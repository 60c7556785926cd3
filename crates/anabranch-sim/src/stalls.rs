//! Stalls: times in which the application gets nothing although data is waiting.

use anabranch_wire::{Duration, Instant};

/// The longest stall of one direction of a connection.
///
/// Data is waiting while the sending application has written bytes that the receiving application has
/// not read. A stall begins with the first write after a time without waiting data, or with a delivery
/// that leaves data waiting. It ends with the next delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    /// Bytes that the receiving application has read.
    delivered: u64,
    /// When the present stall began; [`Instant::FAR_FUTURE`] if no data is waiting.
    since: Instant,
    longest: Stall,
    /// No stall counts before this time.
    warm_up: Instant,
}

/// A time without a delivery although data was waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) began: Instant,
    pub(crate) length: Duration,
}

impl Stalls {
    /// No stalls. Those of the warm-up, which ends at `warm_up`, do not count.
    pub(crate) fn new(warm_up: Instant) -> Self {
        Stalls { delivered: 0, since: Instant::FAR_FUTURE, longest: Stall::default(), warm_up }
    }

    /// By `now`, the applications have written and read these bytes. Returns `true` if some of them
    /// were read since the last call.
    #[inline]
    pub(crate) fn on_progress(&mut self, now: Instant, written: u64, delivered: u64) -> bool {
        if delivered > self.delivered {
            self.longest = self.until(now);
            self.delivered = delivered;
            self.since = if written > delivered { now } else { Instant::FAR_FUTURE };
            return true;
        }
        if written > delivered && self.since == Instant::FAR_FUTURE {
            self.since = now;
        }
        false
    }

    /// The longest stall, if the measured time ends at `end`. A stall that lasts counts until then.
    #[inline]
    pub(crate) fn until(&self, end: Instant) -> Stall {
        let began = self.since.max(self.warm_up);
        let length = end.saturating_since(began);
        if length > self.longest.length { Stall { began, length } } else { self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn stall(began: u64, length: u64) -> Stall {
        Stall { began: ms(began), length: Duration::from_millis(length) }
    }

    #[test]
    fn a_stall_lasts_from_write_or_delivery_to_the_next_delivery() {
        let mut stalls = Stalls::new(ms(0));
        assert!(!stalls.on_progress(ms(10), 3_000, 0));
        assert!(!stalls.on_progress(ms(15), 4_000, 0), "the stall began with the first write");
        assert!(stalls.on_progress(ms(30), 4_000, 1_000));
        assert_eq!(stalls.until(ms(30)), stall(10, 20));
        assert!(stalls.on_progress(ms(55), 4_000, 4_000));
        assert_eq!(stalls.until(ms(55)), stall(30, 25));
    }

    #[test]
    fn an_idle_application_does_not_stall() {
        let mut stalls = Stalls::new(ms(0));
        stalls.on_progress(ms(0), 1_000, 0);
        stalls.on_progress(ms(5), 1_000, 1_000);
        stalls.on_progress(ms(900), 2_000, 1_000);
        stalls.on_progress(ms(907), 2_000, 2_000);
        assert_eq!(stalls.until(ms(5_000)), stall(900, 7));
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut stalls = Stalls::new(ms(100));
        stalls.on_progress(ms(0), 9_000, 0);
        stalls.on_progress(ms(80), 9_000, 1_000);
        assert_eq!(stalls.until(ms(90)).length, Duration::ZERO);
        stalls.on_progress(ms(120), 9_000, 2_000);
        assert_eq!(stalls.until(ms(125)), stall(100, 20));
    }

    #[test]
    fn a_stall_at_the_end_counts_until_the_end() {
        let mut stalls = Stalls::new(ms(0));
        stalls.on_progress(ms(0), 9_000, 0);
        stalls.on_progress(ms(10), 9_000, 1_000);
        assert_eq!(stalls.until(ms(250)), stall(10, 240));
    }
}
