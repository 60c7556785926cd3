//! How much of the congestion window is in use, as Linux follows it (`tcp_cwnd_validate`).

/// The most that was outstanding in the last window of data. Linux 6.18, `net/ipv4/tcp_output.c`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndUsage {
    /// The record holds until everything below this offset is acknowledged.
    until: u64,
    /// Octets outstanding at the most, while the congestion window was not full.
    most: u32,
    /// It was full.
    full: bool,
}

impl CwndUsage {
    /// New data went out: `una..nxt` is outstanding, and the congestion window is `full` or not.
    pub(super) fn on_sent(&mut self, una: u64, nxt: u64, full: bool) {
        let most = u32::try_from(nxt - una).unwrap_or(u32::MAX);
        if una >= self.until || full || (!self.full && most > self.most) {
            *self = CwndUsage { until: nxt, most, full };
        }
    }

    /// Does a congestion window of `cwnd` octets limit the sender? In slow start it may grow to twice
    /// what was outstanding (`tcp_is_cwnd_limited`).
    pub(super) fn limits(&self, cwnd: u64, slow_start: bool) -> bool {
        self.full || (slow_start && cwnd < 2 * u64::from(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_filled_the_window_lets_it_grow_until_all_of_it_is_acknowledged() {
        let mut usage = CwndUsage::default();
        for sent in 1..=10 {
            usage.on_sent(1, 1 + sent * 1000, sent == 10);
        }
        assert!(usage.limits(10_000, true) && usage.limits(19_000, true));
        // The next window of data is one segment.
        usage.on_sent(10_001, 11_001, false);
        assert!(!usage.limits(20_000, true));
    }

    #[test]
    fn in_slow_start_half_of_the_window_is_enough_and_later_it_is_not() {
        let mut usage = CwndUsage::default();
        usage.on_sent(1, 6_001, false);
        assert!(usage.limits(11_000, true) && !usage.limits(12_000, true));
        assert!(!usage.limits(11_000, false));
    }
}
