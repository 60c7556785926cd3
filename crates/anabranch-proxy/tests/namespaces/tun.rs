//! Programs that know no proxy, with `--tun`.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::cases::{
    DESTINATION, DESTINATION_PORT, FAST, PORT, RELAY, Result, WIFI, World, require, this,
    unchanged, wait_for_carrier,
};
use crate::ipv6::{self, DESTINATION_IPV6, RELAY_IPV6, received, wait_for_data};
use crate::rooms::{Room, Running, output};

/// Port of the servers on the client and on the relay, which are neighbours.
const NEAR_PORT: &str = "8080";

/// Programs use both uplinks. Connections of others to this host, and to neighbours, keep their way.
/// Nothing is left afterwards.
pub(crate) fn ipv4() -> Result {
    let world = World::new([FAST, FAST])?;
    let before = world.state(&world.client)?;
    let (_here, _neighbour) = (serve(&world.client)?, serve(&world.relay)?);
    let mut relay = world.start_relay("")?;
    let failed = fetch(&world.client, DESTINATION, DESTINATION_PORT, 1000)?;
    require(failed.contains("failed"), "no way without it")?;
    let options = "--uplink c1 --uplink c2 --tun --metrics 127.0.0.1:9124";
    let mut client = world.start_client(options)?;
    carried(&world, DESTINATION, &[true, true])?;
    kept(&world, DESTINATION, &["10.1.0.1"], "10.1.0.2")?;
    client.end("-TERM")?;
    unchanged(&before, &world.state(&world.client)?)?;
    let mut client = world.start_client(options)?;
    client.end("-KILL")?;
    thread::sleep(Duration::from_millis(300));
    let mut client = world.start_client("--uplink c1")?;
    client.end("-TERM")?;
    unchanged(&before, &world.state(&world.client)?)?;
    relay.end("-TERM")?;
    Ok(())
}

/// The same over IPv6, also for a host behind the client. The uplinks have IPv4 only, and then one of
/// them has IPv6 only.
pub(crate) fn ipv6() -> Result {
    let world = World::new([FAST, FAST])?;
    ipv6::give_ipv6(&world)?;
    let behind = behind(&world.client)?;
    // A filter of the reverse path, as that of firewalld.
    let filter = world.folder.file("filter.nft");
    fs::write(&filter, FILTER)?;
    world.client.run(&format!("nft -f {}", filter.display()))?;
    let before = ipv6::state(&world, &world.client)?;
    let (_here, _neighbour) = (serve(&world.client)?, serve(&world.relay)?);
    let mut relay = world.start_relay("")?;
    let failed = fetch(&world.client, DESTINATION_IPV6, DESTINATION_PORT, 1000)?;
    require(failed.contains("failed"), "no way without it")?;

    let arguments = format!(
        "client --uplink c1 --relay {RELAY}:{PORT} --secret-file {} --tun --dry-run",
        world.secret()
    );
    let plan = output(&mut world.proxy(&world.client, &arguments))?;
    require(plan.contains("ip -6 rule add fwmark 0x616200 lookup"), &*plan)?;
    unchanged(&before, &ipv6::state(&world, &world.client)?)?;

    let mut client = ipv6::client(&world, &format!("{RELAY}:{PORT}"), &["--tun"])?;
    carried(&world, DESTINATION_IPV6, &[true, false])?;
    carried(&world, DESTINATION, &[true, false])?;
    for target in [DESTINATION, DESTINATION_IPV6] {
        let transfer = fetch(&behind, target, DESTINATION_PORT, 300_000)?;
        require(transfer.starts_with("300000 "), format!("from behind: {transfer}"))?;
    }
    kept(&world, DESTINATION_IPV6, &["2a00:2::1"], "2a00:2::2")?;
    // The relay has no route there.
    let nowhere = fetch(&world.client, "2a00:99::1", DESTINATION_PORT, 1000)?;
    require(nowhere.contains("refused"), format!("to nowhere: {nowhere}"))?;
    client.end("-TERM")?;
    unchanged(&before, &ipv6::state(&world, &world.client)?)?;

    if ipv6::are_supported() {
        let mut client = ipv6::client(&world, &format!("relay.test:{PORT}"), &["--tun"])?;
        carried(&world, DESTINATION_IPV6, &[true, true])?;
        kept(&world, DESTINATION_IPV6, &["2a00:2::1", RELAY_IPV6], "2a00:2::2")?;
        client.end("-KILL")?;
    } else {
        println!("    partly skipped: IPv6 uplinks need Linux 6.17");
        ipv6::client(&world, &format!("{RELAY}:{PORT}"), &["--tun"])?.end("-KILL")?;
    }
    thread::sleep(Duration::from_millis(300));
    let mut client = world.start_client("--uplink c1")?;
    client.end("-TERM")?;
    unchanged(&before, &ipv6::state(&world, &world.client)?)?;
    Ok(relay.end("-TERM")?)
}

