//! Data that is assigned to a subflow and waits there for room.

use std::cmp::Reverse;

use super::{Carriage, Mapped, SendQueue};
use crate::view::SubflowSet;

impl SendQueue {
    /// Assign the next `len` bytes to the subflow in `slot`, which will carry them when it has
    /// room. If the last segment assigned to it is short, assign only the bytes that fill it.
    /// Returns the number of bytes.
    pub(crate) fn assign_next(&mut self, len: u32, slot: u8, mss: u32) -> u64 {
        let (start, carriage) = (self.nxt, Carriage::Assigned { to: slot });
        let short = |tail: &&mut Mapped| tail.carriage == carriage && tail.len < mss;
        let len = if let Some(tail) = self.mapped.back_mut().filter(short) {
            let len = len.min(mss - tail.len);
            tail.len += len;
            len
        } else {
            self.mapped.push_back(Mapped { start, len, carriage, queued: false });
            self.owe(SubflowSet::of(slot), start);
            len
        };
        self.nxt += u64::from(len);
        let index = usize::from(slot);
        if self.assigned.len() <= index {
            self.assigned.resize(index + 1, 0);
        }
        self.assigned[index] += u64::from(len);
        u64::from(len)
    }

    /// Bytes assigned to each subflow, by slot, that no subflow has carried yet.
    pub(crate) fn assigned(&self) -> &[u64] {
        &self.assigned
    }

    /// Offset where the trailing assigned range begins, or the next offset to send if there is
    /// none.
    pub(crate) fn carried_to(&self) -> u64 {
        let tail = self.mapped.iter().rev().take_while(|mapped| mapped.carriage.is_assigned());
        tail.last().map_or(self.nxt, |first| first.start)
    }

    /// Does the data at `start` wait for room on its first subflow?
    pub(crate) fn is_assigned(&self, start: u64) -> bool {
        self.find(start).is_some_and(|mapped| mapped.carriage.is_assigned())
    }

    /// Send the data assigned to the subflow in `slot` on other subflows.
    pub(crate) fn reassign(&mut self, slot: u8) {
        let Some(bytes) = self.assigned.get_mut(usize::from(slot)) else { return };
        if std::mem::take(bytes) == 0 {
            return;
        }
        let theirs = |mapped: &&mut Mapped| mapped.carriage == Carriage::Assigned { to: slot };
        for mapped in self.mapped.iter_mut().filter(theirs) {
            mapped.carriage = Carriage::LOST;
            mapped.queued = true;
            self.reinjections.push(Reverse(mapped.start));
        }
    }

    pub(super) fn unassign(&mut self, mapped: &Mapped) {
        if let Carriage::Assigned { to } = mapped.carriage {
            self.assigned[usize::from(to)] -= u64::from(mapped.len);
        }
    }

