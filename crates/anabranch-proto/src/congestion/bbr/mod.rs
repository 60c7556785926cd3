//! BBR as in Linux 6.18 (`tcp_bbr.c`), version 1: the sending rate follows a model of the path, its
//! bandwidth and its round-trip time, and not losses. Cardwell et al., ACM Queue 2016.
//!
//! The arithmetic is Linux's: whole segments, microseconds, gains in 256ths.

mod aggregation;
mod policer;

use anabranch_config::part_without_parameters;
use anabranch_wire::{Duration, Instant};

use super::bandwidth::Bandwidth;
use super::draws::Draws;
use super::maximum::WindowedMaximum;
use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, ExternalReduction,
    RateSample, SlowStartExit, Start,
};
use crate::view::{RecoveryPhase, SubflowView};
use aggregation::Aggregation;
use policer::{Policer, RateUse};

/// Gains are multiples of 1/256.
const GAIN_UNIT: u64 = 256;
/// 2/ln(2): the smallest gain that doubles the rate in each round trip.
const STARTUP_GAIN: u64 = GAIN_UNIT * 2885 / 1000 + 1;
/// Its inverse, which drains the queue of the startup in a round trip.
const DRAIN_GAIN: u64 = GAIN_UNIT * 1000 / 2885;
/// The window is twice the bandwidth-delay product, as acknowledgements may be late.
const WINDOW_GAIN: u64 = GAIN_UNIT * 2;
/// Pacing gains of the eight phases that probe the bandwidth.
const PROBE_GAINS: [u64; 8] = {
    let (up, down, even) = (GAIN_UNIT * 5 / 4, GAIN_UNIT * 3 / 4, GAIN_UNIT);
    [up, down, even, even, even, even, even, even]
};
/// Phases with which probing may begin: all but the one that drains.
const FIRST_PHASES: u64 = 7;
/// Round trips for which a bandwidth counts.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Time for which the smallest round-trip time counts.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Least time with [`FEWEST_SEGMENTS`] in flight, to measure the smallest round-trip time.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Smallest window, in segments.
const FEWEST_SEGMENTS: u64 = 4;
/// Window before anything is measured, in segments.
const INITIAL_WINDOW: u64 = 10;
/// The pipe is full when the bandwidth has not grown by a quarter in this number of round trips.
const FULL_ROUNDS: u8 = 3;
/// Below this rate, in bytes a second, segments leave one by one.
const SLOW: u64 = 1_200_000 / 8;
/// Most bytes in a burst (`GSO_LEGACY_MAX_SIZE` - 1 - `MAX_TCP_HEADER`).
const LARGEST_BURST: u64 = (1 << 16) - 1 - 320;

part_without_parameters! {
    /// Selects BBR version 1.
    pub struct BbrConfig;
    NAME = "bbr";
    SUMMARY = "BBR version 1 as in Linux: paced at the bandwidth that acknowledgements show; losses do not reduce it.";
    SOURCE = "Linux 6.18; Cardwell et al., ACM Queue 2016";
}

impl BuildCongestionControl for BbrConfig {
    fn in_kernel(&self) -> Option<&'static str> {
        Some("bbr")
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Own
    }

    fn build(&self, start: &Start, _hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(Bbr::new(start))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The rate doubles in each round trip until the pipe is full.
    Startup,
    /// The queue of the startup drains.
    Drain,
    /// The bandwidth is probed, phase by phase.
    ProbeBandwidth { phase: usize },
    /// Few segments are in flight, so that the queue is empty.
    ProbeRtt,
}

/// BBR for one subflow. Windows are in segments.
#[derive(Debug)]
struct Bbr {
    mss: u32,
    /// Payload bytes by which a segment counts in the pacing rate.
    segment: u32,
    draws: Draws,
    cwnd: u64,
    /// Window before a recovery or a probe.
    prior_cwnd: u64,
    /// Set when the startup ends, for views and tables: BBR does not use it.
    ssthresh: Option<u64>,
    mode: Mode,
    pacing_gain: u64,
    window_gain: u64,
    /// Bytes a second; `None` before the first round-trip time.
    pacing_rate: Option<u64>,
    bandwidth: WindowedMaximum,
    rounds: u64,
    /// A round trip ends when a segment sent after this number of deliveries is delivered.
    round_end: u64,
    round_start: bool,
    /// Smallest round-trip time, and when it was measured.
    min_rtt: Option<(Duration, Instant)>,
    /// Probing the round-trip time ends at this time, and after a whole round trip.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    phase_since: Instant,
    full: FullBandwidth,
    policer: Policer,
    aggregation: Aggregation,
    /// Phase of loss recovery at the last acknowledgement.
    recovery: RecoveryPhase,
    /// It is the first round trip of a recovery: a segment leaves for each that arrives.
    packet_conservation: bool,
    /// The subflow sends again after the application was idle.
    idle_restart: bool,
}

