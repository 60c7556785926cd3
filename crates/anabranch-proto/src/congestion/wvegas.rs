//! wVegas, weighted Vegas: coupled by delay instead of loss. Cao, Xu, Fu, "Delay-based congestion
//! control for multipath TCP", ICNP 2012.

use anabranch_config::part_without_parameters;
use anabranch_wire::Duration;

use super::{
    AckSample, BuildCongestionControl, CongestionControl, CongestionEvent, Coupled,
    ExternalReduction, SlowStartExit, Start, Window, coupled, new_reno,
};
use crate::view::SubflowView;

/// wVegas for one subflow.
///
/// Once per round trip, wVegas estimates the backlog of the subflow in the network: `diff = cwnd ·
/// (rtt − base) / rtt` segments, with `rtt` the round's mean and `base` the smallest RTT ever. It
/// compares the backlog with `alpha`, the subflow's share of the backlog allowed to the connection.
/// Below its share, the window grows by a segment; above, it shrinks by one. The share follows the
/// subflow's rate. When the queueing delay is twice the smallest seen, the window backs off to
/// drain the queue.
///
/// Slow start then refills the window in bursts, which queue. The sources judge these rounds like
/// any others, so on an otherwise undisturbed path the drain repeats for ever. Here, rounds that
/// acknowledge data sent in slow start are not judged (this project). Bursts of other origin still
/// look like queues. If the window is far below the capacity of the path, the drain may keep it
/// there.
#[derive(Clone, Debug)]
pub struct WVegas {
    window: Window,
    /// Smallest round-trip time; [`Duration::MAX`] before the first sample.
    base_rtt: Duration,
    /// Smallest queueing delay since the last back-off, in seconds.
    least_queueing: Option<f64>,
    /// Number of segments that this subflow may keep in the network.
    alpha: f64,
    round: Round,
    /// Subflow byte after which nothing was sent in slow start.
    settled: u64,
}

/// One round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// First subflow byte whose acknowledgement belongs to the round.
    start: u64,
    /// Subflow byte whose acknowledgement ends the round.
    end: u64,
    rtt_sum: Duration,
    samples: u64,
}

/// Number of segments that all subflows together keep in the network. The implementation for Linux.
const TOTAL_ALPHA: f64 = 10.0;
/// Initial and smallest share of a subflow, in segments. The implementation for Linux.
const MIN_ALPHA: f64 = 2.0;
/// Backlog in segments that ends slow start. The implementation for Linux.
const GAMMA: f64 = 1.0;
/// Minimum number of samples in a round. With fewer, the window grows as in Reno. The
/// implementation for Linux.
const MIN_SAMPLES: u64 = 3;
/// Drain the queue when its delay is this many times the smallest seen. Cao et al. §IV.
const DRAIN_RATIO: f64 = 2.0;

/// Backlog of a window of `cwnd` segments; round-trip times in seconds.
pub(super) fn backlog(cwnd: f64, rtt: f64, base: f64) -> f64 {
    cwnd * (rtt - base) / rtt
}

/// A subflow's share of the backlog: proportional to its rate, and at least two segments.
pub(super) fn share(own: &Coupled, subflows: impl Iterator<Item = Coupled>) -> f64 {
    let total: f64 = subflows.map(|subflow| subflow.rate()).sum();
    (TOTAL_ALPHA * own.rate() / total).max(MIN_ALPHA)
}

/// Change of the window in segments at the end of a round in congestion avoidance.
pub(super) fn step(diff: f64, alpha: f64) -> f64 {
    if diff > alpha {
        -1.0
    } else if diff < alpha {
        1.0
    } else {
        0.0
    }
}

/// Factor by which draining the queue reduces the window.
pub(super) fn drained(rtt: f64, base: f64) -> f64 {
    base / (2.0 * rtt)
}

part_without_parameters! {
    /// Selects [`WVegas`].
    pub struct WVegasConfig;
    NAME = "wvegas";
    SUMMARY = "Weighted Vegas: shifts load by queueing delay instead of loss; coupled.";
    SOURCE = "Cao et al., ICNP 2012";
}

impl BuildCongestionControl for WVegasConfig {
    fn is_coupled(&self) -> bool {
        true
    }

    fn slow_start_exit(&self) -> SlowStartExit {
        SlowStartExit::Own
    }

    fn build(&self, start: &Start, _hystart: bool) -> Box<dyn CongestionControl> {
        Box::new(WVegas::new(start))
    }
}

