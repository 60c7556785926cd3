//! Many runs, for Python: records of runs, their journal, and worker threads.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_batch::{
    Batch, BatchError, Cell, Collector, CountersByName, Finished, Job, Journal, Kept, Results,
    Rows, RunKey, RunRecord, Values, require_integrity,
};
use anabranch_sim::{Column, Table, empty_tables, metrics};
use anabranch_wire::Instant;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::IntegrityError;
use crate::scenario::PyScenario;

fn failed(error: BatchError) -> PyErr {
    match error {
        BatchError::Journal(error) => error.into(),
        BatchError::Stopped => PyKeyboardInterrupt::new_err(()),
        error => IntegrityError::new_err(error.to_string()),
    }
}

/// The results that are kept of a run.
#[pyclass(frozen, module = "anabranch._core", name = "Record")]
struct PyRecord(RunRecord);

#[pymethods]
impl PyRecord {
    #[new]
    fn new(data: Vec<u8>) -> Self {
        PyRecord(RunRecord::from_bytes(data))
    }

    /// Digest of the run; empty for a live run.
    #[getter]
    fn digest(&self) -> String {
        digest(self.0.summary().digest)
    }

    /// Simulated time in ns.
    #[getter]
    fn virtual_ns(&self) -> u64 {
        self.0.summary().virtual_ns
    }

    fn __eq__(&self, other: &PyRecord) -> bool {
        self.0 == other.0
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyBytes::new(slf.py(), slf.get().0.as_bytes());
        (slf.get_type(), (bytes,)).into_pyobject(slf.py()).map(Bound::into_any)
    }
}

fn digest(digest: Option<u64>) -> String {
    digest.map(|digest| format!("{digest:016x}")).unwrap_or_default()
}

/// Tables of a run as Python has them: dictionaries of columns, each its little-endian bytes.
type GivenTables<'py> = Bound<'py, PyDict>;

/// Reduce a run to the results that are kept. `counters` has pairs of name and count for client and
/// server. `name` identifies the run in errors. Without a name, wrong bytes and failed connections are
/// no errors.
#[pyfunction]
#[pyo3(signature = (
    scenario, tables, counters, *, digest, virtual_ns, data_segments, cpu_s, note, keep_blocks,
    keep_samples, may_fail, name
))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
fn reduce(
    scenario: &PyScenario,
    tables: &GivenTables<'_>,
    counters: [Vec<(String, u64)>; 2],
    digest: &str,
    virtual_ns: u64,
    data_segments: u64,
    cpu_s: f64,
    note: &str,
    keep_blocks: bool,
    keep_samples: bool,
    may_fail: bool,
    name: Option<&str>,
) -> PyResult<PyRecord> {
    let by_name = |host: Vec<(String, u64)>| -> CountersByName<'static> {
        host.into_iter().map(|(name, count)| (Cow::Owned(name), count)).collect()
    };
    let finished = Finished {
        digest: u64::from_str_radix(digest, 16).ok(),
        end: Instant::from_nanos(virtual_ns),
        data_segments,
        cpu_s,
        note,
        tables: &given(tables)?,
        counters: counters.map(by_name),
    };
    let kept = Kept { blocks: keep_blocks, samples: keep_samples };
    let scenario = &scenario.scenario;
    let record = RunRecord::of(scenario, &finished, kept, |metrics| {
        name.map_or(Ok(()), |name| {
            require_integrity(scenario, metrics, may_fail, || name.to_owned())
        })
    });
    record.map(PyRecord).map_err(failed)
}

/// The tables that every run has.
fn given(tables: &GivenTables<'_>) -> PyResult<Vec<Table>> {
    let mut all = empty_tables();
    for table in &mut all {
        let columns = tables.as_any().get_item(table.name)?;
        for (name, column) in &mut table.columns {
            let bytes = columns.get_item(*name)?;
            fill(column, bytes.cast::<PyBytes>()?.as_bytes());
        }
    }
    Ok(all)
}

/// Delays in ms of the blocks of a flow that count in its metrics, in the order of the blocks.
#[pyfunction]
fn block_delays_ms(
    scenario: &PyScenario,
    tables: &GivenTables<'_>,
    flow: usize,
) -> PyResult<Vec<f64>> {
    let tables = given(tables)?;
    let blocks = tables.iter().find(|table| table.name == "blocks").expect("every run has it");
    Ok(metrics::block_delays_ms(blocks, flow, scenario.scenario.warm_up))
}

