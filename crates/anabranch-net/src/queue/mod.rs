//! Queues in front of a link's transmitter.
//!
//! A queue holds handles, not segments. A discipline accepts or drops each packet (`enqueue`), and
//! returns the next packet to transmit (`dequeue`). The link dequeues exactly when its transmitter
//! becomes free. A discipline that measures sojourn times and drops at dequeue therefore sees the
//! true values.

mod cake;
mod capacity;
mod cobalt;
mod codel;
mod drop_tail;
mod fq_codel;
mod pie;
mod red;
mod timestamped;

pub use cake::{CakeConfig, Isolation};
pub(crate) use capacity::QueueCapacity;
pub use codel::CoDelConfig;
pub(crate) use drop_tail::DropTail;
pub use drop_tail::DropTailConfig;
pub use fq_codel::FqCoDelConfig;
pub use pie::PieConfig;
pub use red::RedConfig;
pub(crate) use timestamped::Timestamped;

use anabranch_config::parts;
use anabranch_wire::Instant;

use crate::units::{QueueLimit, Rate};
use cake::Cake;
use codel::CoDel;
use fq_codel::{Backlog, FqCoDel};
use pie::Pie;
use red::Red;

parts! {
    /// Which packets a link's queue drops besides those that do not fit. If the sender of a packet
    /// supports ECN, the queue marks the packet instead. RFC 3168 §5. The first is the default.
    #[derive(Copy, Eq)]
    pub enum Discipline: "kind", dyn CheckQueue {
        DropTail(DropTailConfig),
        CoDel(CoDelConfig),
        Red(RedConfig),
        FqCoDel(FqCoDelConfig),
        Pie(PieConfig),
        Cake(CakeConfig),
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

/// The packets inside a link, of which its queue has handles.
pub(crate) trait PacketStore {
    /// Hash of the packet's flow. The seed selects the hash function.
    fn flow_hash(&self, packet: Packet, seed: u64) -> u64;

    /// Hashes of the packet's source and destination addresses.
    fn host_hashes(&self, packet: Packet, seed: u64) -> [u64; 2];

    /// Mark a packet; `false` if its sender does not support ECN.
    fn mark(&mut self, packet: Packet) -> bool;

    /// Drop a packet that has left the queue.
    fn drop(&mut self, packet: Packet);

    /// Mark a packet that has left the queue; `false` if it is dropped instead.
    #[inline]
    fn mark_or_drop(&mut self, packet: Packet) -> bool {
        let marked = self.mark(packet);
        if !marked {
            self.drop(packet);
        }
        marked
    }
}

/// A link's queue.
#[derive(Debug)]
pub(crate) enum Queue {
    DropTail(DropTail),
    CoDel(CoDel),
    Red(Red),
    FqCoDel(FqCoDel),
    Pie(Pie),
    Cake(Cake),
}

/// The queues of flows, together.
pub(crate) trait FlowQueues {
    /// The waiting packets and their bytes.
    fn backlog(&self) -> Backlog;

    /// The packets in the order in which they leave, if queue management drops none.
    fn waiting(&self) -> Vec<Packet>;
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
            Discipline::FqCoDel(config) => {
                Queue::FqCoDel(FqCoDel::new(config, limit, rate, link_seed))
            }
            Discipline::Pie(config) => Queue::Pie(Pie::new(config, tail, link_seed)),
            Discipline::Cake(config) => Queue::Cake(Cake::new(config, limit, rate, link_seed)),
        }
    }

    /// Enqueue `packet` at `now`; `false` if `store` must drop it instead.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        store: &mut impl PacketStore,
    ) -> bool {
        match self {
            Queue::DropTail(tail) => tail.enqueue(packet),
            Queue::CoDel(codel) => codel.enqueue(now, packet),
            Queue::Red(red) => red.enqueue(now, packet, |packet| store.mark(packet)),
            Queue::FqCoDel(fq_codel) => {
                fq_codel.enqueue(now, packet, store);
                true
            }
            Queue::Pie(pie) => pie.enqueue(now, packet, |packet| store.mark(packet)),
            Queue::Cake(cake) => {
                cake.enqueue(now, packet, store);
                true
            }
        }
    }

    /// The next packet to transmit at `now`. `store` marks or drops packets on the way.
    #[inline(always)]
    pub(crate) fn dequeue(&mut self, now: Instant, store: &mut impl PacketStore) -> Option<Packet> {
        match self {
            Queue::DropTail(tail) => tail.dequeue(),
            Queue::CoDel(codel) => codel.dequeue(now, |packet| store.mark_or_drop(packet)),
            Queue::Red(red) => red.dequeue(now),
            Queue::FqCoDel(fq_codel) => fq_codel.dequeue(now, |packet| store.mark_or_drop(packet)),
            Queue::Pie(pie) => pie.dequeue(now),
            Queue::Cake(cake) => cake.dequeue(now, store),
        }
    }

    /// Pass all packets to `lose`.
    pub(crate) fn clear(&mut self, now: Instant, lose: impl FnMut(Packet)) {
        match self {
            Queue::DropTail(tail) => core::iter::from_fn(|| tail.dequeue()).for_each(lose),
            Queue::CoDel(codel) => codel.clear(lose),
            Queue::Red(red) => core::iter::from_fn(|| red.dequeue(now)).for_each(lose),
            Queue::FqCoDel(fq_codel) => fq_codel.clear(lose),
            Queue::Pie(pie) => core::iter::from_fn(|| pie.dequeue(now)).for_each(lose),
            Queue::Cake(cake) => cake.clear(lose),
        }
    }

    /// Set the transmitter's rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        match self {
            Queue::DropTail(tail) => tail.set_rate(rate),
            Queue::CoDel(codel) => codel.set_rate(rate),
            Queue::Red(red) => red.set_rate(rate),
            Queue::FqCoDel(fq_codel) => fq_codel.set_rate(rate),
            Queue::Pie(pie) => pie.set_rate(rate),
            Queue::Cake(cake) => cake.set_rate(rate),
        }
    }

    /// Number of waiting packets.
    pub(crate) fn packets(&self) -> usize {
        self.single().map_or_else(|flows| flows.backlog().packets, DropTail::packets)
    }

    /// Bytes of waiting packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.single().map_or_else(|flows| flows.backlog().bytes, DropTail::bytes)
    }

    /// The packets in the queue, in the order in which they leave.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Packet> + '_ {
        let single = self.single();
        let of_flows = single.err().into_iter().flat_map(FlowQueues::waiting);
        of_flows.chain(single.into_iter().flat_map(DropTail::waiting))
    }

    /// The queue that all flows share, or the queues of the flows.
    #[inline]
    fn single(&self) -> Result<&DropTail, &dyn FlowQueues> {
        match self {
            Queue::DropTail(tail) => Ok(tail),
            Queue::CoDel(codel) => Ok(codel.tail()),
            Queue::Red(red) => Ok(red.tail()),
            Queue::FqCoDel(fq_codel) => Err(fq_codel),
            Queue::Pie(pie) => Ok(pie.tail()),
            Queue::Cake(cake) => Err(cake),
        }
    }
}
