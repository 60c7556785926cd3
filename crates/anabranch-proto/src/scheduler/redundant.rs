//! Redundant: everything on every subflow, for the lowest delay that any of them offers. This is
//! the `redundant` scheduler of Multipath TCP for Linux.

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::SubflowSet;
use anabranch_config::Part;

/// Sends all new data on all subflows. Backups take part only if no regular subflow is usable.
///
/// Each subflow carries the stream in order as far as its congestion window allows. The engine
/// skips data that the peer has acknowledged in the meantime (see [`Decision::Duplicate`]). The
/// first version for Linux drops the copies for a subflow without room ([`CopyRule::Drop`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant {
    copies: CopyRule,
}

/// Rule for the copies that a subflow has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum CopyRule {
    /// They wait for room, as in the later version for Linux.
    #[default]
    Wait,
    /// The subflow never carries this data, as in the first version for Linux.
    Drop,
}

/// Parameters of [`Redundant`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct RedundantConfig {
    /// Whether the copies for a subflow without room wait, or are dropped as in the first version for
    /// Linux.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "the later version for Linux")))]
    pub copies: CopyRule,
}

impl Part for RedundantConfig {
    const NAME: &'static str = "redundant";
    const SUMMARY: &'static str = "Sends everything on every subflow.";
    const SOURCE: &'static str = "mptcp_redundant.c of Multipath TCP for Linux";
}

impl BuildScheduler for RedundantConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Redundant::new(self.copies))
    }
}

impl Redundant {
    /// Redundant, with this rule for copies.
    pub fn new(copies: CopyRule) -> Self {
        Redundant { copies }
    }
}

impl Scheduler for Redundant {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        if let Pending::Reinjection { .. } = context.pending {
            return MinRtt.schedule(context);
        }
        let mut members = SubflowSet::EMPTY;
        let mut room = false;
        for view in context.candidates() {
            let has_room = view.can_send();
            if has_room || self.copies == CopyRule::Wait {
                members.insert(view.id.slot);
            }
            room |= has_room;
        }
        if room { Decision::Duplicate(members) } else { Decision::Wait { until: None } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, NEW, context};
    use crate::view::Slot;
    use crate::view::{SubflowView, Usability, tests::view};

    fn schedule(subflows: &[SubflowView]) -> Decision {
        Redundant::default().schedule(&context(subflows, NEW))
    }

    #[test]
    fn new_data_goes_on_all_that_may_carry_data() {
        let failed = SubflowView { usability: Usability::PotentiallyFailed, ..view(1, 20) };
        let backup = SubflowView { backup: true, ..view(2, 20) };
        let full = SubflowView { available_cwnd: 0, ..view(3, 20) };
        let Decision::Duplicate(set) = schedule(&[view(0, 500), failed, backup, full]) else {
            panic!("the scheduler must choose a set")
        };
        assert!(set.slots().eq([Slot(0), Slot(3)]));
    }

    #[test]
    fn nobody_has_room() {
        let full = SubflowView { available_cwnd: 0, ..view(0, 20) };
        assert_eq!(schedule(&[full]), Decision::Wait { until: None });
    }

    #[test]
    fn the_first_version_gives_full_subflows_no_copy() {
        let mut first = Redundant::new(CopyRule::Drop);
        let full = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let views = [full, view(1, 500), view(2, 30)];
        let Decision::Duplicate(set) = first.schedule(&context(&views, NEW)) else {
            panic!("the scheduler must choose a set")
        };
        assert!(set.slots().eq([Slot(1), Slot(2)]));
        let decision = first.schedule(&context(&[full], NEW));
        assert_eq!(decision, Decision::Wait { until: None });
    }

    #[test]
    fn what_is_sent_again_goes_on_one() {
        let subflows = [view(0, 500), view(1, 20)];
        let decision = Redundant::default().schedule(&context(&subflows, AGAIN));
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }
}
