//! The sending side of the data level: what the application wrote, and what the peer's window and
//! Nagle's rule let go out.

use anabranch_wire::{Duration, Instant, Piece};

use super::send_queue::SendQueue;
use crate::platform::ShortSegments;

/// Half of the data sequence numbers of 4 bytes.
const HALF_OF_NUMBERS: u64 = 1 << 31;
/// RFC 9293 §3.4.2: the maximum segment lifetime.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(120);

pub(super) struct Sender {
    pub(super) queue: SendQueue,
    /// Data offset up to which the peer lets this host send.
    edge: u64,
    /// The wait for a window worth using is over. RFC 9293 §3.8.6.2.1.
    small_window_due: bool,
    /// Data offset after the last short segment, for Nagle's rule.
    short_end: u64,
    /// The application's last write found no room.
    writer_waits: bool,
    /// Data sequence numbers of 4 bytes may wrap too soon: those of 8 are sent.
    wide: bool,
    /// Data offset from which the engine checks the wrap time again.
    check_wrap_from: u64,
    /// Time of the last check.
    wrap_checked_at: Instant,
}

impl Sender {
    pub(super) fn new(queue: SendQueue) -> Self {
        Sender {
            queue,
            edge: 1,
            small_window_due: false,
            short_end: 0,
            writer_waits: false,
            wide: false,
            check_wrap_from: 0,
            wrap_checked_at: Instant::ZERO,
        }
    }

    /// Accept as much of `piece` as there is room for; returns how many bytes.
    pub(super) fn write(&mut self, piece: Piece) -> usize {
        let offered = piece.len();
        let accepted = self.queue.write(piece);
        self.writer_waits = accepted < offered;
        accepted
    }

    /// Did the application's last write find no room?
    #[inline]
    pub(super) fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// True once when an application that waits for room can write again.
    #[inline]
    pub(super) fn take_writer_wakeup(&mut self) -> bool {
        let wakes = self.writer_waits && self.queue.room() > 0;
        self.writer_waits &= !wakes;
        wakes
    }

    /// Bytes that the peer's window admits.
    #[inline]
    pub(super) fn window_room(&self) -> u64 {
        self.edge.saturating_sub(self.queue.nxt())
    }

    /// Bytes that may be outstanding: the peer's window, or the buffer if that is smaller.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.queue.una()).min(self.queue.buffer().capacity())
    }

    /// A segment's bytes, or what is left of the peer's window.
    #[inline]
    pub(super) fn up_to_edge(&self, len: u64) -> u64 {
        match self.window_room() {
            0 => len,
            room => room.min(len),
        }
    }

    /// The peer offers `window` bytes from `acknowledged` on. RFC 8684 §3.3.5: only a larger edge
    /// counts, since segments of different subflows overtake each other. True if it is one.
    #[inline]
    pub(super) fn widen(&mut self, acknowledged: u64, window: u64) -> bool {
        let before = self.edge;
        self.edge = before.max(acknowledged + window);
        self.edge > before
    }

    /// Plain TCP, where the subflow decides which windows count: the peer's ends at `edge`.
    #[inline]
    pub(super) fn set_edge(&mut self, edge: u64) {
        self.edge = edge;
    }

    /// Has the peer offered no window yet?
    #[inline]
    pub(super) fn has_no_window(&self) -> bool {
        self.edge == 1
    }

    /// RFC 9293 §3.8.6.2.1: nothing is under way that could open the window further. Is its `room`
    /// to be used? At once if that is half of the largest window, and otherwise after a pause.
    pub(super) fn take_small_window(&mut self, room: u64, largest: u64) -> bool {
        let due = std::mem::take(&mut self.small_window_due);
        room > 0 && (due || 2 * room >= largest)
    }

    /// A small window has had its time to grow.
    pub(super) fn use_small_window(&mut self) {
        self.small_window_due = true;
    }

    /// The peer has acknowledged data.
    pub(super) fn on_progress(&mut self) {
        self.small_window_due = false;
    }

    /// What was mapped or assigned last made a short segment.
    #[inline]
    pub(super) fn went_short(&mut self) {
        self.short_end = self.queue.nxt();
    }

    /// For Nagle's rule, RFC 9293 §3.7.4: what was sent, and which of it short.
    #[inline]
    pub(super) fn short_segments(&self) -> ShortSegments {
        ShortSegments {
            sent_end: self.queue.nxt(),
            short_end: self.short_end,
            writer_waits: self.writer_waits,
        }
    }

    /// Are numbers of 8 bytes sent?
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// RFC 8684 §3.3.1: numbers of 4 bytes will not do if they could wrap within a segment's
    /// lifetime. Whoever sends less than half of them in that time is far from it. Returns
    /// true if this host sends numbers of 8 bytes from now on.
    #[inline]
    pub(super) fn check_number_width(&mut self, now: Instant) -> bool {
        self.queue.nxt() >= self.check_wrap_from && self.check_wrap(now)
    }

    fn check_wrap(&mut self, now: Instant) -> bool {
        let first = self.check_wrap_from == 0;
        let since = std::mem::replace(&mut self.wrap_checked_at, now);
        self.check_wrap_from = self.queue.nxt() + HALF_OF_NUMBERS;
        let soon = !first && now.saturating_since(since) < SEGMENT_LIFETIME;
        let news = soon && !self.wide;
        self.wide |= soon;
        news
    }

    /// The stream goes on as the one subflow's. RFC 8684 §3.7.
    pub(super) fn become_plain(&mut self) {
        self.queue.become_plain();
        self.short_end = self.short_end.min(self.queue.nxt());
    }
}
