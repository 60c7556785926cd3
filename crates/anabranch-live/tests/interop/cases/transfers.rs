//! Transfers in both directions, over clean and over faulty paths.

use super::*;

/// Transfers over clean paths.
pub(super) fn clean() -> Vec<Trial> {
    let two = [FAST, SLOW];
    let ipv6 = [&*format!("{FAST}family = \"ipv6\""), &*format!("{SLOW}family = \"ipv6\"")];
    let queue = "kind = \"red\", min_packets = 5, max_packets = 90, max_probability = \"20%\", \
                 weight = \"5%\"";
    let marking = format!("{SLOW}queue = {{ {queue} }}");
    let marked = Expected { marked: true, ..GOOD };
    let checked = Expected { checksums: true, ..GOOD };
    let checksums = |direction| format!("{direction}dss_checksum = true\n");
    let any = Expected { carried: Carried::ByAny, ..GOOD };
    let exchanges = "kind = \"request_response\"\nrequest_size = \"3kB\"\nresponses = 3\n\
                     response_size = \"40kB\"\nthink_time = \"5ms\"\ncount = 8\n";
    vec![
        ("download over one path", scenario(&[FAST], DOWN, BULK), GOOD),
        ("upload over one path", scenario(&[FAST], UP, BULK), GOOD),
        ("download", scenario(&two, DOWN, BULK), GOOD),
        ("upload", scenario(&two, UP, BULK), GOOD),
        ("requests and responses", scenario(&two, DOWN, exchanges), any),
        ("responses to the server", scenario(&two, UP, exchanges), any),
        ("download with checksums", scenario(&two, &checksums(DOWN), BULK), checked),
        ("upload with checksums", scenario(&two, &checksums(UP), BULK), checked),
        ("download with ECN", scenario(&[&marking], &format!("{DOWN}ecn = true\n"), BULK), marked),
        ("upload with ECN", scenario(&[&marking], &format!("{UP}ecn = true\n"), BULK), marked),
        ("download without SACK", scenario(&two, &format!("{DOWN}sack = false\n"), BULK), GOOD),
        ("upload without SACK", scenario(&two, &format!("{UP}sack = false\n"), BULK), GOOD),
        (
            "download without timestamps",
            scenario(&two, &format!("{DOWN}timestamps = false\n"), BULK),
            GOOD,
        ),
        (
            "upload without SACK and timestamps",
            scenario(&two, &format!("{UP}sack = false\ntimestamps = false\n"), BULK),
            GOOD,
        ),
        ("download over IPv6", scenario(&ipv6, DOWN, BULK), GOOD),
        ("upload over IPv6", scenario(&ipv6, UP, BULK), GOOD),
        ("one byte", scenario(&[FAST], DOWN, "kind = \"bulk\"\nsize = \"1B\"\n"), GOOD),
        (
            "small window",
            scenario(&two, "receive_buffer = \"30kB\"\nsend_buffer = \"30kB\"\n", BULK),
            any,
        ),
        (
            "plain TCP",
            scenario(&[FAST], &format!("{DOWN}protocol = \"tcp\"\n"), BULK),
            Expected { mptcp: false, ..GOOD },
        ),
    ]
}

/// Transfers over paths that lose, reorder or change packets, or that fail.
pub(super) fn hard() -> Vec<Trial> {
    let lossy = [&*format!("{FAST}loss = \"1%\""), &*format!("{SLOW}loss = \"1%\"")];
    let reordering = format!("{FAST}jitter = \"3ms\"\njitter_model = \"reordering\"\n");
    let boxed = |kind: &str| format!("{FAST}[[path.middlebox]]\n{kind}\n");
    let stripped = boxed("kind = \"strip_options\"");
    let broken = format!("{FAST}[[path.change]]\nat = \"150ms\"\nstate = \"down\"\n");
    // After its recovery, the first path must carry all data.
    let returns = format!("{broken}[[path.change]]\nat = \"700ms\"\nstate = \"up\"\n");
    let goes = format!("{SLOW}[[path.change]]\nat = \"750ms\"\nstate = \"down\"\n");
    // Neither a silent subflow nor its reset is an error.
    let breaks = Expected { tolerated: &["MPRstTx", "MPRstRx"], ..GOOD };
    let fallback = Expected {
        mptcp: false,
        tolerated: &["MPCapableFallbackSYNACK", "MPCapableFallbackACK"],
        ..GOOD
    };
    vec![
        ("download with losses", scenario(&lossy, DOWN, BULK), GOOD),
        ("upload with losses", scenario(&lossy, UP, BULK), GOOD),
        ("download with reordering", scenario(&[&reordering, SLOW], DOWN, BULK), GOOD),
        ("upload with reordering", scenario(&[&reordering, SLOW], UP, BULK), GOOD),
        ("download, first path breaks off", scenario(&[&broken, SLOW], DOWN, BULK), breaks),
        ("upload, first path breaks off", scenario(&[&broken, SLOW], UP, BULK), breaks),
        ("download, second path breaks off", scenario(&[FAST, &broken], DOWN, BULK), breaks),
        ("upload, second path breaks off", scenario(&[FAST, &broken], UP, BULK), breaks),
        ("download, first path comes back", scenario(&[&returns, &goes], DOWN, MORE), breaks),
        ("upload, first path comes back", scenario(&[&returns, &goes], UP, MORE), breaks),
        ("download through NAT", scenario(&[&boxed("kind = \"nat\""), SLOW], DOWN, BULK), GOOD),
        ("upload through NAT", scenario(&[&boxed("kind = \"nat\""), SLOW], UP, BULK), GOOD),
        (
            "download, rewritten sequence numbers",
            scenario(&[&boxed("kind = \"rewrite_isn\""), SLOW], DOWN, BULK),
            GOOD,
        ),
        (
            "upload, rewritten sequence numbers",
            scenario(&[&boxed("kind = \"rewrite_isn\""), SLOW], UP, BULK),
            GOOD,
        ),
        (
            "download, split segments",
            scenario(&[&boxed("kind = \"split_segments\""), SLOW], DOWN, BULK),
            GOOD,
        ),
        (
            "upload, split segments",
            scenario(&[&boxed("kind = \"split_segments\""), SLOW], UP, BULK),
            GOOD,
        ),
        ("download, options stripped", scenario(&[&stripped], DOWN, BULK), fallback),
        ("upload, options stripped", scenario(&[&stripped], UP, BULK), fallback),
    ]
}

/// Transfers of 100 MB, without a capture.
pub(super) fn long() -> Vec<Case> {
    let path = |rate| format!("rate = \"{rate}\"\ndelay = \"2ms\"\nlimit = \"500packets\"\n");
    let paths = [path("200Mbit/s"), path("100Mbit/s")];
    let buffers = "send_buffer = \"2MB\"\nreceive_buffer = \"2MB\"\n";
    let of = |direction: &str, roles| {
        let connection = format!("direction = \"{direction}\"\n{buffers}");
        let bulk = "kind = \"bulk\"\nsize = \"100MB\"\n";
        let scenario = scenario(&paths.each_ref().map(String::as_str), &connection, bulk);
        let case = Case::new(&format!("{direction} of 100 MB"), roles, scenario, GOOD);
        Case { captured: false, ..case }
    };
    ROLES.into_iter().flat_map(|roles| [of("download", roles), of("upload", roles)]).collect()
}
