//! CUBIC: RFC 9438.

use anabranch_config::part_without_parameters;
use anabranch_wire::Instant;

use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, ExternalReduction,
    HyStart, SlowStartExit, Start, Window,
};
use crate::view::SubflowView;

/// RFC 9438 §4.6: multiplicative decrease factor.
const BETA: f64 = 0.7;
/// RFC 9438 §5: aggressiveness, segments per second cubed.
const C: f64 = 0.4;

/// CUBIC for one subflow. The formulas have windows in segments and times in seconds.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    hystart: Option<HyStart>,
    w_max: f64,
    epoch: Option<Epoch>,
}

/// A congestion avoidance epoch: from one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    k: f64,
    w_est: f64,
    last_ack: Instant,
    cwnd_start: f64,
}

/// Time to grow from `cwnd_start` back to `w_max`. RFC 9438 §4.2, figure 2.
pub(super) fn k(w_max: f64, cwnd_start: f64) -> f64 {
    libm::cbrt((w_max - cwnd_start).max(0.0) / C)
}

/// The cubic function `t` seconds into the epoch. RFC 9438 §4.2, figure 1.
pub(super) fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let d = t - k;
    C * d * d * d + w_max
}

/// Growth per acknowledged window of the Reno-friendly estimate. RFC 9438 §4.3.
pub(super) fn alpha_cubic() -> f64 {
    3.0 * (1.0 - BETA) / (1.0 + BETA)
}

part_without_parameters! {
    /// Selects [`Cubic`].
    pub struct CubicConfig;
    NAME = "cubic";
    SUMMARY = "The window grows by a cubic function of the time since the last loss; uncoupled.";
    SOURCE = "RFC 9438";
}

impl BuildCongestionControl for CubicConfig {
    fn in_kernel(&self) -> Option<&'static str> {
        Some("cubic")
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::HyStart
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(if hystart { Cubic::new(start) } else { Cubic::without_hystart(start) })
    }
}

impl Cubic {
    /// CUBIC in slow start, with the initial window and HyStart++.
    pub fn new(start: &Start) -> Self {
        Cubic { hystart: Some(HyStart::default()), ..Cubic::without_hystart(start) }
    }

    /// CUBIC with standard slow start.
    pub fn without_hystart(start: &Start) -> Self {
        Cubic { window: Window::new(start), hystart: None, w_max: 0.0, epoch: None }
    }

    fn segments(&self) -> f64 {
        self.window.cwnd() as f64 / f64::from(self.window.mss())
    }

    /// Congestion avoidance. RFC 9438 §4.2 to §4.5.
    fn avoid(&mut self, acked: u64, sample: &AckSample) {
        let cwnd = self.segments();
        let acked = acked as f64 / f64::from(self.window.mss());
        if self.epoch.is_none() {
            // RFC 9438 §4.8: after leaving slow start without loss, K is 0 and W_max is cwnd.
            self.w_max = self.w_max.max(cwnd);
            self.epoch = Some(Epoch {
                start: sample.now,
                k: k(self.w_max, cwnd),
                w_est: cwnd,
                last_ack: sample.now,
                cwnd_start: cwnd,
            });
        }
        let w_max = self.w_max;
        let epoch = self.epoch.as_mut().expect("just set");
        epoch.last_ack = sample.now;
        // RFC 9438 §4.3: Reno-friendly region, with Reno's own slope beyond the maximum.
        let past = epoch.w_est >= w_max && w_max > epoch.cwnd_start;
        let slope = if past { 1.0 } else { alpha_cubic() };
        epoch.w_est += slope * acked / cwnd;
        let t = sample.now.saturating_since(epoch.start).as_secs_f64();
        if w_cubic(t, epoch.k, w_max) < epoch.w_est {
            let estimate = epoch.w_est * f64::from(self.window.mss());
            self.window.rise_to(estimate as u64);
            return;
        }
        // RFC 9438 §4.2: the target lies one round-trip time ahead, and is at most 1.5 times the
        // window.
        let ahead = sample.srtt.as_secs_f64();
        let target = w_cubic(t + ahead, epoch.k, w_max).clamp(cwnd, 1.5 * cwnd);
        let growth = (target - cwnd) / cwnd;
        self.window.grow(growth * acked * f64::from(self.window.mss()));
    }

