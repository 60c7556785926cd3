//! Sets of numbers, stored as disjoint ranges that do not touch.

use std::collections::BTreeMap;

/// Half-open ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: BTreeMap<i64, i64>,
}

impl RangeSet {
    /// Add `start..end`, and return how many of its numbers are new.
    pub(crate) fn insert(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        // A range in order extends the last range.
        if let Some(mut last) = self.ranges.last_entry()
            && *last.get() == start
        {
            *last.get_mut() = end;
            return end - start;
        }
        let (mut from, mut to, mut known) = (start, end, 0);
        let touching: Vec<_> = self
            .ranges
            .range(..=end)
            .rev()
            .take_while(|(_, e)| **e >= start)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (s, e) in touching {
            known += (e.min(end) - s.max(start)).max(0);
            (from, to) = (from.min(s), to.max(e));
            self.ranges.remove(&s);
        }
        self.ranges.insert(from, to);
        if self.ranges.len() > MOST_RANGES {
            self.join_lowest();
        }
        end - start - known
    }

    /// Remove `start..end`, and return how many of its numbers were present.
    pub(crate) fn remove(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        let touching: Vec<_> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(_, e)| **e > start)
            .map(|(s, e)| (*s, *e))
            .collect();
        let mut removed = 0;
        for (s, e) in touching {
            self.ranges.remove(&s);
            if s < start {
                self.ranges.insert(s, start);
            }
            if e > end {
                self.ranges.insert(end, e);
            }
            removed += e.min(end) - s.max(start);
        }
        removed
    }

    /// Number of integers in `start..end` that are present.
    pub(crate) fn count(&self, start: i64, end: i64) -> i64 {
        let below = self.ranges.range(..end).rev().take_while(|(_, e)| **e > start);
        below.map(|(s, e)| (*e).min(end) - (*s).max(start)).sum()
    }

    /// The ranges of `start..end` that are present, from the highest down.
    pub(crate) fn parts(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let below = self.ranges.range(..end).rev().take_while(|(_, e)| **e > start);
        below.map(|(s, e)| ((*s).max(start), (*e).min(end))).collect()
    }

    /// Number of integers that are present.
    pub(crate) fn total(&self) -> i64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, i64)> {
        self.ranges.iter().map(|(start, end)| (*start, *end))
    }

    /// Close the gap between the two lowest ranges, to bound memory.
    fn join_lowest(&mut self) {
        if let (Some((start, _)), Some((_, end))) =
            (self.ranges.pop_first(), self.ranges.pop_first())
        {
            self.ranges.insert(start, end);
        }
    }
}

/// Largest number of ranges.
const MOST_RANGES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::RangeSet;

    proptest! {
        #[test]
        fn it_counts_as_a_plain_set_does(steps in prop::collection::vec((any::<bool>(), 0..60_i64, 0..20_i64), 1..60)) {
            let (mut ranges, mut plain) = (RangeSet::default(), BTreeSet::new());
            for (add, start, len) in steps {
                let numbers = start..start + len;
                let before = plain.len() as i64;
                if add {
                    plain.extend(numbers.clone());
                    prop_assert_eq!(ranges.insert(start, start + len), plain.len() as i64 - before);
                } else {
                    plain.retain(|number| !numbers.contains(number));
                    prop_assert_eq!(ranges.remove(start, start + len), before - plain.len() as i64);
                }
                prop_assert_eq!(ranges.total(), plain.len() as i64);
                prop_assert_eq!(ranges.count(10, 40), plain.range(10..40).count() as i64);
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
