//! The sending side of the data level: the data that the application wrote, and the limits by the
//! peer's window and Nagle's algorithm.

use anabranch_wire::{Duration, Instant, Piece};

use super::send_queue::SendQueue;
use crate::platform::{OptionForm, ShortSegments};

/// Half of the 4-byte data sequence number space.
const HALF_OF_NUMBERS: u64 = 1 << 31;
/// RFC 9293 §3.4.2: the maximum segment lifetime.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(120);

pub(super) struct Sender {
    pub(super) queue: SendQueue,
    /// Data offset up to which the peer lets this host send.
    edge: u64,
    /// The pause before using a small window has ended. RFC 9293 §3.8.6.2.1.
    small_window_due: bool,
    /// Data offset after the last short segment, for Nagle's algorithm.
    short_end: u64,
    /// The application's last write found no room.
    writer_waits: bool,
    /// The application has written since the scheduler was last asked about new data.
    written: bool,
    /// This host sends 8-byte data sequence numbers: always, or because 4-byte ones may wrap too
    /// soon.
    wide: bool,
    /// Data offset from which the engine checks the wrap time again.
    check_wrap_from: u64,
    /// Time of the last check.
    wrap_checked_at: Instant,
}

impl Sender {
    pub(super) fn new(queue: SendQueue, options: OptionForm) -> Self {
        Sender {
            queue,
            edge: 1,
            small_window_due: false,
            short_end: 0,
            writer_waits: false,
            written: false,
            wide: options == OptionForm::Long,
            check_wrap_from: 0,
            wrap_checked_at: Instant::ZERO,
        }
    }

    /// Accept as much of `piece` as there is room for. Returns the number of bytes accepted.
    pub(super) fn write(&mut self, piece: Piece) -> usize {
        let offered = piece.len();
        let accepted = self.queue.write(piece);
        self.writer_waits = accepted < offered;
        self.written = accepted > 0;
        accepted
    }

    /// Returns `true` if the application has written since the last call.
    pub(super) fn take_written(&mut self) -> bool {
        std::mem::take(&mut self.written)
    }

    /// Returns `true` if the application's last write found no room.
    #[inline]
    pub(super) fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// Returns true once when an application that waits for room can write again.
    #[inline]
    pub(super) fn take_writer_wakeup(&mut self) -> bool {
        let wakes = self.writer_waits && self.queue.wakes_writer();
        self.writer_waits &= !wakes;
        wakes
    }

    /// Returns `true` if everything written was sent and the application does not wait for room.
    #[inline]
    pub(super) fn has_nothing_left(&self) -> bool {
        let assigned = self.queue.assigned().iter().any(|bytes| *bytes > 0);
        self.queue.unsent() == 0 && !assigned && !self.writer_waits
    }

    /// Number of bytes that the peer's window admits.
    #[inline]
    pub(super) fn available_window(&self) -> u64 {
        self.edge.saturating_sub(self.queue.nxt())
    }

    /// Limit of the outstanding data: the peer's window, or the send buffer if that is smaller.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.queue.una()).min(self.queue.buffer().capacity())
    }

    /// `len` bytes, or the rest of the peer's window if that is smaller.
    #[inline]
    pub(super) fn up_to_edge(&self, len: u64) -> u64 {
        match self.available_window() {
            0 => len,
            available => available.min(len),
        }
    }

    /// The peer offers `window` bytes from `acknowledged` on. RFC 8684 §3.3.5: only a larger edge
    /// counts, because segments of different subflows overtake each other. Returns true if the edge
    /// moves.
    #[inline]
    pub(super) fn widen(&mut self, acknowledged: u64, window: u64) -> bool {
        let before = self.edge;
        self.edge = before.max(acknowledged + window);
        self.edge > before
    }

    /// In plain TCP, the subflow decides which windows are valid; the peer's window ends at `edge`.
    #[inline]
    pub(super) fn set_edge(&mut self, edge: u64) {
        self.edge = edge;
    }

    /// Returns `true` if the peer has not offered a window yet.
    #[inline]
    pub(super) fn has_no_window(&self) -> bool {
        self.edge == 1
    }

    /// RFC 9293 §3.8.6.2.1: no data is in flight that could open the window further. Should the
    /// sender use its `available`? It does so at once if that is half of the largest window, otherwise
    /// after a pause.
    pub(super) fn may_use_small_window(&mut self, available: u64, largest: u64) -> bool {
        let due = std::mem::take(&mut self.small_window_due);
        available > 0 && (due || 2 * available >= largest)
    }

    /// The pause during which a small window could have grown has ended.
    pub(super) fn use_small_window(&mut self) {
        self.small_window_due = true;
    }

    /// The peer has acknowledged data.
    pub(super) fn on_progress(&mut self) {
        self.small_window_due = false;
    }

    /// The data mapped or assigned last ended with a short segment.
    #[inline]
    pub(super) fn went_short(&mut self) {
        self.short_end = self.queue.nxt();
    }

    /// State for Nagle's algorithm, RFC 9293 §3.7.4: the data sent, and the last short segment.
    #[inline]
    pub(super) fn short_segments(&self) -> ShortSegments {
        ShortSegments {
            sent_end: self.queue.nxt(),
            short_end: self.short_end,
            writer_waits: self.writer_waits,
        }
    }

    /// Returns `true` if this host sends 8-byte data sequence numbers.
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// RFC 8684 §3.3.1: 4-byte numbers are insufficient if they could wrap within a segment's
    /// lifetime. A sender that uses less than half of them in that time is safe. Returns true if
    /// this host changes to 8-byte numbers now.
    #[inline]
    pub(super) fn check_number_width(&mut self, now: Instant) -> bool {
        self.number_width_is_due() && self.check_wrap(now)
    }

    /// Returns `true` if [`Sender::check_number_width`] will check it.
    #[inline]
    pub(super) fn number_width_is_due(&self) -> bool {
        self.queue.nxt() >= self.check_wrap_from
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

    /// The stream continues as that of the sole subflow. RFC 8684 §3.7.
    pub(super) fn become_plain(&mut self) {
        self.queue.become_plain();
        self.short_end = self.short_end.min(self.queue.nxt());
    }
}
