//! Hosts that open connections to a relay without its secret.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use crate::cases::{FAST, PORT, RELAY, Result, World, require, this};

/// Connections that a stranger opens.
const COUNT: usize = 300;
/// Connections that the relay takes.
const PLACES: usize = 100;

/// Neither connections without a request nor those with a wrong one keep others out, and the relay
/// soon forgets them.
pub(crate) fn cannot_fill_the_relay() -> Result {
    let world = World::new([FAST, FAST])?;
    let options = format!("--metrics 127.0.0.1:9124 --max-connections {PLACES}");
    let _relay = world.start_relay(&options)?;
    let _client = world.start_client("--uplink c1")?;
    let subflows = || world.metric_of(&world.relay, "uplink_subflows{uplink=\"r1,r2\"}");
    // Nothing; a request for information without a proof (RFC 8803 §6.2.3).
    for request in [&[][..], &[1, 2, 0x22, 0x63, 1, 1, 0, 0]] {
        let mut stranger = hold(&world, request)?;
        thread::sleep(Duration::from_millis(500));
        let left = subflows()?;
        require(left <= PLACES as f64, format!("{request:?}: {left} subflows of strangers"))?;
        let count = world.fetch(1000, 20)?.len();
        require(count == 20, format!("{request:?}: {count} of 20 transfers"))?;
        // Ten seconds for a request, or five for an answer.
        thread::sleep(Duration::from_secs(11));
        let left = subflows()?;
        stranger.kill()?;
        stranger.wait()?;
        require(left == 0.0, format!("{request:?}: {left} subflows after eleven seconds"))?;
    }
    Ok(())
}

/// A program that opens connections, sends the bytes of a request over each, and then does nothing.
fn hold(world: &World, request: &[u8]) -> Result<Child> {
    let file = world.folder.file("request");
    fs::write(&file, request)?;
    let mut command = world.client.command(&this());
    let target = format!("{RELAY}:{PORT}");
    command.args(["--hold", &target, &COUNT.to_string()]).arg(file).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    io::Read::read_exact(child.stdout.as_mut().expect("it is piped"), &mut [0; 4])?;
    Ok(child)
}
