//! Bursts and requests over a network, measured end to end.

use anabranch_sim::{Options, RunOutcome};

use crate::common::{self, column, run, run_with, wifi_3g};

/// One TCP connection over 8 Mbit/s and 10 ms each way, with an unlimited queue.
fn single(workload: &str) -> String {
    format!(
        "name = \"single\"\nduration = \"60s\"\n\
         [[path]]\nname = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"infinite\"\n\
         [[connection]]\nprotocol = \"tcp\"\n[connection.workload]\n{workload}\n"
    )
}

fn delays_ms(outcome: &RunOutcome) -> Vec<f64> {
    let accepted = column(outcome, "blocks", "accepted_ns");
    let delivered = column(outcome, "blocks", "delivered_ns");
    accepted.iter().zip(delivered).map(|(from, to)| (to - from) as f64 / 1e6).collect()
}

/// Check that all bytes arrived unchanged in both directions, and that the connection closed.
fn assert_complete(outcome: &RunOutcome) {
    assert_eq!(column(outcome, "connections", "corrupt_bytes"), [0]);
    assert_eq!(column(outcome, "connections", "failed"), [0]);
    assert_eq!(column(outcome, "connections", "completed"), [1]);
    let bytes: u64 = column(outcome, "blocks", "bytes").iter().sum();
    assert_eq!(column(outcome, "connections", "bytes_delivered"), [bytes]);
}

#[test]
fn a_burst_takes_its_transmission_time_and_the_delay() {
    // 14 480 bytes are ten full segments of 1500 bytes on the wire. They fit into the initial
    // window and are sent at once. 15 000 bytes at 8 Mbit/s take 15 ms, and the delay is 10 ms.
    let workload = "kind = \"on_off\"\nburst_size = \"14480B\"\ninterval = \"500ms\"\ncount = 20";
    let outcome = run(&single(workload), 1);
    assert_complete(&outcome);
    assert_eq!(column(&outcome, "blocks", "bytes"), vec![14_480; 20]);
    let delays = delays_ms(&outcome);
    assert!(delays.iter().all(|delay| (delay - 25.0).abs() < 0.001), "{delays:?}");
    let starts = column(&outcome, "blocks", "accepted_ns");
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 500_000_000), "{starts:?}");
}

#[test]
fn a_round_takes_the_request_and_the_response() {
    // The request of 100 bytes is 152 bytes on the wire, and takes 0.152 ms and 10 ms. The response
    // of 2 × 1448 bytes is 2 × 1500 bytes on the wire, and takes another 3 ms and 10 ms.
    let workload = "kind = \"request_response\"\nrequest_size = \"100B\"\nresponses = 2\n\
                    response_size = \"1448B\"\nthink_time = \"100ms\"\ncount = 30";
    let outcome = run(&single(workload), 1);
    assert_complete(&outcome);
    let delays = delays_ms(&outcome);
    assert_eq!(delays.len(), 30);
    // With Linux's sockets, an acknowledgement of 52 bytes may precede request and response.
    let most = if common::platform().as_deref() == Some("linux-socket") { 2.0 } else { 0.0 };
    let as_expected = |delay: &f64| {
        let before = ((delay - 23.152) / 0.052).round();
        (0.0..=most).contains(&before) && (delay - 23.152 - before * 0.052).abs() < 0.001
    };
    assert!(delays.iter().all(as_expected), "{delays:?}");
    let starts = column(&outcome, "blocks", "accepted_ns");
    let delivered = column(&outcome, "blocks", "delivered_ns");
    let thinks = starts[1..].iter().zip(delivered).map(|(start, end)| start - end);
    assert!(thinks.clone().all(|time| time == 100_000_000), "{:?}", thinks.collect::<Vec<_>>());
}

const MAPS: &str = "kind = \"request_response\"\n\
                    request_size = { kind = \"uniform\", min = \"300B\", max = \"2kB\" }\n\
                    responses = { kind = \"uniform\", min = 8, max = 20 }\n\
                    response_size = { kind = \"lognormal\", median = \"16kB\", sigma = 0.23 }\n\
                    think_time = { kind = \"exponential\", mean = \"500ms\" }\ncount = 40";

#[test]
fn random_requests_and_responses_are_delivered_completely_over_two_paths() {
    for direction in ["download", "upload"] {
        let connection = format!("direction = \"{direction}\"");
        let scenario = wifi_3g(&connection, MAPS);
        let outcome = run(&scenario, 1);
        assert_complete(&outcome);
        let bytes = column(&outcome, "blocks", "bytes");
        // 8 to 20 tiles of about 10 to 25 kB each, 14 × 16.4 kB on average.
        assert!(bytes.iter().all(|bytes| (80_000..500_000).contains(bytes)), "{bytes:?}");
        let mean = bytes.iter().sum::<u64>() as f64 / 40.0;
        assert!((200_000.0..260_000.0).contains(&mean), "{mean}");
        assert_eq!(bytes, column(&run(&scenario, 1), "blocks", "bytes"));
        assert_ne!(bytes, column(&run(&scenario, 2), "blocks", "bytes"));
        let checked = Options::default().round_trip(true);
        assert_eq!(run_with(&scenario, 1, checked).digest, outcome.digest);
    }
}

