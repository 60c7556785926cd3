//! One direction of a flow through a proxy: data that the proxy has acknowledged and must deliver.

use std::collections::BTreeMap;

use anabranch_wire::{Duration, Flags, Instant, PooledSegment, Segment};

/// RFC 6298 §2: the timeout before the first RTT measurement, and the minimum. The proxy does not
/// measure RTTs; a long timeout costs it only time.
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Consecutive timeouts after which the proxy gives up.
const MAX_TIMEOUTS: u32 = 10;
/// Duplicate acknowledgements before a fast retransmit. RFC 5681 §3.2.
const DUPLICATES: u32 = 3;

/// Segments between the proxy and the receiver. Offsets count from the SYN, which has offset 0.
#[derive(Debug)]
pub(super) struct Relay {
    /// Segments not acknowledged by the receiver, by first offset, without overlap.
    held: BTreeMap<u64, PooledSegment>,
    bytes: u64,
    /// Ends of the data that the receiver has acknowledged, that the proxy has sent, and that the
    /// proxy holds without a gap.
    acked: u64,
    sent: u64,
    taken: u64,
    duplicates: u32,
    /// The segment at `acked` must be retransmitted.
    retransmit: bool,
    /// Losses before this offset are repaired one at a time. RFC 6582.
    recover: u64,
    deadline: Option<Instant>,
    timeouts: u32,
}

/// The proxy's decision on a segment.
#[derive(Debug)]
pub(super) enum Accepted {
    /// The proxy has taken responsibility for the segment, now or earlier.
    Taken,
    /// The segment does not fit and is dropped.
    Dropped,
    /// The receiver already has the data. The segment is forwarded, because the receiver may have
    /// to acknowledge it again.
    Passed(PooledSegment),
}

impl Default for Relay {
    fn default() -> Self {
        Relay {
            held: BTreeMap::new(),
            bytes: 0,
            acked: 1,
            sent: 1,
            taken: 1,
            duplicates: 0,
            retransmit: false,
            recover: 0,
            deadline: None,
            timeouts: 0,
        }
    }
}

/// Sequence numbers that the segment occupies.
fn len(segment: &Segment) -> u64 {
    segment.payload.len() as u64 + u64::from(segment.header.flags.contains(Flags::FIN))
}

/// Remove everything before `skip` and after `keep` sequence numbers from the segment.
fn cut(segment: &mut Segment, skip: u64, keep: u64) {
    let payload = segment.payload.len() as u64;
    if keep < len(segment) {
        segment.header.flags = Flags(segment.header.flags.0 & !Flags::FIN.0);
    }
    let (from, to) = (skip.min(payload), keep.min(payload));
    segment.payload = segment.payload.slice(from as usize, to as usize);
    segment.header.seq = segment.header.seq + skip as u32;
}

impl Relay {
    /// The offset up to which the proxy acknowledges: contiguous payload. It leaves a FIN to the
    /// receiver.
    pub(super) fn next(&self) -> u64 {
        let fin = |segment: &Segment| segment.header.flags.contains(Flags::FIN);
        let ends_in_fin = self.held.range(..self.taken).next_back().is_some_and(|(_, s)| fin(s));
        self.taken - u64::from(ends_in_fin)
    }

    /// Take over a segment that begins at offset `start`.
    pub(super) fn accept(&mut self, start: u64, mut segment: PooledSegment, room: u64) -> Accepted {
        let mut end = start + len(&segment);
        if end <= self.acked {
            return Accepted::Passed(segment);
        }
        let before = self.held.range(..=start).next_back().map(|(at, held)| at + len(held));
        let from = start.max(self.taken).max(before.unwrap_or(0));
        if from < end {
            if let Some((next, _)) = self.held.range(from..end).next() {
                end = *next;
            }
            if from == end {
                // The next held segment starts here. The proxy ignores any data beyond it, and the
                // sender will retransmit that data.
                return Accepted::Taken;
            }
            if self.bytes + (end - from) > room {
                return Accepted::Dropped;
            }
            cut(&mut segment, from - start, end - start);
            self.bytes += end - from;
            self.held.insert(from, segment);
            while let Some(next) = self.held.get(&self.taken) {
                self.taken += len(next);
            }
        }
        Accepted::Taken
    }

    /// The receiver has acknowledged everything before `ack`. A `plain` acknowledgement carries
    /// nothing else. Returns true if it is a plain duplicate.
    pub(super) fn on_ack(&mut self, now: Instant, ack: u64, plain: bool) -> bool {
        if ack > self.acked {
            self.advance(now, ack);
            return false;
        }
        let duplicate = plain && ack == self.acked && self.sent > self.acked;
        if duplicate {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES && self.acked >= self.recover {
                (self.retransmit, self.recover) = (true, self.sent);
            }
        }
        duplicate
    }

    fn advance(&mut self, now: Instant, ack: u64) {
        self.acked = ack;
        self.sent = self.sent.max(ack);
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() < ack) {
            let (at, mut segment) = first.remove_entry();
            let held = len(&segment);
            self.bytes -= held.min(ack - at);
            if at + held > ack {
                cut(&mut segment, ack - at, held);
                self.held.insert(ack, segment);
            }
        }
        self.taken = self.taken.max(ack);
        (self.duplicates, self.timeouts) = (0, 0);
        self.retransmit = ack < self.recover;
        self.deadline = (self.sent > ack).then(|| now + INITIAL_TIMEOUT);
    }

    /// The next segment to send to the receiver, with at most `window` bytes in flight.
    pub(super) fn poll(&mut self, now: Instant, window: u64) -> Option<PooledSegment> {
        let at = if std::mem::take(&mut self.retransmit) { self.acked } else { self.sent };
        let segment = self.held.get(&at)?;
        let end = at + len(segment);
        if end > self.acked + window && at > self.acked {
            return None;
        }
        self.sent = self.sent.max(end);
        self.deadline.get_or_insert(now + INITIAL_TIMEOUT);
        Some(segment.clone())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        self.timeouts += 1;
        if self.timeouts > MAX_TIMEOUTS {
            *self = Relay {
                acked: self.taken,
                sent: self.taken,
                taken: self.taken,
                ..Relay::default()
            };
            return;
        }
        // RFC 6298 §5.5: the timeout doubles each time.
        let pause = INITIAL_TIMEOUT * (1 << self.timeouts);
        self.deadline = Some(now + pause.min(LONGEST_TIMEOUT));
        (self.retransmit, self.recover) = (true, self.sent);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}
