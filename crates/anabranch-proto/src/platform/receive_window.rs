//! The window that a connection offers its peer: where it ends, and when that is worth saying.
//!
//! Offsets are those of the data level. The promised edge never moves back (RFC 8684 §3.3.5).

use anabranch_wire::Instant;

use super::linux::{self, ReadRounds, Reading};
use super::{BufferModel, Buffers, Incoming, RecvQueueState, SocketMemory};

/// Capacity of the receive buffer after [`ReceiveWindow::open`].
#[derive(Clone, Copy, Debug)]
enum FullSize {
    Largest,
    /// It starts at its first size, and grows by tuning.
    Tuned,
}

/// The receive window of a connection.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    sizes: Buffers,
    memory: &'static SocketMemory,
    /// Bytes of payload that the buffer holds. A window is smaller than 2^30 bytes (RFC 7323 §2.3).
    capacity: u32,
    /// Upper bound of the capacity.
    most: u32,
    /// Present while the buffer has only its first size.
    unopened: Option<FullSize>,
    /// Whether less than the buffer is offered, because a subflow has brought no data.
    offers_less: bool,
    /// Largest distance that the window reaches beyond acknowledged data: it opens with the data
    /// that arrives.
    opened: u32,
    /// Data that the application reads in a round-trip time, where the window depends on that.
    reading: Option<Box<ReadRounds>>,
    /// The window advertised last.
    advertised: u32,
    /// The window's edge as the peer knows it.
    promised: u64,
    /// The window is advertised in units of `1 << scale` bytes.
    scale: u8,
    /// Bytes that wait beyond a hole in the subflow of a TCP connection, whose only queue that is.
    waiting_below: u32,
}

impl ReceiveWindow {
    /// The window of a buffer of `requested` bytes, as the model counts them. `is_tcp`: the
    /// connection is plain TCP.
    pub(crate) fn new(buffers: &BufferModel, is_tcp: bool, requested: Option<u64>) -> Self {
        let BufferModel { sizes, memory, tuning } = *buffers;
        let (capacity, most) =
            match (sizes, requested.map(|asked| memory.receive_buffer(asked, is_tcp))) {
                (Buffers::Payload, _) => {
                    [requested.unwrap_or(tuning.largest_receive.into()); 2].into()
                }
                (Buffers::Socket, Some(granted)) => (granted, granted),
                (Buffers::Socket, None) => memory.tuned_receive_buffer(&tuning, is_tcp).into(),
            };
        let scale = match sizes {
            Buffers::Payload => smallest_scale(most),
            Buffers::Socket => linux::window_scale(&tuning, requested),
        };
        let counts_memory = sizes == Buffers::Socket;
        let at_first = within_u32(memory.offered_at_first(capacity, is_tcp));
        ReceiveWindow {
            sizes,
            memory,
            capacity: within_u32(capacity),
            most: within_u32(most),
            unopened: None,
            offers_less: counts_memory && !is_tcp,
            opened: if counts_memory { at_first } else { u32::MAX },
            reading: (counts_memory && (requested.is_none() || !is_tcp))
                .then(|| Box::new(ReadRounds::new(&tuning))),
            advertised: 0,
            promised: 0,
            scale,
            waiting_below: 0,
        }
        .promising()
    }

    /// The same window, with at most `bytes` bytes of buffer until it grows.
    pub(crate) fn beginning_with(self, bytes: u64) -> Self {
        ReceiveWindow { capacity: self.capacity.min(within_u32(bytes)), ..self }.promising()
    }

    /// The same window, with `bytes` bytes of buffer until [`ReceiveWindow::open`].
    pub(crate) fn opening_later(self, bytes: u64) -> Self {
        let then = if self.capacity == self.most { FullSize::Largest } else { FullSize::Tuned };
        ReceiveWindow { unopened: Some(then), ..self.beginning_with(bytes) }
    }

    /// Open all of the buffer, if a part of it was to open later.
    pub(crate) fn open(&mut self) {
        if let Some(FullSize::Largest) = self.unopened.take() {
            self.capacity = self.most;
        }
    }

    /// Offer at most `opened` bytes at first, before anything was promised to the peer.
    pub(crate) fn begin_at(&mut self, opened: u32) {
        self.opened = self.opened.min(opened);
        let advertised = self.offered().min(self.opened.into());
        self.advertised = u32::try_from(advertised).unwrap_or(u32::MAX);
        self.promised = 1 + advertised;
    }

