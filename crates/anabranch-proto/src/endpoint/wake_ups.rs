//! The times at which connections need attention.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_wire::Instant;

use super::slot::ConnectionSlot;

/// Times with the indices of connections. Entries that differ from the time of their slot are stale.
#[derive(Debug, Default)]
pub(super) struct WakeUps(BinaryHeap<Reverse<(Instant, u32)>>);

/// Number of wake-ups per connection above which stale ones are removed.
const STALE_PER_SLOT: usize = 8;

impl WakeUps {
    /// The earliest time.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Take the earliest time and its connection, if the time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let Reverse(first) = *self.0.peek()?;
        if first.0 > now {
            return None;
        }
        self.0.pop();
        Some(first)
    }

    /// Wake the connection at `index` by `deadline`.
    pub(super) fn wake_by(&mut self, deadline: Instant, index: u32, slots: &mut [ConnectionSlot]) {
        let slot = &mut slots[index as usize];
        if deadline >= slot.wake_up {
            return;
        }
        slot.wake_up = deadline;
        self.0.push(Reverse((deadline, index)));
        // Stale entries are removed at their time, which may be hours away.
        if self.0.len() > STALE_PER_SLOT * (slots.len() + 16) {
            self.0.clear();
            let awaited = |(slot, index): (&ConnectionSlot, u32)| {
                (slot.wake_up != Instant::FAR_FUTURE).then_some(Reverse((slot.wake_up, index)))
            };
            self.0.extend(slots.iter().zip(0..).filter_map(awaited));
        }
    }
}
