//! A send buffer that is charged with bytes and filled by page fragments, as that of Multipath TCP
//! is (`mptcp_sendmsg` in net/mptcp/protocol.c).
//!
//! Linux copies a program's data into fragments of pages. A write extends the last fragment while
//! some data is not assigned to a subflow and its page has room, and begins another one otherwise
//! (`mptcp_frag_can_collapse_to`). The limit is checked before each copy, which ends with the write
//! or the page. The buffer therefore exceeds its limit by up to a page.

use std::collections::VecDeque;
use std::ops::Range;

use super::socket_buffer;
use crate::platform::SendOffsets;

/// Bytes of a page (`SKB_FRAG_PAGE_ORDER`).
const PAGE: u64 = 1 << 15;
/// Bytes of a fragment's page in addition to its payload (`struct mptcp_data_frag`).
const DESCRIPTOR: u64 = 40;
/// No fragment begins with less room than this for payload (`mptcp_page_frag_refill`).
const LEAST: u64 = 32;
/// Most bytes of payload in a fragment.
pub(crate) const FRAGMENT: u64 = PAGE - DESCRIPTOR;

/// The fragments of written data that is not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    /// Offsets of their ends. The last one may still grow.
    ends: VecDeque<u64>,
    /// Bytes of the last one's page that are taken.
    taken: u64,
    /// Offsets where the socket buffer of a subflow begins that was filled last, and where it is full.
    last_buffer: (u64, u64),
    /// Bytes of a full one.
    full: u64,
}

impl Fragments {
    /// Memory that is charged: that of a fragment until all of it is acknowledged.
    pub(crate) fn charged(&self, offsets: SendOffsets) -> u64 {
        let gone = self.ends.partition_point(|end| *end <= offsets.una);
        offsets.end - offsets.una + DESCRIPTOR * (self.ends.len() - gone) as u64
    }

    /// Bytes that may be written at once: up to the end of a page.
    pub(crate) fn space(&self, limit: u64, offsets: SendOffsets) -> u64 {
        if self.charged(offsets) >= limit {
            return 0;
        }
        match self.rest(offsets) {
            0 => PAGE - DESCRIPTOR - self.begins_at(offsets),
            rest => rest,
        }
    }

    /// The application writes `bytes` bytes, which fit into the buffer.
    pub(crate) fn charge(&mut self, bytes: u64, offsets: SendOffsets) {
        let end = offsets.end + bytes;
        match self.ends.back_mut().filter(|_| self.taken < PAGE && offsets.nxt < offsets.end) {
            Some(last) => *last = end,
            None => {
                self.taken = self.begins_at(offsets) + DESCRIPTOR;
                while self.ends.pop_front_if(|end| *end < offsets.una).is_some() {}
                self.ends.push_back(end);
            }
        }
        self.taken += bytes;
    }

    /// Segments have `mss` bytes, and the peer's window had at most `window`.
    pub(crate) fn measure(&mut self, mss: u64, window: u64) {
        self.full = socket_buffer::full(mss, window);
    }

    /// Data from `start` on goes into another socket buffer. The first one has begun with the data
    /// that was sent before anything was assigned.
    pub(crate) fn begin_buffer(&mut self, start: u64) {
        let begin = if self.last_buffer.1 == 0 { 1 } else { start };
        self.last_buffer = (start, begin + self.full);
    }

    /// The socket buffer that was filled last, up to where it is full.
    pub(crate) fn last_buffer(&self) -> Range<u64> {
        self.last_buffer.0..self.last_buffer.1
    }

    /// Bytes by which the last fragment may grow.
    fn rest(&self, offsets: SendOffsets) -> u64 {
        let grows = !self.ends.is_empty() && offsets.nxt < offsets.end;
        if grows { PAGE - self.taken } else { 0 }
    }

    /// Offset in its page at which another fragment begins.
    fn begins_at(&self, offsets: SendOffsets) -> u64 {
        // A page of which everything is acknowledged is used again (`skb_page_frag_refill`).
        let taken = self.taken.next_multiple_of(8);
        let refills = taken + DESCRIPTOR + LEAST > PAGE;
        if refills || self.ends.is_empty() || offsets.una == offsets.end { 0 } else { taken }
    }

