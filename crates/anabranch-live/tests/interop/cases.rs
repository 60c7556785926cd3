//! What is tried: scenarios, and what each host is to count.

use anabranch_live::Stack;
use anabranch_sim::Side;
use anabranch_wire::{Duration, Instant};

/// One run.
pub(crate) struct Case {
    /// What it is called.
    pub(crate) name: String,
    /// The scenario, in TOML.
    pub(crate) scenario: String,
    /// Client's and server's stack.
    pub(crate) stacks: [Stack; 2],
    /// What is to come of it.
    pub(crate) expected: Expected,
    /// Who resets the connection, and when.
    pub(crate) abort: Option<(Side, Instant)>,
}

/// What is to come of a run.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// Do both ends close?
    pub(crate) completes: bool,
    /// Is the stream what a box made of it?
    pub(crate) changed: bool,
    /// Do they speak Multipath TCP?
    pub(crate) mptcp: bool,
    /// Do all paths carry data?
    pub(crate) all_paths: bool,
    /// Are packets marked, and does whoever sent them slow down?
    pub(crate) marked: bool,
    /// Counters of the kernel's that are to move, by name.
    pub(crate) kernel: &'static [&'static str],
    /// Counters of errors that may move all the same.
    pub(crate) tolerated: &'static [&'static str],
    /// Counters of the engine's that are to move.
    pub(crate) engine: &'static [&'static str],
    /// Does each host count as many options as the other sends?
    pub(crate) exact: bool,
}

const GOOD: Expected = Expected {
    completes: true,
    changed: false,
    mptcp: true,
    all_paths: true,
    marked: false,
    kernel: &[],
    tolerated: &[],
    engine: &[],
    exact: false,
};

const FAST: &str = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nlimit = \"100packets\"\n";
const SLOW: &str = "rate = \"10Mbit/s\"\ndelay = \"15ms\"\nlimit = \"100packets\"\n";
/// Linux takes and opens no subflows once the application has closed, so it must not have written
/// everything at once.
const DOWN: &str = "direction = \"download\"\nsend_buffer = \"100kB\"\n";
const UP: &str = "direction = \"upload\"\nsend_buffer = \"100kB\"\n";
const BULK: &str = "kind = \"bulk\"\nsize = \"1MB\"\n";

fn path(name: &str, settings: &str) -> String {
    format!("[[path]]\nname = \"{name}\"\n{settings}\n")
}

fn scenario(paths: &[&str], connection: &str, workload: &str) -> String {
    let paths: String =
        paths.iter().enumerate().map(|(index, each)| path(&format!("p{index}"), each)).collect();
    format!(
        "name = \"interop\"\nduration = \"20s\"\n{paths}\n[[connection]]\nname = \"c\"\n\
         congestion_control = \"cubic\"\n{connection}\n[connection.workload]\n{workload}"
    )
}

/// Every case in both roles.
pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    let exact =
        |(name, scenario, expected): Trial| (name, scenario, Expected { exact: true, ..expected });
    for (scenario_name, scenario, expected) in clean().into_iter().map(exact).chain(hard()) {
        for (roles, stacks) in ROLES {
            let name = format!("{scenario_name}, {roles}");
            all.push(Case { name, scenario: scenario.clone(), stacks, expected, abort: None });
        }
    }
    all.extend(spoilt());
    all.extend(announcements());
    all.extend(aborts());
    all
}

const ROLES: [(&str, [Stack; 2]); 2] = [
    ("engine to kernel", [Stack::Engine, Stack::Kernel]),
    ("kernel to engine", [Stack::Kernel, Stack::Engine]),
];

