//! Effects of middleboxes on connections: each middlebox, in each phase in which it can act, at
//! each place. RFC 8684 §3.7; Honda et al., IMC 2011; Raiciu et al., NSDI 2012; Hesmans et al.,
//! HotMiddlebox 2013. docs/middleboxes.md has the same table for readers.

use std::ops::Range;

use anabranch_sim::{Options, RunOutcome};

/// Bytes that a connection transfers.
const BYTES: u64 = 500_000;
const BUFFER: u64 = 200_000;
const SEEDS: u64 = 8;
/// Number of seeds in the tests that are not slow: one for IPv4, one for IPv6.
const FEW_SEEDS: u64 = 2;

/// Outcome of a connection. In every case, the application receives no byte that TCP would not have
/// delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Multipath TCP, and every path carries data.
    All,
    /// Multipath TCP, and the first path carries all or nearly all data.
    First,
    /// Multipath TCP; the second path may carry data.
    Some,
    /// TCP over the first path.
    Tcp,
    /// Multipath TCP or TCP, depending on whether a second subflow exists at that time.
    Either,
    /// Multipath TCP, TCP or an error.
    Undecided,
    /// TCP over one path, with the stream as the middlebox changed it.
    Altered,
    /// Multipath TCP that is far from complete at the end of the run. The host resets one subflow
    /// after the other, and opens the next after a pause that doubles each time.
    Slow,
    /// An error.
    Error,
}
use Ends::{All, Altered, Either, Error, First, Slow, Some as Several, Tcp, Undecided};

use crate::common::{column, depends_on_the_platform, platform, run, run_with};

/// Paths on which the middlebox is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    OnlyPath,
    FirstOfTwo,
    SecondOfTwo,
    BothPaths,
}
const PLACES: [Place; 4] =
    [Place::OnlyPath, Place::FirstOfTwo, Place::SecondOfTwo, Place::BothPaths];

/// Values of `late_fallback` for which a row is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    Either,
    Allowed,
    Forbidden,
}

impl Late {
    fn values(self) -> &'static [bool] {
        match self {
            Late::Either => &[true, false],
            Late::Allowed => &[true],
            Late::Forbidden => &[false],
        }
    }
}

/// A middlebox and the expected outcomes.
struct Row {
    /// Kind of middlebox.
    kind: &'static str,
    /// Action of the middlebox, and when it takes place, for readers.
    what: &'static str,
    /// Other keys of the middlebox.
    keys: &'static str,
    /// Keys of the connection.
    connection: &'static str,
    late: Late,
    /// Seconds within which the connection must end.
    limit: u64,
    /// Outcome for each place, if the server sends.
    download: [Ends; 4],
    /// Outcome for each place, if the client sends.
    upload: [Ends; 4],
    /// Outcome of plain TCP through the middlebox.
    tcp: Ends,
}

const fn row(kind: &'static str, what: &'static str, keys: &'static str, ends: [Ends; 4]) -> Row {
    let (download, upload) = (ends, ends);
    let (connection, late, limit) = ("", Late::Either, 60);
    Row { kind, what, keys, connection, late, limit, download, upload, tcp: Tcp }
}

/// The row for one value of `late_fallback`.
const fn late(row: Row, late: Late) -> Row {
    Row { late, ..row }
}

/// TCP if the middlebox is on the first path. Multipath TCP without the second path if it is there.
const STRIPPED: [Ends; 4] = [Tcp, Tcp, First, Tcp];
/// The joined subflow fails if it crosses the middlebox.
const NO_JOIN: [Ends; 4] = [All, All, First, First];
const HARMLESS: [Ends; 4] = [All; 4];
/// RFC 8684 §3.7: a sole subflow falls back to TCP if the peer acknowledges the first data without
/// having sent a DATA_ACK.
const NO_DATA_ACK: [Ends; 4] = [Either, Either, All, Either];
const REWRITTEN: [Ends; 4] = [Altered, All, All, Altered];
const CHECKSUM: &str = "dss_checksum = true";
/// Long enough for 15 timeouts. A host that waits for an acknowledgement notices some outcomes only
/// then.
const LONG: u64 = 3_000;

