//! Remedies against a receive window that fills behind a slow path.
//!
//! Each remedy is switched on separately. A remedy never writes a congestion window. It names the
//! subflows to penalise, and their congestion controls decide how to reduce the window.

mod buffer_autotuning;
mod cwnd_cap;
mod mpt_bm;
mod opportunistic_retransmission;
mod penalisation;

pub use buffer_autotuning::{BufferAutotuning, BufferAutotuningConfig};
pub use cwnd_cap::{CwndCap, CwndCapConfig};
pub use mpt_bm::{MptBm, MptBmConfig};
pub use opportunistic_retransmission::{
    OpportunisticRetransmission, OpportunisticRetransmissionConfig,
};
pub use penalisation::{
    Pause, Penalisation, PenalisationConfig, PenalisationForm, PenalisationFormName, Slower,
};

use core::fmt::Debug;

use anabranch_config::parts;
use anabranch_wire::Instant;

use crate::congestion::ExternalReduction;
use crate::view::{Slot, SubflowSet, SubflowView};

parts! {
    /// A remedy with its parameters. The engine asks remedies in this order: a subflow is penalised
    /// before another subflow reinjects its data.
    pub enum RemedyConfig: "remedy", dyn BuildRemedy {
        Penalisation(PenalisationConfig),
        OpportunisticRetransmission(OpportunisticRetransmissionConfig),
        BufferAutotuning(BufferAutotuningConfig),
        CwndCap(CwndCapConfig),
        MptBm(MptBmConfig),
    }
}

/// Parameters of a remedy, and its constructor.
pub trait BuildRemedy {
    /// Creates the remedy.
    fn build(&self) -> Box<dyn Remedy>;
}

/// The situation in which the engine asks a remedy: a subflow has room but may not send.
#[derive(Clone, Copy, Debug)]
pub struct RemedyContext<'a> {
    /// The current time.
    pub now: Instant,
    /// The connection's subflows, including closed slots.
    pub subflows: &'a [SubflowView],
    /// Slot of the subflow that has room in its congestion window.
    pub blocked: Slot,
    /// The subflows that have carried the oldest data unacknowledged at the data level, which
    /// blocks the window.
    pub head_carried_by: SubflowSet,
    /// Whether the send buffer is full.
    pub send_buffer_full: bool,
}

/// The actions that a remedy requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemedyActions {
    /// Reinject the oldest unacknowledged data on the blocked subflow.
    pub reinject: bool,
    /// Reduce the congestion windows of these subflows in this way.
    pub penalise: Option<(SubflowSet, ExternalReduction)>,
}

/// A buffer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSide {
    /// Data that was written and is not acknowledged at the data level.
    Send,
    /// Data that may arrive beyond the data that the application has read.
    Receive,
}

/// The state on which a remedy bases the size of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferContext<'a> {
    /// The current time.
    pub now: Instant,
    /// The buffer in question.
    pub side: BufferSide,
    /// Bytes that have left the buffer so far: acknowledged at the data level, or read by the
    /// application.
    pub progress: u64,
    /// The connection's subflows, including closed slots.
    pub subflows: &'a [SubflowView],
}

/// A cure for a full window or send buffer, which users can switch on.
pub trait Remedy: Debug + Send {
    /// New data waits and a subflow has room, but the shared receive window is full.
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        RemedyActions::default()
    }

    /// A subflow has room and all written data was sent, but the application waits for room in the
    /// send buffer.
    fn on_send_buffer_full(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        RemedyActions::default()
    }

    /// Maximum number of bytes in flight at which the subflow may send new data or reinjections;
    /// `None` leaves the limit to congestion control. The engine asks whenever the subflow's view
    /// changes. The congestion window stays the same, and the subflow's own retransmissions are not
    /// limited.
    fn send_limit(&mut self, _view: &SubflowView) -> Option<u64> {
        None
    }

    /// Size in bytes that a buffer should have; `None` for the configured size, which is also the
    /// maximum. The engine asks when the connection begins and with each segment. A buffer never
    /// shrinks.
    fn buffer_target(&mut self, _context: &BufferContext<'_>) -> Option<u64> {
        None
    }
}

/// Two segments. A smaller limit would stop the acknowledgements that could raise it (this
/// project).
fn least_limit(view: &SubflowView) -> u64 {
    2 * u64::from(view.mss)
}
