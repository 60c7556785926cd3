//! Which segments are acceptable, and their effect.

use super::*;

#[test]
fn a_segment_counts_if_some_of_it_lies_in_the_window() {
    // RFC 9293 §3.10.7.4: the table of acceptable segments. A closed window still admits
    // acknowledgements, and so does the edge of a window.
    let (ack, fin) = (Flags::ACK, Flags::ACK | Flags::FIN);
    for (window, distance, bytes, flags, counts) in [
        (1000, -1, 0, ack, false),
        (1000, 0, 0, ack, true),
        (1000, 999, 0, ack, true),
        (1000, 1000, 0, ack, true),
        (1000, 1001, 0, ack, false),
        (1000, -100, 100, ack, false),
        (1000, -99, 100, ack, true),
        (1000, 999, 100, ack, true),
        (1000, 1000, 100, ack, false),
        (1000, -101, 100, fin, false),
        (1000, -100, 100, fin, true),
        (0, 0, 0, ack, true),
        (0, 1, 0, ack, false),
        (0, -1, 0, ack, false),
    ] {
        let mut scene = Scene::open();
        scene.takes(scene.segment(0, 1, 500));
        scene.write(1);
        let mut segment = scene.segment(distance, 1001, bytes);
        segment.header.flags = flags;
        let handled = scene.takes_within(segment, window);
        let case = format!("{bytes} bytes at {distance} in {window}, {flags:?}");
        assert_eq!((handled.acceptable, scene.subflow.una() == 1001), (counts, counts), "{case}");
    }
}

#[test]
fn only_what_is_new_of_a_segment_becomes_part_of_the_stream() {
    let mut scene = Scene::open();
    for (distance, bytes) in [(0, 500), (-250, 500), (-750, 1000)] {
        scene.takes(scene.segment(distance, 1, bytes));
    }
    let mut next = 1;
    while let Some(payload) = scene.subflow.poll_received() {
        assert!(payload.matches_pattern(next), "{next}");
        next += payload.len() as u64;
    }
    assert_eq!((next, scene.subflow.totals.bytes_received), (1001, 1000));
}

#[test]
fn a_reset_outside_of_the_window_is_not_even_challenged() {
    // RFC 5961 §3.2
    for (distance, challenges) in [(-1, 0), (1, 1), (999, 1), (1000, 0)] {
        let mut scene = Scene::open();
        let mut reset = scene.segment(distance, 1, 0);
        reset.header.flags = Flags::RST;
        scene.takes_within(reset, 1000);
        assert_eq!(scene.subflow.totals.challenge_acks, challenges, "at {distance}");
        assert_eq!(scene.subflow.state(), State::Established);
    }
}

#[test]
fn acknowledgements_count_from_a_window_back_to_all_that_was_sent() {
    // RFC 5961 §5.2: MAX.SND.WND is at least 65535 bytes here.
    let mut scene = Scene::open();
    scene.write(70);
    for (ack, counts) in
        [(70_002, false), (70_001, true), (70_001 - 65_536, false), (70_001 - 65_535, true)]
    {
        let handled = scene.takes(scene.ack(ack, &[]));
        assert_eq!(handled.acceptable, counts, "{ack}");
    }
    assert_eq!((scene.subflow.una(), scene.subflow.totals.challenge_acks), (70_001, 2));
}

#[test]
fn timestamps_that_were_not_agreed_on_mean_nothing() {
    // RFC 7323 §3.2: the subflow accepts the segment as if it had no timestamps.
    let mut scene = Scene::open_to(all_options(), |_| {});
    let mut old = scene.segment(0, 1, 100);
    old.options.timestamps = Some(Timestamps { value: u32::MAX, echo: 0 });
    assert!(scene.takes(old).acceptable);
    let reply = scene.write_bytes(100, None);
    assert_eq!((scene.subflow.receiver().nxt(), reply.options.timestamps), (101, None));
}

