//! Queues in front of a link's transmitter.
//!
//! A queue holds handles, not segments. A discipline takes a packet or refuses it
//! (`enqueue`), and gives the next one to transmit (`dequeue`); the link dequeues at the exact
//! time at which its transmitter falls free, so a discipline that measures sojourn times and
//! drops at dequeue sees true ones.

mod drop_tail;

pub(crate) use drop_tail::DropTail;

/// Octets of a full-size packet, the unit in which limits in packets, octets and time are
/// converted into one another: the MTU of Ethernet.
pub(crate) const FULL_SIZE_PACKET: u64 = 1_500;

/// A handle to a packet inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Arrival number at the link, counting every packet offered: indexes the random draws.
    pub(crate) number: u64,
    /// Where the segment lies.
    pub(crate) slot: u32,
    /// Octets of the whole IP packet.
    pub(crate) octets: u32,
}
