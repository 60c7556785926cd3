//! From a subflow's octets to data sequence numbers. RFC 8684 §3.3.1.

use std::collections::VecDeque;

use anabranch_wire::Payload;

/// The mappings that arrived on one subflow, and payload that waits for one.
#[derive(Debug, Default)]
pub(crate) struct MappingTable {
    /// Sorted by subflow offset, without overlap.
    mappings: VecDeque<Received>,
    /// In-order payload for which no mapping has come yet.
    unmapped: VecDeque<(u64, Payload)>,
    unmapped_octets: u64,
}

/// Most mappings kept for one subflow: more than the segments of the largest window (RFC 7323
/// §2.3), so only a peer that declares what it never sends gets there.
const MAX_MAPPINGS: usize = 1 << 20;
/// Most holes between earlier mappings that one mapping may fill.
const MAX_GAPS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    subflow: u64,
    data: u64,
    len: u64,
}

impl Received {
    fn end(&self) -> u64 {
        self.subflow + self.len
    }
}

impl MappingTable {
    /// Octets `subflow..subflow + len` of the subflow are data from `data` on. False if that
    /// contradicts an earlier mapping, which then stands. RFC 8684 §3.3.1: a mapping does not
    /// change once it was declared.
    pub(crate) fn add(&mut self, subflow: u64, data: u64, len: u64) -> bool {
        let new = Received { subflow, data, len };
        if len == 0 || self.mappings.len() >= MAX_MAPPINGS {
            return len == 0;
        }
        if self.mappings.back().is_none_or(|back| back.end() <= subflow) {
            self.mappings.push_back(new);
            return true;
        }
        let mut at = subflow;
        let mut gaps = 0;
        while at < new.end() && gaps < MAX_GAPS {
            let index = self.mappings.partition_point(|held| held.end() <= at);
            match self.mappings.get(index) {
                Some(held) if held.subflow <= at => {
                    if held.data.wrapping_sub(held.subflow) != data.wrapping_sub(subflow) {
                        return false;
                    }
                    at = held.end();
                }
                next => {
                    let stop = next.map_or(new.end(), |held| held.subflow.min(new.end()));
                    let data = data + (at - subflow);
                    self.mappings.insert(index, Received { subflow: at, data, len: stop - at });
                    at = stop;
                    gaps += 1;
                }
            }
        }
        at >= new.end()
    }

    /// Give back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.mappings.shrink_to_fit();
        self.unmapped.shrink_to_fit();
    }

    /// Octets of in-order payload that wait for a mapping.
    pub(crate) fn unmapped_octets(&self) -> u64 {
        self.unmapped_octets
    }

    /// In-order payload arrived at subflow offset `start`.
    pub(crate) fn push(&mut self, start: u64, payload: Payload) {
        self.unmapped_octets += payload.len() as u64;
        self.unmapped.push_back((start, payload));
    }

    /// The next payload with its data offset, cut at the borders of mappings.
    pub(crate) fn poll(&mut self) -> Option<(u64, Payload)> {
        let (start, len) = self.unmapped.front().map(|(start, p)| (*start, p.len() as u64))?;
        while self.mappings.pop_front_if(|held| held.end() <= start).is_some() {}
        let held = self.mappings.front().filter(|held| held.subflow <= start)?;
        let data = held.data + (start - held.subflow);
        let mapped = held.end() - start;
        let (_, payload) = self.unmapped.pop_front().expect("just seen");
        self.unmapped_octets -= mapped.min(len);
        if mapped >= len {
            return Some((data, payload));
        }
        let rest = payload.slice(mapped as usize, payload.len());
        self.unmapped.push_front((start + mapped, rest));
        Some((data, payload.slice(0, mapped as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Piece;

    fn pattern(start: u64, len: u32) -> Payload {
        Payload::from(Piece::pattern(start, len))
    }

    #[test]
    fn payload_waits_for_its_mapping_and_is_cut_at_the_border() {
        let mut table = MappingTable::default();
        table.push(1, pattern(501, 1000));
        assert_eq!(table.poll(), None);
        table.add(1, 501, 600);
        let (data, payload) = table.poll().expect("mapped");
        assert_eq!((data, payload.len()), (501, 600));
        assert!(payload.matches_pattern(501));
        assert_eq!(table.poll(), None);
        table.add(601, 9001, 400);
        assert_eq!(table.poll().map(|(data, payload)| (data, payload.len())), Some((9001, 400)));
    }

    #[test]
    fn a_mapping_that_contradicts_an_earlier_one_is_refused() {
        // RFC 8684 §3.3.1
        let mut table = MappingTable::default();
        assert!(table.add(1, 1, 1000));
        assert!(table.add(1, 1, 1000));
        assert!(!table.add(501, 777, 500));
        assert!(table.add(501, 501, 1000));
        table.push(1, pattern(1, 1500));
        let lens: Vec<_> = std::iter::from_fn(|| table.poll()).map(|(_, p)| p.len()).collect();
        assert_eq!(lens, [1000, 500]);
    }

    #[test]
    fn mappings_that_arrive_out_of_order_are_sorted() {
        let mut table = MappingTable::default();
        table.add(2001, 2001, 1000);
        table.add(1, 1, 1000);
        table.add(1001, 1001, 1000);
        table.push(1, pattern(1, 3000));
        let starts: Vec<_> = std::iter::from_fn(|| table.poll()).map(|(data, _)| data).collect();
        assert_eq!(starts, [1, 1001, 2001]);
    }
}
