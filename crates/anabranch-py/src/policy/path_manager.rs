//! Path managers written in Python. Events and actions are dataclasses of `anabranch.policy`.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_proto::path_manager::{
    LocalAddress, PathAction, PathEvent, PathManager, RemoteAddress, Retry,
};
use anabranch_proto::view::SubflowView;
use anabranch_wire::{Instant, SocketAddress};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::view::{PySubflowId, Viewpoint, subflow_id};
use super::{Own, Rng, described};
use crate::watch::{PolicyRole, Watch};

/// Represents a Python path manager in the engine. After every call it fetches the actions and the
/// deadline, because the engine polls them often and should not enter Python each time.
#[derive(Debug)]
pub(super) struct PyPathManager {
    own: Own,
    rng: Arc<Rng>,
    actions: VecDeque<PathAction>,
    timeout: Option<Instant>,
}

/// The methods that a path manager must have.
const VERBS: [&str; 4] = ["handle_event", "handle_timeout", "poll_action", "poll_timeout"];

/// Largest number of actions in a row. More are an endless series by mistake.
const MOST_ACTIONS: usize = 256;

impl PyPathManager {
    pub(super) fn new(factory: &Py<PyAny>, role: PolicyRole, watch: &Arc<Watch>) -> Self {
        let rng = Rng::new(&role, "path_manager");
        let own = Own::made_by(factory, role, watch, &VERBS);
        PyPathManager { own, rng, actions: VecDeque::new(), timeout: None }
    }

    /// Call into Python, and fetch the resulting actions and deadline.
    fn tell(
        &mut self,
        now: Instant,
        subflows: &[SubflowView],
        call: impl FnOnce(&Bound<'_, PyAny>, Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        let asked = self.own.ask(now, |py| {
            let object = self.own.object.bind(py);
            let context = (
                now.as_nanos(),
                Viewpoint::of(&self.own.role.owner).tuple(py, subflows)?,
                self.rng.get(py)?,
            );
            let module = py.import(intern!(py, "anabranch.policy"))?;
            call(object, module.call_method1("PathContext", context)?)?;
            Ok((fetch_actions(object)?, fetch_timeout(object)?))
        });
        let (actions, timeout) = asked.unwrap_or_default();
        self.actions.extend(actions);
        self.timeout = timeout;
    }
}

impl PathManager for PyPathManager {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        self.tell(now, subflows, |object, context| {
            let event = event_object(object.py(), event)?;
            object.call_method1("handle_event", (context, event)).map(drop)
        });
    }

    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]) {
        self.tell(now, subflows, |object, context| {
            object.call_method1("handle_timeout", (context,)).map(drop)
        });
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.actions.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }
}

fn fetch_actions(object: &Bound<'_, PyAny>) -> PyResult<Vec<PathAction>> {
    let mut actions = Vec::new();
    loop {
        let next = object.call_method0(intern!(object.py(), "poll_action"))?;
        if next.is_none() {
            return Ok(actions);
        }
        actions.push(action(&next)?);
        if actions.len() == MOST_ACTIONS {
            return Err(PyRuntimeError::new_err(format!(
                "poll_action() returned {MOST_ACTIONS} actions in a row; return None when there is \
                 no further action"
            )));
        }
    }
}

fn fetch_timeout(object: &Bound<'_, PyAny>) -> PyResult<Option<Instant>> {
    let deadline = object.call_method0(intern!(object.py(), "poll_timeout"))?;
    let nanos: Option<u64> = deadline.extract().map_err(|_| {
        let found = described(&deadline);
        PyTypeError::new_err(format!(
            "poll_timeout() returned {found}; return a time in ns, an int, or None"
        ))
    })?;
    Ok(nanos.map(Instant::from_nanos))
}

