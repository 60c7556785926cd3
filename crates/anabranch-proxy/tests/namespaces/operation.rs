//! Signals, resets and logs: SIGTERM drains a relay, SIGHUP ends no client, a reset of a destination costs no
//! data, and logs name no destination.

use std::process::Stdio;

use crate::cases::{DESTINATION, DESTINATION_PORT, FAST, Result, WIFI, World, require, this};
use crate::ipv6::{received, wait_for_data};

/// After SIGTERM, the relay carries open connections to their end, and then ends itself.
pub(crate) fn draining() -> Result {
    let world = World::new([WIFI, WIFI])?;
    let _client = world.start_client("--uplink c1 --uplink c2 --metrics 127.0.0.1:9124")?;
    // The destination sends its end long before the client has everything.
    for ending in ["", "closed:"] {
        let mut relay = world.start_relay("")?;
        let before = received(&world)?;
        let target = format!("{ending}{DESTINATION}:{DESTINATION_PORT}");
        let mut command = world.client.command(&this());
        let long = command.args(["--fetch", &target, "6000000", "1"]).stdout(Stdio::piped());
        let long = long.spawn()?;
        wait_for_data(&world, before)?;
        relay.end("-TERM")?;
        let status = relay.child.wait()?;
        require(status.success(), format!("the relay ends with {status}"))?;
        let long = String::from_utf8(long.wait_with_output()?.stdout)?;
        require(long.starts_with("6000000 "), format!("{target}: {long}"))?;
    }
    require(world.fetch(1000, 1).is_err(), "a transfer without a relay")
}

/// A destination answers during an upload, and then resets the connection. The program gets the answer
/// and the reset, also if it reads late, and without a proxy.
pub(crate) fn answer_before_reset() -> Result {
    let world = World::new([WIFI, WIFI])?;
    let _relay = world.start_relay("")?;
    let _client = world.start_client("--uplink c1 --uplink c2 --tun")?;
    for way in ["", "direct:"] {
        world.fetch_from(&format!("reset:{way}{DESTINATION}:{DESTINATION_PORT}"), 3_000_000, 1)?;
    }
    Ok(())
}

/// Logs name destinations only if that is asked for.
pub(crate) fn logs() -> Result {
    let world = World::new([FAST, FAST])?;
    for (option, named) in [("", false), ("--log-destinations", true)] {
        let mut relay = world.start_relay(option)?;
        let mut client = world.start_client(&format!("--uplink c1 {option}"))?;
        world.fetch(1000, 1)?;
        for (name, running) in [("client", &mut client), ("relay", &mut relay)] {
            running.end("-TERM")?;
            let log = running.rest();
            let is_named = log.contains(DESTINATION);
            require(is_named == named, format!("{name} with {option:?}: {log}"))?;
        }
    }
    Ok(())
}

/// SIGHUP, which a closing terminal sends, does not end a client.
pub(crate) fn hangup() -> Result {
    let world = World::new([FAST, FAST])?;
    let _relay = world.start_relay("")?;
    let mut client = world.start_client("--uplink c1 --uplink c2")?;
    client.signal("-HUP")?;
    world.fetch(100_000, 1)?;
    client.end("-TERM")?;
    require(client.child.wait()?.success(), "the client fails")
}
