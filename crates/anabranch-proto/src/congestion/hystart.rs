//! HyStart++: leaving slow start when the delay rises, before packets are lost. RFC 9406.

use anabranch_wire::Duration;

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
    /// Slow start with HyStart++ where it is on; returns the octets left for congestion
    /// avoidance. Only a window that limits the sender grows.
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
            // Another slow start, after an idle time, a timeout or a penalty: what the last one
            // measured, with its own queue, says nothing about this one.
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
