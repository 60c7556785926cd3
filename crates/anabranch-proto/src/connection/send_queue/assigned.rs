//! Data that is assigned to a subflow and waits there for room.

use std::cmp::Reverse;

use super::{Mapped, SendQueue, SentOn};
use crate::platform::Unsent;
use crate::view::{Slot, SubflowSet};

impl SendQueue {
    /// Assign the next `len` bytes to the subflow in `slot`, which will carry them when it has
    /// room. If the last segment assigned to it is short, assign only the bytes that fill it. Linux
    /// fills it only if nothing of the socket buffer that it ends was sent
    /// (`mptcp_skb_can_collapse_to`). Returns the number of bytes.
    pub(crate) fn assign_next(&mut self, len: u32, slot: Slot, mss: u32) -> u64 {
        let (start, sent_on) = (self.nxt, SentOn::Assigned { to: slot });
        let joins = self.joins_last_buffer(sent_on);
        if !joins && let Some(fragments) = self.buffer.fragments_mut() {
            fragments.begin_buffer(start);
        } else if let Some(tail) = self.mapped.back_mut() {
            tail.pushed = false;
        }
        let short = |tail: &&mut Mapped| joins && tail.sent_on == sent_on && tail.len < mss;
        let len = if let Some(tail) = self.mapped.back_mut().filter(short) {
            let len = len.min(mss - tail.len);
            tail.len += len;
            len
        } else {
            let mapped = Mapped { begins: !joins, ..Mapped::new(start, len, sent_on) };
            self.mapped.push_back(mapped);
            self.add_pending(SubflowSet::of(slot), start);
            len
        };
        self.nxt += u64::from(len);
        self.add_assigned(slot, len.into());
        u64::from(len)
    }

    pub(super) fn add_assigned(&mut self, slot: Slot, bytes: u64) {
        let index = slot.index();
        if self.assigned.len() <= index {
            self.assigned.resize(index + 1, 0);
        }
        self.assigned[index] += bytes;
    }

    /// Returns `true` if the next data may go into the same socket buffer as the data before it. It
    /// always may on a host without socket buffers.
    fn joins_last_buffer(&self, sent_on: SentOn) -> bool {
        let Some(fragments) = self.buffer.fragments() else { return true };
        let buffer = fragments.last_buffer();
        self.nxt < buffer.end
            && self.find(buffer.start).is_some_and(|first| first.sent_on == sent_on)
    }

    /// Mark the end of the assigned data, so that its last segment has PSH. RFC 9293 §3.9.1.2. If
    /// later data joins the same socket buffer, that data is pushed instead.
    pub(crate) fn push_assigned(&mut self) {
        if let Some(tail) = self.mapped.back_mut() {
            tail.pushed = true;
        }
    }

    /// Returns `true` if the segment with the data at `start` ends pushed data.
    pub(crate) fn ends_push(&self, start: u64) -> bool {
        self.find(start).is_some_and(|mapped| mapped.pushed)
    }

    /// Returns `true` if the data at `start` is all that waits for room on its subflow, so that
    /// more can join it.
    pub(crate) fn ends_queue(&self, start: u64) -> bool {
        self.find(start).is_some_and(|mapped| match mapped.sent_on {
            SentOn::Assigned { to } => self.assigned[to] == u64::from(mapped.len),
            SentOn::Carried { .. } => false,
        })
    }

    /// Bytes that wait on each subflow, by slot: new data, and data to be sent again.
    pub(crate) fn assigned(&self) -> &[u64] {
        &self.assigned
    }

    /// Data assigned to the subflow in `slot` that waits there. Linux does not fill up a socket
    /// buffer of Multipath TCP from the next one (`mptcp_skb_can_collapse`).
    pub(crate) fn waiting_on(&self, slot: Slot) -> Unsent {
        let all = self.assigned.get(slot.index()).copied().unwrap_or(0);
        let from = self.cursors.get(slot.index()).copied().unwrap_or(0);
        let index = self.mapped.partition_point(|mapped| mapped.start < from);
        let waits = |mapped: &&Mapped| mapped.sent_on == SentOn::Assigned { to: slot };
        let mut first = 0;
        for mapped in self.mapped.range(index..).filter(waits) {
            if mapped.begins && first > 0 {
                break;
            }
            first += u64::from(mapped.len);
        }
        Unsent { all, first, at_a_time: first }
    }

