//! Attacks with recorded packets.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::cases::{DESTINATION, DESTINATION_PORT, FAST, Result, World, require, this};

/// Somebody on the first uplink has recorded a SYN with a request, and sends copies of it: from the
/// port of the open connection, and from others, so that the relay sees new connections. The relay
/// connects to the destination no further time.
pub(crate) fn recorded_syn() -> Result {
    let world = World::new([FAST, FAST])?;
    let relay = world.start_relay("--metrics 127.0.0.1:9124")?;
    let _client = world.start_client("--uplink c1")?;
    let requests = |outcome: &str| {
        world.metric_of(&world.relay, &format!("requests_total{{outcome=\"{outcome}\"}}"))
    };
    // The first connection asks for a cookie. The SYN of the second one has the request.
    world.fetch(1000, 1)?;
    let mut command = world.client.command(&this());
    let target = format!("{DESTINATION}:{DESTINATION_PORT}");
    let long = command.args(["--fetch", &target, "100000000", "1"]).stdout(Stdio::piped());
    let long = long.spawn()?;
    thread::sleep(Duration::from_millis(500));
    // The connection is open.
    replay(&world, "")?;
    let long = String::from_utf8(long.wait_with_output()?.stdout)?;
    require(long.starts_with("100000000 "), &*long)?;
    require((requests("opened")?, requests("unproved")?) == (2.0, 0.0), "a copy of an open SYN")?;
    for (count, port) in [(1.0, "40001"), (2.0, "40002")] {
        replay(&world, port)?;
        if count == 1.0 {
            relay.wait_for("the proof was used before")?;
        }
        let unproved = requests("unproved")?;
        require(unproved == count, format!("{unproved} refusals instead of {count}"))?;
    }
    require(requests("opened")? == 2.0, "a copy has reached the destination")?;
    // The client's own requests still work.
    world.fetch(1000, 1)?;
    require(requests("opened")? == 3.0, "a new request")
}

/// Send the recorded SYN once more, and wait until the relay has it.
fn replay(world: &World, port: &str) -> Result {
    let file = world.folder.file("c1.replay");
    fs::write(&file, port)?;
    for _ in 0..100 {
        thread::sleep(Duration::from_millis(20));
        if !file.exists() {
            thread::sleep(Duration::from_millis(200));
            return Ok(());
        }
    }
    Err("no SYN with data was recorded".into())
}
