//! Asking the scheduler, and not trusting its answer.

use anabranch_wire::{Duration, Instant, Segment};

use super::Connection;
use crate::scheduler::{Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::subflow::DataLevel;
use crate::trace::TraceKind;
use crate::view::{SubflowSet, Usability};

/// A decision that can be carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Slot of the subflow to send on: usable, with room.
    pub(super) slot: u8,
    /// The subflows that are to carry copies when they have room; may include `slot`.
    pub(super) copies: SubflowSet,
}

/// What comes of a decision.
enum Verdict {
    Sends(Choice),
    Waits,
    Bad,
}

/// A scheduler is not asked again sooner than this: time would stand still.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Connection {
    /// Ask the scheduler, and check its answer: a bad one sends nothing, loses nothing, and
    /// cannot bring the connection to a halt.
    pub(super) fn schedule(&mut self, now: Instant, pending: Pending) -> Option<Choice> {
        let context = ScheduleContext {
            now,
            pending,
            subflows: &self.views,
            window_room: self.window_room(),
            window: self.peer_edge.saturating_sub(self.send.una()).min(self.send.capacity()),
            blocked: self.blocked,
        };
        let decision = self.scheduler.schedule(&context);
        match self.judge(now, decision) {
            Verdict::Sends(choice) => Some(choice),
            Verdict::Waits => self.unless_hanging(now, pending),
            Verdict::Bad => {
                self.on_bad_decision(now);
                self.unless_hanging(now, pending)
            }
        }
    }

    fn judge(&mut self, now: Instant, decision: Decision) -> Verdict {
        match decision {
            Decision::Send(id) => {
                let view = self.views.get(usize::from(id.slot));
                if view.is_some_and(|view| view.id == id && view.can_send()) {
                    return Verdict::Sends(Choice { slot: id.slot, copies: SubflowSet::EMPTY });
                }
                Verdict::Bad
            }
            Decision::Duplicate(set) => {
                let members = set.and(self.usable_subflows());
                let slot = members.slots().find(|slot| self.views[usize::from(*slot)].can_send());
                match slot {
                    Some(slot) => Verdict::Sends(Choice { slot, copies: members }),
                    None if members.is_empty() => Verdict::Bad,
                    None => Verdict::Waits,
                }
            }
            Decision::Wait { until } => {
                let until = until.map_or(Instant::FAR_FUTURE, |at| at.max(now + SHORTEST_WAIT));
                self.timers.scheduler = self.timers.scheduler.min(until);
                Verdict::Waits
            }
        }
    }

    /// Nothing is to be sent. If nothing is in flight either, on any usable subflow, nothing will
    /// arrive that could change the scheduler's mind: data that can be sent then is, on the
    /// subflow with the lowest round-trip time.
    fn unless_hanging(&mut self, now: Instant, pending: Pending) -> Option<Choice> {
        let idle = |view: &crate::view::SubflowView| {
            view.usability != Usability::Usable || view.bytes_in_flight == 0
        };
        if pending == (Pending::NewData { octets: 0 }) || !self.views.iter().all(idle) {
            return None;
        }
        let context = ScheduleContext {
            now,
            pending,
            subflows: &self.views,
            window_room: 0,
            window: 0,
            blocked: 0,
        };
        let Decision::Send(id) = MinRtt.schedule(&context) else { return None };
        self.on_bad_decision(now);
        Some(Choice { slot: id.slot, copies: SubflowSet::EMPTY })
    }

    fn on_bad_decision(&mut self, now: Instant) {
        self.counters.bad_decisions += 1;
        self.record(now, TraceKind::BadDecision);
    }

    /// Copies that a decision to duplicate left for later, before new data: each subflow carries
    /// the stream in order.
    pub(super) fn poll_copy(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        for slot in self.send.owing().slots() {
            if self.views[usize::from(slot)].can_send()
                && let Some(start) = self.send.next_copy(slot)
            {
                return self.carry_again(now, level, start, slot, super::transmit::Again::Copy);
            }
        }
        None
    }
}
