//! The receiving side of the data level: one stream, one window, whatever subflow data came on.

use std::collections::VecDeque;

use anabranch_wire::Payload;

use crate::reassembly::{Reassembly, most_pieces};

/// Octets that an application is taken to read at a time.
const READ: u64 = 1 << 16;

/// Offsets are 64-bit, from 0 for the peer's IDSN.
#[derive(Debug)]
pub(crate) struct RecvQueue {
    /// DATA_ACK: the next offset expected.
    nxt: u64,
    /// Next offset that the application reads.
    read: u64,
    capacity: u64,
    /// Is data beyond a hole taken off the window as well? As [`crate::ConnectionConfig`] has it.
    charges_out_of_order: bool,
    /// The window announced last.
    announced: u64,
    /// What is offered of the capacity at most.
    offered: u64,
    /// The window's edge as the peer knows it: never moves back. RFC 8684 §3.3.5.
    promised: u64,
    /// Octets by which rounding the window field may have promised more.
    slack: u64,
    ready: VecDeque<Payload>,
    out_of_order: Reassembly,
    fin: Option<u64>,
}

/// What the arrival of data changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The application can read more.
    Delivered,
    /// It waits for something earlier.
    Waiting,
    /// It had been received before.
    Duplicate,
    /// Beyond what was promised.
    OutsideWindow,
}

impl RecvQueue {
    pub(crate) fn new(capacity: u64, window_scale: u8) -> Self {
        RecvQueue {
            nxt: 1,
            read: 1,
            capacity,
            charges_out_of_order: false,
            offered: u64::MAX,
            announced: capacity,
            promised: 1 + capacity,
            slack: (1 << window_scale) - 1,
            ready: VecDeque::new(),
            out_of_order: Reassembly::default(),
            fin: None,
        }
    }

    /// The same whose window shrinks by what lies beyond a hole.
    pub(crate) fn charging_out_of_order(self, charges_out_of_order: bool) -> Self {
        RecvQueue { charges_out_of_order, ..self }
    }

    /// The same of which no more is offered at first.
    pub(crate) fn offering_at_first(mut self, octets: Option<u64>) -> Self {
        self.offered = octets.unwrap_or(u64::MAX);
        self.announced = self.announced.min(self.offered);
        self.promised = 1 + self.announced;
        self
    }

    /// Offer no more than so many octets of the buffer from now on. What is promised remains so.
    pub(crate) fn offer(&mut self, octets: u64) {
        self.offered = octets;
    }

