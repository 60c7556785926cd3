//! The device that takes the TCP connections of programs, and the rules that lead them there.

use std::net::{IpAddr, Ipv4Addr};

use super::{Family, PROTOCOL, Setup, Step, device};

/// Mark of the connections that the device takes (this project): no usual program has it.
const MARK: u32 = 0x0061_6200;

/// Address of the device, from the range for tests of devices (RFC 2544, RFC 6890).
const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 79, 1);

/// A device, and the numbers of its rules.
#[derive(Clone, Debug)]
pub(super) struct Tun {
    device: String,
    /// Priority of the first rule. The next number is that of the second rule and of its table.
    first: u32,
}

impl Tun {
    /// Numbers of priorities and tables that it uses.
    pub(super) const NUMBERS: u32 = 2;

    /// The device of the instance `name`.
    pub(super) fn new(name: &str, first: u32) -> Self {
        Tun { device: format!("at-{name}"), first }
    }

    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Commands for the device, which the user `owner` may open, and for the way to it.
    pub(super) fn plan(&self, owner: u32) -> Setup {
        let (name, table) = (&self.device, self.first + 1);
        let mut up = device(name, owner, &[Family::V4]);
        // Answers come from addresses to which the way is another one. The kernel takes them from a
        // device that has an address itself, in its loose mode.
        up.push(Step::ip(format!("addr add {ADDRESS}/32 dev {name}")));
        up.push(Step::sysctl(format!("net/ipv4/conf/{name}/rp_filter"), "2"));
        up.push(Step::ip(format!("route add default dev {name} table {table} proto {PROTOCOL}")));
        // What has a more specific route than the default one, such as the local network, stays there.
        let rules = [
            format!(
                "fwmark {MARK:#x} lookup main suppress_prefixlength 0 priority {} protocol {PROTOCOL}",
                self.first
            ),
            format!("fwmark {MARK:#x} lookup {table} priority {table} protocol {PROTOCOL}"),
        ];
        let mut down = Vec::new();
        for rule in rules {
            down.push(Step::ip(format!("rule del {rule}")));
            up.push(Step::ip(format!("rule add {rule}")));
        }
        down.push(Step::ip(format!("route flush table {table}")));
        down.push(Step::ip(format!("link del {name}")));
        Setup { up, down }
    }

    /// Chains that mark connections from their SYN on: those of this host, and those that it forwards
    /// for others. Connections that exist already, and those that others open to this host, keep
    /// their way. The relay is reached directly.
    pub(super) fn chains(&self, engine: &str, uplinks: &[String], relay: Option<IpAddr>) -> String {
        let Tun { device, .. } = self;
        let not_relay = relay.map_or_else(String::new, |relay| format!("ip daddr != {relay} "));
        let names = uplinks.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let opening =
            "fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new";
        let mark = format!("    {not_relay}{opening} ct mark set {MARK:#x}\n");
        let keep = format!("    ct direction original ct mark {MARK:#x} meta mark set {MARK:#x}\n");
        format!(
            "\x20 chain own {{\n\
             \x20   type route hook output priority mangle; policy accept;\n\
             {mark}{keep}\
             \x20 }}\n\
             \x20 chain others {{\n\
             \x20   type filter hook prerouting priority mangle; policy accept;\n\
             \x20   iifname {{ \"{engine}\", \"{device}\", \"lo\", {names} }} accept\n\
             {mark}{keep}\
             \x20 }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_connections_to_others_are_marked() {
        let tun = Tun::new("home", 7302);
        let expected = "\
\x20 chain own {
    type route hook output priority mangle; policy accept;
    ip daddr != 192.0.2.1 fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new ct mark set 0x616200
    ct direction original ct mark 0x616200 meta mark set 0x616200
  }
  chain others {
    type filter hook prerouting priority mangle; policy accept;
    iifname { \"ab-home\", \"at-home\", \"lo\", \"eth0\" } accept
    ip daddr != 192.0.2.1 fib daddr type unicast tcp flags & (fin | syn | rst | ack) == syn ct state new ct mark set 0x616200
    ct direction original ct mark 0x616200 meta mark set 0x616200
  }
";
        let relay = Some([192, 0, 2, 1].into());
        assert_eq!(tun.chains("ab-home", &["eth0".to_owned()], relay), expected);
    }

    #[test]
    fn marked_packets_leave_through_the_device_unless_they_have_a_route_of_their_own() {
        let setup = Tun::new("home", 7302).plan(65_534);
        let up: Vec<_> = setup.up.iter().map(ToString::to_string).collect();
        for command in [
            "ip route add default dev at-home table 7303 proto 196",
            "ip rule add fwmark 0x616200 lookup main suppress_prefixlength 0 priority 7302 protocol 196",
            "ip rule add fwmark 0x616200 lookup 7303 priority 7303 protocol 196",
        ] {
            assert!(up.iter().any(|step| step == command), "{command} is not in {up:#?}");
        }
    }
}
