//! Finding the subflow to which a segment belongs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_wire::SocketAddress;

use crate::view::Slot;

/// Number of subflows that are found without a search: as many as there are values of the hash.
const RECENT: usize = 1 << HASH_BITS;
const HASH_BITS: u32 = 8;

/// The subflows of a host, by their pairs of addresses.
#[derive(Debug)]
pub(super) struct Demultiplexer {
    all: BTreeMap<AddressPair, SubflowIndex>,
    /// The last subflow that was found for each hash. Subflows with the same hash replace each other,
    /// and are then found by a search.
    recent: Box<[Option<(AddressPair, SubflowIndex)>; RECENT]>,
}

/// Location of a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubflowIndex {
    /// Index of the connection.
    pub(super) connection: u32,
    /// Slot of the subflow in the connection.
    pub(super) slot: Slot,
}

/// Local and remote address of a subflow, as numbers. Ports come first, because most comparisons end
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AddressPair {
    ports: (u16, u16),
    are_ipv4: (bool, bool),
    /// The high and the low half of each.
    addresses: [(u64, u64); 2],
}

impl AddressPair {
    #[inline]
    fn new(local: &SocketAddress, remote: &SocketAddress) -> Self {
        let halves = |end: &SocketAddress| match end.address {
            IpAddr::V4(address) => (0, address.to_bits().into()),
            IpAddr::V6(address) => ((address.to_bits() >> 64) as u64, address.to_bits() as u64),
        };
        AddressPair {
            ports: (local.port, remote.port),
            are_ipv4: (local.address.is_ipv4(), remote.address.is_ipv4()),
            addresses: [halves(local), halves(remote)],
        }
    }

    /// A hash by Fibonacci hashing: the highest bits of a product depend on all bits.
    #[inline]
    fn hash(&self) -> usize {
        let AddressPair { ports, addresses: [(_, local), (_, remote)], .. } = self;
        let mixed = u64::from(ports.0 ^ ports.1) ^ local ^ remote;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASH_BITS)) as usize
    }
}

impl Default for Demultiplexer {
    fn default() -> Self {
        Demultiplexer { all: BTreeMap::new(), recent: Box::new([None; RECENT]) }
    }
}

impl Demultiplexer {
    /// The subflow with these addresses.
    #[inline]
    pub(super) fn find(
        &mut self,
        local: &SocketAddress,
        remote: &SocketAddress,
    ) -> Option<SubflowIndex> {
        let pair = AddressPair::new(local, remote);
        match &self.recent[pair.hash()] {
            Some((recent, index)) if *recent == pair => Some(*index),
            _ => self.search(pair),
        }
    }

    #[inline(never)]
    fn search(&mut self, pair: AddressPair) -> Option<SubflowIndex> {
        let index = *self.all.get(&pair)?;
        self.recent[pair.hash()] = Some((pair, index));
        Some(index)
    }

    /// Returns `true` if a subflow has these addresses.
    pub(super) fn contains(&self, local: SocketAddress, remote: SocketAddress) -> bool {
        self.all.contains_key(&AddressPair::new(&local, &remote))
    }

    pub(super) fn insert(
        &mut self,
        local: SocketAddress,
        remote: SocketAddress,
        index: SubflowIndex,
    ) {
        let pair = AddressPair::new(&local, &remote);
        self.all.insert(pair, index);
        self.recent[pair.hash()] = None;
    }

    pub(super) fn remove(&mut self, local: SocketAddress, remote: SocketAddress) {
        let pair = AddressPair::new(&local, &remote);
        self.all.remove(&pair);
        self.recent[pair.hash()] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8, port: u16) -> SocketAddress {
        SocketAddress::new(IpAddr::from([10, 0, 0, last]), port)
    }

    #[test]
    fn what_was_found_last_is_forgotten_when_it_changes() {
        let index = |connection| SubflowIndex { connection, slot: Slot(0) };
        let connection = |found: Option<SubflowIndex>| found.map(|index| index.connection);
        let mut table = Demultiplexer::default();
        let (local, remote) = (at(1, 80), at(2, 5000));
        assert_eq!(connection(table.find(&local, &remote)), None);
        table.insert(local, remote, index(1));
        assert_eq!(connection(table.find(&local, &remote)), Some(1));
        table.insert(local, remote, index(2));
        assert_eq!(connection(table.find(&local, &remote)), Some(2));
        table.remove(local, remote);
        assert_eq!(connection(table.find(&local, &remote)), None);
        assert!(!table.contains(local, remote));
    }

    #[test]
    fn subflows_with_one_hash_are_told_apart() {
        let mut table = Demultiplexer::default();
        // More than there are hashes.
        let remotes: Vec<_> = (0..300).map(|n| at(2, 5000 + n * 16)).collect();
        for (number, remote) in (0..).zip(&remotes) {
            table.insert(at(1, 80), *remote, SubflowIndex { connection: number, slot: Slot(0) });
        }
        for _ in 0..2 {
            for (number, remote) in (0..).zip(&remotes) {
                let found = table.find(&at(1, 80), remote);
                assert_eq!(found.map(|index| index.connection), Some(number));
            }
        }
    }

    #[test]
    fn an_ipv6_address_with_the_bits_of_an_ipv4_address_is_another() {
        let mut table = Demultiplexer::default();
        let alike = IpAddr::from([0, 0, 0, 0, 0, 0, 0x0a00, 2]);
        table.insert(at(1, 80), at(2, 5000), SubflowIndex { connection: 1, slot: Slot(0) });
        let of_another_family = SocketAddress::new(alike, 5000);
        for _ in 0..2 {
            assert!(table.find(&at(1, 80), &of_another_family).is_none());
            assert!(table.find(&at(1, 80), &at(2, 5000)).is_some());
        }
    }
}
