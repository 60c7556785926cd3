//! Compares runs with theoretical predictions.

use crate::common::{column, goodput, mean_block_delay, run, wifi_3g};

fn one_path(rate: &str, delay: &str, limit: &str, connection: &str) -> String {
    format!(
        "name = \"one\"\nduration = \"60s\"\nwarm_up = \"10s\"\n\
         [[path]]\nname = \"a\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = \"{limit}\"\n\
         [[connection]]\nprotocol = \"tcp\"\n{connection}\n\
         [connection.workload]\nkind = \"bulk\"\n"
    )
}

#[test]
fn a_tcp_flow_uses_at_least_95_percent_of_a_clean_link() {
    // The queue holds one bandwidth-delay product, so the link stays busy when the window is
    // halved. 1448 of the 1500 bytes of a packet are payload.
    let links = [
        ("8Mbit/s", "10ms", "20kB", 8e6),
        ("100Mbit/s", "10ms", "250kB", 100e6),
        ("10Mbit/s", "100ms", "250kB", 10e6),
    ];
    for (rate, delay, limit, bits) in links {
        for control in ["new_reno", "cubic", "lia", "olia", "balia"] {
            let connection = format!("congestion_control = \"{control}\"");
            let outcome = run(&one_path(rate, delay, limit, &connection), 1);
            let utilisation = goodput(&outcome) * 1500.0 / 1448.0 / bits;
            assert!(utilisation >= 0.95, "{control} on {rate}, {delay}: {utilisation:.3}");
            // The whole run counts here. Otherwise, out-of-order data at the end of the warm-up
            // would count for the time after it.
            let total = column(&outcome, "connections", "bytes_delivered")[0] as f64 * 8.0 / 60.0;
            assert!(total * 1500.0 / 1448.0 <= bits, "{control} on {rate}, {delay}: {total}");
        }
    }
}

#[test]
fn wvegas_fills_a_clean_link_and_keeps_ten_segments_in_its_queue() {
    crate::common::depends_on_the_platform("whether bursts wait, whose queue halves the window");
    // Cao et al., ICNP 2012: a single subflow is entitled to the whole backlog of 10 segments.
    let outcome =
        run(&one_path("100Mbit/s", "10ms", "250kB", "congestion_control = \"wvegas\""), 1);
    let utilisation = goodput(&outcome) * 1500.0 / 1448.0 / 100e6;
    assert!(utilisation >= 0.95, "{utilisation:.3}");
    assert_eq!(column(&outcome, "links", "dropped_by_queue"), [0, 0]);
    let queued = column(&outcome, "subflow_samples", "queue_packets");
    let steady = &queued[queued.len() / 2..];
    let mean = steady.iter().sum::<u64>() as f64 / steady.len() as f64;
    assert!((8.0..=14.0).contains(&mean), "{mean:.1} packets");
}

#[test]
fn block_delay_is_send_buffer_over_goodput_less_the_reverse_delay() {
    crate::common::depends_on_the_platform("the sizes of the buffers");
    // Little's law: if the send buffer is the limit, a byte waits from its acceptance until its
    // acknowledgement for the time that the buffer's contents take. Delivery is earlier by the
    // delay of the acknowledgement.
    for (path, reverse) in [("wifi", 0.010), ("3g", 0.075)] {
        let connection = format!(
            "protocol = \"tcp\"\ncongestion_control = \"new_reno\"\npaths = [\"{path}\"]\n\
             send_buffer = \"200KiB\"\nreceive_buffer = \"200KiB\""
        );
        let outcome = run(&wifi_3g(&connection, "kind = \"blocks\""), 1);
        let expected = 204_800.0 * 8.0 / goodput(&outcome) - reverse;
        let measured = mean_block_delay(&outcome, 5_000_000_000);
        let error = (measured / expected - 1.0).abs();
        assert!(error <= 0.15, "{path}: {measured:.3} s measured, {expected:.3} s expected");
    }
}

#[test]
fn two_clean_paths_with_ample_buffers_give_nearly_twice_one() {
    let path = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"50kB\"\n"
        )
    };
    let scenario = |connection: &str| {
        format!(
            "name = \"two\"\nduration = \"60s\"\nwarm_up = \"10s\"\n{}{}\
             [[connection]]\n{connection}\n[connection.workload]\nkind = \"bulk\"\n",
            path("a"),
            path("b")
        )
    };
    let tcp = "protocol = \"tcp\"\ncongestion_control = \"new_reno\"\npaths = [\"a\"]";
    let one = goodput(&run(&scenario(tcp), 1));
    for direction in ["download", "upload"] {
        let outcome = run(&scenario(&format!("direction = \"{direction}\"")), 1);
        let ratio = goodput(&outcome) / one;
        assert!(ratio >= 1.9, "{direction}: {ratio:.3}");
        for bytes in column(&outcome, "subflows", "bytes_sent") {
            assert!(bytes as f64 >= 0.4 * 60.0 * one / 8.0, "{direction}: {bytes}");
        }
    }
}

