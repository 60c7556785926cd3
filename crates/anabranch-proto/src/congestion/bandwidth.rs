//! Bandwidth as BBR measures it: segments over time, and the rate at which segments leave.

use anabranch_wire::Duration;

/// Segments leave at this percentage of the bandwidth, which keeps the queue from growing.
const PACED_PERCENT: u64 = 99;

/// A rate in segments per microsecond, times 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(pub(super) u64);

impl Bandwidth {
    pub(super) const SCALE: u32 = 24;

    pub(super) fn of(segments: u64, interval: Duration) -> Bandwidth {
        Bandwidth((segments << Bandwidth::SCALE) / interval.as_micros().max(1))
    }

    /// Segments in an interval, times 2^24.
    pub(super) fn scaled_segments(self, interval: Duration) -> u128 {
        u128::from(self.0) * u128::from(interval.as_micros())
    }

    /// Whole segments in an interval.
    pub(super) fn segments(self, interval: Duration) -> u64 {
        (self.scaled_segments(interval) >> Bandwidth::SCALE) as u64
    }

    /// Bytes a second with segments of `segment` bytes. Linux: `bbr_rate_bytes_per_sec`.
    pub(super) fn bytes_a_second(self, segment: u32) -> u64 {
        let each_microsecond = u128::from(self.0) * u128::from(segment);
        ((each_microsecond * u128::from(1_000_000 / 100 * PACED_PERCENT)) >> Bandwidth::SCALE)
            as u64
    }
}
