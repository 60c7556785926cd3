//! The network of a relay: one engine address of each family, to which a public port leads.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::interfaces::link;
use super::{Family, MOST_MTU, Neighbours, PROTOCOL, Setup, SetupStep, device, no_router};
use crate::orders::Uplink;

/// The addresses of the first instance's engine, from the ranges for tests of devices (RFC 2544,
/// RFC 5180, RFC 6890).
const IPV4: Ipv4Addr = Ipv4Addr::new(198, 18, 78, 1);
const IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x78, 0, 0, 0, 1);

/// The plan for a relay's network.
#[derive(Clone, Debug)]
pub(crate) struct RelaySetup {
    device: String,
    table: String,
    neighbours: Neighbours,
    interfaces: Vec<String>,
    families: Vec<Family>,
    port: u16,
}

impl RelaySetup {
    /// Plan the network of the instance `name`, which clients reach at `port` of these interfaces,
    /// with addresses of these families.
    pub(crate) fn new(
        name: &str,
        interfaces: Vec<String>,
        families: Vec<Family>,
        port: u16,
        neighbours: Neighbours,
    ) -> Self {
        let (device, table) = (super::device_name(name), super::table_name(name));
        RelaySetup { device, table, neighbours, interfaces, families, port }
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
            for family in &self.families {
                mtu = link(interface, *family, None)?.map_or(mtu, |link| mtu.min(link.mtu));
            }
        }
        let interface = self.interfaces.join(",");
        let addresses: Vec<_> = self.families.iter().map(|family| self.address(*family)).collect();
        let usable = addresses.clone();
        Ok(Uplink { interface, addresses, usable, mtu, backup: false, budget: None })
    }

    /// All commands, for a device that the user `owner` may open.
    pub(crate) fn plan(&self, owner: u32) -> Setup {
        let up = device(&self.device, owner, &self.families);
        let mut setup = Setup { number: self.neighbours.number(), up, down: Vec::new() };
        for family in &self.families {
            self.plan_family(*family, &mut setup);
        }
        setup.down.push(SetupStep::ip(format!("link del {}", self.device)));
        setup
    }

    fn plan_family(&self, family: Family, setup: &mut Setup) {
        let (flag, address) = (family.flag(), self.address(family));
        setup.up.push(SetupStep::ip(format!(
            "{flag} route add {address} dev {} proto {PROTOCOL}",
            self.device
        )));
        let closed = self.neighbours.closed(family, &self.interfaces);
        // The filter comes before the first packet.
        setup.up.push(SetupStep::nft(self.rules(family, &closed)));
        for interface in closed {
            setup.up.extend(family.forwarding(interface).map(|key| SetupStep::sysctl(key, "1")));
            setup.down.extend(self.neighbours.stop_forwarding(family, interface));
        }
        setup.down.push(SetupStep::nft(format!("delete table {} {}\n", family.nft(), self.table)));
    }

    /// The engine's address.
    fn address(&self, family: Family) -> IpAddr {
        let further = self.neighbours.number();
        match family {
            Family::V4 => Ipv4Addr::from(u32::from(IPV4) + u32::from(further)).into(),
            Family::V6 => Ipv6Addr::from(u128::from(IPV6) + u128::from(further)).into(),
        }
    }

    /// The packet filter: the public port leads to the engine, which answers and opens nothing.
    fn rules(&self, family: Family, closed: &[&str]) -> String {
        let RelaySetup { device, table, port, .. } = self;
        let (nft, address) = (family.nft(), self.address(family));
        let to = SocketAddr::new(address, *port);
        let names = self.interfaces.iter().map(|interface| format!("\"{interface}\""));
        let names = names.collect::<Vec<_>>().join(", ");
        let no_router = no_router(closed);
        format!(
            "table {nft} {table} {{\n\
             \x20 chain translate {{\n\
             \x20   type nat hook prerouting priority dstnat; policy accept;\n\
             \x20   iifname {{ {names} }} fib daddr type local tcp dport {port} dnat to {to}\n\
             \x20 }}\n\
             \x20 chain pass {{\n\
             \x20   type filter hook forward priority filter; policy accept;\n\
             \x20   iifname \"{device}\" {nft} saddr {address} ct state established,related accept\n\
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
        let families = Family::ALL.to_vec();
        let interfaces = vec!["eth0".to_owned()];
        let setup = RelaySetup::new("relay", interfaces, families, 5124, Neighbours::default());
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
    iifname \"eth0\" oifname != \"ab-*\" drop
  }
}
";
        assert_eq!(setup.rules(Family::V4, &["eth0"]), expected);
        let rules = setup.rules(Family::V6, &[]);
        assert!(rules.contains("dport 5124 dnat to [2001:2:0:78::1]:5124"), "{rules}");
    }
}
