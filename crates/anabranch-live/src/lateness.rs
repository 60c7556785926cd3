//! Lateness of the emulator in real time.

use anabranch_wire::Duration;

/// A histogram of how late packets left the emulated network. Its size does not depend on the
/// duration of the run.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Number of packets in each bucket, by [`bucket_of`] their lateness in nanoseconds.
    counts: Box<[u64]>,
    packets: u64,
    /// Number of packets later than [`LATE`].
    late: u64,
    most: u64,
}

/// Buckets per octave, as a power of two. A quantile is at most 1/64 too large.
const PER_OCTAVE_BITS: u32 = 6;
const BUCKETS: usize = bucket_of(u64::MAX) + 1;
/// A run is invalid if the 99.9th percentile exceeds this limit.
const TAIL_LIMIT: Duration = Duration::from_millis(5);
/// A packet counts as late beyond this limit.
const LATE: Duration = Duration::from_millis(1);
/// A run is invalid if a larger share of its packets is late.
const LATE_SHARE: f64 = 0.01;

impl Lateness {
    pub(crate) fn record(&mut self, late: Duration) {
        self.counts[bucket_of(late.as_nanos())] += 1;
        self.packets += 1;
        self.late += u64::from(late > LATE);
        self.most = self.most.max(late.as_nanos());
    }

    /// Number of packets that left the network.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The lateness that this share of the packets (0 to 1) did not exceed. The result is at most
    /// 1/64 too large.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.packets.saturating_sub(1) as f64).round() as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen > rank
        });
        Duration::from_nanos(bucket.map_or(0, last_of).min(self.most))
    }

    /// Share of the packets that were more than a millisecond late.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.packets.max(1) as f64
    }

    /// Returns `true` if the run is valid: the emulator was in time often enough.
    pub fn is_valid(&self) -> bool {
        self.quantile(0.999) <= TAIL_LIMIT && self.late_share() <= LATE_SHARE
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { counts: vec![0; BUCKETS].into(), packets: 0, late: 0, most: 0 }
    }
}

/// The bucket of a number. Small numbers have their own buckets. For others, the highest bit and the
/// six bits after it select the bucket.
const fn bucket_of(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(PER_OCTAVE_BITS + 1);
    ((shift as usize) << PER_OCTAVE_BITS) + (nanos >> shift) as usize
}

/// The largest number in a bucket.
const fn last_of(bucket: usize) -> u64 {
    let shift = (bucket >> PER_OCTAVE_BITS).saturating_sub(1);
    let first = (bucket - (shift << PER_OCTAVE_BITS)) as u64;
    (first << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl Iterator<Item = u64>) -> Lateness {
        let mut lateness = Lateness::default();
        millis.for_each(|millis| lateness.record(Duration::from_millis(millis)));
        lateness
    }

    #[test]
    fn a_run_counts_while_one_packet_in_a_hundred_is_late_and_one_in_a_thousand_very_late() {
        let with = |late: usize, millis| {
            of(std::iter::repeat_n(0, 10_000 - late).chain(std::iter::repeat_n(millis, late)))
        };
        assert!(with(100, 2).is_valid());
        assert!(!with(101, 2).is_valid());
        assert!(with(9, 400).is_valid());
        assert!(!with(12, 400).is_valid());
        assert!(of(std::iter::empty()).is_valid());
    }

    #[test]
    fn quantiles_are_those_of_all_packets_or_little_more() {
        let lateness = of(1..=1000);
        for (share, exact) in [(0.0, 1e6), (0.5, 501e6), (0.999, 999e6), (1.0, 1e9)] {
            let read = lateness.quantile(share).as_nanos() as f64;
            assert!((exact..=exact * (1.0 + 1.0 / 64.0)).contains(&read), "{share}: {read}");
        }
        assert_eq!(lateness.quantile(1.0), Duration::from_secs(1));
        assert_eq!((lateness.packets(), lateness.late_share()), (1000, 0.999));
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for bucket in 0..BUCKETS - 1 {
            let last = last_of(bucket);
            assert_eq!((bucket_of(last), bucket_of(last + 1)), (bucket, bucket + 1));
        }
        assert_eq!(last_of(BUCKETS - 1), u64::MAX);
    }
}
