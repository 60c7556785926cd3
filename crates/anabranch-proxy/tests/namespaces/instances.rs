//! Several instances on one host, and other programs that change the same switches.

use crate::cases::{FAST, PORT, RELAY, Result, World, require, unchanged};
use crate::rooms::{Room, Running, output};

/// Relays and clients with the same uplinks do not disturb each other, whichever ends first, and the
/// last one takes down what they share.
pub(crate) fn side_by_side() -> Result {
    let world = World::new([FAST, FAST])?;
    let before = (world.state(&world.client)?, world.state(&world.relay)?);
    let secret = world.secret();
    let relay = |room: &Room, port: u16, interface: &str| -> Result<Running> {
        let arguments = format!(
            "relay --listen {port} --uplink {interface} --secret-file {secret} --name at-{port}"
        );
        let running = Running::start(&mut world.proxy(room, &arguments))?;
        running.wait_for("ready for clients")?;
        Ok(running)
    };
    let mut relays = [
        relay(&world.client, 6000, "c1")?,
        relay(&world.relay, 6001, "r1")?,
        world.start_relay("")?,
    ];
    let mut first =
        world.start_client("--uplink c1 --uplink c2 --name first --listen 127.0.0.1:1081")?;
    let mut client = world.start_client("--uplink c1 --uplink c2")?;
    world.fetch(100_000, 1)?;
    // The user can mend these.
    for (wrong, said) in
        [("r1 --name at-6001", "running"), ("eth9 --name other", "no interface \"eth9\"")]
    {
        let arguments = format!("relay --listen 6002 --secret-file {secret} --uplink {wrong}");
        let ended = world.proxy(&world.relay, &arguments).output()?;
        let text = String::from_utf8_lossy(&ended.stderr);
        let right = ended.status.code() == Some(2) && text.contains(said);
        require(right && text.lines().count() == 1, format!("{}: {text}", ended.status))?;
    }
    let measure = format!("measure --uplink c1 --relay {RELAY}:{PORT} --secret-file {secret}");
    output(&mut world.proxy(&world.client, &format!("{measure} --budget 5MB")))?;
    first.end("-TERM")?;
    world.fetch(100_000, 1)?;
    relays[1].end("-TERM")?;
    world.fetch(100_000, 1)?;
    // Two end at the same time.
    client.signal("-TERM")?;
    relays[0].signal("-TERM")?;
    client.child.wait()?;
    relays[0].child.wait()?;
    relays[2].end("-TERM")?;
    unchanged(&before.0, &world.state(&world.client)?)?;
    unchanged(&before.1, &world.state(&world.relay)?)
}

/// A program that makes the host a router in the meantime keeps its forwarding.
pub(crate) fn with_a_router() -> Result {
    let world = World::new([FAST, FAST])?;
    let forwards = |interface: &str| {
        world.client.run(&format!("sysctl -n net.ipv4.conf.{interface}.forwarding"))
    };
    require(forwards("c1")? == "0\n", "the uplink forwards before the start")?;
    let mut client = world.start_client("--uplink c1")?;
    require(forwards("c1")? == "1\n", "the uplink does not forward")?;
    world.client.run("sysctl -qw net.ipv4.ip_forward=1")?;
    client.end("-TERM")?;
    require(forwards("c1")? == "1\n", "the router's uplink no longer forwards")
}
