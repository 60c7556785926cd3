//! The states of a subflow, as the tables name them.

use anabranch_proto::{Activity, Reason};
use anabranch_table::Named;

/// The state of a subflow: the engine's [`Activity`], and what only an observer of the network
/// knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum State {
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

impl Named for State {
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
    pub(crate) state: State,
    pub(crate) behind: Option<u8>,
}

impl StateSpan {
    pub(crate) fn new(state: State) -> Self {
        StateSpan { state, behind: None }
    }

    /// Rank among the subflows of a link. The one that comes closest to sending explains an idle
    /// link.
    pub(crate) fn rank(self) -> u8 {
        const BY_CLOSENESS: [State; 16] = [
            State::Sending,
            State::Paced,
            State::CongestionWindow,
            State::Recovery,
            State::Remedy,
            State::ReceiveWindow,
            State::SendBuffer,
            State::Scheduler,
            State::Silent,
            State::Reader,
            State::Application,
            State::Standby,
            State::Opening,
            State::FallenBack,
            State::Closed,
            State::Absent,
        ];
        let rank = BY_CLOSENESS.iter().position(|state| *state == self.state);
        rank.expect("the list has all states") as u8
    }
}

impl From<Reason> for StateSpan {
    fn from(reason: Reason) -> Self {
        let state = match reason.activity {
            Activity::Opening => State::Opening,
            Activity::CongestionWindow => State::CongestionWindow,
            Activity::Paced => State::Paced,
            Activity::Remedy => State::Remedy,
            Activity::Recovery => State::Recovery,
            Activity::Silent => State::Silent,
            Activity::Standby => State::Standby,
            Activity::ReceiveWindow => State::ReceiveWindow,
            Activity::SendBuffer => State::SendBuffer,
            Activity::Scheduler => State::Scheduler,
            Activity::Application => State::Application,
            Activity::Reader => State::Reader,
            Activity::FallenBack => State::FallenBack,
            Activity::Closed => State::Closed,
        };
        StateSpan { state, behind: reason.behind.map(u8::from) }
    }
}
