//! Starting a program, and noticing its end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::process::{Pid, PidfdFlags};

pub(crate) use rustix::process::Signal;

/// Make `command` keep a descriptor across `exec`. If `controlling`, its standard input becomes the
/// terminal of a new session. This process closes the descriptor when it drops the command.
pub(crate) fn keep_open(command: &mut Command, fd: OwnedFd, controlling: bool) {
    let keep = move || {
        rustix::io::fcntl_setfd(&fd, FdFlags::empty())?;
        if controlling {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, without arguments in memory.
    unsafe { command.pre_exec(keep) };
}

/// Let this process get SIGHUP when the thread that started it ends. On failure it outlives its
/// parent.
pub(crate) fn end_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::HUP));
}

/// A descriptor that becomes readable when a child of this process ends.
pub(crate) fn process_end(process: u32) -> io::Result<OwnedFd> {
    let process = Pid::from_raw(process as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(process, PidfdFlags::NONBLOCK)?)
}

/// A secret from the system's random source.
pub(crate) fn random_secret() -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    // So few bytes come at once.
    rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
    Ok(secret)
}
