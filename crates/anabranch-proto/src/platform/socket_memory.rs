//! Receive windows of hosts that charge the memory of segments to the receive buffer.

use super::{OwnMss, RcvSsthresh, Tuning};

/// Rules by which a kernel derives windows from the memory of its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMemory {
    /// Part of a receive buffer that is offered as the window, in 256ths: by TCP, and by Multipath
    /// TCP once data has arrived on all subflows. Until then, Multipath TCP offers half of it.
    pub offered: [u16; 2],
    /// Reduction of the window by data in the receive buffer.
    pub charge: Charge,
    /// The window with which a subflow begins.
    pub first: FirstWindow,
    /// Whether data on any subflow opens the window of all. If not, each subflow advertises the
    /// window as far as its own data has opened it.
    pub opens_together: bool,
    /// Part of the buffer that must be free for the window to be worth advertising: a sixteenth if
    /// this is 16. `None`: a segment suffices.
    pub least_free: Option<u64>,
    /// Whether a window that is advertised in bytes has whole segments.
    pub whole_segments: bool,
    /// Whether a window update compares the new window with the remainder of the advertised window,
    /// rather than with the window as advertised last.
    pub counts_remaining: bool,
    /// Memory of each segment in bytes, in the send buffer of TCP and of Multipath TCP. `None` if
    /// segments share memory.
    pub segment: Option<[u64; 2]>,
}

/// Reduction of the window by data in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// By its bytes.
    Payload,
    /// By a constant for each full segment.
    Segments {
        /// Reduction in bytes.
        window: u64,
        /// Payload of a full segment in bytes.
        payload: u64,
    },
}

/// The window with which a subflow begins. It opens with the data that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstWindow {
    /// Half of the buffer.
    Half,
    /// A number of segments.
    Segments(u32),
}

/// RFC 7323 §2.3
const LARGEST_WINDOW: u64 = 1 << 30;

impl SocketMemory {
    fn offered(&self, is_tcp: bool) -> u64 {
        self.offered[usize::from(!is_tcp)].into()
    }

    /// Largest window of a granted receive buffer: its share of twice the requested size
    /// (`SO_RCVBUF` in socket(7)).
    pub(super) fn receive_buffer(&self, asked: u64, is_tcp: bool) -> u64 {
        asked.saturating_mul(2 * self.offered(is_tcp)).div_ceil(256)
    }

    /// Largest window of a tuned receive buffer, at first and at the most.
    pub(super) fn tuned_receive_buffer(&self, tuning: &Tuning, is_tcp: bool) -> [u64; 2] {
        let largest = tuning.largest_receive.max(tuning.first_receive);
        [tuning.first_receive, largest]
            .map(|memory| self.receive_buffer(u64::from(memory) / 2, is_tcp))
    }

    /// Bytes that Multipath TCP offers while a subflow, those that are opening included, has brought
    /// no data. The window is a share of the buffer, the lowest of the subflows' shares of payload
    /// in memory, and without data a half is taken for granted (`msk->scaling_ratio` in
    /// net/mptcp/protocol.c). `capacity` is the largest window.
    pub(super) fn offered_at_first(&self, capacity: u64, is_tcp: bool) -> u64 {
        capacity.saturating_mul(128) / self.offered(is_tcp)
    }

    /// The largest window of a buffer of Multipath TCP that offers such a window at first.
    pub(super) fn capacity_offering_at_first(&self, window: u64) -> u64 {
        window.saturating_mul(self.offered(false)) / 128
    }

    /// Reduction of the window by `bytes` in the buffer, if the window is `offered` of the `capacity`
    /// of the buffer: the window is a share of the memory that is free.
    pub(super) fn charged(&self, bytes: u64, offered: u64, capacity: u64) -> u64 {
        let bytes = match self.charge {
            Charge::Payload => u128::from(bytes),
            Charge::Segments { window, payload } => {
                u128::from(bytes) * u128::from(window) / u128::from(payload)
            }
        };
        (bytes * u128::from(offered) / u128::from(capacity.max(1))) as u64
    }

    /// The window of a SYN, in whole segments (`tcp_select_initial_window`).
    pub(super) fn first_window(&self, tuning: &Tuning, requested: Option<u64>, mss: OwnMss) -> u32 {
        let segment = u32::from(mss.at_syn);
        let most = match self.first {
            FirstWindow::Half => u32::MAX,
            FirstWindow::Segments(segments) => segments * segment,
        };
        let half = half(tuning, requested).min(most);
        if half > segment { half - half % segment } else { half }
    }

    /// The window of a subflow opens from its first one on, at most up to the buffer less a segment
    /// (`tcp_init_buffer_space`). As long as it opens, segments are acknowledged one by one, and each
    /// full one opens it by two segments without the options of Multipath TCP (`tcp_grow_window`).
    pub(super) fn opening(
        &self,
        tuning: &Tuning,
        requested: Option<u64>,
        mss: OwnMss,
        is_tcp: bool,
    ) -> RcvSsthresh {
        let (half, segment) = (half(tuning, requested), u32::from(mss.with_timestamps));
        let largest = match requested {
            Some(asked) => self.receive_buffer(asked, is_tcp),
            None => self.tuned_receive_buffer(tuning, is_tcp)[1],
        };
        let reserved = half.saturating_sub(segment).max(2 * segment).min(half);
        let limit =
            self.receive_buffer(asked(tuning, requested), is_tcp).min(LARGEST_WINDOW) as u32;
        RcvSsthresh {
            opened: reserved.min(self.first_window(tuning, requested, mss)),
            limit: match self.first {
                FirstWindow::Half => limit,
                FirstWindow::Segments(_) => reserved,
            },
            step: 2 * mss.with_timestamps,
            largest: (largest.min(LARGEST_WINDOW) >> 16) as u16,
        }
    }

    /// Returns `true` if the window is worth advertising, where `free` bytes remain of the `offered`
    /// part of the buffer. The window is closed if there is less room than a segment
    /// (`__tcp_select_window`).
    pub(super) fn is_worth_advertising(&self, free: u64, offered: u64, mss: u64) -> bool {
        free >= offered / 2
            || (self.least_free.is_none_or(|part| free >= offered / part)
                && free >= mss.min(offered))
    }
}

/// Half of the memory of a receive buffer of this size, or of one that is not tuned yet.
fn half(tuning: &Tuning, requested: Option<u64>) -> u32 {
    asked(tuning, requested).min(LARGEST_WINDOW) as u32
}

/// It is as if a program had asked for half of the memory of a tuned buffer.
fn asked(tuning: &Tuning, requested: Option<u64>) -> u64 {
    requested.unwrap_or(u64::from(tuning.first_receive) / 2)
}
