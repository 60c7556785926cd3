//! The cycle that probes the bandwidth: down, cruise, refill, up.

use anabranch_wire::{Duration, Instant};

use super::bounds;
use super::{Bbr3, BbrState, UNIT};
use crate::congestion::bandwidth::Bandwidth;
use crate::congestion::{DeliveryRate, RateSample};

/// Shortest time between probes. Up to a second is added at random.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// Most round trips between probes, as Reno would need for as many segments.
const MOST_ROUNDS: u64 = 63;
/// Largest power of two by which the long-term bound grows in a round trip.
const LARGEST_GROWTH: u32 = 30;

/// Relation of acknowledgements to a probe. Draft: `BBR.ack_phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing.
    #[default]
    Init,
    /// The pipe fills.
    Refilling,
    /// The probe began, and no segment of it is acknowledged.
    ProbeStarting,
    /// Segments of the probe are acknowledged.
    ProbeFeedback,
    /// The probe has ended, and its segments are still acknowledged.
    ProbeStopping,
}

/// State of the probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    pub(super) ack_phase: AckPhase,
    /// Samples are of segments sent in a probe. Draft: `BBR.is_bw_probe_sample`.
    pub(super) is_sample: bool,
    /// Round trips since the last probe.
    pub(super) rounds_since_up: u64,
    /// The last probe had too many losses. Draft: `BBR.prev_probe_too_high`.
    pub(super) was_too_high: bool,
    /// The last probe ended at the bound of a probe with too many losses. Draft:
    /// `BBR.prev_probe_precautionary`.
    was_precautionary: bool,
    /// Time until the next probe, and since when.
    wait: Duration,
    since: Instant,
    /// Segments acknowledged since the long-term bound grew, and after how many it grows by one.
    acked: u64,
    acked_per_increment: Option<u64>,
    /// Round trips in which the long-term bound grew in this probe.
    growing_rounds: u32,
}

impl Bbr3 {
    /// Begin a cycle with a rate below the bandwidth. Draft: `StartProbeBW_DOWN`, `PickProbeWait`.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.probing.acked_per_increment = None;
        self.probing.rounds_since_up = self.draws.next() % 2;
        self.probing.wait = SHORTEST_WAIT + Duration::from_nanos(self.draws.next() % 1_000_000_000);
        self.probing.since = now;
        self.probing.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = BbrState::Down;
    }

    /// Draft: `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.probing.growing_rounds = 0;
        self.probing.acked = 0;
        self.probing.was_precautionary = false;
        self.probing.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = BbrState::Refill;
    }

    /// Draft: `StartProbeBW_UP`.
    fn start_up(&mut self, rate: &DeliveryRate) {
        self.probing.is_sample = true;
        self.probing.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full.restart(Bandwidth::of(rate.segments, rate.interval));
        self.state = BbrState::Up;
        self.raise_slope();
    }

    /// Draft: `UpdateProbeBWCyclePhase`.
    pub(super) fn update_phase(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        if !self.full.was_reached || self.adapt_long_term(sample, rate) {
            return;
        }
        match self.state {
            BbrState::Down | BbrState::Cruise if self.is_time_to_probe(sample.now) => {
                self.start_refill()
            }
            BbrState::Down if self.is_time_to_cruise(sample) => self.state = BbrState::Cruise,
            BbrState::Refill if self.round_start => self.start_up(rate),
            BbrState::Up => self.check_going_down(sample, rate),
            _ => {}
        }
    }

    fn check_going_down(&mut self, sample: &RateSample, rate: &DeliveryRate) {
        if self.is_time_to_go_down(sample, rate) {
            self.probing.was_too_high = false;
            self.start_down(sample.now);
        }
    }

    /// Draft: `IsTimeToProbeBW`, `IsRenoCoexistenceProbeTime`.
    pub(super) fn is_time_to_probe(&self, now: Instant) -> bool {
        now > self.probing.since + self.probing.wait
            || self.probing.rounds_since_up >= self.target_inflight().min(MOST_ROUNDS)
    }

    /// Draft: `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let room = self.bounds.with_headroom(super::FEWEST_SEGMENTS).unwrap_or(u64::MAX);
        sample.in_flight <= room && sample.in_flight <= self.inflight(self.max_bandwidth(), UNIT)
    }

    /// Draft: `IsTimeToGoDown`. What was in flight before the acknowledgement counts, as in the
    /// implementation for Linux: afterwards, the window is never full.
    fn is_time_to_go_down(&mut self, sample: &RateSample, rate: &DeliveryRate) -> bool {
        let bound = self.bounds.long_term.unwrap_or(u64::MAX);
        if self.probing.was_too_high && sample.prior_in_flight >= bound {
            self.probing.was_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= bound {
            self.full.restart(Bandwidth::of(rate.segments, rate.interval));
            return false;
        }
        self.full.is_full
    }

    /// Draft: `AdaptLongTermModel`. Returns `true` if it changed the state.
    fn adapt_long_term(&mut self, sample: &RateSample, rate: &DeliveryRate) -> bool {
        if self.round_start && self.probing.ack_phase == AckPhase::ProbeStarting {
            self.probing.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round_start && self.probing.ack_phase == AckPhase::ProbeStopping {
            self.probing.is_sample = false;
            self.probing.ack_phase = AckPhase::Init;
            if self.state.cycles() {
                if !self.is_application_limited(rate) {
                    self.max_bandwidth = [self.max_bandwidth[1], Bandwidth::default()];
                }
                if self.probing.was_precautionary && !self.probing.was_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if let Some(bound) = self.bounds.long_term
            && !bounds::is_too_high(rate.lost, rate.in_flight)
        {
            self.bounds.long_term = Some(bound.max(rate.in_flight));
            if self.state == BbrState::Up {
                self.grow_long_term(sample);
            }
        }
        false
    }

    /// Draft: `ProbeInflightLongtermUpward`.
    fn grow_long_term(&mut self, sample: &RateSample) {
        let (Some(bound), Some(each)) = (self.bounds.long_term, self.probing.acked_per_increment)
        else {
            return;
        };
        if !self.is_cwnd_limited() || self.cwnd < bound {
            return;
        }
        self.probing.acked += sample.acked;
        self.bounds.long_term = Some(bound + self.probing.acked / each);
        self.probing.acked %= each;
        if self.round_start {
            self.raise_slope();
        }
    }

    /// Draft: `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self) {
        let growth = 1 << self.probing.growing_rounds;
        self.probing.growing_rounds = (self.probing.growing_rounds + 1).min(LARGEST_GROWTH);
        self.probing.acked_per_increment = Some((self.cwnd / growth).max(1));
    }
}
