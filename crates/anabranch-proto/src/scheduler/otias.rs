//! OTIAS, out-of-order transmission for in-order arrival scheduling: the subflow on which the next
//! segment arrives first, even if it has to wait for the congestion window. Yang, Wang, Amer, 2014.

use super::{BuildScheduler, Decision, ScheduleContext, Scheduler};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// Out-of-order transmission for in-order arrival scheduling.
///
/// A segment that the congestion window admits arrives after half a round-trip time. A segment that
/// finds `queued` segments before it, of which the window admits `room`, first waits for
/// `⌈(queued − room + 1) / cwnd⌉` round-trip times. The segment is assigned to the subflow with the
/// earliest arrival.
///
/// We know the rule from the authors' implementation for Linux (`mptcp_otias.c`). Reinjections
/// follow it as well, but only on subflows with room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Otias;

part_without_parameters! {
    /// Selects [`Otias`].
    pub struct OtiasConfig;
    NAME = "otias";
    SUMMARY = "Uses the subflow on which the segment arrives first, ahead of its window.";
    SOURCE = "Yang et al., 2014; mptcp_otias.c of Multipath TCP for Linux";
}

impl BuildScheduler for OtiasConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Otias)
    }
}

/// Time until the next segment on this subflow arrives, in seconds.
fn arrival(context: &ScheduleContext<'_>, view: &SubflowView) -> f64 {
    let srtt = view.srtt.map_or(f64::INFINITY, |srtt| srtt.as_secs_f64());
    let mss = u64::from(view.mss.max(1));
    let queued = context.assigned(view.id.slot).div_ceil(mss);
    let room = view.available_cwnd / mss;
    let rounds = match queued < room {
        true => 0,
        false => (queued - room + 1).div_ceil((view.cwnd / mss).max(1)),
    };
    (rounds as f64 + 0.5) * srtt
}

impl Scheduler for Otias {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        super::assign_earliest(context, |view| arrival(context, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, NEW, context};
    use crate::view::tests::view;

    /// The subflow of the next segment, if `assigned` bytes wait for each. Windows are 20 segments
    /// of 1000 bytes. The first subflow is full, and the second idle.
    fn ask(slow_ms: u64, assigned: &[u64]) -> Decision {
        let slow = SubflowView { available_cwnd: 20_000, bytes_in_flight: 0, ..view(1, slow_ms) };
        let subflows = [SubflowView { available_cwnd: 0, ..view(0, 20) }, slow];
        let context = ScheduleContext { assigned, ..context(&subflows, NEW) };
        Otias.schedule(&context)
    }

    #[test]
    fn a_segment_waits_for_the_fast_subflow_if_it_arrives_sooner() {
        // On the fast subflow, 1 to 20 segments wait one round trip and arrive after 1.5 · 20 ms, and
        // 21 to 40 segments after 50 ms. The slow subflow delivers after half a round trip.
        let [fast, slow] = [view(0, 20).id, view(1, 1).id];
        assert_eq!(ask(62, &[]), Decision::Assign(fast));
        assert_eq!(ask(58, &[]), Decision::Assign(slow));
        assert_eq!(ask(62, &[19_000]), Decision::Assign(fast));
        assert_eq!(ask(62, &[20_000]), Decision::Assign(slow));
        // 20 segments fit into the window of the slow one. The next waits: 1.5 · 62 = 93 ms.
        assert_eq!(ask(62, &[20_000, 19_000]), Decision::Assign(slow));
        assert_eq!(ask(62, &[20_000, 20_000]), Decision::Assign(fast));
    }

    #[test]
    fn data_sent_again_needs_room() {
        let subflows = [SubflowView { available_cwnd: 0, ..view(0, 20) }, view(1, 500)];
        let decision = Otias.schedule(&context(&subflows, AGAIN));
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }

    #[test]
    fn an_unmeasured_subflow_comes_last() {
        let subflows = [SubflowView { srtt: None, ..view(0, 20) }, view(1, 500)];
        assert_eq!(Otias.schedule(&context(&subflows, NEW)), Decision::Assign(subflows[1].id));
    }
}
