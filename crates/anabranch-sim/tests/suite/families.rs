//! Paths over IPv4, over IPv6, and over both.

use anabranch_sim::RunOutcome;

use crate::common::{column, run};

fn scenario(families: [&str; 2], direction: &str) -> String {
    let path = |name: &str, family: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n\
             limit = \"40packets\"\nfamily = \"{family}\"\n"
        )
    };
    format!(
        "name = \"families\"\nduration = \"20s\"\n{}{}[[connection]]\ndirection = \"{direction}\"\n\
         workload = {{ kind = \"bulk\", size = \"20MB\" }}\n\
         [[cross_traffic]]\npath = \"b\"\nrate = \"100kbit/s\"\npacket_size = \"200B\"\n",
        path("a", families[0]),
        path("b", families[1]),
    )
}

fn bytes_by_path(outcome: &RunOutcome) -> Vec<u64> {
    let mut bytes = vec![0; 2];
    let carried = column(outcome, "subflows", "bytes_received");
    for (path, carried) in column(outcome, "subflows", "path").iter().zip(carried) {
        bytes[*path as usize] += carried;
    }
    bytes
}

#[test]
fn all_pairs_of_families_transfer_everything_over_both_paths() {
    for families in [["ipv4", "ipv6"], ["ipv6", "ipv4"], ["ipv6", "ipv6"], ["ipv4", "ipv4"]] {
        for direction in ["download", "upload"] {
            let outcome = run(&scenario(families, direction), 1);
            let delivered = column(&outcome, "connections", "bytes_delivered");
            assert_eq!(delivered, [20_000_000], "{families:?} {direction}");
            let carried = bytes_by_path(&outcome);
            assert!(carried.iter().all(|bytes| *bytes > 8_000_000), "{families:?} {carried:?}");
        }
    }
}

#[test]
fn ipv6_costs_the_20_bytes_of_its_longer_header() {
    let bytes = |family| {
        let outcome = run(&scenario([family; 2], "download"), 1);
        column(&outcome, "connections", "bytes_delivered")[0] as f64
            / column(&outcome, "links", "bytes_delivered")[..4].iter().step_by(2).sum::<u64>()
                as f64
    };
    // Goodput per byte on the links, without the cross-traffic: 1408 of 1500 bytes against 1388.
    let (four, six) = (bytes("ipv4"), bytes("ipv6"));
    assert!((six / four - 1388.0 / 1408.0).abs() < 0.004, "{four} {six}");
}

#[test]
fn path_managers_that_ignore_announcements_require_one_family() {
    let toml = scenario(["ipv4", "ipv6"], "download")
        .replace("[[connection]]\n", "[[connection]]\npath_manager = \"backup\"\n");
    let error =
        anabranch_sim::scenario::Scenario::from_toml(&toml, "mixed.toml").unwrap_err().to_string();
    assert!(error.starts_with("mixed.toml: connection[0].path_manager: \"backup\": "), "{error}");
    assert!(error.contains("full_mesh"), "{error}");
}
