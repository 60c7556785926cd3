//! Live runs, for Python. On systems other than Linux, every call fails.

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
mod linux {
    use anabranch_live::{HostStack, Lateness, LiveError, LiveOutcome, Options};
    use anabranch_sim::RunError;
    use anabranch_wire::Instant;
    use pyo3::exceptions::PyRuntimeError;
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::pcap::Pcap;
    use crate::scenario::PyScenario;
    use crate::{ScenarioError, dictionary_of_tables};

    /// Run `command` inside namespaces where live runs are possible, and return its exit status.
    #[pyfunction]
    pub(super) fn live_enter(py: Python<'_>, command: Vec<String>) -> PyResult<i32> {
        let status = py.detach(|| anabranch_live::enter(&command))?;
        Ok(status.code().unwrap_or(1))
    }

    /// Returns `true` if this process runs inside these namespaces.
    #[pyfunction]
    pub(super) fn live_is_inside() -> bool {
        anabranch_live::is_inside()
    }

    /// Return this thread to normal priority for good.
    #[pyfunction]
    pub(super) fn live_stop_preferring() {
        anabranch_live::stop_preferring();
    }

    /// Check the capabilities that live runs need. Returns dictionaries of `name`, `purpose`,
    /// `problem` (`None` if the capability works), `remedy` and `required`.
    #[pyfunction]
    pub(super) fn live_probe(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
        let all = anabranch_live::probe().into_iter().map(|each| {
            let found = PyDict::new(py);
            found.set_item("name", each.name)?;
            found.set_item("purpose", each.purpose)?;
            found.set_item("problem", each.problem)?;
            found.set_item("remedy", each.remedy)?;
            found.set_item("required", each.required)?;
            Ok(found)
        });
        all.collect()
    }

    /// Reason why kernel hosts cannot run a scenario; `None` if they can.
    #[pyfunction]
    pub(super) fn live_objection(scenario: &PyScenario) -> Option<String> {
        anabranch_live::objection(&scenario.scenario)
    }

    /// Run a scenario in real time. `client` and `server` are "engine" or "kernel".
    #[pyfunction]
    #[pyo3(signature = (scenario, seed, client, server, pcap=None))]
    pub(super) fn live_run<'py>(
        py: Python<'py>,
        scenario: &PyScenario,
        seed: u64,
        client: &str,
        server: &str,
        pcap: Option<Pcap>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scenario = &scenario.scenario;
        let (client, server) = (stack(client), stack(server));
        let capture = pcap.map(Pcap::into_capture).transpose()?;
        let outcome = py.detach(|| {
            anabranch_live::run(scenario, seed, Options::new(client, server).capture(capture))
        });
        dictionary(py, &outcome.map_err(failed)?)
    }

    fn stack(name: &str) -> HostStack {
        if name == "kernel" { HostStack::Kernel } else { HostStack::Engine }
    }

    pub(crate) fn failed(error: LiveError) -> PyErr {
        match error {
            LiveError::Unsupported(what) => ScenarioError::new_err(what),
            LiveError::Capture(RunError::Capture(error)) => error.into(),
            error => PyRuntimeError::new_err(error.to_string()),
        }
    }

    /// Add the lateness of the emulator to a result.
    pub(crate) fn lateness(result: &Bound<'_, PyDict>, late: &Lateness) -> PyResult<()> {
        let nanos = |share| late.quantile(share).as_nanos();
        result.set_item("valid", late.is_valid())?;
        result.set_item("late_share", late.late_share())?;
        result.set_item("lateness_ns", [0.5, 0.99, 0.999, 1.0].map(nanos))
    }

    fn dictionary<'py>(py: Python<'py>, outcome: &LiveOutcome) -> PyResult<Bound<'py, PyDict>> {
        let result = PyDict::new(py);
        result.set_item("virtual_ns", outcome.end.as_nanos())?;
        result.set_item("segments", outcome.packets)?;
        result.set_item("tables", dictionary_of_tables(py, &outcome.tables)?)?;
        result.set_item("pcap_full_ns", outcome.capture_full_at.map(Instant::as_nanos))?;
        result.set_item("foreign", outcome.foreign)?;
        lateness(&result, &outcome.lateness)?;
        result.set_item("counters", &outcome.counters)?;
        result.set_item("notices", &outcome.notices)?;
        Ok(result)
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    use crate::pcap::Pcap;
    use crate::scenario::PyScenario;

    #[pyfunction]
    pub(super) fn live_enter(_command: Vec<String>) -> PyResult<i32> {
        Err(PyOSError::new_err("live runs need Linux"))
    }

    #[pyfunction]
    pub(super) fn live_is_inside() -> bool {
        false
    }

    #[pyfunction]
    pub(super) fn live_stop_preferring() {}

    #[pyfunction]
    pub(super) fn live_probe() -> PyResult<()> {
        Err(PyOSError::new_err("live runs need Linux"))
    }

    #[pyfunction]
    pub(super) fn live_objection(_scenario: &PyScenario) -> PyResult<()> {
        Err(PyOSError::new_err("live runs need Linux"))
    }

    #[pyfunction]
    #[pyo3(signature = (scenario, seed, client, server, pcap=None))]
    pub(super) fn live_run(
        scenario: &PyScenario,
        seed: u64,
        client: &str,
        server: &str,
        pcap: Option<Pcap>,
    ) -> PyResult<()> {
        let _ = (scenario, seed, client, server, pcap);
        Err(PyOSError::new_err("live runs need Linux"))
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{failed, lateness};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(linux::live_enter, module)?)?;
    module.add_function(wrap_pyfunction!(linux::live_is_inside, module)?)?;
    module.add_function(wrap_pyfunction!(linux::live_objection, module)?)?;
    module.add_function(wrap_pyfunction!(linux::live_probe, module)?)?;
    module.add_function(wrap_pyfunction!(linux::live_run, module)?)?;
    module.add_function(wrap_pyfunction!(linux::live_stop_preferring, module)?)
}
