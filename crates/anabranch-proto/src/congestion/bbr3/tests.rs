use super::*;
use crate::congestion::tests::start;

/// Round-trip time of the pipe in ms.
const RTT: u64 = 50;
/// Segments a round trip that the pipe delivers.
const PIPE: u64 = 100;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A pipe that delivers [`PIPE`] segments in each round trip, and holds as many again in a queue.
struct Pipe {
    bbr: Bbr3,
    now: u64,
    delivered: u64,
    app_limited: bool,
    /// States since the start, without repetitions.
    states: Vec<BbrState>,
}

impl Pipe {
    fn new() -> Pipe {
        let bbr = Bbr3::new(&start(10_000));
        Pipe { bbr, now: RTT, delivered: 0, app_limited: false, states: vec![BbrState::Startup] }
    }

    fn sample(&self, in_flight: u64, prior_delivered: u64) -> RateSample {
        let interval = Duration::from_micros(1_000 * RTT * in_flight.max(PIPE) / PIPE);
        let rate = DeliveryRate {
            segments: in_flight,
            interval,
            prior_delivered,
            app_limited: self.app_limited,
            in_flight,
            lost: 0,
        };
        RateSample {
            now: at(self.now),
            rate: Some(rate),
            acked: 1,
            lost: 0,
            delivered: self.delivered,
            lost_in_all: 0,
            delivered_at: at(self.now),
            prior_in_flight: in_flight,
            in_flight: in_flight - 1,
            rtt: Some(interval),
            may_be_delayed: false,
            min_rtt: Duration::from_millis(RTT),
            srtt: Some(interval),
            next_departure: at(self.now),
            phase: RecoveryPhase::Open,
            segment: 1_000,
        }
    }

    /// Segments in flight, as pacing and window allow them.
    fn in_flight(&self) -> u64 {
        let paced = PIPE * self.bbr.state.pacing_gain() / UNIT;
        let paced = if self.bbr.full.was_reached { paced } else { u64::MAX };
        self.bbr.cwnd.min(paced).max(1)
    }

    /// A round trip in which all that is in flight is delivered.
    fn round(&mut self) {
        let (in_flight, begin) = (self.in_flight(), self.delivered);
        for _ in 0..in_flight {
            self.delivered += 1;
            let sample = self.sample(in_flight, begin);
            self.bbr.on_sample(&sample);
            if self.states.last() != Some(&self.bbr.state) {
                self.states.push(self.bbr.state);
            }
        }
        self.now += RTT * in_flight.max(PIPE) / PIPE;
    }

    /// Go on until a state begins. Panics after a thousand round trips.
    fn until(&mut self, state: BbrState) {
        for _ in 0..1000 {
            if self.bbr.state == state {
                return;
            }
            self.round();
        }
        panic!("not in {state:?}, but in {:?} after {:?}", self.bbr.state, self.states);
    }

    /// The last `lost` of `in_flight` segments are lost.
    fn lose(&mut self, in_flight: u64, lost: u64) {
        for count in 1..=lost {
            self.bbr.on_segment_lost(&LostSegment {
                now: at(self.now),
                number: 1_000 + 2 * count,
                delivered: self.delivered,
                in_flight,
                lost: count,
                app_limited: self.app_limited,
            });
        }
    }
}

#[test]
fn the_startup_ends_at_the_plateau_and_the_cycle_begins() {
    // Draft: "Exiting STARTUP on Bandwidth Plateau", "Exiting DRAIN Based on Inflight".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Up);
    let per_round = pipe.bbr.max_bandwidth().segments(Duration::from_millis(100 * RTT));
    assert!((9_800..=10_000).contains(&per_round), "{per_round}");
    let drain = pipe.states[1];
    assert!(matches!(drain, BbrState::Drain { .. }));
    // The queue is empty after draining, so the cycle goes on at once from down to cruise.
    assert_eq!(
        pipe.states,
        [BbrState::Startup, drain, BbrState::Cruise, BbrState::Refill, BbrState::Up]
    );
}

#[test]
fn a_cycle_lasts_between_two_and_three_seconds() {
    // More than 63 round trips would be longer.
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Cruise);
    let begin = pipe.now;
    pipe.until(BbrState::Refill);
    assert!((2_000..=3_000 + RTT).contains(&(pipe.now - begin)), "{}", pipe.now - begin);
}

#[test]
fn small_products_are_probed_as_often_as_reno_would_fill_them() {
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Cruise);
    pipe.bbr.max_bandwidth = [Bandwidth::of(10, Duration::from_millis(RTT)); 2];
    for (rounds, is_time) in [(9, false), (10, true)] {
        pipe.bbr.probing.rounds_since_up = rounds;
        assert_eq!(pipe.bbr.is_time_to_probe(at(pipe.now)), is_time, "{rounds}");
    }
}

#[test]
fn a_probe_ends_when_the_rate_no_longer_grows() {
    // Draft: "Exiting PROBE_UP on Bandwidth Plateau".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Up);
    let rounds = pipe.bbr.rounds;
    pipe.until(BbrState::Down);
    assert!((3..=4).contains(&(pipe.bbr.rounds - rounds)), "{}", pipe.bbr.rounds - rounds);
}

