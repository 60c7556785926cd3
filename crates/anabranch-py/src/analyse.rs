//! Captures, for Python.

use std::path::PathBuf;

use anabranch_trace::{AnalyseError, Analysis, Input, Rule, analyse as read, begins_capture};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dictionary_of_tables;

/// Read captures, merge them by time, and reconstruct their connections.
///
/// A file has a name for messages and a path. `progress` is called repeatedly with the bytes read so
/// far and the total. An exception that it raises stops the analysis. Returns a dictionary of
/// `tables`, `damages` (for each file, text or `None`) and `notes`. A table is a dictionary of
/// columns. A column is a pair of NumPy type and little-endian bytes, or a list of strings.
#[pyfunction]
#[pyo3(signature = (files, progress=None))]
fn analyse<'py>(
    py: Python<'py>,
    files: Vec<(String, PathBuf)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let inputs: Vec<_> = files.into_iter().map(|(name, path)| Input::named(name, path)).collect();
    let mut raised = None;
    let outcome = py.detach(|| {
        read(&inputs, &mut |done, all| match tell(progress.as_ref(), done, all) {
            Ok(()) => true,
            Err(error) => {
                raised = Some(error);
                false
            }
        })
    });
    match raised {
        Some(error) => Err(error),
        None => dictionary(py, &outcome.map_err(failed)?),
    }
}

fn tell(progress: Option<&Py<PyAny>>, done: u64, all: u64) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        progress.map_or(Ok(()), |progress| progress.call1(py, (done, all)).map(drop))
    })
}

fn failed(error: AnalyseError) -> PyErr {
    match error {
        AnalyseError::Unreadable { .. } => PyOSError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

fn dictionary<'py>(py: Python<'py>, outcome: &Analysis) -> PyResult<Bound<'py, PyDict>> {
    let damages = outcome.damages.iter().map(|damage| damage.as_ref().map(ToString::to_string));
    let result = PyDict::new(py);
    result.set_item("tables", dictionary_of_tables(py, &outcome.tables)?)?;
    result.set_item("damages", damages.collect::<Vec<_>>())?;
    result.set_item("notes", &outcome.notes)?;
    Ok(result)
}

/// Returns `true` if a file that begins with these bytes is a capture, perhaps a compressed one.
#[pyfunction]
fn analyse_begins_capture(begin: &[u8]) -> bool {
    begins_capture(begin)
}

/// The rules that are checked: name, clause of RFC 8684, and demand of each.
#[pyfunction]
fn analyse_rules() -> Vec<(&'static str, &'static str, &'static str)> {
    Rule::ALL.iter().map(|rule| (rule.name(), rule.clause(), rule.meaning())).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(analyse, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_begins_capture, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_rules, module)?)
}
