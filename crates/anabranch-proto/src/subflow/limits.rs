//! Limits on a subflow's data in flight.

use anabranch_wire::Instant;

use super::Subflow;
use crate::platform::{Burst, Cwnd, Unsent};
use crate::view::RecoveryPhase;

impl Subflow {
    /// Bytes of new data that congestion control and the peer's window on this subflow admit now,
    /// without the limits that remedies set.
    pub(crate) fn own_room(&self) -> u64 {
        self.cwnd_for_new_data()
    }

    /// Returns `true` if congestion control would admit a full segment that the peer's window on
    /// this subflow does not.
    pub(crate) fn is_limited_by_window(&self) -> bool {
        let mss = u64::from(self.mss());
        self.space() >= mss && self.cwnd_for_new_data() < mss
    }

    /// Returns `true` if the platform waits for more room in the congestion window.
    pub(crate) fn defers(&self, now: Instant, waiting: Unsent) -> bool {
        let Some(deferral) = self.config.platform.deferral else { return false };
        let Some(oldest) = self.board.oldest_sent_at() else { return false };
        self.recovery.phase() == RecoveryPhase::Open
            && deferral.waits(&Burst {
                waiting,
                available_cwnd: self.cwnd_for_new_data(),
                since_last: self.congestion.idle(now),
                since_oldest: now.saturating_since(oldest),
                paced_window: self.paced_window(),
                fewest_at_a_time: self.congestion.fewest_at_a_time(),
                view: &self.view(),
            })
    }

    /// Returns `true` if the next segment must wait for more room. If not, the segments after it
    /// that the platform sends at the same time need not wait either.
    pub(crate) fn waits_for_room(
        &mut self,
        now: Instant,
        waiting: impl FnOnce() -> Unsent,
    ) -> bool {
        if self.config.platform.deferral.is_none() {
            return false;
        }
        if !self.congestion.has_sent_at(now) || self.train.is_over() {
            let waiting = waiting();
            if self.defers(now, waiting) {
                self.on_deferred(now);
                return true;
            }
            let view = self.view();
            let mss = u64::from(self.mss());
            let admitted = self.cwnd_for_new_data().min(view.cwnd / 2) / mss;
            let burst = self.segments_at_a_time(&view).min(admitted);
            self.train.begin(burst.min(waiting.at_a_time.div_ceil(mss)));
        }
        self.train.advance();
        false
    }

    /// The subflow waits for room in it, so the congestion window limits it.
    fn on_deferred(&mut self, now: Instant) {
        let bytes = self.congestion.cwnd();
        let cwnd = Cwnd { bytes, full: true, slow_start: bytes < self.congestion.ssthresh() };
        self.congestion.on_used(now, self.una..self.nxt, cwnd);
    }
}
