//! Translation of a scenario to settings of kernel hosts, with notices about deviations.

use std::net::Ipv4Addr;

use anabranch_config::{Selection, named};
use anabranch_net::middlebox::Site;
use anabranch_net::units::ByteCount;
use anabranch_proto::path_manager::{InKernel, PathManagerConfig};
use anabranch_proto::platform::{AnnounceRule, Platform, SilenceRule, Tuning};
use anabranch_sim::scenario::{
    CongestionControl, Connection, Limits, Middlebox, MtuProbing, Path, Policy, Protocol, Scenario,
};
use anabranch_wire::Duration;

/// Settings of the kernel hosts of a scenario.
pub(crate) struct KernelSettings {
    /// Memory of the largest send buffer of the connections, in bytes.
    pub(crate) most_send_memory: u64,
    /// Memory with which tuned receive buffers begin, in bytes.
    pub(crate) first_receive_memory: u64,
    /// Memory of the largest receive buffer of the connections, in bytes.
    pub(crate) most_receive_memory: u64,
    /// Whether the Multipath TCP connections require checksums.
    pub(crate) checksums: bool,
    /// Whether the connections use explicit congestion notification.
    pub(crate) ecn: bool,
    pub(crate) mtu_probing: MtuProbing,
    /// Whether the connections use selective acknowledgements.
    pub(crate) sack: bool,
    /// Whether the connections use timestamps.
    pub(crate) timestamps: bool,
    /// Whether peers may open subflows to the address and port of the first subflow.
    pub(crate) allow_join_initial_addr_port: bool,
    /// Limits on the Multipath TCP connections' subflows.
    pub(crate) limits: Limits,
    /// The subflows that the client's Multipath TCP connections open.
    pub(crate) subflows: Vec<Subflow>,
    /// Whether packets larger than the MTU can arrive.
    pub(crate) coalesced: bool,
    /// Rules by which the hosts take subflows out of use and give up.
    pub(crate) failures: Failures,
    /// The congestion control of each connection.
    pub(crate) congestion_control: Vec<&'static str>,
    /// Differences between the run and the scenario.
    pub(crate) notices: Vec<String>,
}

/// Rules by which a kernel host takes a subflow out of use and gives up. A host that does not behave
/// like Linux's sockets states nothing, and the kernel's own settings remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    pub(crate) stale_loss_cnt: Option<u8>,
    pub(crate) retries: Option<u8>,
    pub(crate) syn_retries: Option<u8>,
    pub(crate) syn_linear_timeouts: Option<u8>,
    pub(crate) close_timeout: Option<Duration>,
    pub(crate) add_addr_timeout: Option<Duration>,
    pub(crate) syn_retrans_before_tcp_fallback: Option<u8>,
    pub(crate) blackhole_timeout: Option<Duration>,
}

/// The keys of `host` that [`Failures`] has.
const FAILURE_KEYS: &str = "stale_loss_cnt, tcp_retries2, tcp_syn_retries, tcp_syn_linear_timeouts, \
                            close_timeout, add_addr_timeout, syn_retrans_before_tcp_fallback and \
                            blackhole_timeout";

impl Failures {
    fn of(connection: &Connection) -> Self {
        let Platform { silence, give_up, announcing, syn_fallback, .. } =
            connection.host.part().build();
        let SilenceRule::Periods(periods) = silence else { return Failures::default() };
        Failures {
            stale_loss_cnt: Some(periods),
            retries: give_up.retries,
            syn_retries: give_up.syn_retries,
            syn_linear_timeouts: Some(give_up.syn_linear_timeouts),
            close_timeout: Some(give_up.orphaned),
            add_addr_timeout: match announcing {
                AnnounceRule::OneAtATime { most } => Some(most),
                AnnounceRule::Together => None,
            },
            syn_retrans_before_tcp_fallback: syn_fallback.syn_retries,
            blackhole_timeout: Some(syn_fallback.disabled),
        }
    }

