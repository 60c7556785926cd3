//! A connection: its paths, its direction and its policies.

use std::path::Path as FilePath;

use anabranch_config::written::{self, Positive, Problem, WithUnit, is_default, is_yes, name, yes};
use anabranch_config::{KIND, Selection};
use anabranch_net::Side;
use anabranch_net::units::{ByteCount, Probability};
use anabranch_proto::path_manager::PathManagerConfig;
use anabranch_proto::platform::PlatformConfig;
use anabranch_proto::remedy::RemedyConfig;
use anabranch_proto::scheduler::SchedulerConfig;
use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::congestion_control::CongestionControl;
use super::inferred::Inferred;
use super::names::{Directions, MtuProbing, Protocol};
use super::paths::Paths;
use super::policy::Policy;
use super::remedies::Remedies;
use super::stack::Stack;
use super::{Path, require_before_end};
use crate::workload::Workload;

/// A connection between the client, which opens it, and the server. Buffer sizes count payload bytes
/// at the data level, so "32KiB" is a window of 32768 bytes. `host` can change this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Name of the connection; must be unique (default: `connection-1`, `connection-2` and so on).
    #[serde(default, deserialize_with = "name", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Names of the paths that the connection may use; it opens over the first. By default it may
    /// use all paths except those that other paths go via. A `tcp` connection uses one path, by
    /// default the first of these.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paths: Paths,
    /// Protocol of the connection.
    #[serde(default)]
    pub protocol: Protocol,
    /// Host that sends the workload's data, or `both`.
    #[serde(default)]
    pub direction: Directions,
    /// Time at which the connection opens, counted from the start of the run.
    #[serde(default, with = "WithUnit::<Duration>")]
    pub start: Duration,
    /// Stack whose settings the connection has: `host`, `congestion_control`, `scheduler`,
    /// `path_manager`, `remedies` and `late_fallback`. Keys that the connection states itself come
    /// first. A stack of the scenario is that of all connections that select none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Stack")]
    pub stack: Option<Stack>,
    /// Behaviour of the hosts where TCP implementations differ: "linux", "rfc", or a table with a
    /// kind and parameters. With `{ kind = "linux", buffers = "socket" }`, buffer sizes are those
    /// that a program requests from Linux. Linux doubles both sizes and charges overhead to them.
    /// The receive window becomes 1.23 times the requested size. With Multipath TCP it stays at the
    /// requested size until each subflow has delivered data. A TCP sender can buffer less than twice
    /// the requested size. While the window opens, and for 16 further segments, the receiver
    /// acknowledges each segment at once. Kernel hosts in live runs always count buffers this way.
    /// `tcp_rmem_default`, `tcp_rmem_max` and `tcp_wmem_max` are the sysctl sizes between which Linux
    /// tunes buffers.
    #[serde(default)]
    pub host: PlatformConfig,
    /// Send buffer of each host in bytes at the data level. `host` decides whether the size counts
    /// payload only. Default: 4 MiB. If `host` counts buffers as Linux's sockets do, and for kernel
    /// hosts, the buffer is autotuned by default: it follows the congestion windows up to 4 MiB of
    /// memory for each subflow (`tcp_wmem_max`).
    #[serde(
        default,
        with = "Positive::<Option<ByteCount>>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Positive::<ByteCount>")]
    pub send_buffer: Option<ByteCount>,
    /// Receive buffer of each host in bytes at the data level. `host` decides whether the size counts
    /// payload only. Default: 6 MiB. If `host` counts buffers as Linux's sockets do, and for kernel
    /// hosts, the buffer is autotuned by default: it follows what the application reads in a
    /// round-trip time, up to 6 MiB of memory (`tcp_rmem_max`).
    #[serde(
        default,
        with = "Positive::<Option<ByteCount>>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Positive::<ByteCount>")]
    pub receive_buffer: Option<ByteCount>,
    /// Congestion control: a name, or a table with an uncoupled congestion control for each path
    /// (default: `lia`, or `cubic` for `tcp`).
    #[serde(default, skip_serializing_if = "Inferred::is_missing")]
    pub congestion_control: Inferred<Policy<CongestionControl>>,
    /// Scheduler: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub scheduler: Policy<SchedulerConfig>,
    /// Path manager: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub path_manager: Policy<PathManagerConfig>,
    /// Limits of both hosts on their subflows, as `ip mptcp limits` sets them. Unlimited by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Remedies against a receive window that fills up behind a slow path. Each key is the name of a
    /// remedy. Its value is `true`, the value of the remedy's first parameter, or a table of
    /// parameters.
    // Written even if there are none: without the key, those of the stack would apply.
    #[serde(default, with = "Remedies")]
    pub remedies: Vec<RemedyConfig>,
    /// Detect which subflows share bottlenecks (RFC 8382), and couple only their congestion
    /// controls. Off by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SharedBottleneckDetection")]
    pub shared_bottleneck_detection: Option<SharedBottleneckDetection>,
    /// Whether hosts use Nagle's algorithm, which delays a short segment while data is
    /// unacknowledged.
    #[serde(default = "yes")]
    pub nagle: bool,
    /// Idle time after which a host sends a keep-alive probe on a subflow. It repeats the probe after
    /// each further idle time, and gives the subflow up after 15 probes without an answer (RFC 9293
    /// §3.8.4). By default hosts send no keep-alives.
    #[serde(
        default,
        with = "Positive::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub keep_alive: Option<Duration>,
    /// Whether the hosts require DSS checksums (RFC 8684), which detect changed payload. Off by
    /// default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dss_checksum: bool,
    /// Whether further subflows may go to the address and port of the first subflow. With `false`
    /// (the C flag of RFC 8684 §3.1, for servers behind a load balancer), they can only go to
    /// announced addresses. The server announces an address only if the paths are of both families.
    /// On by default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub allow_join_initial_addr_port: bool,
    /// Whether a connection that never had a second subflow falls back to TCP if its path starts to
    /// drop options mid-connection. With `false`, the host resets the subflow, as RFC 8684 §3.7
    /// requires. The connection then ends unless the path manager opens a new subflow. In live runs
    /// with a kernel host, the value is always `false`, because Linux does not notice the loss of
    /// options.
    #[serde(default = "yes")]
    pub late_fallback: bool,
    /// Whether the hosts use explicit congestion notification (ECN, RFC 3168). Queues that drop
    /// early then mark packets instead. Off by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ecn: bool,
    /// When subflows search for the path MTU with their own data (Linux: `tcp_mtu_probing`). Segments
    /// that are too large for a path are lost; routers that answer need no search.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mtu_probing: MtuProbing,
    /// Whether the hosts send segments at a rate that follows from the congestion window and the
    /// round-trip time, in bursts of at least two, rather than as acknowledgements arrive (Linux: the
    /// queue discipline `fq`). `bbr` and `bbr3` always pace. Off by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pacing: bool,
    /// Whether the hosts use selective acknowledgements (SACK, RFC 2018). On by default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sack: bool,
    /// Whether the hosts use TCP timestamps (RFC 7323). On by default.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub timestamps: bool,
    /// Whether a rising RTT ends slow start (HyStart++, RFC 9406). By default only with `cubic`.
    #[serde(default, skip_serializing_if = "Inferred::is_missing")]
    pub hystart: Inferred<bool>,
    /// Data that the connection carries.
    pub workload: Workload,
}

