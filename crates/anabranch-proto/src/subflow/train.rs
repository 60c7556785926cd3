//! Segments that are sent together, on a platform that may wait for room.

/// A packet train.
#[derive(Debug, Default)]
pub(super) struct Train {
    /// Number of its segments.
    len: u8,
    /// Number of those that are still to be sent.
    left: u8,
}

impl Train {
    /// The next segments are sent together: at least one, and no more than can be counted.
    pub(super) fn begin(&mut self, segments: u64) {
        self.len = u8::try_from(segments.max(1)).unwrap_or(u8::MAX);
        self.left = self.len;
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Another segment is sent.
    pub(super) fn advance(&mut self) {
        self.left -= 1;
    }

    /// Returns `true`, once, if the next segment is the last of several. On Linux, it has PSH
    /// (`__tcp_transmit_skb`).
    #[inline]
    pub(super) fn take_end(&mut self) -> bool {
        self.left == 0 && std::mem::take(&mut self.len) > 1
    }
}
