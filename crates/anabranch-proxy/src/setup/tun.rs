//! The device that takes the TCP connections of programs, and the rules that lead them there.

use std::net::{IpAddr, Ipv4Addr};

use super::{DEVICES, Family, PROTOCOL, Setup, SetupStep, device};

/// Mark of the connections that the device takes (this project): no usual program has it.
const MARK: u32 = 0x0061_6200;

/// Address of the first instance's device, from the range for tests of devices (RFC 2544, RFC 6890).
const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 79, 1);

/// A device, and the numbers of its rules.
#[derive(Clone, Debug)]
pub(super) struct Tun {
    device: String,
    table: String,
    /// Families of the connections that it takes.
    families: Vec<Family>,
    address: Ipv4Addr,
    /// Priority of the first rule. The next number is that of the second rule and of its table.
    first: u32,
}

impl Tun {
    /// Numbers of priorities and tables that it uses.
    pub(super) const NUMBERS: u32 = 2;

    /// The device of the instance with this name and number, for connections of these families.
    pub(super) fn new(name: &str, families: Vec<Family>, first: u32, number: u8) -> Self {
        let (device, table) = (format!("at-{name}"), super::table_name(name));
        let address = Ipv4Addr::from(u32::from(ADDRESS) + u32::from(number));
        Tun { device, table, families, address, first }
    }

    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Commands for the device, which the user `owner` may open, and for the way to it. `rules` are
    /// those of [`rules`](Tun::rules).
    pub(super) fn plan(&self, owner: u32, rules: String) -> Setup {
        let (name, table) = (&self.device, self.first + 1);
        let mut up = device(name, owner, &self.families);
        // Answers come from addresses to which the way is another one. The kernel takes those of IPv4
        // from a device that has an address itself, in its loose mode.
        up.push(SetupStep::ip(format!("addr add {}/32 dev {name}", self.address)));
        up.push(SetupStep::sysctl(format!("net/ipv4/conf/{name}/rp_filter"), "2"));
        // Programs keep their way until everything else is there.
        let mut down = vec![SetupStep::nft(format!("delete table inet {}\n", self.table))];
        for flag in self.families.iter().map(|family| family.flag()) {
            let route = format!("route add default dev {name} table {table} proto {PROTOCOL}");
            up.push(SetupStep::ip(format!("{flag} {route}")));
            // Traffic with a more specific route than the default one, such as that to the local
            // network, keeps this route.
            let main = format!("lookup main suppress_prefixlength 0 priority {}", self.first);
            for way in [main, format!("lookup {table} priority {table}")] {
                let rule = format!("fwmark {MARK:#x} {way} protocol {PROTOCOL}");
                up.push(SetupStep::ip(format!("{flag} rule add {rule}")));
                down.push(SetupStep::ip(format!("{flag} rule del {rule}")));
            }
            down.push(SetupStep::ip(format!("{flag} route flush table {table} proto {PROTOCOL}")));
        }
        up.push(SetupStep::nft(rules));
        down.push(SetupStep::ip(format!("link del {name}")));
        Setup { up, down, ..Setup::default() }
    }

    /// The table that marks connections from their SYN on: those of this host, and those that it
    /// forwards for others. Connections that exist already, and those that others open to this host,
    /// keep their way. The relay is reached directly.
    pub(super) fn rules(&self, uplinks: &[String], relay: &[IpAddr]) -> String {
        let Tun { device, table, .. } = self;
        let names = uplinks.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let to_relay =
            |relay: &IpAddr| format!("    {} daddr {relay} accept\n", Family::of(*relay).nft());
        let direct: String = relay.iter().map(to_relay).collect();
        let of_family = match self.families.contains(&Family::V6) {
            true => "",
            false => "meta nfproto ipv4 ",
        };
        let opening =
            "fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new";
        let mark = format!("    {of_family}{opening} ct mark set {MARK:#x}\n");
        let keep = format!("    ct direction original ct mark {MARK:#x} meta mark set {MARK:#x}\n");
        // Filters of the reverse path, such as firewalld's, look for the way with the packet's mark.
        format!(
            "table inet {table} {{\n\
             \x20 chain own {{\n\
             \x20   type route hook output priority mangle; policy accept;\n\
             {direct}{mark}{keep}\
             \x20 }}\n\
             \x20 chain others {{\n\
             \x20   type filter hook prerouting priority mangle; policy accept;\n\
             \x20   iifname \"{device}\" meta mark set {MARK:#x} accept\n\
             \x20   iifname {DEVICES} accept\n\
             \x20   iifname {{ \"lo\", {names} }} accept\n\
             {direct}{mark}{keep}\
             \x20 }}\n\
             }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_connections_to_others_are_marked() {
        let tun = Tun::new("home", Family::ALL.to_vec(), 7302, 0);
        let expected = "\
table inet anabranch_home {
  chain own {
    type route hook output priority mangle; policy accept;
    ip daddr 192.0.2.1 accept
    ip6 daddr 2001:db8::1 accept
    fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new ct mark set 0x616200
    ct direction original ct mark 0x616200 meta mark set 0x616200
  }
  chain others {
    type filter hook prerouting priority mangle; policy accept;
    iifname \"at-home\" meta mark set 0x616200 accept
    iifname \"ab-*\" accept
    iifname { \"lo\", \"eth0\" } accept
    ip daddr 192.0.2.1 accept
    ip6 daddr 2001:db8::1 accept
    fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new ct mark set 0x616200
    ct direction original ct mark 0x616200 meta mark set 0x616200
  }
}
";
        let relay = ["192.0.2.1", "2001:db8::1"].map(|it| it.parse().expect("an address"));
        assert_eq!(tun.rules(&["eth0".to_owned()], &relay), expected);
        let tun = Tun::new("home", vec![Family::V4], 7302, 0);
        let rules = tun.rules(&["eth0".to_owned()], &[]);
        assert!(rules.contains("meta nfproto ipv4 fib daddr type unicast tcp flags"), "{rules}");
    }

    #[test]
    fn marked_packets_leave_through_the_device_unless_they_have_a_route_of_their_own() {
        let setup = Tun::new("home", Family::ALL.to_vec(), 7302, 0).plan(65_534, String::new());
        let all = |steps: &[SetupStep]| steps.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (up, down) = (all(&setup.up), all(&setup.down));
        for flag in ["-4", "-6"] {
            let route = format!("ip {flag} route add default dev at-home table 7303 proto 196");
            assert!(up.contains(&route), "{route} is not in {up:#?}");
            for rule in [
                "fwmark 0x616200 lookup main suppress_prefixlength 0 priority 7302 protocol 196",
                "fwmark 0x616200 lookup 7303 priority 7303 protocol 196",
            ] {
                for (command, steps) in [("add", &up), ("del", &down)] {
                    let step = format!("ip {flag} rule {command} {rule}");
                    assert!(steps.contains(&step), "{step} is not in {steps:#?}");
                }
            }
        }
    }
}
