//! Middleboxes that change what passes through them.

use anabranch_wire::{Payload, Segment, SeqNumber};
use bytes::Bytes;

/// Inverts one byte of each segment with payload for which it is asked.
pub fn invert(segment: &mut Segment, at: usize) {
    let mut bytes = segment.payload.to_vec();
    let at = at % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte = !*byte;
        segment.payload = Payload::from(Bytes::from(bytes));
    }
}

/// An application-level gateway in one direction of one subflow: once, it inserts bytes into the
/// stream or takes some out, and from then on translates sequence numbers.
pub struct Gateway {
    /// Bytes inserted, or taken out where negative.
    change: i32,
    /// The sequence number, as the sender counts, before which that is.
    at: Option<SeqNumber>,
}

/// What is inserted.
pub const FILL: u8 = b'#';

impl Gateway {
    pub fn new(change: i32) -> Self {
        Gateway { change, at: None }
    }

    /// A segment in the direction that is changed; the change happens in the first for which
    /// `begin`, and that has payload enough, in its middle.
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

    /// Where the change was made, as the sender counts.
    pub fn place(&self) -> Option<SeqNumber> {
        self.at
    }

    /// A segment in the other direction.
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