    /// Offset where the trailing assigned range begins, or the next offset to send if there is
    /// none.
    pub(crate) fn carried_to(&self) -> u64 {
        let tail = self.mapped.iter().rev().take_while(|mapped| mapped.sent_on.is_assigned());
        tail.last().map_or(self.nxt, |first| first.start)
    }

    /// Returns `true` if the data at `start` waits for room on its first subflow.
    pub(crate) fn is_assigned(&self, start: u64) -> bool {
        self.find(start).is_some_and(|mapped| mapped.sent_on.is_assigned())
    }

    /// Send the data assigned to the subflow in `slot` on other subflows.
    pub(crate) fn reassign(&mut self, slot: Slot) {
        if self.assigned.get(slot.index()).is_none_or(|bytes| *bytes == 0) {
            return;
        }
        self.drop_resends(slot);
        self.assigned[slot] = 0;
        for index in 0..self.mapped.len() {
            let mapped = self.mapped[index];
            if mapped.sent_on != (SentOn::Assigned { to: slot }) {
                continue;
            }
            let queued = !self.will_resend(mapped.start);
            self.mapped[index] = Mapped { sent_on: SentOn::LOST, queued, ..mapped };
            if queued {
                self.reinjections.push(Reverse(mapped.start));
            }
        }
    }

    pub(super) fn unassign(&mut self, mapped: &Mapped) {
        if let SentOn::Assigned { to } = mapped.sent_on {
            self.assigned[to] -= u64::from(mapped.len);
        }
    }

    /// Segments of the subflow in `slot` have another size from now on: cut the data that waits
    /// there accordingly.
    pub(crate) fn recut(&mut self, slot: Slot, mss: u32) {
        if self.assigned.get(slot.index()).is_none_or(|bytes| *bytes == 0) {
            return;
        }
        let waits = SentOn::Assigned { to: slot };
        let mut cut: Vec<Mapped> = Vec::with_capacity(self.mapped.len());
        for mut mapped in self.mapped.drain(..) {
            if mapped.sent_on == waits
                && let Some(last) = cut.last_mut().filter(|last| last.sent_on == waits)
            {
                let filled = mapped.len.min(mss.saturating_sub(last.len));
                last.len += filled;
                mapped.start += u64::from(filled);
                mapped.len -= filled;
            }
            while mapped.sent_on == waits && mapped.len > mss {
                cut.push(Mapped { len: mss, pushed: false, ..mapped });
                mapped.begins = false;
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
    use crate::platform::{BufferModel, SendBuffer};

    #[test]
    fn what_is_assigned_is_counted_until_somebody_carries_it_or_it_is_acknowledged() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 4_000));
        queue.finish();
        queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
        for _ in 0..3 {
            queue.assign_next(1000, Slot(1), 1000);
        }
        assert_eq!(
            (queue.assigned(), queue.carried_to(), queue.nxt()),
            (&[0, 3000][..], 1001, 4001)
        );
        assert!(!queue.fin_is_next(), "a DATA_FIN does not go before its data");
        // One subflow carries a part, as its MSS requires. Then another carries a segment, which is no
        // longer pending on the first.
        assert_eq!(queue.retransmit_on(1001, 400, Slot(1)).map(|payload| payload.len()), Some(400));
        assert_eq!((queue.assigned(), queue.carried_to()), (&[0, 2600][..], 1401));
        queue.retransmit_on(1401, 1000, Slot(0));
        assert_eq!(queue.assigned(), [0, 2000]);
        assert_eq!(queue.next_copy(Slot(1)), Some(2001));
        // The peer acknowledges data that it cannot have.
        assert!(queue.acknowledge(2401));
        assert_eq!(queue.assigned(), [0, 1600]);
        // The rest is sent on other subflows, each segment once.
        queue.reassign(Slot(1));
        assert_eq!(queue.assigned(), [0, 0]);
        assert_eq!(queue.next_copy(Slot(1)), None);
        for start in [2401, 3001] {
            assert_eq!(queue.next_reinjection().map(|mapped| mapped.start), Some(start));
            queue.retransmit_on(start, 1000, Slot(0));
        }
        assert!(queue.next_reinjection().is_none() && queue.fin_is_next());
    }

