//! Buffer autotuning (M3): send and receive buffers as large as the paths need. Raiciu et al., NSDI
//! 2012 §4.2; Barré, Paasch, Bonaventure, 2011.

use anabranch_config::part_without_parameters;
use anabranch_wire::{Duration, Instant};

use super::{BufferContext, BufferSide, BuildRemedy, Remedy};
use crate::view::{SubflowView, Usability};

/// Buffers start small and grow to `2 · Σ x_i · RTT_max`. x_i is the rate of a subflow. RTT_max is
/// the longest smoothed RTT of all subflows, including queueing delay.
///
/// Σ x_i · RTT_max is measured as the progress at the data level during the last RTT_max: the bytes
/// that the peer acknowledged, or that the application read. Buffers never shrink and never exceed
/// the configured size. The receiver measures RTTs by timestamps that the peer echoes with data
/// (Fisk and Feng, 2001).
#[derive(Clone, Debug)]
pub struct BufferAutotuning {
    send: Measurement,
    receive: Measurement,
}

part_without_parameters! {
    /// Selects [`BufferAutotuning`].
    pub struct BufferAutotuningConfig;
    NAME = "buffer_autotuning";
    SUMMARY = "M3: grows buffers to the size that the paths need.";
    SOURCE = "Raiciu et al., NSDI 2012, §4.2; Barré et al., 2011";
}

impl BuildRemedy for BufferAutotuningConfig {
    fn build(&self) -> Box<dyn Remedy> {
        Box::new(BufferAutotuning::default())
    }
}

/// Initial size of a buffer in bytes. This project: more than four initial windows (RFC 6928).
const INITIAL: u64 = 64 << 10;

#[derive(Clone, Copy, Debug)]
struct Measurement {
    target: u64,
    /// Start of the current round, and the bytes that had made progress until then.
    began: Option<(Instant, u64)>,
}

/// Bytes per round trip, from `bytes` in `elapsed`.
pub(super) fn per_round_trip(bytes: u64, elapsed: Duration, rtt: Duration) -> u64 {
    let scaled = u128::from(bytes) * u128::from(rtt.as_nanos());
    (scaled / u128::from(elapsed.as_nanos().max(1))) as u64
}

impl Measurement {
    fn new() -> Self {
        Measurement { target: INITIAL, began: None }
    }

    fn update(&mut self, now: Instant, progress: u64, rtt: Duration) {
        let (since, before) = *self.began.get_or_insert((now, progress));
        let elapsed = now.saturating_since(since);
        if elapsed >= rtt && !elapsed.is_zero() {
            self.target = self.target.max(2 * per_round_trip(progress - before, elapsed, rtt));
            self.began = Some((now, progress));
        }
    }
}

impl Default for BufferAutotuning {
    fn default() -> Self {
        BufferAutotuning { send: Measurement::new(), receive: Measurement::new() }
    }
}

fn longest_rtt(context: &BufferContext<'_>) -> Option<Duration> {
    let rtt = |view: &SubflowView| match context.side {
        BufferSide::Send => view.srtt,
        BufferSide::Receive => view.receive_rtt.or(view.srtt),
    };
    let usable = context.subflows.iter().filter(|view| view.usability == Usability::Usable);
    usable.filter_map(rtt).max()
}

impl Remedy for BufferAutotuning {
    fn buffer_target(&mut self, context: &BufferContext<'_>) -> Option<u64> {
        let measurement = match context.side {
            BufferSide::Send => &mut self.send,
            BufferSide::Receive => &mut self.receive,
        };
        if let Some(rtt) = longest_rtt(context) {
            measurement.update(context.now, context.progress, rtt);
        }
        Some(measurement.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::view;

    fn ask(
        remedy: &mut BufferAutotuning,
        side: BufferSide,
        now_ms: u64,
        progress: u64,
        subflows: &[SubflowView],
    ) -> u64 {
        let now = Instant::ZERO + Duration::from_millis(now_ms);
        let context = BufferContext { now, side, progress, subflows };
        remedy.buffer_target(&context).expect("autotuning is on")
    }

    #[test]
    fn twice_the_bytes_of_the_longest_round_trip() {
        // RTTs of 20 and 150 ms: 100 kB in 150 ms give 200 kB. Less than a round trip gives no
        // result.
        let subflows = [view(0, 20), view(1, 150)];
        let mut remedy = BufferAutotuning::default();
        let mut send = |now, progress| ask(&mut remedy, BufferSide::Send, now, progress, &subflows);
        assert_eq!([send(0, 0), send(149, 99_000)], [INITIAL; 2]);
        assert_eq!(send(150, 100_000), 200_000);
        // 200 kB in two round trips are 100 kB in one. A slower round changes nothing.
        assert_eq!([send(450, 300_000), send(600, 300_001)], [200_000; 2]);
        assert_eq!(send(750, 600_001), 600_000);
    }

    #[test]
    fn the_receiver_goes_by_its_own_round_trip_times_and_each_side_for_itself() {
        let receive_rtt = Some(Duration::from_millis(300));
        let subflows = [SubflowView { receive_rtt, ..view(0, 20) }];
        let mut remedy = BufferAutotuning::default();
        ask(&mut remedy, BufferSide::Receive, 0, 0, &subflows);
        assert_eq!(ask(&mut remedy, BufferSide::Receive, 299, 90_000, &subflows), INITIAL);
        assert_eq!(ask(&mut remedy, BufferSide::Receive, 300, 90_000, &subflows), 180_000);
        assert_eq!(ask(&mut remedy, BufferSide::Send, 300, 90_000, &subflows), INITIAL);
    }

    #[test]
    fn without_a_round_trip_time_it_stays_small() {
        let mut remedy = BufferAutotuning::default();
        assert_eq!(ask(&mut remedy, BufferSide::Send, 5_000, 1 << 30, &[]), INITIAL);
    }
}
