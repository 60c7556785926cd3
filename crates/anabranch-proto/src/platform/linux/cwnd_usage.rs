//! Use of the congestion window: `tcp_cwnd_validate` and `tcp_is_cwnd_limited`; RFC 2861.

use std::ops::Range;

use anabranch_wire::{Duration, Instant};

use crate::platform::Cwnd;

/// The most that was outstanding in the last window of data, and since the window last limited the
/// sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CwndUsage {
    /// The record holds until everything below this offset is acknowledged.
    until: u64,
    /// When the congestion window last limited the sender, or was last reduced for not doing so.
    limited_at: Instant,
    /// Bytes outstanding at the most in this window of data, or [`FULL`].
    most: u32,
    /// Bytes outstanding at the most since `limited_at`.
    used: u32,
}

/// The congestion window was full.
const FULL: u32 = u32::MAX;

impl Default for CwndUsage {
    fn default() -> Self {
        CwndUsage { until: 0, limited_at: Instant::ZERO, most: 0, used: 0 }
    }
}

impl CwndUsage {
    /// New data went out, and `outstanding` is what lies between SND.UNA and SND.NXT.
    pub(crate) fn on_sent(&mut self, now: Instant, outstanding: Range<u64>, cwnd: Cwnd) {
        let bytes = u32::try_from(outstanding.end - outstanding.start).unwrap_or(FULL - 1);
        let anew = outstanding.start >= self.until || cwnd.full;
        if anew || bytes > self.most {
            (self.most, self.until) = (if cwnd.full { FULL } else { bytes }, outstanding.end);
        }
        if self.limits(cwnd.bytes, cwnd.slow_start) {
            self.restart(now);
        } else {
            self.used = self.used.max(bytes);
        }
    }

    /// Returns `true` if a congestion window of `cwnd` bytes limits the sender. In slow start it
    /// may grow to twice the data that was outstanding.
    pub(crate) fn limits(&self, cwnd: u64, slow_start: bool) -> bool {
        self.most == FULL || (slow_start && cwnd < 2 * u64::from(self.most))
    }

    /// The window is known to be right now.
    pub(crate) fn restart(&mut self, now: Instant) {
        (self.limited_at, self.used) = (now, 0);
    }

    /// The bytes in use, if the window has not limited the sender for `rto`. RFC 2861 §3.2.
    pub(crate) fn take_unused(&mut self, now: Instant, rto: Duration) -> Option<u64> {
        if self.used == 0 || now.saturating_since(self.limited_at) < rto {
            return None;
        }
        let used = u64::from(self.used);
        self.restart(now);
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn cwnd(bytes: u64, full: bool, slow_start: bool) -> Cwnd {
        Cwnd { bytes, full, slow_start }
    }

    #[test]
    fn a_burst_that_filled_the_window_lets_it_grow_until_all_of_it_is_acknowledged() {
        let (mut usage, now) = (CwndUsage::default(), Instant::ZERO);
        for sent in 1..=10 {
            usage.on_sent(now, 1..1 + sent * 1000, cwnd(10_000, sent == 10, true));
        }
        assert!(usage.limits(10_000, true) && usage.limits(19_000, true));
        // The next window of data is one segment.
        usage.on_sent(now, 10_001..11_001, cwnd(20_000, false, true));
        assert!(!usage.limits(20_000, true));
    }

    #[test]
    fn in_slow_start_half_of_the_window_is_enough_and_later_it_is_not() {
        let mut usage = CwndUsage::default();
        usage.on_sent(Instant::ZERO, 1..6_001, cwnd(10_000, false, true));
        assert!(usage.limits(11_000, true) && !usage.limits(12_000, true));
        assert!(!usage.limits(11_000, false));
    }

    #[test]
    fn a_window_that_is_not_in_use_for_a_timeout_is_told_once_each_timeout() {
        let (mut usage, start) = (CwndUsage::default(), Instant::ZERO);
        usage.on_sent(start, 1..10_001, cwnd(10_000, true, false));
        for n in 1..=4 {
            let from = 1 + 10_000 * n;
            usage.on_sent(start + ms(50 * n), from..from + 1000 * n, cwnd(10_000, false, false));
        }
        assert_eq!(usage.take_unused(start + ms(199), ms(200)), None);
        assert_eq!(usage.take_unused(start + ms(200), ms(200)), Some(4_000));
        assert_eq!(usage.take_unused(start + ms(900), ms(200)), None, "nothing was sent since");
    }
}
