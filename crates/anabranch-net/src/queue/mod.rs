//! Queues in front of a link's transmitter.
//!
//! A queue holds handles, not segments. A discipline accepts or drops each packet (`enqueue`), and
//! returns the next packet to transmit (`dequeue`). The link dequeues exactly when its transmitter
//! becomes free. A discipline that measures sojourn times and drops at dequeue therefore sees the
//! true values.

mod codel;
mod drop_tail;
mod red;
mod room;

pub use codel::CoDelConfig;
pub(crate) use drop_tail::DropTail;
pub use drop_tail::DropTailConfig;
pub use red::RedConfig;
pub(crate) use room::Room;

use anabranch_config::parts;
use anabranch_wire::Instant;

use crate::units::{QueueLimit, Rate};
use codel::CoDel;
use red::Red;

parts! {
    /// Which packets a link's queue drops besides those that do not fit. If the sender of a packet
    /// supports ECN, the queue marks the packet instead. RFC 3168 §5. The first is the default.
    #[derive(Copy, Eq)]
    pub enum Discipline: "kind", dyn CheckQueue {
        DropTail(DropTailConfig),
        CoDel(CoDelConfig),
        Red(RedConfig),
    }
}

impl Default for Discipline {
    fn default() -> Self {
        DropTailConfig {}.into()
    }
}

/// Parameters of a queue discipline.
pub trait CheckQueue {
    /// Check that the parameters agree with each other.
    ///
    /// # Errors
    /// If they do not.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// A parameter whose value contradicts other parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Description of the problem with the value.
    pub problem: String,
}

/// A handle to a packet inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Arrival number at the link, which counts every packet offered. It indexes the random draws.
    pub(crate) number: u64,
    /// Slot of the packet in the [`Slab`](crate::slab::Slab).
    pub(crate) slot: u32,
    /// Length of the IP packet in bytes.
    pub(crate) bytes: u32,
}

/// A link's queue.
#[derive(Debug)]
pub(crate) enum Queue {
    DropTail(DropTail),
    CoDel(CoDel),
    Red(Red),
}

impl Queue {
    pub(crate) fn new(
        discipline: Discipline,
        limit: QueueLimit,
        rate: Rate,
        link_seed: u64,
    ) -> Self {
        let tail = DropTail::new(limit, rate);
        match discipline {
            Discipline::DropTail(_) => Queue::DropTail(tail),
            Discipline::CoDel(config) => Queue::CoDel(CoDel::new(config, tail)),
            Discipline::Red(config) => Queue::Red(Red::new(config, tail, rate, link_seed)),
        }
    }

    /// Enqueue `packet` at `now`; `false` if it is dropped instead. `mark` tries to mark the
    /// packet.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        mark: impl FnOnce(Packet) -> bool,
    ) -> bool {
        match self {
            Queue::DropTail(tail) => tail.enqueue(packet),
            Queue::CoDel(codel) => codel.enqueue(now, packet),
            Queue::Red(red) => red.enqueue(now, packet, mark),
        }
    }

    /// The next packet to transmit at `now`. `signal` receives each packet to drop, and returns
    /// true if it has marked the packet instead.
    #[inline(always)]
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        signal: impl FnMut(Packet) -> bool,
    ) -> Option<Packet> {
        match self {
            Queue::DropTail(tail) => tail.dequeue(),
            Queue::CoDel(codel) => codel.dequeue(now, signal),
            Queue::Red(red) => red.dequeue(now),
        }
    }

    /// Pass all packets to `lose`.
    pub(crate) fn clear(&mut self, now: Instant, lose: impl FnMut(Packet)) {
        let Queue::CoDel(codel) = self else {
            return core::iter::from_fn(|| self.dequeue(now, |_| false)).for_each(lose);
        };
        codel.clear(lose);
    }

    /// Set the transmitter's rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        match self {
            Queue::DropTail(tail) => tail.set_rate(rate),
            Queue::CoDel(codel) => codel.tail_mut().set_rate(rate),
            Queue::Red(red) => red.set_rate(rate),
        }
    }

    /// Number of waiting packets.
    pub(crate) fn packets(&self) -> usize {
        self.tail().packets()
    }

    /// Bytes of waiting packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.tail().bytes()
    }

    /// The packets in the queue, in the order in which they leave.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Packet> + '_ {
        self.tail().waiting()
    }

    fn tail(&self) -> &DropTail {
        match self {
            Queue::DropTail(tail) => tail,
            Queue::CoDel(codel) => codel.tail(),
            Queue::Red(red) => red.tail(),
        }
    }
}
