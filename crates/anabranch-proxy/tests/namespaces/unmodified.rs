//! Unmodified programs of others use the proxy.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anabranch_wire::pattern;

use crate::cases::{DESTINATION, FAST, Result, World, require};
use crate::programs::PAGE_BYTES;
use crate::rooms::{Running, output};

/// Both SOCKS5 and HTTP CONNECT carry curl's requests, over both uplinks, and every byte is right.
pub(crate) fn curl() -> Result {
    const BYTES: usize = 20_000_000;
    if !exists("curl") {
        println!("    skipped: the program curl is missing");
        return Ok(());
    }
    let world = World::new([FAST, FAST])?;
    let _ends = started(&world, "")?;
    let file = world.folder.file("fetched");
    for proxy in ["--proxy socks5h://127.0.0.1:1080", "--proxytunnel --proxy http://127.0.0.1:1080"]
    {
        let to = file.display();
        let url = format!("http://{DESTINATION}/{BYTES}");
        world.client.run(&format!("curl -sS --fail --max-time 60 {proxy} -o {to} {url}"))?;
        require(sha256(&fs::read(&file)?) == sha256(&sent(BYTES)), "the bytes are wrong")?;
    }
    require(world.metric("requests_total{outcome=\"opened\"}")? == 2.0, "two requests")?;
    both_uplinks(&world)
}

/// A page in Chromium fetches data over both uplinks, and every byte is right.
pub(crate) fn chromium() -> Result {
    let names = ["chromium", "google-chrome"];
    let Some(chromium) = names.into_iter().find(|name| exists(name)) else {
        println!("    skipped: neither of the programs {names:?} exists");
        return Ok(());
    };
    let world = World::new([FAST, FAST])?;
    let _ends = started(&world, "")?;
    let mut browser = world.client.command(Path::new(chromium));
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"]);
    browser.args(["--disable-background-networking", "--disable-component-update"]);
    browser.arg(format!("--user-data-dir={}", world.folder.file("browser").display()));
    browser.arg("--proxy-server=socks5://127.0.0.1:1080");
    let page = output(browser.arg(format!("http://{DESTINATION}/page")))?;
    let sum = sent(PAGE_BYTES)
        .iter()
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let expected = format!("{PAGE_BYTES} bytes, sum {sum}.");
    require(page.contains(&expected), format!("{expected:?} is not in {page:?}"))?;
    both_uplinks(&world)
}

/// iperf3 knows no proxy, so the client carries it with `--tun`, in both directions.
pub(crate) fn iperf3() -> Result {
    if !exists("iperf3") {
        println!("    skipped: the program iperf3 is missing");
        return Ok(());
    }
    let world = World::new([FAST, FAST])?;
    let mut server = world.destination.command(Path::new("iperf3"));
    server.args(["--server", "--bind", DESTINATION]).stdout(Stdio::null());
    let _server = Running::start(&mut server)?;
    thread::sleep(Duration::from_millis(300));
    let _ends = started(&world, "--tun")?;
    for direction in ["", " --reverse"] {
        let command = format!("iperf3 --client {DESTINATION} --bytes 20M --json{direction}");
        let report = world.client.run(&command)?;
        require(!report.contains("\"error\""), report)?;
    }
    both_uplinks(&world)
}

/// Relay and client, with both uplinks.
fn started(world: &World, more: &str) -> Result<[Running; 2]> {
    let relay = world.start_relay("")?;
    let options = format!("--uplink c1 --uplink c2 --metrics 127.0.0.1:9124 {more}");
    Ok([relay, world.start_client(&options)?])
}

/// Each uplink has brought more than a megabyte.
fn both_uplinks(world: &World) -> Result {
    for uplink in ["c1", "c2"] {
        let bytes = world
            .metric(&format!("uplink_bytes_total{{uplink=\"{uplink}\",direction=\"received\"}}"))?;
        require(bytes > 1e6, format!("{uplink} received {bytes} bytes"))?;
    }
    Ok(())
}

/// The bytes that the server sends.
fn sent(count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        let chunk = pattern::MAX_SLICE.min(count - bytes.len());
        bytes.extend(pattern::slice(pattern::phase_of(bytes.len() as u64), chunk));
    }
    bytes
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).to_vec()
}

fn exists(program: &str) -> bool {
    output(Command::new(program).arg("--version")).is_ok()
}
