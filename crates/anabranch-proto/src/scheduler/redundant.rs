//! Redundant: everything on every subflow, for the lowest delay that any of them offers. This is
//! the `redundant` scheduler of Multipath TCP for Linux.

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::SubflowSet;
use anabranch_config::part_without_parameters;

/// Sends all new data on all subflows. Backups take part only if no regular subflow is usable.
///
/// Each subflow carries the stream in order as far as its congestion window allows. The engine
/// skips data that the peer has acknowledged in the meantime (see [`Decision::Duplicate`]). The
/// first version for Linux dropped the copies for a subflow without room. Here the copies wait, as
/// in the later version.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

part_without_parameters! {
    /// Selects [`Redundant`].
    pub struct RedundantConfig;
    NAME = "redundant";
    SUMMARY = "Sends everything on every subflow.";
    SOURCE = "mptcp_redundant.c of Multipath TCP for Linux";
}

impl BuildScheduler for RedundantConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Redundant)
    }
}

impl Scheduler for Redundant {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        if let Pending::Reinjection { .. } = context.pending {
            return MinRtt.schedule(context);
        }
        let mut all = SubflowSet::EMPTY;
        let mut room = false;
        for view in context.candidates() {
            all.insert(view.id.slot);
            room |= view.can_send();
        }
        if room { Decision::Duplicate(all) } else { Decision::Wait { until: None } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, NEW, context};
    use crate::view::Slot;
    use crate::view::{SubflowView, Usability, tests::view};

    fn schedule(subflows: &[SubflowView]) -> Decision {
        Redundant.schedule(&context(subflows, NEW))
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
    fn what_is_sent_again_goes_on_one() {
        let subflows = [view(0, 500), view(1, 20)];
        let decision = Redundant.schedule(&context(&subflows, AGAIN));
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }
}