    /// RFC 9438 §4.7: fast convergence, when successive losses occur at smaller windows.
    fn remember_maximum(&mut self) {
        let cwnd = self.segments();
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, _me: usize, _peers: &[SubflowView]) {
        if !sample.cwnd_limited {
            // The cubic function must not advance while the application or the receiver limits the
            // sender. Otherwise the sender would burst when the limit ends.
            if let Some(epoch) = &mut self.epoch {
                let since = sample.now.saturating_since(epoch.last_ack);
                epoch.start += since;
                epoch.last_ack = sample.now;
            }
            return;
        }
        let left = HyStart::slow_start(&mut self.hystart, &mut self.window, sample);
        if left > 0 {
            self.avoid(left, sample);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _me: usize, _peers: &[SubflowView]) {
        match *event {
            CongestionEvent::Recovery { flight_size, .. } => {
                self.remember_maximum();
                self.window.reduce(flight_size, BETA);
            }
            CongestionEvent::Marked { flight_size, .. } => {
                self.remember_maximum();
                self.window.reduce_for_marks(flight_size, BETA);
            }
            CongestionEvent::Timeout { flight_size, first, .. } => {
                if first {
                    self.remember_maximum();
                }
                self.epoch = None;
                self.window.collapse(flight_size, BETA, first);
            }
            CongestionEvent::Idle { .. } => {
                // RFC 9438 §4.2: idle time does not count towards growth, so a new epoch begins.
                self.epoch = None;
                self.window.on_common_event(event);
            }
            CongestionEvent::Undo => {
                self.window.on_common_event(event);
                self.w_max = self.w_max.max(self.segments());
                self.epoch = None;
            }
            CongestionEvent::SynLost
            | CongestionEvent::Underused { .. }
            | CongestionEvent::MssChanged { .. } => {
                self.window.on_common_event(event);
            }
        }
    }

    fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        self.window.on_external_reduction(reduction);
        self.w_max = self.segments();
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::start;
    use anabranch_wire::Duration;

    #[test]
    fn the_curve_passes_through_its_three_points() {
        // RFC 9438 §4.2, by hand: W_max = 100 segments, cwnd 70 after the reduction:
        // K = cbrt(30/0.4) = cbrt(75) = 4.2172 s; W(0) = 70, W(K) = 100, W(2K) = 130.
        let k = k(100.0, 70.0);
        assert!((k - 4.217_163).abs() < 1e-5);
        assert!((w_cubic(0.0, k, 100.0) - 70.0).abs() < 1e-9);
        assert!((w_cubic(k, k, 100.0) - 100.0).abs() < 1e-9);
        assert!((w_cubic(2.0 * k, k, 100.0) - 130.0).abs() < 1e-9);
    }

    #[test]
    fn reno_friendly_slope_is_nine_seventeenths() {
        // RFC 9438 §4.3: 3·(1 − 0.7)/(1 + 0.7) = 0.9/1.7.
        assert!((alpha_cubic() - 9.0 / 17.0).abs() < 1e-12);
    }

    /// Acknowledge this many segments, twenty in each round trip of 10 ms.
    fn acknowledge(cubic: &mut Cubic, segments: u64) {
        let srtt = Duration::from_millis(10);
        for ack in 0..segments {
            let sample = AckSample {
                now: Instant::ZERO + Duration::from_micros(500 * ack),
                acked: 1_000,
                rtt: Some(srtt),
                srtt,
                bytes_in_flight: 20_000,
                snd_una: ack * 1_000,
                snd_nxt: ack * 1_000 + 20_000,
                cwnd_limited: true,
            };
            cubic.on_ack(&sample, 0, &[]);
        }
    }

    #[test]
    fn past_the_last_window_it_grows_as_reno_does() {
        // RFC 9438 §4.3, at windows where the cubic function is far below the estimate: 10 ms, 20
        // segments.
        let mut cubic = Cubic::without_hystart(&start(20_000));
        let loss = CongestionEvent::Recovery { now: Instant::ZERO, flight_size: 20_000 };
        cubic.on_congestion_event(&loss, 0, &[]);
        acknowledge(&mut cubic, 1_000);
        // dw/dn = slope / w from 14 segments, over 1000 acknowledgements: w = sqrt(14² + 2 × slope
        // × n). The slope is 9/17 up to 20 segments (n = 193) and 1 after that.
        assert!((44_000..=45_000).contains(&cubic.cwnd()), "{}", cubic.cwnd());
    }

    #[test]
    fn loss_keeps_seven_tenths_and_fast_convergence_lowers_the_maximum() {
        // RFC 9438 §4.6, §4.7
        let mut cubic = Cubic::new(&start(100_000));
        let loss = |flight_size| CongestionEvent::Recovery { now: Instant::ZERO, flight_size };
        cubic.on_congestion_event(&loss(100_000), 0, &[]);
        assert_eq!(cubic.cwnd(), 70_000);
        assert!((cubic.w_max - 100.0).abs() < 1e-9);
        cubic.on_congestion_event(&loss(70_000), 0, &[]);
        assert!((cubic.w_max - 70.0 * 0.85).abs() < 1e-9);
    }
}
