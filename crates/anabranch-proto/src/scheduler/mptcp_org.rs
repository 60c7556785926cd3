//! Schedulers of the original kernel that differ from the published ones: `mptcp_sched.c` of Multipath
//! TCP 0.88 to 0.95, and `mptcp_rr.c` of 0.89.5.

use super::{BuildScheduler, Decision, Pending, ScheduleContext, Scheduler};
use crate::view::{RecoveryPhase, SubflowId, SubflowSet, SubflowView, Usability};
use anabranch_config::{Part, part_without_parameters};

/// Lowest round-trip time first, as in the original kernel.
///
/// A subflow in recovery from a timeout gets no data. A reinjection uses a subflow with room that has
/// not carried the data. Versions of the kernel differ in both rules ([`MptcpOrgSchedulerConfig`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct MptcpOrg {
    rules: MptcpOrgSchedulerConfig,
}

/// Rules of [`MptcpOrg`] in which versions of the kernel differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct MptcpOrgSchedulerConfig {
    /// Whether a subflow gets data while it recovers from a timeout, as in version 0.88.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "mptcp_sched.c, version 0.89.5")))]
    pub uses_recovering: bool,
    /// Whether a reinjection waits while all subflows that have not carried the data are full, as in
    /// versions from about 0.91 on. If not, a subflow that has carried the data sends it again.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "mptcp_sched.c, version 0.89.5")))]
    pub waits_for_full: bool,
}

impl Part for MptcpOrgSchedulerConfig {
    const NAME: &'static str = "mptcp_org";
    const SUMMARY: &'static str =
        "The original kernel's default: lowest smoothed round-trip time among those with room.";
    const SOURCE: &'static str = "mptcp_sched.c of Multipath TCP 0.88 to 0.95";
}

impl BuildScheduler for MptcpOrgSchedulerConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(MptcpOrg::new(*self))
    }
}

impl MptcpOrg {
    /// The scheduler with these rules.
    pub fn new(rules: MptcpOrgSchedulerConfig) -> Self {
        MptcpOrg { rules }
    }

    /// The subflows that may carry data. Backups count if no regular subflow is established.
    fn open<'a>(&self, context: &ScheduleContext<'a>) -> impl Iterator<Item = &'a SubflowView> {
        let regular = |view: &SubflowView| {
            !view.backup && !matches!(view.usability, Usability::Opening | Usability::Closed)
        };
        let backup = !context.subflows.iter().any(regular);
        let uses_recovering = self.rules.uses_recovering;
        context.subflows.iter().filter(move |view| {
            view.usability == Usability::Usable
                && (uses_recovering || view.phase != RecoveryPhase::Loss)
                && view.backup == backup
        })
    }

    fn choose<'a>(&self, context: &ScheduleContext<'a>) -> Option<&'a SubflowView> {
        let available = || self.open(context).filter(|view| view.can_send());
        let fresh = available().filter(|view| !context.has_carried(view.id.slot));
        let lowest = fresh.min_by_key(|view| view.srtt_or_max());
        // The kernel forgets who has carried the data, and takes the last subflow of its list, which
        // begins with the newest.
        lowest.or_else(|| available().next().filter(|_| !self.rules.waits_for_full))
    }
}

impl Scheduler for MptcpOrg {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let chosen = self.choose(context);
        chosen.map_or(Decision::Wait { until: None }, |view| Decision::Send(view.id))
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
        let mut default = MptcpOrg::default();
        if let Pending::Reinjection { .. } = context.pending {
            return default.schedule(context);
        }
        let has_room = |view: &&SubflowView| {
            let used = view.bytes_in_flight + context.assigned(view.id.slot);
            used + u64::from(view.mss) <= view.cwnd
        };
        let available = || default.open(context).filter(has_room);
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

    fn ask(rules: MptcpOrgSchedulerConfig, views: &[SubflowView], pending: Pending) -> Decision {
        MptcpOrg::new(rules).schedule(&context(views, pending))
    }

    #[test]
    fn a_subflow_after_a_timeout_carries_nothing_new() {
        let (fast, slow) = (view(0, 20), view(1, 150));
        let after_timeout = SubflowView { phase: RecoveryPhase::Loss, ..fast };
        let schedule = |views: &[SubflowView]| ask(MptcpOrgSchedulerConfig::default(), views, NEW);
        assert_eq!(schedule(&[fast, slow]), Decision::Send(fast.id));
        assert_eq!(schedule(&[after_timeout, slow]), Decision::Send(slow.id));
        let failed = SubflowView { usability: Usability::PotentiallyFailed, ..fast };
        let backup = SubflowView { backup: true, ..slow };
        assert_eq!(schedule(&[failed, backup]), Decision::Wait { until: None });
    }

    #[test]
    fn a_reinjection_does_not_wait_for_a_faster_full_subflow() {
        let full = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let views = [full, view(1, 150), view(2, 200)];
        let pending = Pending::Reinjection { already_on: SubflowSet::of(Slot(1)) };
        let decision = ask(MptcpOrgSchedulerConfig::default(), &views, pending);
        assert_eq!(decision, Decision::Send(views[2].id));
    }

    #[test]
    fn version_0_88_uses_a_subflow_that_recovers_from_a_timeout() {
        let rules =
            MptcpOrgSchedulerConfig { uses_recovering: true, ..MptcpOrgSchedulerConfig::default() };
        let views = [SubflowView { phase: RecoveryPhase::Loss, ..view(0, 20) }, view(1, 150)];
        assert_eq!(ask(rules, &views, NEW), Decision::Send(views[0].id));
    }

    #[test]
    fn a_reinjection_waits_for_full_subflows_or_repeats_on_one_that_has_carried_it() {
        let full = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let views = [full, view(1, 150), view(2, 120)];
        let mut both = SubflowSet::of(Slot(1));
        both.insert(Slot(2));
        let pending = Pending::Reinjection { already_on: both };
        let decide = |waits_for_full| {
            let rules =
                MptcpOrgSchedulerConfig { waits_for_full, ..MptcpOrgSchedulerConfig::default() };
            ask(rules, &views, pending)
        };
        assert_eq!(decide(true), Decision::Wait { until: None });
        assert_eq!(decide(false), Decision::Send(views[1].id));
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
