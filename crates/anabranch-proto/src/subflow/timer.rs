//! The timers of one subflow.

use anabranch_wire::Instant;

/// Each variant says when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// When to send unacknowledged data, a SYN, or a join's third ACK again. RFC 6298.
    Retransmission,
    /// When to probe for the loss of the last segments of a flight. RFC 8985 §7.
    TailLossProbe,
    /// When a reordered segment counts as lost. RFC 8985 §6.2.
    Reordering,
    /// When an acknowledgement can be delayed no longer. RFC 9293 §3.8.6.3.
    DelayedAck,
    /// When to ask an idle peer whether it is still there. RFC 9293 §3.8.4.
    KeepAlive,
    /// When to give up on data that nobody acknowledges. RFC 9293 §3.8.3.
    UserTimeout,
    /// When a path that the peer has given up has not answered. RFC 8684 §3.4.2.
    Doubt,
    /// When the port pair may be forgotten. RFC 9293 §3.6.1.
    TimeWait,
}

/// In the order in which timers with the same deadline fire: a probe comes before the timeout
/// that it puts off. RFC 8985 §7.2.
const ALL: [Timer; 8] = [
    Timer::TailLossProbe,
    Timer::Retransmission,
    Timer::Reordering,
    Timer::DelayedAck,
    Timer::KeepAlive,
    Timer::UserTimeout,
    Timer::Doubt,
    Timer::TimeWait,
];

/// One deadline per timer; [`Instant::FAR_FUTURE`] stands for "not running".
#[derive(Clone, Debug)]
pub(crate) struct TimerTable {
    deadlines: [Instant; ALL.len()],
}

impl TimerTable {
    pub(crate) fn new() -> Self {
        TimerTable { deadlines: [Instant::FAR_FUTURE; ALL.len()] }
    }

    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = Instant::FAR_FUTURE;
    }

    pub(crate) fn stop_all(&mut self) {
        *self = TimerTable::new();
    }

    pub(crate) fn get(&self, timer: Timer) -> Option<Instant> {
        let at = self.deadlines[timer as usize];
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// The earliest deadline, or [`Instant::FAR_FUTURE`].
    pub(crate) fn next(&self) -> Instant {
        self.deadlines.iter().copied().min().expect("there are timers")
    }

    /// Stop and return a timer whose deadline is not after `now`.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<Timer> {
        let timer = ALL.into_iter().find(|timer| self.deadlines[*timer as usize] <= now)?;
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Duration;

    #[test]
    fn an_expired_timer_fires_once_and_the_earliest_deadline_is_next() {
        let mut timers = TimerTable::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        timers.set(Timer::DelayedAck, at(40));
        timers.set(Timer::Retransmission, at(200));
        assert_eq!(timers.next(), at(40));
        assert_eq!(timers.pop_expired(at(39)), None);
        assert_eq!(timers.pop_expired(at(40)), Some(Timer::DelayedAck));
        assert_eq!(timers.pop_expired(at(40)), None);
        assert_eq!(timers.next(), at(200));
    }
}
