//! Storage for the packets inside a link. Small handles to them move through the link.

use anabranch_wire::Packet;

/// Packets in numbered slots. Each packet is moved once in and once out, regardless of how many
/// stages of the link it passes. Freed slots are reused before new memory is allocated.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    slots: Vec<Option<Packet>>,
    free: Vec<u32>,
}

impl Slab {
    /// Store `packet`. Returns its slot.
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(packet);
            return slot;
        }
        self.slots.push(Some(packet));
        (self.slots.len() - 1) as u32
    }

    /// Take the packet out of `slot`.
    ///
    /// # Panics
    /// If the slot is empty. Each handle may be used once.
    pub(crate) fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a handle names a slot that is in use")
    }

    /// The packet in a slot.
    pub(crate) fn get(&self, slot: u32) -> Option<&Packet> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Mark the packet in `slot` instead of dropping it. Returns false if its sender does not
    /// support ECN.
    pub(crate) fn mark(&mut self, slot: u32) -> bool {
        self.slots[slot as usize].as_mut().is_some_and(Packet::mark)
    }

    /// Number of packets stored.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
