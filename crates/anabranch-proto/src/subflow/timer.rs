//! The timers of one subflow.

use anabranch_wire::Instant;

/// Each variant documents when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
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
    Doubt,
    /// When the port pair may be forgotten. RFC 9293 §3.6.1.
    TimeWait,
}

impl crate::timers::Timer for Timer {
    /// A probe precedes the timeout that it defers. RFC 8985 §7.2.
    const IN_ORDER: &'static [Timer] = &[
        Timer::TailLossProbe,
        Timer::Retransmission,
        Timer::Reordering,
        Timer::DelayedAck,
        Timer::KeepAlive,
        Timer::UserTimeout,
        Timer::Doubt,
        Timer::TimeWait,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// The timers of a subflow.
pub(crate) type TimerTable = crate::timers::TimerTable<Timer, 8>;

impl super::Subflow {
    /// When the subflow will retransmit or probe, if anything is outstanding.
    pub(crate) fn next_loss_timer(&self) -> Option<Instant> {
        let timers = [Timer::TailLossProbe, Timer::Retransmission, Timer::Reordering];
        timers.into_iter().filter_map(|timer| self.timers.get(timer)).min()
    }
}
