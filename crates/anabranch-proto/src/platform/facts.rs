//! Facts that the engine tells a platform.

use anabranch_wire::Duration;

use crate::view::SubflowView;

/// The congestion window of a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cwnd {
    pub(crate) bytes: u64,
    /// It has, or had, no room for another segment.
    pub(crate) full: bool,
    pub(crate) slow_start: bool,
}

/// Unsent data of a subflow, in bytes: data that no subflow has carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsent {
    pub(crate) all: u64,
    /// Part of it that is in the first socket buffer.
    pub(crate) first: u64,
    /// Part of it that may be sent at a time, as far as socket buffers matter.
    pub(crate) at_a_time: u64,
}

/// A burst that a subflow could send now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst<'a> {
    pub(crate) waiting: Unsent,
    /// Bytes that the congestion window and the peer's window admit.
    pub(crate) available_cwnd: u64,
    /// Time since it has sent data.
    pub(crate) since_last: Duration,
    /// Time since it has sent the oldest data that is not acknowledged.
    pub(crate) since_oldest: Duration,
    /// Bytes that pacing would send in a round-trip time.
    pub(crate) paced_window: u64,
    /// Segments that may always leave at once.
    pub(crate) fewest_at_a_time: u64,
    pub(crate) view: &'a SubflowView,
}

/// The data that a short segment may wait for, as offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortSegments {
    /// End of the latest data sent.
    pub(crate) sent_end: u64,
    /// The short segment that was sent last ends here.
    pub(crate) short_end: u64,
    /// The application waits for room in the send buffer: more is certain to come, and the segment
    /// will fill up.
    pub(crate) writer_waits: bool,
}

/// Offsets of the first byte that is not acknowledged, not sent, and not written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendOffsets {
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) end: u64,
}

/// State of the receive queue, as offsets and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvQueueState {
    /// The next byte that the application reads.
    pub(crate) read: u64,
    /// The next byte expected.
    pub(crate) nxt: u64,
    /// Bytes that wait for something earlier.
    pub(crate) out_of_order: u64,
}

/// Payload bytes of the segments that a host lets its peer send, as Linux counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnMss {
    /// With the options that are agreed on when the host sends its SYN.
    pub(crate) at_syn: u16,
    /// With timestamps.
    pub(crate) with_timestamps: u16,
}

/// Opening of the receive window on a subflow: it opens with the data that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RcvSsthresh {
    /// Bytes that the window may reach beyond acknowledged data.
    pub(crate) opened: u32,
    /// Bytes up to which it opens.
    pub(crate) limit: u32,
    /// Bytes by which a full segment opens it.
    pub(crate) step: u16,
    /// Up to where the largest buffer opens it, in units of 64 KiB.
    pub(crate) largest: u16,
}

impl Default for RcvSsthresh {
    /// A window that is open from the start.
    fn default() -> Self {
        RcvSsthresh { opened: u32::MAX, limit: 0, step: 0, largest: 0 }
    }
}

impl RcvSsthresh {
    /// Segments with fewer bytes never open the window.
    const LEAST: u32 = 128;
    /// Most payload of a segment that Linux receives into 1024 bytes of memory. Memory is allocated in
    /// powers of two, and headers and `skb_shared_info` take up the remainder.
    const MOST_IN_1024: u32 = 566;
    /// Memory of such a segment, in percent of that of a full one: 1280 of 2304 bytes with `sk_buff`.
    const SMALL_PERCENT: u32 = 55;

    /// Returns `true` if the window opens with arriving data, rather than at the start.
    #[inline]
    pub(crate) fn is_gradual(&self) -> bool {
        self.limit > 0
    }

    /// Part of the window that the memory of a segment of `bytes` bytes takes up, where full ones
    /// have `full`.
    #[inline]
    pub(crate) fn taken_up(bytes: u32, full: u32) -> u32 {
        match bytes <= RcvSsthresh::MOST_IN_1024 {
            true => full * RcvSsthresh::SMALL_PERCENT / 100,
            false => full,
        }
    }

