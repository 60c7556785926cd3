//! How late the emulator was: what real time costs in truth.

use anabranch_wire::Duration;

/// By how much each packet left the emulated network later than it was due.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    nanos: Vec<u64>,
    sorted: bool,
}

/// A run is invalid when the 99.9th percentile is above this.
const TAIL_LIMIT: Duration = Duration::from_millis(5);
/// A packet is late when it is later than this,
const LATE: Duration = Duration::from_millis(1);
/// and a run is invalid when more than this share of its packets are.
const LATE_SHARE: f64 = 0.01;

impl Lateness {
    pub(crate) fn record(&mut self, late: Duration) {
        self.nanos.push(late.as_nanos());
    }

    /// No more packets: makes the quantiles ready.
    pub(crate) fn finish(&mut self) {
        self.nanos.sort_unstable();
        self.sorted = true;
    }

    /// Packets that left the network.
    pub fn packets(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// The lateness that this share of the packets, from 0 to 1, did not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        debug_assert!(self.sorted, "the run is over");
        let last = self.nanos.len().saturating_sub(1);
        let index = (share * last as f64).round() as usize;
        Duration::from_nanos(self.nanos.get(index.min(last)).copied().unwrap_or(0))
    }

    /// Share of the packets that were later than a millisecond.
    pub fn late_share(&self) -> f64 {
        let in_time = self.nanos.partition_point(|nanos| *nanos <= LATE.as_nanos());
        let late = self.nanos.len() - in_time;
        late as f64 / self.nanos.len().max(1) as f64
    }

    /// Was the emulator in time often enough for the run to count?
    pub fn is_valid(&self) -> bool {
        self.quantile(0.999) <= TAIL_LIMIT && self.late_share() <= LATE_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl Iterator<Item = u64>) -> Lateness {
        let mut lateness = Lateness::default();
        millis.for_each(|millis| lateness.record(Duration::from_millis(millis)));
        lateness.finish();
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
}
