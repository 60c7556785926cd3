//! A scenario as written: the tables and keys of the file, with what may be left out.
//!
//! The comments here are the descriptions in the JSON Schema.

use anabranch_net::units::{Octets, Probability, QueueLimit, Rate};
use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chosen::Choice;
use super::congestion_control::CongestionControlValue;
use super::cross_traffic::CrossTrafficTable;
use super::middlebox::MiddleboxTable;
use super::names::{AppliesTo, Direction, Family, JitterModelName, Protocol, StateName};
use super::policies::{Hosts, PathManagers, Schedulers};
use super::policy::Policy;
use super::queue::QueueTable;
use super::remedies::RemediesTable;
use super::trace::TraceValue;
use super::workload::WorkloadTable;
use super::written::Written;

/// An experiment: paths between a client and a server, and the connections over them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Scenario")]
pub(super) struct ScenarioTable {
    /// Name of the scenario.
    pub(super) name: String,
    /// What it is about, for the reader.
    #[serde(default)]
    pub(super) description: String,
    /// Simulated time.
    pub(super) duration: Written<Duration>,
    /// Time at the beginning that metrics leave out; shorter than the duration.
    #[serde(default)]
    pub(super) warm_up: Written<Duration>,
    /// Period of the time series.
    #[serde(default = "default_sample_interval")]
    pub(super) sample_interval: Written<Duration>,
    /// The paths; at least one.
    #[serde(rename = "path")]
    #[schemars(length(min = 1))]
    pub(super) paths: Vec<PathTable>,
    /// The connections; at least one.
    #[serde(rename = "connection")]
    #[schemars(length(min = 1))]
    pub(super) connections: Vec<ConnectionTable>,
    /// UDP traffic beside the connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) cross_traffic: Vec<CrossTrafficTable>,
}

/// A path. Its own keys describe the forward direction, which is always from server to client;
/// `reverse` describes the other one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Path")]
pub(super) struct PathTable {
    /// Name of the path; no two are the same.
    pub(super) name: String,
    /// Rate of the link; either this or `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Rate>")]
    pub(super) rate: Option<Written<Rate>>,
    /// When the link delivers, instead of `rate`: the name of a Mahimahi packet-delivery trace,
    /// relative to the scenario's folder, or its content. Each opportunity delivers 1504 octets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TraceValue")]
    pub(super) trace: Option<TraceValue>,
    /// One-way propagation delay.
    pub(super) delay: Written<Duration>,
    /// How much may wait in the link's queue, the packet in transmission not counted. A limit in
    /// time counts at the link's rate, or at the mean rate of its trace.
    pub(super) limit: Written<QueueLimit>,
    /// The delay varies uniformly by ± this much, forward only.
    #[serde(default)]
    pub(super) jitter: Written<Duration>,
    /// What jitter does to the order of packets, in both directions.
    #[serde(default)]
    pub(super) jitter_model: JitterModelName,
    /// Probability of losing a packet, forward only.
    #[serde(default)]
    pub(super) loss: Written<Probability>,
    /// Largest IP packet, from 576B to 65535B.
    #[serde(default = "default_mtu")]
    pub(super) mtu: Written<Octets>,
    /// The addresses of both hosts on this path. A connection is opened over its first path; the
    /// server announces its address of the other family, and the client joins from there.
    #[serde(default)]
    pub(super) family: Family,
    /// Loss in bursts, beside `loss`, forward only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BurstLossTable")]
    pub(super) burst_loss: Option<BurstLossTable>,
    /// Which packets the queues of both directions drop although there is room.
    #[serde(default)]
    pub(super) queue: QueueTable,
    /// Name of a path listed before whose link this path's packets cross too, on the server's
    /// side: a shared bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) via: Option<String>,
    /// The direction from client to server.
    #[serde(default)]
    pub(super) reverse: ReverseTable,
    /// Middleboxes between the link and the server, the first next to the link.
    #[serde(default, rename = "middlebox", skip_serializing_if = "Vec::is_empty")]
    pub(super) middleboxes: Vec<MiddleboxTable>,
    /// Changes during the run.
    #[serde(default, rename = "change")]
    pub(super) changes: Vec<ChangeTable>,
}

