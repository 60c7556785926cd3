//! What of a scenario a host of the kernel's can do, and what it does instead.

use std::net::Ipv4Addr;

use anabranch_net::middlebox::Site;
use anabranch_net::units::ByteCount;
use anabranch_proto::path_manager::{self, InKernel};
use anabranch_sim::scenario::{
    CongestionControl, Connection, Middlebox, Policy, Protocol, Scenario,
};

/// How hosts of the kernel's are set up for a scenario.
pub(crate) struct Settings {
    /// The largest send buffer of its connections, in bytes.
    pub(crate) send_buffer: u64,
    /// The largest receive buffer.
    pub(crate) receive_buffer: u64,
    /// Do the Multipath TCP connections require checksums?
    pub(crate) checksums: bool,
    /// Do the connections use explicit congestion notification?
    pub(crate) ecn: bool,
    /// Do the connections use selective acknowledgements?
    pub(crate) sack: bool,
    /// Do the connections use timestamps?
    pub(crate) timestamps: bool,
    /// May peers open subflows to the address and port of the first?
    pub(crate) allow_join_initial_addr_port: bool,
    /// What Multipath TCP connections of the client open subflows from.
    pub(crate) subflows: Vec<Subflow>,
    /// Do packets arrive that are longer than the MTU?
    pub(crate) coalesced: bool,
    /// The congestion control of each connection.
    pub(crate) congestion_control: Vec<&'static str>,
    /// What is not as the scenario has it.
    pub(crate) notices: Vec<String>,
}

/// A subflow's own end on the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subflow {
    /// Its path.
    pub(crate) path: usize,
    /// The identifier of its address, which counts the connection's paths, as the engine's does.
    /// The first subflow's is 0 for the peer, whatever this is.
    pub(crate) address_id: usize,
    /// Is it a backup?
    pub(crate) backup: bool,
}

/// May segments that leave the middlebox have more payload than any that entered it?
fn enlarges_segments(middlebox: &Middlebox) -> bool {
    let site = Site { seed: 0, address: Ipv4Addr::UNSPECIFIED.into() };
    middlebox.build(site).enlarges_segments()
}

impl Settings {
    /// For the hosts of the kernel's that take part in `scenario`.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let largest = |of: fn(&Connection) -> ByteCount| {
            scenario.connections.iter().map(|each| of(each).as_u64()).max().unwrap_or(0)
        };
        Settings {
            send_buffer: largest(|connection| connection.send_buffer),
            receive_buffer: largest(|connection| connection.receive_buffer),
            checksums: false,
            ecn: scenario.connections.iter().any(|connection| connection.ecn),
            sack: scenario.connections.iter().any(|connection| connection.sack),
            timestamps: scenario.connections.iter().any(|connection| connection.timestamps),
            allow_join_initial_addr_port: true,
            subflows: Vec::new(),
            coalesced: scenario
                .paths
                .iter()
                .flat_map(|path| &path.middleboxes)
                .any(enlarges_segments),
            congestion_control: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Look at what the scenario asks for.
    ///
    /// # Errors
    /// What the kernel cannot do in anything like the scenario's way.
    pub(crate) fn check(&mut self, scenario: &Scenario) -> Result<(), String> {
        let mut first: Option<&Connection> = None;
        let differs = [
            ("ecn", scenario.connections.iter().any(|each| each.ecn != self.ecn)),
            ("sack", scenario.connections.iter().any(|each| each.sack != self.sack)),
            ("timestamps", {
                scenario.connections.iter().any(|each| each.timestamps != self.timestamps)
            }),
        ];
        if let Some((key, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(format!(
                "Linux has one setting of {key} for all connections of a host; write the same {key} \
                 at each"
            ));
        }
        for connection in &scenario.connections {
            self.take_congestion_control(connection);
            if connection.protocol != Protocol::Mptcp {
                continue;
            }
            // These belong to the host in Linux, not to the connection.
            let first = *first.get_or_insert(connection);
            if let Some(key) = first_difference(first, connection) {
                return Err(format!(
                    "connection {}: Linux has one {key} for all Multipath TCP connections of a host; \
                     write that of {}",
                    connection.name, first.name
                ));
            }
            self.take_policies(connection)?;
        }
        if scenario.paths.iter().any(|path| path.changes.iter().any(|change| change.noticed)) {
            self.notice("hosts of the kernel's do not notice that paths go down");
        }
        Ok(())
    }

    fn take_policies(&mut self, connection: &Connection) -> Result<(), String> {
        let name = &connection.name;
        self.checksums = connection.dss_checksum;
        self.allow_join_initial_addr_port = connection.allow_join_initial_addr_port;
        self.subflows = subflows(connection).ok_or_else(|| {
            let chosen = match &connection.path_manager {
                Policy::BuiltIn(chosen) => chosen.entry.name,
                Policy::Own(own) => own,
            };
            format!(
                "connection {name}: a host of the kernel's has no path_manager {chosen:?}; use {}",
                path_managers()
            )
        })?;
        match &connection.scheduler {
            Policy::BuiltIn(chosen) if chosen.entry.make.as_linux => {}
            Policy::BuiltIn(chosen) => {
                let scheduler = chosen.entry.name;
                self.notice(&format!(
                    "connection {name}: the kernel has its own scheduler, not {scheduler}"
                ));
            }
            Policy::Own(_) => {
                return Err(format!("connection {name}: the kernel takes no scheduler"));
            }
        }
        if !connection.remedies.is_empty() {
            self.notice(&format!("connection {name}: the kernel has none of the remedies"));
        }
        Ok(())
    }

    fn take_congestion_control(&mut self, connection: &Connection) {
        let (name, in_kernel) = match &*connection.congestion_control {
            Policy::BuiltIn(CongestionControl::Same(chosen)) => {
                (chosen.entry.name, chosen.entry.make.in_kernel)
            }
            _ => ("one for each path", None),
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

/// The first key of those that all connections of a host of the kernel's share, and these do not.
fn first_difference(one: &Connection, other: &Connection) -> Option<&'static str> {
    let allows = |each: &Connection| each.allow_join_initial_addr_port;
    let differs = [
        ("paths", one.paths != other.paths),
        ("path_manager", one.path_manager != other.path_manager),
        ("dss_checksum", one.dss_checksum != other.dss_checksum),
        ("allow_join_initial_addr_port", allows(one) != allows(other)),
    ];
    differs.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
}

/// The subflows of a connection as the kernel's path manager opens them; none for path managers
/// that it has not.
fn subflows(connection: &Connection) -> Option<Vec<Subflow>> {
    let paths = &connection.paths;
    let Policy::BuiltIn(chosen) = &connection.path_manager else { return None };
    let endpoint = chosen.entry.make.in_kernel?;
    let subflows = paths.iter().enumerate().filter_map(|(index, path)| {
        let kind = endpoint(&chosen.values, index)?;
        // The identifier of the first subflow's address comes after those of the others.
        let address_id = if index == 0 { paths.len() } else { index };
        Some(Subflow { path: *path, address_id, backup: kind == InKernel::Backup })
    });
    Some(subflows.collect())
}

/// The path managers that hosts of the kernel's have, in the words of a message.
fn path_managers() -> String {
    let known = path_manager::ALL.iter().filter(|entry| entry.make.in_kernel.is_some());
    let names: Vec<_> = known.map(|entry| entry.name).collect();
    match &names[..] {
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}