impl WVegas {
    /// wVegas in slow start, with the initial window.
    pub fn new(start: &Start) -> Self {
        WVegas {
            window: Window::new(start),
            base_rtt: Duration::MAX,
            least_queueing: None,
            alpha: MIN_ALPHA,
            round: Round::default(),
            settled: 0,
        }
    }

    fn segments(&self) -> f64 {
        self.window.cwnd() as f64 / f64::from(self.window.mss())
    }

    /// At the end of a round, leave slow start if there is a backlog. The window shrinks to what
    /// the path holds without a queue, plus one segment.
    fn leave_slow_start(&mut self, rtt: f64, samples: u64) {
        let base = self.base_rtt.as_secs_f64();
        if samples >= MIN_SAMPLES && backlog(self.segments(), rtt, base) > GAMMA {
            let held = self.window.cwnd() as f64 * base / rtt;
            self.window.shrink_to(held as u64 + u64::from(self.window.mss()));
            self.window.end_slow_start();
        }
    }

    /// A round of congestion avoidance has ended; `rtt` is its mean in seconds.
    fn on_round(&mut self, rtt: f64, sample: &AckSample, me: usize, peers: &[SubflowView]) {
        let base = self.base_rtt.as_secs_f64();
        let diff = backlog(self.segments(), rtt, base);
        if diff >= self.alpha {
            let own = Coupled::own(self.window.cwnd(), sample, me, peers);
            self.alpha = share(&own, coupled::subflows(own, me, peers));
        }
        self.adjust(step(diff, self.alpha), sample);
        self.window.remember_window();
        self.drain(rtt, base);
    }

    fn adjust(&mut self, step: f64, sample: &AckSample) {
        if step < 0.0 {
            self.window.shrink_to(self.window.cwnd() - u64::from(self.window.mss()));
            self.window.end_slow_start();
        } else if sample.cwnd_limited {
            self.window.grow(step * f64::from(self.window.mss()));
        }
    }

    /// Drain the queue if its delay has grown. Slow start then refills the window up to the
    /// threshold, and ends earlier if a queue forms again.
    fn drain(&mut self, rtt: f64, base: f64) {
        let queueing = rtt - base;
        let least = self.least_queueing.map_or(queueing, |least| least.min(queueing));
        self.least_queueing = Some(least);
        if least > 0.0 && queueing >= DRAIN_RATIO * least {
            self.window.shrink_to((self.window.cwnd() as f64 * drained(rtt, base)) as u64);
            self.least_queueing = None;
        }
    }

    fn on_sample(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.round.rtt_sum += rtt;
            self.round.samples += 1;
        }
    }

    fn reno(&mut self, sample: &AckSample) {
        if !sample.cwnd_limited {
            return;
        }
        let (mss, cwnd) = (self.window.mss(), self.window.cwnd());
        self.window.grow(new_reno::increase(sample.acked, mss, cwnd));
    }
}

