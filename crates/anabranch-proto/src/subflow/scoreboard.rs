//! Data that was sent on a subflow and not yet acknowledged: the scoreboard of RFC 6675, in a ring.
//!
//! Records are in the order of the subflow's sequence space, and are identified by a number that
//! never changes. Each byte is marked SACKed or lost at most once per transmission, and the walk
//! skips runs of SACKed records. The work per acknowledgement therefore does not grow with the
//! window.

use std::collections::VecDeque;

use anabranch_wire::{Flags, Instant, Payload};

use super::MappingMeta;
use crate::platform::socket_buffer;

/// One segment's part of the sequence space. RFC 8684 §3.3.2.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// Subflow offset of the first byte.
    pub(crate) start: u64,
    pub(crate) payload: Payload,
    /// Metadata that the data level attached.
    pub(crate) meta: Option<MappingMeta>,
    /// Flags of every transmission: ACK, PSH, and FIN if the subflow's FIN follows the payload.
    pub(crate) flags: Flags,
    /// Time of the last transmission.
    pub(crate) sent_at: Instant,
    /// Time of the second transmission; far in the future if there was none.
    first_resent: Instant,
    /// Position of the last transmission among all transmissions of the subflow.
    pub(crate) order: u64,
    /// Transmissions after the first.
    pub(crate) retransmissions: u16,
    in_flight: bool,
    lost: bool,
    sacked: bool,
    /// The last one of those that were sent together in a socket buffer.
    ends_buffer: bool,
    /// If the record is SACKed: distance to a record that may not be SACKed.
    skip: u32,
}

/// A record that has just been acknowledged, cumulatively or selectively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) len: u64,
    pub(crate) end: u64,
    pub(crate) sent_at: Instant,
    /// Position of its last transmission among all transmissions of the subflow.
    pub(crate) order: u64,
    pub(crate) retransmitted: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Sent>,
    /// Number of the first record.
    base: u64,
    in_flight: Flight,
    /// Socket buffers that hold the records.
    buffers: u32,
    sacked: u64,
    /// Numbers of records to retransmit, in the order in which they were found lost; may be stale.
    lost: VecDeque<u64>,
    /// Numbers of retransmitted records with the position of the transmission, in that order; may
    /// be stale.
    resent: VecDeque<(u64, u64)>,
    /// Transmissions so far.
    transmissions: u64,
    /// Number of times that a record was marked as lost.
    marked_lost: u64,
    /// First record that the walk over first transmissions has not reached.
    first_transmission: u64,
}

/// Data in flight: sent, and neither acknowledged nor deemed lost. RFC 7323 §2.3: a window has at
/// most 1 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    bytes: u32,
    segments: u32,
}

impl Flight {
    fn add(&mut self, record: &Sent) {
        self.bytes += record.len() as u32;
        self.segments += 1;
    }

    fn remove(&mut self, record: &Sent) {
        self.bytes -= record.len() as u32;
        self.segments -= 1;
    }
}

impl Sent {
    pub(crate) fn len(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.flags.contains(Flags::FIN))
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.len()
    }

    /// The segment in lost pieces of at most `limit` payload bytes.
    fn into_pieces(self, limit: usize) -> Vec<Sent> {
        let len = self.payload.len();
        let starts = (0..len).step_by(limit);
        let piece = |from: usize| {
            let to = (from + limit).min(len);
            let meta = self.meta.map(|meta| MappingMeta {
                data_seq: meta.data_seq + from as u64,
                with_keys: meta.with_keys && from == 0,
                head: meta.head + from as u16,
                tail: meta.tail + (len - to) as u16,
                ..meta
            });
            // RFC 9293 §3.9.1.2: PSH and FIN belong to the last bytes.
            let flags = if to == len { self.flags } else { Flags::ACK };
            Sent {
                start: self.start + from as u64,
                payload: self.payload.slice(from, to),
                meta,
                flags,
                in_flight: false,
                lost: true,
                ends_buffer: self.ends_buffer && to == len,
                ..self.clone()
            }
        };
        starts.map(piece).collect()
    }

    fn delivered(&self) -> Delivered {
        Delivered {
            len: self.len(),
            end: self.end(),
            sent_at: self.sent_at,
            order: self.order,
            retransmitted: self.retransmissions > 0,
        }
    }
}

