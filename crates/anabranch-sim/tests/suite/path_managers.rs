//! The purpose of each path manager, in runs that fail if it is switched off. Also tests that
//! subflows are re-established.

use anabranch_sim::RunOutcome;

use crate::common::{column, goodput, run};

/// WLAN with these changes, and a second path with these keys.
fn scenario(second: &str, changes: &str, connection: &str) -> String {
    format!(
        "name = \"paths\"\nduration = \"60s\"\nwarm_up = \"5s\"\n\
         [[path]]\nname = \"wlan\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"54packets\"\n\
         {changes}[[path]]\nname = \"second\"\n{second}\n\
         [[connection]]\nsend_buffer = \"512KiB\"\nreceive_buffer = \"512KiB\"\n{connection}\n\
         [connection.workload]\nkind = \"blocks\"\n"
    )
}

const GPRS: &str = "rate = \"0.2Mbit/s\"\ndelay = \"200ms\"\nlimit = \"6s\"";
const LTE: &str = "rate = \"8Mbit/s\"\ndelay = \"30ms\"\nlimit = \"100packets\"";

fn change(at: &str, state: &str, noticed: bool) -> String {
    format!("[[path.change]]\nat = \"{at}\"\nstate = \"{state}\"\nnoticed = {noticed}\n")
}

fn from_30_s() -> String {
    change("30s", "down", false)
}

/// Mbit/s that arrived on a path in this interval, given in seconds.
fn arrived(outcome: &RunOutcome, path: u64, from: f64, to: f64) -> f64 {
    let of = |name| column(outcome, "subflow_samples", name);
    let rows =
        of("time_ns").into_iter().zip(of("path")).zip(of("subflow")).zip(of("bytes_received"));
    let rows = rows.map(|(((at, path), slot), bytes)| (at as f64 / 1e9, path, slot, bytes));
    let on_path: Vec<_> = rows.filter(|row| row.1 == path).collect();
    // Subflow slots are summed separately.
    let mut bytes = 0;
    for slot in 0..32 {
        let within = on_path.iter().filter(|row| row.2 == slot && (from..=to).contains(&row.0));
        let counts: Vec<u64> = within.map(|row| row.3).collect();
        bytes += counts.last().unwrap_or(&0) - counts.first().unwrap_or(&0);
    }
    bytes as f64 * 8e-6 / (to - from)
}

/// Mbit/s delivered to the application in this interval, given in seconds.
fn delivered(outcome: &RunOutcome, from: f64, to: f64) -> f64 {
    let blocks = column(outcome, "blocks", "delivered_ns");
    let within = blocks.iter().filter(|at| (from..to).contains(&(**at as f64 / 1e9)));
    within.count() as f64 * 8192.0 * 8e-6 / (to - from)
}

fn subflows_on(outcome: &RunOutcome, path: u64) -> usize {
    column(outcome, "subflows", "path").into_iter().filter(|at| *at == path).count()
}

mod drepas {
    use super::*;

    #[test]
    fn a_very_slow_path_carries_only_probes_and_the_fast_one_everything_else() {
        let outcome = |keys: &str| run(&scenario(GPRS, "", keys), 1);
        let alone = goodput(&outcome("path_manager = \"initial_only\""));
        let mesh = goodput(&outcome("path_manager = \"full_mesh\""));
        let scored = outcome("path_manager = \"drepas\"");
        assert!(mesh < 0.5 * alone, "full mesh {mesh:.0} bit/s, alone {alone:.0}");
        assert!(goodput(&scored) > 0.98 * alone, "{:.0} bit/s", goodput(&scored));
        // Ten probes of 1 KiB per second, after the queue of 6 s has drained.
        let probes = arrived(&scored, 1, 20.0, 60.0);
        assert!((0.03..=0.09).contains(&probes), "{probes:.3} Mbit/s of probes");
        let probes = column(&scored, "connections", "path_probes")[0];
        assert!(probes > 100, "{probes} probes");
    }

    #[test]
    fn scheduling_stops_within_two_periods() {
        // Two scores: the first after 1 s, the second after twice the RTT at that time. Then the
        // queue of 6 s drains.
        let outcome = run(&scenario(GPRS, "", "path_manager = \"drepas\""), 1);
        let of = |name| column(&outcome, "subflow_samples", name);
        let second = of("time_ns").into_iter().zip(of("path")).zip(of("bytes_in_flight"));
        let late = second.filter(|((at, path), _)| *path == 1 && *at > 15_000_000_000);
        let most = late.map(|(_, bytes)| bytes).max().expect("samples");
        // From then on, at most a burst of probes is in flight.
        assert!(most <= 10 * 1024, "{most} bytes in flight");
    }

    #[test]
    fn the_standby_path_takes_over_when_the_fast_path_dies() {
        let outcome = run(&scenario(GPRS, &from_30_s(), "path_manager = \"drepas\""), 1);
        // Three timeouts of the standby path, whose RTT without queueing is 0.4 s: 3 · (0.4 + 0.2)
        // s.
        let after = delivered(&outcome, 32.0, 60.0);
        assert!((0.15..=0.2).contains(&after), "{after:.3} Mbit/s");
        assert!(delivered(&outcome, 30.0, 32.0) > 0.0, "no data for two seconds");
    }

