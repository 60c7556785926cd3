//! Connections over paths that follow a packet-delivery trace.

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunOutcome};

use crate::common::{column, goodput, run, run_with};

/// A TCP download of 30 s over one path with this capacity.
fn over(capacity: &str) -> String {
    format!(
        "name = \"trace\"\nduration = \"30s\"\nwarm_up = \"5s\"\n\
         [[path]]\nname = \"lte\"\n{capacity}\ndelay = \"20ms\"\nlimit = \"100packets\"\n\
         [path.reverse]\nrate = \"10Mbit/s\"\n\
         [[connection]]\nprotocol = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n"
    )
}

#[test]
fn a_constant_trace_gives_the_goodput_of_the_same_rate() {
    let traced = goodput(&run(&over("trace = { milliseconds = \"1\" }"), 1));
    let constant = goodput(&run(&over("rate = \"12.032Mbit/s\""), 1));
    println!("trace {traced:.0} bit/s, rate {constant:.0} bit/s");
    assert!((traced / constant - 1.0).abs() < 0.002, "{traced} {constant}");
    // TCP and IP headers with timestamps leave 1448 of 1500 bytes.
    assert!(traced > 0.99 * 12.032e6 * 1448.0 / 1500.0, "{traced}");
}

fn delivered_by_link(outcome: &RunOutcome) -> u64 {
    column(outcome, "links", "bytes_delivered")[0]
}

#[test]
fn a_trace_with_gaps_carries_its_mean_rate() {
    // Every 100 ms, five opportunities in the first 20 ms and five at the end: 1.2032 Mbit/s.
    let outcome = run(&over("trace = { milliseconds = \"2 4 8 16 20 100*5\" }"), 1);
    let capacity = 1.2032e6 / 8.0 * 30.0;
    let share = delivered_by_link(&outcome) as f64 / capacity;
    assert!((0.97..=1.0).contains(&share), "{share}");
}

#[test]
fn a_trace_file_and_its_normalised_form_give_the_same_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let file = format!("{folder}/cellular_trace.toml");
    let text = std::fs::read_to_string(&file).expect("an example");
    let scenario = Scenario::from_toml(&text, &file).expect("a valid example");
    let outcome = anabranch_sim::run(&scenario, 1, Options::default()).expect("the run completes");
    let cellular = column(&outcome, "links", "bytes_delivered")[2];
    assert!(cellular > 10_000_000, "{cellular} bytes over the trace");
    let again = run_with(&scenario.to_toml(), 1, Options::default());
    assert_eq!(outcome.digest, again.digest);
}
