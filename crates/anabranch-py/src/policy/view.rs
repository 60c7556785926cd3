//! Subflows as Python policies see them.

use anabranch_net::Side;
use anabranch_proto::view::{
    Bottleneck, RecoveryPhase, Slot, SubflowId, SubflowSet, SubflowView, Usability,
};
use anabranch_sim::{Owner, PathNames};
use anabranch_wire::Duration;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::described;

/// Identifies a subflow of a connection.
#[pyclass(frozen, eq, ord, hash, module = "anabranch.policy", name = "SubflowId")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PySubflowId(pub(super) SubflowId);

#[pymethods]
impl PySubflowId {
    #[new]
    #[pyo3(signature = (slot, generation=0))]
    fn new(slot: u8, generation: u32) -> PyResult<Self> {
        if usize::from(slot) >= SubflowSet::CAPACITY {
            let most = SubflowSet::CAPACITY - 1;
            return Err(PyValueError::new_err(format!("slot {slot}: must be at most {most}")));
        }
        Ok(PySubflowId(SubflowId { slot: Slot(slot), generation }))
    }

    #[getter]
    fn slot(&self) -> u8 {
        self.0.slot.0
    }

    #[getter]
    fn generation(&self) -> u32 {
        self.0.generation
    }

    pub(super) fn __repr__(&self) -> String {
        format!("SubflowId(slot={}, generation={})", self.0.slot.0, self.0.generation)
    }
}

/// A copy of the state of one subflow.
#[pyclass(frozen, eq, module = "anabranch.policy", name = "SubflowView")]
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PySubflowView(pub(super) SubflowView, Viewpoint);

/// The host that sees a connection's subflows, and the names of the connection's paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Viewpoint {
    side: Side,
    paths: PathNames,
}

impl Viewpoint {
    pub(super) fn of(owner: &Owner) -> Self {
        Viewpoint { side: owner.side, paths: owner.paths.clone() }
    }

    /// A subflow as a Python object.
    pub(super) fn view(&self, view: &SubflowView) -> PySubflowView {
        PySubflowView(*view, self.clone())
    }

    /// Subflows as a Python tuple.
    pub(super) fn tuple<'py>(
        &self,
        py: Python<'py>,
        views: &[SubflowView],
    ) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, views.iter().map(|view| self.view(view)))
    }
}

#[pymethods]
impl PySubflowView {
    #[getter]
    fn id(&self) -> PySubflowId {
        PySubflowId(self.0.id)
    }

    #[getter]
    fn path(&self) -> Option<&str> {
        self.1.paths.of_subflow(self.1.side, &self.0)
    }

    #[getter]
    fn local_address_id(&self) -> u8 {
        self.0.local_address_id
    }

    #[getter]
    fn remote_address_id(&self) -> u8 {
        self.0.remote_address_id
    }

    #[getter]
    fn usability<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.usability {
            Usability::Usable => intern!(py, "usable"),
            Usability::PotentiallyFailed => intern!(py, "potentially_failed"),
            Usability::Opening => intern!(py, "opening"),
            Usability::Closed => intern!(py, "closed"),
        }
    }

    #[getter]
    fn backup(&self) -> bool {
        self.0.backup
    }

    #[getter]
    fn phase<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0.phase {
            RecoveryPhase::Open => intern!(py, "open"),
            RecoveryPhase::Recovery => intern!(py, "recovery"),
            RecoveryPhase::Loss => intern!(py, "loss"),
        }
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }

    #[getter]
    fn cwnd(&self) -> u64 {
        self.0.cwnd
    }

    #[getter]
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }

    #[getter]
    fn bytes_in_flight(&self) -> u64 {
        self.0.bytes_in_flight
    }

    #[getter]
    fn available_cwnd(&self) -> u64 {
        self.0.available_cwnd
    }

    #[getter]
    fn srtt_ns(&self) -> Option<u64> {
        self.0.srtt.map(Duration::as_nanos)
    }

    #[getter]
    fn rttvar_ns(&self) -> u64 {
        self.0.rttvar.as_nanos()
    }

    #[getter]
    fn min_rtt_ns(&self) -> Option<u64> {
        known(self.0.min_rtt)
    }

    #[getter]
    fn min_srtt_ns(&self) -> Option<u64> {
        known(self.0.min_srtt)
    }

    #[getter]
    fn receive_rtt_ns(&self) -> Option<u64> {
        self.0.receive_rtt.map(Duration::as_nanos)
    }

    #[getter]
    fn loss_interval(&self) -> u64 {
        self.0.loss_interval
    }

    #[getter]
    fn bottleneck<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.0.bottleneck {
            Bottleneck::Unknown => intern!(py, "unknown").clone().into_any(),
            Bottleneck::None => intern!(py, "none").clone().into_any(),
            Bottleneck::Shared(number) => number.into_pyobject(py)?.into_any(),
        })
    }

    fn can_send(&self) -> bool {
        self.0.can_send()
    }

    fn srtt_or_max_ns(&self) -> u64 {
        self.0.srtt_or_max().as_nanos()
    }

    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A minimum in nanoseconds, or `None` before the first measurement.
fn known(time: Duration) -> Option<u64> {
    (time != Duration::MAX).then_some(time.as_nanos())
}

/// The identifier of the subflow in `value`, which is a view or an identifier.
pub(super) fn subflow_id(value: &Bound<'_, PyAny>) -> PyResult<SubflowId> {
    if let Ok(view) = value.cast::<PySubflowView>() {
        return Ok(view.get().0.id);
    }
    if let Ok(id) = value.cast::<PySubflowId>() {
        return Ok(id.get().0);
    }
    let found = described(value);
    Err(PyTypeError::new_err(format!("{found}: name a subflow by its SubflowView or SubflowId")))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySubflowId>()?;
    module.add_class::<PySubflowView>()
}
