//! BLEST, blocking estimation: do not use the slow subflow if it would block the fast one. Ferlin,
//! Alay, Mehani, Boreli, IFIP Networking 2016.

use anabranch_config::Part;
use anabranch_wire::{Duration, Instant};

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::{SubflowSet, SubflowView};

/// Blocking estimation.
///
/// F is the fastest subflow, S the one that lowest-RTT would use because F is full. A segment on S
/// occupies the shared window until it is acknowledged. BLEST estimates how much F could send in
/// that time. If the rest of the window is smaller, the segment would block F, and BLEST waits for
/// F instead.
///
/// Both sources consider only the receive window. A full send buffer blocks F as well, so here the
/// smaller of the two counts (this project).
#[derive(Clone, Debug)]
pub struct Blest {
    rule: BlestRule,
    /// Factor of the estimate: the paper's delta, Linux's lambda.
    factor: f64,
    /// Time of the factor's last change, and how often F had been blocked until then.
    adapted: Instant,
    blocked: u64,
    /// Largest smoothed round-trip time of each slot, with the generation of its subflow.
    slowest: [(u32, Duration); SubflowSet::CAPACITY],
}

/// Form of BLEST's estimate and of its correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlestRule {
    /// The paper's rule. `X = mss_F · (cwnd_F + (q − 1)/2) · q` with `q = rtt_S / rtt_F`. Wait if
    /// `delta · X > window − mss_S · (inflight_S + 1)`. delta starts at 1. Once per rtt_F it rises
    /// by `step` if F was blocked, and falls by `step` otherwise. The paper tries steps from 0.001
    /// to 0.02 and states no bounds. Here delta does not fall below `floor` (this project).
    Paper {
        /// Step of delta.
        step: f64,
        /// Least delta.
        floor: f64,
    },
    /// The rule of the authors' implementation for Linux (`mptcp_blest.c`). S's segment occupies
    /// the window for a time between S's smallest and largest RTT, depending on how full S is.
    /// During this time F grows as in slow start if it is in its first slow start, otherwise as in
    /// congestion avoidance. lambda starts at 1.2. Once per smallest RTT of S, it rises by 0.04 if
    /// F was blocked, and falls by 0.01 otherwise. It stays between 1.0 and 1.3.
    Linux,
}

/// Parameters of [`Blest`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct BlestConfig {
    /// Which estimate is used: that of the authors' implementation for Linux, or the paper's.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub rule: BlestRuleName,
    /// Step of the factor.
    #[cfg_attr(
        feature = "serde",
        schemars(
            range(min = 0.0, max = 1.0),
            extend(
                "x-origin" = "the middle of what the paper tries",
                "x-only-with" = { "rule": "paper" }
            )
        )
    )]
    pub step: f64,
    /// Least value of the factor.
    #[cfg_attr(
        feature = "serde",
        schemars(
            range(min = 0.0, max = 1.0),
            extend(
                "x-origin" = "this project: the paper states no bounds",
                "x-only-with" = { "rule": "paper" }
            )
        )
    )]
    pub floor: f64,
}

/// The sources of [`BlestRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum BlestRuleName {
    /// The authors' implementation for Linux.
    Linux,
    /// The paper.
    Paper,
}

impl Default for BlestConfig {
    fn default() -> Self {
        BlestConfig { rule: BlestRuleName::Linux, step: 0.01, floor: 0.0 }
    }
}

impl Part for BlestConfig {
    const NAME: &'static str = "blest";
    const SUMMARY: &'static str = "Does not use the slow subflow if it would block the fast one.";
    const SOURCE: &'static str =
        "Ferlin et al., IFIP Networking 2016; mptcp_blest.c of Multipath TCP for Linux";
}

impl BuildScheduler for BlestConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Blest::new(match self.rule {
            BlestRuleName::Paper => BlestRule::Paper { step: self.step, floor: self.floor },
            BlestRuleName::Linux => BlestRule::Linux,
        }))
    }
}

/// Ferlin et al. §III: initial delta.
const DELTA: f64 = 1.0;
/// `mptcp_blest.c`: initial lambda, its bounds and its steps.
const LAMBDA: f64 = 1.2;
const LAMBDA_RANGE: (f64, f64) = (1.0, 1.3);
const LAMBDA_RISE: f64 = 0.04;
const LAMBDA_FALL: f64 = 0.01;
/// `mptcp_blest.c`: maximum number of slow-start rounds considered.
const MOST_ROUNDS: f64 = 16.0;

/// The paper's X in bytes: the data that F sends during one round trip of S, while its window grows
/// by a segment per round trip. `q` is rtt_S / rtt_F, and `cwnd` is in bytes.
pub(super) fn sent_meanwhile(mss: f64, cwnd: f64, q: f64) -> f64 {
    (cwnd + mss * (q - 1.0) / 2.0) * q
}

