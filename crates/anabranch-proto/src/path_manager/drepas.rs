//! DRePaS, dynamic relative path scoring: a path that is much slower than the best carries nothing
//! but probes. Ferlin, Dreibholz, Alay, "Multi-path transport over heterogeneous wireless networks:
//! does it really pay off?", Globecom 2014.

use anabranch_wire::{Duration, Instant};

use super::{FullMesh, PathAction, PathEvent, PathManager};
use crate::view::{SubflowId, SubflowView, Usability};

/// Parameters of [`DRePaS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DRePaSConfig {
    /// Throughput relative to the best subflow's from which on a subflow is worth using, 0 to 1.
    pub threshold: f64,
    /// Shortest time between two scores; twice the longest smoothed RTT if that is more.
    pub period: Duration,
    /// Scores in a row, at least 1, that change what a subflow is used for.
    pub hysteresis: u32,
}

/// Scores the subflows on which this host sends, and opens them as [`FullMesh`] does.
///
/// Every period the throughput of each subflow is estimated as what it has in flight over its
/// smoothed RTT. Those below `threshold` × the best one's become standbys: established, used only
/// when no other subflow is usable, and probed once a period with copies of data that others
/// carry, the octets of which count as in flight. Those that come up to the threshold again
/// carry data again.
#[derive(Clone, Debug)]
pub struct DRePaS {
    config: DRePaSConfig,
    mesh: FullMesh,
    next_score: Option<Instant>,
    scores: Vec<Score>,
    actions: std::collections::VecDeque<PathAction>,
}

/// What is known of a subflow.
#[derive(Clone, Copy, Debug)]
struct Score {
    id: SubflowId,
    standby: bool,
    /// Scores in a row that spoke for the other state.
    against: u32,
}

/// A burst of probes: ten packets of 1 KiB, as in the paper.
const PROBE_SEGMENTS: u32 = 10;
const PROBE_OCTETS: u32 = 1024;

impl Default for DRePaSConfig {
    /// The paper states none of these: they are ours.
    fn default() -> Self {
        DRePaSConfig { threshold: 0.1, period: Duration::from_secs(1), hysteresis: 2 }
    }
}

impl DRePaS {
    /// A manager with these parameters.
    pub fn new(config: DRePaSConfig) -> Self {
        DRePaS {
            config,
            mesh: FullMesh::default(),
            next_score: None,
            scores: Vec::new(),
            actions: std::collections::VecDeque::new(),
        }
    }

    fn score(&mut self, subflows: &[SubflowView]) {
        let usable = || subflows.iter().filter(|view| view.usability == Usability::Usable);
        self.scores.retain(|score| {
            subflows.iter().any(|v| v.id == score.id && v.usability != Usability::Closed)
        });
        for view in usable() {
            if self.scores.iter().all(|score| score.id != view.id) {
                self.scores.push(Score { id: view.id, standby: false, against: 0 });
            }
        }
        let rate_of = |score: &Score| {
            usable()
                .find(|view| view.id == score.id)
                .and_then(|view| throughput(view, score.standby))
        };
        let rates: Vec<Option<f64>> = self.scores.iter().map(rate_of).collect();
        let best = rates.iter().flatten().copied().fold(0.0, f64::max);
        if best == 0.0 {
            return;
        }
        for (index, rate) in rates.into_iter().enumerate() {
            if let Some(rate) = rate {
                self.take_score(index, rate >= self.config.threshold * best);
            }
        }
        self.keep_one(subflows);
    }

    fn take_score(&mut self, index: usize, good: bool) {
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

    /// At least one usable subflow carries data: the quickest to answer, if all are standbys.
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
            let (subflow, count, octets) = (score.id, PROBE_SEGMENTS, PROBE_OCTETS);
            self.actions.push_back(PathAction::Probe { subflow, count, octets });
        }
    }

    fn pause(&self, subflows: &[SubflowView]) -> Duration {
        let usable = subflows.iter().filter(|view| view.usability == Usability::Usable);
        let slowest = usable.filter_map(|view| view.srtt).max().unwrap_or(Duration::ZERO);
        self.config.period.max(slowest * 2)
    }
}

/// What a subflow carries, in octets per second; a standby carries its last probes. Without a
/// round-trip time nothing is known.
fn throughput(view: &SubflowView, standby: bool) -> Option<f64> {
    let srtt = view.srtt.filter(|srtt| *srtt > Duration::ZERO)?;
    let probes = u64::from(PROBE_SEGMENTS * PROBE_OCTETS);
    let in_flight = if standby { view.bytes_in_flight.max(probes) } else { view.bytes_in_flight };
    Some(in_flight as f64 / srtt.as_secs_f64())
}

impl PathManager for DRePaS {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        if matches!(event, PathEvent::Established { .. }) {
            self.next_score = Some(now + self.config.period);
        }
        self.mesh.handle_event(now, event, subflows);
    }

    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]) {
        self.mesh.handle_timeout(now, subflows);
        if self.next_score.is_some_and(|at| at <= now) {
            self.score(subflows);
            self.probe_standbys();
            self.next_score = Some(now + self.pause(subflows));
        }
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.mesh.poll_action().or_else(|| self.actions.pop_front())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.mesh.poll_timeout().into_iter().chain(self.next_score).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::tests::{actions, established, id, local};
    use crate::view::tests::view;

    fn manager() -> DRePaS {
        let mut manager = DRePaS::new(DRePaSConfig::default());
        established(&mut manager, false, &[local(0)]);
        manager
    }

    /// WLAN with 8 Mbit/s, and a second path with this rate and round-trip time.
    fn views(kbit_per_s: u64, srtt_ms: u64) -> [SubflowView; 2] {
        let wlan = SubflowView { bytes_in_flight: 20_000, ..view(0, 20) };
        let in_flight = kbit_per_s * srtt_ms / 8;
        [wlan, SubflowView { bytes_in_flight: in_flight, ..view(1, srtt_ms) }]
    }

    fn tick(manager: &mut DRePaS, views: &[SubflowView]) -> Vec<PathAction> {
        let at = manager.poll_timeout().expect("the next score");
        manager.handle_timeout(at, views);
        actions(manager)
    }

    fn standby(slot: u8, backup: bool) -> PathAction {
        PathAction::SetPriority { subflow: id(slot), backup, signalled: false }
    }

    const PROBE: PathAction = PathAction::Probe {
        subflow: SubflowId { slot: 1, generation: 0 },
        count: 10,
        octets: 1024,
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
        let first = manager.poll_timeout().expect("the first score");
        assert_eq!(first, Instant::ZERO + Duration::from_secs(1));
        tick(&mut manager, &views(200, 3000));
        assert_eq!(manager.poll_timeout(), Some(first + Duration::from_secs(6)));
        tick(&mut manager, &views(200, 300));
        assert_eq!(manager.poll_timeout(), Some(first + Duration::from_secs(7)));
    }
}
