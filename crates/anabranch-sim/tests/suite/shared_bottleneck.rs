//! Connections that compete on one link.

use crate::common::{column, run};

/// A core link of 10 Mbit/s and 20 ms one way with this queue and loss, and three equal access
/// paths via the core. One connection uses two of the access paths, another one the third.
fn scenario(core: &str, first: &str, second: &str, seed: u64) -> String {
    let access = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n\
             limit = \"infinite\"\n"
        )
    };
    // Start times depend on the seed, so the seeds differ even if the links draw no random numbers.
    let start = seed * 7919 % 1_000;
    format!(
        "name = \"shared\"\nduration = \"170s\"\nwarm_up = \"20s\"\nsample_interval = \"10s\"\n\
         [[path]]\nname = \"core\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\n{core}\n{}{}{}\
         [[connection]]\npaths = [\"a\", \"b\"]\n{first}\nworkload = {{ kind = \"bulk\" }}\n\
         [[connection]]\npaths = [\"c\"]\nstart = \"{start}ms\"\nprotocol = \"tcp\"\n{second}\n\
         workload = {{ kind = \"bulk\" }}\n",
        access("a"),
        access("b"),
        access("c"),
    )
}

/// Share of the first connection, averaged over the seeds.
fn share(core: &str, first: &str, seeds: u64) -> f64 {
    let second = "congestion_control = \"new_reno\"";
    let shares = (1..=seeds).map(|seed| {
        let outcome = run(&scenario(core, first, second, seed), seed);
        let bytes = column(&outcome, "connections", "bytes_arrived_measured");
        let carried = column(&outcome, "subflows", "bytes_sent");
        assert!(carried.iter().all(|bytes| *bytes > 1_000_000), "{carried:?}");
        bytes[0] as f64 / (bytes[0] + bytes[1]) as f64
    });
    shares.sum::<f64>() / seeds as f64
}

#[test]
#[ignore = "slow: make test-slow"]
fn lia_takes_one_flows_share_of_a_lossy_link_and_uncoupled_subflows_take_more() {
    // RFC 6356 §2, goal 2. The loss rate determines the windows here, not the queue.
    let core = "limit = \"400packets\"\nloss = \"0.5%\"";
    let coupled = share(core, "congestion_control = \"lia\"", 6);
    let uncoupled = share(core, "congestion_control = \"new_reno\"", 6);
    println!("random loss: LIA {coupled:.3}, uncoupled {uncoupled:.3}");
    assert!((0.42..=0.58).contains(&coupled), "{coupled:.3}");
    assert!(uncoupled >= 0.60, "{uncoupled:.3}");
}

#[test]
#[ignore = "slow: make test-slow"]
fn olia_and_balia_take_one_flows_share_of_a_lossy_link() {
    let core = "limit = \"400packets\"\nloss = \"0.5%\"";
    for name in ["olia", "balia"] {
        let coupled = share(core, &format!("congestion_control = \"{name}\""), 6);
        println!("random loss: {name} {coupled:.3}");
        assert!((0.40..=0.60).contains(&coupled), "{name}: {coupled:.3}");
    }
}

#[test]
#[ignore = "slow: make test-slow"]
fn lia_takes_less_of_a_drop_tail_link_than_uncoupled_subflows() {
    // The queue holds one bandwidth-delay product: 10 Mbit/s × 42 ms = 52 500 bytes.
    let core = "limit = \"35packets\"";
    let coupled = share(core, "congestion_control = \"lia\"", 10);
    let uncoupled = share(core, "congestion_control = \"new_reno\"", 10);
    println!("drop-tail: LIA {coupled:.3}, uncoupled {uncoupled:.3}");
    assert!(coupled <= 0.62, "{coupled:.3}");
    assert!(coupled <= uncoupled - 0.05, "{coupled:.3} {uncoupled:.3}");
}

