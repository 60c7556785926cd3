//! Leave slow start when the delay rises, before packets are lost: HyStart++ of RFC 9406, and the
//! first HyStart, which Linux uses.

use anabranch_wire::{Duration, Instant};

use super::{AckSample, Window};

/// RFC 9406 §4.3: bounds of the delay increase that ends slow start.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// RFC 9406 §4.3: the threshold is the last round's minimum divided by this.
const MIN_RTT_DIVISOR: u64 = 8;
/// RFC 9406 §4.3: samples before a round's minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406 §4.3: growth in conservative slow start is divided by this.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// RFC 9406 §4.3: rounds of conservative slow start before congestion avoidance.
const CSS_ROUNDS: u32 = 5;

/// The state of HyStart++ for one subflow.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    round_end: u64,
    last_round_min: Duration,
    current_round_min: Duration,
    samples: u32,
    conservative: Option<Conservative>,
    /// Window after the last acknowledgement.
    cwnd: u64,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        HyStart {
            round_end: 0,
            last_round_min: Duration::MAX,
            current_round_min: Duration::MAX,
            samples: 0,
            conservative: None,
            cwnd: 0,
        }
    }
}

impl HyStart {
    /// Slow start with HyStart++, if it is on. Returns the bytes left for congestion avoidance. The
    /// window grows only if it limits the sender.
    pub(super) fn slow_start(
        hystart: &mut Option<HyStart>,
        window: &mut Window,
        sample: &AckSample,
    ) -> u64 {
        if !sample.cwnd_limited {
            return 0;
        }
        if !window.in_slow_start() {
            *hystart = hystart.map(|_| HyStart::default());
            return sample.acked;
        }
        let Some(hystart) = hystart else {
            return window.slow_start(sample.acked);
        };
        if window.cwnd() < hystart.cwnd {
            // Another slow start, after an idle time, a timeout or a penalty. The measurements of
            // the last one included its own queue and do not apply here.
            *hystart = HyStart::default();
        }
        let divisor = if hystart.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        let left = window.slow_start(sample.acked / divisor);
        if hystart.on_ack(sample) {
            window.end_slow_start();
        }
        hystart.cwnd = window.cwnd();
        left
    }

    /// Update the rounds; returns true when slow start must end.
    fn on_ack(&mut self, sample: &AckSample) -> bool {
        if sample.snd_una >= self.round_end && self.next_round(sample.snd_nxt) {
            return true;
        }
        let Some(rtt) = sample.rtt else {
            return false;
        };
        self.current_round_min = self.current_round_min.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE || self.current_round_min == Duration::MAX {
            return false;
        }
        match self.conservative {
            None if self.last_round_min != Duration::MAX => {
                // RFC 9406 §4.2: a rise by an eighth of the last round's minimum, within bounds.
                let threshold =
                    (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min >= self.last_round_min + threshold {
                    self.conservative =
                        Some(Conservative { baseline: self.current_round_min, rounds: 0 });
                }
            }
            // RFC 9406 §4.2: the rise was spurious, so slow start resumes.
            Some(css) if self.current_round_min < css.baseline => self.conservative = None,
            _ => {}
        }
        false
    }

    fn next_round(&mut self, snd_nxt: u64) -> bool {
        self.round_end = snd_nxt;
        self.last_round_min = self.current_round_min;
        self.current_round_min = Duration::MAX;
        self.samples = 0;
        match &mut self.conservative {
            None => false,
            Some(css) => {
                css.rounds += 1;
                css.rounds >= CSS_ROUNDS
            }
        }
    }
}

/// Linux 6.18: smallest window, in segments, at which the first HyStart is active.
const LEAST_SEGMENTS: u64 = 16;
/// Largest gap between acknowledgements of the same packet train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Time that a train may take in addition to the path's round-trip time.
const TRAIN_SLACK: Duration = Duration::from_millis(1);

/// The first HyStart (Ha and Rhee, Computer Networks 2011) as in Linux 6.18 (`hystart_update`). It
/// ends slow start for good when the delay has risen above the minimum, or when a train of closely
/// spaced acknowledgements lasts half the minimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstHyStart {
    round_end: u64,
    round_start: Instant,
    round_min: Duration,
    samples: u32,
    last_ack: Instant,
    found: bool,
}

