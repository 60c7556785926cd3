//! The results that are kept of a run, as bytes.

use std::borrow::Cow;
use std::sync::OnceLock;

use anabranch_proto::Counters;
use anabranch_sim::metrics::{Metrics, Value, flow_names, metrics};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{RunOutcome, empty_tables};
use anabranch_table::{Column, Table};
use anabranch_wire::Instant;

use crate::BatchError;
use crate::codec::{RecordReader, RecordWriter};

/// Tables of a run that are kept on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The time of every block.
    pub blocks: bool,
    /// The time series.
    pub samples: bool,
}

impl Kept {
    /// Returns `true` if the record of a run holds the table with this name.
    fn has(self, table: &str) -> bool {
        match table {
            "blocks" => self.blocks,
            "connection_samples" | "subflow_samples" => self.samples,
            _ => true,
        }
    }
}

/// The tables that a record may hold.
pub(crate) const TABLES: [&str; 5] =
    ["subflows", "links", "blocks", "connection_samples", "subflow_samples"];

/// A number of each host's occurrences of events, by name and in the order of the names.
pub type CountersByName<'c> = Vec<(Cow<'c, str>, u64)>;

/// A finished run, as a record is made of it.
#[derive(Clone, Debug)]
pub struct Finished<'r> {
    /// Fingerprint of all packets; `None` for a live run.
    pub digest: Option<u64>,
    /// Time at the end of the run.
    pub end: Instant,
    /// Segments with payload that were delivered.
    pub data_segments: u64,
    /// CPU time of the thread that made the run.
    pub cpu_s: f64,
    /// Anything else that belongs to the run, as text.
    pub note: &'r str,
    /// The tables of the run.
    pub tables: &'r [Table],
    /// Counters of client and server.
    pub counters: [CountersByName<'r>; 2],
}

impl<'r> Finished<'r> {
    /// A run in virtual time.
    pub fn of(outcome: &'r RunOutcome, cpu_s: f64) -> Self {
        Finished {
            digest: Some(outcome.digest),
            end: outcome.end,
            data_segments: outcome.data_segments_delivered,
            cpu_s,
            note: "",
            tables: &outcome.tables,
            counters: outcome.counters.map(by_name),
        }
    }
}

/// The counters of the engine in the order of their names.
fn by_name(counters: Counters) -> CountersByName<'static> {
    let all = counters.named();
    order_of_counters().iter().map(|at| (Cow::Borrowed(all[*at].0), all[*at].1)).collect()
}

fn order_of_counters() -> &'static [usize] {
    static ORDER: OnceLock<Vec<usize>> = OnceLock::new();
    ORDER.get_or_init(|| {
        let mut order: Vec<usize> = (0..Counters::NAMES.len()).collect();
        order.sort_by_key(|at| Counters::NAMES[*at].0);
        order
    })
}

/// The facts about a run besides its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Fingerprint of all packets; `None` for a live run.
    pub digest: Option<u64>,
    /// Simulated time.
    pub virtual_ns: u64,
    /// Segments with payload that were delivered.
    pub data_segments: u64,
    /// CPU time of the thread that made the run.
    pub cpu_s: f64,
    /// Anything else that belongs to the run, as text.
    pub note: String,
}

/// The results that are kept of a run.
///
/// The bytes hold values only. Names and types of columns follow from the build and from the run's
/// scenario, which the key of a run covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord(Vec<u8>);

impl RunRecord {
    /// Reduce a run of `scenario` to the results that are kept. `check` may refuse a run by its
    /// metrics.
    ///
    /// # Errors
    /// If `check` returns one.
    pub fn of(
        scenario: &Scenario,
        run: &Finished<'_>,
        kept: Kept,
        check: impl FnOnce(&[Metrics]) -> Result<(), BatchError>,
    ) -> Result<Self, BatchError> {
        let metrics = metrics(scenario, run.tables, run.end);
        check(&metrics)?;
        let mut writer = RecordWriter::default();
        write_summary(&mut writer, run);
        write_metrics(&mut writer, &metrics);
        run.counters.iter().for_each(|host| write_counters(&mut writer, host));
        for name in TABLES {
            writer.byte(kept.has(name).into());
            if kept.has(name) {
                let table = run.tables.iter().find(|table| table.name == name);
                write_table(&mut writer, table.expect("every run has this table"));
            }
        }
        Ok(RunRecord(writer.finish()))
    }

    /// The record with these bytes, which must be those of a record of this build.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        RunRecord(bytes)
    }

    /// The record as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The facts besides the tables.
    pub fn summary(&self) -> Summary {
        read_summary(&mut RecordReader::new(&self.0))
    }

    /// A reader of the record.
    pub(crate) fn reader(&self) -> RecordReader<'_> {
        RecordReader::new(&self.0)
    }
}