    /// All that is offered at first is promised.
    fn promising(mut self) -> Self {
        self.begin_at(u32::MAX);
        self
    }

    /// The same, advertised in units of `1 << scale` bytes.
    #[cfg(test)]
    pub(crate) fn scaled_by(self, scale: u8) -> Self {
        ReceiveWindow { scale, ..self }
    }

    /// The window is advertised in units of `1 << scale` bytes. RFC 7323 §2.3.
    pub(crate) fn scale(&self) -> u8 {
        self.scale
    }

    /// Bytes of payload that the buffer may hold at the most.
    pub(crate) fn most(&self) -> u64 {
        if self.unopened.is_some() { self.capacity() } else { self.most.into() }
    }

    /// Bytes of payload that the buffer holds now.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.into()
    }

    /// Let the buffer grow to this many bytes, within the requested size; it never shrinks.
    pub(crate) fn grow_to(&mut self, bytes: u64) {
        self.capacity = self.capacity.max(within_u32(bytes.min(self.most())));
    }

    /// Returns `true` if the window depends on the data that the application reads in a round-trip
    /// time.
    pub(crate) fn follows_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// A segment has arrived, which the application reads now.
    pub(crate) fn note_arrival(&mut self, now: Instant) {
        if let Some(reading) = &mut self.reading {
            reading.note_arrival(now);
        }
    }

    /// The application has read `read` bytes. If a tuned buffer grows, returns the window that it
    /// offers now.
    pub(crate) fn on_read(&mut self, read: u64, subflows: Incoming) -> Option<u64> {
        let rounds = self.reading.as_mut()?;
        // Linux opens further subflows only after the first read.
        let bring_data = match rounds.has_begun() {
            true => subflows.all_bring_data,
            false => subflows.open_ones_bring_data,
        };
        let reading = rounds.update(read, subflows.rtt, subflows.mss);
        if reading != Reading::TooSoon {
            self.offers_less = !bring_data;
        }
        let Reading::Grows(window) = reading else { return None };
        let before = self.capacity;
        self.grow_to(match self.offers_less {
            true => self.memory.capacity_offering_at_first(window),
            false => window,
        });
        (self.capacity > before).then(|| self.offered())
    }

    /// Open the window to `bytes` bytes, because of data that arrived on the subflow that
    /// acknowledges now.
    pub(crate) fn open_to(&mut self, bytes: u32) {
        self.opened = match self.memory.opens_together {
            true => self.opened.max(bytes),
            false => bytes,
        };
    }

    /// The part of the buffer that is offered.
    #[inline]
    fn offered(&self) -> u64 {
        match self.offers_less {
            true => self.memory.offered_at_first(self.capacity(), false),
            false => self.capacity(),
        }
    }

    /// Bytes by which rounding the window field may have promised more.
    fn slack(&self) -> u64 {
        (1 << self.scale) - 1
    }

    /// The subflow of a TCP connection holds `bytes` bytes beyond a hole.
    pub(crate) fn note_waiting_below(&mut self, bytes: u64) {
        self.waiting_below = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// The offset beyond which data is refused: what rounding the window field may have promised
    /// beyond the edge is honoured.
    pub(crate) fn limit(&self) -> u64 {
        self.promised + self.slack()
    }

    /// Bytes from the next one expected on that are accepted.
    pub(crate) fn accepted(&self, held: RecvQueueState) -> u64 {
        self.promised_from(held) + self.slack()
    }

    /// Bytes from the next one expected to the promised edge. RFC 8684 §3.3.4.
    #[inline]
    pub(crate) fn promised_from(&self, held: RecvQueueState) -> u64 {
        self.promised.saturating_sub(held.nxt)
    }

    /// Data up to `end` was taken, whatever was promised.
    pub(crate) fn pass(&mut self, end: u64) {
        self.promised = self.promised.max(end);
    }

    /// Up to where the buffer has room.
    #[inline]
    fn free(&self, held: RecvQueueState) -> u64 {
        let charged = match self.sizes {
            Buffers::Payload => 0,
            Buffers::Socket => {
                self.charged(linux::waiting_beyond_holes(held) + u64::from(self.waiting_below))
            }
        };
        (held.read + self.offered()).saturating_sub(charged)
    }

    /// Reduction of the window by `bytes` bytes in the buffer of a socket.
    #[inline]
    fn charged(&self, bytes: u64) -> u64 {
        self.memory.charged(bytes, self.offered(), self.capacity())
    }

    /// Upper limit of the window's edge, whatever the buffer. Linux keeps an edge that the window
    /// field cannot express (`tcp_select_window`).
    #[inline]
    fn widest(&self, held: RecvQueueState) -> u64 {
        let largest = match self.sizes {
            Buffers::Payload => u64::from(self.opened).min(u64::from(u16::MAX) << self.scale),
            Buffers::Socket => self.opened.into(),
        };
        held.nxt.saturating_add(largest)
    }

    /// Returns `true` if moving on to `edge` is worth an advertisement.
    #[inline]
    fn is_worthwhile(&self, held: RecvQueueState, edge: u64, mss: u64) -> bool {
        edge > self.promised
            && match self.sizes {
                Buffers::Payload => edge >= self.promised + mss.min(self.offered() / 2).max(1),
                Buffers::Socket => {
                    let room = self.free(held).saturating_sub(held.nxt);
                    self.memory.is_worth_advertising(room, self.offered(), mss)
                }
            }
    }

    /// The edge, rounded down to whole segments if the host advertises whole segments
    /// (`__tcp_select_window`). A window that is smaller than a segment even where all of the buffer
    /// is free would never open, so it is not rounded.
    #[inline]
    fn in_whole_segments(&self, held: RecvQueueState, edge: u64, mss: u64) -> u64 {
        let rounds = self.memory.whole_segments && self.sizes == Buffers::Socket && self.scale == 0;
        let largest = self.offered().min(self.opened.into());
        match rounds && mss < largest {
            true => edge - edge.saturating_sub(held.nxt) % mss.max(1),
            false => edge,
        }
    }

    /// The window to advertise now, and whether reads of the application have made it at least
    /// double. The peer may then be waiting, so every subflow advertises the window. The promised
    /// edge moves only by a worthwhile step, to avoid small segments (RFC 9293 §3.8.6.2.2). Full
    /// segments have `mss` bytes.
    #[inline]
    pub(crate) fn poll(&mut self, held: RecvQueueState, mss: u64) -> (u64, bool) {
        let free = self.free(held);
        // Nothing was read since the last call.
        if free <= self.promised {
            return (self.move_to(held, self.promised), false);
        }
        self.poll_free(held, free.min(self.widest(held)), mss)
    }

    /// The same, if the buffer has room beyond the promised edge, up to `edge`.
    fn poll_free(&mut self, held: RecvQueueState, edge: u64, mss: u64) -> (u64, bool) {
        // Rounding would not move the edge on.
        if edge <= self.promised {
            return (self.move_to(held, self.promised), false);
        }
        let edge = self.in_whole_segments(held, edge, mss);
        if !self.is_worthwhile(held, edge, mss) {
            return (self.move_to(held, self.promised), false);
        }
        let doubles = self.doubles(held, edge);
        (self.move_to(held, edge), doubles)
    }

    /// The window to advertise now, up to an edge that [`ReceiveWindow::early_edge`] gave.
    pub(crate) fn promise(&mut self, held: RecvQueueState, edge: u64, mss: u64) -> u64 {
        let edge = self.in_whole_segments(held, edge, mss);
        let edge = if self.is_worthwhile(held, edge, mss) { edge } else { self.promised };
        self.move_to(held, edge)
    }

    /// The window up to `edge`, which is promised now. RFC 8684 §3.3.4: the promised edge never moves
    /// back. Linux promises only what a segment advertises ([`ReceiveWindow::on_advertised`]).
    #[inline]
    fn move_to(&mut self, held: RecvQueueState, edge: u64) -> u64 {
        let window = edge.saturating_sub(held.nxt);
        if self.sizes == Buffers::Socket {
            return window;
        }
        self.promised = edge;
        self.advertised = u32::try_from(window).unwrap_or(u32::MAX);
        window
    }

    /// A segment has advertised this window.
    pub(crate) fn on_advertised(&mut self, held: RecvQueueState, window: u64) {
        if self.sizes == Buffers::Socket {
            self.promised = self.promised.max(held.nxt + window);
            self.advertised = u32::try_from(window).unwrap_or(u32::MAX);
        }
    }

    /// Returns `true` if less than half of the buffer is free.
    pub(crate) fn is_half_full(&self, held: RecvQueueState) -> bool {
        let all = self.charged(held.out_of_order + held.nxt - held.read);
        self.sizes == Buffers::Socket && all > self.capacity() / 2
    }

    /// Returns `true` if the application has read all that counts as received, apart from data that
    /// is ready.
    pub(crate) fn is_drained(&self, held: RecvQueueState) -> bool {
        match self.sizes {
            Buffers::Payload => true,
            Buffers::Socket => linux::waiting_beyond_holes(held) == 0,
        }
    }

    /// The edge to advertise with the latest data, if that should happen before the application has
    /// read all of it. Full segments have `full` bytes.
    pub(crate) fn early_edge(&self, held: RecvQueueState, full: u32) -> Option<u64> {
        match self.sizes {
            Buffers::Payload => None,
            Buffers::Socket => {
                let charged = |unread| self.charged(unread);
                let edge = linux::early_edge(held, self.free(held), full.into(), charged)?;
                Some(edge.min(self.widest(held)))
            }
        }
    }

    /// Returns `true` if the window up to `edge` is at least twice the one that the peer knows: the
    /// remainder up to the promised edge, or the window advertised last.
    #[inline]
    fn doubles(&self, held: RecvQueueState, edge: u64) -> bool {
        let known = match self.sizes {
            Buffers::Socket if !self.memory.counts_remaining => self.advertised.into(),
            Buffers::Socket if self.promised_from(held) == 0 => return false,
            Buffers::Payload | Buffers::Socket => self.promised_from(held),
        };
        edge.saturating_sub(held.nxt) >= 2 * known
    }
}

