//! Running scenarios and reading their tables.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Column, Options, Outcome, Table};

pub fn run(toml: &str, seed: u64) -> Outcome {
    run_with(toml, seed, Options::default())
}

pub fn run_with(toml: &str, seed: u64, options: Options<'_>) -> Outcome {
    let scenario = Scenario::from_toml(toml, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    anabranch_sim::run(&scenario, seed, options).expect("the run completes")
}

pub fn table<'a>(outcome: &'a Outcome, name: &str) -> &'a Table {
    outcome.tables.iter().find(|table| table.name == name).expect("a known table")
}

/// A column, whatever its width.
pub fn column(outcome: &Outcome, name: &str, column: &str) -> Vec<u64> {
    let table = table(outcome, name);
    let found = table.columns.iter().find(|(name, _)| *name == column).expect("a known column");
    match &found.1 {
        Column::U8(values) => values.iter().map(|value| u64::from(*value)).collect(),
        Column::U32(values) => values.iter().map(|value| u64::from(*value)).collect(),
        Column::U64(values) => values.clone(),
    }
}

/// Goodput of the first connection after the warm-up, in bit/s.
pub fn goodput(outcome: &Outcome) -> f64 {
    let octets = column(outcome, "connections", "octets_delivered_measured")[0];
    let nanos = column(outcome, "connections", "measured_ns")[0];
    octets as f64 * 8e9 / nanos as f64
}

/// Mean block delay in seconds over blocks accepted after `from_ns`.
pub fn mean_block_delay(outcome: &Outcome, from_ns: u64) -> f64 {
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

/// WiFi and 3G of NSDI 2012's experiments (seed of `nsdi12-fig7`), with FIFO jitter.
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

/// A scenario of 60 s with 5 s of warm-up over [`WIFI_3G`], and one connection with these keys.
pub fn wifi_3g(connection: &str, workload: &str) -> String {
    format!(
        "name = \"test\"\nduration = \"60s\"\nwarm_up = \"5s\"\n{WIFI_3G}\n\
         [[connection]]\n{connection}\n[connection.workload]\n{workload}\n"
    )
}
