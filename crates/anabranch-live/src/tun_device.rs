//! A TUN device as the interface of a host of `anabranch-host`.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use anabranch_host::Device;
use anabranch_wire::Packet;
use bytes::BytesMut;
use tokio::io::unix::AsyncFd;

use crate::sys::{self, LONGEST_FRAME, Tun};

/// A TUN device of this system as a [`Device`], in real time. The kernel is the router: it forwards
/// the packets that [`Host`](anabranch_host::Host) sends, and routes those for the host's addresses
/// to the interface. Give the interface one address of the kernel for each address of the host.
///
/// `examples/tun_echo.rs` is a whole program.
#[derive(Debug)]
pub struct TunDevice {
    tun: Tun,
    /// Says when frames wait; a second descriptor of the device.
    readiness: AsyncFd<OwnedFd>,
    arrived: BytesMut,
    leaving: Vec<u8>,
}

impl TunDevice {
    /// Open the TUN device `name` in this thread's network namespace, for packets as on a wire. A
    /// device that does not exist is created, which needs `CAP_NET_ADMIN`; other users need one that
    /// `ip tuntap add dev NAME mode tun user USER` has made. Call this in a runtime of Tokio.
    ///
    /// # Errors
    /// If `/dev/net/tun` is missing, or the system refuses the device.
    pub fn open(name: &str) -> io::Result<Self> {
        TunDevice::new(Tun::open(name, false)?)
    }

    /// A device that is open already, in a runtime of Tokio.
    pub(crate) fn new(tun: Tun) -> io::Result<Self> {
        let readiness = sys::watch(tun.as_fd().try_clone_to_owned()?)?;
        let arrived = BytesMut::with_capacity(LONGEST_FRAME);
        Ok(TunDevice { tun, readiness, arrived, leaving: Vec::new() })
    }
}

impl Device for TunDevice {
    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        self.leaving.clear();
        packet.emit(&mut self.leaving).map_err(io::Error::other)?;
        match self.tun.send(&self.leaving) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        loop {
            let mut ready = ready!(self.readiness.poll_read_ready(context))?;
            self.arrived.clear();
            self.arrived.reserve(LONGEST_FRAME);
            if !self.tun.receive(&mut self.arrived)? {
                ready.clear_ready();
                continue;
            }
            if let Ok(packet) = Packet::parse(&self.arrived) {
                return Poll::Ready(Ok(packet));
            }
        }
    }
}
