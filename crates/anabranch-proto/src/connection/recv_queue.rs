//! The receiving side of the data level: one stream and one window, on whatever subflow data
//! arrives.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_wire::Payload;

use crate::platform::{ReceiveWindow, RecvQueueState};
use crate::reassembly::{Reassembly, join_later_half, most_pieces};
use crate::view::Slot;

/// Offsets are 64-bit, from 0 for the peer's IDSN.
#[derive(Debug)]
pub(crate) struct RecvQueue {
    /// DATA_ACK: the next offset expected.
    nxt: u64,
    /// Next offset that the application reads.
    read: u64,
    window: ReceiveWindow,
    ready: VecDeque<Payload>,
    out_of_order: Reassembly,
    fin: Option<u64>,
}

/// The effect of data that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The application can read more.
    Delivered,
    /// The data waits for earlier data.
    Waiting,
    /// The data had been received before.
    Duplicate,
    /// The data lies outside the window, or beyond the end of the stream.
    OutsideWindow,
}

impl RecvQueue {
    pub(crate) fn new(window: ReceiveWindow) -> Self {
        RecvQueue {
            nxt: 1,
            read: 1,
            window,
            ready: VecDeque::new(),
            out_of_order: Reassembly::default(),
            fin: None,
        }
    }

    /// The window offered to the peer.
    pub(crate) fn window(&self) -> &ReceiveWindow {
        &self.window
    }

    /// The window offered to the peer, for changes.
    pub(crate) fn window_mut(&mut self) -> &mut ReceiveWindow {
        &mut self.window
    }

