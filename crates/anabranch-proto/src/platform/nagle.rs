//! Nagle's algorithm: the data that a short segment waits for.

use super::{Nagle, ShortSegments};

impl Nagle {
    /// The offset up to which everything is to be acknowledged before a short segment is sent.
    pub(crate) fn awaits(self, sent: ShortSegments) -> u64 {
        match self {
            Nagle::Short if !sent.writer_waits => sent.short_end,
            Nagle::Short | Nagle::All => sent.sent_end,
        }
    }
}
