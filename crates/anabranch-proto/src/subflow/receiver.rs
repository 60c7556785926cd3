//! The receiving half of a subflow: order, acknowledgements and selective acknowledgements.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_wire::{Flags, Instant, Payload, SackBlock, SackBlocks, SeqNumber};

use super::full_segment::FullSegment;
use crate::platform::{AckRule, RcvSsthresh};
use crate::reassembly::{Reassembly, most_pieces};

/// Receive state in 64-bit subflow offsets (0 is the peer's SYN).
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The peer's initial sequence number.
    irs: SeqNumber,
    /// RCV.NXT.
    nxt: u64,
    /// Offset of the peer's FIN, if it was received.
    fin: Option<u64>,
    /// Offset after the last byte that was received.
    reach: u64,
    out_of_order: Reassembly,
    /// Ranges beyond `nxt`, with the most recently changed first. RFC 2018 §4.
    runs: RecentRuns,
    /// A range that was received twice, to be reported once. RFC 2883.
    duplicate: Option<(u64, u64)>,
    /// In-order data that the data level has not taken yet.
    ready: VecDeque<Payload>,
    acks: AckState,
    full_segment: FullSegment,
}

/// Relation of a segment to the data received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalOrder {
    /// The segment continued the stream, and possibly filled a hole.
    InOrder,
    /// The segment lies beyond a hole.
    OutOfOrder,
    /// The segment has no new data.
    Duplicate,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug)]
struct AckState {
    rule: AckRule,
    quick_acks_left: u16,
    opening: RcvSsthresh,
    bytes_unacknowledged: u32,
    due: AckDue,
    /// Whether one of the unacknowledged segments is short, or marked with PSH.
    pushed: bool,
    /// Time of the last payload, if there was any.
    last_data: Instant,
    /// Whether the application answers before an acknowledgement is due.
    answers: bool,
}

