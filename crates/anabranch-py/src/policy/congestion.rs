//! Congestion controls written in Python.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_proto::congestion::{
    AckSample, CongestionControl, CongestionEvent, ExternalReduction, Start,
};
use anabranch_proto::view::SubflowView;
use anabranch_wire::{Duration, Instant};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::view::Viewpoint;
use super::{Own, Rng, described};
use crate::watch::{PolicyRole, Watch};

/// The initial parameters of a subflow's congestion control.
#[pyclass(frozen, module = "anabranch.policy", name = "Start")]
struct PyStart {
    #[pyo3(get)]
    mss: u32,
    #[pyo3(get)]
    initial_window: u64,
    #[pyo3(get)]
    local: IpAddr,
    #[pyo3(get)]
    remote: IpAddr,
    rng: Arc<Rng>,
}

#[pymethods]
impl PyStart {
    #[getter]
    fn rng(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.rng.get(py)
    }
}

/// An acknowledgement of new data on the subflow.
#[pyclass(frozen, get_all, module = "anabranch.policy", name = "AckSample")]
struct PyAckSample {
    now_ns: u64,
    acked: u64,
    rtt_ns: Option<u64>,
    srtt_ns: u64,
    bytes_in_flight: u64,
    snd_una: u64,
    snd_nxt: u64,
    cwnd_limited: bool,
}

impl From<&AckSample> for PyAckSample {
    fn from(sample: &AckSample) -> Self {
        PyAckSample {
            now_ns: sample.now.as_nanos(),
            acked: sample.acked,
            rtt_ns: sample.rtt.map(Duration::as_nanos),
            srtt_ns: sample.srtt.as_nanos(),
            bytes_in_flight: sample.bytes_in_flight,
            snd_una: sample.snd_una,
            snd_nxt: sample.snd_nxt,
            cwnd_limited: sample.cwnd_limited,
        }
    }
}

/// Represents a Python congestion control in the engine. Reads its window after every call.
#[derive(Debug)]
pub(super) struct PyCongestionControl {
    own: Own,
    on_ack: Option<Py<PyAny>>,
    mss: u32,
    cwnd: u64,
    ssthresh: u64,
}

/// The attributes and methods that a congestion control must have.
const VERBS: [&str; 5] =
    ["cwnd", "ssthresh", "on_ack", "on_congestion_event", "on_external_reduction"];

impl PyCongestionControl {
    /// Create the congestion control of the `number`th subflow of its owner.
    pub(super) fn new(
        factory: &Py<PyAny>,
        role: PolicyRole,
        number: u32,
        start: &Start,
        watch: &Arc<Watch>,
    ) -> Self {
        let &Start { mss, initial_window, local, remote, .. } = start;
        let rng = Rng::new(&role, &format!("congestion_control/{number}"));
        let start = PyStart { mss, initial_window, local, remote, rng };
        let own = Own::new(role, watch, &VERBS, |py| factory.call1(py, (start,)));
        let on_ack = own.method("on_ack");
        let mut made =
            PyCongestionControl { own, on_ack, mss, cwnd: initial_window, ssthresh: u64::MAX };
        made.tell(None, |_| Ok(()));
        made
    }

    /// Call into Python, and read the resulting window.
    fn tell(&mut self, now: Option<Instant>, call: impl FnOnce(Python<'_>) -> PyResult<()>) {
        let (object, mss) = (&self.own.object, self.mss);
        let call = |py: Python<'_>| {
            call(py)?;
            let object = object.bind(py);
            let cwnd = bytes("cwnd", &object.getattr(intern!(py, "cwnd"))?)?;
            let ssthresh = bytes("ssthresh", &object.getattr(intern!(py, "ssthresh"))?)?;
            if cwnd < u64::from(mss) {
                return Err(PyValueError::new_err(format!(
                    "cwnd = {cwnd}: the window must be at least one segment, {mss} bytes"
                )));
            }
            Ok((cwnd, ssthresh))
        };
        let window = match now {
            Some(now) => self.own.ask(now, call),
            None => self.own.ask_again(call),
        };
        (self.cwnd, self.ssthresh) = window.unwrap_or((self.cwnd, self.ssthresh));
    }
}

impl CongestionControl for PyCongestionControl {
    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_ack(&mut self, sample: &AckSample, me: usize, peers: &[SubflowView]) {
        let Some(on_ack) = self.on_ack.take() else { return };
        let place = Viewpoint::of(&self.own.role.owner);
        self.tell(Some(sample.now), |py| {
            let arguments = (PyAckSample::from(sample), me, place.tuple(py, peers)?);
            on_ack.call1(py, arguments).map(drop)
        });
        self.on_ack = Some(on_ack);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, me: usize, peers: &[SubflowView]) {
        let now = match *event {
            CongestionEvent::Recovery { now, .. }
            | CongestionEvent::Marked { now, .. }
            | CongestionEvent::Timeout { now, .. } => Some(now),
            CongestionEvent::MssChanged { mss } => {
                self.mss = mss;
                None
            }
            CongestionEvent::SynLost
            | CongestionEvent::Undo
            | CongestionEvent::Idle { .. }
            | CongestionEvent::Underused { .. } => None,
        };
        let object = Python::attach(|py| self.own.object.clone_ref(py));
        let place = Viewpoint::of(&self.own.role.owner);
        self.tell(now, |py| {
            let arguments = (event_object(py, event)?, me, place.tuple(py, peers)?);
            object.call_method1(py, intern!(py, "on_congestion_event"), arguments).map(drop)
        });
    }

    fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        let name = match reduction {
            ExternalReduction::HalveBoth => "halve_both",
            ExternalReduction::HalveKeepSlowStart => "halve_keep_slow_start",
            ExternalReduction::HalveKeepUnset => "halve_keep_unset",
        };
        let object = Python::attach(|py| self.own.object.clone_ref(py));
        self.tell(None, |py| {
            object.call_method1(py, intern!(py, "on_external_reduction"), (name,)).map(drop)
        });
    }
}

/// The event as an object of `anabranch.policy`.
fn event_object<'py>(py: Python<'py>, event: &CongestionEvent) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import(intern!(py, "anabranch.policy"))?;
    match *event {
        CongestionEvent::SynLost => module.call_method0("SynLost"),
        CongestionEvent::Recovery { now, flight_size } => {
            module.call_method1("Recovery", (now.as_nanos(), flight_size))
        }
        CongestionEvent::Marked { now, flight_size } => {
            module.call_method1("Marked", (now.as_nanos(), flight_size))
        }
        CongestionEvent::Timeout { now, flight_size, first } => {
            module.call_method1("Timeout", (now.as_nanos(), flight_size, first))
        }
        CongestionEvent::Undo => module.call_method0("Undo"),
        CongestionEvent::Idle { idle, rto } => {
            module.call_method1("Idle", (idle.as_nanos(), rto.as_nanos()))
        }
        CongestionEvent::Underused { used } => module.call_method1("Underused", (used,)),
        CongestionEvent::MssChanged { mss } => module.call_method1("MssChanged", (mss,)),
    }
}

fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract().map_err(|_| {
        let found = described(value);
        PyTypeError::new_err(format!(
            "{name} is {found}; it must be a number of bytes, an int from 0 to 2**64 - 1"
        ))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStart>()?;
    module.add_class::<PyAckSample>()
}