/// While a client drains, it carries open connections to their end. It refuses new ones, so that programs
/// need not wait for the end to try again.
pub(crate) fn draining() -> Result {
    let world = World::new([WIFI, WIFI])?;
    let _relay = world.start_relay("")?;
    let options = "--uplink c1 --uplink c2 --tun --metrics 127.0.0.1:9124";
    let mut client = world.start_client(options)?;
    let target = format!("direct:{DESTINATION}:{DESTINATION_PORT}");
    let mut command = world.client.command(&this());
    let long = command.args(["--fetch", &target, "6000000", "1"]).stdout(Stdio::piped()).spawn()?;
    wait_for_data(&world, [0.0; 2])?;
    client.signal("-TERM")?;
    client.wait_for("draining")?;
    let new = fetch(&world.client, DESTINATION, DESTINATION_PORT, 1000)?;
    require(new.contains("refused"), format!("a new connection: {new}"))?;
    let long = String::from_utf8(long.wait_with_output()?.stdout)?;
    require(long.starts_with("6000000 "), format!("an open connection: {long}"))?;
    require(client.child.wait()?.success(), "the client fails")
}

/// Drops packets whose way back is another one.
const FILTER: &str = "table ip6 firewall {
  chain reverse_path {
    type filter hook prerouting priority filter + 10; policy accept;
    meta l4proto tcp fib saddr . mark . iif oif missing drop
  }
}
";

/// A host behind the client, which is its router.
fn behind(client: &Room) -> Result<Room> {
    let room = Room::new()?;
    client.run(&format!("ip link add lan0 type veth peer name up0 netns {}", room.pid()))?;
    for (room, interface, host) in [(client, "lan0", 1), (&room, "up0", 2)] {
        room.run(&format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=0"))?;
        room.run(&format!("ip addr add 192.168.7.{host}/24 dev {interface}"))?;
        room.run(&format!("ip -6 addr add fd00:7::{host}/64 dev {interface} nodad"))?;
        room.run(&format!("ip link set {interface} up"))?;
    }
    room.run("ip route add default via 192.168.7.1")?;
    room.run("ip -6 route add default via fd00:7::1")?;
    let ipv6 = if ipv6::are_supported() { "lan0.force_forwarding" } else { "all.forwarding" };
    client.run(&format!("sysctl -qw net.ipv4.conf.lan0.forwarding=1 net.ipv6.conf.{ipv6}=1"))?;
    wait_for_carrier(client, "lan0")?;
    Ok(room)
}

/// A server on this host, for all addresses.
fn serve(room: &Room) -> Result<Running> {
    Ok(Running::start(room.command(&this()).args(["--serve", NEAR_PORT]))?)
}

/// The line of a transfer by a program that knows no proxy.
fn fetch(room: &Room, address: &str, port: impl ToString, bytes: usize) -> Result<String> {
    let port = port.to_string();
    let target = match address.contains(':') {
        true => format!("direct:[{address}]:{port}"),
        false => format!("direct:{address}:{port}"),
    };
    let mut command = room.command(&this());
    let text = output(command.args(["--fetch", &target, &bytes.to_string(), "1"]))?;
    Ok(text.trim().to_owned())
}

/// These uplinks carry a transfer from this destination, with all its bytes.
fn carried(world: &World, destination: &str, uplinks: &[bool; 2]) -> Result {
    let before = received(world)?;
    let transfer = fetch(&world.client, destination, DESTINATION_PORT, 20_000_000)?;
    require(transfer.starts_with("20000000 "), &*transfer)?;
    let after = received(world)?;
    let bytes = [after[0] - before[0], after[1] - before[1]];
    let used = bytes.map(|bytes| bytes > 1e6);
    require(used == *uplinks, format!("{destination}: {bytes:?} bytes"))
}

/// A refusal reaches programs. Connections to these neighbours, and those of others to this host, keep
/// their way.
fn kept(world: &World, destination: &str, neighbours: &[&str], own: &str) -> Result {
    let refused = fetch(&world.client, destination, 81, 1000)?;
    require(refused.contains("refused"), format!("a closed port: {refused}"))?;
    let inbound = fetch(&world.relay, own, NEAR_PORT, 300_000)?;
    require(inbound.starts_with("300000 "), format!("to this host: {inbound}"))?;
    let requests = world.metric("requests_total{outcome=\"opened\"}")?;
    for neighbour in neighbours {
        let transfer = fetch(&world.client, neighbour, NEAR_PORT, 300_000)?;
        require(transfer.starts_with("300000 "), format!("to {neighbour}: {transfer}"))?;
    }
    let same = world.metric("requests_total{outcome=\"opened\"}")? == requests;
    require(same, format!("{neighbours:?} were reached through the relay"))
}
