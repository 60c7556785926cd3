//! Liveness: whether the peer still answers on a subflow.

use anabranch_wire::Instant;

use crate::platform::SilenceRule;

/// The answers that are missing, and the probes that ask for them.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// Retransmission timeouts since the last progress.
    timeouts_in_a_row: u16,
    /// Time of the first of them, or of the last timeout that the peer had answered.
    unanswered_since: Instant,
    /// Keep-alive probes since the peer last answered.
    keep_alive_probes: u16,
    /// A zero-length segment that elicits an acknowledgement must be sent.
    probe_due: bool,
    /// The peer reports that the path is gone, and nothing has arrived over it since.
    unverified: bool,
    /// Acceptable segments that have arrived, and their number when the retransmission timer last
    /// expired.
    answers: u32,
    answers_at_expiry: u32,
    /// The subflow is out of use until an acceptable segment arrives.
    stale: bool,
}

impl Liveness {
    /// A segment has arrived, acceptable or not.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.keep_alive_probes = 0;
    }

    /// An acceptable segment has arrived. Returns `true` if that verifies the path.
    #[inline]
    pub(super) fn on_answer(&mut self) -> bool {
        self.answers = self.answers.wrapping_add(1);
        self.stale = false;
        std::mem::take(&mut self.unverified)
    }

    /// The peer has acknowledged something new.
    #[inline]
    pub(super) fn on_progress(&mut self) {
        self.timeouts_in_a_row = 0;
    }

    /// The retransmission timer has expired without progress.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.timeouts_in_a_row == 0 {
            self.unanswered_since = now;
        }
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
    }

    /// The retransmission timer has expired, but the peer answers. RFC 9293 §3.8.6.1: as long as it does,
    /// its window may stay closed.
    pub(super) fn on_answered_timeout(&mut self, now: Instant) {
        self.unanswered_since = now;
    }

    #[inline]
    pub(super) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts_in_a_row.into()
    }

    /// Time of the first timeout in a row, or of the last that the peer had answered.
    pub(super) fn unanswered_since(&self) -> Instant {
        self.unanswered_since
    }

    /// Returns `true` if an acceptable segment has arrived since this was last asked.
    pub(super) fn take_answered(&mut self) -> bool {
        let before = std::mem::replace(&mut self.answers_at_expiry, self.answers);
        before != self.answers
    }

    /// Number of acceptable segments that have arrived, modulo 2^32.
    pub(super) fn answers(&self) -> u32 {
        self.answers
    }

    /// The subflow is out of use until an acceptable segment arrives.
    pub(super) fn becomes_stale(&mut self) {
        self.stale = true;
    }

    /// The peer reports that the path is gone. Returns `true` if that is news.
    pub(super) fn require_verification(&mut self) -> bool {
        let news = !self.unverified;
        self.unverified = true;
        news
    }

    /// Returns `true` if nothing shows that the path works.
    #[inline]
    pub(super) fn is_in_question(&self, rule: SilenceRule) -> bool {
        let silent = rule == SilenceRule::FirstTimeout && self.timeouts_in_a_row > 0;
        silent || self.unverified || self.stale
    }

    pub(super) fn demand_probe(&mut self) {
        self.probe_due = true;
    }

    /// Probe an idle peer. Returns `false` if `most` probes in a row have remained unanswered.
    pub(super) fn keep_alive(&mut self, most: u32) -> bool {
        let goes_on = u32::from(self.keep_alive_probes) < most;
        if goes_on {
            self.keep_alive_probes = self.keep_alive_probes.saturating_add(1);
            self.probe_due = true;
        }
        goes_on
    }

    #[inline]
    pub(super) fn probe_is_due(&self) -> bool {
        self.probe_due
    }

    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe_due)
    }
}
