//! DAPS, delay-aware packet scheduling: bursts on all subflows, planned so that they arrive in
//! order. Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli, ICC 2014.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Positive;
use core::cmp::Ordering;

use anabranch_wire::{Duration, Instant};

use super::{BuildScheduler, Decision, MinRtt, Pending, ScheduleContext, Scheduler};
use crate::view::{SubflowId, SubflowSet, SubflowView};

/// Delay-aware packet scheduling.
///
/// A schedule is made from the smoothed round-trip times and windows of one moment. The delay `d` of
/// a subflow is half of its round-trip time, rounded to a multiple of `delay_step`. At each multiple
/// of its delay, a subflow gets as many segments as its planned window. Data sent on it arrives then,
/// after the data that other subflows got for earlier times. Subflows with the same time take turns
/// in the order of their round-trip times. The period is the least common multiple of the delays.
/// After it, the scheduler makes a new schedule.
///
/// A segment is assigned to its subflow even if the congestion window has no room, and waits there.
///
/// We know the rule from S. Ferlin's implementation for Linux (`mptcp_daps`), and the paper only in
/// outline. `docs/policies/daps.md` lists the details that this project chose.
#[derive(Clone, Debug)]
pub struct Daps {
    delay_step: Duration,
    /// The subflows of the schedule, by round-trip time.
    schedule: Vec<Planned>,
    /// Index of the subflow whose burst is under way, and the segments that are left of the burst.
    turn: usize,
    left: u64,
    /// Planned window of each slot.
    windows: [Window; SubflowSet::CAPACITY],
}

/// A subflow in the schedule.
#[derive(Clone, Copy, Debug)]
struct Planned {
    id: SubflowId,
    srtt: Duration,
    delay: Duration,
    /// Time between the burst under way and this subflow's next one: zero if that one is next at the
    /// same time, and `delay` if the subflow has had its burst.
    wait: Duration,
    /// Segments of a burst.
    burst: u64,
}

/// The planned window of a subflow: its congestion window, smoothed.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    generation: u32,
    /// Time of the last sample.
    sampled: Option<Instant>,
    /// The smoothed window, in eighths of a segment.
    eighths: u64,
}

/// Parameters of [`Daps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct DapsConfig {
    /// The schedule rounds delays to multiples of this. The paper's is 1 ms.
    #[cfg_attr(
        feature = "serde",
        serde(with = "Positive::<Duration>"),
        schemars(extend("x-origin" = "mptcp_daps"))
    )]
    pub delay_step: Duration,
}

impl Default for DapsConfig {
    fn default() -> Self {
        DapsConfig { delay_step: DELAY_STEP }
    }
}

impl Part for DapsConfig {
    const NAME: &'static str = "daps";
    const SUMMARY: &'static str =
        "Plans bursts on all subflows so that they arrive in order, ahead of windows.";
    const SOURCE: &'static str = "Kuhn et al., ICC 2014; mptcp_daps of Multipath TCP for Linux";
}

impl BuildScheduler for DapsConfig {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Daps::new(self.delay_step))
    }
}

/// `mptcp_daps`: default of `round_delay`.
const DELAY_STEP: Duration = Duration::from_millis(4);
/// `mptcp_daps`: the delay of a subflow whose delay rounds to zero.
const LEAST_DELAY: Duration = Duration::from_millis(1);

impl Daps {
    /// A scheduler that rounds delays to multiples of `delay_step`, which is not zero.
    pub fn new(delay_step: Duration) -> Self {
        Daps {
            delay_step,
            schedule: Vec::with_capacity(SubflowSet::CAPACITY),
            turn: 0,
            left: 0,
            windows: [Window::default(); SubflowSet::CAPACITY],
        }
    }

    /// Half of the round-trip time, rounded.
    fn delay(&self, srtt: Duration) -> Duration {
        let (half, step) = (srtt.as_nanos() / 2, self.delay_step.as_nanos().max(1));
        match half.saturating_add(step / 2) / step {
            0 => LEAST_DELAY.min(self.delay_step),
            steps => Duration::from_nanos(steps * step),
        }
    }

