//! User-defined policies in a run: where they act, and which errors they cause.

use std::sync::{Arc, Mutex};

use anabranch_proto::congestion::NewReno;
use anabranch_proto::path_manager::FullMesh;
use anabranch_proto::scheduler::MinRtt;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{CustomPolicies, Options, Owner, RunError, Side};

use crate::common::{WIFI_3G, run};

fn scenario(connections: &str) -> String {
    format!("name = \"own\"\nduration = \"3s\"\n{WIFI_3G}{connections}")
}

fn connection(name: &str, keys: &str) -> String {
    format!("[[connection]]\nname = \"{name}\"\n{keys}\nworkload = {{ kind = \"bulk\" }}\n")
}

fn try_run(toml: &str, custom_policies: &[CustomPolicies]) -> Result<u64, RunError> {
    let scenario = Scenario::from_toml(toml, "own.toml").expect("a scenario");
    let options = Options::default().custom_policies(custom_policies);
    anabranch_sim::run(&scenario, 3, options).map(|outcome| outcome.digest)
}

#[test]
fn user_defined_copies_of_built_in_policies_change_nothing() {
    crate::common::depends_on_the_platform("one of the two runs does not use the test harness");
    let own =
        "scheduler = \"custom:a\"\ncongestion_control = \"custom:b\"\npath_manager = \"custom:c\"";
    let policies = CustomPolicies {
        scheduler: Some(Arc::new(|_| Box::new(MinRtt))),
        congestion_control: Some(Arc::new(|_, start| Box::new(NewReno::new(start)))),
        path_manager: Some(Arc::new(|_| Box::new(FullMesh::default()))),
    };
    let built_in = scenario(&connection("main", "congestion_control = \"new_reno\""));
    let digest =
        try_run(&scenario(&connection("main", own)), &[policies]).expect("the run completes");
    assert_eq!(digest, run(&built_in, 3).digest);
}

#[test]
fn each_end_of_each_connection_has_its_own_policy() {
    let owners: Arc<Mutex<Vec<Owner>>> = Arc::default();
    let seen = Arc::clone(&owners);
    let policies = CustomPolicies::scheduler(move |owner| {
        seen.lock().unwrap().push(owner.clone());
        Box::new(MinRtt)
    });
    let toml = scenario(
        &["one", "two"].map(|name| connection(name, "scheduler = \"custom:mine\"")).concat(),
    );
    try_run(&toml, &[policies.clone(), policies]).expect("the run completes");
    let owners = owners.lock().unwrap();
    for (name, side) in
        [("one", Side::Client), ("one", Side::Server), ("two", Side::Client), ("two", Side::Server)]
    {
        let here = owners.iter().filter(|o| o.connection == name && o.side == side).count();
        assert_eq!(here, 1, "{name} at the {side}");
    }
    let mut streams: Vec<u64> = owners.iter().map(|owner| owner.stream_seed("x")).collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), 4);
}

#[test]
fn the_scenario_and_the_policies_passed_must_match() {
    let named = scenario(&connection("main", "scheduler = \"custom:mine\""));
    let missing = try_run(&named, &[]).unwrap_err().to_string();
    assert!(
        missing.starts_with("connection \"main\": scheduler = \"custom:mine\" is a user-defined")
    );
    assert!(missing.contains("--scheduler FILE.py:CLASS"), "{missing}");
    let built_in = scenario(&connection("main", ""));
    let unnamed = try_run(&built_in, &[CustomPolicies::scheduler(|_| Box::new(MinRtt))])
        .unwrap_err()
        .to_string();
    assert!(unnamed.ends_with("write scheduler = \"custom:NAME\""), "{unnamed}");
}

#[test]
fn a_run_can_be_stopped() {
    let scenario = Scenario::from_toml(&scenario(&connection("main", "")), "own.toml").unwrap();
    let mut left = 100;
    let mut stop = |_| {
        left -= 1;
        left == 0
    };
    let options = Options::default().stop(&mut stop);
    let stopped = anabranch_sim::run(&scenario, 1, options);
    assert!(matches!(stopped, Err(RunError::Stopped)));
    assert_eq!(left, 0);
}
