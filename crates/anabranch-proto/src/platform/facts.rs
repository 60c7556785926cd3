//! What the engine tells a platform.

/// The congestion window of a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cwnd {
    pub(crate) bytes: u64,
    /// It has, or had, no room for another segment.
    pub(crate) full: bool,
    pub(crate) slow_start: bool,
}

/// The data that a short segment may wait for, as offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortSegments {
    /// What was sent last ends here.
    pub(crate) sent_end: u64,
    /// The short segment that was sent last ends here.
    pub(crate) short_end: u64,
    /// The application waits for room in the send buffer: more is certain to come, and the segment
    /// will fill up.
    pub(crate) writer_waits: bool,
}

/// Offsets of what is not acknowledged, of what is not sent, and of what is not written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) end: u64,
}

/// What the receive queue holds, as offsets and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The next byte that the application reads.
    pub(crate) read: u64,
    /// The next byte expected.
    pub(crate) nxt: u64,
    /// Bytes that wait for something earlier.
    pub(crate) out_of_order: u64,
}
