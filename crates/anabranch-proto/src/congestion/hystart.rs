//! HyStart++: leaving slow start when the delay rises, before packets are lost. RFC 9406. Beside it the
//! first HyStart (Ha and Rhee, Computer Networks 2011), which Linux has.

use anabranch_wire::{Duration, Instant};

use super::{AckSample, Window};

/// RFC 9406 §4.3: bounds of the delay increase that counts.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// RFC 9406 §4.3: the threshold is this fraction of the last round's minimum.
const MIN_RTT_DIVISOR: u64 = 8;
/// RFC 9406 §4.3: samples before a round's minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406 §4.3: growth in conservative slow start is divided by this.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// RFC 9406 §4.3: rounds of conservative slow start before congestion avoidance.
const CSS_ROUNDS: u32 = 5;

/// Linux 6.18: the first HyStart looks at windows of so many segments or more,
const LEAST_SEGMENTS: u64 = 16;
/// takes acknowledgements no further apart for a train of packets,
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// and allows a train this much more than the path's round-trip time.
const TRAIN_SLACK: Duration = Duration::from_millis(1);

/// The state of HyStart++ for one subflow.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    round_end: u64,
    last_round_min: Duration,
    current_round_min: Duration,
    samples: u32,
    conservative: Option<Conservative>,
    /// The window that the last acknowledgement left.
    cwnd: u64,
    /// It is the first HyStart, not HyStart++.
    first: Option<First>,
}

/// What the first HyStart keeps besides.
#[derive(Clone, Copy, Debug)]
struct First {
    least: Duration,
    round_start: Instant,
    last_ack: Instant,
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
            first: None,
        }
    }
}

impl HyStart {
    /// The first HyStart, as Linux has it: slow start ends for good when the delay has risen above
    /// the least ever, or when acknowledgements come close together for half of that.
    pub(super) fn first() -> Self {
        let zero = Instant::ZERO;
        let first = First { least: Duration::MAX, round_start: zero, last_ack: zero };
        HyStart { first: Some(first), ..HyStart::default() }
    }

    /// For another slow start: nothing is known but the least delay.
    fn anew(self) -> Self {
        HyStart { first: self.first, ..HyStart::default() }
    }

    /// Slow start with HyStart++ where it is on; returns the octets left for congestion
    /// avoidance. Only a window that limits the sender grows.
    pub(super) fn slow_start(
        hystart: &mut Option<HyStart>,
        window: &mut Window,
        sample: &AckSample,
    ) -> u64 {
        if let Some(hystart) = hystart
            && window.in_slow_start()
        {
            if window.cwnd() < hystart.cwnd {
                // Another slow start, after an idle time, a timeout or a penalty: what the last one
                // measured, with its own queue, says nothing about this one.
                *hystart = hystart.anew();
            }
            if hystart.first_on_ack(window, sample) {
                window.end_slow_start();
            }
        }
        if !sample.cwnd_limited {
            return 0;
        }
        if !window.in_slow_start() {
            *hystart = hystart.map(HyStart::anew);
            return sample.acked;
        }
        let Some(hystart) = hystart else {
            return window.slow_start(sample.acked);
        };
        let divisor = if hystart.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        let left = window.slow_start(sample.acked / divisor);
        if hystart.first.is_none() && hystart.on_ack(sample) {
            window.end_slow_start();
        }
        hystart.cwnd = window.cwnd();
        left
    }

