use super::*;
use crate::congestion::DeliveryRate;
use crate::congestion::tests::start;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A pipe of 1,000 segments a second and 100 ms: segments sent in one round are acknowledged in the
/// next, one each millisecond at the most.
struct Pipe {
    bbr: Bbr,
    now: u64,
    delivered: u64,
    lost: u64,
}

const RTT: u64 = 100;

impl Pipe {
    fn new() -> Pipe {
        Pipe { bbr: Bbr::new(&start(10_000)), now: RTT, delivered: 0, lost: 0 }
    }

    fn sample(&self, segments: u64, interval: u64, prior_delivered: u64) -> RateSample {
        let rate = DeliveryRate {
            segments,
            interval: Duration::from_millis(interval),
            prior_delivered,
            app_limited: false,
            in_flight: 0,
            lost: 0,
        };
        RateSample {
            now: at(self.now),
            rate: Some(rate),
            acked: 1,
            lost: 0,
            delivered: self.delivered,
            lost_in_all: self.lost,
            delivered_at: at(self.now),
            prior_in_flight: self.bbr.cwnd,
            in_flight: self.bbr.cwnd - 1,
            rtt: Some(Duration::from_millis(RTT)),
            may_be_delayed: false,
            min_rtt: Duration::from_millis(RTT),
            srtt: Some(Duration::from_millis(RTT)),
            next_departure: at(self.now),
            phase: RecoveryPhase::Open,
            segment: 1_000,
        }
    }

    /// A round in which the window of segments is delivered, at no more than one each millisecond.
    fn round(&mut self) {
        let (window, begin) = (self.bbr.cwnd, self.delivered);
        let interval = window.max(RTT);
        for _ in 0..window {
            self.delivered += 1;
            let mut sample = self.sample(window, interval, begin);
            // What exceeds the pipe waits in a queue.
            sample.prior_in_flight = window.min(2 * RTT);
            sample.in_flight = sample.prior_in_flight - 1;
            self.bbr.on_sample(&sample);
        }
        self.now += interval;
    }
}

#[test]
fn the_startup_doubles_until_the_bandwidth_stops_growing() {
    // Linux: bbr_check_full_bw_reached: three rounds without 25 % more.
    let mut pipe = Pipe::new();
    let mut windows = vec![];
    while !pipe.bbr.full.reached {
        windows.push(pipe.bbr.cwnd);
        pipe.round();
    }
    assert_eq!(windows[..4], [10, 20, 40, 80]);
    let bandwidth = pipe.bbr.max_bandwidth();
    assert_eq!(bandwidth.segments(Duration::from_secs(10)), 9_999, "1,000 segments a second");
    assert!(matches!(pipe.bbr.mode, Mode::Drain | Mode::ProbeBandwidth { .. }));
}

#[test]
fn the_window_is_twice_the_product_and_the_rate_the_bandwidth() {
    let mut pipe = Pipe::new();
    for _ in 0..40 {
        pipe.round();
    }
    let bbr = &pipe.bbr;
    assert!(bbr.is_probing_bandwidth());
    // 2 × 100 segments, three bursts, even; two more in the phase that probes.
    let bursts = 3 * bbr.burst_segments();
    let extra = if bbr.mode == (Mode::ProbeBandwidth { phase: 0 }) { 2 } else { 0 };
    assert_eq!(bbr.with_bursts(200), (200 + bursts).next_multiple_of(2) + extra);
    assert!(bbr.cwnd >= 200 && bbr.cwnd <= 200 + 100 + bursts + 4, "{}", bbr.cwnd);
    // 1,000 segments of 1,000 bytes a second, less 1 %.
    let cruising = bbr.rate(bbr.max_bandwidth(), GAIN_UNIT);
    assert!((989_000..=990_000).contains(&cruising), "{cruising}");
    let fast = bbr.rate(bbr.max_bandwidth(), PROBE_GAINS[0]);
    assert_eq!(fast / 1_000, cruising * 5 / 4 / 1_000);
}

#[test]
fn the_phases_follow_each_other_after_a_round_trip() {
    let mut pipe = Pipe::new();
    for _ in 0..30 {
        pipe.round();
    }
    let mut phases = vec![];
    for _ in 0..20 {
        if let Mode::ProbeBandwidth { phase } = pipe.bbr.mode {
            phases.push(phase);
        }
        pipe.round();
    }
    phases.dedup();
    assert!(phases.len() > 8);
    for pair in phases.windows(2) {
        // The phase that drains may end at once, where the queue is empty.
        let most = if pair[0] == 0 { 2 } else { 1 };
        let steps = (pair[1] + 8 - pair[0]) % 8;
        assert!((1..=most).contains(&steps), "{phases:?}");
    }
}

