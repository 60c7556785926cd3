//! Blocks at a constant rate: an application-limited workload. Paasch et al., CSWS 2014, send 8 KB
//! blocks at 500 and 1875 kbit/s.

use core::num::NonZeroU64;

use anabranch_config::Part;
use anabranch_config::written::{Positive, Problem, WithUnit};
use anabranch_net::units::{ByteCount, Rate};
use anabranch_wire::{Duration, Instant, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Application, BuildWorkload, Draws, Sender, Sizes, Socket, WRITE_SIZE, default_block_size,
};

/// Blocks of equal size at a constant rate. Their delays are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Rate at which the application writes blocks.
    #[serde(with = "WithUnit::<Rate>")]
    #[schemars(example = "500kbit/s")]
    pub rate: Rate,
    /// Size of each block.
    #[serde(default = "default_block_size", with = "Positive::<ByteCount>")]
    pub block_size: ByteCount,
    /// Number of blocks (default: unlimited).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU64")]
    pub count: Option<NonZeroU64>,
}

impl Part for Cbr {
    const NAME: &'static str = "cbr";
    const SUMMARY: &'static str = "Blocks of equal size at a constant rate.";
    const SOURCE: &'static str = "Paasch et al., CSWS 2014";
}

impl BuildWorkload for Cbr {
    fn check(&self) -> Result<(), Problem> {
        require_block_rate(self.rate, self.block_size)
    }

    fn count(&self) -> Option<u64> {
        self.count.map(NonZeroU64::get)
    }

    fn application(&self, sends: bool, _draws: &Draws<'_>) -> Application {
        let size = self.block_size.as_u64();
        let sender = CbrSender::new(self.rate, size, self.count.map(NonZeroU64::get));
        Application::one_way(sends, sender, Some(Sizes::Fixed(size)))
    }
}

/// Each block is an event. A higher block rate would make runs too slow.
fn require_block_rate(rate: Rate, block_size: ByteCount) -> Result<(), Problem> {
    if rate.as_bits_per_second() / 8 / block_size.as_u64() < MOST_BLOCKS_PER_SECOND {
        return Ok(());
    }
    let size = block_size.to_string();
    let problem = format!("{size:?}: at {rate} more than a million blocks a second; write more");
    Err(Problem::new("block_size", problem))
}

const MOST_BLOCKS_PER_SECOND: u64 = 1_000_000;

/// Writes each block when it is due, and records when the stack accepted all of it.
///
/// The first block is due when the connection opens. Later blocks are due at exact multiples of the
/// time that a block takes at the rate. If the socket does not accept all of a block, the rest is
/// written as soon as the socket has room.
#[derive(Clone, Debug)]
struct CbrSender {
    rate: Rate,
    block_size: u64,
    count: u64,
    start: Option<Instant>,
    /// Number of blocks that have become due so far.
    due: u64,
    /// When the next block is due.
    next_due: Option<Instant>,
    written: u64,
    accepted: Vec<Instant>,
    finished: bool,
}

impl CbrSender {
    /// `count` blocks of `block_size` bytes at `rate`; unlimited if `None`.
    fn new(rate: Rate, block_size: u64, count: Option<u64>) -> Self {
        CbrSender {
            rate,
            block_size,
            count: count.unwrap_or(u64::MAX),
            start: None,
            due: 0,
            next_due: None,
            written: 0,
            accepted: Vec::new(),
            finished: false,
        }
    }

    /// When block number `block` is due, if there is such a block. The time does not drift.
    fn due_at(&self, block: u64) -> Option<Instant> {
        let start = self.start.filter(|_| block < self.count)?;
        let bits = u128::from(block) * u128::from(self.block_size) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(self.rate.as_bits_per_second());
        Some(start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    fn count_due(&mut self, now: Instant) {
        if self.start.is_none() {
            self.start = Some(now);
            self.next_due = self.due_at(0);
        }
        while self.next_due.is_some_and(|at| at <= now) {
            self.due += 1;
            self.next_due = self.due_at(self.due);
        }
    }
}

impl Sender for CbrSender {
    fn on_writable(&mut self, now: Instant, socket: &mut dyn Socket) {
        self.count_due(now);
        while self.written < self.due * self.block_size {
            let len = self.block_size - self.written % self.block_size;
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
        if self.due == self.count && !self.finished {
            self.finished = true;
            socket.finish();
        }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn data_bytes(&self) -> Option<u64> {
        self.finished.then_some(self.written)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    fn delay_starts(&self) -> &[Instant] {
        &self.accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::{Space, ms};

    #[test]
    fn blocks_are_due_at_exact_multiples_and_wait_for_room() {
        // 1000 bytes at 80 kbit/s: one block every 100 ms.
        let mut cbr = CbrSender::new("80kbit/s".parse().expect("a rate"), 1_000, Some(4));
        let mut socket = Space::new(2_500);
        cbr.on_writable(ms(7), &mut socket);
        assert_eq!(cbr.poll_timeout(), Some(ms(107)));
        cbr.on_writable(ms(107), &mut socket);
        // The socket has room for only half of the third block.
        cbr.on_writable(ms(207), &mut socket);
        assert_eq!(cbr.delay_starts(), [ms(7), ms(107)]);
        socket.space = 10_000;
        cbr.on_writable(ms(250), &mut socket);
        assert_eq!(cbr.delay_starts(), [ms(7), ms(107), ms(250)]);
        assert_eq!(cbr.poll_timeout(), Some(ms(307)));
        cbr.on_writable(ms(307), &mut socket);
        assert_eq!((cbr.poll_timeout(), cbr.finished), (None, true));
    }
}
