//! Captures of whole runs: they show no violation, and the numbers of the run.

use super::support::{Run, analysis, measured, numbers, run, table, texts, violations};

const PATHS: [&str; 2] = [
    "name = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"30packets\"\n",
    "name = \"3g\"\nrate = \"2Mbit/s\"\ndelay = \"75ms\"\nlimit = \"60packets\"\n",
];

const BULK: &str = "workload = { kind = \"bulk\", size = \"1MB\" }\n";

/// A scenario over two paths, with additional settings for each path and for the connection.
fn scenario(paths: [&str; 2], connection: &str) -> String {
    let paths: String =
        PATHS.iter().zip(paths).map(|(path, more)| format!("[[path]]\n{path}{more}\n")).collect();
    format!("name = \"t\"\nduration = \"30s\"\n{paths}\n[[connection]]\n{connection}")
}

fn sane(name: &str, run: &Run) {
    let outcome = analysis(&run.capture);
    assert_eq!(violations(&outcome), [] as [String; 0], "{name}");
    assert_eq!(outcome.damages, [None], "{name}");
}

/// Bytes that the sender's subflows carried, in ascending order.
fn carried(run: &Run) -> Vec<[u64; 3]> {
    let columns = ["bytes_sent", "bytes_retransmitted", "bytes_reinjected"];
    let [sent, again, reinjected] = columns.map(|name| measured(run, "subflows", name));
    let rows = sent.iter().zip(again).zip(reinjected);
    let mut rows: Vec<_> = rows.map(|((s, a), r)| [*s, a, r]).collect();
    rows.retain(|row| row[0] > 0);
    rows.sort_unstable();
    rows
}

fn shown(outcome: &anabranch_trace::Analysis, way: &str) -> Vec<[u64; 3]> {
    let subflows = table(outcome, "subflows");
    let columns = ["bytes", "retransmitted", "reinjected"];
    let [sent, again, reinjected] = columns.map(|name| numbers(subflows, &format!("{name}_{way}")));
    let rows = sent.iter().zip(again).zip(reinjected);
    let mut rows: Vec<_> = rows.map(|((s, a), r)| [*s, a, r]).collect();
    rows.retain(|row| row[0] > 0);
    rows.sort_unstable();
    rows
}

#[test]
fn bytes_of_subflows_equal_those_of_the_run() {
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
            // The run counts a retransmitted FIN as a byte.
            assert!(
                (shown[1]..=shown[1] + 2).contains(&carried[1]),
                "{name}: {shown:?} {carried:?}"
            );
        }
        let connections = table(&outcome, "connections");
        assert_eq!(texts(connections, "protocol"), ["MPTCP"], "{name}");
        assert_eq!(texts(connections, "state"), ["closed"], "{name}");
        let acked = numbers(connections, &format!("acked_{way}"));
        assert_eq!(acked, measured(&run, "connections", "bytes_delivered"), "{name}");
        assert_eq!(numbers(connections, &format!("bytes_{way}")), acked, "{name}");
    }
}

#[test]
fn no_scheduler_causes_a_violation() {
    for scheduler in ["min_rtt", "round_robin", "redundant", "blest", "ecf"] {
        let lossy = "loss = \"2%\"\njitter = \"5ms\"\n";
        let connection = format!("scheduler = \"{scheduler}\"\n{BULK}");
        sane(scheduler, &run(&scenario([lossy, lossy], &connection), 1));
    }
}

/// A scenario over `paths`, each of which is a whole TOML table.
fn over(paths: &[&str], connection: &str) -> String {
    let paths: String = paths.iter().map(|path| format!("[[path]]\n{path}\n")).collect();
    format!("name = \"t\"\nduration = \"60s\"\n{paths}\n[[connection]]\n{connection}{BULK}")
}

#[test]
fn other_paths_and_path_managers_cause_no_violation() {
    let wifi = PATHS[0];
    let six = format!("{}family = \"ipv6\"\n", PATHS[1]);
    let breaks =
        format!("{wifi}[[path.change]]\nat = \"300ms\"\nstate = \"down\"\nnoticed = true\n");
    let back = format!("{breaks}[[path.change]]\nat = \"900ms\"\nstate = \"up\"\nnoticed = true\n");
    let silent = format!("{wifi}[[path.change]]\nat = \"300ms\"\nstate = \"down\"\n");
    let reordering = format!("{wifi}jitter = \"8ms\"\njitter_model = \"reordering\"\n");
    let pairs: [(&str, &[&str], &str); 9] = [
        ("IPv6 announced", &[wifi, &six], ""),
        ("path breaks", &[&breaks, PATHS[1]], ""),
        ("path breaks and comes back", &[&back, PATHS[1]], ""),
        ("path goes silent", &[&silent, PATHS[1]], ""),
        ("reordering", &[&reordering, PATHS[1]], "dss_checksum = true\n"),
        ("backup", &[&back, PATHS[1]], "path_manager = \"backup\"\n"),
        ("single path", &[&back, PATHS[1]], "path_manager = \"single_path\"\n"),
        ("two ports", &[wifi], "path_manager = \"ndiffports\"\n"),
        ("tiny window", &[wifi, PATHS[1]], "receive_buffer = \"10kB\"\nsend_buffer = \"50kB\"\n"),
    ];
    for (name, paths, connection) in pairs {
        sane(name, &run(&over(paths, connection), 1));
        sane(name, &run(&over(paths, &format!("direction = \"upload\"\n{connection}")), 2));
    }
}

#[test]
fn middleboxes_that_translate_split_or_merge_cause_no_violation() {
    for kind in ["nat", "rewrite_isn", "split_segments", "coalesce", "strip_options"] {
        let boxed = format!("{}[[path.middlebox]]\nkind = \"{kind}\"\n", PATHS[0]);
        let run = run(&over(&[&boxed, PATHS[1]], ""), 1);
        sane(kind, &run);
        let outcome = analysis(&run.capture);
        let connections = table(&outcome, "connections");
        assert_eq!(connections.rows(), 1, "{kind}");
        let protocol = texts(connections, "protocol").remove(0);
        let fallback = texts(connections, "fallback").remove(0);
        let expected = match kind {
            // Merged segments lose a mapping.
            "coalesce" => ("MPTCP", "infinite mapping"),
            // The server never receives Multipath TCP options, as the note says.
            "strip_options" => ("TCP", ""),
            _ => ("MPTCP", ""),
        };
        assert_eq!((&*protocol, &*fallback), expected, "{kind}");
        let noted = outcome.notes.iter().any(|note| note.contains("removes them"));
        assert_eq!(noted, kind == "strip_options", "{:?}", outcome.notes);
        assert_eq!(numbers(connections, "bytes_in"), [1_000_000], "{kind}");
    }
}

#[test]
fn plain_tcp_is_listed_without_segments() {
    let run = run(&over(&[PATHS[0]], "protocol = \"tcp\"\n"), 1);
    let outcome = analysis(&run.capture);
    let connections = table(&outcome, "connections");
    assert_eq!(texts(connections, "protocol"), ["TCP"]);
    assert_eq!(texts(connections, "state"), ["closed"]);
    assert_eq!(numbers(connections, "bytes_in"), [1_000_000]);
    assert_eq!(table(&outcome, "segments").rows(), 0);
}
