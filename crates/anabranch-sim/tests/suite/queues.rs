//! Requests next to a bulk transfer, at the queues of access routers.

use anabranch_sim::Outcome;

use crate::common::{column, goodput, mean_block_delay, run};

/// A bulk flow and a flow of small requests over 10 Mbit/s and 20 ms each way, with 120 ms of buffer.
fn next_to_bulk(queue: &str) -> String {
    format!(
        "name = \"queues\"\nduration = \"40s\"\nwarm_up = \"10s\"\n\
         [[path]]\nname = \"access\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"100packets\"\n\
         queue = {{ kind = \"{queue}\" }}\n\
         [[connection]]\nprotocol = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n\
         [[connection]]\nprotocol = \"tcp\"\n[connection.workload]\nkind = \"request_response\"\n\
         request_size = \"200B\"\nresponse_size = \"1kB\"\nthink_time = \"20ms\"\n"
    )
}

/// The mean delay of a round in ms, and the outcome. The bulk flow must use the link.
fn delay(queue: &str) -> (f64, Outcome) {
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
    let (pie, outcome) = delay("pie");
    assert!(drop_tail > 100.0, "{drop_tail}");
    // A response waits for the packet in transmission, 1.2 ms.
    assert!((41.0..43.0).contains(&fq_codel), "{fq_codel}");
    // It waits for 15 ms, and is sometimes dropped.
    assert!((48.0..75.0).contains(&pie), "{pie}");
    assert!(column(&outcome, "links", "dropped_by_queue")[0] > 20);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for queue in ["fq_codel", "pie"] {
        let scenario = next_to_bulk(queue);
        assert_eq!(run(&scenario, 1), run(&scenario, 1), "{queue}");
    }
    assert_ne!(run(&next_to_bulk("pie"), 1).digest, run(&next_to_bulk("pie"), 2).digest);
}
