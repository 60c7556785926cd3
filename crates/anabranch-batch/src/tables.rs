//! The results of a batch: the tables of all its runs, each as one table.

use std::borrow::Cow;
use std::collections::HashMap;

use anabranch_sim::driver::FallbackReason;
use anabranch_sim::metrics::{Metrics, Name, Value, flow_names, is_measured, subflow_shares};
use anabranch_sim::scenario::Scenario;
use anabranch_table::{Column, Named, Table};
use anabranch_wire::Duration;

use crate::codec::RecordReader;
use crate::record::{
    self, CounterNames, RunRecord, Summary, engine_counters, read_counter_names, read_summary,
    read_table,
};
use crate::rows::{NO_WORD, Rows, Values, Words};

/// The results of a batch.
#[derive(Debug)]
pub struct Results {
    /// The facts about each run.
    pub summaries: Vec<Summary>,
    /// The tables `runs`, `subflows`, `links`, `counters`, `blocks` and `samples`.
    pub tables: [Rows; 6],
    /// The columns of `runs` that the runs of each scenario have, in their order. Runs of other
    /// scenarios are "none" there.
    pub columns: Vec<Vec<String>>,
    /// The texts that occur in the tables.
    pub words: Vec<String>,
}

/// Collects the records of runs to the tables of all of them.
#[derive(Debug)]
pub struct Collector {
    layouts: Vec<Layout>,
    words: Words,
    /// Words of client and server, and of the engine's counters.
    hosts: [u32; 2],
    engine_counters: Vec<u32>,
    summaries: Vec<Summary>,
    /// The tables of the record that is read.
    read: [Table; record::TABLES.len()],
    runs: Rows,
    subflows: Rows,
    links: Rows,
    counters: Rows,
    blocks: Rows,
    samples: Rows,
}

/// The names that the runs of a scenario have in the results.
#[derive(Debug)]
struct Layout {
    warm_up: Duration,
    /// Words of the flows and of the paths.
    flows: Vec<u32>,
    paths: Vec<u32>,
    /// The columns of the metrics: each with its name, the type of its values, and its number in the
    /// results.
    metrics: Vec<(String, Value, usize)>,
}

