//! Reassembly of a stream by merging sorted runs.
//!
//! Out-of-order data almost always arrives in a few sorted runs: behind one hole at the subflow
//! level, or one run per subflow at the data level. Each run is a ring buffer that grows
//! only at its back. Data that fits no run goes to a tree. The usual arrival therefore costs O(1)
//! without allocation, and a hostile one O(log n). Overlaps are resolved when data is taken out:
//! the first copy that continues the stream wins.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use anabranch_wire::Payload;
use bytes::Bytes;

/// Maximum number of pieces in a window of `bytes`. A piece takes about 100 bytes of memory besides
/// its payload. Without a limit, a peer that sends single bytes could exhaust the memory
/// (CVE-2018-5390 and similar). Data above the limit is dropped, and the peer retransmits it.
pub(crate) fn most_pieces(bytes: u64) -> usize {
    1024 + (bytes / SMALLEST_PIECE) as usize
}

/// Merge the later half of the pieces, which are consecutive, into one. Used for data that the host
/// must not drop, however many pieces it arrived in.
pub(crate) fn join_later_half(pieces: &mut VecDeque<Payload>) {
    let mut bytes = Vec::new();
    for payload in pieces.drain(pieces.len() / 2..) {
        payload.for_each_slice(|slice| bytes.extend_from_slice(slice));
    }
    pieces.push_back(Payload::from(Bytes::from(bytes)));
}

/// Minimum number of window bytes for which a piece counts (this project).
const SMALLEST_PIECE: u64 = 64;

/// Out-of-order data of one stream, by 64-bit stream offset.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    runs: Vec<VecDeque<Chunk>>,
    stray: BTreeMap<u64, Payload>,
    bytes: u64,
    /// Number of chunks in runs.
    chunks: usize,
    strays_so_far: u64,
}

#[derive(Debug)]
struct Chunk {
    start: u64,
    payload: Payload,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.payload.len() as u64
    }
}

impl Reassembly {
    /// Store `payload` at stream offset `start`. `run` is the index of the sorted run that it
    /// probably continues.
    pub(crate) fn insert(&mut self, run: usize, start: u64, payload: Payload) {
        if payload.is_empty() {
            return;
        }
        if self.runs.len() <= run {
            self.runs.resize_with(run + 1, VecDeque::new);
        }
        let run = &mut self.runs[run];
        if run.back().is_none_or(|back| back.end() <= start) {
            self.bytes += payload.len() as u64;
            self.chunks += 1;
            run.push_back(Chunk { start, payload });
        } else {
            self.strays_so_far += 1;
            self.insert_stray(start, payload);
        }
    }

    /// Release unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.runs.iter_mut().for_each(VecDeque::shrink_to_fit);
        while self.runs.pop_if(|run| run.is_empty()).is_some() {}
        self.runs.shrink_to_fit();
    }

    /// Take the data that continues the stream at `next`, if it is available. It is never empty,
    /// and begins exactly at `next`. RFC 8684 §3.3.1.
    #[inline]
    pub(crate) fn pop(&mut self, next: u64) -> Option<Payload> {
        if self.bytes == 0 { None } else { self.pop_held(next) }
    }

    fn pop_held(&mut self, next: u64) -> Option<Payload> {
        for run in 0..self.runs.len() {
            while let Some(chunk) = self.runs[run].pop_front_if(|chunk| chunk.start <= next) {
                self.bytes -= chunk.payload.len() as u64;
                self.chunks -= 1;
                if chunk.end() > next {
                    return Some(from_offset(chunk.payload, chunk.start, next));
                }
            }
        }
        while let Some(entry) = self.stray.first_entry() {
            if *entry.key() > next {
                return None;
            }
            let (start, payload) = entry.remove_entry();
            self.bytes -= payload.len() as u64;
            if start + payload.len() as u64 > next {
                return Some(from_offset(payload, start, next));
            }
        }
        None
    }

    /// Discard all data.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.stray.clear();
        (self.bytes, self.chunks) = (0, 0);
    }

    /// Number of bytes stored; bytes stored several times count several times.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ranges stored, in no order; they may overlap.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let chunks = self.runs.iter().flatten().map(|chunk| chunk.start..chunk.end());
        let stray = self.stray.iter();
        chunks.chain(stray.map(|(start, payload)| *start..*start + payload.len() as u64))
    }

    /// Number of pieces stored.
    pub(crate) fn pieces(&self) -> usize {
        self.chunks + self.stray.len()
    }

    /// Number of arrivals so far that fitted no run.
    pub(crate) fn strays_so_far(&self) -> u64 {
        self.strays_so_far
    }

    /// Stray pieces never overlap each other. Repeating the same bytes therefore cannot make the
    /// tree grow beyond the window.
    fn insert_stray(&mut self, mut start: u64, mut payload: Payload) {
        let mut end = start + payload.len() as u64;
        if let Some((&before, held)) = self.stray.range(..=start).next_back() {
            let held_end = before + held.len() as u64;
            if held_end >= end {
                return;
            }
            if held_end > start {
                payload = from_offset(payload, start, held_end);
                start = held_end;
            }
        }
        while let Some((&after, held)) = self.stray.range(start..end).next() {
            if after + held.len() as u64 <= end {
                let inside = self.stray.remove(&after).expect("just seen");
                self.bytes -= inside.len() as u64;
            } else {
                payload = payload.slice(0, (after - start) as usize);
                end = after;
            }
        }
        if end > start {
            self.bytes += end - start;
            self.stray.insert(start, payload);
        }
    }
}

fn from_offset(payload: Payload, start: u64, offset: u64) -> Payload {
    if offset == start { payload } else { payload.slice((offset - start) as usize, payload.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::Piece;
    use proptest::prelude::*;

    fn pattern(start: u64, len: u32) -> Payload {
        Payload::from(Piece::pattern(start, len))
    }

    fn drain(reassembly: &mut Reassembly, mut next: u64) -> u64 {
        while let Some(payload) = reassembly.pop(next) {
            assert!(!payload.is_empty() && payload.matches_pattern(next));
            next += payload.len() as u64;
        }
        next
    }

    #[test]
    fn two_sorted_runs_merge() {
        let mut reassembly = Reassembly::default();
        for start in [100, 300, 500] {
            reassembly.insert(0, start, pattern(start, 100));
        }
        for start in [200, 400] {
            reassembly.insert(1, start, pattern(start, 100));
        }
        assert_eq!(drain(&mut reassembly, 0), 0);
        assert_eq!(drain(&mut reassembly, 100), 600);
        assert_eq!(reassembly.bytes(), 0);
    }

    #[test]
    fn repeating_the_same_bytes_does_not_grow_the_tree() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(0, 1_000, pattern(1_000, 10));
        for _ in 0..1_000 {
            reassembly.insert(0, 100, pattern(100, 50));
            reassembly.insert(0, 120, pattern(120, 50));
        }
        assert_eq!(reassembly.bytes(), 10 + 70);
    }

    proptest! {
        #[test]
        fn whatever_the_arrivals_the_stream_comes_out_once_and_in_order(
            arrivals in prop::collection::vec((0usize..3, 0u64..400, 1u32..60), 0..120),
        ) {
            let mut reassembly = Reassembly::default();
            let mut covered = vec![false; 512];
            let mut next = 0;
            for (run, start, len) in arrivals {
                covered[start as usize..start as usize + len as usize].fill(true);
                reassembly.insert(run, start, pattern(start, len));
                next = drain(&mut reassembly, next);
                let expected = covered.iter().take_while(|here| **here).count() as u64;
                prop_assert_eq!(next, expected);
            }
        }
    }
}
