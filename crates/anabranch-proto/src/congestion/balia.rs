//! BALIA, the balanced linked adaptation algorithm. Peng, Walid, Hwang, Low, "Multipath TCP:
//! analysis, design, and implementation", 2013–2016; draft-walid-mptcp-congestion-control.

use super::{
    AckSample, BuildCongestionControl, Composed, CongestionControl, Coupled, SlowStartExit, Start,
    Window, WindowAdjustment, coupled,
};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// BALIA for one subflow: a compromise between OLIA's friendliness and LIA's responsiveness.
///
/// With x_r = w_r / rtt_r and a_r = max_k x_k / x_r: in congestion avoidance, w_r grows by `x_r /
/// (rtt_r · (Σ x_k)²) · (1 + a_r)/2 · (4 + a_r)/5` for each window acknowledged. A loss reduces it
/// by `w_r / 2 · min(a_r, 1.5)`. Slow start is that of standard TCP.
pub type Balia = Composed<Balanced>;

/// Window adjustment of [`Balia`].
#[derive(Clone, Copy, Debug)]
pub struct Balanced;

/// Largest reduction after a loss, in halves of the window.
const MAX_DECREASE: f64 = 1.5;

/// a: the rate of the fastest subflow divided by that of `own`, at least 1.
pub(super) fn rate_ratio(own: &Coupled, subflows: impl Iterator<Item = Coupled>) -> f64 {
    subflows.map(|subflow| subflow.rate()).fold(own.rate(), f64::max) / own.rate()
}

/// Number of bytes by which an acknowledgement of `acked` bytes grows the window of `own`.
pub(super) fn increase(
    acked: u64,
    mss: u32,
    own: &Coupled,
    subflows: impl Iterator<Item = Coupled> + Clone,
) -> f64 {
    let a = rate_ratio(own, subflows.clone());
    let gain = coupled::fair_gain(own, subflows) * (1.0 + a) / 2.0 * (4.0 + a) / 5.0;
    acked as f64 * f64::from(mss) * gain
}

/// Factor by which a loss reduces the window, given a.
pub(super) fn decrease(a: f64) -> f64 {
    1.0 - a.min(MAX_DECREASE) / 2.0
}

part_without_parameters! {
    /// Selects [`Balia`].
    pub struct BaliaConfig;
    NAME = "balia";
    SUMMARY = "Balanced linked adaptation: balances LIA's responsiveness and OLIA's friendliness; coupled.";
    SOURCE = "Peng et al., IEEE/ACM ToN 2016";
}

impl BuildCongestionControl for BaliaConfig {
    fn is_coupled(&self) -> bool {
        true
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Loss
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(if hystart { Balia::with_hystart(start) } else { Balia::new(start) })
    }
}

impl WindowAdjustment for Balanced {
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

    /// Before its first round-trip time sample, a subflow has no rate and halves as in standard TCP.
    fn decrease(me: usize, peers: &[SubflowView]) -> f64 {
        let own = peers.get(me).and_then(Coupled::of);
        decrease(own.map_or(1.0, |own| rate_ratio(&own, coupled::subflows(own, me, peers))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::coupled::tests::same;
    use crate::congestion::new_reno;
    use crate::congestion::tests::start;
    use crate::congestion::{CongestionControl, CongestionEvent};
    use crate::view::{SubflowView, tests::view};
    use anabranch_wire::Instant;

    const MSS: u32 = 1000;

    fn path(cwnd: f64, rtt: f64) -> Coupled {
        Coupled { cwnd, rtt, loss_interval: 0.0 }
    }

    #[test]
    fn n_identical_paths_gain_one_nth_squared_of_a_segment_per_round_trip_each() {
        // By hand: a = 1, so both factors are 1, and (w/rtt²) / (n·w/rtt)² = 1/(n²·w).
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
            let own = path(cwnd as f64, 0.123);
            let balia = increase(2_000, MSS, &own, [own].into_iter());
            assert!((balia - new_reno::increase(2_000, MSS, cwnd)).abs() < 1e-9);
        }
        assert_eq!(decrease(1.0), new_reno::DECREASE);
    }

    #[test]
    fn two_unequal_paths_by_hand() {
        // w = 10, 40 segments of 1 byte; rtt = 0.1, 0.1 s: x = 100, 400, Σx = 500.
        // Path 0: a = 4; 100/(0.1·500²) · 5/2 · 8/5 = 0.004 · 4 = 0.016.
        // Path 1: a = 1; 400/(0.1·500²) = 0.016.
        let paths = [path(10.0, 0.1), path(40.0, 0.1)];
        for own in paths {
            let gain = increase(1, 1, &own, paths.into_iter());
            assert!((gain - 0.016).abs() < 1e-12, "{gain}");
        }
    }

    #[test]
    fn the_increase_is_that_of_the_implementation_for_linux() {
        // In Linux, the window grows by one segment for every 10·w·(Σx)² / ((x + max x)·(4x + max
        // x)) segments acknowledged. This is the same: (1 + a)/2 · (4 + a)/5 · x² = (x + max)(4x +
        // max)/10, and x/rtt = x²/w.
        let paths = [path(12.0, 0.07), path(31.0, 0.05), path(3.0, 0.2)];
        let total: f64 = paths.iter().map(Coupled::rate).sum();
        let max = paths.iter().map(Coupled::rate).fold(0.0, f64::max);
        for own in paths {
            let x = own.rate();
            let per_segment = 10.0 * own.cwnd * total * total / ((x + max) * (4.0 * x + max));
            let gain = increase(1, 1, &own, paths.into_iter());
            assert!((gain * per_segment - 1.0).abs() < 1e-12, "{gain}");
        }
    }

    #[test]
    fn a_loss_takes_half_from_the_fastest_and_three_quarters_at_most_from_the_others() {
        // 1 − min(a, 1.5)/2 of the window remains: 1/2 for a = 1, 0.4 for 1.2, 1/4 for 1.5 and
        // more.
        assert_eq!(decrease(1.0), 0.5);
        assert!((decrease(1.2) - 0.4).abs() < 1e-12);
        assert_eq!((decrease(2.0), decrease(100.0)), (0.25, 0.25));
        // A subflow with a tenth of the other's rate keeps a quarter of 20 segments.
        let mut slow = Balia::new(&start(20_000));
        let peers: [SubflowView; 2] = [view(0, 200), view(1, 20)];
        let loss = CongestionEvent::Recovery { now: Instant::ZERO, flight_size: 20_000 };
        slow.on_congestion_event(&loss, 0, &peers);
        assert_eq!(slow.cwnd(), 5_000);
        let mut fast = Balia::new(&start(20_000));
        fast.on_congestion_event(&loss, 1, &peers);
        assert_eq!(fast.cwnd(), 10_000);
    }
}
