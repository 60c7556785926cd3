//! Metrics of the time series.

use anabranch_table::Table;
use anabranch_wire::Duration;

use super::numbers::{deviation, mean, ordered, quantile};
use super::rows::{Rows, find, numbers_of};
use super::{Name, Value};
use crate::recorder::DataFlow;
use crate::scenario::Scenario;

/// Metrics over the time in which the application received data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Mean rate from the opening of the connection to the last sample interval in which bytes
    /// arrived, in Mbit/s.
    pub transfer_mbps: Option<f64>,
    /// Coefficient of variation (standard deviation over mean) of the goodput in the sample intervals
    /// after the warm-up.
    pub goodput_cov: Option<f64>,
    /// Mean amount of out-of-order data at the data level in bytes.
    pub out_of_order_mean_bytes: Option<f64>,
    /// 95th percentile of the smoothed round-trip time of the subflows on each path, in ms.
    pub srtt_p95_ms: Vec<Option<f64>>,
}

impl Series {
    pub(super) fn append(&self, row: &mut Vec<(Name, Value)>) {
        row.push((Name::Plain("transfer_mbps"), Value::Real(self.transfer_mbps)));
        row.push((Name::Plain("goodput_cov"), Value::Real(self.goodput_cov)));
        let waiting = Value::Real(self.out_of_order_mean_bytes);
        row.push((Name::Plain("out_of_order_mean_bytes"), waiting));
        for (path, srtt) in self.srtt_p95_ms.iter().enumerate() {
            row.push((Name::OfPath("srtt_p95_ms_", path), Value::Real(*srtt)));
        }
    }
}

/// The metrics of each flow's time series, and its share of samples behind one bottleneck.
pub(super) fn all(
    scenario: &Scenario,
    tables: &[Table],
    flows: &[DataFlow],
) -> Vec<(Series, Option<f64>)> {
    let [connections, subflows] =
        ["connection_samples", "subflow_samples"].map(|name| find(tables, name));
    let of_connections = Rows::by_connection(connections, flows.len());
    let of_subflows = Rows::by_connection(subflows, flows.len());
    let of = |(number, flow): (usize, &DataFlow)| {
        let connection = &scenario.connections[flow.connection];
        let samples = Samples::of(connections, of_connections.of(number));
        let subflows = SubflowSamples::of(subflows, of_subflows.of(number));
        let detects = connection.shared_bottleneck_detection.is_some();
        let shared = detects.then(|| subflows.one_bottleneck_share(scenario.warm_up)).flatten();
        let (warm_up, paths) = (scenario.warm_up, scenario.paths.len());
        (series(connection.start, warm_up, &samples, &subflows, paths), shared)
    };
    flows.iter().enumerate().map(of).collect()
}

/// The samples of a flow.
struct Samples {
    times: Vec<u64>,
    delivered: Vec<u64>,
    waiting: Vec<u64>,
}

impl Samples {
    fn of(table: &Table, rows: &[usize]) -> Self {
        let [times, delivered, waiting] = ["time_ns", "bytes_delivered", "out_of_order_bytes"]
            .map(|name| numbers_of(table, name, rows));
        Samples { times, delivered, waiting }
    }
}

/// The samples of a flow's subflows, in the order of time.
struct SubflowSamples {
    times: Vec<u64>,
    paths: Vec<u64>,
    srtts: Vec<u64>,
    bottlenecks: Vec<u64>,
}

fn series(
    start: Duration,
    warm_up: Duration,
    samples: &Samples,
    subflows: &SubflowSamples,
    paths: usize,
) -> Series {
    let Samples { times, delivered, waiting } = samples;
    let Some(last) = (1..times.len()).rev().find(|at| delivered[*at] != delivered[at - 1]) else {
        return Series { srtt_p95_ms: vec![None; paths], ..Series::default() };
    };
    let first = times.partition_point(|time| *time < warm_up.as_nanos()).min(last - 1);
    let intervals = times[first..=last].windows(2).zip(delivered[first..=last].windows(2));
    let rates =
        intervals.map(|(times, bytes)| (bytes[1] - bytes[0]) as f64 / (times[1] - times[0]) as f64);
    let rates: Vec<f64> = rates.collect();
    let mean_rate = mean(&rates);
    let waited: u64 = waiting[first..=last].iter().sum();
    let during = times[first]..=times[last];
    let srtt = |path| {
        let srtts = subflows.srtts_of(path, &during);
        quantile(&ordered(srtts), 95.0).map(|srtt| srtt / 1e6)
    };
    Series {
        transfer_mbps: Some(delivered[last] as f64 * 8e3 / (times[last] - start.as_nanos()) as f64),
        goodput_cov: (mean_rate != 0.0).then(|| deviation(&rates) / mean_rate),
        out_of_order_mean_bytes: Some(waited as f64 / (last - first + 1) as f64),
        srtt_p95_ms: (0..paths).map(srtt).collect(),
    }
}

impl SubflowSamples {
    fn of(table: &Table, rows: &[usize]) -> Self {
        let [times, paths, srtts, bottlenecks] =
            ["time_ns", "path", "srtt_ns", "bottleneck"].map(|name| numbers_of(table, name, rows));
        SubflowSamples { times, paths, srtts, bottlenecks }
    }

    /// The measured round-trip times on a path, in nanoseconds.
    fn srtts_of(&self, path: usize, during: &std::ops::RangeInclusive<u64>) -> Vec<f64> {
        let all = self.times.iter().zip(&self.paths).zip(&self.srtts);
        let measured = all.filter(|((time, on), srtt)| {
            **srtt > 0 && during.contains(time) && **on == path as u64
        });
        measured.map(|(_, srtt)| *srtt as f64).collect()
    }

    /// See [`Metrics::one_bottleneck_share`](super::Metrics::one_bottleneck_share).
    fn one_bottleneck_share(&self, warm_up: Duration) -> Option<f64> {
        /// Values of verdicts; larger values are numbers of groups.
        const UNKNOWN: u64 = 0;
        const NO_BOTTLENECK: u64 = 1;
        let begin = self.times.partition_point(|time| *time < warm_up.as_nanos());
        let (mut instants, mut shared) = (0_u64, 0_u64);
        let all: Vec<_> = self.times.iter().zip(&self.bottlenecks).skip(begin).collect();
        for at_once in all.chunk_by(|a, b| a.0 == b.0) {
            let verdicts = at_once.iter().map(|(_, verdict)| **verdict);
            let (least, most) = (verdicts.clone().min(), verdicts.max());
            let one_group = least == most && least > Some(NO_BOTTLENECK);
            instants += 1;
            shared += u64::from(one_group || least == Some(UNKNOWN));
        }
        (instants > 0).then(|| shared as f64 / instants as f64)
    }
}
