//! ECF, earliest completion first: is it quicker to wait for the fast subflow than to use the
//! slow one now? Lim, Nahum, Towsley, Gibbens, CoNEXT 2017.

use super::{Decision, Making, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::policy::{Entry, Kind, Parameter, Value};
use crate::view::SubflowView;

/// Earliest completion first.
///
/// With f the fastest subflow, s the one that lowest-RTT would use because f is full, k the bytes
/// that were never sent (at least a window of f), and d the larger RTT variation: wait for f if
///
/// * `(1 + k / cwnd_f) · rtt_f < (1 + waiting · beta) · (rtt_s + d)`: f finishes all of it before
///   s delivers anything, and
/// * `max(k, cwnd_s) / cwnd_s · rtt_s ≥ 2 · rtt_f + d`: s would not finish it sooner.
///
/// `waiting`, 1 while waiting and 0 else, makes it stay with a decision. The first rule is as
/// the paper prints it; the floors of k and that failing the second leaves `waiting` alone are
/// the implementation's for Linux (`mptcp_ecf.c`), which takes twice the variation for d.
#[derive(Clone, Copy, Debug)]
pub struct Ecf {
    beta: f64,
    waiting: bool,
}

/// Lim et al. §4: hysteresis.
const BETA: f64 = 0.25;

/// How it is chosen by name.
pub(super) const ENTRY: super::SchedulerEntry = Entry {
    name: "ecf",
    summary: "Leaves the slow subflow alone when waiting for the fast one is quicker.",
    source: "Lim et al., CoNEXT 2017; mptcp_ecf.c of Multipath TCP for Linux",
    parameters: &[Parameter {
        name: "beta",
        meaning: "hysteresis: goes on waiting within this part of the slow round-trip time",
        kind: Kind::Number { least: 0.0, most: 10.0 },
        default: Value::Number(BETA),
        origin: "the paper, §4",
        only_with: None,
    }],
    make: Making { as_linux: false, make: |values| Box::new(Ecf::new(values.number("beta"))) },
};

/// What the rules look at, windows and `unsent` in bytes, times in seconds.
#[derive(Clone, Copy, Debug)]
struct Situation {
    unsent: f64,
    cwnd_fast: f64,
    cwnd_slow: f64,
    rtt_fast: f64,
    rtt_slow: f64,
    variation: f64,
}

impl Situation {
    fn new(unsent: u64, fast: &SubflowView, slow: &SubflowView) -> Option<Self> {
        Some(Situation {
            unsent: unsent as f64,
            cwnd_fast: fast.cwnd as f64,
            cwnd_slow: slow.cwnd as f64,
            rtt_fast: fast.srtt?.as_secs_f64(),
            rtt_slow: slow.srtt?.as_secs_f64(),
            variation: fast.rttvar.max(slow.rttvar).as_secs_f64(),
        })
    }

    /// Does the fast subflow finish before the slow one delivers anything? `margin` is
    /// waiting · beta.
    fn fast_finishes_first(&self, margin: f64) -> bool {
        let rounds = 1.0 + self.unsent.max(self.cwnd_fast) / self.cwnd_fast;
        rounds * self.rtt_fast < (1.0 + margin) * (self.rtt_slow + self.variation)
    }

    /// Does the slow subflow take at least as long as waiting and sending on the fast one?
    fn slow_is_no_help(&self) -> bool {
        let rounds = self.unsent.max(self.cwnd_slow) / self.cwnd_slow;
        rounds * self.rtt_slow >= 2.0 * self.rtt_fast + self.variation
    }
}

impl Ecf {
    /// With hysteresis `beta`, not waiting.
    pub fn new(beta: f64) -> Self {
        Ecf { beta, waiting: false }
    }

    /// Is it better to wait?
    fn waits(&mut self, situation: &Situation) -> bool {
        let margin = if self.waiting { self.beta } else { 0.0 };
        if !situation.fast_finishes_first(margin) {
            self.waiting = false;
            return false;
        }
        let waits = situation.slow_is_no_help();
        self.waiting |= waits;
        waits
    }
}

impl Default for Ecf {
    fn default() -> Self {
        Ecf::new(BETA)
    }
}

impl Scheduler for Ecf {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let decision = MinRtt.schedule(context);
        let (Decision::Send(id), Pending::NewData { bytes }) = (decision, context.pending) else {
            return decision;
        };
        let slow = &context.subflows[usize::from(id.slot)];
        let Some(fast) = context.fastest().filter(|fast| fast.id != id) else {
            return decision;
        };
        match Situation::new(bytes, fast, slow) {
            Some(situation) if self.waits(&situation) => Decision::Wait { until: None },
            _ => decision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, context};
    use crate::view::{SubflowId, tests::view};
    use anabranch_wire::Duration;

    /// f: full, 20 segments of 1000 bytes at 20 ms; s: room, 20 segments.
    fn pair(slow_ms: u64) -> [SubflowView; 2] {
        [SubflowView { room: 0, ..view(0, 20) }, view(1, slow_ms)]
    }

    fn ask(ecf: &mut Ecf, subflows: &[SubflowView], unsent: u64) -> Option<SubflowId> {
        match ecf.schedule(&context(subflows, Pending::NewData { bytes: unsent })) {
            Decision::Send(id) => Some(id),
            _ => None,
        }
    }

    #[test]
    fn a_little_data_waits_for_the_fast_subflow_and_much_does_not() {
        // rtt_s = 100 ms. 60 segments: (1 + 60/20)·20 = 80 < 100, and 60/20·100 ≥ 40: wait.
        // 80 segments: (1 + 4)·20 = 100, not less: send on the slow one.
        let subflows = pair(100);
        assert_eq!(ask(&mut Ecf::default(), &subflows, 60_000), None);
        assert_eq!(ask(&mut Ecf::default(), &subflows, 80_000), Some(subflows[1].id));
    }

    #[test]
    fn who_waits_goes_on_waiting_within_a_quarter() {
        // Waiting: 100 < 1.25·100, so 80 segments wait too; 110: (1 + 5.5)·20 = 130 do not.
        let subflows = pair(100);
        let mut ecf = Ecf::default();
        assert_eq!(ask(&mut ecf, &subflows, 60_000), None);
        assert_eq!(ask(&mut ecf, &subflows, 80_000), None);
        assert_eq!(ask(&mut ecf, &subflows, 110_000), Some(subflows[1].id));
        assert_eq!(ask(&mut ecf, &subflows, 80_000), Some(subflows[1].id));
    }

    #[test]
    fn a_slow_subflow_that_is_hardly_slower_is_used() {
        // rtt_s = 39 ms. One window of f: (1 + 1)·20 = 40, not less than 39.
        // With 41 ms it is less, and 20/20·41 ≥ 40: wait. With d = 2 ms, 41 < 42: send.
        assert!(ask(&mut Ecf::default(), &pair(39), 1_000).is_some());
        assert!(ask(&mut Ecf::default(), &pair(41), 1_000).is_none());
        let [fast, slow] = pair(41);
        let varying = SubflowView { rttvar: Duration::from_millis(2), ..slow };
        assert!(ask(&mut Ecf::default(), &[fast, varying], 1_000).is_some());
    }

    #[test]
    fn the_fast_subflow_with_room_is_used_and_so_is_any_for_data_sent_again() {
        let subflows = [view(0, 20), view(1, 500)];
        assert_eq!(ask(&mut Ecf::default(), &subflows, 1_000), Some(subflows[0].id));
        let decision = Ecf::default().schedule(&context(&pair(500), AGAIN));
        // Neither has carried it and the fast one is full: lowest-RTT takes the slow one.
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }
}
