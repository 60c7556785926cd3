//! What Multipath TCP tells the peer beside data: it goes out on the next acknowledgement, which it
//! brings about.

use anabranch_wire::mptcp::{AddAddr, Control, Mapping, MpFail, MpPrio, RemoveAddr};

use super::{Priority, Subflow};

impl Subflow {
    /// Have the peer treat the subflow as backup, or as a regular one. RFC 8684 §3.3.8.
    pub(crate) fn signal_priority(&mut self, backup: bool) {
        self.priority.signalled = backup;
        self.signals.get_or_insert_default().prio = Some(MpPrio { backup });
    }

    /// Tell the peer over this subflow that addresses are gone. RFC 8684 §3.4.2.
    pub(crate) fn signal_removal(&mut self, removed: RemoveAddr) {
        self.signals.get_or_insert_default().remove_addr = Some(removed);
    }

    /// Tell the peer an address over this subflow, or echo one, unless something else is waiting to
    /// be told: ADD_ADDR fills the options. RFC 8684 §3.4.1.
    pub(crate) fn signal_address(&mut self, option: AddAddr) -> bool {
        let free = self.signals.is_none();
        if free {
            self.signals.get_or_insert_default().add_addr = Some(option);
        }
        free
    }

    /// Tell the peer that a mapping failed its checksum, or answer that it said so, on an
    /// acknowledgement: nothing that waits to be told matters any more. RFC 8684 §3.7.
    pub(crate) fn signal_fail(&mut self, fail: MpFail) {
        self.signals = Some(Box::new(Control { fail: Some(fail), ..Control::default() }));
    }

    /// Do signals wait for the next acknowledgement, which they bring about?
    pub(crate) fn has_signals_to_send(&self) -> bool {
        self.signals.is_some() && self.confirmed
    }

    /// Multipath TCP ends here: nothing of it is told any more.
    pub(crate) fn forget_signals(&mut self) {
        self.signals = None;
        self.handshake_options = None;
        self.priority = Priority::default();
        self.confirmed = true;
    }

    /// Have every segment say that Multipath TCP ends, until one of them is acknowledged.
    pub(crate) fn announce_infinite(&mut self, mapping: Mapping) {
        self.infinite = Some(Box::new((mapping, self.nxt)));
    }

    /// Does the peer not know yet that Multipath TCP has ended?
    pub(crate) fn announces_infinite(&self) -> bool {
        self.infinite.is_some()
    }

    /// Stop announcing the infinite mapping if it has arrived; true if so.
    pub(crate) fn end_announcement(&mut self) -> bool {
        self.infinite.take_if(|announced| self.una > announced.1).is_some()
    }
}
