//! What a short segment waits for.

use super::Nagle;

/// The data that a short segment may wait for, as offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortSegments {
    /// What was sent last ends here.
    pub(crate) sent_end: u64,
    /// The short segment that was sent last ends here.
    pub(crate) short_end: u64,
    /// The application waits for room in the send buffer: more is certain to come, and the segment will
    /// fill up.
    pub(crate) writer_waits: bool,
}

impl Nagle {
    /// The offset up to which everything is to be acknowledged before a short segment goes out.
    pub(crate) fn awaits(self, sent: ShortSegments) -> u64 {
        match self {
            Nagle::Short if !sent.writer_waits => sent.short_end,
            Nagle::Short | Nagle::All => sent.sent_end,
        }
    }
}
