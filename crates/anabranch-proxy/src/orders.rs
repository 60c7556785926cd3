//! Messages from the process with privileges to the one that parses packets: a line of JSON each.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::policies::Policies;

/// All that the process without privileges has to know at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// User and group of the process without privileges, if they are not the supervisor's.
    pub(crate) owner: Option<(u32, u32)>,
    /// Name of the TUN device.
    pub(crate) device: String,
    /// Uplinks, in order of preference.
    pub(crate) uplinks: Vec<Uplink>,
    /// The key that follows from the secret; `None` for a client without a relay.
    pub(crate) key: Option<[u8; 32]>,
    /// Policies of the connections over the uplinks.
    pub(crate) policies: Policies,
    /// Capture to write to the standard output.
    pub(crate) capture: Option<CaptureOrder>,
    /// Address at which metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// Whether logs name destinations.
    pub(crate) log_destinations: bool,
    /// Client or relay.
    pub(crate) role: Role,
}

/// A capture of the packets on the uplinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CaptureOrder {
    /// Bytes that are kept of each packet; 0 keeps all.
    pub(crate) snap: u32,
    /// Size of the file at which the capture ends.
    pub(crate) limit: u64,
}

/// An uplink and the engine's addresses on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Uplink {
    /// Name of the interface.
    pub(crate) interface: String,
    /// The engine's addresses, one of each family at most. The kernel translates them to those of the
    /// interface.
    pub(crate) addresses: Vec<IpAddr>,
    /// The addresses of families for which the interface is up and has a route.
    pub(crate) usable: Vec<IpAddr>,
    /// Largest IP packet in bytes.
    pub(crate) mtu: u16,
    /// Whether it carries data only if no other is usable.
    pub(crate) backup: bool,
    /// Bytes that it may carry in both directions.
    pub(crate) budget: Option<u64>,
}

/// Observation of the sender of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// Rate of IP packets in bits per second.
    pub(crate) rate: f64,
    /// Smallest round-trip time in seconds.
    pub(crate) min_rtt: f64,
    /// Time in seconds that the queue has added to the round-trip time, in its 95th percentile.
    pub(crate) queue: f64,
    /// Share of the segments that were lost while there was no deep queue; `None` after too few of
    /// them.
    pub(crate) loss: Option<f64>,
}

/// Result of the measurement of an uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Measured {
    /// The link in each direction, as its sender has observed it.
    Links {
        /// From the relay.
        down: Observation,
        /// To the relay.
        up: Observation,
    },
    /// Reason for the lack of a result.
    Problem(String),
}

/// Role of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It takes the connections of programs.
    Client {
        /// Address and port for programs.
        listen: SocketAddr,
        /// The relay's addresses, one of each family at most; without any it connects to destinations
        /// itself.
        relay: Vec<SocketAddr>,
        /// Device that the packets of programs reach, if there is one.
        tun: Option<String>,
    },
    /// It measures the uplinks of a client.
    Measure {
        /// The relay's addresses, one of each family at most.
        relay: Vec<SocketAddr>,
        /// Bytes that all probes together may take.
        budget: u64,
    },
    /// It continues the connections of clients.
    Relay {
        /// Port of the engine.
        port: u16,
        /// Ranges of special addresses that clients may reach.
        allow: Vec<String>,
        /// Ranges of addresses that clients may not reach.
        deny: Vec<String>,
        /// Most connections at a time.
        max_connections: usize,
        /// Most connections of one address at a time.
        max_connections_per_client: usize,
    },
}

/// A change after the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// An uplink came or went, for packets of one family.
    Uplink {
        /// The engine's address.
        address: IpAddr,
        /// Whether it is usable now.
        usable: bool,
    },
    /// Take no further connections, and end when the last has ended.
    Drain,
}
