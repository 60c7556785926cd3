//! Metrics of a run, computed from its tables. Each metric is defined once, here.
//!
//! Goodput is the data that arrived at the receiver in the measured time, divided by that time. The
//! measured time begins at the end of the warm-up, or when the connection opens if that is later. It
//! ends with the run, or when the last byte of the workload is delivered. Each byte counts once, when
//! its first copy arrives, even if it waits for earlier data. No link delivers more than its rate in
//! any time, so goodput cannot exceed what the paths can carry. (Bytes that reach the application in
//! order can: data that was out of order when the warm-up ended is released after it.)
//!
//! The delay of a block starts when the stack has accepted its last byte, and ends when its last byte
//! has been delivered in order. The delay of a round of a request and its responses starts with the
//! first byte of the request. Delays exclude the warm-up: a block counts at the time at which the
//! stack accepted it. A block that is still undelivered at the end of the run has no delay.
//!
//! A stall is a time in which the application gets nothing although data is waiting. It begins when
//! the stack accepts data while none is waiting, or with a delivery that leaves data waiting. It ends
//! with the next delivery, or with the measured time. Like delays, stalls exclude the handshake, after
//! which applications write, and the warm-up. Requests are data too: the requester waits while its
//! request does.

mod delays;
mod numbers;
mod rows;
mod series;

use anabranch_table::Table;
use anabranch_wire::{Duration, Instant};

use self::delays::Blocks;
use self::rows::{Rows, find, number_of, numbers_of};
use crate::recorder;
use crate::scenario::{LinkState, Scenario};

pub use self::delays::{Delays, MODE_BIN_MS, is_measured};
pub use self::series::Series;

/// The metrics of a flow of a run: a row of a results table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Number of the flow, as in the column `connection` of the run's tables.
    pub flow: u32,
    /// Rate of data that arrived for the first time in the measured time, in Mbit/s.
    pub goodput_mbps: f64,
    /// Throughput minus goodput at the receiver over the whole run, in Mbit/s. Throughput counts the
    /// payload bytes that each subflow delivered in order. The difference is data that arrived on
    /// more than one subflow, plus data that awaits reassembly at the end.
    pub duplicate_mbps: f64,
    /// Share of the measured time in which only the receive window stopped a subflow.
    pub window_limited_share: f64,
    /// Share of the measured time in which only the send buffer stopped a subflow.
    pub send_buffer_limited_share: f64,
    /// Columns of the flow's row in the table of connections.
    pub counts: [u64; COUNTS.len()],
    /// Number of reductions of congestion windows by idle time. RFC 5681 §4.1.
    pub idle_restarts: u64,
    /// Columns of the flow's row in the table of connections that are true or false.
    pub flags: [bool; FLAGS.len()],
    /// Place of the reason for a fallback in `FallbackReason::NAMES`.
    pub fallback: u8,
    /// Number of delivered bytes that are wrong.
    pub corrupt_bytes: u64,
    /// Share of the received payload bytes that each path carried.
    pub shares: Vec<f64>,
    /// Delays of the blocks.
    pub delays: Delays,
    /// Time from the opening of the connection to the delivery of its last block or round, in s.
    /// `None` for a workload without a `count`, or if the run ended earlier.
    pub completion_s: Option<f64>,
    /// Longest time without a delivered block after a path went down for the first time, in ms.
    ///
    /// The metric considers times between two successive deliveries that include the moment of the
    /// outage or begin within a second of it. It is `None` if no path goes down, or for data without
    /// blocks.
    pub recovery_ms: Option<f64>,
    /// Longest time in which the application got nothing although data was waiting, in ms. `None` if
    /// no data was waiting after the warm-up, or if nobody saw when the application wrote.
    pub stall_ms: Option<f64>,
    /// Metrics of the time series.
    pub series: Series,
    /// Share of the samples after the warm-up in which the subflows count as behind one bottleneck.
    ///
    /// They do if shared-bottleneck detection (RFC 8382) has put all of them into one group, or has
    /// no stable verdict on one of them. `None` without detection.
    pub one_bottleneck_share: Option<f64>,
}

const COUNTS: [&str; 8] = [
    "bytes_written",
    "bytes_delivered",
    "reinjections",
    "path_probes",
    "send_buffer",
    "receive_buffer",
    "out_of_order_segments",
    "stray_segments",
];
const FLAGS: [&str; 4] = ["is_mptcp", "completed", "aborted", "failed"];
/// Place of `failed` in [`FLAGS`].
const FAILED: usize = 3;

