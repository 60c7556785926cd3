//! BBR version 3: draft-ietf-ccwg-bbr-06. The sending rate follows a model of the path, and losses
//! bound it.
//!
//! Data is counted in whole segments, and gains in per cent. Of a timeout, the model learns that there
//! was a loss, and not which segments it was.

mod bounds;
mod full_pipe;
mod min_rtt;
mod probing;

use anabranch_config::part_without_parameters;
use anabranch_wire::{Duration, Instant};

use super::bandwidth::Bandwidth;
use super::draws::Draws;
use super::maximum::WindowedMaximum;
use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, DeliveryRate,
    ExternalReduction, LostSegment, RateSample, SlowStartExit, Start,
};
use crate::view::{RecoveryPhase, SubflowView};
use bounds::{Bounds, Latest};
use full_pipe::FullPipe;
use min_rtt::MinRtt;
use probing::{AckPhase, Probing};

/// Gains are in per cent.
const UNIT: u64 = 100;
/// 4·ln(2): the smallest pacing gain that doubles the rate in each round trip.
const STARTUP_PACING: u64 = 277;
/// The window is this multiple of the bandwidth-delay product. Draft: `BBR.DefaultCwndGain`.
const DEFAULT_WINDOW: u64 = 200;
/// Ranges of lost segments in a round trip that end the startup. Draft: `BBRStartupFullLossCnt`.
const STARTUP_LOST_RANGES: u32 = 6;
/// Round trips after which draining ends.
const DRAIN_ROUNDS: u64 = 3;
/// Smallest window, in segments. Draft: `BBR.MinPipeCwnd`.
const FEWEST_SEGMENTS: u64 = 4;
/// Least time with few segments in flight, to measure the smallest round-trip time.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Round trips for which an excess of acknowledged segments counts. Draft: `BBR.ExtraAckedFilterLen`.
const AGGREGATION_ROUNDS: u64 = 10;
/// Most bytes that leave at once. Draft: `SetSendQuantum`.
const LARGEST_BURST: u64 = 64 * 1024;
/// Bursts that hosts hold: one waits, one is being cut, one is being joined. Draft: `UpdateOffloadBudget`.
const BURSTS: u64 = 3;

part_without_parameters! {
    /// Selects BBR version 3.
    pub struct Bbr3Config;
    NAME = "bbr3";
    SUMMARY = "BBR version 3: paced at the bandwidth that acknowledgements show; losses above 2 % in a round trip bound the data in flight.";
    SOURCE = "draft-ietf-ccwg-bbr-06";
}

impl BuildCongestionControl for Bbr3Config {
    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Own
    }

    fn build(&self, start: &Start, _hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(Bbr3::new(start))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
    /// The rate doubles in each round trip until the pipe is full.
    Startup,
    /// The queue of the startup drains. `since`: the number of the round trip in which it began.
    Drain { since: u64 },
    /// Below the bandwidth, until the queue is empty and others have room.
    Down,
    /// At the bandwidth.
    Cruise,
    /// At the bandwidth without short-term bounds, for a round trip.
    Refill,
    /// Above the bandwidth, until it no longer grows or losses are too many.
    Up,
    /// Few segments are in flight, so that the queue is empty.
    ProbeRtt,
}

impl BbrState {
    fn pacing_gain(self) -> u64 {
        match self {
            BbrState::Startup => STARTUP_PACING,
            BbrState::Drain { .. } => 50,
            BbrState::Down => 90,
            BbrState::Up => 125,
            BbrState::Cruise | BbrState::Refill | BbrState::ProbeRtt => UNIT,
        }
    }

    fn window_gain(self) -> u64 {
        match self {
            BbrState::Up => 225,
            BbrState::ProbeRtt => 50,
            _ => DEFAULT_WINDOW,
        }
    }

    /// Draft: `IsInAProbeBWState`.
    fn cycles(self) -> bool {
        matches!(self, BbrState::Down | BbrState::Cruise | BbrState::Refill | BbrState::Up)
    }

