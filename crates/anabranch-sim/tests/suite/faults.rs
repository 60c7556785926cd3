//! Network faults over emulated links. Everything written arrives exactly and in time.
//! docs/reliability.md lists the faults, and the lockstep tests of two hosts that cover others.

use anabranch_sim::RunOutcome;

use crate::common::{column, depends_on_the_platform, goodput, run};

const BYTES: u64 = 3_000_000;

fn path(name: &str, rate: &str, delay: &str, changes: &str) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = \"100packets\"\n\
         {changes}"
    )
}

/// A transfer over two paths with these changes. It must complete within `duration_s`.
fn transfer(changes: [&str; 2], direction: &str, connection: &str, duration_s: u64) -> String {
    format!(
        "name = \"faults\"\nduration = \"{duration_s}s\"\nsample_interval = \"10s\"\n{}{}\
         [[connection]]\nsend_buffer = \"256KiB\"\nreceive_buffer = \"256KiB\"\n\
         direction = \"{direction}\"\n{connection}\n\
         [connection.workload]\nkind = \"bulk\"\nsize = \"3MB\"\n",
        path("one", "10Mbit/s", "10ms", changes[0]),
        path("two", "5Mbit/s", "30ms", changes[1]),
    )
}

fn assert_exact(outcome: &RunOutcome, case: &str) {
    let of = |name| column(outcome, "connections", name)[0];
    assert_eq!((of("corrupt_bytes"), of("failed")), (0, 0), "{case}");
    assert_eq!((of("bytes_delivered"), of("completed")), (BYTES, 1), "{case}");
}

fn change(at_ms: u64, keys: &str) -> String {
    format!("[[path.change]]\nat = \"{at_ms}ms\"\n{keys}\n")
}

/// Alternates between the two states for half a minute, each for the same period.
fn flapping(period_ms: u64, first_ms: u64, keys: [&str; 2]) -> String {
    let times = (0..).map(|n| first_ms + n * period_ms).take_while(|at| *at < 30_000);
    let mut changes: String =
        times.zip(keys.into_iter().cycle()).map(|(at, keys)| change(at, keys)).collect();
    changes.push_str(&change(31_000, keys[1]));
    changes
}

#[test]
fn paths_that_flap_every_50_ms_to_5_s_deliver_everything_soon_after() {
    depends_on_the_platform("joins after a close");
    let noticed = ["state = \"down\"\nnoticed = true", "state = \"up\"\nnoticed = true"];
    let silent = ["state = \"down\"\nnoticed = false", "state = \"up\"\nnoticed = false"];
    for (n, period_ms) in [50, 200, 1_000, 5_000].into_iter().enumerate() {
        for (keys, direction) in [(noticed, "download"), (silent, "download"), (silent, "upload")] {
            // Both paths flap in phase, or alternately.
            for shift in [0, period_ms] {
                let changes =
                    [flapping(period_ms, 1_000, keys), flapping(period_ms, 1_000 + shift, keys)];
                let toml = transfer([&changes[0], &changes[1]], direction, "", 120);
                let outcome = run(&toml, n as u64);
                let case = format!("{period_ms} ms, shifted by {shift}, {direction}, {}", keys[0]);
                assert_exact(&outcome, &case);
            }
        }
    }
}

#[test]
fn one_direction_of_one_or_both_paths_drops_all_packets() {
    for (applies_to, direction) in [
        ("forward", "download"),
        ("forward", "upload"),
        ("reverse", "download"),
        ("reverse", "upload"),
    ] {
        let lost = change(1_000, &format!("applies_to = \"{applies_to}\"\nloss = \"100%\""));
        let well = change(16_000, &format!("applies_to = \"{applies_to}\"\nloss = \"0%\""));
        let both = lost.clone() + &well;
        for (changes, duration_s) in
            [([&lost[..], ""], 60), (["", &lost[..]], 60), ([&both[..], &both[..]], 120)]
        {
            for seed in 0..3 {
                let outcome = run(&transfer(changes, direction, "", duration_s), seed);
                assert_exact(&outcome, &format!("{applies_to}, {direction}, seed {seed}"));
            }
        }
    }
}

#[test]
fn all_paths_down_together_for_up_to_50_s_break_nothing() {
    // The connection may be without any subflow for this long. Add some seconds of back-off.
    for (down_s, noticed) in
        [(1, true), (1, false), (10, true), (10, false), (50, true), (50, false)]
    {
        let down = change(1_000, &format!("state = \"down\"\nnoticed = {noticed}"));
        let up = change(1_000 + down_s * 1_000, &format!("state = \"up\"\nnoticed = {noticed}"));
        let changes = down + &up;
        for seed in 0..3 {
            let toml = transfer([&changes, &changes], "download", "", 2 * down_s + 20);
            assert_exact(
                &run(&toml, seed),
                &format!("{down_s} s, noticed: {noticed}, seed {seed}"),
            );
        }
    }
}