    /// Number of bytes from `offset` to the end of its fragment.
    pub(crate) fn rest_from(&self, offset: u64) -> u64 {
        let ends = self.ends.iter().skip(self.ends.partition_point(|end| *end <= offset));
        ends.copied().next().map_or(0, |end| end - offset)
    }

    /// Returns `true` if a fragment ends directly before `offset`. The peer has not acknowledged
    /// that byte.
    pub(crate) fn end_at(&self, offset: u64) -> bool {
        self.ends.binary_search(&offset).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write up to `bytes`, as far as there is room. Returns the new end.
    fn write(fragments: &mut Fragments, limit: u64, mut offsets: SendOffsets, bytes: u64) -> u64 {
        let end = offsets.end + bytes;
        while offsets.end < end {
            let more = fragments.space(limit, offsets).min(end - offsets.end);
            if more == 0 {
                break;
            }
            fragments.charge(more, offsets);
            offsets.end += more;
        }
        offsets.end
    }

    #[test]
    fn the_page_in_which_the_limit_is_reached_is_filled() {
        let mut fragments = Fragments::default();
        let offsets = |una, end| SendOffsets { una, nxt: una, end };
        assert_eq!(write(&mut fragments, 100_000, offsets(1, 1), 1 << 20), 1 + 4 * FRAGMENT);
        assert_eq!(fragments.charged(offsets(1, 1 + 4 * FRAGMENT)), 4 * PAGE);
        // All but 33 bytes of the last two pages: descriptors count until everything is gone.
        let una = 2 * FRAGMENT + 34;
        assert_eq!(fragments.charged(offsets(una, 1 + 4 * FRAGMENT)), 2 * PAGE - 33);
        assert_eq!(fragments.space(2 * PAGE - 33, offsets(una, 1 + 4 * FRAGMENT)), 0);
        assert_eq!(fragments.space(2 * PAGE - 32, offsets(una, 1 + 4 * FRAGMENT)), FRAGMENT);
    }

    #[test]
    fn a_write_begins_a_fragment_once_all_before_it_is_assigned() {
        let mut fragments = Fragments::default();
        let offsets = |nxt, end| SendOffsets { una: 1, nxt, end };
        let limit = 1 << 20;
        // Three writes: the second one extends the first fragment, and the third begins another one
        // in the same page.
        write(&mut fragments, limit, offsets(1, 1), 8_000);
        write(&mut fragments, limit, offsets(1, 8_001), 8_000);
        write(&mut fragments, limit, offsets(16_001, 16_001), 30_000);
        let first = PAGE - 16_000 - 2 * DESCRIPTOR;
        assert_eq!(fragments.ends, [16_001, 16_001 + first, 46_001]);
        assert_eq!((fragments.rest_from(10_001), fragments.rest_from(46_001)), (6_000, 0));
        assert!(fragments.end_at(16_001) && !fragments.end_at(16_002));
    }

    #[test]
    fn a_page_is_used_again_once_all_of_it_is_acknowledged() {
        let mut fragments = Fragments::default();
        let limit = 1 << 20;
        write(&mut fragments, limit, SendOffsets { una: 1, nxt: 1, end: 1 }, 20_001);
        let rest = fragments.space(limit, SendOffsets { una: 1, nxt: 20_002, end: 20_002 });
        assert_eq!(rest, PAGE - 20_008 - 2 * DESCRIPTOR, "a fragment begins at a whole word");
        assert_eq!(
            fragments.space(limit, SendOffsets { una: 20_002, nxt: 20_002, end: 20_002 }),
            FRAGMENT
        );
        // Too little of the page is left.
        let mut fragments = Fragments::default();
        write(&mut fragments, limit, SendOffsets { una: 1, nxt: 1, end: 1 }, PAGE - 110);
        let end = PAGE - 109;
        assert_eq!(fragments.space(limit, SendOffsets { una: 1, nxt: end, end }), FRAGMENT);
    }
}
