//! A device that counts the bytes of each uplink, and captures its packets.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use anabranch_host::Device;
use anabranch_live::TunDevice;
use anabranch_wire::Packet;
use anabranch_wire::pcap::PacketDirection;
use tokio::sync::Notify;

use super::capture::Capture;
use crate::orders::Uplink;

/// Bytes of an uplink, with IP headers. Segments that the kernel has joined count one header.
#[derive(Debug)]
pub(super) struct Traffic {
    /// The engine's addresses.
    addresses: Vec<IpAddr>,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    /// Bytes that the uplink may carry.
    budget: Option<u64>,
    /// Tells that the budget is used up.
    pub(super) spent: Notify,
}

impl Traffic {
    pub(super) fn of(uplink: &Uplink) -> Arc<Self> {
        Arc::new(Traffic {
            addresses: uplink.addresses.clone(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            budget: uplink.budget,
            spent: Notify::new(),
        })
    }

    /// Bytes left of the budget, if there is one.
    pub(super) fn left(&self) -> Option<u64> {
        let used = self.sent.load(Ordering::Relaxed) + self.received.load(Ordering::Relaxed);
        self.budget.map(|budget| budget.saturating_sub(used))
    }

    fn count(&self, direction: PacketDirection, bytes: usize) {
        let before = self.left();
        let counter = match direction {
            PacketDirection::Outbound => &self.sent,
            PacketDirection::Inbound => &self.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.is_some_and(|left| left > 0) && self.left() == Some(0) {
            self.spent.notify_one();
        }
    }
}

pub(super) struct CountedDevice {
    pub(super) device: TunDevice,
    pub(super) traffic: Vec<Arc<Traffic>>,
    pub(super) capture: Capture,
}

impl CountedDevice {
    fn observe(&mut self, address: IpAddr, direction: PacketDirection, packet: &Packet) {
        if let Some(traffic) = self.traffic.iter().find(|it| it.addresses.contains(&address)) {
            traffic.count(direction, packet.wire_len());
            self.capture.write(address, direction, packet);
        }
    }
}

impl Device for CountedDevice {
    fn send(&mut self, packet: Packet) -> io::Result<()> {
        self.observe(packet.source(), PacketDirection::Outbound, &packet);
        self.device.send(packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        let packet = ready!(self.device.poll_receive(context))?;
        self.observe(packet.destination(), PacketDirection::Inbound, &packet);
        Poll::Ready(Ok(packet))
    }
}