const STRIP: &str = "strip_options";
const DSS_LATER: &str = "options = [\"dss\"]\nafter_packets = 200";
const DSS_AFTER_60: &str = "options = [\"dss\"]\nafter_packets = 60";
const DSS_SOON: &str = "DSS, after 60 packets, while the second path joins";
const EVERYTHING: &str = "all MPTCP options, after 200 packets";
const COALESCE: &str = "delay = \"5ms\"";
/// Half of the merged bytes have no mapping.
const MERGED: [Ends; 4] = [Slow, Several, Several, Slow];
const FIRST_PIECE: &str = "options_on = \"first\"";
const REWRITE: &str = "rewrite_payload";

const ROWS: &[Row] = &[
    row(STRIP, "all MPTCP options, from all segments", "", STRIPPED),
    row(STRIP, "all unknown options, from all segments", "options = [\"unknown\"]", STRIPPED),
    row(STRIP, "all MPTCP options, from the SYN", "segments = [\"syn\"]", STRIPPED),
    row(STRIP, "all MPTCP options, from the SYN/ACK", "segments = [\"syn_ack\"]", STRIPPED),
    Row {
        upload: NO_JOIN,
        ..row(
            STRIP,
            "all MPTCP options, from the third ACK",
            "segments = [\"third_ack\"]",
            STRIPPED,
        )
    },
    row(STRIP, "all MPTCP options, from data", "segments = [\"data\"]", STRIPPED),
    row(STRIP, "all MPTCP options, from pure ACKs", "segments = [\"ack\"]", [Tcp, Tcp, All, Tcp]),
    row(
        STRIP,
        "all MPTCP options, from all segments but SYNs",
        "segments = [\"third_ack\", \"data\", \"ack\"]",
        STRIPPED,
    ),
    Row {
        upload: [Tcp, Tcp, All, Tcp],
        ..row(
            STRIP,
            "MP_CAPABLE, from the first data",
            "options = [\"mp_capable\"]\nsegments = [\"data\"]",
            HARMLESS,
        )
    },
    row(STRIP, "DSS, from all segments", "options = [\"dss\"]", STRIPPED),
    Row {
        upload: HARMLESS,
        ..row(
            STRIP,
            "DSS, from data to the client",
            "options = [\"dss\"]\nsegments = [\"data\"]\napplies_to = \"forward\"",
            STRIPPED,
        )
    },
    row(STRIP, "MP_JOIN, from the SYN", "options = [\"mp_join\"]\nsegments = [\"syn\"]", NO_JOIN),
    row(
        STRIP,
        "MP_JOIN, from the SYN/ACK",
        "options = [\"mp_join\"]\nsegments = [\"syn_ack\"]",
        NO_JOIN,
    ),
    row(
        STRIP,
        "MP_JOIN, from the third ACK",
        "options = [\"mp_join\"]\nsegments = [\"third_ack\"]",
        NO_JOIN,
    ),
    Row {
        // An ADD_ADDR with an IPv6 address leaves no room for a DATA_ACK. Once it is stripped, the
        // first data is acknowledged by a segment without options.
        upload: [All, Either, All, Either],
        ..row(
            STRIP,
            "ADD_ADDR; the second path has the other address family",
            "options = [\"add_addr\"]",
            [All, First, All, First],
        )
    },
    Row {
        // The server may have fallen back to TCP when the client has just joined. The client cannot
        // know this, so the connection can only end with an error.
        upload: [Tcp, Undecided, All, Undecided],
        late: Late::Allowed,
        limit: 100,
        ..row(STRIP, DSS_SOON, DSS_AFTER_60, [Tcp, Either, All, Either])
    },
    Row {
        upload: [Slow, Undecided, All, Undecided],
        late: Late::Forbidden,
        limit: 100,
        ..row(STRIP, DSS_SOON, DSS_AFTER_60, [Slow, Either, All, Either])
    },
    late(row(STRIP, "DSS, after 200 packets", DSS_LATER, [Tcp, All, All, All]), Late::Allowed),
    late(row(STRIP, "DSS, after 200 packets", DSS_LATER, HARMLESS), Late::Forbidden),
    late(row(STRIP, EVERYTHING, "after_packets = 200", [Tcp, All, All, All]), Late::Allowed),
    late(row(STRIP, EVERYTHING, "after_packets = 200", HARMLESS), Late::Forbidden),
    row("nat", "from the start", "", HARMLESS),
    Row {
        tcp: Error,
        limit: LONG,
        ..row("nat", "assigns new ports after 300 ms", "rebind_at = \"300ms\"", HARMLESS)
    },
    Row {
        tcp: Error,
        limit: LONG,
        ..row("nat", "appears after 300 ms", "from = \"300ms\"", HARMLESS)
    },
    Row {
        tcp: Error,
        limit: LONG,
        ..row("nat", "disappears after 300 ms", "until = \"300ms\"", HARMLESS)
    },
    row("rewrite_isn", "from the start", "", HARMLESS),
    Row {
        limit: LONG,
        download: [Error, All, All, Error],
        tcp: Error,
        ..row("rewrite_isn", "disappears after 300 ms", "until = \"300ms\"", HARMLESS)
    },
    row("split_segments", "options on all pieces", "", HARMLESS),
    Row {
        connection: CHECKSUM,
        ..row("split_segments", "options on all pieces, with checksums", "", HARMLESS)
    },
    row("split_segments", "options on the first piece", FIRST_PIECE, HARMLESS),
    Row {
        connection: CHECKSUM,
        ..row("split_segments", "options on the first piece, with checksums", FIRST_PIECE, HARMLESS)
    },
    late(
        row("coalesce", "neighbouring segments", COALESCE, [Tcp, Tcp, Several, Tcp]),
        Late::Allowed,
    ),
    late(row("coalesce", "neighbouring segments", COALESCE, MERGED), Late::Forbidden),
    Row {
        connection: CHECKSUM,
        late: Late::Allowed,
        ..row(
            "coalesce",
            "neighbouring segments, with checksums",
            COALESCE,
            [Tcp, Tcp, Several, Tcp],
        )
    },
    Row {
        connection: CHECKSUM,
        late: Late::Forbidden,
        ..row("coalesce", "neighbouring segments, with checksums", COALESCE, MERGED)
    },
    Row {
        connection: CHECKSUM,
        tcp: Altered,
        ..row(
            REWRITE,
            "four bytes replaced, with checksums",
            "change = \"replace\"\nat = \"100kB\"",
            REWRITTEN,
        )
    },
    Row {
        connection: CHECKSUM,
        tcp: Altered,
        ..row(
            REWRITE,
            "four bytes inserted, with checksums",
            "change = \"insert\"\nat = \"100kB\"",
            REWRITTEN,
        )
    },
    Row {
        connection: CHECKSUM,
        tcp: Altered,
        ..row(
            REWRITE,
            "four bytes removed, with checksums",
            "change = \"remove\"\nat = \"100kB\"",
            REWRITTEN,
        )
    },
    row("proactive_ack", "from the start", "", [Tcp, Tcp, All, Tcp]),
    Row {
        limit: LONG,
        download: [Error, Error, All, Error],
        tcp: Error,
        ..row("proactive_ack", "disappears after 300 ms", "until = \"300ms\"", [Tcp, Tcp, All, Tcp])
    },
    row("normalise", "from the start", "", HARMLESS),
    row("hole_refusal", "from the start", "", HARMLESS),
    row("clamp_mss", "segment sizes in SYNs", "mtu = \"1000B\"", HARMLESS),
    row("ingress_filter", "from the start", "", HARMLESS),
    row("blackhole_options", "SYNs with MPTCP options", "", STRIPPED),
    row("blackhole_options", "SYNs with MP_JOIN", "syns = \"mp_join\"", NO_JOIN),
    Row {
        limit: 300,
        tcp: Error,
        ..row("blackhole_options", "all SYNs", "syns = \"all\"", [Error, Error, First, Error])
    },
    row("shrink_window", "zero window, repeatedly", "until = \"20s\"", HARMLESS),
    row(
        "shrink_window",
        "zero window, repeatedly; data refused",
        "refuse = true\nuntil = \"20s\"",
        HARMLESS,
    ),
    row("shrink_window", "small window, repeatedly", "to = \"3kB\"\nuntil = \"20s\"", HARMLESS),
    Row { upload: NO_DATA_ACK, ..row("bare_segments", "for 10 % of the segments", "", HARMLESS) },
    row("bare_segments", "for all segments", "probability = \"100%\"", NO_DATA_ACK),
    Row {
        connection: "sack = false\ntimestamps = false",
        upload: NO_DATA_ACK,
        ..row(
            "bare_segments",
            "for 10 % of the segments; hosts without SACK and timestamps",
            "",
            HARMLESS,
        )
    },
];