fn within_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The smallest shift with which the window field can represent `buffer` bytes.
fn smallest_scale(buffer: u64) -> u8 {
    (0..14).find(|scale| buffer <= u64::from(u16::MAX) << scale).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use anabranch_wire::Duration;

    use super::*;
    use crate::platform::{BuildPlatform, MptcpOrgConfig, Tuning};

    const READ: u64 = 1 << 16;

    fn payload(bytes: u64) -> ReceiveWindow {
        ReceiveWindow::new(&BufferModel::PAYLOAD, false, Some(bytes))
    }

    /// The windows of TCP and of Multipath TCP, fully open and advertised.
    fn socket(asked: u64) -> [ReceiveWindow; 2] {
        [true, false].map(|is_tcp| {
            let mut window = ReceiveWindow::new(&BufferModel::SOCKET, is_tcp, Some(asked));
            window.open_to(u32::MAX);
            advertise(&mut window, held(1, 1, 0));
            window
        })
    }

    fn held(read: u64, nxt: u64, out_of_order: u64) -> RecvQueueState {
        RecvQueueState { read, nxt, out_of_order }
    }

    /// A segment advertises the window.
    fn advertise(window: &mut ReceiveWindow, held: RecvQueueState) -> u64 {
        let (advertised, _) = window.poll(held, MSS);
        window.on_advertised(held, advertised);
        advertised
    }

    /// Bytes of a full segment.
    const MSS: u64 = 1000;

    #[test]
    fn the_promised_edge_never_moves_back_and_opens_in_worthwhile_steps() {
        // RFC 8684 §3.3.4
        let mut window = payload(10_000);
        assert_eq!(advertise(&mut window, held(1, 1001, 0)), 9_000);
        assert_eq!(advertise(&mut window, held(1001, 1001, 0)), 10_000);
        assert_eq!(advertise(&mut window, held(1501, 1501, 0)), 9_500);
    }

    #[test]
    fn what_waits_in_the_subflow_of_tcp_takes_room_on_linux() {
        // Linux: `tcp_space` counts the out-of-order queue.
        let [mut tcp, _] = socket(100_000);
        // The window field counts pairs of bytes, so one more byte is taken than was promised.
        let edge = tcp.limit() - 1;
        tcp.note_waiting_below(30_000);
        assert_eq!(advertise(&mut tcp, held(20_001, 20_001, 0)), edge - 20_001);
        tcp.note_waiting_below(0);
        assert_eq!(advertise(&mut tcp, held(50_001, 50_001, 0)), edge - 1);
    }

    #[test]
    fn a_window_that_doubles_is_worth_an_update() {
        let mut window = payload(10_000);
        assert_eq!(window.poll(held(1, 8_001, 0), MSS), (2_000, false));
        assert_eq!(window.poll(held(8_001, 8_001, 0), MSS), (10_000, true));
    }

    #[test]
    fn the_window_of_a_buffer_of_less_than_two_segments_opens_by_half_of_it() {
        // RFC 9293 §3.8.6.2.2: MIN(Fr * RCV.BUFF, Eff.snd.MSS), Fr = 1/2
        let mut window = payload(1_000);
        let full = held(1, 1001, 0);
        assert_eq!(window.poll(full, 1400), (0, false));
        let half = held(501, 1001, 0);
        assert_eq!(window.poll(half, 1400), (500, true));
    }

    #[test]
    fn the_original_kernel_offers_whole_segments_but_no_closed_window_for_an_empty_buffer() {
        let buffers = MptcpOrgConfig::default().build().buffers;
        let mut window = ReceiveWindow::new(&buffers, false, Some(9_303)).scaled_by(0);
        assert_eq!(window.poll(held(9_000, 9_000, 0), 1_000).0, 9_000);
        // The window opens to 8,760 bytes at first, which is less than one of these segments.
        window.opened = 8_760;
        assert_eq!(window.poll(held(9_000, 9_000, 0), 8_932).0, 8_760);
        assert_eq!(window.poll(held(9_000, 9_000, 0), 1_000).0, 8_000);
    }

    #[test]
    fn a_remedy_can_have_the_buffer_begin_small_and_grow() {
        let mut window = payload(10_000).beginning_with(4_000);
        assert_eq!((window.limit(), window.most()), (4_001, 10_000));
        window.grow_to(20_000);
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 10_000, "no more than was asked for");
    }

    #[test]
    fn a_buffer_that_opens_later_has_its_size_and_scale_then() {
        let mut window = payload(1 << 22).opening_later(16_000);
        assert_eq!((window.capacity(), window.most()), (16_000, 16_000));
        assert_eq!(window.scale(), 7, "4 MiB are at most 65,535 units of 128 bytes");
        window.grow_to(1 << 22);
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 16_000, "a remedy does not open it");
        window.open();
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 1 << 22);
        let mut tuned = payload(10_000).beginning_with(4_000).opening_later(2_000);
        tuned.open();
        tuned.grow_to(4_000);
        assert_eq!((tuned.capacity(), tuned.most()), (4_000, 10_000), "a remedy tunes it");
    }

    #[test]
    fn what_fills_a_hole_is_acknowledged_before_all_is_read_where_sockets_count() {
        // 160,000 asked for are 200,000 bytes of payload in TCP.
        let window_after = |mut window: ReceiveWindow, beyond: u64| {
            let all = window.most();
            assert_eq!(
                window.early_edge(held(1, 1, beyond), 1000),
                None,
                "there is nothing to read"
            );
            assert_eq!(advertise(&mut window, held(1, 1, beyond)), all);
            let filled = held(1, beyond + 1001, 0);
            let edge = window.early_edge(filled, 1000)?;
            Some(window.promise(filled, edge, MSS))
        };
        let [tcp, _] = socket(160_000);
        assert_eq!(window_after(tcp, 150_000), Some(200_000 - (151_000 - READ)));
        let [tcp, _] = socket(160_000);
        assert_eq!(window_after(tcp, 60_000), Some(200_000 - 61_000), "before it is read");
        assert_eq!(window_after(payload(200_000), 150_000), None);
    }

    #[test]
    fn linux_promises_what_a_segment_announces_also_beyond_the_window_field() {
        let [_, mut window] = socket(400_000);
        let all = advertise(&mut window, held(1, 1, 0));
        let field = u64::from(u16::MAX) << window.scale();
        let [_, mut small] = socket(245_000);
        let beyond = advertise(&mut small, held(1, 1, 0));
        small.offers_less = false;
        assert!(advertise(&mut small, held(1, 1, 0)) > u64::from(u16::MAX) << small.scale());
        assert!(all < field && beyond < u64::from(u16::MAX) << small.scale());
        // The host has not promised a window that no segment has advertised.
        let limit = window.limit();
        window.poll(held(5_001, 5_001, 0), MSS);
        assert_eq!(window.limit(), limit);
        advertise(&mut window, held(5_001, 5_001, 0));
        assert_eq!(window.limit(), limit + 5_000);
    }

    #[test]
    fn linux_closes_a_window_whose_buffer_has_little_room_not_one_that_has_opened_little() {
        // Of 100,000 bytes, 6,250 are a sixteenth.
        let [mut tcp, _] = socket(80_000);
        for (unread, window) in [(93_000, 7_000), (93_760, 6_240), (0, 100_000)] {
            assert_eq!(advertise(&mut tcp, held(1, 1 + unread, 0)), window, "what was promised");
        }
        assert_eq!(advertise(&mut tcp, held(1, 100_001, 0)), 0);
        assert_eq!(advertise(&mut tcp, held(6_001, 100_001, 0)), 0);
        assert_eq!(advertise(&mut tcp, held(7_001, 100_001, 0)), 7_000);
        tcp.open_to(500);
        assert_eq!(advertise(&mut tcp, held(107_001, 107_001, 0)), 500);
    }

    #[test]
    fn a_short_segment_takes_the_memory_of_a_full_one_before_it_is_read() {
        let [tcp, _] = socket(8_000);
        let edge = |nxt| tcp.early_edge(held(1, nxt, 0), 1_000);
        assert_eq!([edge(1_001), edge(101), edge(1_101)], [10_001, 9_101, 9_101].map(Some));
    }

    #[test]
    fn a_window_of_free_memory_stands_still_while_data_waits_beyond_a_hole() {
        // 8,000 asked for are 10,000: 4,000 beyond the hole take up buffer, and their place in the
        // window.
        let [mut window, _] = socket(8_000);
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 10_000);
        for read in [1_001, 3_001] {
            assert_eq!(
                advertise(&mut window, held(read, read, 4_000)),
                10_001 - read,
                "stands still"
            );
        }
        // The hole is filled, but 10,000 bytes are less than twice the 7,000 advertised last.
        let filled = held(8_001, 8_001, 0);
        assert!(!window.poll(filled, MSS).1);
        assert_eq!(advertise(&mut window, filled), 10_000);
    }

    #[test]
    fn a_tuned_window_begins_and_ends_with_the_sizes_of_tcp_rmem() {
        // Of 87,380 and 200,000 bytes of memory, 160 of 256 are payload in TCP.
        let tuning = Tuning { first_receive: 87_380, largest_receive: 200_000, ..Tuning::DEFAULT };
        let model = BufferModel { tuning, ..BufferModel::SOCKET };
        let mut window = ReceiveWindow::new(&model, true, None);
        assert_eq!((window.capacity(), window.most()), (54_613, 125_000));
        window.grow_to(1 << 20);
        assert_eq!(window.capacity(), 125_000);
        // Linux does not shrink a buffer that begins larger.
        let model = BufferModel { tuning: Tuning { largest_receive: 4096, ..tuning }, ..model };
        let window = ReceiveWindow::new(&model, true, None);
        assert_eq!((window.most(), window.scale()), (54_613, 1));
    }

    #[test]
    fn the_window_of_a_socket_opens_with_what_arrives() {
        // 8,000 requested are 10,000 bytes of payload in TCP.
        let mut window = ReceiveWindow::new(&BufferModel::SOCKET, true, Some(8_000));
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 8_000);
        window.open_to(9_075);
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 9_075);
        // Another subflow has brought less.
        window.open_to(9_000);
        assert_eq!(advertise(&mut window, held(1, 1, 0)), 9_075);
        window.open_to(10_000);
        assert_eq!(advertise(&mut window, held(1_001, 1_001, 0)), 10_000);
    }

    #[test]
    fn multipath_tcp_offers_what_was_asked_for_until_all_subflows_bring_data() {
        let [tcp, mut mptcp] = socket(8_000);
        assert!(!tcp.offers_less && mptcp.offers_less);
        assert_eq!(advertise(&mut mptcp, held(1, 1, 0)), 8_000);
        let mut read = |ms, all_bring_data| {
            mptcp.note_arrival(Instant::ZERO + Duration::from_millis(ms));
            let rtt = Duration::from_millis(10);
            mptcp.on_read(
                0,
                Incoming { rtt, mss: 1_000, open_ones_bring_data: false, all_bring_data },
            )
        };
        assert_eq!([read(0, true), read(10, false), read(19, true)], [None; 3]);
        // The window is looked at once in a round-trip time.
        assert!(mptcp.offers_less);
        mptcp.note_arrival(Instant::ZERO + Duration::from_millis(20));
        let rtt = Duration::from_millis(10);
        let all = Incoming { rtt, mss: 1_000, open_ones_bring_data: true, all_bring_data: true };
        assert_eq!(mptcp.on_read(0, all), None);
        assert_eq!(advertise(&mut mptcp, held(1, 1, 0)), 9_875);
        mptcp.offers_less = true;
        assert_eq!(advertise(&mut mptcp, held(1, 1, 0)), 9_875, "the edge stays");
        assert_eq!(advertise(&mut mptcp, held(5_001, 5_001, 0)), 8_000);
    }
}
