//! Data that is sent although it was mapped before: reinjections, copies that the scheduler or the
//! path manager requests, and data assigned to a subflow ahead of its window.

use anabranch_wire::{DataSeq, Instant, Payload, PooledSegment};

use super::Connection;
use super::send_queue::Resend;
use crate::platform::Pause;
use crate::scheduler::Pending;
use crate::subflow::{DataLevel, MappingMeta};
use crate::trace::TraceKind;
use crate::view::{Slot, SubflowId, SubflowSet, Usability};

/// Reason for sending mapped data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetransmitCause {
    /// The subflow that carried the data does not answer.
    Reinjection,
    /// A remedy requests it.
    Opportunistic,
    /// The scheduler wants the data on several subflows.
    Copy,
    /// The path manager probes the subflow.
    Probe,
    /// The data waited on the subflow to be sent again. `pushed`: data that was pushed together ends
    /// with it.
    Resent { pushed: bool },
    /// The scheduler has assigned the data to the subflow, which had no room. This is the first
    /// transmission.
    Assigned,
}

impl Connection {
    /// Reinject data that a subflow failed to deliver in time.
    pub(super) fn poll_reinjection(
        &mut self,
        now: Instant,
        level: &DataLevel,
    ) -> Option<PooledSegment> {
        let mapped = self.send.queue.next_reinjection()?;
        if !self.fallback.may_repeat() {
            if !self.may_repeat_on_only_subflow() {
                return None;
            }
            self.fallback.repeat();
        }
        let usable = self.subflows.usable();
        let mut already_on = mapped.carried_by();
        let all = (0..SubflowSet::CAPACITY as u8)
            .map(Slot)
            .all(|slot| !usable.contains(slot) || already_on.contains(slot));
        // If all usable subflows have carried the data, any of them may send it again.
        if all {
            already_on = SubflowSet::EMPTY;
        }
        let choice = self.schedule(now, Pending::Reinjection { already_on })?;
        self.retransmit_on(now, level, mapped.start, choice.slot, RetransmitCause::Reinjection)
    }

    /// Send the data at `start`, which another subflow has carried, on the subflow in `slot`.
    pub(super) fn retransmit_on(
        &mut self,
        now: Instant,
        level: &DataLevel,
        start: u64,
        slot: Slot,
        why: RetransmitCause,
    ) -> Option<PooledSegment> {
        let limit = self.subflows.view(slot).mss;
        let payload = self.send.queue.retransmit_on(start, limit, slot)?;
        Some(self.send_again_on(now, level, slot, start, payload, why))
    }

    pub(super) fn send_again_on(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: Slot,
        start: u64,
        payload: Payload,
        why: RetransmitCause,
    ) -> PooledSegment {
        let len = payload.len() as u32;
        let data_seq = self.session.data_seq(start);
        // RFC 8684 §3.3.3: a copy of the last data carries the DATA_FIN as well.
        let end = start + u64::from(len);
        let last = end == self.send.queue.end();
        if why == RetransmitCause::Assigned && last && self.send.queue.is_finished() {
            self.send.queue.fin_sent();
        }
        let copied = matches!(why, RetransmitCause::Copy | RetransmitCause::Assigned);
        let data_fin = copied && last && self.send.queue.fin_outstanding();
        if data_fin {
            self.data_fin.went_with_data();
        }
        // RFC 9293 §3.9.1.2: PSH marks the end of the data that is pushed together: a run of assigned
        // data, or a fragment that is sent again.
        let push = match why {
            RetransmitCause::Assigned => {
                self.send.queue.ends_push(start) || self.send.queue.next_copy(slot) != Some(end)
            }
            RetransmitCause::Resent { pushed } => pushed,
            _ => true,
        };
        let counts_as_short = why == RetransmitCause::Assigned || self.assigns_ahead();
        let meta = MappingMeta { data_fin, ..MappingMeta::new(data_seq) };
        let mss = self.subflows.view(slot).mss;
        let (ctx, views) = self.subflows.with_views(slot);
        ctx.carried.on_sent(ctx.subflow.send_next(), start, u64::from(len));
        if why != RetransmitCause::Assigned {
            ctx.carried.on_reinjected(len.into());
        }
        let subflow = ctx.subflow.id();
        let segment = ctx.subflow.send_data(now, level, payload, Some(meta), push, views);
        if counts_as_short && len < mss {
            ctx.carried.on_short(ctx.subflow.send_next());
        }
        self.subflows.refresh_after_sending(now, slot);
        self.on_mapped_sent(now, subflow, data_seq, len, why);
        segment
    }

