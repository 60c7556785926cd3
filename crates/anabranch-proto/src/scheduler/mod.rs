//! Schedulers: which subflow carries the next data, or whether to wait. RFC 8684 §3.3.8 leaves
//! this to the sender.

mod blest;
mod ecf;
mod linux;
mod min_rtt;
mod redundant;
mod round_robin;

pub use blest::{Blest, BlestRule};
pub use ecf::Ecf;
pub use linux::Linux;
pub use min_rtt::MinRtt;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;

use core::fmt::Debug;

use anabranch_wire::Instant;

use crate::policy::{Entry, Values};
use crate::view::{SubflowId, SubflowSet, SubflowView, Usability};

/// A scheduler that can be chosen by name.
pub type SchedulerEntry = Entry<Making>;

/// How a scheduler is made, and what others have to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Does Linux itself schedule like this, as far as a scenario's user need care?
    pub as_linux: bool,
    /// Makes one.
    pub make: fn(&Values) -> Box<dyn Scheduler>,
}

/// All schedulers, the default first.
pub const ALL: &[SchedulerEntry] =
    &[min_rtt::ENTRY, round_robin::ENTRY, redundant::ENTRY, blest::ENTRY, ecf::ENTRY, linux::ENTRY];

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Data that was never sent: `bytes` of it wait.
    NewData {
        /// Bytes never sent.
        bytes: u64,
    },
    /// Data that was sent, and must go out again on another subflow.
    Reinjection {
        /// The subflows that have carried it.
        already_on: SubflowSet,
    },
}

/// All that a scheduler may look at.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// Now.
    pub now: Instant,
    /// What is to be sent.
    pub pending: Pending,
    /// The connection's subflows; includes closed slots.
    pub subflows: &'a [SubflowView],
    /// Bytes that the shared receive window still admits.
    pub window_room: u64,
    /// Bytes that may be outstanding at data level: the shared receive window, counted from the
    /// first byte that is not acknowledged, or the send buffer if that is smaller.
    pub window: u64,
    /// Bytes assigned to each subflow, by slot, that it has not sent yet; may be shorter than
    /// `subflows`.
    pub assigned: &'a [u64],
    /// How often so far a subflow had room, and the shared window or a full send buffer left it
    /// nothing to send: the occasions on which remedies are asked.
    pub blocked: u64,
}

/// What a scheduler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send the next segment on this subflow.
    Send(SubflowId),
    /// Send it on all of these: at once on one that has room, and copies on the others when
    /// they have room, unless it was acknowledged meanwhile. Of members that cannot carry data
    /// the copies wait; for data that is sent again, one member suffices.
    Duplicate(SubflowSet),
    /// The next segment's data is this subflow's, which sends it when it has room; the scheduler is
    /// asked at once about what follows. What waits so counts against the shared window, which is
    /// used to its last byte: of short segments there one is under way on a subflow at a time.
    /// Otherwise it is the same as [`Decision::Send`] for a subflow that has room and for which
    /// nothing waits; and there is nothing to be said in advance about data that is sent again, the
    /// very first data, or in plain TCP: those wait for room.
    Assign(SubflowId),
    /// Send nothing now. Asked again at `until` (a millisecond from now at the earliest), and
    /// before that whenever a segment arrives or the application writes.
    ///
    /// Whoever waits while nothing is in flight on any usable subflow could wait for ever: the
    /// engine then goes by the lowest round-trip time, and counts a bad decision.
    Wait {
        /// When to ask again at the latest.
        until: Option<Instant>,
    },
}

/// Chooses subflows.
pub trait Scheduler: Debug + Send {
    /// Choose for the next segment. Called again for each segment.
    ///
    /// What is chosen is not always sent: the shared window or Nagle's algorithm may forbid it.
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision;

    /// `bytes` of new data were mapped to `subflow`.
    fn on_sent(&mut self, _subflow: SubflowId, _bytes: u64) {}
}

impl ScheduleContext<'_> {
    /// The subflows that may carry data now: the regular ones, or the backups if no regular one
    /// is usable. RFC 8684 §3.3.8.
    pub fn candidates(&self) -> impl Iterator<Item = &SubflowView> {
        let usable = |view: &&SubflowView| view.usability == Usability::Usable;
        let backup = !self.subflows.iter().filter(usable).any(|view| !view.backup);
        self.subflows.iter().filter(usable).filter(move |view| view.backup == backup)
    }

    /// The subflows that may carry what is pending now: usable ones that have not carried it yet.
    /// The regular ones, or the backups if there is no such regular one.
    pub fn eligible(&self) -> impl Iterator<Item = &SubflowView> {
        let open = |view: &&SubflowView| {
            view.usability == Usability::Usable && !self.has_carried(view.id.slot)
        };
        let backup = !self.subflows.iter().filter(open).any(|view| !view.backup);
        self.subflows.iter().filter(open).filter(move |view| view.backup == backup)
    }

    /// Bytes that wait for room on the subflow in `slot`.
    pub fn assigned(&self, slot: u8) -> u64 {
        self.assigned.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// Is what is pending data that the subflow in `slot` has carried?
    pub fn has_carried(&self, slot: u8) -> bool {
        match self.pending {
            Pending::NewData { .. } => false,
            Pending::Reinjection { already_on } => already_on.contains(slot),
        }
    }

    /// The fastest of the candidates, whether it has room or not.
    pub fn fastest(&self) -> Option<&SubflowView> {
        self.candidates().min_by_key(|view| view.srtt_or_max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::SubflowSet;

    pub(super) const NEW: Pending = Pending::NewData { bytes: 1 << 20 };
    pub(super) const AGAIN: Pending = Pending::Reinjection { already_on: SubflowSet::EMPTY };

    /// A window of 2 MB with room for everything.
    pub(super) fn context(subflows: &[SubflowView], pending: Pending) -> ScheduleContext<'_> {
        let now = Instant::ZERO;
        ScheduleContext {
            now,
            pending,
            subflows,
            window_room: 2_000_000,
            window: 2_000_000,
            assigned: &[],
            blocked: 0,
        }
    }
}
