//! Uplinks, relays and destinations with addresses of both families.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::cases::{
    DESTINATION, DESTINATION_PORT, FAST, PORT, RELAY, Result, World, program, require, unchanged,
};
use crate::rooms::{Room, Running};

/// The relay and the destination, with addresses like those of the Internet.
pub(crate) const RELAY_IPV6: &str = "2a00:5124::1";
pub(crate) const DESTINATION_IPV6: &str = "2a00:80::2";

/// Uplinks with IPv4 only, with IPv6 only, and with both carry connections to destinations of both
/// families. Nothing is left afterwards.
pub(crate) fn uplinks() -> Result {
    if !are_supported() {
        println!("    skipped: IPv6 uplinks need Linux 6.17");
        return Ok(());
    }
    let world = World::new([FAST, FAST])?;
    give_ipv6(&world)?;
    let before = (state(&world, &world.client)?, state(&world, &world.relay)?);
    let mut relay = world.start_relay("")?;
    mixed(&world)?;
    both(&world)?;
    ipv6_only(&world)?;
    relay.end("-TERM")?;
    world.client.run("ip addr add 10.1.0.2/24 dev c1")?;
    world.client.run("ip route add default dev c1 metric 100")?;
    unchanged(&before.0, &state(&world, &world.client)?)?;
    unchanged(&before.1, &state(&world, &world.relay)?)
}

/// Returns `true` if this kernel supports uplinks with IPv6.
pub(crate) fn are_supported() -> bool {
    Path::new("/proc/sys/net/ipv6/conf/all/force_forwarding").exists()
}

/// Give IPv6 addresses to the relay, the destination, and the second uplink, which loses its IPv4
/// address.
pub(crate) fn give_ipv6(world: &World) -> Result {
    for (room, interface, address) in [
        (&world.client, "c2", "2a00:2::2/64"),
        (&world.relay, "r1", "2a00:1::1/64"),
        (&world.relay, "r2", "2a00:2::1/64"),
        (&world.relay, "near0", "2a00:80::1/64"),
        (&world.relay, "lo", "2a00:5124::1/128"),
        (&world.destination, "far0", "2a00:80::2/64"),
    ] {
        room.run(&format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=0"))?;
        room.run(&format!("ip -6 addr add {address} dev {interface} nodad"))?;
    }
    world.client.run("ip -6 route add default via 2a00:2::1 dev c2")?;
    world.client.run("ip addr del 10.2.0.2/24 dev c2")?;
    let hosts = format!("{RELAY} relay.test\n{RELAY_IPV6} relay.test\n");
    Ok(fs::write(world.folder.file("hosts"), hosts)?)
}

/// A client whose resolver knows the relay by name, with both addresses.
pub(crate) fn client(world: &World, relay: &str, more: &[&str]) -> Result<Running> {
    let hosts = world.folder.file("hosts");
    let script = format!("mount --bind {} /etc/hosts && exec \"$@\"", hosts.display());
    let mut command = world.client.command(Path::new("unshare"));
    command.args(["--mount", "sh", "-c", &script, "sh", &program()]);
    command.args(["client", "--relay", relay, "--secret-file", &world.secret()]);
    command.args(["--uplink", "c1", "--uplink", "c2", "--metrics", "127.0.0.1:9124"]);
    command.args(more);
    command.env("RUNTIME_DIRECTORY", world.folder.file("run"));
    let running = Running::start(&mut command)?;
    running.wait_for("ready for SOCKS5")?;
    Ok(running)
}

/// The first uplink has IPv4 only, the second one IPv6 only.
fn mixed(world: &World) -> Result {
    let mut client = client(world, &format!("relay.test:{PORT}"), &[])?;
    for target in [
        format!("{DESTINATION}:{DESTINATION_PORT}"),
        format!("[{DESTINATION_IPV6}]:{DESTINATION_PORT}"),
    ] {
        let before = received(world)?;
        world.fetch_from(&target, 20_000_000, 1)?;
        let after = received(world)?;
        let carried = [after[0] - before[0], after[1] - before[1]];
        require(carried.iter().all(|bytes| *bytes > 1e6), format!("{target}: {carried:?} bytes"))?;
    }
    Ok(client.end("-TERM")?)
}

/// An uplink with both families uses IPv4, and IPv6 once IPv4 is gone.
fn both(world: &World) -> Result {
    world.client.run("sysctl -qw net.ipv6.conf.c1.disable_ipv6=0")?;
    world.client.run("ip -6 addr add 2a00:1::2/64 dev c1 nodad")?;
    world.client.run("ip -6 route add default via 2a00:1::1 dev c1 metric 2000")?;
    let mut client = client(world, &format!("relay.test:{PORT}"), &[])?;
    let before = received(world)?;
    world.fetch(20_000_000, 1)?;
    require(received(world)?.iter().zip(before).all(|(now, then)| now - then > 1e6), "both")?;
    world.client.run("ip addr del 10.1.0.2/24 dev c1")?;
    client.wait_for("uplink=\"c1\" state=\"up\" address=2001:2:0:77::1")?;
    let before = received(world)?;
    world.fetch(20_000_000, 1)?;
    let after = received(world)?;
    require(after[0] - before[0] > 1e6, format!("{before:?} and then {after:?} bytes"))?;
    Ok(client.end("-TERM")?)
}

/// No uplink has IPv4.
fn ipv6_only(world: &World) -> Result {
    let mut client = client(world, &format!("[{RELAY_IPV6}]:{PORT}"), &[])?;
    world.fetch(20_000_000, 1)?;
    world.fetch_from(&format!("[{DESTINATION_IPV6}]:{DESTINATION_PORT}"), 20_000_000, 1)?;
    let bytes = received(world)?;
    require(bytes.iter().all(|bytes| *bytes > 1e6), format!("{bytes:?} bytes"))?;
    client.end("-TERM")?;
    world.client.run("ip -6 addr del 2a00:1::2/64 dev c1")?;
    Ok(world.client.run("sysctl -qw net.ipv6.conf.c1.disable_ipv6=1").map(drop)?)
}

/// Wait until the uplinks have brought the first data of a transfer.
pub(crate) fn wait_for_data(world: &World, before: [f64; 2]) -> Result {
    for _ in 0..200 {
        if received(world)?.iter().sum::<f64>() > before.iter().sum::<f64>() + 1e5 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err("no data arrives".into())
}

/// Bytes received over both uplinks.
pub(crate) fn received(world: &World) -> Result<[f64; 2]> {
    let of = |uplink: &str| {
        world.metric(&format!("uplink_bytes_total{{uplink=\"{uplink}\",direction=\"received\"}}"))
    };
    Ok([of("c1")?, of("c2")?])
}

/// The state that the proxy changes, with that of IPv6.
pub(crate) fn state(world: &World, room: &Room) -> Result<String> {
    let mut state = world.state(room)?;
    for command in ["ip -6 rule show", "ip -6 route show table all"] {
        state += &room.run(command)?;
    }
    for interface in ["c1", "c2", "r1", "r2", "all"] {
        let key = format!("sysctl net.ipv6.conf.{interface}.force_forwarding");
        state += &room.run(&key).unwrap_or_default();
    }
    // Addresses of the links come late.
    let lines = state.lines().filter(|line| !line.contains("fe80:"));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}
