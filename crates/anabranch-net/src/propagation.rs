//! Packets that have left the transmitter and were not yet collected at the far end.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_wire::Instant;

use crate::impairment::JitterModel;
use crate::queue::Packet;

/// Propagating packets, returned in order of delivery.
#[derive(Debug)]
pub(crate) enum Propagation {
    /// Packets never overtake each other, so the order of entry is the order of delivery.
    Fifo { packets: VecDeque<InFlight>, last_delivery: Instant },
    /// Packets may overtake each other. Packets with equal delivery times keep their arrival order.
    Reordering(BinaryHeap<Reverse<InFlight>>),
}

/// A propagating packet. The order of the fields defines the order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InFlight {
    /// Delivery time.
    pub(crate) delivery: Instant,
    number: u64,
    slot: u32,
    bytes: u32,
}

impl Propagation {
    /// A propagation without packets.
    pub(crate) fn new(model: JitterModel) -> Self {
        match model {
            JitterModel::Fifo => {
                Propagation::Fifo { packets: VecDeque::new(), last_delivery: Instant::ZERO }
            }
            JitterModel::Reordering => Propagation::Reordering(BinaryHeap::new()),
        }
    }

    /// The actual delivery time of the next packet to enter, if its own delay ends at `delivery`.
    pub(crate) fn admissible(&self, delivery: Instant) -> Instant {
        match self {
            Propagation::Fifo { last_delivery, .. } => delivery.max(*last_delivery),
            Propagation::Reordering(_) => delivery,
        }
    }

    /// Returns `true` if a packet that enters later can be delivered earlier.
    pub(crate) fn reorders(&self) -> bool {
        matches!(self, Propagation::Reordering(_))
    }

    /// Add `packet`, to be delivered at `delivery`, an [`admissible`](Propagation::admissible)
    /// time.
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: Packet, delivery: Instant) {
        let Packet { number, slot, bytes } = packet;
        let in_flight = InFlight { delivery, number, slot, bytes };
        match self {
            Propagation::Fifo { packets, last_delivery } => {
                *last_delivery = delivery;
                packets.push_back(in_flight);
            }
            Propagation::Reordering(packets) => packets.push(Reverse(in_flight)),
        }
    }

    /// Time of the next delivery.
    pub(crate) fn next_delivery(&self) -> Option<Instant> {
        match self {
            Propagation::Fifo { packets, .. } => packets.front().map(|packet| packet.delivery),
            Propagation::Reordering(packets) => packets.peek().map(|packet| packet.0.delivery),
        }
    }

    /// Take the next packet if its delivery time is at or before `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.next_delivery()? > now {
            return None;
        }
        let packet = match self {
            Propagation::Fifo { packets, .. } => packets.pop_front(),
            Propagation::Reordering(packets) => packets.pop().map(|packet| packet.0),
        };
        packet.map(InFlight::packet)
    }

    /// Remove all packets that were not delivered by `now`, and pass each to `lost`.
    pub(crate) fn clear(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        match self {
            Propagation::Fifo { packets, last_delivery } => {
                let delivered = packets.partition_point(|packet| packet.delivery <= now);
                packets.drain(delivered..).for_each(|packet| lost(packet.packet()));
                // A lost packet does not delay later packets.
                *last_delivery = now.min(*last_delivery);
            }
            Propagation::Reordering(packets) => packets.retain(|packet| {
                let delivered = packet.0.delivery <= now;
                if !delivered {
                    lost(packet.0.packet());
                }
                delivered
            }),
        }
    }
}

impl InFlight {
    fn packet(self) -> Packet {
        Packet { number: self.number, slot: self.slot, bytes: self.bytes }
    }
}
