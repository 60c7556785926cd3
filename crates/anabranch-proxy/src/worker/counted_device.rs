//! A device that counts the bytes of each uplink.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use anabranch_host::Device;
use anabranch_live::TunDevice;
use anabranch_wire::Packet;

/// Bytes of an uplink, with IP headers. Segments that the kernel has joined count one header.
#[derive(Debug)]
pub(super) struct Traffic {
    /// The engine's address.
    address: IpAddr,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

impl Traffic {
    pub(super) fn of(address: IpAddr) -> Arc<Self> {
        Arc::new(Traffic { address, sent: AtomicU64::new(0), received: AtomicU64::new(0) })
    }
}

pub(super) struct CountedDevice {
    pub(super) device: TunDevice,
    pub(super) traffic: Vec<Arc<Traffic>>,
}

impl CountedDevice {
    fn of(&self, address: IpAddr) -> Option<&Traffic> {
        self.traffic.iter().find(|traffic| traffic.address == address).map(|found| &**found)
    }
}

impl Device for CountedDevice {
    fn send(&mut self, packet: Packet) -> io::Result<()> {
        if let Some(traffic) = self.of(packet.source()) {
            traffic.sent.fetch_add(packet.wire_len() as u64, Ordering::Relaxed);
        }
        self.device.send(packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        let packet = ready!(self.device.poll_receive(context))?;
        if let Some(traffic) = self.of(packet.destination()) {
            traffic.received.fetch_add(packet.wire_len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(Ok(packet))
    }
}
