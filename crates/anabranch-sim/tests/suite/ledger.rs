//! The ledger of a run: what each subflow does at every instant, and what becomes of every byte of
//! capacity.

use std::collections::BTreeMap;

use anabranch_sim::{Options, RunOutcome};

use crate::common::{column, depends_on_the_platform, names, run, run_with};

const CONGESTION_WINDOW: &str = "congestion_window";
const RECEIVE_WINDOW: &str = "receive_window";
const SEND_BUFFER: &str = "send_buffer";
const OPENING: &str = "opening";
const APPLICATION: &str = "application";
const CLOSED: &str = "closed";
const ABSENT: &str = "absent";
const USEFUL: &str = "useful";
const OTHER_TRAFFIC: &str = "other_traffic";
const OUTAGE: &str = "outage";

const WIFI: &str = r#"
    name = "ledger"
    duration = "10s"
    [[path]]
    name = "wifi"
    rate = "8Mbit/s"
    delay = "10ms"
    limit = "54packets"
"#;

const SLOW: &str = r#"
    [[path]]
    name = "3g"
    rate = "1Mbit/s"
    delay = "100ms"
    limit = "2s"
"#;

fn watched(toml: &str) -> RunOutcome {
    run_with(toml, 1, Options::default().ledger(true))
}

/// Bytes of the first flow by cause, over all paths.
fn causes(outcome: &RunOutcome) -> BTreeMap<&'static str, u64> {
    let [flow, bytes] = ["connection", "bytes"].map(|name| column(outcome, "capacity", name));
    let cause = names(outcome, "capacity", "cause");
    let mut sums = BTreeMap::new();
    for row in (0..flow.len()).filter(|row| flow[*row] == 0) {
        *sums.entry(cause[row]).or_default() += bytes[row];
    }
    sums
}

fn largest(outcome: &RunOutcome) -> &'static str {
    let sums = causes(outcome).into_iter().filter(|(cause, _)| *cause != USEFUL);
    sums.max_by_key(|(_, bytes)| *bytes).expect("there are causes").0
}

#[test]
fn a_ledger_changes_no_packet() {
    let toml = format!("{WIFI}{SLOW}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n");
    let (with, without) = (watched(&toml), run(&toml, 1));
    assert_eq!(with.digest, without.digest);
    assert!(without.table("activities").is_none());
}

#[test]
fn the_causes_of_a_path_add_up_to_its_capacity() {
    let toml = format!("{WIFI}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n");
    let outcome = watched(&toml);
    // 10 s at 8 Mbit/s.
    assert_eq!(causes(&outcome).values().sum::<u64>(), 10_000_000);
    assert_eq!(causes(&outcome)[&USEFUL], measured(&outcome));
}

#[test]
fn the_causes_add_up_with_every_shaper() {
    for (shaper, limit) in [
        ("mininet", "100packets"),
        ("netem", "100packets"),
        ("tbf", "100kB"),
        ("dummynet", "50packets"),
    ] {
        let path = WIFI.replace("54packets", limit);
        let toml = format!(
            "{path}\nshaper = {shaper:?}\njitter = \"2ms\"\n\
             [[connection]]\nworkload = {{ kind = \"bulk\" }}\n"
        );
        let outcome = watched(&toml);
        let causes = causes(&outcome);
        assert_eq!(causes.values().sum::<u64>(), 10_000_000, "{shaper}");
        assert_eq!(causes[&USEFUL], measured(&outcome), "{shaper}");
        // All bytes that left the link arrived, headers included. A few packets are in flight at the
        // end.
        let lost = causes.get("lost").copied().unwrap_or(0);
        assert!(lost < 40_000, "{shaper}: {lost} in {causes:?}");
    }
}

/// Data that arrived in the measured time.
fn measured(outcome: &RunOutcome) -> u64 {
    column(outcome, "connections", "bytes_arrived_measured")[0]
}

#[test]
fn the_account_ends_with_the_workload() {
    let toml =
        format!("{WIFI}{SLOW}[[connection]]\nworkload = {{ kind = \"bulk\", size = \"2MB\" }}\n");
    let outcome = watched(&toml);
    let lasted = column(&outcome, "connections", "measured_ns")[0];
    // 2 MB over 8 + 1 Mbit/s take more than 1.7 s, and far less than the 10 s of the run.
    assert!((1_700_000_000..4_000_000_000).contains(&lasted), "{lasted}");
    let sums = causes(&outcome);
    assert_eq!((sums[&USEFUL], measured(&outcome)), (2_000_000, 2_000_000));
    assert_eq!(sums.get(&CLOSED), None);
    // 9 Mbit/s are 1125 bytes in a microsecond, and each link rounds once.
    let capacity = lasted as u128 * 1_125 / 1_000_000;
    assert!(capacity.abs_diff(sums.values().sum::<u64>().into()) <= 2, "{capacity}");
    let until = column(&outcome, "activities", "until_ns");
    assert_eq!(until.into_iter().max(), Some(lasted));
}