/// Bytes that occupy the buffer when a segment arrives.
#[derive(Clone, Copy, Debug)]
enum Occupied {
    /// This number, and the bytes of the segment.
    With(u32),
    /// This number. The segment does not count yet.
    Besides(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AckDue {
    No,
    Later,
    /// At once, unless the application reads at once and opens the window with that.
    Soon,
    Now,
}

impl Receiver {
    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.ready.shrink_to_fit();
        self.out_of_order.release_memory();
    }

    pub(crate) fn new(irs: SeqNumber, rule: AckRule, opening: RcvSsthresh) -> Self {
        Receiver {
            irs,
            nxt: 1,
            fin: None,
            reach: 0,
            out_of_order: Reassembly::default(),
            runs: RecentRuns::default(),
            duplicate: None,
            ready: VecDeque::new(),
            acks: AckState {
                rule,
                quick_acks_left: u16::try_from(rule.quick_acks).unwrap_or(u16::MAX),
                opening,
                bytes_unacknowledged: 0,
                due: AckDue::No,
                pushed: false,
                last_data: Instant::ZERO,
                answers: false,
            },
            full_segment: FullSegment::default(),
        }
    }

    /// Opening of the window on this subflow.
    pub(crate) fn opening(&self) -> RcvSsthresh {
        self.acks.opening
    }

    /// The window may open up to `bytes` bytes.
    pub(crate) fn open_up_to(&mut self, bytes: u64) {
        self.acks.opening.limit = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// `bytes` bytes have arrived beyond a hole. They also open the window.
    pub(crate) fn open_beyond_hole(&mut self, bytes: u32) {
        let held = (self.out_of_order.bytes() as u32).saturating_sub(bytes);
        self.acks.open_window(bytes, self.full_segment.bytes(), Occupied::Besides(held));
    }

    /// RCV.NXT as a 64-bit offset.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// RCV.NXT as a sequence number.
    pub(crate) fn ack_number(&self) -> SeqNumber {
        self.irs + self.nxt as u32
    }

    /// The offset of `seq` relative to RCV.NXT; negative if it lies before RCV.NXT.
    pub(crate) fn distance(&self, seq: SeqNumber) -> i64 {
        i64::from(seq.distance_from(self.ack_number()))
    }

    /// Returns `true` if a FIN of the peer has arrived, perhaps before data.
    #[inline]
    pub(super) fn knows_end(&self) -> bool {
        self.fin.is_some()
    }

    /// Returns `true` if everything up to and including the peer's FIN has arrived.
    pub(crate) fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Returns `true` if in-order data waits for the data level.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Number of bytes held beyond a hole.
    pub(crate) fn out_of_order_bytes(&self) -> u64 {
        self.out_of_order.bytes()
    }

    /// Returns `true` if no payload waits for the data level, and none for missing data.
    #[inline]
    pub(super) fn holds_nothing(&self) -> bool {
        self.ready.is_empty() && self.runs.is_empty() && self.out_of_order.bytes() == 0
    }

    /// As [`Receiver::receive`], for the next `bytes` bytes of a subflow that
    /// [holds nothing](Receiver::holds_nothing) and has received no FIN. The caller keeps them.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn receive_next(&mut self, now: Instant, bytes: usize, flags: Flags) {
        self.acks.last_data = now;
        self.nxt += bytes as u64;
        self.note_size(bytes, flags);
        let full = self.full_segment.bytes();
        let opens = self.acks.open_window(bytes as u32, full, Occupied::With(0));
        self.acks.on_data(bytes as u32, full, opens, false);
    }

    /// The data level cannot take this payload yet, which was the last.
    pub(super) fn put_back(&mut self, payload: Payload) {
        self.ready.push_back(payload);
    }

    /// Data of a segment is in order.
    #[inline]
    fn note_size(&mut self, bytes: usize, flags: Flags) {
        let short = self.full_segment.measure(bytes, flags);
        self.acks.pushed |= short || (self.acks.rule.heeds_push && flags.contains(Flags::PSH));
    }

    /// Process the payload of an acceptable segment that starts `distance` bytes after RCV.NXT and
    /// lies, after trimming, within `window` bytes of it.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        distance: i64,
        payload: Payload,
        flags: Flags,
        window: u64,
    ) -> ArrivalOrder {
        let fin = flags.contains(Flags::FIN);
        self.acks.last_data = now;
        let bytes = payload.len();
        let end = distance + bytes as i64;
        if fin && self.fin.is_none() && end >= 0 && self.nxt + end as u64 >= self.reach {
            self.fin = Some(self.nxt + end as u64);
        }
        // RFC 9293 §3.10.7.4: there is no text after a FIN. Such text has no place in the stream.
        let window = self.fin.map_or(window, |fin| window.min(fin.saturating_sub(self.nxt)));
        let held = self.out_of_order.bytes() as u32;
        let arrival = self.place(distance, payload, window);
        self.on_fin();
        if arrival == ArrivalOrder::InOrder {
            self.note_size(bytes, flags);
        }
        let full = self.full_segment.bytes();
        let opens = match arrival {
            ArrivalOrder::InOrder => {
                self.acks.open_window(bytes as u32, full, Occupied::With(held))
            }
            ArrivalOrder::OutOfOrder | ArrivalOrder::Duplicate => false,
        };
        match arrival {
            ArrivalOrder::InOrder if self.runs.is_empty() => {
                self.acks.on_data(end.max(0) as u32, full, opens, fin);
            }
            // RFC 5681 §4.2: out-of-order data, data that fills a hole, and duplicates are
            // acknowledged at once.
            _ => self.acks.due = AckDue::Now,
        }
        self.runs.forget_below(self.nxt);
        arrival
    }

    fn place(&mut self, distance: i64, payload: Payload, window: u64) -> ArrivalOrder {
        let len = payload.len() as i64;
        if distance + len <= 0 {
            if len > 0 {
                // RFC 2883 §4: report a segment that was received before.
                let start = self.nxt.saturating_sub(distance.unsigned_abs());
                self.duplicate = Some((start, start + len as u64));
            }
            return ArrivalOrder::Duplicate;
        }
        let skip = (-distance).max(0) as usize;
        let keep = (window as i64 - distance).clamp(skip as i64, len) as usize;
        let payload =
            if skip == 0 && keep == len as usize { payload } else { payload.slice(skip, keep) };
        if payload.is_empty() {
            return ArrivalOrder::Duplicate;
        }
        let start = self.nxt + distance.max(0) as u64;
        if start > self.nxt {
            if self.out_of_order.pieces() >= most_pieces(window) {
                return ArrivalOrder::Duplicate;
            }
            return self.hold(start, payload);
        }
        self.deliver(payload);
        while let Some(payload) = self.out_of_order.pop(self.nxt) {
            self.deliver(payload);
        }
        ArrivalOrder::InOrder
    }

