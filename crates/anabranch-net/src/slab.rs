//! Storage for the packets inside a link. Small handles to them move through the link.

use std::net::IpAddr;

use anabranch_wire::Packet;

use crate::rng::Draws;

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

    /// Hash of the flow of the packet in `slot`: of its protocol, addresses and ports. The seed selects
    /// the hash function.
    pub(crate) fn flow_hash(&self, slot: u32, seed: u64) -> u64 {
        self.get(slot).map_or(0, |packet| flow_hash(packet, seed))
    }

    /// Hashes of the source and the destination of the packet in `slot`. The seed selects the hash
    /// function.
    pub(crate) fn host_hashes(&self, slot: u32, seed: u64) -> [u64; 2] {
        let hash = |address| hash(seed, &words(address));
        self.get(slot).map_or([0; 2], |packet| [packet.source(), packet.destination()].map(hash))
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

fn flow_hash(packet: &Packet, seed: u64) -> u64 {
    let (protocol, ports) = match packet {
        Packet::Tcp(segment) => (6, [segment.source.port, segment.destination.port]),
        Packet::Udp(datagram) => (17, [datagram.source.port, datagram.destination.port]),
        Packet::TooBig(_) => (1, [0, 0]),
    };
    let ports = u64::from(ports[0]) << 16 | u64::from(ports[1]);
    let [source, destination] = [packet.source(), packet.destination()].map(words);
    let words = [source[0], source[1], destination[0], destination[1], protocol << 32 | ports];
    hash(seed, &words)
}

fn hash(seed: u64, words: &[u64]) -> u64 {
    words.iter().fold(seed, |hash, &word| Draws::new(hash).bits(word))
}

fn words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => u128::from(address),
    };
    [(bits >> 64) as u64, bits as u64]
}

#[cfg(test)]
mod tests {
    use anabranch_wire::{Datagram, Piece, SocketAddress};

    use super::*;

    fn datagram(source: ([u8; 4], u16), destination: ([u8; 4], u16), payload: u32) -> Packet {
        let address = |(address, port): ([u8; 4], u16)| SocketAddress::new(address.into(), port);
        let (source, destination) = (address(source), address(destination));
        Datagram { source, destination, payload: Piece::pattern(0, payload).into(), ecn: 0 }.into()
    }

    #[test]
    fn a_flow_is_its_addresses_and_ports_in_one_direction() {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let hash = flow_hash(&datagram((a, 1), (b, 2), 10), 1);
        assert_eq!(flow_hash(&datagram((a, 1), (b, 2), 99), 1), hash);
        let others = [
            ((b, 2), (a, 1)),
            ((a, 3), (b, 2)),
            ((a, 1), (b, 3)),
            ((b, 1), (b, 2)),
            ((a, 1), (a, 2)),
        ];
        for (source, destination) in others {
            assert_ne!(flow_hash(&datagram(source, destination, 10), 1), hash);
        }
        assert_ne!(flow_hash(&datagram((a, 1), (b, 2), 10), 2), hash);
    }
}