/// Whether the startup has filled the pipe.
#[derive(Clone, Copy, Debug, Default)]
struct FullBandwidth {
    reached: bool,
    bandwidth: u64,
    rounds: u8,
}

impl Bbr {
    fn new(start: &Start) -> Self {
        Bbr {
            mss: start.mss,
            segment: start.mss,
            draws: Draws::new(start.random),
            cwnd: start.initial_window / u64::from(start.mss),
            prior_cwnd: 0,
            ssthresh: None,
            mode: Mode::Startup,
            pacing_gain: STARTUP_GAIN,
            window_gain: STARTUP_GAIN,
            pacing_rate: None,
            bandwidth: WindowedMaximum::default(),
            rounds: 0,
            round_end: 0,
            round_start: false,
            min_rtt: None,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            phase_since: Instant::ZERO,
            full: FullBandwidth::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            recovery: RecoveryPhase::Open,
            packet_conservation: false,
            idle_restart: false,
        }
    }

    /// The largest bandwidth of the last round trips.
    fn max_bandwidth(&self) -> Bandwidth {
        Bandwidth(self.bandwidth.get())
    }

    /// The bandwidth that counts: a policer's rate, if there is one.
    fn bandwidth(&self) -> Bandwidth {
        self.policer.rate().unwrap_or(self.max_bandwidth())
    }

