//! Opportunistic retransmission (M1): if the shared window blocks the fast subflow, it reinjects
//! the data that the slow subflow has not delivered. Raiciu et al., NSDI 2012 §4.2.

use super::{BuildRemedy, Remedy, RemedyActions, RemedyContext};
use crate::view::{SubflowView, Usability};
use anabranch_config::part_without_parameters;

/// Opportunistic retransmission as in the Linux implementation of the paper's authors.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpportunisticRetransmission;

/// Reinject only if the RTT of the carrier is more than this many times longer, unless its window
/// is tiny. All versions of the implementation do so; the paper does not state it.
const RTT_RATIO: u64 = 4;
/// A window of at most this many segments counts as tiny.
const TINY_WINDOW_SEGMENTS: u64 = 4;

part_without_parameters! {
    /// Selects [`OpportunisticRetransmission`].
    pub struct OpportunisticRetransmissionConfig;
    NAME = "opportunistic_retransmission";
    SUMMARY = "M1: reinjects the data that blocks the receive window on a subflow that has room.";
    SOURCE = "Raiciu et al., NSDI 2012, §4.2; mptcp_sched.c of Multipath TCP for Linux";
}

impl BuildRemedy for OpportunisticRetransmissionConfig {
    fn build(&self) -> Box<dyn Remedy> {
        Box::new(OpportunisticRetransmission)
    }
}

impl OpportunisticRetransmission {
    fn decide(context: &RemedyContext<'_>) -> RemedyActions {
        let fast = &context.subflows[context.blocked];
        let mut carriers = context.subflows.iter().filter(|view| {
            view.id.slot != fast.id.slot
                && view.usability != Usability::Closed
                && context.head_carried_by.contains(view.id.slot)
        });
        let reinject = !context.head_carried_by.contains(fast.id.slot)
            && verdict(fast, &mut carriers).unwrap_or(false);
        RemedyActions { reinject, penalise: None }
    }
}

/// The first carrier that has a tiny window, or that is not much slower than `fast`, decides.
/// Otherwise the verdict is yes if there is any carrier.
fn verdict<'a>(
    fast: &SubflowView,
    carriers: &mut impl Iterator<Item = &'a SubflowView>,
) -> Option<bool> {
    let mut any = None;
    for slow in carriers {
        if slow.cwnd <= TINY_WINDOW_SEGMENTS * u64::from(slow.mss) {
            return Some(true);
        }
        if fast.srtt_or_max() * RTT_RATIO >= slow.srtt_or_max() {
            return Some(false);
        }
        any = Some(true);
    }
    any
}

impl Remedy for OpportunisticRetransmission {
    fn on_window_limited(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        Self::decide(context)
    }

    fn on_send_buffer_full(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        Self::decide(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Slot;
    use crate::view::{SubflowSet, tests::view};
    use anabranch_wire::Instant;

    fn reinjects(subflows: &[SubflowView], head_carried_by: SubflowSet) -> bool {
        let context = RemedyContext {
            now: Instant::ZERO,
            subflows,
            blocked: Slot(0),
            head_carried_by,
            send_buffer_full: false,
        };
        OpportunisticRetransmission.on_window_limited(&context).reinject
    }

    #[test]
    fn the_head_is_sent_again_past_a_subflow_more_than_four_times_slower() {
        assert!(reinjects(&[view(0, 20), view(1, 81)], SubflowSet::of(Slot(1))));
        assert!(!reinjects(&[view(0, 20), view(1, 80)], SubflowSet::of(Slot(1))));
    }

    #[test]
    fn a_tiny_window_is_reason_enough() {
        let tiny = SubflowView { cwnd: 4_000, ..view(1, 30) };
        assert!(reinjects(&[view(0, 20), tiny], SubflowSet::of(Slot(1))));
    }

    #[test]
    fn the_same_subflow_never_carries_it_twice() {
        let mut both = SubflowSet::of(Slot(1));
        both.insert(Slot(0));
        assert!(!reinjects(&[view(0, 20), view(1, 500)], both));
        assert!(!reinjects(&[view(0, 20), view(1, 500)], SubflowSet::of(Slot(0))));
    }
}
