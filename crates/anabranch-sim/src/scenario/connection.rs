//! A connection: between which hosts, over which paths, with which policies.

use anabranch_net::units::{ByteCount, Probability};
use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion_control::CongestionControl;
use super::inferred::Inferred;
use super::names::{Direction, Protocol};
use super::paths::Paths;
use super::policies::{Host, PathManager, Remedy, Scheduler};
use super::policy::Policy;
use super::remedies::Remedies;
use super::{Path, require_before_end};
use crate::workload::Workload;
use crate::written::{Positive, Problem, Written, is_default, is_yes, name, yes};

/// A connection between the client, which opens it, and the server. Buffers are counted in payload
/// bytes at data level, so "32KiB" is a window of 32768 bytes, unless `host` counts otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Name of the connection, by default `connection-1`, `connection-2` and so on; no two are
    /// the same.
    #[serde(default, deserialize_with = "name", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Names of the paths that it may use. It is opened over the first. By default all paths
    /// that no other goes via, or for `tcp`, which uses one path, the first of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paths: Paths,
    /// What it speaks.
    #[serde(default)]
    pub protocol: Protocol,
    /// Who sends the data.
    #[serde(default)]
    pub direction: Direction,
    /// When it is opened, from the start of the run.
    #[serde(default, with = "Written::<Duration>")]
    pub start: Duration,
    /// What the hosts do where hosts differ: "linux", "rfc", or a table with a kind and parameters.
    /// With `{ kind = "linux", buffers = "socket" }` buffers are what a program asks Linux for: it
    /// doubles both and counts overhead, so that the window is 1.23 times as much (over Multipath
    /// TCP once each subflow has brought data, and as much before), and TCP sends less than twice
    /// as much. While the window opens every segment is acknowledged at once, and 16 more. Linux
    /// itself, in live runs, always counts so.
    #[serde(default)]
    pub host: Host,
    /// Send buffer of each host, in bytes at data level: of payload, unless `host` counts
    /// otherwise.
    #[serde(default = "default_send_buffer", with = "Positive::<ByteCount>")]
    pub send_buffer: ByteCount,
    /// Receive buffer of each host, in bytes at data level: of payload, unless `host` counts
    /// otherwise.
    #[serde(default = "default_receive_buffer", with = "Positive::<ByteCount>")]
    pub receive_buffer: ByteCount,
    /// Congestion control: a name, or a table with an uncoupled one for each path; by default
    /// `lia`, or `cubic` for `tcp`.
    #[serde(default, skip_serializing_if = "Inferred::is_missing")]
    pub congestion_control: Inferred<Policy<CongestionControl>>,
    /// Scheduler: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub scheduler: Policy<Scheduler>,
    /// Path manager: a name, or a table with a kind and parameters.
    #[serde(default)]
    pub path_manager: Policy<PathManager>,
    /// What is done against a receive window that fills behind a slow path: by the names of the
    /// remedies, `true`, the value of the first parameter, or a table of parameters.
    #[serde(default, with = "Remedies", skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Find out which subflows share bottlenecks (RFC 8382), and couple only those in congestion
    /// control. By default not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SharedBottleneckDetection")]
    pub shared_bottleneck_detection: Option<SharedBottleneckDetection>,
    /// Does a host keep back a short segment while data is unacknowledged?
    #[serde(default = "yes")]
    pub nagle: bool,
    /// Idle time after which a host asks its peer whether it is still there, once each time, and
    /// gives a subflow up after 15 probes without an answer (RFC 9293 §3.8.4). By default it never
    /// asks.
    #[serde(
        default,
        with = "Positive::<Option<Duration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub keep_alive: Option<Duration>,
    /// Do the hosts require checksums of what each segment carries (RFC 8684, the DSS checksum)?
    #[serde(default, skip_serializing_if = "is_default")]
    pub dss_checksum: bool,
    /// May further subflows be opened to the address and port of the first? If not (RFC 8684 §3.1,
    /// the "C" flag, for servers behind a load balancer), only to announced ones, and the server
    /// announces one only where the paths are of both families.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub allow_join_initial_addr_port: bool,
    /// Does a connection on its only subflow go back to TCP when the path begins to drop options
    /// late? Otherwise it ends, as RFC 8684 §3.7 has it, and as it does when the peer is Linux.
    #[serde(default = "yes")]
    pub late_fallback: bool,
    /// Do the hosts use explicit congestion notification (ECN, RFC 3168)? Queues that drop early
    /// then mark packets instead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ecn: bool,
    /// Do the hosts use selective acknowledgements (SACK, RFC 2018)?
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sack: bool,
    /// Do the hosts use TCP timestamps (RFC 7323)?
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub timestamps: bool,
    /// Leave slow start when the RTT rises (HyStart++, RFC 9406); by default with `cubic` only.
    #[serde(default, skip_serializing_if = "Inferred::is_missing")]
    pub hystart: Inferred<bool>,
    /// What is sent.
    pub workload: Workload,
}

/// Shared-bottleneck detection, RFC 8382: only subflows that share a bottleneck are coupled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedBottleneckDetection {
    /// Losses above this rate show a bottleneck whatever the delays are (p_l); by default 5%.
    #[serde(default = "default_loss_threshold", with = "Written::<Probability>")]
    pub loss_threshold: Probability,
}

impl Connection {
    /// Fill in what depends on other keys, and check what has to go together. The connection has
    /// this `index` among those of a scenario with these `paths` and this `duration`.
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
        self.find_paths_of_policies()?;
        self.require_one_family(paths)
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

    /// Not every congestion control lets HyStart++ end its slow start.
    fn require_hystart(&self) -> Result<(), Problem> {
        let name = match &*self.congestion_control {
            Policy::BuiltIn(built_in) => built_in.without_hystart(),
            Policy::Own(name) => Some(name.as_str()),
        };
        let Some(name) = name.filter(|_| *self.hystart) else { return Ok(()) };
        let problem = format!("true: {name} ends slow start by a rule of its own; leave it out");
        Err(Problem::new("hystart", problem))
    }

    fn find_paths_of_policies(&mut self) -> Result<(), Problem> {
        let used = self.paths.used();
        if let Some(scheduler) = self.scheduler.built_in_mut() {
            scheduler.find_paths("scheduler", used)?;
        }
        if let Some(path_manager) = self.path_manager.built_in_mut() {
            path_manager.find_paths("path_manager", used)?;
        }
        for remedy in &mut self.remedies {
            remedy.find_paths(&format!("remedies.{}", remedy.entry.name), used)?;
        }
        self.host.find_paths("host", used)
    }

    /// Those that do not heed announced addresses would leave the paths of one family alone.
    fn require_one_family(&self, paths: &[Path]) -> Result<(), Problem> {
        let Policy::BuiltIn(chosen) = &self.path_manager else { return Ok(()) };
        let name = chosen.entry.name;
        let mut families = self.paths.iter().map(|index| paths[*index].family);
        let first = families.next();
        if chosen.entry.make.heeds_announcements || families.all(|family| Some(family) == first) {
            return Ok(());
        }
        let problem = format!(
            "{name:?}: uses paths of one family only; give all paths of the connection the same \
             family, or write path_manager = \"full_mesh\""
        );
        Err(Problem::new("path_manager", problem))
    }
}

/// Implementations of RFC 8382 have 5% or 10%.
fn default_loss_threshold() -> Probability {
    Probability::from_parts_per_billion(50_000_000)
}

fn default_send_buffer() -> ByteCount {
    ByteCount::new(4 << 20)
}

fn default_receive_buffer() -> ByteCount {
    ByteCount::new(6 << 20)
}
