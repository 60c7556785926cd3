//! Subflows that make no progress while the data-level retransmission timer runs. As in Linux, each
//! expiry looks for a subflow that can resend the oldest data, and counts the periods in which the
//! others were silent (`mptcp_subflow_get_retrans`, `mptcp_pm_subflow_chk_stale`).

use anabranch_wire::Instant;

use super::Connection;
use crate::platform::SilenceRule;
use crate::scheduler::Pending;
use crate::view::{Slot, SubflowView, Usability};

/// Consecutive periods of the data-level retransmission timer in which nothing arrived on a subflow
/// that had data to send or outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    periods: u8,
    /// Number of segments that had arrived when the first one began.
    answers: u32,
}

impl Silence {
    /// Number of periods.
    #[inline]
    pub(super) fn periods(&self) -> u8 {
        self.periods
    }

    /// A period ends in which the subflow had data to send or outstanding. `answers` segments have
    /// arrived on it. The first period only notes this number, and an arrival ends the count.
    fn on_period(&mut self, answers: u32) {
        self.periods = match self.periods {
            0 => 1,
            periods if answers == self.answers => periods.saturating_add(1),
            _ => 0,
        };
        self.answers = answers;
    }
}

impl Connection {
    /// The data-level retransmission timer has expired. Resend the oldest page fragment on a subflow that
    /// has nothing outstanding and nothing to send, if there is one.
    pub(super) fn resend_on_idle(&mut self) {
        let may_repeat = self.fallback.may_repeat() || self.may_repeat_on_only_subflow();
        if let Some(slot) = self.choose_idle().filter(|_| may_repeat) {
            self.fallback.repeat();
            let mss = self.subflows.view(slot).mss;
            self.send.queue.resend_fragment(slot, mss);
        }
    }

    /// The data-level retransmission timer has expired, and no data is outstanding that an idle subflow
    /// could resend.
    pub(super) fn count_silence(&mut self) {
        self.choose_idle();
    }

    /// The first regular subflow that is idle, or the first such backup if no other subflow makes
    /// progress.
    fn choose_idle(&mut self) -> Option<Slot> {
        let (mut regular, mut backup, mut fewest_periods) = (None, None, u8::MAX);
        for slot in self.subflows.slots() {
            let view = self.subflows.view(slot);
            let is_backup = view.backup;
            if !matches!(view.usability, Usability::Usable | Usability::PotentiallyFailed) {
                continue;
            }
            if self.has_queued(slot) {
                let answers = self.subflows[slot].subflow.answers();
                self.subflows[slot].silence.on_period(answers);
                self.retire_if_stale(slot);
                fewest_periods = fewest_periods.min(self.subflows[slot].silence.periods());
            } else if is_backup {
                backup.get_or_insert(slot);
            } else {
                regular.get_or_insert(slot);
            }
        }
        regular.or(backup.filter(|_| fewest_periods > 1))
    }

    /// Returns `true` if the subflow in `slot` has data outstanding or to send.
    fn has_queued(&self, slot: Slot) -> bool {
        let assigned = self.send.queue.assigned().get(slot.index());
        self.subflows[slot].subflow.has_outstanding() || assigned.is_some_and(|bytes| *bytes > 0)
    }

    /// Take the subflow in `slot` out of use if it was silent for long and another one does better, and
    /// resend everything.
    fn retire_if_stale(&mut self, slot: Slot) {
        let SilenceRule::Periods(limit @ 1..) = self.config.platform.silence else { return };
        let is_stale = self.subflows[slot].silence.periods() > limit
            && self.subflows.view(slot).usability == Usability::Usable;
        let does_better = |other: Slot| {
            other != slot
                && self.subflows.view(other).usability == Usability::Usable
                && self.subflows[other].silence.periods() < (limit - 1).max(1)
        };
        if !is_stale || !self.subflows.slots().any(does_better) {
            return;
        }
        self.subflows.edit(slot).subflow.becomes_stale();
        self.resend_all();
    }

    /// Resend all data without a DATA_ACK, on the subflows that the scheduler chooses, before new data
    /// (`__mptcp_retransmit_pending_data`).
    pub(super) fn resend_all(&mut self) {
        self.fallback.repeat();
        self.send.queue.resend_all();
    }

    /// Queue data to be resent on subflows, as the scheduler decides.
    pub(super) fn assign_resends(&mut self, now: Instant) {
        while self.send.queue.next_to_resend().is_some()
            && let bytes = self.send.queue.left_to_resend()
            && let Some(choice) = self.schedule(now, Pending::NewData { bytes })
        {
            let SubflowView { id, mss, .. } = *self.subflows.view(choice.slot);
            let left = self.send.queue.left_to_resend();
            self.send.queue.queue_resend(choice.slot, mss);
            self.scheduling.on_sent(id, left - self.send.queue.left_to_resend());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_ends_the_count_and_the_next_period_begins_another() {
        let mut silence = Silence::default();
        let mut periods = |answers| {
            silence.on_period(answers);
            silence.periods()
        };
        assert_eq!([7, 7, 7].map(&mut periods), [1, 2, 3]);
        assert_eq!([8, 8, 8].map(&mut periods), [0, 1, 2]);
    }
}