/// The action that an object of `anabranch.policy` describes, by the name of its class.
fn action(object: &Bound<'_, PyAny>) -> PyResult<PathAction> {
    let py = object.py();
    let module = py.import(intern!(py, "anabranch.policy"))?;
    let is = |name: &str| object.is_instance(&module.getattr(name)?);
    let subflow = || subflow_id(&object.getattr("subflow")?);
    Ok(if is("Open")? {
        PathAction::Open {
            local: local_address(&object.getattr("local")?)?,
            remote: endpoint(&object.getattr("remote")?)?,
            remote_address_id: object.getattr("remote_address_id")?.extract()?,
            backup: object.getattr("backup")?.extract()?,
        }
    } else if is("Close")? {
        PathAction::Close { subflow: subflow()?, reset: object.getattr("reset")?.extract()? }
    } else if is("SetPriority")? {
        PathAction::SetPriority {
            subflow: subflow()?,
            backup: object.getattr("backup")?.extract()?,
            signalled: object.getattr("signalled")?.extract()?,
        }
    } else if is("Announce")? {
        PathAction::Announce { local: local_address(&object.getattr("local")?)? }
    } else if is("Remove")? {
        PathAction::Remove { local_address_id: object.getattr("local_address_id")?.extract()? }
    } else if is("Probe")? {
        PathAction::Probe {
            subflow: subflow()?,
            count: object.getattr("count")?.extract()?,
            bytes: object.getattr("bytes")?.extract()?,
        }
    } else {
        return Err(PyTypeError::new_err(format!(
            "poll_action() returned {}; return Open, Close, SetPriority, Announce, Remove, Probe or None",
            described(object)
        )));
    })
}

/// The event as an object of `anabranch.policy`.
fn event_object<'py>(py: Python<'py>, event: &PathEvent<'_>) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import(intern!(py, "anabranch.policy"))?;
    let remote_end =
        |end: SocketAddress| module.call_method1("SocketAddress", (end.address, end.port));
    let local_address =
        |each: &LocalAddress| module.call_method1("LocalAddress", (each.id, each.address));
    match *event {
        PathEvent::Established { initiator, local, remote } => {
            let local = local.iter().map(local_address).collect::<PyResult<Vec<_>>>()?;
            let arguments = (initiator, PyTuple::new(py, local)?, remote_end(remote)?);
            module.call_method1("Established", arguments)
        }
        PathEvent::SubflowEstablished(id) => {
            module.call_method1("SubflowEstablished", (PySubflowId(id),))
        }
        PathEvent::SubflowTimeout { id, in_a_row } => {
            module.call_method1("SubflowTimeout", (PySubflowId(id), in_a_row))
        }
        PathEvent::SubflowClosed { id, local_address_id, remote, retry, reopens } => {
            let retry = match retry {
                Retry::Soon => "soon",
                Retry::Later => "later",
                Retry::Never => "never",
            };
            let (id, remote) = (id.map(PySubflowId), remote_end(remote)?);
            let arguments = (id, local_address_id, remote, retry, reopens);
            module.call_method1("SubflowClosed", arguments)
        }
        PathEvent::AddressAnnounced { remote, remote_address_id } => {
            module.call_method1("AddressAnnounced", (remote_end(remote)?, remote_address_id))
        }
        PathEvent::AddressWithdrawn { remote_address_id } => {
            module.call_method1("AddressWithdrawn", (remote_address_id,))
        }
        PathEvent::AddressAdded { local, remote } => {
            let address = |each: &RemoteAddress| {
                module.call_method1("RemoteAddress", (each.id, remote_end(each.end)?))
            };
            let remote = remote.iter().map(address).collect::<PyResult<Vec<_>>>()?;
            let arguments = (local_address(&local)?, PyTuple::new(py, remote)?);
            module.call_method1("AddressAdded", arguments)
        }
        PathEvent::AddressChanged { local_address_id, usable } => {
            module.call_method1("AddressChanged", (local_address_id, usable))
        }
    }
}

fn local_address(object: &Bound<'_, PyAny>) -> PyResult<LocalAddress> {
    let (id, address) = (object.getattr("id")?.extract()?, object.getattr("address")?.extract()?);
    Ok(LocalAddress { id, address })
}

fn endpoint(object: &Bound<'_, PyAny>) -> PyResult<SocketAddress> {
    let address = object.getattr("address")?.extract()?;
    Ok(SocketAddress::new(address, object.getattr("port")?.extract()?))
}
