//! The data that one host of a connection sends, over all its subflows.

use std::collections::BTreeMap;

use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{DataSeq, Instant};

use crate::ranges::RangeSet;

/// One direction of a connection. A place is an offset from the first byte of the data.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    base: Option<DataSeq>,
    /// Whether place 0 is the first byte of the connection.
    pub(crate) is_exact: bool,
    /// Whether the high halves of the data sequence numbers are unknown. They count from 0 then.
    pub(crate) is_narrow: bool,
    /// Distance of full numbers from the numbers that count from 0, once a full number was seen.
    raised: Option<u64>,
    /// The place after the last byte sent, including the DATA_FIN.
    pub(crate) next: i64,
    /// Data that was sent but not acknowledged at the data level.
    sent: BTreeMap<i64, SentPiece>,
    pub(crate) acked: i64,
    /// Time of the last acknowledgement of bytes that were not acknowledged before.
    pub(crate) acked_at: Option<Instant>,
    /// The largest DATA_ACK and its time, whether or not the capture has the data before it.
    pub(crate) largest_data_ack: Option<(i64, Instant)>,
    /// Acknowledged data that the capture does not contain.
    pub(crate) missing: RangeSet,
    /// The right edge of the receive window; never moves back.
    pub(crate) edge: Option<i64>,
    /// Whether a segment may have moved the edge further than is known, because its subflow's handshake
    /// with the scale of its windows was not seen.
    pub(crate) hides_edge: bool,
    /// The place of the DATA_FIN.
    pub(crate) fin: Option<i64>,
    /// Whether the last DATA_ACK acknowledged data that was not sent.
    pub(crate) last_ack_beyond: bool,
    pub(crate) bytes: u64,
    pub(crate) repeated: u64,
}

#[derive(Debug)]
struct SentPiece {
    end: i64,
    bytes: Option<Box<[u8]>>,
}

/// A comparison of sent data with earlier data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Number of bytes not sent before.
    pub(crate) new: i64,
    /// Number of bytes sent before.
    pub(crate) repeated: i64,
    /// The first place at which a byte differs from the byte sent before.
    pub(crate) differs_at: Option<i64>,
}

impl Stream {
    /// Set the data sequence number of place 0.
    pub(crate) fn set_base(&mut self, base: DataSeq) {
        if self.base.is_none() {
            self.base = Some(base);
            self.is_exact = true;
        }
    }

    pub(crate) const fn base(&self) -> Option<DataSeq> {
        self.base
    }

    /// Returns `true` if this stream has data sequence numbers close to `number`. Numbers of
    /// different streams are far apart, because initial numbers are random.
    pub(crate) fn is_near(&self, number: DataSeq) -> bool {
        let high = self.base.map(|base| number.distance_from(base + self.next.max(0) as u64));
        !self.is_narrow && high.is_some_and(|distance| distance.unsigned_abs() < NEAR)
    }

    /// The place of a data sequence number. The first number becomes place 0.
    pub(crate) fn place(&mut self, number: WideOrNarrow) -> i64 {
        let Some(base) = self.base else {
            self.is_narrow = matches!(number, WideOrNarrow::Narrow(_));
            self.base = Some(number.resolve(DataSeq(0)));
            return 0;
        };
        let near = DataSeq(base.0.wrapping_add(self.next as u64));
        let number = match number {
            // The first full number of a stream that began without: it shows the high half.
            WideOrNarrow::Wide(full) if self.is_narrow => {
                let counted = near.expand(full.0 as u32).0;
                let raised = *self.raised.get_or_insert(full.0.wrapping_sub(counted));
                DataSeq(full.0.wrapping_sub(raised))
            }
            number => number.resolve(near),
        };
        number.distance_from(base)
    }

    pub(crate) fn number(&self, place: i64) -> Option<u64> {
        self.base.map(|base| base.0.wrapping_add(place as u64))
    }

    /// Record data at `start..end`. `bytes` are its first bytes, if they were captured.
    pub(crate) fn record(
        &mut self,
        start: i64,
        end: i64,
        bytes: Option<&[u8]>,
        held: &mut usize,
    ) -> Taken {
        self.next = self.next.max(end);
        let late = self.missing.remove(start, end);
        let mut taken = Taken { new: late, ..Taken::default() };
        let mut at = start;
        if at < self.acked {
            taken.repeated += end.min(self.acked) - at - late;
            at = end.min(self.acked);
        }
        let whole = |from: i64, to: i64| {
            bytes.and_then(|all| all.get((from - start) as usize..(to - start) as usize))
        };
        while at < end {
            let before = self.sent.range(..=at).next_back().filter(|(_, piece)| piece.end > at);
            if let Some((from, piece)) = before {
                let to = piece.end.min(end);
                if taken.differs_at.is_none() {
                    let held = piece.bytes.as_deref();
                    let held =
                        held.and_then(|all| all.get((at - from) as usize..(to - from) as usize));
                    taken.differs_at = difference(held, whole(at, to)).map(|place| at + place);
                }
                taken.repeated += to - at;
                at = to;
                continue;
            }
            let to = self.sent.range(at..end).next().map_or(end, |(from, _)| *from);
            self.keep(at, to, whole(at, to), held);
            taken.new += to - at;
            at = to;
        }
        taken
    }

