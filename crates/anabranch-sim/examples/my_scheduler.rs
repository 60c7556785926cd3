//! A user-defined scheduler, outside the engine: lowest round-trip time first.
//!
//! `cargo run --release -p anabranch-sim --example my_scheduler` runs it and the built-in
//! `min_rtt`. Both make the same decisions, so the digests of the two runs are equal.

use anabranch_proto::scheduler::{Decision, ScheduleContext, Scheduler};
use anabranch_sim::scenario::{CustomNames, Scenario};
use anabranch_sim::{CustomPolicies, Options, RunError, RunOutcome};

/// Chooses the subflow with the lowest round-trip time among those that have room for the data.
#[derive(Debug)]
struct LowestRtt;

impl Scheduler for LowestRtt {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let ready = context.eligible().filter(|subflow| subflow.can_send());
        match ready.min_by_key(|subflow| subflow.srtt_or_max()) {
            Some(subflow) => Decision::Send(subflow.id),
            None => Decision::Wait { until: None },
        }
    }
}

const WIFI_3G: &str = r#"
name = "wifi-3g"
duration = "10s"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
loss = "0.5%"
[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "334packets"
jitter = "50ms"
[[connection]]
scheduler = "min_rtt"
remedies = { opportunistic_retransmission = true }
receive_buffer = "200KiB"
workload = { kind = "bulk" }
"#;

fn main() -> Result<(), RunError> {
    for seed in 1..=3 {
        let (built_in, own) = run_both(seed)?;
        print("built-in", seed, &built_in);
        print("my own", seed, &own);
    }
    Ok(())
}

/// The outcomes with the built-in scheduler and with the scheduler above.
fn run_both(seed: u64) -> Result<(RunOutcome, RunOutcome), RunError> {
    let scenario = Scenario::from_toml(WIFI_3G, "wifi_3g").expect("the scenario above is valid");
    let built_in = anabranch_sim::run(&scenario, seed, Options::default())?;

    let names = CustomNames { scheduler: Some("LowestRtt".to_owned()), ..CustomNames::default() };
    let custom_policies = &[CustomPolicies::scheduler(|_owner| Box::new(LowestRtt))];
    let options = Options::default().custom_policies(custom_policies);
    let own = anabranch_sim::run(&scenario.with_custom(&names), seed, options)?;
    Ok((built_in, own))
}

fn print(whose: &str, seed: u64, outcome: &RunOutcome) {
    let mbps = bytes_delivered(outcome) as f64 * 8e-6 / outcome.end.as_secs_f64();
    println!("{whose:8} seed {seed}: digest {:016x}, goodput {mbps:.3} Mbit/s", outcome.digest);
}

fn bytes_delivered(outcome: &RunOutcome) -> u64 {
    let connections = outcome.table("connections").expect("every run has this table");
    let delivered =
        connections.column("bytes_arrived_measured").expect("the table has this column");
    delivered.numbers().iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_the_built_in_scheduler() {
        for seed in 1..=3 {
            let (built_in, own) = run_both(seed).unwrap();
            assert_eq!(built_in, own);
        }
    }
}