fn fill(column: &mut Column, bytes: &[u8]) {
    let (fours, eights) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<8>().0);
    match column {
        Column::U8(values) | Column::Names(_, values) => values.extend(bytes),
        Column::U32(values) => values.extend(fours.iter().map(|four| u32::from_le_bytes(*four))),
        Column::U64(values) => {
            values.extend(eights.iter().map(|eight| u64::from_le_bytes(*eight)));
        }
        Column::Text(_) => unreachable!("the recorder writes no text"),
    }
}

/// The tables of runs: pairs of the number of a scenario and a record.
///
/// Returns a dictionary of `digests`, `data_segments`, `cpu_s` and `notes`, each a list with an entry
/// for each run, `tables`, `columns` (the columns of `runs` that the runs of each scenario have) and
/// `words`. A table is a pair: the number of rows of each run, and a dictionary of columns. A column
/// is a pair of NumPy type and little-endian bytes. Type "word" means indices of `words`.
#[pyfunction]
fn collect<'py>(
    py: Python<'py>,
    scenarios: Vec<PyRef<'py, PyScenario>>,
    runs: Vec<(usize, PyRef<'py, PyRecord>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut collector = collector(&scenarios);
    runs.iter().for_each(|(scenario, record)| collector.add(*scenario, &record.0));
    results(py, collector.finish())
}

fn collector(scenarios: &[PyRef<'_, PyScenario>]) -> Collector {
    Collector::new(scenarios.iter().map(|each| &each.scenario))
}

fn results(py: Python<'_>, results: Results) -> PyResult<Bound<'_, PyDict>> {
    let Results { summaries, tables, columns, words } = results;
    let found = PyDict::new(py);
    let digests: Vec<_> = summaries.iter().map(|each| digest(each.digest)).collect();
    found.set_item("digests", digests)?;
    let data_segments: Vec<_> = summaries.iter().map(|each| each.data_segments).collect();
    found.set_item("data_segments", data_segments)?;
    let cpu_s: Vec<_> = summaries.iter().map(|each| each.cpu_s).collect();
    found.set_item("cpu_s", cpu_s)?;
    found.set_item("notes", summaries.into_iter().map(|each| each.note).collect::<Vec<_>>())?;
    found.set_item("columns", columns)?;
    found.set_item("words", words)?;
    let by_name = PyDict::new(py);
    for table in tables {
        let Rows { name, heights, columns } = table;
        let of_table = PyDict::new(py);
        for (name, values) in columns {
            of_table.set_item(name, column(py, values)?)?;
        }
        by_name.set_item(name, (bytes(py, &heights, u32::to_le_bytes)?, of_table))?;
    }
    found.set_item("tables", by_name)?;
    Ok(found)
}

/// A pair of NumPy type and little-endian bytes.
fn column(py: Python<'_>, values: Values) -> PyResult<(&'static str, Bound<'_, PyBytes>)> {
    Ok(match values {
        Values::U8(values) => ("|u1", PyBytes::new(py, &values)),
        Values::U32(values) => ("<u4", bytes(py, &values, u32::to_le_bytes)?),
        Values::U64(values) => ("<u8", bytes(py, &values, u64::to_le_bytes)?),
        Values::I64(values) => ("<i8", bytes(py, &values, i64::to_le_bytes)?),
        Values::F32(values) => ("<f4", bytes(py, &values, f32::to_le_bytes)?),
        Values::F64(values) => ("<f8", bytes(py, &values, f64::to_le_bytes)?),
        Values::Bool(values) => ("|b1", bytes(py, &values, |value| [u8::from(value)])?),
        Values::Words(values) => ("word", bytes(py, &values, u32::to_le_bytes)?),
    })
}

fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * values.len(), |bytes| {
        for (to, value) in bytes.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *to = to_bytes(*value);
        }
        Ok(())
    })
}

/// The journal of a results folder.
#[pyclass(frozen, module = "anabranch._core", name = "Journal")]
struct PyJournal(Arc<Journal>);

