//! The receiving half of every workload. It reads, verifies each byte, and records when blocks are
//! complete.

use anabranch_wire::{Instant, Payload};

use super::Sizes;

/// Reads and verifies the test pattern.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    received: u64,
    /// When data last arrived.
    last_at: Instant,
    corrupt: u64,
    sizes: Option<Sizes>,
    /// Offset at which the current block ends; unused without sizes.
    block_end: u64,
    blocks: Vec<Instant>,
}

impl Sink {
    /// A reader that records when each block of these sizes is complete.
    pub fn new(sizes: Option<Sizes>) -> Self {
        Sink { sizes, block_end: sizes.map_or(0, |sizes| sizes.of(0)), ..Sink::default() }
    }

    /// A reader outside the simulator that has read this many bytes, without checking them.
    pub fn of_received(received: u64) -> Self {
        Sink { received, ..Sink::default() }
    }

    /// `payload`, the next part of the stream, arrives at `now`.
    pub fn on_data(&mut self, now: Instant, payload: &Payload) {
        if !payload.matches_pattern(self.received) {
            self.corrupt += payload.len() as u64;
        }
        self.received += payload.len() as u64;
        self.last_at = now;
        if let Some(sizes) = self.sizes {
            while self.block_end <= self.received {
                self.blocks.push(now);
                self.block_end += sizes.of(self.blocks.len() as u64);
            }
        }
    }

    /// Bytes received in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// When data was last received.
    pub fn last_at(&self) -> Instant {
        self.last_at
    }

    /// Bytes in pieces whose content is wrong.
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// Size in bytes of block number `block`; 0 if there are no blocks.
    pub fn block_size(&self, block: u64) -> u64 {
        self.sizes.map_or(0, |sizes| sizes.of(block))
    }

    /// When each block was complete.
    pub fn blocks_delivered(&self) -> &[Instant] {
        &self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Piece;

    #[test]
    fn a_block_is_delivered_with_its_last_byte_and_displaced_data_is_detected() {
        let mut sink = Sink::new(Some(Sizes::Fixed(1000)));
        sink.on_data(Instant::from_nanos(1), &Payload::from(Piece::pattern(0, 999)));
        assert!(sink.blocks_delivered().is_empty());
        sink.on_data(Instant::from_nanos(2), &Payload::from(Piece::pattern(999, 1001)));
        assert_eq!(sink.blocks_delivered(), [Instant::from_nanos(2); 2]);
        assert_eq!(sink.corrupt(), 0);
        sink.on_data(Instant::from_nanos(3), &Payload::from(Piece::pattern(0, 10)));
        assert_eq!((sink.corrupt(), sink.received()), (10, 2010));
    }
}
