//! Remedies against a receive window that fills behind a slow path.
//!
//! Each is a switch of its own. A remedy never writes a congestion window: it names subflows to
//! penalise and the congestion controllers decide what that means for them.

mod opportunistic_retransmission;
mod penalisation;

pub use opportunistic_retransmission::OpportunisticRetransmission;
pub use penalisation::{Penalisation, PenalisationForm};

use core::fmt::Debug;

use anabranch_wire::Instant;

use crate::congestion::ExternalReduction;
use crate::view::{SubflowSet, SubflowView};

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

/// A cure that can be switched on.
pub trait Remedy: Debug + Send {
    /// New data waits, a subflow has room, the shared receive window has none.
    fn on_window_limited(&mut self, context: &RemedyContext<'_>) -> RemedyActions;
    /// Everything was sent, a subflow has room, and the application waits for send buffer.
    fn on_send_buffer_full(&mut self, context: &RemedyContext<'_>) -> RemedyActions;
}