#[test]
fn an_old_timestamp_keeps_a_segment_out_for_24_days() {
    // RFC 7323 §5.3, §5.5
    let days = 24 * 24 * 3600 * 1000;
    for (idle, counts) in [(0, false), (days - 1, false), (days, true)] {
        let mut scene = Scene::stamping();
        scene.now += ms(idle);
        let mut old = scene.segment(0, 1, 100);
        old.options.timestamps = Some(Timestamps { value: u32::MAX, echo: 0 });
        assert_eq!(scene.takes(old).acceptable, counts, "{idle}");
    }
}

#[test]
fn selective_acknowledgements_are_not_sent_to_who_does_not_want_them() {
    // RFC 2018 §2: both hosts must agree.
    for (wanted, offered) in [(true, true), (true, false), (false, true), (false, false)] {
        let options = TcpOptions { sack_permitted: offered, ..all_options() };
        let mut scene = Scene::open_to(options, |config| config.tcp.sack = wanted);
        scene.takes(scene.segment(500, 1, 500));
        let reply = scene.replies().expect("an acknowledgement is due");
        assert_eq!(reply.options.sack.is_empty(), !(wanted && offered), "{wanted} {offered}");
    }
}

#[test]
fn a_closed_subflow_takes_nothing_and_wants_nothing() {
    let mut scene = Scene::open();
    scene.write(1);
    scene.subflow.abandon(SubflowEnd::TimedOut);
    assert_eq!(
        (scene.subflow.state(), scene.subflow.end()),
        (State::Closed, Some(SubflowEnd::TimedOut))
    );
    assert_eq!(scene.subflow.poll_timeout(), Instant::FAR_FUTURE);
    assert_eq!(scene.takes(scene.ack(1001, &[])), RxOutcome::default());
}

#[test]
fn what_arrives_is_counted() {
    let (both, ecn) = (all_options(), |config: &mut ConnectionConfig| config.tcp.ecn = true);
    let mut scene = Scene::joining(Purpose::Initial, Flags::ECE, both, ecn);
    assert!(!scene.subflow.has_carried_data() && !scene.subflow.has_outstanding());
    for distance in [0, 500] {
        let mut marked = scene.segment(distance, 1, 500);
        marked.ecn = CE;
        assert_eq!(scene.subflow.end_of(&marked), 501 + 2 * distance as u64);
        scene.takes(marked);
    }
    assert!(scene.subflow.has_carried_data());
    let totals = scene.subflow.totals;
    assert_eq!((totals.segments_received, totals.bytes_received), (3, 500));
    assert_eq!((totals.ce_received, scene.subflow.receiver().out_of_order_bytes()), (2, 500));
    let mut fin = scene.segment(0, 1, 500);
    fin.header.flags |= Flags::FIN;
    scene.takes(fin);
    assert!(!scene.subflow.receiver().finished(), "data beyond the FIN has already arrived");
}

#[test]
fn a_subflow_has_carried_data_once_some_was_acknowledged() {
    let mut scene = Scene::open();
    scene.write(2);
    let totals = scene.subflow.totals;
    assert_eq!((totals.segments_sent, totals.bytes_sent), (2, 2000));
    assert!(scene.subflow.has_outstanding() && !scene.subflow.has_carried_data());
    scene.takes(scene.ack(1001, &[]));
    assert!(scene.subflow.has_carried_data());
}

#[test]
fn an_acknowledgement_of_two_segments_waits_for_the_read_if_the_window_would_shrink() {
    // Linux: `__tcp_ack_snd_check`
    for (quick_acks, waits) in [(0, true), (2, false)] {
        let mut scene = Scene::open_to(all_options(), |config| {
            config.platform.acknowledging.quick_acks = quick_acks;
        });
        for _ in 0..2 {
            scene.takes(scene.segment(0, 1, MSS as u32));
        }
        assert!(scene.subflow.receiver().ack_is_due());
        assert!(scene.subflow.acknowledges_early(PLAIN.window));
        assert_eq!(!scene.subflow.acknowledges_early(PLAIN.window - 1000), waits);
    }
}
