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
pub enum JitterOrder {
    /// Packets are delivered in the order in which they were sent.
    #[default]
    Fifo,
    /// Packets are delayed independently and may overtake each other: netem's default.
    Reordering,
}

/// A change of a link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
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
