//! A TUN device as the interface of a host of `anabranch-host`.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use anabranch_host::Device;
use anabranch_wire::Packet;
use bytes::BytesMut;
use tokio::io::unix::AsyncFd;

use crate::sys::{self, LONGEST_FRAME, Tun};

pub(super) struct TunDevice {
    tun: Tun,
    /// Says when frames wait; a second descriptor of the device.
    readiness: AsyncFd<OwnedFd>,
    arrived: BytesMut,
    leaving: Vec<u8>,
}

impl TunDevice {
    /// The device, in a runtime of Tokio.
    pub(super) fn new(tun: Tun) -> io::Result<Self> {
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
