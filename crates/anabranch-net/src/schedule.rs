//! Scheduled changes of a link.

use anabranch_wire::{Duration, Instant};

use crate::units::{Probability, Rate};

/// A change of a link. `None` leaves a property unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// New rate. It also applies to the remaining bytes of the packet in transmission. It has no
    /// effect on a link that follows a trace.
    pub rate: Option<Rate>,
    /// New delay, for packets that leave the transmitter from now on. If a shaper's delay comes first:
    /// for packets that arrive from now on.
    pub delay: Option<Duration>,
    /// New jitter, for the same packets.
    pub jitter: Option<Duration>,
    /// New loss probability, for packets that arrive from now on.
    pub loss: Option<Probability>,
    /// New state.
    pub state: Option<StateChange>,
}

/// A change of a link's state. Up and down are independent of suspend and resume. A suspended link
/// that goes down and up again is still suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// The link carries packets again.
    Up,
    /// All packets inside the link are lost. Every packet offered is lost too, until the link is
    /// up.
    Down,
    /// The transmitter pauses, even in the middle of a packet, and packets queue. Packets that have
    /// already left the transmitter are delivered.
    Suspend,
    /// The transmitter continues where it paused.
    Resume,
}

/// A change and the time at which it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledChange {
    /// Time of the change. At this time, it comes after deliveries and the end of a transmission,
    /// and before all other events of the link.
    pub at: Instant,
    /// The change.
    pub change: LinkChange,
}

/// Changes in chronological order. Simultaneous changes keep the order in which they were listed.
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

    /// Add a change that is not due yet, after those listed for the same time.
    pub(crate) fn add(&mut self, change: ScheduledChange) {
        let place = self.changes.partition_point(|each| each.at <= change.at);
        debug_assert!(place >= self.next, "changes at this time have taken effect");
        self.changes.insert(place.max(self.next), change);
    }

    /// Time of the next change; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
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
    fn an_added_change_takes_its_place_among_the_later_ones() {
        let change = |at, delay| ScheduledChange {
            at: Instant::from_nanos(at),
            change: LinkChange { delay: Some(Duration::from_nanos(delay)), ..Default::default() },
        };
        let mut schedule = Schedule::new(vec![change(5, 1), change(9, 2), change(12, 3)]);
        assert_eq!(schedule.take(), Some(change(5, 1)));
        schedule.add(change(9, 4));
        schedule.add(change(7, 5));
        let rest = std::array::from_fn(|_| schedule.take());
        assert_eq!(
            rest,
            [Some(change(7, 5)), Some(change(9, 2)), Some(change(9, 4)), Some(change(12, 3))]
        );
    }

    #[test]
    fn changes_are_ordered_by_time_and_then_by_listing() {
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