    #[test]
    fn a_useful_path_is_not_affected() {
        crate::common::depends_on_the_platform("whether microseconds decide what is lost");
        let umts = "rate = \"2Mbit/s\"\ndelay = \"75ms\"\nlimit = \"2s\"";
        let bytes = |manager: &str| {
            let keys = format!("path_manager = \"{manager}\"");
            column(&run(&scenario(umts, "", &keys), 1), "connections", "bytes_delivered")[0]
        };
        assert_eq!(bytes("drepas"), bytes("full_mesh"));
    }
}

mod backup {
    use super::*;

    #[test]
    fn it_carries_nothing_until_the_regular_path_dies_and_everything_afterwards() {
        let outcome = run(&scenario(LTE, &from_30_s(), "path_manager = \"backup\""), 1);
        assert!(arrived(&outcome, 1, 0.0, 30.0) == 0.0, "data on the backup");
        assert!(arrived(&outcome, 0, 5.0, 30.0) > 7.4);
        let after = delivered(&outcome, 33.0, 60.0);
        assert!(after > 7.0, "{after:.2} Mbit/s on the backup");
        let mesh = run(&scenario(LTE, &from_30_s(), ""), 1);
        assert!(arrived(&mesh, 1, 5.0, 30.0) > 5.0, "a full mesh uses the second path");
    }

    #[test]
    fn the_regular_path_carries_the_data_again_after_it_recovers() {
        let changes = change("20s", "down", false) + &change("30s", "up", false);
        let outcome = run(&scenario(LTE, &changes, "path_manager = \"backup\""), 1);
        assert!(arrived(&outcome, 1, 23.0, 30.0) > 6.0);
        // The regular subflow retries after at most twice the duration of the outage.
        assert!(arrived(&outcome, 0, 42.0, 60.0) > 7.0);
        assert!(arrived(&outcome, 1, 42.0, 60.0) == 0.0);
    }

    #[test]
    fn the_original_kernel_uses_it_as_soon_as_the_peer_says_that_it_has_lost_the_regular_path() {
        crate::common::depends_on_the_platform("a host of the original kernel");
        let keys = "stack = \"mptcp.org-0.89\"\npath_manager = \"backup\"";
        let outcome = run(&scenario(LTE, &change("20s", "down", true), keys), 1);
        // Three round trips of slow start. While it waits for an answer of the regular path, a host
        // would send one segment in each.
        let rate = arrived(&outcome, 1, 20.0, 20.4);
        assert!(rate > 1.0, "{rate:.2} Mbit/s on the backup");
    }

    #[test]
    fn the_regular_path_can_be_another_than_the_first() {
        let manager = "path_manager = { kind = \"backup\", regular = \"second\" }";
        let outcome = run(&scenario(LTE, "", manager), 1);
        assert!(arrived(&outcome, 1, 5.0, 60.0) > 7.0);
        assert!(arrived(&outcome, 0, 5.0, 60.0) == 0.0);
    }
}

mod single_path {
    use super::*;

    #[test]
    fn it_moves_with_the_interface_and_back_without_losing_data() {
        let noticed = change("20s", "down", true) + &change("25s", "up", true);
        let outcome = run(&scenario(LTE, &noticed, "path_manager = \"single_path\""), 1);
        assert_eq!((subflows_on(&outcome, 0), subflows_on(&outcome, 1)), (1, 1));
        // A handshake of 60 ms and slow start.
        assert!(delivered(&outcome, 20.0, 21.0) > 1.0);
        assert!(arrived(&outcome, 1, 22.0, 60.0) > 7.0, "it stays on a working path");
        assert_eq!(column(&outcome, "connections", "corrupt_bytes")[0], 0);
        // The new subflow takes the slot of the ended one at once.
        let received: u64 = column(&outcome, "subflows", "bytes_received").iter().sum();
        assert!(received >= column(&outcome, "connections", "bytes_delivered")[0]);
    }

    #[test]
    fn a_sender_moves_when_its_path_goes_silent() {
        crate::common::depends_on_the_platform(
            "hosts that refuse joins while they close stay on a silent path",
        );
        let keys = "path_manager = \"single_path\"\ndirection = \"upload\"";
        let outcome = run(&scenario(LTE, &from_30_s(), keys), 1);
        assert!(delivered(&outcome, 33.0, 60.0) > 7.0);
        assert_eq!(subflows_on(&outcome, 1), 1);
    }
}

mod ndiffports {
    use super::*;

