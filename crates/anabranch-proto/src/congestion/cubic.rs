//! CUBIC: RFC 9438.

use anabranch_wire::{Duration, Instant};

use super::{
    AckSample, CongestionControl, CongestionEvent, ExternalReduction, FirstHyStart, HyStart, Start,
    Window,
};
use super::{Make, Making};
use crate::policy::Entry;
use crate::view::SubflowView;

/// RFC 9438 §4.6: multiplicative decrease factor.
const BETA: f64 = 0.7;
/// The window of a searching sender grows by one segment for this many acknowledged ones: by 5 %
/// per round trip.
const SEARCH: f64 = 20.0;
/// RFC 9438 §5: aggressiveness, segments per second cubed.
const C: f64 = 0.4;

/// CUBIC for one subflow. The formulas have windows in segments and times in seconds.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    hystart: Option<HyStart>,
    /// State of Linux's variant. In that variant, the Reno-friendly estimate keeps its slope beyond
    /// the last maximum (RFC 8312), and [`AsLinux`] adds the other differences.
    linux: Option<AsLinux>,
    w_max: f64,
    epoch: Option<Epoch>,
}

/// Linux's differences from RFC 9438 (`bictcp_update`) and RFC 9406.
#[derive(Clone, Copy, Debug)]
struct AsLinux {
    /// No loss has shown the capacity of the path yet. The window then grows by at least 5 % in
    /// each round trip, because the cubic function begins too slowly.
    searches: bool,
    /// Smallest round-trip time. The target is this far ahead, without queueing delay.
    min_rtt: Duration,
    hystart: Option<FirstHyStart>,
}

impl AsLinux {
    /// The initial state, when nothing is known about the path.
    fn new(hystart: bool) -> Self {
        let hystart = hystart.then(FirstHyStart::new);
        AsLinux { searches: true, min_rtt: Duration::MAX, hystart }
    }
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

/// Name, description and constructor of this congestion control.
pub(super) const ENTRY: super::CongestionControlEntry = Entry {
    name: "cubic",
    summary: "The window grows by a cubic function of the time since the last loss; uncoupled.",
    source: "RFC 9438",
    parameters: &[],
    make: Making {
        coupled: false,
        in_kernel: Some("cubic"),
        hystart: true,
        make: Make::WithHyStart(|start, hystart| {
            Box::new(if hystart { Cubic::new(start) } else { Cubic::without_hystart(start) })
        }),
    },
};

/// Name, description and constructor of Linux's variant.
pub(super) const LINUX_ENTRY: super::CongestionControlEntry = Entry {
    name: "cubic_linux",
    summary: "CUBIC as in Linux: Reno-friendly slope of RFC 8312, the first HyStart, and growth by 5 % per round trip before the first loss.",
    source: "Linux 6.18; Ha and Rhee, Computer Networks 2011",
    parameters: &[],
    make: Making {
        coupled: false,
        in_kernel: Some("cubic"),
        hystart: true,
        make: Make::WithHyStart(|start, hystart| {
            let linux = Some(AsLinux::new(hystart));
            Box::new(Cubic { linux, ..Cubic::without_hystart(start) })
        }),
    },
};

impl Cubic {
    /// CUBIC in slow start, with the initial window and HyStart++.
    pub fn new(start: &Start) -> Self {
        Cubic { hystart: Some(HyStart::default()), ..Cubic::without_hystart(start) }
    }

    /// CUBIC with standard slow start.
    pub fn without_hystart(start: &Start) -> Self {
        Cubic { window: Window::new(start), hystart: None, linux: None, w_max: 0.0, epoch: None }
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
        let slope = if past && self.linux.is_none() { 1.0 } else { alpha_cubic() };
        epoch.w_est += slope * acked / cwnd;
        let t = sample.now.saturating_since(epoch.start).as_secs_f64();
        let searches = self.linux.is_some_and(|linux| linux.searches);
        if w_cubic(t, epoch.k, w_max) < epoch.w_est && !searches {
            let estimate = epoch.w_est * f64::from(self.window.mss());
            self.window.rise_to(estimate as u64);
            return;
        }
        // RFC 9438 §4.2: the target lies one round-trip time ahead, and is at most 1.5 times the
        // window.
        let ahead = self.linux.map_or(sample.srtt, |linux| linux.min_rtt.min(sample.srtt));
        let target = w_cubic(t + ahead.as_secs_f64(), epoch.k, w_max).clamp(cwnd, 1.5 * cwnd);
        let floor = if searches { 1.0 / SEARCH } else { 0.0 };
        let growth = ((target - cwnd) / cwnd).max(floor);
        self.window.grow(growth * acked * f64::from(self.window.mss()));
    }

