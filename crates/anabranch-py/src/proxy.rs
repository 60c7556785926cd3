//! The proxy and its relay, for the command line. On systems other than Linux, every call fails.

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
mod linux {
    use anabranch_proxy::Program;
    use pyo3::prelude::*;

    /// Run `anabranch-proxy` with these arguments, of which the first is the command's name. Returns
    /// the exit status. `again` starts the same command, as a process without privileges. `to_qlog`
    /// converts a capture from its standard input.
    #[pyfunction]
    pub(super) fn proxy(
        py: Python<'_>,
        arguments: Vec<String>,
        again: Vec<String>,
        to_qlog: Vec<String>,
    ) -> u8 {
        let program = Program { again: &again, to_qlog: Some(&to_qlog) };
        py.detach(|| anabranch_proxy::main(&arguments, program))
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    #[pyfunction]
    pub(super) fn proxy(
        arguments: Vec<String>,
        again: Vec<String>,
        to_qlog: Vec<String>,
    ) -> PyResult<u8> {
        let _ = (arguments, again, to_qlog);
        Err(PyOSError::new_err("a proxy needs Linux"))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(linux::proxy, module)?)
}
