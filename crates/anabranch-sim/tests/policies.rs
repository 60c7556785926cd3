//! What each policy is for, in runs that fail when it is switched off.

mod common;

use anabranch_sim::Outcome;
use common::{column, run};

/// A path with the same rate, delay and queue in both directions.
fn path(name: &str, rate: &str, delay: &str, limit: &str) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = \"{limit}\"\n"
    )
}

fn scenario(duration: &str, paths: &str, connection: &str, workload: &str) -> String {
    format!(
        "name = \"policies\"\nduration = \"{duration}\"\n{paths}\
         [[connection]]\n{connection}\n[connection.workload]\n{workload}\n"
    )
}

fn connection(outcome: &Outcome, name: &str) -> u64 {
    column(outcome, "connections", name)[0]
}

/// Delays in milliseconds of the blocks accepted in this interval, in seconds.
fn delays(outcome: &Outcome, from: f64, to: f64) -> Vec<f64> {
    let accepted = column(outcome, "blocks", "accepted_ns");
    let delivered = column(outcome, "blocks", "delivered_ns");
    let all = accepted.iter().zip(&delivered).map(|(a, d)| (*a as f64 / 1e9, (d - a) as f64 / 1e6));
    all.filter(|(at, _)| (from..to).contains(at)).map(|(_, delay)| delay).collect()
}

fn largest(values: &[f64]) -> f64 {
    assert!(values.len() > 20, "only {} values", values.len());
    values.iter().copied().fold(0.0, f64::max)
}

mod round_robin {
    use super::*;

    #[test]
    fn the_subflows_carry_the_same_and_min_rtt_prefers_the_fast_one() {
        // A send buffer of ten segments fits into either initial window, so that the windows do
        // not decide.
        let paths = path("near", "50Mbit/s", "5ms", "200packets")
            + &path("far", "50Mbit/s", "50ms", "200packets");
        let shares = |scheduler: &str| {
            let connection = format!("scheduler = {scheduler}\nsend_buffer = \"15kB\"");
            let outcome = run(&scenario("30s", &paths, &connection, "kind = \"bulk\""), 1);
            let sent = column(&outcome, "subflows", "octets_sent");
            sent[1] as f64 / (sent[0] + sent[1]) as f64
        };
        let four = "{ kind = \"round_robin\", num_segments = 4 }";
        for scheduler in ["\"round_robin\"", four] {
            let share = shares(scheduler);
            assert!((0.46..=0.54).contains(&share), "{scheduler}: {share:.3}");
        }
        assert!(shares("\"min_rtt\"") < 0.1);
    }

    #[test]
    fn without_cwnd_limited_the_slow_path_sets_the_pace() {
        // Strictly in turn, 8 + 2 Mbit/s give twice 2 Mbit/s; following the acknowledgements, all.
        let paths = path("fast", "8Mbit/s", "5ms", "200packets")
            + &path("slow", "2Mbit/s", "50ms", "200packets");
        let goodput = |scheduler: &str| {
            let connection = format!("scheduler = {scheduler}");
            let outcome = run(&scenario("30s", &paths, &connection, "kind = \"bulk\""), 1);
            common::goodput(&outcome) * 1500.0 / 1448.0 / 1e6
        };
        let strict = goodput("{ kind = \"round_robin\", cwnd_limited = false }");
        assert!((3.6..=4.1).contains(&strict), "{strict:.2} Mbit/s");
        let clocked = goodput("\"round_robin\"");
        assert!((9.0..=10.1).contains(&clocked), "{clocked:.2} Mbit/s");
    }
}

mod redundant {
    use super::*;

    const FAST: (&str, &str) = ("fast", "10ms");
    const SLOW: (&str, &str) = ("slow", "20ms");

    /// Two paths, of which `dead` swallows everything from the fifth second on.
    fn outcome(dead: &str, connection: &str) -> Outcome {
        let paths: String = [FAST, SLOW]
            .iter()
            .map(|(name, delay)| {
                let down = "[[path.change]]\nat = \"5s\"\nstate = \"down\"\n";
                let change = if *name == dead { down } else { "" };
                path(name, "8Mbit/s", delay, "54packets") + change
            })
            .collect();
        let connection =
            format!("send_buffer = \"40kB\"\ncongestion_control = \"new_reno\"\n{connection}");
        run(&scenario("20s", &paths, &connection, "kind = \"blocks\""), 1)
    }

    fn alone(path: &str) -> Vec<f64> {
        delays(&outcome("", &format!("protocol = \"tcp\"\npaths = [\"{path}\"]")), 4.0, 19.0)
    }

    #[test]
    fn a_black_hole_on_the_slow_path_is_not_noticed() {
        let redundant = delays(&outcome("slow", "scheduler = \"redundant\""), 4.0, 19.0);
        let (redundant, alone) = (largest(&redundant), largest(&alone("fast")));
        assert!(redundant <= 1.01 * alone, "{redundant:.1} ms, alone {alone:.1} ms");
    }

