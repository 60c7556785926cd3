//! Sends packets at the delivery opportunities of a trace.

use std::sync::Arc;

use anabranch_wire::Instant;

use crate::queue::Packet;
use crate::trace::{OPPORTUNITY_BYTES, Trace};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The opportunities of a trace, moment by moment and period by period, and the packet that they
/// have sent in part.
///
/// Opportunities pass whether or not packets wait for them. While none wait, the position in the
/// trace does not advance, and [`skip`](Opportunities::skip) later finds the right position. An
/// idle link therefore costs nothing.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    /// Start of the current period.
    start_millis: u64,
    /// The next moment in the period.
    next: usize,
    /// The packet that was sent in part.
    partly_sent: Option<PartlySent>,
    /// When opportunities last found no more data.
    emptied_at: Instant,
    /// Bytes that opportunities could have carried when the data ran out.
    unfilled: u64,
}

/// A packet that has left the queue but not yet the transmitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartlySent {
    pub(crate) packet: Packet,
    /// Bytes that remain to be sent.
    pub(crate) bytes_left: u64,
}

impl Opportunities {
    /// The trace from its beginning, which is the epoch.
    pub(crate) fn new(trace: Arc<Trace>) -> Self {
        Opportunities {
            trace,
            start_millis: 0,
            next: 0,
            partly_sent: None,
            emptied_at: Instant::ZERO,
            unfilled: 0,
        }
    }

    /// The opportunities at `now` found no more data, and had room for `unfilled` more bytes.
    pub(crate) fn run_empty(&mut self, now: Instant, unfilled: u64) {
        self.emptied_at = now;
        self.unfilled += unfilled;
    }

    /// Bytes that opportunities could have carried when the data ran out.
    pub(crate) fn unfilled(&self) -> u64 {
        self.unfilled
    }

    /// When opportunities last found no more data.
    pub(crate) fn emptied_at(&self) -> Instant {
        self.emptied_at
    }

    /// The trace.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Time of the next opportunities.
    pub(crate) fn next_at(&self) -> Instant {
        let millis = self.start_millis + self.trace.moments()[self.next].millis;
        Instant::from_nanos(millis * NANOS_PER_MILLI)
    }

    /// Take the next moment. Returns the number of bytes that all its opportunities carry.
    pub(crate) fn take(&mut self) -> u64 {
        let moment = self.trace.moments()[self.next];
        self.next += 1;
        if self.next == self.trace.moments().len() {
            self.next = 0;
            self.start_millis += self.trace.period_millis();
        }
        moment.opportunities.get().saturating_mul(OPPORTUNITY_BYTES)
    }

    /// Skip all opportunities until `now`, unused.
    #[cold] // Only as seen from a link with a rate, which is not to pay for this one.
    pub(crate) fn skip(&mut self, now: Instant) {
        if self.next_at() > now {
            return;
        }
        let (millis, period) = (now.as_millis(), self.trace.period_millis());
        let within = millis % period;
        self.start_millis = millis - within;
        // The last moment is at the end of the period, so at least one moment is always left.
        self.next = self.trace.moments().partition_point(|moment| moment.millis <= within);
    }

    /// The packet that was sent in part.
    pub(crate) fn partly_sent(&self) -> Option<PartlySent> {
        self.partly_sent
    }

    /// Set the packet that was sent in part.
    pub(crate) fn set_partly_sent(&mut self, partly_sent: Option<PartlySent>) {
        self.partly_sent = partly_sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opportunities(trace: &str) -> Opportunities {
        Opportunities::new(Arc::new(Trace::parse(trace).unwrap()))
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * NANOS_PER_MILLI)
    }

    #[test]
    fn the_trace_repeats_with_its_last_time_as_the_period() {
        let mut opportunities = opportunities("0\n3\n3\n5\n");
        let taken: Vec<_> =
            (0..7).map(|_| (opportunities.next_at(), opportunities.take())).collect();
        let one = OPPORTUNITY_BYTES;
        let expected = [
            (ms(0), one),
            (ms(3), 2 * one),
            (ms(5), one),
            (ms(5), one),
            (ms(8), 2 * one),
            (ms(10), one),
            (ms(10), one),
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn skipping_agrees_with_taking_one_by_one() {
        for trace in ["0\n3\n3\n5\n", "1\n", "2\n7\n"] {
            for nanos in (0..40).flat_map(|half| [half * 500_000, half * 500_000 + 1]) {
                let now = Instant::from_nanos(nanos);
                let (mut skipped, mut walked) = (opportunities(trace), opportunities(trace));
                skipped.skip(now);
                while walked.next_at() <= now {
                    walked.take();
                }
                assert_eq!(
                    (skipped.next_at(), skipped.take(), skipped.next_at()),
                    (walked.next_at(), walked.take(), walked.next_at()),
                    "{trace:?} at {now:?}"
                );
            }
        }
    }
}
