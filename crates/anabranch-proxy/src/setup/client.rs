//! The network of a client: an engine address for each uplink.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use super::interfaces::{Link, free_tables, link};
use super::tun::Tun;
use super::{MOST_MTU, PROTOCOL, Setup, Step, device, no_router};
use crate::orders::Uplink;

/// Addresses of the engine are 198.18.77.1 and so on. The range 198.18.0.0/15 is for tests of
/// devices, so no host of the Internet has one (RFC 2544, RFC 6890).
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 1);
/// Largest number of uplinks: that of address identifiers is larger, but a host has few interfaces.
pub(crate) const MOST_UPLINKS: usize = 16;

/// The plan for a client's network.
#[derive(Clone, Debug)]
pub(crate) struct ClientSetup {
    device: String,
    table: String,
    relay: Option<Ipv4Addr>,
    interfaces: Vec<String>,
    /// Number of interfaces that are no backups.
    regular: usize,
    /// Number of the first uplink's routing table, and priority of its rule.
    first: u32,
    /// The device that takes the packets of programs.
    tun: Option<Tun>,
}

impl ClientSetup {
    /// Plan the network of the instance `name` over these interfaces, of which those after the first
    /// `regular` are backups.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn new(
        name: &str,
        interfaces: Vec<String>,
        regular: usize,
        relay: Option<Ipv4Addr>,
    ) -> io::Result<Self> {
        let first = free_tables(interfaces.len() as u32 + Tun::NUMBERS)?;
        let (device, table) = (super::device_name(name), super::table_name(name));
        Ok(ClientSetup { device, table, relay, interfaces, regular, first, tun: None })
    }

    /// The same plan, with a device that takes the connections of programs.
    pub(crate) fn with_tun(self) -> Self {
        let name = self.device.trim_start_matches("ab-");
        let tun = Tun::new(name, self.first + self.interfaces.len() as u32);
        ClientSetup { tun: Some(tun), ..self }
    }

    /// Name of the device that takes the packets of programs.
    pub(crate) fn tun(&self) -> Option<&str> {
        self.tun.as_ref().map(Tun::device)
    }

    /// Name of the TUN device.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }

    /// The uplinks now.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn uplinks(&self) -> io::Result<Vec<(Uplink, Option<Link>)>> {
        let all = self.interfaces.iter().enumerate().map(|(index, interface)| {
            let found = link(interface, self.relay)?;
            let uplink = Uplink {
                interface: interface.clone(),
                address: IpAddr::V4(address(index)),
                mtu: found.as_ref().map_or(MOST_MTU, |link| link.mtu.min(MOST_MTU)),
                backup: index >= self.regular,
                budget: None,
                usable: found.is_some(),
            };
            Ok((uplink, found))
        });
        all.collect()
    }

    /// All commands, for a device that the user `owner` may open.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn plan(&self, owner: u32) -> io::Result<Setup> {
        let mut setup = Setup { up: device(&self.device, owner), down: Vec::new() };
        let tun = self.tun.as_ref().map(|tun| tun.plan(owner)).unwrap_or_default();
        // Programs keep their way until everything else is there.
        setup.down.extend(tun.down);
        let uplinks = self.uplinks()?;
        let is_closed = |interface: &&String| !forwards(interface);
        let closed: Vec<_> = self.interfaces.iter().filter(is_closed).map(String::as_str).collect();
        // The filter comes before the first packet.
        setup.up.push(Step::nft(self.rules(&closed)));
        for (index, (uplink, link)) in uplinks.iter().enumerate() {
            let (address, table) = (uplink.address, self.first + index as u32);
            let interface = &uplink.interface;
            setup.up.push(Step::ip(format!(
                "route add {address} dev {} proto {PROTOCOL}",
                self.device
            )));
            // Nothing of this uplink may leave through another one while it is down.
            setup.up.push(Step::ip(format!(
                "route add unreachable default metric 4278198272 table {table} proto {PROTOCOL}"
            )));
            let rule =
                format!("from {address} lookup {table} priority {table} protocol {PROTOCOL}");
            setup.up.push(Step::ip(format!("rule add {rule}")));
            setup.down.push(Step::ip(format!("rule del {rule}")));
            setup.down.push(Step::ip(format!("route flush table {table}")));
            setup.up.extend(link.iter().flat_map(|link| self.connect(index, link)));
            if closed.contains(&interface.as_str()) {
                setup.down.push(Step::sysctl(forwarding(interface), "0"));
            }
        }
        setup.up.extend(tun.up);
        setup.down.push(Step::nft(format!("delete table ip {}\n", self.table)));
        setup.down.push(Step::ip(format!("link del {}", self.device)));
        Ok(setup)
    }

    /// Commands that connect an uplink which has come up.
    pub(crate) fn connect(&self, index: usize, link: &Link) -> Vec<Step> {
        let (interface, table) = (&self.interfaces[index], self.first + index as u32);
        let via = link.gateway.map_or_else(String::new, |gateway| format!("via {gateway} "));
        let onlink = if link.gateway.is_some() { " onlink" } else { "" };
        vec![
            Step::ip(format!(
                "route replace default {via}dev {interface} table {table} proto {PROTOCOL}{onlink}"
            )),
            // Answers to the engine arrive here.
            Step::sysctl(forwarding(interface), "1"),
        ]
    }

    /// The packet filter: addresses of the engine are translated to those of the uplinks, and reach
    /// nothing but the relay. Interfaces in `closed` did not forward packets before.
    fn rules(&self, closed: &[&str]) -> String {
        let (table, device) = (&self.table, &self.device);
        let mut translate = String::new();
        let mut pass = String::new();
        let mark = self
            .tun
            .as_ref()
            .map_or_else(String::new, |tun| tun.chains(&self.device, &self.interfaces, self.relay));
        let relay = self.relay.map_or_else(String::new, |relay| format!("ip daddr {relay} "));
        for (index, interface) in self.interfaces.iter().enumerate() {
            let of_uplink = format!("ip saddr {} oifname \"{interface}\"", address(index));
            translate += &format!("    {of_uplink} masquerade\n");
            pass += &format!("    iifname \"{device}\" {of_uplink} {relay}accept\n");
        }
        pass += &format!("    iifname \"{device}\" drop\n");
        pass += &format!("    oifname \"{device}\" ct state established,related accept\n");
        pass += &format!("    oifname \"{device}\" drop\n");
        pass.extend(closed.iter().map(|interface| no_router(interface, device)));
        format!(
            "table ip {table} {{\n\
             \x20 chain translate {{\n\
             \x20   type nat hook postrouting priority srcnat; policy accept;\n\
             {translate}\
             \x20 }}\n\
             \x20 chain pass {{\n\
             \x20   type filter hook forward priority filter; policy accept;\n\
             {pass}\
             \x20 }}\n\
             {mark}\
             }}\n"
        )
    }
}