    #[test]
    fn a_black_hole_on_the_fast_path_costs_what_the_slow_one_has_in_its_pipe_and_no_timeout() {
        // When the fast path dies, the slow one is as far behind as its pipe is long: one send
        // buffer, 40 ms at 8 Mbit/s. From then on it delivers as if it were alone.
        let (slow, outcome) =
            (largest(&alone("slow")), outcome("fast", "scheduler = \"redundant\""));
        let (at, after) = (delays(&outcome, 4.0, 5.1), delays(&outcome, 5.1, 19.0));
        assert!(largest(&at) <= slow + 40.0, "{:.1} ms, alone {slow:.1} ms", largest(&at));
        assert!(largest(&after) <= 1.01 * slow, "{:.1} ms, alone {slow:.1} ms", largest(&after));
        assert_eq!(connection(&outcome, "bad_decisions"), 0);
    }

    #[test]
    fn without_it_the_black_hole_costs_a_timeout() {
        let at = delays(&outcome("fast", "scheduler = \"min_rtt\""), 4.0, 19.0);
        assert!(largest(&at) > 200.0, "{:.1} ms", largest(&at));
    }

    #[test]
    fn everything_is_sent_on_both_paths_and_delivered_once() {
        let outcome = outcome("", "scheduler = \"redundant\"");
        let delivered = connection(&outcome, "octets_delivered") as f64;
        let received = column(&outcome, "subflows", "octets_received");
        // The slow path skips what the fast one has had acknowledged, but is never idle.
        assert!(received.iter().all(|octets| *octets as f64 > 0.9 * delivered), "{received:?}");
        assert_eq!(connection(&outcome, "corrupt_octets"), 0);
    }
}

mod blest {
    use super::*;

    /// Reinjections during a bulk transfer over the 3G and WLAN of Ferlin et al., IFIP Networking
    /// 2016, with both remedies. The delays are taken as one-way.
    fn reinjections(scheduler: &str, seed: u64) -> u64 {
        let paths = path("wlan", "25Mbit/s", "25ms", "100packets")
            + "loss = \"1%\"\n"
            + &path("3g", "5Mbit/s", "65ms", "3750packets");
        let connection = format!(
            "send_buffer = \"1024KiB\"\nreceive_buffer = \"2048KiB\"\ncongestion_control = \"olia\"\n\
             opportunistic_retransmission = true\npenalisation = \"conext13\"\n\
             scheduler = \"{scheduler}\""
        );
        let bulk = "kind = \"bulk\"\nsize = \"64MiB\"";
        let outcome = run(&scenario("150s", &paths, &connection, bulk), seed);
        assert_eq!(super::connection(&outcome, "octets_delivered"), 64 << 20);
        super::connection(&outcome, "reinjections")
    }

    #[test]
    fn it_reinjects_at_most_half_of_what_min_rtt_does() {
        let total = |scheduler| (1..=20).map(|seed| reinjections(scheduler, seed)).sum::<u64>();
        let (min_rtt, blest) = (total("min_rtt"), total("blest"));
        assert!(min_rtt >= 20 * 50, "min_rtt reinjects {min_rtt} segments in 20 runs");
        assert!(2 * blest <= min_rtt, "blest {blest}, min_rtt {min_rtt}");
    }
}

mod ecf {
    use super::*;

    #[test]
    fn waiting_for_the_fast_path_ends_transfers_sooner() {
        // Lim et al., CoNEXT 2017, have 1 and 10 Mbit/s; the delays are ours, and no queue
        // overflows on the slow path.
        let paths = path("fast", "10Mbit/s", "20ms", "100packets")
            + &path("slow", "1Mbit/s", "50ms", "infinite");
        let end = |scheduler: &str, blocks: u32| {
            let connection = format!("scheduler = \"{scheduler}\"");
            let workload = format!("kind = \"blocks\"\ncount = {blocks}");
            let outcome = run(&scenario("30s", &paths, &connection, &workload), 1);
            *column(&outcome, "blocks", "delivered_ns").last().expect("blocks") as f64 / 1e6
        };
        let (mut min_rtt, mut ecf) = (0.0, 0.0);
        for kib in (256..=4096).step_by(256) {
            let (without, with) = (end("min_rtt", kib / 8), end("ecf", kib / 8));
            assert!(with <= 1.05 * without, "{kib} KiB: {with:.0} ms, min_rtt {without:.0} ms");
            min_rtt += without;
            ecf += with;
        }
        assert!(ecf <= 0.95 * min_rtt, "{ecf:.0} ms in all, min_rtt {min_rtt:.0} ms");
    }
}
