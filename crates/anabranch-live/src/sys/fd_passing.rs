//! System calls for a shell: starting and following programs, passing file descriptors, and a
//! precise timer.

use std::fs::{self, File};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use libc::c_int;
use tokio::io::unix::AsyncFd;

use super::check;

/// A secret from the system's random source.
pub(crate) fn random_secret() -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    // SAFETY: the buffer is as long as stated. So few bytes come at once.
    let got = unsafe { libc::getrandom(secret.as_mut_ptr().cast(), secret.len(), 0) };
    check(got as c_int)?;
    Ok(secret)
}

/// Whether a descriptor is a terminal.
pub(crate) fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::isatty(fd) == 1 }
}

/// Make `command` keep a descriptor across `exec`. If `controlling`, its standard input becomes the
/// terminal of a new session.
pub(crate) fn keep_open(command: &mut Command, fd: RawFd, controlling: bool) {
    use std::os::unix::process::CommandExt;
    let keep = move || {
        // SAFETY: take no pointers.
        unsafe {
            check(libc::fcntl(fd, libc::F_SETFD, 0))?;
            if controlling {
                check(libc::setsid())?;
                check(libc::ioctl(0, libc::TIOCSCTTY as _, 0))?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, without arguments in memory.
    unsafe { command.pre_exec(keep) };
}

/// Let this process get SIGHUP when the thread that started it ends.
pub(crate) fn end_with_parent() {
    // SAFETY: takes no pointers. On failure the process outlives its parent.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGHUP) };
}

/// A descriptor that becomes readable when a child of this process ends.
pub(crate) fn process_end(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; the descriptor is new.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, libc::O_NONBLOCK);
        Ok(OwnedFd::from_raw_fd(check(fd as c_int)?))
    }
}

/// A namespace with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// A user namespace, and all that were made in it.
    User(u64),
    /// A network namespace. A process in it can move to a new one.
    Network(u64),
}

impl Namespace {
    /// A namespace that only this process and its descendants are in: the user namespace, unless it
    /// is the caller's. It fails if the process has ended.
    pub(crate) fn of(process: u32) -> io::Result<Self> {
        let number = |file: String| Ok::<_, io::Error>(fs::metadata(file)?.ino());
        let user = number(format!("/proc/{process}/ns/user"))?;
        if user != number("/proc/self/ns/user".to_owned())? {
            return Ok(Namespace::User(user));
        }
        Ok(Namespace::Network(number(format!("/proc/{process}/ns/net"))?))
    }

    fn contains(self, process: u32) -> io::Result<bool> {
        match self {
            Namespace::Network(number) => {
                Ok(fs::metadata(format!("/proc/{process}/ns/net"))?.ino() == number)
            }
            Namespace::User(number) => {
                // A process that has ended keeps its user namespace until its parent has waited for
                // it, but no network namespace.
                fs::metadata(format!("/proc/{process}/ns/net"))?;
                let mut user = File::open(format!("/proc/{process}/ns/user"))?;
                while user.metadata()?.ino() != number {
                    user = parent(&user)?;
                }
                Ok(true)
            }
        }
    }
}

/// The parent of a user namespace. It fails if the parent is outside the caller's namespace.
fn parent(user: &File) -> io::Result<File> {
    // _IO(0xb7, 2) of <linux/nsfs.h>.
    const NS_GET_PARENT: u32 = 0xb702;
    // SAFETY: takes no pointers; the descriptor is new.
    unsafe {
        let fd = libc::ioctl(user.as_raw_fd(), NS_GET_PARENT as _);
        Ok(OwnedFd::from_raw_fd(check(fd)?).into())
    }
}

/// A signal to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Signal {
    /// No signal: whether the process exists.
    None = 0,
    /// SIGTERM, which requests the end.
    Terminate = libc::SIGTERM,
    /// SIGKILL.
    Kill = libc::SIGKILL,
}

/// Send a signal to all processes of this user in a namespace. Returns their number.
pub(crate) fn signal_all(namespace: Namespace, signal: Signal) -> usize {
    let all = fs::read_dir("/proc").into_iter().flatten();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|process| namespace.contains(*process).unwrap_or(false))
        // SAFETY: takes no pointers. A process that has just ended gets nothing.
        .filter(|process| unsafe { libc::kill(*process as libc::pid_t, signal as c_int) } == 0)
        .count()
}

/// A descriptor that the parent process or a caller has passed for this code to own.
pub(crate) fn inherited(fd: RawFd) -> OwnedFd {
    // SAFETY: it was passed for this purpose, and nothing else in this process uses it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Send descriptors with one byte over a socket of this machine.
pub(crate) fn send_descriptors(socket: BorrowedFd<'_>, fds: &[RawFd]) -> io::Result<()> {
    with_descriptors(&mut [0], fds.len(), |message| {
        // SAFETY: the message has room for a header and this number of descriptors.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of_val(fds) as u32) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            for (at, fd) in fds.iter().enumerate() {
                data.add(at).write_unaligned(*fd);
            }
            check(libc::sendmsg(socket.as_raw_fd(), message, libc::MSG_NOSIGNAL) as c_int)?;
        }
        Ok(())
    })
}

/// Receive up to `most` descriptors with one byte. Returns the byte and the descriptors; `None` if
/// the other end is closed.
pub(crate) fn receive_descriptors(
    socket: BorrowedFd<'_>,
    most: usize,
) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = [0];
    let fds = with_descriptors(&mut byte, most, |message| {
        // SAFETY: the message's buffers are as long as it states. The kernel fills in the header,
        // and the descriptors that it passes are new.
        unsafe {
            let flags = libc::MSG_CMSG_CLOEXEC;
            let received = check(libc::recvmsg(socket.as_raw_fd(), message, flags) as c_int)?;
            let mut fds = Vec::new();
            if let Some(header) = libc::CMSG_FIRSTHDR(message).as_ref() {
                let with_header: usize = header.cmsg_len as _;
                let bytes = with_header - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(at).read_unaligned()));
                }
            }
            Ok((received > 0).then_some(fds))
        }
    })?;
    Ok(fds.map(|fds| (byte[0], fds)))
}

fn with_descriptors<T>(
    byte: &mut [u8; 1],
    count: usize,
    call: impl FnOnce(*mut libc::msghdr) -> io::Result<T>,
) -> io::Result<T> {
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: takes no pointers.
    let space = unsafe { libc::CMSG_SPACE((count * size_of::<RawFd>()) as u32) } as usize;
    let mut control = vec![0u64; space.div_ceil(8)];
    // SAFETY: a msghdr may be all zeros.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = space as _;
    call(&raw mut message)
}

/// Let Tokio's runtime of this thread watch a descriptor.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open as long as it is watched.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

/// A timer that becomes readable when it expires.
pub(crate) fn timer() -> io::Result<OwnedFd> {
    let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
    // SAFETY: takes no pointers; the descriptor is new.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?)) }
}

/// Let a timer expire after `left`, and forget when it expired before.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, left: Duration) -> io::Result<()> {
    // A time of 0 would stop it.
    let left = left.max(Duration::from_nanos(1));
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let value = libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
    let setting = libc::itimerspec { it_interval: zero, it_value: value };
    // SAFETY: the setting outlives the call, and the old one is not requested.
    let set = unsafe {
        libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut())
    };
    check(set).map(|_| ())
}
