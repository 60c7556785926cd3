//! Clocks, timers, and waiting for descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

pub(crate) use rustix::event::{PollFd, PollFlags};
pub(crate) use rustix::time::ClockId;

/// The time of a clock in nanoseconds.
pub(crate) fn clock(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A descriptor, and the events to wait for.
pub(crate) fn poll_fd(fd: &impl AsFd, events: PollFlags) -> PollFd<'_> {
    PollFd::new(fd, events)
}

/// Wait until one of `fds` is ready, but at most for `timeout`.
pub(crate) fn poll(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<()> {
    match rustix::event::poll(fds, Some(&timespec(timeout))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns `true` if a descriptor is ready now.
pub(crate) fn is_ready(fd: &impl AsFd, events: PollFlags) -> bool {
    let mut fds = [poll_fd(fd, events)];
    poll(&mut fds, Duration::ZERO).is_ok() && !fds[0].revents().is_empty()
}

/// A timer that becomes readable when it expires.
pub(crate) fn timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    Ok(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Let a timer expire after `left`, and forget when it expired before.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, left: Duration) -> io::Result<()> {
    // A time of 0 would stop it.
    let value = timespec(left.max(Duration::from_nanos(1)));
    let setting = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
    rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &setting)?;
    Ok(())
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() }
}