    /// Handle the arrival of a segment of `bytes` bytes, where full ones have `full`. Its memory
    /// takes up `taken_up`, and `held` bytes take up room already. Returns `true` if the window
    /// opens. Linux: `tcp_grow_window`.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: u32, full: u32, taken_up: u32, held: u32) -> bool {
        let room = self.limit.saturating_sub(held).saturating_sub(self.opened);
        if room == 0 || bytes < RcvSsthresh::LEAST {
            return false;
        }
        let step = match bytes >= full {
            true => u32::from(self.step).max(bytes.saturating_mul(2)),
            false if self.admits_waste(bytes, taken_up) => 2 * full,
            false => 0,
        };
        self.opened += step.min(room);
        step > 0
    }

    /// Returns `true` if a segment opens the window although it fills its memory only in part. The
    /// smaller the part, the smaller the window must be. Linux: `__tcp_grow_window`.
    fn admits_waste(&self, bytes: u32, taken_up: u32) -> bool {
        let mut memory = taken_up / 2;
        let mut window = u32::from(self.largest) << 15;
        while memory > bytes {
            (memory, window) = (memory / 2, window / 2);
        }
        self.opened <= window
    }
}

/// The subflows of a connection as the receiver of their data sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// Their longest round-trip time, as the receiver measures it.
    pub(crate) rtt: Duration,
    /// Their largest segment with timestamps alone, in bytes of payload.
    pub(crate) mss: u64,
    /// Whether all open subflows have brought data.
    pub(crate) open_ones_bring_data: bool,
    /// Whether all of them have brought data and none is opening.
    pub(crate) all_bring_data: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_with_full_segments_and_with_short_ones_while_it_is_small() {
        // Linux: `tcp_grow_window`. Segments of 900 and 600 bytes fill more than a half and a quarter
        // of their memory, so they count up to a half and a quarter of the largest window. Those of 500
        // bytes fill more than a half of a smaller memory.
        for (largest, bytes, opened) in [
            (0, 1_448, 52_896),
            (0, 2_000, 54_000),
            (0, 900, 50_000),
            (2, 900, 52_896),
            (2, 600, 50_000),
            (4, 600, 52_896),
            (2, 500, 52_896),
            (4, 127, 50_000),
        ] {
            let mut opening = RcvSsthresh { opened: 50_000, limit: 60_000, step: 2_896, largest };
            let taken_up = RcvSsthresh::taken_up(bytes, 1_448);
            let opens = opening.grow(bytes, 1_448, taken_up, 1_448);
            assert_eq!(opens, opened > 50_000, "{bytes} of {largest}");
            assert_eq!(opening.opened, opened, "{bytes} of {largest}");
        }
    }

    #[test]
    fn a_small_segment_finds_room_beyond_full_ones() {
        let mut opening =
            RcvSsthresh { opened: 58_576, limit: 60_000, step: 2_848, ..RcvSsthresh::default() };
        opening.largest = 8;
        let mut grow = |bytes| {
            let taken_up = RcvSsthresh::taken_up(bytes, 1_424);
            opening.grow(bytes, 1_424, taken_up, taken_up)
        };
        assert!(!grow(1_424));
        assert!(!grow(567), "in the memory of a full one");
        assert!(grow(240));
        assert!(!grow(240), "its room is used up");
    }

    #[test]
    fn what_fills_the_buffer_does_not_open_the_window() {
        let mut opening =
            RcvSsthresh { opened: 50_000, limit: 60_000, step: 2_896, ..RcvSsthresh::default() };
        assert!(opening.grow(1_448, 1_448, 1_448, 8_000));
        assert_eq!(opening.opened, 52_000);
        assert!(!opening.grow(1_448, 1_448, 1_448, 8_000));
        assert!(!RcvSsthresh::default().is_gradual());
    }
}
