//! Engine and network do not allocate memory per segment once a run is under way.

mod common;

use std::alloc::System;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunOutcome};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn scenario(paths: &[&str], connection: &str, duration: &str) -> Scenario {
    let paths: String = paths
        .iter()
        .map(|name| {
            format!(
                "[[path]]\nname = \"{name}\"\nrate = \"100Mbit/s\"\ndelay = \"10ms\"\n\
                 limit = \"100packets\"\n"
            )
        })
        .collect();
    let toml = format!(
        "name = \"steady\"\nduration = \"{duration}\"\nsample_interval = \"1000s\"\n{paths}\
         [[connection]]\ndirection = \"upload\"\n{connection}[connection.workload]\nkind = \"bulk\"\n"
    );
    Scenario::from_toml(&toml, "steady.toml").expect("a valid scenario")
}

fn allocations(scenario: &Scenario) -> (usize, RunOutcome) {
    let region = Region::new(ALLOCATOR);
    let outcome = anabranch_sim::run(scenario, 1, Options::default()).expect("the run completes");
    let change = region.change();
    (change.allocations + change.reallocations, outcome)
}

/// Allocations of a run and of a run twice as long. A difference is measured again in longer runs: a
/// queue that reaches a new largest length allocates once, and so does the test harness when a test
/// takes more than a minute.
fn half_and_whole(scenario: impl Fn(&str) -> Scenario) -> [(usize, RunOutcome); 2] {
    let measure = |durations: [&str; 2]| durations.map(|each| allocations(&scenario(each)));
    let measured = measure(["20s", "40s"]);
    if measured[1].0 <= measured[0].0 { measured } else { measure(["40s", "80s"]) }
}

fn assert_second_half_allocates_nothing(paths: &[&str], connection: &str) {
    let [(half, short), (whole, long)] =
        half_and_whole(|duration| scenario(paths, connection, duration));
    let segments = long.segments - short.segments;
    assert!(segments > 200_000, "{segments} segments in the second half");
    // The shorter run comes first, so it may have an allocation of the test harness that the longer
    // one has not.
    let paths = paths.len();
    assert!(whole <= half, "{whole} > {half}: {segments} segments on {paths} paths, {connection}");
}

/// A path that follows a trace, and cross-traffic on the path of a connection.
fn assert_traces_and_cross_traffic_allocate_nothing() {
    let scenario = |duration: &str| {
        let path = "delay = \"10ms\"\nlimit = \"100packets\"\n";
        let toml = format!(
            "name = \"shared\"\nduration = \"{duration}\"\nsample_interval = \"1000s\"\n\
             [[path]]\nname = \"a\"\ntrace = {{ milliseconds = \"1*4 3*9 5\" }}\n{path}\
             [[path]]\nname = \"b\"\nrate = \"50Mbit/s\"\n{path}\
             [[connection]]\nworkload = {{ kind = \"bulk\" }}\n\
             [[cross_traffic]]\npath = \"b\"\nrate = \"20Mbit/s\"\npacket_size = \"500B\"\n\
             on = {{ kind = \"exponential\", mean = \"300ms\" }}\noff = \"200ms\"\n"
        );
        Scenario::from_toml(&toml, "shared.toml").expect("a valid scenario")
    };
    let [(half, _), (whole, _)] = half_and_whole(scenario);
    assert!(whole <= half, "{whole} > {half} with a trace and cross-traffic");
}

// Run one test at a time, because allocations of other threads would count. The harness allocates
// until it waits for the test. This binary therefore has no other test except a slow one, which
// runs with `--ignored` and not together with this one.

#[test]
fn the_second_half_of_a_bulk_run_allocates_nothing() {
    allocations(&scenario(&["a"], "dss_checksum = true\n", "20s"));
    for paths in [&["a"][..], &["a", "b"]] {
        assert_second_half_allocates_nothing(paths, "");
    }
    assert_second_half_allocates_nothing(&["a", "b"], "dss_checksum = true\n");
    assert_traces_and_cross_traffic_allocate_nothing();
}

#[test]
#[ignore = "slow: make test-slow"]
fn the_second_half_of_a_bulk_run_allocates_nothing_with_any_policy() {
    allocations(&scenario(&["a", "b"], "", "20s"));
    // Every scheduler, and every remedy except autotuning: growing buffers allocate occasionally.
    let remedies = "remedies = { opportunistic_retransmission = true, penalisation = true, \
                    cwnd_cap = 2.0, mpt_bm = { lambda = 3.0, theta = \"0s\" } }\n";
    // Schedulers that assign data ahead of the windows let queues reach new largest lengths.
    for scheduler in ["round_robin", "redundant", "blest", "ecf"] {
        let connection = format!("scheduler = \"{scheduler}\"\n{remedies}");
        assert_second_half_allocates_nothing(&["a", "b"], &connection);
    }
    for control in ["olia", "balia", "wvegas"] {
        let connection = format!("congestion_control = \"{control}\"\n");
        assert_second_half_allocates_nothing(&["a", "b"], &connection);
    }
}
