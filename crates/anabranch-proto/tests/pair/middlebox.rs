//! Middleboxes that change segments.

use anabranch_wire::{Payload, Segment, SeqNumber};
use bytes::Bytes;

/// Invert the byte of the payload at `at`, modulo the payload's length.
pub fn invert(segment: &mut Segment, at: usize) {
    let mut bytes = segment.payload.to_vec();
    let at = at % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte = !*byte;
        segment.payload = Payload::from(Bytes::from(bytes));
    }
}

/// An application-level gateway in one direction of one subflow. It inserts or removes bytes of the
/// stream once, and translates sequence numbers from then on.
pub struct Gateway {
    /// Number of bytes inserted; negative if bytes are removed.
    change: i32,
    /// The sender's sequence number before which the change is made.
    at: Option<SeqNumber>,
}

/// The inserted byte.
pub const FILL: u8 = b'#';

impl Gateway {
    pub fn new(change: i32) -> Self {
        Gateway { change, at: None }
    }

    /// Process a segment in the changed direction. The change is made in the middle of the first
    /// segment that has `begin` set and enough payload.
    pub fn forward(&mut self, segment: &mut Segment, begin: bool) {
        let len = segment.payload.len();
        if self.at.is_none() && begin && len > 100 {
            self.at = Some(segment.header.seq + len as u32 / 2);
        }
        let Some(at) = self.at else { return };
        let before = at.distance_from(segment.header.seq);
        if before <= 0 {
            segment.header.seq = segment.header.seq + self.change as u32;
        } else if (before as usize) < len {
            let mut bytes = segment.payload.to_vec();
            let fill = vec![FILL; self.change.max(0) as usize];
            let end = (before as usize + (-self.change).max(0) as usize).min(len);
            bytes.splice(before as usize..end, fill);
            segment.payload = Payload::from(Bytes::from(bytes));
        }
    }

    /// The sender's sequence number at the change.
    pub fn place(&self) -> Option<SeqNumber> {
        self.at
    }

    /// Process a segment in the opposite direction.
    pub fn backward(&self, segment: &mut Segment) {
        let Some(at) = self.at else { return };
        segment.header.ack = self.translate(at, segment.header.ack);
        let mut sack = anabranch_wire::SackBlocks::default();
        for block in segment.options.sack.as_slice() {
            let (start, end) = (self.translate(at, block.start), self.translate(at, block.end));
            sack.push(anabranch_wire::SackBlock { start, end });
        }
        segment.options.sack = sack;
    }

    fn translate(&self, at: SeqNumber, number: SeqNumber) -> SeqNumber {
        let beyond = number.distance_from(at);
        if beyond <= 0 {
            number
        } else {
            number + (beyond - self.change).max(0).wrapping_sub(beyond) as u32
        }
    }
}
