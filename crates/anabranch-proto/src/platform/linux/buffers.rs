//! Sizes of socket buffers, and the receive window that follows from them.

use super::Tuning;
use crate::platform::{OwnMss, RcvSsthresh, RecvQueueState};

/// Bytes that an application is taken to read at a time.
const READ: u64 = 1 << 16;
/// Share of payload in the memory of a full segment, in 256ths: 1448 of 2304 bytes for a segment of
/// TCP that came through a veth device, and 1424 for one of Multipath TCP (`tcp_measure_rcv_mss`).
const fn payload_in_memory(is_tcp: bool) -> u64 {
    if is_tcp { 160 } else { 158 }
}

/// RFC 7323 §2.3
const LARGEST_WINDOW: u64 = 1 << 30;

/// The granted send buffer: twice the requested size (`SO_SNDBUF` in socket(7)).
pub(crate) fn send_buffer(asked: u64) -> u64 {
    asked.saturating_mul(2)
}

/// Bytes of payload in the granted receive buffer, from which the window follows: the share of
/// payload in twice the requested size (`SO_RCVBUF` in socket(7)).
pub(crate) fn receive_buffer(asked: u64, is_tcp: bool) -> u64 {
    asked.saturating_mul(2 * payload_in_memory(is_tcp)).div_ceil(256)
}

/// Bytes of payload in a tuned receive buffer, at first and at the most.
pub(crate) fn tuned_receive_buffer(tuning: &Tuning, is_tcp: bool) -> [u64; 2] {
    let largest = tuning.largest_receive.max(tuning.first_receive);
    [tuning.first_receive, largest].map(|memory| receive_buffer(u64::from(memory) / 2, is_tcp))
}

/// The shift of the window field: that of the requested buffer, or of the largest tuned buffer. A
/// window that grows beyond is cut (`tcp_select_initial_window`).
pub(crate) fn window_scale(tuning: &Tuning, requested: Option<u64>) -> u8 {
    let largest = tuning.largest_receive.max(tuning.first_receive);
    let space = requested.unwrap_or(largest.into()).max(1);
    space.ilog2().saturating_sub(15).min(14) as u8
}

/// Bytes that Multipath TCP offers while a subflow, those that are opening included, has brought
/// no data. The window is a share of the buffer, the lowest of the subflows' shares of payload in
/// memory, and without data a half is taken for granted (`msk->scaling_ratio` in
/// net/mptcp/protocol.c).
///
/// `capacity` is the payload that the buffer holds.
pub(crate) fn offered_at_first(capacity: u64, is_tcp: bool) -> u64 {
    capacity.saturating_mul(128) / payload_in_memory(is_tcp)
}

/// The payload in a buffer of Multipath TCP that offers such a window at first.
pub(crate) fn capacity_offering_at_first(window: u64) -> u64 {
    window.saturating_mul(payload_in_memory(false)) / 128
}

/// The window of a SYN: half of the buffer, in whole segments (`tcp_select_initial_window`).
pub(crate) fn first_window(tuning: &Tuning, requested: Option<u64>, mss: OwnMss) -> u32 {
    let half = half(tuning, requested);
    let segment = u32::from(mss.at_syn);
    if half > segment { half - half % segment } else { half }
}

/// The window of a subflow opens from half of the buffer on, less a segment
/// (`tcp_init_buffer_space`). As long as it opens, segments are acknowledged one by one, and each full
/// one opens it by two segments without the options of Multipath TCP (`tcp_grow_window`).
pub(crate) fn opening(
    tuning: &Tuning,
    requested: Option<u64>,
    mss: OwnMss,
    is_tcp: bool,
) -> RcvSsthresh {
    let (half, segment) = (half(tuning, requested), u32::from(mss.with_timestamps));
    let largest = match requested {
        Some(asked) => receive_buffer(asked, is_tcp),
        None => tuned_receive_buffer(tuning, is_tcp)[1],
    };
    let reserved = half.saturating_sub(segment).max(2 * segment).min(half);
    RcvSsthresh {
        opened: reserved.min(first_window(tuning, requested, mss)),
        limit: receive_buffer(asked(tuning, requested), is_tcp).min(LARGEST_WINDOW) as u32,
        step: 2 * mss.with_timestamps,
        largest: (largest.min(LARGEST_WINDOW) >> 16) as u16,
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

/// Data in the buffer that the application cannot read yet. The window is the free part of the
/// buffer, counted from the DATA_ACK on. Data beyond a hole therefore takes up room twice, in the
/// buffer and in the window, and the window stands still while such data waits for a slower
/// subflow. RFC 9293 §3.8.6.2.2 has the window reach to the end of the buffer.
pub(crate) fn waiting_beyond_holes(held: RecvQueueState) -> u64 {
    held.out_of_order
}

/// Returns `true` if the window is worth advertising, where `free` bytes remain of the `offered`
/// part of the buffer. Linux closes the window if there is little room, or less than a segment
/// (`__tcp_select_window`).
pub(crate) fn is_worth_advertising(free: u64, offered: u64, mss: impl FnOnce() -> u64) -> bool {
    free >= offered / 2 || (free >= offered / 16 && free >= mss().min(offered))
}

/// The window that the peer knows, as Linux assumes: the one advertised last.
pub(crate) fn known_window(advertised: u64) -> u64 {
    advertised
}

/// Reduction of the window by `bytes` in the buffer, if the window is `offered` of the `capacity`
/// of the buffer: the window is a share of the memory that is free.
pub(crate) fn charged(bytes: u64, offered: u64, capacity: u64) -> u64 {
    (u128::from(bytes) * u128::from(offered) / u128::from(capacity.max(1))) as u64
}

/// The edge to advertise before the application has read all data, where the buffer has room for
/// unread data up to `free`. Linux acknowledges before it wakes the application
/// (`__tcp_ack_snd_check`). If one read does not take all data, the first read acknowledges it with
/// the window that is free then (`mptcp_cleanup_rbuf`). A segment takes up the memory of a `full`
/// one.
pub(crate) fn early_edge(
    held: RecvQueueState,
    free: u64,
    full: u64,
    charged: impl FnOnce(u64) -> u64,
) -> Option<u64> {
    match held.nxt - held.read {
        0 => None,
        unread if unread > READ => Some(free + READ),
        unread => {
            Some((free + unread).saturating_sub(charged(unread.next_multiple_of(full.max(1)))))
        }
    }
}
