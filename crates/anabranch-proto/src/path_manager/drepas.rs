//! DRePaS, dynamic relative path scoring: a path much slower than the best carries only probes.
//! Ferlin, Dreibholz, Alay, "Multi-path transport over heterogeneous wireless networks: does it
//! really pay off?", Globecom 2014.

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Positive;
use anabranch_wire::{Duration, Instant};

use super::{BuildPathManager, FullMesh, PathAction, PathEvent, PathManager};
use crate::view::{SubflowId, SubflowView, Usability};

/// Scores the subflows on which this host sends, and opens them as [`FullMesh`] does.
///
/// Once per period, DRePaS estimates the throughput of each subflow as its data in flight divided
/// by its smoothed RTT. The data in flight is the largest of ten samples in the period (this
/// project), because a fast subflow that waits for a slow one has nothing in flight most of the
/// time. Subflows below `threshold` × the best throughput become standbys. A standby stays
/// established but is used only if no other subflow is usable. Once per period it is probed with
/// copies of data that other subflows carry, and these bytes count as in flight. A standby that
/// reaches the threshold again carries data again.
#[derive(Clone, Debug)]
pub struct DRePaS {
    config: DRePaSConfig,
    mesh: FullMesh,
    next_sample: Option<Instant>,
    /// Time between samples, and the number of samples before the next score.
    interval: Duration,
    samples_left: u32,
    scores: Vec<Score>,
    actions: std::collections::VecDeque<PathAction>,
}

/// The state of a subflow.
#[derive(Clone, Copy, Debug)]
struct Score {
    id: SubflowId,
    standby: bool,
    /// Consecutive scores for the other state.
    against: u32,
    /// Largest number of bytes in flight since the last score.
    in_flight: u64,
}

/// Parameters of [`DRePaS`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct DRePaSConfig {
    /// Smallest throughput, relative to the best subflow, at which a subflow is used.
    #[cfg_attr(
        feature = "serde",
        schemars(range(min = 0.0, max = 1.0), extend("x-origin" = "this project"))
    )]
    pub threshold: f64,
    /// Shortest time between two scores; twice the longest round-trip time, if that is more.
    #[cfg_attr(
        feature = "serde",
        serde(with = "Positive::<Duration>"),
        schemars(extend("x-origin" = "this project"))
    )]
    pub period: Duration,
    /// Consecutive scores that change the state of a subflow.
    #[cfg_attr(feature = "serde", schemars(range(min = 1), extend("x-origin" = "this project")))]
    pub hysteresis: u32,
}

impl Default for DRePaSConfig {
    fn default() -> Self {
        DRePaSConfig { threshold: 0.1, period: Duration::from_secs(1), hysteresis: 2 }
    }
}

impl Part for DRePaSConfig {
    const NAME: &'static str = "drepas";
    const SUMMARY: &'static str = "Sends only probes over paths much slower than the best.";
    const SOURCE: &'static str = "Ferlin et al., Globecom 2014";
}

impl BuildPathManager for DRePaSConfig {
    fn heeds_announcements(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn PathManager> {
        Box::new(DRePaS::new(*self))
    }
}

/// A burst of probes: ten packets of 1 KiB, as in the paper.
const PROBE_SEGMENTS: u32 = 10;
const PROBE_BYTES: u32 = 1024;
/// Samples of the data in flight per score (this project).
const SAMPLES: u32 = 10;

impl DRePaS {
    /// A path manager with these parameters.
    pub fn new(config: DRePaSConfig) -> Self {
        DRePaS {
            config,
            mesh: FullMesh::default(),
            next_sample: None,
            interval: config.period / u64::from(SAMPLES),
            samples_left: SAMPLES,
            scores: Vec::new(),
            actions: std::collections::VecDeque::new(),
        }
    }

    fn sample(&mut self, subflows: &[SubflowView]) {
        self.scores.retain(|score| {
            subflows.iter().any(|v| v.id == score.id && v.usability != Usability::Closed)
        });
        for view in subflows.iter().filter(|view| view.usability == Usability::Usable) {
            let (id, in_flight) = (view.id, view.bytes_in_flight);
            match self.scores.iter_mut().find(|score| score.id == id) {
                Some(score) => score.in_flight = score.in_flight.max(in_flight),
                None => self.scores.push(Score { id, standby: false, against: 0, in_flight }),
            }
        }
    }