impl FirstHyStart {
    pub(super) fn new() -> Self {
        FirstHyStart {
            round_end: 0,
            round_start: Instant::ZERO,
            round_min: Duration::MAX,
            samples: 0,
            last_ack: Instant::ZERO,
            found: false,
        }
    }

    /// Examine an acknowledgement before the window grows, whether the window limits the sender or
    /// not.
    pub(super) fn on_ack(&mut self, window: &mut Window, sample: &AckSample, min_rtt: Duration) {
        let Some(rtt) = sample.rtt else { return };
        if self.found || !window.in_slow_start() {
            return;
        }
        // A round ends when data beyond its end is acknowledged.
        if sample.snd_una > self.round_end {
            (self.round_start, self.last_ack) = (sample.now, sample.now);
            (self.round_end, self.samples) = (sample.snd_nxt, 0);
            self.round_min = Duration::MAX;
        }
        if window.cwnd() < LEAST_SEGMENTS * u64::from(window.mss()) {
            return;
        }
        self.found = self.train_is_long(sample.now, min_rtt) || self.delay_rose(rtt, min_rtt);
        if self.found {
            window.end_slow_start();
        }
    }

    fn train_is_long(&mut self, now: Instant, min_rtt: Duration) -> bool {
        let goes_on = now.saturating_since(self.last_ack) <= TRAIN_GAP;
        if goes_on {
            self.last_ack = now;
        }
        goes_on && now.saturating_since(self.round_start) > (min_rtt + TRAIN_SLACK) / 2
    }

