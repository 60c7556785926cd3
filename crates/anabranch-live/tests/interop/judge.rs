//! Runs a case and checks its result.

use std::path::PathBuf;
use std::process::Command;

use anabranch_live::{HostCounters, HostStack, Lateness, LiveOutcome, Options};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Capture, Side};
use anabranch_trace::Column::{self as Values, Text as Words};
use anabranch_trace::{Input, analyse};
use anabranch_wire::Duration;

use super::cases::{Carried, Case};

/// Captures of all cases, with one pcapng section each.
#[derive(Default)]
pub(crate) struct Captures {
    bytes: Vec<u8>,
}

/// Kernel counters that must remain 0 in a clean run.
const ERRORS: &[&str] = &[
    "AddAddrDrop",
    "AddAddrTxDrop",
    "Blackhole",
    "DSSCorruptionFallback",
    "DSSCorruptionReset",
    "DSSNoMatchTCP",
    "DSSNotMatching",
    "DataCsumErr",
    "DssFallback",
    "EchoAddTxDrop",
    "FallbackFailed",
    "InfiniteMapRx",
    "InfiniteMapTx",
    "MD5SigFallback",
    "MPCapableDataFallback",
    "MPCapableEndpAttempt",
    "MPCapableFallbackACK",
    "MPCapableFallbackSYNACK",
    "MPCapableSYNTXDrop",
    "MPCapableSYNTXDisabled",
    "MPFailRx",
    "MPFailTx",
    "MPFallbackTokenInit",
    "MPFastcloseRx",
    "MPFastcloseTx",
    "MPJoinAckHMacFailure",
    "MPJoinNoTokenFound",
    "MPJoinPortAckRx",
    "MPJoinRejected",
    "MPJoinSynAckBackupRx",
    "MPJoinSynAckHMacFailure",
    "MPJoinSynTxBindErr",
    "MPJoinSynTxConnectErr",
    "MPJoinSynTxCreatSkErr",
    "MPRstRx",
    "MPRstTx",
    "MismatchPortAckRx",
    "MismatchPortSynRx",
    "NoDSSInWindow",
    "RmAddrDrop",
    "RmAddrTxDrop",
    "SimultConnectFallback",
];

/// Counters of one host, and the other host's counters that must be equal if nothing is lost.
const PAIRS: &[(&str, &str)] = &[
    ("MPCapableSYNTX", "MPCapableSYNRX"),
    ("MPCapableSYNRX", "MPCapableSYNACKRX"),
    ("MPCapableSYNACKRX", "MPCapableACKRX"),
    ("MPJoinSynTx", "MPJoinSynRx"),
    ("MPJoinSynRx", "MPJoinSynAckRx"),
    ("MPJoinSynAckRx", "MPJoinAckRx"),
    ("AddAddrTx", "AddAddr"),
    ("EchoAddTx", "EchoAdd"),
    ("MPPrioTx", "MPPrioRx"),
];

/// Time for which a run continues after both hosts have closed: enough for the last DATA_ACK.
const LINGER: Duration = Duration::from_millis(150);

/// Failures of a case that are not counted because the emulator was late. Each takes a few seconds.
const MAX_LATE_FAILURES: usize = 4;

/// Run a case. Returns its problems and its capture.
///
/// Linux and the emulator share this machine's processors in real time, so a case can fail because
/// either of them had to wait. A case that fails therefore runs again, until it has passed or failed
/// twice. A failure while the emulator was late is not counted, up to [`MAX_LATE_FAILURES`]. Wrong
/// bytes are final.
pub(crate) fn run(case: &Case) -> (Vec<String>, Vec<u8>) {
    let (mut passed, mut failed, mut late_failures) = (0, 0, 0);
    loop {
        let (mut problems, capture, lateness) = run_once(case);
        let Some(late) = lateness else { return (problems, capture) };
        if problems.is_empty() {
            passed += 1;
        } else if late.is_valid() || late_failures == MAX_LATE_FAILURES {
            failed += 1;
        } else {
            late_failures += 1;
            let tail = late.quantile(0.999).as_nanos() as f64 / 1e6;
            problems.push(format!("the emulator was late: p99.9 {tail:.1} ms"));
        }
        if passed > failed || failed == 2 {
            return (problems, capture);
        }
        println!(
            "{} ... repeated: {passed} passed, {failed} failed, {late_failures} failed late; {}",
            case.name,
            problems.join("; ")
        );
    }
}