/// Check that the applications of a run received what was sent. `run` identifies it in errors.
///
/// # Errors
/// If an application received wrong bytes, or a connection failed and `may_fail` is false.
pub fn require_integrity(
    scenario: &Scenario,
    flows: &[Metrics],
    may_fail: bool,
    run: impl Fn() -> String,
) -> Result<(), BatchError> {
    for flow in flows {
        if flow.corrupt_bytes > 0 {
            return Err(BatchError::Corrupt { run: run(), bytes: flow.corrupt_bytes });
        }
        if flow.has_failed() && !may_fail {
            let connection = flow_names(scenario).swap_remove(flow.flow as usize);
            return Err(BatchError::ConnectionFailed { run: run(), connection });
        }
    }
    Ok(())
}

fn write_summary(writer: &mut RecordWriter, run: &Finished<'_>) {
    writer.byte(u8::from(run.digest.is_some()));
    writer.number(run.digest.unwrap_or(0));
    writer.number(run.end.as_nanos());
    writer.number(run.data_segments);
    writer.real(run.cpu_s);
    writer.text(run.note);
}

/// Read the beginning of a record.
pub(crate) fn read_summary(reader: &mut RecordReader<'_>) -> Summary {
    let (has_digest, digest) = (reader.byte() == 1, reader.number());
    Summary {
        digest: has_digest.then_some(digest),
        virtual_ns: reader.number(),
        data_segments: reader.number(),
        cpu_s: reader.real(),
        note: reader.text().to_owned(),
    }
}

fn write_metrics(writer: &mut RecordWriter, flows: &[Metrics]) {
    writer.number(flows.len() as u64);
    for (_, value) in flows.iter().flat_map(Metrics::row) {
        match value {
            Value::Flow(flow) => writer.number(flow.into()),
            Value::Fallback(reason) => writer.byte(reason),
            Value::Count(count) => writer.number(count),
            Value::Flag(flag) => writer.byte(flag.into()),
            Value::Real(real) => writer.real(real.unwrap_or(f64::NAN)),
        }
    }
}

/// Names of counters in a record: those of the engine are not written.
const ENGINE: u8 = 0;
const WRITTEN: u8 = 1;

fn write_counters(writer: &mut RecordWriter, host: &CountersByName<'_>) {
    let names = host.iter().map(|(name, _)| name.as_ref());
    let is_engine = names.eq(engine_counters());
    writer.byte(if is_engine { ENGINE } else { WRITTEN });
    if !is_engine {
        writer.number(host.len() as u64);
        host.iter().for_each(|(name, _)| writer.text(name));
    }
    host.iter().for_each(|(_, count)| writer.number(*count));
}

/// The names of a host's counters, in the order of their counts.
pub(crate) enum CounterNames<'b> {
    /// Those of the engine.
    Engine,
    /// Those that the record has.
    Written(Vec<&'b str>),
}

/// Read the names of a host's counters. As many numbers follow in the record.
pub(crate) fn read_counter_names<'b>(reader: &mut RecordReader<'b>) -> CounterNames<'b> {
    if reader.byte() == ENGINE {
        return CounterNames::Engine;
    }
    let count = reader.count();
    CounterNames::Written((0..count).map(|_| reader.text()).collect())
}

/// The names of the engine's counters in the order of records.
pub(crate) fn engine_counters() -> impl Iterator<Item = &'static str> {
    order_of_counters().iter().map(|at| Counters::NAMES[*at].0)
}

fn write_table(writer: &mut RecordWriter, table: &Table) {
    writer.number(table.rows() as u64);
    for (_, column) in &table.columns {
        match column {
            Column::U8(values) | Column::Names(_, values) => {
                values.iter().for_each(|value| writer.byte(*value));
            }
            Column::U32(values) => values.iter().for_each(|value| writer.number((*value).into())),
            Column::U64(values) => values.iter().for_each(|value| writer.number(*value)),
            Column::Text(_) => unreachable!("no kept table has text"),
        }
    }
}

/// Append the rows of a record's table, if it was kept.
pub(crate) fn read_table(reader: &mut RecordReader<'_>, table: &mut Table) {
    if reader.byte() == 0 {
        return;
    }
    let rows = reader.count();
    for (_, column) in &mut table.columns {
        match column {
            Column::U8(values) | Column::Names(_, values) => {
                values.extend((0..rows).map(|_| reader.byte()));
            }
            Column::U32(values) => values.extend((0..rows).map(|_| reader.number() as u32)),
            Column::U64(values) => values.extend((0..rows).map(|_| reader.number())),
            Column::Text(_) => unreachable!("no kept table has text"),
        }
    }
}

/// The tables of a record, without rows.
pub(crate) fn empty() -> [Table; TABLES.len()] {
    let all = empty_tables();
    let find = |name| all.iter().find(|table| table.name == name).cloned();
    TABLES.map(|name| find(name).expect("the recorder has this table"))
}
