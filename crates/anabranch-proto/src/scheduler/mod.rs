//! Schedulers: which subflow carries the next data, or whether to wait. RFC 8684 §3.3.8 leaves
//! this to the sender.

mod min_rtt;

pub use min_rtt::MinRtt;

use core::fmt::Debug;

use anabranch_wire::Instant;

use crate::view::{SubflowId, SubflowSet, SubflowView};

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Data that was never sent: `octets` of it wait.
    NewData {
        /// Octets never sent.
        octets: u64,
    },
    /// Data that was sent, and must go out again on another subflow.
    Reinjection {
        /// The subflows that have carried it.
        already_on: SubflowSet,
    },
}

/// All that a scheduler may look at.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    /// Now.
    pub now: Instant,
    /// What is to be sent.
    pub pending: Pending,
    /// The connection's subflows; includes closed slots.
    pub subflows: &'a [SubflowView],
    /// Octets that the shared receive window still admits.
    pub window_room: u64,
}

/// What a scheduler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send the next segment on this subflow.
    Send(SubflowId),
    /// Send it on all of these.
    Duplicate(SubflowSet),
    /// Send nothing now. Asked again at `until`, and before that whenever a segment arrives or
    /// the application writes.
    Wait {
        /// When to ask again at the latest.
        until: Option<Instant>,
    },
}

/// Chooses subflows.
pub trait Scheduler: Debug + Send {
    /// Choose for the next segment. Called again for each segment.
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision;
}
