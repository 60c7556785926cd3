//! The clock of a run: the host's monotonic one, from the start of the run on.

use anabranch_wire::Instant;

use crate::sys;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
}

impl Clock {
    /// The run starts now.
    pub(crate) fn start() -> Self {
        Clock { start: sys::clock(libc::CLOCK_MONOTONIC) }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(sys::clock(libc::CLOCK_MONOTONIC).saturating_sub(self.start))
    }

    /// The time of the run at a time of day, which may have been set since the run began.
    pub(crate) fn at_time_of_day(self, time_of_day: u64) -> Instant {
        let ago = sys::clock(libc::CLOCK_REALTIME).saturating_sub(time_of_day);
        Instant::from_nanos(self.now().as_nanos().saturating_sub(ago))
    }
}
