//! Uses the simulator as a library: changes one value of a scenario, runs it with several seeds and
//! prints a table.
//!
//! `cargo run --release -p anabranch-sim --example simulator`

use anabranch_sim::scenario::{Scenario, ScenarioError};
use anabranch_sim::{Options, RunOutcome, run};
use anabranch_wire::Duration;

const SCENARIO: &str = r#"
name = "phone"
duration = "10s"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
[[path]]
name = "cellular"
rate = "4Mbit/s"
delay = "10ms"
limit = "54packets"
jitter = "2ms"
[[connection]]
receive_buffer = "200KiB"
workload = { kind = "bulk" }
"#;

const SEEDS: u64 = 3;

fn main() -> Result<(), ScenarioError> {
    let scenario = Scenario::from_toml(SCENARIO, "phone")?;
    println!("one-way delay    goodput   cellular share");
    for delay_ms in [10, 50, 250] {
        let runs: Vec<Measured> =
            (1..=SEEDS).map(|seed| measure(&scenario, delay_ms, seed)).collect();
        let mean = |value: fn(&Measured) -> f64| runs.iter().map(value).sum::<f64>() / SEEDS as f64;
        println!(
            "{delay_ms:11} ms {:5.2} Mbit/s {:14.0} %",
            mean(|run| run.goodput_mbps),
            mean(|run| run.cellular_percent),
        );
    }
    Ok(())
}

struct Measured {
    goodput_mbps: f64,
    cellular_percent: f64,
}

fn measure(scenario: &Scenario, delay_ms: u64, seed: u64) -> Measured {
    let mut scenario = scenario.clone();
    let cellular = &mut scenario.paths[1];
    cellular.delay = Duration::from_millis(delay_ms);
    cellular.reverse.delay = Some(Duration::from_millis(delay_ms));
    let outcome = run(&scenario, seed, Options::default()).expect("a run without capture succeeds");

    let bytes = column(&outcome, "connections", "bytes_delivered")[0];
    let paths = column(&outcome, "subflows", "path");
    let sent = column(&outcome, "subflows", "bytes_sent");
    let cellular: u64 = paths.iter().zip(&sent).map(|(path, sent)| path * sent).sum();
    Measured {
        goodput_mbps: bytes as f64 * 8e-6 / outcome.end.as_secs_f64(),
        cellular_percent: 100.0 * cellular as f64 / sent.iter().sum::<u64>() as f64,
    }
}

fn column(outcome: &RunOutcome, table: &str, column: &str) -> Vec<u64> {
    let column = outcome.table(table).and_then(|table| table.column(column));
    column.expect("every run has this table and this column").numbers()
}

#[test]
fn a_long_delay_costs_goodput_with_a_small_receive_buffer() {
    main().unwrap();
    let scenario = Scenario::from_toml(SCENARIO, "phone").unwrap();
    let [short, long] = [10, 250].map(|delay_ms| measure(&scenario, delay_ms, 1).goodput_mbps);
    assert!(short > 9.0 && long < 0.8 * short, "{short} and {long} Mbit/s");
}
