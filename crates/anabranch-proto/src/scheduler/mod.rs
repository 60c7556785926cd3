//! Schedulers choose the subflow that carries the next data, or decide to wait. RFC 8684 §3.3.8
//! leaves this choice to the sender.

mod blest;
mod daps;
mod ecf;
mod linux;
mod min_rtt;
mod mptcp_org;
mod otias;
mod redundant;
mod round_robin;
mod sttf;

pub use blest::{Blest, BlestConfig, BlestRule, BlestRuleName};
pub use daps::{Daps, DapsConfig};
pub use ecf::{Ecf, EcfConfig, EcfRule};
pub use linux::{Linux, LinuxSchedulerConfig};
pub use min_rtt::{MinRtt, MinRttConfig};
pub use mptcp_org::{
    MptcpOrg, MptcpOrgRoundRobin, MptcpOrgRoundRobinConfig, MptcpOrgSchedulerConfig,
};
pub use otias::{Otias, OtiasConfig};
pub use redundant::{CopyRule, Redundant, RedundantConfig};
pub use round_robin::{RoundRobin, RoundRobinConfig};
pub use sttf::{Sttf, SttfConfig};

use core::fmt::Debug;

use anabranch_config::parts;
use anabranch_wire::Instant;

use crate::view::{Slot, SubflowId, SubflowSet, SubflowView, Usability};

parts! {
    /// A scheduler with its parameters. The first is the default.
    pub enum SchedulerConfig: "scheduler", dyn BuildScheduler {
        MinRtt(MinRttConfig),
        RoundRobin(RoundRobinConfig),
        Redundant(RedundantConfig),
        Blest(BlestConfig),
        Ecf(EcfConfig),
        Otias(OtiasConfig),
        Sttf(SttfConfig),
        Daps(DapsConfig),
        Linux(LinuxSchedulerConfig),
        MptcpOrg(MptcpOrgSchedulerConfig),
        MptcpOrgRoundRobin(MptcpOrgRoundRobinConfig),
    }
}

#[cfg(feature = "serde")]
anabranch_config::written_by_name!(SchedulerConfig);

impl Default for SchedulerConfig {
    fn default() -> Self {
        MinRttConfig {}.into()
    }
}

/// Parameters of a scheduler: its constructor, and facts that other crates need.
pub trait BuildScheduler {
    /// Returns `true` if Linux itself schedules like this, as far as users of scenarios need to know.
    fn as_linux(&self) -> bool {
        false
    }

    /// Creates the scheduler.
    fn build(&self) -> Box<dyn Scheduler>;
}

/// The data that waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// New data.
    NewData {
        /// Bytes that were never sent.
        bytes: u64,
    },
    /// Data that was sent before and must be reinjected on another subflow.
    Reinjection {
        /// The subflows that have carried the data.
        already_on: SubflowSet,
    },
}

/// The information that a scheduler may use.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// The current time.
    pub now: Instant,
    /// The data that waits to be sent.
    pub pending: Pending,
    /// The connection's subflows, including closed slots.
    pub subflows: &'a [SubflowView],
    /// Those of `subflows` that [can send](SubflowView::can_send) now.
    pub with_room: SubflowSet,
    /// Bytes that the shared receive window still admits.
    pub available_window: u64,
    /// Limit of the data outstanding at the data level: the shared receive window, counted from the
    /// first unacknowledged byte, or the send buffer if that is smaller.
    pub window: u64,
    /// Bytes assigned to each subflow but not yet sent, by slot. The slice may be shorter than
    /// `subflows`.
    pub assigned: &'a [u64],
    /// Number of times that a subflow had room while the shared window or a full send buffer left
    /// it nothing to send. On these occasions the engine asks the remedies.
    pub blocked: u64,
    /// More, for schedulers that ask for it ([`Scheduler::follows_linux`]).
    pub linux: LinuxView<'a>,
}

/// The information that schedulers of Linux use besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxView<'a> {
    /// Bytes that pacing would send on each subflow in one round-trip time, as of its last
    /// acknowledgement, by slot.
    pub paced_windows: &'a [u64],
    /// Memory in bytes of the data sent on each subflow that the peer has not acknowledged
    /// cumulatively, by slot. Lost data and data beyond a hole count. Where the slice is shorter, it
    /// is estimated from the data in flight.
    pub sent_memory: &'a [u64],
    /// The subflows whose send buffers are full. Empty if the subflows have none of their own.
    pub full: SubflowSet,
    /// Whether the new data begins a page fragment. `None` if the host does not keep written data
    /// in page fragments, as Linux does.
    pub begins_fragment: Option<bool>,
    /// Memory of the data that was never sent, on a host whose send buffer charges segments. On other
    /// hosts, the number of its bytes.
    pub unsent_memory: u64,
}