    /// Draft: `IsProbingBW`.
    fn accelerates(self) -> bool {
        matches!(self, BbrState::Startup | BbrState::Refill | BbrState::Up)
    }
}

/// BBR for one subflow. Windows are in segments.
#[derive(Debug)]
struct Bbr3 {
    mss: u32,
    /// Payload bytes by which a segment counts in the pacing rate.
    segment: u32,
    draws: Draws,
    initial_window: u64,
    cwnd: u64,
    /// Window before a recovery or a probe.
    prior_cwnd: u64,
    /// Set when the startup ends, for views and tables: BBR does not use it.
    ssthresh: Option<u64>,
    state: BbrState,
    /// Bytes a second; `None` before the first round-trip time.
    pacing_rate: Option<u64>,
    /// The largest bandwidth of the last cycle, and of the present one.
    max_bandwidth: [Bandwidth; 2],
    /// Segments delivered so far.
    delivered: u64,
    rounds: u64,
    /// A round trip ends when a segment sent after this number of deliveries is delivered.
    round_end: u64,
    round_start: bool,
    /// The window was full in the last round trip, and in the present one.
    window_was_full: [bool; 2],
    min_rtt: MinRtt,
    /// Probing the round-trip time ends at this time, and after a whole round trip.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Deliveries at the begin of the last probe of the round-trip time, and when its segments are
    /// delivered. Samples of segments sent in between do not show the bandwidth.
    few_in_flight: (u64, u64),
    full: FullPipe,
    latest: Latest,
    bounds: Bounds,
    probing: Probing,
    /// Bounds before the last losses, and the state that they ended.
    undo: (Bounds, Option<BbrState>),
    /// Number of the segment that was lost last, and ranges of lost segments in this round trip.
    lost_ranges: (u64, u32),
    /// The round trip that ended began in fast recovery.
    recovered_for_round: bool,
    aggregation: WindowedMaximum,
    /// Begin of the interval in which acknowledged segments count, and how many there were.
    aggregation_since: (Instant, u64),
    /// Phase of loss recovery at the last acknowledgement.
    recovery: RecoveryPhase,
    /// The subflow sends again after the application was idle.
    idle_restart: bool,
}

impl Bbr3 {
    fn new(start: &Start) -> Self {
        let initial_window = start.initial_window / u64::from(start.mss);
        Bbr3 {
            mss: start.mss,
            segment: start.mss,
            draws: Draws::new(start.random),
            initial_window,
            cwnd: initial_window,
            prior_cwnd: 0,
            ssthresh: None,
            state: BbrState::Startup,
            pacing_rate: None,
            max_bandwidth: [Bandwidth::default(); 2],
            delivered: 0,
            rounds: 0,
            round_end: 0,
            round_start: false,
            window_was_full: [false; 2],
            min_rtt: MinRtt::default(),
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            few_in_flight: (0, 0),
            full: FullPipe::default(),
            latest: Latest::default(),
            bounds: Bounds::default(),
            probing: Probing::default(),
            undo: (Bounds::default(), None),
            lost_ranges: (u64::MAX, 0),
            recovered_for_round: false,
            aggregation: WindowedMaximum::default(),
            aggregation_since: (Instant::ZERO, 0),
            recovery: RecoveryPhase::Open,
            idle_restart: false,
        }
    }

    // ---- model ------------------------------------------------------------------------------

    /// The largest bandwidth of this cycle and the last one.
    fn max_bandwidth(&self) -> Bandwidth {
        self.max_bandwidth[0].max(self.max_bandwidth[1])
    }

    /// The bandwidth that counts. Draft: `BoundBWForModel`.
    fn bandwidth(&self) -> Bandwidth {
        let largest = self.max_bandwidth();
        self.bounds.bandwidth.map_or(largest, |bound| bound.min(largest))
    }

    /// Segments of the bandwidth-delay product, times a gain. Draft: `BDPMultiple`.
    fn bdp(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt.get() else { return self.initial_window };
        let scaled = bandwidth.scaled_segments(min_rtt) * u128::from(gain) / u128::from(UNIT);
        scaled.div_ceil(1 << Bandwidth::SCALE) as u64
    }