/// The engine's address on an uplink.
fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST_ADDRESS) + index as u32)
}

/// The key below `/proc/sys` that says whether an interface forwards packets.
pub(super) fn forwarding(interface: &str) -> String {
    format!("net/ipv4/conf/{interface}/forwarding")
}

/// Returns `true` if an interface forwards packets. One that does not exist yet will follow the host's
/// default.
pub(super) fn forwards(interface: &str) -> bool {
    let of = |name: &str| std::fs::read_to_string(Path::new("/proc/sys").join(forwarding(name)));
    of(interface).or_else(|_| of("default")).is_ok_and(|value| value.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_passes_the_engine_and_nobody_else() {
        let setup = ClientSetup {
            device: "ab-home".to_owned(),
            table: "anabranch_home".to_owned(),
            relay: Some(Ipv4Addr::new(192, 0, 2, 1)),
            interfaces: vec!["eth0".to_owned(), "wwan0".to_owned()],
            regular: 2,
            first: 7300,
            tun: None,
        };
        let expected = "\
table ip anabranch_home {
  chain translate {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 198.18.77.1 oifname \"eth0\" masquerade
    ip saddr 198.18.77.2 oifname \"wwan0\" masquerade
  }
  chain pass {
    type filter hook forward priority filter; policy accept;
    iifname \"ab-home\" ip saddr 198.18.77.1 oifname \"eth0\" ip daddr 192.0.2.1 accept
    iifname \"ab-home\" ip saddr 198.18.77.2 oifname \"wwan0\" ip daddr 192.0.2.1 accept
    iifname \"ab-home\" drop
    oifname \"ab-home\" ct state established,related accept
    oifname \"ab-home\" drop
    iifname \"wwan0\" oifname != \"ab-home\" drop
  }
}
";
        assert_eq!(setup.rules(&["wwan0"]), expected);
        let link = Link { gateway: Some(Ipv4Addr::new(10, 0, 0, 1)), mtu: 1500 };
        assert_eq!(
            setup.connect(1, &link)[0].to_string(),
            "ip route replace default via 10.0.0.1 dev wwan0 table 7301 proto 196 onlink"
        );
    }
}