#[test]
fn the_round_trip_time_is_probed_after_ten_seconds_and_the_window_restored() {
    let mut pipe = Pipe::new();
    for _ in 0..40 {
        pipe.round();
    }
    let before = pipe.bbr.cwnd;
    // A queue has formed: no sample is as small as before.
    pipe.now += 10_001;
    let mut sample = pipe.sample(100, 100, pipe.delivered);
    sample.rtt = Some(Duration::from_millis(150));
    pipe.bbr.on_sample(&sample);
    assert_eq!((pipe.bbr.mode, pipe.bbr.cwnd), (Mode::ProbeRtt, FEWEST_SEGMENTS));
    for _ in 0..8 {
        pipe.now += 50;
        pipe.delivered += 4;
        let mut sample = pipe.sample(4, 100, pipe.delivered - 4);
        (sample.prior_in_flight, sample.in_flight) = (4, 3);
        pipe.bbr.on_sample(&sample);
    }
    assert!(pipe.bbr.is_probing_bandwidth());
    assert!(pipe.bbr.cwnd >= before, "{} of {before}", pipe.bbr.cwnd);
    let since = pipe.bbr.min_rtt.map(|(_, since)| since);
    assert!(since > Some(at(pipe.now - 300)));
}

#[test]
fn a_recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
    let mut pipe = Pipe::new();
    for _ in 0..40 {
        pipe.round();
    }
    let before = pipe.bbr.cwnd;
    pipe.bbr.on_congestion_event(
        &CongestionEvent::Recovery { now: at(pipe.now), flight_size: 0 },
        0,
        &[],
    );
    let mut sample = pipe.sample(100, 100, 0);
    (sample.phase, sample.lost, sample.in_flight) = (RecoveryPhase::Recovery, 3, 150);
    pipe.bbr.on_sample(&sample);
    assert_eq!(pipe.bbr.cwnd, 151, "a segment leaves for each that arrives");
    pipe.delivered += 1;
    let mut sample = pipe.sample(100, 100, 0);
    sample.phase = RecoveryPhase::Open;
    pipe.bbr.on_sample(&sample);
    assert_eq!(pipe.bbr.cwnd, before + 1, "and it grows by what is acknowledged");
}

#[test]
fn a_timeout_leaves_one_segment_and_keeps_the_model() {
    let mut pipe = Pipe::new();
    for _ in 0..40 {
        pipe.round();
    }
    let bandwidth = pipe.bbr.max_bandwidth();
    let timeout = CongestionEvent::Timeout { now: at(pipe.now), flight_size: 0, first: true };
    pipe.bbr.on_congestion_event(&timeout, 0, &[]);
    assert_eq!((pipe.bbr.cwnd, pipe.bbr.max_bandwidth()), (1, bandwidth));
}

#[test]
fn a_policer_is_detected_from_two_intervals_with_equal_rates() {
    // Linux: bbr_lt_bw_sampling: a fifth of the segments is lost in two intervals of four rounds.
    let mut policer = Policer::default();
    let pipe = Pipe::new();
    let sample = |round: u64| RateSample {
        now: at(100 * round),
        delivered: 80 * round,
        delivered_at: at(100 * round),
        lost: 20,
        lost_in_all: 20 * round,
        ..pipe.sample(80, 100, 0)
    };
    let mut round = 1;
    while policer.on_sample(&sample(round), true, true) != RateUse::Begins {
        round += 1;
        assert!(round < 20);
    }
    // Each interval has four round trips.
    assert_eq!(round, 8);
    let rate = policer.rate().expect("in use");
    // 0.0008 segments a microsecond, times 2^24, are 13,421.77. The arithmetic takes 13,421.
    assert_eq!(rate.segments(Duration::from_secs(100)), 79_995);
    for _ in 1..ROUNDS_IN_USE {
        assert_eq!(policer.on_sample(&sample(round), true, true), RateUse::Unchanged);
    }
    assert_eq!(policer.on_sample(&sample(round), true, true), RateUse::Ends);
    assert_eq!(policer.rate(), None);
}

const ROUNDS_IN_USE: u32 = 48;

#[test]
fn slow_paths_send_segments_one_by_one() {
    // Linux: bbr_min_tso_segs: below 1.2 Mbit/s.
    let mut bbr = Bbr::new(&start(10_000));
    for (rate, fewest, burst) in [(149_999, 1, 1), (150_000, 2, 2), (10_240_000, 2, 10)] {
        bbr.pacing_rate = Some(rate);
        assert_eq!((bbr.fewest_at_a_time(), bbr.burst_segments()), (fewest, burst));
    }
}
