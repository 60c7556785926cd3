//! OLIA, the opportunistic linked increases algorithm. Khalili et al., CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control.

use super::{
    AckSample, BuildCongestionControl, Composed, CongestionControl, Coupled, SlowStartExit, Start,
    Window, WindowAdjustment, coupled, new_reno,
};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// OLIA for one subflow.
///
/// In congestion avoidance, for each window acknowledged on subflow r, the window w_r grows by
/// `(w_r / rtt_r²) / (Σ w_p / rtt_p)² + alpha_r / w_r`. The first term is Pareto-optimal. The
/// second term moves traffic from the subflows with the largest windows to those that have
/// performed best recently; it may be negative. Slow start and decrease are those of standard TCP.
pub type Olia = Composed<Opportunistic>;

/// Window adjustment of [`Olia`].
#[derive(Clone, Copy, Debug)]
pub struct Opportunistic;

/// The sets of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OliaSet {
    /// Best, but not among the largest windows: B \ M.
    Collected,
    /// Among the largest windows: M.
    Largest,
    /// In neither set.
    Other,
}

/// Properties of all subflows that decide to which set each one belongs.
#[derive(Clone, Copy, Debug)]
struct Sets {
    largest_cwnd: f64,
    best_quality: f64,
}

/// Recent performance of a path, l / rtt². (The paper's text has l² / rtt. This is the formula of
/// its authors' implementation for Linux.)
fn quality(subflow: &Coupled) -> f64 {
    subflow.loss_interval / (subflow.rtt * subflow.rtt)
}

impl Sets {
    fn of(subflows: impl Iterator<Item = Coupled>) -> Self {
        subflows.fold(Sets { largest_cwnd: 0.0, best_quality: 0.0 }, |sets, subflow| Sets {
            largest_cwnd: sets.largest_cwnd.max(subflow.cwnd),
            best_quality: sets.best_quality.max(quality(&subflow)),
        })
    }

    fn place(&self, subflow: &Coupled) -> OliaSet {
        if subflow.cwnd >= self.largest_cwnd {
            OliaSet::Largest
        } else if quality(subflow) >= self.best_quality {
            OliaSet::Collected
        } else {
            OliaSet::Other
        }
    }
}

/// alpha of `own`, one of n subflows: 1 / (n·|B \ M|) in B \ M, −1 / (n·|M|) in M, 0 elsewhere
/// and if B \ M is empty. Khalili et al., CoNEXT 2012 §IV.
pub(super) fn alpha(own: &Coupled, subflows: impl Iterator<Item = Coupled> + Clone) -> f64 {
    let sets = Sets::of(subflows.clone());
    let (mut all, mut collected, mut largest) = (0.0, 0.0, 0.0);
    for subflow in subflows {
        all += 1.0;
        match sets.place(&subflow) {
            OliaSet::Collected => collected += 1.0,
            OliaSet::Largest => largest += 1.0,
            OliaSet::Other => {}
        }
    }
    match sets.place(own) {
        _ if collected == 0.0 => 0.0,
        OliaSet::Collected => 1.0 / (all * collected),
        OliaSet::Largest => -1.0 / (all * largest),
        OliaSet::Other => 0.0,
    }
}

/// Number of bytes by which an acknowledgement of `acked` bytes changes the window of `own`.
pub(super) fn increase(
    acked: u64,
    mss: u32,
    own: &Coupled,
    subflows: impl Iterator<Item = Coupled> + Clone,
) -> f64 {
    let gain = coupled::fair_gain(own, subflows.clone()) + alpha(own, subflows) / own.cwnd;
    acked as f64 * f64::from(mss) * gain
}

part_without_parameters! {
    /// Selects [`Olia`].
    pub struct OliaConfig;
    NAME = "olia";
    SUMMARY = "Opportunistic linked increases: Pareto-optimal load balancing; coupled.";
    SOURCE = "Khalili et al., CoNEXT 2012";
}

impl BuildCongestionControl for OliaConfig {
    fn is_coupled(&self) -> bool {
        true
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Loss
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(if hystart { Olia::with_hystart(start) } else { Olia::new(start) })
    }
}

