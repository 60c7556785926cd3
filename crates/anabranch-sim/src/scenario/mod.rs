//! Scenarios: what is run, as data.
//!
//! A scenario is written in TOML. This module alone reads it: it fills in the defaults, checks
//! every value, and says in one line what is wrong and what would be right. What comes out has
//! no optional parts left and needs no further checks.
//!
//! **Directions.** A path lies between the client, which opens connections, and the server. Its
//! *forward* direction is from server to client, always: the direction of the data of a
//! `download` and of the acknowledgements of an `upload`. A path's own keys describe forward;
//! rate, delay and limit hold for the reverse direction too unless `[path.reverse]` says
//! otherwise, jitter and loss do not.
//!
//! **Shared bottlenecks.** A path may go `via` another: its packets then cross the other's link
//! as well, between its own link and the server. The other remains a path of its own, which a
//! competing connection may use.

mod checks;
mod chosen;
mod congestion_control;
mod cross_traffic;
mod distribution;
mod entry_schema;
mod error;
mod middlebox;
mod names;
mod policies;
mod policy;
mod queue;
mod remedies;
mod resolve;
mod table;
mod trace;
mod value;
mod workload;
mod write;
mod written;

use std::path::Path as FilePath;

use anabranch_net::units::{Octets, Probability, QueueLimit, Rate};
use anabranch_net::{
    Capacity, GilbertElliottConfig, JitterModel, LinkChange, LinkConfig, ScheduledChange,
    StateChange,
};
use anabranch_wire::{Duration, Instant};

pub use chosen::Chosen;
pub use congestion_control::CongestionControl;
pub use error::ScenarioError;
pub use names::{AppliesTo, Direction, Family, Protocol};
use names::{JitterModelName, StateName};
pub use policies::{Host, PathManager, Remedy, Scheduler};
pub use policy::{OwnNames, Policy};
pub use queue::Queue;
use table::ScenarioTable;

pub use crate::factor::Factor;
pub use crate::workload::Distribution;

/// An experiment: paths between a client and a server, and the connections over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// What it is about, for the reader; may be empty.
    pub description: String,
    /// Simulated time.
    pub duration: Duration,
    /// Time at the beginning that metrics leave out; shorter than the duration.
    pub warm_up: Duration,
    /// Period of the time series, above zero.
    pub sample_interval: Duration,
    /// The paths, at least one, with distinct names.
    pub paths: Vec<Path>,
    /// The connections, at least one, with distinct names.
    pub connections: Vec<Connection>,
    /// UDP traffic beside the connections, with distinct names.
    pub cross_traffic: Vec<CrossTraffic>,
}

/// A path between client and server.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name of the path.
    pub name: String,
    /// From server to client.
    pub forward: PathDirection,
    /// From client to server.
    pub reverse: PathDirection,
    /// What jitter does to the order of packets, in both directions.
    pub jitter_model: JitterModel,
    /// Largest IP packet in octets, from 576.
    pub mtu: u16,
    /// The addresses of both hosts on it.
    pub family: Family,
    /// Loss in bursts, from server to client, beside the random one.
    pub burst_loss: Option<GilbertElliottConfig>,
    /// Which packets the queues of both directions drop although there is room.
    pub queue: Queue,
    /// A path with a lower index whose link this path's packets cross too, on the server's side.
    pub via: Option<usize>,
    /// What stands between the link and the server, the first next to the link.
    pub middleboxes: Vec<Middlebox>,
    /// Changes during the run, in the order in which they are listed.
    pub changes: Vec<PathChange>,
}

/// A middlebox of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Middlebox {
    /// What it does.
    pub chosen: Chosen<anabranch_net::middlebox::Make>,
    /// From when on it is there; before, packets pass it by.
    pub from: Duration,
    /// Until when, later than `from`; `None` is to the end.
    pub until: Option<Duration>,
}

/// A path in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathDirection {
    /// Rate of the link, or the trace that it follows.
    pub capacity: Capacity,
    /// One-way propagation delay.
    pub delay: Duration,
    /// How much may wait in the link's queue.
    pub limit: QueueLimit,
    /// The delay varies uniformly by ± this much.
    pub jitter: Duration,
    /// Probability of losing a packet.
    pub loss: Probability,
}

/// A change of a path at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// When, from the start of the run.
    pub at: Duration,
    /// What changes; something does.
    pub change: LinkChange,
    /// Which direction changes.
    pub applies_to: AppliesTo,
    /// Does the client's host notice that the path goes down or comes up, as when its interface
    /// does?
    pub noticed: bool,
}

