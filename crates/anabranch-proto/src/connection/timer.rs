//! The timers of the data level.

/// Each variant says when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// When to send the oldest unacknowledged data again, on whatever subflow. RFC 8684 §3.3.6.
    Retransmission,
    /// When to ask a peer with a closed window whether it has opened, or to use a small one.
    /// RFC 9293 §3.8.6.1.
    Persist,
    /// When payload may have waited for its mapping for too long.
    Unmapped,
    /// When MP_FAIL goes out again.
    Fail,
    /// When the connection ends if the peer acknowledges no more data.
    GiveUp,
    /// When a connection without subflows is given up.
    Orphan,
    /// When a scheduler that waits wants to be asked again.
    Scheduler,
}

impl crate::timers::Timer for Timer {
    const IN_ORDER: &'static [Timer] = &[
        Timer::Retransmission,
        Timer::Persist,
        Timer::Unmapped,
        Timer::Fail,
        Timer::GiveUp,
        Timer::Orphan,
        Timer::Scheduler,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// The timers of a connection.
pub(super) type TimerTable = crate::timers::TimerTable<Timer, 7>;