    fn held(&self) -> RecvQueueState {
        RecvQueueState { read: self.read, nxt: self.nxt, out_of_order: self.out_of_order.bytes() }
    }

    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.ready.shrink_to_fit();
        self.out_of_order.release_memory();
    }

    /// DATA_ACK as an offset.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes that the application has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read - 1
    }

    /// Number of bytes that are accepted from DATA_ACK on.
    pub(crate) fn accepted_window(&self) -> u64 {
        self.window.accepted(self.held())
    }

    /// Number of bytes from DATA_ACK to the edge of the window that was advertised.
    pub(crate) fn promised_window(&self) -> u64 {
        self.window.promised_from(self.held())
    }

    /// Number of arrivals so far that required a search for their place.
    pub(crate) fn strays_so_far(&self) -> u64 {
        self.out_of_order.strays_so_far()
    }

    /// The ranges that wait for earlier data.
    pub(crate) fn out_of_order(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.out_of_order.ranges()
    }

    /// Bytes that wait for earlier data.
    pub(crate) fn out_of_order_bytes(&self) -> u64 {
        self.out_of_order.bytes()
    }

    /// Accept data that arrived on the subflow in `slot`, in the order of the subflow. RFC 8684
    /// §3.8.
    pub(crate) fn insert(&mut self, slot: Slot, start: u64, payload: Payload) -> Inserted {
        let end = start + payload.len() as u64;
        if end <= self.nxt {
            return Inserted::Duplicate;
        }
        if end > self.window.limit() || self.fin.is_some_and(|fin| end > fin) {
            return Inserted::OutsideWindow;
        }
        if start > self.nxt {
            if self.out_of_order.pieces() >= most_pieces(self.window.capacity()) {
                return Inserted::OutsideWindow;
            }
            self.out_of_order.insert(slot.index(), start, payload);
            return Inserted::Waiting;
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
        self.on_fin();
        Inserted::Delivered
    }

    fn deliver(&mut self, payload: Payload) {
        self.nxt += payload.len() as u64;
        self.ready.push_back(payload);
        if self.ready.len() > most_pieces(self.window.capacity()) {
            // Data that arrived in order belongs to the application.
            join_later_half(&mut self.ready);
        }
    }

    /// The next data offset expected.
    pub(crate) fn next_data(&self) -> u64 {
        self.nxt - u64::from(self.is_complete())
    }

    /// The stream continues as that of the sole subflow, where data held beyond a hole arrives
    /// again. A DATA_FIN that was not reached no longer counts: the subflow's FIN ends the stream.
    /// RFC 8684 §3.7.
    pub(crate) fn become_plain(&mut self) {
        self.out_of_order.clear();
        if !self.is_complete() {
            self.fin = None;
        }
    }

    /// Plain TCP: append the next bytes of the stream. The subflow has acknowledged them, so they
    /// are accepted whatever the window.
    pub(crate) fn append(&mut self, payload: Payload) {
        if !self.is_complete() {
            self.deliver(payload);
            self.window.pass(self.nxt);
        }
    }

    /// The peer's DATA_FIN occupies `offset`. Returns true if it completes the stream. RFC 8684
    /// §3.3.3. A DATA_FIN before data that has arrived is ignored.
    pub(crate) fn set_fin(&mut self, offset: u64) -> bool {
        if self.fin.is_none()
            && (self.nxt..=self.window.limit()).contains(&offset)
            && self.out_of_order.ranges().all(|held| held.end <= offset)
        {
            self.fin = Some(offset);
        }
        self.on_fin()
    }

    fn on_fin(&mut self) -> bool {
        let complete = self.fin == Some(self.nxt);
        if complete {
            self.nxt += 1;
        }
        complete
    }

    /// Returns `true` if everything has arrived, including the DATA_FIN.
    pub(crate) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// The next in-order data.
    pub(crate) fn read(&mut self) -> Option<Payload> {
        let payload = self.ready.pop_front()?;
        self.read += payload.len() as u64;
        Some(payload)
    }

    /// Discard the data, because no application will read it.
    pub(crate) fn discard(&mut self) {
        self.ready.clear();
        self.out_of_order.clear();
    }

    /// Returns `true` if data was discarded that the application has not read.
    pub(crate) fn has_discarded(&self) -> bool {
        self.ready.is_empty() && self.read < self.fin.map_or(self.nxt, |fin| fin.min(self.nxt))
    }

    /// Returns `true` if the application can read data.
    pub(crate) fn has_data(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns `true` if the application has read all that counts as received. To Linux,
    /// out-of-order data counts as well (`mptcp_cleanup_rbuf`).
    pub(crate) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.window.is_drained(self.held())
    }

    /// Returns `true` if less than half of the buffer is free.
    pub(crate) fn is_half_full(&self) -> bool {
        self.window.is_half_full(self.held())
    }

    /// The window to advertise now, and whether the host should tell the peer on every subflow that
    /// it has opened. Full segments have `mss` bytes.
    #[inline]
    pub(crate) fn poll_window(&mut self, mss: u64) -> (u64, bool) {
        self.window.poll(self.held(), mss)
    }

    /// The edge to advertise with the latest data, if that should happen before the application has
    /// read all of it. Full segments have `full` bytes.
    pub(crate) fn early_edge(&self, full: u32) -> Option<u64> {
        self.window.early_edge(self.held(), full)
    }

    /// The window to advertise now, up to the given edge.
    pub(crate) fn advertise_up_to(&mut self, edge: u64, mss: u64) -> u64 {
        self.window.promise(self.held(), edge, mss)
    }

    /// A segment has advertised this window.
    pub(crate) fn on_advertised(&mut self, window: u64) {
        self.window.on_advertised(self.held(), window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::BufferModel;
    use anabranch_wire::Piece;

    fn queue_of(capacity: u64, scale: u8) -> RecvQueue {
        RecvQueue::new(
            ReceiveWindow::new(&BufferModel::PAYLOAD, false, Some(capacity)).scaled_by(scale),
        )
    }

    fn pattern(start: u64, len: u32) -> Payload {
        Payload::from(Piece::pattern(start, len))
    }

    #[test]
    fn data_of_two_subflows_comes_out_in_order() {
        let mut queue = queue_of(10_000, 0);
        assert_eq!(queue.insert(Slot(1), 1001, pattern(1001, 1000)), Inserted::Waiting);
        assert_eq!(queue.insert(Slot(0), 1, pattern(1, 1000)), Inserted::Delivered);
        assert_eq!(queue.insert(Slot(0), 1001, pattern(1001, 1000)), Inserted::Duplicate);
        let mut next = 1;
        while let Some(payload) = queue.read() {
            assert!(payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        assert_eq!(next, 2001);
    }

    #[test]
    fn data_in_order_is_taken_in_however_many_pieces_it_comes() {
        const BYTES: u64 = 10_000;
        let mut queue = queue_of(BYTES, 0);
        for start in 1..=BYTES {
            assert_eq!(queue.insert(Slot(0), start, pattern(start, 1)), Inserted::Delivered);
            assert!(queue.ready.len() <= most_pieces(BYTES));
        }
        let mut next = 1;
        while let Some(payload) = queue.read() {
            assert!(payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        assert_eq!(next, 1 + BYTES);
    }

    #[test]
    fn data_beyond_the_end_of_the_stream_is_refused() {
        // RFC 8684 §3.3.3: the DATA_FIN is the last of the stream.
        let mut queue = queue_of(10_000, 0);
        queue.set_fin(1001);
        assert_eq!(queue.insert(Slot(0), 1, pattern(1, 1001)), Inserted::OutsideWindow);
        assert_eq!(queue.insert(Slot(0), 1002, pattern(1002, 5)), Inserted::OutsideWindow);
        assert_eq!(queue.insert(Slot(0), 1, pattern(1, 1000)), Inserted::Delivered);
        assert!(queue.is_complete());
        assert_eq!(queue.insert(Slot(0), 1002, pattern(1002, 5)), Inserted::OutsideWindow);
        assert_eq!(queue.next_data(), 1001);
        // The data is there first.
        let mut queue = queue_of(10_000, 0);
        assert_eq!(queue.insert(Slot(0), 501, pattern(501, 1500)), Inserted::Waiting);
        queue.set_fin(1001);
        assert_eq!(queue.insert(Slot(0), 1, pattern(1, 500)), Inserted::Delivered);
        assert!(!queue.is_complete() && queue.nxt() == 2001);
        assert!(queue.set_fin(2001) && queue.next_data() == 2001);
    }

    #[test]
    fn data_beyond_the_promise_is_refused() {
        // RFC 8684 §3.8
        let mut queue = queue_of(1_000, 0);
        assert_eq!(queue.insert(Slot(0), 501, pattern(501, 600)), Inserted::OutsideWindow);
        // A window field in units of 8 bytes may have advertised 7 more bytes: 1001 + 7 is the last
        // possible offset.
        for (data_fin, taken) in [(1009, false), (1008, true)] {
            let mut queue = queue_of(1_000, 3);
            queue.set_fin(data_fin);
            assert_eq!(queue.insert(Slot(0), 1, pattern(1, 1008)), Inserted::OutsideWindow);
            assert_eq!(queue.insert(Slot(0), 1, pattern(1, 1007)), Inserted::Delivered);
            assert_eq!(queue.is_complete(), taken, "{data_fin}");
        }
    }

    #[test]
    fn the_data_fin_completes_the_stream_after_all_data() {
        // RFC 8684 §3.3.3
        let mut queue = queue_of(10_000, 0);
        assert!(!queue.set_fin(1001));
        queue.insert(Slot(0), 1, pattern(1, 1000));
        assert!(queue.is_complete());
        assert_eq!(queue.nxt(), 1002);
    }

    #[test]
    fn on_the_way_to_tcp_a_data_fin_counts_only_if_it_was_reached() {
        // RFC 8684 §3.7
        for reached in [true, false] {
            let mut queue = queue_of(10_000, 0);
            queue.set_fin(1001);
            let bytes = if reached { 1000 } else { 500 };
            queue.insert(Slot(0), 1, pattern(1, bytes));
            queue.insert(Slot(0), 2001, pattern(2001, 100));
            queue.become_plain();
            queue.append(pattern(501, 600));
            assert_eq!(queue.is_complete(), reached);
            assert_eq!(queue.next_data(), if reached { 1001 } else { 1101 });
            assert_eq!(queue.out_of_order_bytes(), 0, "the subflow carries that data again");
        }
    }
}
