//! Where the packets inside a link lie while small handles to them move through it.

use anabranch_wire::Packet;

/// Packets in numbered slots. A packet is moved once in and once out, however many stages of
/// the link it passes in between, and a freed slot is used again before memory is asked for.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    slots: Vec<Option<Packet>>,
    free: Vec<u32>,
}

impl Slab {
    /// Keep `packet`; returns its slot.
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(packet);
            return slot;
        }
        self.slots.push(Some(packet));
        (self.slots.len() - 1) as u32
    }

    /// Give up the packet in `slot`.
    ///
    /// # Panics
    /// If the slot is empty: a handle is used once.
    pub(crate) fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a handle names a slot that is in use")
    }

    /// Mark the packet in `slot` instead of dropping it; false if its sender does not let queues.
    pub(crate) fn mark(&mut self, slot: u32) -> bool {
        self.slots[slot as usize].as_mut().is_some_and(Packet::mark)
    }

    /// Packets kept.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
