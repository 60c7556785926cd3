//! Scenarios for Python: read and checked once, and then passed on.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_net::units::{ByteCount, QueueLimit, Rate, UnitError, parse_duration};
use anabranch_sim::scenario::{
    ChangeError, Connection, Document, Policy, Scenario, ScenarioError, Stack,
};
use anabranch_wire::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use pythonize::{depythonize, pythonize};
use toml::{Table, Value};

use crate::InputError;
use crate::policy::Factories;

/// Number of scenarios that this process has read.
static READ: AtomicU64 = AtomicU64::new(0);

/// A scenario that was read and checked, with the user's own policies that it names.
#[pyclass(frozen, module = "anabranch._core", name = "Scenario")]
pub(crate) struct PyScenario {
    pub(crate) scenario: Scenario,
    pub(crate) file: String,
    folder: PathBuf,
    source: Source,
    /// Factories of the user's own policies by name.
    policies: Py<PyDict>,
    toml: OnceLock<String>,
    settings: PyOnceLock<Py<PyAny>>,
}

/// Source that changes of single keys apply to.
#[derive(Clone)]
enum Source {
    Text(String),
    Document(Document),
}

fn invalid(error: ScenarioError) -> PyErr {
    crate::ScenarioError::new_err(error.to_string())
}

fn folder_of(file: &str, folder: Option<PathBuf>) -> PathBuf {
    folder.unwrap_or_else(|| Path::new(file).parent().unwrap_or(Path::new("")).to_owned())
}

impl PyScenario {
    fn new(
        scenario: Scenario,
        source: Source,
        file: &str,
        folder: PathBuf,
        policies: Py<PyDict>,
    ) -> Self {
        READ.fetch_add(1, Ordering::Relaxed);
        let (toml, settings) = (OnceLock::new(), PyOnceLock::new());
        PyScenario { scenario, file: file.to_owned(), folder, source, policies, toml, settings }
    }

    fn toml(&self) -> &str {
        self.toml.get_or_init(|| self.scenario.to_toml())
    }

    fn document(&self) -> PyResult<Document> {
        match &self.source {
            Source::Document(document) => Ok(document.clone()),
            Source::Text(text) => Document::parse(text, &self.file, &self.folder).map_err(invalid),
        }
    }

    /// The scenario of a document with these settings. Messages about one of them begin with
    /// `option` and its key.
    fn changed(
        document: &Document,
        settings: &[(String, Value)],
        option: &str,
        file: &str,
        folder: PathBuf,
        policies: Py<PyDict>,
    ) -> PyResult<Self> {
        let changed = document.with_settings(settings).map_err(|error| match error {
            ChangeError::Scenario(error) => invalid(error),
            error => InputError::new_err(format!("{option}{error}")),
        });
        let (document, scenario) = changed?;
        Ok(PyScenario::new(scenario, Source::Document(document), file, folder, policies))
    }

    /// The factories of each connection's own policies; `None` if all are built-in.
    pub(crate) fn factories(&self, py: Python<'_>) -> PyResult<Option<Vec<Factories>>> {
        let policies = self.policies.bind(py);
        if policies.is_empty() {
            return Ok(None);
        }
        let find = |name: Option<&str>| -> PyResult<Option<Py<PyAny>>> {
            let found = name.map(|name| policies.get_item(name)).transpose()?.flatten();
            Ok(found.map(Bound::unbind))
        };
        let of = |connection: &Connection| {
            Ok(Factories {
                scheduler: find(connection.scheduler.custom())?,
                congestion_control: find(connection.congestion_control.custom())?,
                path_manager: find(connection.path_manager.custom())?,
            })
        };
        self.scenario.connections.iter().map(of).collect::<PyResult<_>>().map(Some)
    }
}

/// Remove the keys of a plain value that have no value, as TOML does.
fn remove_absent(value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(table) = value.cast::<PyDict>() {
        for (key, inner) in table.copy()?.iter() {
            if inner.is_none() {
                table.del_item(key)?;
            } else {
                remove_absent(&inner)?;
            }
        }
    } else if let Ok(array) = value.cast::<PyList>() {
        array.iter().try_for_each(|inner| remove_absent(&inner))?;
    }
    Ok(())
}

