//! Paths that prevent Multipath TCP, or prevent it on one subflow.

use super::*;

/// Transfers over paths that break Multipath TCP. A Linux sender may stall if the receiver has to
/// fall back. In such cases the engine sends: see docs/live.md.
pub(super) fn all() -> Vec<Case> {
    let boxed = |path: &str, keys: &str| format!("{path}[[path.middlebox]]\n{keys}\n");
    let no_dss =
        boxed(FAST, "kind = \"strip_options\"\noptions = [\"dss\"]\nsegments = [\"data\"]");
    let later = boxed(FAST, "kind = \"strip_options\"\nfrom = \"100ms\"");
    let no_join = boxed(SLOW, "kind = \"strip_options\"\noptions = [\"mp_join\"]");
    let replacing = "kind = \"rewrite_payload\"\nchange = \"replace\"\nat = \"20kB\"";
    let fallback = Expected { mptcp: false, tolerated: ERRORS_OF_FALLBACKS, ..GOOD };
    let changed = Expected { changed: true, checksums: true, ..fallback };
    let alone = Expected { carried: Carried::ByAny, tolerated: ERRORS_OF_JOINS, ..GOOD };
    let repaired = Expected {
        tolerated: ERRORS_OF_CHECKSUMS,
        resets: &["middlebox interference"],
        checksums: true,
        ..GOOD
    };
    // A mapping that a middlebox has dropped is a lost segment to the engine. Linux ends Multipath
    // TCP because of it, on the subflow or on the connection.
    let merging = "kind = \"coalesce\"";
    let merged = Expected { carried: Carried::ByAny, tolerated: ERRORS_OF_CHECKSUMS, ..GOOD };
    // RFC 8684 §3.7: a sender falls back if data is acknowledged without DATA_ACK.
    let early = |path| boxed(path, "kind = \"proactive_ack\"");
    // Linux falls back if the first acknowledgement of the middlebox precedes that of the peer. The
    // peer's is later by the time to send a segment: 6 ms here, and less than 1 ms over the fast
    // path.
    let leisurely = "rate = \"2Mbit/s\"\ndelay = \"5ms\"\nlimit = \"100packets\"\n";
    let mut all = Vec::new();
    for (roles, engine_sends) in ROLES.into_iter().zip([UP, DOWN]) {
        let mut add = |name, way: &str, paths: &[&str], checksums: bool, expected| {
            let settings = format!("{way}dss_checksum = {checksums}\n");
            let direction = if way == UP { "upload" } else { "download" };
            let scenario = scenario(paths, &settings, BULK);
            all.push(Case::new(&format!("{direction}, {name}"), roles, scenario, expected));
        };
        for way in [UP, DOWN] {
            add("MP_JOIN stripped", way, &[FAST, &no_join], false, alone);
            let paths = [FAST, &boxed(SLOW, replacing)];
            add("payload changed on one path", way, &paths, true, repaired);
        }
        add("DSS stripped from data", engine_sends, &[&no_dss], false, fallback);
        add("options stripped later", engine_sends, &[&later], false, fallback);
        add("payload changed", engine_sends, &[&boxed(FAST, replacing)], true, changed);
        for way in [UP, DOWN] {
            let expected = if way == engine_sends { fallback } else { GOOD };
            add("merged segments", way, &[&boxed(FAST, merging)], false, expected);
            let paths = [FAST, &boxed(SLOW, merging)];
            add("merged segments on one path", way, &paths, false, merged);
            let early = early(if way == engine_sends { FAST } else { leisurely });
            add("early acknowledgements", way, &[&early], false, expected);
        }
        all.extend(filters(roles));
    }
    all
}

/// Filters of nftables on the kernel host, in its own network namespace.
fn filters(roles: Roles) -> Vec<Case> {
    let filtered = |name, hook, paths: &[&str], expected| {
        let case = Case::new(name, roles, scenario(paths, UP, BULK), expected).command(0, hook);
        Case { needs_nftables: true, ..case }
    };
    let fallback = Expected { mptcp: false, tolerated: ERRORS_OF_FALLBACKS, ..GOOD };
    let alone = Expected { carried: Carried::By(0), tolerated: ERRORS_OF_JOINS, ..GOOD };
    vec![
        filtered("options stripped by nftables on the way out", STRIP_OUT, &[FAST], fallback),
        filtered("options stripped by nftables on the way in", STRIP_IN, &[FAST], fallback),
        filtered("joins dropped by nftables", DROP_JOINS, &[FAST, SLOW], alone),
    ]
}

const STRIP_OUT: &str = "nft 'add table inet box; \
     add chain inet box out { type filter hook output priority 0; }; \
     add rule inet box out reset tcp option mptcp'";
const STRIP_IN: &str = "nft 'add table inet box; \
     add chain inet box in { type filter hook input priority 0; }; \
     add rule inet box in reset tcp option mptcp'";
const DROP_JOINS: &str = "nft 'add table inet box; \
     add chain inet box in { type filter hook input priority 0; }; \
     add rule inet box in tcp option mptcp subtype 1 drop; \
     add chain inet box out { type filter hook output priority 0; }; \
     add rule inet box out tcp option mptcp subtype 1 drop'";

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
