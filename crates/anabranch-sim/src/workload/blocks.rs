//! Blocks of a fixed size, written as fast as the socket accepts them: the workload of NSDI
//! 2012's application-latency experiment.

use anabranch_wire::{Instant, Piece};

use super::{LONGEST_WRITE, Sender, Socket};

/// Writes blocks and remembers when the stack had accepted the last octet of each.
#[derive(Clone, Debug)]
pub struct Blocks {
    block_size: u64,
    end: u64,
    written: u64,
    accepted: Vec<Instant>,
    finished: bool,
}

impl Blocks {
    /// `count` blocks of `block_size` octets; `None` for no end.
    pub fn new(block_size: u64, count: Option<u64>) -> Self {
        let end = count.map_or(u64::MAX, |count| count.saturating_mul(block_size));
        Blocks { block_size, end, written: 0, accepted: Vec::new(), finished: false }
    }
}

impl Sender for Blocks {
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        while self.written < self.end {
            let in_block = self.written % self.block_size;
            let len = self.block_size - in_block;
            let offered = len.min(LONGEST_WRITE);
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

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn blocks_accepted(&self) -> &[Instant] {
        &self.accepted
    }
}