    #[test]
    fn a_short_segment_that_waits_is_filled_up_by_what_follows_on_its_subflow() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 6_000));
        let assigned = [(600, 1), (1000, 1), (1000, 1), (200, 0), (1000, 1)]
            .map(|(len, slot)| queue.assign_next(len, Slot(slot), 1000));
        assert_eq!(assigned, [600, 400, 1000, 200, 1000]);
        assert_eq!((queue.assigned(), queue.nxt()), (&[200, 3000][..], 3201));
        for start in [1, 1001, 2201] {
            assert_eq!(queue.next_copy(Slot(1)), Some(start));
            assert_eq!(queue.retransmit_on(start, 1000, Slot(1)).map(|all| all.len()), Some(1000));
        }
    }

    #[test]
    fn data_joins_a_socket_buffer_only_while_nothing_of_it_was_sent() {
        let mut queue = SendQueue::new(SendBuffer::new(&BufferModel::SOCKET, false, Some(100_000)));
        queue.buffer_mut().measure(1000, 10_000);
        queue.write(Piece::pattern(0, 8_000));
        queue.map_next(1000, Slot(1), SubflowSet::EMPTY);
        // One socket buffer with a full and a short segment, which the next data fills up.
        for (len, assigned) in [(1000, 1000), (300, 300), (1000, 700)] {
            assert_eq!(queue.assign_next(len, Slot(1), 1000), assigned);
        }
        assert_eq!(queue.assign_next(300, Slot(1), 1000), 300);
        queue.push_assigned();
        assert!(!queue.ends_queue(1001) && !queue.ends_push(1001) && queue.ends_push(3001));
        // Its first segment was sent, so the short one stays short.
        queue.retransmit_on(1001, 1000, Slot(1));
        assert_eq!(queue.assign_next(1000, Slot(1), 1000), 1000);
        let waiting = queue.waiting_on(Slot(1));
        assert_eq!((waiting.all, waiting.first, waiting.at_a_time), (2300, 1300, 1300));
        queue.retransmit_on(2001, 1000, Slot(1));
        assert_eq!(queue.next_copy(Slot(1)), Some(3001));
        assert_eq!(queue.retransmit_on(3001, 1000, Slot(1)).map(|all| all.len()), Some(300));
        assert!(queue.ends_push(3001) && queue.ends_queue(3301));
        // Nothing of the second one was sent, and PSH moves to its end.
        queue.push_assigned();
        assert_eq!(queue.assign_next(200, Slot(1), 1000), 200);
        assert!(!queue.ends_push(3301));
    }

    #[test]
    fn with_a_subflow_goes_what_waits_for_it_and_not_what_it_was_to_copy_or_others_wait_for() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 4_000));
        queue.map_next(1000, Slot(0), SubflowSet::of(Slot(1)));
        for slot in [2, 1, 2] {
            queue.assign_next(1000, Slot(slot), 1000);
        }
        queue.reassign(Slot(1));
        assert_eq!(queue.assigned(), [0, 0, 2000]);
        assert_eq!(sent_again(&mut queue, Slot(0)), [2001]);
        assert_eq!(queue.next_copy(Slot(2)), Some(1001));
    }

    #[test]
    fn what_waits_is_cut_again_when_the_size_of_segments_changes() {
        let mut queue = queue_of(10_000);
        queue.write(Piece::pattern(0, 9_000));
        queue.map_next(1000, Slot(1), SubflowSet::EMPTY);
        for slot in [1, 1, 1, 0, 1] {
            queue.assign_next(1000, Slot(slot), 1000);
        }
        queue.recut(Slot(1), 900);
        assert_eq!(queue.assigned(), [1000, 4000]);
        // 3000 bytes are 900 + 900 + 900 + 300, and 1000 behind those of the other are 900 + 100.
        for (start, len) in
            [(1001, 900), (1901, 900), (2801, 900), (3701, 300), (5001, 900), (5901, 100)]
        {
            assert_eq!(queue.next_copy(Slot(1)), Some(start));
            assert_eq!(queue.retransmit_on(start, 900, Slot(1)).map(|all| all.len()), Some(len));
        }
        queue.recut(Slot(0), 1200);
        assert_eq!(queue.retransmit_on(4001, 1200, Slot(0)).map(|all| all.len()), Some(1000));
    }
}
