//! LIA, the linked increases algorithm: coupled increase, uncoupled decrease.
//! RFC 6356; Wischik et al., NSDI 2011.

use super::{
    AckSample, BuildCongestionControl, Composed, CongestionControl, Coupled, SlowStartExit, Start,
    Window, WindowAdjustment, coupled, new_reno,
};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// LIA for one subflow.
pub type Lia = Composed<Linked>;

/// Window adjustment of [`Lia`].
#[derive(Clone, Copy, Debug)]
pub struct Linked;

/// The sum of the windows, and the aggressiveness factor of RFC 6356 §3:
/// alpha = cwnd_total · max(cwnd_i / rtt_i²) / (Σ cwnd_i / rtt_i)².
fn total_and_alpha(subflows: impl Iterator<Item = Coupled>) -> (f64, f64) {
    let (mut total, mut best, mut rate) = (0.0, 0.0_f64, 0.0);
    for subflow in subflows {
        total += subflow.cwnd;
        best = best.max(subflow.cwnd / (subflow.rtt * subflow.rtt));
        rate += subflow.cwnd / subflow.rtt;
    }
    (total, total * best / (rate * rate))
}

/// Number of bytes by which an acknowledgement of `acked` bytes grows the window of a subflow. RFC
/// 6356 §3: min(alpha · acked · mss / cwnd_total, acked · mss / cwnd_i).
pub(super) fn increase(acked: u64, mss: u32, cwnd: u64, cwnd_total: f64, alpha: f64) -> f64 {
    let coupled = alpha * acked as f64 * f64::from(mss) / cwnd_total;
    coupled.min(new_reno::increase(acked, mss, cwnd))
}

part_without_parameters! {
    /// Selects [`Lia`].
    pub struct LiaConfig;
    NAME = "lia";
    SUMMARY = "Linked increases: as aggressive as one TCP flow on a shared bottleneck; coupled.";
    SOURCE = "RFC 6356; Wischik et al., NSDI 2011";
}

impl BuildCongestionControl for LiaConfig {
    fn is_coupled(&self) -> bool {
        true
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Loss
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(if hystart { Lia::with_hystart(start) } else { Lia::new(start) })
    }
}

impl WindowAdjustment for Linked {
    fn increase(
        acked: u64,
        window: &Window,
        sample: &AckSample,
        me: usize,
        peers: &[SubflowView],
    ) -> f64 {
        let cwnd = window.cwnd();
        let own = Coupled::own(cwnd, sample, me, peers);
        let (total, alpha) = total_and_alpha(coupled::subflows(own, me, peers));
        increase(acked, window.mss(), cwnd, total, alpha)
    }

    /// RFC 6356 §2: the decrease is that of standard TCP, per subflow, and so is slow start.
    fn decrease(_me: usize, _peers: &[SubflowView]) -> f64 {
        new_reno::DECREASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::coupled::tests::same;

    const MSS: u32 = 1000;

    fn alpha(subflows: impl Iterator<Item = Coupled>) -> f64 {
        total_and_alpha(subflows).1
    }

    fn path(cwnd: f64, rtt: f64) -> Coupled {
        Coupled { cwnd, rtt, loss_interval: 0.0 }
    }

    #[test]
    fn alpha_of_n_identical_paths_is_one_over_n() {
        for n in 1..=8 {
            let alpha = alpha(same(n, 20_000.0, 0.05));
            assert!((alpha - 1.0 / n as f64).abs() < 1e-12, "n = {n}: {alpha}");
        }
    }

    #[test]
    fn n_identical_paths_gain_one_nth_squared_of_a_segment_per_round_trip_each() {
        // RFC 6356 §3, by hand: alpha/total = (1/n)/(n·w), times one window of w acknowledged.
        for n in 1..=8_u32 {
            let cwnd = 20 * u64::from(MSS);
            let total = f64::from(n) * cwnd as f64;
            let alpha = alpha(same(n as usize, cwnd as f64, 0.05));
            let per_round = increase(cwnd, MSS, cwnd, total, alpha) / f64::from(MSS);
            assert!((per_round - 1.0 / f64::from(n * n)).abs() < 1e-12, "n = {n}");
        }
    }

    #[test]
    fn one_path_is_exactly_new_reno() {
        for cwnd in [2_000_u64, 13_000, 1_000_000] {
            let alpha = alpha(same(1, cwnd as f64, 0.123));
            let lia = increase(2_000, MSS, cwnd, cwnd as f64, alpha);
            assert!((lia - new_reno::increase(2_000, MSS, cwnd)).abs() < 1e-9);
        }
    }

    #[test]
    fn no_subflow_grows_faster_than_new_reno_would() {
        // RFC 6356 §3: the min() limits a subflow with a small window next to a fast subflow.
        let paths = [path(2_000.0, 0.3), path(90_000.0, 0.01)];
        let alpha = alpha(paths.into_iter());
        for path in paths {
            let reno = new_reno::increase(1_000, MSS, path.cwnd as u64);
            assert!(increase(1_000, MSS, path.cwnd as u64, 92_000.0, alpha) <= reno);
        }
    }

    #[test]
    fn two_unequal_paths_by_hand() {
        // w = 10, 20 segments; rtt = 0.1, 0.2 s. Σw/rtt = 200; max(w/rtt²) = 1000;
        // alpha = 30·1000/200² = 0.75.
        let paths = [path(10.0, 0.1), path(20.0, 0.2)];
        assert!((alpha(paths.into_iter()) - 0.75).abs() < 1e-12);
    }
}
