//! Reasons why each subflow sends nothing more. They follow from the connection's state, so they
//! cost nothing unless a driver asks.

use super::Connection;
use super::scheduling::FullBuffers;
use super::subflows::SubflowContext;
use crate::activity::{Activity, Reason};
use crate::stats::Fallback;
use crate::view::{RecoveryPhase, Slot, SubflowView, Usability};

impl Connection {
    /// Activity of each subflow, by slot. The answer is exact once
    /// [`poll_transmit`](Connection::poll_transmit) has returned `None`.
    pub(crate) fn activities(&self) -> impl Iterator<Item = Reason> + '_ {
        self.subflows.iter().zip(self.subflows.views()).map(|(ctx, view)| {
            let activity = self.activity(ctx, view);
            let waits = matches!(activity, Activity::ReceiveWindow | Activity::SendBuffer);
            let behind = if waits { self.blocking_slot() } else { None };
            Reason { subflow: view.id, activity, behind }
        })
    }

    /// The reason that would have to change first for the subflow to send.
    fn activity(&self, ctx: &SubflowContext, view: &SubflowView) -> Activity {
        match view.usability {
            _ if self.session.has_ended() => return Activity::Closed,
            Usability::Closed if self.why_tcp() != Fallback::None => return Activity::FallenBack,
            Usability::Closed => return Activity::Closed,
            Usability::Opening => return Activity::Opening,
            Usability::PotentiallyFailed => return Activity::Silent,
            Usability::Usable => {}
        }
        if view.backup && view.bytes_in_flight == 0 && self.subflows.have_regular() {
            return Activity::Standby;
        }
        let has_room = view.can_send();
        if !has_room && view.phase == RecoveryPhase::Loss {
            return Activity::Silent;
        }
        if self.send.has_nothing_left() {
            return Activity::Application;
        }
        if has_room { self.limit_beyond_congestion(view) } else { congestion_limit(ctx, view) }
    }

    /// The buffers that keep a subflow with room from sending.
    #[inline]
    pub(super) fn full_buffers(&self) -> FullBuffers {
        let mut full = FullBuffers::default();
        if self.send.has_nothing_left() {
            return full;
        }
        for (ctx, view) in self.subflows.iter().zip(self.subflows.views()) {
            if view.can_send() {
                let activity = self.activity(ctx, view);
                full.receive |= matches!(activity, Activity::ReceiveWindow | Activity::Reader);
                full.send |= activity == Activity::SendBuffer;
            }
        }
        full
    }

    /// Reason why a subflow with room sends nothing.
    fn limit_beyond_congestion(&self, view: &SubflowView) -> Activity {
        let queue = &self.send.queue;
        let unsent = queue.unsent();
        if unsent == 0 {
            // The scheduler has assigned the rest to subflows without room.
            let assigned = queue.assigned().iter().any(|bytes| *bytes > 0);
            return if assigned { Activity::Scheduler } else { Activity::SendBuffer };
        }
        let len = unsent.min(u64::from(view.mss));
        if self.is_held_by_nagle(len, view.id.slot) {
            // Less than a segment is left: the application has written no more, or could not.
            let full = self.send.writer_waits();
            return if full { Activity::SendBuffer } else { Activity::Application };
        }
        if self.send.available_window() < len {
            let all_arrived = queue.una() == queue.nxt();
            return if all_arrived { Activity::Reader } else { Activity::ReceiveWindow };
        }
        Activity::Scheduler
    }

    /// The subflow that carries the oldest unacknowledged data. If several do, the one that carried
    /// it first is unknown, and the slowest counts: the window waits for a copy on any of them.
    pub(super) fn blocking_slot(&self) -> Option<Slot> {
        let carriers = self.send.queue.head()?.carried_by();
        carriers.slots().max_by_key(|slot| self.subflows.view(*slot).srtt_or_max())
    }
}

/// Reason why a subflow has no room.
fn congestion_limit(ctx: &SubflowContext, view: &SubflowView) -> Activity {
    if ctx.subflow.waits_for_departure() {
        return Activity::Paced;
    }
    if ctx.subflow.own_room() >= u64::from(view.mss) {
        return Activity::Remedy;
    }
    if ctx.subflow.is_limited_by_window() {
        return Activity::ReceiveWindow;
    }
    match view.phase {
        RecoveryPhase::Recovery => Activity::Recovery,
        RecoveryPhase::Open | RecoveryPhase::Loss => Activity::CongestionWindow,
    }
}
