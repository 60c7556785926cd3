//! Early ends of a run: by an exception in a policy, by a signal, or by an exception in `tick`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as WallClock};

use anabranch_sim::Owner;
use anabranch_wire::Instant;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTraceback;

/// The role of a policy: its kind, its name and its owner.
#[derive(Clone, Debug)]
pub(crate) struct PolicyRole {
    pub(crate) kind: &'static str,
    /// Name of the policy in the scenario.
    pub(crate) name: String,
    pub(crate) owner: Owner,
}

/// Keeps the first exception of a run, and decides when to stop the run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    failed: AtomicBool,
    failure: Mutex<Option<PyErr>>,
    now_ns: AtomicU64,
}

/// Number of events between two checks of the clock.
const EVENTS_PER_LOOK: u32 = 1_024;

/// Wall time between two calls of `tick`, short enough for a prompt reaction to Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);

impl Watch {
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// A stop condition to check before each event. It is true after an exception in a policy, in a
    /// signal handler, or in `tick`, which is called with the simulated time in ns.
    pub(crate) fn stop(&self, tick: Option<Py<PyAny>>) -> impl FnMut(Instant) -> bool {
        let (mut events, mut due) = (0, wall_clock() + PAUSE);
        move |now| {
            events += 1;
            if events == EVENTS_PER_LOOK {
                events = 0;
                if wall_clock() >= due {
                    self.pause(now, tick.as_ref());
                    due = wall_clock() + PAUSE;
                }
            }
            self.has_failed()
        }
    }

    /// Let signal handlers, `tick`, and threads that wait for the interpreter lock run.
    #[cold]
    fn pause(&self, now: Instant, tick: Option<&Py<PyAny>>) {
        Python::attach(|py| {
            py.detach(|| ());
            let told = py.check_signals().and_then(|()| match tick {
                Some(tick) => tick.call1(py, (now.as_nanos(),)).map(drop),
                None => Ok(()),
            });
            if let Err(error) = told {
                self.fail(py, error, None);
            }
        });
    }

    /// The exception that ended the run.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.now_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn fail(&self, py: Python<'_>, error: PyErr, role: Option<&PolicyRole>) {
        let error = match role {
            // The interrupted policy is not to blame for an interruption.
            Some(role) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                self.explain(py, error, role).unwrap_or_else(|broken| broken)
            }
            _ => error,
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// A `PolicyError` with the place of `error`, and `error` as its cause.
    fn explain(&self, py: Python<'_>, error: PyErr, role: &PolicyRole) -> PyResult<PyErr> {
        let PolicyRole { kind, name, owner } = role;
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

#[expect(
    clippy::disallowed_methods,
    reason = "it decides when `tick` is called, not what happens in the run"
)]
fn wall_clock() -> WallClock {
    WallClock::now()
}