    /// Make a new schedule of the candidates whose round-trip time is known.
    fn plan(&mut self, context: &ScheduleContext<'_>) {
        self.schedule.clear();
        for view in context.candidates() {
            let Some(srtt) = view.srtt else { continue };
            let delay = self.delay(srtt);
            let burst = self.windows[view.id.slot].segments();
            self.schedule.push(Planned { id: view.id, srtt, delay, wait: delay, burst });
        }
        self.schedule.sort_unstable_by_key(|planned| (planned.srtt, planned.id));
    }

    /// Go on to the next burst of a subflow that can carry data. The bursts of others fall out.
    ///
    /// Does nothing if the schedule has no such subflow.
    fn next_burst(&mut self, context: &ScheduleContext<'_>) {
        let able = |planned: &Planned| carries(context, planned.id);
        let next = self.schedule.iter().enumerate().filter(|(_, planned)| able(planned));
        let Some((turn, &Planned { wait: time, burst, .. })) =
            next.min_by_key(|(_, planned)| planned.wait)
        else {
            return;
        };
        for planned in &mut self.schedule {
            planned.wait = match planned.wait.cmp(&time) {
                Ordering::Greater => planned.wait.saturating_sub(time),
                Ordering::Equal if able(planned) => Duration::ZERO,
                _ => planned.after(time),
            };
        }
        self.schedule[turn].wait = self.schedule[turn].delay;
        (self.turn, self.left) = (turn, burst);
    }

    /// Returns `true` if the period has ended. At its end, and only there, every subflow has just
    /// had a burst.
    fn is_used_up(&self, context: &ScheduleContext<'_>) -> bool {
        let had = |planned: &Planned| {
            let misses = planned.wait.is_zero() && !carries(context, planned.id);
            planned.wait == planned.delay || misses
        };
        self.schedule.iter().all(had)
    }

    /// The subflow of the next segment, or `None` if no schedule can be made.
    fn next(&mut self, context: &ScheduleContext<'_>) -> Option<SubflowId> {
        let able = |planned: &&Planned| carries(context, planned.id);
        let under_way = self.schedule.get(self.turn).filter(|_| self.left > 0).filter(able);
        if under_way.is_none() {
            if self.is_used_up(context) || !self.schedule.iter().any(|each| able(&each)) {
                self.plan(context);
            }
            self.next_burst(context);
        }
        self.schedule.get(self.turn).map(|planned| planned.id)
    }
}

/// Returns `true` if the subflow may carry data.
fn carries(context: &ScheduleContext<'_>, id: SubflowId) -> bool {
    context.candidates().any(|view| view.id == id)
}

impl Planned {
    /// Time to the next burst, after bursts fell out from `wait` up to `time` from now.
    fn after(&self, time: Duration) -> Duration {
        let late = time.saturating_sub(self.wait).as_nanos() % self.delay.as_nanos();
        self.delay.saturating_sub(Duration::from_nanos(late))
    }
}

impl Window {
    /// Take a sample if a round-trip time has passed since the last one. It has a weight of 1/8.
    fn observe(&mut self, now: Instant, view: &SubflowView) {
        let segments = view.cwnd / u64::from(view.mss.max(1));
        if self.generation != view.id.generation || self.sampled.is_none() {
            self.eighths = 8 * segments;
        } else if self.sampled.is_some_and(|at| now.saturating_since(at) < view.srtt_or_max()) {
            return;
        } else {
            self.eighths = self.eighths - self.eighths / 8 + segments;
        }
        (self.generation, self.sampled) = (view.id.generation, Some(now));
    }

    /// Whole segments, at least one.
    fn segments(&self) -> u64 {
        (self.eighths / 8).max(1)
    }
}

