//! The Python module `anabranch._core`: a scenario in, columns out.

mod analyse;
mod conform;
mod listing;
mod live;
mod policy;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_sim::scenario::{self, OwnNames, Scenario};
use anabranch_sim::{Column, Options, Outcome, OwnPolicies, RunError, Table};
use policy::{Factories, Watch};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pyo3::create_exception!(
    anabranch._core,
    ScenarioError,
    PyValueError,
    "A scenario is wrong: one line that names file, key, value and what would be right."
);

fn invalid(error: scenario::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// The scenario `toml` with every default filled in, as TOML; `file` is its name in messages.
/// Traces are looked for in `folder`, or in that of `file`.
#[pyfunction]
#[pyo3(signature = (toml, file, folder=None))]
fn validate(toml: &str, file: &str, folder: Option<PathBuf>) -> PyResult<String> {
    let scenario = match folder {
        Some(folder) => Scenario::from_toml_beside(toml, file, &folder),
        None => Scenario::from_toml(toml, file),
    };
    Ok(scenario.map_err(invalid)?.to_toml())
}

/// The same with the names of the user's own policies in it: at the connections that name one
/// already, or if none does, at all that speak Multipath TCP.
#[pyfunction]
#[pyo3(signature = (toml, file, *, scheduler=None, congestion_control=None, path_manager=None))]
fn with_own(
    toml: &str,
    file: &str,
    scheduler: Option<String>,
    congestion_control: Option<String>,
    path_manager: Option<String>,
) -> PyResult<String> {
    let names = OwnNames { scheduler, congestion_control, path_manager };
    Ok(Scenario::from_toml(toml, file).map_err(invalid)?.with_own(&names).to_toml())
}

/// The JSON Schema of a scenario.
#[pyfunction]
fn json_schema() -> String {
    Scenario::json_schema()
}

/// Run the scenario `toml` with `seed`, writing a pcapng capture to `pcap` if that is given.
///
/// `own_policies` holds for each connection a dictionary of what makes its policies in Python:
/// `scheduler`, `congestion_control`, `path_manager`. A run without any releases the interpreter
/// lock.
///
/// Returns a dictionary of `digest`, `virtual_ns`, `segments`, `tables` and `counters`; a table is
/// a dictionary of columns, a column a pair of NumPy type and little-endian bytes. Counters are a
/// dictionary for client and server, by name.
#[pyfunction]
#[pyo3(signature = (toml, file, seed, pcap=None, own_policies=None))]
fn run<'py>(
    py: Python<'py>,
    toml: &str,
    file: &str,
    seed: u64,
    pcap: Option<&str>,
    own_policies: Option<Vec<Factories>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = Scenario::from_toml(toml, file).map_err(invalid)?;
    let outcome = match own_policies {
        None => py.detach(|| execute(&scenario, seed, pcap, &[], None))?,
        Some(factories) => with_python(py, &scenario, seed, pcap, factories)?,
    };
    dictionary(py, &outcome)
}

/// Run with policies in Python; what they raise ends the run, and is raised here.
fn with_python(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    pcap: Option<&str>,
    factories: Vec<Factories>,
) -> PyResult<Outcome> {
    let watch = Arc::new(Watch::default());
    let own: Vec<OwnPolicies> = policy::own_policies(scenario, factories, &watch);
    let mut stop = watch.stop(py);
    let outcome = execute(scenario, seed, pcap, &own, Some(&mut stop));
    watch.take().map_or(outcome, Err)
}

fn execute(
    scenario: &Scenario,
    seed: u64,
    pcap: Option<&str>,
    own_policies: &[OwnPolicies],
    stop: Option<&mut dyn FnMut() -> bool>,
) -> PyResult<Outcome> {
    let stop = stop.map(|stop| stop as _);
    let options = Options { own_policies, stop, ..Options::default() };
    let Some(path) = pcap else {
        return anabranch_sim::run(scenario, seed, options).map_err(failed);
    };
    let unwritable = |error: std::io::Error| PyOSError::new_err(format!("{path}: {error}"));
    let mut capture = BufWriter::new(File::create(path).map_err(unwritable)?);
    let options = Options { capture: Some(&mut capture), ..options };
    let outcome = anabranch_sim::run(scenario, seed, options).map_err(failed)?;
    capture.flush().map_err(unwritable)?;
    Ok(outcome)
}

fn failed(error: RunError) -> PyErr {
    match error {
        RunError::OwnPolicies(error) => ScenarioError::new_err(error.to_string()),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

fn dictionary<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("digest", format!("{:016x}", outcome.digest))?;
    result.set_item("virtual_ns", outcome.end.as_nanos())?;
    result.set_item("segments", outcome.segments)?;
    result.set_item("tables", dictionary_of_tables(py, &outcome.tables)?)?;
    let counters = outcome.counters.map(|host| BTreeMap::from(host.named()));
    result.set_item("counters", counters)?;
    Ok(result)
}

fn dictionary_of_tables<'py>(py: Python<'py>, all: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let tables = PyDict::new(py);
    for table in all {
        let columns = PyDict::new(py);
        for (name, column) in &table.columns {
            let (kind, bytes) = bytes(column);
            columns.set_item(name, (kind, PyBytes::new(py, &bytes)))?;
        }
        tables.set_item(table.name, columns)?;
    }
    Ok(tables)
}

fn bytes(column: &Column) -> (&'static str, Vec<u8>) {
    match column {
        Column::U8(values) => ("|u1", values.clone()),
        Column::U32(values) => ("<u4", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Column::U64(values) => ("<u8", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    }
}

/// Multipath TCP on an emulated network.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(with_own, module)?)?;
    module.add_function(wrap_pyfunction!(json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(listing::policies, module)?)?;
    module.add_function(wrap_pyfunction!(listing::parts, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    analyse::register(module)?;
    conform::register(module)?;
    live::register(module)?;
    policy::register(module)
}
