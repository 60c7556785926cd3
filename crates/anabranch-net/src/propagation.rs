//! Packets that have left the transmitter and have not been collected at the far end.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_wire::Instant;

use crate::impairment::JitterModel;
use crate::queue::Packet;

/// Packets under way, given out in order of delivery.
#[derive(Debug)]
pub(crate) enum Propagation {
    /// Deliveries never overtake each other, so the order of entry is the order of delivery.
    Fifo { packets: VecDeque<InFlight>, last_delivery: Instant },
    /// Any order; packets of equal delivery time go by arrival number.
    Reordering(BinaryHeap<Reverse<InFlight>>),
}

/// A packet under way. The order of the fields is the order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InFlight {
    /// When it arrives.
    pub(crate) delivery: Instant,
    number: u64,
    slot: u32,
    bytes: u32,
}

impl Propagation {
    /// Nothing under way.
    pub(crate) fn new(model: JitterModel) -> Self {
        match model {
            JitterModel::Fifo => {
                Propagation::Fifo { packets: VecDeque::new(), last_delivery: Instant::ZERO }
            }
            JitterModel::Reordering => Propagation::Reordering(BinaryHeap::new()),
        }
    }

    /// The delivery time of a packet that enters next and would by itself arrive at `delivery`.
    pub(crate) fn admissible(&self, delivery: Instant) -> Instant {
        match self {
            Propagation::Fifo { last_delivery, .. } => delivery.max(*last_delivery),
            Propagation::Reordering(_) => delivery,
        }
    }

    /// May a packet that enters later be delivered earlier?
    pub(crate) fn reorders(&self) -> bool {
        matches!(self, Propagation::Reordering(_))
    }

    /// Let `packet` travel until `delivery`, an [`admissible`](Propagation::admissible) time.
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

    /// When the next delivery is.
    pub(crate) fn next_delivery(&self) -> Option<Instant> {
        match self {
            Propagation::Fifo { packets, .. } => packets.front().map(|packet| packet.delivery),
            Propagation::Reordering(packets) => packets.peek().map(|packet| packet.0.delivery),
        }
    }

    /// Take the next packet if it has been delivered by `now`.
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

    /// Lose the packets that have not been delivered by `now`, each to `lost`.
    pub(crate) fn clear(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        match self {
            Propagation::Fifo { packets, last_delivery } => {
                let delivered = packets.partition_point(|packet| packet.delivery <= now);
                packets.drain(delivered..).for_each(|packet| lost(packet.packet()));
                // A lost packet holds nobody back.
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
