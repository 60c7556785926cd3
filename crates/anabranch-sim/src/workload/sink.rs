//! The receiving half of every workload: reads, checks each octet, notes when blocks are whole.

use anabranch_wire::{Instant, Payload};

/// Reads the test pattern.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    received: u64,
    corrupt: u64,
    block_size: Option<u64>,
    blocks: Vec<Instant>,
}

impl Sink {
    /// A reader that notes the time at which each block of `block_size` octets is whole.
    pub fn new(block_size: Option<u64>) -> Self {
        Sink { block_size, ..Sink::default() }
    }

    /// `payload` continues the stream at `now`.
    pub fn on_data(&mut self, now: Instant, payload: &Payload) {
        if !payload.matches_pattern(self.received) {
            self.corrupt += payload.len() as u64;
        }
        self.received += payload.len() as u64;
        if let Some(size) = self.block_size {
            while (self.blocks.len() as u64 + 1) * size <= self.received {
                self.blocks.push(now);
            }
        }
    }

    /// Octets received in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Octets in pieces that were not what had been sent.
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// When each block was whole.
    pub fn blocks_delivered(&self) -> &[Instant] {
        &self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Piece;

    #[test]
    fn a_block_is_delivered_with_its_last_octet_and_displaced_data_is_noticed() {
        let mut sink = Sink::new(Some(1000));
        sink.on_data(Instant::from_nanos(1), &Payload::from(Piece::pattern(0, 999)));
        assert!(sink.blocks_delivered().is_empty());
        sink.on_data(Instant::from_nanos(2), &Payload::from(Piece::pattern(999, 1001)));
        assert_eq!(sink.blocks_delivered(), [Instant::from_nanos(2); 2]);
        assert_eq!(sink.corrupt(), 0);
        sink.on_data(Instant::from_nanos(3), &Payload::from(Piece::pattern(0, 10)));
        assert_eq!((sink.corrupt(), sink.received()), (10, 2010));
    }
}
