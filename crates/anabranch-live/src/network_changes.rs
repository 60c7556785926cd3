//! Reports of the kernel when links, addresses or routes change.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use crate::sys;

/// `RTMGRP_LINK`, and those of addresses and routes of both families, of rtnetlink(7).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Changes of the links, addresses and routes of this thread's network namespace.
#[derive(Debug)]
pub struct NetworkChanges {
    socket: AsyncFd<OwnedFd>,
}

impl NetworkChanges {
    /// Listen for changes from now on, in a runtime of Tokio. Look at the network afterwards: all changes
    /// after that look are reported.
    ///
    /// # Errors
    /// If the system refuses the socket.
    pub fn subscribe() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(NetworkChanges { socket: sys::watch(socket)? })
    }

    /// Wait until something has changed, and then `settling`, since changes come in groups. If the
    /// caller stops waiting, a change may be lost: look at the network then as well.
    ///
    /// # Errors
    /// If the socket fails.
    pub async fn changed(&self, settling: Duration) -> io::Result<()> {
        loop {
            let mut ready = self.socket.readable().await?;
            if self.drain_reports()? {
                break;
            }
            ready.clear_ready();
        }
        sleep(settling).await;
        self.drain_reports()?;
        Ok(())
    }

    /// Read and forget all reports. Returns `true` if there were any.
    fn drain_reports(&self) -> io::Result<bool> {
        let mut any = false;
        loop {
            // Only the arrival of a report matters, so the rest of a message may be lost.
            match recv(self.socket.get_ref(), &mut [0; 64], RecvFlags::empty()) {
                Ok(_) => {}
                Err(error) => match io::Error::from(error) {
                    error if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                    // The receive buffer was full, so reports were lost.
                    error if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                    error => return Err(error),
                },
            }
            any = true;
        }
    }
}
