//! Bursts at intervals, each written at once: video chunks, or competing traffic.

use core::num::NonZeroU64;

use anabranch_config::Part;
use anabranch_net::units::ByteCount;
use anabranch_wire::{Duration, Instant, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawn::OrZero;
use super::{
    Application, BuildWorkload, Distribution, Draws, Sampler, Sender, Sizes, Socket, WRITE_SIZE,
};

/// Bursts at intervals, an open loop. Their delays are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Size of each burst, which the application writes at once.
    #[schemars(example = "1MB")]
    pub burst_size: Distribution<ByteCount>,
    /// Time from the start of each burst to the start of the next. The next burst also waits until
    /// the stack has accepted the previous one.
    #[serde(with = "OrZero::<Duration>")]
    #[schemars(example = "2s")]
    pub interval: Distribution<Duration>,
    /// Number of bursts (default: unlimited).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU64")]
    pub count: Option<NonZeroU64>,
}

impl Part for OnOff {
    const NAME: &'static str = "on_off";
    const SUMMARY: &'static str = "Bursts, with pauses between them.";
    const SOURCE: &'static str = "this project";
}

impl BuildWorkload for OnOff {
    fn count(&self) -> Option<u64> {
        self.count.map(NonZeroU64::get)
    }

    fn application(&self, sends: bool, draws: &Draws<'_>) -> Application {
        let sizes = Sizes::Drawn(draws.of("burst_size", self.burst_size));
        let intervals = draws.of("interval", self.interval);
        let sender = OnOffSender::new(sizes, intervals, self.count.map(NonZeroU64::get));
        Application::one_way(sends, sender, Some(sizes))
    }
}

/// Writes each burst when it is due, and records when it began.
///
/// The first burst is due when the connection opens. Each later burst is due one interval after the
/// start of the previous one, whether or not that one was delivered. If the stack has not accepted
/// all of a burst when the next one is due, the next one starts later. Intervals count from the
/// actual start of a burst.
#[derive(Clone, Debug)]
struct OnOffSender {
    sizes: Sizes,
    intervals: Sampler,
    count: u64,
    /// When the next burst is due; `None` before the first.
    next_at: Option<Instant>,
    /// Bytes of the current burst that the stack has not accepted.
    left: u64,
    written: u64,
    begun: Vec<Instant>,
    finished: bool,
}

impl OnOffSender {
    /// `count` bursts of these sizes, with `intervals` nanoseconds from start to start; unlimited
    /// if `None`.
    fn new(sizes: Sizes, intervals: Sampler, count: Option<u64>) -> Self {
        OnOffSender {
            sizes,
            intervals,
            count: count.unwrap_or(u64::MAX),
            next_at: None,
            left: 0,
            written: 0,
            begun: Vec::new(),
            finished: false,
        }
    }

    /// Start the next burst if it is due at `now`. Returns whether a burst was started.
    fn begin(&mut self, now: Instant) -> bool {
        let burst = self.begun.len() as u64;
        if burst == self.count || self.next_at.is_some_and(|at| at > now) {
            return false;
        }
        self.left = self.sizes.of(burst);
        self.next_at = Some(now + Duration::from_nanos(self.intervals.of(burst)));
        self.begun.push(now);
        true
    }

    /// Write the rest of the current burst. Returns true if the stack has accepted all of it.
    fn write(&mut self, socket: &mut dyn Socket) -> bool {
        while self.left > 0 {
            let len = self.left.min(WRITE_SIZE);
            let accepted = socket.write(Piece::pattern(self.written, len as u32)) as u64;
            self.written += accepted;
            self.left -= accepted;
            if accepted < len {
                return false;
            }
        }
        true
    }
}

impl Sender for OnOffSender {
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        while self.left > 0 || self.begin(now) {
            if !self.write(socket) {
                return;
            }
        }
        if self.begun.len() as u64 == self.count && !self.finished {
            self.finished = true;
            socket.finish();
        }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn data_bytes(&self) -> Option<u64> {
        self.finished.then_some(self.written)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let more = self.left == 0 && (self.begun.len() as u64) < self.count;
        self.next_at.filter(|_| more)
    }

    fn delay_starts(&self) -> &[Instant] {
        &self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Distribution;
    use crate::workload::testing::{Space, ms};

    fn every(millis: u64) -> Sampler {
        Sampler::new(Distribution::Constant(Duration::from_millis(millis)), 1)
    }

    #[test]
    fn bursts_start_one_interval_apart_and_the_last_ends_the_stream() {
        let mut on_off = OnOffSender::new(Sizes::Fixed(1_000), every(100), Some(3));
        assert_eq!(on_off.poll_timeout(), None);
        let mut socket = Space::new(10_000);
        on_off.on_writable(ms(7), &mut socket);
        assert_eq!((socket.written, on_off.poll_timeout()), (1_000, Some(ms(107))));
        // This call is too early and does nothing.
        on_off.on_writable(ms(50), &mut socket);
        assert_eq!(socket.written, 1_000);
        on_off.on_writable(ms(107), &mut socket);
        on_off.on_writable(ms(207), &mut socket);
        assert_eq!(on_off.delay_starts(), [ms(7), ms(107), ms(207)]);
        assert_eq!((socket.written, socket.finished, on_off.poll_timeout()), (3_000, true, None));
    }

    #[test]
    fn a_burst_that_is_not_accepted_delays_the_next() {
        let mut on_off = OnOffSender::new(Sizes::Fixed(1_000), every(100), None);
        let mut socket = Space::new(600);
        on_off.on_writable(ms(0), &mut socket);
        // The sender waits only for room.
        assert_eq!((on_off.poll_timeout(), socket.written), (None, 600));
        socket.space = 1_000;
        on_off.on_writable(ms(250), &mut socket);
        // The first burst is accepted at 250 ms. The second, due at 100 ms, starts then, and 600 of
        // its bytes fit. The third is due at 350 ms.
        assert_eq!((on_off.delay_starts(), socket.written), (&[ms(0), ms(250)][..], 1_600));
        socket.space = 1_000;
        on_off.on_writable(ms(300), &mut socket);
        assert_eq!(on_off.delay_starts(), [ms(0), ms(250)]);
        assert_eq!(on_off.poll_timeout(), Some(ms(350)));
    }

    #[test]
    fn sizes_and_intervals_can_be_random() {
        let sizes = Sampler::new(Distribution::Uniform { min: 100u64, max: 900 }, 3);
        let seconds = |s| Duration::from_secs(s);
        let intervals = Sampler::new(Distribution::Uniform { min: seconds(2), max: seconds(4) }, 4);
        let mut on_off = OnOffSender::new(Sizes::Drawn(sizes), intervals, Some(50));
        let mut socket = Space::new(usize::MAX);
        on_off.on_writable(ms(0), &mut socket);
        while let Some(at) = on_off.poll_timeout() {
            on_off.on_writable(at, &mut socket);
        }
        assert_eq!(socket.written as u64, (0..50).map(|n| sizes.of(n)).sum::<u64>());
        let starts = on_off.delay_starts();
        let gaps = starts.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
        assert!(gaps.clone().all(|gap| (seconds(2)..=seconds(4)).contains(&gap)));
        assert!(gaps.collect::<std::collections::BTreeSet<_>>().len() > 40);
    }
}