/// Limits on the subflows of a connection. Linux: `ip mptcp limits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of further subflows of a connection. Hosts refuse joins beyond it. Linux's
    /// default is 2; here the default is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub subflows: Option<u8>,
    /// Maximum number of announced addresses that a host accepts. It opens no subflows to further
    /// ones. Linux's default is 0; here the default is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub add_addr_accepted: Option<u8>,
}

/// Shared-bottleneck detection (RFC 8382), which couples only subflows that share a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedBottleneckDetection {
    /// Loss rate (p_l) above which a subflow counts as passing a bottleneck, whatever its delays.
    #[serde(default = "default_loss_threshold", with = "WithUnit::<Probability>")]
    pub loss_threshold: Probability,
}

impl Connection {
    /// Fill in defaults that depend on other keys, and check constraints between keys. The
    /// connection has this `index` in a scenario with these `paths` and this `duration`.
    pub(super) fn complete(
        &mut self,
        index: usize,
        paths: &[Path],
        duration: Duration,
    ) -> Result<(), Problem> {
        if self.name.is_empty() {
            self.name = format!("connection-{}", index + 1);
        }
        require_before_end("start", self.start, duration)?;
        let is_tcp = self.protocol == Protocol::Tcp;
        self.paths.find(paths, is_tcp).map_err(|problem| problem.below("paths"))?;
        self.complete_congestion_control()?;
        self.find_path_of_manager()?;
        self.require_one_direction()?;
        self.require_one_destination(paths)
    }

    /// The name of the flow whose data `sender` sends.
    pub(crate) fn flow_name(&self, sender: Side) -> String {
        match (self.direction, sender) {
            (Directions::Both, Side::Server) => format!("{} download", self.name),
            (Directions::Both, Side::Client) => format!("{} upload", self.name),
            _ => self.name.clone(),
        }
    }