    fn delay_rose(&mut self, rtt: Duration, min_rtt: Duration) -> bool {
        self.round_min = self.round_min.min(rtt);
        self.samples += 1;
        let threshold = (min_rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        self.samples > N_RTT_SAMPLE && self.round_min > min_rtt + threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionEvent;
    use crate::congestion::tests::start;
    use anabranch_wire::Instant;

    fn round(window: &mut Window, hystart: &mut Option<HyStart>, round: u64, rtt_ms: u64) {
        for ack in 0..10 {
            let sample = AckSample {
                now: Instant::ZERO,
                acked: 1_000,
                rtt: Some(Duration::from_millis(rtt_ms)),
                srtt: Duration::from_millis(rtt_ms),
                bytes_in_flight: 0,
                snd_una: round * 10_000 + ack * 1_000,
                snd_nxt: (round + 1) * 10_000,
                cwnd_limited: true,
            };
            HyStart::slow_start(hystart, window, &sample);
        }
    }

    #[test]
    fn slow_start_ends_five_rounds_after_the_delay_rose() {
        // RFC 9406 §4.2: 40 ms, then 60 ms, which is more than 40/8 = 5 ms above the last round's
        // minimum.
        let mut window = Window::new(&start(10_000));
        let mut hystart = Some(HyStart::default());
        round(&mut window, &mut hystart, 1, 40);
        round(&mut window, &mut hystart, 2, 40);
        assert_eq!(window.cwnd(), 30_000);
        round(&mut window, &mut hystart, 3, 60);
        assert!(hystart.unwrap().conservative.is_some());
        for n in 4..9 {
            round(&mut window, &mut hystart, n, 60);
        }
        assert!(!window.in_slow_start());
    }

    /// Acknowledgements of 1000 bytes each at the given intervals, by which the window grows; `nxt`
    /// is the end of the data sent so far.
    struct First {
        window: Window,
        hystart: FirstHyStart,
        now: Instant,
        una: u64,
    }

    impl First {
        fn new(cwnd: u64) -> Self {
            let (window, hystart) = (Window::new(&start(cwnd)), FirstHyStart::new());
            First { window, hystart, now: Instant::ZERO, una: 1 }
        }

        fn acknowledge(&mut self, bytes: u64, gap_ms: u64, rtt_ms: u64, nxt: u64) {
            self.now += Duration::from_millis(gap_ms);
            self.una += bytes;
            let rtt = Duration::from_millis(rtt_ms);
            let sample = AckSample {
                now: self.now,
                acked: bytes,
                rtt: Some(rtt),
                srtt: rtt,
                bytes_in_flight: 0,
                snd_una: self.una,
                snd_nxt: nxt,
                cwnd_limited: true,
            };
            self.hystart.on_ack(&mut self.window, &sample, Duration::from_millis(40));
            self.window.slow_start(bytes);
        }
    }

    #[test]
    fn the_first_hystart_ends_slow_start_in_the_round_in_which_the_delay_is_higher() {
        // The minimum is 40 ms, and an eighth of it 5 ms. The ninth sample of a round decides.
        for (rtt_ms, ends) in [(45, false), (46, true)] {
            let mut first = First::new(16_000);
            for ack in 0..9 {
                assert!(first.window.in_slow_start(), "{ack}");
                first.acknowledge(1_000, 3, rtt_ms, 100_000);
            }
            assert_eq!(first.window.in_slow_start(), !ends);
            let ssthresh = if ends { 24_000 } else { u64::MAX };
            assert_eq!(first.window.ssthresh(), ssthresh);
        }
        // Windows below 16 segments are not examined.
        let mut small = First::new(2_000);
        (0..13).for_each(|_| small.acknowledge(1_000, 3, 90, 100_000));
        assert!(small.window.in_slow_start());
    }

    #[test]
    fn a_round_of_the_first_hystart_is_over_when_more_than_its_data_is_acknowledged() {
        // As in a capture of Linux 6.18: the peer acknowledges one segment, then two at a time.
        // Rounds end behind 10, 28 and 64 segments.
        let mut first = First::new(10_000);
        let mut ends = Vec::new();
        for ack in 0..40 {
            let nxt = first.una + first.window.cwnd();
            first.acknowledge(if ack == 0 { 1_000 } else { 2_000 }, 3, 40, nxt);
            ends.push(first.hystart.round_end);
        }
        ends.dedup();
        assert_eq!(ends, [10_001, 28_001, 64_001, 136_001]);
    }

    #[test]
    fn the_first_hystart_ends_slow_start_after_a_train_of_half_the_least_delay_for_good() {
        // A train may last (40 ms + 1 ms) / 2, which the 22nd acknowledgement exceeds.
        for (gap_ms, ends) in [(1, true), (3, false)] {
            let mut first = First::new(20_000);
            (0..21).for_each(|_| first.acknowledge(1_000, gap_ms, 40, 100_000));
            assert!(first.window.in_slow_start());
            first.acknowledge(1_000, gap_ms, 40, 100_000);
            assert_eq!(first.window.in_slow_start(), !ends, "{gap_ms} ms");
            if ends {
                let second = Duration::from_secs(1);
                first
                    .window
                    .on_common_event(&CongestionEvent::Idle { idle: second * 60, rto: second });
                (0..10).for_each(|_| first.acknowledge(1_000, 3, 90, 200_000));
                assert!(first.window.in_slow_start(), "after an idle time HyStart is inactive");
            }
        }
    }

    #[test]
    fn a_slow_start_after_an_idle_time_begins_anew() {
        let mut window = Window::new(&start(10_000));
        let mut hystart = Some(HyStart::default());
        for (n, rtt) in [40, 40, 60, 60, 60].into_iter().enumerate() {
            round(&mut window, &mut hystart, n as u64 + 1, rtt);
        }
        assert!(hystart.unwrap().conservative.is_some());
        let second = Duration::from_secs(1);
        window.on_common_event(&CongestionEvent::Idle { idle: second * 60, rto: second });
        assert_eq!(window.cwnd(), 10_000);
        for n in 6..20 {
            round(&mut window, &mut hystart, n, 40);
        }
        assert!(window.in_slow_start());
    }

    #[test]
    fn a_steady_delay_never_ends_slow_start() {
        let mut window = Window::new(&start(10_000));
        let mut hystart = Some(HyStart::default());
        for n in 1..30 {
            round(&mut window, &mut hystart, n, 40);
        }
        assert!(window.in_slow_start());
    }
}
