//! The clock of a run: the host's monotonic clock, starting at 0 with the run.

use anabranch_wire::Instant;

use crate::sys::{self, ClockId};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
}

impl Clock {
    /// Start the clock.
    pub(crate) fn start() -> Self {
        Clock { start: sys::clock(ClockId::Monotonic) }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(sys::clock(ClockId::Monotonic).saturating_sub(self.start))
    }

    /// The time of the run at a given time of day. The time of day may have been set since the start.
    pub(crate) fn at_time_of_day(self, time_of_day: u64) -> Instant {
        let ago = sys::clock(ClockId::Realtime).saturating_sub(time_of_day);
        Instant::from_nanos(self.now().as_nanos().saturating_sub(ago))
    }
}