    fn is_probing_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::ProbeBandwidth { .. })
    }

    /// Bandwidth-delay product in segments, times a gain. Linux: `bbr_bdp`.
    fn bdp(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        let Some((min_rtt, _)) = self.min_rtt else { return INITIAL_WINDOW };
        let scaled = (bandwidth.scaled_segments(min_rtt) * u128::from(gain)) >> 8;
        scaled.div_ceil(1 << Bandwidth::SCALE) as u64
    }

    /// Room for bursts on both hosts. Linux: `bbr_quantization_budget`.
    fn with_bursts(&self, segments: u64) -> u64 {
        let even = (segments + 3 * self.burst_segments()).next_multiple_of(2);
        let is_first = self.mode == Mode::ProbeBandwidth { phase: 0 };
        even + if is_first { 2 } else { 0 }
    }

    /// Segments of a burst. Linux: `bbr_tso_segs_goal`.
    fn burst_segments(&self) -> u64 {
        let bytes = (self.pacing_rate.unwrap_or(0) >> 10).min(LARGEST_BURST);
        (bytes / u64::from(self.mss)).clamp(self.fewest_at_a_time(), 127)
    }

    fn inflight(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        self.with_bursts(self.bdp(bandwidth, gain))
    }

    /// Linux: `bbr_packets_in_net_at_edt`: segments in flight when the next burst leaves.
    fn in_flight_at_departure(&self, sample: &RateSample, segments: u64) -> u64 {
        let wait = sample.next_departure.saturating_since(sample.now);
        let delivered = self.bandwidth().segments(wait);
        let burst = if self.pacing_gain > GAIN_UNIT { self.burst_segments() } else { 0 };
        (segments + burst).saturating_sub(delivered)
    }

    fn on_sample(&mut self, sample: &RateSample) {
        self.segment = sample.segment;
        if self.min_rtt.is_none() && sample.min_rtt != Duration::MAX {
            self.min_rtt = Some((sample.min_rtt, sample.now));
        }
        self.update_bandwidth(sample);
        self.aggregation.on_sample(sample, self.round_start, self.bandwidth(), self.cwnd);
        self.update_phase(sample);
        self.check_full_bandwidth(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.update_gains();
        self.update_pacing_rate(sample.srtt);
        self.update_cwnd(sample);
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.round_start = false;
        let Some(rate) = sample.rate else { return };
        if rate.prior_delivered >= self.round_end {
            self.round_end = sample.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        match self.policer.on_sample(sample, self.round_start, self.is_probing_bandwidth()) {
            RateUse::Unchanged => {}
            RateUse::Begins => self.pacing_gain = GAIN_UNIT,
            RateUse::Ends => self.probe_bandwidth(sample.delivered_at),
        }
        let bandwidth = Bandwidth::of(rate.segments, rate.interval);
        if !rate.app_limited || bandwidth >= self.max_bandwidth() {
            self.bandwidth.add(BANDWIDTH_ROUNDS, self.rounds, bandwidth.0);
        }
    }

    /// Begin to probe the bandwidth, with a random phase.
    fn probe_bandwidth(&mut self, now: Instant) {
        let random = (self.draws.next() % FIRST_PHASES) as usize;
        let before = PROBE_GAINS.len() - 1 - random;
        self.begin_phase((before + 1) % PROBE_GAINS.len(), now);
    }

    fn begin_phase(&mut self, phase: usize, now: Instant) {
        self.mode = Mode::ProbeBandwidth { phase };
        self.phase_since = now;
    }

    fn update_phase(&mut self, sample: &RateSample) {
        if let Mode::ProbeBandwidth { phase } = self.mode
            && self.ends_phase(sample)
        {
            self.begin_phase((phase + 1) % PROBE_GAINS.len(), sample.delivered_at);
        }
    }

    /// Linux: `bbr_is_next_cycle_phase`.
    fn ends_phase(&self, sample: &RateSample) -> bool {
        let min_rtt = self.min_rtt.map_or(Duration::MAX, |(min_rtt, _)| min_rtt);
        let lasted = sample.delivered_at.saturating_since(self.phase_since) > min_rtt;
        let in_flight = || self.in_flight_at_departure(sample, sample.prior_in_flight);
        match self.pacing_gain {
            GAIN_UNIT => lasted,
            // Until the pipe is full at the higher rate, or a buffer is.
            gain if gain > GAIN_UNIT => {
                lasted
                    && (sample.lost > 0 || in_flight() >= self.inflight(self.max_bandwidth(), gain))
            }
            // Until the queue is empty.
            _ => lasted || in_flight() <= self.inflight(self.max_bandwidth(), GAIN_UNIT),
        }
    }

    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        let limited = sample.rate.is_some_and(|rate| rate.app_limited);
        if self.full.reached || !self.round_start || limited {
            return;
        }
        if self.bandwidth.get() >= self.full.bandwidth * 5 / 4 {
            self.full.bandwidth = self.bandwidth.get();
            self.full.rounds = 0;
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, sample: &RateSample) {
        let drained = self.inflight(self.max_bandwidth(), GAIN_UNIT);
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(drained);
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(sample, sample.in_flight) <= drained
        {
            self.probe_bandwidth(sample.delivered_at);
        }
    }

    fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        let expired = self.min_rtt.is_some_and(|(_, since)| now > since + MIN_RTT_WINDOW);
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|(least, _)| rtt < least)
                || (expired && !sample.may_be_delayed))
        {
            self.min_rtt = Some((rtt, now));
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_until {
                None if sample.in_flight <= FEWEST_SEGMENTS => {
                    self.probe_rtt_until = Some(now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.round_end = sample.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done {
                        self.end_probe_rtt(now, sample.delivered_at);
                    }
                }
            }
        }
        if sample.acked > 0 {
            self.idle_restart = false;
        }
    }

    /// Linux: `bbr_check_probe_rtt_done`.
    fn end_probe_rtt(&mut self, now: Instant, delivered_at: Instant) {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        if let Some((_, since)) = &mut self.min_rtt {
            *since = now;
        }
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.probe_bandwidth(delivered_at);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_GAIN),
            Mode::ProbeBandwidth { .. } if self.policer.rate().is_some() => {
                (GAIN_UNIT, WINDOW_GAIN)
            }
            Mode::ProbeBandwidth { phase } => (PROBE_GAINS[phase], WINDOW_GAIN),
            Mode::ProbeRtt => (GAIN_UNIT, GAIN_UNIT),
        };
    }

    /// Bytes a second. Linux: `bbr_bw_to_pacing_rate`.
    fn rate(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        Bandwidth(bandwidth.0.saturating_mul(gain) >> 8).bytes_a_second(self.segment)
    }

    fn update_pacing_rate(&mut self, srtt: Option<Duration>) {
        let before = self.pacing_rate.or_else(|| srtt.map(|srtt| self.first_pacing_rate(srtt)));
        let rate = self.rate(self.bandwidth(), self.pacing_gain);
        self.pacing_rate = match before {
            Some(before) if !self.full.reached && rate <= before => Some(before),
            _ => Some(rate),
        };
    }

    /// Linux: `bbr_init_pacing_rate_from_rtt`.
    fn first_pacing_rate(&self, srtt: Duration) -> u64 {
        self.rate(Bandwidth::of(self.cwnd, srtt), STARTUP_GAIN)
    }

    fn update_cwnd(&mut self, sample: &RateSample) {
        if sample.acked > 0 && !self.recover_or_restore(sample) {
            let target = self.bdp(self.bandwidth(), self.window_gain);
            let aggregated = match self.full.reached {
                true => self.aggregation.extra(self.bandwidth()),
                false => 0,
            };
            let target = self.with_bursts(target + aggregated);
            if self.full.reached {
                self.cwnd = (self.cwnd + sample.acked).min(target);
            } else if self.cwnd < target || sample.delivered < INITIAL_WINDOW {
                self.cwnd += sample.acked;
            }
            self.cwnd = self.cwnd.max(FEWEST_SEGMENTS);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(FEWEST_SEGMENTS);
        }
    }

    /// Losses, and the end of a recovery. Returns `true` if they set the window. Linux:
    /// `bbr_set_cwnd_to_recover_or_restore`.
    fn recover_or_restore(&mut self, sample: &RateSample) -> bool {
        let before = std::mem::replace(&mut self.recovery, sample.phase);
        if sample.lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(sample.lost).max(1);
        }
        if sample.phase == RecoveryPhase::Recovery && before != RecoveryPhase::Recovery {
            self.packet_conservation = true;
            self.round_end = sample.delivered;
            self.cwnd = sample.in_flight + sample.acked;
        } else if sample.phase == RecoveryPhase::Open && before != RecoveryPhase::Open {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(sample.in_flight + sample.acked);
        }
        self.packet_conservation
    }

    /// Linux: `bbr_save_cwnd`.
    fn save_cwnd(&mut self) {
        self.prior_cwnd = match self.recovery == RecoveryPhase::Open && self.mode != Mode::ProbeRtt
        {
            true => self.cwnd,
            false => self.prior_cwnd.max(self.cwnd),
        };
    }
}

