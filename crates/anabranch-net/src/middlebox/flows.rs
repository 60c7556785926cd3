//! Per-flow state of middleboxes.

use std::collections::BTreeMap;

use anabranch_wire::{Flags, Segment, SeqNumber, SocketAddress};

use super::Side;

/// Maximum number of flows in a middlebox. A new flow evicts the flow that was idle longest.
pub const MAX_FLOWS: usize = 1024;

/// A table of at most [`MAX_FLOWS`] entries with least-recently-used eviction.
#[derive(Debug)]
pub(super) struct FlowTable<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    /// Keys by the time of their last use.
    by_use: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Ord + Copy, V> FlowTable<K, V> {
    /// The entry of `key`. This counts as a use.
    pub(super) fn get(&mut self, key: K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(&key)?;
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(value)
    }

    /// The entry of `key`. This does not count as a use.
    pub(super) fn peek(&self, key: K) -> Option<&V> {
        self.entries.get(&key).map(|(_, value)| value)
    }

    /// Set the entry of `key`. Returns the entry that was evicted, if any.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        self.remove(key);
        self.uses += 1;
        self.entries.insert(key, (self.uses, value));
        self.by_use.insert(self.uses, key);
        let oldest = *self.by_use.first_key_value().filter(|_| self.entries.len() > MAX_FLOWS)?.1;
        self.remove(oldest).map(|value| (oldest, value))
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (used, value) = self.entries.remove(&key)?;
        self.by_use.remove(&used);
        Some(value)
    }

    /// All entries, in the order of their keys.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, (_, value))| (key, value))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|(_, value)| value)
    }
}

impl<K, V> Default for FlowTable<K, V> {
    fn default() -> Self {
        FlowTable { entries: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }
}

/// A TCP connection, identified by the endpoints in its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowId {
    pub(super) client: SocketAddress,
    pub(super) server: SocketAddress,
}

impl FlowId {
    pub(super) fn of(towards: Side, segment: &Segment) -> Self {
        let (source, destination) = (segment.source, segment.destination);
        match towards {
            Side::Server => FlowId { client: source, server: destination },
            Side::Client => FlowId { client: destination, server: source },
        }
    }
}

/// Sequence numbers of one direction as offsets that do not wrap. The SYN has offset 0, and the
/// first byte has 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbering {
    pub(super) isn: SeqNumber,
    /// The highest offset seen.
    highest: u64,
}

impl Numbering {
    pub(super) fn new(isn: SeqNumber) -> Self {
        Numbering { isn, highest: 0 }
    }

    /// The offset of `seq`, which must be less than 2³¹ from the highest offset; `None` if it is
    /// below the offset of the SYN.
    pub(super) fn offset(&self, seq: SeqNumber) -> Option<u64> {
        let distance = seq.distance_from(self.isn + self.highest as u32);
        self.highest.checked_add_signed(distance.into())
    }

    /// Like [`offset`](Self::offset), and records that the offset was seen.
    pub(super) fn note(&mut self, seq: SeqNumber) -> Option<u64> {
        let offset = self.offset(seq)?;
        self.highest = self.highest.max(offset);
        Some(offset)
    }

    /// The highest offset seen.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The sequence number at `offset`.
    pub(super) fn seq(&self, offset: u64) -> SeqNumber {
        self.isn + offset as u32
    }
}

/// A flow whose SYN the middlebox has seen.
#[derive(Debug)]
pub(super) struct KnownFlow<T> {
    /// Number of flows that began before this one.
    pub(super) number: u64,
    /// Direction of the first SYN.
    pub(super) opened: Side,
    /// Numbering towards the client and towards the server. Each is set by a SYN in that direction.
    numbering: [Option<Numbering>; 2],
    /// State specific to the middlebox.
    pub(super) state: T,
}

impl<T> KnownFlow<T> {
    /// The numbering of the direction `towards`.
    pub(super) fn towards(&mut self, towards: Side) -> Option<&mut Numbering> {
        self.numbering[towards as usize].as_mut()
    }
}

/// The flows whose SYNs the middlebox has seen.
#[derive(Debug)]
pub(super) struct Flows<T> {
    table: FlowTable<FlowId, KnownFlow<T>>,
    begun: u64,
}

