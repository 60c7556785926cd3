//! Programs inside the emulated network, for Python. On systems other than Linux, every call fails.

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::Arc;

    use anabranch_live::{ShellOptions, ShellOutcome, Terminal};
    use anabranch_wire::Instant;
    use pyo3::exceptions::{PyIndexError, PyRuntimeError};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::pcap::Pcap;
    use crate::policy;
    use crate::scenario::PyScenario;
    use crate::watch::Watch;
    use crate::{dictionary_of_tables, live};

    /// A program inside the network of a scenario.
    #[pyclass(frozen)]
    pub(super) struct Shell {
        running: std::sync::Mutex<Option<anabranch_live::Shell>>,
        /// Keeps the first exception of a policy in Python, which ends the shell.
        watch: Arc<Watch>,
    }

    #[pymethods]
    impl Shell {
        /// Start `helper`, which must call `shell_become`, for a scenario. `client` is "engine" or
        /// "kernel". `terminal` is the descriptor of a terminal for the program, which this call
        /// closes, or `None`.
        #[new]
        #[pyo3(signature = (scenario, seed, helper, client, terminal=None, pcap=None))]
        fn new(
            py: Python<'_>,
            scenario: &PyScenario,
            seed: u64,
            helper: Vec<String>,
            client: &str,
            terminal: Option<i32>,
            pcap: Option<Pcap>,
        ) -> PyResult<Self> {
            let factories = scenario.factories(py)?.unwrap_or_default();
            let scenario = &scenario.scenario;
            let watch = Arc::new(Watch::default());
            let own = policy::custom_policies(scenario, factories, &watch).into_iter().next();
            let options = ShellOptions::new(helper)
                .of_kernel(client == "kernel")
                .terminal(terminal.map(Terminal::of).unwrap_or_default())
                .capture(pcap.map(Pcap::into_capture).transpose()?)
                .custom_policies(own.unwrap_or_default());
            let shell = py.detach(|| anabranch_live::Shell::start(scenario, seed, options));
            Ok(Shell { running: Some(shell.map_err(live::failed)?).into(), watch })
        }

        /// Returns `true` if the program has ended and all its data was delivered, or a policy has
        /// failed.
        fn is_over(&self) -> bool {
            self.watch.has_failed() || self.with(|shell| shell.is_over()).unwrap_or(true)
        }

        /// The state of each path: dictionaries with the fields of `anabranch_live::PathState`.
        fn paths<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
            let states = py.detach(|| self.with(anabranch_live::Shell::paths)).unwrap_or_default();
            let all = states.into_iter().map(|path| {
                let state = PyDict::new(py);
                state.set_item("bytes_down", path.bytes_down)?;
                state.set_item("bytes_up", path.bytes_up)?;
                state.set_item("up", path.up)?;
                state.set_item("queued", path.queued)?;
                state.set_item("subflows", path.subflows)?;
                state.set_item("srtt_ns", path.srtt_ns)?;
                state.set_item("cwnd", path.cwnd)?;
                Ok(state)
            });
            all.collect()
        }

        /// Take a path up or down.
        fn set_path(&self, py: Python<'_>, path: usize, up: bool) -> PyResult<()> {
            let done = py.detach(|| self.with(|shell| shell.set_path(path, up)));
            done.unwrap_or(Ok(())).map_err(|error| PyIndexError::new_err(error.to_string()))
        }

        /// End soon: send SIGTERM to the program, and kill it after 5 s.
        fn terminate(&self) {
            self.with(anabranch_live::Shell::terminate);
        }

        /// End at once: kill the program, and do not wait for its connections.
        fn stop(&self) {
            self.with(anabranch_live::Shell::stop);
        }

        /// Wait for the end. Returns a dictionary like that of `live_run`, with the exit `status` of
        /// the program and the `toml` of the scenario with its connections. `toml` is `None`, and
        /// there are no tables, if it opened no connection. Raises the exception of a policy.
        fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let shell = self.running.lock().ok().and_then(|mut shell| shell.take());
            let shell = shell.ok_or_else(|| PyRuntimeError::new_err("it has finished already"))?;
            if self.watch.has_failed() {
                shell.stop();
            }
            let outcome = py.detach(|| shell.finish());
            if let Some(error) = self.watch.take() {
                return Err(error);
            }
            dictionary(py, &outcome.map_err(live::failed)?)
        }
    }

    impl Shell {
        fn with<T>(&self, f: impl FnOnce(&anabranch_live::Shell) -> T) -> Option<T> {
            self.running.lock().ok()?.as_ref().map(f)
        }
    }

    fn dictionary<'py>(py: Python<'py>, outcome: &ShellOutcome) -> PyResult<Bound<'py, PyDict>> {
        let result = PyDict::new(py);
        result.set_item("status", outcome.status)?;
        let (tables, scenario) = outcome
            .recorded
            .as_ref()
            .map_or((None, None), |(tables, it)| (Some(tables), Some(it.to_toml())));
        result.set_item("toml", scenario)?;
        let tables = tables.map_or(&[][..], |tables| &tables[..]);
        result.set_item("tables", dictionary_of_tables(py, tables)?)?;
        result.set_item("virtual_ns", outcome.end.as_nanos())?;
        result.set_item("segments", outcome.packets)?;
        result.set_item("pcap_full_ns", outcome.capture_full_at.map(Instant::as_nanos))?;
        live::lateness(&result, &outcome.lateness)?;
        result.set_item("counters", &outcome.counters)?;
        Ok(result)
    }

    /// In the helper of a shell: become the program. Returns only if that fails, with the reason.
    #[pyfunction]
    pub(super) fn shell_become(command: Vec<String>) -> PyResult<()> {
        Err(anabranch_live::exec_program(&command).into())
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    use crate::pcap::Pcap;
    use crate::scenario::PyScenario;

    #[pyclass(frozen)]
    pub(super) struct Shell;

    #[pymethods]
    impl Shell {
        #[new]
        #[pyo3(signature = (scenario, seed, helper, client, terminal=None, pcap=None))]
        fn new(
            scenario: &PyScenario,
            seed: u64,
            helper: Vec<String>,
            client: &str,
            terminal: Option<i32>,
            pcap: Option<Pcap>,
        ) -> PyResult<Self> {
            let _ = (scenario, seed, helper, client, terminal, pcap);
            Err(PyOSError::new_err("a shell needs Linux"))
        }
    }

    #[pyfunction]
    pub(super) fn shell_become(_command: Vec<String>) -> PyResult<()> {
        Err(PyOSError::new_err("a shell needs Linux"))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<linux::Shell>()?;
    module.add_function(wrap_pyfunction!(linux::shell_become, module)?)
}
