//! The network of a kernel host: a namespace with interfaces, addresses, routes and Multipath TCP
//! endpoints.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use anabranch_sim::Side;
use anabranch_sim::driver;
use anabranch_sim::scenario::{Change, Limits, LinkState, Protocol, Scenario};
use anabranch_wire::Instant;

use crate::namespace::{Namespace, ip, set_sysctl};
use crate::settings::{KernelSettings, Subflow};
use crate::sys::{self, PacketSocket};

/// A namespace, and the far ends of its interfaces.
pub(crate) struct KernelNetwork {
    pub(crate) namespace: Namespace,
    /// The client has one for each path, and the server has one.
    pub(crate) ports: Vec<PacketSocket>,
}

/// One interface of a host.
struct Interface {
    name: String,
    far_name: String,
    station: [u8; 6],
    /// Largest packet that the host sends, in bytes.
    route_mtu: u16,
    /// Largest packet that the host receives, in bytes.
    device_mtu: u16,
    addresses: Vec<IpAddr>,
}

impl KernelNetwork {
    /// The network of one side of `scenario`. The far ends of its interfaces are in this thread's
    /// namespace.
    pub(crate) fn new(
        side: Side,
        scenario: &Scenario,
        settings: &KernelSettings,
    ) -> io::Result<Self> {
        let namespace = Namespace::new()?;
        let interfaces = interfaces(side, scenario, settings);
        let mut links = Vec::new();
        for Interface { name, far_name, station, device_mtu, .. } in &interfaces {
            let [a, b, c, d, e, f] = station;
            links.push(format!(
                "link add {far_name} type veth peer name {name} \
                 address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"
            ));
            links.push(format!("link set {name} netns {}", namespace.path()));
            links.push(format!("link set {far_name} mtu {device_mtu} arp off up"));
        }
        ip(&links)?;
        // Only this process uses the far ends: suppress router solicitations there.
        for interface in &interfaces {
            let _ = set_sysctl(&format!("ipv6/conf/{}/disable_ipv6", interface.far_name), "1");
        }
        namespace.within(|| set_up(side, settings, &interfaces))?;
        interfaces.iter().try_for_each(|each| wait_for(&each.far_name))?;
        let open = |each: &Interface| PacketSocket::open(&each.far_name, each.station);
        let ports = interfaces.iter().map(open).collect::<io::Result<_>>()?;
        Ok(KernelNetwork { namespace, ports })
    }
}

fn interfaces(side: Side, scenario: &Scenario, settings: &KernelSettings) -> Vec<Interface> {
    let paths = &scenario.paths;
    let interface = |number: usize, mtu, addresses| Interface {
        name: format!("path{number}"),
        far_name: format!("{}{number}", if side == Side::Client { "client" } else { "server" }),
        station: station(side, number),
        route_mtu: mtu,
        device_mtu: if settings.coalesced { u16::MAX } else { mtu },
        addresses,
    };
    match side {
        Side::Client => (0..paths.len())
            .map(|path| interface(path, paths[path].mtu, vec![driver::client_address(paths, path)]))
            .collect(),
        Side::Server => {
            let mtu = paths.iter().map(|path| path.mtu).max().unwrap_or(1500);
            vec![interface(0, mtu, driver::server_addresses(paths))]
        }
    }
}

/// The link-layer address of an interface: a locally administered one.
pub(crate) fn station(side: Side, number: usize) -> [u8; 6] {
    let [high, low] = (number as u16).to_be_bytes();
    [0x02, 0xab, side as u8, 0, high, low]
}

