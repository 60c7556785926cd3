//! Signals: Multipath TCP options other than data. Each elicits an acknowledgement that carries it.

use anabranch_wire::mptcp::{AddAddr, Control, Mapping, MpFail, MpPrio, RemoveAddr};
use anabranch_wire::{Duration, Instant, MAX_OPTION_BYTES, TcpOptions};

/// Options that wait for an acknowledgement, and the announcement that Multipath TCP ends.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Options to send on an acknowledgement of their own.
    waiting: Option<Box<Control>>,
    /// The infinite mapping that ends Multipath TCP. It is sent until a byte from this offset on is
    /// acknowledged. RFC 8684 §3.7.
    infinite: Option<Box<(Mapping, u64)>>,
    /// Time of the last MP_PRIO.
    priority_sent: Instant,
}

impl Signals {
    /// Ask the peer to treat the subflow as a backup, or as a regular one. RFC 8684 §3.3.8.
    pub(super) fn priority(&mut self, backup: bool) {
        self.waiting.get_or_insert_default().prio = Some(MpPrio { backup });
    }

    /// Tell the peer on this subflow that addresses are gone. RFC 8684 §3.4.2.
    pub(crate) fn removal(&mut self, removed: RemoveAddr) {
        self.waiting.get_or_insert_default().remove_addr = Some(removed);
    }

    /// Announce or echo an address on this subflow. Returns false if other signals are waiting,
    /// because ADD_ADDR fills the options. RFC 8684 §3.4.1.
    pub(crate) fn address(&mut self, option: AddAddr) -> bool {
        let free = self.waiting.is_none();
        if free {
            self.waiting.get_or_insert_default().add_addr = Some(option);
        }
        free
    }

    /// Tell the peer that a mapping failed its checksum, or answer the peer's MP_FAIL. It replaces
    /// all waiting signals, which no longer matter. RFC 8684 §3.7.
    pub(crate) fn fail(&mut self, fail: MpFail) {
        self.waiting = Some(Box::new(Control { fail: Some(fail), ..Control::default() }));
    }

    #[inline]
    pub(super) fn are_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Multipath TCP ends here.
    pub(super) fn forget(&mut self) {
        self.waiting = None;
    }

    /// Attach the signals. If they do not fit next to a DATA_ACK that is due, the DATA_ACK precedes
    /// them. Otherwise the first acknowledgement of data would have no DATA_ACK. If its options
    /// were removed, this would mean a fallback (RFC 8684 §3.7).
    pub(super) fn attach(&mut self, now: Instant, options: &mut TcpOptions, ack_is_due: bool) {
        options.control = self.waiting.take();
        if options.bytes_len() > MAX_OPTION_BYTES {
            if ack_is_due {
                self.waiting = options.control.take();
                return;
            }
            options.dss = None;
        }
        if options.bytes_len() > MAX_OPTION_BYTES {
            // RFC 8684 §3.4.1: ADD_ADDR fills the options. Signals that were added later precede
            // it.
            let control = options.control.as_mut();
            let add_addr = control.and_then(|control| control.add_addr.take());
            self.waiting = Some(Box::new(Control { add_addr, ..Control::default() }));
        }
        if options.control.as_ref().is_some_and(|control| control.prio.is_some()) {
            self.priority_sent = now;
        }
    }

    /// Time since the last MP_PRIO.
    pub(super) fn since_priority(&self, now: Instant) -> Duration {
        now.saturating_since(self.priority_sent)
    }

    /// Announce on every segment from offset `nxt` on that Multipath TCP ends, until the peer
    /// acknowledges one of them.
    pub(super) fn announce_infinite(&mut self, mapping: Mapping, nxt: u64) {
        self.infinite = Some(Box::new((mapping, nxt)));
    }

    /// The infinite mapping, while the peer is still unaware that Multipath TCP has ended.
    #[inline]
    pub(crate) fn infinite(&self) -> Option<Mapping> {
        self.infinite.as_deref().map(|(mapping, _)| *mapping)
    }

    /// Stop announcing the infinite mapping if data beyond its start is acknowledged. Returns true
    /// in that case.
    pub(super) fn end_announcement(&mut self, una: u64) -> bool {
        self.infinite.take_if(|announced| una > announced.1).is_some()
    }
}
