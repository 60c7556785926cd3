//! Requests to use a subflow only if no regular subflow is usable. RFC 8684 §3.3.8.

/// Requests to use the subflow as a backup, by requester.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Priority {
    /// This host requested it of the peer with MP_JOIN or MP_PRIO, and does the same itself.
    signalled: bool,
    /// The peer requested it.
    by_peer: bool,
    /// Only this host's path manager requested it, without telling the peer.
    standby: bool,
}

impl Priority {
    #[inline]
    pub(super) fn is_backup(&self) -> bool {
        self.signalled || self.by_peer || self.standby
    }

    /// This host requests it of the peer, or no longer does.
    pub(super) fn signal(&mut self, backup: bool) {
        self.signalled = backup;
    }

    /// The peer requests it, or no longer does.
    pub(super) fn on_request(&mut self, backup: bool) {
        self.by_peer = backup;
    }

    pub(super) fn set_standby(&mut self, backup: bool) {
        self.standby = backup;
    }

    /// Returns `true` if the peer was asked to leave the subflow alone.
    pub(super) fn is_signalled(&self) -> bool {
        self.signalled
    }

    /// Multipath TCP ends here.
    pub(super) fn forget(&mut self) {
        *self = Priority::default();
    }
}
