//! Signs of what a path does to a subflow: whether it carries the options of Multipath TCP, and
//! whether it modifies payload. RFC 8684 §3.7.

use anabranch_wire::Instant;

/// Record of the segments that have arrived on a subflow with and without options of Multipath TCP.
#[derive(Debug)]
pub(super) struct Signs {
    /// A data sequence signal has arrived on the subflow.
    has_dss: bool,
    /// Time of the last one.
    last_dss: Instant,
    /// Since the last data sequence signal, data was acknowledged without any Multipath TCP option.
    optionless_acks: bool,
    /// Subflow offset of the end of the last payload without any Multipath TCP option.
    optionless_end: u64,
    /// The peer's FIN came without any Multipath TCP option.
    optionless_fin: bool,
    /// Time since which payload waits for a mapping; far in the future if none does.
    unmapped_since: Instant,
    /// The path modifies its payload, so data acknowledged on the subflow may not have arrived.
    payload_unreliable: bool,
}

impl Signs {
    pub(super) fn new() -> Self {
        Signs {
            has_dss: false,
            last_dss: Instant::ZERO,
            optionless_acks: false,
            optionless_end: 0,
            optionless_fin: false,
            unmapped_since: Instant::FAR_FUTURE,
            payload_unreliable: false,
        }
    }

    /// A data sequence signal has arrived.
    #[inline]
    pub(super) fn on_dss(&mut self, now: Instant) {
        (self.has_dss, self.last_dss, self.optionless_acks) = (true, now, false);
    }

    /// Another option has proved that options pass.
    pub(super) fn on_proof(&mut self) {
        self.has_dss = true;
    }

    /// Returns `true` if options are known to pass.
    #[inline]
    pub(super) fn has_dss(&self) -> bool {
        self.has_dss
    }

    #[inline]
    pub(super) fn last_dss(&self) -> Instant {
        self.last_dss
    }

    /// Payload up to subflow offset `end` has arrived without any option.
    pub(super) fn on_optionless_payload(&mut self, end: u64) {
        self.optionless_end = self.optionless_end.max(end);
    }

    /// Subflow offset of the end of the last payload without any option.
    #[inline]
    pub(super) fn optionless_end(&self) -> u64 {
        self.optionless_end
    }

    /// An acknowledgement of data has arrived without any option.
    pub(super) fn on_optionless_ack(&mut self) {
        self.optionless_acks = true;
    }

    /// Returns `true` if data was acknowledged without any option since the last data sequence
    /// signal.
    pub(super) fn has_optionless_acks(&self) -> bool {
        self.optionless_acks
    }

    pub(super) fn on_optionless_fin(&mut self) {
        self.optionless_fin = true;
    }

    pub(super) fn has_optionless_fin(&self) -> bool {
        self.optionless_fin
    }

    /// Payload waits for its mapping. Returns `true` if it has begun to wait now.
    pub(super) fn begin_to_wait(&mut self, now: Instant) -> bool {
        let begins = self.unmapped_since == Instant::FAR_FUTURE;
        self.unmapped_since = self.unmapped_since.min(now);
        begins
    }

    /// No payload waits for a mapping any more.
    pub(super) fn end_waiting(&mut self) {
        self.unmapped_since = Instant::FAR_FUTURE;
    }

    /// Time since which payload waits for a mapping.
    #[inline]
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        Some(self.unmapped_since).filter(|since| *since != Instant::FAR_FUTURE)
    }

    /// The path modifies payload, or the peer has discarded what it received.
    pub(super) fn mark_payload_unreliable(&mut self) {
        self.payload_unreliable = true;
    }

    /// Returns `true` if data that the subflow has acknowledged may not have arrived.
    pub(super) fn payload_unreliable(&self) -> bool {
        self.payload_unreliable
    }
}
