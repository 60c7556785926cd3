//! Schedulers of the original kernel that differ from the published ones: `mptcp_sched.c` and
//! `mptcp_rr.c` of Multipath TCP 0.89.5.

use super::{BuildScheduler, Decision, Pending, ScheduleContext, Scheduler};
use crate::view::{Phase, SubflowId, SubflowSet, SubflowView, Usability};
use anabranch_config::part_without_parameters;

/// Lowest round-trip time first, as in the original kernel.
///
/// A subflow in recovery from a timeout gets no data. A reinjection uses a subflow with room that has
/// not carried the data, and does not wait for a faster one that is full.
#[derive(Clone, Copy, Debug, Default)]
pub struct MptcpOrg;

part_without_parameters! {
    /// Selects [`MptcpOrg`].
    pub struct MptcpOrgConfig;
    NAME = "mptcp_org";
    SUMMARY = "The original kernel's default: lowest smoothed round-trip time among those with room.";
    SOURCE = "mptcp_sched.c of Multipath TCP 0.89.5";
}

impl BuildScheduler for MptcpOrgConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(MptcpOrg)
    }
}

/// The subflows that may carry the data. Backups count if no regular subflow is established.
fn eligible<'a>(context: &ScheduleContext<'a>) -> impl Iterator<Item = &'a SubflowView> {
    let regular = |view: &SubflowView| {
        !view.backup && !matches!(view.usability, Usability::Opening | Usability::Closed)
    };
    let backup = !context.subflows.iter().any(regular);
    let already_on = match context.pending {
        Pending::NewData { .. } => SubflowSet::EMPTY,
        Pending::Reinjection { already_on } => already_on,
    };
    context.subflows.iter().filter(move |view| {
        view.usability == Usability::Usable
            && view.phase != Phase::Loss
            && view.backup == backup
            && !already_on.contains(view.id.slot)
    })
}

fn lowest_rtt(context: &ScheduleContext<'_>) -> Decision {
    let available = eligible(context).filter(|view| view.can_send());
    let lowest = available.min_by_key(|view| view.srtt_or_max());
    lowest.map_or(Decision::Wait { until: None }, |view| Decision::Send(view.id))
}

impl Scheduler for MptcpOrg {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        lowest_rtt(context)
    }
}

/// One segment on each subflow in turn, as in the original kernel.
///
/// The choice ignores the peer's window for a subflow: a segment beyond that window waits on the
/// subflow. Reinjections follow [`MptcpOrg`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MptcpOrgRoundRobin {
    /// The subflows that have had their turn in this round.
    served: SubflowSet,
}

part_without_parameters! {
    /// Selects [`MptcpOrgRoundRobin`].
    pub struct MptcpOrgRoundRobinConfig;
    NAME = "mptcp_org_round_robin";
    SUMMARY = "The original kernel's round robin: a segment on each subflow with room in turn.";
    SOURCE = "mptcp_rr.c of Multipath TCP 0.89.5";
}

impl BuildScheduler for MptcpOrgRoundRobinConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::<MptcpOrgRoundRobin>::default()
    }
}

impl Scheduler for MptcpOrgRoundRobin {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        if let Pending::Reinjection { .. } = context.pending {
            return lowest_rtt(context);
        }
        let has_room = |view: &&SubflowView| {
            let used = view.bytes_in_flight + context.assigned(view.id.slot);
            used + u64::from(view.mss) <= view.cwnd
        };
        let available = || eligible(context).filter(has_room);
        if available().all(|view| self.served.contains(view.id.slot)) {
            available().for_each(|view| self.served.remove(view.id.slot));
        }
        // The kernel's list begins with the newest subflow, and the kernel takes the last one that was
        // not served: the oldest.
        let next = available().find(|view| !self.served.contains(view.id.slot));
        next.map_or(Decision::Wait { until: None }, |view| match view.can_send() {
            true => Decision::Send(view.id),
            false => Decision::Assign(view.id),
        })
    }

    fn on_sent(&mut self, subflow: SubflowId, _bytes: u64) {
        self.served.insert(subflow.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{NEW, context};
    use crate::view::{Slot, tests::view};

    #[test]
    fn a_subflow_after_a_timeout_carries_nothing_new() {
        let (fast, slow) = (view(0, 20), view(1, 150));
        let after_timeout = SubflowView { phase: Phase::Loss, ..fast };
        let schedule = |views: &[SubflowView]| MptcpOrg.schedule(&context(views, NEW));
        assert_eq!(schedule(&[fast, slow]), Decision::Send(fast.id));
        assert_eq!(schedule(&[after_timeout, slow]), Decision::Send(slow.id));
        let failed = SubflowView { usability: Usability::PotentiallyFailed, ..fast };
        let backup = SubflowView { backup: true, ..slow };
        assert_eq!(schedule(&[failed, backup]), Decision::Wait { until: None });
    }

    #[test]
    fn a_reinjection_does_not_wait_for_a_full_subflow() {
        let full = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let views = [full, view(1, 150), view(2, 200)];
        let pending = Pending::Reinjection { already_on: SubflowSet::of(Slot(1)) };
        let decision = MptcpOrg.schedule(&context(&views, pending));
        assert_eq!(decision, Decision::Send(views[2].id));
    }

    #[test]
    fn subflows_take_turns_and_full_ones_are_left_out() {
        let mut scheduler = MptcpOrgRoundRobin::default();
        let mut take = |views: &[SubflowView]| {
            let decision = scheduler.schedule(&context(views, NEW));
            if let Decision::Send(id) | Decision::Assign(id) = decision {
                scheduler.on_sent(id, 1000);
            }
            decision
        };
        let (first, second) = (view(0, 20), view(1, 150));
        let both = [first, second];
        assert_eq!(
            [take(&both), take(&both), take(&both)],
            [0, 1, 0].map(|i| Decision::Send(both[i].id))
        );
        let full = SubflowView { bytes_in_flight: 19_500, ..second };
        assert_eq!(take(&[first, full]), Decision::Send(first.id));
        let no_window = SubflowView { available_cwnd: 0, ..second };
        assert_eq!(take(&[first, no_window]), Decision::Assign(second.id));
    }
}
