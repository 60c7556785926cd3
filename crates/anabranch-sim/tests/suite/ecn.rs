//! Queues that mark packets instead of dropping them, and connections that react to marks. RFC
//! 3168.

use anabranch_sim::RunOutcome;

use crate::common::{column, goodput, run};

/// One connection over links of 8 Mbit/s and 2 Mbit/s with this queue discipline and no limit.
fn scenario(queue: &str, connection: &str) -> String {
    format!(
        "name = \"ecn\"\nduration = \"40s\"\nwarm_up = \"10s\"\n\
         [[path]]\nname = \"fast\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"infinite\"\n\
         queue = {{ {queue} }}\n\
         [[path]]\nname = \"slow\"\nrate = \"2Mbit/s\"\ndelay = \"30ms\"\nlimit = \"infinite\"\n\
         queue = {{ {queue} }}\n\
         [[connection]]\n{connection}\nworkload = {{ kind = \"bulk\" }}\n"
    )
}

fn sum(outcome: &RunOutcome, table: &str, name: &str) -> u64 {
    column(outcome, table, name).iter().sum()
}

const QUEUES: [(&str, &str); 4] = [
    ("codel", "kind = \"codel\""),
    ("fq_codel", "kind = \"fq_codel\""),
    // The thresholds leave room for the overshoot of slow start, so packets are marked, not
    // dropped.
    ("pie", "kind = \"pie\", ecn_threshold = \"100%\""),
    ("red", "kind = \"red\", min_packets = 10, max_packets = 200, max_probability = \"20%\""),
];

#[test]
fn marks_replace_drops_and_nothing_is_retransmitted() {
    // RFC 3168 §5. 1432 of 1500 bytes of the links' rates are payload.
    for (name, queue) in QUEUES {
        for (connection, most) in [("protocol = \"tcp\"", 8e6), ("", 10e6)] {
            let on = run(&scenario(queue, &format!("{connection}\necn = true")), 1);
            let off = run(&scenario(queue, connection), 1);
            let marked = sum(&on, "links", "marked");
            println!("{name}: {marked} marked, {} and {} bit/s", goodput(&on), goodput(&off));
            assert!(marked > 20, "{name}: {marked}");
            assert_eq!(sum(&on, "links", "dropped_by_queue"), 0, "{name}");
            assert_eq!(sum(&on, "subflows", "segments_retransmitted"), 0, "{name}");
            assert!(goodput(&on) > 0.85 * most * 1432.0 / 1500.0, "{name}: {}", goodput(&on));
            assert!(goodput(&on) > 0.97 * goodput(&off), "{name}: {}", goodput(&on));
            // Each window is reduced once, regardless of how many of its packets were marked, and
            // for no other reason.
            let reductions = sum(&on, "subflows", "ecn_reductions");
            assert!((10..=marked).contains(&reductions), "{name}: {reductions} of {marked}");
            assert_eq!(sum(&on, "subflows", "recoveries"), 0, "{name}");
            assert_eq!(
                (sum(&off, "links", "marked"), sum(&off, "subflows", "ece_received")),
                (0, 0)
            );
            assert!(sum(&off, "links", "dropped_by_queue") > 10, "{name}");
        }
    }
}

#[test]
fn a_queue_without_marking_drops_packets_of_ecn_connections() {
    let toml = scenario("", "ecn = true").replace("\"infinite\"", "\"20packets\"");
    let outcome = run(&toml, 1);
    assert_eq!(sum(&outcome, "links", "marked"), 0);
    assert!(sum(&outcome, "links", "dropped_by_queue") > 20);
    assert!(goodput(&outcome) > 8e6);
}

#[test]
#[ignore = "slow: make test-slow"]
fn coupled_subflows_take_one_flows_share_of_a_link_that_marks() {
    // RFC 6356 §2, goal 2, with marks instead of losses as the congestion signal.
    for name in ["lia", "olia", "balia", "new_reno"] {
        let access = |path: &str| {
            format!(
                "[[path]]\nname = \"{path}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n\
                 limit = \"infinite\"\n"
            )
        };
        let shares = (1..=4).map(|seed| {
            let outcome = run(
                &format!(
                    "name = \"shared\"\nduration = \"100s\"\nwarm_up = \"20s\"\n\
                     sample_interval = \"10s\"\n\
                     [[path]]\nname = \"core\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\n\
                     limit = \"infinite\"\nqueue = {{ {} }}\n{}{}{}\
                     [[connection]]\npaths = [\"a\", \"b\"]\ncongestion_control = \"{name}\"\n\
                     ecn = true\nworkload = {{ kind = \"bulk\" }}\n\
                     [[connection]]\npaths = [\"c\"]\nprotocol = \"tcp\"\nstart = \"{}ms\"\n\
                     congestion_control = \"new_reno\"\necn = true\n\
                     workload = {{ kind = \"bulk\" }}\n",
                    QUEUES[3].1,
                    access("a"),
                    access("b"),
                    access("c"),
                    seed * 7919 % 1_000,
                ),
                seed,
            );
            assert_eq!(sum(&outcome, "subflows", "segments_retransmitted"), 0, "{name}");
            let bytes = column(&outcome, "connections", "bytes_arrived_measured");
            bytes[0] as f64 / (bytes[0] + bytes[1]) as f64
        });
        let share = shares.sum::<f64>() / 4.0;
        println!("{name}: {share:.3}");
        let expected = if name == "new_reno" { 0.60..0.72 } else { 0.40..0.60 };
        assert!(expected.contains(&share), "{name}: {share:.3}");
    }
}
