//! Queues in front of a link's transmitter.
//!
//! A queue holds handles, not segments. A discipline takes a packet or refuses it
//! (`enqueue`), and gives the next one to transmit (`dequeue`); the link dequeues at the exact
//! time at which its transmitter falls free, so a discipline that measures sojourn times and
//! drops at dequeue sees true ones.

mod codel;
mod drop_tail;
mod red;

pub use codel::CoDelConfig;
pub(crate) use drop_tail::DropTail;
pub use red::RedConfig;

use anabranch_wire::Instant;
use anabranch_wire::entry::{Entry, Values};

use crate::units::{QueueLimit, Rate};
use codel::CoDel;
use red::Red;

/// A queue discipline that can be chosen by name.
pub type QueueEntry = Entry<Make>;

/// Makes a discipline from the values of its parameters.
pub type Make = fn(&Values) -> Result<Discipline, Invalid>;

/// All queue disciplines, the default first.
pub const ALL: &[QueueEntry] = &[drop_tail::ENTRY, codel::ENTRY, red::ENTRY];

/// A parameter whose value does not go with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Its name.
    pub parameter: &'static str,
    /// What is wrong with the value.
    pub problem: String,
}

/// A handle to a packet inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Arrival number at the link, counting every packet offered: indexes the random draws.
    pub(crate) number: u64,
    /// Where the segment lies.
    pub(crate) slot: u32,
    /// Bytes of the whole IP packet.
    pub(crate) bytes: u32,
}

/// Which packets a link's queue drops, beside those for which there is no room. A packet whose
/// sender lets queues mark it (ECN) is marked instead, and stays. RFC 3168 §5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// None.
    #[default]
    DropTail,
    /// Those that have waited too long for too long. RFC 8289.
    CoDel(CoDelConfig),
    /// Some, at random, as the average length grows. Floyd and Jacobson, 1993.
    Red(RedConfig),
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
            Discipline::DropTail => Queue::DropTail(tail),
            Discipline::CoDel(config) => Queue::CoDel(CoDel::new(config, tail)),
            Discipline::Red(config) => Queue::Red(Red::new(config, tail, rate, link_seed)),
        }
    }

    /// Let `packet` wait from `now` on; `false` if it is dropped instead. `mark` says whether it
    /// could be marked.
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

    /// The next packet to transmit at `now`. Packets to be dropped on the way go to `signal`, which
    /// says whether it has marked them instead.
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

    /// Empty the queue into `lose`.
    pub(crate) fn clear(&mut self, now: Instant, lose: impl FnMut(Packet)) {
        let Queue::CoDel(codel) = self else {
            return core::iter::from_fn(|| self.dequeue(now, |_| false)).for_each(lose);
        };
        codel.clear(lose);
    }

    /// The transmitter's rate is now `rate`.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        match self {
            Queue::DropTail(tail) => tail.set_rate(rate),
            Queue::CoDel(codel) => codel.tail_mut().set_rate(rate),
            Queue::Red(red) => red.set_rate(rate),
        }
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> usize {
        self.tail().packets()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.tail().bytes()
    }

    fn tail(&self) -> &DropTail {
        match self {
            Queue::DropTail(tail) => tail,
            Queue::CoDel(codel) => codel.tail(),
            Queue::Red(red) => red.tail(),
        }
    }
}
