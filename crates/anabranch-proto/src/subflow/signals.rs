//! Signals: Multipath TCP options other than data. Each elicits an acknowledgement that carries it.

use anabranch_wire::mptcp::{AddAddr, Control, Mapping, MpFail, MpPrio, RemoveAddr};

use super::{Priority, Subflow};

impl Subflow {
    /// Ask the peer to treat the subflow as a backup, or as a regular one. RFC 8684 §3.3.8.
    pub(crate) fn signal_priority(&mut self, backup: bool) {
        self.priority.signalled = backup;
        self.signals.get_or_insert_default().prio = Some(MpPrio { backup });
    }

    /// Tell the peer on this subflow that addresses are gone. RFC 8684 §3.4.2.
    pub(crate) fn signal_removal(&mut self, removed: RemoveAddr) {
        self.signals.get_or_insert_default().remove_addr = Some(removed);
    }

    /// Announce or echo an address on this subflow. Returns false if other signals are waiting,
    /// because ADD_ADDR fills the options. RFC 8684 §3.4.1.
    pub(crate) fn signal_address(&mut self, option: AddAddr) -> bool {
        let free = self.signals.is_none();
        if free {
            self.signals.get_or_insert_default().add_addr = Some(option);
        }
        free
    }

    /// Tell the peer that a mapping failed its checksum, or answer the peer's MP_FAIL. It replaces
    /// all waiting signals, which no longer matter. RFC 8684 §3.7.
    pub(crate) fn signal_fail(&mut self, fail: MpFail) {
        self.signals = Some(Box::new(Control { fail: Some(fail), ..Control::default() }));
    }

    /// Returns `true` if signals wait for an acknowledgement to carry them.
    pub(crate) fn has_signals_to_send(&self) -> bool {
        self.signals.is_some() && self.confirmed
    }

    /// Multipath TCP ends here: discard all its signals.
    pub(crate) fn forget_signals(&mut self) {
        self.signals = None;
        self.handshake_options = None;
        self.priority = Priority::default();
        self.confirmed = true;
    }

    /// Announce on every segment that Multipath TCP ends, until the peer acknowledges one of them.
    pub(crate) fn announce_infinite(&mut self, mapping: Mapping) {
        self.infinite = Some(Box::new((mapping, self.nxt)));
    }

    /// Returns `true` if the peer is still unaware that Multipath TCP has ended.
    pub(crate) fn announces_infinite(&self) -> bool {
        self.infinite.is_some()
    }

    /// Stop announcing the infinite mapping if it has arrived. Returns true in that case.
    pub(crate) fn end_announcement(&mut self) -> bool {
        self.infinite.take_if(|announced| self.una > announced.1).is_some()
    }
}
