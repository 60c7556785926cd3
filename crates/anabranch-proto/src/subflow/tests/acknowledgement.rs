//! Contents of acknowledgements, and the samples that they give.

use super::*;

#[test]
fn a_round_trip_is_measured_from_what_was_sent_once() {
    // RFC 6298 §2.3, §3: SRTT ← 7/8 · 100 ms + 1/8 · 60 ms. Retransmitted data gives no sample.
    let mut scene = Scene::open();
    scene.write(1);
    scene.now += ms(60);
    scene.takes(scene.ack(1001, &[]));
    assert_eq!(scene.subflow.view().srtt, Some(ms(95)));
    scene.write(1);
    scene.waits();
    assert_eq!(
        scene.subflow.send_tail_probe(scene.now, &PLAIN).map(|s| s.payload.len()),
        Some(1000)
    );
    scene.now += ms(300);
    scene.takes(scene.ack(2001, &[]));
    assert_eq!(scene.subflow.view().srtt, Some(ms(95)));
}

#[test]
fn an_echo_measures_what_was_sent_again_unless_it_answers_a_duplicate() {
    // RFC 7323 §4.1, RFC 2883 §4: an acknowledgement that reports a duplicate has the timestamp of
    // the other copy. An echo of implausible age gives no sample.
    for (age, reports, expected) in
        [(60, false, ms(95)), (60, true, ms(100)), (1 << 20, false, ms(100))]
    {
        let mut scene = Scene::stamping();
        scene.write(1);
        scene.waits();
        scene.subflow.send_tail_probe(scene.now, &PLAIN);
        scene.now += ms(60);
        let echo = (scene.now.as_millis() as u32).wrapping_sub(age);
        let ranges: &[_] = if reports { &[(1, 1001)] } else { &[] };
        let mut ack = scene.ack(1001, ranges);
        ack.options.timestamps = Some(Timestamps { value: 9, echo });
        scene.takes(ack);
        assert_eq!(scene.subflow.view().srtt, Some(expected));
    }
}

#[test]
fn a_one_way_delay_needs_to_know_which_copy_arrived() {
    // RFC 8382 §3.2.1
    for (again, delay) in [(false, Some(-1100 + 77)), (true, None)] {
        let mut scene = Scene::stamping();
        scene.write(1);
        if again {
            scene.waits();
            scene.subflow.send_tail_probe(scene.now, &PLAIN);
            scene.write(1);
        }
        let mut ack = scene.ack(scene.subflow.send_next(), &[]);
        ack.options.timestamps = Some(Timestamps { value: 77, echo: 0 });
        scene.takes(ack);
        assert_eq!(scene.subflow.one_way_delay, delay);
    }
}

#[test]
fn a_receiver_measures_with_each_echo_once_and_not_with_short_segments() {
    let mut scene = Scene::stamping();
    for (age, bytes, measured) in [
        (40, 400, None),
        (1 << 20, 1000, None),
        (50, 600, Some(50)),
        (90, 1000, Some(50)),
        (58, 1000, Some(51)),
    ] {
        scene.now += ms(40);
        let mut data = scene.segment(0, 1, bytes);
        let echo = (scene.now.as_millis() as u32).wrapping_sub(age);
        data.options.timestamps = Some(Timestamps { value: 9, echo });
        scene.takes(data);
        assert_eq!(scene.subflow.view().receive_rtt, measured.map(ms), "{age} {bytes}");
    }
}

#[test]
fn a_delayed_acknowledgement_waits_from_the_first_segment_on() {
    // RFC 9293 §3.8.6.3
    let mut scene = Scene::open();
    for _ in 0..2 {
        scene.takes(scene.segment(0, 1, 1000));
    }
    assert!(scene.replies().is_some(), "the second full-sized segment");
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    for (left, bytes) in [(200, 100), (100, 90)] {
        scene.takes(scene.segment(0, 1, bytes));
        assert_eq!(
            (scene.replies(), scene.timer(SubflowTimer::DelayedAck)),
            (None, Some(ms(left)))
        );
        scene.now += ms(100);
    }
    scene.subflow.handle_timeout(scene.now, &[], false);
    assert!(scene.replies().is_some());
}

#[test]
fn the_retransmission_timer_is_restarted_by_what_arrived_and_by_nothing_else() {
    // RFC 6298 §5.3; here selective acknowledgements count as well.
    let mut scene = Scene::open();
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    scene.write(5);
    let begin = scene.subflow.rtt().rto();
    scene.now += ms(50);
    scene.takes(scene.ack(1, &[]));
    assert_eq!(scene.timer(SubflowTimer::Retransmission).map(|left| left + ms(50)), Some(begin));
    for (ack, ranges) in [(1, &[(3001, 4001)]), (1001, &[(3001, 4001)])] {
        scene.now += ms(1);
        scene.takes(scene.ack(ack, ranges));
        assert_eq!(
            scene.timer(SubflowTimer::Retransmission),
            Some(scene.subflow.rtt().rto()),
            "{ack}"
        );
    }
    scene.takes(scene.ack(5001, &[]));
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
}

#[test]
fn the_user_timeout_counts_from_the_last_progress() {
    // RFC 9293 §3.8.3
    let options = TcpOptions { timestamps: None, ..all_options() };
    let mut scene = Scene::open_to(options, |config| config.tcp.user_timeout = Some(ms(5000)));
    scene.write(2);
    assert_eq!(scene.timer(SubflowTimer::UserTimeout), Some(ms(5000)));
    scene.now += ms(100);
    scene.takes(scene.ack(1001, &[]));
    assert_eq!(scene.timer(SubflowTimer::UserTimeout), Some(ms(5000)));
}

#[test]
fn selective_acknowledgements_of_anything_but_what_is_outstanding_say_nothing() {
    // RFC 2018 §5.1, RFC 2883 §4
    let mut scene = Scene::open();
    scene.write_and_wait(6);
    scene.takes(scene.ack(1001, &[]));
    for (block, in_flight) in [
        ((1, 3001), 5000),
        ((1, 1001), 5000),
        ((4001, 7001), 5000),
        ((3001, 3001), 5000),
        ((5001, 6001), 4000),
    ] {
        scene.takes(scene.ack(1001, &[block]));
        assert_eq!(scene.subflow.view().bytes_in_flight, in_flight, "{block:?}");
    }
}