    /// The sysctls, by their names below /proc/sys/net, with their values.
    pub(crate) fn sysctls(&self) -> Vec<(&'static str, String)> {
        let whole = |timeout: Duration| timeout.as_nanos().div_ceil(1_000_000_000).to_string();
        let number = |value: u8| value.to_string();
        let all = [
            ("mptcp/stale_loss_cnt", self.stale_loss_cnt.map(number)),
            ("ipv4/tcp_retries2", self.retries.map(number)),
            ("ipv4/tcp_syn_retries", self.syn_retries.map(number)),
            ("ipv4/tcp_syn_linear_timeouts", self.syn_linear_timeouts.map(number)),
            ("mptcp/close_timeout", self.close_timeout.map(whole)),
            ("mptcp/add_addr_timeout", self.add_addr_timeout.map(whole)),
            (
                "mptcp/syn_retrans_before_tcp_fallback",
                self.syn_retrans_before_tcp_fallback.map(number),
            ),
            ("mptcp/blackhole_timeout", self.blackhole_timeout.map(whole)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The client's end of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subflow {
    /// Index of the subflow's path.
    pub(crate) path: usize,
    /// Identifier of the subflow's address: an index into the connection's paths, as in the engine.
    /// The peer always knows the first subflow's address by identifier 0.
    pub(crate) address_id: usize,
    /// Whether the subflow is a backup.
    pub(crate) backup: bool,
}

/// The bounds of the buffers that the connection's hosts tune.
fn tuning(connection: &Connection) -> Tuning {
    connection.host.part().build().buffers.tuning
}

/// Returns `true` if segments that leave the middlebox may have more payload than those that
/// entered it.
fn enlarges_segments(middlebox: &Middlebox) -> bool {
    let unknown = Ipv4Addr::UNSPECIFIED.into();
    let site = Site { seed: 0, client: unknown, address: unknown };
    middlebox.build(site).enlarges_segments()
}

impl KernelSettings {
    /// The settings for the kernel hosts of `scenario`.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let tuning = scenario.connections.first().map_or(Tuning::DEFAULT, tuning);
        let largest = |of: fn(&Connection) -> Option<ByteCount>, autotuned: u64| {
            let memory = |size: ByteCount| 2 * size.as_u64().max(64 << 10);
            let each = scenario.connections.iter().map(|each| of(each).map_or(autotuned, memory));
            each.max().unwrap_or(autotuned)
        };
        KernelSettings {
            most_send_memory: largest(
                |connection| connection.send_buffer,
                tuning.largest_send.into(),
            ),
            first_receive_memory: tuning.first_receive.into(),
            most_receive_memory: largest(
                |connection| connection.receive_buffer,
                tuning.largest_receive.into(),
            ),
            checksums: false,
            ecn: scenario.connections.iter().any(|connection| connection.ecn),
            mtu_probing: scenario
                .connections
                .first()
                .map_or_else(MtuProbing::default, |each| each.mtu_probing),
            sack: scenario.connections.iter().any(|connection| connection.sack),
            timestamps: scenario.connections.iter().any(|connection| connection.timestamps),
            allow_join_initial_addr_port: true,
            limits: Limits::default(),
            subflows: Vec::new(),
            coalesced: scenario
                .paths
                .iter()
                .flat_map(|path| &path.middleboxes)
                .any(enlarges_segments),
            failures: scenario.connections.first().map(Failures::of).unwrap_or_default(),
            congestion_control: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Check the scenario, and add notices about differences.
    ///
    /// # Errors
    /// If a kernel host cannot run the scenario.
    pub(crate) fn check(&mut self, scenario: &Scenario) -> Result<(), String> {
        let mut first: Option<&Connection> = None;
        let differs = [
            ("ecn", scenario.connections.iter().any(|each| each.ecn != self.ecn)),
            ("mtu_probing", {
                scenario.connections.iter().any(|each| each.mtu_probing != self.mtu_probing)
            }),
            ("sack", scenario.connections.iter().any(|each| each.sack != self.sack)),
            ("timestamps", {
                scenario.connections.iter().any(|each| each.timestamps != self.timestamps)
            }),
            (FAILURE_KEYS, {
                scenario.connections.iter().any(|each| Failures::of(each) != self.failures)
            }),
            ("tcp_rmem_default, tcp_rmem_max and tcp_wmem_max", {
                let mut all = scenario.connections.iter().map(tuning);
                let first = all.next();
                all.any(|each| Some(each) != first)
            }),
        ];
        if let Some((key, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(format!(
                "Linux has one setting of {key} for all connections of a host; give all connections \
                 the same {key}"
            ));
        }
        let addresses = |path: &Path| path.routing.server_addresses.clone();
        if scenario.paths.windows(2).any(|pair| addresses(&pair[0]) != addresses(&pair[1])) {
            let problem = "a kernel host does not know which addresses a path leads to; give all \
                           paths the same routing.server_addresses";
            return Err(problem.to_owned());
        }
        for connection in &scenario.connections {
            self.apply_congestion_control(connection);
            if connection.pacing {
                let name = &connection.name;
                self.notice(&format!(
                    "connection {name}: the kernel paces only with a congestion control that asks for it"
                ));
            }
            if connection.protocol != Protocol::Mptcp {
                continue;
            }
            // In Linux, these settings belong to the host, not to the connection.
            let first = *first.get_or_insert(connection);
            if let Some(key) = first_difference(first, connection) {
                return Err(format!(
                    "connection {}: Linux has one {key} for all Multipath TCP connections of a host; \
                     use that of connection {}",
                    connection.name, first.name
                ));
            }
            self.apply_policies(connection)?;
        }
        Ok(())
    }

    fn apply_policies(&mut self, connection: &Connection) -> Result<(), String> {
        let name = &connection.name;
        self.checksums = connection.dss_checksum;
        self.limits = connection.limits;
        self.allow_join_initial_addr_port = connection.allow_join_initial_addr_port;
        self.subflows = subflows(connection).ok_or_else(|| {
            let selected = match &connection.path_manager {
                Policy::BuiltIn(selected) => selected.name(),
                Policy::Custom(own) => own,
            };
            format!(
                "connection {name}: kernel hosts have no path_manager {selected:?}; use {}",
                path_managers()
            )
        })?;
        match &connection.scheduler {
            Policy::BuiltIn(selected) if selected.part().as_linux() => {}
            Policy::BuiltIn(selected) => {
                let scheduler = selected.name();
                self.notice(&format!(
                    "connection {name}: the kernel uses its own scheduler, not {scheduler}"
                ));
            }
            Policy::Custom(_) => {
                return Err(format!(
                    "connection {name}: the kernel cannot run your own scheduler; name a built-in one"
                ));
            }
        }
        if !connection.remedies.is_empty() {
            self.notice(&format!("connection {name}: the kernel has no remedies"));
        }
        Ok(())
    }

    fn apply_congestion_control(&mut self, connection: &Connection) {
        let (name, in_kernel) = match &*connection.congestion_control {
            Policy::BuiltIn(CongestionControl::Same(selected)) => {
                (selected.name(), selected.part().in_kernel())
            }
            _ => ("for each path", None),
        };
        let kernel_name = in_kernel.unwrap_or_else(|| {
            self.notice(&format!(
                "connection {}: the kernel has no congestion control {name}; it uses cubic",
                connection.name
            ));
            "cubic"
        });
        self.congestion_control.push(kernel_name);
    }

    pub(crate) fn notice(&mut self, notice: &str) {
        if !self.notices.iter().any(|other| other == notice) {
            self.notices.push(notice.to_owned());
        }
    }
}

/// Reason why kernel hosts cannot run a scenario; `None` if they can.
pub fn objection(scenario: &Scenario) -> Option<String> {
    KernelSettings::new(scenario).check(scenario).err()
}

/// The first key that all connections of a kernel host must share, but that differs between these.
fn first_difference(one: &Connection, other: &Connection) -> Option<&'static str> {
    let allows = |each: &Connection| each.allow_join_initial_addr_port;
    let differs = [
        ("paths", one.paths != other.paths),
        ("path_manager", one.path_manager != other.path_manager),
        ("limits", one.limits != other.limits),
        ("dss_checksum", one.dss_checksum != other.dss_checksum),
        ("allow_join_initial_addr_port", allows(one) != allows(other)),
    ];
    differs.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
}

/// The subflows that the kernel's path manager opens for a connection; `None` if it cannot follow the
/// connection's path manager.
fn subflows(connection: &Connection) -> Option<Vec<Subflow>> {
    let paths = &connection.paths;
    let Policy::BuiltIn(selected) = &connection.path_manager else { return None };
    let manager = selected.part();
    if !manager.is_in_kernel() {
        return None;
    }
    let subflows = paths.iter().enumerate().filter_map(|(index, path)| {
        let kind = manager.endpoint(index)?;
        // The identifier of the first subflow's address follows those of the others.
        let address_id = if index == 0 { paths.len() } else { index };
        Some(Subflow { path: *path, address_id, backup: kind == InKernel::Backup })
    });
    Some(subflows.collect())
}

/// The path managers that kernel hosts support, for a message.
fn path_managers() -> String {
    let all = PathManagerConfig::ALL.iter().flat_map(|each| named(each.name));
    let known = all.filter(|each: &PathManagerConfig| each.part().is_in_kernel());
    let names: Vec<_> = known.map(|each| each.name()).collect();
    match &names[..] {
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}
