//! Lists of everything that scenarios choose by name.

use anabranch_config::{Parameter, WrittenSelection};
use anabranch_net::middlebox::MiddleboxConfig;
use anabranch_net::{Discipline, ShaperConfig};
use anabranch_proto::congestion::CongestionControlConfig;
use anabranch_proto::path_manager::PathManagerConfig;
use anabranch_proto::platform::PlatformConfig;
use anabranch_proto::remedy::RemedyConfig;
use anabranch_proto::scheduler::SchedulerConfig;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// All policies that can be chosen by name. Each is a dictionary of `kind`, `name`, `summary`,
/// `source` and `parameters`. Each parameter is a dictionary of `name`, `meaning`, `values`,
/// `default`, `origin` and `only_with`.
#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    append::<SchedulerConfig>(&all, "scheduler")?;
    append::<RemedyConfig>(&all, "remedy")?;
    append::<CongestionControlConfig>(&all, "congestion_control")?;
    append::<PathManagerConfig>(&all, "path_manager")?;
    Ok(all)
}

/// Everything else that has parameters and can be chosen by name, in the form of [`policies`].
#[pyfunction]
pub(crate) fn parts(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    append::<PlatformConfig>(&all, "host")?;
    append::<Discipline>(&all, "queue")?;
    append::<ShaperConfig>(&all, "shaper")?;
    append::<MiddleboxConfig>(&all, "middlebox")?;
    Ok(all)
}

fn append<S: WrittenSelection>(all: &Bound<'_, PyList>, kind: &str) -> PyResult<()> {
    for reader in S::READERS {
        let part = PyDict::new(all.py());
        part.set_item("kind", kind)?;
        part.set_item("name", reader.description.name)?;
        part.set_item("summary", reader.description.summary)?;
        part.set_item("source", reader.description.source)?;
        let parameters = PyList::empty(all.py());
        for parameter in (reader.parameters)() {
            parameters.append(describe(all.py(), parameter)?)?;
        }
        part.set_item("parameters", parameters)?;
        all.append(part)?;
    }
    Ok(())
}

fn describe<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("name", parameter.name)?;
    described.set_item("meaning", &parameter.meaning)?;
    described.set_item("values", &parameter.values)?;
    described.set_item("default", parameter.default.as_deref().unwrap_or("none"))?;
    described.set_item("origin", &parameter.origin)?;
    let only_with = parameter.only_with.as_ref();
    let only_with = only_with.map(|(other, value)| format!("{other} = \"{value}\""));
    described.set_item("only_with", only_with)?;
    Ok(described)
}
