//! What every element of a path has in common.

use anabranch_wire::{Instant, Packet};

/// An element of a path: packets in, packets out, and a time at which it wants to be woken.
///
/// The verbs are the engine's. After any call that takes `&mut self`, call
/// [`poll_transmit`](Node::poll_transmit) until it returns `None`, then read
/// [`poll_timeout`](Node::poll_timeout). Times never go backwards from one call to the next.
pub trait Node {
    /// Take a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, packet: Packet);

    /// Do what is due at `now`. A call that comes early, late or for no reason is harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet that leaves the node by `now`, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// When to call [`handle_timeout`](Node::handle_timeout); `None` while only a new packet
    /// can make anything happen.
    fn poll_timeout(&self) -> Option<Instant>;
}
