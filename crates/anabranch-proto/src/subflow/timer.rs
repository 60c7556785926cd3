//! The timers of one subflow.

use anabranch_wire::{Duration, Instant};

/// Each variant documents when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubflowTimer {
    /// When to retransmit unacknowledged data, a SYN, or the third ACK of a join. RFC 6298.
    Retransmission,
    /// When to probe for the loss of the last segments of a flight. RFC 8985 §7.
    TailLossProbe,
    /// When a reordered segment counts as lost. RFC 8985 §6.2.
    Reordering,
    /// When to send a delayed acknowledgement. RFC 9293 §3.8.6.3.
    DelayedAck,
    /// When to probe whether an idle peer is still there. RFC 9293 §3.8.4.
    KeepAlive,
    /// When to give up on unacknowledged data. RFC 9293 §3.8.3.
    UserTimeout,
    /// When to give up a path that the peer has reported as gone, and that does not answer. RFC
    /// 8684 §3.4.2.
    Verification,
    /// When the port pair may be forgotten. RFC 9293 §3.6.1.
    TimeWait,
}

impl crate::timers::TimerKind for SubflowTimer {
    /// A probe precedes the timeout that it defers. RFC 8985 §7.2.
    const IN_ORDER: &'static [SubflowTimer] = &[
        SubflowTimer::TailLossProbe,
        SubflowTimer::Retransmission,
        SubflowTimer::Reordering,
        SubflowTimer::DelayedAck,
        SubflowTimer::KeepAlive,
        SubflowTimer::UserTimeout,
        SubflowTimer::Verification,
        SubflowTimer::TimeWait,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// The timers of a subflow.
pub(crate) type SubflowTimers = crate::timers::TimerTable<SubflowTimer, 8>;

/// Times for which the timers of losses were requested. They may fire later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    retransmission: Instant,
    probe: Instant,
}

impl Requested {
    pub(super) const NOTHING: Requested =
        Requested { retransmission: Instant::FAR_FUTURE, probe: Instant::FAR_FUTURE };
}

impl super::Subflow {
    /// RFC 6298 §5: start the retransmission timer.
    #[inline]
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        let wait = self.rtt.rto();
        self.requested.retransmission = now + wait;
        self.timers.set(SubflowTimer::Retransmission, self.config.platform.expiry.fires(now, wait));
    }

    /// Start the timer of the tail loss probe, which precedes the retransmission timeout.
    #[inline]
    pub(super) fn start_tail_loss_probe(&mut self, now: Instant, wait: Duration) {
        let (mut requested, mut fires) = (now + wait, self.config.platform.expiry.fires(now, wait));
        if let Some(timeout) = self.timers.get(SubflowTimer::Retransmission) {
            requested = requested.min(self.requested.retransmission);
            fires = fires.min(timeout);
        }
        self.requested.probe = requested;
        self.timers.set(SubflowTimer::TailLossProbe, fires);
    }

    /// Time for which the next retransmission or probe was requested, if anything is outstanding.
    pub(crate) fn next_loss_timer(&self) -> Option<Instant> {
        let requested = |timer, at| self.timers.is_running(timer).then_some(at);
        let timers = [
            requested(SubflowTimer::TailLossProbe, self.requested.probe),
            requested(SubflowTimer::Retransmission, self.requested.retransmission),
            self.timers.get(SubflowTimer::Reordering),
        ];
        timers.into_iter().flatten().min()
    }
}