    /// RFC 9438 §4.7: fast convergence, when successive losses occur at smaller windows.
    fn remember_maximum(&mut self) {
        let cwnd = self.segments();
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.epoch = None;
        if let Some(linux) = &mut self.linux {
            linux.searches = false;
        }
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
        if let Some(linux) = &mut self.linux {
            linux.min_rtt = linux.min_rtt.min(sample.rtt.unwrap_or(Duration::MAX));
            if let Some(hystart) = &mut linux.hystart {
                hystart.on_ack(&mut self.window, sample, linux.min_rtt);
            }
        }
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
                if let Some(linux) = &mut self.linux {
                    // bictcp_reset: forget everything known about the path.
                    (self.w_max, *linux) = (0.0, AsLinux::new(linux.hystart.is_some()));
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
    fn until_a_loss_linux_grows_by_a_twentieth_of_what_is_acknowledged() {
        // With 100 segments, 400 acknowledged segments add 20.
        let grown = |linux: bool, events: &[CongestionEvent]| {
            let linux = linux.then(|| AsLinux::new(false));
            let mut cubic = Cubic { linux, ..Cubic::without_hystart(&start(100_000)) };
            for event in events {
                cubic.on_congestion_event(event, 0, &[]);
            }
            cubic.window.end_slow_start();
            let before = cubic.cwnd();
            acknowledge(&mut cubic, 400);
            cubic.cwnd() - before
        };
        let loss = CongestionEvent::Recovery { now: Instant::ZERO, flight_size: 100_000 };
        // A timeout makes Linux forget the path.
        let timeout =
            CongestionEvent::Timeout { now: Instant::ZERO, flight_size: 70_000, first: true };
        assert_eq!((grown(true, &[]), grown(true, &[loss, timeout])), (20_000, 20_000));
        assert!(grown(false, &[]) < 3_000 && grown(true, &[loss]) < 5_000);
    }

    #[test]
    fn linux_looks_for_the_end_of_slow_start_where_the_window_does_not_limit_too() {
        let mut cubic =
            Cubic { linux: Some(AsLinux::new(true)), ..Cubic::without_hystart(&start(20_000)) };
        for (ack, rtt_ms) in [40].into_iter().chain([60; 9]).enumerate() {
            let rtt = Duration::from_millis(rtt_ms);
            let sample = AckSample {
                now: Instant::ZERO + Duration::from_millis(3 * ack as u64),
                acked: 1_000,
                rtt: Some(rtt),
                srtt: rtt,
                bytes_in_flight: 0,
                // The first acknowledgement is a round of its own.
                snd_una: 1_001 + ack as u64 * 1_000,
                snd_nxt: if ack == 0 { 1_001 } else { 100_000 },
                cwnd_limited: false,
            };
            assert_eq!(cubic.ssthresh(), u64::MAX, "{ack}");
            cubic.on_ack(&sample, 0, &[]);
        }
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (20_000, 20_000));
    }

    #[test]
    fn past_the_last_window_it_grows_as_reno_does_or_as_linux_has_it() {
        // RFC 9438 §4.3, at windows where the cubic function is far below the estimate: 10 ms, 20
        // segments.
        let grown = |linux: bool| {
            let linux = linux.then(|| AsLinux::new(false));
            let mut cubic = Cubic { linux, ..Cubic::without_hystart(&start(20_000)) };
            let loss = CongestionEvent::Recovery { now: Instant::ZERO, flight_size: 20_000 };
            cubic.on_congestion_event(&loss, 0, &[]);
            acknowledge(&mut cubic, 1_000);
            cubic.cwnd()
        };
        // dw/dn = slope / w from 14 segments, over 1000 acknowledgements: w = sqrt(14² + 2 × slope
        // × n). The slope is 9/17 up to 20 segments (n = 193) and 1 after that, or 9/17 throughout
        // in Linux.
        assert!((44_000..=45_000).contains(&grown(false)), "{}", grown(false));
        assert!((34_000..=36_000).contains(&grown(true)), "{}", grown(true));
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
