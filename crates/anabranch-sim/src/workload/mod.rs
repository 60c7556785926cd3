//! Workloads: what applications write, read and measure. They do no I/O.
//!
//! Each workload has a file with its keys in a scenario and with its sender. Other modules use only
//! the list at [`Workload`].

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

use anabranch_config::written_parts;
use anabranch_net::units::ByteCount;
use anabranch_wire::{Instant, Piece};

pub(crate) use application::{Application, Draws};
pub use blocks::Blocks;
pub use bulk::Bulk;
pub use cbr::Cbr;
pub use distribution::{Amount, Distribution, MAX_DRAW, Sampler};
use kind::BuildWorkload;
pub use on_off::OnOff;
pub use request_response::RequestResponse;
pub use sink::Sink;
pub use sizes::{MAX_RESPONSES, Sizes};
pub use udp_on_off::UdpOnOff;

written_parts! {
    /// The data that a connection transfers.
    #[derive(Copy, Eq, serde::Serialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub enum Workload: "workload", dyn BuildWorkload {
        Bulk(Bulk),
        Blocks(Blocks),
        Cbr(Cbr),
        OnOff(OnOff),
        RequestResponse(RequestResponse),
    }
}

/// The socket that a sender writes to: a connection of the engine, or any other stream socket.
pub trait Socket {
    /// Write data. Returns the number of bytes accepted. It is lower than offered if the send
    /// buffer is full.
    fn write(&mut self, piece: Piece) -> usize;
    /// A lower bound of the bytes that the socket would accept now.
    fn space(&self) -> u64;
    /// Close the sending direction.
    fn finish(&mut self);
}

/// The sending half of an application. It writes the test pattern from offset 0, so the receiver
/// can verify every byte.
pub trait Sender: Send {
    /// The connection has opened, or the send buffer has room again.
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket);
    /// By `now`, the application has read `received` bytes in total from its peer.
    fn on_received(&mut self, _now: Instant, _received: u64, _socket: &mut dyn Socket) {}
    /// Bytes that the socket has accepted so far.
    fn written(&self) -> u64;
    /// Total bytes of the workload's data, whether this end sends or requests them, once it is
    /// certain. `None` as long as there may be more.
    fn data_bytes(&self) -> Option<u64>;
    /// When to call [`Sender::on_writable`] without any other event.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Times at which the delay of each block starts, for workloads with blocks. This is when the
    /// stack accepted the last byte of the block, when the burst began, or when the block was
    /// requested.
    fn delay_starts(&self) -> &[Instant];
}

/// Block size if the scenario gives none.
fn default_block_size() -> ByteCount {
    ByteCount::new(8 << 10)
}

/// Maximum length of a single write in bytes, as of the program in live runs. Linux sends after each
/// write.
const WRITE_SIZE: u64 = 1 << 16;

#[cfg(test)]
mod testing {
    //! Shared by the tests of the workloads.

    use anabranch_wire::{Duration, Instant, Piece};

    use super::Socket;

    /// A socket with this much room.
    pub(super) struct Space {
        pub(super) space: usize,
        pub(super) written: usize,
        pub(super) finished: bool,
    }

    impl Space {
        pub(super) fn new(space: usize) -> Self {
            Space { space, written: 0, finished: false }
        }
    }

    impl Socket for Space {
        fn write(&mut self, piece: Piece) -> usize {
            let accepted = piece.len().min(self.space);
            self.space -= accepted;
            assert!(piece.slice(0, accepted).matches_pattern(self.written as u64));
            self.written += accepted;
            accepted
        }

        fn space(&self) -> u64 {
            self.space as u64
        }

        fn finish(&mut self) {
            self.finished = true;
        }
    }

    pub(super) fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
}