    fn hold(&mut self, start: u64, payload: Payload) -> ArrivalOrder {
        let end = start + payload.len() as u64;
        let held_before = self.out_of_order.bytes();
        self.reach = self.reach.max(end);
        self.out_of_order.insert(0, start, payload);
        if self.runs.covers(start, end) || self.out_of_order.bytes() == held_before {
            self.duplicate = Some((start, end));
        }
        self.runs.add(start, end);
        ArrivalOrder::OutOfOrder
    }

    fn deliver(&mut self, payload: Payload) {
        self.nxt += payload.len() as u64;
        self.ready.push_back(payload);
    }

    fn on_fin(&mut self) {
        if self.fin == Some(self.nxt) {
            self.nxt += 1;
            self.acks.due = AckDue::Now;
        }
    }

    /// The next in-order data.
    #[inline]
    pub(crate) fn poll_ready(&mut self) -> Option<Payload> {
        self.ready.pop_front()
    }

    /// An acknowledgement must be sent at once.
    pub(crate) fn demand_ack(&mut self) {
        self.acks.due = AckDue::Now;
    }

    /// Start quick acknowledgements, for half of `window`, in bytes. Linux: `tcp_enter_quickack_mode`.
    pub(crate) fn enter_quickack(&mut self, window: u64) {
        let segments = window / (2 * u64::from(self.full_segment.bytes().max(1)));
        let quick_acks = segments.clamp(2, self.acks.rule.quick_acks.into()) as u16;
        self.acks.quick_acks_left = self.acks.quick_acks_left.max(quick_acks);
        self.demand_ack();
    }

    /// End quick acknowledgements. Linux: `__tcp_select_window`.
    pub(super) fn end_quickack(&mut self) {
        self.acks.quick_acks_left = 0;
    }

    /// Payload bytes of the peer's full-sized segments.
    pub(crate) fn full_segment(&self) -> u32 {
        self.full_segment.bytes()
    }

    /// Returns `true` if an acknowledgement must be sent at once.
    pub(crate) fn ack_is_due(&self) -> bool {
        matches!(self.acks.due, AckDue::Soon | AckDue::Now)
    }

    /// Returns `true` if an acknowledgement that is due may wait until the application has read.
    pub(crate) fn ack_may_wait(&self) -> bool {
        self.acks.due == AckDue::Soon
    }

    /// Returns `true` if an acknowledgement waits for the delayed-ACK timer.
    pub(crate) fn ack_is_delayed(&self) -> bool {
        self.acks.due == AckDue::Later
    }

    /// Deadline of a delayed acknowledgement that starts to wait now.
    pub(crate) fn ack_deadline(&self, now: Instant) -> Instant {
        now + self.acks.rule.delay
    }

    /// The application has read everything. A segment that is short or has PSH has probably
    /// completed a message, and the sender may hold back the next one until this one is
    /// acknowledged. If the application answers at once, its answer carries the acknowledgement. Returns
    /// `true` if an acknowledgement has become due.
    #[inline]
    pub(crate) fn on_drained(&mut self) -> bool {
        let acks = &mut self.acks;
        let is_due = acks.due == AckDue::Later && acks.pushed && acks.rule.prompt && !acks.answers;
        if is_due {
            acks.due = AckDue::Now;
        }
        is_due
    }

    /// Data was sent.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        let since = now.saturating_since(self.acks.last_data);
        let has_data = self.nxt > 1 || self.reach > 0;
        self.acks.answers |= has_data && since < self.acks.rule.delay;
    }

    /// The application has not answered within the delay of acknowledgements.
    pub(crate) fn application_is_silent(&mut self) {
        self.acks.answers = false;
    }

    /// A segment with the present acknowledgement number was sent.
    pub(crate) fn ack_sent(&mut self) {
        // Linux: `tcp_dec_quickack_mode`.
        if self.acks.opening.is_gradual() && self.nxt > 1 && self.acks.due != AckDue::No {
            self.acks.quick_acks_left = self.acks.quick_acks_left.saturating_sub(1);
        }
        self.acks.due = AckDue::No;
        self.acks.pushed = false;
        self.acks.bytes_unacknowledged = 0;
        self.duplicate = None;
    }

    /// Up to `most` SACK blocks, duplicates first. RFC 2018 §4, RFC 2883 §4.
    pub(crate) fn sack_blocks(&self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let all = self.duplicate.into_iter().chain(self.runs.iter());
        for (start, end) in all.take(most) {
            blocks.push(SackBlock { start: self.irs + start as u32, end: self.irs + end as u32 });
        }
        blocks
    }

    /// The ranges held beyond a hole, as subflow offsets.
    pub(crate) fn beyond_hole(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.out_of_order.ranges()
    }

    /// Returns `true` if there is a SACK block to send.
    pub(crate) fn has_sacks(&self) -> bool {
        self.duplicate.is_some() || !self.runs.is_empty()
    }
}

