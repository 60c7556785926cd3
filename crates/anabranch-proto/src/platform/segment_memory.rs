//! A send buffer in which each segment has a socket buffer of its own.

use super::SendOffsets;

/// The socket buffers of written data that is not acknowledged. A write fills up the last one that
/// was not sent.
#[derive(Debug)]
pub(crate) struct SegmentMemory {
    /// Memory of a socket buffer, however full it is.
    segment: u64,
    mss: u64,
}

impl SegmentMemory {
    /// An empty send buffer. Each socket buffer takes `segment` bytes.
    pub(crate) fn new(segment: u64) -> Self {
        SegmentMemory { segment, mss: 1 }
    }

    /// Segments have `mss` bytes.
    pub(crate) fn measure(&mut self, mss: u64) {
        self.mss = mss.max(1);
    }

    /// Memory that is charged, in bytes.
    pub(crate) fn charged(&self, offsets: SendOffsets) -> u64 {
        let SendOffsets { una, nxt, end } = offsets;
        self.segment * ((nxt - una).div_ceil(self.mss) + (end - nxt).div_ceil(self.mss))
    }

    /// Bytes that the next write may add: the rest of the last socket buffer, or a new socket buffer
    /// while the total is below `limit`.
    pub(crate) fn space(&self, limit: u64, offsets: SendOffsets) -> u64 {
        match (offsets.end - offsets.nxt) % self.mss {
            0 if self.charged(offsets) < limit => self.mss,
            0 => 0,
            part => self.mss - part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_400_kib_holds_178_segments() {
        // So does Linux 3.14 with Multipath TCP 0.89.5 and SO_SNDBUF 204,800.
        let mut memory = SegmentMemory::new(2304);
        memory.measure(1428);
        let mut offsets = SendOffsets { una: 1, nxt: 30_000, end: 30_000 };
        loop {
            match memory.space(409_600, offsets) {
                0 => break,
                space => offsets.end += space,
            }
        }
        assert_eq!(offsets.end, 30_000 + (178 - 22) * 1428);
        offsets.nxt += 100;
        offsets.end -= 100;
        assert_eq!(memory.space(409_600, offsets), 200, "the last one is filled up");
    }
}
