//! Stream sockets and their options.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::check;

pub(crate) use rustix::net::Protocol;
pub(crate) use rustix::net::ipproto::{MPTCP, TCP};

/// A new descriptor's flags: non-blocking, closed on `exec`.
pub(super) fn socket_flags() -> SocketFlags {
    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC
}

/// Create a non-blocking stream socket, for IPv4 or for both families.
pub(crate) fn stream_socket(ipv4_only: bool, protocol: Protocol) -> io::Result<OwnedFd> {
    let family = if ipv4_only { AddressFamily::INET } else { AddressFamily::INET6 };
    let (kind, flags) = (SocketType::STREAM, socket_flags());
    Ok(rustix::net::socket_with(family, kind, flags, Some(protocol))?)
}

pub(crate) fn bind(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    Ok(rustix::net::bind(socket, &address)?)
}

pub(crate) fn listen(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(socket, 64)?)
}

/// Accept the next connection of a listener as a non-blocking socket.
pub(crate) fn accept(socket: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::net::accept_with(socket, socket_flags())?)
}

/// Start to connect. The socket becomes writable when the connection is established.
pub(crate) fn connect(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, &address) {
        Err(Errno::INPROGRESS) => Ok(()),
        other => Ok(other?),
    }
}

/// Make a socket reset its connection when it is closed.
pub(crate) fn reset_when_closed(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Request a congestion control for a socket, and return the name of the one in use.
pub(crate) fn set_congestion_control(socket: impl AsFd, name: &str) -> io::Result<String> {
    sockopt::set_tcp_congestion(&socket, name)?;
    Ok(sockopt::tcp_congestion(&socket)?)
}

/// Number of bytes that were written to a stream socket but not acknowledged.
pub fn unacknowledged(socket: impl AsFd) -> usize {
    const TIOCOUTQ: Opcode = libc::TIOCOUTQ as Opcode;
    // SAFETY: the request writes one int.
    let bytes = unsafe { ioctl(socket, Getter::<TIOCOUTQ, c_int>::new()) };
    bytes.map_or(0, |bytes| bytes as usize)
}

/// Set an option that rustix lacks, and whose value is an integer.
pub(super) fn set_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the value is an int, its size is stated, and it outlives the call.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) })?;
    Ok(())
}