/// Run a case once. Returns its problems, its capture, and the emulator's lateness unless the run
/// failed or a byte was wrong.
fn run_once(case: &Case) -> (Vec<String>, Vec<u8>, Option<Lateness>) {
    let scenario = Scenario::from_toml(&case.scenario, &case.name).expect("a valid scenario");
    let mut capture = Vec::new();
    let captured = case
        .captured
        .then(|| Capture { at: Some(&[Side::Client, Side::Server]), ..Capture::new(&mut capture) });
    let [client, server] = case.stacks;
    let options = Options::new(client, server)
        .capture(captured)
        .linger(LINGER)
        .interventions(case.interventions.clone());
    match anabranch_live::run(&scenario, 1, options) {
        Ok(outcome) => {
            let mut problems = judge(case, &outcome);
            if case.captured {
                problems.extend(of_capture(case, &capture));
            }
            (problems, capture, is_exact(case, &outcome).then_some(outcome.lateness))
        }
        Err(error) => (vec![error.to_string()], capture, None),
    }
}

/// Problems in a capture: unexpected resets, and violations of RFC 8684. A Linux sender may exceed
/// the window a little, as docs/analyze.md explains.
fn of_capture(case: &Case, capture: &[u8]) -> Vec<String> {
    let input = Input::bytes(&case.name, capture);
    let found = analyse(&[input], &mut |_, _| true).expect("a capture of our own");
    let table = |name: &str| found.tables.iter().find(|table| table.name == name).expect("a table");
    if table("connections").rows() != 1 {
        return vec![format!("the capture shows {} connections", table("connections").rows())];
    }
    let words = |name: &str, column: &str| match table(name).column(column) {
        Some(Words(words)) => words.clone(),
        _ => Vec::new(),
    };
    let (events, details) = (words("events", "event"), words("events", "detail"));
    let resets = || events.iter().zip(&details).filter(|(event, _)| *event == "reset");
    let says = |reason: &&&str| !resets().any(|(_, detail)| detail.starts_with(**reason));
    let mut problems: Vec<_> = (case.expected.resets.iter().filter(says))
        .map(|reason| format!("no reset says {reason:?}, of {:?}", resets().collect::<Vec<_>>()))
        .collect();
    if let Some(reason) = case.expected.ends {
        let in_transfer = events.iter().take_while(|event| *event != "data_fin");
        let fins = in_transfer.filter(|event| *event == "fin").count();
        if fins < 2 && says(&&reason) {
            problems
                .push(format!("no subflow ends with two FINs, or a reset that says {reason:?}"));
        }
    }
    let count_of = |column: &str| match table("connections").column(column) {
        Some(Values::U64(values)) => values[0],
        _ => 0,
    };
    if (count_of("checksums_right") > 0) != case.expected.checksums {
        problems.push(format!("{} checksums were correct", count_of("checksums_right")));
    }
    if let (Some(first), Some(Values::Names(_, from))) =
        (case.expected.first_data_fin, table("events").column("direction"))
    {
        let data_fin = events.iter().zip(from).find(|(event, _)| *event == "data_fin");
        if data_fin.map(|(_, from)| *from) != Some(first as u8) {
            problems.push(format!("the first DATA_FIN is not the {first}'s"));
        }
    }
    let (rules, what) = (words("violations", "rule"), words("violations", "what"));
    let Some(Values::Names(_, from)) = table("violations").column("direction") else {
        return problems;
    };
    let all = rules.iter().zip(what).zip(from);
    let violations = all.filter(|((rule, _), from)| {
        *rule != "outside_window" || case.stacks[usize::from(**from)] != HostStack::Kernel
    });
    problems
        .extend(violations.map(|((rule, what), _)| format!("the capture shows {rule}: {what}")));
    problems
}

