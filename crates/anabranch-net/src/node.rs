//! What every element of a path has in common.

use anabranch_wire::{Instant, Segment};

/// An element of a path: segments in, segments out, and a time at which it wants to be woken.
///
/// The verbs are the engine's. After any call that takes `&mut self`, call
/// [`poll_transmit`](Node::poll_transmit) until it returns `None`, then read
/// [`poll_timeout`](Node::poll_timeout). Times never go backwards from one call to the next.
pub trait Node {
    /// Take a segment that arrives at `now`.
    fn handle_segment(&mut self, now: Instant, segment: Segment);

    /// Do what is due at `now`. A call that comes early, late or for no reason is harmless.
    fn handle_timeout(&mut self, now: Instant);

    /// The next segment that leaves the node by `now`, if there is one.
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment>;

    /// When to call [`handle_timeout`](Node::handle_timeout); `None` while only a new segment
    /// can make anything happen.
    fn poll_timeout(&self) -> Option<Instant>;
}