impl CongestionControl for Bbr {
    fn cwnd(&self) -> u64 {
        self.cwnd * u64::from(self.mss)
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh.map_or(u64::MAX, |segments| segments * u64::from(self.mss))
    }

    fn on_ack(&mut self, _: &AckSample, _: usize, _: &[SubflowView]) {}

    fn models_path(&self) -> bool {
        true
    }

    fn on_rate_sample(&mut self, sample: &RateSample) {
        self.on_sample(sample);
    }

    /// Linux: `bbr_cwnd_event`.
    fn on_restart(&mut self, now: Instant, delivered_at: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth { .. } => {
                self.pacing_rate = Some(self.rate(self.bandwidth(), GAIN_UNIT));
            }
            Mode::ProbeRtt => self.end_probe_rtt(now, delivered_at),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<u64> {
        self.pacing_rate
            .or_else(|| Some(self.first_pacing_rate(srtt.unwrap_or(Duration::from_millis(1)))))
    }

    fn fewest_at_a_time(&self) -> u64 {
        if self.pacing_rate.is_some_and(|rate| rate < SLOW) { 1 } else { 2 }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _: usize, _: &[SubflowView]) {
        match *event {
            CongestionEvent::Recovery { .. } => self.save_cwnd(),
            CongestionEvent::Timeout { .. } => {
                self.save_cwnd();
                self.recovery = RecoveryPhase::Loss;
                self.full.bandwidth = 0;
                self.round_start = true;
                self.cwnd = 1;
            }
            CongestionEvent::Undo => {
                self.full =
                    FullBandwidth { reached: self.full.reached, ..FullBandwidth::default() };
                self.policer = Policer::default();
            }
            CongestionEvent::SynLost => self.cwnd = 1,
            CongestionEvent::MssChanged { mss } => self.mss = mss,
            // The model has the bandwidth; a window that was not used stays valid.
            CongestionEvent::Idle { .. }
            | CongestionEvent::Underused { .. }
            | CongestionEvent::Marked { .. } => {}
        }
    }

    /// A remedy halves the window. The model grows it again, to twice the bandwidth-delay product.
    fn on_external_reduction(&mut self, _: ExternalReduction) {
        self.cwnd = (self.cwnd / 2).max(1);
    }
}

#[cfg(test)]
mod tests;