#[test]
fn a_closed_loop_ends_with_its_last_response() {
    let toml = format!(
        "{WIFI}[[connection]]\nworkload = {{ kind = \"request_response\", request_size = \"100B\", \
         response_size = \"50kB\", think_time = \"1s\", count = 3 }}\n"
    );
    let outcome = watched(&toml);
    let last = *column(&outcome, "blocks", "delivered_ns").last().expect("three rounds");
    assert_eq!(column(&outcome, "connections", "measured_ns"), [last]);
    assert_eq!(causes(&outcome)[&USEFUL], 150_000);
}

#[test]
fn the_account_begins_after_the_warm_up_or_when_the_connection_opens() {
    for (warm_up, start, seconds) in [("0s", "0s", 10), ("4s", "1s", 6), ("1s", "4s", 6)] {
        let wifi = WIFI.replace("duration", &format!("warm_up = \"{warm_up}\"\nduration"));
        let toml = format!(
            "{wifi}[[connection]]\nstart = \"{start}\"\nworkload = {{ kind = \"bulk\" }}\n"
        );
        let outcome = watched(&toml);
        assert_eq!(column(&outcome, "connections", "measured_ns"), [seconds * 1_000_000_000]);
        assert_eq!(causes(&outcome).values().sum::<u64>(), seconds * 1_000_000);
        assert_eq!(causes(&outcome)[&USEFUL], measured(&outcome));
    }
}

#[test]
fn a_transfer_that_ends_during_the_warm_up_is_not_measured() {
    let wifi = WIFI.replace("duration", "warm_up = \"5s\"\nduration");
    let toml =
        format!("{wifi}[[connection]]\nworkload = {{ kind = \"bulk\", size = \"100kB\" }}\n");
    let outcome = watched(&toml);
    assert_eq!(column(&outcome, "connections", "measured_ns"), [0]);
    assert_eq!((measured(&outcome), causes(&outcome).values().sum::<u64>()), (0, 0));
}

#[test]
fn an_unanswered_handshake_is_opening_and_its_syns_are_counted() {
    let wifi = format!("{WIFI}[[path.middlebox]]\nkind = \"blackhole_options\"\n");
    let toml = format!(
        "{wifi}[[connection]]\nhost = \"linux\"\nworkload = {{ kind = \"bulk\", size = \"1MB\" }}\n"
    );
    let outcome = watched(&toml);
    assert_eq!(largest(&outcome), OPENING);
    let counts = ["syns_sent", "syns_arrived", "answers_arrived"]
        .map(|name| column(&outcome, "handshakes", name));
    // Linux sends three SYNs with MP_CAPABLE, and goes on without (`mptcp_active_detect_blackhole`).
    assert_eq!(names(&outcome, "handshakes", "option"), ["", "mp_capable"]);
    assert_eq!(counts, [vec![1, 3], vec![1, 0], vec![1, 0]]);
}

#[test]
fn a_constant_stream_leaves_the_rest_to_the_application() {
    depends_on_the_platform("the sizes of headers");
    let toml =
        format!("{WIFI}[[connection]]\nworkload = {{ kind = \"cbr\", rate = \"2Mbit/s\" }}\n");
    let outcome = watched(&toml);
    let sums = causes(&outcome);
    // 2 of 8 Mbit/s are data, and headers take less than a tenth of that.
    let waiting = sums[&APPLICATION] as f64 / 10_000_000.0;
    assert!((0.72..0.75).contains(&waiting), "{waiting}");
    assert_eq!(largest(&outcome), APPLICATION);
}

