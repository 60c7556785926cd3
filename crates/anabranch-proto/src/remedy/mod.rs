//! Remedies against a receive window that fills behind a slow path.
//!
//! Each is a switch of its own. A remedy never writes a congestion window: it names subflows to
//! penalise and the congestion controllers decide what that means for them.

mod buffer_autotuning;
mod cwnd_cap;
mod mpt_bm;
mod opportunistic_retransmission;
mod penalisation;

pub use buffer_autotuning::BufferAutotuning;
pub use cwnd_cap::CwndCap;
pub use mpt_bm::MptBm;
pub use opportunistic_retransmission::OpportunisticRetransmission;
pub use penalisation::{Penalisation, PenalisationForm};

use core::fmt::Debug;

use anabranch_wire::Instant;

use crate::congestion::ExternalReduction;
use crate::policy::{Entry, Values};
use crate::view::{SubflowSet, SubflowView};

/// A remedy that can be switched on by name.
pub type RemedyEntry = Entry<fn(&Values) -> Box<dyn Remedy>>;

/// All remedies, in the order in which they are asked: a subflow is penalised before its data
/// goes out on another.
pub const ALL: &[RemedyEntry] = &[
    penalisation::ENTRY,
    opportunistic_retransmission::ENTRY,
    buffer_autotuning::ENTRY,
    cwnd_cap::ENTRY,
    mpt_bm::ENTRY,
];

/// The situation: a subflow could send, and may not.
#[derive(Clone, Copy, Debug)]
pub struct RemedyContext<'a> {
    /// Now.
    pub now: Instant,
    /// The connection's subflows; includes closed slots.
    pub subflows: &'a [SubflowView],
    /// Slot of the subflow that has room in its congestion window.
    pub blocked: u8,
    /// Which subflows have carried the oldest data that is not acknowledged at data level, the
    /// segment that everybody waits for.
    pub head_carried_by: SubflowSet,
    /// Is the send buffer full?
    pub send_buffer_full: bool,
}

/// What a remedy asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemedyActions {
    /// Send the oldest unacknowledged data on the blocked subflow too.
    pub reinject: bool,
    /// Reduce the congestion windows of these, in this way.
    pub penalise: Option<(SubflowSet, ExternalReduction)>,
}

/// A buffer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSide {
    /// What was written and is not acknowledged at data level.
    Send,
    /// What may arrive beyond what was read.
    Receive,
}

/// A buffer's size is in question.
#[derive(Clone, Copy, Debug)]
pub struct BufferContext<'a> {
    /// Now.
    pub now: Instant,
    /// Which buffer.
    pub side: BufferSide,
    /// Bytes that left it so far: acknowledged at data level, or read by the application.
    pub progress: u64,
    /// The connection's subflows; includes closed slots.
    pub subflows: &'a [SubflowView],
}

/// A cure that can be switched on.
pub trait Remedy: Debug + Send {
    /// New data waits, a subflow has room, the shared receive window has none.
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        RemedyActions::default()
    }

    /// Everything was sent, a subflow has room, and the application waits for send buffer.
    fn on_send_buffer_full(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        RemedyActions::default()
    }

    /// Most bytes that the subflow may have in flight when new data or a reinjection is
    /// scheduled; `None` for as many as congestion control allows. Asked whenever its view
    /// changes. The congestion window is not touched, and what the subflow retransmits is not
    /// limited.
    fn send_limit(&mut self, _view: &SubflowView) -> Option<u64> {
        None
    }

    /// How large, in bytes, a buffer should be; `None` for the configured size, which it never
    /// exceeds. Asked when the connection begins, and with each segment; a buffer never shrinks.
    fn buffer_target(&mut self, _context: &BufferContext<'_>) -> Option<u64> {
        None
    }
}

/// Two segments: below, a limit would stop the acknowledgements that could lift it (ours).
fn least_limit(view: &SubflowView) -> u64 {
    2 * u64::from(view.mss)
}
