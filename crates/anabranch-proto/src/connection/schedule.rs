//! The engine asks the scheduler and validates its decisions.

use anabranch_wire::{Duration, Instant};

use super::Connection;
use super::timer::ConnectionTimer;
use crate::scheduler::{Decision, LinuxView, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::trace::TraceKind;
use crate::view::{Slot, SubflowId, SubflowSet, Usability};

/// A valid decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubflowChoice {
    /// Slot of the subflow that sends; it is usable and, unless `held` is set, has room.
    pub(super) slot: Slot,
    /// The subflows that send copies as soon as they have room; may include `slot`.
    pub(super) copies: SubflowSet,
    /// The subflow has no room, and keeps the data until it has.
    pub(super) held: bool,
    /// Also send the rest of the peer's window if it is less than a segment.
    pub(super) to_edge: bool,
}

impl SubflowChoice {
    /// Send only on the subflow in `slot`.
    pub(super) fn only(slot: Slot) -> Self {
        SubflowChoice { slot, copies: SubflowSet::EMPTY, held: false, to_edge: false }
    }
}

/// The result of validating a decision.
enum Validated {
    Sends(SubflowChoice),
    Waits,
    Bad,
}

/// Shortest time before the engine asks a scheduler again. Without it, time could stand still.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Connection {
    /// Ask the scheduler and validate its decision. A bad decision sends nothing, loses nothing,
    /// and cannot stall the connection.
    pub(super) fn schedule(&mut self, now: Instant, pending: Pending) -> Option<SubflowChoice> {
        if let Pending::NewData { bytes: 1.. } = pending {
            self.note_pending_timers(now);
        }
        let context = ScheduleContext {
            now,
            pending,
            subflows: self.subflows.views(),
            with_room: self.subflows.with_room(),
            available_window: self.send.available_window(),
            window: self.send.window(),
            assigned: self.send.queue.assigned(),
            blocked: self.scheduling.blocked(),
            linux: LinuxView::default(),
        };
        let decision = match self.scheduling.follows_linux() {
            false => self.scheduling.ask(&context),
            true => {
                let (mut paced, mut sent) = ([0; SubflowSet::CAPACITY], [0; SubflowSet::CAPACITY]);
                let linux = self.linux_view(&mut paced, &mut sent);
                self.scheduling.ask(&ScheduleContext { linux, ..context })
            }
        };
        match self.judge(now, pending, decision) {
            Validated::Sends(choice) => Some(choice),
            Validated::Waits => self.unless_hanging(now, pending),
            Validated::Bad => {
                self.on_bad_decision(now);
                self.unless_hanging(now, pending)
            }
        }
    }

    fn judge(&mut self, now: Instant, pending: Pending, decision: Decision) -> Validated {
        match decision {
            Decision::Send(id) => {
                let view = self.subflows.views().get(id.slot.index());
                if view.is_some_and(|view| view.id == id && view.can_send()) {
                    return Validated::Sends(SubflowChoice::only(id.slot));
                }
                Validated::Bad
            }
            Decision::Assign(id) => self.judge_assignment(pending, id),
            Decision::Duplicate(set) => {
                let members = set.and(self.subflows.usable());
                let slot = members.slots().find(|slot| self.subflows.view(*slot).can_send());
                match slot {
                    Some(slot) => Validated::Sends(SubflowChoice {
                        copies: members,
                        ..SubflowChoice::only(slot)
                    }),
                    None if members.is_empty() => Validated::Bad,
                    None => Validated::Waits,
                }
            }
            Decision::Wait { until } => {
                if let Some(at) = until {
                    self.timers
                        .set_if_earlier(ConnectionTimer::Scheduler, at.max(now + SHORTEST_WAIT));
                }
                Validated::Waits
            }
        }
    }

    fn judge_assignment(&self, pending: Pending, id: SubflowId) -> Validated {
        let view = self.subflows.views().get(id.slot.index());
        let Some(view) = view.filter(|v| v.id == id && v.usability == Usability::Usable) else {
            return Validated::Bad;
        };
        let waiting = self.send.queue.assigned().get(id.slot.index()).is_some_and(|n| *n > 0);
        let choice =
            SubflowChoice { to_edge: self.session.is_mptcp(), ..SubflowChoice::only(id.slot) };
        if view.can_send() && !waiting && !self.assigns_ahead() {
            return Validated::Sends(choice);
        }
        // The first data carries the keys, and plain TCP requires the data in order.
        let again = matches!(pending, Pending::Reinjection { .. });
        if again || !self.session.is_mptcp() || self.send.queue.nxt() == 1 {
            return Validated::Waits;
        }
        Validated::Sends(SubflowChoice { held: true, ..choice })
    }

    /// Returns `true` if written data is assigned to subflows before any of it is sent. Linux does
    /// so (`__mptcp_push_pending`), except that the first data carries the keys.
    pub(super) fn assigns_ahead(&self) -> bool {
        self.session.is_mptcp() && self.send.queue.fragment().is_some() && self.send.queue.nxt() > 1
    }

    /// Nothing is to be sent. If no data is in flight on any usable subflow, nothing will arrive
    /// that could change the scheduler's decision. The engine then sends available data on the
    /// subflow with the lowest round-trip time.
    fn unless_hanging(&mut self, now: Instant, pending: Pending) -> Option<SubflowChoice> {
        let idle = |view: &crate::view::SubflowView| {
            view.usability != Usability::Usable || view.bytes_in_flight == 0
        };
        if pending == (Pending::NewData { bytes: 0 }) || !self.subflows.views().iter().all(idle) {
            return None;
        }
        let context = ScheduleContext {
            now,
            pending,
            subflows: self.subflows.views(),
            with_room: self.subflows.with_room(),
            available_window: 0,
            window: 0,
            assigned: &[],
            blocked: 0,
            linux: LinuxView::default(),
        };
        let Decision::Send(id) = MinRtt.schedule(&context) else { return None };
        self.on_bad_decision(now);
        Some(SubflowChoice::only(id.slot))
    }

    fn on_bad_decision(&mut self, now: Instant) {
        self.counters.bad_decisions += 1;
        self.outbox.record(now, TraceKind::BadDecision);
    }

    /// RFC 9293 §3.7.4: a short segment at the window's edge waits while an earlier one is
    /// unacknowledged on the subflow (Minshall's variant).
    pub(super) fn is_short_held(&self, slot: Slot, len: u64) -> bool {
        let ctx = &self.subflows[slot];
        self.config.tcp.nagle
            && !self.send.queue.is_finished()
            && len < u64::from(self.subflows.view(slot).mss)
            && ctx.carried.awaits_short(ctx.subflow.una())
    }
}