    /// The keys whose values are not those of the connection's stack, if it has one.
    pub fn departures(&self) -> Vec<&'static str> {
        let Some(keys) = self.stack.map(|stack| stack.keys(self.protocol == Protocol::Tcp)) else {
            return Vec::new();
        };
        let mut table = keys.clone();
        let workload = Table::from_iter([(KIND.to_owned(), "bulk".into())]);
        table.insert("workload".to_owned(), workload.into());
        let stack: Connection = written::read(table).expect("a stack has the keys of a connection");
        let differs = [
            ("host", stack.host != self.host),
            ("congestion_control", stack.congestion_control != self.congestion_control),
            ("scheduler", stack.scheduler != self.scheduler),
            ("path_manager", stack.path_manager != self.path_manager),
            ("remedies", stack.remedies != self.remedies),
            ("late_fallback", stack.late_fallback != self.late_fallback),
        ];
        let differs = differs.into_iter().filter(|(key, is)| *is && keys.contains_key(*key));
        differs.map(|(key, _)| key).collect()
    }

    /// Give the Python files of the user's own policies their whole names.
    pub(super) fn find_policy_files(&mut self, folder: &FilePath) {
        self.scheduler.find_file(folder);
        self.congestion_control.find_file(folder);
        self.path_manager.find_file(folder);
    }

    /// Reject both directions for a workload in which the receiver of the data also writes.
    fn require_one_direction(&self) -> Result<(), Problem> {
        if self.direction != Directions::Both || !self.workload.answers() {
            return Ok(());
        }
        let problem =
            "both: the requests already go the other way; write \"download\" or \"upload\"";
        Err(Problem::new("direction", problem.to_owned()))
    }

    fn complete_congestion_control(&mut self) -> Result<(), Problem> {
        let default = if self.protocol == Protocol::Tcp { "cubic" } else { "lia" };
        self.congestion_control.infer(|| CongestionControl::named(default).into());
        let mut hystart = false;
        if let Policy::BuiltIn(built_in) = &*self.congestion_control {
            let checked = built_in.check(self.paths.used());
            checked.map_err(|problem| problem.below("congestion_control"))?;
            hystart = built_in.has_hystart();
        }
        self.hystart.infer(|| hystart);
        self.require_hystart()
    }

    /// Reject HyStart++ for congestion controls that have their own rule to end slow start.
    fn require_hystart(&self) -> Result<(), Problem> {
        let name = match &*self.congestion_control {
            Policy::BuiltIn(built_in) => built_in.without_hystart(),
            Policy::Custom(name) => Some(name.as_str()),
        };
        let Some(name) = name.filter(|_| *self.hystart) else { return Ok(()) };
        let problem = format!("true: {name} has its own rule to end slow start; remove this key");
        Err(Problem::new("hystart", problem))
    }

    fn find_path_of_manager(&mut self) -> Result<(), Problem> {
        let used = self.paths.used();
        let path_manager = self.path_manager.built_in_mut();
        let Some((key, path)) = path_manager.and_then(|manager| manager.path_mut()) else {
            return Ok(());
        };
        let found = used.find(path);
        *path = found.map_err(|text| Problem::new(format!("path_manager.{key}"), text))?;
        Ok(())
    }

    /// Reject paths of both families, or to different addresses of the server, if the path manager
    /// ignores announced addresses. It would use only the paths to the first address.
    fn require_one_destination(&self, paths: &[Path]) -> Result<(), Problem> {
        let Policy::BuiltIn(selected) = &self.path_manager else { return Ok(()) };
        let name = selected.name();
        let used = self.paths.iter().map(|index| &paths[*index]);
        if selected.part().heeds_announcements() || !lead_to_different_addresses(used.clone()) {
            return Ok(());
        }
        let first = paths[self.paths[0]].family;
        let (what, key) = match used.clone().all(|path| path.family == first) {
            true => ("to different addresses of the server", "server_addresses"),
            false => ("of both families", "family"),
        };
        let problem = format!(
            "{name:?}: cannot use paths {what}; give all paths of the connection the same {key}, or \
             write path_manager = \"full_mesh\""
        );
        Err(Problem::new("path_manager", problem))
    }
}

/// Returns `true` if the paths lead to different addresses of the server.
fn lead_to_different_addresses<'a>(mut paths: impl Iterator<Item = &'a Path>) -> bool {
    let addresses = |path: &'a Path| (path.family, &path.routing.server_addresses);
    let first = paths.next().map(addresses);
    paths.any(|path| Some(addresses(path)) != first)
}

/// Implementations of RFC 8382 use 5% or 10%.
fn default_loss_threshold() -> Probability {
    Probability::from_parts_per_billion(50_000_000)
}
