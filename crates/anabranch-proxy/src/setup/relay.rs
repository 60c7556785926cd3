//! The network of a relay: one engine address, to which a public port leads.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::client::{forwarding, forwards};
use super::interfaces::link;
use super::{MOST_MTU, PROTOCOL, Setup, Step, device, no_router};
use crate::orders::Uplink;

/// The engine's address, from the range for tests of devices (RFC 2544, RFC 6890).
const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 78, 1);

/// The plan for a relay's network.
#[derive(Clone, Debug)]
pub(crate) struct RelaySetup {
    device: String,
    table: String,
    interfaces: Vec<String>,
    port: u16,
}

impl RelaySetup {
    /// Plan the network of the instance `name`, which clients reach at `port` of these interfaces.
    pub(crate) fn new(name: &str, interfaces: Vec<String>, port: u16) -> Self {
        let (device, table) = (super::device_name(name), super::table_name(name));
        RelaySetup { device, table, interfaces, port }
    }

    /// Name of the TUN device.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }

    /// The engine's only interface, with the smallest MTU of all.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn uplink(&self) -> io::Result<Uplink> {
        let mut mtu = MOST_MTU;
        for interface in &self.interfaces {
            mtu = link(interface, None)?.map_or(mtu, |link| mtu.min(link.mtu));
        }
        let interface = self.interfaces.join(",");
        Ok(Uplink {
            interface,
            address: IpAddr::V4(ADDRESS),
            mtu,
            backup: false,
            budget: None,
            usable: true,
        })
    }

    /// All commands, for a device that the user `owner` may open.
    pub(crate) fn plan(&self, owner: u32) -> Setup {
        let mut setup = Setup { up: device(&self.device, owner), down: Vec::new() };
        setup
            .up
            .push(Step::ip(format!("route add {ADDRESS} dev {} proto {PROTOCOL}", self.device)));
        let closed: Vec<_> = self.interfaces.iter().filter(|each| !forwards(each)).collect();
        // The filter comes before the first packet.
        setup.up.push(Step::nft(self.rules(&closed)));
        for interface in &closed {
            setup.up.push(Step::sysctl(forwarding(interface), "1"));
            setup.down.push(Step::sysctl(forwarding(interface), "0"));
        }
        setup.down.push(Step::nft(format!("delete table ip {}\n", self.table)));
        setup.down.push(Step::ip(format!("link del {}", self.device)));
        setup
    }

    /// The packet filter: the public port leads to the engine, which answers and opens nothing.
    fn rules(&self, closed: &[&String]) -> String {
        let RelaySetup { device, table, port, .. } = self;
        let names = self.interfaces.iter().map(|interface| format!("\"{interface}\""));
        let names = names.collect::<Vec<_>>().join(", ");
        let no_router: String = closed.iter().map(|each| no_router(each, device)).collect();
        format!(
            "table ip {table} {{\n\
             \x20 chain translate {{\n\
             \x20   type nat hook prerouting priority dstnat; policy accept;\n\
             \x20   iifname {{ {names} }} fib daddr type local tcp dport {port} dnat to {ADDRESS}:{port}\n\
             \x20 }}\n\
             \x20 chain pass {{\n\
             \x20   type filter hook forward priority filter; policy accept;\n\
             \x20   iifname \"{device}\" ip saddr {ADDRESS} ct state established,related accept\n\
             \x20   iifname \"{device}\" drop\n\
             \x20   oifname \"{device}\" ct status dnat accept\n\
             \x20   oifname \"{device}\" drop\n\
             {no_router}\
             \x20 }}\n\
             }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_leads_one_port_to_the_engine() {
        let setup = RelaySetup::new("relay", vec!["eth0".to_owned()], 5124);
        let expected = "\
table ip anabranch_relay {
  chain translate {
    type nat hook prerouting priority dstnat; policy accept;
    iifname { \"eth0\" } fib daddr type local tcp dport 5124 dnat to 198.18.78.1:5124
  }
  chain pass {
    type filter hook forward priority filter; policy accept;
    iifname \"ab-relay\" ip saddr 198.18.78.1 ct state established,related accept
    iifname \"ab-relay\" drop
    oifname \"ab-relay\" ct status dnat accept
    oifname \"ab-relay\" drop
    iifname \"eth0\" oifname != \"ab-relay\" drop
  }
}
";
        assert_eq!(setup.rules(&[&"eth0".to_owned()]), expected);
    }
}
