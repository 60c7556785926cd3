//! Runs scenarios and reads their tables.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::borrow::Cow;
use std::cell::Cell;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunOutcome, Table};

thread_local! {
    static DEPENDS: Cell<bool> = const { Cell::new(false) };
}

/// Run this test on the default platform only. The argument states what the test depends on.
pub fn depends_on_the_platform(_on: &str) {
    DEPENDS.set(true);
}

/// The platform to test, if it is not the default one.
pub fn platform() -> Option<String> {
    std::env::var("ANABRANCH_TEST_HOST").ok().filter(|_| !DEPENDS.get())
}

/// The scenario with the platform that `ANABRANCH_TEST_HOST` names, unless the scenario sets hosts
/// or the test depends on the default platform. `make test-platforms` runs the tests on each
/// platform.
fn on_any_platform(toml: &str) -> Cow<'_, str> {
    let states_hosts = ["\nhost = ", "[connection.host]"].iter().any(|key| toml.contains(key));
    let host = match platform().as_deref() {
        None => return toml.into(),
        Some(_) if states_hosts => return toml.into(),
        Some("linux-socket") => "{ kind = \"linux\", buffers = \"socket\" }",
        Some("rfc") => "\"rfc\"",
        Some(other) => panic!("ANABRANCH_TEST_HOST: unknown platform {other}"),
    };
    toml.replace("[[connection]]\n", &format!("[[connection]]\nhost = {host}\n")).into()
}

pub fn run(toml: &str, seed: u64) -> RunOutcome {
    run_with(toml, seed, Options::default())
}

pub fn run_with(toml: &str, seed: u64, options: Options<'_>) -> RunOutcome {
    let toml = on_any_platform(toml);
    let scenario = Scenario::from_toml(&toml, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    anabranch_sim::run(&scenario, seed, options).expect("the run completes")
}

pub fn table<'a>(outcome: &'a RunOutcome, name: &str) -> &'a Table {
    outcome.tables.iter().find(|table| table.name == name).expect("a known table")
}

/// A column as 64-bit numbers, regardless of its type.
pub fn column(outcome: &RunOutcome, name: &str, column: &str) -> Vec<u64> {
    table(outcome, name).column(column).expect("a known column").numbers()
}

/// A column of names.
pub fn names(outcome: &RunOutcome, name: &str, column: &str) -> Vec<&'static str> {
    table(outcome, name).column(column).expect("a known column").names()
}

/// Goodput of the first connection after the warm-up, in bit/s.
pub fn goodput(outcome: &RunOutcome) -> f64 {
    let bytes = column(outcome, "connections", "bytes_arrived_measured")[0];
    let nanos = column(outcome, "connections", "measured_ns")[0];
    bytes as f64 * 8e9 / nanos as f64
}

/// Mean block delay in seconds over blocks accepted after `from_ns`.
pub fn mean_block_delay(outcome: &RunOutcome, from_ns: u64) -> f64 {
    let accepted = column(outcome, "blocks", "accepted_ns");
    let delivered = column(outcome, "blocks", "delivered_ns");
    let delays: Vec<f64> = accepted
        .iter()
        .zip(&delivered)
        .filter(|(accepted, _)| **accepted >= from_ns)
        .map(|(accepted, delivered)| (delivered - accepted) as f64 / 1e9)
        .collect();
    assert!(delays.len() > 100, "only {} blocks", delays.len());
    delays.iter().sum::<f64>() / delays.len() as f64
}

/// WiFi and 3G as in the experiments of NSDI 2012 (seed of `nsdi12-fig7`), with FIFO jitter.
pub const WIFI_3G: &str = r#"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"
jitter = "50ms"
"#;

/// A scenario of 60 s with 5 s of warm-up over [`WIFI_3G`], with one connection that has these
/// keys.
pub fn wifi_3g(connection: &str, workload: &str) -> String {
    format!(
        "name = \"test\"\nduration = \"60s\"\nwarm_up = \"5s\"\n{WIFI_3G}\n\
         [[connection]]\n{connection}\n[connection.workload]\n{workload}\n"
    )
}
