//! Namespaces: leaving, entering, and finding the processes in one.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::{check, prefer_this_thread};

/// Namespaces to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unshare {
    /// The network namespace.
    Network,
    /// The user namespace.
    User,
    /// The user namespace and the network namespace. This needs no privilege if user namespaces are
    /// allowed.
    UserAndNetwork,
}

impl Unshare {
    fn flags(self) -> UnshareFlags {
        match self {
            Unshare::Network => UnshareFlags::NEWNET,
            Unshare::User => UnshareFlags::NEWUSER,
            Unshare::UserAndNetwork => UnshareFlags::NEWUSER | UnshareFlags::NEWNET,
        }
    }
}

/// Move this thread into new namespaces. Only a process with one thread can leave its user namespace.
pub(crate) fn unshare(unshared: Unshare) -> io::Result<()> {
    // SAFETY: the thread keeps its descriptors, because the flags do not contain CLONE_FILES.
    unsafe { unshare_unsafe(unshared.flags()) }?;
    Ok(())
}

/// Move this thread into the network namespace of the file `namespace`.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// The user and the group of this process.
pub(crate) fn user_and_group() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The files that map one user and one group of a new user namespace to those outside, and their
/// contents.
fn maps(inside: (u32, u32), outside: (u32, u32)) -> [(&'static CStr, String); 3] {
    [
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", format!("{} {} 1", inside.0, outside.0)),
        (c"/proc/self/gid_map", format!("{} {} 1", inside.1, outside.1)),
    ]
}

/// Make `command` start in new namespaces, as root inside them.
pub(crate) fn start_in_namespaces(command: &mut Command, unshared: Unshare, preferred: bool) {
    let maps = maps((0, 0), user_and_group());
    let enter = move || {
        if preferred {
            prefer_this_thread();
        }
        unshare(unshared)?;
        if unshared == Unshare::UserAndNetwork {
            for (file, text) in &maps {
                write_file(file, text)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made. Their arguments were allocated
    // before.
    unsafe { command.pre_exec(enter) };
}

/// Move this process from a user namespace in which it is root into one in which it is `user`
/// without any privilege.
pub(crate) fn become_user(user: (u32, u32)) -> io::Result<()> {
    unshare(Unshare::User)?;
    maps(user, (0, 0)).iter().try_for_each(|(file, text)| write_file(file, text))
}

/// Write a file with nothing but system calls.
fn write_file(file: &CStr, text: &str) -> io::Result<()> {
    let fd = rustix::fs::open(file, OFlags::WRONLY, Mode::empty())?;
    rustix::io::write(&fd, text.as_bytes())?;
    Ok(())
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
    // SAFETY: takes no pointers; the descriptor is new.
    unsafe {
        let fd = libc::ioctl(user.as_raw_fd(), libc::NS_GET_PARENT);
        Ok(OwnedFd::from_raw_fd(check(fd)?).into())
    }
}

/// Send a signal to all processes of this user in a namespace; without a signal, find them. Returns
/// their number.
pub(crate) fn signal_all(namespace: Namespace, signal: Option<Signal>) -> usize {
    let all = fs::read_dir("/proc").into_iter().flatten();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|process| namespace.contains(*process).unwrap_or(false))
        .filter_map(|process| Pid::from_raw(process as i32))
        // A process that has just ended gets nothing.
        .filter(|process| match signal {
            Some(signal) => kill_process(*process, signal).is_ok(),
            None => test_kill_process(*process).is_ok(),
        })
        .count()
}
