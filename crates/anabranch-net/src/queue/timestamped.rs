//! A drop-tail queue that knows the sojourn times of its packets.

use std::collections::VecDeque;

use anabranch_wire::Instant;

use super::{DropTail, Packet};
use crate::units::Rate;

/// A drop-tail queue with the arrival time of each packet.
#[derive(Debug)]
pub(crate) struct Timestamped {
    tail: DropTail,
    arrivals: VecDeque<Instant>,
}

impl Timestamped {
    pub(crate) fn new(tail: DropTail) -> Self {
        Timestamped { tail, arrivals: VecDeque::new() }
    }

    pub(crate) fn tail(&self) -> &DropTail {
        &self.tail
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.tail.set_rate(rate);
    }

    /// Enqueue `packet` at `now`; `false` if there is no room for it.
    pub(crate) fn enqueue(&mut self, now: Instant, packet: Packet) -> bool {
        let accepted = self.tail.enqueue(packet);
        if accepted {
            self.arrivals.push_back(now);
        }
        accepted
    }

    /// The next packet to transmit, and its arrival time.
    pub(crate) fn dequeue(&mut self) -> Option<(Packet, Instant)> {
        Some((self.tail.dequeue()?, self.arrivals.pop_front()?))
    }

    /// Pass all packets to `lose`.
    pub(crate) fn clear(&mut self, lose: impl FnMut(Packet)) {
        self.arrivals.clear();
        core::iter::from_fn(|| self.tail.dequeue()).for_each(lose);
    }
}
