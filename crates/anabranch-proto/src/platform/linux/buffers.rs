//! Sizes of socket buffers, and the receive window that follows from them.

use super::Tuning;
use crate::platform::RecvQueueState;

/// Bytes that an application is taken to read at a time.
const READ: u64 = 1 << 16;

/// The granted send buffer: twice the requested size (`SO_SNDBUF` in socket(7)).
pub(crate) fn send_buffer(asked: u64) -> u64 {
    asked.saturating_mul(2)
}

/// The shift of the window field: that of the requested buffer, or of the largest tuned buffer. A
/// window that grows beyond is cut (`tcp_select_initial_window`).
pub(crate) fn window_scale(tuning: &Tuning, requested: Option<u64>) -> u8 {
    let largest = tuning.largest_receive.max(tuning.first_receive);
    let space = requested.unwrap_or(largest.into()).max(1);
    space.ilog2().saturating_sub(15).min(14) as u8
}

/// Data in the buffer that the application cannot read yet. The window is the free part of the
/// buffer, counted from the DATA_ACK on. Data beyond a hole therefore takes up room twice, in the
/// buffer and in the window, and the window stands still while such data waits for a slower
/// subflow. RFC 9293 §3.8.6.2.2 has the window reach to the end of the buffer.
pub(crate) fn waiting_beyond_holes(held: RecvQueueState) -> u64 {
    held.out_of_order
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
