//! Memory of the socket buffers in which Linux keeps data until it is acknowledged.

use crate::view::SubflowView;

/// Overhead of a socket buffer, in addition to its payload: `SO_MEMINFO` of connections on x86-64
/// with Linux 6.18.
pub(crate) const OVERHEAD: u64 = 832;
/// Segments in a sent socket buffer: the minimum, which is usual below some 20 Mbit/s
/// (`tcp_tso_autosize`).
pub(crate) const SEGMENTS: u64 = 2;
/// Most bytes in an unsent socket buffer: 64 KiB less room for headers (`tcp_xmit_size_goal`).
pub(crate) const MOST: u64 = 65_536 - 321;

/// Bytes in a full one that was not sent, with segments of `mss` bytes: whole segments, and at most
/// half of the peer's largest `window`.
pub(crate) fn full(mss: u64, window: u64) -> u64 {
    let mss = mss.max(1);
    ((window / 2).min(MOST) / mss * mss).max(mss)
}

/// Memory of a subflow's data that is not acknowledged, of which `sent` bytes were sent and `waiting`
/// bytes were not (`sk_wmem_queued`). Lost data and data beyond a hole count.
pub(crate) fn queued(view: &SubflowView, sent: u64, waiting: u64) -> u64 {
    let buffers = sent.div_ceil(SEGMENTS * u64::from(view.mss)) + waiting.div_ceil(MOST);
    sent + waiting + OVERHEAD * buffers
}
