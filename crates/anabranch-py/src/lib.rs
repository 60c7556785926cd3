//! The Python module `anabranch._core`, which runs scenarios and returns tables of columns.

mod analyse;
mod batch;
mod conform;
mod listing;
mod live;
mod pcap;
mod policy;
mod proxy;
mod scenario;
mod shell;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Column, CustomPolicies, Options, RunError, RunOutcome, Table};
use anabranch_wire::Instant;
use pcap::Pcap;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use scenario::PyScenario;
use watch::Watch;

pyo3::import_exception!(anabranch.errors, InputError);
pyo3::import_exception!(anabranch.errors, IntegrityError);
pyo3::import_exception!(anabranch.errors, ScenarioError);

/// Run a scenario with `seed`. `pcap` describes a capture (pcapng): its file, its maximum
/// size in bytes, the hosts at which packets are captured (`client`, `server`, `both`, or `None` for
/// the sending hosts), and the maximum number of bytes that are kept of a packet.
///
/// Without policies in Python, the run releases the interpreter lock. `tick` is called about twenty
/// times a second with the simulated time in nanoseconds. An exception that it raises ends the run,
/// and so does a signal such as Ctrl-C. With `ledger`, the tables `activities` and `capacity`
/// account for every instant and byte.
///
/// Returns a dictionary of `digest`, `virtual_ns`, `segments`, `data_segments`, `tables`, `counters`
/// and `pcap_full_ns`, the time at which the capture reached its limit, or `None`. A table is a
/// dictionary of columns, and a column is a pair of NumPy type and little-endian bytes. `counters`
/// has a dictionary by name for client and server.
#[pyfunction]
#[pyo3(signature = (scenario, seed, *, pcap=None, tick=None, ledger=false))]
fn run<'py>(
    py: Python<'py>,
    scenario: &PyScenario,
    seed: u64,
    pcap: Option<Pcap>,
    tick: Option<Py<PyAny>>,
    ledger: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let factories = scenario.factories(py)?;
    let PyScenario { scenario, file, .. } = scenario;
    let watch = Arc::new(Watch::default());
    let mut stop = watch.stop(tick);
    let outcome = match factories {
        None => py.detach(|| execute(scenario, seed, pcap, &[], ledger, &mut stop)),
        Some(factories) => {
            let own = policy::custom_policies(scenario, factories, &watch);
            execute(scenario, seed, pcap, &own, ledger, &mut stop)
        }
    };
    let outcome = watch.take().map_or(outcome.map_err(|error| failed(error, file)), Err)?;
    dictionary(py, &outcome)
}

/// Run the scenario, and write a capture.
fn execute(
    scenario: &Scenario,
    seed: u64,
    pcap: Option<Pcap>,
    custom_policies: &[CustomPolicies],
    ledger: bool,
    stop: &mut dyn FnMut(Instant) -> bool,
) -> Result<RunOutcome, RunError> {
    let capture = pcap.map(Pcap::into_capture).transpose()?;
    let options = Options::default()
        .capture(capture)
        .custom_policies(custom_policies)
        .ledger(ledger)
        .stop(stop);
    anabranch_sim::run(scenario, seed, options)
}

fn failed(error: RunError, file: &str) -> PyErr {
    match error {
        RunError::CustomPolicies(error) => ScenarioError::new_err(format!("{file}: {error}")),
        RunError::Capture(error) => error.into(),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

fn dictionary<'py>(py: Python<'py>, outcome: &RunOutcome) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("digest", format!("{:016x}", outcome.digest))?;
    result.set_item("virtual_ns", outcome.end.as_nanos())?;
    result.set_item("segments", outcome.segments)?;
    result.set_item("data_segments", outcome.data_segments_delivered)?;
    result.set_item("tables", dictionary_of_tables(py, &outcome.tables)?)?;
    result.set_item("pcap_full_ns", outcome.capture_full_at.map(Instant::as_nanos))?;
    let counters = outcome.counters.map(|host| BTreeMap::from(host.named()));
    result.set_item("counters", counters)?;
    Ok(result)
}

/// Each table as a dictionary of columns. A column is a pair of NumPy type and little-endian bytes,
/// or of all names and the bytes that index them, or a list of texts.
fn dictionary_of_tables<'py>(py: Python<'py>, all: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let tables = PyDict::new(py);
    for table in all {
        let columns = PyDict::new(py);
        for (name, column) in &table.columns {
            columns.set_item(name, column_for_python(py, column)?)?;
        }
        tables.set_item(table.name, columns)?;
    }
    Ok(tables)
}

fn column_for_python<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let numbers = |dtype: &str, bytes: &[u8]| {
        (dtype, PyBytes::new(py, bytes)).into_pyobject(py).map(Bound::into_any)
    };
    match column {
        Column::U8(values) => numbers("|u1", values),
        Column::U32(values) => {
            numbers("<u4", &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
        }
        Column::U64(values) => {
            numbers("<u8", &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
        }
        Column::Names(names, values) => (PyTuple::new(py, *names)?, PyBytes::new(py, values))
            .into_pyobject(py)
            .map(Bound::into_any),
        Column::Text(values) => PyList::new(py, values).map(Bound::into_any),
    }
}

/// The compiled engine and emulated network.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(listing::policies, module)?)?;
    module.add_function(wrap_pyfunction!(listing::parts, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    analyse::register(module)?;
    batch::register(module)?;
    conform::register(module)?;
    live::register(module)?;
    policy::register(module)?;
    proxy::register(module)?;
    scenario::register(module)?;
    shell::register(module)
}
