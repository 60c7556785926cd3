//! The ledger of a run: what each subflow does at every instant, and what becomes of every byte of
//! capacity.

use std::collections::BTreeMap;

use anabranch_sim::{Options, Outcome};

use crate::common::{column, depends_on_the_platform, run, run_with};

/// Causes, by their numbers in the table of capacities.
const CONGESTION_WINDOW: u64 = 1;
const RECEIVE_WINDOW: u64 = 7;
const SEND_BUFFER: u64 = 8;
const APPLICATION: u64 = 10;
const ABSENT: u64 = 14;
const USEFUL: u64 = 32;
const OTHER_TRAFFIC: u64 = 39;
const OUTAGE: u64 = 40;

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

fn watched(toml: &str) -> Outcome {
    run_with(toml, 1, Options { ledger: true, ..Options::default() })
}

/// Bytes of the first flow by cause, over all paths.
fn causes(outcome: &Outcome) -> BTreeMap<u64, u64> {
    let [flow, cause, bytes] =
        ["connection", "cause", "bytes"].map(|name| column(outcome, "capacity", name));
    let mut sums = BTreeMap::new();
    for row in (0..flow.len()).filter(|row| flow[*row] == 0) {
        *sums.entry(cause[row]).or_default() += bytes[row];
    }
    sums
}

fn largest(outcome: &Outcome) -> u64 {
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
    assert_eq!(causes(&outcome).values().sum::<u64>(), 10_000_000 + held(&outcome));
    assert_eq!(
        causes(&outcome)[&USEFUL],
        column(&outcome, "connections", "bytes_delivered")[0] + held(&outcome)
    );
}

/// Data that had arrived and not been delivered at the end, which is on no path.
fn held(outcome: &Outcome) -> u64 {
    causes(outcome).get(&41).copied().unwrap_or(0)
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
        let [path, cause, behind, bytes] =
            ["path", "cause", "behind", "bytes"].map(|name| column(&outcome, "capacity", name));
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
    assert!((1_250_000..1_290_000).contains(&sums[&ABSENT]), "{}", sums[&ABSENT]);
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
    assert_eq!(sums.values().sum::<u64>(), 10_000 * 1504 + held(&outcome));
    assert_eq!(largest(&outcome), APPLICATION);
}

#[test]
fn states_follow_each_other_without_gap_or_overlap() {
    let toml = format!("{WIFI}{SLOW}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n");
    let outcome = watched(&toml);
    let [path, state, from, until] =
        ["path", "state", "from_ns", "until_ns"].map(|name| column(&outcome, "activities", name));
    for wanted in [0, 1] {
        let mut expected = 0;
        let mut last = None;
        for row in (0..path.len()).filter(|row| path[*row] == wanted) {
            assert_eq!(from[row], expected);
            assert!(until[row] > from[row]);
            last = Some(state[row]);
            expected = until[row];
        }
        assert_eq!(expected, outcome.end.as_nanos());
        assert!(last.is_some_and(|state| state <= ABSENT));
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