type Trial = (&'static str, String, Expected);

/// Over paths that do nothing wrong.
fn clean() -> Vec<Trial> {
    let two = [FAST, SLOW];
    let ipv6 = [&*format!("{FAST}family = \"ipv6\""), &*format!("{SLOW}family = \"ipv6\"")];
    let queue = "kind = \"red\", min_packets = 5, max_packets = 90, max_probability = \"20%\", \
                 weight = \"5%\"";
    let marking = format!("{SLOW}queue = {{ {queue} }}");
    let marked = Expected { marked: true, ..GOOD };
    let checksums = |direction| format!("{direction}dss_checksum = true\n");
    let joined = GOOD;
    let single = Expected { all_paths: true, ..GOOD };
    let exchanges = "kind = \"request_response\"\nrequest_size = \"3kB\"\nresponses = 3\n\
                     response_size = \"40kB\"\nthink_time = \"5ms\"\ncount = 8\n";
    vec![
        ("download over one path", scenario(&[FAST], DOWN, BULK), single),
        ("upload over one path", scenario(&[FAST], UP, BULK), single),
        ("download", scenario(&two, DOWN, BULK), joined),
        ("upload", scenario(&two, UP, BULK), joined),
        (
            "requests and responses",
            scenario(&two, DOWN, exchanges),
            Expected { all_paths: false, ..GOOD },
        ),
        (
            "responses to the server",
            scenario(&two, UP, exchanges),
            Expected { all_paths: false, ..GOOD },
        ),
        ("download with checksums", scenario(&two, &checksums(DOWN), BULK), joined),
        ("upload with checksums", scenario(&two, &checksums(UP), BULK), joined),
        ("download with ECN", scenario(&[&marking], &format!("{DOWN}ecn = true\n"), BULK), marked),
        ("upload with ECN", scenario(&[&marking], &format!("{UP}ecn = true\n"), BULK), marked),
        ("download over IPv6", scenario(&ipv6, DOWN, BULK), joined),
        ("upload over IPv6", scenario(&ipv6, UP, BULK), joined),
        ("one octet", scenario(&[FAST], DOWN, "kind = \"bulk\"\nsize = \"1B\"\n"), single),
        (
            "small window",
            scenario(&two, "receive_buffer = \"30kB\"\nsend_buffer = \"30kB\"\n", BULK),
            Expected { all_paths: false, ..GOOD },
        ),
        (
            "plain TCP",
            scenario(&[FAST], &format!("{DOWN}protocol = \"tcp\"\n"), BULK),
            Expected { mptcp: false, ..single },
        ),
    ]
}

/// Over paths that lose, reorder, break off or change what they carry.
fn hard() -> Vec<Trial> {
    let lossy = [&*format!("{FAST}loss = \"1%\""), &*format!("{SLOW}loss = \"1%\"")];
    let reordering = format!("{FAST}jitter = \"3ms\"\njitter_model = \"reordering\"\n");
    let boxed = |kind: &str| format!("{FAST}[[path.middlebox]]\n{kind}\n");
    let stripped = boxed("kind = \"strip_options\"");
    let broken = format!("{FAST}[[path.change]]\nat = \"150ms\"\nstate = \"down\"\n");
    let lossless = Expected { kernel: &[], ..GOOD };
    // A subflow that goes silent is not an error, and neither is the reset of one.
    let breaks = Expected { tolerated: &["MPRstTx", "MPRstRx"], ..GOOD };
    let fallback = Expected {
        mptcp: false,
        tolerated: &["MPCapableFallbackSYNACK", "MPCapableFallbackACK"],
        ..GOOD
    };
    vec![
        ("download with losses", scenario(&lossy, DOWN, BULK), lossless),
        ("upload with losses", scenario(&lossy, UP, BULK), lossless),
        ("download with reordering", scenario(&[&reordering, SLOW], DOWN, BULK), lossless),
        ("upload with reordering", scenario(&[&reordering, SLOW], UP, BULK), lossless),
        ("download, first path breaks off", scenario(&[&broken, SLOW], DOWN, BULK), breaks),
        ("upload, first path breaks off", scenario(&[&broken, SLOW], UP, BULK), breaks),
        ("download, second path breaks off", scenario(&[FAST, &broken], DOWN, BULK), breaks),
        ("upload, second path breaks off", scenario(&[FAST, &broken], UP, BULK), breaks),
        ("download through NAT", scenario(&[&boxed("kind = \"nat\""), SLOW], DOWN, BULK), lossless),
        ("upload through NAT", scenario(&[&boxed("kind = \"nat\""), SLOW], UP, BULK), lossless),
        (
            "download, rewritten sequence numbers",
            scenario(&[&boxed("kind = \"rewrite_isn\""), SLOW], DOWN, BULK),
            lossless,
        ),
        (
            "upload, rewritten sequence numbers",
            scenario(&[&boxed("kind = \"rewrite_isn\""), SLOW], UP, BULK),
            lossless,
        ),
        (
            "download, split segments",
            scenario(&[&boxed("kind = \"split_segments\""), SLOW], DOWN, BULK),
            lossless,
        ),
        (
            "upload, split segments",
            scenario(&[&boxed("kind = \"split_segments\""), SLOW], UP, BULK),
            lossless,
        ),
        ("download, options stripped", scenario(&[&stripped], DOWN, BULK), fallback),
        ("upload, options stripped", scenario(&[&stripped], UP, BULK), fallback),
    ]
}

/// Over a path that spoils Multipath TCP. Where the receiver has to go back to TCP a sender of
/// Linux's may halt: those cases need an engine that sends, see docs/live.md.
fn spoilt() -> Vec<Case> {
    let boxed = |path: &str, keys: &str| format!("{path}[[path.middlebox]]\n{keys}\n");
    let no_dss =
        boxed(FAST, "kind = \"strip_options\"\noptions = [\"dss\"]\nsegments = [\"data\"]");
    let later = boxed(FAST, "kind = \"strip_options\"\nfrom = \"100ms\"");
    let no_join = boxed(SLOW, "kind = \"strip_options\"\noptions = [\"mp_join\"]");
    let replacing = "kind = \"rewrite_payload\"\nchange = \"replace\"\nat = \"20kB\"";
    let fallback = Expected { mptcp: false, tolerated: ERRORS_OF_FALLBACKS, ..GOOD };
    let changed = Expected { changed: true, ..fallback };
    let alone = Expected { all_paths: false, tolerated: ERRORS_OF_JOINS, ..GOOD };
    let repaired = Expected { tolerated: ERRORS_OF_CHECKSUMS, ..GOOD };
    let mut all = Vec::new();
    for ((roles, stacks), engine_sends) in ROLES.into_iter().zip([UP, DOWN]) {
        let mut add = |name, way: &str, paths: &[&str], checksums: bool, expected| {
            let settings = format!("{way}dss_checksum = {checksums}\n");
            let direction = if way == UP { "upload" } else { "download" };
            all.push(Case {
                name: format!("{direction}, {name}, {roles}"),
                scenario: scenario(paths, &settings, BULK),
                stacks,
                expected,
                abort: None,
            });
        };
        for way in [UP, DOWN] {
            add("MP_JOIN stripped", way, &[FAST, &no_join], false, alone);
            let paths = [FAST, &boxed(SLOW, replacing)];
            add("payload changed on one path", way, &paths, true, repaired);
        }
        add("DSS stripped from data", engine_sends, &[&no_dss], false, fallback);
        add("options stripped later", engine_sends, &[&later], false, fallback);
        add("payload changed", engine_sends, &[&boxed(FAST, replacing)], true, changed);
    }
    all
}

const ERRORS_OF_FALLBACKS: &[&str] = &[
    "MPCapableFallbackACK",
    "MPCapableFallbackSYNACK",
    "MPCapableDataFallback",
    "DssFallback",
    "InfiniteMapTx",
    "InfiniteMapRx",
    "MPFailTx",
    "MPFailRx",
    "DataCsumErr",
    "DSSCorruptionFallback",
];
const ERRORS_OF_JOINS: &[&str] = &["MPRstTx", "MPRstRx"];
const ERRORS_OF_CHECKSUMS: &[&str] =
    &["DataCsumErr", "DSSCorruptionReset", "MPFailTx", "MPFailRx", "MPRstTx", "MPRstRx"];

/// The server's IPv6 address is learnt by ADD_ADDR.
fn announcements() -> Vec<Case> {
    let mixed = scenario(&[FAST, &format!("{SLOW}family = \"ipv6\"")], DOWN, BULK);
    let case = |(roles, stacks): (&str, [Stack; 2]), kernel, engine| Case {
        name: format!("ADD_ADDR, {roles}"),
        scenario: mixed.clone(),
        stacks,
        expected: Expected { kernel, engine, exact: true, ..GOOD },
        abort: None,
    };
    vec![
        case(ROLES[0], &["AddAddrTx", "EchoAdd", "MPJoinAckRx"], &["AddAddr", "EchoAddTx"]),
        case(ROLES[1], &["AddAddr", "EchoAddTx", "MPJoinSynAckRx"], &["AddAddrTx", "EchoAdd"]),
    ]
}

/// Either host resets the connection.
fn aborts() -> Vec<Case> {
    let scenario = scenario(&[FAST, SLOW], DOWN, "kind = \"bulk\"\n");
    let at = Instant::ZERO + Duration::from_millis(400);
    let mut all = Vec::new();
    for (roles, stacks) in ROLES {
        for side in [Side::Client, Side::Server] {
            let by_engine = stacks[side as usize] == Stack::Engine;
            let (kernel, engine): (&[_], &[_]) = if by_engine {
                (&["MPFastcloseRx"], &["MPFastcloseTx"])
            } else {
                (&["MPFastcloseTx"], &["MPFastcloseRx"])
            };
            all.push(Case {
                name: format!("FASTCLOSE by the {side}, {roles}"),
                scenario: scenario.clone(),
                stacks,
                expected: Expected {
                    completes: false,
                    kernel,
                    engine,
                    // MP_FASTCLOSE travels on a reset, and what comes after it is answered so.
                    tolerated: &["MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx"],
                    ..GOOD
                },
                abort: Some((side, at)),
            });
        }
    }
    all
}
