//! BBR and pacing in runs: what they do to queues and losses, and how close BBR is to Linux.

use anabranch_sim::{Options, RunOutcome};

use crate::common::{self, column, names, run, run_with};

fn path(name: &str, rate: &str, delay: &str, limit: u32, more: &str) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
         limit = \"{limit}packets\"\n{more}\n"
    )
}

fn scenario(paths: &str, connection: &str) -> String {
    format!(
        "name = \"bbr\"\nduration = \"12s\"\nsample_interval = \"100ms\"\n{paths}\
         [[connection]]\n{connection}\nworkload = {{ kind = \"bulk\" }}\n"
    )
}

fn tcp(control: &str) -> String {
    format!("protocol = \"tcp\"\ncongestion_control = \"{control}\"")
}

/// Mean smoothed round-trip time in milliseconds, from the third second on.
fn round_trip(outcome: &RunOutcome) -> f64 {
    let rtts = column(outcome, "subflow_samples", "srtt_ns");
    let late = &rtts[rtts.len() / 4..];
    late.iter().sum::<u64>() as f64 / late.len() as f64 / 1e6
}

#[test]
fn the_queue_stays_short_where_cubic_fills_it() {
    let deep = path("deep", "10Mbit/s", "20ms", 400, "");
    let [bbr, cubic] =
        ["bbr", "cubic_linux"].map(|control| run(&scenario(&deep, &tcp(control)), 1));
    assert!(common::goodput(&bbr) > 9.3e6, "{}", common::goodput(&bbr));
    let (bbr, cubic) = (round_trip(&bbr), round_trip(&cubic));
    assert!(bbr < 60.0 && cubic > 200.0, "{bbr:.0} and {cubic:.0} ms");
}

#[test]
fn random_losses_hardly_slow_it_down() {
    let lossy = path("lossy", "20Mbit/s", "20ms", 70, "loss = \"1%\"");
    let [bbr, cubic] = ["bbr", "cubic_linux"]
        .map(|control| common::goodput(&run(&scenario(&lossy, &tcp(control)), 1)));
    assert!(bbr > 18e6 && cubic < 6e6, "{bbr:.0} and {cubic:.0} bit/s");
}

#[test]
fn goodput_is_that_of_linux() {
    // Linux 6.18 with `bbr` at both ends of the same links, in real time.
    let linux = "protocol = \"tcp\"\ncongestion_control = \"bbr\"\n\
                 host = { kind = \"linux\", buffers = \"socket\" }";
    let small = format!("{linux}\nsend_buffer = \"200KiB\"\nreceive_buffer = \"200KiB\"");
    for (measured, link, connection) in [
        (9.37e6, path("deep", "10Mbit/s", "20ms", 200, ""), linux),
        (9.36e6, path("shallow", "10Mbit/s", "20ms", 15, ""), linux),
        (18.5e6, path("lossy", "20Mbit/s", "20ms", 70, "loss = \"1%\""), linux),
        (0.921e6, path("slow", "1Mbit/s", "60ms", 50, ""), linux),
        (18.2e6, path("buffers", "20Mbit/s", "30ms", 100, ""), &small),
    ] {
        let goodput = common::goodput(&run(&scenario(&link, connection), 1));
        let off = (goodput / measured - 1.0).abs();
        assert!(off < 0.02, "{link}: {goodput:.0} instead of {measured:.0} bit/s");
    }
}

#[test]
fn each_subflow_fills_its_path() {
    let paths = path("one", "10Mbit/s", "15ms", 60, "") + &path("other", "5Mbit/s", "25ms", 60, "");
    let goodput = common::goodput(&run(&scenario(&paths, "congestion_control = \"bbr\""), 1));
    assert!(goodput > 13.2e6, "{goodput:.0} bit/s");
}

