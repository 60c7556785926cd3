//! Blocks of a fixed size, written as fast as the socket accepts them. NSDI 2012 uses this workload
//! to measure application-level latency.

use core::num::NonZeroU64;

use anabranch_config::Part;
use anabranch_config::written::Positive;
use anabranch_net::units::ByteCount;
use anabranch_wire::{Instant, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Application, BuildWorkload, Draws, Sender, Sizes, Socket, WRITE_SIZE, default_block_size,
};

/// Blocks of equal size, as fast as the connection accepts them. Their delays are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Size of each block.
    #[serde(default = "default_block_size", with = "Positive::<ByteCount>")]
    pub block_size: ByteCount,
    /// Number of blocks (default: unlimited).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU64")]
    pub count: Option<NonZeroU64>,
}

impl Part for Blocks {
    const NAME: &'static str = "blocks";
    const SUMMARY: &'static str = "Blocks of data, as fast as the connection accepts them.";
    const SOURCE: &'static str = "Raiciu et al., NSDI 2012";
}

impl BuildWorkload for Blocks {
    fn count(&self) -> Option<u64> {
        self.count.map(NonZeroU64::get)
    }

    fn application(&self, sends: bool, _draws: &Draws<'_>) -> Application {
        let size = self.block_size.as_u64();
        let sender = BlocksSender::new(size, self.count.map(NonZeroU64::get));
        Application::one_way(sends, sender, Some(Sizes::Fixed(size)))
    }
}

/// Writes blocks, and records when the stack accepted the last byte of each.
#[derive(Clone, Debug)]
struct BlocksSender {
    block_size: u64,
    end: u64,
    written: u64,
    accepted: Vec<Instant>,
    finished: bool,
}

impl BlocksSender {
    /// `count` blocks of `block_size` bytes; unlimited if `None`.
    fn new(block_size: u64, count: Option<u64>) -> Self {
        let end = count.map_or(u64::MAX, |count| count.saturating_mul(block_size));
        BlocksSender { block_size, end, written: 0, accepted: Vec::new(), finished: false }
    }
}

impl Sender for BlocksSender {
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        while self.written < self.end {
            let in_block = self.written % self.block_size;
            let len = self.block_size - in_block;
            let offered = len.min(WRITE_SIZE);
            let accepted = socket.write(Piece::pattern(self.written, offered as u32)) as u64;
            self.written += accepted;
            if accepted == len {
                self.accepted.push(now);
            }
            if accepted < offered {
                return;
            }
        }
        if !self.finished {
            self.finished = true;
            socket.finish();
        }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.end).filter(|end| *end < u64::MAX)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn delay_starts(&self) -> &[Instant] {
        &self.accepted
    }
}
