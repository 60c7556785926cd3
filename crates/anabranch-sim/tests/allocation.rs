//! The engine and the network allocate nothing per segment once a run is under way.

mod common;

use std::alloc::System;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, Outcome};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn scenario(paths: &[&str], duration: &str) -> Scenario {
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
         [[connection]]\ndirection = \"upload\"\n[connection.workload]\nkind = \"bulk\"\n"
    );
    Scenario::from_toml(&toml, "steady.toml").expect("a valid scenario")
}

fn allocations(scenario: &Scenario) -> (usize, Outcome) {
    let region = Region::new(ALLOCATOR);
    let outcome = anabranch_sim::run(scenario, 1, Options::default()).expect("the run completes");
    let change = region.change();
    (change.allocations + change.reallocations, outcome)
}

#[test]
fn the_second_half_of_a_bulk_run_allocates_nothing() {
    for paths in [&["a"][..], &["a", "b"]] {
        let (half, short) = allocations(&scenario(paths, "20s"));
        let (whole, long) = allocations(&scenario(paths, "40s"));
        let segments = long.segments - short.segments;
        assert!(segments > 200_000, "{segments} segments in the second half");
        assert_eq!(whole - half, 0, "{segments} segments on {} paths", paths.len());
    }
}
