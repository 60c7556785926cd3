//! Schedulers written in Python.

use std::sync::Arc;

use anabranch_proto::scheduler::{Decision, LinuxView, Pending, ScheduleContext, Scheduler};
use anabranch_proto::view::{SubflowId, SubflowSet, SubflowView};
use anabranch_wire::Instant;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFrozenSet, PyTuple};

use super::view::{PySubflowId, PySubflowView, Viewpoint, subflow_id};
use super::{Own, Rng, described};
use crate::watch::{PolicyRole, Watch};

/// Data that has never been sent.
#[pyclass(frozen, eq, get_all, module = "anabranch.policy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NewData {
    bytes: u64,
}

/// Data that was sent before and must be sent again on another subflow.
#[pyclass(frozen, eq, module = "anabranch.policy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reinjection(SubflowSet);

/// The information that Linux's own scheduler uses besides.
#[pyclass(frozen, eq, module = "anabranch.policy", name = "LinuxView")]
#[derive(Clone, Debug, PartialEq, Eq)]
struct PyLinuxView {
    #[pyo3(get)]
    paced_windows: Vec<u64>,
    #[pyo3(get)]
    sent_memory: Vec<u64>,
    full: SubflowSet,
    #[pyo3(get)]
    begins_fragment: Option<bool>,
    #[pyo3(get)]
    unsent_memory: u64,
}

/// The state that a scheduler can see.
#[pyclass(frozen, module = "anabranch.policy", name = "ScheduleContext")]
struct PyScheduleContext {
    now: Instant,
    pending: Pending,
    views: Vec<SubflowView>,
    with_room: SubflowSet,
    assigned: Vec<u64>,
    subflows: PyOnceLock<Py<PyTuple>>,
    #[pyo3(get)]
    available_window: u64,
    #[pyo3(get)]
    window: u64,
    #[pyo3(get)]
    blocked: u64,
    linux: PyLinuxView,
    rng: Arc<Rng>,
    place: Viewpoint,
}

/// Send the next segment on this subflow.
#[pyclass(frozen, eq, module = "anabranch.policy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Send(SubflowId);

/// Send the next segment on all of these subflows.
#[pyclass(frozen, eq, module = "anabranch.policy")]
#[derive(Clone, Debug, PartialEq, Eq)]
struct Duplicate(SubflowSet);

/// Assign the data of the next segment to this subflow, which sends it when it has room.
#[pyclass(frozen, eq, module = "anabranch.policy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Assign(SubflowId);

/// Send nothing now.
#[pyclass(frozen, eq, get_all, module = "anabranch.policy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    until_ns: Option<u64>,
}

/// Represents a Python scheduler in the engine.
#[derive(Debug)]
pub(super) struct PyScheduler {
    own: Own,
    schedule: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    rng: Arc<Rng>,
    place: Viewpoint,
}

impl PyScheduler {
    pub(super) fn new(factory: &Py<PyAny>, role: PolicyRole, watch: &Arc<Watch>) -> Self {
        let (rng, place) = (Rng::new(&role, "scheduler"), Viewpoint::of(&role.owner));
        let own = Own::made_by(factory, role, watch, &["schedule"]);
        let (schedule, on_sent) = (own.method("schedule"), own.own_method("Scheduler", "on_sent"));
        PyScheduler { own, schedule, on_sent, rng, place }
    }

    fn context(&self, context: &ScheduleContext<'_>) -> PyScheduleContext {
        PyScheduleContext {
            now: context.now,
            pending: context.pending,
            views: context.subflows.to_vec(),
            with_room: context.with_room,
            assigned: context.assigned.to_vec(),
            subflows: PyOnceLock::new(),
            available_window: context.available_window,
            window: context.window,
            blocked: context.blocked,
            linux: PyLinuxView {
                paced_windows: context.linux.paced_windows.to_vec(),
                sent_memory: context.linux.sent_memory.to_vec(),
                full: context.linux.full,
                begins_fragment: context.linux.begins_fragment,
                unsent_memory: context.linux.unsent_memory,
            },
            rng: self.rng.clone(),
            place: self.place.clone(),
        }
    }
}

impl Scheduler for PyScheduler {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let asked = self.own.ask(context.now, |py| {
            let Some(schedule) = &self.schedule else { return Ok(Decision::Wait { until: None }) };
            decision(schedule.call1(py, (self.context(context),))?.bind(py))
        });
        asked.unwrap_or(Decision::Wait { until: None })
    }

    fn follows_linux(&self) -> bool {
        true
    }

    fn on_sent(&mut self, subflow: SubflowId, bytes: u64) {
        if let Some(on_sent) = &self.on_sent {
            self.own.ask_again(|py| on_sent.call1(py, (PySubflowId(subflow), bytes)).map(drop));
        }
    }
}

