//! Loss, marks and idle times, and their effect on the window.

use super::*;

#[test]
fn a_reduction_is_undone_when_the_repeat_is_reported_as_a_duplicate() {
    // RFC 3708, RFC 2883 §4: reports are ranges below the acknowledgement, or inside the second
    // range.
    for (report, undone) in [
        (&[(1, 1001)][..], 1),
        (&[(1, 1001), (1, 5001)], 1),
        (&[(500, 500)], 0),
        (&[(9001, 10_001)], 0),
    ] {
        let mut scene = Scene::open();
        scene.write_and_wait(10);
        scene.takes(scene.ack(1, &[(1001, 4001)]));
        assert_eq!((scene.sends().len(), scene.cwnd()), (1, 5000));
        scene.takes(scene.ack(4001, &[]));
        scene.takes(scene.ack(5001, report));
        assert_eq!(scene.subflow.totals.undone, undone, "{report:?}");
        assert_eq!(scene.cwnd() >= 10_000, undone > 0);
    }
}

#[test]
fn a_duplicate_beyond_a_hole_is_reported_within_the_second_range() {
    // RFC 2883 §4.2: two segments were late, and the second copy of the second segment arrived
    // first.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    scene.takes(scene.ack(1, &[(2001, 7001)]));
    assert_eq!(scene.sends().len(), 2);
    scene.takes(scene.ack(1, &[(1001, 2001), (1001, 7001)]));
    scene.takes(scene.ack(7001, &[(1, 1001)]));
    assert_eq!(scene.subflow.totals.undone, 1);
}

#[test]
fn fast_recovery_sends_no_faster_than_data_arrives() {
    // RFC 6937 §3: 3 segments have arrived, and one is added to catch up.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    scene.takes(scene.ack(1, &[(7001, 10_001)]));
    assert_eq!(scene.sends().len(), 4);
}

#[test]
fn half_of_what_was_outstanding_is_left_after_a_loss() {
    // RFC 5681 §3.1: half of the outstanding data, not of an unused window.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    scene.takes(scene.ack(10_001, &[]));
    assert_eq!(scene.cwnd(), 20_000);
    scene.write_and_wait(6);
    scene.takes(scene.ack(10_001, &[(11_001, 14_001)]));
    assert_eq!((scene.cwnd(), scene.ssthresh()), (3000, 3000));
}

#[test]
fn a_timeout_halves_once_and_begins_with_one_segment() {
    // RFC 5681 §3.1, RFC 6298 §5.5
    let mut scene = Scene::open_to(all_options(), |config| config.tcp.sack = false);
    scene.write_and_wait(10);
    scene.takes(scene.ack(10_001, &[]));
    scene.write_and_wait(6);
    for _ in 0..2 {
        scene.waits();
        assert_eq!((scene.cwnd(), scene.ssthresh(), scene.sends().len()), (1000, 3000, 1));
    }
    scene.takes(scene.ack(11_001, &[]));
    assert_eq!((scene.cwnd(), scene.sends().len()), (2000, 2));
}

#[test]
fn a_loss_that_a_probe_repaired_costs_half_of_the_window() {
    // RFC 8985 §7.4.2: unless a duplicate acknowledgement shows that both copies arrived.
    for (needless, reduced) in [(false, true), (true, false)] {
        let mut scene = Scene::open();
        scene.write_and_wait(3);
        scene.takes(scene.ack(2001, &[]));
        scene.waits();
        assert!(scene.subflow.wants_tail_probe());
        scene.subflow.send_tail_probe(scene.now, &PLAIN);
        scene.takes(scene.ack(3001, &[]));
        if needless {
            scene.takes(scene.ack(3001, &[]));
        }
        assert_eq!(scene.ssthresh(), u64::MAX, "the acknowledgement may answer the original");
        scene.write_and_wait(1);
        scene.takes(scene.ack(4001, &[]));
        assert_eq!(scene.ssthresh() < u64::MAX, reduced);
    }
}

#[test]
fn the_window_grows_only_while_it_is_in_use() {
    // RFC 7661 §4.1: the whole window must be in use, or half of it in slow start.
    for (growth, segments, grows) in [
        (Growth::WhileFull(0), 9, false),
        (Growth::WhileFull(0), 10, true),
        (Growth::OnceFull, 5, false),
        (Growth::OnceFull, 6, true),
    ] {
        let options = TcpOptions { timestamps: None, ..all_options() };
        let mut scene = Scene::open_to(options, |config| config.platform.growth = growth);
        scene.write_and_wait(segments);
        scene.takes(scene.ack(scene.subflow.send_next(), &[]));
        assert_eq!(scene.cwnd() > 10_000, grows, "{growth:?} {segments}");
    }
}

#[test]
fn the_head_of_a_split_segment_counts_when_the_window_grows() {
    // RFC 5681 §3.1: the window grows by as many bytes as were acknowledged.
    let mut scene = Scene::open();
    scene.write_and_wait(10);
    for ack in [501, 1001] {
        scene.takes(scene.ack(ack, &[]));
        assert_eq!(scene.cwnd(), 9999 + ack);
        scene.write(1);
    }
}

