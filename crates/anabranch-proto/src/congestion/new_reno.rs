//! NewReno: RFC 5681, RFC 6582.

use super::{
    AckSample, BuildCongestionControl, Composed, CongestionControl, SlowStartExit, Start, Window,
    WindowAdjustment,
};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// NewReno for one subflow, independent of the others.
pub type NewReno = Composed<Additive>;

/// Window adjustment of [`NewReno`].
#[derive(Clone, Copy, Debug)]
pub struct Additive;

/// Factor by which a loss reduces the window. RFC 5681 §3.1.
pub(super) const DECREASE: f64 = 0.5;

/// Number of bytes by which an acknowledgement of `acked` bytes grows a window of `cwnd` bytes in
/// congestion avoidance: one segment per window. RFC 5681 §3.1.
pub(super) fn increase(acked: u64, mss: u32, cwnd: u64) -> f64 {
    acked as f64 * f64::from(mss) / cwnd as f64
}

part_without_parameters! {
    /// Selects [`NewReno`].
    pub struct NewRenoConfig;
    NAME = "new_reno";
    SUMMARY = "Additive increase, multiplicative decrease; uncoupled.";
    SOURCE = "RFC 5681 and RFC 6582";
}

impl BuildCongestionControl for NewRenoConfig {
    fn in_kernel(&self) -> Option<&'static str> {
        Some("reno")
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Loss
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(if hystart { NewReno::with_hystart(start) } else { NewReno::new(start) })
    }
}

impl WindowAdjustment for Additive {
    fn increase(
        acked: u64,
        window: &Window,
        _sample: &AckSample,
        _me: usize,
        _peers: &[SubflowView],
    ) -> f64 {
        increase(acked, window.mss(), window.cwnd())
    }

    fn decrease(_me: usize, _peers: &[SubflowView]) -> f64 {
        DECREASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::start;
    use crate::congestion::{CongestionControl, CongestionEvent};
    use anabranch_wire::{Duration, Instant};

    fn sample(acked: u64) -> AckSample {
        AckSample {
            now: Instant::ZERO,
            acked,
            rtt: None,
            srtt: Duration::from_millis(10),
            bytes_in_flight: 0,
            snd_una: 0,
            snd_nxt: 0,
            cwnd_limited: true,
        }
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window() {
        // RFC 5681 §3.1: 10 segments acknowledged at a window of 10 segments.
        let mut reno = NewReno::new(&start(20_000));
        let recovery = CongestionEvent::Recovery { now: Instant::ZERO, flight_size: 20_000 };
        reno.on_congestion_event(&recovery, 0, &[]);
        assert_eq!(reno.cwnd(), 10_000);
        for _ in 0..5 {
            reno.on_ack(&sample(2_000), 0, &[]);
        }
        assert_eq!(reno.cwnd(), 11_000);
    }

    #[test]
    fn nothing_grows_while_the_window_is_not_the_limit() {
        let mut reno = NewReno::new(&start(10_000));
        reno.on_ack(&AckSample { cwnd_limited: false, ..sample(2_000) }, 0, &[]);
        assert_eq!(reno.cwnd(), 10_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_half_the_flight_as_threshold() {
        // RFC 5681 §3.1
        let mut reno = NewReno::new(&start(10_000));
        let timeout =
            CongestionEvent::Timeout { now: Instant::ZERO, flight_size: 10_000, first: true };
        reno.on_congestion_event(&timeout, 0, &[]);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (1_000, 5_000));
    }
}