/// Keys and values, as a list of pairs.
type Settings<'py> = Vec<(String, Bound<'py, PyAny>)>;

fn values(settings: &Settings<'_>, option: &str) -> PyResult<Vec<(String, Value)>> {
    let value = |(key, value): &(String, Bound<'_, PyAny>)| match depythonize(value) {
        Ok(plain) => Ok((key.clone(), plain)),
        Err(_) => Err(InputError::new_err(format!("{option}{}", foreign(value, key.clone())?))),
    };
    settings.iter().map(value).collect()
}

/// The problem of a value that TOML cannot hold, at its innermost key.
fn foreign(value: &Bound<'_, PyAny>, key: String) -> PyResult<String> {
    let cannot_hold = |inner: &Bound<'_, PyAny>| depythonize::<Value>(inner).is_err();
    if let Ok(table) = value.cast::<PyDict>() {
        if let Some((name, inner)) = table.iter().find(|(_, inner)| cannot_hold(inner)) {
            let dot = if key.is_empty() { "" } else { "." };
            return foreign(&inner, format!("{key}{dot}{name}"));
        }
    } else if let Ok(array) = value.cast::<PyList>()
        && let Some((index, inner)) = array.iter().enumerate().find(|(_, each)| cannot_hold(each))
    {
        return foreign(&inner, format!("{key}[{index}]"));
    }
    let value = value.repr()?;
    Ok(format!("{key}: {value}: write text, a number, true or false, a list or a table"))
}

#[pymethods]
impl PyScenario {
    /// Read the TOML `text` with the changed keys `settings`.
    #[staticmethod]
    #[pyo3(signature = (text, file, folder=None, settings=Vec::new(), option=""))]
    fn parse(
        py: Python<'_>,
        text: String,
        file: &str,
        folder: Option<PathBuf>,
        settings: Settings<'_>,
        option: &str,
    ) -> PyResult<Self> {
        let folder = folder_of(file, folder);
        let policies = PyDict::new(py).unbind();
        if settings.is_empty() {
            let scenario = Scenario::from_toml_in(&text, file, &folder).map_err(invalid)?;
            return Ok(PyScenario::new(scenario, Source::Text(text), file, folder, policies));
        }
        let document = Document::parse(&text, file, &folder).map_err(invalid)?;
        Self::changed(&document, &values(&settings, option)?, option, file, folder, policies)
    }

    /// Read a scenario of plain values.
    #[staticmethod]
    #[pyo3(signature = (table, file, folder=None))]
    fn of(
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        file: &str,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let folder = folder_of(file, folder);
        let Ok(table) = depythonize::<Table>(table) else {
            let problem = foreign(table, String::new())?;
            return Err(crate::ScenarioError::new_err(format!("{file}: {problem}")));
        };
        let document = Document::new(table, file, &folder);
        Self::changed(&document, &[], "", file, folder, PyDict::new(py).unbind())
    }

    /// The scenario with changed keys.
    #[pyo3(signature = (settings, option=""))]
    fn with_settings(
        &self,
        py: Python<'_>,
        settings: Settings<'_>,
        option: &str,
    ) -> PyResult<Self> {
        let (file, folder) = (&self.file, self.folder.clone());
        let policies = self.policies.clone_ref(py);
        let settings = values(&settings, option)?;
        Self::changed(&self.document()?, &settings, option, file, folder, policies)
    }

    /// The scenario with the factories of the user's own policies by name.
    fn with_policies(&self, policies: Py<PyDict>) -> Self {
        PyScenario {
            scenario: self.scenario.clone(),
            file: self.file.clone(),
            folder: self.folder.clone(),
            source: self.source.clone(),
            policies,
            toml: self.toml.clone(),
            settings: PyOnceLock::new(),
        }
    }

    /// The scenario with another name in messages.
    fn with_file(&self, py: Python<'_>, file: String) -> Self {
        PyScenario { file, ..self.with_policies(self.policies.clone_ref(py)) }
    }

