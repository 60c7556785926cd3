//! Where the segments inside a link lie while small handles to them move through it.

use anabranch_wire::Segment;

/// Segments in numbered slots. A segment is moved once in and once out, however many stages of
/// the link it passes in between, and a freed slot is used again before memory is asked for.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    slots: Vec<Option<Segment>>,
    free: Vec<u32>,
}

impl Slab {
    /// Keep `segment`; returns its slot.
    pub(crate) fn insert(&mut self, segment: Segment) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(segment);
            return slot;
        }
        self.slots.push(Some(segment));
        (self.slots.len() - 1) as u32
    }

    /// Give up the segment in `slot`.
    ///
    /// # Panics
    /// If the slot is empty: a handle is used once.
    pub(crate) fn remove(&mut self, slot: u32) -> Segment {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a handle names a slot that is in use")
    }

    /// Segments kept.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
