//! CUBIC as in Linux 6.18 (`tcp_cubic.c`), in its arithmetic of whole segments and ticks. Where the
//! window has few segments, this arithmetic decides when it grows.

use anabranch_config::part_without_parameters;
use anabranch_wire::{Duration, Instant};

use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, ExternalReduction,
    FirstHyStart, SlowStartExit, Start, Window,
};
use crate::view::SubflowView;

/// One tick of a kernel with 250 Hz. Time in the cubic function advances by ticks.
const TICK: Duration = Duration::from_millis(4);
const TICKS_PER_SECOND: u64 = 250;
/// Fraction of the window that remains after a loss, in 1024ths: 0.7.
const BETA: u64 = 717;
/// While the window stays the same, its growth is calculated again only after more ticks than this.
const RECALCULATED_AFTER: u64 = TICKS_PER_SECOND / 32;
/// For this long after a reduction, round-trip times do not count.
const DISCARDED: Duration = Duration::from_secs(1);
/// Until the first loss, the window grows by one segment for at most this many acknowledged ones.
const SEARCH: u64 = 20;
/// The window grows by at most one segment for this many acknowledged ones.
const LEAST_COUNT: u64 = 2;
/// The aggressiveness `c` of the cubic function, 0.4 segments per second cubed, times 1024.
const SCALE: u64 = 410;

part_without_parameters! {
    /// Selects the CUBIC of Linux.
    pub struct CubicLinuxConfig;
    NAME = "cubic_linux";
    SUMMARY = "CUBIC as in Linux: whole segments, Reno-friendly slope of RFC 8312, the first HyStart, and growth by 5 % per round trip before the first loss.";
    SOURCE = "Linux 6.18; Ha and Rhee, Computer Networks 2011";
}

impl BuildCongestionControl for CubicLinuxConfig {
    fn in_kernel(&self) -> Option<&'static str> {
        Some("cubic")
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::HyStart
    }

    fn build(&self, start: &Start, hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(CubicLinux::new(Window::new(start), hystart))
    }
}

/// Linux's CUBIC for one subflow. Windows are in segments.
#[derive(Clone, Debug)]
struct CubicLinux {
    window: Window,
    hystart: Option<FirstHyStart>,
    /// Smallest round-trip time. The target is this far ahead, without queueing delay.
    min_rtt: Duration,
    /// The window before the last loss, smaller if losses came at smaller and smaller windows; 0 if
    /// no loss has shown the capacity of the path.
    w_max: u64,
    epoch: Option<Epoch>,
    growth: Growth,
    /// Acknowledged bytes that are no whole segment yet.
    remainder: u64,
    /// When the newest acknowledged segment was sent, if nothing else was in flight after it.
    emptied: Option<Instant>,
}

/// From one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Time from `start` to the plateau, in 1024ths of a second.
    k: u64,
    /// The window on the plateau.
    origin: u64,
    /// Segments acknowledged since the estimate of Reno's window last grew.
    acknowledged: u64,
    /// Estimate of Reno's window.
    reno: u64,
}

/// When the window grows next (`tcp_cong_avoid_ai`).
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    /// The window grows by one segment for this many acknowledged ones.
    count: u64,
    /// Segments acknowledged since it last grew, at whatever count applied to them.
    acknowledged: u64,
    /// Window and tick for which `count` was calculated.
    calculated: Option<(u64, u64)>,
}

/// Number of the tick at an instant.
fn tick(at: Instant) -> u64 {
    at.saturating_since(Instant::ZERO).as_nanos() / TICK.as_nanos()
}

impl Epoch {
    /// An epoch that begins now, with a window of `cwnd` segments.
    fn new(start: Instant, cwnd: u64, w_max: u64) -> Self {
        let missing = w_max.saturating_sub(cwnd);
        // (w_max - cwnd) / c is the cube of K in seconds.
        let cube = (missing << 40) / SCALE;
        let k = libm::cbrt(cube as f64) as u64;
        Epoch { start, k, origin: w_max.max(cwnd), acknowledged: 0, reno: cwnd }
    }

