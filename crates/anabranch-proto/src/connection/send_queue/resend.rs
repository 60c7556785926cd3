//! Data that waits on a subflow to be sent again. In Linux, it is in the subflow's socket, like new
//! data: it keeps its place, and it is sent even if the peer has acknowledged it in the meantime.

use std::collections::VecDeque;

use anabranch_wire::Payload;

use super::{Mapped, SendQueue, SentOn};
use crate::view::{Slot, SubflowSet};

/// Data in the queues of subflows that is sent again, and data that no subflow was chosen for yet.
#[derive(Debug, Default)]
pub(super) struct Resends {
    /// The queues, by slot.
    queues: Vec<VecDeque<WaitingSegment>>,
    /// All data from here on must be sent again, as far as it was sent or assigned.
    from: Option<u64>,
}

/// A segment's data that waits on a subflow.
#[derive(Debug)]
struct WaitingSegment {
    start: u64,
    payload: Payload,
    /// Data from here on was assigned later, and follows.
    precedes: u64,
    /// Whether data that was pushed together ends here.
    pushed: bool,
}

/// Data to send again on a subflow.
#[derive(Debug)]
pub(crate) struct Resend {
    pub(crate) start: u64,
    pub(crate) payload: Payload,
    /// Whether the segment has PSH.
    pub(crate) pushed: bool,
}

impl Resends {
    /// Returns `true` if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.from.is_none() && self.queues.iter().all(VecDeque::is_empty)
    }
}

impl SendQueue {
    /// Send all data again that was sent or assigned and is not acknowledged.
    pub(crate) fn resend_all(&mut self) {
        let from = (self.una < self.nxt).then_some(self.una);
        self.resends.get_or_insert_default().from = from;
    }

    /// Offset and length of the next data that must be sent again and for which no subflow was chosen:
    /// the remainder of a page fragment.
    pub(crate) fn next_to_resend(&mut self) -> Option<(u64, u64)> {
        let resends = self.resends.as_mut()?;
        let from = resends.from?.max(self.una);
        let rest = self.buffer.fragments().map_or(u64::MAX, |all| all.rest_from(from));
        let len = rest.min(self.nxt.saturating_sub(from));
        resends.from = (len > 0).then_some(from);
        resends.from.map(|from| (from, len))
    }

    /// Number of bytes that must be sent again and for which no subflow was chosen.
    pub(crate) fn left_to_resend(&self) -> u64 {
        self.resends_from().map_or(0, |from| self.nxt - from.max(self.una))
    }

    fn resends_from(&self) -> Option<u64> {
        self.resends.as_ref()?.from
    }

    /// The subflow in `slot` takes the data of [`SendQueue::next_to_resend`], in segments of `mss`
    /// bytes.
    pub(crate) fn queue_resend(&mut self, slot: Slot, mss: u32) {
        let Some((from, len)) = self.next_to_resend() else { return };
        self.queue_again(slot, mss, from, len);
        let next = Some(from + len).filter(|next| *next < self.nxt);
        self.resends.get_or_insert_default().from = next;
    }

    /// The subflow in `slot` sends the remainder of the oldest page fragment again, as far as it was
    /// sent.
    pub(crate) fn resend_fragment(&mut self, slot: Slot, mss: u32) {
        let rest = self.buffer.fragments().map_or(u64::MAX, |all| all.rest_from(self.una));
        let sent = self.resends_from().unwrap_or(self.nxt).saturating_sub(self.una);
        self.queue_again(slot, mss, self.una, rest.min(sent));
    }

    /// Returns `true` if the data from `start` on is going to be sent again anyway.
    pub(super) fn will_resend(&self, start: u64) -> bool {
        self.resends_from().is_some_and(|from| from.max(self.una) <= start)
    }

    fn queue_again(&mut self, slot: Slot, mss: u32, from: u64, len: u64) {
        let (end, precedes) = (from + len, self.nxt);
        let mut start = from;
        while start < end {
            let bytes = (end - start).min(mss.into()) as u32;
            let payload = self.payload(start, bytes);
            let next = start + u64::from(bytes);
            self.wait_on(slot, WaitingSegment { start, payload, precedes, pushed: next == end });
            self.add_assigned(slot, bytes.into());
            start = next;
        }
    }

    fn wait_on(&mut self, slot: Slot, waiting: WaitingSegment) {
        let queues = &mut self.resends.get_or_insert_default().queues;
        if queues.len() <= slot.index() {
            queues.resize_with(slot.index() + 1, VecDeque::new);
        }
        queues[slot.index()].push_back(waiting);
        // Data that is assigned to the subflow while this waits follows.
        self.add_pending(SubflowSet::of(slot), self.una);
    }

    /// The peer acknowledges data before the subflow to which it is assigned has sent it. It stays in the
    /// queue of that subflow if the host has such queues. Returns `true` if so.
    pub(super) fn outlives(&mut self, acknowledged: &Mapped) -> bool {
        let SentOn::Assigned { to } = acknowledged.sent_on else { return false };
        if self.buffer.fragments().is_none() {
            return false;
        }
        let Mapped { start, len, pushed, .. } = *acknowledged;
        let payload = self.payload(start, len);
        self.wait_on(to, WaitingSegment { start, payload, precedes: start, pushed });
        true
    }

    /// Number of bytes that the subflow in `slot` sends again next. `None` if data precedes that was
    /// assigned to it earlier, or if there is nothing.
    pub(crate) fn next_resend(&mut self, slot: Slot) -> Option<u64> {
        let first = self.resends.as_ref()?.queues.get(slot.index())?.front()?;
        let (precedes, len) = (first.precedes, first.payload.len() as u64);
        let is_next = self.next_assigned(slot).is_none_or(|start| start >= precedes);
        is_next.then_some(len)
    }