    fn score(&mut self, subflows: &[SubflowView]) {
        let usable = || subflows.iter().filter(|view| view.usability == Usability::Usable);
        let rate_of = |score: &Score| {
            usable().find(|view| view.id == score.id).and_then(|view| throughput(view, score))
        };
        let rates: Vec<Option<f64>> = self.scores.iter().map(rate_of).collect();
        let best = rates.iter().flatten().copied().fold(0.0, f64::max);
        self.scores.iter_mut().for_each(|score| score.in_flight = 0);
        if best == 0.0 {
            return;
        }
        for (index, rate) in rates.into_iter().enumerate() {
            if let Some(rate) = rate {
                self.on_score(index, rate >= self.config.threshold * best);
            }
        }
        self.keep_one(subflows);
    }

    fn on_score(&mut self, index: usize, good: bool) {
        let score = &mut self.scores[index];
        score.against = if good == score.standby { score.against + 1 } else { 0 };
        if score.against >= self.config.hysteresis {
            self.set_standby(index, !good);
        }
    }

    fn set_standby(&mut self, index: usize, standby: bool) {
        let score = &mut self.scores[index];
        score.standby = standby;
        score.against = 0;
        let subflow = score.id;
        let action = PathAction::SetPriority { subflow, backup: standby, signalled: false };
        self.actions.push_back(action);
    }

    /// Keep at least one usable subflow in use: if all are standbys, the one with the smallest RTT.
    fn keep_one(&mut self, subflows: &[SubflowView]) {
        let usable = |score: &Score| {
            subflows.iter().find(|v| v.id == score.id && v.usability == Usability::Usable)
        };
        let candidates =
            self.scores.iter().enumerate().filter_map(|(i, s)| Some((i, s, usable(s)?)));
        let candidates: Vec<_> = candidates.collect();
        if candidates.iter().all(|(_, score, _)| score.standby)
            && let Some((index, ..)) = candidates.iter().min_by_key(|(.., v)| v.srtt_or_max())
        {
            self.set_standby(*index, false);
        }
    }

    fn probe_standbys(&mut self) {
        for score in self.scores.iter().filter(|score| score.standby) {
            let (subflow, count, bytes) = (score.id, PROBE_SEGMENTS, PROBE_BYTES);
            self.actions.push_back(PathAction::Probe { subflow, count, bytes });
        }
    }

