//! The interface of every element of a path.

use anabranch_wire::{Instant, Packet};

/// An element of a path. It takes packets, returns packets, and says when to wake it.
///
/// The method names are the same as the engine's. After any call that takes `&mut self`, call
/// [`poll_transmit`](Node::poll_transmit) until it returns `None`, then read
/// [`poll_timeout`](Node::poll_timeout). The times of successive calls must not decrease.
pub trait Node {
    /// Handle a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, packet: Packet);

    /// Do the work that is due at `now`. Early, late and unnecessary calls are harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet that leaves the node by `now`; `None` if there is none.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;

    /// When to call [`handle_timeout`](Node::handle_timeout); `None` if the node waits only for
    /// packets.
    fn poll_timeout(&self) -> Option<Instant>;
}