    #[test]
    fn n_uncoupled_subflows_take_n_shares_of_a_bottleneck() {
        let share = |manager: &str| {
            let connection = |keys: &str| {
                format!(
                    "[[connection]]\npaths = [\"wlan\"]\ncongestion_control = \"new_reno\"\n{keys}\n\
                     workload = {{ kind = \"bulk\" }}\n"
                )
            };
            let toml = format!(
                "name = \"ports\"\nduration = \"200s\"\nwarm_up = \"20s\"\n[[path]]\nname = \"wlan\"\n\
                 rate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"200packets\"\n\
                 queue = {{ kind = \"red\", min_packets = 10, max_packets = 60 }}\n{}{}",
                connection(&format!("path_manager = {manager}")),
                connection("protocol = \"tcp\"\nstart = \"1s\"")
            );
            let bytes = column(&run(&toml, 1), "connections", "bytes_arrived_measured");
            bytes[0] as f64 / (bytes[0] + bytes[1]) as f64
        };
        let one = share("\"initial_only\"");
        assert!((0.45..=0.55).contains(&one), "{one:.3}");
        let three = share("{ kind = \"ndiffports\", subflows = 3 }");
        assert!((0.69..=0.81).contains(&three), "{three:.3}");
    }
}

mod re_creation {
    use super::*;

    #[test]
    fn an_interface_that_comes_up_again_carries_data_within_a_second() {
        let changes = change("10s", "down", true) + &change("25s", "up", true);
        let outcome = run(&scenario(LTE, &changes, ""), 1);
        assert!(arrived(&outcome, 0, 10.0, 25.0) < 0.1);
        assert_eq!(subflows_on(&outcome, 0), 2);
        assert!(arrived(&outcome, 0, 26.0, 60.0) > 7.0);
        let alone = run(&scenario(LTE, &changes, "path_manager = \"initial_only\""), 1);
        assert_eq!(
            column(&alone, "connections", "failed")[0],
            0,
            "nothing tells the engine to give up"
        );
    }

    #[test]
    fn a_silent_path_carries_data_again_within_the_duration_of_the_silence() {
        // RFC 6298 §5.5: the retransmission timeout doubles, so the next retransmission comes at
        // most as long after the end of the silence as the silence lasted.
        for silence in [2.0, 5.0, 10.0, 20.0] {
            let up = format!("{:?}s", 10.0 + silence);
            let changes = change("10s", "down", false) + &change(&up, "up", false);
            let outcome = run(&scenario(LTE, &changes, ""), 1);
            let back = 10.0 + 2.0 * silence + 1.0;
            let carried = arrived(&outcome, 0, back, 60.0);
            assert!(carried > 6.5, "silent for {silence} s: {carried:.2} Mbit/s after {back} s");
        }
    }

    #[test]
    fn a_path_that_flaps_for_long_loses_no_data() {
        let changes: String = (0..25)
            .map(|n| {
                let (down, up) = (2 * n + 2, 2 * n + 3);
                change(&format!("{down}s"), "down", true) + &change(&format!("{up}s"), "up", true)
            })
            .collect();
        for manager in ["full_mesh", "backup", "single_path", "drepas"] {
            let outcome =
                run(&scenario(LTE, &changes, &format!("path_manager = \"{manager}\"")), 1);
            assert_eq!(column(&outcome, "connections", "corrupt_bytes")[0], 0, "{manager}");
            assert_eq!(column(&outcome, "connections", "failed")[0], 0, "{manager}");
            let rate = goodput(&outcome) / 1e6;
            assert!(rate > 4.0, "{manager}: {rate:.2} Mbit/s");
        }
    }
}

/// A subflow's interface goes down while much of its data was SACKed but not acknowledged. The
/// engine reinjects all of that data on the other path at once.
#[test]
fn sacked_data_of_a_lost_subflow_is_reinjected_at_once() {
    let path = |name: &str, change: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"100Mbit/s\"\ndelay = \"2.5ms\"\nlimit = \"5ms\"\n{change}"
        )
    };
    let outcome_with = |change: &str| {
        let toml = format!(
            "name = \"hole\"\nduration = \"9s\"\nsample_interval = \"5ms\"\n{}{}[[connection]]\n\
             send_buffer = \"600kB\"\nreceive_buffer = \"600kB\"\nworkload = {{ kind = \"bulk\" }}\n",
            path("one", change),
            path("two", ""),
        );
        run(&toml, 1)
    };
    let samples = |outcome: &RunOutcome| {
        ["time_ns", "out_of_order_bytes", "bytes_delivered"]
            .map(|name| column(outcome, "connection_samples", name))
    };
    // The first path goes down while much data waits beyond a hole, after three seconds.
    let [times, waiting, _] = samples(&outcome_with(""));
    let is_hole = |n: &usize| times[*n] > 3_000_000_000 && waiting[*n] > 100_000;
    let hole = (0..times.len()).find(is_hole).expect("the queue overflows");
    let at_ms = times[hole] / 1_000_000;
    let down = format!("change = [{{ at = \"{at_ms}ms\", state = \"down\", noticed = true }}]\n");
    let [_, waiting, bytes] = samples(&outcome_with(&down));
    assert!(waiting[hole] > 100_000, "{} bytes", waiting[hole]);
    // 95.5 Mbit/s of payload over the remaining path for a second, less one or two round trips.
    let delivered = bytes[hole + 200] - bytes[hole];
    assert!(delivered > 11_500_000, "{delivered} bytes in a second");
}
