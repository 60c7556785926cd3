//! Connections that compete on one link.

mod common;

use common::{column, run};

/// A core link of 10 Mbit/s and 20 ms one way with this queue and loss, three equal access paths
/// over it, and two connections: one over two of them, one over the third. (Unequal round trips
/// would add the phase effects that drop-tail queues have on deterministic flows: Floyd and
/// Jacobson, 1992.)
fn scenario(core: &str, first: &str, second: &str, seed: u64) -> String {
    let access = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n\
             limit = \"infinite\"\n"
        )
    };
    // Random starts, so that the seeds differ where the links draw nothing.
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

/// Mean share of the first connection over the seeds.
fn share(core: &str, first: &str, seeds: u64) -> f64 {
    let second = "congestion_control = \"new_reno\"";
    let shares = (1..=seeds).map(|seed| {
        let outcome = run(&scenario(core, first, second, seed), seed);
        let octets = column(&outcome, "connections", "octets_delivered_measured");
        let carried = column(&outcome, "subflows", "octets_sent");
        assert!(carried.iter().all(|octets| *octets > 1_000_000), "{carried:?}");
        octets[0] as f64 / (octets[0] + octets[1]) as f64
    });
    shares.sum::<f64>() / seeds as f64
}

#[test]
fn lia_takes_one_flows_share_of_a_link_with_random_loss_and_uncoupled_subflows_take_more() {
    // RFC 6356 §2, goal 2; the loss rate, not the queue, sets the windows here.
    let core = "limit = \"400packets\"\nloss = \"0.5%\"";
    let coupled = share(core, "congestion_control = \"lia\"", 6);
    let uncoupled = share(core, "congestion_control = \"new_reno\"", 6);
    println!("random loss: LIA {coupled:.3}, uncoupled {uncoupled:.3}");
    assert!((0.42..=0.58).contains(&coupled), "{coupled:.3}");
    assert!(uncoupled >= 0.60, "{uncoupled:.3}");
}

#[test]
fn lia_takes_less_of_a_drop_tail_link_than_uncoupled_subflows() {
    // One bandwidth-delay product of queue: 10 Mbit/s × 42 ms = 52 500 octets.
    let core = "limit = \"35packets\"";
    let coupled = share(core, "congestion_control = \"lia\"", 10);
    let uncoupled = share(core, "congestion_control = \"new_reno\"", 10);
    println!("drop-tail: LIA {coupled:.3}, uncoupled {uncoupled:.3}");
    assert!(coupled <= 0.62, "{coupled:.3}");
    assert!(coupled <= uncoupled - 0.05, "{coupled:.3} {uncoupled:.3}");
}