impl Collector {
    /// A collector for runs of these scenarios.
    pub fn new<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>) -> Self {
        let read = record::empty();
        let [subflows, links, _, connection_samples, subflow_samples] = &read;
        let word = || Values::Words(Vec::new());
        let names = [("connection_name", word()), ("path_name", word())];
        let [connection, path] = names.clone();
        let none = Table { name: "", columns: Vec::new() };
        let mut words = Words::default();
        let mut collector = Collector {
            layouts: Vec::new(),
            hosts: ["client", "server"].map(|host| words.index(host)),
            engine_counters: engine_counters().map(|name| words.index(name)).collect(),
            words,
            summaries: Vec::new(),
            runs: Rows::new("runs", &none, &[]),
            subflows: Rows::new(
                "subflows",
                subflows,
                &[connection.clone(), path.clone(), ("share", Values::F64(Vec::new()))],
            ),
            links: Rows::new("links", links, &[path, ("direction_name", word())]),
            counters: Rows::new(
                "counters",
                &none,
                &[("host", word()), ("counter", word()), ("count", Values::U64(Vec::new()))],
            ),
            blocks: Rows::new(
                "blocks",
                &none,
                &[
                    connection,
                    ("bytes", Values::U64(Vec::new())),
                    ("accepted_ms", Values::F32(Vec::new())),
                    ("delay_ms", Values::F32(Vec::new())),
                ],
            ),
            samples: Rows::new("samples", &joined(connection_samples, subflow_samples), &names),
            read,
        };
        for scenario in scenarios {
            let layout = collector.layout(scenario);
            collector.layouts.push(layout);
        }
        collector
    }

    fn layout(&mut self, scenario: &Scenario) -> Layout {
        let flows = flow_names(scenario);
        let paths: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
        let numbers: HashMap<_, _> =
            self.runs.columns.iter().map(|(name, _)| name.clone()).zip(0..).collect();
        let mut metrics = Vec::new();
        for (name, kind) in Metrics::empty(paths.len()).row() {
            let name = match name {
                Name::Plain(name) => name.to_owned(),
                Name::OfPath(prefix, path) => format!("{prefix}{}", paths[path]),
            };
            let number = numbers.get(&name).copied().unwrap_or(self.runs.columns.len());
            if number == self.runs.columns.len() {
                self.runs.columns.push((name.clone(), column_of(kind)));
            }
            metrics.push((name, kind, number));
        }
        let flows = flows.iter().map(|name| self.words.index(name)).collect();
        let paths = paths.iter().map(|name| self.words.index(name)).collect();
        Layout { warm_up: scenario.warm_up, flows, paths, metrics }
    }

    /// Add a run of the scenario with this number.
    pub fn add(&mut self, scenario: usize, record: &RunRecord) {
        let mut reader = record.reader();
        self.summaries.push(read_summary(&mut reader));
        self.add_metrics(scenario, &mut reader);
        self.add_counters(&mut reader);
        for table in &mut self.read {
            clear(table);
            read_table(&mut reader, table);
        }
        let layout = &self.layouts[scenario];
        let [subflows, links, blocks, connection_samples, subflow_samples] = &self.read;
        add_subflows(&mut self.subflows, layout, subflows);
        add_links(&mut self.links, &mut self.words, layout, links);
        add_blocks(&mut self.blocks, layout, blocks);
        add_samples(&mut self.samples, layout, connection_samples, subflow_samples);
    }

    fn add_metrics(&mut self, scenario: usize, reader: &mut RecordReader<'_>) {
        let flows = reader.count();
        self.runs.heights.push(flows as u32);
        let layout = &self.layouts[scenario];
        for _ in 0..flows {
            for (_, kind, number) in &layout.metrics {
                let values = &mut self.runs.columns[*number].1;
                match kind {
                    Value::Flow(_) => values.word(layout.flows[reader.count()]),
                    Value::Fallback(_) => {
                        let reason = FallbackReason::NAMES[usize::from(reader.byte())];
                        values.word(self.words.index(reason));
                    }
                    Value::Count(_) => values.i64(reader.number() as i64),
                    Value::Flag(_) => values.bool(reader.byte() != 0),
                    Value::Real(_) => values.f64(reader.real()),
                }
            }
        }
        self.fill_absent();
    }

    /// Complete the columns that the last run does not have.
    fn fill_absent(&mut self) {
        let rows = self.runs.height();
        for (_, values) in &mut self.runs.columns {
            // Only columns of paths are absent, and their values are real numbers.
            if let Values::F64(values) = values {
                values.resize(rows, f64::NAN);
            }
        }
    }

    fn add_counters(&mut self, reader: &mut RecordReader<'_>) {
        let before = self.counters.height();
        let [hosts, counters, counts] = self.counters.last();
        for host in self.hosts {
            let names: Cow<'_, [u32]> = match read_counter_names(reader) {
                CounterNames::Engine => Cow::Borrowed(&self.engine_counters),
                CounterNames::Written(names) => {
                    names.into_iter().map(|name| self.words.index(name)).collect()
                }
            };
            for name in names.iter() {
                hosts.word(host);
                counters.word(*name);
                counts.u64(reader.number());
            }
        }
        let rows = self.counters.height() - before;
        self.counters.heights.push(rows as u32);
    }

    /// The tables of all runs that were added.
    pub fn finish(self) -> Results {
        let names = |layout: Layout| layout.metrics.into_iter().map(|(name, ..)| name).collect();
        Results {
            summaries: self.summaries,
            tables: [
                self.runs,
                self.subflows,
                self.links,
                self.counters,
                self.blocks,
                self.samples,
            ],
            columns: self.layouts.into_iter().map(names).collect(),
            words: self.words.finish(),
        }
    }
}

/// An empty column for a metric.
fn column_of(kind: Value) -> Values {
    match kind {
        Value::Flow(_) | Value::Fallback(_) => Values::Words(Vec::new()),
        Value::Count(_) => Values::I64(Vec::new()),
        Value::Flag(_) => Values::Bool(Vec::new()),
        Value::Real(_) => Values::F64(Vec::new()),
    }
}

fn add_subflows(rows: &mut Rows, layout: &Layout, table: &Table) {
    rows.heights.push(table.rows() as u32);
    rows.append(table);
    let [connections, paths] = ["connection", "path"].map(|name| indices(table, name));
    let all = subflow_shares(connections, numbers(table, "bytes_received"));
    let [names, path_names, shares] = rows.last();
    connections.iter().for_each(|flow| names.word(layout.flows[*flow as usize]));
    paths.iter().for_each(|path| path_names.word(layout.paths[*path as usize]));
    all.into_iter().for_each(|share| shares.f64(share));
}

fn add_links(rows: &mut Rows, words: &mut Words, layout: &Layout, table: &Table) {
    rows.heights.push(table.rows() as u32);
    rows.append(table);
    let Some(Column::U8(directions)) = table.column("direction") else {
        unreachable!("links have directions")
    };
    let [path_names, direction_names] = rows.last();
    indices(table, "path").iter().for_each(|path| path_names.word(layout.paths[*path as usize]));
    for direction in directions {
        let name = ["forward", "reverse"][usize::from(*direction)];
        direction_names.word(words.index(name));
    }
}