    /// The cubic function one smallest round-trip time after `now`, in whole segments: rounded up
    /// before the plateau, and down after it.
    fn target(&self, now: Instant, min_rtt: Duration) -> u64 {
        let ahead = min_rtt.as_nanos().div_ceil(TICK.as_nanos());
        let ticks = tick(now).saturating_sub(tick(self.start)) + ahead;
        let t = (ticks << 10) / TICKS_PER_SECOND;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(SCALE) * offset * offset * offset) >> 40;
        let delta = u64::try_from(delta).unwrap_or(u64::MAX);
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// The estimate of Reno's window: one segment more for 15/8 of the window.
    fn reno(&mut self, cwnd: u64) -> u64 {
        let each = (cwnd * 15 / 8).max(1);
        let grown = self.acknowledged.saturating_sub(1) / each;
        self.acknowledged -= grown * each;
        self.reno += grown;
        self.reno
    }
}

impl Growth {
    /// Segments by which a window grows when `acked` more are acknowledged. Bytes counted while the
    /// window grew more slowly give one segment at most.
    fn grown(&mut self, acked: u64) -> u64 {
        let mut grown = 0;
        if self.acknowledged >= self.count {
            (self.acknowledged, grown) = (0, 1);
        }
        self.acknowledged += acked;
        let whole = self.acknowledged / self.count;
        self.acknowledged -= whole * self.count;
        grown + whole
    }
}

impl CubicLinux {
    /// The state in which nothing is known about the path.
    fn new(window: Window, hystart: bool) -> Self {
        CubicLinux {
            window,
            hystart: hystart.then(FirstHyStart::new),
            min_rtt: Duration::MAX,
            w_max: 0,
            epoch: None,
            growth: Growth::default(),
            remainder: 0,
            emptied: None,
        }
    }

    fn segments(&self) -> u64 {
        self.window.cwnd() / u64::from(self.window.mss())
    }

    /// Idle time does not count in the epoch: move its start by what passed between the last
    /// transmission before it and the first after it.
    fn skip_idle_time(&mut self, sample: &AckSample) {
        let sent = sample.now - sample.rtt.unwrap_or(sample.srtt);
        if let (Some(epoch), Some(emptied)) = (&mut self.epoch, self.emptied) {
            epoch.start = (epoch.start + sent.saturating_since(emptied)).min(sample.now);
        }
        self.emptied = (sample.bytes_in_flight == 0).then_some(sent);
    }

    /// Smallest round-trip time, and HyStart (`cubictcp_acked`).
    fn look_at_delay(&mut self, sample: &AckSample) {
        let since_reduction = self.epoch.map(|epoch| sample.now.saturating_since(epoch.start));
        if since_reduction.is_some_and(|since| since < DISCARDED) {
            return;
        }
        self.min_rtt = self.min_rtt.min(sample.rtt.unwrap_or(Duration::MAX));
        if let Some(hystart) = &mut self.hystart {
            hystart.on_ack(&mut self.window, sample, self.min_rtt);
        }
    }

    /// Acknowledged segments for one segment of growth (`bictcp_update`).
    fn calculate(&mut self, now: Instant, acked: u64) {
        let cwnd = self.segments();
        let this_tick = tick(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.acknowledged += acked;
        }
        let same_tick = match self.growth.calculated {
            Some((same, at)) if same == cwnd && this_tick - at <= RECALCULATED_AFTER => return,
            calculated => calculated.is_some_and(|(_, at)| at == this_tick),
        };
        if !(self.epoch.is_some() && same_tick) {
            self.growth.calculated = Some((cwnd, this_tick));
            let epoch = self.epoch.get_or_insert_with(|| Epoch {
                acknowledged: acked,
                ..Epoch::new(now, cwnd, self.w_max)
            });
            let ahead = if self.min_rtt == Duration::MAX { Duration::ZERO } else { self.min_rtt };
            let missing = epoch.target(now, ahead).saturating_sub(cwnd);
            self.growth.count = cwnd.checked_div(missing).unwrap_or(100 * cwnd);
            if self.w_max == 0 {
                self.growth.count = self.growth.count.min(SEARCH);
            }
        }
        let epoch = self.epoch.as_mut().expect("just set");
        let behind_reno = epoch.reno(cwnd).saturating_sub(cwnd);
        if let Some(most) = cwnd.checked_div(behind_reno) {
            self.growth.count = self.growth.count.min(most);
        }
        self.growth.count = self.growth.count.max(LEAST_COUNT);
    }

