//! Bytes are neither lost nor invented, and the same seed gives the same run.

use anabranch_sim::{Capture, Options, RunOutcome, Side};
use proptest::prelude::*;

use crate::common::{column, run, run_with, wifi_3g};

fn hostile(parameters: &Parameters) -> String {
    let Parameters { loss, jitter_ms, reordering, buffer, limit, remedies, upload, control } =
        *parameters;
    let model = if reordering { "reordering" } else { "fifo" };
    let path = |name: &str, rate: &str, delay: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             limit = \"{limit}packets\"\nloss = \"{loss}%\"\njitter = \"{jitter_ms}ms\"\n\
             jitter_model = \"{model}\"\n[path.reverse]\nloss = \"{loss}%\"\n"
        )
    };
    let direction = if upload { "upload" } else { "download" };
    format!(
        "name = \"hostile\"\nduration = \"3000s\"\nsample_interval = \"100s\"\n{}{}\
         [[path.change]]\nat = \"2s\"\nstate = \"down\"\n[[path.change]]\nat = \"5s\"\nstate = \"up\"\n\
         [[connection]]\nsend_buffer = \"{buffer}B\"\nreceive_buffer = \"{buffer}B\"\n\
         direction = \"{direction}\"\ncongestion_control = \"{control}\"\n\
         remedies = {{ opportunistic_retransmission = {remedies}, penalisation = {remedies} }}\n\
         [connection.workload]\nkind = \"bulk\"\nsize = \"500kB\"\n",
        path("fast", "8Mbit/s", "10ms"),
        path("slow", "1Mbit/s", "80ms"),
    )
}

#[derive(Clone, Copy, Debug)]
struct Parameters {
    loss: u32,
    jitter_ms: u32,
    reordering: bool,
    buffer: u32,
    limit: u32,
    remedies: bool,
    upload: bool,
    control: &'static str,
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let control = prop::sample::select(vec!["lia", "new_reno", "cubic", "olia", "balia", "wvegas"]);
    (0u32..6, 0u32..60, any::<bool>(), 5_000u32..400_000, 2u32..100, any::<[bool; 2]>(), control)
        .prop_map(|(loss, jitter_ms, reordering, buffer, limit, [remedies, upload], control)| {
            Parameters { loss, jitter_ms, reordering, buffer, limit, remedies, upload, control }
        })
}

fn assert_conserved(outcome: &RunOutcome) {
    assert_eq!(column(outcome, "connections", "corrupt_bytes"), [0]);
    assert_eq!(column(outcome, "connections", "failed"), [0]);
    assert_eq!(column(outcome, "connections", "bytes_delivered"), [500_000]);
    assert_eq!(column(outcome, "connections", "bytes_written"), [500_000]);
    assert_eq!(column(outcome, "connections", "completed"), [1]);
    // Every byte arrived on some subflow. The sum includes copies and closed subflows.
    let received: u64 = column(outcome, "subflows", "bytes_received").iter().sum();
    assert!(received >= 500_000, "{received}");
    let of = |name| column(outcome, "links", name);
    let sums = of("packets_delivered")
        .into_iter()
        .zip(of("dropped_by_queue"))
        .zip(of("dropped_by_loss").into_iter().zip(of("dropped_down")));
    let out: Vec<u64> = sums.map(|((a, b), (c, d))| a + b + c + d).collect();
    assert_eq!(of("packets_in"), out, "every packet is delivered, or dropped for a counted reason");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_written_are_bytes_delivered(parameters in parameters(), seed in any::<u64>()) {
        let scenario = hostile(&parameters);
        let outcome = run(&scenario, seed);
        assert_conserved(&outcome);
        prop_assert_eq!(&run(&scenario, seed), &outcome, "the same seed gives the same run");
        let bytes = Options::default().round_trip(true);
        prop_assert_eq!(
            run_with(&scenario, seed, bytes).digest, outcome.digest,
            "the round-trip check changes nothing"
        );
    }
}

#[test]
fn another_seed_gives_another_run() {
    let scenario = wifi_3g("", "kind = \"bulk\"");
    assert_ne!(run(&scenario, 1).digest, run(&scenario, 2).digest);
}

#[test]
fn a_capture_changes_nothing_and_at_both_hosts_contains_every_packet_twice() {
    let scenario = wifi_3g("", "kind = \"bulk\"\nsize = \"100kB\"");
    let mut capture = Vec::new();
    let both = Some(&[Side::Client, Side::Server][..]);
    let options = Options::default().capture(Capture { at: both, ..Capture::new(&mut capture) });
    let captured = run_with(&scenario, 1, options);
    assert_eq!(captured, run(&scenario, 1));
    let bytes: u64 = column(&captured, "links", "bytes_in").iter().sum();
    assert!(capture.len() as u64 > 2 * bytes, "{} bytes", capture.len());
}

#[test]
fn a_capture_at_the_sender_contains_every_packet_once_and_only_the_bytes_asked_for() {
    let scenario = wifi_3g("", "kind = \"bulk\"\nsize = \"100kB\"");
    let packets =
        |captured: &RunOutcome| -> u64 { column(captured, "links", "packets_in").iter().sum() };
    for (snap_length, most) in [(None, 1600), (Some(128), 200)] {
        let mut capture = Vec::new();
        let options = Capture { snap_length, ..Capture::new(&mut capture) };
        let captured = run_with(&scenario, 1, Options::default().capture(options));
        assert!((capture.len() as u64) < most * packets(&captured), "{} bytes", capture.len());
        assert!(capture.len() as u64 > 100 * packets(&captured), "{} bytes", capture.len());
    }
}
