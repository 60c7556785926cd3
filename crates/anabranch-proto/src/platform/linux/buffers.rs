//! Sizes of socket buffers, and the receive window that follows from them.

use super::Tuning;
use crate::platform::{Held, Opening};

/// Bytes that an application is taken to read at a time.
const READ: u64 = 1 << 16;
/// Of the memory that a full segment lies in, what is payload, in 256ths: 1424 of 2304 bytes for
/// one that came through a veth device (`tcp_measure_rcv_mss`).
const PAYLOAD_IN_MEMORY: u64 = 158;

/// RFC 7323 §2.3
const LARGEST_WINDOW: u64 = 1 << 30;

/// The send buffer that is granted: twice what is asked for (`SO_SNDBUF` in socket(7)).
pub(crate) fn send_buffer(asked: u64) -> u64 {
    asked.saturating_mul(2)
}

/// Bytes of payload in the receive buffer that is granted: of twice what is asked for (`SO_RCVBUF`
/// in socket(7)), the share that is payload, by which the window is reckoned.
pub(crate) fn receive_buffer(asked: u64) -> u64 {
    asked.saturating_mul(2 * PAYLOAD_IN_MEMORY).div_ceil(256)
}

/// Bytes of payload in a tuned receive buffer, at first and at the most. It is as if a program had
/// asked for half of the memory.
pub(crate) fn tuned_receive_buffer(tuning: &Tuning) -> [u64; 2] {
    let largest = tuning.largest_receive.max(tuning.first_receive);
    [tuning.first_receive, largest].map(|memory| receive_buffer(u64::from(memory) / 2))
}

/// The shift of the window field: that of what is offered at first, or of the largest buffer that
/// is tuned. A window that grows beyond is cut (`tcp_select_initial_window`).
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
pub(crate) fn offered_at_first(capacity: u64) -> u64 {
    capacity.saturating_mul(128) / PAYLOAD_IN_MEMORY
}

/// The payload in a buffer that offers such a window at first.
pub(crate) fn capacity_offering_at_first(window: u64) -> u64 {
    window.saturating_mul(PAYLOAD_IN_MEMORY) / 128
}

/// The window of a subflow opens from half of the buffer on. As long as it opens, segments are
/// acknowledged one by one (`tcp_grow_window`).
pub(crate) fn opening(tuning: &Tuning, requested: Option<u64>) -> Opening {
    let asked = requested.unwrap_or(u64::from(tuning.first_receive) / 2);
    let limit = receive_buffer(asked).min(LARGEST_WINDOW);
    Opening { opened: offered_at_first(limit) as u32, limit: limit as u32 }
}

/// What is taken off the window. It is what the buffer has free, counted from the DATA_ACK on, so
/// that data beyond a hole takes up room twice, in the buffer and in the window, which does not
/// move on while such data waits for a slower subflow. RFC 9293 §3.8.6.2.2 has the window reach to
/// the end of the buffer.
pub(crate) fn charged_beyond_holes(held: Held) -> u64 {
    held.out_of_order
}

/// A duplicate acknowledgement on a subflow does not shrink its window (`tcp_may_update_window`),
/// and its DATA_ACK is added to the window that is kept (`ack_update_msk`). The sender exceeds the
/// peer's edge then, by what other subflows have delivered since. The peer drops that data after it
/// has acknowledged it on the subflow.
pub(crate) const KEEPS_LARGER_WINDOW: bool = true;

/// What the peer is taken to know of the window: what was announced last.
pub(crate) fn known_window(announced: u64) -> u64 {
    announced
}

/// The edge to announce with what came last, if that was so much that one read does not take it:
/// the application's first read acknowledges it, with what is free then (`mptcp_cleanup_rbuf`).
pub(crate) fn early_edge(held: Held, edge: u64) -> Option<u64> {
    (held.nxt - held.read > READ).then(|| edge + READ)
}
