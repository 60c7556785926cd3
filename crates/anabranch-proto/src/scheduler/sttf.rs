//! STTF, shortest transfer time first: the subflow on which the next segment arrives first, if
//! congestion windows grow meanwhile. Hurtig, Grinnemo, Brunstrom, Ferlin, Alay, Kuhn, ToN 2019.

use super::{BuildScheduler, Decision, ScheduleContext, Scheduler};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// Shortest transfer time first.
///
/// A segment that the congestion window admits takes half a round-trip time. Otherwise, it waits
/// behind the data assigned to the subflow, one round-trip time for each congestion window. Windows
/// double in slow start and grow by one segment in congestion avoidance. The segment is assigned to
/// the subflow with the shortest transfer time.
///
/// We know the rule from the authors' implementation for Linux (`mptcp_sttf.c`). It uses the last
/// sample of the round-trip time, and this one the smoothed round-trip time. It also redistributes
/// the data that waits when transfer times change. Here, data stays with its subflow. Reinjections
/// follow the rule as well, but only on subflows with room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sttf;

part_without_parameters! {
    /// Selects [`Sttf`].
    pub struct SttfConfig;
    NAME = "sttf";
    SUMMARY = "Uses the subflow with the shortest transfer time, with growing congestion windows.";
    SOURCE = "Hurtig et al., ToN 2019; mptcp_sttf.c of Multipath TCP for Linux";
}

impl BuildScheduler for SttfConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Sttf)
    }
}

/// Time until the next segment on this subflow arrives, in seconds.
fn transfer_time(context: &ScheduleContext<'_>, view: &SubflowView) -> f64 {
    let srtt = view.srtt.map_or(f64::INFINITY, |srtt| srtt.as_secs_f64());
    let mss = u64::from(view.mss.max(1));
    let waiting = context.assigned(view.id.slot) + mss;
    let rounds =
        rounds(waiting.saturating_sub(view.available_cwnd), view.cwnd.max(mss), view.ssthresh, mss);
    (f64::from(rounds) + 0.5) * srtt
}

/// Round trips until the last of `waiting` bytes, which the window does not admit now, is sent.
fn rounds(mut waiting: u64, mut cwnd: u64, ssthresh: u64, mss: u64) -> u32 {
    let mut rounds = 0;
    while waiting > 0 {
        cwnd += if cwnd <= ssthresh { cwnd } else { mss };
        waiting = waiting.saturating_sub(cwnd);
        rounds += 1;
    }
    rounds
}

impl Scheduler for Sttf {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        super::assign_earliest(context, |view| transfer_time(context, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, NEW, context};
    use crate::view::tests::view;

    #[test]
    fn windows_grow_while_data_waits() {
        // Slow start from 10 segments: 20, 40 and 80 segments in the next rounds.
        let slow_start = |waiting| rounds(waiting, 10, u64::MAX, 1);
        assert_eq!([0, 1, 20, 21, 60, 61].map(slow_start), [0, 1, 1, 2, 2, 3]);
        // Congestion avoidance: 11, 12 and 13 segments.
        let avoidance = |waiting| rounds(waiting, 10, 5, 1);
        assert_eq!([11, 12, 23, 24].map(avoidance), [1, 2, 2, 3]);
        // From 10 over a threshold of 15: 20, and then 21.
        assert_eq!([20, 41, 42].map(|waiting| rounds(waiting, 10, 15, 1)), [1, 2, 3]);
    }

    #[test]
    fn much_data_waits_for_a_fast_subflow_in_slow_start() {
        // The fast subflow is full, with 20 segments of 1000 bytes and 20 ms. In slow start, it sends
        // 40 segments in the next round, and they arrive after 30 ms. The slow subflow has room and
        // delivers after 40 ms.
        let fast = SubflowView { available_cwnd: 0, ssthresh: u64::MAX, ..view(0, 20) };
        let subflows = [fast, view(1, 80)];
        let ask = |assigned: &[u64]| {
            Sttf.schedule(&ScheduleContext { assigned, ..context(&subflows, NEW) })
        };
        assert_eq!(ask(&[39_000]), Decision::Assign(fast.id));
        assert_eq!(ask(&[40_000]), Decision::Assign(subflows[1].id));
    }

    #[test]
    fn data_sent_again_needs_room() {
        let subflows = [SubflowView { available_cwnd: 0, ..view(0, 20) }, view(1, 500)];
        let decision = Sttf.schedule(&context(&subflows, AGAIN));
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }
}