#[test]
fn beyond_the_threshold_half_of_the_window_is_not_enough_for_it_to_grow() {
    // RFC 7661 §4.1: five segments are the threshold. Two windows give more than one segment of
    // growth.
    for (segments, cwnd) in [(3, 5000), (5, 6000)] {
        let options = TcpOptions { timestamps: None, ..all_options() };
        let mut scene = Scene::open_to(options, |config| config.platform.growth = Growth::OnceFull);
        scene.write_and_wait(10);
        scene.takes(scene.ack(1, &[(1001, 10_001)]));
        scene.sends();
        scene.now += ms(100);
        scene.takes(scene.ack(10_001, &[]));
        assert_eq!((scene.cwnd(), scene.ssthresh()), (5000, 5000));
        for _ in 0..2 {
            scene.write_and_wait(segments);
            scene.takes(scene.ack(scene.subflow.send_next(), &[]));
        }
        assert_eq!(scene.cwnd(), cwnd, "{segments}");
    }
}

#[test]
fn the_window_restarts_after_more_than_a_timeout_without_data() {
    // RFC 5681 §4.1
    for (restart, bytes, beyond, left) in [
        (true, 10_000, 0, 20_000),
        (true, 10_000, 9000, 10_000),
        (false, 10_000, 9000, 20_000),
        (true, 0, 9000, 10_000),
    ] {
        let options = TcpOptions { timestamps: None, ..all_options() };
        let mut scene = Scene::open_to(options, |config| config.tcp.idle_restart = restart);
        scene.write_and_wait(bytes / MSS);
        scene.takes(scene.ack(1 + bytes, &[]));
        let before = scene.cwnd();
        let idle = scene.subflow.congestion.idle(scene.now);
        scene.now = scene.now + scene.subflow.rtt().rto() + ms(beyond) - idle;
        scene.write_and_wait(1);
        assert_eq!(scene.cwnd(), left, "{restart} {bytes} {beyond}");
        assert_eq!(scene.subflow.totals.idle_restarts, u32::from(left < before));
        // Twice the window is paced out; this value follows with the next acknowledgement.
        assert_eq!(scene.subflow.paced_window(), 2 * before);
        scene.takes(scene.ack(1 + bytes + MSS, &[]));
        assert_eq!(scene.subflow.paced_window(), 2 * scene.cwnd());
    }
}

#[test]
fn a_window_of_one_segment_waits_for_the_timer_after_a_mark_and_then_goes_on() {
    // RFC 3168 §6.1.2
    let options = TcpOptions { timestamps: None, ..all_options() };
    let change = |config: &mut ConnectionConfig| {
        (config.tcp.ecn, config.tcp.initial_window_segments) = (true, 1)
    };
    let mut scene = Scene::joining(Purpose::Join, Flags::ECE, options, change);
    scene.write_and_wait(1);
    let mut echo = scene.ack(1001, &[]);
    echo.header.flags |= Flags::ECE;
    scene.takes(echo);
    assert_eq!(scene.subflow.view().available_cwnd, 0);
    scene.waits();
    assert_eq!((scene.subflow.view().available_cwnd, scene.subflow.timeouts_in_a_row()), (MSS, 0));
    assert_eq!((scene.replies(), scene.subflow.poll_timeout()), (None, Instant::FAR_FUTURE));
}

#[test]
fn a_loss_after_marked_data_reduces_again_and_one_among_it_does_not() {
    // RFC 3168 §6.1.2: one reduction per window.
    let options = TcpOptions { timestamps: None, ..all_options() };
    for (marked, ssthresh) in [(10_001, 2000), (6001, 5000)] {
        let change = |config: &mut ConnectionConfig| config.tcp.ecn = true;
        let mut scene = Scene::joining(Purpose::Initial, Flags::ECE, options.clone(), change);
        scene.write_and_wait(10);
        let mut echo = scene.ack(marked, &[]);
        echo.header.flags |= Flags::ECE;
        scene.takes(echo);
        assert_eq!(scene.ssthresh(), 5000);
        scene.write_and_wait((15_001 - scene.subflow.send_next()) / MSS);
        scene.takes(scene.ack(marked, &[(marked + 1000, marked + 4000)]));
        assert_eq!((scene.ssthresh(), scene.subflow.totals.recoveries), (ssthresh, 1));
    }
}

#[test]
fn a_remedy_halves_the_window() {
    let mut scene = Scene::open();
    scene.subflow.penalise(ExternalReduction::HalveBoth);
    assert_eq!((scene.cwnd(), scene.ssthresh()), (5000, 5000));
}

#[test]
fn what_was_selectively_acknowledged_goes_out_again_after_a_second_timeout_in_a_row() {
    // RFC 2018 §8: the peer may have discarded it.
    for (timeouts, again) in [(1, false), (2, true)] {
        let mut scene = Scene::open();
        scene.write_and_wait(3);
        scene.takes(scene.ack(1, &[(2001, 3001)]));
        while scene.subflow.timeouts_in_a_row() < timeouts {
            scene.sends();
            scene.waits();
        }
        scene.sends();
        scene.takes(scene.ack(2001, &[]));
        let sent = scene.sends().iter().any(|segment| segment.header.seq == ISS + 2001);
        assert_eq!(sent, again, "{timeouts}");
    }
}

#[test]
fn the_last_of_several_segments_that_go_out_together_has_psh_on_linux() {
    // `__tcp_transmit_skb`: two segments go out at a time.
    for (platform, pushed) in [
        (Platform::linux(), [false; 5]),
        (Platform::linux_socket(), [false, true, false, true, false]),
    ] {
        let mut scene = Scene::open_to(all_options(), |config| config.platform = platform);
        let waiting = || Unsent { all: 5000, first: 5000, at_a_time: 5000 };
        let flags = pushed.map(|_| {
            assert!(!scene.subflow.waits_for_room(scene.now, waiting));
            scene.write_bytes(MSS as u32, None).header.flags.contains(Flags::PSH)
        });
        assert_eq!(flags, pushed, "{:?}", platform.buffers);
    }
}