/// Two NewReno flows over one link. The RTT of the second flow is 2 ms longer. Returns the share of
/// the second flow, and the additional queueing delay of the first flow in milliseconds.
fn two_ms_longer(queue: &str) -> (f64, f64) {
    let access = |name: &str, delay: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\n\
             delay = \"{delay}\"\njitter = \"1ms\"\nlimit = \"infinite\"\n"
        )
    };
    let tcp = |path: &str| {
        format!(
            "[[connection]]\npaths = [\"{path}\"]\nprotocol = \"tcp\"\n\
             congestion_control = \"new_reno\"\nworkload = {{ kind = \"bulk\" }}\n"
        )
    };
    let toml = format!(
        "name = \"unequal\"\nduration = \"220s\"\nwarm_up = \"20s\"\nsample_interval = \"1s\"\n\
         [[path]]\nname = \"core\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\n{queue}\n{}{}{}{}",
        access("a", "2ms"),
        access("b", "3ms"),
        tcp("a"),
        tcp("b"),
    );
    let outcome = run(&toml, 1);
    let bytes = column(&outcome, "connections", "bytes_arrived_measured");
    let of = |name| column(&outcome, "subflow_samples", name);
    let mean_srtt = |which: u64| {
        let rows = of("connection").into_iter().zip(of("srtt_ns"));
        let of_it: Vec<u64> = rows.filter(|row| row.0 == which).map(|row| row.1).collect();
        of_it.iter().sum::<u64>() as f64 / of_it.len() as f64 / 1e6
    };
    (bytes[1] as f64 / bytes.iter().sum::<u64>() as f64, mean_srtt(0) - (mean_srtt(1) - 2.0))
}

/// Floyd and Jacobson, 1992, on traffic phase effects. The packets of an ACK-clocked flow stay
/// together in trains. The train of a flow with a slightly shorter RTT arrives right after the
/// other flow's train, and finds a queue that is longer by up to the difference. It suffers the
/// losses. A queue that drops at random does not show this effect.
#[test]
fn a_slightly_shorter_rtt_loses_at_a_drop_tail_queue() {
    let (share, deeper) = two_ms_longer("limit = \"35packets\"");
    println!("drop-tail: {share:.3}, {deeper:.2} ms");
    assert!(share >= 0.55 && deeper >= 1.5, "{share:.3}, {deeper:.2} ms");
    let red = "queue = { kind = \"red\", min_packets = 5, max_packets = 30 }";
    let (share, _) = two_ms_longer(&format!("limit = \"100packets\"\n{red}"));
    println!("RED: {share:.3}");
    assert!((0.46..=0.52).contains(&share), "{share:.3}");
}

/// Scenario C of Khalili et al., CoNEXT 2012. Three multipath users each have an access link of
/// their own and a path over a shared link. Three TCP users have only the shared link, which offers
/// 2 Mbit/s per TCP user. Returns the mean goodput in Mbit/s of the multipath users and of the TCP
/// users.
fn scenario_c(control: &str, seed: u64) -> (f64, f64) {
    let link = |name: &str, keys: &str| format!("[[path]]\nname = \"{name}\"\n{keys}\n");
    let queue = |min: u32, max: u32| {
        format!("queue = {{ kind = \"red\", min_packets = {min}, max_packets = {max} }}")
    };
    let access = "via = \"shared\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"";
    let own = "rate = \"2Mbit/s\"\ndelay = \"21ms\"\nlimit = \"1000packets\"\n";
    let shared = "rate = \"6Mbit/s\"\ndelay = \"20ms\"\nlimit = \"1000packets\"\n";
    let mut paths = link("shared", &format!("{shared}{}", queue(10, 42)));
    let mut connections = String::new();
    let mut connect = |keys: String, start: u64| {
        connections += &format!(
            "[[connection]]\n{keys}\nstart = \"{}ms\"\nworkload = {{ kind = \"bulk\" }}\n",
            (seed * 7919 + start) % 1500
        );
    };
    for n in 0..3 {
        paths += &link(&format!("own{n}"), &format!("{own}{}", queue(5, 15)));
        paths += &link(&format!("also{n}"), access);
        paths += &link(&format!("only{n}"), access);
        connect(
            format!("paths = [\"own{n}\", \"also{n}\"]\ncongestion_control = \"{control}\""),
            331 * n,
        );
    }
    for n in 0..3 {
        let only = format!("paths = [\"only{n}\"]\nprotocol = \"tcp\"");
        connect(format!("{only}\ncongestion_control = \"new_reno\""), 557 * n + 100);
    }
    let toml = format!(
        "name = \"c\"\nduration = \"220s\"\nwarm_up = \"20s\"\nsample_interval = \"10s\"\n\
         {paths}{connections}"
    );
    let bytes = column(&run(&toml, seed), "connections", "bytes_arrived_measured");
    let mean = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64 * 8e-6 / 200.0 / 3.0;
    (mean(&bytes[..3]), mean(&bytes[3..]))
}

