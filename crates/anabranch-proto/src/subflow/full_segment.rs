//! An estimate of how long the peer's full-sized segments are.

use core::num::NonZeroU16;

use anabranch_wire::Flags;

use super::MIN_MSS;

/// Payload bytes of the peer's full-sized segments, estimated from the segments that arrive in
/// order.
///
/// A longer segment raises the estimate at once. A shorter segment may only be the end of a write,
/// so it lowers the estimate if the segment before it had the same length. Linux estimates in the
/// same way (`tcp_measure_rcv_mss`), but adds the options to the lengths that it compares.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullSegment {
    bytes: u16,
    /// Length of the last segment, if it was shorter than the estimate.
    shorter: Option<NonZeroU16>,
}

impl FullSegment {
    /// The estimate in payload bytes; 0 before the first segment.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes.into()
    }

    /// Record a segment with `bytes` of payload, at most 65,535. Returns `true` if it is shorter
    /// than a full-sized segment.
    #[inline]
    pub(super) fn measure(&mut self, bytes: usize, flags: Flags) -> bool {
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let before = self.shorter.take().map(NonZeroU16::get);
        if bytes < self.bytes && before != Some(bytes) {
            self.shorter = NonZeroU16::new(bytes).filter(|_| bytes >= least_full(flags));
            return true;
        }
        self.bytes = bytes;
        false
    }
}

/// Minimum length of a segment that can be full-sized.
fn least_full(flags: Flags) -> u16 {
    // A sender pushes the end of a write. RFC 9293 §3.9.1.2.
    if flags.intersects(Flags::PSH | Flags::FIN) { DEFAULT_MSS } else { MIN_MSS }
}

/// The segment size that every host can receive over IPv4. RFC 9293 §3.7.1.
const DEFAULT_MSS: u16 = 536;

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate after segments with these lengths, and whether the last one was short.
    fn after(lengths: &[usize], flags: Flags) -> (u32, bool) {
        let mut full = FullSegment::default();
        let mut short = false;
        for bytes in lengths {
            short = full.measure(*bytes, flags);
        }
        (full.bytes(), short)
    }

    #[test]
    fn two_equal_shorter_segments_in_a_row_lower_the_estimate() {
        let pushed = Flags::ACK | Flags::PSH;
        assert_eq!(after(&[1428, 1424], Flags::ACK), (1428, true));
        assert_eq!(after(&[1428, 1424, 1424], Flags::ACK), (1424, false));
        assert_eq!(after(&[1428, 1424, 1428, 1424], Flags::ACK), (1428, true));
        assert_eq!(after(&[1428, 1424, 1420], Flags::ACK), (1428, true));
        assert_eq!(after(&[1428, 1424, 1424], pushed), (1424, false));
    }

    #[test]
    fn small_writes_do_not_lower_the_estimate() {
        let pushed = Flags::ACK | Flags::PSH;
        assert_eq!(after(&[1428, 535, 535, 535], pushed), (1428, true));
        assert_eq!(after(&[1428, 536, 536], pushed), (536, false));
        // A segment without PSH was cut by the sender's segment size.
        assert_eq!(after(&[1428, 88, 88], Flags::ACK), (88, false));
        assert_eq!(after(&[1428, 87, 87], Flags::ACK), (1428, true));
    }
}
