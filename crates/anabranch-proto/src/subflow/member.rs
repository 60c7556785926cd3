//! A subflow as a member of its connection: what the data level tells it about Multipath TCP, which
//! TCP does not know. RFC 8684.

use anabranch_wire::Segment;
use anabranch_wire::mptcp::{Control, Mapping};

use super::Subflow;
use super::handshake::{FastOpen, FastOpenOutcome};
use super::signals::Signals;
use crate::view::Bottleneck;

impl Subflow {
    /// Signals that wait for an acknowledgement to carry them.
    #[inline]
    pub(crate) fn signals_mut(&mut self) -> &mut Signals {
        &mut self.signals
    }

    /// Returns `true` if the peer is known to have completed the handshake.
    #[inline]
    pub(crate) fn is_confirmed(&self) -> bool {
        self.handshake.is_confirmed()
    }

    /// Something shows that the peer has completed the handshake.
    #[inline]
    pub(crate) fn confirm(&mut self) {
        self.handshake.confirm();
    }

    /// Returns `true` if the subflow joins, and the peer may not have completed the handshake.
    #[inline]
    pub(super) fn awaits_confirmation(&self) -> bool {
        self.identity.is_join() && !self.handshake.is_confirmed()
    }

    /// Use TCP Fast Open in the handshake.
    pub(crate) fn set_fast_open(&mut self, fast_open: FastOpen) {
        self.handshake.set_fast_open(fast_open);
    }

    /// Outcome of the attempt to use TCP Fast Open, if the SYN/ACK shows one.
    pub(crate) fn fast_open_outcome(&self, syn_ack: &Segment) -> Option<FastOpenOutcome> {
        self.handshake.learn(syn_ack.options.fast_open.as_deref(), self.una.saturating_sub(1))
    }

    /// SYN retransmissions with MP_CAPABLE, before the SYNs that open a connection omit it.
    pub(super) fn syn_retries_before_fallback(&self) -> u32 {
        let of_platform = self.config.platform.syn_fallback.syn_retries;
        of_platform.map_or(self.config.tcp.syn_retries_before_fallback, u32::from)
    }

    /// Returns `true` if the latest SYN was the first without MP_CAPABLE.
    pub(crate) fn has_just_omitted_capable(&self) -> bool {
        self.handshake.syns_sent() == self.syn_retries_before_fallback() + 2
    }

    /// Carry these options on the segments of the handshake, from now on.
    pub(crate) fn carry_handshake(&mut self, options: Option<Box<Control>>) {
        self.handshake.carry(options);
    }

    /// The peer has answered the SYN of a join: these are its address and its request.
    pub(crate) fn on_join_answer(&mut self, remote_address_id: u8, backup: bool) {
        self.identity.remote_address_id = remote_address_id;
        self.priority.on_request(backup);
    }

    /// The SYN of a join asks the peer for this priority.
    pub(crate) fn request_priority(&mut self, backup: bool) {
        self.priority.signal(backup);
    }

    /// The peer requests this priority.
    pub(crate) fn on_priority_request(&mut self, backup: bool) {
        self.priority.on_request(backup);
    }

    /// Ask the peer with MP_PRIO for this priority. RFC 8684 §3.3.8.
    pub(crate) fn signal_priority(&mut self, backup: bool) {
        self.priority.signal(backup);
        self.signals.priority(backup);
    }

    /// The path manager wants this priority, and the peer is not told.
    pub(crate) fn set_standby(&mut self, backup: bool) {
        self.priority.set_standby(backup);
    }

    /// Multipath TCP ends here: discard all its signals.
    pub(crate) fn forget_signals(&mut self) {
        self.signals.forget();
        self.handshake.forget_options();
        self.priority.forget();
    }

    /// Announce on every segment that Multipath TCP ends, until the peer acknowledges one of them.
    pub(crate) fn announce_infinite(&mut self, mapping: Mapping) {
        self.signals.announce_infinite(mapping, self.nxt);
    }

    /// Returns `true` if the peer is still unaware that Multipath TCP has ended.
    pub(crate) fn announces_infinite(&self) -> bool {
        self.signals.infinite().is_some()
    }

    /// Stop announcing the infinite mapping if it has arrived. Returns true in that case.
    pub(crate) fn end_announcement(&mut self) -> bool {
        self.signals.end_announcement(self.una)
    }

    /// Returns `true` if signals wait for an acknowledgement to carry them.
    pub(crate) fn has_signals_to_send(&self) -> bool {
        self.signals.are_waiting() && self.handshake.is_confirmed()
    }

    /// The one-way delay that the latest acknowledgement has shown, once.
    #[inline]
    pub(crate) fn take_one_way_delay(&mut self) -> Option<i32> {
        self.one_way_delay.take()
    }

    /// The connection's detector has judged the subflow's bottleneck.
    pub(crate) fn on_bottleneck(&mut self, verdict: Bottleneck) {
        self.bottleneck = verdict;
    }
}