fn scenario(row: &Row, place: Place, direction: &str, family: &str, late: Option<bool>) -> String {
    let protocol = if late.is_some() { "mptcp" } else { "tcp" };
    let late = late.map_or(String::new(), |late| format!("late_fallback = {late}\n"));
    let Row { kind, keys, connection, limit, .. } = row;
    // Hosts announce addresses if the second path has another address family than the first.
    let other = match (keys.contains("add_addr"), family) {
        (true, "ipv4") => "ipv6",
        (true, _) => "ipv4",
        (false, _) => family,
    };
    let path = |name: &str, rate: &str, delay: &str, family: &str, without: Place| {
        let boxes = format!("[[path.middlebox]]\nkind = \"{kind}\"\n{keys}\n");
        let boxes = if place == without { "" } else { &boxes };
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             limit = \"50packets\"\nloss = \"0.5%\"\nfamily = \"{family}\"\n{boxes}\n\
             [path.reverse]\nloss = \"0.5%\"\n"
        )
    };
    let first = path("first", "10Mbit/s", "10ms", family, Place::SecondOfTwo);
    let second = match place {
        Place::OnlyPath => String::new(),
        _ => path("second", "5Mbit/s", "30ms", other, Place::FirstOfTwo),
    };
    format!(
        "name = \"box\"\nduration = \"{limit}s\"\nsample_interval = \"200ms\"\n{first}{second}\
         [[connection]]\n{connection}\n{late}direction = \"{direction}\"\nprotocol = \"{protocol}\"\n\
         send_buffer = \"{BUFFER}B\"\nreceive_buffer = \"{BUFFER}B\"\n\
         workload = {{ kind = \"bulk\", size = \"{BYTES}B\" }}\n"
    )
}