#[pymethods]
impl PyJournal {
    /// Open the journal, or create it.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        Ok(PyJournal(Arc::new(Journal::open(&path)?)))
    }

    /// Number of lost bytes and of intact runs, if the file was damaged.
    #[getter]
    fn damage(&self) -> Option<(u64, usize)> {
        self.0.damage().map(|damage| (damage.lost, damage.intact))
    }

    /// Keys of the finished runs.
    fn keys(&self) -> Vec<Cow<'static, [u8]>> {
        self.0.keys().into_iter().map(|key| Cow::Owned(key.to_vec())).collect()
    }

    /// Returns `true` if the run with this key is finished. If so, it counts as used.
    fn contains(&self, key: RunKey) -> bool {
        self.0.contains(&key)
    }

    /// The record of the run with this key, or `None` if it is not finished.
    fn find(&self, key: RunKey) -> PyResult<Option<PyRecord>> {
        Ok(self.0.find(&key)?.map(PyRecord))
    }

    /// Append the record of a finished run.
    fn add(&self, py: Python<'_>, key: RunKey, record: &PyRecord) -> PyResult<()> {
        Ok(py.detach(|| self.0.add(&key, &record.0))?)
    }

    /// The tables of finished runs, as `collect` returns them: pairs of the number of a scenario and
    /// the key of a run.
    fn collect<'py>(
        &self,
        py: Python<'py>,
        scenarios: Vec<PyRef<'py, PyScenario>>,
        runs: Vec<(usize, RunKey)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut collector = collector(&scenarios);
        for (scenario, key) in runs {
            let record = self.0.find(&key)?;
            collector.add(scenario, &record.expect("the caller asks for finished runs"));
        }
        results(py, collector.finish())
    }

    /// Drop the runs that were neither looked up nor added since the journal was opened.
    fn keep_only_used(&self) -> PyResult<()> {
        Ok(self.0.keep_only_used()?)
    }

    /// Flush the journal to the disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.0.sync())?)
    }
}

/// Runs in threads, which need no interpreter lock.
#[pyclass(frozen, module = "anabranch._core", name = "Batch")]
struct PyBatch(Mutex<Option<Batch>>);

/// Cell, seed, key, whether to keep blocks and samples, and cost.
type GivenJob = (usize, u64, RunKey, bool, bool, f64);

#[pymethods]
impl PyBatch {
    /// Start the runs in `workers` threads. `cells` has a scenario, a name for messages, and whether
    /// a connection may fail.
    #[new]
    fn new(
        journal: &PyJournal,
        cells: Vec<(PyRef<'_, PyScenario>, String, bool)>,
        jobs: Vec<GivenJob>,
        workers: usize,
    ) -> Self {
        let cell = |(scenario, name, may_fail): (PyRef<'_, PyScenario>, String, bool)| Cell {
            scenario: Arc::new(scenario.scenario.clone()),
            file: scenario.file.clone(),
            name,
            may_fail,
        };
        let job = |(cell, seed, key, blocks, samples, cost): GivenJob| Job {
            cell,
            seed,
            key,
            kept: Kept { blocks, samples },
            cost,
        };
        let (cells, jobs) =
            (cells.into_iter().map(cell).collect(), jobs.into_iter().map(job).collect());
        let batch = Batch::start(cells, jobs, Arc::clone(&journal.0), workers);
        PyBatch(Mutex::new(Some(batch)))
    }

    /// Number, simulated time in ns and total cost of the finished runs.
    fn progress(&self) -> (u64, u64, f64) {
        let progress = self.with(Batch::progress).unwrap_or_default();
        (progress.runs, progress.virtual_ns, progress.cost)
    }

    /// Wait until all threads have ended, but not longer than `seconds`. Returns whether they have.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let timeout = Duration::from_secs_f64(seconds);
        py.detach(|| self.with(|batch| batch.wait(timeout))).unwrap_or(true)
    }

    /// End the runs in progress, without a record of them, and wait for the threads.
    fn stop(&self, py: Python<'_>) {
        let batch = self.take();
        py.detach(|| drop(batch));
    }

    /// Wait for the threads, and raise the first exception of a run.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let batch = self.take();
        py.detach(|| batch.map_or(Ok(()), Batch::finish)).map_err(failed)
    }
}

impl PyBatch {
    fn with<T>(&self, question: impl FnOnce(&Batch) -> T) -> Option<T> {
        let batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch.as_ref().map(question)
    }

    fn take(&self) -> Option<Batch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Add the classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecord>()?;
    module.add_class::<PyJournal>()?;
    module.add_class::<PyBatch>()?;
    module.add("MODE_BIN_MS", metrics::MODE_BIN_MS)?;
    module.add_function(wrap_pyfunction!(block_delays_ms, module)?)?;
    module.add_function(wrap_pyfunction!(reduce, module)?)?;
    module.add_function(wrap_pyfunction!(collect, module)?)
}