fn judge(case: &Case, outcome: &LiveOutcome) -> Vec<String> {
    let expected = &case.expected;
    let mut problems = Vec::new();
    let mut check = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    let end = outcome.end.as_secs_f64();
    let corrupt = column(outcome, 0, "corrupt_bytes");
    check(is_exact(case, outcome), format!("{corrupt:?} bytes were wrong"));
    if expected.completes {
        let delivered = column(outcome, 0, "bytes_delivered");
        let written = column(outcome, 0, "bytes_written");
        let done = column(outcome, 0, "completed") == [1];
        check(done, format!("not complete after {end:.1} s: {delivered:?} of {written:?} bytes"));
        let least_written = written[0] <= expected.most_bytes.unwrap_or(u64::MAX);
        check(least_written && end < 15.0, format!("{written:?} bytes written in {end:.1} s"));
        check(
            column(outcome, 0, "is_mptcp") == [u64::from(expected.mptcp)],
            "wrong protocol".into(),
        );
    } else {
        check(column(outcome, 0, "failed") == [1], format!("not reset in {end:.1} s"));
    }
    // Data segments go one way on each path. Handshakes and acknowledgements have fewer bytes.
    let bytes = column(outcome, 2, "bytes_delivered");
    let carried: Vec<_> = bytes.chunks(2).map(|both| both.iter().sum::<u64>()).collect();
    let is_right = match expected.carried {
        Carried::ByAll => carried.len() == 1 || carried.iter().all(|bytes| *bytes > 20_000),
        Carried::ByAny => true,
        Carried::By(path) => carried[path] * 4 > carried.iter().sum::<u64>() * 3,
    };
    check(is_right, format!("paths carried {carried:?}"));
    if expected.marked {
        let marked: u64 = column(outcome, 2, "marked").iter().sum();
        let dropped: u64 = column(outcome, 2, "dropped_by_queue").iter().sum();
        check(marked > dropped, format!("{marked} packets were marked, {dropped} dropped"));
        let resent: u64 = column(outcome, 1, "segments_retransmitted").iter().sum();
        check(resent <= dropped, format!("{resent} segments were retransmitted"));
    }
    for (stack, counters) in case.stacks.iter().zip(&outcome.counters) {
        let expected_here = match stack {
            HostStack::Kernel => expected.kernel,
            HostStack::Engine => expected.engine,
        };
        for name in expected_here {
            let least = expected_here.iter().filter(|each| *each == name).count() as u64;
            let count = count(counters, name);
            check(count >= least, format!("the {stack:?} counted {name} {count}, not {least}"));
        }
        for name in expected.still {
            let count = count(counters, name);
            check(count == 0, format!("the {stack:?} counted {name} {count}"));
        }
        if *stack == HostStack::Kernel {
            for (name, count) in unexpected(counters, expected.tolerated) {
                check(false, format!("the kernel counted {name} {count}"));
            }
        }
    }
    if expected.exact {
        let [client, server] = &outcome.counters;
        for ((sent, received), (from, to)) in
            PAIRS.iter().flat_map(|pair| [(pair, (client, server)), (pair, (server, client))])
        {
            let counts = (count(from, sent), count(to, received));
            check(counts.0 == counts.1, format!("{sent} and {received} are {counts:?}"));
        }
    }
    let left = outcome.interventions_left;
    check(left == 0, format!("the run ended before {left} interventions"));
    check(case.stacks != [HostStack::Engine; 2], "no host uses the kernel".into());
    problems
}

/// Returns `true` if all bytes are correct, except for those that a middlebox is meant to change.
fn is_exact(case: &Case, outcome: &LiveOutcome) -> bool {
    (column(outcome, 0, "corrupt_bytes") != [0]) == case.expected.changed
}

/// A counter that every host has: a Multipath TCP counter without its prefix, or a TCP counter.
fn count(counters: &HostCounters, name: &str) -> u64 {
    let prefix = if name.starts_with("Tcp") { "" } else { "MPTcpExt" };
    counters.get(&format!("{prefix}{name}")).copied().unwrap_or(0)
}

fn unexpected<'a>(
    counters: &'a HostCounters,
    tolerated: &'a [&str],
) -> impl Iterator<Item = (&'a str, u64)> {
    let errors = ERRORS.iter().filter(move |name| !tolerated.contains(name));
    errors.map(|name| (*name, count(counters, name))).filter(|(_, count)| *count > 0)
}

/// A column of one of the result's tables.
fn column(outcome: &LiveOutcome, table: usize, name: &str) -> Vec<u64> {
    outcome.tables[table].column(name).expect("a column's name").numbers()
}

impl Captures {
    pub(crate) fn add(&mut self, capture: Vec<u8>) {
        self.bytes.extend(capture);
    }

    /// Check the packets with tshark and return the problems. The file is kept if `keep` is set or
    /// tshark finds problems.
    pub(crate) fn judge(&self, keep: bool) -> Vec<String> {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interop.pcapng");
        std::fs::write(&file, &self.bytes).expect("a folder for temporary files");
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-o", "tcp.check_checksum:TRUE"]);
        // The payload is no protocol, even if it looks like one.
        tshark.args(["-o", "tcp.desegment_tcp_streams:FALSE"]);
        tshark.args(["-Y", "_ws.malformed or tcp.checksum.status == 0"]);
        match tshark.output() {
            Err(error) => {
                println!("captures not checked: tshark: {error}");
                Vec::new()
            }
            Ok(found) => {
                let printed = String::from_utf8_lossy(&found.stdout).into_owned();
                let mut lines: Vec<_> =
                    printed.lines().take(5).map(|line| format!("tshark: {line}")).collect();
                if !found.status.success() {
                    lines.push(format!("tshark: {}", String::from_utf8_lossy(&found.stderr)));
                }
                if keep || !lines.is_empty() {
                    println!("captures: {}", file.display());
                } else {
                    // The file may have hundreds of megabytes.
                    let _ = std::fs::remove_file(&file);
                }
                lines
            }
        }
    }
}