    fn period(&self, subflows: &[SubflowView]) -> Duration {
        let usable = subflows.iter().filter(|view| view.usability == Usability::Usable);
        let slowest = usable.filter_map(|view| view.srtt).max().unwrap_or(Duration::ZERO);
        self.config.period.max(slowest * 2)
    }
}

/// Throughput of a subflow in bytes per second; a standby carries at least its last probes. `None`
/// before the first round-trip time sample.
fn throughput(view: &SubflowView, score: &Score) -> Option<f64> {
    let srtt = view.srtt.filter(|srtt| *srtt > Duration::ZERO)?;
    let probes = if score.standby { u64::from(PROBE_SEGMENTS * PROBE_BYTES) } else { 0 };
    Some(score.in_flight.max(probes) as f64 / srtt.as_secs_f64())
}

impl PathManager for DRePaS {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        if matches!(event, PathEvent::Established { .. }) {
            self.next_sample = Some(now + self.interval);
        }
        self.mesh.handle_event(now, event, subflows);
    }

    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]) {
        self.mesh.handle_timeout(now, subflows);
        if self.next_sample.is_none_or(|at| at > now) {
            return;
        }
        self.sample(subflows);
        self.samples_left -= 1;
        if self.samples_left == 0 {
            self.score(subflows);
            self.probe_standbys();
            self.samples_left = SAMPLES;
            self.interval = self.period(subflows) / u64::from(SAMPLES);
        }
        self.next_sample = Some(now + self.interval);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.mesh.poll_action().or_else(|| self.actions.pop_front())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.mesh.poll_timeout().into_iter().chain(self.next_sample).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::tests::{actions, established, id, local};
    use crate::view::Slot;
    use crate::view::tests::view;

    fn manager() -> DRePaS {
        let period = Duration::from_secs(1);
        let mut manager = DRePaS::new(DRePaSConfig { threshold: 0.1, period, hysteresis: 2 });
        established(&mut manager, false, &[local(0)]);
        manager
    }

    /// WLAN with 8 Mbit/s, and a second path with the given rate and round-trip time.
    fn views(kbit_per_s: u64, srtt_ms: u64) -> [SubflowView; 2] {
        let wlan = SubflowView { bytes_in_flight: 20_000, ..view(0, 20) };
        let in_flight = kbit_per_s * srtt_ms / 8;
        [wlan, SubflowView { bytes_in_flight: in_flight, ..view(1, srtt_ms) }]
    }

    /// One period in which `views` holds at one sample, and the subflows are idle at the others.
    fn tick(manager: &mut DRePaS, views: &[SubflowView]) -> Vec<PathAction> {
        let idle: Vec<_> =
            views.iter().map(|view| SubflowView { bytes_in_flight: 0, ..*view }).collect();
        for sample in 0..SAMPLES {
            let at = manager.poll_timeout().expect("the next sample");
            manager.handle_timeout(at, if sample == 3 { views } else { &idle });
        }
        actions(manager)
    }

    fn standby(slot: u8, backup: bool) -> PathAction {
        PathAction::SetPriority { subflow: id(slot), backup, signalled: false }
    }

    const PROBE: PathAction = PathAction::Probe {
        subflow: SubflowId { slot: Slot(1), generation: 0 },
        count: 10,
        bytes: 1024,
    };

    #[test]
    fn the_second_bad_score_in_a_row_makes_a_standby_that_is_probed() {
        let (slow, good) = (views(200, 600), views(2000, 150));
        let mut manager = manager();
        assert!(tick(&mut manager, &slow).is_empty());
        assert!(tick(&mut manager, &good).is_empty());
        assert!(tick(&mut manager, &slow).is_empty());
        assert_eq!(tick(&mut manager, &slow), [standby(1, true), PROBE]);
        assert_eq!(tick(&mut manager, &slow), [PROBE]);
    }

    #[test]
    fn a_tenth_of_the_best_is_enough() {
        let mut manager = manager();
        for _ in 0..5 {
            assert!(tick(&mut manager, &views(800, 150)).is_empty());
        }
    }

    #[test]
    fn a_standby_whose_probes_come_up_to_a_tenth_of_the_best_carries_data_again() {
        let mut manager = manager();
        for _ in 0..2 {
            tick(&mut manager, &views(200, 600));
        }
        // 10 KiB in 102 ms are a tenth of 8 Mbit/s.
        let mut quick = views(0, 102);
        assert_eq!(tick(&mut manager, &quick), [PROBE]);
        assert_eq!(tick(&mut manager, &quick), [standby(1, false)]);
        quick[1].bytes_in_flight = 0;
        assert!(tick(&mut manager, &quick).is_empty());
    }

    #[test]
    fn a_standby_takes_over_when_the_best_path_answers_no_more() {
        let mut manager = manager();
        for _ in 0..2 {
            tick(&mut manager, &views(200, 600));
        }
        let mut dead = views(200, 600);
        dead[0].usability = Usability::PotentiallyFailed;
        assert_eq!(tick(&mut manager, &dead), [standby(1, false)]);
        assert_eq!(manager.scores.len(), 2);
    }

    #[test]
    fn the_period_is_twice_the_longest_round_trip_time_but_a_second_at_least() {
        let mut manager = manager();
        let next = |manager: &DRePaS| manager.poll_timeout().expect("the next sample");
        for (srtt_ms, period_ms) in [(300, 1000), (3000, 6000), (300, 1000)] {
            tick(&mut manager, &views(200, srtt_ms));
            let from = next(&manager);
            manager.handle_timeout(from, &views(200, srtt_ms));
            let interval = next(&manager).saturating_since(from);
            assert_eq!(interval, Duration::from_millis(period_ms / 10));
            for _ in 1..SAMPLES {
                manager.handle_timeout(next(&manager), &views(200, srtt_ms));
            }
        }
    }
}