impl CongestionControl for WVegas {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]) {
        self.on_sample(sample);
        if self.window.in_slow_start() {
            self.settled = sample.snd_nxt;
            if sample.cwnd_limited {
                self.window.slow_start(sample.acked);
            }
        }
        if sample.snd_una < self.round.end {
            return;
        }
        let Round { start, rtt_sum, samples, .. } = self.round;
        self.round = Round { start: sample.snd_una, end: sample.snd_nxt, ..Round::default() };
        let mean = (rtt_sum / samples.max(1)).as_secs_f64();
        if self.window.in_slow_start() {
            self.leave_slow_start(mean, samples);
        } else if samples < MIN_SAMPLES {
            self.reno(sample);
        } else if start >= self.settled {
            self.on_round(mean, sample, me, peers);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _me: usize, _peers: &[SubflowView]) {
        self.window.on_event(event, new_reno::DECREASE);
        if event.is_congestion() {
            // Earlier measurements do not apply to the smaller window.
            let Round { start, end, .. } = self.round;
            self.round = Round { start, end, ..Round::default() };
            self.least_queueing = None;
            self.alpha = MIN_ALPHA;
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
    use anabranch_wire::Instant;

    /// A subflow in congestion avoidance with a window of `segments` segments of 1000 bytes.
    fn avoiding(segments: u64) -> WVegas {
        let mut wvegas = WVegas::new(&start(2 * segments * 1000));
        let flight_size = 2 * segments * 1000;
        let loss = CongestionEvent::Recovery { now: Instant::ZERO, flight_size };
        wvegas.on_congestion_event(&loss, 0, &[]);
        assert_eq!(wvegas.cwnd(), segments * 1000);
        wvegas
    }

    fn ack(wvegas: &mut WVegas, number: u64, rtt_ms: u64) {
        let rtt = Duration::from_millis(rtt_ms);
        let sample = AckSample {
            now: Instant::ZERO,
            acked: 1_000,
            rtt: Some(rtt),
            srtt: rtt,
            bytes_in_flight: 0,
            snd_una: number * 1_000,
            snd_nxt: (number + 10) * 1_000,
            cwnd_limited: true,
        };
        wvegas.on_ack(&sample, 0, &[]);
    }

    /// Round trips of ten acknowledgements each, after the acknowledgement that begins the first.
    fn rounds(wvegas: &mut WVegas, rtts_ms: &[u64]) {
        let start = wvegas.round.end / 1_000;
        if start == 0 {
            ack(wvegas, 0, rtts_ms[0]);
        }
        let mut number = wvegas.round.end / 1_000 - 10;
        for rtt_ms in rtts_ms {
            for _ in 0..10 {
                number += 1;
                ack(wvegas, number, *rtt_ms);
            }
        }
    }

    #[test]
    fn backlog_share_and_drain_by_hand() {
        // 20 segments, 125 ms of which 25 ms are queueing: 20 · 25/125 = 4 segments.
        assert!((backlog(20.0, 0.125, 0.1) - 4.0).abs() < 1e-12);
        // 100 ms of 125 ms: half of 0.8.
        assert!((drained(0.125, 0.1) - 0.4).abs() < 1e-12);
        // Rates 300 and 100: 7.5 and 2.5 of 10 segments. A tenth of the rate still gets 2.
        let path = |cwnd| Coupled { cwnd, rtt: 0.1, loss_interval: 0.0 };
        let paths = [path(30.0), path(10.0)];
        assert!((share(&paths[0], paths.into_iter()) - 7.5).abs() < 1e-12);
        assert!((share(&paths[1], paths.into_iter()) - 2.5).abs() < 1e-12);
        let paths = [path(90.0), path(10.0)];
        assert_eq!(share(&paths[1], paths.into_iter()), MIN_ALPHA);
    }

    #[test]
    fn the_window_moves_by_one_segment_towards_its_share_of_the_backlog() {
        assert_eq!((step(1.9, 2.0), step(2.0, 2.0), step(2.1, 2.0)), (1.0, 0.0, -1.0));
        // Without a queue it grows by a segment a round.
        let mut wvegas = avoiding(20);
        rounds(&mut wvegas, &[100, 100]);
        assert_eq!(wvegas.cwnd(), 22_000);
    }

    #[test]
    fn alone_a_subflow_keeps_ten_segments_in_the_network() {
        // With all of the rate, its share is 10 segments. Windows of 100 and 101 segments, base 100
        // ms: at 110 ms, 100·10/110 = 9.1 < 10, so the window grows. At 112 ms, 101·12/112 = 10.8 >
        // 10, so it shrinks.
        let mut wvegas = avoiding(99);
        rounds(&mut wvegas, &[100]);
        wvegas.least_queueing = Some(0.008);
        rounds(&mut wvegas, &[110]);
        assert_eq!((wvegas.alpha, wvegas.cwnd()), (10.0, 101_000));
        rounds(&mut wvegas, &[112]);
        assert_eq!(wvegas.cwnd(), 100_000);
    }

    #[test]
    fn twice_the_least_queueing_delay_drains_the_queue() {
        // Base 100 ms, smallest queueing delay 5 ms, now 25 ms ≥ 2·5: a factor of 0.4 = 100/(2·125)
        // applies to 100 segments. The window was 101 segments before this round found 101·25/125 =
        // 20 > 10 of them queued.
        let mut wvegas = avoiding(100);
        rounds(&mut wvegas, &[100]);
        assert_eq!(wvegas.cwnd(), 101_000);
        wvegas.least_queueing = Some(0.005);
        rounds(&mut wvegas, &[125]);
        assert_eq!((wvegas.cwnd(), wvegas.least_queueing), (40_000, None));
    }

    #[test]
    fn slow_start_ends_when_a_segment_queues() {
        // 10 segments acknowledged per round: 10 + 1 at first, then 10 per round. After the third
        // round, 41 · 25/125 = 8.2 segments queue, and the path holds 41 · 100/125 = 32.8 without a
        // queue.
        let mut wvegas = WVegas::new(&start(10_000));
        rounds(&mut wvegas, &[100, 100]);
        assert!(wvegas.window.in_slow_start());
        assert_eq!(wvegas.cwnd(), 31_000);
        rounds(&mut wvegas, &[125]);
        assert!(!wvegas.window.in_slow_start());
        assert_eq!(wvegas.cwnd(), 33_000);
    }
}
