//! Captures of whole runs: nothing in them is wrong, and what they show is what the run counted.

use super::support::{Run, analysis, measured, numbers, run, table, texts, violations};

const PATHS: [&str; 2] = [
    "name = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"30packets\"\n",
    "name = \"3g\"\nrate = \"2Mbit/s\"\ndelay = \"75ms\"\nlimit = \"60packets\"\n",
];

const BULK: &str = "workload = { kind = \"bulk\", size = \"1MB\" }\n";

/// A scenario over two paths, with more settings for each and for the connection.
fn scenario(paths: [&str; 2], connection: &str) -> String {
    let paths: String = PATHS
        .iter()
        .zip(paths)
        .map(|(path, more)| format!("[[path]]\n{path}{more}\n"))
        .collect();
    format!("name = \"t\"\nduration = \"30s\"\n{paths}\n[[connection]]\n{connection}")
}

fn sane(name: &str, run: &Run) {
    let outcome = analysis(&run.capture);
    assert_eq!(violations(&outcome), [] as [String; 0], "{name}");
    assert_eq!(outcome.damages, [None], "{name}");
}

/// Octets that the sender's subflows carried, by any order of the subflows.
fn carried(run: &Run) -> Vec<[u64; 3]> {
    let columns = ["octets_sent", "octets_retransmitted", "octets_reinjected"];
    let [sent, again, reinjected] = columns.map(|name| measured(run, "subflows", name));
    let rows = sent.iter().zip(again).zip(reinjected);
    let mut rows: Vec<_> = rows.map(|((s, a), r)| [*s, a, r]).collect();
    rows.retain(|row| row[0] > 0);
    rows.sort_unstable();
    rows
}

fn shown(outcome: &anabranch_trace::Outcome, way: &str) -> Vec<[u64; 3]> {
    let subflows = table(outcome, "subflows");
    let columns = ["octets", "retransmitted", "reinjected"];
    let [sent, again, reinjected] = columns.map(|name| numbers(subflows, &format!("{name}_{way}")));
    let rows = sent.iter().zip(again).zip(reinjected);
    let mut rows: Vec<_> = rows.map(|((s, a), r)| [*s, a, r]).collect();
    rows.retain(|row| row[0] > 0);
    rows.sort_unstable();
    rows
}

#[test]
fn octets_of_subflows_are_those_of_the_run() {
    let lossy = "loss = \"1%\"\n";
    let small = "send_buffer = \"100KiB\"\nreceive_buffer = \"100KiB\"\n\
                 remedies = { opportunistic_retransmission = true, penalisation = \"conext13\" }\n";
    for (name, paths, connection) in [
        ("clean", ["", ""], ""),
        ("lossy", [lossy, lossy], ""),
        ("small buffers", ["", ""], small),
        ("small buffers, lossy", [lossy, lossy], small),
        ("checksums", [lossy, ""], "dss_checksum = true\n"),
        ("upload", [lossy, ""], "direction = \"upload\"\n"),
        ("redundant", ["", ""], "scheduler = \"redundant\"\n"),
    ] {
        let run = run(&scenario(paths, &format!("{connection}{BULK}")), 3);
        let outcome = analysis(&run.capture);
        assert_eq!(violations(&outcome), [] as [String; 0], "{name}");
        let way = if name == "upload" { "out" } else { "in" };
        for (shown, carried) in shown(&outcome, way).into_iter().zip(carried(&run)) {
            assert_eq!((shown[0], shown[2]), (carried[0], carried[2]), "{name}");
            // The run counts a FIN that is sent again as an octet.
            assert!((shown[1]..=shown[1] + 2).contains(&carried[1]), "{name}: {shown:?} {carried:?}");
        }
        let connections = table(&outcome, "connections");
        assert_eq!(texts(connections, "protocol"), ["MPTCP"], "{name}");
        assert_eq!(texts(connections, "state"), ["closed"], "{name}");
        let acked = numbers(connections, &format!("acked_{way}"));
        assert_eq!(acked, measured(&run, "connections", "octets_delivered"), "{name}");
        assert_eq!(numbers(connections, &format!("octets_{way}")), acked, "{name}");
    }
}

#[test]
fn nothing_is_wrong_with_any_scheduler() {
    for scheduler in ["min_rtt", "round_robin", "redundant", "blest", "ecf"] {
        let lossy = "loss = \"2%\"\njitter = \"5ms\"\n";
        let connection = format!("scheduler = \"{scheduler}\"\n{BULK}");
        sane(scheduler, &run(&scenario([lossy, lossy], &connection), 1));
    }
}
