//! The states of a subflow, as the tables name them.

use anabranch_proto::{Activity, Reason};
use anabranch_table::Named;

/// The state of a subflow: the engine's [`Activity`], and what only an observer of the network
/// knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum SubflowState {
    Sending,
    CongestionWindow,
    Paced,
    Remedy,
    Recovery,
    Silent,
    Standby,
    Opening,
    ReceiveWindow,
    SendBuffer,
    Scheduler,
    Application,
    Reader,
    FallenBack,
    Closed,
    Absent,
}

impl Named for SubflowState {
    const NAMES: &'static [&'static str] = &[
        "sending",
        "congestion_window",
        "paced",
        "remedy",
        "recovery",
        "silent",
        "standby",
        "opening",
        "receive_window",
        "send_buffer",
        "scheduler",
        "application",
        "reader",
        "fallen_back",
        "closed",
        "absent",
    ];

    fn index(self) -> u8 {
        self as u8
    }
}

/// A state, and the slot of the subflow that blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StateSpan {
    pub(crate) state: SubflowState,
    pub(crate) behind: Option<u8>,
}

impl StateSpan {
    pub(crate) fn new(state: SubflowState) -> Self {
        StateSpan { state, behind: None }
    }

    /// Rank among the subflows of a link. The one that comes closest to sending explains an idle
    /// link.
    pub(crate) fn rank(self) -> u8 {
        const BY_CLOSENESS: [SubflowState; 16] = [
            SubflowState::Sending,
            SubflowState::Paced,
            SubflowState::CongestionWindow,
            SubflowState::Recovery,
            SubflowState::Remedy,
            SubflowState::ReceiveWindow,
            SubflowState::SendBuffer,
            SubflowState::Scheduler,
            SubflowState::Silent,
            SubflowState::Reader,
            SubflowState::Application,
            SubflowState::Standby,
            SubflowState::Opening,
            SubflowState::FallenBack,
            SubflowState::Closed,
            SubflowState::Absent,
        ];
        let rank = BY_CLOSENESS.iter().position(|state| *state == self.state);
        rank.expect("the list has all states") as u8
    }
}

impl From<Reason> for StateSpan {
    fn from(reason: Reason) -> Self {
        let state = match reason.activity {
            Activity::Opening => SubflowState::Opening,
            Activity::CongestionWindow => SubflowState::CongestionWindow,
            Activity::Paced => SubflowState::Paced,
            Activity::Remedy => SubflowState::Remedy,
            Activity::Recovery => SubflowState::Recovery,
            Activity::Silent => SubflowState::Silent,
            Activity::Standby => SubflowState::Standby,
            Activity::ReceiveWindow => SubflowState::ReceiveWindow,
            Activity::SendBuffer => SubflowState::SendBuffer,
            Activity::Scheduler => SubflowState::Scheduler,
            Activity::Application => SubflowState::Application,
            Activity::Reader => SubflowState::Reader,
            Activity::FallenBack => SubflowState::FallenBack,
            Activity::Closed => SubflowState::Closed,
        };
        StateSpan { state, behind: reason.behind.map(u8::from) }
    }
}
