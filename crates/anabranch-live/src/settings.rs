//! What of a scenario a host of the kernel's can do, and what it does instead.

use anabranch_net::middlebox::MiddleboxConfig;
use anabranch_net::units::Octets;
use anabranch_sim::scenario::{CongestionControl, Connection, Policy, Protocol, Scenario};

/// How hosts of the kernel's are set up for a scenario.
pub(crate) struct Settings {
    /// The largest send buffer of its connections, in octets.
    pub(crate) send_buffer: u64,
    /// The largest receive buffer.
    pub(crate) receive_buffer: u64,
    /// Do the Multipath TCP connections require checksums?
    pub(crate) checksums: bool,
    /// Do the connections use explicit congestion notification?
    pub(crate) ecn: bool,
    /// The paths on which Multipath TCP connections open subflows, beside the first.
    pub(crate) further_paths: Vec<usize>,
    /// The congestion control of each connection.
    pub(crate) congestion_control: Vec<&'static str>,
    /// What is not as the scenario has it.
    pub(crate) notices: Vec<String>,
}

impl Settings {
    /// For the hosts of the kernel's that take part in `scenario`.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let largest = |of: fn(&Connection) -> Octets| {
            scenario.connections.iter().map(|each| of(each).as_u64()).max().unwrap_or(0)
        };
        Settings {
            send_buffer: largest(|connection| connection.send_buffer),
            receive_buffer: largest(|connection| connection.receive_buffer),
            checksums: false,
            ecn: scenario.connections.iter().any(|connection| connection.ecn),
            further_paths: Vec::new(),
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
        if scenario.connections.iter().any(|connection| connection.ecn != self.ecn) {
            return Err("Linux has one ECN setting for all connections of a host; write the same \
                        ecn at each"
                .to_owned());
        }
        for connection in &scenario.connections {
            self.take_congestion_control(connection);
            if connection.protocol != Protocol::Mptcp {
                continue;
            }
            // Addresses, limits and checksums are the host's in Linux, not the connection's.
            let first = *first.get_or_insert(connection);
            if (&first.paths, first.dss_checksum) != (&connection.paths, connection.dss_checksum) {
                return Err(format!(
                    "connection {}: Linux has one set of Multipath TCP addresses and one \
                     checksum setting for all connections of a host; use those of {}",
                    connection.name, first.name
                ));
            }
            self.take_policies(connection)?;
        }
        let mut boxes = scenario.paths.iter().flat_map(|path| &path.middleboxes);
        if boxes.any(|each| matches!(each.config, MiddleboxConfig::Coalesce(_))) {
            return Err("a host of the kernel's takes no packets longer than its MTU, \
                        as coalesce makes them"
                .to_owned());
        }
        if scenario.paths.iter().any(|path| path.changes.iter().any(|change| change.noticed)) {
            self.notice("hosts of the kernel's do not notice that paths go down");
        }
        Ok(())
    }

    fn take_policies(&mut self, connection: &Connection) -> Result<(), String> {
        let name = &connection.name;
        self.checksums = connection.dss_checksum;
        match &connection.path_manager {
            Policy::BuiltIn(chosen) if chosen.entry.name == "full_mesh" => {
                self.further_paths = connection.paths[1..].to_vec();
            }
            Policy::BuiltIn(chosen) if chosen.entry.name == "initial_only" => {}
            _ => {
                return Err(format!(
                    "connection {name}: a host of the kernel's has no such path_manager; \
                     use full_mesh or initial_only"
                ));
            }
        }
        match &connection.scheduler {
            Policy::BuiltIn(chosen) if matches!(chosen.entry.name, "min_rtt" | "linux") => {}
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
        let name = match &connection.congestion_control {
            Policy::BuiltIn(CongestionControl::Same(chosen)) => chosen.entry.name,
            _ => "one for each path",
        };
        let kernel_name = match name {
            "new_reno" => "reno",
            "cubic" | "cubic_linux" => "cubic",
            other => {
                self.notice(&format!(
                    "connection {}: the kernel has no congestion control {other}; it uses cubic",
                    connection.name
                ));
                "cubic"
            }
        };
        self.congestion_control.push(kernel_name);
    }

    pub(crate) fn notice(&mut self, notice: &str) {
        if !self.notices.iter().any(|other| other == notice) {
            self.notices.push(notice.to_owned());
        }
    }
}