    /// A new epoch begins with the next acknowledgement, from a smaller window.
    fn remember_maximum(&mut self) {
        let cwnd = self.segments();
        // Fast convergence.
        self.w_max = if cwnd < self.w_max { cwnd * (1024 + BETA) / 2048 } else { cwnd };
        self.epoch = None;
        self.growth.acknowledged = 0;
    }
}

impl CongestionControl for CubicLinux {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, _me: usize, _peers: &[SubflowView]) {
        self.skip_idle_time(sample);
        self.look_at_delay(sample);
        if !sample.cwnd_limited {
            return;
        }
        let in_slow_start = self.window.in_slow_start();
        let left = if in_slow_start { self.window.slow_start(sample.acked) } else { sample.acked };
        let mss = u64::from(self.window.mss());
        self.remainder += left;
        let acked = self.remainder / mss;
        self.remainder %= mss;
        if acked > 0 {
            self.calculate(sample.now, acked);
            let grown = self.growth.grown(acked);
            self.window.rise_to(self.window.cwnd() + grown * mss);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _me: usize, _peers: &[SubflowView]) {
        match *event {
            CongestionEvent::Recovery { .. } | CongestionEvent::Marked { .. } => {
                self.remember_maximum();
            }
            // bictcp_reset: forget everything known about the path.
            CongestionEvent::Timeout { .. } => {
                *self = CubicLinux::new(self.window, self.hystart.is_some());
            }
            CongestionEvent::SynLost
            | CongestionEvent::Undo
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Underused { .. }
            | CongestionEvent::MssChanged { .. } => {}
        }
        self.window.on_event(event, BETA as f64 / 1024.0);
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

    fn cubic(segments: u64) -> CubicLinux {
        CubicLinux::new(Window::new(&start(segments * 1_000)), true)
    }

    /// Acknowledge segments one by one, at the given interval.
    struct Acks {
        now: Instant,
        every: Duration,
        rtt: Duration,
    }

    impl Acks {
        fn sample(&self) -> AckSample {
            AckSample {
                now: self.now,
                acked: 1_000,
                rtt: Some(self.rtt),
                srtt: self.rtt,
                bytes_in_flight: 20_000,
                snd_una: 1_000,
                snd_nxt: 21_000,
                cwnd_limited: true,
            }
        }

        fn bring(&mut self, cubic: &mut CubicLinux, segments: u64) {
            for _ in 0..segments {
                self.now += self.every;
                cubic.on_ack(&self.sample(), 0, &[]);
            }
        }
    }

    /// Twenty acknowledgements in each round trip of 10 ms, without queueing.
    fn short() -> Acks {
        let micros = Duration::from_micros;
        Acks { now: Instant::ZERO + micros(1_000_000), every: micros(500), rtt: micros(10_000) }
    }

    fn loss(segments: u64) -> CongestionEvent {
        CongestionEvent::Recovery { now: Instant::ZERO, flight_size: segments * 1_000 }
    }

    #[test]
    fn a_loss_leaves_717_of_1024_parts_and_fast_convergence_lowers_the_maximum() {
        let mut cubic = cubic(10);
        cubic.on_congestion_event(&loss(10), 0, &[]);
        assert_eq!((cubic.segments(), cubic.w_max), (7, 10));
        cubic.on_congestion_event(&loss(7), 0, &[]);
        // 7 × 1741 / 2048 = 5.95; 7 × 717 / 1024 = 4.9.
        assert_eq!((cubic.segments(), cubic.w_max), (4, 5));
    }

    #[test]
    fn the_target_is_rounded_up_before_the_plateau_and_down_after_it() {
        // From 14 to 20 segments: K = cbrt(6 / 0.4004) = 2.466 s.
        let epoch = Epoch::new(Instant::ZERO, 14, 20);
        let target = |ms| epoch.target(Instant::ZERO + Duration::from_millis(ms), Duration::ZERO);
        assert_eq!(epoch.k, 2524);
        // 20 - 0.4004 × (2.466 - t)³ is 14.001, 14.7, and 19.6; 20 + 0.4004 × (t - 2.466)³ is
        // 20.06 and 21.4.
        let at = [0, 100, 1_500, 3_000, 4_000];
        assert_eq!(at.map(target), [15, 15, 20, 20, 21]);
    }

    #[test]
    fn after_a_loss_the_first_window_of_acknowledgements_already_adds_a_segment() {
        // The target of 14.2 segments counts as 15, so 14 acknowledgements add one segment. The
        // cubic function alone would need 70.
        let mut cubic = cubic(20);
        cubic.on_congestion_event(&loss(20), 0, &[]);
        let mut acks = short();
        acks.bring(&mut cubic, 13);
        assert_eq!(cubic.segments(), 14);
        acks.bring(&mut cubic, 1);
        assert_eq!(cubic.segments(), 15);
    }

    #[test]
    fn until_a_loss_it_grows_by_a_twentieth_of_what_is_acknowledged() {
        let grown = |events: &[CongestionEvent]| {
            let mut cubic = cubic(100);
            for event in events {
                cubic.on_congestion_event(event, 0, &[]);
            }
            cubic.window.end_slow_start();
            let before = cubic.segments();
            short().bring(&mut cubic, 400);
            cubic.segments() - before
        };
        // A timeout makes Linux forget the path.
        let timeout =
            CongestionEvent::Timeout { now: Instant::ZERO, flight_size: 70_000, first: true };
        assert_eq!(grown(&[]), 20);
        assert!(grown(&[loss(100)]) < 5);
        assert!(grown(&[loss(100), timeout]) >= 20);
    }

    #[test]
    fn past_the_last_window_it_grows_by_eight_fifteenths_of_renos_slope() {
        // The cubic function is far below the estimate: 10 ms, 20 segments. From 14 segments, over
        // 1000 acknowledgements, sqrt(14² + 2 × 8/15 × 1000) = 35.5.
        let mut cubic = cubic(20);
        cubic.on_congestion_event(&loss(20), 0, &[]);
        short().bring(&mut cubic, 1_000);
        assert!((34..=37).contains(&cubic.segments()), "{}", cubic.segments());
    }

    #[test]
    fn acknowledgements_counted_at_a_lower_rate_give_one_segment_at_most() {
        let mut growth = Growth { count: 100, ..Growth::default() };
        assert_eq!(growth.grown(90), 0);
        growth.count = 10;
        assert_eq!((growth.grown(3), growth.acknowledged), (1, 3));
    }

    #[test]
    fn idle_time_does_not_count_in_the_epoch() {
        let mut cubic = cubic(20);
        cubic.on_congestion_event(&loss(20), 0, &[]);
        let mut acks = short();
        acks.bring(&mut cubic, 1);
        let start = cubic.epoch.unwrap().start;
        acks.now += acks.every;
        cubic.on_ack(&AckSample { bytes_in_flight: 0, ..acks.sample() }, 0, &[]);
        acks.now += Duration::from_secs(5);
        acks.bring(&mut cubic, 1);
        let moved = cubic.epoch.unwrap().start.saturating_since(start);
        assert_eq!(moved, Duration::from_secs(5) + acks.every);
    }

    #[test]
    fn hystart_looks_for_the_end_of_slow_start_where_the_window_does_not_limit_too() {
        let mut cubic = cubic(20);
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
    fn round_trip_times_of_the_second_after_a_reduction_do_not_count() {
        let mut cubic = cubic(20);
        let mut acks = short();
        acks.bring(&mut cubic, 1);
        cubic.on_congestion_event(&loss(20), 0, &[]);
        acks.bring(&mut cubic, 1); // begins the epoch
        acks.rtt = Duration::from_millis(5);
        acks.bring(&mut cubic, 1);
        assert_eq!(cubic.min_rtt, Duration::from_millis(10));
        acks.now += Duration::from_secs(1);
        acks.bring(&mut cubic, 1);
        assert_eq!(cubic.min_rtt, Duration::from_millis(5));
    }
}
