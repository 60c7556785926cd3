//! Round-trip time and retransmission timeout. RFC 6298.

use anabranch_wire::{Duration, Instant};

use crate::platform::RtoRule;

/// RFC 6298 §5.7
const INITIAL_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// Smoothed round-trip time, its variation, and the resulting timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rule: &'static RtoRule,
    /// Retransmission timeout without back-off.
    timeout: Duration,
    srtt: Option<Duration>,
    rttvar: Duration,
    min_rtt: Duration,
    min_srtt: Duration,
    latest: Duration,
    backoff: u32,
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(rule: &'static RtoRule) -> Self {
        RttEstimator {
            rule,
            timeout: rule.initial,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            min_srtt: Duration::MAX,
            latest: Duration::ZERO,
            backoff: 0,
        }
    }

    /// Take samples from the acknowledgement of data that was sent once only: the oldest part at
    /// `oldest`, and the newest at `newest`.
    pub fn on_acknowledged(&mut self, now: Instant, oldest: Instant, newest: Instant) {
        let since = |sent: Instant| match self.rule.tick {
            None => now.saturating_since(sent),
            Some(tick) => {
                let ticks = |at: Instant| at.as_nanos() / tick.as_nanos();
                tick * (ticks(now) - ticks(sent)).max(1)
            }
        };
        self.update(since(oldest), since(newest));
    }

    /// Add a sample. `rtt` updates the smoothed estimate, and `shortest` the minimum. `shortest`
    /// belongs to the newly acknowledged segment that was sent last, so delayed acknowledgements do
    /// not affect it.
    pub fn update(&mut self, rtt: Duration, shortest: Duration) {
        self.min_rtt = self.min_rtt.min(shortest);
        self.latest = shortest;
        match self.srtt {
            None => {
                // RFC 6298 §2: SRTT ← R, RTTVAR ← R/2.
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // RFC 6298 §2: alpha = 1/8, beta = 1/4.
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        let srtt = self.srtt.expect("just set");
        self.min_srtt = self.min_srtt.min(srtt);
        self.timeout = match self.rule.minimum_bounds_variance {
            true => srtt + (self.rttvar * 4).max(self.rule.minimum),
            false => (srtt + self.rttvar * 4).max(self.rule.minimum),
        };
        self.backoff = 0;
    }

    /// The timer expired in the handshake, which gave no sample: begin with a conservative timeout.
    /// RFC 6298 §5.7 requires this in any case. If timestamps did give a sample, it takes
    /// precedence, as in Linux.
    pub fn begin_without_sample(&mut self) {
        if self.srtt.is_none() {
            self.timeout = self.timeout.max(INITIAL_AFTER_LOST_SYN);
        }
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Round-trip time variation.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Smallest sample; [`Duration::MAX`] before the first.
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Smallest smoothed round-trip time; [`Duration::MAX`] before the first sample.
    pub fn min_srtt(&self) -> Duration {
        self.min_srtt
    }

    /// The latest sample.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The retransmission timeout without back-off.
    #[inline]
    pub fn rto_without_backoff(&self) -> Duration {
        self.timeout
    }

    /// The retransmission timeout, including back-off.
    pub fn rto(&self) -> Duration {
        // RFC 6298 §5: back off by doubling, up to a maximum.
        (self.timeout * (1 << self.backoff.min(16))).min(self.rule.maximum)
    }

    /// The timer expired: double the timeout.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// New data was acknowledged: the back-off ends.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    #[test]
    fn first_and_second_sample_follow_the_rfc() {
        // RFC 6298 §2
        let mut rtt = RttEstimator::new(Platform::rfc().timeouts);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.update(Duration::from_millis(400), Duration::from_millis(400));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(400)));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 200));
        rtt.update(Duration::from_millis(800), Duration::from_millis(800));
        // RTTVAR = 3/4·200 + 1/4·400 = 250, SRTT = 7/8·400 + 1/8·800 = 450
        assert_eq!(rtt.rttvar(), Duration::from_millis(250));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(450)));
        assert_eq!(rtt.rto(), Duration::from_millis(1450));
    }

    #[test]
    fn linux_bounds_the_variance_term_instead_of_the_sum() {
        let mut rtt = RttEstimator::new(Platform::linux().timeouts);
        for _ in 0..100 {
            rtt.update(Duration::from_millis(20), Duration::from_millis(20));
        }
        assert_eq!(rtt.rto(), Duration::from_millis(220));
    }

    #[test]
    fn a_clock_of_ticks_counts_their_ends() {
        // Five ticks of 4 ms end between 3 and 21 ms. None ends between 5 and 6 ms, which counts as one.
        let mut rtt = RttEstimator::new(Platform::mptcp_org().timeouts);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        rtt.on_acknowledged(at(21), at(3), at(3));
        assert_eq!(rtt.latest(), Duration::from_millis(20));
        rtt.on_acknowledged(at(6), at(5), at(5));
        assert_eq!(rtt.latest(), Duration::from_millis(4));
    }

    #[test]
    fn back_off_doubles_until_an_answer_comes() {
        let mut rtt = RttEstimator::new(Platform::rfc().timeouts);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(4));
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