    /// The user's own policies that the scenario names: for each, the index of its connection, its
    /// kind and its name.
    fn custom_policies(&self) -> Vec<(usize, &'static str, String)> {
        fn name<T>(policy: &Policy<T>) -> Option<String> {
            policy.custom().map(str::to_owned)
        }
        let of = |(index, each): (usize, &Connection)| {
            [
                (index, "scheduler", name(&each.scheduler)),
                (index, "congestion_control", name(&each.congestion_control)),
                (index, "path_manager", name(&each.path_manager)),
            ]
        };
        let all = self.scenario.connections.iter().enumerate().flat_map(of);
        all.filter_map(|(index, kind, name)| Some((index, kind, name?))).collect()
    }

    /// The name and the stack of each connection, and its keys that depart from that stack.
    fn stacks(&self) -> Vec<(String, Option<&'static str>, Vec<&'static str>)> {
        let stack =
            |each: &Connection| (each.name.clone(), each.stack.map(Stack::name), each.departures());
        self.scenario.connections.iter().map(stack).collect()
    }

    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    #[getter]
    fn policies(&self, py: Python<'_>) -> Py<PyDict> {
        self.policies.clone_ref(py)
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.scenario.duration.as_nanos()
    }

    #[getter]
    fn warm_up_ns(&self) -> u64 {
        self.scenario.warm_up.as_nanos()
    }

    #[getter]
    fn cost(&self) -> f64 {
        self.scenario.cost()
    }

    fn to_toml(&self) -> &str {
        self.toml()
    }

    #[getter]
    fn settings(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.settings.get_or_try_init(py, || -> PyResult<_> {
            let settings = pythonize(py, &self.scenario)?;
            remove_absent(&settings)?;
            Ok(settings.unbind())
        });
        Ok(made?.clone_ref(py))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.toml().hash(&mut hasher);
        hasher.finish()
    }

    fn __eq__(&self, other: &PyScenario) -> bool {
        self.scenario == other.scenario
    }

    fn __repr__(&self) -> String {
        format!("<scenario {:?} of {}>", self.scenario.name, self.file)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let rebuild = py.import("anabranch._core")?.getattr("_restored")?;
        (rebuild, (this.toml(), &this.file, &this.policies)).into_pyobject(py).map(Bound::into_any)
    }
}

/// A scenario from its normalised text, in another process.
#[pyfunction]
fn _restored(text: String, file: &str, policies: Py<PyDict>) -> PyResult<PyScenario> {
    let folder = folder_of(file, None);
    let scenario = Scenario::from_toml_in(&text, file, &folder).map_err(invalid)?;
    Ok(PyScenario::new(scenario, Source::Text(text), file, folder, policies))
}

/// The number of scenarios that this process has read.
#[pyfunction]
fn scenarios_read() -> u64 {
    READ.load(Ordering::Relaxed)
}

fn unit_error(error: UnitError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A duration such as "5s" in nanoseconds.
#[pyfunction]
fn nanoseconds(text: &str) -> PyResult<u64> {
    parse_duration(text.trim()).map(Duration::as_nanos).map_err(unit_error)
}

/// A rate such as "8Mbit/s" in bit/s.
#[pyfunction]
fn bits_per_second(text: &str) -> PyResult<u64> {
    text.trim().parse().map(Rate::as_bits_per_second).map_err(unit_error)
}

/// A size such as "200KiB" in bytes.
#[pyfunction]
fn byte_count(text: &str) -> PyResult<u64> {
    text.trim().parse().map(ByteCount::as_u64).map_err(unit_error)
}

/// A queue limit in packets such as "54packets".
#[pyfunction]
fn packets(text: &str) -> PyResult<u64> {
    match text.trim().parse().map_err(unit_error)? {
        QueueLimit::Packets(count) => Ok(count),
        other => Err(PyValueError::new_err(format!("{other} is not a number of packets"))),
    }
}

/// The JSON Schema of scenarios.
#[pyfunction]
fn json_schema() -> String {
    Scenario::json_schema()
}

/// Add the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyScenario>()?;
    module.add_function(wrap_pyfunction!(_restored, module)?)?;
    module.add_function(wrap_pyfunction!(scenarios_read, module)?)?;
    module.add_function(wrap_pyfunction!(nanoseconds, module)?)?;
    module.add_function(wrap_pyfunction!(bits_per_second, module)?)?;
    module.add_function(wrap_pyfunction!(byte_count, module)?)?;
    module.add_function(wrap_pyfunction!(packets, module)?)?;
    module.add_function(wrap_pyfunction!(json_schema, module)?)
}