impl WindowAdjustment for Opportunistic {
    fn increase(
        acked: u64,
        window: &Window,
        sample: &AckSample,
        me: usize,
        peers: &[SubflowView],
    ) -> f64 {
        let own = Coupled::own(window.cwnd(), sample, me, peers);
        increase(acked, window.mss(), &own, coupled::subflows(own, me, peers))
    }

    fn decrease(_me: usize, _peers: &[SubflowView]) -> f64 {
        new_reno::DECREASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::coupled::tests::same;

    const MSS: u32 = 1000;

    fn path(cwnd: f64, rtt: f64, loss_interval: f64) -> Coupled {
        Coupled { cwnd, rtt, loss_interval }
    }

    fn alphas<const N: usize>(paths: [Coupled; N]) -> [f64; N] {
        paths.map(|own| alpha(&own, paths.into_iter()))
    }

    #[test]
    fn n_identical_paths_gain_one_nth_squared_of_a_segment_per_round_trip_each() {
        // By hand: (w/rtt²) / (n·w/rtt)² = 1/(n²·w), times one window acknowledged. All subflows
        // are in both sets, so B \ M is empty and alpha is 0.
        for n in 1..=8_u32 {
            let paths = same(n as usize, 20_000.0, 0.05);
            let own = paths.clone().next().expect("n > 0");
            let per_round = increase(20_000, MSS, &own, paths) / f64::from(MSS);
            assert!((per_round - 1.0 / f64::from(n * n)).abs() < 1e-12, "n = {n}");
        }
    }

    #[test]
    fn one_path_is_exactly_new_reno() {
        for cwnd in [2_000_u64, 13_000, 1_000_000] {
            let own = path(cwnd as f64, 0.123, 5e6);
            let olia = increase(2_000, MSS, &own, [own].into_iter());
            assert!((olia - new_reno::increase(2_000, MSS, cwnd)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_best_path_with_a_small_window_takes_from_the_largest() {
        // l/rtt²: 100, 400 and 1; windows 20, 10, 5. M = {0}, B \ M = {1}, n = 3:
        // alpha = −1/(3·1), +1/(3·1), 0.
        let paths = [path(20.0, 0.1, 1.0), path(10.0, 0.1, 4.0), path(5.0, 1.0, 1.0)];
        assert_eq!(alphas(paths), [-1.0 / 3.0, 1.0 / 3.0, 0.0]);
    }

    #[test]
    fn two_largest_windows_share_what_they_give_up() {
        // M = {0, 1}, B \ M = {2}, n = 3: −1/(3·2) each, +1/3.
        let paths = [path(20.0, 0.1, 1.0), path(20.0, 0.1, 2.0), path(5.0, 0.1, 9.0)];
        assert_eq!(alphas(paths), [-1.0 / 6.0, -1.0 / 6.0, 1.0 / 3.0]);
    }

    #[test]
    fn nothing_moves_when_the_best_path_has_the_largest_window() {
        let paths = [path(20.0, 0.1, 9.0), path(10.0, 0.1, 1.0)];
        assert_eq!(alphas(paths), [0.0, 0.0]);
    }

    #[test]
    fn two_unequal_paths_by_hand() {
        // w = 10, 20 segments of 1 byte; rtt = 0.1, 0.2 s; Σw/rtt = 200. Path 0 is the best (1/0.01
        // against 1/0.04) but not the largest, so alpha = 1/2, −1/2.
        // * Path 0: (10/0.01)/200² + 0.5/10 = 0.025 + 0.05 = 0.075 per byte acknowledged.
        // * Path 1: (20/0.04)/200² − 0.5/20 = 0.0125 − 0.025 = −0.0125.
        let paths = [path(10.0, 0.1, 1.0), path(20.0, 0.2, 1.0)];
        let gains = paths.map(|own| increase(1, 1, &own, paths.into_iter()));
        assert!((gains[0] - 0.075).abs() < 1e-12, "{gains:?}");
        assert!((gains[1] + 0.0125).abs() < 1e-12, "{gains:?}");
    }
}