/// A connection between the client, which opens it, and the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Name of the connection.
    pub name: String,
    /// The paths that it may use, as indices into [`Scenario::paths`]: distinct, at least one,
    /// and exactly one for [`Protocol::Tcp`]. It is opened over the first.
    pub paths: Vec<usize>,
    /// What it speaks.
    pub protocol: Protocol,
    /// Who sends the workload's data.
    pub direction: Direction,
    /// When it is opened, from the start of the run; before its end.
    pub start: Duration,
    /// What the hosts do where hosts differ.
    pub host: Host,
    /// Send buffer of each host, in octets at data level, as `host` counts them; above zero.
    pub send_buffer: Octets,
    /// Receive buffer of each host, in octets at data level, as `host` counts them; above zero.
    pub receive_buffer: Octets,
    /// Congestion control.
    pub congestion_control: Policy<CongestionControl>,
    /// Scheduler.
    pub scheduler: Policy<Scheduler>,
    /// Path manager.
    pub path_manager: Policy<PathManager>,
    /// The remedies that are switched on, in the order in which they are asked.
    pub remedies: Vec<Remedy>,
    /// Is it found out which subflows share bottlenecks, so that only those are coupled?
    pub shared_bottleneck_detection: Option<SharedBottleneckDetection>,
    /// Does a host keep back a short segment while data is unacknowledged?
    pub nagle: bool,
    /// Idle time after which a host asks whether its peer is still there (RFC 9293 §3.8.4); `None`
    /// for never.
    pub keep_alive: Option<Duration>,
    /// Do the hosts require DSS checksums (RFC 8684 §3.1)?
    pub dss_checksum: bool,
    /// May the peer open further subflows to the address and port of the first (RFC 8684 §3.1, the
    /// "C" flag)?
    pub allow_join_initial_addr_port: bool,
    /// Does the only subflow go back to TCP also when it loses its options late (for hosts of the
    /// engine's: Linux does not notice)?
    pub late_fallback: bool,
    /// Do the hosts use explicit congestion notification (RFC 3168)?
    pub ecn: bool,
    /// Do the hosts use selective acknowledgements (RFC 2018)?
    pub sack: bool,
    /// Do the hosts use timestamps (RFC 7323 §3)?
    pub timestamps: bool,
    /// Does slow start end when the RTT rises (HyStart++, RFC 9406)?
    pub hystart: bool,
    /// What is sent.
    pub workload: Workload,
}

/// UDP traffic that shares a path with the connections and takes no part in them. Its packets are
/// real: they wait in queues, count in the tables of links, and are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossTraffic {
    /// Name of the source.
    pub name: String,
    /// The path that the packets take, as an index into [`Scenario::paths`].
    pub path: usize,
    /// Which way they go.
    pub direction: Direction,
    /// Rate while on, counted in IP packets.
    pub rate: Rate,
    /// Octets of each IP packet, headers included: from 28 to the path's MTU.
    pub packet_size: u16,
    /// When it is on; `None` is always.
    pub periods: Option<Periods>,
}

/// Lengths of periods that take turns, all above zero; the first is an on period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// Of on periods.
    pub on: Distribution<Duration>,
    /// Of off periods.
    pub off: Distribution<Duration>,
}

/// Parameters of shared-bottleneck detection. RFC 8382.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBottleneckDetection {
    /// Losses above this rate show a bottleneck whatever the delays are (p_l).
    pub loss_threshold: Probability,
}

/// What a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Data as fast as the connection takes it.
    Bulk {
        /// How much, above zero; `None` is without end.
        size: Option<Octets>,
    },
    /// Blocks of equal size, one after the other, whose delays are measured.
    Blocks {
        /// Size of a block, above zero.
        block_size: Octets,
        /// How many, above zero; `None` is without end.
        count: Option<u64>,
    },
    /// Blocks of equal size at a constant rate, whose delays are measured.
    Cbr {
        /// The rate at which blocks are due.
        rate: Rate,
        /// Size of a block, above zero.
        block_size: Octets,
        /// How many, above zero; `None` is without end.
        count: Option<u64>,
    },
    /// Bursts that are written at once, whose delays are measured.
    OnOff {
        /// Size of each burst, above zero.
        burst_size: Distribution<Octets>,
        /// Time from the start of each burst to the start of the next, which waits until the stack
        /// has accepted the one before.
        interval: Distribution<Duration>,
        /// How many, above zero; `None` is without end.
        count: Option<u64>,
    },
    /// Requests from the receiver of the data, and responses: rounds whose times are measured,
    /// from the first octet of the request to the last of the responses.
    RequestResponse {
        /// Size of each request, above zero.
        request_size: Distribution<Octets>,
        /// How many responses each request brings, above zero.
        responses: Distribution<u64>,
        /// Size of each response, above zero.
        response_size: Distribution<Octets>,
        /// Time from the end of each round to the next request.
        think_time: Distribution<Duration>,
        /// Least time from the start of each round to the start of the next.
        interval: Distribution<Duration>,
        /// How many rounds, above zero; `None` is without end.
        count: Option<u64>,
    },
}