    /// Take the data of [`SendQueue::next_resend`], or a segment of it if full segments have become
    /// shorter than that.
    pub(crate) fn take_resend(&mut self, slot: Slot, mss: u32) -> Option<Resend> {
        let queue = self.resends.as_mut()?.queues.get_mut(slot.index())?;
        let WaitingSegment { start, payload, precedes, pushed } = queue.pop_front()?;
        let len = payload.len().min(mss as usize);
        self.assigned[slot] -= len as u64;
        if len == payload.len() {
            return Some(Resend { start, payload, pushed });
        }
        let rest = payload.slice(len, payload.len());
        queue.push_front(WaitingSegment {
            start: start + len as u64,
            payload: rest,
            precedes,
            pushed,
        });
        Some(Resend { start, payload: payload.slice(0, len), pushed: false })
    }

    /// Returns `true` if the subflow in `slot` has data to send again.
    pub(super) fn has_resends(&self, slot: Slot) -> bool {
        let queue = self.resends.as_ref().and_then(|resends| resends.queues.get(slot.index()));
        queue.is_some_and(|queue| !queue.is_empty())
    }

    /// The subflow in `slot` sends nothing again.
    pub(super) fn drop_resends(&mut self, slot: Slot) {
        let queues = self.resends.as_mut().map(|resends| &mut resends.queues);
        if let Some(queue) = queues.and_then(|queues| queues.get_mut(slot.index())) {
            let bytes: u64 = queue.drain(..).map(|waiting| waiting.payload.len() as u64).sum();
            self.assigned[slot] -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::Piece;

    use super::*;
    use crate::platform::{BufferModel, SendBuffer};

    const MSS: u32 = 1000;

    fn queue() -> SendQueue {
        let mut queue = SendQueue::new(SendBuffer::new(&BufferModel::SOCKET, false, Some(200_000)));
        queue.buffer_mut().measure(MSS.into(), 100_000);
        queue.write(Piece::pattern(0, 40_000));
        queue.map_next(MSS, Slot(0), SubflowSet::EMPTY);
        for slot in [0, 1, 0, 1] {
            queue.assign_next(MSS, Slot(slot), MSS);
        }
        queue
    }

    fn starts(queue: &mut SendQueue, slot: Slot) -> Vec<u64> {
        std::iter::from_fn(|| {
            queue.next_resend(slot)?;
            queue.take_resend(slot, MSS).map(|resend| resend.start)
        })
        .collect()
    }

    #[test]
    fn data_that_is_sent_again_waits_behind_data_that_was_assigned_before_and_is_sent_anyway() {
        let mut queue = queue();
        // The first fragment has 32,728 bytes, of which 5,000 were sent or assigned.
        queue.resend_fragment(Slot(1), MSS);
        assert_eq!(queue.assigned(), [2000, 7000]);
        assert_eq!(queue.next_resend(Slot(1)), None, "the data from 2001 on was assigned before");
        queue.retransmit_on(2001, MSS, Slot(1));
        queue.retransmit_on(4001, MSS, Slot(1));
        queue.acknowledge(5001);
        assert_eq!(starts(&mut queue, Slot(1)), [1, 1001, 2001, 3001, 4001]);
        assert_eq!(queue.assigned(), [2000, 0]);
    }

    #[test]
    fn data_that_is_assigned_to_an_unused_subflow_follows_what_it_sends_again() {
        let mut queue = queue();
        queue.resend_fragment(Slot(2), MSS);
        assert_eq!(queue.assign_next(MSS, Slot(2), MSS), 1000);
        assert_eq!(starts(&mut queue, Slot(2)), [1, 1001, 2001, 3001, 4001]);
        assert_eq!(queue.next_copy(Slot(2)), Some(5001));
    }

    #[test]
    fn data_that_waits_is_cut_if_full_segments_have_become_shorter() {
        let mut queue = queue();
        queue.resend_fragment(Slot(2), MSS);
        let mut take = || {
            let resend = queue.take_resend(Slot(2), 600)?;
            Some((resend.start, resend.payload.len(), queue.assigned()[2]))
        };
        assert_eq!(take(), Some((1, 600, 4400)));
        assert_eq!(take(), Some((601, 400, 4000)));
        assert_eq!(take(), Some((1001, 600, 3400)));
    }

    #[test]
    fn assigned_data_stays_on_its_subflow_although_the_peer_has_it() {
        let mut queue = queue();
        queue.acknowledge(3501);
        assert_eq!(starts(&mut queue, Slot(0)), [1001, 3001]);
        assert_eq!(starts(&mut queue, Slot(1)), [2001]);
        assert_eq!(queue.assigned(), [500, 1000]);
    }

    #[test]
    fn everything_is_sent_again_by_fragments_from_the_oldest_on() {
        let mut queue = queue();
        while queue.unsent() > 0 {
            queue.assign_next(MSS, Slot(1), MSS);
        }
        queue.resend_all();
        assert_eq!(queue.next_to_resend(), Some((1, 32_728)));
        queue.acknowledge(2001);
        assert_eq!(
            (queue.next_to_resend(), queue.left_to_resend()),
            (Some((2001, 30_728)), 38_000)
        );
        queue.queue_resend(Slot(2), MSS);
        assert_eq!(queue.next_to_resend(), Some((32_729, 7_272)));
        queue.queue_resend(Slot(2), MSS);
        assert_eq!((queue.next_to_resend(), queue.left_to_resend()), (None, 0));
        assert_eq!(queue.assigned().get(2), Some(&38_000));
        queue.forget_carrier(Slot(2));
        assert_eq!(queue.assigned().get(2), Some(&0));
    }
}
