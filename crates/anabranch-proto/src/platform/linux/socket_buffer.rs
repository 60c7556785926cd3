//! What data costs in the socket buffers in which Linux keeps it until it is acknowledged.

/// What one costs beside its payload: `SO_MEMINFO` of connections on x86-64 with Linux 6.18.
pub(crate) const OVERHEAD: u64 = 832;
/// Segments in one that was sent: the least, and what is sent at below some 20 Mbit/s
/// (`tcp_tso_autosize`).
pub(crate) const SEGMENTS: u64 = 2;
/// Most bytes in one that was not sent: 64 KiB less room for headers (`tcp_xmit_size_goal`).
pub(crate) const MOST: u64 = 65_536 - 321;
