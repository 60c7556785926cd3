//! The window that a subflow offers its peer, as segments state it. RFC 7323 §2.

/// The scale of the window field, and the window offered last.
#[derive(Debug)]
pub(super) struct OfferedWindow {
    scale: u8,
    /// The field may have less, if it is too short.
    last: u32,
}

impl OfferedWindow {
    pub(super) fn new(scale: u8) -> Self {
        OfferedWindow { scale, last: 0 }
    }

    pub(super) fn scale(&self) -> u8 {
        self.scale
    }

    /// RFC 7323 §1.3: scaling is used in both directions or in none.
    pub(super) fn stop_scaling(&mut self) {
        self.scale = 0;
    }

    pub(super) fn last(&self) -> u64 {
        self.last.into()
    }

    /// The field of a segment that offers `window` bytes, rounded up so that the advertised edge
    /// never moves back.
    #[inline]
    pub(super) fn offer(&mut self, window: u64) -> u16 {
        self.note(window);
        let scaled = window.div_ceil(1 << self.scale);
        scaled.min(u64::from(u16::MAX)) as u16
    }

    /// The field of a SYN, whose window is never scaled. RFC 7323 §2.2.
    pub(super) fn offer_on_syn(&mut self, window: u64) -> u16 {
        self.note(window);
        window.min(u64::from(u16::MAX)) as u16
    }

    /// Returns `true` if the peer would see `window` as less than the window offered last.
    #[inline]
    pub(super) fn shrinks_to(&self, window: u64) -> bool {
        let slack = (1 << self.scale) - 1;
        window + slack < self.last()
    }

    #[inline]
    fn note(&mut self, window: u64) {
        self.last = u32::try_from(window).unwrap_or(u32::MAX);
    }
}