impl Scoreboard {
    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.records.shrink_to_fit();
        self.lost.shrink_to_fit();
        self.resent.shrink_to_fit();
    }

    /// Bytes sent, and neither acknowledged nor deemed lost: the pipe of RFC 6675.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.in_flight.bytes.into()
    }

    /// The same in segments.
    pub(crate) fn segments_in_flight(&self) -> u64 {
        self.in_flight.segments.into()
    }

    /// Offset after the oldest record.
    pub(crate) fn front_end(&self) -> Option<u64> {
        self.records.front().map(Sent::end)
    }

    /// Bytes acknowledged only selectively.
    pub(crate) fn bytes_sacked(&self) -> u64 {
        self.sacked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Number of the last record.
    pub(crate) fn last(&self) -> Option<u64> {
        self.records.len().checked_sub(1).map(|offset| self.base + offset as u64)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Sent> {
        self.records.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// A segment is sent for the first time.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(crate) fn push(
        &mut self,
        start: u64,
        payload: Payload,
        meta: Option<MappingMeta>,
        flags: Flags,
        now: Instant,
    ) {
        let record = Sent {
            start,
            payload,
            meta,
            flags,
            sent_at: now,
            first_resent: Instant::FAR_FUTURE,
            order: self.transmissions,
            retransmissions: 0,
            in_flight: true,
            lost: false,
            sacked: false,
            ends_buffer: true,
            skip: 0,
        };
        if self.extends_buffer(start, now) {
            self.records.back_mut().expect("it was sent just now").ends_buffer = false;
        } else {
            self.buffers += 1;
        }
        self.transmissions += 1;
        self.in_flight.add(&record);
        self.records.push_back(record);
    }

    /// Returns `true` if a segment that is sent now is in one socket buffer with the last one. Linux
    /// cuts as many segments off the data that waits as may be sent at once (`tcp_write_xmit`).
    fn extends_buffer(&self, start: u64, now: Instant) -> bool {
        let mut latest = self.records.iter().rev();
        let is_open = latest.next().is_some_and(|last| {
            last.sent_at == now
                && last.retransmissions == 0
                && last.end() == start
                && !last.flags.intersects(Flags::PSH | Flags::FIN)
        });
        let before = latest.take_while(|record| !record.ends_buffer).count() as u64;
        is_open && before + 1 < socket_buffer::SEGMENTS
    }

    /// Number of the socket buffers that hold unacknowledged segments.
    pub(crate) fn buffers(&self) -> u64 {
        self.buffers.into()
    }

    /// The metadata of the segments that have not arrived, oldest first.
    pub(crate) fn outstanding_meta(&self) -> impl Iterator<Item = (MappingMeta, u64)> + '_ {
        let missing = self.records.iter().filter(|record| !record.sacked);
        missing.filter_map(|record| Some((record.meta?, record.len())))
    }

    /// The metadata of all unacknowledged segments, including those that arrived beyond a hole.
    pub(crate) fn all_meta(&self) -> impl Iterator<Item = (MappingMeta, u64)> + '_ {
        self.records.iter().filter_map(|record| Some((record.meta?, record.len())))
    }

    /// Everything below `una` is acknowledged. Calls `delivered` for each record that was not known
    /// to have arrived. Returns the number of bytes that arrived besides, as the head of a record.
    pub(crate) fn acknowledge(&mut self, una: u64, mut delivered: impl FnMut(Delivered)) -> u64 {
        while let Some(record) = self.records.pop_front_if(|record| record.end() <= una) {
            self.base += 1;
            self.buffers -= u32::from(record.ends_buffer);
            if record.in_flight {
                self.in_flight.remove(&record);
            }
            if record.sacked {
                self.sacked -= record.len();
            } else {
                delivered(record.delivered());
            }
        }
        let mut head = 0;
        if let Some(front) = self.records.front_mut()
            && front.start < una
        {
            // A middlebox split the segment, and only its head has arrived.
            let bytes = una - front.start;
            front.payload = front.payload.slice(bytes as usize, front.payload.len());
            front.start = una;
            if let Some(meta) = &mut front.meta {
                // RFC 8684 §3.3.1: the mapping remains as declared, for the whole segment.
                meta.data_seq = meta.data_seq + bytes;
                meta.head += bytes as u16;
                meta.with_keys = false;
            }
            if front.in_flight {
                self.in_flight.bytes -= bytes as u32;
            }
            if front.sacked {
                self.sacked -= bytes;
            } else {
                head = bytes;
            }
        }
        self.first_transmission = self.first_transmission.max(self.base);
        head
    }

    /// Bytes `start..end` are acknowledged selectively. Only whole records count.
    pub(crate) fn sack(&mut self, start: u64, end: u64, mut delivered: impl FnMut(Delivered)) {
        let mut index = self.records.partition_point(|record| record.start < start);
        loop {
            index = self.skip_sacked(index);
            let Some(record) = self.records.get_mut(index) else { break };
            if record.end() > end {
                break;
            }
            let len = record.len();
            if record.in_flight {
                record.in_flight = false;
                self.in_flight.remove(record);
            }
            record.lost = false;
            record.sacked = true;
            record.skip = 1;
            self.sacked += len;
            delivered(record.delivered());
        }
    }

    /// Index of the first record at or after `index` that is not SACKed. Shortens the walk for
    /// later calls.
    fn skip_sacked(&mut self, index: usize) -> usize {
        let mut end = index;
        while let Some(record) = self.records.get(end)
            && record.sacked
        {
            end += record.skip as usize;
        }
        let mut at = index;
        while at < end {
            let record = &mut self.records[at];
            let step = record.skip as usize;
            record.skip = u32::try_from(end - at).unwrap_or(u32::MAX);
            at += step;
        }
        end
    }

    /// Mark a record as lost, if it is in flight.
    pub(crate) fn mark_lost(&mut self, number: u64) {
        let Some(index) = number.checked_sub(self.base) else { return };
        let Some(record) = self.records.get_mut(index as usize) else { return };
        if record.sacked || record.lost {
            return;
        }
        if record.in_flight {
            record.in_flight = false;
            self.in_flight.remove(record);
        }
        record.lost = true;
        self.marked_lost += 1;
        self.lost.push_back(number);
    }

    /// The `count` records that were marked as lost last, and their numbers.
    pub(crate) fn newly_lost(&self, count: u64) -> impl Iterator<Item = (u64, &Sent)> {
        let before = self.lost.len().saturating_sub(count as usize);
        self.lost.range(before..).filter_map(|&number| Some((number, self.get(number)?)))
    }

    /// After a timeout, mark everything as lost that is not SACKed, oldest first. RFC 6298 §5.4,
    /// RFC 6675 §5.1.
    pub(crate) fn mark_all_lost(&mut self) {
        self.lost.clear();
        self.resent.clear();
        for (offset, record) in self.records.iter_mut().enumerate() {
            if record.sacked {
                continue;
            }
            self.marked_lost += u64::from(!record.lost);
            record.lost = true;
            record.in_flight = false;
            self.lost.push_back(self.base + offset as u64);
        }
        self.in_flight = Flight::default();
        self.first_transmission = self.base + self.records.len() as u64;
    }

    /// The peer may have discarded data that it acknowledged selectively. RFC 2018 §8: after a
    /// timeout, forget the SACKs.
    pub(crate) fn forget_sacks(&mut self) {
        for record in &mut self.records {
            record.sacked = false;
        }
        self.sacked = 0;
    }

    /// Cut each segment that has more payload than `limit` says and is not SACKed. The pieces are lost
    /// and keep the mapping that the segment declared (RFC 8684 §3.3.1). Records are numbered anew.
    pub(crate) fn cut(&mut self, limit: impl Fn(Option<&MappingMeta>) -> u64) {
        let records = std::mem::take(&mut self.records);
        let old = self.base;
        let mut numbers = Vec::with_capacity(records.len());
        for record in records {
            numbers.push(old + self.records.len() as u64);
            let limit = limit(record.meta.as_ref()).max(1) as usize;
            match record.sacked || record.payload.len() <= limit {
                true => self.records.push_back(record),
                false => self.records.extend(record.into_pieces(limit)),
            }
        }
        let renumbered = |number: u64| {
            let place = number.checked_sub(old).and_then(|place| usize::try_from(place).ok());
            place.and_then(|place| numbers.get(place)).copied()
        };
        self.resent = (self.resent.iter())
            .filter_map(|(number, order)| Some((renumbered(*number)?, *order)))
            .collect();
        let end = self.base + self.records.len() as u64;
        self.first_transmission = renumbered(self.first_transmission).unwrap_or(end);
        self.lost.clear();
        self.in_flight = Flight::default();
        for (offset, record) in self.records.iter_mut().enumerate() {
            record.skip = u32::from(record.sacked);
            if record.lost {
                self.lost.push_back(self.base + offset as u64);
            } else if record.in_flight {
                self.in_flight.add(record);
            }
        }
    }

    /// When the oldest record was sent for the second time.
    pub(crate) fn front_first_resent(&self) -> Option<Instant> {
        let first_resent = self.records.front()?.first_resent;
        (first_resent != Instant::FAR_FUTURE).then_some(first_resent)
    }

    /// The assumed losses did not happen: data that has not been retransmitted is in flight.
    pub(crate) fn undo_losses(&mut self) {
        self.lost.clear();
        for (offset, record) in self.records.iter_mut().enumerate() {
            if record.lost {
                record.lost = false;
                record.in_flight = true;
                self.in_flight.add(record);
                if record.retransmissions > 0 {
                    self.resent.push_back((self.base + offset as u64, record.order));
                }
            }
        }
        self.first_transmission = self.base;
    }

    /// Number of times that a record was marked as lost.
    pub(crate) fn marked_lost(&self) -> u64 {
        self.marked_lost
    }

    /// Returns `true` if nothing is outstanding but a record that was sent once.
    pub(crate) fn has_only_a_new_record(&self) -> bool {
        self.records.len() == 1 && self.records[0].retransmissions == 0
    }

    /// Number of the last transmission.
    pub(crate) fn last_order(&self) -> u64 {
        self.transmissions - 1
    }

    /// Number of records to retransmit, at the most.
    pub(crate) fn lost_at_most(&self) -> usize {
        self.lost.len()
    }

    /// Returns `true` if there may be records to retransmit.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Number of the next record to retransmit; `None` also if the first entry of the list is stale.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        let number = *self.lost.front()?;
        self.get(number).filter(|record| record.lost).map(|_| number)
    }

    /// The next record to retransmit.
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        while let Some(&number) = self.lost.front() {
            if self.get(number).is_some_and(|record| record.lost) {
                return Some(number);
            }
            self.lost.pop_front();
        }
        None
    }

    /// Retransmit a record. Returns the record to send.
    pub(crate) fn retransmit(&mut self, number: u64, now: Instant) -> &Sent {
        let order = self.transmissions;
        self.transmissions += 1;
        self.resent.push_back((number, order));
        let record = &mut self.records[(number - self.base) as usize];
        if !record.in_flight {
            record.in_flight = true;
            self.in_flight.add(record);
        }
        record.lost = false;
        record.sent_at = now;
        record.first_resent = record.first_resent.min(now);
        record.order = order;
        record.retransmissions = record.retransmissions.saturating_add(1);
        record
    }

    /// Mark every record in flight as lost for which `is_lost` says so. The walk follows the order
    /// of transmissions, first transmissions and retransmissions separately. Each walk stops at the
    /// first record with a later deadline. Returns the earliest such deadline. RFC 8985 §6.2 step
    /// 5.
    pub(crate) fn detect_lost(
        &mut self,
        is_lost: impl Fn(Instant, u64) -> LossVerdict,
    ) -> Option<Instant> {
        let mut deadline = None;
        let mut number = self.first_transmission.max(self.base);
        while let Some(record) = self.get(number) {
            if record.in_flight && record.retransmissions == 0 {
                match is_lost(record.sent_at, record.order) {
                    LossVerdict::Lost => self.mark_lost(number),
                    LossVerdict::At(at) => {
                        deadline = Some(at);
                        break;
                    }
                    LossVerdict::InFlight => break,
                }
            }
            number += 1;
        }
        self.first_transmission = number;
        while let Some(&(number, order)) = self.resent.front() {
            let current =
                self.get(number).filter(|record| record.in_flight && record.order == order);
            let verdict = current.map(|record| is_lost(record.sent_at, order));
            match verdict {
                None => {}
                Some(LossVerdict::Lost) => self.mark_lost(number),
                Some(LossVerdict::At(at)) => {
                    return Some(deadline.map_or(at, |other: Instant| other.min(at)));
                }
                Some(LossVerdict::InFlight) => break,
            }
            self.resent.pop_front();
        }
        deadline
    }

    /// When the last transmission was made of those in flight that precede the transmission `order`.
    pub(crate) fn last_sent_before(&self, order: u64) -> Option<Instant> {
        let earlier = self.records.iter().filter(|each| each.in_flight && each.order < order);
        earlier.map(|each| each.sent_at).max()
    }

    /// Number of retransmissions that may be in flight, and when the first of these records was
    /// first retransmitted.
    pub(crate) fn resent_in_flight(&mut self) -> (i64, Option<Instant>) {
        let mut resent = std::mem::take(&mut self.resent);
        let record = |(number, order): &(u64, u64)| {
            self.get(*number).filter(|record| record.in_flight && record.order == *order)
        };
        resent.retain(|place| record(place).is_some());
        let oldest = resent.iter().filter_map(|place| Some(record(place)?.first_resent)).min();
        self.resent = resent;
        (self.resent.len() as i64, oldest)
    }

    /// When the oldest record was sent last.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.records.front().map(|record| record.sent_at)
    }

    /// The oldest record, unless it is deemed lost.
    pub(crate) fn front_in_flight(&self) -> Option<u64> {
        self.records.front().filter(|record| record.in_flight).map(|_| self.base)
    }
}

