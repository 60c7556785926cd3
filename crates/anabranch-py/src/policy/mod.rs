//! Policies written in Python: the copies of engine state that they receive, their answers, and the
//! objects that represent them in the engine.
//!
//! A run with such policies holds the interpreter lock. Every call from the engine into Python goes
//! through [`Own::ask`], which keeps the first error and makes no further calls after it.

mod congestion;
mod path_manager;
mod scheduler;
mod view;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_proto::path_manager::PathManager;
use anabranch_proto::scheduler::Scheduler;
use anabranch_sim::scenario::{Connection, Policy, Scenario};
use anabranch_sim::{CustomPolicies, Owner};
use anabranch_wire::Instant;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::watch::{PolicyRole, Watch};

/// Factories of one connection's Python policies: classes or other callables; `None` for built-in
/// policies.
pub(crate) struct Factories {
    pub(crate) scheduler: Option<Py<PyAny>>,
    pub(crate) congestion_control: Option<Py<PyAny>>,
    pub(crate) path_manager: Option<Py<PyAny>>,
}

/// A Python policy and its role.
#[derive(Debug)]
struct Own {
    /// The policy, or Python's `None` if it could not be created.
    object: Py<PyAny>,
    role: PolicyRole,
    watch: Arc<Watch>,
}

/// A policy's `random.Random`, created at its first use.
struct Rng {
    seed: u64,
    made: PyOnceLock<Py<PyAny>>,
}

/// The policies of all connections of `scenario`, for a run.
pub(crate) fn custom_policies(
    scenario: &Scenario,
    factories: Vec<Factories>,
    watch: &Arc<Watch>,
) -> Vec<CustomPolicies> {
    let connections = scenario.connections.iter().zip(factories);
    connections.map(|(connection, each)| each.into_policies(connection, watch)).collect()
}

/// Add the classes of this folder to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    view::register(module)?;
    scheduler::register(module)?;
    congestion::register(module)
}

impl Factories {
    fn into_policies(self, connection: &Connection, watch: &Arc<Watch>) -> CustomPolicies {
        let Factories { scheduler, congestion_control, path_manager } = self;
        let mut policies = CustomPolicies::default();
        if let Some(factory) = scheduler {
            let (name, watch) = (named(&connection.scheduler), watch.clone());
            policies.scheduler = Some(Arc::new(move |owner| {
                let role = PolicyRole::new("scheduler", &name, owner);
                Box::new(scheduler::PyScheduler::new(&factory, role, &watch)) as Box<dyn Scheduler>
            }));
        }
        if let Some(factory) = congestion_control {
            let (name, watch) = (named(&connection.congestion_control), watch.clone());
            let made = AtomicU32::new(0);
            policies.congestion_control = Some(Arc::new(move |owner, start| {
                let role = PolicyRole::new("congestion control", &name, owner);
                let number = made.fetch_add(1, Ordering::Relaxed);
                Box::new(congestion::PyCongestionControl::new(
                    &factory, role, number, start, &watch,
                ))
            }));
        }
        if let Some(factory) = path_manager {
            let (name, watch) = (named(&connection.path_manager), watch.clone());
            policies.path_manager = Some(Arc::new(move |owner| {
                let role = PolicyRole::new("path manager", &name, owner);
                let manager = path_manager::PyPathManager::new(&factory, role, &watch);
                Box::new(manager) as Box<dyn PathManager>
            }));
        }
        policies
    }
}

fn named<T>(policy: &Policy<T>) -> String {
    policy.custom().unwrap_or_default().to_owned()
}

impl PolicyRole {
    fn new(kind: &'static str, name: &str, owner: &Owner) -> Self {
        PolicyRole { kind, name: name.to_owned(), owner: owner.clone() }
    }
}

impl Own {
    /// The policy that `make` creates. It must have the attributes `verbs`.
    fn new(
        role: PolicyRole,
        watch: &Arc<Watch>,
        verbs: &[&str],
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> Self {
        let nothing = Python::attach(|py| py.None());
        let mut own = Own { object: nothing, role, watch: watch.clone() };
        let made = own.ask_again(|py| {
            let object = make(py)?;
            own.check(object.bind(py), verbs)?;
            Ok(object)
        });
        if let Some(object) = made {
            own.object = object;
        }
        own
    }

    /// Create a policy by calling `factory` without arguments.
    fn made_by(factory: &Py<PyAny>, role: PolicyRole, watch: &Arc<Watch>, verbs: &[&str]) -> Self {
        Own::new(role, watch, verbs, |py| factory.call0(py))
    }

    fn check(&self, object: &Bound<'_, PyAny>, verbs: &[&str]) -> PyResult<()> {
        for verb in verbs {
            if !object.hasattr(*verb)? {
                let (kind, name) = (self.role.kind, &self.role.name);
                let found = described(object);
                return Err(PyTypeError::new_err(format!(
                    "{name} returned {found}, which has no {verb}; a {kind} is a class with {}",
                    verbs.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Call into Python at the time `now`. Returns `None` after an exception in this or an earlier
    /// call.
    fn ask<T>(&self, now: Instant, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        self.watch.set_now(now);
        self.ask_again(call)
    }

    /// Like [`ask`](Self::ask), at the time of the previous call.
    fn ask_again<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.watch.has_failed() {
            return None;
        }
        Python::attach(|py| {
            call(py).map_err(|error| self.watch.fail(py, error, Some(&self.role))).ok()
        })
    }

    /// A method of the policy, ready to be called.
    fn method(&self, name: &str) -> Option<Py<PyAny>> {
        self.ask_again(|py| self.object.getattr(py, name))
    }

    /// A method of the policy, unless its class inherits the empty method of `base`.
    fn own_method(&self, base: &str, name: &str) -> Option<Py<PyAny>> {
        self.ask_again(|py| {
            let class: Bound<'_, PyType> = self.object.bind(py).get_type();
            let inherited = py.import("anabranch.policy")?.getattr(base)?.getattr(name)?;
            match class.getattr_opt(name)? {
                Some(found) if !found.is(&inherited) => self.object.getattr(py, name).map(Some),
                _ => Ok(None),
            }
        })
        .flatten()
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rng").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Rng {
    fn new(role: &PolicyRole, component: &str) -> Arc<Self> {
        Arc::new(Rng { seed: role.owner.stream_seed(component), made: PyOnceLock::new() })
    }

    /// The `random.Random` with this seed.
    fn get(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let make =
            || py.import("random")?.getattr("Random")?.call1((self.seed,)).map(Bound::unbind);
        self.made.get_or_try_init(py, make).map(|made| made.clone_ref(py))
    }
}

/// A value for an error message: `3 (int)`.
fn described(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something".to_owned(), |repr| repr.to_string());
    let class = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    format!("{text} ({class})")
}
