//! Changes to a link at times known in advance.

use anabranch_wire::{Duration, Instant};

use crate::units::{Probability, Rate};

/// What changes on a link; `None` leaves a property as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// New rate. The packet in transmission sends its remaining bits at it. A link that follows a
    /// trace goes on following it.
    pub rate: Option<Rate>,
    /// New delay, for packets that leave the transmitter from now on.
    pub delay: Option<Duration>,
    /// New jitter, for packets that leave the transmitter from now on.
    pub jitter: Option<Duration>,
    /// New loss probability, for packets that arrive from now on.
    pub loss: Option<Probability>,
    /// New state.
    pub state: Option<StateChange>,
}

/// A link being cut, restored, paused or resumed. The two pairs are independent of each other: a
/// link that is suspended, goes down and comes up is still suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// Packets are carried again.
    Up,
    /// Packets inside the link are lost, and so is every packet offered until it is up again.
    Down,
    /// The transmitter pauses, if need be in the middle of a packet: packets queue. Packets that
    /// have left it already are delivered.
    Suspend,
    /// The transmitter continues where it paused.
    Resume,
}

/// A change and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledChange {
    /// When it takes effect, before anything else that happens to the link at that time except
    /// the end of a transmission and deliveries that are due.
    pub at: Instant,
    /// What changes.
    pub change: LinkChange,
}

/// Changes in order of time; changes of the same time in the order in which they were listed.
#[derive(Debug)]
pub(crate) struct Schedule {
    changes: Vec<ScheduledChange>,
    next: usize,
}

impl Schedule {
    /// A schedule of `changes`, which may be listed in any order.
    pub(crate) fn new(mut changes: Vec<ScheduledChange>) -> Self {
        changes.sort_by_key(|change| change.at);
        Schedule { changes, next: 0 }
    }

    /// When the next change is due; [`Instant::FAR_FUTURE`] if there is none.
    pub(crate) fn next_at(&self) -> Instant {
        self.changes.get(self.next).map_or(Instant::FAR_FUTURE, |change| change.at)
    }

    /// Take the next change.
    pub(crate) fn take(&mut self) -> Option<ScheduledChange> {
        let change = self.changes.get(self.next).copied();
        self.next += 1;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_in_order_of_time_then_of_listing() {
        let change = |at, delay| ScheduledChange {
            at: Instant::from_nanos(at),
            change: LinkChange { delay: Some(Duration::from_nanos(delay)), ..Default::default() },
        };
        let mut schedule = Schedule::new(vec![change(9, 1), change(5, 2), change(5, 3)]);
        assert_eq!(schedule.next_at(), Instant::from_nanos(5));
        assert_eq!(schedule.take(), Some(change(5, 2)));
        assert_eq!(schedule.take(), Some(change(5, 3)));
        assert_eq!(schedule.take(), Some(change(9, 1)));
        assert_eq!((schedule.next_at(), schedule.take()), (Instant::FAR_FUTURE, None));
    }
}