/// A scheduler's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send the next segment on this subflow.
    Send(SubflowId),
    /// Send the next segment on all of these subflows: at once on one that has room, and as copies
    /// on the others as soon as they have room. The engine drops copies of data that was
    /// acknowledged in the meantime. Copies for members that cannot carry data wait. A reinjection
    /// uses only one member.
    Duplicate(SubflowSet),
    /// Assign the next segment's data to this subflow, which sends it as soon as it has room. The
    /// engine immediately asks the scheduler about the following data.
    ///
    /// Assigned data counts against the shared window and fills it to the last byte. At that edge,
    /// a subflow has at most one short segment in flight. If the subflow has room and nothing is
    /// assigned to it yet, this decision equals [`Decision::Send`]. It is not available for
    /// reinjections, the first data of a connection, and plain TCP: that data waits until the
    /// subflow has room.
    Assign(SubflowId),
    /// Send nothing now. The engine asks again at `until` (at least a millisecond from now), and
    /// earlier whenever a segment arrives or the application writes.
    ///
    /// Waiting while nothing is in flight on any usable subflow could stall the connection for
    /// ever. The engine then sends on the subflow with the lowest round-trip time and counts a bad
    /// decision.
    Wait {
        /// Latest time at which the engine asks again.
        until: Option<Instant>,
    },
}

/// Chooses the subflow that carries the next data.
pub trait Scheduler: Debug + Send {
    /// Choose the subflow for the next segment. The engine calls this for each segment.
    ///
    /// The engine does not always send on the chosen subflow: the shared window or Nagle's
    /// algorithm may forbid it.
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision;

    /// Returns `true` if the scheduler uses [`ScheduleContext::linux`], which is empty otherwise. The
    /// engine asks once.
    fn follows_linux(&self) -> bool {
        false
    }

    /// Returns `true` if the scheduler waits, without a time and without a change of its state, while
    /// no usable subflow has room. The engine then need not ask. It asks this once.
    fn waits_for_room(&self) -> bool {
        false
    }

    /// `bytes` of new data were mapped to `subflow`.
    fn on_sent(&mut self, _subflow: SubflowId, _bytes: u64) {}
}

impl ScheduleContext<'_> {
    /// The subflows that may carry data now: the regular subflows, or the backups if no regular
    /// subflow is usable. RFC 8684 §3.3.8.
    pub fn candidates(&self) -> impl Iterator<Item = &SubflowView> {
        let usable = |view: &&SubflowView| view.usability == Usability::Usable;
        let backup = !self.subflows.iter().filter(usable).any(|view| !view.backup);
        self.subflows.iter().filter(usable).filter(move |view| view.backup == backup)
    }

    /// The subflows that may carry the pending data: usable subflows that have not carried it yet.
    /// These are the regular ones, or the backups if there are no such regular ones.
    pub fn eligible(&self) -> impl Iterator<Item = &SubflowView> {
        let open = |view: &&SubflowView| {
            view.usability == Usability::Usable && !self.has_carried(view.id.slot)
        };
        let backup = !self.subflows.iter().filter(open).any(|view| !view.backup);
        self.subflows.iter().filter(open).filter(move |view| view.backup == backup)
    }

    /// Bytes assigned to the subflow in `slot` that wait for room.
    pub fn assigned(&self, slot: Slot) -> u64 {
        self.assigned.get(slot.index()).copied().unwrap_or(0)
    }

    /// Returns `true` if the pending data is a reinjection that the subflow in `slot` has carried
    /// before.
    pub fn has_carried(&self, slot: Slot) -> bool {
        match self.pending {
            Pending::NewData { .. } => false,
            Pending::Reinjection { already_on } => already_on.contains(slot),
        }
    }

    /// The candidate with the lowest round-trip time, whether it has room or not.
    pub fn fastest(&self) -> Option<&SubflowView> {
        self.candidates().min_by_key(|view| view.srtt_or_max())
    }
}

/// Assign new data to the candidate with the earliest `arrival`, in seconds. Reinjections use the
/// eligible subflow with room and the earliest arrival, or wait.
fn assign_earliest(
    context: &ScheduleContext<'_>,
    arrival: impl Fn(&SubflowView) -> f64,
) -> Decision {
    let arrivals =
        |view: &&SubflowView, other: &&SubflowView| arrival(view).total_cmp(&arrival(other));
    let earliest = match context.pending {
        Pending::NewData { .. } => context.candidates().min_by(arrivals),
        Pending::Reinjection { .. } => {
            context.eligible().filter(|view| view.can_send()).min_by(arrivals)
        }
    };
    match (earliest, context.pending) {
        (Some(view), Pending::NewData { .. }) => Decision::Assign(view.id),
        (Some(view), Pending::Reinjection { .. }) => Decision::Send(view.id),
        (None, _) => Decision::Wait { until: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::SubflowSet;

    pub(super) const NEW: Pending = Pending::NewData { bytes: 1 << 20 };
    pub(super) const AGAIN: Pending = Pending::Reinjection { already_on: SubflowSet::EMPTY };

    fn with_room(subflows: &[SubflowView]) -> SubflowSet {
        let mut set = SubflowSet::EMPTY;
        for (slot, view) in (0..).map(Slot).zip(subflows) {
            if view.can_send() {
                set.insert(slot);
            }
        }
        set
    }

    /// A window of 2 MB with room for everything.
    pub(super) fn context(subflows: &[SubflowView], pending: Pending) -> ScheduleContext<'_> {
        let now = Instant::ZERO;
        ScheduleContext {
            now,
            pending,
            subflows,
            with_room: with_room(subflows),
            available_window: 2_000_000,
            window: 2_000_000,
            assigned: &[],
            blocked: 0,
            linux: LinuxView { paced_windows: &[24_000; 4], ..LinuxView::default() },
        }
    }
}
