//! Translation of subflow bytes to data sequence numbers. RFC 8684 §3.3.1.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_wire::{Checksum, DataSeq, Payload, SeqNumber};

use crate::reassembly::{join_later_half, most_pieces};

/// The mappings that have arrived on one subflow, and payload that waits for them.
#[derive(Debug)]
pub(crate) struct MappingTable {
    /// Sorted by subflow offset, without overlaps.
    mappings: VecDeque<Received>,
    /// In-order payload that waits for its mapping, or for the rest of a mapping with checksum.
    waiting: VecDeque<Payload>,
    waiting_bytes: u64,
    /// Subflow offset of the first waiting byte, or of the next byte to arrive.
    head: u64,
    /// Difference between data and subflow offsets of the payload handed out last.
    shift: Option<u64>,
    /// Whether the difference is the same in all mappings so far.
    straight: bool,
    /// Length of the longest mapping so far, in bytes.
    longest: u64,
    /// Subflow offset up to which mappings have been declared.
    reach: u64,
    /// Subflow offset up to which checksums were correct.
    verified: u64,
    /// A checksum was wrong: nothing from `head` on is trustworthy. RFC 8684 §3.7.
    failed: bool,
}

/// Maximum number of gaps between earlier mappings that one mapping may fill.
const MAX_GAPS: usize = 8;

/// Size of a large segment: at least this much payload waits for its mapping.
const LEAST_UNMAPPED: u64 = 1_500;

/// A mapping, without its DATA_FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) subflow: u64,
    pub(crate) data: u64,
    pub(crate) len: u64,
    pub(crate) data_fin: bool,
    pub(crate) checksum: Option<u16>,
}

/// The result of verifying a mapping's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChecksumVerdict {
    /// The checksum is correct. If the mapping has a DATA_FIN, this is its data offset.
    Right(Option<u64>),
    /// The checksum is wrong. The mapping starts at this data offset.
    Wrong(u64),
}

impl Received {
    fn end(&self) -> u64 {
        self.subflow + self.len
    }

    fn shift(&self) -> u64 {
        self.data.wrapping_sub(self.subflow)
    }
}

impl Default for MappingTable {
    fn default() -> Self {
        MappingTable {
            mappings: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            head: 1,
            shift: None,
            straight: true,
            longest: LEAST_UNMAPPED,
            reach: 1,
            verified: 0,
            failed: false,
        }
    }
}

impl MappingTable {
    /// The bytes below the subflow offset `first` have no mapping, and were delivered: they came in
    /// the SYN. RFC 8684 appendix B.
    pub(crate) fn begin_at(&mut self, first: u64) {
        (self.head, self.reach) = (first, first);
    }

    /// Bytes `subflow..subflow + len` of the subflow are data from `data` on. Returns false if this
    /// contradicts an earlier mapping, which remains valid. RFC 8684 §3.3.1: a mapping must not
    /// change after its declaration.
    pub(crate) fn add(&mut self, new: Received) -> bool {
        let Received { subflow, data, len, .. } = new;
        if len == 0 {
            return true;
        }
        self.note(&new);
        if new.checksum.is_some() {
            return self.add_whole(new);
        }
        if self.mappings.back().is_none_or(|back| back.end() <= subflow) {
            self.mappings.push_back(new);
            return true;
        }
        let mut at = subflow;
        let mut gaps = 0;
        while at < new.end() && gaps < MAX_GAPS {
            let index = self.mappings.partition_point(|held| held.end() <= at);
            match self.mappings.get(index) {
                Some(held) if held.subflow <= at => {
                    if held.data.wrapping_sub(held.subflow) != data.wrapping_sub(subflow) {
                        return false;
                    }
                    at = held.end();
                }
                next => {
                    let stop = next.map_or(new.end(), |held| held.subflow.min(new.end()));
                    let data = data + (at - subflow);
                    let gap = Received { subflow: at, data, len: stop - at, ..new };
                    self.mappings.insert(index, gap);
                    at = stop;
                    gaps += 1;
                }
            }
        }
        at >= new.end()
    }

    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn note(&mut self, new: &Received) {
        let shift = self.mappings.back().map(Received::shift).or(self.shift);
        self.straight &= shift.is_none_or(|shift| shift == new.shift());
        self.longest = self.longest.max(new.len);
        self.reach = self.reach.max(new.end());
    }

