//! Finding the subflow to which a segment belongs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_wire::SocketAddress;

use crate::view::Slot;

/// Number of subflows that are found without a search.
const RECENT: usize = 16;

/// The subflows of a host, by their pairs of addresses.
#[derive(Debug, Default)]
pub(super) struct Demultiplexer {
    all: BTreeMap<AddressPair, SubflowIndex>,
    /// The last subflow that was found for each place. Subflows with the same place replace each
    /// other, and are then found by a search.
    recent: [Option<Recent>; RECENT],
}

/// A subflow that was found.
#[derive(Clone, Copy, Debug)]
struct Recent {
    local: SocketAddress,
    remote: SocketAddress,
    index: SubflowIndex,
}

/// Location of a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubflowIndex {
    /// Index of the connection.
    pub(super) connection: u32,
    /// Slot of the subflow in the connection.
    pub(super) slot: Slot,
}

/// Local and remote address of a subflow. Ports come first, because most comparisons end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AddressPair {
    ports: (u16, u16),
    addresses: (IpAddr, IpAddr),
}

impl AddressPair {
    fn new(local: SocketAddress, remote: SocketAddress) -> Self {
        AddressPair { ports: (local.port, remote.port), addresses: (local.address, remote.address) }
    }
}

/// The place of a subflow in the list of recent ones, by a hash.
#[inline]
fn place(local: &SocketAddress, remote: &SocketAddress) -> usize {
    let low = |end: &SocketAddress| match end.address {
        IpAddr::V4(address) => address.to_bits() as usize,
        IpAddr::V6(address) => address.to_bits() as usize,
    };
    let mixed = usize::from(local.port ^ remote.port) ^ low(local) ^ low(remote);
    // The subnets of several paths differ in a higher byte.
    (mixed ^ mixed >> 8 ^ mixed >> 16) % RECENT
}

impl Demultiplexer {
    /// The subflow with these addresses.
    #[inline]
    pub(super) fn find(
        &mut self,
        local: &SocketAddress,
        remote: &SocketAddress,
    ) -> Option<SubflowIndex> {
        match &self.recent[place(local, remote)] {
            Some(recent) if recent.local == *local && recent.remote == *remote => {
                Some(recent.index)
            }
            _ => self.search(*local, *remote),
        }
    }

    fn search(&mut self, local: SocketAddress, remote: SocketAddress) -> Option<SubflowIndex> {
        let index = *self.all.get(&AddressPair::new(local, remote))?;
        self.recent[place(&local, &remote)] = Some(Recent { local, remote, index });
        Some(index)
    }

    /// Returns `true` if a subflow has these addresses.
    pub(super) fn contains(&self, local: SocketAddress, remote: SocketAddress) -> bool {
        self.all.contains_key(&AddressPair::new(local, remote))
    }

    pub(super) fn insert(
        &mut self,
        local: SocketAddress,
        remote: SocketAddress,
        index: SubflowIndex,
    ) {
        let pair = AddressPair::new(local, remote);
        self.all.insert(pair, index);
        self.recent[place(&local, &remote)] = None;
    }

    pub(super) fn remove(&mut self, local: SocketAddress, remote: SocketAddress) {
        let pair = AddressPair::new(local, remote);
        self.all.remove(&pair);
        self.recent[place(&local, &remote)] = None;
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
    fn subflows_with_one_place_are_told_apart() {
        let mut table = Demultiplexer::default();
        let remotes: Vec<_> = (0..40).map(|n| at(2, 5000 + n * 16)).collect();
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
}
