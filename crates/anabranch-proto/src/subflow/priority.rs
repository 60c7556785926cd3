//! Requests to use a subflow only if no regular subflow is usable. RFC 8684 §3.3.8.

use anabranch_wire::{Duration, Instant};

/// Who has requested to use the subflow as a backup.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Priority {
    /// This host requested it of the peer with MP_JOIN or MP_PRIO, and does the same itself.
    signalled: bool,
    /// The peer requested it.
    by_peer: bool,
    /// Only this host's path manager requested it, without telling the peer.
    standby: bool,
    /// Time of the last MP_PRIO.
    sent_at: Instant,
}

impl Priority {
    #[inline]
    pub(super) fn is_backup(&self) -> bool {
        self.signalled || self.by_peer || self.standby
    }

    /// This host requests it of the peer, or no longer does.
    #[inline]
    pub(super) fn signal(&mut self, backup: bool) {
        self.signalled = backup;
    }

    /// The peer requests it, or no longer does.
    #[inline]
    pub(super) fn on_request(&mut self, backup: bool) {
        self.by_peer = backup;
    }

    #[inline]
    pub(super) fn set_standby(&mut self, backup: bool) {
        self.standby = backup;
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.sent_at = now;
    }

    /// Returns `true` if the request to leave the subflow alone is older than `pause`.
    #[inline]
    pub(super) fn is_disregarded(&self, now: Instant, pause: Duration) -> bool {
        self.signalled && now.saturating_since(self.sent_at) > pause
    }

    /// Multipath TCP ends here.
    #[inline]
    pub(super) fn forget(&mut self) {
        *self = Priority { sent_at: self.sent_at, ..Priority::default() };
    }
}
