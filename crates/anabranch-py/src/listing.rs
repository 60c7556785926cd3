//! Lists of everything that scenarios choose by name.

use anabranch_net::{middlebox, queue};
use anabranch_proto::policy::{Entry, Kind, Parameter, Value};
use anabranch_proto::{congestion, path_manager, platform, remedy, scheduler};
use anabranch_wire::Duration;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// All policies that can be chosen by name. Each is a dictionary of `sort`, `name`, `summary`,
/// `source` and `parameters`. Each parameter is a dictionary of `name`, `meaning`, `values`,
/// `default`, `origin` and `only_with`.
#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    append(&all, "scheduler", scheduler::ALL)?;
    append(&all, "remedy", remedy::ALL)?;
    append(&all, "congestion_control", congestion::ALL)?;
    append(&all, "path_manager", path_manager::ALL)?;
    Ok(all)
}

/// Everything else that has parameters and can be chosen by name, in the form of [`policies`].
#[pyfunction]
pub(crate) fn parts(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    append(&all, "host", platform::ALL)?;
    append(&all, "queue", queue::ALL)?;
    append(&all, "middlebox", middlebox::ALL)?;
    Ok(all)
}

fn append<M>(all: &Bound<'_, PyList>, sort: &str, entries: &[Entry<M>]) -> PyResult<()> {
    for entry in entries {
        let policy = PyDict::new(all.py());
        policy.set_item("sort", sort)?;
        policy.set_item("name", entry.name)?;
        policy.set_item("summary", entry.summary)?;
        policy.set_item("source", entry.source)?;
        let parameters = PyList::empty(all.py());
        for parameter in entry.parameters {
            parameters.append(describe(all.py(), parameter)?)?;
        }
        policy.set_item("parameters", parameters)?;
        all.append(policy)?;
    }
    Ok(())
}

fn describe<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("name", parameter.name)?;
    described.set_item("meaning", parameter.meaning)?;
    described.set_item("values", values(parameter.kind))?;
    described.set_item("default", written(&parameter.default))?;
    described.set_item("origin", parameter.origin)?;
    let only_with = parameter.only_with.map(|(other, value)| format!("{other} = \"{value}\""));
    described.set_item("only_with", only_with)?;
    Ok(described)
}

/// The values that a parameter accepts, in words.
fn values(kind: Kind) -> String {
    match kind {
        Kind::Count { least, most: u32::MAX } => format!("a whole number from {least}"),
        Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
        Kind::Flag => "true or false".to_owned(),
        Kind::Number { least, most } => format!("a number from {least} to {most}"),
        Kind::Time { zero: true } => "a duration such as \"20ms\"".to_owned(),
        Kind::Time { zero: false } => "a duration above zero such as \"20ms\"".to_owned(),
        Kind::Choice(names) => {
            let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(" or ")
        }
        Kind::Choices(names) => format!("some of {}", names.join(", ")),
        Kind::Bytes { .. } => "a size such as \"200kB\"".to_owned(),
        Kind::Probability => "a probability such as \"1%\"".to_owned(),
        Kind::Path => "a path of the connection".to_owned(),
    }
}

/// A value as a scenario writes it.
fn written(value: &Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Time(time) if *time < Duration::from_secs(1) => {
            format!("\"{}ms\"", time.as_millis())
        }
        Value::Time(time) => format!("\"{}s\"", time.as_secs_f64()),
        Value::Choice(name) => format!("\"{name}\""),
        Value::Choices(names) => format!("{names:?}"),
        Value::Bytes(bytes) => format!("\"{bytes}B\""),
        Value::Probability(parts) => format!("\"{}%\"", f64::from(*parts) / 1e7),
        Value::Unset | Value::Required => "none".to_owned(),
        Value::Path(path) => format!("path {}", path.index + 1),
    }
}