impl Scenario {
    /// The scenario that `text` describes in TOML. `file` is what error messages call it; the
    /// traces that it names are looked for in the folder of `file`.
    ///
    /// # Errors
    /// If `text` is not TOML, or a key is missing, unknown, or has a value that it cannot have.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let folder = FilePath::new(file).parent().unwrap_or(FilePath::new(""));
        Scenario::from_toml_beside(text, file, folder)
    }

    /// As [`from_toml`](Scenario::from_toml), with traces looked for in `folder`.
    ///
    /// # Errors
    /// As [`from_toml`](Scenario::from_toml).
    pub fn from_toml_beside(
        text: &str,
        file: &str,
        folder: &FilePath,
    ) -> Result<Self, ScenarioError> {
        let document = toml::Deserializer::parse(text)
            .map_err(|error| ScenarioError::syntax(file, text, &error))?;
        let table: ScenarioTable = serde_path_to_error::deserialize(document).map_err(|error| {
            error::describe(error.path(), error.inner().message()).in_file(file)
        })?;
        resolve::scenario(table, folder).map_err(|problem| problem.in_file(file))
    }

    /// The scenario in TOML, normalised: every default is spelled out, quantities are in their
    /// canonical form, and traces are part of it. [`from_toml`](Scenario::from_toml) reads it back
    /// as the same value.
    ///
    /// # Panics
    /// If a connection's path is not an index into the paths, or a count is above 2⁶³ − 1, the
    /// largest integer of TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(&write::table(self)).expect("integers that TOML can hold")
    }

    /// The JSON Schema of the TOML form, as a JSON text.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(ScenarioTable);
        serde_json::to_string_pretty(&schema).expect("a schema is a JSON value")
    }
}

impl Path {
    /// The link from server to client, with its changes counted from the epoch.
    pub fn forward_link(&self) -> LinkConfig {
        self.link(&self.forward, AppliesTo::Forward)
    }

    /// The link from client to server, with its changes counted from the epoch.
    pub fn reverse_link(&self) -> LinkConfig {
        self.link(&self.reverse, AppliesTo::Reverse)
    }

    fn link(&self, direction: &PathDirection, this: AppliesTo) -> LinkConfig {
        let PathDirection { capacity, delay, limit, jitter, loss } = direction.clone();
        let changes = self.changes.iter();
        let changes = changes
            .filter(|change| change.applies_to == AppliesTo::Both || change.applies_to == this);
        let changes = changes
            .map(|change| ScheduledChange { at: Instant::ZERO + change.at, change: change.change });
        let jitter_model = self.jitter_model;
        let burst_loss = self.burst_loss.filter(|_| this == AppliesTo::Forward);
        LinkConfig {
            jitter,
            jitter_model,
            loss,
            burst_loss,
            discipline: self.queue.discipline(),
            changes: changes.collect(),
            ..LinkConfig::new(capacity, delay, limit)
        }
    }
}

impl From<JitterModelName> for JitterModel {
    fn from(name: JitterModelName) -> Self {
        match name {
            JitterModelName::Fifo => JitterModel::Fifo,
            JitterModelName::Reordering => JitterModel::Reordering,
        }
    }
}

impl From<JitterModel> for JitterModelName {
    fn from(model: JitterModel) -> Self {
        match model {
            JitterModel::Fifo => JitterModelName::Fifo,
            JitterModel::Reordering => JitterModelName::Reordering,
        }
    }
}

impl From<StateName> for StateChange {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Up => StateChange::Up,
            StateName::Down => StateChange::Down,
            StateName::Suspend => StateChange::Suspend,
            StateName::Resume => StateChange::Resume,
        }
    }
}

impl From<StateChange> for StateName {
    fn from(change: StateChange) -> Self {
        match change {
            StateChange::Up => StateName::Up,
            StateChange::Down => StateName::Down,
            StateChange::Suspend => StateName::Suspend,
            StateChange::Resume => StateName::Resume,
        }
    }
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
