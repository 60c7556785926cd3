//! The scheduler of a connection, and the times at which nothing could be sent.

use anabranch_wire::{Duration, Instant};

use super::stopwatch::Stopwatch;
use crate::scheduler::{Decision, ScheduleContext, Scheduler};
use crate::view::{SubflowId, SubflowSet};

/// The scheduler and its decisions, and the state of asking the remedies.
pub(super) struct Scheduling {
    scheduler: Box<dyn Scheduler>,
    follows_linux: bool,
    waits_for_room: bool,
    /// The subflows on which it last wanted copies of new data.
    copies: SubflowSet,
    /// The remedies were asked since the last change.
    remedies_asked: bool,
    /// The scheduler admitted no more data, and nothing has happened since.
    pushed: bool,
    /// Number of times that a subflow had room but nothing that it may send.
    blocked: u64,
    /// Run while a subflow has room, but a full buffer keeps it from sending.
    window_limited: Stopwatch,
    send_buffer_limited: Stopwatch,
}

impl Scheduling {
    pub(super) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Scheduling {
            follows_linux: scheduler.follows_linux(),
            waits_for_room: scheduler.waits_for_room(),
            scheduler,
            copies: SubflowSet::EMPTY,
            remedies_asked: false,
            pushed: false,
            blocked: 0,
            window_limited: Stopwatch::default(),
            send_buffer_limited: Stopwatch::default(),
        }
    }

    /// Something changed, so the engine may ask the scheduler and the remedies again.
    #[inline]
    pub(super) fn on_change(&mut self) {
        (self.remedies_asked, self.pushed) = (false, false);
    }

    /// The scheduler admits no more data until the next change.
    pub(super) fn on_pushed(&mut self) {
        self.pushed = true;
    }

    /// Returns `true` unless the scheduler has admitted no more data since the last change.
    #[inline]
    pub(super) fn may_admit_more(&self) -> bool {
        !self.pushed
    }

    /// Number of times that a subflow had room but nothing that it may send.
    #[inline]
    pub(super) fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Returns `true` if the scheduler uses the view of those that follow Linux.
    #[inline]
    pub(super) fn follows_linux(&self) -> bool {
        self.follows_linux
    }

    /// Returns `true` if the scheduler only waits while no usable subflow has room.
    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        self.waits_for_room
    }

    /// Ask the scheduler.
    #[inline]
    pub(super) fn ask(&mut self, context: &ScheduleContext<'_>) -> Decision {
        self.scheduler.schedule(context)
    }

    /// `bytes` of new data were mapped to `subflow`.
    #[inline]
    pub(super) fn on_sent(&mut self, subflow: SubflowId, bytes: u64) {
        self.scheduler.on_sent(subflow, bytes);
    }

    /// The subflows on which the scheduler last wanted copies of new data.
    #[inline]
    pub(super) fn copies(&self) -> SubflowSet {
        self.copies
    }

    #[inline]
    pub(super) fn set_copies(&mut self, copies: SubflowSet) {
        self.copies = copies;
    }

    #[inline]
    pub(super) fn has_asked_remedies(&self) -> bool {
        self.remedies_asked
    }

    /// The engine asks the remedies now. `blocked` is true if a subflow has room but nothing that
    /// it may send.
    pub(super) fn ask_remedies(&mut self, blocked: bool) {
        self.remedies_asked = true;
        self.blocked += u64::from(blocked);
    }

    /// From now on, these buffers keep subflows with room from sending.
    #[inline]
    pub(super) fn limited_by(&mut self, now: Instant, full: FullBuffers) {
        self.window_limited.run_if(full.receive, now);
        self.send_buffer_limited.run_if(full.send, now);
    }

    /// Total time until `now` during which the shared window kept a subflow with room from sending.
    pub(super) fn window_limited(&self, now: Instant) -> Duration {
        self.window_limited.total(now)
    }

    /// Total time until `now` during which the send buffer kept a subflow with room from sending.
    pub(super) fn send_buffer_limited(&self, now: Instant) -> Duration {
        self.send_buffer_limited.total(now)
    }
}

/// The buffers that keep a subflow with room from sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FullBuffers {
    /// The peer's receive window.
    pub(super) receive: bool,
    pub(super) send: bool,
}
