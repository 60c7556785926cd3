//! Competing traffic on the paths of connections.

use anabranch_net::OPPORTUNITY_BYTES;
use anabranch_sim::{Capture, Options, RunOutcome, Side};

use crate::common::{column, goodput, run, run_with};

/// A TCP connection over 8 Mbit/s and 10 ms each way, with this cross-traffic.
fn sharing_with(cross_traffic: &str) -> String {
    format!(
        "name = \"shared\"\nduration = \"60s\"\nwarm_up = \"5s\"\n\
         [[path]]\nname = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"80ms\"\n\
         [[connection]]\nprotocol = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n{cross_traffic}"
    )
}

const CONSTANT: &str = "[[cross_traffic]]\npath = \"wifi\"\nrate = \"3Mbit/s\"\n\
                        packet_size = \"1000B\"\n";

const ON_OFF: &str = "[[cross_traffic]]\npath = \"wifi\"\ndirection = \"upload\"\n\
                      rate = \"2Mbit/s\"\non = { kind = \"pareto\", mean = \"500ms\", shape = 1.5 }\n\
                      off = { kind = \"exponential\", mean = \"500ms\" }\n";

fn links(outcome: &RunOutcome, name: &str) -> Vec<u64> {
    column(outcome, "links", name)
}

#[test]
fn a_saturated_trace_delivers_exactly_its_opportunities() {
    // Every 10 ms, the link has opportunities at 1, 4, 4 and 10 ms: 4.8 Mbit/s. Datagrams of the
    // same size as an opportunity arrive at 12.5 Mbit/s.
    let scenario = "name = \"saturated\"\nduration = \"10s\"\n\
                    [[path]]\nname = \"lte\"\ntrace = { milliseconds = \"1 4*2 10\" }\n\
                    delay = \"0s\"\nlimit = \"50packets\"\nmtu = \"1504B\"\n\
                    [[connection]]\nstart = \"9999ms\"\ndirection = \"upload\"\n\
                    workload = { kind = \"bulk\", size = \"1B\" }\n\
                    [[cross_traffic]]\npath = \"lte\"\nrate = \"12.5Mbit/s\"\n";
    let outcome = run(scenario, 1);
    // The first datagram arrives after 0.96 ms, in time for the first opportunity at 1 ms. The link
    // is never idle from then on. The SYN of the connection at 9999 ms gets no reply before the
    // end.
    let opportunities = 4 * 1_000;
    assert_eq!(links(&outcome, "bytes_delivered")[0], opportunities * OPPORTUNITY_BYTES);
    assert_eq!(links(&outcome, "packets_delivered")[0], opportunities);
    assert!(links(&outcome, "dropped_by_queue")[0] > 6_000);
}

#[test]
fn cross_traffic_takes_its_rate_and_leaves_the_rest() {
    let alone = goodput(&run(&sharing_with(""), 1));
    let outcome = run(&sharing_with(CONSTANT), 1);
    let loaded = goodput(&outcome);
    println!("alone {alone:.0} bit/s, with 3 Mbit/s of cross-traffic {loaded:.0} bit/s");
    // Less than 5 of the 8 Mbit/s are left, because UDP does not slow down. 1448 of 1500 bytes are
    // payload.
    assert!(loaded < 5.1e6 * 1448.0 / 1500.0 && loaded > 4.3e6, "{loaded}");
    assert!(alone > 7.5e6, "{alone}");
    assert_eq!(column(&outcome, "connections", "corrupt_bytes"), [0]);
    // 3 Mbit/s in packets of 1000 bytes are 375 packets per second, in addition to the segments of
    // the connection.
    let of_subflows = |name| column(&outcome, "subflows", name).iter().sum::<u64>();
    let sent = of_subflows("segments_sent") + of_subflows("segments_retransmitted");
    let packets = links(&outcome, "packets_in")[0];
    assert!((22_500..22_510).contains(&(packets - sent)), "{packets} {sent}");
}

#[test]
fn cross_traffic_in_the_reverse_direction_loads_the_reverse_link() {
    let quiet = run(&sharing_with(""), 1);
    let loaded = run(&sharing_with(ON_OFF), 1);
    let more = links(&loaded, "bytes_in")[1] - links(&quiet, "bytes_in")[1];
    // On for half of the time at 2 Mbit/s: 7.5 MB in 60 s, with a large variance.
    assert!((3_000_000..15_000_000).contains(&more), "{more}");
    assert_ne!(loaded.digest, quiet.digest);
}

#[test]
fn runs_with_cross_traffic_are_reproducible_and_pass_the_round_trip_check() {
    let scenario = sharing_with(&format!("{CONSTANT}{ON_OFF}"));
    let outcome = run(&scenario, 1);
    assert_eq!(run(&scenario, 1), outcome);
    assert_ne!(run(&scenario, 2).digest, outcome.digest);
    let checked = Options::default().round_trip(true);
    assert_eq!(run_with(&scenario, 1, checked).digest, outcome.digest);
    let mut capture = Vec::new();
    let both = Some(&[Side::Client, Side::Server][..]);
    let both = Capture { at: both, ..Capture::new(&mut capture) };
    let captured = Options::default().capture(both);
    assert_eq!(run_with(&scenario, 1, captured), outcome);
    // The capture contains every packet twice: when it leaves and when it arrives.
    let bytes: u64 = links(&outcome, "bytes_delivered").iter().sum();
    assert!(capture.len() as u64 > 2 * bytes, "{} bytes", capture.len());
}

#[test]
fn cross_traffic_also_crosses_the_path_that_its_own_path_leads_via() {
    let access = "via = \"core\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"\n";
    let core = "rate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"infinite\"\n";
    let scenario = format!(
        "name = \"via\"\nduration = \"10s\"\n[[path]]\nname = \"core\"\n{core}\
         [[path]]\nname = \"a\"\n{access}[[path]]\nname = \"b\"\n{access}\
         [[connection]]\npaths = [\"b\"]\nworkload = {{ kind = \"bulk\", size = \"1B\" }}\n\
         [[cross_traffic]]\npath = \"a\"\nrate = \"1Mbit/s\"\npacket_size = \"1250B\"\n\
         [[cross_traffic]]\npath = \"core\"\nrate = \"1Mbit/s\"\npacket_size = \"1250B\"\n"
    );
    let packets = links(&run(&scenario, 1), "packets_in");
    // Each source sends 100 packets per second: core forward and a forward.
    assert_eq!(packets[2], 1_000 - 3, "packets enter `a` after 21 ms on the core");
    assert!(packets[0] >= 2_000, "{packets:?}");
}

#[test]
fn tcp_cross_traffic_is_a_connection_with_bursts() {
    let others = "[[connection]]\nname = \"others\"\nprotocol = \"tcp\"\n[connection.workload]\n\
                  kind = \"on_off\"\nburst_size = { kind = \"pareto\", mean = \"150kB\", shape = 1.5 }\n\
                  interval = { kind = \"exponential\", mean = \"500ms\" }\n";
    let outcome = run(&sharing_with(others), 1);
    let delivered = column(&outcome, "connections", "bytes_delivered");
    // 2.4 Mbit/s offered, within the variance of 120 heavy-tailed bursts.
    assert!((6_000_000..40_000_000).contains(&delivered[1]), "{delivered:?}");
    assert!(goodput(&outcome) < 7.0e6, "{}", goodput(&outcome));
    assert_eq!(column(&outcome, "connections", "corrupt_bytes"), [0, 0]);
}
