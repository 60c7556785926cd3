//! What went wrong in Python during a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anabranch_wire::Instant;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyTraceback;

use super::Role;

/// Keeps the first exception that a policy raises, and says when to stop the run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    failed: AtomicBool,
    failure: Mutex<Option<PyErr>>,
    now_ns: AtomicU64,
}

/// Events between two pauses for others: threads that wait for the interpreter lock, and signals
/// such as Ctrl-C. While a policy's code runs, the interpreter sees to both by itself.
const EVENTS_PER_PAUSE: u32 = 4_096;

impl Watch {
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// A condition to stop the run: an exception, or a signal whose handler raises one.
    pub(crate) fn stop<'a>(&'a self, py: Python<'a>) -> impl FnMut() -> bool + 'a {
        let mut events = 0;
        move || {
            events += 1;
            if events == EVENTS_PER_PAUSE {
                events = 0;
                py.detach(|| ());
                if let Err(signal) = py.check_signals() {
                    self.fail(py, signal, None);
                }
            }
            self.has_failed()
        }
    }

    /// The exception that ended the run.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set_now(&self, now: Instant) {
        self.now_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn fail(&self, py: Python<'_>, error: PyErr, role: Option<&Role>) {
        let error = match role {
            Some(role) if error.is_instance_of::<PyException>(py) => {
                self.explain(py, error, role).unwrap_or_else(|broken| broken)
            }
            // KeyboardInterrupt and SystemExit are nobody's mistake.
            _ => error,
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// A `PolicyError` that says where `error` was raised, with `error` as its cause.
    fn explain(&self, py: Python<'_>, error: PyErr, role: &Role) -> PyResult<PyErr> {
        let Role { kind, name, owner } = role;
        let seconds = self.now_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let what = error.value(py).str()?;
        let class = error.get_type(py).name()?;
        let place = place(py, error.traceback(py));
        let message = format!(
            "{kind} {name} of connection {:?}, {} side, {seconds:.6} s into the run with seed \
             {}: {class}: {what}{place}",
            owner.connection, owner.side, owner.seed
        );
        let class = py.import("anabranch.errors")?.getattr("PolicyError")?;
        let explained = PyErr::from_value(class.call1((message,))?);
        explained.set_cause(py, Some(error));
        Ok(explained)
    }
}

/// ` (FILE, line N)` of the innermost frame, if there is one.
fn place(py: Python<'_>, traceback: Option<Bound<'_, PyTraceback>>) -> String {
    let innermost = || -> PyResult<Option<String>> {
        let Some(traceback) = traceback else { return Ok(None) };
        let frames = py.import("traceback")?.call_method1("extract_tb", (traceback,))?;
        let last = frames.get_item(-1)?;
        let (file, line) = (last.getattr("filename")?, last.getattr("lineno")?);
        Ok(Some(format!(" ({file}, line {line})")))
    };
    innermost().ok().flatten().unwrap_or_default()
}