/// A channel with a good and a bad state (Gilbert and Elliott); netem's `gemodel`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "BurstLoss")]
pub(super) struct BurstLossTable {
    /// Probability, per packet, of going from good to bad.
    pub(super) to_bad: Written<Probability>,
    /// Probability, per packet, of going from bad to good.
    pub(super) to_good: Written<Probability>,
    /// Probability of losing a packet in the bad state.
    #[serde(default = "certain")]
    pub(super) loss_in_bad: Written<Probability>,
    /// Probability of losing a packet in the good state.
    #[serde(default)]
    pub(super) loss_in_good: Written<Probability>,
}

/// The reverse direction of a path, from client to server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Reverse")]
pub(super) struct ReverseTable {
    /// Rate of the link; by default the forward rate or trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Rate>")]
    pub(super) rate: Option<Written<Rate>>,
    /// When the link delivers, instead of `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TraceValue")]
    pub(super) trace: Option<TraceValue>,
    /// One-way propagation delay; by default the forward one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    pub(super) delay: Option<Written<Duration>>,
    /// How much may wait in the link's queue; by default the forward limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<QueueLimit>")]
    pub(super) limit: Option<Written<QueueLimit>>,
    /// The delay varies uniformly by ± this much.
    #[serde(default)]
    pub(super) jitter: Written<Duration>,
    /// Probability of losing a packet.
    #[serde(default)]
    pub(super) loss: Written<Probability>,
}

/// A change of a path at a given time: at least one key besides `at` and `applies_to`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Change")]
pub(super) struct ChangeTable {
    /// When, from the start of the run.
    pub(super) at: Written<Duration>,
    /// New rate; the packet in transmission finishes at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Rate>")]
    pub(super) rate: Option<Written<Rate>>,
    /// New delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    pub(super) delay: Option<Written<Duration>>,
    /// New jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    pub(super) jitter: Option<Written<Duration>>,
    /// New loss probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Probability>")]
    pub(super) loss: Option<Written<Probability>>,
    /// New state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StateName")]
    pub(super) state: Option<StateName>,
    /// Which direction changes.
    #[serde(default)]
    pub(super) applies_to: AppliesTo,
    /// With `state` only: the client's host notices that the path goes `down` or comes `up`, as
    /// when its interface does, and tells the path managers; by default false.
    #[serde(default)]
    pub(super) noticed: bool,
}