    /// Give back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.ready.shrink_to_fit();
        self.out_of_order.release_memory();
    }

    /// DATA_ACK as an offset.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Octets that the application has read.
    pub(crate) fn octets_read(&self) -> u64 {
        self.read - 1
    }

    /// Size of the buffer in octets.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Let the buffer grow to this many octets; it never shrinks.
    pub(crate) fn grow_to(&mut self, capacity: u64) {
        self.capacity = self.capacity.max(capacity);
    }

    /// Octets from DATA_ACK to the promised edge. RFC 8684 §3.3.4.
    pub(crate) fn promised_window(&self) -> u64 {
        self.promised.saturating_sub(self.nxt)
    }

    /// Octets from DATA_ACK that are accepted: what rounding the window field may have promised
    /// beyond the edge is honoured.
    pub(crate) fn accepted_window(&self) -> u64 {
        self.promised_window() + self.slack
    }

    /// Is what the application has not read in so many pieces that no more is accepted?
    pub(crate) fn is_crowded(&self) -> bool {
        self.ready.len() >= most_pieces(self.capacity)
    }

    /// Arrivals so far that had to be put in their place by a search.
    pub(crate) fn strays_so_far(&self) -> u64 {
        self.out_of_order.strays_so_far()
    }

    /// Octets held until something earlier arrives.
    pub(crate) fn out_of_order_octets(&self) -> u64 {
        self.out_of_order.octets()
    }

    /// Take data that came, in the order of the subflow, on the subflow in `slot`. RFC 8684 §3.8.
    pub(crate) fn take(&mut self, slot: u8, start: u64, payload: Payload) -> Taken {
        let end = start + payload.len() as u64;
        if end <= self.nxt {
            return Taken::Duplicate;
        }
        if end > self.promised + self.slack {
            return Taken::OutsideWindow;
        }
        if start > self.nxt {
            if self.out_of_order.pieces() >= most_pieces(self.capacity) {
                return Taken::OutsideWindow;
            }
            self.out_of_order.insert(usize::from(slot), start, payload);
            return Taken::Waiting;
        }
        let payload = if start == self.nxt {
            payload
        } else {
            payload.slice((self.nxt - start) as usize, payload.len())
        };
        self.deliver(payload);
        while let Some(payload) = self.out_of_order.pop(self.nxt) {
            self.deliver(payload);
        }
        self.take_fin();
        Taken::Delivered
    }

    fn deliver(&mut self, payload: Payload) {
        self.nxt += payload.len() as u64;
        self.ready.push_back(payload);
    }

    /// The next offset of data expected.
    pub(crate) fn next_data(&self) -> u64 {
        self.nxt - u64::from(self.is_complete())
    }

    /// The stream goes on as the one subflow's: what was held beyond a hole comes again there. A
    /// DATA_FIN that was not reached counts no more: the subflow's FIN will end the stream.
    /// RFC 8684 §3.7.
    pub(crate) fn become_plain(&mut self) {
        self.out_of_order.clear();
        if !self.is_complete() {
            self.fin = None;
        }
    }

    /// Plain TCP: the next octets of the stream. The subflow has acknowledged them, so that they
    /// are taken whatever was promised.
    pub(crate) fn append(&mut self, payload: Payload) {
        if !self.is_complete() {
            self.deliver(payload);
            self.promised = self.promised.max(self.nxt);
        }
    }

    /// The peer's DATA_FIN occupies `offset`. True if it completes the stream. RFC 8684 §3.3.3.
    pub(crate) fn set_fin(&mut self, offset: u64) -> bool {
        if self.fin.is_none() && offset >= self.nxt && offset <= self.promised + self.slack {
            self.fin = Some(offset);
        }
        self.take_fin()
    }

    fn take_fin(&mut self) -> bool {
        let complete = self.fin == Some(self.nxt);
        if complete {
            self.nxt += 1;
        }
        complete
    }

    /// Has everything arrived, the DATA_FIN included?
    pub(crate) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// The next data in order.
    pub(crate) fn read(&mut self) -> Option<Payload> {
        let payload = self.ready.pop_front()?;
        self.read += payload.len() as u64;
        Some(payload)
    }

    /// Nobody will read what is there.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.out_of_order.clear();
    }

    /// Is there something to read?
    pub(crate) fn has_data(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Up to where the window would reach now.
    fn edge(&self) -> u64 {
        let charged = if self.charges_out_of_order { self.out_of_order.octets() } else { 0 };
        (self.read + self.capacity.min(self.offered)).saturating_sub(charged)
    }

    /// The least step of the edge.
    fn worthwhile(&self, mss: u64) -> u64 {
        mss.min(self.capacity.min(self.offered) / 2).max(1)
    }

    /// The window to announce now. The promised edge moves only by a worthwhile step, so that
    /// the sender is not drawn into small segments. RFC 9293 §3.8.6.2.2. `mss` is asked for where it counts.
    pub(crate) fn announce(&mut self, mss: impl FnOnce() -> u64) -> u64 {
        self.promise(self.edge(), mss)
    }

    fn promise(&mut self, edge: u64, mss: impl FnOnce() -> u64) -> u64 {
        if edge > self.promised && edge >= self.promised + self.worthwhile(mss()) {
            self.promised = edge;
        }
        self.announced = self.promised_window();
        self.announced
    }

    /// The edge to announce with what came last, if that is to be before the application has read all
    /// of it: Linux acknowledges when it has read for the first time. Linux 6.18, `mptcp_cleanup_rbuf`.
    pub(crate) fn early_edge(&self) -> Option<u64> {
        let early = self.charges_out_of_order && self.nxt - self.read > READ;
        early.then(|| self.edge() + READ)
    }

    /// The window to announce now, up to that edge.
    pub(crate) fn announce_up_to(&mut self, edge: u64, mss: impl FnOnce() -> u64) -> u64 {
        self.promise(edge.min(self.edge()), mss)
    }

    /// Has the application read so much that the window would at least double? Then the peer may
    /// be waiting, and is told on every subflow. What the peer knows of the window is what is left of
    /// it up to the promised edge; Linux takes what it announced last.
    pub(crate) fn update_is_due(&self, mss: impl FnOnce() -> u64) -> bool {
        let edge = self.edge();
        let known = if self.charges_out_of_order { self.announced } else { self.promised_window() };
        edge > self.promised
            && edge.saturating_sub(self.nxt) >= 2 * known
            && edge >= self.promised + self.worthwhile(mss())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Piece;

    fn pattern(start: u64, len: u32) -> Payload {
        Payload::from(Piece::pattern(start, len))
    }

    #[test]
    fn data_of_two_subflows_comes_out_in_order() {
        let mut queue = RecvQueue::new(10_000, 0);
        assert_eq!(queue.take(1, 1001, pattern(1001, 1000)), Taken::Waiting);
        assert_eq!(queue.take(0, 1, pattern(1, 1000)), Taken::Delivered);
        assert_eq!(queue.take(0, 1001, pattern(1001, 1000)), Taken::Duplicate);
        let mut next = 1;
        while let Some(payload) = queue.read() {
            assert!(payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        assert_eq!(next, 2001);
    }

    #[test]
    fn what_fills_a_hole_is_acknowledged_after_the_first_read_as_linux_does() {
        let window_after = |charges: bool, beyond: u32| {
            let mut queue = RecvQueue::new(200_000, 0).charging_out_of_order(charges);
            queue.take(0, 1001, pattern(1001, beyond));
            assert_eq!(queue.early_edge(), None, "there is nothing to read");
            assert_eq!(queue.announce(|| 1000), 200_000);
            queue.take(1, 1, pattern(1, 1000));
            let edge = queue.early_edge()?;
            assert_eq!(queue.announce_up_to(edge, || 1000), 199_000 - u64::from(beyond), "unread");
            while queue.read().is_some() {}
            Some(queue.announce_up_to(edge, || 1000))
        };
        assert_eq!(window_after(true, 150_000), Some(200_000 - (151_000 - READ)));
        assert_eq!(window_after(true, 60_000), None, "one read takes all");
        assert_eq!(window_after(false, 150_000), None);
    }

    #[test]
    fn the_promised_edge_never_moves_back_and_opens_in_worthwhile_steps() {
        // RFC 8684 §3.3.4
        let mut queue = RecvQueue::new(10_000, 0);
        queue.take(0, 1, pattern(1, 1000));
        assert_eq!(queue.announce(|| 1000), 9_000);
        queue.read();
        assert_eq!(queue.announce(|| 1000), 10_000);
        queue.take(0, 1001, pattern(1001, 500));
        queue.read();
        assert_eq!(queue.announce(|| 1000), 9_500);
    }

    #[test]
    fn a_window_that_doubles_is_worth_an_update() {
        let mut queue = RecvQueue::new(10_000, 0);
        queue.take(0, 1, pattern(1, 8_000));
        assert!(!queue.update_is_due(|| 1000));
        queue.read();
        assert!(queue.update_is_due(|| 1000));
    }

    #[test]
    fn a_window_of_free_buffer_stands_still_while_data_waits_beyond_a_hole() {
        // As Linux has it: 4,000 octets beyond the hole take up buffer, and their place in the window.
        let mut queue = RecvQueue::new(10_000, 0).charging_out_of_order(true);
        assert_eq!(queue.announce(|| 1000), 10_000);
        queue.take(0, 4_001, pattern(4_001, 4_000));
        for octets in [1_000, 3_000] {
            queue.take(1, octets - 999, pattern(octets - 999, 1_000));
            queue.read();
            let start = queue.nxt();
            queue.take(1, start, pattern(start, octets as u32 - 1_000));
            queue.read();
            assert_eq!(queue.announce(|| 1000), 10_000 - octets, "the edge stays");
        }
        // The hole is filled, but 10,000 octets are no twice of the 7,000 announced last.
        queue.take(1, 3_001, pattern(3_001, 1_000));
        while queue.read().is_some() {}
        assert!(!queue.update_is_due(|| 1000));
        assert_eq!(queue.announce(|| 1000), 10_000);
    }

    #[test]
    fn data_beyond_the_promise_is_refused() {
        // RFC 8684 §3.8
        let mut queue = RecvQueue::new(1_000, 0);
        assert_eq!(queue.take(0, 501, pattern(501, 600)), Taken::OutsideWindow);
        // A window field in units of 8 octets may have said 7 more: 1001 + 7 is the first that cannot be.
        for (data_fin, taken) in [(1009, false), (1008, true)] {
            let mut queue = RecvQueue::new(1_000, 3);
            queue.set_fin(data_fin);
            assert_eq!(queue.take(0, 1, pattern(1, 1008)), Taken::OutsideWindow);
            assert_eq!(queue.take(0, 1, pattern(1, 1007)), Taken::Delivered);
            assert_eq!(queue.is_complete(), taken, "{data_fin}");
        }
    }

    #[test]
    fn the_window_of_a_buffer_of_less_than_two_segments_opens_by_half_of_it() {
        // RFC 9293 §3.8.6.2.2: MIN(Fr * RCV.BUFF, Eff.snd.MSS), Fr = 1/2
        let mut queue = RecvQueue::new(1_000, 0);
        for start in [1, 501] {
            queue.take(0, start, pattern(start, 500));
        }
        assert!(queue.announce(|| 1400) == 0 && !queue.update_is_due(|| 1400));
        queue.read();
        assert!(queue.update_is_due(|| 1400));
        assert_eq!(queue.announce(|| 1400), 500);
    }

    #[test]
    fn what_is_offered_of_the_buffer_grows_at_once_and_shrinks_as_data_comes() {
        let mut queue = RecvQueue::new(10_000, 0).offering_at_first(Some(8_000));
        assert_eq!((queue.announce(|| 1000), queue.promised_window()), (8_000, 8_000));
        queue.offer(u64::MAX);
        assert_eq!(queue.announce(|| 1000), 10_000);
        queue.offer(8_000);
        assert_eq!(queue.announce(|| 1000), 10_000, "the edge stays");
        queue.take(0, 1, pattern(1, 5_000));
        while queue.read().is_some() {}
        assert_eq!(queue.announce(|| 1000), 8_000);
    }

    #[test]
    fn the_data_fin_completes_the_stream_after_all_data() {
        // RFC 8684 §3.3.3
        let mut queue = RecvQueue::new(10_000, 0);
        assert!(!queue.set_fin(1001));
        queue.take(0, 1, pattern(1, 1000));
        assert!(queue.is_complete());
        assert_eq!(queue.nxt(), 1002);
    }

    #[test]
    fn on_the_way_to_tcp_a_data_fin_counts_only_if_it_was_reached() {
        // RFC 8684 §3.7
        for reached in [true, false] {
            let mut queue = RecvQueue::new(10_000, 0);
            queue.set_fin(1001);
            let octets = if reached { 1000 } else { 500 };
            queue.take(0, 1, pattern(1, octets));
            queue.take(0, 2001, pattern(2001, 100));
            queue.become_plain();
            queue.append(pattern(501, 600));
            assert_eq!(queue.is_complete(), reached);
            assert_eq!(queue.next_data(), if reached { 1001 } else { 1101 });
            assert_eq!(queue.out_of_order_octets(), 0, "that comes again");
        }
    }
}