#[test]
fn a_small_window_fills_behind_the_slow_path() {
    for (key, other, expected) in [
        ("receive_buffer", "send_buffer", RECEIVE_WINDOW),
        ("send_buffer", "receive_buffer", SEND_BUFFER),
    ] {
        // WiFi alone holds 34 packets, 50 kB, and loses some before the window is full.
        let wifi = WIFI.replace("54packets", "20packets");
        let toml = format!(
            "{wifi}{SLOW}[[connection]]\n{key} = \"100KiB\"\n{other} = \"4MiB\"\n\
             host = \"rfc\"\nworkload = {{ kind = \"bulk\" }}\n"
        );
        let outcome = watched(&toml);
        assert_eq!(largest(&outcome), expected, "{key}");
        // The slow path is number 1, and its subflow has slot 1.
        let [path, behind, bytes] =
            ["path", "behind", "bytes"].map(|name| column(&outcome, "capacity", name));
        let cause = names(&outcome, "capacity", "cause");
        let of = |slot| -> u64 {
            let rows = (0..path.len())
                .filter(|row| path[*row] == 0 && cause[*row] == expected && behind[*row] == slot);
            rows.map(|row| bytes[row]).sum()
        };
        assert!(of(1) > 20 * of(0), "{key}: {} and {}", of(1), of(0));
    }
}

#[test]
fn a_suspended_path_and_one_without_a_subflow_lose_their_whole_capacity() {
    let toml = format!(
        "{WIFI}[[path.change]]\nat = \"2s\"\nstate = \"suspend\"\n[[path.change]]\nat = \"5s\"\n\
         state = \"resume\"\n{SLOW}[[connection]]\npath_manager = \"initial_only\"\n\
         workload = {{ kind = \"bulk\" }}\n"
    );
    let sums = causes(&watched(&toml));
    // 3 s at 8 Mbit/s, and 10 s at 1 Mbit/s plus the time before WiFi's subflow exists, which is
    // that of the SYN: none.
    assert_eq!(sums[&OUTAGE], 3_000_000);
    let absent = sums[&ABSENT] + sums[&OPENING];
    assert!((1_250_000..1_290_000).contains(&absent), "{absent}");
}

#[test]
fn cross_traffic_is_other_traffic() {
    let toml = format!(
        "{WIFI}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n[[cross_traffic]]\nname = \"calls\"\n\
         path = \"wifi\"\nrate = \"1Mbit/s\"\npacket_size = \"200B\"\n"
    );
    let other = causes(&watched(&toml))[&OTHER_TRAFFIC];
    // 10 s at 1 Mbit/s, without what the queue drops.
    assert!((1_100_000..=1_250_000).contains(&other), "{other}");
}

#[test]
fn a_trace_loses_the_opportunities_that_no_packet_uses() {
    // An opportunity each ms carries 1504 bytes: 12 Mbit/s.
    let toml = "name = \"trace\"\nduration = \"10s\"\n[[path]]\nname = \"cell\"\n\
                trace = { milliseconds = \"1\" }\ndelay = \"10ms\"\nlimit = \"100packets\"\n\
                [[connection]]\nworkload = { kind = \"cbr\", rate = \"2Mbit/s\" }\n";
    let outcome = watched(toml);
    let sums = causes(&outcome);
    assert_eq!(sums.values().sum::<u64>(), 10_000 * 1504);
    assert_eq!(largest(&outcome), APPLICATION);
}

#[test]
fn states_follow_each_other_without_gap_or_overlap() {
    let toml = format!("{WIFI}{SLOW}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n");
    let outcome = watched(&toml);
    let [path, from, until] =
        ["path", "from_ns", "until_ns"].map(|name| column(&outcome, "activities", name));
    for wanted in [0, 1] {
        let mut expected = 0;
        for row in (0..path.len()).filter(|row| path[*row] == wanted) {
            assert_eq!(from[row], expected);
            assert!(until[row] > from[row]);
            expected = until[row];
        }
        assert_eq!(expected, outcome.end.as_nanos());
    }
    assert!(causes(&outcome).contains_key(&CONGESTION_WINDOW));
}

#[test]
fn the_parts_of_a_block_add_up_to_its_delay() {
    depends_on_the_platform("the sizes of headers and the time of writing");
    // One block of 1000 bytes each second on an idle path: 1 ms and a bit to send at 8 Mbit/s, and
    // 10 ms of propagation. Nothing else takes time.
    let toml = format!(
        "{WIFI}[[connection]]\nworkload = {{ kind = \"on_off\", burst_size = \"1000B\", \
         interval = \"1s\" }}\n"
    );
    let outcome = watched(&toml);
    let of = |name| column(&outcome, "block_parts", name);
    let (accepted, delivered) = (of("accepted_ns"), of("delivered_ns"));
    assert!(accepted.len() >= 8, "{}", accepted.len());
    for row in 1..accepted.len() {
        assert_eq!(of("propagation_ns")[row], 10_000_000);
        let transmission = of("transmission_ns")[row];
        assert!((1_040_000..1_100_000).contains(&transmission), "{transmission}");
        assert_eq!(delivered[row] - accepted[row], 10_000_000 + transmission);
    }
}
