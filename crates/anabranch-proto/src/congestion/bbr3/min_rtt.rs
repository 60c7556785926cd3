//! Smallest round-trip time, and when to probe for it.

use anabranch_wire::{Duration, Instant};

/// Time for which the smallest round-trip time counts. Draft: `BBR.MinRTTFilterLen`.
const FILTER: Duration = Duration::from_secs(10);
/// Time after which the round-trip time is probed. Draft: `BBR.ProbeRTTInterval`.
const INTERVAL: Duration = Duration::from_secs(5);

/// The smallest round-trip times of two windows of time. Draft: `UpdateMinRTT`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// The smallest one of ten seconds, and when it was measured.
    least: Option<(Duration, Instant)>,
    /// The smallest one of five seconds. Draft: `BBR.probe_rtt_min_delay`.
    recent: Option<(Duration, Instant)>,
    /// Nothing smaller was measured for five seconds. Draft: `BBR.probe_rtt_expired`.
    pub(super) has_expired: bool,
}

impl MinRtt {
    /// The smallest round-trip time.
    pub(super) fn get(&self) -> Option<Duration> {
        self.least.map(|(rtt, _)| rtt)
    }

    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>) {
        self.has_expired = self.recent.is_some_and(|(_, since)| now > since + INTERVAL);
        if let Some(rtt) = rtt
            && (self.has_expired || self.recent.is_none_or(|(least, _)| rtt < least))
        {
            self.recent = Some((rtt, now));
        }
        let Some(recent) = self.recent else { return };
        if self.least.is_none_or(|(least, since)| recent.0 < least || now > since + FILTER) {
            self.least = Some(recent);
        }
    }

    /// A probe ended: the next one is due after another interval.
    pub(super) fn on_probed(&mut self, now: Instant) {
        if let Some((_, since)) = &mut self.recent {
            *since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_due_after_five_seconds_and_a_longer_time_counts_after_ten() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let ms = Duration::from_millis;
        let mut rtt = MinRtt::default();
        rtt.update(at(0), Some(ms(20)));
        rtt.update(at(5), Some(ms(30)));
        assert!(!rtt.has_expired);
        rtt.update(at(6), Some(ms(30)));
        assert_eq!((rtt.has_expired, rtt.get()), (true, Some(ms(20))));
        rtt.update(at(11), Some(ms(40)));
        assert_eq!((rtt.has_expired, rtt.get()), (false, Some(ms(30))));
    }
}