    /// Segments of the subflow in `slot` have another size from now on: cut the data that waits
    /// there accordingly.
    pub(crate) fn recut(&mut self, slot: u8, mss: u32) {
        if self.assigned.get(usize::from(slot)).is_none_or(|bytes| *bytes == 0) {
            return;
        }
        let waits = Carriage::Assigned { to: slot };
        let mut cut: Vec<Mapped> = Vec::with_capacity(self.mapped.len());
        for mut mapped in self.mapped.drain(..) {
            if mapped.carriage == waits
                && let Some(last) = cut.last_mut().filter(|last| last.carriage == waits)
            {
                let filled = mapped.len.min(mss.saturating_sub(last.len));
                last.len += filled;
                mapped.start += u64::from(filled);
                mapped.len -= filled;
            }
            while mapped.carriage == waits && mapped.len > mss {
                cut.push(Mapped { len: mss, ..mapped });
                mapped.start += u64::from(mss);
                mapped.len -= mss;
            }
            if mapped.len > 0 {
                cut.push(mapped);
            }
        }
        self.mapped = cut.into();
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::Piece;

    use super::super::tests::{queue_of, sent_again};
    use super::*;

    #[test]
    fn what_is_assigned_is_counted_until_somebody_carries_it_or_it_is_acknowledged() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 4_000));
        queue.finish();
        queue.map_next(1000, 0, SubflowSet::EMPTY);
        for _ in 0..3 {
            queue.assign_next(1000, 1, 1000);
        }
        assert_eq!(
            (queue.assigned(), queue.carried_to(), queue.nxt()),
            (&[0, 3000][..], 1001, 4001)
        );
        assert!(!queue.fin_is_next(), "a DATA_FIN does not go before its data");
        // One subflow carries a part, as its MSS requires. Then another carries a segment that the
        // first no longer owes.
        assert_eq!(queue.carry_again(1001, 400, 1).map(|payload| payload.len()), Some(400));
        assert_eq!((queue.assigned(), queue.carried_to()), (&[0, 2600][..], 1401));
        queue.carry_again(1401, 1000, 0);
        assert_eq!(queue.assigned(), [0, 2000]);
        assert_eq!(queue.next_copy(1), Some(2001));
        // The peer acknowledges data that it cannot have.
        assert!(queue.acknowledge(2401));
        assert_eq!(queue.assigned(), [0, 1600]);
        // The rest is sent on other subflows, each segment once.
        queue.reassign(1);
        assert_eq!(queue.assigned(), [0, 0]);
        assert_eq!(queue.next_copy(1), None);
        for start in [2401, 3001] {
            assert_eq!(queue.next_reinjection().map(|mapped| mapped.start), Some(start));
            queue.carry_again(start, 1000, 0);
        }
        assert!(queue.next_reinjection().is_none() && queue.fin_is_next());
    }

    #[test]
    fn a_short_segment_that_waits_is_filled_up_by_what_follows_on_its_subflow() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 6_000));
        let assigned = [(600, 1), (1000, 1), (1000, 1), (200, 0), (1000, 1)]
            .map(|(len, slot)| queue.assign_next(len, slot, 1000));
        assert_eq!(assigned, [600, 400, 1000, 200, 1000]);
        assert_eq!((queue.assigned(), queue.nxt()), (&[200, 3000][..], 3201));
        for start in [1, 1001, 2201] {
            assert_eq!(queue.next_copy(1), Some(start));
            assert_eq!(queue.carry_again(start, 1000, 1).map(|all| all.len()), Some(1000));
        }
    }

    #[test]
    fn with_a_subflow_goes_what_waits_for_it_and_not_what_it_was_to_copy_or_others_wait_for() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 4_000));
        queue.map_next(1000, 0, SubflowSet::of(1));
        for slot in [2, 1, 2] {
            queue.assign_next(1000, slot, 1000);
        }
        queue.reassign(1);
        assert_eq!(queue.assigned(), [0, 0, 2000]);
        assert_eq!(sent_again(&mut queue, 0), [2001]);
        assert_eq!(queue.next_copy(2), Some(1001));
    }

    #[test]
    fn what_waits_is_cut_again_when_the_size_of_segments_changes() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 9_000));
        queue.map_next(1000, 1, SubflowSet::EMPTY);
        for slot in [1, 1, 1, 0, 1] {
            queue.assign_next(1000, slot, 1000);
        }
        queue.recut(1, 900);
        assert_eq!(queue.assigned(), [1000, 4000]);
        // 3000 bytes are 900 + 900 + 900 + 300, and 1000 behind those of the other are 900 + 100.
        for (start, len) in
            [(1001, 900), (1901, 900), (2801, 900), (3701, 300), (5001, 900), (5901, 100)]
        {
            assert_eq!(queue.next_copy(1), Some(start));
            assert_eq!(queue.carry_again(start, 900, 1).map(|all| all.len()), Some(len));
        }
        queue.recut(0, 1200);
        assert_eq!(queue.carry_again(4001, 1200, 0).map(|all| all.len()), Some(1000));
    }
}
