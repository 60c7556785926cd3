//! A send buffer that is charged with memory instead of bytes, as that of TCP is.
//!
//! Linux keeps data in socket buffers, each of which costs its own size in addition to the payload.
//! A write always fills up the last unsent one, and begins another while the total charge is below
//! the limit. The sender cuts some segments at a time off the first, each time into a socket buffer
//! of its own. Data in flight therefore costs more than waiting data.

use super::socket_buffer::{self, MOST, OVERHEAD, SEGMENTS};
use crate::platform::SendOffsets;

/// The socket buffers of written data that is not acknowledged.
#[derive(Debug)]
pub(crate) struct SendMemory {
    mss: u64,
    /// Bytes of a full one that was not sent: whole segments, and at most half of the peer's
    /// window.
    full: u64,
    /// Offset at which the last one begins.
    last: u64,
}

impl Default for SendMemory {
    fn default() -> Self {
        SendMemory { mss: 1, full: MOST, last: 0 }
    }
}

impl SendMemory {
    /// Segments have `mss` bytes, and the peer's window had at most `window`.
    pub(crate) fn measure(&mut self, mss: u64, window: u64) {
        self.mss = mss.max(1);
        self.full = socket_buffer::full(self.mss, window);
    }

    /// Bytes that the last socket buffer still takes.
    fn rest(&self, offsets: SendOffsets) -> u64 {
        let used = offsets.end - self.last.max(offsets.nxt);
        if offsets.end == offsets.nxt { 0 } else { self.full.saturating_sub(used) }
    }

    /// Bytes in the first one of which something was not sent.
    pub(crate) fn first(&self, offsets: SendOffsets) -> u64 {
        match self.last.checked_sub(offsets.nxt) {
            None | Some(0) => offsets.end - offsets.nxt,
            Some(before_last) => (before_last - 1) % self.full + 1,
        }
    }

    /// Memory that is charged.
    pub(crate) fn charged(&self, offsets: SendOffsets) -> u64 {
        let SendOffsets { una, nxt, end } = offsets;
        let sent = (nxt - una).div_ceil(SEGMENTS * self.mss);
        let before_last = self.last.saturating_sub(nxt).div_ceil(self.full);
        let unsent = if end == nxt { 0 } else { before_last + 1 };
        end - una + OVERHEAD * (sent + unsent)
    }

    /// Bytes that may be written at once. The charge counts once the last socket buffer is full.
    pub(crate) fn space(&self, limit: u64, offsets: SendOffsets) -> u64 {
        let rest = self.rest(offsets);
        if self.charged(offsets) + rest < limit { rest + self.full } else { rest }
    }

    /// The application writes `bytes` bytes, which fit into the buffer.
    pub(crate) fn charge(&mut self, bytes: u64, offsets: SendOffsets) {
        let rest = self.rest(offsets);
        if bytes > rest {
            self.last = offsets.end + rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// Write all that there is room for; returns the new end.
    fn fill(memory: &mut SendMemory, limit: u64, mut offsets: SendOffsets) -> u64 {
        loop {
            let room = memory.space(limit, offsets);
            if room == 0 {
                return offsets.end;
            }
            memory.charge(room, offsets);
            offsets.end += room;
        }
    }

    #[test]
    fn a_connection_holds_what_linux_holds() {
        // Bytes under way, the limit, and the fewest and most that were seen to wait besides.
        for (under_way, limit, seen) in [
            (123_560, 200_000, [60_816, 60_816]),
            (248_560, 400_000, [78_312, 143_056]),
            (498_112, 800_000, [159_280, 220_096]),
        ] {
            let mut memory = SendMemory::default();
            memory.measure(MSS, under_way);
            let mut offsets = SendOffsets { una: 0, nxt: under_way, end: under_way };
            let waits = (0..1000).map(|_| {
                offsets.end = fill(&mut memory, limit, offsets);
                let waits = offsets.end - offsets.nxt;
                offsets.una += 2 * MSS;
                offsets.nxt += 2 * MSS;
                waits
            });
            let waits: Vec<u64> = waits.skip(100).collect();
            for (held, seen) in [waits.iter().min(), waits.iter().max()].into_iter().zip(seen) {
                let held = *held.expect("there are some");
                assert!(held.abs_diff(seen) <= 2 * MSS, "{under_way}: {held}, not {seen}");
            }
        }
    }

    #[test]
    fn the_last_one_is_filled_up_and_no_other_begun_beyond_the_limit() {
        let memory = || {
            let mut memory = SendMemory::default();
            memory.measure(1000, 20_000);
            memory
        };
        let nothing = SendOffsets { una: 0, nxt: 0, end: 0 };
        // Full ones have 10,000 bytes: the third is begun at 20,000 and two overheads.
        assert_eq!(fill(&mut memory(), 21_665, nothing), 30_000);
        assert_eq!(fill(&mut memory(), 21_664, nothing), 20_000);
        // The first one ends at 10,000, the next at 20,000, and the last one is not full.
        let mut filled = memory();
        let end = fill(&mut filled, 21_665, nothing);
        let first = |nxt| filled.first(SendOffsets { una: 0, nxt, end });
        assert_eq!(
            [0, 9_000, 10_000, 20_000, 29_000].map(first),
            [10_000, 1_000, 10_000, 10_000, 1_000]
        );
        // When all is sent, there is none to fill up.
        let (memory, offsets) = (memory(), SendOffsets { una: 19_000, nxt: 20_000, end: 20_000 });
        assert_eq!(memory.space(1, offsets), 0);
        assert_eq!(memory.space(10_000, offsets), 10_000);
    }

    #[test]
    fn what_the_last_one_could_take_is_not_charged() {
        let mut memory = SendMemory::default();
        memory.measure(1000, 20_000);
        let offsets = SendOffsets { una: 0, nxt: 4_000, end: 5_000 };
        assert_eq!(memory.charged(offsets), 5_000 + 3 * OVERHEAD);
    }
}