#[test]
fn pacing_halves_the_queue_of_slow_start_and_is_a_state() {
    // In slow start, an unpaced sender answers each acknowledgement with two segments at once.
    let wide = path("wide", "50Mbit/s", "40ms", 2_000, "");
    let largest = |pacing: bool| {
        let connection = format!("{}\npacing = {pacing}", tcp("new_reno"));
        let toml = scenario(&wide, &connection).replace("\"100ms\"", "\"1ms\"");
        let outcome = run_with(&toml, 1, Options::default().ledger(true));
        let times = column(&outcome, "subflow_samples", "time_ns");
        let queue = column(&outcome, "subflow_samples", "queue_packets");
        // Four round trips, before the link is full.
        let early = times.iter().zip(queue).filter(|(at, _)| **at < 400_000_000);
        let paced = names(&outcome, "activities", "state").contains(&"paced");
        (early.map(|(_, queue)| queue).max().expect("samples"), paced)
    };
    let ((paced, waits), (unpaced, waits_unpaced)) = (largest(true), largest(false));
    assert!(2 * paced < unpaced, "{paced} and {unpaced} packets");
    assert_eq!((waits, waits_unpaced), (true, false));
}

#[test]
fn version_3_fills_a_path_as_version_1_does_and_keeps_its_queue_short() {
    for (rate, delay_ms, limit) in
        [("10Mbit/s", 20, 400), ("50Mbit/s", 5, 200), ("2Mbit/s", 100, 100)]
    {
        let deep = path("deep", rate, &format!("{delay_ms}ms"), limit, "");
        let [three, one] = ["bbr3", "bbr"].map(|control| run(&scenario(&deep, &tcp(control)), 1));
        let share = common::goodput(&three) / common::goodput(&one);
        assert!(share > 0.98, "{rate}: {share:.3}");
        let (three, one) = (round_trip(&three), round_trip(&one));
        assert!(three < 1.05 * one, "{rate}: {three:.1} and {one:.1} ms");
    }
}

#[test]
fn version_3_gives_way_to_losses_above_two_per_cent() {
    let goodputs = |control: &str, loss: &str| {
        let lossy = path("lossy", "20Mbit/s", "20ms", 70, &format!("loss = \"{loss}\""));
        common::goodput(&run(&scenario(&lossy, &tcp(control)), 1))
    };
    let tolerated = goodputs("bbr3", "1%");
    assert!(tolerated > 13e6, "{tolerated:.0} bit/s");
    let (three, one) = (goodputs("bbr3", "6%"), goodputs("bbr", "6%"));
    assert!(three < 0.7 * one, "{three:.0} and {one:.0} bit/s");
}

#[test]
fn version_3_loses_less_in_a_shallow_queue_than_version_1() {
    let shallow = path("shallow", "20Mbit/s", "20ms", 15, "");
    let lost = |control: &str| {
        let outcome = run(&scenario(&shallow, &tcp(control)), 1);
        let lost: u64 = column(&outcome, "subflows", "segments_retransmitted").iter().sum();
        (lost, common::goodput(&outcome))
    };
    let ((three, goodput), (one, _)) = (lost("bbr3"), lost("bbr"));
    assert!(2 * three < one, "{three} and {one} retransmissions");
    assert!(goodput > 17e6, "{goodput:.0} bit/s");
}

#[test]
fn version_3_finds_ten_times_the_bandwidth_and_a_tenth_of_it() {
    // draft-ietf-ccwg-bbr, appendix: "Increasing Bandwidth 10x", "Decreasing Bandwidth 10x".
    let changes = "[[path.change]]\nat = \"8s\"\nrate = \"50Mbit/s\"\n\
                   [[path.change]]\nat = \"16s\"\nrate = \"5Mbit/s\"\n";
    let link = path("link", "5Mbit/s", "20ms", 100, changes);
    let toml = scenario(&link, &tcp("bbr3")).replace("\"12s\"", "\"26s\"");
    let outcome = run(&toml, 1);
    let received = column(&outcome, "subflow_samples", "bytes_received");
    let times = column(&outcome, "subflow_samples", "time_ns");
    let mbps = |from: u64, to: u64| {
        let at = |second: u64| {
            let index = times.iter().position(|&time| time >= second * 1_000_000_000);
            received[index.expect("a sample")]
        };
        (at(to) - at(from)) as f64 * 8e-6 / (to - from) as f64
    };
    assert!(mbps(4, 8) > 4.4, "{:.1}", mbps(4, 8));
    assert!(mbps(13, 16) > 40.0, "{:.1}", mbps(13, 16));
    assert!(mbps(20, 25) > 4.2, "{:.1}", mbps(20, 25));
}