/// Add the blocks whose delays count.
fn add_blocks(rows: &mut Rows, layout: &Layout, table: &Table) {
    let ms = |nanoseconds: u64| (nanoseconds as f64 / 1e6) as f32;
    let [bytes, accepted, delivered] =
        ["bytes", "accepted_ns", "delivered_ns"].map(|name| numbers(table, name));
    let [names, all_bytes, all_accepted, delays] = rows.last();
    let mut height = 0;
    for (row, flow) in indices(table, "connection").iter().enumerate() {
        if is_measured(accepted[row], delivered[row], layout.warm_up) {
            names.word(layout.flows[*flow as usize]);
            all_bytes.u64(bytes[row]);
            all_accepted.f32(ms(accepted[row]));
            delays.f32(ms(delivered[row] - accepted[row]));
            height += 1;
        }
    }
    rows.heights.push(height);
}

/// Number of the columns that tell to which sample of a connection a sample of a subflow belongs.
const SHARED: usize = 2;

/// A table with the columns of a connection's sample, and then those of a subflow's. The column
/// `bytes_received` of a subflow has a longer name, to tell it from that of its connection.
fn joined(connections: &Table, subflows: &Table) -> Table {
    let renamed = |name| if name == "bytes_received" { "subflow_bytes_received" } else { name };
    let of_subflow = subflows.columns[SHARED..].iter();
    let of_subflow = of_subflow.map(|(name, column)| (renamed(*name), column.clone()));
    let columns = connections.columns.iter().cloned().chain(of_subflow).collect();
    Table { name: "samples", columns }
}

/// Add a row for each subflow and time, with the columns of its connection. A connection without
/// subflows has one row at that time.
fn add_samples(rows: &mut Rows, layout: &Layout, connections: &Table, subflows: &Table) {
    let key = |table| (numbers(table, "time_ns"), indices(table, "connection"));
    let ((times, flows), (subflow_times, subflow_flows)) = (key(connections), key(subflows));
    let paths = indices(subflows, "path");
    let (mut next, before) = (0, rows.height());
    for row in 0..times.len() {
        // The recorder writes the samples of a connection's subflows after those of earlier
        // connections at the same time.
        let same =
            |at: &usize| subflow_times[*at] == times[row] && subflow_flows[*at] == flows[row];
        let of_row: Vec<usize> = (next..subflow_times.len()).take_while(same).collect();
        next += of_row.len();
        let with_none = if of_row.is_empty() { vec![None] } else { Vec::new() };
        for subflow in with_none.into_iter().chain(of_row.into_iter().map(Some)) {
            add_sample(rows, connections, row, subflows, subflow);
            let [names, path_names] = rows.last();
            names.word(layout.flows[flows[row] as usize]);
            let path = subflow.map(|at| layout.paths[paths[at] as usize]);
            path_names.word(path.unwrap_or(NO_WORD));
        }
    }
    let height = rows.height() - before;
    rows.heights.push(height as u32);
}

fn add_sample(
    rows: &mut Rows,
    connections: &Table,
    row: usize,
    subflows: &Table,
    at: Option<usize>,
) {
    let of_connection = connections.columns.iter().map(|(_, column)| (column, Some(row)));
    let of_subflow = subflows.columns[SHARED..].iter().map(|(_, column)| (column, at));
    for ((_, values), (column, at)) in rows.columns.iter_mut().zip(of_connection.chain(of_subflow))
    {
        match (values, column) {
            (Values::U32(to), Column::U32(from)) => to.push(at.map_or(u32::MAX, |at| from[at])),
            (Values::U64(to), Column::U64(from)) => to.push(at.map_or(u64::MAX, |at| from[at])),
            _ => unreachable!("samples are numbers"),
        }
    }
}

fn clear(table: &mut Table) {
    for (_, column) in &mut table.columns {
        match column {
            Column::U8(values) | Column::Names(_, values) => values.clear(),
            Column::U32(values) => values.clear(),
            Column::U64(values) => values.clear(),
            Column::Text(values) => values.clear(),
        }
    }
}

fn indices<'t>(table: &'t Table, name: &str) -> &'t [u32] {
    let Some(Column::U32(values)) = table.column(name) else { unreachable!("{name} has indices") };
    values
}

fn numbers<'t>(table: &'t Table, name: &str) -> &'t [u64] {
    let Some(Column::U64(values)) = table.column(name) else { unreachable!("{name} has numbers") };
    values
}
