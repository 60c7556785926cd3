//! ECF, earliest completion first: wait for the fast subflow if that is quicker than using the slow
//! one now. Lim, Nahum, Towsley, Gibbens, CoNEXT 2017.

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::SubflowView;
use anabranch_config::Part;
use anabranch_wire::Duration;

/// Earliest completion first.
///
/// Let f be the fastest subflow, and s the subflow that lowest-RTT would use because f is full. Let
/// k be the number of unsent bytes (at least a window of f), and d the larger RTT variation. ECF
/// waits for f if
///
/// * `(1 + k / cwnd_f) · rtt_f < (1 + waiting · beta) · (rtt_s + d)`: f delivers everything before
///   s delivers anything, and
/// * `max(k, cwnd_s) / cwnd_s · rtt_s ≥ 2 · rtt_f + d`: s would not deliver it sooner.
///
/// `waiting` is 1 while ECF waits and 0 otherwise; this hysteresis keeps ECF from alternating. The
/// first rule is as printed in the paper. Two details come from the Linux implementation
/// (`mptcp_ecf.c`): the lower bounds of k, and that failing the second rule leaves `waiting`
/// unchanged. [`EcfRule::Linux`] has its k and its d as well.
#[derive(Clone, Copy, Debug)]
pub struct Ecf {
    rule: EcfRule,
    beta: f64,
    waiting: bool,
}

/// Lim et al. §4: hysteresis.
const BETA: f64 = 0.25;
/// `TCP_RTO_MIN`: Linux's least value of four times the RTT variation.
const LEAST_VARIANCE: Duration = Duration::from_millis(200);

/// The sources of k and d.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum EcfRule {
    /// The paper: k counts payload, and d is the RTT variation.
    #[default]
    Paper,
    /// The authors' implementation for Linux. k counts the memory of the unsent data. d is twice the
    /// RTT variation, and at least 100 ms, because Linux bounds its variance from below.
    Linux,
}

/// Parameters of [`Ecf`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct EcfConfig {
    /// Source of k and d: the paper, or the authors' implementation for Linux.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub rule: EcfRule,
    /// Hysteresis: keep waiting within this fraction of the slow round-trip time.
    #[cfg_attr(
        feature = "serde",
        schemars(range(min = 0.0, max = 10.0), extend("x-origin" = "the paper, §4"))
    )]
    pub beta: f64,
}

impl Default for EcfConfig {
    fn default() -> Self {
        EcfConfig { rule: EcfRule::Paper, beta: BETA }
    }
}

impl Part for EcfConfig {
    const NAME: &'static str = "ecf";
    const SUMMARY: &'static str =
        "Does not use the slow subflow if waiting for the fast one is quicker.";
    const SOURCE: &'static str = "Lim et al., CoNEXT 2017; mptcp_ecf.c of Multipath TCP for Linux";
}

impl BuildScheduler for EcfConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Ecf::new(self.rule, self.beta))
    }
}

/// The inputs of the conditions: windows and `unsent` in bytes, times in seconds.
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
    fn new(
        unsent: u64,
        variation: Duration,
        fast: &SubflowView,
        slow: &SubflowView,
    ) -> Option<Self> {
        Some(Situation {
            unsent: unsent as f64,
            cwnd_fast: fast.cwnd as f64,
            cwnd_slow: slow.cwnd as f64,
            rtt_fast: fast.srtt?.as_secs_f64(),
            rtt_slow: slow.srtt?.as_secs_f64(),
            variation: variation.as_secs_f64(),
        })
    }

    /// Returns `true` if the fast subflow finishes before the slow one delivers anything. `margin`
    /// is waiting · beta.
    fn fast_finishes_first(&self, margin: f64) -> bool {
        let rounds = 1.0 + self.unsent.max(self.cwnd_fast) / self.cwnd_fast;
        rounds * self.rtt_fast < (1.0 + margin) * (self.rtt_slow + self.variation)
    }

    /// Returns `true` if the slow subflow takes at least as long as waiting and sending on the fast
    /// one.
    fn slow_is_no_help(&self) -> bool {
        let rounds = self.unsent.max(self.cwnd_slow) / self.cwnd_slow;
        rounds * self.rtt_slow >= 2.0 * self.rtt_fast + self.variation
    }
}

impl Ecf {
    /// ECF with hysteresis `beta`, initially not waiting.
    pub fn new(rule: EcfRule, beta: f64) -> Self {
        Ecf { rule, beta, waiting: false }
    }

    /// The inputs of the conditions. `bytes` were never sent.
    fn situation(
        &self,
        context: &ScheduleContext<'_>,
        bytes: u64,
        fast: &SubflowView,
        slow: &SubflowView,
    ) -> Option<Situation> {
        let variation = fast.rttvar.max(slow.rttvar);
        let (unsent, variation) = match self.rule {
            EcfRule::Paper => (bytes, variation),
            EcfRule::Linux => {
                (context.linux.unsent_memory, (variation * 4).max(LEAST_VARIANCE) / 2)
            }
        };
        Situation::new(unsent, variation, fast, slow)
    }

    /// Returns `true` if it is better to wait for the fast subflow.
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
        Ecf::new(EcfRule::Paper, BETA)
    }
}