/// The name of a metric's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The whole name.
    Plain(&'static str),
    /// The part before the name of the path with this number.
    OfPath(&'static str, usize),
}

/// A value of a row of metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Number of a flow, which tables show by its name.
    Flow(u32),
    /// Place of the reason for a fallback in `FallbackReason::NAMES`.
    Fallback(u8),
    /// A whole number.
    Count(u64),
    /// True or false.
    Flag(bool),
    /// A number, or none.
    Real(Option<f64>),
}

impl Metrics {
    /// Returns `true` if the connection failed.
    pub fn has_failed(&self) -> bool {
        self.flags[FAILED]
    }

    /// The row: names and values in the order of the columns. Names and types of the values depend
    /// only on the number of paths.
    pub fn row(&self) -> Vec<(Name, Value)> {
        let real = |value: f64| Value::Real(Some(value));
        let mut row = vec![
            (Name::Plain("connection"), Value::Flow(self.flow)),
            (Name::Plain("goodput_mbps"), real(self.goodput_mbps)),
            (Name::Plain("duplicate_mbps"), real(self.duplicate_mbps)),
            (Name::Plain("window_limited_share"), real(self.window_limited_share)),
            (Name::Plain("send_buffer_limited_share"), real(self.send_buffer_limited_share)),
        ];
        let counts = COUNTS.iter().zip(self.counts);
        row.extend(counts.map(|(name, count)| (Name::Plain(name), Value::Count(count))));
        row.push((Name::Plain("idle_restarts"), Value::Count(self.idle_restarts)));
        let flags = FLAGS.iter().zip(self.flags);
        row.extend(flags.map(|(name, flag)| (Name::Plain(name), Value::Flag(flag))));
        row.push((Name::Plain("fallback"), Value::Fallback(self.fallback)));
        row.push((Name::Plain("corrupt_bytes"), Value::Count(self.corrupt_bytes)));
        let shares = self.shares.iter().enumerate();
        row.extend(shares.map(|(path, share)| (Name::OfPath("share_", path), real(*share))));
        self.delays.append(&mut row);
        row.push((Name::Plain("completion_s"), Value::Real(self.completion_s)));
        row.push((Name::Plain("recovery_ms"), Value::Real(self.recovery_ms)));
        row.push((Name::Plain("stall_ms"), Value::Real(self.stall_ms)));
        self.series.append(&mut row);
        row.push((Name::Plain("one_bottleneck_share"), Value::Real(self.one_bottleneck_share)));
        row
    }

    /// The row of a scenario with this number of paths, for the names and types of its columns.
    pub fn empty(paths: usize) -> Self {
        let series = Series { srtt_p95_ms: vec![None; paths], ..Series::default() };
        Metrics { shares: vec![0.0; paths], series, ..Metrics::default() }
    }
}

/// The names of the flows, in the order in which the tables of a run number them.
pub fn flow_names(scenario: &Scenario) -> Vec<String> {
    let name =
        |flow: recorder::DataFlow| scenario.connections[flow.connection].flow_name(flow.sender);
    recorder::flows(scenario).into_iter().map(name).collect()
}

/// The metrics of each flow of a run of `scenario` that ended at `end`, from the run's tables.
///
/// # Panics
/// If one of the tables that every run has is missing.
pub fn metrics(scenario: &Scenario, tables: &[Table], end: Instant) -> Vec<Metrics> {
    let flows = recorder::flows(scenario);
    let run = MeasuredRun { scenario, tables, end, outage: first_outage(scenario) };
    let [subflows, blocks] = ["subflows", "blocks"].map(|name| find(tables, name));
    let of_subflows = Rows::by_connection(subflows, flows.len());
    let of_blocks = Rows::by_connection(blocks, flows.len());
    let series = series::all(scenario, tables, &flows);
    let all = flows.iter().zip(series).enumerate();
    all.map(|(number, (flow, (series, one_bottleneck_share)))| {
        let blocks = Blocks::of(blocks, of_blocks.of(number));
        let of_flow = run.totals(number, subflows, of_subflows.of(number));
        Metrics {
            delays: Delays::of(&blocks.delays_ms(scenario.warm_up)),
            completion_s: run.completion_s(flow, &blocks),
            recovery_ms: run.recovery_ms(&blocks),
            series,
            one_bottleneck_share,
            ..of_flow
        }
    })
    .collect()
}