/// Bytes carried by the first and by the second path.
fn carried(outcome: &RunOutcome) -> [u64; 2] {
    let mut carried = [0; 2];
    let bytes = column(outcome, "subflows", "bytes_received");
    for (path, bytes) in column(outcome, "subflows", "path").iter().zip(bytes) {
        carried[*path as usize] += bytes;
    }
    carried
}

/// Problem with the outcome, if any.
fn fault(row: &Row, expected: Ends, place: Place, outcome: &RunOutcome) -> Option<String> {
    let one = |name| column(outcome, "connections", name)[0];
    let expected = match expected {
        // The outcome depends on the progress of the transfer at that time.
        _ if platform().is_some() && row.what.ends_with("after 300 ms") => Undecided,
        other => other,
    };
    let expected = match expected {
        Undecided if one("failed") == 1 => Error,
        other => other,
    };
    let (delivered, corrupt) = (one("bytes_delivered"), one("corrupt_bytes"));
    let (mptcp, why) = (one("is_mptcp") == 1, one("fallback"));
    let held = column(outcome, "connection_samples", "out_of_order_bytes");
    let ends = (one("completed") == 1, one("failed") == 1);
    let [first, second] = carried(outcome);
    let alone = place == Place::OnlyPath;
    let protocol = match expected {
        All => mptcp && (alone || first.min(second) > 10_000),
        First => mptcp && second < 10_000,
        Several | Slow => mptcp,
        Tcp | Altered => !mptcp,
        Either | Undecided | Error => true,
    };
    let altered = if expected == Altered { row.keys } else { "" };
    let bytes = match altered {
        keys if keys.contains("insert") => BYTES + 4,
        keys if keys.contains("remove") => BYTES - 4,
        _ => BYTES,
    };
    let granted = platform().is_some_and(|platform| platform == "linux-socket");
    let most_held = if granted { 2 * BUFFER } else { BUFFER };
    let done = expected != Error && expected != Slow;
    let checks = [
        ("wrong protocol or wrong paths", protocol),
        ("wrong ending", ends == (done, expected == Error)),
        ("wrong number of bytes delivered", !done || delivered == bytes),
        ("no progress", expected != Slow || (1..bytes).contains(&delivered)),
        ("wrong bytes delivered", (corrupt > 0) == (expected == Altered)),
        ("too much out-of-order data", held.iter().all(|bytes| *bytes <= most_held)),
    ];
    let found = checks.iter().find(|(_, fine)| !fine)?;
    Some(format!(
        "{}: MPTCP {mptcp} (fallback {why}), ends {ends:?}, {delivered} delivered, {corrupt} \
         corrupt, {first} and {second} carried",
        found.0
    ))
}