    /// Count and record mapped data that was sent. A reinjection starts the data-level timer.
    fn on_mapped_sent(
        &mut self,
        now: Instant,
        subflow: SubflowId,
        data_seq: DataSeq,
        len: u32,
        why: RetransmitCause,
    ) {
        match why {
            RetransmitCause::Copy => {
                self.counters.copies += 1;
                self.outbox.record(now, TraceKind::Copied { subflow, data_seq, len });
            }
            RetransmitCause::Probe => {
                self.counters.path_probes += 1;
                self.outbox.record(now, TraceKind::Probed { subflow, data_seq, len });
            }
            RetransmitCause::Assigned => {
                self.outbox.record(now, TraceKind::Scheduled { subflow, data_seq, len });
            }
            RetransmitCause::Reinjection
            | RetransmitCause::Resent { .. }
            | RetransmitCause::Opportunistic => {
                let opportunistic = why == RetransmitCause::Opportunistic;
                self.counters.data_level_retransmits += 1;
                self.outbox
                    .record(now, TraceKind::Reinjected { subflow, data_seq, len, opportunistic });
                match self.data_retransmission().pause {
                    Pause::Timeouts => self.arm_retransmission(now),
                    // The timer runs since it last expired.
                    Pause::PendingTimers { .. } => self.start_retransmission(now),
                }
            }
        }
    }

    /// Send assigned data and copies, which earlier decisions left for later. They precede new
    /// data, so that each subflow carries the stream in order.
    pub(super) fn poll_copy(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        for slot in self.send.queue.pending_copies().slots() {
            if self.send.queue.next_resend(slot).is_some() {
                match self.poll_resend(now, level, slot) {
                    Some(segment) => return Some(segment),
                    None => continue,
                }
            }
            let view = self.subflows.view(slot);
            let (mss, room) = (u64::from(view.mss), view.available_cwnd);
            if view.usability == Usability::Usable
                && room > 0
                && let Some(start) = self.send.queue.next_copy(slot)
                && !self.is_tail_held(slot, start)
            {
                let assigned = self.send.queue.is_assigned(start);
                let waiting = self.send.queue.assigned().get(slot.index()).copied();
                // The data that fills the window may be less than a segment.
                if room < waiting.filter(|_| assigned).map_or(mss, |bytes| bytes.min(mss)) {
                    continue;
                }
                let why = if assigned { RetransmitCause::Assigned } else { RetransmitCause::Copy };
                let waiting = || self.send.queue.waiting_on(slot);
                if assigned && self.subflows[slot].subflow.waits_for_room(now, waiting) {
                    continue;
                }
                return self.retransmit_on(now, level, start, slot, why);
            }
        }
        None
    }

    /// Send data again that waits on the subflow in `slot`, if the subflow has room.
    fn poll_resend(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: Slot,
    ) -> Option<PooledSegment> {
        let bytes = self.send.queue.next_resend(slot)?;
        let view = self.subflows.view(slot);
        // Full segments may have become shorter since the data was queued.
        let bytes = bytes.min(view.mss.into());
        if view.usability != Usability::Usable || view.available_cwnd < bytes {
            return None;
        }
        self.send_resend(now, level, slot)
    }

    pub(super) fn send_resend(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: Slot,
    ) -> Option<PooledSegment> {
        let mss = self.subflows.view(slot).mss;
        let Resend { start, payload, pushed } = self.send.queue.take_resend(slot, mss)?;
        let why = RetransmitCause::Resent { pushed };
        Some(self.send_again_on(now, level, slot, start, payload, why))
    }

    /// Returns `true` if the data assigned to the subflow in `slot` from `start` on must wait for
    /// more. Linux tests the last socket buffer of a queue only (`tcp_write_xmit`).
    fn is_tail_held(&self, slot: Slot, start: u64) -> bool {
        let queue = &self.send.queue;
        let assigned = queue.assigned().get(slot.index());
        let waits =
            if self.assigns_ahead() { queue.ends_queue(start) } else { queue.is_assigned(start) };
        waits && assigned.is_some_and(|all| self.is_short_held(slot, *all))
    }
}
