//! Memory of the socket buffers in which Linux keeps data until it is acknowledged.

/// Overhead of a socket buffer, in addition to its payload: `SO_MEMINFO` of connections on x86-64
/// with Linux 6.18.
pub(crate) const OVERHEAD: u64 = 832;
/// Most segments in a sent socket buffer, below some 20 Mbit/s: as many as may be sent at once
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

/// Memory of `bytes` bytes in `buffers` socket buffers (`sk_wmem_queued`).
pub(crate) fn memory(bytes: u64, buffers: u64) -> u64 {
    bytes + OVERHEAD * buffers
}

/// Memory of `sent` bytes if each socket buffer has the usual number of full segments of `mss` bytes.
pub(crate) fn usual_memory(sent: u64, mss: u32) -> u64 {
    memory(sent, sent.div_ceil(SEGMENTS * u64::from(mss)))
}

/// Memory of `waiting` bytes that were not sent.
pub(crate) fn waiting_memory(waiting: u64) -> u64 {
    memory(waiting, waiting.div_ceil(MOST))
}