    /// Follow the rounds; true when slow start must end.
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
                // RFC 9406 §4.2: a rise by a clamped eighth of the last round's minimum.
                let threshold =
                    (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min >= self.last_round_min + threshold {
                    self.conservative =
                        Some(Conservative { baseline: self.current_round_min, rounds: 0 });
                }
            }
            // RFC 9406 §4.2: the rise was spurious, slow start resumes.
            Some(css) if self.current_round_min < css.baseline => self.conservative = None,
            _ => {}
        }
        false
    }

    /// The first HyStart, which looks at acknowledgements before the window grows, whether that limits
    /// the sender or not; true when slow start must end.
    fn first_on_ack(&mut self, window: &Window, sample: &AckSample) -> bool {
        let Some(first) = &mut self.first else { return false };
        let Some(rtt) = sample.rtt else { return false };
        first.least = first.least.min(rtt);
        // Linux 6.18 (`hystart_update`): a round is over when more than its data is acknowledged.
        if sample.snd_una > self.round_end {
            (first.round_start, first.last_ack) = (sample.now, sample.now);
            (self.round_end, self.samples) = (sample.snd_nxt, 0);
            self.current_round_min = Duration::MAX;
        }
        if window.cwnd() < LEAST_SEGMENTS * u64::from(window.mss()) {
            return false;
        }
        if sample.now.saturating_since(first.last_ack) <= TRAIN_GAP {
            first.last_ack = sample.now;
            let train = sample.now.saturating_since(first.round_start);
            if train > (first.least + TRAIN_SLACK) / 2 {
                return true;
            }
        }
        self.current_round_min = self.current_round_min.min(rtt);
        self.samples += 1;
        let threshold = (first.least / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        self.samples > N_RTT_SAMPLE && self.current_round_min > first.least + threshold
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
        // RFC 9406 §4.2: 40 ms, then 60 ms: more than 40/8 = 5 ms above the last round's minimum.
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

    #[test]
    fn the_first_hystart_ends_slow_start_in_the_round_in_which_the_delay_is_higher() {
        // 40 ms at least, 46 ms in the third round: an eighth of 40 ms is 5.
        let mut window = Window::new(&start(16_000));
        let mut hystart = Some(HyStart::first());
        round(&mut window, &mut hystart, 1, 40);
        round(&mut window, &mut hystart, 2, 45);
        assert!(window.in_slow_start());
        round(&mut window, &mut hystart, 3, 46);
        assert_eq!((window.in_slow_start(), window.ssthresh()), (false, 16_000 + 29_000));
        // Below 16 segments it does not look.
        let mut small = Window::new(&start(5_000));
        let mut hystart = Some(HyStart::first());
        round(&mut small, &mut hystart, 1, 40);
        small.shrink_to(2_000);
        round(&mut small, &mut hystart, 2, 90);
        assert!(small.in_slow_start());
    }

    #[test]
    fn a_round_of_the_first_hystart_is_over_when_more_than_its_data_is_acknowledged() {
        // As in a capture of Linux 6.18: one segment is acknowledged, then two at a time; rounds
        // end behind 10, 28 and 64 segments.
        let mut window = Window::new(&start(10_000));
        let mut hystart = Some(HyStart::first());
        let mut ends = Vec::new();
        let mut before = 1;
        for ack in 0..40 {
            let una = 1_001 + ack * 2_000;
            let sample = AckSample {
                now: Instant::ZERO,
                acked: una - before,
                rtt: Some(Duration::from_millis(150)),
                srtt: Duration::from_millis(150),
                bytes_in_flight: 0,
                snd_una: una,
                snd_nxt: before + window.cwnd(),
                cwnd_limited: true,
            };
            HyStart::slow_start(&mut hystart, &mut window, &sample);
            ends.push(hystart.unwrap().round_end);
            before = una;
        }
        ends.dedup();
        assert_eq!(ends, [10_001, 28_001, 64_001, 136_001]);
    }

    #[test]
    fn the_first_hystart_ends_slow_start_after_a_train_of_half_the_least_delay() {
        for (gap_ms, ends) in [(1, true), (3, false)] {
            let mut window = Window::new(&start(20_000));
            let mut hystart = Some(HyStart::first());
            for ack in 0..12 {
                let sample = AckSample {
                    now: Instant::ZERO + Duration::from_millis(100 + ack * gap_ms),
                    acked: 1_000,
                    rtt: Some(Duration::from_millis(19)),
                    srtt: Duration::from_millis(19),
                    bytes_in_flight: 0,
                    snd_una: 1 + ack * 1_000,
                    snd_nxt: 20_001,
                    // A window that does not limit does not grow, but is looked at.
                    cwnd_limited: false,
                };
                HyStart::slow_start(&mut hystart, &mut window, &sample);
            }
            assert_eq!((window.in_slow_start(), window.cwnd()), (!ends, 20_000), "{gap_ms} ms");
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
