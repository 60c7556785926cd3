//! Limits on a subflow's data in flight.

use anabranch_wire::Instant;

use super::Subflow;
use crate::platform::{Burst, Cwnd, Unsent};
use crate::view::Phase;

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
        let Some(deferral) = &self.config.platform.deferral else { return false };
        let Some(oldest) = self.board.oldest_sent_at() else { return false };
        self.recovery.phase() == Phase::Open
            && deferral.waits(&Burst {
                waiting,
                available_cwnd: self.cwnd_for_new_data(),
                since_last: now.saturating_since(self.last_data_sent),
                since_oldest: now.saturating_since(oldest),
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
        if self.last_data_sent != now || self.burst_left == 0 {
            let waiting = waiting();
            if self.defers(now, waiting) {
                self.on_deferred(now);
                return true;
            }
            let view = self.view();
            let mss = u64::from(self.mss());
            let admitted = self.cwnd_for_new_data().min(view.cwnd / 2) / mss;
            let burst = self.config.platform.segments_at_a_time(&view).min(admitted);
            let burst = burst.min(waiting.at_a_time.div_ceil(mss)).max(1);
            self.burst = u8::try_from(burst).unwrap_or(u8::MAX);
            self.burst_left = self.burst;
        }
        self.burst_left -= 1;
        false
    }

    /// Returns `true` if the admitted segment is the last of several that are sent together. On
    /// Linux, it has PSH (`__tcp_transmit_skb`).
    pub(super) fn take_burst_end(&mut self) -> bool {
        self.burst_left == 0 && std::mem::take(&mut self.burst) > 1
    }

    /// The subflow waits for room in it, so the congestion window limits it.
    fn on_deferred(&mut self, now: Instant) {
        let (bytes, ssthresh) =
            (self.congestion_control.cwnd(), self.congestion_control.ssthresh());
        let cwnd = Cwnd { bytes, full: true, slow_start: bytes < ssthresh };
        self.cwnd_usage.on_sent(now, self.una..self.nxt, cwnd);
    }
}
