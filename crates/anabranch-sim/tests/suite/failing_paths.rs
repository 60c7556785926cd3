//! Paths of hosts that behave like Linux fail, compared with Linux 6.12 and 6.18.

use anabranch_sim::Outcome;

use crate::common::{column, run};

/// Two paths, each with a rate in Mbit/s, a delay in ms and its changes, and a download of 8 MB.
fn download(paths: [(&str, &str, &str); 2], keys: &str) -> Outcome {
    let path = |(name, (rate, delay, changes)): (&str, (&str, &str, &str))| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\n\
             limit = \"60packets\"\nchange = [{changes}]\n"
        )
    };
    let paths: String = ["a", "b"].into_iter().zip(paths).map(path).collect();
    let toml = format!(
        "name = \"failing\"\nduration = \"30s\"\n{paths}[[connection]]\n\
         host = {{ kind = \"linux\", buffers = \"socket\"{keys} }}\n\
         congestion_control = \"cubic_linux\"\nscheduler = \"linux\"\n\
         workload = {{ kind = \"blocks\", block_size = \"8MB\", count = 1 }}\n"
    );
    run(&toml, 1)
}

fn transfer_time(outcome: &Outcome) -> f64 {
    let delivered = column(outcome, "blocks", "delivered_ns");
    *delivered.last().expect("the transfer is complete") as f64 / 1e9
}

const FAILS_AT_3: &str = "{ at = \"3s\", state = \"down\" }";

#[test]
fn transfers_take_as_long_as_with_linux_when_a_path_dies() {
    // Least and most of several runs of Linux. If the engine reinjected the data of the dead path at its
    // first retransmission timeout, as RFC 8684 §3.3.6 suggests, the times would be 11.9, 5.6 and 9.0 s.
    let returns = |from: u32, to: u32| {
        format!("{{ at = \"{from}s\", state = \"down\" }}, {{ at = \"{to}s\", state = \"up\" }}")
    };
    let (first, second) = (returns(3, 8), returns(4, 5));
    let cases = [
        ([("5.0", "26", FAILS_AT_3), ("4.6", "33", "")], 14.4, 14.7),
        ([("12.5", "7", &*first), ("6.2", "53", "")], 7.3, 8.1),
        ([("5.6", "11", ""), ("2.9", "23", &*second)], 9.8, 9.9),
    ];
    for (paths, least, most) in cases {
        let time = transfer_time(&download(paths, ""));
        println!("{time:.2} s, Linux {least} to {most} s");
        assert!((least * 0.95..most * 1.05).contains(&time), "{time} s, not {least} to {most} s");
    }
}

#[test]
fn without_stale_subflows_only_a_fragment_is_resent_at_a_time() {
    let paths = [("5.0", "26", FAILS_AT_3), ("4.6", "33", "")];
    let [with, without] =
        ["", ", stale_loss_cnt = 0"].map(|keys| transfer_time(&download(paths, keys)));
    assert!(without > with + 3.0, "{without} s, {with} s with them");
}
