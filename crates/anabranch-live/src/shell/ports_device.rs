//! The interfaces of a program whose own sockets use the paths, as the client of an emulation.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use anabranch_host::Device;
use anabranch_sim::Side;
use anabranch_sim::driver::path_of;
use anabranch_wire::Packet;
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use crate::kernel_setup::station;
use crate::sys::{self, LONGEST_FRAME, PacketSocket};

pub(super) struct PortsDevice {
    ports: Vec<Port>,
    buffer: Vec<u8>,
}

struct Port {
    socket: PacketSocket,
    /// Says when packets wait; a second descriptor of the socket.
    readiness: AsyncFd<OwnedFd>,
}

impl PortsDevice {
    /// The far ends of the interfaces, by path, in a runtime of Tokio.
    pub(super) fn new(fds: Vec<OwnedFd>) -> io::Result<Self> {
        let port = |(path, fd): (usize, OwnedFd)| {
            let readiness = sys::watch(fd.try_clone()?)?;
            let socket = PacketSocket::from_fd(fd, station(Side::Client, path))?;
            Ok(Port { socket, readiness })
        };
        let ports = fds.into_iter().enumerate().map(port).collect::<io::Result<_>>()?;
        Ok(PortsDevice { ports, buffer: vec![0; LONGEST_FRAME] })
    }
}

impl Device for PortsDevice {
    fn send(&mut self, packet: Packet) -> io::Result<()> {
        let path = path_of(packet.destination());
        let Some(port) = path.and_then(|path| self.ports.get(path)) else { return Ok(()) };
        let mut bytes = Vec::with_capacity(packet.wire_len());
        packet.emit(&mut bytes).map_err(io::Error::other)?;
        match port.socket.send(&bytes) {
            // As on any host, a packet is lost if the interface has no room.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        for port in &mut self.ports {
            while let Poll::Ready(ready) = port.readiness.poll_read_ready(context) {
                let mut ready = ready?;
                let Some((len, _)) = port.socket.receive(&mut self.buffer)? else {
                    ready.clear_ready();
                    continue;
                };
                if let Ok(packet) = Packet::parse(&self.buffer[..len]) {
                    return Poll::Ready(Ok(packet));
                }
            }
        }
        Poll::Pending
    }
}
