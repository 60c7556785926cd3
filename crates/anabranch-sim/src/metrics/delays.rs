//! Delays of blocks.

use anabranch_table::Table;
use anabranch_wire::Duration;

use super::numbers::{deviation, mean, ordered, quantile};
use super::rows::numbers_of;
use super::{Name, Value};

/// Width of the bins of the histogram that [`Delays`] takes the mode from, in ms, as in CS244'14.
pub const MODE_BIN_MS: f64 = 20.0;

/// Returns `true` if a block counts in the metrics of delays. Times are in nanoseconds.
pub fn is_measured(accepted: u64, delivered: u64, warm_up: Duration) -> bool {
    accepted >= warm_up.as_nanos() && delivered >= accepted
}

/// The blocks of a flow: when each was accepted and delivered, in nanoseconds.
pub(super) struct Blocks {
    accepted: Vec<u64>,
    pub(super) delivered: Vec<u64>,
}

impl Blocks {
    pub(super) fn of(table: &Table, rows: &[usize]) -> Self {
        let [accepted, delivered] =
            ["accepted_ns", "delivered_ns"].map(|name| numbers_of(table, name, rows));
        Blocks { accepted, delivered }
    }

    fn both(&self) -> impl Iterator<Item = (u64, u64)> {
        self.accepted.iter().copied().zip(self.delivered.iter().copied())
    }

    /// The delays in ms of the blocks that count.
    pub(super) fn delays_ms(&self, warm_up: Duration) -> Vec<f64> {
        let measured =
            self.both().filter(|(accepted, delivered)| is_measured(*accepted, *delivered, warm_up));
        measured.map(|(accepted, delivered)| (delivered - accepted) as f64 / 1e6).collect()
    }

    /// Times of delivery of the blocks that were accepted before.
    pub(super) fn delivered_after_acceptance(&self) -> Vec<u64> {
        let complete = self.both().filter(|(accepted, delivered)| delivered >= accepted);
        complete.map(|(_, delivered)| delivered).collect()
    }
}

/// Number, mean, standard deviation, quantiles, interquartile range and mode of delays in ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Number of blocks that count.
    pub count: u64,
    /// The values in the order of `NAMES`; all are `None` without blocks.
    pub values: [Option<f64>; NAMES.len()],
}

const NAMES: [&str; 13] = [
    "delay_mean_ms",
    "delay_sd_ms",
    "delay_p5_ms",
    "delay_p25_ms",
    "delay_p50_ms",
    "delay_p75_ms",
    "delay_p90_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "delay_max_ms",
    "delay_iqr_ms",
    "delay_mode_ms",
    "jitter_p95_ms",
];

impl Delays {
    /// The summary of delays in ms, in the order of their blocks.
    pub(super) fn of(delays: &[f64]) -> Self {
        if delays.is_empty() {
            return Delays::default();
        }
        let differences = delays.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
        let jitter = quantile(&ordered(differences), 95.0);
        let sorted = ordered(delays.to_vec());
        let quantiles = [5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];
        let quantiles = quantiles.map(|percent| quantile(&sorted, percent));
        let [p5, p25, p50, p75, p90, p95, p99] = quantiles;
        let range = p75.zip(p25).map(|(high, low)| high - low);
        let (mean, deviation) = (Some(mean(delays)), Some(deviation(delays)));
        let (max, mode) = (sorted.last().copied(), Some(mode_ms(delays)));
        Delays {
            count: delays.len() as u64,
            values: [mean, deviation, p5, p25, p50, p75, p90, p95, p99, max, range, mode, jitter],
        }
    }

    pub(super) fn append(&self, row: &mut Vec<(Name, Value)>) {
        row.push((Name::Plain("block_count"), Value::Count(self.count)));
        let values = NAMES.iter().zip(self.values);
        row.extend(values.map(|(name, value)| (Name::Plain(name), Value::Real(value))));
    }
}

/// Middle of the fullest bin of a histogram that starts at zero; the first in case of a tie.
fn mode_ms(delays: &[f64]) -> f64 {
    let bin = |delay: &f64| (delay / MODE_BIN_MS) as usize;
    let bins = delays.iter().map(bin).max().map_or(0, |last| last + 1);
    let mut counts = vec![0_u32; bins];
    delays.iter().for_each(|delay| counts[bin(delay)] += 1);
    let most = counts.iter().max().copied().unwrap_or(0);
    let fullest = counts.iter().position(|count| *count == most).unwrap_or(0);
    (fullest as f64 + 0.5) * MODE_BIN_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_the_middle_of_the_fullest_bin() {
        assert_eq!(mode_ms(&[5.0, 41.0, 59.9, 60.0, 100.0]), 50.0);
        assert_eq!(mode_ms(&[5.0, 30.0]), 10.0, "ties go to the lowest bin");
    }

    #[test]
    fn summary_of_1_to_101() {
        // The quantile p is 1 + p. The mode's bin of width 20 is [20, 40), because [0, 20) lacks the
        // zero.
        let delays: Vec<f64> = (1..=101).map(f64::from).collect();
        let summary = Delays::of(&delays);
        let value = |name| summary.values[NAMES.iter().position(|each| *each == name).unwrap()];
        assert_eq!(summary.count, 101);
        assert_eq!(value("delay_mean_ms"), Some(51.0));
        assert_eq!(value("delay_p50_ms"), Some(51.0));
        assert_eq!(value("delay_p95_ms"), Some(96.0));
        assert_eq!(value("delay_max_ms"), Some(101.0));
        assert_eq!(value("delay_iqr_ms"), Some(50.0));
        assert_eq!(value("delay_mode_ms"), Some(30.0));
        assert_eq!(value("jitter_p95_ms"), Some(1.0));
    }

    #[test]
    fn a_single_block_has_no_jitter() {
        let summary = Delays::of(&[7.0]);
        assert_eq!(summary.values.last(), Some(&None));
        assert_eq!(Delays::of(&[]), Delays::default());
    }

    #[test]
    fn blocks_of_the_warm_up_and_undelivered_blocks_do_not_count() {
        let ms = |all: [u64; 4]| all.map(|each| each * 1_000_000).to_vec();
        let blocks = Blocks { accepted: ms([1, 5, 9, 12]), delivered: ms([3, 9, 20, 0]) };
        assert_eq!(blocks.delays_ms(Duration::ZERO), [2.0, 4.0, 11.0]);
        assert_eq!(blocks.delays_ms(Duration::from_millis(5)), [4.0, 11.0]);
        assert_eq!(blocks.delivered_after_acceptance(), ms([3, 9, 20, 0])[..3]);
    }
}
