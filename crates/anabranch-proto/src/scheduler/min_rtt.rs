//! The default scheduler: the usable subflow with the lowest smoothed round-trip time. Raiciu et
//! al., NSDI 2012; Paasch et al., CSWS 2014 ("LowRTT").

use super::{BuildScheduler, Decision, ScheduleContext, Scheduler};
use crate::view::{SubflowView, Usability};
use anabranch_config::part_without_parameters;

/// Lowest round-trip time first.
///
/// Backups carry data only if no regular subflow is usable. A reinjection uses a subflow that has
/// not carried the data before. If such a subflow exists but is full, the scheduler waits for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

part_without_parameters! {
    /// Selects [`MinRtt`].
    pub struct MinRttConfig;
    NAME = "min_rtt";
    SUMMARY = "Uses the subflow with the lowest smoothed round-trip time that has room.";
    SOURCE = "Raiciu et al., NSDI 2012; the default of Multipath TCP for Linux";
}

impl BuildScheduler for MinRttConfig {
    fn as_linux(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(MinRtt)
    }
}

impl Scheduler for MinRtt {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        // The same choice as among `context.eligible()`, with a look at the subflows with room only: the
        // default scheduler is asked for every segment, and most subflows are full.
        let may_carry = |view: &SubflowView, backup| {
            view.usability == Usability::Usable
                && view.backup == backup
                && !context.has_carried(view.id.slot)
        };
        for backup in [false, true] {
            let mut best: Option<&SubflowView> = None;
            for slot in context.with_room.slots() {
                let view = &context.subflows[slot];
                if may_carry(view, backup)
                    && best.is_none_or(|best| view.srtt_or_max() < best.srtt_or_max())
                {
                    best = Some(view);
                }
            }
            if let Some(view) = best {
                return Decision::Send(view.id);
            }
            if context.subflows.iter().any(|view| may_carry(view, backup)) {
                return Decision::Wait { until: None };
            }
        }
        Decision::Wait { until: None }
    }

    fn waits_for_room(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Pending;
    use crate::scheduler::tests::{NEW, context};
    use crate::view::Slot;
    use crate::view::{SubflowId, SubflowSet, tests::view};
    use anabranch_wire::Duration;

    fn schedule(subflows: &[SubflowView], pending: Pending) -> Decision {
        MinRtt.schedule(&context(subflows, pending))
    }

    #[test]
    fn the_lowest_round_trip_time_with_room_wins() {
        let (fast, slow) = (view(0, 20), view(1, 150));
        assert_eq!(schedule(&[fast, slow], NEW), Decision::Send(fast.id));
        let full = SubflowView { available_cwnd: 100, ..fast };
        assert_eq!(schedule(&[full, slow], NEW), Decision::Send(slow.id));
    }

    #[test]
    fn a_subflow_without_sample_comes_last() {
        let unknown = SubflowView { srtt: None, ..view(0, 1) };
        let slow = view(1, 3000);
        assert_eq!(schedule(&[unknown, slow], NEW), Decision::Send(slow.id));
    }

    #[test]
    fn a_reinjection_waits_for_a_full_subflow_that_has_not_carried_it() {
        let (fast, slow) = (view(0, 20), view(1, 150));
        let again = Pending::Reinjection { already_on: SubflowSet::of(Slot(1)) };
        assert_eq!(schedule(&[fast, slow], again), Decision::Send(fast.id));
        let full = SubflowView { available_cwnd: 0, ..fast };
        assert_eq!(schedule(&[full, slow], again), Decision::Wait { until: None });
    }

    #[test]
    fn a_backup_carries_data_only_when_no_regular_subflow_is_usable() {
        // RFC 8684 §3.3.8
        let regular = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let backup = SubflowView { backup: true, ..view(1, 10) };
        assert_eq!(schedule(&[regular, backup], NEW), Decision::Wait { until: None });
        let failed = SubflowView { usability: Usability::PotentiallyFailed, ..regular };
        assert_eq!(schedule(&[failed, backup], NEW), Decision::Send(backup.id));
        assert_eq!(backup.id, SubflowId { slot: Slot(1), generation: 0 });
        assert_eq!(backup.srtt, Some(Duration::from_millis(10)));
    }
}
