//! The part of the peer's stream that has arrived, whether or not the application can read it yet.
//! This is a function of the connection's state, so it costs nothing unless a driver asks.

use std::ops::Range;

use super::Connection;
use super::subflows::SubflowContext;

/// Bytes of the peer's stream that have arrived at a host. Each byte counts once, however many copies
/// of it have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivedData {
    /// All of these bytes.
    pub bytes: u64,
    /// The part that only the subflow in each slot holds. There it waits for earlier data of the
    /// subflow, or for the rest of a mapping with a checksum. Data without a mapping does not count,
    /// because it may be a copy of data that has arrived.
    pub on_subflows: Vec<u64>,
}

impl Connection {
    /// Bytes that have arrived so far.
    pub(crate) fn arrived(&self) -> ArrivedData {
        let next = self.recv.queue.next_data();
        let mut ranges: Vec<Range<u64>> = self.recv.queue.out_of_order().collect();
        let mut known = beyond(next, &mut ranges);
        let mut bytes = next - 1 + known;
        let mut on_subflows = Vec::with_capacity(self.subflows.len());
        for ctx in self.subflows.iter() {
            // Data that a subflow held dies with it.
            let of_tcp = if ctx.is_reaped() { 0 } else { self.add_held(ctx, &mut ranges) };
            let all = beyond(next, &mut ranges);
            on_subflows.push(all - known + of_tcp);
            bytes += all - known + of_tcp;
            known = all;
        }
        ArrivedData { bytes, on_subflows }
    }

    /// Add the data offsets of a subflow's held data. Returns the number of bytes without data
    /// offsets that count as well: all of them after a fallback, where nothing arrives twice.
    fn add_held(&self, ctx: &SubflowContext, ranges: &mut Vec<Range<u64>>) -> u64 {
        let held = ctx.subflow.receiver().beyond_hole().chain([ctx.mappings.waiting()]);
        if !self.session.is_mptcp() {
            return held.map(|range| range.end - range.start).sum();
        }
        ranges.extend(held.flat_map(|range| ctx.mappings.data_of(range)));
        0
    }
}

/// Number of bytes from `next` on that the ranges cover. Afterwards they are sorted and disjoint.
fn beyond(next: u64, ranges: &mut Vec<Range<u64>>) -> u64 {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut end = next;
    ranges.retain_mut(|range| {
        range.start = range.start.max(end);
        end = end.max(range.end);
        range.start < range.end
    });
    ranges.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once_and_only_beyond_the_next_one() {
        let mut ranges = vec![30..40, 5..12, 35..50, 31..33, 60..70];
        assert_eq!(beyond(10, &mut ranges), 2 + 20 + 10);
        assert_eq!(ranges, [10..12, 30..40, 40..50, 60..70]);
        assert_eq!(beyond(70, &mut ranges), 0);
    }
}