impl AckState {
    /// Handle the arrival of a segment of `bytes` bytes, if data takes up room. Returns `true` if
    /// the window opens. An odd number of quick acknowledgements is left then. Linux:
    /// `tcp_grow_window`.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn open_window(&mut self, bytes: u32, full_segment: u32, held: Occupied) -> bool {
        let taken_up = match self.rule.small_take_less {
            true => RcvSsthresh::taken_up(bytes, full_segment),
            false => full_segment,
        };
        let held = match held {
            _ if !self.rule.held_data_counts => 0,
            Occupied::With(others) => others + taken_up,
            Occupied::Besides(others) => others,
        };
        let opens = self.opening.grow(bytes, full_segment, taken_up, held);
        self.quick_acks_left |= u16::from(opens);
        opens
    }

    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn on_data(&mut self, bytes: u32, full_segment: u32, window_opens: bool, fin: bool) {
        self.bytes_unacknowledged += bytes;
        if bytes == 0 {
            return;
        }
        // RFC 9293 §3.8.6.3: at least every second full-sized segment.
        let enough = match self.rule.prompt {
            true => self.bytes_unacknowledged > full_segment,
            false => self.bytes_unacknowledged >= 2 * full_segment,
        };
        let quick = if window_opens { !self.answers } else { self.quick_acks_left > 0 };
        if enough || fin || quick {
            if !self.opening.is_gradual() {
                self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
            }
            self.due = self.due.max(if fin || quick { AckDue::Now } else { AckDue::Soon });
        } else if self.due == AckDue::No {
            self.due = AckDue::Later;
        }
    }
}

/// The few most recently changed ranges beyond the hole.
#[derive(Clone, Copy, Debug, Default)]
struct RecentRuns {
    len: usize,
    runs: [(u64, u64); RecentRuns::MAX],
}