fn mean_of_scenario_c(control: &str) -> (f64, f64) {
    let runs: Vec<_> = (1..=4).map(|seed| scenario_c(control, seed)).collect();
    let mean = |pick: fn(&(f64, f64)) -> f64| runs.iter().map(pick).sum::<f64>() / 4.0;
    (mean(|run| run.0), mean(|run| run.1))
}

#[test]
#[ignore = "slow: make test-slow"]
fn olia_leaves_more_to_tcp_than_lia_at_no_cost_to_its_users() {
    let (lia, olia) = (mean_of_scenario_c("lia"), mean_of_scenario_c("olia"));
    println!("LIA {lia:.3?}, OLIA {olia:.3?} Mbit/s");
    assert!(olia.1 >= 1.03 * lia.1, "TCP users: OLIA {:.3}, LIA {:.3} Mbit/s", olia.1, lia.1);
    // Alone on its own link, a user would get 2 Mbit/s less the headers.
    assert!(olia.0 >= 0.97 * 1.93, "multipath users: {:.3} Mbit/s", olia.0);
}

#[test]
#[ignore = "slow: make test-slow"]
fn balia_leaves_tcp_less_than_olia_and_more_than_uncoupled_subflows() {
    let tcp = |control| mean_of_scenario_c(control).1;
    let (olia, balia, uncoupled) = (tcp("olia"), tcp("balia"), tcp("new_reno"));
    println!("OLIA {olia:.3}, BALIA {balia:.3}, uncoupled {uncoupled:.3} Mbit/s");
    assert!(balia < olia && balia >= 1.2 * uncoupled, "{olia:.3} {balia:.3} {uncoupled:.3}");
}

mod detection {
    use super::*;

    /// Share of the multipath connection in the total goodput, averaged over seeds. It competes
    /// with one TCP flow on each of two links, or with one TCP flow on a single link.
    fn share(separate: bool, keys: &str) -> f64 {
        outcomes(separate, keys).iter().map(goodput_share).sum::<f64>() / SEEDS as f64
    }

    fn goodput_share(outcome: &anabranch_sim::RunOutcome) -> f64 {
        let bytes = column(outcome, "connections", "bytes_arrived_measured");
        bytes[0] as f64 / bytes.iter().sum::<u64>() as f64
    }

    /// Of the samples after the first minute, the fraction that reports a shared bottleneck (equal
    /// numbers from 2 on), and the fraction in which the subflows are coupled: such a verdict, or none
    /// yet (0).
    fn shared_and_coupled(separate: bool) -> (f64, f64) {
        let (mut shared, mut coupled, mut all) = (0, 0, 0);
        for outcome in outcomes(separate, "shared_bottleneck_detection = {}") {
            let of = |name| column(&outcome, "subflow_samples", name);
            let rows = of("connection").into_iter().zip(of("time_ns")).zip(of("bottleneck"));
            let late =
                rows.filter(|((connection, at), _)| *connection == 0 && *at > 60_000_000_000);
            let verdicts: Vec<u64> = late.map(|(_, verdict)| verdict).collect();
            for pair in verdicts.chunks_exact(2) {
                let same = pair[0] == pair[1] && pair[0] >= 2;
                shared += usize::from(same);
                coupled += usize::from(same || pair.contains(&0));
                all += 1;
            }
        }
        (shared as f64 / all as f64, coupled as f64 / all as f64)
    }

