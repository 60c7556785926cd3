//! Passing file descriptors between processes, and watching them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::unix::AsyncFd;

/// A descriptor that the parent process or a caller has passed for this code to own.
pub(crate) fn inherited(fd: RawFd) -> OwnedFd {
    // SAFETY: it was passed for this purpose, and nothing else in this process uses it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Send descriptors with one byte over a socket of this machine.
pub(crate) fn send_descriptors(socket: BorrowedFd<'_>, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = vec![MaybeUninit::uninit(); cmsg_space!(ScmRights(fds.len()))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "it has space for these");
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receive up to `most` descriptors with one byte. Returns the byte and the descriptors; `None` if
/// the other end is closed.
pub(crate) fn receive_descriptors(
    socket: BorrowedFd<'_>,
    most: usize,
) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = [0];
    let mut space = vec![MaybeUninit::uninit(); cmsg_space!(ScmRights(most))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut byte)];
    let received = recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    Ok((received.bytes > 0).then_some((byte[0], fds)))
}

/// Let Tokio's runtime of this thread watch a descriptor.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open as long as it is watched.
    Ok(unsafe { AsyncFd::register(fd) }?)
}