impl RecentRuns {
    const MAX: usize = SackBlocks::MAX;

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs[..self.len].iter().copied()
    }

    fn covers(&self, start: u64, end: u64) -> bool {
        self.iter().any(|run| run.0 <= start && end <= run.1)
    }

    /// Merge `start..end` with the ranges that it touches, and put the result first.
    fn add(&mut self, start: u64, end: u64) {
        let mut merged = (start, end);
        let mut kept = [(0, 0); Self::MAX];
        let mut n = 0;
        for run in self.iter() {
            if run.0 <= merged.1 && merged.0 <= run.1 {
                merged = (merged.0.min(run.0), merged.1.max(run.1));
            } else {
                kept[n] = run;
                n += 1;
            }
        }
        self.len = (n + 1).min(Self::MAX);
        self.runs[0] = merged;
        self.runs[1..self.len].copy_from_slice(&kept[..self.len - 1]);
    }

    fn forget_below(&mut self, nxt: u64) {
        if self.len == 0 {
            return;
        }
        let mut n = 0;
        for index in 0..self.len {
            if self.runs[index].1 > nxt {
                self.runs[n] = self.runs[index];
                n += 1;
            }
        }
        self.len = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;
    use anabranch_wire::{Duration, Piece};

    fn receiver() -> Receiver {
        Receiver::new(
            SeqNumber(1000),
            AckRule { quick_acks: 0, ..Platform::default().acknowledging },
            RcvSsthresh::default(),
        )
    }

    /// A window that opens with the first 2,500 bytes.
    fn opening() -> RcvSsthresh {
        RcvSsthresh { opened: 5_000, limit: 11_000, ..RcvSsthresh::default() }
    }

    fn receive(receiver: &mut Receiver, distance: i64, len: u32) -> ArrivalOrder {
        receive_with(receiver, distance, len, Flags::ACK)
    }

    fn receive_with(
        receiver: &mut Receiver,
        distance: i64,
        len: u32,
        flags: Flags,
    ) -> ArrivalOrder {
        let start = (receiver.nxt() as i64 + distance) as u64;
        let payload = Payload::from(Piece::pattern(start, len));
        receiver.receive(Instant::ZERO, distance, payload, flags, 100_000)
    }

    #[test]
    fn every_second_full_segment_is_acknowledged_at_once() {
        let mut receiver = receiver();
        receive(&mut receiver, 0, 1000);
        assert!(receiver.ack_is_delayed());
        receive(&mut receiver, 0, 1000);
        assert!(receiver.ack_is_due());
        assert_eq!(receiver.ack_number(), SeqNumber(1000 + 1 + 2000));
    }

    #[test]
    fn every_second_segment_is_acknowledged_after_all_segments_became_shorter() {
        for prompt in [true, false] {
            let rule = AckRule { quick_acks: 0, prompt, ..Platform::default().acknowledging };
            let mut receiver = Receiver::new(SeqNumber(1000), rule, RcvSsthresh::default());
            receive(&mut receiver, 0, 1428);
            let mut acks = 0;
            for _ in 0..100 {
                receive(&mut receiver, 0, 1424);
                // The application reads everything at once.
                receiver.on_drained();
                if receiver.ack_is_due() {
                    receiver.ack_sent();
                    acks += 1;
                }
            }
            // The first of the shorter segments completes a pair. The second lowers the estimate.
            assert_eq!(acks, 50);
        }
    }

    #[test]
    fn more_than_a_full_segment_is_acknowledged_at_once_where_that_is_the_rule() {
        for (prompt, at_once) in [(true, true), (false, false)] {
            let rule = AckRule { quick_acks: 0, prompt, ..Platform::default().acknowledging };
            let mut receiver = Receiver::new(SeqNumber(1000), rule, RcvSsthresh::default());
            receive(&mut receiver, 0, 1000);
            assert!(receiver.ack_is_delayed());
            receive(&mut receiver, 0, 10);
            assert_eq!(receiver.ack_is_due(), at_once);
        }
    }

    #[test]
    fn the_first_bytes_are_acknowledged_segment_by_segment_while_the_window_opens() {
        let rule = AckRule { quick_acks: 2, ..Platform::default().acknowledging };
        let mut receiver = Receiver::new(SeqNumber(1000), rule, opening());
        for at_once in [true, true, true, true, true, false, true, false] {
            receive(&mut receiver, 0, 1000);
            assert_eq!(receiver.ack_is_due(), at_once, "{} bytes", receiver.nxt() - 1);
            if at_once {
                receiver.ack_sent();
            }
        }
    }

    #[test]
    fn a_segment_that_does_not_open_the_window_takes_one_of_the_quick_acknowledgements() {
        // Linux: `tcp_grow_window` makes their number odd.
        let rule = AckRule { quick_acks: 4, ..Platform::default().acknowledging };
        for (lengths, quick) in [(&[1000, 1000, 1000][..], 4), (&[1000, 600, 1000, 1000], 2)] {
            let mut receiver = Receiver::new(SeqNumber(1000), rule, opening());
            for length in lengths.iter().copied().chain(std::iter::repeat_n(1000, quick)) {
                receive(&mut receiver, 0, length);
                assert!(receiver.ack_is_due() && !receiver.ack_may_wait());
                receiver.ack_sent();
            }
            receive(&mut receiver, 0, 1000);
            assert!(receiver.ack_is_delayed());
            receive(&mut receiver, 0, 1000);
            assert!(receiver.ack_may_wait(), "two segments");
        }
    }

    #[test]
    fn while_the_window_opens_answers_carry_the_acknowledgements() {
        let mut receiver =
            Receiver::new(SeqNumber(1000), Platform::default().acknowledging, opening());
        for at_once in [true, false] {
            receive(&mut receiver, 0, 1000);
            assert_eq!(receiver.ack_is_due(), at_once);
            receiver.ack_sent();
            receiver.on_data_sent(Instant::ZERO + Duration::from_millis(1));
        }
    }

    #[test]
    fn a_full_segment_with_psh_is_acknowledged_when_everything_was_read() {
        // Linux: `tcp_measure_rcv_mss`
        for (flags, due) in [(Flags::ACK, false), (Flags::ACK | Flags::PSH, true)] {
            let mut receiver = receiver();
            let payload = Payload::from(Piece::pattern(1, 1000));
            receiver.receive(Instant::ZERO, 0, payload, flags, 100_000);
            assert!(receiver.ack_is_delayed());
            receiver.on_drained();
            assert_eq!(receiver.ack_is_due(), due, "{flags:?}");
        }
    }

    #[test]
    fn a_short_segment_is_acknowledged_when_everything_was_read_unless_answers_carry_that() {
        let mut receiver = receiver();
        let short = |receiver: &mut Receiver| {
            receiver.ack_sent();
            receive_with(receiver, 0, 100, Flags::ACK | Flags::PSH);
            assert!(receiver.ack_is_delayed());
            receiver.on_drained();
            receiver.ack_is_due()
        };
        receive(&mut receiver, 0, 1000);
        receiver.on_drained();
        assert!(receiver.ack_is_delayed(), "a full segment waits for the next");
        assert!(short(&mut receiver));
        receiver.on_data_sent(Instant::ZERO + Duration::from_millis(39));
        assert!(!short(&mut receiver), "the application answers");
        receiver.application_is_silent();
        assert!(short(&mut receiver));
        receiver.on_data_sent(Instant::ZERO + Duration::from_millis(40));
        assert!(short(&mut receiver), "that was no answer any more");
    }

    #[test]
    fn the_run_that_changed_last_is_reported_first() {
        // RFC 2018 §4
        let mut receiver = receiver();
        for distance in [1000, 3000, 5000, 2000] {
            assert_eq!(receive(&mut receiver, distance, 1000), ArrivalOrder::OutOfOrder);
            assert!(receiver.ack_is_due());
        }
        let blocks = receiver.sack_blocks(4);
        let ends: Vec<_> = blocks.as_slice().iter().map(|b| (b.start.0, b.end.0)).collect();
        assert_eq!(ends, [(2001, 5001), (6001, 7001)]);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        // RFC 2883 §4
        let mut receiver = receiver();
        receive(&mut receiver, 0, 2000);
        assert_eq!(receive(&mut receiver, -1000, 1000), ArrivalOrder::Duplicate);
        assert_eq!(receiver.sack_blocks(4).as_slice()[0].start, SeqNumber(2001));
        receiver.ack_sent();
        assert!(!receiver.has_sacks());
    }

    #[test]
    fn a_duplicate_beyond_a_hole_is_reported_before_the_range_that_holds_it() {
        // RFC 2883 §4.2: this also holds if five other ranges have changed since, more than are
        // remembered.
        for (held, duplicate, outer) in [
            (&[1000, 2000][..], (3001, 4001), (2001, 4001)),
            (&[11_000, 1000, 3000, 5000, 7000, 9000], (2001, 3001), (2001, 3001)),
        ] {
            let mut receiver = receiver();
            for distance in held {
                receive(&mut receiver, *distance, 1000);
            }
            receiver.ack_sent();
            receive(&mut receiver, i64::from(duplicate.0) - 1001, 1000);
            let blocks = receiver.sack_blocks(2);
            let ends: Vec<_> = blocks.as_slice().iter().map(|b| (b.start.0, b.end.0)).collect();
            assert_eq!(ends, [duplicate, outer]);
        }
    }

    #[test]
    fn a_fin_alone_is_acknowledged_at_once_and_no_duplicate() {
        let mut receiver = receiver();
        receive(&mut receiver, 0, 1000);
        receiver.ack_sent();
        receiver.receive(Instant::ZERO, 0, Payload::EMPTY, Flags::FIN, 100_000);
        assert!(receiver.finished() && receiver.ack_is_due() && !receiver.has_sacks());
    }

    #[test]
    fn filling_the_hole_releases_everything_behind_it() {
        let mut receiver = receiver();
        receive(&mut receiver, 1000, 1000);
        receiver.ack_sent();
        receive(&mut receiver, 0, 1000);
        // RFC 5681 §4.2
        assert!(receiver.ack_is_due());
        assert_eq!(receiver.nxt(), 2001);
        let mut next = 1;
        while let Some(payload) = receiver.poll_ready() {
            assert!(payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        assert_eq!(next, 2001);
        assert!(!receiver.has_sacks());
    }

    #[test]
    fn what_lies_beyond_the_window_is_cut_off() {
        let mut receiver = receiver();
        let payload = Payload::from(Piece::pattern(1, 1000));
        receiver.receive(Instant::ZERO, 500, payload.clone(), Flags::ACK, 600);
        assert_eq!(receiver.out_of_order_bytes(), 100);
        receiver.receive(Instant::ZERO, 0, payload, Flags::ACK, 400);
        assert_eq!(receiver.nxt(), 401);
    }
}
