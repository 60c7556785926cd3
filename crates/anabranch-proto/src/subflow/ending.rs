//! The end of a subflow: closed in order, reset with or without a reason, or abandoned.

use anabranch_wire::Instant;
use anabranch_wire::mptcp::{Control, MpFail, MpFastclose, MpTcprst};

use super::{State, Subflow, SubflowTimer};

/// Reason for the end of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubflowEnd {
    /// Both directions were closed in order.
    Finished,
    /// The peer answered a SYN with RST.
    Refused,
    /// The peer reset the subflow.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// This host reset the subflow.
    Aborted,
}

/// Progress of the end: this host's FIN, or its reset.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The application's FIN must be sent after all data.
    fin_wanted: bool,
    fin_sent: bool,
    /// The peer has nothing to send either, so the wait for its FIN is limited.
    peer_is_done: bool,
    /// A reset must be sent, with these options.
    reset_due: bool,
    reset_options: Option<Box<Control>>,
    end: Option<SubflowEnd>,
}

impl Ending {
    /// Send a FIN after all data.
    fn want_fin(&mut self, peer_is_done: bool) {
        self.fin_wanted = true;
        self.peer_is_done |= peer_is_done;
    }

    #[inline]
    pub(super) fn wants_fin(&self) -> bool {
        self.fin_wanted
    }

    /// Returns `true` if the FIN is still to be sent.
    #[inline]
    pub(super) fn fin_is_due(&self) -> bool {
        self.fin_wanted && !self.fin_sent
    }

    pub(super) fn on_fin_sent(&mut self) {
        self.fin_sent = true;
    }

    #[inline]
    pub(super) fn has_sent_fin(&self) -> bool {
        self.fin_sent
    }

    pub(super) fn peer_is_done(&self) -> bool {
        self.peer_is_done
    }

    #[inline]
    pub(super) fn reset_is_due(&self) -> bool {
        self.reset_due
    }

    /// Returns the options of a reset that is due, once.
    pub(super) fn take_reset(&mut self) -> Option<Option<Box<Control>>> {
        std::mem::take(&mut self.reset_due).then(|| self.reset_options.take())
    }
}

impl Subflow {
    /// Returns `true` if the subflow is closed, or about to be reset.
    pub(crate) fn reset_pending(&self) -> bool {
        self.reset_is_due() || self.state == State::Closed
    }

    /// Returns `true` if this host is about to reset the subflow.
    pub(crate) fn reset_is_due(&self) -> bool {
        self.ending.reset_is_due()
    }

    pub(crate) fn end(&self) -> Option<SubflowEnd> {
        self.ending.end
    }

    /// Close the sending direction after all data. `peer_is_done` is true if the peer will send
    /// nothing but its FIN.
    pub(crate) fn finish(&mut self, peer_is_done: bool) {
        self.ending.want_fin(peer_is_done);
        if self.state == State::SynSent {
            self.close(SubflowEnd::Aborted);
        }
    }

    /// Close the sending direction of a subflow whose connection has ended in both directions, and limit
    /// the wait for the peer's FIN.
    pub(crate) fn finish_with_peer(&mut self, now: Instant) {
        self.finish(true);
        if self.state == State::FinWait2 {
            self.limit_fin_wait(now);
        }
    }

    /// Wait only for a limited time for the peer's FIN, which a dead path may never bring.
    pub(super) fn limit_fin_wait(&mut self, now: Instant) {
        self.timers.set_if_earlier(SubflowTimer::TimeWait, now + self.config.tcp.time_wait);
    }

    /// Reset the subflow, and send the peer the reason if there is one.
    pub(crate) fn reset(&mut self, reason: Option<MpTcprst>) {
        let saying = |reason| Box::new(Control { reset: Some(reason), ..Control::default() });
        self.reset_saying(reason.map(saying));
    }

    /// Reset the subflow because the whole connection ends. RFC 8684 §3.5.
    pub(crate) fn fastclose(&mut self, fastclose: MpFastclose) {
        let control = Control { fastclose: Some(fastclose), ..Control::default() };
        self.reset_saying(Some(Box::new(control)));
    }

    /// Close the subflow without telling the peer.
    pub(crate) fn abandon(&mut self, end: SubflowEnd) {
        self.close(end);
    }

    /// Reset the subflow because a middlebox changed its data. RFC 8684 §3.7.
    pub(crate) fn reset_failing(&mut self, fail: MpFail, reason: MpTcprst) {
        let control = Control { fail: Some(fail), reset: Some(reason), ..Control::default() };
        self.reset_saying(Some(Box::new(control)));
    }

    fn reset_saying(&mut self, reason: Option<Box<Control>>) {
        if self.state == State::SynSent {
            self.close(SubflowEnd::Aborted);
        } else if self.state != State::Closed {
            (self.ending.reset_due, self.ending.reset_options) = (true, reason);
        }
    }

    pub(super) fn close(&mut self, end: SubflowEnd) {
        self.state = State::Closed;
        self.ending.end.get_or_insert(end);
        self.timers.stop_all();
        self.handshake.end_syns();
    }
}
