//! What applications do: write, read, measure. Sans-IO, like everything else.
//!
//! Each workload has a file with its keys in a scenario, and with what writes. The list at
//! [`Workload`] is all that anybody else reads.

mod application;
mod blocks;
mod bulk;
mod cbr;
mod distribution;
mod drawn;
mod kind;
mod on_off;
mod request_response;
mod sink;
mod sizes;
mod udp_on_off;

use anabranch_net::units::ByteCount;
use anabranch_wire::{Instant, Piece};

pub(crate) use application::{Application, Draws};
pub use blocks::Blocks;
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use distribution::{Amount, Distribution, MAX_DRAW, Sampler};
use kind::{Kind, workloads};
pub use on_off::OnOff;
pub use request_response::RequestResponse;
pub use sink::Sink;
pub use sizes::{MAX_RESPONSES, Sizes};
pub use udp_on_off::UdpOnOff;

workloads! {
    "bulk" is Bulk,
    "blocks" is Blocks,
    "cbr" is Cbr,
    "on_off" is OnOff,
    "request_response" is RequestResponse,
}

/// The socket that a sender writes to: the engine's, or any other.
pub trait Socket {
    /// Offer data; returns the bytes accepted, fewer than offered when the send buffer is full.
    fn write(&mut self, piece: Piece) -> usize;
    /// Bytes that would be accepted now, at least.
    fn room(&self) -> u64;
    /// No more data will be written.
    fn finish(&mut self);
}

/// The sending half of an application. What it writes is the test pattern from offset 0, so that
/// the receiver can tell every byte.
pub trait Sender: Send {
    /// The connection is open, or the send buffer has room again.
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket);
    /// By `now` the application has read `received` bytes in all from its peer.
    fn on_received(&mut self, _now: Instant, _received: u64, _socket: &mut dyn Socket) {}
    /// When to call [`Sender::on_writable`] although nothing happened.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Times from which the delay of each block counts, for workloads that send or ask for
    /// blocks: when the stack had accepted its last byte, or when it was asked for.
    fn blocks_accepted(&self) -> &[Instant];
}

/// Size of a block where a scenario does not say.
fn default_block_size() -> ByteCount {
    ByteCount::new(8 << 10)
}

/// Longest single write in bytes.
const LONGEST_WRITE: u64 = 1 << 24;

#[cfg(test)]
mod testing {
    //! What the tests of the workloads share.

    use anabranch_wire::{Duration, Instant, Piece};

    use super::Socket;

    /// A socket with this much room.
    pub(super) struct Room {
        pub(super) room: usize,
        pub(super) written: usize,
        pub(super) finished: bool,
    }

    impl Room {
        pub(super) fn new(room: usize) -> Self {
            Room { room, written: 0, finished: false }
        }
    }

    impl Socket for Room {
        fn write(&mut self, piece: Piece) -> usize {
            let accepted = piece.len().min(self.room);
            self.room -= accepted;
            assert!(piece.slice(0, accepted).matches_pattern(self.written as u64));
            self.written += accepted;
            accepted
        }

        fn room(&self) -> u64 {
            self.room as u64
        }

        fn finish(&mut self) {
            self.finished = true;
        }
    }

    pub(super) fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
}