/// Linux's estimate in bytes, over `rounds` round trips of F.
pub(super) fn sent_in_rounds(fast: &SubflowView, rounds: f64) -> f64 {
    let mss = f64::from(fast.mss);
    if fast.ssthresh == u64::MAX {
        // cwnd + 2 cwnd + 4 cwnd ...
        let doublings = rounds.min(MOST_ROUNDS) as u32;
        return fast.cwnd as f64 * f64::from((1_u32 << doublings) - 1);
    }
    // Treat slow start as if it ended at once.
    let cwnd = (fast.cwnd as f64).max(fast.ssthresh as f64 + mss);
    (cwnd + mss * libm::floor((rounds - 1.0) / 2.0)) * rounds
}

/// Time that a segment sent on S now occupies the window, in seconds: between S's smallest and
/// largest RTT depending on how full S is, and at least its current RTT.
pub(super) fn linger(slow: &SubflowView, least: f64, largest: f64, rtt: f64) -> f64 {
    let in_flight = slow.bytes_in_flight as f64 + f64::from(slow.mss);
    let fullness = (in_flight / slow.cwnd as f64).min(1.0);
    (least + (largest - least) * fullness).max(rtt)
}

impl Blest {
    /// BLEST with this rule.
    pub fn new(rule: BlestRule) -> Self {
        Blest {
            rule,
            factor: match rule {
                BlestRule::Paper { .. } => DELTA,
                BlestRule::Linux => LAMBDA,
            },
            adapted: Instant::ZERO,
            blocked: 0,
            slowest: [(0, Duration::ZERO); SubflowSet::CAPACITY],
        }
    }

    fn remember_slowest(&mut self, context: &ScheduleContext<'_>) {
        for view in context.subflows {
            let Some(srtt) = view.srtt else { continue };
            let (generation, slowest) = &mut self.slowest[view.id.slot];
            if *generation != view.id.generation {
                (*generation, *slowest) = (view.id.generation, Duration::ZERO);
            }
            *slowest = srtt.max(*slowest);
        }
    }

    fn slowest(&self, view: &SubflowView) -> f64 {
        self.slowest[view.id.slot].1.as_secs_f64()
    }

    /// Correct the factor, depending on whether F was blocked since the last correction.
    fn adapt(&mut self, context: &ScheduleContext<'_>, fast: &SubflowView, slow: &SubflowView) {
        let period = match self.rule {
            BlestRule::Paper { .. } => fast.srtt_or_max(),
            BlestRule::Linux => slow.min_srtt,
        };
        if context.now.saturating_since(self.adapted) < period {
            return;
        }
        let was_blocked = context.blocked > self.blocked;
        (self.adapted, self.blocked) = (context.now, context.blocked);
        self.factor = match self.rule {
            BlestRule::Paper { step, floor } => {
                (self.factor + if was_blocked { step } else { -step }).max(floor)
            }
            BlestRule::Linux => {
                let step = if was_blocked { LAMBDA_RISE } else { -LAMBDA_FALL };
                (self.factor + step).clamp(LAMBDA_RANGE.0, LAMBDA_RANGE.1)
            }
        };
    }

    /// Bytes that F would send while a segment sent on S now is in flight.
    fn estimate(&self, fast: &SubflowView, slow: &SubflowView) -> Option<f64> {
        let (rtt_fast, rtt_slow) = (fast.srtt?.as_secs_f64(), slow.srtt?.as_secs_f64());
        let bytes = match self.rule {
            BlestRule::Paper { .. } => {
                sent_meanwhile(f64::from(fast.mss), fast.cwnd as f64, rtt_slow / rtt_fast)
            }
            BlestRule::Linux => {
                let stay = linger(slow, slow.min_srtt.as_secs_f64(), self.slowest(slow), rtt_slow);
                let average = (fast.min_srtt.as_secs_f64() + self.slowest(fast)) / 2.0;
                sent_in_rounds(fast, libm::floor(stay / average) + 1.0)
            }
        };
        Some(bytes * self.factor)
    }

    fn would_block(
        &self,
        context: &ScheduleContext<'_>,
        fast: &SubflowView,
        slow: &SubflowView,
    ) -> bool {
        let rest = context.window.saturating_sub(slow.bytes_in_flight + u64::from(slow.mss));
        self.estimate(fast, slow).is_some_and(|bytes| bytes > rest as f64)
    }
}