    /// As [`MappingTable::add`] and [`MappingTable::pass`], if the next payload has `len` bytes and the
    /// mapping covers just these. Otherwise returns `false`, and nothing has changed.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(crate) fn pass_with(&mut self, new: &Received, len: u64) -> bool {
        let is_usual = new.subflow == self.head
            && new.len == len
            && new.checksum.is_none()
            && self.waiting.is_empty()
            && self.mappings.back().is_none_or(|back| back.end() <= self.head);
        if is_usual {
            self.note(new);
            self.shift = Some(new.shift());
            self.head += len;
            self.keep_only(*new);
        }
        is_usual
    }

    /// All other mappings are used up. The last one stays, so that a later one cannot contradict it.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn keep_only(&mut self, last: Received) {
        if self.mappings.len() == 1 {
            self.mappings[0] = last;
        } else {
            self.mappings.clear();
            self.mappings.push_back(last);
        }
    }

    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.mappings.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    /// Add a mapping with a checksum, which counts only as a whole. A mapping inside an earlier one
    /// adds nothing.
    fn add_whole(&mut self, new: Received) -> bool {
        if new.end() <= self.head {
            return true;
        }
        let index = self.mappings.partition_point(|held| held.end() <= new.subflow);
        match self.mappings.get(index) {
            Some(held) if held.subflow < new.end() => {
                held.subflow <= new.subflow
                    && new.end() <= held.end()
                    && held.shift() == new.shift()
            }
            _ if new.subflow < self.head => false,
            _ => {
                self.mappings.insert(index, new);
                true
            }
        }
    }

    /// Subflow offset up to which mappings have been declared.
    pub(crate) fn reach(&self) -> u64 {
        self.reach
    }

    /// Returns `true` if there are as many mappings as a subflow may need for `bytes` of data
    /// ahead.
    pub(crate) fn is_full(&self, bytes: u64) -> bool {
        self.mappings.len() >= most_pieces(bytes)
    }

    /// Returns `true` if more than `bytes` wait.
    pub(crate) fn holds_more_than(&self, bytes: u64) -> bool {
        self.waiting_bytes > bytes
    }

    /// Bytes of in-order payload that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Subflow offset of the first waiting byte, or of the next byte to arrive.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// In-order payload that waits, as subflow offsets.
    pub(crate) fn waiting(&self) -> Range<u64> {
        self.head..self.head + self.waiting_bytes
    }

    /// The data offsets of a range of the subflow, in order, as far as mappings have arrived.
    pub(crate) fn data_of(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.mappings.partition_point(|held| held.end() <= range.start);
        let covering = self.mappings.range(first..);
        covering.take_while(move |held| held.subflow < range.end).map(move |held| {
            let start = range.start.max(held.subflow).wrapping_add(held.shift());
            let end = range.end.min(held.end()).wrapping_add(held.shift());
            start..end
        })
    }

    /// The next in-order payload arrived. Returns it with its data offset if nothing waits before it and a
    /// mapping without checksum covers all of it. Otherwise it waits.
    #[inline]
    pub(crate) fn pass(&mut self, payload: Payload) -> Option<(u64, Payload)> {
        let len = payload.len() as u64;
        if self.waiting.is_empty()
            && let Some(held) = self.mapping_of_head()
            && held.checksum.is_none()
            && held.end() - self.head >= len
        {
            self.shift = Some(held.shift());
            let data = held.data + (self.head - held.subflow);
            self.head += len;
            return Some((data, payload));
        }
        self.push(payload);
        None
    }

    /// The next in-order payload arrived, and waits.
    pub(crate) fn push(&mut self, payload: Payload) {
        self.waiting_bytes += payload.len() as u64;
        self.waiting.push_back(payload);
        if self.waiting.len() > most_pieces(self.waiting_bytes) {
            // TCP has acknowledged the payload, so the peer does not retransmit it.
            join_later_half(&mut self.waiting);
        }
    }

    /// The mapping of the first waiting byte, or of the next byte to arrive.
    fn mapping_of_head(&mut self) -> Option<Received> {
        let head = self.head;
        while self.mappings.pop_front_if(|held| held.end() <= head).is_some() {}
        self.mappings.front().filter(|held| held.subflow <= head).copied()
    }

    /// Verify the checksum of the next mapping, if all of its payload has arrived. Nothing is
    /// handed out before that. RFC 8684 §3.3.1.
    pub(crate) fn verify(&mut self, idsn: DataSeq) -> Option<ChecksumVerdict> {
        if self.failed || self.waiting.is_empty() || self.verified > self.head {
            return None;
        }
        let held = self.mapping_of_head()?;
        let checksum = held.checksum?;
        if held.end() > self.head + self.waiting_bytes {
            return None;
        }
        let declared = (held.len + u64::from(held.data_fin)) as u16;
        let subflow_seq = SeqNumber(held.subflow as u32);
        let mut sum = Checksum::of_dss_pseudo_header(idsn + held.data, subflow_seq, declared);
        let mut left = held.len as usize;
        for payload in &self.waiting {
            let bytes = left.min(payload.len());
            sum.add_payload(&payload.slice(0, bytes));
            left -= bytes;
            if left == 0 {
                break;
            }
        }
        if sum.verifies(checksum) {
            self.verified = held.end();
            return Some(ChecksumVerdict::Right(held.data_fin.then_some(held.data + held.len)));
        }
        self.failed = true;
        Some(ChecksumVerdict::Wrong(held.data))
    }

    /// The next payload with its data offset, split at the borders of mappings.
    pub(crate) fn poll(&mut self) -> Option<(u64, Payload)> {
        let len = self.waiting.front()?.len() as u64;
        let held = self.mapping_of_head()?;
        if held.checksum.is_some() && self.verified <= self.head {
            return None;
        }
        self.shift = Some(held.shift());
        let data = held.data + (self.head - held.subflow);
        let mapped = held.end() - self.head;
        let payload = self.waiting.pop_front().expect("just seen");
        self.waiting_bytes -= mapped.min(len);
        self.head += mapped.min(len);
        if mapped >= len {
            return Some((data, payload));
        }
        self.waiting.push_front(payload.slice(mapped as usize, payload.len()));
        Some((data, payload.slice(0, mapped as usize)))
    }

    /// The next payload regardless of mappings: the subflow is plain TCP.
    pub(crate) fn poll_plain(&mut self) -> Option<Payload> {
        let payload = self.waiting.pop_front()?;
        self.waiting_bytes -= payload.len() as u64;
        self.head += payload.len() as u64;
        Some(payload)
    }

    /// Discard the waiting payload.
    pub(crate) fn discard(&mut self) {
        while self.poll_plain().is_some() {}
    }

    /// Returns `true` if payload waits whose mapping has not arrived.
    pub(crate) fn lacks_mapping(&mut self) -> bool {
        !self.waiting.is_empty() && !self.failed && self.mapping_of_head().is_none()
    }

    /// Returns `true` if it is certain that no mapping for the waiting payload will arrive. RFC
    /// 8684 §3.3.1 allows a mapping to arrive after its bytes, and a split segment may have it only
    /// on its last part. In that case, no later byte can be mapped first, and no more bytes wait
    /// than a mapping has.
    pub(crate) fn is_beyond_hope(&self) -> bool {
        let arrived = self.head + self.waiting_bytes;
        self.mappings.front().is_some_and(|later| later.subflow < arrived)
            || self.waiting_bytes > self.longest
    }

    /// Returns `true` if a checksum was wrong.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns `true` if the difference between data and subflow offsets is the same in all
    /// mappings so far. The subflow then carries the stream without repetitions.
    pub(crate) fn is_straight(&self) -> bool {
        self.straight
    }

    /// Returns `true` if the byte at `head` is data offset `next`, as far as this host can know.
    pub(crate) fn continues(&mut self, next: u64) -> bool {
        let shift = self.mapping_of_head().map(|held| held.shift()).or(self.shift);
        shift.is_none_or(|shift| self.head.wrapping_add(shift) == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Piece, dss_checksum};

    fn pattern(start: u64, len: u32) -> Payload {
        Payload::from(Piece::pattern(start, len))
    }

    fn mapping(subflow: u64, data: u64, len: u64) -> Received {
        Received { subflow, data, len, data_fin: false, checksum: None }
    }

    /// A mapping of the pattern from data offset `data` on, with its checksum.
    fn sealed(subflow: u64, data: u64, len: u32) -> Received {
        let checksum =
            dss_checksum(DataSeq(data), SeqNumber(subflow as u32), len as u16, &pattern(data, len));
        Received { checksum: Some(checksum), ..mapping(subflow, data, u64::from(len)) }
    }

    #[test]
    fn with_a_checksum_nothing_is_handed_out_before_the_whole_mapping_is_here_and_right() {
        // RFC 8684 §3.3.1
        let mut table = MappingTable::default();
        assert!(table.add(sealed(1, 501, 1001)));
        table.push(pattern(501, 400));
        assert_eq!((table.verify(DataSeq(0)), table.poll()), (None, None));
        assert!(!table.lacks_mapping());
        table.push(pattern(901, 700));
        assert_eq!(table.verify(DataSeq(0)), Some(ChecksumVerdict::Right(None)));
        assert_eq!(table.poll().map(|(_, payload)| payload.len()), Some(400));
        assert_eq!(table.verify(DataSeq(0)), None, "the whole mapping was verified before");
        let lens: Vec<_> = std::iter::from_fn(|| table.poll()).map(|(_, p)| p.len()).collect();
        assert_eq!(lens, [601], "the following payload waits for its own mapping");
        assert!(table.lacks_mapping());
        assert!(table.add(sealed(1002, 9001, 99)));
        assert_eq!(table.verify(DataSeq(0)), Some(ChecksumVerdict::Wrong(9001)));
        assert_eq!((table.verify(DataSeq(0)), table.poll()), (None, None));
        assert_eq!(table.poll_plain().map(|payload| payload.len()), Some(99));
        assert_eq!(table.waiting_bytes(), 0);
    }

    #[test]
    fn one_mapping_may_fill_the_holes_between_others_but_not_very_many() {
        // RFC 8684 §3.3.1
        let mut table = MappingTable::default();
        for subflow in [101, 301] {
            assert!(table.add(mapping(subflow, 1000 + subflow, 100)));
        }
        assert!(table.add(mapping(1, 1001, 500)));
        table.push(pattern(1001, 500));
        let parts: Vec<_> =
            std::iter::from_fn(|| table.poll()).map(|(data, p)| (data, p.len())).collect();
        assert_eq!(parts, [(1001, 100), (1101, 100), (1201, 100), (1301, 100), (1401, 100)]);
        for n in 0..20 {
            assert!(table.add(mapping(1001 + 20 * n, 9001 + 20 * n, 10)));
        }
        assert!(!table.add(mapping(1001, 9001, 400)));
    }

    #[test]
    fn a_mapping_with_checksum_that_overlaps_another_is_refused_unless_inside() {
        let mut table = MappingTable::default();
        assert!(table.add(sealed(1001, 1001, 1000)));
        assert!(table.add(sealed(1001, 1001, 1000)));
        assert!(table.add(sealed(1501, 1501, 500)), "inside an earlier mapping");
        assert!(!table.add(sealed(1501, 1501, 501)));
        assert!(!table.add(sealed(501, 501, 501)));
        assert!(table.add(sealed(1, 1, 1000)));
        table.push(pattern(1, 2000));
        while table.verify(DataSeq(0)) == Some(ChecksumVerdict::Right(None)) {
            assert_eq!(table.poll().map(|(_, payload)| payload.len()), Some(1000));
        }
        assert_eq!(table.waiting_bytes(), 0);
        assert!(table.add(sealed(1501, 1501, 500)), "a late duplicate");
        table.push(pattern(2001, 100));
        assert!(table.lacks_mapping());
        assert!(!table.add(sealed(1501, 1501, 700)), "a part of it has been handed out");
    }

    #[test]
    fn a_mapping_of_just_the_next_payload_passes_it_and_cannot_be_contradicted_later() {
        // RFC 8684 §3.3.1
        let mut table = MappingTable::default();
        for subflow in [1, 101] {
            assert!(!table.pass_with(&mapping(subflow, 1000 + subflow, 100), 99), "more than that");
            assert!(table.pass_with(&mapping(subflow, 1000 + subflow, 100), 100));
        }
        assert_eq!((table.head(), table.reach(), table.is_straight()), (201, 201, true));
        assert!(!table.add(mapping(101, 9001, 100)), "a contradiction");
        assert!(!table.pass_with(&mapping(301, 1301, 100), 100), "not the next payload");
        assert!(!table.pass_with(&sealed(201, 1201, 100), 100), "a checksum counts as a whole");
        table.push(pattern(1201, 50));
        assert!(!table.pass_with(&mapping(201, 1201, 100), 100), "payload waits");
        assert!(table.continues(1201));
    }

    #[test]
    fn payload_waits_for_its_mapping_and_is_cut_at_the_border() {
        let mut table = MappingTable::default();
        table.push(pattern(501, 1000));
        assert_eq!(table.poll(), None);
        assert!(table.lacks_mapping());
        table.add(mapping(1, 501, 600));
        let (data, payload) = table.poll().expect("mapped");
        assert_eq!((data, payload.len()), (501, 600));
        assert!(payload.matches_pattern(501));
        assert_eq!(table.poll(), None);
        table.add(mapping(601, 9001, 400));
        assert_eq!(table.poll().map(|(data, payload)| (data, payload.len())), Some((9001, 400)));
    }

    #[test]
    fn a_mapping_that_contradicts_an_earlier_one_is_refused() {
        // RFC 8684 §3.3.1
        let mut table = MappingTable::default();
        assert!(table.add(mapping(1, 1, 1000)));
        assert!(table.add(mapping(1, 1, 1000)));
        assert!(!table.add(mapping(501, 777, 500)));
        assert!(table.add(mapping(501, 501, 1000)));
        table.push(pattern(1, 1500));
        let lens: Vec<_> = std::iter::from_fn(|| table.poll()).map(|(_, p)| p.len()).collect();
        assert_eq!(lens, [1000, 500]);
    }

    #[test]
    fn mappings_that_arrive_out_of_order_are_sorted() {
        let mut table = MappingTable::default();
        table.add(mapping(2001, 2001, 1000));
        table.add(mapping(1, 1, 1000));
        table.add(mapping(1001, 1001, 1000));
        table.push(pattern(1, 3000));
        let starts: Vec<_> = std::iter::from_fn(|| table.poll()).map(|(data, _)| data).collect();
        assert_eq!(starts, [1, 1001, 2001]);
    }

    #[test]
    fn a_mapping_that_ends_where_another_begins_is_no_contradiction() {
        let mut table = MappingTable::default();
        assert!(table.add(mapping(2001, 9001, 1000)));
        assert!(table.add(mapping(1, 1, 2000)));
        assert_eq!(table.mappings.len(), 2);
        assert!(!table.is_straight());
    }

    #[test]
    fn mappings_at_one_distance_are_straight() {
        let mut table = MappingTable::default();
        for start in [1, 1001, 501] {
            table.add(mapping(start, start + 7, 1000));
            assert!(table.is_straight());
        }
        table.add(mapping(2001, 1, 1000));
        assert!(!table.is_straight());
    }

    #[test]
    fn where_the_stream_goes_on_is_where_mappings_say_or_said_last() {
        // RFC 8684 §3.7: during the fallback to TCP, the waiting bytes must be the next of the
        // stream.
        let mut table = MappingTable::default();
        assert!(
            table.continues(1) && table.continues(77),
            "without a mapping, any offset is possible"
        );
        table.add(mapping(1, 1001, 500));
        assert!(table.continues(1001) && !table.continues(1));
        table.push(pattern(1001, 500));
        while table.poll().is_some() {}
        assert!(table.continues(1501) && !table.continues(1502));
    }

    #[test]
    fn payload_is_beyond_hope_once_something_after_it_is_mapped() {
        for (first_mapped, hopeless) in [(1001, false), (1000, true), (501, true)] {
            let mut table = MappingTable::default();
            table.push(pattern(1, 1000));
            assert!(!table.is_beyond_hope());
            table.add(mapping(first_mapped, first_mapped, 100));
            assert_eq!(table.is_beyond_hope(), hopeless, "mapped from {first_mapped} on");
        }
        let mut table = MappingTable::default();
        table.push(pattern(1, LEAST_UNMAPPED as u32));
        assert!(!table.is_beyond_hope(), "the mapping may come with the last of its bytes");
        table.push(pattern(1, 1));
        assert!(table.is_beyond_hope());
    }

    #[test]
    fn so_many_mappings_are_kept_as_there_may_be_pieces() {
        let mut table = MappingTable::default();
        for n in 0..most_pieces(100_000) as u64 {
            assert!(!table.is_full(100_000));
            table.add(mapping(1 + 2 * n, 1, 1));
        }
        assert!(table.is_full(100_000));
    }

    #[test]
    fn what_waits_is_limited_in_bytes_and_joined_where_it_comes_in_many_pieces() {
        const BYTES: u64 = 100_000;
        let mut large = MappingTable::default();
        large.push(pattern(1, BYTES as u32));
        assert!(!large.holds_more_than(BYTES));
        large.push(pattern(1, 1));
        assert!(large.holds_more_than(BYTES));
        let mut small = MappingTable::default();
        for start in 1..=5_000 {
            small.push(pattern(start, 1));
            assert!(small.waiting.len() <= most_pieces(5_000));
        }
        let mut next = 1;
        while let Some(payload) = small.poll_plain() {
            assert!(payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        assert_eq!((next, small.waiting_bytes()), (5_001, 0));
    }
}