/// The delays in ms of the blocks of a flow that count, from the table of blocks.
pub fn block_delays_ms(blocks: &Table, flow: usize, warm_up: Duration) -> Vec<f64> {
    let rows = Rows::by_connection(blocks, flow + 1);
    Blocks::of(blocks, rows.of(flow)).delays_ms(warm_up)
}

/// The share of each subflow in the bytes that its connection received, in the order of the subflows
/// of a run.
pub fn subflow_shares(connections: &[u32], received: &[u64]) -> Vec<f64> {
    let flows = connections.iter().map(|flow| *flow as usize + 1).max().unwrap_or(0);
    let mut totals = vec![0; flows];
    for (flow, received) in connections.iter().zip(received) {
        totals[*flow as usize] += received;
    }
    let all = connections.iter().zip(received);
    all.map(|(flow, received)| share(*received, totals[*flow as usize])).collect()
}

/// A run whose metrics are computed.
struct MeasuredRun<'r> {
    scenario: &'r Scenario,
    tables: &'r [Table],
    end: Instant,
    outage: Option<Duration>,
}

impl MeasuredRun<'_> {
    /// The metrics from the totals of a flow and of its subflows, which are `rows` of their table.
    fn totals(&self, number: usize, subflows: &Table, rows: &[usize]) -> Metrics {
        let connections = find(self.tables, "connections");
        let value = |name| number_of(connections, name, number);
        let received = numbers_of(subflows, "bytes_received", rows);
        let restarts = numbers_of(subflows, "idle_restarts", rows);
        let carried: u64 = received.iter().sum();
        let measured = value("measured_ns");
        let duplicates = carried as f64 - value("bytes_delivered") as f64;
        let mut shares = vec![0; self.scenario.paths.len()];
        for (path, received) in numbers_of(subflows, "path", rows).into_iter().zip(received) {
            shares[path as usize] += received;
        }
        Metrics {
            flow: number as u32,
            goodput_mbps: rate_mbps(value("bytes_arrived_measured") as f64, measured),
            duplicate_mbps: rate_mbps(duplicates, self.end.as_nanos()),
            window_limited_share: share(value("window_limited_ns"), measured),
            send_buffer_limited_share: share(value("send_buffer_limited_ns"), measured),
            counts: COUNTS.map(value),
            idle_restarts: restarts.iter().sum(),
            flags: FLAGS.map(|name| value(name) != 0),
            fallback: value("fallback") as u8,
            corrupt_bytes: value("corrupt_bytes"),
            stall_ms: Some(value("stall_ns"))
                .filter(|time| *time > 0)
                .map(|time| time as f64 / 1e6),
            shares: shares.into_iter().map(|received| share(received, carried)).collect(),
            ..Metrics::default()
        }
    }

    fn completion_s(&self, flow: &recorder::DataFlow, blocks: &Blocks) -> Option<f64> {
        let connection = &self.scenario.connections[flow.connection];
        let count = connection.workload.count()?;
        let delivered = blocks.delivered_after_acceptance();
        let last = delivered.iter().max()?;
        let complete = delivered.len() as u64 >= count;
        complete.then(|| (*last as f64 - connection.start.as_nanos() as f64) / 1e9)
    }

    fn recovery_ms(&self, blocks: &Blocks) -> Option<f64> {
        let outage = self.outage?.as_nanos();
        let mut times = blocks.delivered.clone();
        if times.is_empty() {
            return None;
        }
        times.sort_unstable();
        times.push(self.end.as_nanos());
        let gaps = times
            .windows(2)
            .filter(|gap| gap[0] <= outage + Duration::from_secs(1).as_nanos() && gap[1] >= outage);
        Some(gaps.map(|gap| gap[1] - gap[0]).max().unwrap_or(0) as f64 / 1e6)
    }
}

/// When a path goes down for the first time.
fn first_outage(scenario: &Scenario) -> Option<Duration> {
    let changes = scenario.paths.iter().flat_map(|path| &path.changes);
    changes.filter(|change| change.state == Some(LinkState::Down)).map(|change| change.at).min()
}

fn rate_mbps(bytes: f64, nanoseconds: u64) -> f64 {
    if nanoseconds == 0 { 0.0 } else { bytes * 8e3 / nanoseconds as f64 }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
