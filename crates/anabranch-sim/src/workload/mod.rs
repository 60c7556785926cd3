//! What applications do: write, read, measure. Sans-IO, like everything else.

mod blocks;
mod bulk;
mod cbr;
mod sink;

pub use blocks::Blocks;
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use sink::Sink;

use anabranch_wire::{Instant, Piece};

/// The socket that a sender writes to: the engine's, or any other.
pub trait Socket {
    /// Offer data; returns the octets accepted, fewer than offered when the send buffer is full.
    fn write(&mut self, piece: Piece) -> usize;
    /// Octets that would be accepted now.
    fn room(&self) -> u64;
    /// No more data will be written.
    fn finish(&mut self);
}

/// The sending half of an application. What it writes is the test pattern from offset 0, so that
/// the receiver can tell every octet.
pub trait Sender: Send {
    /// The connection is open, or the send buffer has room again.
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket);
    /// When to call [`Sender::on_writable`] although nothing happened.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Times at which the stack had accepted the last octet of each block, for workloads that
    /// send blocks.
    fn blocks_accepted(&self) -> &[Instant];
    /// Octets in a block, for workloads that send blocks.
    fn block_size(&self) -> Option<u64>;
}

/// Longest single write in octets.
const LONGEST_WRITE: u64 = 1 << 24;