fn decision(answer: &Bound<'_, PyAny>) -> PyResult<Decision> {
    if let Ok(send) = answer.cast::<Send>() {
        return Ok(Decision::Send(send.get().0));
    }
    if let Ok(assign) = answer.cast::<Assign>() {
        return Ok(Decision::Assign(assign.get().0));
    }
    if let Ok(wait) = answer.cast::<Wait>() {
        let until = wait.get().until_ns.map(Instant::from_nanos);
        return Ok(Decision::Wait { until });
    }
    if let Ok(duplicate) = answer.cast::<Duplicate>() {
        return Ok(Decision::Duplicate(duplicate.get().0));
    }
    Err(PyTypeError::new_err(format!(
        "schedule() returned {}; return Send(subflow), Assign(subflow), Duplicate(subflows) or Wait(until_ns=None)",
        described(answer)
    )))
}

#[pymethods]
impl PyScheduleContext {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.as_nanos()
    }

    #[getter]
    fn linux(&self) -> PyLinuxView {
        self.linux.clone()
    }

    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.pending {
            Pending::NewData { bytes } => Bound::new(py, NewData { bytes })?.into_any(),
            Pending::Reinjection { already_on } => {
                Bound::new(py, Reinjection(already_on))?.into_any()
            }
        })
    }

    #[getter]
    fn subflows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let tuple = || self.place.tuple(py, &self.views).map(Bound::unbind);
        Ok(self.subflows.get_or_try_init(py, tuple)?.bind(py).clone())
    }

    #[getter]
    fn with_room<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.with_room.slots().map(u8::from))
    }

    #[getter]
    fn assigned(&self) -> Vec<u64> {
        let context = self.as_engine();
        self.views.iter().map(|view| context.assigned(view.id.slot)).collect()
    }

    #[getter]
    fn rng(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.rng.get(py)
    }

    fn candidates(&self) -> Vec<PySubflowView> {
        self.as_engine().candidates().map(|view| self.place.view(view)).collect()
    }

    fn eligible(&self) -> Vec<PySubflowView> {
        self.as_engine().eligible().map(|view| self.place.view(view)).collect()
    }

    fn fastest(&self) -> Option<PySubflowView> {
        self.as_engine().fastest().map(|view| self.place.view(view))
    }

    fn has_carried(&self, subflow: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.as_engine().has_carried(subflow_id(subflow)?.slot))
    }
}

impl PyScheduleContext {
    fn as_engine(&self) -> ScheduleContext<'_> {
        ScheduleContext {
            now: self.now,
            pending: self.pending,
            subflows: &self.views,
            with_room: self.with_room,
            available_window: self.available_window,
            window: self.window,
            assigned: &self.assigned,
            blocked: self.blocked,
            linux: LinuxView {
                paced_windows: &self.linux.paced_windows,
                sent_memory: &self.linux.sent_memory,
                full: self.linux.full,
                begins_fragment: self.linux.begins_fragment,
                unsent_memory: self.linux.unsent_memory,
            },
        }
    }
}

#[pymethods]
impl PyLinuxView {
    #[getter]
    fn full<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.full.slots().map(u8::from))
    }
}

#[pymethods]
impl NewData {
    fn __repr__(&self) -> String {
        format!("NewData(bytes={})", self.bytes)
    }
}

#[pymethods]
impl Reinjection {
    #[getter]
    fn already_on<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.0.slots().map(u8::from))
    }

    fn __repr__(&self) -> String {
        format!("Reinjection(already_on={})", slots(self.0))
    }
}

#[pymethods]
impl Send {
    #[new]
    fn new(subflow: &Bound<'_, PyAny>) -> PyResult<Self> {
        subflow_id(subflow).map(Send)
    }

    #[getter]
    fn subflow(&self) -> PySubflowId {
        PySubflowId(self.0)
    }

    fn __repr__(&self) -> String {
        format!("Send({})", PySubflowId(self.0).__repr__())
    }
}

#[pymethods]
impl Assign {
    #[new]
    fn new(subflow: &Bound<'_, PyAny>) -> PyResult<Self> {
        subflow_id(subflow).map(Assign)
    }

    #[getter]
    fn subflow(&self) -> PySubflowId {
        PySubflowId(self.0)
    }

    fn __repr__(&self) -> String {
        format!("Assign({})", PySubflowId(self.0).__repr__())
    }
}

#[pymethods]
impl Duplicate {
    #[new]
    fn new(subflows: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut set = SubflowSet::EMPTY;
        for subflow in subflows.try_iter()? {
            set.insert(subflow_id(&subflow?)?.slot);
        }
        Ok(Duplicate(set))
    }

    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.0.slots().map(u8::from))
    }

    fn __repr__(&self) -> String {
        format!("Duplicate(slots={})", slots(self.0))
    }
}

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (until_ns=None))]
    fn new(until_ns: Option<u64>) -> Self {
        Wait { until_ns }
    }

    fn __repr__(&self) -> String {
        match self.until_ns {
            Some(until_ns) => format!("Wait(until_ns={until_ns})"),
            None => "Wait()".to_owned(),
        }
    }
}

fn slots(set: SubflowSet) -> String {
    let slots: Vec<String> = set.slots().map(|slot| slot.0.to_string()).collect();
    format!("{{{}}}", slots.join(", "))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NewData>()?;
    module.add_class::<PyLinuxView>()?;
    module.add_class::<Reinjection>()?;
    module.add_class::<PyScheduleContext>()?;
    module.add_class::<Send>()?;
    module.add_class::<Assign>()?;
    module.add_class::<Duplicate>()?;
    module.add_class::<Wait>()
}