    /// Segments that leave at once. Draft: `SetSendQuantum`.
    fn burst_segments(&self) -> u64 {
        let bytes = (self.pacing_rate.unwrap_or(0) / 1000).min(LARGEST_BURST);
        (bytes / u64::from(self.mss)).max(self.fewest_at_a_time())
    }

    /// Draft: `QuantizationBudget`.
    fn with_bursts(&self, segments: u64) -> u64 {
        let fewest = (BURSTS * self.burst_segments()).max(FEWEST_SEGMENTS);
        segments.max(fewest) + if self.state == BbrState::Up { 2 } else { 0 }
    }

    /// Draft: `Inflight`.
    fn inflight(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        self.with_bursts(self.bdp(bandwidth, gain))
    }

    /// Draft: `TargetInflight`.
    fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth(), UNIT).min(self.cwnd)
    }

    /// Draft: `C.is_cwnd_limited`.
    fn is_cwnd_limited(&self) -> bool {
        self.window_was_full.contains(&true)
    }

    fn is_application_limited(&self, rate: &DeliveryRate) -> bool {
        let (begin, end) = self.few_in_flight;
        rate.app_limited || (begin..end).contains(&rate.prior_delivered)
    }

    /// Draft: `UpdateModelAndState`, `UpdateControlParameters`.
    fn on_sample(&mut self, sample: &RateSample) {
        self.segment = sample.segment;
        self.delivered = sample.delivered;
        self.round_start = false;
        self.window_was_full[1] |= sample.prior_in_flight >= self.cwnd;
        if let Some(rate) = &sample.rate {
            self.update_bandwidth(sample, rate);
            self.update_aggregation(sample);
            self.check_startup_and_drain(sample, rate);
            self.update_phase(sample, rate);
        }
        self.min_rtt.update(sample.now, sample.rtt);
        self.check_probe_rtt(sample);
        if let Some(rate) = &sample.rate {
            self.latest.advance(rate);
        }
        self.update_pacing_rate(sample.srtt);
        self.update_cwnd(sample);
    }

    /// Draft: `UpdateLatestDeliverySignals`, `UpdateCongestionSignals`.
    fn update_bandwidth(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        self.latest.update(sample, rate);
        if rate.prior_delivered >= self.round_end {
            self.start_round();
            self.rounds += 1;
            self.probing.rounds_since_up += 1;
            self.round_start = true;
            self.window_was_full = [self.window_was_full[1], false];
        }
        let bandwidth = Bandwidth::of(rate.segments, rate.interval);
        if bandwidth >= self.max_bandwidth() || !self.is_application_limited(rate) {
            self.max_bandwidth[1] = self.max_bandwidth[1].max(bandwidth);
        }
        if self.latest.has_ended {
            if self.latest.has_loss && !self.state.accelerates() {
                self.bounds.lower(&self.latest, self.max_bandwidth(), self.cwnd);
            }
            self.latest.has_loss = false;
        }
    }

    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    /// Draft: `UpdateACKAggregation`.
    fn update_aggregation(&mut self, sample: &RateSample) {
        let (since, acked) = self.aggregation_since;
        let mut expected = self.bandwidth().segments(sample.now.saturating_since(since));
        if acked <= expected {
            self.aggregation_since = (sample.now, 0);
            expected = 0;
        }
        self.aggregation_since.1 += sample.acked;
        let extra = (self.aggregation_since.1 - expected).min(self.cwnd);
        let window = if self.full.was_reached { AGGREGATION_ROUNDS } else { 1 };
        self.aggregation.add(window, self.rounds, extra);
    }

    // ---- states -----------------------------------------------------------------------------

    /// Draft: `CheckFullBWReached`, `CheckStartupDone`, `CheckDrainDone`.
    fn check_startup_and_drain(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        if self.round_start && !self.is_application_limited(rate) {
            self.full.on_round(Bandwidth::of(rate.segments, rate.interval));
        }
        if self.state == BbrState::Startup {
            self.check_startup_losses(sample, rate);
            if self.full.was_reached {
                self.state = BbrState::Drain { since: self.rounds };
                self.ssthresh = Some(self.inflight(self.bandwidth(), UNIT));
            }
        }
        if let BbrState::Drain { since } = self.state
            && (sample.in_flight <= self.inflight(self.bandwidth(), UNIT)
                || self.rounds > since + DRAIN_ROUNDS)
        {
            self.start_down(sample.now);
        }
    }

    /// Draft: `CheckStartupHighLoss`.
    fn check_startup_losses(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        if !self.latest.has_ended {
            return;
        }
        let (_, ranges) = self.lost_ranges;
        if self.recovered_for_round
            && ranges >= STARTUP_LOST_RANGES
            && bounds::is_too_high(rate.lost, rate.in_flight)
        {
            self.undo.1 = Some(BbrState::Startup);
            self.full.was_reached = true;
            let delivered = self.bdp(self.bandwidth(), UNIT).max(self.latest.delivered);
            self.bounds.long_term = Some(delivered);
        }
        self.lost_ranges.1 = 0;
        self.recovered_for_round = sample.phase == RecoveryPhase::Recovery;
    }

    /// Draft: `CheckProbeRTT`.
    fn check_probe_rtt(&mut self, sample: &RateSample) {
        if self.state != BbrState::ProbeRtt && self.min_rtt.has_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = BbrState::ProbeRtt;
            self.probe_rtt_until = None;
            self.few_in_flight.0 = sample.delivered;
            self.probing.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.acked > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, sample: &RateSample) {
        self.few_in_flight.1 = sample.delivered + sample.in_flight + 1;
        if self.probe_rtt_until.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.end_probe_rtt(sample.now);
            }
        } else if sample.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt_until = Some(sample.now + PROBE_RTT);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(self.bandwidth(), BbrState::ProbeRtt.window_gain()).max(FEWEST_SEGMENTS)
    }

    /// Draft: `CheckProbeRTTDone`, `ExitProbeRTT`.
    fn end_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        self.min_rtt.on_probed(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.reset_short_term();
        if self.full.was_reached {
            self.start_down(now);
            self.state = BbrState::Cruise;
        } else {
            self.state = BbrState::Startup;
        }
    }

    // ---- losses -----------------------------------------------------------------------------

    /// Draft: `NoteLoss`, `SaveStateUponLoss`.
    fn note_loss(&mut self) {
        if self.latest.on_loss(self.delivered) {
            self.save_cwnd();
            self.undo = (self.bounds, None);
        }
    }

    /// Draft: `HandleInflightTooHigh`. `safe` segments were in flight without too many losses.
    fn on_too_high(&mut self, safe: u64, lost: &LostSegment) {
        self.probing.was_too_high = true;
        self.probing.is_sample = false;
        if !lost.app_limited {
            self.bounds.long_term = Some(safe.max(bounds::reduced(self.target_inflight())));
        }
        if self.state == BbrState::Up {
            self.undo.1 = Some(BbrState::Up);
            self.start_down(lost.now);
        }
    }

    /// The last losses were spurious. Draft: `HandleSpuriousLossDetection`.
    fn on_undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.latest.has_loss = false;
        self.full.restart(Bandwidth::default());
        let (before, state) = std::mem::take(&mut self.undo);
        self.bounds.undo(before);
        match state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full.was_reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::Up) if !matches!(self.state, BbrState::Up | BbrState::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }

    // ---- rate and window --------------------------------------------------------------------

    /// Bytes a second. Draft: `SetPacingRateWithGain`.
    fn rate(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        Bandwidth(bandwidth.0.saturating_mul(gain) / UNIT).bytes_a_second(self.segment)
    }

    /// Draft: `SetPacingRate`.
    fn update_pacing_rate(&mut self, srtt: Option<Duration>) {
        let before = self.pacing_rate.or_else(|| srtt.map(|srtt| self.first_pacing_rate(srtt)));
        let rate = self.rate(self.bandwidth(), self.state.pacing_gain());
        self.pacing_rate = match before {
            Some(before) if !self.full.was_reached && rate <= before => Some(before),
            _ => Some(rate),
        };
    }

    /// Draft: `InitPacingRate`.
    fn first_pacing_rate(&self, srtt: Duration) -> u64 {
        self.rate(Bandwidth::of(self.initial_window, srtt), STARTUP_PACING)
    }

    /// Draft: `SetCwnd`.
    fn update_cwnd(&mut self, sample: &RateSample) {
        let before = std::mem::replace(&mut self.recovery, sample.phase);
        if sample.phase == RecoveryPhase::Open && before != RecoveryPhase::Open {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        let bdp = self.bdp(self.bandwidth(), self.state.window_gain());
        let most = self.with_bursts(bdp + self.aggregation.get());
        if self.full.was_reached {
            self.cwnd = (self.cwnd + sample.acked).min(most);
        } else if self.cwnd < most || sample.delivered < self.initial_window {
            self.cwnd += sample.acked;
        }
        self.cwnd = self.cwnd.max(FEWEST_SEGMENTS);
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    /// Draft: `BoundCwndForModel`.
    fn bound_cwnd(&mut self) {
        let long_term = match self.state {
            BbrState::Down | BbrState::Refill | BbrState::Up => self.bounds.long_term,
            BbrState::Cruise | BbrState::ProbeRtt => self.bounds.with_headroom(FEWEST_SEGMENTS),
            BbrState::Startup | BbrState::Drain { .. } => None,
        };
        for bound in [long_term, self.bounds.in_flight].into_iter().flatten() {
            self.cwnd = self.cwnd.min(bound.max(FEWEST_SEGMENTS));
        }
    }

    /// Draft: `SaveCwnd`.
    fn save_cwnd(&mut self) {
        self.prior_cwnd =
            match self.recovery == RecoveryPhase::Open && self.state != BbrState::ProbeRtt {
                true => self.cwnd,
                false => self.prior_cwnd.max(self.cwnd),
            };
    }
}

impl CongestionControl for Bbr3 {
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

    /// Draft: `HandleLostPacket`.
    fn on_segment_lost(&mut self, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.note_loss();
        let (last, ranges) = self.lost_ranges;
        let continues = lost.number == last.wrapping_add(1);
        self.lost_ranges = (lost.number, ranges + u32::from(!continues));
        if self.probing.is_sample && bounds::is_too_high(lost.lost, lost.in_flight) {
            let safe = bounds::in_flight_at_loss(lost.in_flight, lost.lost);
            self.on_too_high(safe, lost);
        }
    }

    /// Draft: `HandleRestartFromIdle`.
    fn on_restart(&mut self, now: Instant, _delivered_at: Instant) {
        self.idle_restart = true;
        self.aggregation_since.0 = now;
        if self.state.cycles() {
            self.pacing_rate = Some(self.rate(self.bandwidth(), UNIT));
        } else if self.state == BbrState::ProbeRtt {
            self.end_probe_rtt(now);
        }
    }

    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<u64> {
        self.pacing_rate
            .or_else(|| Some(self.first_pacing_rate(srtt.unwrap_or(Duration::from_millis(1)))))
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _: usize, _: &[SubflowView]) {
        match *event {
            CongestionEvent::Recovery { .. } => self.save_cwnd(),
            // Draft: `OnEnterRTO`. Nothing is in flight after it.
            CongestionEvent::Timeout { .. } => {
                self.note_loss();
                self.save_cwnd();
                self.recovery = RecoveryPhase::Loss;
                self.cwnd = 1;
            }
            CongestionEvent::Undo => self.on_undo(),
            CongestionEvent::SynLost => self.cwnd = 1,
            CongestionEvent::MssChanged { mss } => self.mss = mss,
            // The model has the bandwidth; a window that was not used stays valid. The draft leaves
            // marks to later versions.
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