    fn keep(&mut self, start: i64, end: i64, bytes: Option<&[u8]>, held: &mut usize) {
        let bytes = bytes.filter(|bytes| *held + bytes.len() <= MOST_HELD);
        *held += bytes.map_or(0, <[u8]>::len);
        self.sent.insert(start, SentPiece { end, bytes: bytes.map(Into::into) });
        if self.sent.len() > MOST_PIECES
            && let Some((_, piece)) = self.sent.pop_first()
        {
            *held -= piece.bytes.map_or(0, |bytes| bytes.len());
            self.acked = self.acked.max(piece.end);
        }
    }

    /// Record a DATA_ACK of all data before `place`.
    pub(crate) fn acknowledge(&mut self, place: i64, time: Instant, held: &mut usize) {
        if place <= self.acked {
            return;
        }
        let fin = i64::from(self.fin.is_some_and(|fin| (self.acked..place).contains(&fin)));
        if place - self.acked > fin {
            self.acked_at = Some(time);
        }
        let mut at = self.acked;
        while let Some(first) = self.sent.first_entry()
            && *first.key() < place
        {
            let (start, piece) = first.remove_entry();
            self.missing.insert(at, start);
            at = at.max(piece.end);
            *held -= piece.bytes.as_ref().map_or(0, |bytes| bytes.len());
            if piece.end > place {
                self.sent.insert(place, SentPiece { end: piece.end, bytes: None });
                at = place;
            }
        }
        self.missing.insert(at, place);
        self.acked = place;
    }

    /// Record a DATA_ACK of all data before `place`, some of which may not be in the capture.
    pub(crate) fn note_data_ack(&mut self, place: i64, time: Instant) {
        if self.largest_data_ack.is_none_or(|(known, _)| place > known) {
            self.largest_data_ack = Some((place, time));
        }
    }

    /// Drop the stored bytes.
    pub(crate) fn release(&mut self, held: &mut usize) {
        for piece in self.sent.values_mut() {
            *held -= piece.bytes.take().map_or(0, |bytes| bytes.len());
        }
    }
}

/// The first index at which two byte strings differ, if both are given.
fn difference(a: Option<&[u8]>, b: Option<&[u8]>) -> Option<i64> {
    let (a, b) = (a?, b?);
    if a == b {
        return None;
    }
    a.iter().zip(b).position(|(a, b)| a != b).map(|place| place as i64)
}

/// Data sequence numbers of one connection are closer than this: no window has 2³² bytes.
const NEAR: u64 = 1 << 32;

/// Largest number of payload bytes stored for comparison, over all connections.
pub(crate) const MOST_HELD: usize = 256 << 20;

/// Largest number of pieces of one stream.
const MOST_PIECES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_new_once() {
        let (mut stream, mut held) = (Stream::default(), 0);
        stream.set_base(DataSeq(u64::MAX - 3));
        let taken = stream.record(0, 4, Some(b"abcd"), &mut held);
        assert_eq!((taken.new, taken.repeated), (4, 0));
        let taken = stream.record(2, 6, Some(b"cdef"), &mut held);
        assert_eq!((taken.new, taken.repeated, taken.differs_at), (2, 2, None));
        let taken = stream.record(4, 6, Some(b"ex"), &mut held);
        assert_eq!((taken.new, taken.repeated, taken.differs_at), (0, 2, Some(5)));
        assert_eq!((stream.next, held), (6, 6));
        assert_eq!(stream.number(4), Some(0));
        stream.acknowledge(6, Instant::ZERO, &mut held);
        assert_eq!((held, stream.missing.total()), (0, 0));
        assert_eq!(stream.record(1, 3, None, &mut held).repeated, 2);
    }

    #[test]
    fn what_is_acknowledged_but_was_not_seen_is_missing_until_it_comes() {
        let (mut stream, mut held) = (Stream::default(), 0);
        stream.record(0, 4, None, &mut held);
        stream.record(6, 10, None, &mut held);
        stream.acknowledge(8, Instant::ZERO, &mut held);
        assert_eq!(stream.missing.total(), 2);
        assert_eq!(stream.record(8, 10, None, &mut held).repeated, 2);
        stream.record(4, 6, None, &mut held);
        assert_eq!(stream.missing.total(), 0);
    }

    #[test]
    fn four_bytes_are_a_number_near_the_last() {
        let mut stream = Stream::default();
        stream.set_base(DataSeq(0xffff_fff0));
        stream.record(0, 0x20, None, &mut 0);
        assert_eq!(stream.place(WideOrNarrow::Narrow(0x10)), 0x20);
        assert!(stream.is_near(DataSeq(0x1_0000_0000)));
        assert!(!stream.is_near(DataSeq(0x3_0000_0000)));
    }

    #[test]
    fn full_numbers_may_follow_numbers_of_4_bytes() {
        let mut stream = Stream::default();
        assert_eq!(stream.place(WideOrNarrow::Narrow(0xffff_ff00)), 0);
        stream.record(0, 0x100, None, &mut 0);
        assert_eq!(stream.place(WideOrNarrow::Wide(DataSeq(0x7_0000_0000))), 0x100);
        assert_eq!(stream.place(WideOrNarrow::Wide(DataSeq(0x7_0000_0040))), 0x140);
        assert_eq!(stream.place(WideOrNarrow::Narrow(0x40)), 0x140);
        assert!(stream.is_narrow);
    }
}
