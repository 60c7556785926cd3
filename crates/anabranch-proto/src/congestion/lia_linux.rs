//! LIA as in the original kernel: `mptcp_coupled.c` of Multipath TCP 0.89.5.

use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, Coupled,
    ExternalReduction, HyStart, SlowStartExit, Start, Window, coupled, new_reno,
};
use crate::view::SubflowView;
use anabranch_config::part_without_parameters;

/// LIA for one subflow, in integers, and by acknowledgements instead of bytes.
///
/// In congestion avoidance, the window grows by a segment when as many acknowledgements were counted
/// as the larger of the window and 2¹² / alpha. alpha is an integer of at least 1. It is computed
/// again only after some window has changed. The slow start goes one segment beyond the threshold, so
/// the window also grows by a segment at the end of each recovery.
#[derive(Clone, Debug)]
struct LiaLinux {
    window: Window,
    hystart: Option<HyStart>,
    /// Acknowledgements since the last growth.
    counted: u64,
    alpha: u64,
    /// Sum of the windows for which `alpha` was computed, in bytes.
    windows: u64,
}

part_without_parameters! {
    /// Selects LIA as in the original kernel.
    pub struct LiaLinuxConfig;
    NAME = "lia_linux";
    SUMMARY = "LIA of Multipath TCP for Linux: in integers, by acknowledgements instead of bytes; coupled.";
    SOURCE = "mptcp_coupled.c of Multipath TCP 0.89.5";
}

impl BuildCongestionControl for LiaLinuxConfig {
    fn is_coupled(&self) -> bool {
        true
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Loss
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(LiaLinux::new(start, hystart))
    }
}

/// Binary places of the numerator, of the root of the denominator, and of alpha (`alpha_scale_num`,
/// `alpha_scale_den`, `alpha_scale`).
const NUMERATOR_BITS: u32 = 32;
const DENOMINATOR_BITS: u32 = 10;
const ALPHA_BITS: u32 = NUMERATOR_BITS - 2 * DENOMINATOR_BITS;

/// Round-trip times count eighths of a tick of 4 ms.
const RTT_UNITS_PER_SECOND: f64 = 2000.0;

/// Congestion window in segments, and smoothed round-trip time in units of the kernel.
type Integers = (u64, u64);

fn in_integers(subflow: &Coupled, mss: u32) -> Integers {
    let rtt = (subflow.rtt * RTT_UNITS_PER_SECOND) as u64;
    (subflow.cwnd as u64 / u64::from(mss), rtt.max(1))
}

/// alpha of RFC 6356 over the sum of the windows, times 2¹².
fn alpha(subflows: impl Iterator<Item = Integers> + Clone) -> u64 {
    let quality = |(cwnd, rtt): &Integers| (cwnd << NUMERATOR_BITS) / (rtt * rtt);
    let Some((best_cwnd, best_rtt)) = subflows.clone().max_by_key(quality) else { return 1 };
    let sum: u64 = subflows.map(|(cwnd, rtt)| (cwnd << DENOMINATOR_BITS) * best_rtt / rtt).sum();
    ((best_cwnd << NUMERATOR_BITS) / sum.saturating_mul(sum).max(1)).max(1)
}

impl LiaLinux {
    fn new(start: &Start, hystart: bool) -> Self {
        LiaLinux {
            window: Window::new(start),
            hystart: hystart.then(HyStart::default),
            counted: 0,
            alpha: 1,
            windows: 0,
        }
    }

    /// Number of acknowledgements for a segment of growth.
    fn interval(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]) -> u64 {
        let mss = self.window.mss();
        let own = Coupled::own(self.window.cwnd(), sample, me, peers);
        let subflows = coupled::subflows(own, me, peers);
        let cwnd = self.window.cwnd() / u64::from(mss);
        if subflows.clone().count() == 1 {
            return cwnd;
        }
        let windows = subflows.clone().map(|subflow| subflow.cwnd as u64).sum();
        if windows != self.windows {
            self.windows = windows;
            self.alpha = alpha(subflows.map(|subflow| in_integers(&subflow, mss)));
        }
        cwnd.max((1 << ALPHA_BITS) / self.alpha)
    }

    fn grow_by_a_segment(&mut self) {
        self.window.rise_to(self.window.cwnd() + u64::from(self.window.mss()));
    }
}

impl CongestionControl for LiaLinux {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]) {
        if HyStart::slow_start(&mut self.hystart, &mut self.window, sample) == 0 {
            return;
        }
        // Slow start as long as the window is not larger than the threshold.
        if self.window.cwnd() <= self.window.ssthresh() {
            self.grow_by_a_segment();
        } else if self.counted >= self.interval(sample, me, peers) {
            self.grow_by_a_segment();
            self.counted = 0;
        } else {
            self.counted += 1;
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _me: usize, _peers: &[SubflowView]) {
        self.window.on_event(event, new_reno::DECREASE);
        if event.is_congestion() {
            self.counted = 0;
        }
    }

    fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        self.window.on_external_reduction(reduction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::start;
    use crate::view::tests::view;
    use anabranch_wire::{Duration, Instant};

    /// An acknowledgement of two segments of 1000 bytes.
    const SAMPLE: AckSample = AckSample {
        now: Instant::ZERO,
        acked: 2_000,
        rtt: None,
        srtt: Duration::from_millis(20),
        bytes_in_flight: 0,
        snd_una: 0,
        snd_nxt: 0,
        cwnd_limited: true,
    };

    /// A window of `segments` above its threshold, which is one segment less.
    fn avoiding(segments: u64) -> LiaLinux {
        let mut lia = LiaLinux::new(&start(2 * (segments - 1) * 1000), false);
        let flight_size = 2 * (segments - 1) * 1000;
        let recovery = CongestionEvent::Recovery { now: Instant::ZERO, flight_size };
        lia.on_congestion_event(&recovery, 0, &[]);
        lia.on_ack(&SAMPLE, 0, &[]);
        assert_eq!(lia.cwnd(), segments * 1000);
        lia
    }

    /// Number of acknowledgements until the window has grown.
    fn until_growth(lia: &mut LiaLinux, sample: &AckSample, peers: &[SubflowView]) -> u32 {
        let before = lia.cwnd();
        (1..)
            .find(|_| {
                lia.on_ack(sample, 0, peers);
                lia.cwnd() > before
            })
            .expect("it grows")
    }

    #[test]
    fn alpha_by_hand() {
        // 20 ms and 150 ms are 40 and 300 units. Best: 10·2³²/40² > 20·2³²/300². The sum is
        // 10·2¹⁰ + 20·2¹⁰·40/300 = 10,240 + 2,730 = 12,970, and 10·2³²/12,970² = 255.3.
        assert_eq!(alpha([(10, 40), (20, 300)].into_iter()), 255);
        // Equal: 600·2³²/(1200·2¹⁰)² = 1.7, and 2,000·2³²/(4000·2¹⁰)² = 0.5.
        assert_eq!(alpha([(600, 40), (600, 40)].into_iter()), 1);
        assert_eq!(alpha([(2_000, 40), (2_000, 40)].into_iter()), 1);
    }

    #[test]
    fn alone_it_counts_a_window_of_acknowledgements_whatever_they_cover() {
        // The counter is tested before it counts: 10 acknowledgements, and the one that grows.
        let mut lia = avoiding(10);
        assert_eq!(until_growth(&mut lia, &SAMPLE, &[view(0, 20)]), 11);
        assert_eq!(lia.cwnd(), 11_000);
    }

    #[test]
    fn two_equal_subflows_wait_for_four_windows() {
        // alpha = 20·2³²/(40·2¹⁰)² = 51.2, and 2¹²/51 = 80.3: 80 acknowledgements.
        let mut lia = avoiding(20);
        assert_eq!(until_growth(&mut lia, &SAMPLE, &[view(0, 20), view(1, 20)]), 81);
    }

    #[test]
    fn a_large_window_next_to_a_fast_subflow_grows_no_faster_than_reno() {
        // 1 ms is 2 units. alpha = 10·2³²/(10·2¹⁰ + 90·2¹⁰·2/40)² = 194.8, and 2¹²/194 = 21 < 90.
        let fast = SubflowView { cwnd: 10_000, ..view(1, 1) };
        assert_eq!(until_growth(&mut avoiding(90), &SAMPLE, &[view(0, 20), fast]), 91);
    }

    #[test]
    fn large_windows_grow_once_in_4096_acknowledgements() {
        // alpha is at least 1. RFC 6356 has 4·600 = 2400 acknowledgements for 600 segments.
        let peers = [view(0, 20), SubflowView { cwnd: 600_000, ..view(1, 20) }];
        assert_eq!(until_growth(&mut avoiding(600), &SAMPLE, &peers), 4097);
    }

    #[test]
    fn alpha_stays_until_a_window_changes() {
        // With 20 and 20 segments, 2¹²/alpha is 80. If the own RTT grows to 40 ms, alpha would be
        // 20·2³²/(20·2¹⁰ + 20·2¹⁰·40/80)² = 91.02, and 2¹²/91 = 45.
        let peers = [view(0, 20), view(1, 20)];
        let slower = AckSample { srtt: Duration::from_millis(40), ..SAMPLE };
        let mut lia = avoiding(20);
        lia.on_ack(&SAMPLE, 0, &peers);
        assert_eq!(until_growth(&mut lia, &slower, &peers), 80);
        // Once the other window has changed: 21 + 21·1/2 = 31.5 segments, alpha = 21·4096/31.5²
        // = 86.7, and 2¹²/86 = 47.
        let changed = [view(0, 20), SubflowView { cwnd: 21_000, ..view(1, 20) }];
        assert_eq!(until_growth(&mut lia, &slower, &changed), 48);
    }

    #[test]
    fn nothing_grows_while_the_window_is_not_the_limit() {
        let mut lia = avoiding(3);
        let idle = AckSample { cwnd_limited: false, ..SAMPLE };
        for _ in 0..10 {
            lia.on_ack(&idle, 0, &[view(0, 20)]);
        }
        assert_eq!(lia.cwnd(), 3_000);
    }
}
