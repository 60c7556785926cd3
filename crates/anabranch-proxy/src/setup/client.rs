//! The network of a client: engine addresses for each uplink.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::interfaces::{Link, free_tables, has_own_route, link};
use super::tun::Tun;
use super::{Family, MOST_MTU, Neighbours, PROTOCOL, Setup, SetupStep, device, no_router};
use crate::orders::Uplink;

/// Addresses of the first instance's engine are 198.18.77.1 and so on. The range 198.18.0.0/15 is for
/// tests of devices, so no host of the Internet has one (RFC 2544, RFC 6890).
const FIRST_IPV4: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 1);
/// The same for IPv6: 2001:2::/48 (RFC 5180, RFC 6890).
const FIRST_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x77, 0, 0, 0, 1);
/// Largest number of uplinks: that of address identifiers is larger, but a host has few interfaces.
pub(crate) const MOST_UPLINKS: usize = 16;

/// The plan for a client's network.
#[derive(Clone, Debug)]
pub(crate) struct ClientSetup {
    device: String,
    table: String,
    neighbours: Neighbours,
    /// Addresses of the relay, one of each family at most.
    relay: Vec<IpAddr>,
    families: Vec<Family>,
    interfaces: Vec<String>,
    /// Number of interfaces that are no backups.
    regular: usize,
    /// Number of the first uplink's routing table, and priority of its rule.
    first: u32,
    /// The device that takes the packets of programs.
    tun: Option<Tun>,
}

/// The ways over an uplink: one for each family in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways(Vec<(Family, Link)>);

impl Ways {
    /// The way with addresses of this family.
    pub(crate) fn get(&self, family: Family) -> Option<&Link> {
        self.0.iter().find(|(own, _)| *own == family).map(|(_, link)| link)
    }

    /// Set or remove the way with addresses of this family.
    pub(crate) fn set(&mut self, family: Family, link: Option<Link>) {
        self.0.retain(|(own, _)| *own != family);
        self.0.extend(link.map(|link| (family, link)));
    }
}

