//! The longest stall of an application, and its first byte after a change of a path, against times of
//! links and timers.

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{RunOutcome, metrics};

use crate::common::{column, depends_on_the_platform, run};

/// A TCP connection with these keys over 8 Mbit/s and 10 ms each way.
fn single(changes: &str, connection: &str, workload: &str) -> String {
    format!(
        "name = \"single\"\nduration = \"20s\"\nwarm_up = \"1s\"\n\
         [[path]]\nname = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"infinite\"\n\
         {changes}\n[[connection]]\nprotocol = \"tcp\"\n{connection}\n\
         [connection.workload]\n{workload}\n"
    )
}

/// Packets vanish from 5 s until this time in seconds. No host notices.
fn outage(until: &str) -> String {
    let change = |at, state| {
        format!("[[path.change]]\nat = \"{at}s\"\nstate = \"{state}\"\nnoticed = false\n")
    };
    change("5", "down") + &change(until, "up")
}

/// The longest stall of the first flow: its beginning and its length in nanoseconds.
fn stall(outcome: &RunOutcome) -> [u64; 2] {
    ["stall_began_ns", "stall_ns"].map(|name| column(outcome, "connections", name)[0])
}

#[test]
fn a_stall_ends_with_the_first_retransmission_after_the_outage() {
    depends_on_the_platform("the minimum retransmission timeout");
    // A window of ten segments. 23 ms pass from the first of two segments to their acknowledgement:
    // 3 ms and 20 ms. The retransmission timeout R is 200 ms longer. The variance adds little.
    // Retransmissions follow a loss probe at T after R, 3 R, 7 R and 15 R: at about 5.3, 5.7, 6.6 and
    // 8.4 s.
    let ends = ["5.5", "6", "7"].map(|until| {
        let toml = single(&outage(until), "receive_buffer = \"14480B\"", "kind = \"bulk\"");
        let outcome = run(&toml, 1);
        let [began, length] = stall(&outcome);
        // The last delivery is less than the 6.5 ms before the outage for which the window is empty.
        assert!((4_993_500_000..5_000_000_000).contains(&began), "{began}");
        // Nothing arrives during the outage. So the first byte after both changes is the same.
        assert_eq!(column(&outcome, "changes", "first_byte_ns"), [began + length; 2]);
        assert_eq!(column(&outcome, "changes", "changed_ns")[0], 5_000_000_000);
        let scenario = Scenario::from_toml(&toml, "test.toml").expect("the scenario of the run");
        let row = &metrics::metrics(&scenario, &outcome.tables, outcome.end)[0];
        assert_eq!(row.stall_ms, Some(length as f64 / 1e6));
        began + length
    });
    let timeout = (ends[1] - ends[0]) / 4;
    assert!((223_000_000..228_000_000).contains(&timeout), "{timeout}");
    assert_eq!(ends[2] - ends[1], 8 * timeout);
    // A segment takes 1.5 ms and 10 ms. T is within 100 ms of the outage.
    let probe = ends[2] - 15 * timeout - 11_500_000;
    assert!((5_000_000_000..5_100_000_000).contains(&probe), "{probe}");
}

#[test]
fn without_a_pause_the_longest_stall_is_the_transmission_time_of_a_segment() {
    // 1500 bytes at 8 Mbit/s.
    assert_eq!(stall(&run(&single("", "", "kind = \"bulk\""), 1))[1], 1_500_000);
}

#[test]
fn pauses_of_an_application_are_no_stalls() {
    depends_on_the_platform("the receive window of a new connection");
    // A block each second, in a segment of 1052 bytes.
    let workload = "kind = \"cbr\"\nrate = \"8kbit/s\"\nblock_size = \"1kB\"";
    assert_eq!(stall(&run(&single("", "", workload), 1))[1], 11_052_000);
}

#[test]
fn a_requester_stalls_while_its_request_is_lost() {
    let workload = "kind = \"request_response\"\nrequest_size = \"100B\"\n\
                    response_size = \"1kB\"\nthink_time = \"300ms\"";
    let outcome = run(&single(&outage("7"), "", workload), 1);
    let [began, length] = stall(&outcome);
    let first = column(&outcome, "changes", "first_byte_ns");
    // A round takes 0.152 ms, 1.052 ms and 20 ms. So a request is due every 321.2 ms, and the outage
    // meets the request, unless the response is on its way. The responder gets the request first.
    assert!((5_000_000_000..5_321_204_000).contains(&began), "{began}");
    assert_eq!(first[0], began + length + 11_052_000);
}

#[test]
fn only_changes_of_own_paths_after_the_start_are_listed() {
    let path = |name| {
        let change = "[[path.change]]\nat = \"2s\"\nrate = \"4Mbit/s\"\n\
                      [[path.change]]\nat = \"6s\"\nrate = \"8Mbit/s\"\n";
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
             limit = \"54packets\"\n{change}"
        )
    };
    let toml = format!(
        "name = \"two\"\nduration = \"9s\"\n{}{}\
         [[connection]]\nname = \"early\"\nworkload = {{ kind = \"bulk\", size = \"100kB\" }}\n\
         [[connection]]\nname = \"late\"\nstart = \"3s\"\npaths = [\"b\"]\n\
         workload = {{ kind = \"bulk\" }}\n",
        path("a"),
        path("b"),
    );
    let outcome = run(&toml, 1);
    assert_eq!(column(&outcome, "changes", "connection"), [0, 0, 0, 0, 1]);
    assert_eq!(column(&outcome, "changes", "path"), [0, 1, 0, 1, 1]);
    let first = column(&outcome, "changes", "first_byte_ns");
    assert_eq!(first[..4], [0; 4], "the transfer ended before");
    assert!((6_000_000_001..6_010_000_000).contains(&first[4]), "{first:?}");
}
