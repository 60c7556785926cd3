//! Values that a scenario selects by name.

use anabranch_net::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Multipath TCP, RFC 8684.
    #[default]
    Mptcp,
    /// Plain TCP over one path.
    Tcp,
}

/// Host that sends data.
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

/// Hosts of a connection that send the workload's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// The server sends, in the forward direction of the paths.
    #[default]
    Download,
    /// The client sends, in the reverse direction of the paths.
    Upload,
    /// Both hosts send at the same time, each as much as the workload says. The tables of a run then
    /// have a row for each direction, named `NAME download` and `NAME upload`.
    Both,
}

impl Directions {
    /// The hosts that send.
    pub fn senders(self) -> &'static [Side] {
        match self {
            Directions::Download => &[Side::Server],
            Directions::Upload => &[Side::Client],
            Directions::Both => &[Side::Server, Side::Client],
        }
    }
}

/// When subflows search for the path MTU with their own data. RFC 4821, RFC 8899.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MtuProbing {
    /// Never (Linux: 0).
    #[default]
    Off,
    /// Once retransmissions have remained unanswered for three seconds (Linux: 1).
    OnBlackHole,
    /// From the start (Linux: 2).
    Always,
}

impl MtuProbing {
    /// The value of Linux's sysctl `tcp_mtu_probing`.
    pub fn sysctl(self) -> &'static str {
        match self {
            MtuProbing::Off => "0",
            MtuProbing::OnBlackHole => "1",
            MtuProbing::Always => "2",
        }
    }
}

impl From<MtuProbing> for anabranch_proto::config::MtuProbing {
    fn from(probing: MtuProbing) -> Self {
        match probing {
            MtuProbing::Off => Self::Off,
            MtuProbing::OnBlackHole => Self::OnBlackHole,
            MtuProbing::Always => Self::Always,
        }
    }
}

/// Address family of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Whether jitter can reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JitterOrder {
    /// The link delivers packets in the order in which they were sent.
    #[default]
    Fifo,
    /// Each packet has its own delay, so packets may overtake each other (netem's default).
    Reordering,
}

/// A change of a link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// The link carries packets again.
    Up,
    /// The link loses the packets inside it, and every packet that arrives until `up`.
    Down,
    /// The transmitter pauses and packets queue. Packets in flight still arrive.
    Suspend,
    /// The transmitter continues.
    Resume,
}

/// Directions of a path that a change applies to.
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