impl<T: Default> Flows<T> {
    /// The flow of a segment. A SYN creates a flow. A different SYN between the same endpoints
    /// creates it anew.
    pub(super) fn of(&mut self, towards: Side, segment: &Segment) -> Option<&mut KnownFlow<T>> {
        let flow = FlowId::of(towards, segment);
        let (seq, flags) = (segment.header.seq, segment.header.flags);
        if flags.contains(Flags::SYN) {
            let answer = flags.contains(Flags::ACK);
            let numbered = self.table.peek(flow).map(|known| known.numbering[towards as usize]);
            match numbered {
                Some(Some(numbering)) if numbering.isn == seq => {}
                None if answer => return None,
                None | Some(Some(_)) if !answer => self.begin(flow, towards),
                Some(_) | None => {}
            }
            let known = self.table.get(flow)?;
            let numbering = &mut known.numbering[towards as usize];
            if numbering.is_none_or(|numbering| numbering.isn != seq) {
                *numbering = Some(Numbering::new(seq));
            }
        }
        self.table.get(flow)
    }

    fn begin(&mut self, flow: FlowId, opened: Side) {
        let number = self.begun;
        self.begun += 1;
        let known = KnownFlow { number, opened, numbering: [None; 2], state: T::default() };
        self.table.insert(flow, known);
    }

    /// All flows, in a deterministic order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&FlowId, &mut KnownFlow<T>)> {
        self.table.iter_mut()
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &T> {
        self.table.values().map(|known| &known.state)
    }
}

impl<T> Default for Flows<T> {
    fn default() -> Self {
        Flows { table: FlowTable::default(), begun: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Talk;
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut table = FlowTable::default();
        for key in 0..MAX_FLOWS {
            assert_eq!(table.insert(key, key), None);
        }
        table.get(0);
        assert_eq!(table.insert(MAX_FLOWS, 0), Some((1, 1)));
        assert_eq!(table.entries.len(), MAX_FLOWS);
        assert_eq!(table.by_use.len(), MAX_FLOWS);
        assert!(table.get(0).is_some() && table.get(1).is_none());
    }

    #[test]
    fn a_flow_starts_with_its_syn_and_a_new_syn_starts_it_anew() {
        let talk = Talk::v4();
        let mut flows: Flows<u32> = Flows::default();
        let data = talk.data(Side::Server, 0, 100);
        assert!(flows.of(Side::Server, &data).is_none());
        assert!(flows.of(Side::Client, &talk.syn_ack()).is_none());
        flows.of(Side::Server, &talk.syn()).unwrap().state = 7;
        flows.of(Side::Client, &talk.syn_ack());
        // Retransmissions of both SYNs change nothing.
        flows.of(Side::Client, &talk.syn_ack());
        let known = flows.of(Side::Server, &talk.syn()).unwrap();
        assert_eq!((known.number, known.opened, known.state), (0, Side::Server, 7));
        let known = flows.of(Side::Server, &data).unwrap();
        assert_eq!(known.towards(Side::Server).unwrap().offset(data.header.seq), Some(1));
        let answer = known.towards(Side::Client).unwrap();
        assert_eq!(answer.offset(data.header.ack), Some(1));
        let again = Talk { client_isn: 77, ..Talk::v4() };
        let known = flows.of(Side::Server, &again.syn()).unwrap();
        assert_eq!((known.number, known.state), (1, 0));
        assert!(known.towards(Side::Client).is_none());
    }

    #[test]
    fn a_syn_flood_evicts_flows_instead_of_growing_the_table() {
        let mut flows: Flows<()> = Flows::default();
        for port in 0..3 * MAX_FLOWS as u16 {
            let mut syn = Talk::v6().syn();
            syn.source.port = port;
            flows.of(Side::Server, &syn);
        }
        assert_eq!(flows.iter_mut().count(), MAX_FLOWS);
        assert_eq!(flows.iter_mut().next().unwrap().0.client.port, 2 * MAX_FLOWS as u16);
    }

    #[test]
    fn offsets_do_not_wrap() {
        let mut numbering = Numbering::new(SeqNumber(u32::MAX - 9));
        assert_eq!(numbering.note(SeqNumber(0)), Some(10));
        for round in 1..5u64 {
            assert_eq!(numbering.note(SeqNumber(1 << 30)), Some(10 + (4 * round - 3) * (1 << 30)));
            assert_eq!(numbering.note(SeqNumber(1 << 31)), Some(10 + (4 * round - 2) * (1 << 30)));
            assert_eq!(numbering.note(SeqNumber(3 << 30)), Some(10 + (4 * round - 1) * (1 << 30)));
            assert_eq!(numbering.note(SeqNumber(0)), Some(10 + 4 * round * (1 << 30)));
        }
        assert_eq!(Numbering::new(SeqNumber(5)).offset(SeqNumber(4)), None);
    }
}