impl Scheduler for Daps {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        if let Pending::Reinjection { .. } = context.pending {
            return MinRtt.schedule(context);
        }
        for view in context.candidates() {
            self.windows[view.id.slot].observe(context.now, view);
        }
        match self.next(context) {
            Some(id) => Decision::Assign(id),
            None => MinRtt.schedule(context),
        }
    }

    fn on_sent(&mut self, subflow: SubflowId, _bytes: u64) {
        if self.schedule.get(self.turn).is_some_and(|planned| planned.id == subflow) {
            self.left = self.left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{AGAIN, NEW, context};
    use crate::view::Slot;
    use crate::view::Usability;
    use crate::view::tests::view;

    const FAILED: Usability = Usability::PotentiallyFailed;

    /// With delays of whole milliseconds.
    fn daps() -> Daps {
        Daps::new(Duration::from_millis(1))
    }

    /// A subflow with this delay and window, without room.
    fn path(slot: u8, delay_ms: u64, window: u64) -> SubflowView {
        SubflowView { cwnd: 1000 * window, available_cwnd: 0, ..view(slot, 2 * delay_ms) }
    }

    /// The slots that the next `count` segments are assigned to. An underscore is a decision to wait.
    fn order(daps: &mut Daps, subflows: &[SubflowView], count: usize) -> String {
        let mut next = || match daps.schedule(&context(subflows, NEW)) {
            Decision::Assign(id) => {
                daps.on_sent(id, 1000);
                char::from(b'0' + id.slot.0)
            }
            _ => '_',
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn bursts_are_placed_where_they_arrive() {
        // Delays of 10 and 30 ms: the period is 30 ms. The first subflow has a burst of 3 segments at
        // 10, 20 and 30 ms, the second one of 5 segments at 30 ms.
        let subflows = [path(0, 10, 3), path(1, 30, 5)];
        assert_eq!(order(&mut daps(), &subflows, 28), "00000000011111".repeat(2));
        // 10 and 15 ms: bursts at 10, 20 and 30 ms, and at 15 and 30 ms.
        let subflows = [path(0, 10, 2), path(1, 15, 1)];
        assert_eq!(order(&mut daps(), &subflows, 16), "00100001".repeat(2));
        // The order is that of the round-trip times, not of the slots. Among equal ones, slots decide.
        let subflows = [path(0, 20, 2), path(1, 10, 1), path(2, 20, 3)];
        assert_eq!(order(&mut daps(), &subflows, 14), "1100222".repeat(2));
    }

    #[test]
    fn delays_are_rounded_to_multiples_of_the_step() {
        let delay = |step: u64, rtt_us: u64| {
            let daps = Daps::new(Duration::from_micros(step));
            daps.delay(Duration::from_micros(rtt_us)).as_micros()
        };
        // 10 ms lie between 8 and 12; the half counts up. 1.9 ms become 0, and so 1.
        assert_eq!([20_000, 19_998, 3_800].map(|rtt| delay(4_000, rtt)), [12_000, 8_000, 1_000]);
        assert_eq!([20_000, 20_999, 900].map(|rtt| delay(1_000, rtt)), [10_000, 10_000, 1_000]);
        assert_eq!([900, 90].map(|rtt| delay(100, rtt)), [500, 100]);
    }

    #[test]
    fn a_schedule_lasts_for_a_period_whatever_happens_to_delays_and_windows() {
        let mut daps = daps();
        let subflows = [path(0, 10, 3), path(1, 30, 5)];
        assert_eq!(order(&mut daps, &subflows, 1), "0");
        let changed = [path(0, 10, 1), path(1, 20, 1), path(2, 20, 1)];
        let context =
            ScheduleContext { now: Instant::from_nanos(1_000_000_000), ..context(&changed, NEW) };
        daps.schedule(&context);
        assert_eq!(order(&mut daps, &changed, 13), "0000000011111");
        // Windows of (7 · 3 + 1) / 8, (7 · 5 + 1) / 8 and 1 segments, rounded down.
        assert_eq!(order(&mut daps, &changed, 9), "000011112");
    }

    #[test]
    fn the_planned_window_takes_a_sample_per_round_trip() {
        let mut window = Window::default();
        let mut at = |ms: u64, segments: u64| {
            window.observe(Instant::ZERO + Duration::from_millis(ms), &path(0, 10, segments));
            window.segments()
        };
        // 20 · 8 = 160 eighths, 160 − 20 + 4 = 144, and 144 − 18 + 4 = 130.
        assert_eq!([at(0, 20), at(19, 4), at(20, 4), at(39, 4), at(40, 4)], [20, 20, 18, 18, 16]);
        for n in 3..100 {
            at(20 * n, 4);
        }
        assert_eq!(at(2000, 4), 4);
        for n in 101..200 {
            at(20 * n, 9);
        }
        assert_eq!([at(4000, 9), at(4020, 0)], [9, 7]);
        // Another subflow in the same slot starts anew.
        let id = SubflowId { slot: Slot(0), generation: 1 };
        window.observe(Instant::ZERO, &SubflowView { id, ..path(0, 10, 0) });
        assert_eq!(window.segments(), 1);
    }

    #[test]
    fn a_subflow_that_fails_misses_its_bursts() {
        let mut daps = daps();
        let [fast, slow] = [path(0, 10, 3), path(1, 30, 2)];
        let failed = [SubflowView { usability: FAILED, ..fast }, slow];
        // It fails in its burst at 20 ms, and misses the one at 30 ms.
        assert_eq!(order(&mut daps, &[fast, slow], 4), "0000");
        assert_eq!(order(&mut daps, &failed, 2), "11");
        // The next schedule is without it.
        assert_eq!(order(&mut daps, &failed, 3), "111");
        assert_eq!(order(&mut daps, &[fast, slow], 12), "100000000011");
        // The slow one fails before its burst at 30 ms, with which the period would have ended.
        assert_eq!(order(&mut daps, &[fast, slow], 9), "000000000");
        let failed = [fast, SubflowView { usability: FAILED, ..slow }];
        assert_eq!(order(&mut daps, &failed, 7), "0000000");
        assert_eq!(order(&mut daps, &[fast, slow], 13), "0000000000011");
    }

    #[test]
    fn without_a_measured_subflow_the_lowest_round_trip_time_with_room_decides() {
        let unknown = SubflowView { srtt: None, ..view(1, 20) };
        let ask = |subflows: &[SubflowView]| daps().schedule(&context(subflows, NEW));
        assert_eq!(ask(&[unknown]), Decision::Send(unknown.id));
        assert_eq!(
            ask(&[SubflowView { available_cwnd: 0, ..unknown }]),
            Decision::Wait { until: None }
        );
        assert_eq!(ask(&[path(0, 900, 1), unknown]), Decision::Assign(view(0, 1).id));
        let failed = SubflowView { usability: FAILED, ..view(0, 20) };
        assert_eq!(ask(&[failed]), Decision::Wait { until: None });
    }

    #[test]
    fn a_backup_is_in_the_schedule_only_without_regular_subflows() {
        let mut daps = daps();
        let regular = path(0, 50, 3);
        let backup = SubflowView { backup: true, ..path(1, 10, 2) };
        assert_eq!(order(&mut daps, &[regular, backup], 4), "0000");
        let failed = SubflowView { usability: FAILED, ..regular };
        assert_eq!(order(&mut daps, &[failed, backup], 3), "111");
        assert_eq!(order(&mut daps, &[regular, backup], 4), "0000");
    }

    #[test]
    fn being_asked_uses_up_no_turn() {
        let mut daps = daps();
        let subflows = [path(0, 10, 1), path(1, 20, 1)];
        assert_eq!(order(&mut daps, &subflows, 2), "00");
        for _ in 0..3 {
            assert_eq!(daps.schedule(&context(&subflows, NEW)), Decision::Assign(subflows[1].id));
            daps.on_sent(subflows[0].id, 1000);
        }
        assert_eq!(order(&mut daps, &subflows, 3), "100");
    }

    #[test]
    fn a_long_period_costs_no_search() {
        // The least common multiple of these prime delays exceeds u64 in nanoseconds.
        let primes = [59_999, 59_981, 59_971, 59_957, 59_951, 59_929];
        let subflows: Vec<_> = (0..).zip(primes).map(|(slot, ms)| path(slot, ms, 1)).collect();
        assert_eq!(order(&mut daps(), &subflows, 13), "5432105432105");
    }

    #[test]
    fn missed_bursts_cost_no_search() {
        // A subflow with a delay of 1 ms fails. Its ten million bursts before that of the other are
        // skipped at once.
        let mut daps = daps();
        let [fast, slow] = [path(0, 1, 1), path(1, 10_000_000, 1)];
        assert_eq!(order(&mut daps, &[fast, slow], 2), "00");
        let failed = [SubflowView { usability: FAILED, ..fast }, slow];
        assert_eq!(order(&mut daps, &failed, 2), "11");
        assert_eq!(order(&mut daps, &[fast, slow], 2), "00");
    }

    #[test]
    fn data_sent_again_needs_room_and_leaves_the_schedule_alone() {
        let mut daps = daps();
        let subflows = [path(0, 10, 2), view(1, 500)];
        assert_eq!(order(&mut daps, &subflows, 1), "0");
        let again = daps.schedule(&context(&subflows, AGAIN));
        assert_eq!(again, Decision::Send(subflows[1].id));
        assert_eq!(order(&mut daps, &subflows, 2), "00");
    }
}
