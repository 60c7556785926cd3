//! CPU time of a thread.

/// CPU time that this thread has used, in seconds; zero where the system does not tell.
#[cfg(unix)]
pub(crate) fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(not(unix))]
pub(crate) fn thread_cpu_s() -> f64 {
    0.0
}