#[test]
fn too_many_losses_in_a_probe_set_the_long_term_bound() {
    // Draft: "Handling Loss During PROBE_UP".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Up);
    pipe.round();
    pipe.lose(125, 2);
    assert_eq!((pipe.bbr.state, pipe.bbr.bounds.long_term), (BbrState::Up, None));
    pipe.lose(125, 3);
    assert_eq!(pipe.bbr.state, BbrState::Down);
    // (0.02 · 124 - 2) / 0.98 = 0.49: the third loss was one too many.
    assert_eq!(pipe.bbr.bounds.long_term, Some(124));
    // A second reaction waits for the next probe.
    pipe.lose(50, 40);
    assert_eq!(pipe.bbr.bounds.long_term, Some(124));
}

#[test]
fn after_too_many_losses_the_next_probe_ends_at_the_bound() {
    // Draft: "Precautionary Bandwidth Probing".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Up);
    pipe.lose(110, 3);
    let bound = pipe.bbr.bounds.long_term.expect("a bound");
    pipe.states.clear();
    pipe.until(BbrState::Up);
    assert!(pipe.bbr.probing.was_too_high);
    pipe.until(BbrState::Down);
    assert!(!pipe.bbr.probing.was_too_high);
    // It went well, so the next probe follows at once, and may stay at the bound and raise it.
    pipe.states.clear();
    pipe.until(BbrState::Up);
    assert_eq!(pipe.states.first(), Some(&BbrState::Refill));
    pipe.until(BbrState::Down);
    assert!(pipe.bbr.bounds.long_term > Some(bound), "{:?}", pipe.bbr.bounds);
}

#[test]
fn a_loss_while_cruising_lowers_the_short_term_bounds_until_the_next_probe() {
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Cruise);
    pipe.lose(100, 1);
    pipe.round();
    pipe.round();
    let bounds = pipe.bbr.bounds;
    let least = pipe.bbr.max_bandwidth().0 * 99 / 100;
    assert!(bounds.bandwidth >= Some(Bandwidth(least)), "the rate of the round is as high");
    assert!(bounds.in_flight >= Some(100) && bounds.long_term.is_none(), "{bounds:?}");
    pipe.until(BbrState::Refill);
    assert_eq!(pipe.bbr.bounds, Bounds::default());
}

#[test]
fn a_spurious_loss_returns_to_the_probe() {
    // Draft: "Handling Spurious Fast Recovery".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Up);
    pipe.lose(125, 3);
    assert_eq!(pipe.bbr.state, BbrState::Down);
    pipe.bbr.on_congestion_event(&CongestionEvent::Undo, 0, &[]);
    assert_eq!((pipe.bbr.state, pipe.bbr.bounds), (BbrState::Refill, Bounds::default()));
}

#[test]
fn the_round_trip_time_is_probed_after_five_seconds() {
    // Draft: "Entering and Exiting PROBE_RTT".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::ProbeRtt);
    // The first round trip has the smallest time.
    assert!((5_000..6_000).contains(&pipe.now), "{}", pipe.now);
    let cwnd = pipe.bbr.prior_cwnd;
    pipe.round();
    assert!(pipe.bbr.cwnd <= PIPE / 2 + 1, "half the product: {}", pipe.bbr.cwnd);
    let begin = pipe.now;
    pipe.until(BbrState::Cruise);
    assert!((200..=400).contains(&(pipe.now - begin)), "{}", pipe.now - begin);
    assert!(pipe.bbr.cwnd >= cwnd, "the window is restored");
}

#[test]
fn a_probe_of_the_round_trip_time_in_the_startup_returns_to_it() {
    let mut pipe = Pipe::new();
    pipe.app_limited = true;
    pipe.until(BbrState::ProbeRtt);
    pipe.until(BbrState::Startup);
    assert!(!pipe.bbr.full.was_reached);
}

#[test]
fn six_lost_ranges_in_a_round_of_recovery_end_the_startup() {
    // Draft: "Exiting STARTUP on Loss When Application-Limited".
    let mut pipe = Pipe::new();
    pipe.app_limited = true;
    for _ in 0..3 {
        pipe.round();
    }
    for _ in 0..2 {
        pipe.lose(100, 6);
        for _ in 0..100 {
            pipe.delivered += 1;
            let mut sample = pipe.sample(100, pipe.delivered - 50);
            sample.phase = RecoveryPhase::Recovery;
            if let Some(rate) = &mut sample.rate {
                rate.lost = 6;
            }
            pipe.bbr.on_sample(&sample);
        }
    }
    assert!(pipe.bbr.full.was_reached);
    assert!(pipe.bbr.bounds.long_term.is_some());
    assert_ne!(pipe.bbr.state, BbrState::Startup);
}

#[test]
fn an_idle_time_replaces_a_probe_of_the_round_trip_time() {
    // Draft: "Skipping PROBE_RTT Due to Application-Limited Sending".
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Cruise);
    pipe.now += 5_000;
    pipe.bbr.on_restart(at(pipe.now), at(pipe.now));
    pipe.states.clear();
    for _ in 0..10 {
        pipe.round();
    }
    assert!(!pipe.states.contains(&BbrState::ProbeRtt), "{:?}", pipe.states);
}

#[test]
fn after_a_timeout_one_segment_leaves() {
    let mut pipe = Pipe::new();
    pipe.until(BbrState::Cruise);
    let cwnd = pipe.bbr.cwnd;
    let timeout = CongestionEvent::Timeout { now: at(pipe.now), flight_size: 100_000, first: true };
    pipe.bbr.on_congestion_event(&timeout, 0, &[]);
    assert_eq!(pipe.bbr.cwnd(), 1_000);
    pipe.round();
    assert!(pipe.bbr.cwnd >= cwnd, "the model still has the bandwidth");
}
