//! Policies of the user's own in a run: who gets them, and what is refused.

use std::sync::{Arc, Mutex};

use anabranch_proto::congestion::NewReno;
use anabranch_proto::path_manager::FullMesh;
use anabranch_proto::scheduler::MinRtt;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, OwnPolicies, Owner, RunError, Side};

use crate::common::{WIFI_3G, run};

fn scenario(connections: &str) -> String {
    format!("name = \"own\"\nduration = \"3s\"\n{WIFI_3G}{connections}")
}

fn connection(name: &str, keys: &str) -> String {
    format!("[[connection]]\nname = \"{name}\"\n{keys}\nworkload = {{ kind = \"bulk\" }}\n")
}

fn try_run(toml: &str, own_policies: &[OwnPolicies]) -> Result<u64, RunError> {
    let scenario = Scenario::from_toml(toml, "own.toml").expect("a scenario");
    let options = Options { own_policies, ..Options::default() };
    anabranch_sim::run(&scenario, 3, options).map(|outcome| outcome.digest)
}

#[test]
fn boxed_policies_do_what_the_built_in_ones_do() {
    crate::common::depends_on_the_platform("one of the two runs is made without the harness");
    let own = "scheduler = \"own:a\"\ncongestion_control = \"own:b\"\npath_manager = \"own:c\"";
    let policies = OwnPolicies {
        scheduler: Some(Arc::new(|_| Box::new(MinRtt))),
        congestion_control: Some(Arc::new(|_, start| Box::new(NewReno::new(start)))),
        path_manager: Some(Arc::new(|_| Box::new(FullMesh::default()))),
    };
    let built_in = scenario(&connection("main", "congestion_control = \"new_reno\""));
    let digest = try_run(&scenario(&connection("main", own)), &[policies]).expect("it runs");
    assert_eq!(digest, run(&built_in, 3).digest);
}

#[test]
fn each_end_of_each_connection_has_a_policy_of_its_own() {
    let owners: Arc<Mutex<Vec<Owner>>> = Arc::default();
    let seen = Arc::clone(&owners);
    let policies = OwnPolicies::scheduler(move |owner| {
        seen.lock().unwrap().push(owner.clone());
        Box::new(MinRtt)
    });
    let toml =
        scenario(&["one", "two"].map(|name| connection(name, "scheduler = \"own:mine\"")).concat());
    try_run(&toml, &[policies.clone(), policies]).expect("it runs");
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
fn what_the_scenario_names_and_what_is_handed_over_belong_together() {
    let named = scenario(&connection("main", "scheduler = \"own:mine\""));
    let missing = try_run(&named, &[]).unwrap_err().to_string();
    assert!(missing.starts_with("connection \"main\": scheduler = \"own:mine\" is a policy"));
    assert!(missing.contains("--scheduler FILE.py:CLASS"), "{missing}");
    let built_in = scenario(&connection("main", ""));
    let unnamed = try_run(&built_in, &[OwnPolicies::scheduler(|_| Box::new(MinRtt))])
        .unwrap_err()
        .to_string();
    assert!(unnamed.ends_with("write scheduler = \"own:NAME\""), "{unnamed}");
}

#[test]
fn a_run_can_be_stopped() {
    let scenario = Scenario::from_toml(&scenario(&connection("main", "")), "own.toml").unwrap();
    let mut left = 100;
    let mut stop = |_| {
        left -= 1;
        left == 0
    };
    let options = Options { stop: Some(&mut stop), ..Options::default() };
    let stopped = anabranch_sim::run(&scenario, 1, options);
    assert!(matches!(stopped, Err(RunError::Stopped)));
    assert_eq!(left, 0);
}
