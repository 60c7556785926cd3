//! What a scenario chooses by name.

use anabranch_net::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Multipath TCP, RFC 8684.
    #[default]
    Mptcp,
    /// Plain TCP over one path.
    Tcp,
}

/// Which host of a connection sends the workload's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The server sends, in the forward direction of the paths.
    #[default]
    Download,
    /// The client sends, in the reverse direction of the paths.
    Upload,
}

impl Direction {
    /// The host that sends.
    pub fn sender(self) -> Side {
        match self {
            Direction::Download => Side::Server,
            Direction::Upload => Side::Client,
        }
    }
}

/// The addresses of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// What jitter does to the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JitterModelName {
    /// Packets are delivered in the order in which they were sent.
    #[default]
    Fifo,
    /// Packets are delayed independently and may overtake each other: netem's default.
    Reordering,
}

/// A change of a link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateName {
    /// Packets are carried again.
    Up,
    /// Packets inside are lost, and so is every packet offered until `up`.
    Down,
    /// The transmitter pauses and packets queue; those under way still arrive.
    Suspend,
    /// The transmitter continues where it paused.
    Resume,
}

/// The directions of a path that a change applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliesTo {
    /// From server to client.
    Forward,
    /// From client to server.
    Reverse,
    /// Both directions.
    #[default]
    Both,
}

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkloadKind {
    /// Data as fast as the connection takes it.
    Bulk,
    /// Blocks of equal size, one after the other, whose delays are measured.
    Blocks,
    /// Blocks of equal size at a constant rate, whose delays are measured.
    Cbr,
    /// Bursts with a time between them, whose delays are measured.
    OnOff,
    /// Requests from the receiver of the data and the responses that they bring: a closed loop,
    /// whose rounds are measured.
    RequestResponse,
}

impl WorkloadKind {
    /// The kind as it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            WorkloadKind::Bulk => "bulk",
            WorkloadKind::Blocks => "blocks",
            WorkloadKind::Cbr => "cbr",
            WorkloadKind::OnOff => "on_off",
            WorkloadKind::RequestResponse => "request_response",
        }
    }
}