#[test]
fn with_a_200_kib_window_the_slow_path_halves_the_goodput_unless_m1_and_m2_are_on() {
    crate::common::depends_on_the_platform("the sizes of the buffers");
    // Raiciu et al., NSDI 2012: the problem and its remedies.
    let buffers = "send_buffer = \"200KiB\"\nreceive_buffer = \"200KiB\"\n";
    let blocks = "kind = \"blocks\"";
    let tcp = format!(
        "{buffers}protocol = \"tcp\"\ncongestion_control = \"new_reno\"\npaths = [\"wifi\"]"
    );
    let wifi = goodput(&run(&wifi_3g(&tcp, blocks), 1));
    let regular = goodput(&run(&wifi_3g(buffers, blocks), 1));
    let cured = format!(
        "{buffers}remedies = {{ opportunistic_retransmission = true, penalisation = true }}"
    );
    let cured = goodput(&run(&wifi_3g(&cured, blocks), 1));
    assert!(regular < 0.7 * wifi, "regular {regular:.0}, WiFi alone {wifi:.0}");
    assert!(cured > wifi, "cured {cured:.0}, WiFi alone {wifi:.0}");
}

#[test]
fn hystart_ends_slow_start_before_the_queue_overflows() {
    crate::common::depends_on_the_platform("when acknowledgements are delayed");
    let overflow = |hystart: bool| {
        let connection = format!(
            "congestion_control = \"cubic\"\nhystart = {hystart}\nsend_buffer = \"64MiB\"\nreceive_buffer = \"64MiB\""
        );
        let outcome = run(&one_path("100Mbit/s", "50ms", "1250kB", &connection), 1);
        column(&outcome, "links", "dropped_by_queue")[0]
    };
    assert!(overflow(true) * 4 < overflow(false), "{} {}", overflow(true), overflow(false));
}

/// If packets keep their order, every loss is genuine. Each loss is repaired once, and no reduction
/// is undone. This holds even if a recovery starts while the last lost segment of the previous
/// recovery is being retransmitted.
#[test]
fn genuine_losses_are_never_undone() {
    for seed in 1..=5 {
        let start = seed * 61_803 % 200_000;
        let toml = format!(
            "name = \"loss\"\nduration = \"5s\"\n[[path]]\nname = \"wan\"\nrate = \"300Mbit/s\"\n\
             delay = \"17.5ms\"\nlimit = \"35ms\"\njitter = \"0.1ms\"\n[[connection]]\n\
             protocol = \"tcp\"\ncongestion_control = \"new_reno\"\nstart = \"{start}us\"\n\
             send_buffer = \"64MB\"\nreceive_buffer = \"64MB\"\nworkload = {{ kind = \"bulk\" }}\n"
        );
        let outcome = run(&toml, seed);
        let of = |name| column(&outcome, "subflows", name)[0];
        assert!(of("recoveries") >= 1, "the test needs losses");
        assert_eq!(of("undone"), 0, "seed {seed}");
        let dropped = column(&outcome, "links", "dropped_by_queue")[0];
        assert_eq!(of("segments_retransmitted"), dropped, "seed {seed}");
    }
}

#[test]
#[ignore = "slow: make test-slow"]
fn every_second_segment_is_acknowledged_after_2_gib_as_well() {
    // After 2³¹ bytes within 120 s, data sequence numbers have 8 bytes, and segments are shorter.
    let outcome = run(
        "name = \"far\"\nduration = \"25s\"\n\
         [[path]]\nname = \"a\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\nlimit = \"1000packets\"\n\
         [[connection]]\ndirection = \"upload\"\nreceive_buffer = \"4MB\"\n\
         [connection.workload]\nkind = \"bulk\"\n",
        1,
    );
    assert!(column(&outcome, "connections", "bytes_delivered")[0] > 5 << 29);
    let acknowledgements = outcome.segments - outcome.data_segments_delivered;
    let each = acknowledgements as f64 / outcome.data_segments_delivered as f64;
    assert!((0.49..0.52).contains(&each), "{each:.3} acknowledgements per data segment");
}
