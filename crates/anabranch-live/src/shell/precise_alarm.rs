//! An alarm clock that is precise to some microseconds.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};

use anabranch_host::Alarm;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use crate::sys;

pub(super) struct PreciseAlarm {
    timer: AsyncFd<OwnedFd>,
    /// The time that the timer is set to.
    set: Option<Instant>,
}

impl PreciseAlarm {
    /// An alarm in a runtime of Tokio.
    pub(super) fn new() -> io::Result<Self> {
        Ok(PreciseAlarm { timer: sys::watch(sys::timer()?)?, set: None })
    }
}

impl Alarm for PreciseAlarm {
    fn poll_at(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        if self.set != Some(at) {
            sys::set_timer(self.timer.get_ref().as_fd(), left).expect("any time is valid");
            self.set = Some(at);
        }
        // Readiness of an earlier time says nothing about this one.
        while let Poll::Ready(Ok(mut ready)) = self.timer.poll_read_ready(context) {
            ready.clear_ready();
        }
        Poll::Pending
    }
}