#[test]
fn random_bursts_through_small_buffers_are_delivered_completely() {
    let workload = "kind = \"on_off\"\n\
                    burst_size = { kind = \"pareto\", mean = \"100kB\", shape = 1.5 }\n\
                    interval = { kind = \"exponential\", mean = \"300ms\" }\ncount = 100";
    let buffers = "send_buffer = \"50kB\"\nreceive_buffer = \"50kB\"";
    let outcome = run(&wifi_3g(buffers, workload), 3);
    assert_complete(&outcome);
    let bytes = column(&outcome, "blocks", "bytes");
    // The minimum is a third of the mean.
    assert!(bytes.iter().all(|bytes| *bytes >= 33_333), "{bytes:?}");
    assert!(bytes.iter().any(|bytes| *bytes > 200_000), "{bytes:?}");
}

#[test]
fn a_page_of_objects_over_several_connections() {
    let page = "request_size = \"300B\"\nresponse_size = \"29kB\"\ncount = 9";
    let connections: String = (0..6)
        .map(|_| {
            format!("[[connection]]\n[connection.workload]\nkind = \"request_response\"\n{page}\n")
        })
        .collect();
    let paths = common::WIFI_3G;
    let outcome = run(&format!("name = \"page\"\nduration = \"30s\"\n{paths}\n{connections}"), 1);
    assert_eq!(column(&outcome, "connections", "completed"), [1; 6]);
    assert_eq!(column(&outcome, "connections", "bytes_delivered"), [9 * 29_000; 6]);
    assert_eq!(column(&outcome, "connections", "corrupt_bytes"), [0; 6]);
    assert_eq!(column(&outcome, "blocks", "bytes"), [29_000; 54]);
}

#[test]
fn an_additional_connection_does_not_change_the_draws_of_another() {
    let workload = "[connection.workload]\nkind = \"on_off\"\ncount = 5\ninterval = \"1s\"\n\
                    burst_size = { kind = \"exponential\", mean = \"20kB\" }";
    let one = format!("[[connection]]\nname = \"a\"\n{workload}\n");
    let two = format!("[[connection]]\nname = \"b\"\nprotocol = \"tcp\"\n{workload}\n{one}");
    let sizes = |connections: &str| {
        let paths = common::WIFI_3G;
        let text = format!("name = \"n\"\nduration = \"10s\"\n{paths}{connections}");
        column(&run(&text, 1), "blocks", "bytes")
    };
    assert_eq!(sizes(&one), sizes(&two)[5..]);
    assert_ne!(sizes(&one), sizes(&two)[..5]);
}

/// A connection that sends both ways over 8 Mbit/s down and 2 Mbit/s up.
fn both_ways(protocol: &str, workload: &str) -> String {
    format!(
        "name = \"both\"\nduration = \"20s\"\n\
         [[path]]\nname = \"dsl\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"50packets\"\n\
         reverse = {{ rate = \"2Mbit/s\" }}\n\
         [[connection]]\nprotocol = \"{protocol}\"\ndirection = \"both\"\nnagle = false\n\
         [connection.workload]\n{workload}\n"
    )
}

#[test]
fn each_direction_of_a_connection_has_its_own_delay() {
    // A block of 1250 bytes and its headers take 1.3 ms at 8 Mbit/s, 5.2 ms at 2 Mbit/s, and then
    // 10 ms. An acknowledgement that is sent just before delays a block by at most 0.3 ms.
    let workload = "kind = \"cbr\"\nrate = \"1Mbit/s\"\nblock_size = \"1250B\"";
    for (protocol, headers) in [("tcp", 52), ("mptcp", 68)] {
        let outcome = run(&both_ways(protocol, workload), 1);
        assert_eq!(column(&outcome, "connections", "corrupt_bytes"), [0, 0]);
        let flows = column(&outcome, "blocks", "connection");
        for (flow, mbps) in [(0, 8.0), (1, 2.0)] {
            let delays = flows.iter().zip(delays_ms(&outcome)).filter(|(each, _)| **each == flow);
            let mut delays: Vec<f64> = delays.map(|(_, delay)| delay).collect();
            assert!((1995..=2000).contains(&delays.len()), "{}", delays.len());
            delays.sort_by(f64::total_cmp);
            let least = 10.0 + f64::from(1250 + headers) * 8e-3 / mbps;
            let median = delays[delays.len() / 2];
            assert!((least - 0.001..least + 0.3).contains(&median), "{protocol} {flow}: {median}");
        }
    }
}

#[test]
fn a_direction_continues_after_the_other_has_closed() {
    let outcome = run(&both_ways("mptcp", "kind = \"blocks\"\nblock_size = \"1MB\"\ncount = 3"), 1);
    assert_eq!(column(&outcome, "connections", "completed"), [1, 1]);
    assert_eq!(column(&outcome, "connections", "bytes_delivered"), [3_000_000; 2]);
    assert_eq!(column(&outcome, "blocks", "connection"), [0, 0, 0, 1, 1, 1]);
    let delivered = column(&outcome, "blocks", "delivered_ns");
    // The download ends at least 5 s before the upload.
    assert!(delivered[2] + 5_000_000_000 < delivered[5], "{delivered:?}");
    assert_eq!(column(&outcome, "subflows", "bytes_received"), [3_000_000; 2]);
}
