//! A user-defined congestion control, outside the engine: NewReno with a configurable decrease.
//!
//! `cargo run --release -p anabranch-sim --example my_congestion_control`
//!
//! With one half, the decrease of RFC 5681, it equals the built-in `new_reno`, and so do the
//! digests.

use anabranch_proto::congestion::{
    AckSample, CongestionControl, CongestionEvent, ExternalReduction, Start, Window,
};
use anabranch_proto::view::SubflowView;
use anabranch_sim::scenario::{CustomNames, Scenario};
use anabranch_sim::{CustomPolicies, Options, RunError, RunOutcome};

/// [`Window`] does the arithmetic: whole segments, slow start, reduction, undo and idle periods.
#[derive(Debug)]
struct Reno {
    window: Window,
    /// Factor by which a loss reduces the window.
    decrease: f64,
}

impl CongestionControl for Reno {
    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn on_ack(&mut self, sample: &AckSample, _me: usize, _peers: &[SubflowView]) {
        if sample.cwnd_limited {
            let left = self.window.slow_start(sample.acked);
            // One segment per window. RFC 5681 §3.1.
            let mss = f64::from(self.window.mss());
            self.window.grow(left as f64 * mss / self.window.cwnd() as f64);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent, _me: usize, _peers: &[SubflowView]) {
        self.window.on_event(event, self.decrease);
    }

    fn on_external_reduction(&mut self, reduction: ExternalReduction) {
        self.window.on_external_reduction(reduction);
    }
}

const LOSSY: &str = r#"
name = "lossy"
duration = "10s"
[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
loss = "0.5%"
[[connection]]
congestion_control = "new_reno"
workload = { kind = "bulk" }
"#;

fn main() -> Result<(), RunError> {
    print("new_reno", &run(None)?);
    for decrease in [0.5, 0.7] {
        print(&format!("Reno({decrease})"), &run(Some(decrease))?);
    }
    Ok(())
}

/// Run the scenario with the congestion control above, or with the built-in one.
fn run(decrease: Option<f64>) -> Result<RunOutcome, RunError> {
    let scenario = Scenario::from_toml(LOSSY, "lossy").expect("the scenario above is valid");
    let Some(decrease) = decrease else {
        return anabranch_sim::run(&scenario, 1, Options::default());
    };
    let names = CustomNames { congestion_control: Some("Reno".into()), ..CustomNames::default() };
    let custom_policies = &[CustomPolicies::congestion_control(move |_owner, start: &Start| {
        Box::new(Reno { window: Window::new(start), decrease })
    })];
    let options = Options::default().custom_policies(custom_policies);
    anabranch_sim::run(&scenario.with_custom(&names), 1, options)
}

fn print(name: &str, outcome: &RunOutcome) {
    let connections = outcome.table("connections").expect("every run has this table");
    let bytes =
        connections.column("bytes_delivered").expect("the table has this column").numbers()[0];
    let goodput_mbps = bytes as f64 * 8e-6 / outcome.end.as_secs_f64();
    println!("{name:10} digest {:016x}, goodput {goodput_mbps:.3} Mbit/s", outcome.digest);
}

#[test]
fn with_the_decrease_of_rfc_5681_it_equals_the_built_in_one() {
    assert_eq!(run(None).unwrap(), run(Some(0.5)).unwrap());
    assert_ne!(run(None).unwrap(), run(Some(0.7)).unwrap());
    main().unwrap();
}