#[test]
fn reordering_far_above_the_rtt_and_loss_break_nothing() {
    for (seed, jitter_ms) in [50, 200, 500].into_iter().flat_map(|ms| [(1, ms), (2, ms), (3, ms)]) {
        let toml = format!(
            "name = \"storm\"\nduration = \"600s\"\nsample_interval = \"100s\"\n{}{}\
             [[connection]]\ndss_checksum = true\n[connection.workload]\nkind = \"bulk\"\nsize = \"3MB\"\n",
            path(
                "one",
                "10Mbit/s",
                "10ms",
                &format!(
                    "jitter = \"{jitter_ms}ms\"\njitter_model = \"reordering\"\nloss = \"3%\"\n"
                ),
            ),
            path("two", "5Mbit/s", "30ms", "loss = \"3%\"\n"),
        );
        assert_exact(&run(&toml, seed), &format!("jitter of {jitter_ms} ms, seed {seed}"));
    }
}

/// Raiciu et al., NSDI 2012, §3: with a small buffer, a slow path that carries the next expected
/// byte stalls the whole connection. Retransmitting that byte on the fast path and slowing down the
/// slow path prevents this.
#[test]
fn with_small_buffers_a_slow_path_does_not_stall_the_fast_one() {
    const FAST: &str =
        "[[path]]\nname = \"fast\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"54packets\"\n";
    const SLOW: &str =
        "[[path]]\nname = \"slow\"\nrate = \"2Mbit/s\"\ndelay = \"75ms\"\nlimit = \"334packets\"\n";
    let rate = |paths: &str, buffer_kb: u32, connection: &str| {
        let toml = format!(
            "name = \"stall\"\nduration = \"40s\"\nwarm_up = \"5s\"\n{paths}[[connection]]\n\
             send_buffer = \"{buffer_kb}kB\"\nreceive_buffer = \"{buffer_kb}kB\"\n{connection}\n\
             [connection.workload]\nkind = \"bulk\"\n"
        );
        goodput(&run(&toml, 1)) / 1e6
    };
    let cured = "remedies = { opportunistic_retransmission = true, penalisation = true }";
    for buffer_kb in [32, 64, 100, 200] {
        let alone = rate(FAST, buffer_kb, "protocol = \"tcp\"");
        let both = rate(&format!("{FAST}{SLOW}"), buffer_kb, cured);
        println!("{buffer_kb} kB: {both:.2} of {alone:.2} Mbit/s");
        assert!(both > 0.8 * alone, "{buffer_kb} kB: {both:.2} of {alone:.2} Mbit/s");
    }
}

#[test]
fn two_hosts_that_fill_each_others_windows_and_lose_data_do_not_wait_for_ever() {
    // Bare acknowledgements then have the sequence number of the edge. The windows count memory, so
    // their edges stay where they are while data is missing.
    let toml = "name = \"edge\"\nduration = \"60s\"\n\
         [[path]]\nname = \"a\"\nrate = \"30Mbit/s\"\ndelay = \"1ms\"\nlimit = \"6packets\"\n\
         mtu = \"1280B\"\nqueue = { kind = \"red\" }\n\
         [[connection]]\nprotocol = \"tcp\"\ndirection = \"both\"\n\
         host = { kind = \"mptcp.org-0.89\", own_window = \"ignored\" }\n\
         send_buffer = \"40kB\"\nreceive_buffer = \"12kB\"\n\
         workload = { kind = \"bulk\", size = \"50kB\" }\n";
    for seed in 1..=3 {
        let outcome = run(toml, seed);
        assert_eq!(column(&outcome, "connections", "completed"), [1, 1], "seed {seed}");
    }
}

#[test]
fn a_peer_that_falls_back_late_reads_no_byte_at_a_wrong_place() {
    // The path strips all mappings but that of the handshake, so the server reads the subflow as TCP. The
    // window leaves room for a short segment, which Nagle's algorithm holds. Data that is written later
    // must not overtake it.
    let toml = "name = \"stripped\"\nduration = \"60s\"\n\
         [[path]]\nname = \"a\"\nrate = \"17Mbit/s\"\ndelay = \"250ms\"\nlimit = \"107packets\"\n\
         mtu = \"9000B\"\n\
         middlebox = [{ kind = \"strip_options\", options = [\"dss\"], segments = [\"data\"] }]\n\
         [[connection]]\ndirection = \"upload\"\nhost = { kind = \"linux\", buffers = \"socket\" }\n\
         receive_buffer = \"320149B\"\nscheduler = \"mptcp_org_round_robin\"\n\
         workload = { kind = \"bulk\", size = \"582541B\" }\n";
    let outcome = run(toml, 1);
    let of = |name| column(&outcome, "connections", name)[0];
    assert_eq!((of("corrupt_bytes"), of("failed"), of("completed")), (0, 0, 1));
}