/// Verdict of loss detection on one transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LossVerdict {
    /// Lost.
    Lost,
    /// Lost unless acknowledged by this time.
    At(Instant),
    /// Unknown, and later transmissions are unknown as well.
    InFlight,
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{DataSeq, Duration, Piece};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for n in 0..segments {
            board.push(1 + n * 100, Payload::from(Piece::pattern(0, 100)), None, Flags::ACK, at(n));
        }
        board
    }

    #[test]
    fn acknowledged_and_sacked_bytes_leave_the_flight_once() {
        let mut board = board(10);
        let mut delivered = 0;
        board.sack(301, 501, |_| delivered += 1);
        board.sack(201, 601, |_| delivered += 1);
        assert_eq!((delivered, board.bytes_in_flight(), board.bytes_sacked()), (4, 600, 400));
        board.acknowledge(601, |_| delivered += 1);
        assert_eq!((delivered, board.bytes_in_flight(), board.bytes_sacked()), (6, 400, 0));
    }

    #[test]
    fn a_partly_covered_record_is_not_sacked() {
        let mut board = board(3);
        board.sack(101, 250, |_| {});
        assert_eq!(board.bytes_sacked(), 100);
    }

    #[test]
    fn lost_records_are_sent_again_in_order_and_stale_ones_skipped() {
        let mut board = board(5);
        for number in [0, 1, 3] {
            board.mark_lost(number);
        }
        assert_eq!(board.bytes_in_flight(), 200);
        board.acknowledge(101, |_| {});
        board.sack(201, 301, |_| {});
        board.mark_lost(2);
        assert_eq!(board.next_lost(), Some(1));
        board.retransmit(1, at(100));
        assert_eq!(board.next_lost(), Some(3));
        assert_eq!(board.bytes_in_flight(), 200);
        board.retransmit(3, at(101));
        assert_eq!(board.next_lost(), None, "segment 2 has arrived");
    }

    #[test]
    fn a_split_segment_is_trimmed() {
        let mut board = board(2);
        board.acknowledge(51, |_| {});
        assert_eq!(board.bytes_in_flight(), 150);
        assert_eq!(board.get(0).expect("still there").start, 51);
        board.sack(101, 201, |_| {});
        board.acknowledge(101, |_| {});
        board.acknowledge(151, |_| {});
        assert_eq!(board.bytes_sacked(), 50);
    }

    #[test]
    fn loss_detection_walks_first_transmissions_and_retransmissions_in_time_order() {
        let mut board = board(4);
        let until = |limit: Instant| {
            move |sent_at: Instant, _| {
                if sent_at < limit { LossVerdict::Lost } else { LossVerdict::InFlight }
            }
        };
        board.detect_lost(until(at(2)));
        assert_eq!(board.next_lost(), Some(0));
        board.retransmit(0, at(10));
        board.retransmit(1, at(11));
        assert_eq!(board.next_lost(), None);
        board.detect_lost(until(at(11)));
        // Segments 2 and 3 by their first transmission, 0 by its retransmission. 1 was resent too
        // late.
        let mut lost = Vec::new();
        while let Some(number) = board.next_lost() {
            lost.push(number);
            board.retransmit(number, at(20));
        }
        assert_eq!(lost, [2, 3, 0]);
    }

    #[test]
    fn after_a_timeout_loss_detection_goes_on_with_what_is_new() {
        let mut board = board(5);
        board.acknowledge(201, |_| {});
        board.mark_all_lost();
        board.push(501, Payload::from(Piece::pattern(0, 100)), None, Flags::ACK, at(10));
        board.detect_lost(|_, _| LossVerdict::Lost);
        assert_eq!(board.lost, [2, 3, 4, 5]);
    }

    #[test]
    fn only_the_last_transmission_of_a_segment_counts() {
        // RFC 8985 §6.2 step 5
        let resent = || {
            let mut board = board(4);
            for (number, ms) in [(0, 10), (1, 20), (0, 30)] {
                board.mark_lost(number);
                board.retransmit(number, at(ms));
            }
            board
        };
        let mut board = resent();
        board.detect_lost(
            |sent_at, _| {
                if sent_at < at(25) { LossVerdict::Lost } else { LossVerdict::InFlight }
            },
        );
        let lost: Vec<bool> = board.records.iter().map(|record| record.lost).collect();
        assert_eq!(lost, [false, true, true, true]);
        let mut board = resent();
        assert_eq!(board.resent_in_flight(), (2, Some(at(10))));
        board.sack(1, 101, |_| {});
        assert_eq!(board.resent_in_flight(), (1, Some(at(20))));
    }

    #[test]
    fn who_is_told_of_a_delivery_learns_whether_it_was_sent_again() {
        let (mut board, mut again) = (board(3), Vec::new());
        assert_eq!(board.len(), 3);
        board.mark_lost(1);
        board.retransmit(1, at(10));
        board.push(301, Payload::from(Piece::pattern(0, 100)), None, Flags::ACK, at(11));
        board.acknowledge(401, |record| again.push((record.retransmitted, record.order)));
        let expected = vec![(false, 0), (true, 3), (false, 2), (false, 4)];
        assert_eq!((again, board.len()), (expected, 0));
    }

    #[test]
    fn an_acknowledgement_of_nothing_leaves_the_first_data_its_keys() {
        // RFC 8684 §3.1
        let meta = MappingMeta { with_keys: true, ..MappingMeta::new(DataSeq(1)) };
        let mut board = Scoreboard::default();
        board.push(1, Payload::from(Piece::pattern(0, 100)), Some(meta), Flags::ACK, at(0));
        for (una, with_keys) in [(1, true), (51, false)] {
            board.acknowledge(una, |_| {});
            let meta = board.get(0).and_then(|record| record.meta).expect("still there");
            assert_eq!(meta.with_keys, with_keys);
        }
    }

    #[test]
    fn a_cut_segment_keeps_its_mapping_and_the_order_of_all_others() {
        // Records of 100, 250 and 100 bytes, of which the first was sent again and the last is SACKed.
        let meta =
            |seq| Some(MappingMeta { with_keys: seq == 101, ..MappingMeta::new(DataSeq(seq)) });
        let mut board = Scoreboard::default();
        for (start, len, flags) in
            [(1, 100, Flags::ACK), (101, 250, Flags::ACK | Flags::PSH), (351, 100, Flags::ACK)]
        {
            let payload = Payload::from(Piece::pattern(0, len));
            board.push(start, payload, meta(start), flags, at(start));
        }
        board.mark_lost(0);
        board.next_lost();
        board.retransmit(0, at(500));
        board.sack(351, 451, |_| {});
        board.cut(|_| 100);
        let pieces: Vec<_> = (1..4)
            .map(|number| {
                let Sent { start, payload, meta, flags, .. } = board.get(number).expect("a piece");
                let meta = meta.expect("mapped data");
                let place = (*start, payload.len(), meta.data_seq.0, flags.contains(Flags::PSH));
                (place, (meta.head, meta.tail, meta.with_keys))
            })
            .collect();
        let expected = [
            ((101, 100, 101, false), (0, 150, true)),
            ((201, 100, 201, false), (100, 50, false)),
            ((301, 50, 301, true), (200, 0, false)),
        ];
        assert_eq!(pieces, expected);
        assert_eq!((board.bytes_in_flight(), board.bytes_sacked()), (100, 100));
        assert_eq!(board.resent_in_flight(), (1, Some(at(500))));
        assert_eq!(board.lost.iter().copied().collect::<Vec<_>>(), [1, 2, 3]);
        board.acknowledge(451, |_| {});
        assert!(board.is_empty());
    }

    #[test]
    fn a_retransmission_whose_loss_was_undone_can_be_found_lost_again() {
        let mut board = board(3);
        board.acknowledge(101, |_| {});
        let lost = |board: &mut Scoreboard| {
            board.detect_lost(|sent_at, _| {
                if sent_at < at(11) { LossVerdict::Lost } else { LossVerdict::InFlight }
            });
            board.lost.iter().copied().collect::<Vec<_>>()
        };
        board.mark_lost(1);
        board.next_lost();
        board.retransmit(1, at(10));
        board.lost.clear();
        assert_eq!(lost(&mut board), [2, 1]);
        board.undo_losses();
        assert_eq!((board.next_lost(), board.bytes_in_flight()), (None, 200));
        assert_eq!(board.resent_in_flight(), (1, Some(at(10))));
        assert_eq!(lost(&mut board), [2, 1]);
    }
}