/// A connection between the client, which opens it, and the server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Connection")]
pub(super) struct ConnectionTable {
    /// Name of the connection, by default `connection-1`, `connection-2` and so on; no two are
    /// the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) name: Option<String>,
    /// Names of the paths that it may use. It is opened over the first. By default all paths
    /// that no other goes via, or for `tcp`, which uses one path, the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub(super) paths: Option<Vec<String>>,
    /// What it speaks.
    #[serde(default)]
    pub(super) protocol: Protocol,
    /// Who sends the data.
    #[serde(default)]
    pub(super) direction: Direction,
    /// When it is opened, from the start of the run.
    #[serde(default)]
    pub(super) start: Written<Duration>,
    /// What the hosts do where hosts differ: "linux", "rfc", or a table with a kind and parameters.
    /// With `{ kind = "linux", buffers = "socket" }` buffers are what a program asks Linux for: it
    /// doubles both and counts overhead, so that the window is 1.23 times as much (over Multipath
    /// TCP once each subflow has brought data, and as much before), and TCP sends less than twice
    /// as much. While the window opens every segment is acknowledged at once, and 16 more. Linux
    /// itself, in live runs, always counts so.
    #[serde(default)]
    pub(super) host: Choice<Hosts>,
    /// Send buffer of each host, in octets at data level: of payload, unless `host` counts
    /// otherwise.
    #[serde(default = "default_send_buffer")]
    pub(super) send_buffer: Written<Octets>,
    /// Receive buffer of each host, in octets at data level: of payload, unless `host` counts
    /// otherwise.
    #[serde(default = "default_receive_buffer")]
    pub(super) receive_buffer: Written<Octets>,
    /// Congestion control: a name, or a table with an uncoupled one for each path; by default
    /// `lia`, or `cubic` for `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Policy<CongestionControlValue>")]
    pub(super) congestion_control: Option<Policy<CongestionControlValue>>,
    /// Scheduler: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub(super) scheduler: Policy<Choice<Schedulers>>,
    /// Path manager: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub(super) path_manager: Policy<Choice<PathManagers>>,
    /// What is done against a receive window that fills behind a slow path: by the names of the
    /// remedies, `true`, the value of the first parameter, or a table of parameters.
    #[serde(default, skip_serializing_if = "RemediesTable::is_empty")]
    pub(super) remedies: RemediesTable,
    /// Find out which subflows share bottlenecks (RFC 8382), and couple only those in congestion
    /// control. By default not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SharedBottleneckDetectionTable")]
    pub(super) shared_bottleneck_detection: Option<SharedBottleneckDetectionTable>,
    /// Does a host keep back a short segment while data is unacknowledged?
    #[serde(default = "default_true")]
    pub(super) nagle: bool,
    /// Idle time after which a host asks its peer whether it is still there, once each time, and
    /// gives a subflow up after 15 probes without an answer (RFC 9293 §3.8.4). By default it never
    /// asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    pub(super) keep_alive: Option<Written<Duration>>,
    /// Do the hosts require checksums of what each segment carries (RFC 8684, the DSS checksum)?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) dss_checksum: bool,
    /// May further subflows be opened to the address and port of the first? If not (RFC 8684 §3.1,
    /// the "C" flag, for servers behind a load balancer), only to announced ones, and the server
    /// announces one only where the paths are of both families.
    #[serde(default = "default_true", skip_serializing_if = "is_true")]
    pub(super) allow_join_initial_addr_port: bool,
    /// Does a connection on its only subflow go back to TCP when the path begins to drop options
    /// late? Otherwise it ends, as RFC 8684 §3.7 has it, and as it does when the peer is Linux.
    #[serde(default = "default_true")]
    pub(super) late_fallback: bool,
    /// Do the hosts use explicit congestion notification (ECN, RFC 3168)? Queues that drop early
    /// then mark packets instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ecn: bool,
    /// Do the hosts use selective acknowledgements (SACK, RFC 2018)?
    #[serde(default = "default_true", skip_serializing_if = "is_true")]
    pub(super) sack: bool,
    /// Do the hosts use TCP timestamps (RFC 7323)?
    #[serde(default = "default_true", skip_serializing_if = "is_true")]
    pub(super) timestamps: bool,
    /// Leave slow start when the RTT rises (HyStart++, RFC 9406); by default with `cubic` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(super) hystart: Option<bool>,
    /// What is sent.
    pub(super) workload: WorkloadTable,
}

/// Shared-bottleneck detection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "SharedBottleneckDetection")]
pub(super) struct SharedBottleneckDetectionTable {
    /// Losses above this rate show a bottleneck whatever the delays are (p_l); by default 5%.
    #[serde(default = "default_loss_threshold")]
    pub(super) loss_threshold: Written<Probability>,
}

/// Implementations of RFC 8382 have 5% or 10%.
fn default_loss_threshold() -> Written<Probability> {
    Written(Probability::from_parts_per_billion(50_000_000))
}

fn default_sample_interval() -> Written<Duration> {
    Written(Duration::from_millis(100))
}

fn default_mtu() -> Written<Octets> {
    Written(Octets::new(1_500))
}

fn default_send_buffer() -> Written<Octets> {
    Written(Octets::new(4 << 20))
}

fn default_receive_buffer() -> Written<Octets> {
    Written(Octets::new(6 << 20))
}

fn certain() -> Written<Probability> {
    Written(Probability::ONE)
}

fn default_true() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}