impl Scheduler for Ecf {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let decision = MinRtt.schedule(context);
        let (Decision::Send(id), Pending::NewData { bytes }) = (decision, context.pending) else {
            return decision;
        };
        let slow = &context.subflows[id.slot];
        let Some(fast) = context.fastest().filter(|fast| fast.id != id) else {
            return decision;
        };
        match self.situation(context, bytes, fast, slow) {
            Some(situation) if self.waits(&situation) => Decision::Wait { until: None },
            _ => decision,
        }
    }

    fn follows_linux(&self) -> bool {
        self.rule == EcfRule::Linux
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::LinuxView;
    use crate::scheduler::tests::{AGAIN, context};
    use crate::view::{SubflowId, tests::view};

    /// f is full, with 20 segments of 1000 bytes and 20 ms. s has room and 20 segments.
    fn pair(slow_ms: u64) -> [SubflowView; 2] {
        [SubflowView { available_cwnd: 0, ..view(0, 20) }, view(1, slow_ms)]
    }

    fn ask(ecf: &mut Ecf, subflows: &[SubflowView], unsent: u64) -> Option<SubflowId> {
        match ecf.schedule(&context(subflows, Pending::NewData { bytes: unsent })) {
            Decision::Send(id) => Some(id),
            _ => None,
        }
    }

    #[test]
    fn a_little_data_waits_for_the_fast_subflow_and_much_does_not() {
        // rtt_s = 100 ms. 60 segments: (1 + 60/20)·20 = 80 < 100 and 60/20·100 ≥ 40, so ECF waits.
        // 80 segments: (1 + 4)·20 = 100 is not less than 100, so ECF sends on the slow subflow.
        let subflows = pair(100);
        assert_eq!(ask(&mut Ecf::default(), &subflows, 60_000), None);
        assert_eq!(ask(&mut Ecf::default(), &subflows, 80_000), Some(subflows[1].id));
    }

    #[test]
    fn who_waits_goes_on_waiting_within_a_quarter() {
        // While waiting, the limit is 1.25·100. 80 segments (100) still wait. 110 segments do not:
        // (1 + 5.5)·20 = 130.
        let subflows = pair(100);
        let mut ecf = Ecf::default();
        assert_eq!(ask(&mut ecf, &subflows, 60_000), None);
        assert_eq!(ask(&mut ecf, &subflows, 80_000), None);
        assert_eq!(ask(&mut ecf, &subflows, 110_000), Some(subflows[1].id));
        assert_eq!(ask(&mut ecf, &subflows, 80_000), Some(subflows[1].id));
    }

    #[test]
    fn a_slow_subflow_that_is_hardly_slower_is_used() {
        // rtt_s = 39 ms. One window of f: (1 + 1)·20 = 40 is not less than 39, so ECF sends. With
        // 41 ms it is less, and 20/20·41 ≥ 40, so ECF waits. With d = 2 ms, 41 < 42, so it sends.
        assert!(ask(&mut Ecf::default(), &pair(39), 1_000).is_some());
        assert!(ask(&mut Ecf::default(), &pair(41), 1_000).is_none());
        let [fast, slow] = pair(41);
        let varying = SubflowView { rttvar: Duration::from_millis(2), ..slow };
        assert!(ask(&mut Ecf::default(), &[fast, varying], 1_000).is_some());
    }

    /// The subflow that ECF chooses by Linux's rule, with this memory of unsent data in bytes.
    fn ask_linux(subflows: &[SubflowView], unsent_memory: u64) -> Option<SubflowId> {
        let linux = LinuxView { unsent_memory, ..LinuxView::default() };
        let context = context(subflows, Pending::NewData { bytes: 1 });
        match Ecf::new(EcfRule::Linux, BETA).schedule(&ScheduleContext { linux, ..context }) {
            Decision::Send(id) => Some(id),
            _ => None,
        }
    }

    #[test]
    fn linux_counts_memory_and_a_variation_of_at_least_100_ms() {
        // rtt_s = 100 ms, d = 200/2 = 100 ms, so the limit is 200 ms. 179,000 bytes of memory:
        // (1 + 8.95)·20 = 199, so ECF waits. 180,000 bytes: 200 is not less, so ECF sends.
        let subflows = pair(100);
        assert_eq!(ask_linux(&subflows, 179_000), None);
        assert_eq!(ask_linux(&subflows, 180_000), Some(subflows[1].id));
        // A slow subflow that is less slow than 2·20 + 100 ms helps if a window is left: 139 < 140.
        assert_eq!(ask_linux(&pair(139), 20_000), Some(subflows[1].id));
        assert_eq!(ask_linux(&pair(140), 20_000), None);
    }

    #[test]
    fn linux_counts_the_larger_variation_twice() {
        // d = 2·60 = 120 ms, so the limit is 220 ms: (1 + 9.95)·20 = 219, and 10·20 + 20 = 220.
        let [fast, slow] = pair(100);
        for views in [
            [SubflowView { rttvar: Duration::from_millis(60), ..fast }, slow],
            [fast, SubflowView { rttvar: Duration::from_millis(60), ..slow }],
        ] {
            assert_eq!(ask_linux(&views, 199_000), None);
            assert_eq!(ask_linux(&views, 200_000), Some(slow.id));
        }
    }

    #[test]
    fn the_fast_subflow_with_room_is_used_and_so_is_any_for_data_sent_again() {
        let subflows = [view(0, 20), view(1, 500)];
        assert_eq!(ask(&mut Ecf::default(), &subflows, 1_000), Some(subflows[0].id));
        let decision = Ecf::default().schedule(&context(&pair(500), AGAIN));
        // No subflow has carried the data and the fast one is full, so lowest-RTT uses the slow
        // one.
        assert_eq!(decision, Decision::Send(subflows[1].id));
    }
}
