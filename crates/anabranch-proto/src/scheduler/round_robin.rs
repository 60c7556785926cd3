//! Round robin: the subflows take turns. Paasch et al., CSWS 2014 ("RR"), as implemented for Linux
//! (`mptcp_rr.c`).

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::{Slot, SubflowId};
use anabranch_config::Part;

/// Takes turns: `num_segments` segments on a subflow, then the next.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    num_segments: u32,
    cwnd_limited: bool,
    /// Slot of the subflow that sent last, and the number of consecutive segments it sent.
    turn: Slot,
    sent: u32,
}

/// Parameters of [`RoundRobin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct RoundRobinConfig {
    /// Consecutive segments on one subflow.
    #[cfg_attr(feature = "serde", schemars(range(min = 1), extend("x-origin" = "mptcp_rr.c")))]
    pub num_segments: u32,
    /// Skip subflows with a full congestion window instead of waiting for them.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "mptcp_rr.c")))]
    pub cwnd_limited: bool,
}

impl Default for RoundRobinConfig {
    fn default() -> Self {
        RoundRobinConfig { num_segments: 1, cwnd_limited: true }
    }
}

impl Part for RoundRobinConfig {
    const NAME: &'static str = "round_robin";
    const SUMMARY: &'static str = "The subflows take turns.";
    const SOURCE: &'static str = "Paasch et al., CSWS 2014; mptcp_rr.c of Multipath TCP for Linux";
}

impl BuildScheduler for RoundRobinConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(RoundRobin::new(self.num_segments, self.cwnd_limited))
    }
}

impl RoundRobin {
    /// Sends `num_segments` (at least one) consecutive segments on each subflow. With
    /// `cwnd_limited`, the scheduler skips subflows whose congestion window is full, so bulk data
    /// follows the acknowledgements. Without it, all subflows wait for the full one.
    pub fn new(num_segments: u32, cwnd_limited: bool) -> Self {
        RoundRobin { num_segments: num_segments.max(1), cwnd_limited, turn: Slot(0), sent: 0 }
    }

    /// The slot whose turn it is.
    fn due(&self) -> Slot {
        let past = self.sent >= self.num_segments;
        if past { Slot(self.turn.0.wrapping_add(1)) } else { self.turn }
    }
}

impl Default for RoundRobin {
    /// The default of the Linux implementation: one segment, and subflows with a full window are
    /// skipped.
    fn default() -> Self {
        let RoundRobinConfig { num_segments, cwnd_limited } = RoundRobinConfig::default();
        RoundRobin::new(num_segments, cwnd_limited)
    }
}

impl Scheduler for RoundRobin {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        if let Pending::Reinjection { .. } = context.pending {
            return MinRtt.schedule(context);
        }
        let due = self.due();
        let (before, after): (u8, u8) = (0, 1);
        // In the order of slots, starting with the slot whose turn it is.
        let in_turn = [after, before].into_iter().flat_map(|part| {
            context.candidates().filter(move |view| u8::from(view.id.slot >= due) == part)
        });
        for view in in_turn {
            if view.can_send() {
                return Decision::Send(view.id);
            }
            if !self.cwnd_limited {
                break;
            }
        }
        Decision::Wait { until: None }
    }

    fn on_sent(&mut self, subflow: SubflowId, _bytes: u64) {
        if subflow.slot == self.turn && self.sent < self.num_segments {
            self.sent += 1;
        } else {
            (self.turn, self.sent) = (subflow.slot, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{NEW, context};
    use crate::view::{Slot, SubflowView, tests::view};

    /// The slots that carry the next `count` segments.
    fn order(scheduler: &mut RoundRobin, subflows: &[SubflowView], count: usize) -> Vec<u8> {
        let mut next = || match scheduler.schedule(&context(subflows, NEW)) {
            Decision::Send(id) => {
                scheduler.on_sent(id, 1000);
                id.slot
            }
            _ => Slot(u8::MAX),
        };
        (0..count).map(|_| next().0).collect()
    }

    #[test]
    fn each_subflow_in_turn_whatever_its_delay() {
        let subflows = [view(0, 20), view(1, 500), view(2, 100)];
        assert_eq!(order(&mut RoundRobin::default(), &subflows, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(order(&mut RoundRobin::new(2, true), &subflows, 7), [0, 0, 1, 1, 2, 2, 0]);
    }

    #[test]
    fn a_full_window_is_passed_over_or_waited_for() {
        let full = SubflowView { available_cwnd: 0, ..view(1, 20) };
        let subflows = [view(0, 20), full, view(2, 20)];
        assert_eq!(order(&mut RoundRobin::default(), &subflows, 4), [0, 2, 0, 2]);
        assert_eq!(order(&mut RoundRobin::new(1, false), &subflows, 3), [0, u8::MAX, u8::MAX]);
    }

    #[test]
    fn a_choice_that_was_not_sent_uses_up_no_turn() {
        let subflows = [view(0, 20), view(1, 20)];
        let mut scheduler = RoundRobin::default();
        for _ in 0..3 {
            let decision = scheduler.schedule(&context(&subflows, NEW));
            assert_eq!(decision, Decision::Send(subflows[0].id));
        }
    }

    #[test]
    fn the_only_subflow_has_every_turn() {
        assert_eq!(order(&mut RoundRobin::new(2, false), &[view(0, 20)], 5), [0; 5]);
    }
}