    const SEEDS: u64 = 6;

    fn outcomes(separate: bool, keys: &str) -> Vec<anabranch_sim::RunOutcome> {
        let link = |name: &str, delay: &str, packets: u32| {
            format!(
                "[[path]]\nname = \"{name}\"\nrate = \"10Mbit/s\"\ndelay = \"{delay}\"\n\
                 limit = \"{packets}packets\"\n"
            )
        };
        let access = |name: &str, delay: &str| {
            format!(
                "[[path]]\nname = \"{name}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\n\
                 delay = \"{delay}\"\nlimit = \"infinite\"\n"
            )
        };
        let tcp = |path: &str, start: u64| {
            format!(
                "[[connection]]\npaths = [\"{path}\"]\nprotocol = \"tcp\"\nstart = \"{start}ms\"\n\
                 congestion_control = \"new_reno\"\nworkload = {{ kind = \"bulk\" }}\n"
            )
        };
        let one = |seed: u64| {
            let start = seed * 7919 % 1_000;
            let (paths, competitors) = if separate {
                (
                    link("a", "15ms", 50) + &link("b", "30ms", 80),
                    tcp("a", start) + &tcp("b", 2 * start),
                )
            } else {
                (
                    link("core", "10ms", 60) + &access("a", "5ms") + &access("b", "20ms"),
                    tcp("core", start),
                )
            };
            let toml = format!(
                "name = \"detection\"\nduration = \"200s\"\nwarm_up = \"60s\"\n\
                 sample_interval = \"10s\"\n{paths}[[connection]]\npaths = [\"a\", \"b\"]\n\
                 {keys}\nworkload = {{ kind = \"bulk\" }}\n{competitors}"
            );
            run(&toml, seed)
        };
        (1..=SEEDS).map(one).collect()
    }

    #[test]
    #[ignore = "slow: make test-slow"]
    fn verdicts_are_right_for_separate_links_and_mostly_right_for_a_shared_one() {
        // A few long flows over a short drop-tail queue are the hard case. RFC 8382 has many flows.
        let ((separate, apart), (_, together)) =
            (shared_and_coupled(true), shared_and_coupled(false));
        println!("separate links: {separate:.3} shared, {apart:.3} coupled; one: {together:.3}");
        assert!(separate <= 0.05, "{separate:.3}");
        assert!(apart <= 0.1, "{apart:.3}");
        // A verdict must not change for 17.5 s, so most of this is without a verdict.
        assert!(together >= 0.6, "{together:.3}");
    }

    #[test]
    #[ignore = "slow: make test-slow"]
    fn subflows_over_separate_bottlenecks_are_uncoupled_and_get_one_flows_share_of_each() {
        let (on, off) = (share(true, "shared_bottleneck_detection = {}"), share(true, ""));
        println!("separate: {on:.3} with detection, {off:.3} without");
        assert!((0.44..=0.54).contains(&on) && on >= off + 0.05, "{on:.3}, without {off:.3}");
    }

    #[test]
    #[ignore = "slow: make test-slow"]
    fn subflows_over_a_shared_bottleneck_mostly_stay_coupled() {
        let (on, off) = (share(false, "shared_bottleneck_detection = {}"), share(false, ""));
        let uncoupled = share(false, "congestion_control = \"new_reno\"");
        println!("shared: {on:.3} with detection, {off:.3} without, uncoupled {uncoupled:.3}");
        assert!(on <= (off + uncoupled) / 2.0, "{on:.3}, {off:.3}, {uncoupled:.3}");
    }
}