/// Set up one side of a scenario. Call this inside the namespace.
fn set_up(side: Side, settings: &KernelSettings, interfaces: &[Interface]) -> io::Result<()> {
    set_sysctl("ipv4/conf/all/rp_filter", "0")?;
    set_sysctl("ipv4/conf/default/rp_filter", "0")?;
    set_sysctl("ipv4/tcp_no_metrics_save", "1")?;
    set_sysctl("ipv4/tcp_ecn", if settings.ecn { "1" } else { "0" })?;
    set_sysctl("ipv4/tcp_mtu_probing", settings.mtu_probing.sysctl())?;
    set_sysctl("ipv4/tcp_sack", if settings.sack { "1" } else { "0" })?;
    set_sysctl("ipv4/tcp_timestamps", if settings.timestamps { "1" } else { "0" })?;
    // After a lost SYN, Linux would make the next connections plain TCP. A scenario may want that.
    let _ = set_sysctl("mptcp/blackhole_timeout", "0");
    let join_anywhere = if settings.allow_join_initial_addr_port { "1" } else { "0" };
    set_sysctl("mptcp/allow_join_initial_addr_port", join_anywhere)?;
    set_sysctl("mptcp/checksum_enabled", if settings.checksums { "1" } else { "0" })?;
    for (name, initial, most) in [
        ("tcp_rmem", settings.first_receive_memory, settings.most_receive_memory),
        ("tcp_wmem", 16_384, settings.most_send_memory),
    ] {
        set_sysctl(&format!("ipv4/{name}"), &format!("4096 {initial} {most}"))?;
    }
    for (name, value) in settings.failures.sysctls() {
        match set_sysctl(name, &value) {
            // tcp_syn_linear_timeouts is of Linux 6.5, and syn_retrans_before_tcp_fallback of 6.14.
            Err(lacks) if lacks.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    let mut commands = vec!["link set lo up".to_owned()];
    for (number, each) in interfaces.iter().enumerate() {
        // Without ARP: all packets of an interface go to the same station.
        commands.push(format!("link set {} mtu {} arp off up", each.name, each.device_mtu));
        for (index, address) in each.addresses.iter().enumerate() {
            let family_is_new =
                each.addresses[..index].iter().all(|other| other.is_ipv4() != address.is_ipv4());
            let [address, rule, routes @ ..] = address_commands(each, number, *address);
            commands.extend([address, rule]);
            commands.extend(routes.into_iter().filter(|_| family_is_new));
        }
    }
    let Limits { subflows, add_addr_accepted } = settings.limits;
    let [subflows, accepted] =
        [subflows, add_addr_accepted].map(|limit| limit.unwrap_or(MOST).min(MOST));
    commands.push(format!("mptcp limits set subflow {subflows} add_addr_accepted {accepted}"));
    commands.extend(match side {
        Side::Client => endpoints(settings, interfaces),
        Side::Server => announced(&interfaces[0]),
    });
    ip(&commands)?;
    interfaces.iter().try_for_each(|each| {
        sys::disable_offloads(&each.name)?;
        wait_for(&each.name)
    })
}

/// Largest limit of Linux's path manager.
const MOST: u8 = 8;

/// Wait until an interface that is up forwards packets.
pub(crate) fn wait_for(interface: &str) -> io::Result<()> {
    for _ in 0..SETTLING_MILLISECONDS {
        if sys::is_running(interface)? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::new(ErrorKind::TimedOut, format!("interface {interface} does not come up")))
}

const SETTLING_MILLISECONDS: u32 = 5_000;

/// Commands that add an address, a route for packets from it, and a route for packets without a
/// source address.
fn address_commands(interface: &Interface, number: usize, address: IpAddr) -> [String; 4] {
    let (family, bits) = if address.is_ipv4() { ("", "32") } else { ("-6 ", "128 nodad") };
    let Interface { name, route_mtu: mtu, .. } = interface;
    let table = 100 + number;
    [
        format!("{family}addr add {address}/{bits} dev {name}"),
        format!("{family}rule add from {address} table {table}"),
        format!("{family}route add default dev {name} mtu {mtu} table {table}"),
        format!("{family}route add default dev {name} mtu {mtu} metric {}", 1 + number),
    ]
}

/// The endpoints from which a Multipath TCP connection opens subflows.
fn endpoints(settings: &KernelSettings, interfaces: &[Interface]) -> Vec<String> {
    let endpoint = |subflow: &Subflow| {
        let Interface { name, addresses, .. } = &interfaces[subflow.path];
        let (address, id) = (addresses[0], subflow.address_id);
        let backup = if subflow.backup { " backup" } else { "" };
        format!("mptcp endpoint add {address} dev {name} id {id} subflow{backup}")
    };
    settings.subflows.iter().map(endpoint).collect()
}

/// The times and the commands by which a client notices that paths go down and come up: its path manager
/// removes the endpoint of the path's address, which closes the subflows there and withdraws the address,
/// and adds it again.
pub(crate) fn noticed_changes(
    scenario: &Scenario,
    settings: &KernelSettings,
) -> Vec<(Instant, String)> {
    if scenario.connections.iter().all(|each| each.protocol != Protocol::Mptcp) {
        return Vec::new();
    }
    let paths = scenario.paths.iter().enumerate();
    paths.flat_map(|(path, _)| noticed_changes_of(scenario, settings, path)).collect()
}

fn noticed_changes_of(
    scenario: &Scenario,
    settings: &KernelSettings,
    path: usize,
) -> Vec<(Instant, String)> {
    let address = driver::client_address(&scenario.paths, path);
    let endpoint = settings.subflows.iter().find(|subflow| subflow.path == path);
    let backup = if endpoint.is_some_and(|subflow| subflow.backup) { " backup" } else { "" };
    let id = endpoint.map_or(scenario.paths.len(), |subflow| subflow.address_id);
    // The address of a connection's first subflow has identifier 0 and no endpoint at first.
    let mut has_endpoint = endpoint.is_some();
    let noticed = scenario.paths[path].changes.iter().filter(|change| change.noticed);
    let command = |change: &Change| {
        let is_up = change.state == Some(LinkState::Up);
        let command = match (is_up, has_endpoint) {
            (true, _) => format!("add {address} dev path{path} id {id} subflow{backup}"),
            (false, true) => format!("delete id {id}"),
            (false, false) => format!("delete id 0 {address}"),
        };
        has_endpoint |= is_up;
        (Instant::ZERO + change.at, format!("ip mptcp endpoint {command}"))
    };
    noticed.map(command).collect()
}

/// The server's additional addresses, which it announces with ADD_ADDR.
fn announced(Interface { name, addresses, .. }: &Interface) -> Vec<String> {
    let further = addresses.iter().enumerate().skip(1);
    further
        .map(|(id, address)| format!("mptcp endpoint add {address} dev {name} id {id} signal"))
        .collect()
}