impl Scheduler for Blest {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        self.remember_slowest(context);
        let decision = MinRtt.schedule(context);
        let (Decision::Send(id), Pending::NewData { .. }) = (decision, context.pending) else {
            return decision;
        };
        let slow = &context.subflows[id.slot];
        let Some(fast) = context.fastest().filter(|fast| fast.id != id) else {
            return decision;
        };
        self.adapt(context, fast, slow);
        if self.would_block(context, fast, slow) {
            Decision::Wait { until: None }
        } else {
            decision
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{NEW, context};
    use crate::view::tests::view;

    const PAPER: BlestRule = BlestRule::Paper { step: 0.01, floor: 0.0 };

    /// F is full, with 20 segments of 1000 bytes. S has 19 of 20 segments in flight.
    fn pair(fast_ms: u64, slow_ms: u64) -> [SubflowView; 2] {
        [SubflowView { available_cwnd: 0, ..view(0, fast_ms) }, view(1, slow_ms)]
    }

    fn waits(blest: &mut Blest, subflows: &[SubflowView], window: u64) -> bool {
        let context = ScheduleContext { window, ..context(subflows, NEW) };
        matches!(blest.schedule(&context), Decision::Wait { .. })
    }

    #[test]
    fn the_papers_rule_by_hand() {
        // q = 100/20 = 5, so X = 1000·(20 + (5 − 1)/2)·5 = 110 000. The rest of the window is the
        // window − 1000·(19 + 1). With a window of 130 000, the rest is 110 000, just enough.
        assert!((sent_meanwhile(1000.0, 20_000.0, 5.0) - 110_000.0).abs() < 1e-6);
        let subflows = pair(20, 100);
        assert!(!waits(&mut Blest::new(PAPER), &subflows, 130_000));
        assert!(waits(&mut Blest::new(PAPER), &subflows, 129_999));
    }

    #[test]
    fn delta_follows_whether_the_fast_subflow_was_blocked_once_per_its_round_trip() {
        let subflows = pair(20, 100);
        let mut blest = Blest::new(PAPER);
        let mut at = |now_ms: u64, blocked| {
            let now = Instant::ZERO + Duration::from_millis(now_ms);
            blest.schedule(&ScheduleContext { now, blocked, ..context(&subflows, NEW) });
            (blest.factor * 100.0).round()
        };
        assert_eq!([at(0, 0), at(19, 5), at(20, 5), at(40, 6)], [100.0, 100.0, 101.0, 102.0]);
        assert_eq!([at(60, 6), at(70, 6), at(80, 6)], [101.0, 101.0, 100.0]);
    }

    #[test]
    fn linuxs_rule_by_hand() {
        // In congestion avoidance, S is full (19 + 1 of 20), so a segment occupies the window for
        // 100 ms. That is 5 + 1 rounds of F: (20 + 5/2 rounded down)·6 = 132 segments, times 1.2 =
        // 158.4.
        let subflows = pair(20, 100);
        assert_eq!(sent_in_rounds(&subflows[0], 6.0), 132_000.0);
        assert!(!waits(&mut Blest::new(BlestRule::Linux), &subflows, 178_401));
        assert!(waits(&mut Blest::new(BlestRule::Linux), &subflows, 178_399));
        // In the first slow start: 20·(2⁶ − 1) = 1260 segments.
        let starting = SubflowView { ssthresh: u64::MAX, ..subflows[0] };
        assert_eq!(sent_in_rounds(&starting, 6.0), 1_260_000.0);
        assert_eq!(sent_in_rounds(&starting, 99.0), 20_000.0 * 65_535.0);
    }

    #[test]
    fn an_empty_slow_subflow_holds_a_segment_for_little_more_than_its_least_rtt() {
        // 1 of 20 segments: 50 + (150 − 50)/20 = 55 ms, or S's current RTT if that is larger.
        let slow = SubflowView { bytes_in_flight: 0, ..view(1, 50) };
        assert!((linger(&slow, 0.05, 0.15, 0.05) - 0.055).abs() < 1e-12);
        assert!((linger(&slow, 0.05, 0.15, 0.08) - 0.08).abs() < 1e-12);
        let full = SubflowView { bytes_in_flight: 20_000, ..slow };
        assert!((linger(&full, 0.05, 0.15, 0.08) - 0.15).abs() < 1e-12);
    }

    #[test]
    fn lambda_moves_once_per_least_rtt_of_the_slow_subflow_and_stays_in_its_range() {
        let subflows = pair(20, 100);
        let mut blest = Blest::new(BlestRule::Linux);
        let mut at = |now_ms: u64, blocked| {
            let now = Instant::ZERO + Duration::from_millis(now_ms);
            blest.schedule(&ScheduleContext { now, blocked, ..context(&subflows, NEW) });
            (blest.factor * 100.0).round()
        };
        assert_eq!([at(99, 1), at(100, 1), at(199, 2), at(200, 2)], [120.0, 124.0, 124.0, 128.0]);
        assert_eq!([at(300, 3), at(400, 3)], [130.0, 129.0]);
        for n in 5..60 {
            at(n * 100, 3);
        }
        assert_eq!(at(6_000, 3), 100.0);
    }

    #[test]
    fn the_fast_subflow_with_room_is_used() {
        let subflows = [view(0, 20), view(1, 100)];
        assert!(!waits(&mut Blest::new(PAPER), &subflows, 0));
    }
}
