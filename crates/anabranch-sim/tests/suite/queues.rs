//! Requests next to a bulk transfer, at the queues of access routers.

use anabranch_sim::RunOutcome;

use crate::common::{column, goodput, mean_block_delay, run};

/// A bulk flow and a flow of small requests over 10 Mbit/s and 20 ms each way, with 120 ms of buffer.
fn next_to_bulk(queue: &str) -> String {
    // Linux gives CAKE at least 4 MB. After an overflow, CAKE drops at random for a long time.
    let limit = if queue == "cake" { "3000packets" } else { "100packets" };
    format!(
        "name = \"queues\"\nduration = \"40s\"\nwarm_up = \"10s\"\n\
         [[path]]\nname = \"access\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"{limit}\"\n\
         queue = {{ kind = \"{queue}\" }}\n\
         [[connection]]\nprotocol = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n\
         [[connection]]\nprotocol = \"tcp\"\n[connection.workload]\nkind = \"request_response\"\n\
         request_size = \"200B\"\nresponse_size = \"1kB\"\nthink_time = \"20ms\"\n"
    )
}

/// The mean delay of a round in ms, and the outcome. The bulk flow must use the link.
fn delay(queue: &str) -> (f64, RunOutcome) {
    let outcome = run(&next_to_bulk(queue), 1);
    let delay = mean_block_delay(&outcome, 10_000_000_000) * 1e3;
    assert!(goodput(&outcome) > 0.9 * 10e6 * 1448.0 / 1500.0, "{queue}: {}", goodput(&outcome));
    (delay, outcome)
}

#[test]
fn requests_wait_behind_a_bulk_flow_unless_flows_have_their_own_queues() {
    // Without queues, a round takes 40 ms, and 1 ms for the transmission of request and response.
    let (drop_tail, _) = delay("drop_tail");
    let (fq_codel, _) = delay("fq_codel");
    let (cake, _) = delay("cake");
    let (pie, outcome) = delay("pie");
    assert!(drop_tail > 100.0, "{drop_tail}");
    // A response waits for the packet in transmission, 1.2 ms.
    assert!((41.0..43.0).contains(&fq_codel), "{fq_codel}");
    assert!((41.0..43.0).contains(&cake), "{cake}");
    // It waits for 15 ms, and is sometimes dropped.
    assert!((48.0..75.0).contains(&pie), "{pie}");
    assert!(column(&outcome, "links", "dropped_by_queue")[0] > 20);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for queue in ["fq_codel", "pie", "cake"] {
        let scenario = next_to_bulk(queue);
        assert_eq!(run(&scenario, 1), run(&scenario, 1), "{queue}");
    }
    assert_ne!(run(&next_to_bulk("pie"), 1).digest, run(&next_to_bulk("pie"), 2).digest);
}

/// Share of a host with two subflows over one access link, next to a host with a TCP connection over
/// another one. Both use the same link of 10 Mbit/s then.
fn share_of_two_subflows(queue: &str) -> f64 {
    let access = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nvia = \"core\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n\
             limit = \"infinite\"\n"
        )
    };
    let toml = format!(
        "name = \"hosts\"\nduration = \"30s\"\nwarm_up = \"5s\"\n\
         [[path]]\nname = \"core\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"3000packets\"\n\
         queue = {{ {queue} }}\n{}{}\
         [[connection]]\npaths = [\"a\"]\ncongestion_control = \"new_reno\"\n\
         path_manager = {{ kind = \"ndiffports\", subflows = 2 }}\nworkload = {{ kind = \"bulk\" }}\n\
         [[connection]]\npaths = [\"b\"]\nprotocol = \"tcp\"\ncongestion_control = \"new_reno\"\n\
         workload = {{ kind = \"bulk\" }}\n",
        access("a"),
        access("b"),
    );
    let outcome = run(&toml, 1);
    let bytes = column(&outcome, "connections", "bytes_arrived_measured");
    bytes[0] as f64 / (bytes[0] + bytes[1]) as f64
}

#[test]
fn cake_is_fair_between_hosts_and_fq_codel_between_flows() {
    for (queue, shares) in [
        ("kind = \"fq_codel\"", 0.63..0.7),
        ("kind = \"cake\", isolation = \"flows\"", 0.63..0.7),
        // Losses keep the lone flow from using all of its half.
        ("kind = \"cake\", isolation = \"dual_dsthost\"", 0.48..0.6),
        // The only server sends three flows, more than each client receives.
        ("kind = \"cake\"", 0.63..0.7),
    ] {
        let found = share_of_two_subflows(queue);
        assert!(shares.contains(&found), "{queue}: {found}");
    }
}
