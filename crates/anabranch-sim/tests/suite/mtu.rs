//! Paths whose links take smaller packets than the hosts send. RFC 1191, RFC 8201, RFC 8899.

use anabranch_sim::RunOutcome;

use crate::common::{column, depends_on_the_platform, run};

/// A tunnel whose hosts send packets of 1500 bytes, via a link of 1400, next to a path without such
/// a link. `narrow` has further keys of the link, `connection` those of the connection.
fn scenario(narrow: &str, connection: &str) -> String {
    format!(
        "name = \"mtu\"\nduration = \"120s\"\n\
         [[path]]\nname = \"a\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"100packets\"\n\
         [[path]]\nname = \"narrow\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\nlimit = \"1000packets\"\n\
         mtu = \"1400B\"\n{narrow}\n\
         [[path]]\nname = \"tunnel\"\nrate = \"10Mbit/s\"\ndelay = \"30ms\"\nlimit = \"100packets\"\n\
         via = \"narrow\"\n\
         [[connection]]\n{connection}\n"
    )
}

const SIZE: u64 = 2_000_000;

fn transfer(narrow: &str, connection: &str) -> RunOutcome {
    let workload = format!("workload = {{ kind = \"bulk\", size = \"{SIZE}B\" }}\n");
    run(&scenario(narrow, &(workload + connection)), 1)
}

/// Bytes delivered, whether the connection was closed in order, and whether it failed.
fn ends(outcome: &RunOutcome) -> (u64, bool, bool) {
    let of = |name| column(outcome, "connections", name)[0];
    assert_eq!(of("corrupt_bytes"), 0);
    (of("bytes_delivered"), of("completed") == 1, of("failed") == 1)
}

const COMPLETE: (u64, bool, bool) = (SIZE, true, false);

/// Packets that links dropped because of their size.
fn too_big(outcome: &RunOutcome) -> u64 {
    column(outcome, "links", "dropped_too_big").iter().sum()
}

#[test]
fn routers_that_answer_make_segments_fit() {
    let variants = [
        "protocol = \"tcp\"\n",
        "protocol = \"tcp\"\ntimestamps = false\nsack = false\n",
        "",
        "dss_checksum = true\n",
        "scheduler = \"redundant\"\npaths = [\"a\", \"tunnel\"]\n",
    ];
    for variant in variants {
        for direction in ["upload", "download"] {
            let tunnel = if variant.contains("paths") { "" } else { "paths = [\"tunnel\"]\n" };
            let connection = format!("direction = \"{direction}\"\n{tunnel}{variant}");
            let outcome = transfer("", &connection);
            assert_eq!(ends(&outcome), COMPLETE, "{connection}");
            // An initial window at most, and nothing afterwards.
            let dropped = too_big(&outcome);
            assert!((1..=24).contains(&dropped), "{dropped} packets dropped: {connection}");
        }
    }
}

#[test]
fn transfers_of_any_size_survive_a_cut_of_their_segments() {
    // The first data repeats the keys, the last has the DATA_FIN, and mappings have checksums.
    for size in [1, 1361, 1448, 5_000, 14_480, 14_481, 40_000] {
        for checksum in [false, true] {
            for family in ["ipv4", "ipv6"] {
                let connection = format!(
                    "paths = [\"tunnel\"]\ndirection = \"upload\"\ndss_checksum = {checksum}\n\
                     workload = {{ kind = \"bulk\", size = \"{size}B\" }}\n"
                );
                let toml = scenario("", &connection);
                let toml = toml.replace("via =", &format!("family = \"{family}\"\nvia ="));
                let outcome = run(&toml, 1);
                assert_eq!(ends(&outcome), (size, true, false), "{size} {checksum} {family}");
            }
        }
    }
}

#[test]
fn a_black_hole_stops_tcp_unless_it_searches_for_the_path_mtu() {
    // RFC 2923 §2.1: the handshake passes, and no full-sized segment does.
    let tcp = "protocol = \"tcp\"\npaths = [\"tunnel\"]\n";
    assert_eq!(ends(&transfer("icmp = false", tcp)), (0, false, false));
    for probing in ["on_black_hole", "always"] {
        for more in ["", "timestamps = false\n", "sack = false\n", "direction = \"upload\"\n"] {
            let connection = format!("{tcp}mtu_probing = \"{probing}\"\n{more}");
            let outcome = transfer("icmp = false", &connection);
            assert_eq!(ends(&outcome), COMPLETE, "{connection}");
        }
    }
}

#[test]
fn a_search_finds_the_size_that_passes() {
    depends_on_the_platform("Linux's sockets assign data ahead, so it is not used to search");
    // Of 1400 bytes, 1348 are payload; the search ends within 8 bytes.
    let connection = "protocol = \"tcp\"\npaths = [\"tunnel\"]\nmtu_probing = \"always\"\n";
    let outcome = transfer("icmp = false", connection);
    let segments = column(&outcome, "subflows", "segments_sent")[0];
    assert!(segments < SIZE / 1300, "{segments} segments of at most 1348 bytes");
    assert!(too_big(&outcome) <= 6, "{} probes were too large", too_big(&outcome));
}

#[test]
fn a_black_hole_on_one_path_leaves_the_other() {
    let both = "paths = [\"a\", \"tunnel\"]\n";
    let outcome = transfer("icmp = false", both);
    assert_eq!(ends(&outcome), COMPLETE);
    assert_eq!(column(&outcome, "subflows", "bytes_received")[1], 0);
    for probing in ["on_black_hole", "always"] {
        let outcome = transfer("icmp = false", &format!("{both}mtu_probing = \"{probing}\"\n"));
        assert_eq!(ends(&outcome), COMPLETE, "{probing}");
    }
}

#[test]
fn a_clamp_in_front_of_a_black_hole_makes_segments_fit() {
    let clamp = "[[path.middlebox]]\nkind = \"clamp_mss\"\nmtu = \"1400B\"\n";
    for narrow in [format!("icmp = false\n{clamp}"), clamp.to_owned()] {
        let outcome = transfer(&narrow, "paths = [\"tunnel\"]\n");
        assert_eq!((ends(&outcome), too_big(&outcome)), (COMPLETE, 0));
    }
}

#[test]
fn an_answer_finds_its_way_through_a_translator() {
    // The client's segment is too large for the second link, behind the first one's NAT.
    let toml = scenario(
        "",
        "paths = [\"tunnel\"]\ndirection = \"upload\"\nworkload = { kind = \"bulk\", size = \"2MB\" }\n",
    );
    let toml = toml
        .replace("via = \"narrow\"\n", "via = \"narrow\"\n[[path.middlebox]]\nkind = \"nat\"\n");
    for seed in 1..4 {
        assert_eq!(ends(&run(&toml, seed)), COMPLETE);
    }
}
