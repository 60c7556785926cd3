//! The timers of the data level.

/// Each variant documents when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionTimer {
    /// When to reinject the oldest unacknowledged data on any subflow. RFC 8684 §3.3.6.
    Retransmission,
    /// When to probe a closed window of the peer, or to use a small one. RFC 9293 §3.8.6.1.
    Persist,
    /// When payload may have waited too long for its mapping.
    Unmapped,
    /// When to repeat MP_FAIL.
    Fail,
    /// When to end the connection if the peer acknowledges no more data, or keeps its direction open after
    /// the application has released the connection.
    GiveUp,
    /// When to give up a connection without subflows.
    Orphan,
    /// When to ask a scheduler again that has decided to wait.
    Scheduler,
}

impl crate::timers::TimerKind for ConnectionTimer {
    const IN_ORDER: &'static [ConnectionTimer] = &[
        ConnectionTimer::Retransmission,
        ConnectionTimer::Persist,
        ConnectionTimer::Unmapped,
        ConnectionTimer::Fail,
        ConnectionTimer::GiveUp,
        ConnectionTimer::Orphan,
        ConnectionTimer::Scheduler,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// The timers of a connection.
pub(super) type ConnectionTimers = crate::timers::TimerTable<ConnectionTimer, 7>;
