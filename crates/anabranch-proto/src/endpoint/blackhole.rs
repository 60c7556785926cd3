//! Paths that lose SYNs because of MP_CAPABLE, and the time without Multipath TCP that follows. Linux:
//! `mptcp_active_disable` and `mptcp_active_should_disable` in net/mptcp/ctrl.c.

use anabranch_wire::Instant;

use crate::connection::OfferOutcome;
use crate::platform::SynFallbackRule;

/// Doublings of the time without Multipath TCP.
const MOST_DOUBLINGS: u32 = 6;

/// Losses of MP_CAPABLE since a peer has last answered it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blackhole {
    times: u32,
    last: Instant,
}

impl Blackhole {
    /// Returns `true` if the host opens connections without Multipath TCP for now.
    pub(super) fn disables(&self, now: Instant, rule: SynFallbackRule) -> bool {
        let Some(doublings) = self.times.checked_sub(1) else { return false };
        let disabled = rule.disabled * (1 << doublings.min(MOST_DOUBLINGS));
        now < self.last + disabled
    }

    /// Learn the outcome of an offer of Multipath TCP. Returns `true` if the host stops offering it.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        outcome: OfferOutcome,
        rule: SynFallbackRule,
    ) -> bool {
        match outcome {
            OfferOutcome::Accepted => {
                self.times = 0;
                false
            }
            OfferOutcome::Lost if rule.disabled.is_zero() => false,
            OfferOutcome::Lost => {
                (self.times, self.last) = (self.times.saturating_add(1), now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rule(disabled: Duration) -> SynFallbackRule {
        SynFallbackRule { syn_retries: None, disabled }
    }

    #[test]
    fn the_time_without_multipath_tcp_doubles_up_to_64_times_and_an_answer_ends_the_count() {
        let rule = rule(MINUTE);
        let mut blackhole = Blackhole::default();
        let mut now = Instant::ZERO;
        for minutes in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(!blackhole.disables(now, rule));
            assert!(blackhole.learn(now, OfferOutcome::Lost, rule));
            now += MINUTE * minutes;
            assert!(blackhole.disables(now - Duration::from_millis(1), rule));
        }
        assert!(!blackhole.learn(now, OfferOutcome::Accepted, rule));
        blackhole.learn(now, OfferOutcome::Lost, rule);
        assert!(!blackhole.disables(now + MINUTE, rule));
    }

    #[test]
    fn a_timeout_of_0_switches_it_off_at_once() {
        let (on, off) = (rule(MINUTE), rule(Duration::ZERO));
        let mut blackhole = Blackhole::default();
        blackhole.learn(Instant::ZERO, OfferOutcome::Lost, on);
        assert!(!blackhole.disables(Instant::ZERO, off));
        assert!(!blackhole.learn(Instant::ZERO, OfferOutcome::Lost, off));
        assert!(blackhole.disables(Instant::ZERO, on));
    }
}