impl ClientSetup {
    /// Plan the network of the instance `name` over these interfaces, of which those after the first
    /// `regular` are backups. Without a relay, uplinks use all families of this host.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn new(
        name: &str,
        interfaces: Vec<String>,
        regular: usize,
        relay: Vec<IpAddr>,
        neighbours: Neighbours,
    ) -> io::Result<Self> {
        let first = free_tables(interfaces.len() as u32 + Tun::NUMBERS)?;
        let (device, table) = (super::device_name(name), super::table_name(name));
        let is_used = |family: &Family| {
            family.is_supported() && (relay.is_empty() || family.find(&relay).is_some())
        };
        let families = Family::ALL.into_iter().filter(is_used).collect();
        let tun = None;
        Ok(ClientSetup {
            device,
            table,
            neighbours,
            relay,
            families,
            interfaces,
            regular,
            first,
            tun,
        })
    }

    /// The same plan, with a device that takes the connections of programs. A relay reaches
    /// destinations of both families, and the engine those of its own addresses.
    pub(crate) fn with_tun(self) -> Self {
        let name = &self.device[super::device_name("").len()..];
        let mut families = Family::ALL.to_vec();
        families.retain(|family| match self.relay.is_empty() {
            true => self.families.contains(family),
            false => family.exists(),
        });
        let first = self.first + self.interfaces.len() as u32;
        let tun = Tun::new(name, families, first, self.neighbours.number());
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

    /// Families of the engine's addresses.
    pub(crate) fn families(&self) -> &[Family] {
        &self.families
    }

    /// The ways over all uplinks now. Towards a relay, an uplink uses one family at a time, and keeps
    /// that of `before` as long as it works: two subflows over one uplink would compete.
    ///
    /// # Errors
    /// If `ip` is missing.
    pub(crate) fn ways(&self, before: &[Ways]) -> io::Result<Vec<Ways>> {
        let all = self.interfaces.iter().enumerate().map(|(index, interface)| {
            let mut ways = Ways::default();
            for family in &self.families {
                ways.set(*family, link(interface, *family, family.find(&self.relay))?);
            }
            if !self.relay.is_empty() && ways.0.len() > 1 {
                let used = |(family, _): &&(Family, Link)| {
                    before.get(index).is_some_and(|before| before.get(*family).is_some())
                };
                let kept = ways.0.iter().find(used).unwrap_or(&ways.0[0]).clone();
                ways = Ways(vec![kept]);
            }
            Ok(ways)
        });
        all.collect()
    }

    /// The uplinks with these ways.
    pub(crate) fn uplinks(&self, ways: &[Ways]) -> Vec<Uplink> {
        let all = self.interfaces.iter().zip(ways).enumerate();
        let uplink = |(index, (interface, ways)): (usize, (&String, &Ways))| {
            let of = |family: &Family| self.address(index, *family);
            let mtus = ways.0.iter().map(|(_, link)| link.mtu);
            Uplink {
                interface: interface.clone(),
                addresses: self.families.iter().map(of).collect(),
                usable: ways.0.iter().map(|(family, _)| of(family)).collect(),
                mtu: mtus.min().unwrap_or(MOST_MTU).min(MOST_MTU),
                backup: index >= self.regular,
                budget: None,
            }
        };
        all.map(uplink).collect()
    }

    /// All commands, for a device that the user `owner` may open.
    pub(crate) fn plan(&self, owner: u32, ways: &[Ways]) -> Setup {
        let up = device(&self.device, owner, &self.families);
        let mut setup = Setup { number: self.neighbours.number(), up, down: Vec::new() };
        let of_programs = |tun: &Tun| {
            let rules = tun.rules(&self.interfaces, &self.relay);
            tun.plan(owner, rules)
        };
        let tun = self.tun.as_ref().map(of_programs).unwrap_or_default();
        // Programs keep their way until everything else is there.
        setup.down.extend(tun.down);
        for family in &self.families {
            self.plan_family(*family, ways, &mut setup);
        }
        setup.up.extend(tun.up);
        setup.down.push(SetupStep::ip(format!("link del {}", self.device)));
        setup
    }

    fn plan_family(&self, family: Family, ways: &[Ways], setup: &mut Setup) {
        let closed = self.neighbours.closed(family, &self.interfaces);
        // The filter comes before the first packet.
        setup.up.push(SetupStep::nft(self.rules(family, &closed)));
        let flag = family.flag();
        for (index, interface) in self.interfaces.iter().enumerate() {
            let (address, table) = (self.address(index, family), self.first + index as u32);
            setup.up.push(SetupStep::ip(format!(
                "{flag} route add {address} dev {} proto {PROTOCOL}",
                self.device
            )));
            // Nothing of this uplink may leave through another one while it is down.
            setup.up.push(SetupStep::ip(format!(
                "{flag} route add unreachable default metric 4278198272 table {table} proto {PROTOCOL}"
            )));
            let rule =
                format!("from {address} lookup {table} priority {table} protocol {PROTOCOL}");
            setup.up.push(SetupStep::ip(format!("{flag} rule add {rule}")));
            setup.down.push(SetupStep::ip(format!("{flag} rule del {rule}")));
            setup
                .down
                .push(SetupStep::ip(format!("{flag} route flush table {table} proto {PROTOCOL}")));
            let link = ways.get(index).and_then(|ways| ways.get(family));
            setup.up.extend(link.iter().flat_map(|link| self.connect(index, family, link)));
            if closed.contains(&interface.as_str()) {
                setup.down.extend(self.neighbours.stop_forwarding(family, interface));
            }
        }
        setup.down.push(SetupStep::nft(format!("delete table {} {}\n", family.nft(), self.table)));
    }

    /// Commands that connect an uplink which has come up.
    pub(crate) fn connect(&self, index: usize, family: Family, link: &Link) -> Vec<SetupStep> {
        let (interface, table) = (&self.interfaces[index], self.first + index as u32);
        let flag = family.flag();
        let via = link.gateway.map_or_else(String::new, |gateway| format!("via {gateway} "));
        let onlink = if link.gateway.is_some() { " onlink" } else { "" };
        let route = SetupStep::ip(format!(
            "{flag} route replace default {via}dev {interface} table {table} proto {PROTOCOL}{onlink}"
        ));
        // Answers to the engine arrive here.
        let forwarding = family.forwarding(interface).map(|key| SetupStep::sysctl(key, "1"));
        std::iter::once(route).chain(forwarding).collect()
    }

    /// Returns `true` if the commands of [`ClientSetup::connect`] are still in force.
    pub(crate) fn is_connected(&self, index: usize, family: Family) -> bool {
        has_own_route(&self.interfaces[index], family, self.first + index as u32)
    }

    /// The engine's address on an uplink.
    pub(crate) fn address(&self, index: usize, family: Family) -> IpAddr {
        let further = index + MOST_UPLINKS * usize::from(self.neighbours.number());
        match family {
            Family::V4 => Ipv4Addr::from(u32::from(FIRST_IPV4) + further as u32).into(),
            Family::V6 => Ipv6Addr::from(u128::from(FIRST_IPV6) + further as u128).into(),
        }
    }

    /// The packet filter: addresses of the engine are translated to those of the uplinks, and reach
    /// nothing but the relay. Interfaces in `closed` did not forward packets before.
    fn rules(&self, family: Family, closed: &[&str]) -> String {
        let (table, device, nft) = (&self.table, &self.device, family.nft());
        let mut translate = String::new();
        let mut pass = String::new();
        let relay = family.find(&self.relay);
        let relay = relay.map_or_else(String::new, |relay| format!("{nft} daddr {relay} "));
        for (index, interface) in self.interfaces.iter().enumerate() {
            let address = self.address(index, family);
            let of_uplink = format!("{nft} saddr {address} oifname \"{interface}\"");
            translate += &format!("    {of_uplink} masquerade\n");
            pass += &format!("    iifname \"{device}\" {of_uplink} {relay}accept\n");
        }
        pass += &format!("    iifname \"{device}\" drop\n");
        pass += &format!("    oifname \"{device}\" ct state established,related accept\n");
        pass += &format!("    oifname \"{device}\" drop\n");
        pass += &no_router(closed);
        format!(
            "table {nft} {table} {{\n\
             \x20 chain translate {{\n\
             \x20   type nat hook postrouting priority srcnat; policy accept;\n\
             {translate}\
             \x20 }}\n\
             \x20 chain pass {{\n\
             \x20   type filter hook forward priority filter; policy accept;\n\
             {pass}\
             \x20 }}\n\
             }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(relay: Vec<IpAddr>) -> ClientSetup {
        ClientSetup {
            device: "ab-home".to_owned(),
            table: "anabranch_home".to_owned(),
            neighbours: Neighbours::default(),
            relay,
            families: Family::ALL.to_vec(),
            interfaces: vec!["eth0".to_owned(), "wwan0".to_owned()],
            regular: 2,
            first: 7300,
            tun: None,
        }
    }

    #[test]
    fn the_filter_passes_the_engine_and_nobody_else() {
        let setup = setup(vec![[192, 0, 2, 1].into()]);
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
    iifname \"wwan0\" oifname != \"ab-*\" drop
  }
}
";
        assert_eq!(setup.rules(Family::V4, &["wwan0"]), expected);
        let link = Link { gateway: Some([10, 0, 0, 1].into()), mtu: 1500 };
        assert_eq!(
            setup.connect(1, Family::V4, &link)[0].to_string(),
            "ip -4 route replace default via 10.0.0.1 dev wwan0 table 7301 proto 196 onlink"
        );
    }

    #[test]
    fn ipv6_has_a_table_and_addresses_of_its_own() {
        let setup = setup(vec!["2001:db8::1".parse().expect("an address")]);
        let rules = setup.rules(Family::V6, &[]);
        assert!(rules.starts_with("table ip6 anabranch_home {"), "{rules}");
        let pass = "ip6 saddr 2001:2:0:77::2 oifname \"wwan0\" ip6 daddr 2001:db8::1 accept";
        assert!(rules.contains(pass), "{rules}");
        let plan = setup.plan(65_534, &[]).up;
        let rule = "ip -6 rule add from 2001:2:0:77::2 lookup 7301 priority 7301 protocol 196";
        assert!(plan.iter().any(|step| step.to_string() == rule), "{plan:#?}");
    }
}
