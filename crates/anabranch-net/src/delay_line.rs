//! Packets that wait for a time: they propagate to the far end, or wait in front of a transmitter.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_wire::Instant;

use crate::impairment::JitterModel;
use crate::queue::Packet;

/// Packets with the times at which they are due, returned in order of these times.
#[derive(Debug)]
pub(crate) enum DelayLine {
    /// Packets never overtake each other, so they leave in the order of entry.
    Fifo { packets: VecDeque<Delayed>, last_due: Instant },
    /// Packets may overtake each other. Packets due at the same time keep their arrival order.
    Reordering(BinaryHeap<Reverse<Delayed>>),
}

/// A packet on the line. The order of the fields defines the order in which packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delayed {
    /// When the packet may leave.
    pub(crate) due: Instant,
    number: u64,
    slot: u32,
    /// Length of the IP packet in bytes.
    pub(crate) bytes: u32,
}

impl DelayLine {
    /// A line without packets.
    pub(crate) fn new(model: JitterModel) -> Self {
        match model {
            JitterModel::Fifo => {
                DelayLine::Fifo { packets: VecDeque::new(), last_due: Instant::ZERO }
            }
            JitterModel::Reordering => DelayLine::Reordering(BinaryHeap::new()),
        }
    }

    /// When the next packet to enter is due, if its own delay ends at `due`.
    #[inline]
    pub(crate) fn admissible(&self, due: Instant) -> Instant {
        match self {
            DelayLine::Fifo { last_due, .. } => due.max(*last_due),
            DelayLine::Reordering(_) => due,
        }
    }

    /// Returns `true` if a packet that enters later can leave earlier.
    #[inline]
    pub(crate) fn reorders(&self) -> bool {
        matches!(self, DelayLine::Reordering(_))
    }

    /// Add `packet`, due at `due`, an [`admissible`](DelayLine::admissible) time.
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: Packet, due: Instant) {
        let Packet { number, slot, bytes } = packet;
        let delayed = Delayed { due, number, slot, bytes };
        match self {
            DelayLine::Fifo { packets, last_due } => {
                *last_due = due;
                packets.push_back(delayed);
            }
            DelayLine::Reordering(packets) => packets.push(Reverse(delayed)),
        }
    }

    /// The next packet to leave.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Delayed> {
        match self {
            DelayLine::Fifo { packets, .. } => packets.front(),
            DelayLine::Reordering(packets) => packets.peek().map(|packet| &packet.0),
        }
    }

    /// When the next packet is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.first().map(|packet| packet.due)
    }

    /// When each packet is due, and its slot. Packets that may overtake each other have no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, u32)> + '_ {
        let (in_order, others) = match self {
            DelayLine::Fifo { packets, .. } => (Some(packets), None),
            DelayLine::Reordering(packets) => (None, Some(packets)),
        };
        let others = others.into_iter().flatten().map(|packet| &packet.0);
        in_order.into_iter().flatten().chain(others).map(|packet| (packet.due, packet.slot))
    }

    /// Number of packets.
    pub(crate) fn packets(&self) -> usize {
        match self {
            DelayLine::Fifo { packets, .. } => packets.len(),
            DelayLine::Reordering(packets) => packets.len(),
        }
    }

    /// Take the next packet if it is due at or before `now`.
    #[inline(always)] // Each delivery calls it.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.next_due()? > now {
            return None;
        }
        let packet = match self {
            DelayLine::Fifo { packets, .. } => packets.pop_front(),
            DelayLine::Reordering(packets) => packets.pop().map(|packet| packet.0),
        };
        packet.map(Delayed::packet)
    }

    /// Remove all packets that are due after `now`, and pass each to `lost`.
    pub(crate) fn clear(&mut self, now: Instant, mut lost: impl FnMut(Packet)) {
        match self {
            DelayLine::Fifo { packets, last_due } => {
                let due = packets.partition_point(|packet| packet.due <= now);
                packets.drain(due..).for_each(|packet| lost(packet.packet()));
                // A lost packet does not delay later packets.
                *last_due = now.min(*last_due);
            }
            DelayLine::Reordering(packets) => packets.retain(|packet| {
                let is_due = packet.0.due <= now;
                if !is_due {
                    lost(packet.0.packet());
                }
                is_due
            }),
        }
    }
}

impl Delayed {
    fn packet(self) -> Packet {
        Packet { number: self.number, slot: self.slot, bytes: self.bytes }
    }
}
