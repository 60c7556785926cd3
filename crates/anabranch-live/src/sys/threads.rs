//! The priority, the processors and the timers of this thread.

use std::io;
use std::num::NonZeroU64;

use libc::c_int;
use rustix::thread::{
    CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, set_current_timer_slack,
};

/// Request real-time priority for this thread, and what it starts later. Only a privileged process
/// gets it, and no process inside a user namespace. An emulator that waits for a processor is late.
pub(crate) fn prefer_this_thread() {
    schedule(libc::SCHED_RR, 1);
}

/// Returns `true` if this thread has real-time priority.
pub(crate) fn is_preferred() -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) as c_int == libc::SCHED_RR }
}

/// Return this thread to normal priority for good. Threads that it has started keep their priority.
pub fn stop_preferring() {
    schedule(libc::SCHED_OTHER, 0);
}

/// Give this thread idle priority (`SCHED_IDLE`), and return whether that worked.
pub(crate) fn give_way() -> bool {
    schedule(libc::SCHED_IDLE, 0)
}

/// Set this thread's scheduling policy and priority. This calls the kernel directly: musl refuses the
/// call, because POSIX applies it to the process and Linux to the thread.
fn schedule(policy: c_int, priority: c_int) -> bool {
    // The kernel's `sched_param` is one number. The further fields of musl's are never read.
    // SAFETY: the priority outlives the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// A set of processors.
pub(crate) type Processors = CpuSet;

/// Pin this thread, and the threads that it starts, to its current processor. Returns the processors
/// that it could run on before.
pub(crate) fn stay_on_this_processor() -> io::Result<Processors> {
    // This fails if there are more processors than a set can hold.
    let before = sched_getaffinity(None)?;
    let mut this = Processors::new();
    this.set(sched_getcpu());
    stay_on(&this);
    Ok(before)
}

/// Let this thread, and the threads that it starts, run on these processors. On failure nothing
/// changes.
pub(crate) fn stay_on(processors: &Processors) {
    let _ = sched_setaffinity(None, processors);
}

/// Let this thread's timers expire in time. By default Linux may delay them by 50 µs. On failure the
/// default slack remains.
pub(crate) fn set_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
