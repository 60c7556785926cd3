//! The Python module `anabranch._core`: a scenario in, columns out.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anabranch_sim::scenario::{Scenario, ScenarioError};
use anabranch_sim::{Column, Options, Outcome};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pyo3::create_exception!(
    _core,
    ScenarioInvalid,
    PyValueError,
    "A scenario is wrong: one line that names file, key, value and what would be right."
);

fn invalid(error: ScenarioError) -> PyErr {
    ScenarioInvalid::new_err(error.to_string())
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

/// The JSON Schema of a scenario.
#[pyfunction]
fn json_schema() -> String {
    Scenario::json_schema()
}

/// Run the scenario `toml` with `seed`, writing a pcapng capture to `pcap` if that is given.
///
/// Returns a dictionary of `digest`, `virtual_ns`, `segments` and `tables`; a table is a
/// dictionary of columns, a column a pair of NumPy type and little-endian octets.
#[pyfunction]
#[pyo3(signature = (toml, file, seed, pcap=None))]
fn run<'py>(
    py: Python<'py>,
    toml: &str,
    file: &str,
    seed: u64,
    pcap: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = Scenario::from_toml(toml, file).map_err(invalid)?;
    let outcome = py.detach(|| execute(&scenario, seed, pcap))?;
    dictionary(py, &outcome)
}

fn execute(scenario: &Scenario, seed: u64, pcap: Option<&str>) -> PyResult<Outcome> {
    let Some(path) = pcap else {
        return run_with(scenario, seed, None);
    };
    let unwritable = |error: std::io::Error| PyOSError::new_err(format!("{path}: {error}"));
    let mut capture = BufWriter::new(File::create(path).map_err(unwritable)?);
    let outcome = run_with(scenario, seed, Some(&mut capture))?;
    capture.flush().map_err(unwritable)?;
    Ok(outcome)
}

fn run_with(scenario: &Scenario, seed: u64, capture: Option<&mut dyn Write>) -> PyResult<Outcome> {
    let options = Options { capture, ..Options::default() };
    anabranch_sim::run(scenario, seed, options)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn dictionary<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let tables = PyDict::new(py);
    for table in &outcome.tables {
        let columns = PyDict::new(py);
        for (name, column) in &table.columns {
            let (kind, octets) = octets(column);
            columns.set_item(name, (kind, PyBytes::new(py, &octets)))?;
        }
        tables.set_item(table.name, columns)?;
    }
    let result = PyDict::new(py);
    result.set_item("digest", format!("{:016x}", outcome.digest))?;
    result.set_item("virtual_ns", outcome.end.as_nanos())?;
    result.set_item("segments", outcome.segments)?;
    result.set_item("tables", tables)?;
    Ok(result)
}

fn octets(column: &Column) -> (&'static str, Vec<u8>) {
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
    module.add("ScenarioError", module.py().get_type::<ScenarioInvalid>())?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(json_schema, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}
