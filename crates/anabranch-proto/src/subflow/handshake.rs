//! The handshake of a subflow: its SYNs, and the options that are repeated until the peer has
//! confirmed it.

use anabranch_wire::mptcp::Control;
use anabranch_wire::{Duration, FastOpenCookie, Flags, Instant, Payload, Segment};

/// Cookie and data of TCP Fast Open in this end's handshake. RFC 7413.
#[derive(Debug)]
pub(crate) struct FastOpen {
    /// Cookie of the first SYN, or of each SYN/ACK.
    pub(crate) cookie: FastOpenCookie,
    /// Data of the first SYN.
    pub(crate) data: Payload,
}

/// Outcome of an attempt to use TCP Fast Open between two addresses, for later attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastOpenOutcome {
    /// SYNs with this cookie may carry data.
    Cookie(FastOpenCookie),
    /// A SYN with the option, or with data, got no answer, and one without got one.
    Refused,
}

/// State of the handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    /// This host sent the first SYN.
    active: bool,
    /// The peer is known to have completed the handshake.
    confirmed: bool,
    /// A SYN or SYN/ACK must be sent now.
    syn_due: bool,
    /// SYNs or SYN/ACKs sent.
    syns_sent: u16,
    /// Time of the last SYN or SYN/ACK; far in the future if it is unknown.
    syn_sent_at: Instant,
    /// Multipath TCP options: on the SYN, then on ACKs until the peer confirms.
    options: Option<Box<Control>>,
    /// The peer's SYN, if it carried payload or a FIN that has not been processed.
    syn_payload: Option<Box<Segment>>,
    fast_open: Option<Box<FastOpen>>,
    /// The data of the peer's SYN was received, so this end may answer it before the handshake is
    /// complete. RFC 7413 §4.2.2.
    syn_data_received: bool,
    /// An earlier connection of the peer has answered the first SYN.
    met_earlier: bool,
}

impl Handshake {
    pub(super) fn new(active: bool) -> Self {
        Handshake {
            active,
            confirmed: false,
            syn_due: true,
            syns_sent: 0,
            syn_sent_at: Instant::FAR_FUTURE,
            options: None,
            syn_payload: None,
            fast_open: None,
            syn_data_received: false,
            met_earlier: false,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    #[inline]
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    #[inline]
    pub(super) fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// Multipath TCP ends here, and with it what the handshake would still have to say.
    pub(super) fn forget_options(&mut self) {
        (self.options, self.confirmed) = (None, true);
    }

    /// Carry these options, or none.
    pub(super) fn carry(&mut self, options: Option<Box<Control>>) {
        self.options = options;
    }

    pub(super) fn options(&self) -> Option<&Control> {
        self.options.as_deref()
    }

    /// The options, until the peer has confirmed the handshake.
    #[inline]
    pub(super) fn unconfirmed_options(&self) -> Option<&Control> {
        if self.confirmed { None } else { self.options() }
    }

    #[inline]
    pub(super) fn syn_is_due(&self) -> bool {
        self.syn_due
    }

    pub(super) fn demand_syn(&mut self) {
        self.syn_due = true;
    }

    /// The peer has answered, or the subflow has ended.
    pub(super) fn end_syns(&mut self) {
        self.syn_due = false;
    }

    /// Use TCP Fast Open in the handshake.
    pub(super) fn set_fast_open(&mut self, fast_open: FastOpen) {
        self.fast_open = Some(Box::new(fast_open));
    }

    /// Cookie and data for the SYN or SYN/ACK that is sent now. RFC 7413 §4.1.3.1: a SYN is
    /// retransmitted without them, because the path may drop SYNs with data or with the option.
    pub(super) fn fast_open(&self) -> Option<&FastOpen> {
        self.fast_open.as_deref().filter(|_| !self.active || self.syns_sent == 1)
    }

    /// Bytes of data that SYNs of this end have carried.
    pub(super) fn data_in_syn(&self) -> u64 {
        let sent = self.fast_open.as_ref().filter(|_| self.active && self.syns_sent > 0);
        sent.map_or(0, |fast_open| fast_open.data.len() as u64)
    }

    /// The SYN/ACK has this cookie, and acknowledges `taken` bytes of the SYN's data.
    pub(super) fn learn(
        &self,
        cookie: Option<&FastOpenCookie>,
        taken: u64,
    ) -> Option<FastOpenOutcome> {
        self.fast_open.as_ref().filter(|_| self.active)?;
        match cookie.filter(|cookie| !cookie.is_request()) {
            Some(cookie) => Some(FastOpenOutcome::Cookie(*cookie)),
            None => (self.syns_sent > 1 && taken == 0 && !self.met_earlier)
                .then_some(FastOpenOutcome::Refused),
        }
    }

    /// An earlier connection of the peer has answered the first SYN. That says nothing about data in
    /// SYNs.
    pub(super) fn on_earlier_connection(&mut self) {
        self.met_earlier = true;
    }

    /// The data of the peer's SYN was received.
    pub(super) fn on_syn_data_received(&mut self) {
        self.syn_data_received = true;
    }

    /// Returns `true` if data may be sent before the handshake is complete.
    pub(super) fn syn_data_received(&self) -> bool {
        self.syn_data_received
    }

    /// Returns `true` if it is a retransmission.
    pub(super) fn on_syn_sent(&mut self, now: Instant) -> bool {
        let again = self.syns_sent > 0;
        self.syns_sent = self.syns_sent.saturating_add(1);
        (self.syn_due, self.syn_sent_at) = (false, now);
        again
    }

    pub(super) fn syns_sent(&self) -> u32 {
        self.syns_sent.into()
    }

    /// The time of the SYN/ACK is unknown.
    pub(super) fn forget_syn_time(&mut self) {
        self.syn_sent_at = Instant::FAR_FUTURE;
    }

    /// The round-trip time from an answered SYN. A retransmitted SYN gives a sample only if the
    /// answer `echoes` its last transmission (RFC 6298 §3, RFC 7323 §4.1): an older echo belongs to
    /// a SYN that arrived late, or to one whose answer was lost.
    pub(super) fn rtt(&self, now: Instant, echoes: impl Fn(Instant) -> bool) -> Option<Duration> {
        let sent = self.syn_sent_at;
        let is_answered = self.syns_sent == 1 || echoes(sent);
        (sent != Instant::FAR_FUTURE && is_answered).then(|| now.saturating_since(sent))
    }

    /// Keep a SYN with payload or a FIN for later. A SYN of Multipath TCP is not kept: its payload
    /// has no mapping, and the peer will send it again.
    pub(super) fn keep_payload(&mut self, syn: &Segment) {
        let keeps = !syn.payload.is_empty() || syn.header.flags.contains(Flags::FIN);
        self.syn_payload = (keeps && syn.options.control.is_none()).then(|| Box::new(syn.clone()));
    }

    pub(super) fn take_payload(&mut self) -> Option<Box<Segment>> {
        self.syn_payload.take()
    }
}