#[test]
fn multipath_tcp_survives_every_box_or_falls_back_to_tcp() {
    // RFC 8684 §3.7
    assert_survives_every_box(0..FEW_SEEDS);
}

#[test]
#[ignore = "slow: make test-slow"]
fn multipath_tcp_survives_every_box_with_more_seeds() {
    // RFC 8684 §3.7
    assert_survives_every_box(FEW_SEEDS..SEEDS);
}

fn assert_survives_every_box(seeds: Range<u64>) {
    depends_on_the_platform("joins after a close, when a path has lost its options");
    let mut faults = Vec::new();
    for row in ROWS {
        for (direction, expected) in [("download", row.download), ("upload", row.upload)] {
            for (place, expected) in PLACES.into_iter().zip(expected) {
                let cases =
                    row.late.values().iter().flat_map(|late| seeds.clone().map(|s| (*late, s)));
                for (late, seed) in cases {
                    let family = if seed % 2 == 0 { "ipv4" } else { "ipv6" };
                    let outcome = run(&scenario(row, place, direction, family, Some(late)), seed);
                    let fault = fault(row, expected, place, &outcome);
                    faults.extend(fault.map(|fault| {
                        let Row { kind, what, .. } = row;
                        format!(
                            "{kind}, {what}, {place:?}, {direction}, late_fallback {late}, seed \
                             {seed}: {expected:?} expected; {fault}"
                        )
                    }));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn plain_tcp_fares_no_worse_than_without_multipath_tcp() {
    let mut faults = Vec::new();
    for row in ROWS {
        for direction in ["download", "upload"] {
            for seed in 0..SEEDS {
                let toml = scenario(row, Place::OnlyPath, direction, "ipv4", None);
                let outcome = run(&toml, seed);
                // Removing a middlebox breaks a connection only if it holds relevant state at that
                // time.
                let survived = column(&outcome, "connections", "completed")[0] == 1;
                let expected = if row.tcp == Error && survived { Tcp } else { row.tcp };
                let fault = fault(row, expected, Place::OnlyPath, &outcome);
                faults.extend(fault.map(|fault| {
                    format!("{}, {}, {direction}, seed {seed}: {fault}", row.kind, row.what)
                }));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn boxes_emit_valid_packets_and_runs_are_reproducible() {
    for row in ROWS {
        let late = Some(row.late.values()[0]);
        let toml =
            scenario(row, Place::BothPaths, "download", "ipv6", late).replace("3000s", "60s");
        let outcome = run(&toml, 1);
        assert_eq!(run(&toml, 1), outcome, "{} {}", row.kind, row.what);
        let bytes = run_with(&toml, 1, Options::default().round_trip(true));
        assert_eq!(bytes.digest, outcome.digest, "{} {}", row.kind, row.what);
    }
}

#[test]
fn a_nat_that_forgets_between_requests_costs_subflows_not_the_connection() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // Four seconds of silence between requests, while a mapping lasts two seconds.
    let toml = |protocol: &str| {
        format!(
            "name = \"idle\"\nduration = \"300s\"\n\
             [[path]]\nname = \"p\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\nlimit = \"50packets\"\n\
             [[path.middlebox]]\nkind = \"nat\"\nidle_timeout = \"2s\"\n\
             [[connection]]\nprotocol = \"{protocol}\"\n[connection.workload]\n\
             kind = \"request_response\"\nrequest_size = \"400B\"\nresponse_size = \"50kB\"\n\
             think_time = \"4s\"\ncount = 10\n"
        )
    };
    for seed in 0..SEEDS {
        let outcome = run(&toml("mptcp"), seed);
        assert_eq!(column(&outcome, "connections", "bytes_delivered"), [500_000]);
        assert_eq!(column(&outcome, "connections", "corrupt_bytes"), [0]);
        assert!(column(&outcome, "subflows", "path").len() >= 10, "a new subflow for each request");
        // The same transfer over TCP fails after the first silence.
        let outcome = run(&toml("tcp"), seed);
        assert_eq!(column(&outcome, "connections", "bytes_delivered"), [50_000]);
        assert_eq!(column(&outcome, "connections", "failed"), [1]);
    }
}

#[test]
fn without_checksums_nobody_notices_that_bytes_are_others() {
    // RFC 8684 §3.7: checksums exist to detect this.
    let keys = "change = \"replace\"\nat = \"100kB\"";
    let unprotected = row(REWRITE, "four bytes replaced", keys, [Several; 4]);
    for place in [Place::OnlyPath, Place::FirstOfTwo] {
        let outcome = run(&scenario(&unprotected, place, "download", "ipv4", Some(false)), 1);
        assert_eq!(column(&outcome, "connections", "is_mptcp"), [1]);
        assert_eq!(column(&outcome, "connections", "completed"), [1]);
        assert!(column(&outcome, "connections", "corrupt_bytes")[0] > 0);
    }
}

/// The rows as the table of docs/middleboxes.md.
fn page_table() -> String {
    let text = |ends: Ends| match ends {
        All => "MPTCP",
        First => "MPTCP, first path",
        Several => "MPTCP, one path or two",
        Tcp => "TCP",
        Either => "MPTCP or TCP",
        Undecided => "MPTCP, TCP or error",
        Altered => "TCP, changed stream",
        Slow => "MPTCP, slow",
        Error => "error",
    };
    let late = |row: &Row| match row.late {
        Late::Either => "",
        Late::Allowed => "; `late_fallback = true`",
        Late::Forbidden => "; `late_fallback = false`",
    };
    let cell = |(down, up): (Ends, Ends)| match (text(down), text(up)) {
        (down, up) if down == up => down.to_owned(),
        (down, up) => format!("↓ {down}; ↑ {up}"),
    };
    let lines = ROWS.iter().map(|row| {
        let cells: Vec<_> = row.download.into_iter().zip(row.upload).map(cell).collect();
        let (kind, what, late) = (row.kind, row.what, late(row));
        format!("| `{kind}` | {what}{late} | {} | {} |\n", cells.join(" | "), text(row.tcp))
    });
    lines.collect()
}

#[test]
fn the_page_on_middleboxes_has_these_rows() {
    let page = include_str!("../../../../docs/middleboxes.md");
    let table = page_table();
    assert!(page.contains(&table), "docs/middleboxes.md needs these rows:\n{table}");
}
