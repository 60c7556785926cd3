//! Beginning and end of a subflow.

use super::*;

#[test]
fn a_subflow_is_given_up_after_as_many_repeats_as_configured() {
    // RFC 9293 §3.8.3
    let mut scene =
        Scene::open_to(all_options(), |config| (config.tcp.retries, config.tcp.sack) = (3, false));
    scene.write(1);
    let mut repeats = 0;
    while scene.subflow.end().is_none() && repeats < 20 {
        scene.waits();
        repeats += scene.sends().len();
    }
    let totals = scene.subflow.totals;
    assert_eq!((repeats, totals.timeouts, totals.expiries), (3, 3, 4));
    assert_eq!(scene.subflow.end(), Some(SubflowEnd::TimedOut));
}

#[test]
fn syns_are_repeated_with_their_multipath_options_but_for_the_last_that_open_a_connection() {
    // RFC 8684 §3.1, §3.2, §6: answers of a listener, and joins, keep the options.
    for (purpose, state, with_options) in [
        (Purpose::Initial, State::SynSent, 3),
        (Purpose::Initial, State::SynReceived, 7),
        (Purpose::Join, State::SynSent, 7),
        (Purpose::Join, State::SynReceived, 7),
    ] {
        let mut scene = Scene::closed(purpose, state, |_| {});
        scene.subflow.carry_handshake(Some(Box::default()));
        let mut syns = scene.sends();
        while scene.subflow.end().is_none() && syns.len() < 20 {
            scene.waits();
            syns.extend(scene.sends());
        }
        let carrying = syns.iter().filter(|syn| syn.options.control.is_some()).count();
        assert_eq!((syns.len(), carrying), (7, with_options), "{purpose:?} {state:?}");
        let totals = scene.subflow.totals;
        assert_eq!((totals.expiries, totals.syn_retransmissions), (7, 6));
    }
}

#[test]
fn the_third_acknowledgement_of_a_join_is_repeated_as_often_as_a_syn() {
    // RFC 8684 §3.2
    let mut scene = Scene::joining(Purpose::Join, Flags::default(), all_options(), |_| {});
    let mut repeats = 0;
    while scene.subflow.end().is_none() && repeats < 20 {
        scene.waits();
        repeats += usize::from(scene.replies().is_some());
    }
    assert_eq!((repeats, scene.subflow.end()), (6, Some(SubflowEnd::TimedOut)));
}

/// The peer's SYN.
fn syn(scene: &Scene, timestamps: Option<Timestamps>) -> Segment {
    let mut syn = scene.segment(-1, 0, 0);
    syn.header.flags = Flags::SYN;
    syn.options.timestamps = timestamps;
    syn
}

#[test]
fn a_handshake_whose_begin_is_forgotten_gives_no_sample() {
    // RFC 6298 §2.2, RFC 4987 §3.6: the SYN/ACK was a cookie, whose echo is no timestamp.
    for (forgotten, srtt) in [(false, Some(ms(100))), (true, None)] {
        for stamps in [false, true] {
            let purpose = Purpose::Initial;
            let mut scene =
                Scene::closed(purpose, State::SynReceived, |config| config.tcp.timestamps = stamps);
            let stamp = stamps.then_some(Timestamps { value: 9, echo: 0 });
            scene.subflow.handle_syn(scene.now, &syn(&scene, stamp));
            let answer = scene.sends().pop().expect("the SYN/ACK");
            if forgotten {
                scene.subflow.skip_handshake_sample();
            }
            scene.now += ms(100);
            let mut ack = scene.ack(1, &[]);
            ack.options.timestamps =
                answer.options.timestamps.map(|t| Timestamps { value: 9, echo: t.value });
            assert!(scene.takes(ack).established);
            assert_eq!((scene.subflow.view().srtt, scene.cwnd()), (srtt, 10_000));
        }
    }
}

/// A handshake with this many SYNs, a second or more apart, whose answer arrives 80 ms after the
/// last. With timestamps, the answer echoes the SYN with number `echoed`.
fn repeated(
    state: State,
    syns: usize,
    echoed: Option<usize>,
    change: impl FnOnce(&mut ConnectionConfig),
) -> Scene {
    let mut scene = Scene::closed(Purpose::Initial, state, |config| {
        config.tcp.timestamps = echoed.is_some();
        change(config);
    });
    let stamped = |echo| echoed.map(|_| Timestamps { value: 9, echo });
    if state == State::SynReceived {
        scene.subflow.handle_syn(scene.now, &syn(&scene, stamped(0)));
    }
    let mut sent = scene.sends();
    while sent.len() < syns {
        scene.waits();
        sent.extend(scene.sends());
    }
    scene.now += ms(80);
    let mut answer = scene.ack(1, &[]);
    if state == State::SynSent {
        answer.header.seq = PEER_ISS;
        answer.header.flags |= Flags::SYN;
    }
    let echo = echoed.and_then(|number| sent[number].options.timestamps);
    answer.options.timestamps = stamped(echo.map_or(0, |timestamps| timestamps.value));
    assert!(scene.takes(answer).established);
    scene
}

#[test]
fn a_handshake_that_was_sent_again_is_measured_if_its_last_syn_is_echoed() {
    // RFC 6298 §3, §5.7; RFC 7323 §4.1: an older echo may belong to a SYN whose answer was lost.
    for state in [State::SynSent, State::SynReceived] {
        for (syns, echoed, srtt, rto) in [
            (1, None, Some(ms(80)), ms(1000)),
            (2, Some(1), Some(ms(80)), ms(1000)),
            (2, Some(0), None, ms(3000)),
            (2, None, None, ms(3000)),
        ] {
            let subflow = repeated(state, syns, echoed, |_| {}).subflow;
            assert_eq!(
                (subflow.view().srtt, subflow.rtt().rto()),
                (srtt, rto),
                "{state:?} {echoed:?}"
            );
        }
    }
}

#[test]
fn a_subflow_whose_syn_was_lost_begins_with_one_segment() {
    // RFC 5681 §3.1, in segments of 1000 bytes. Some platforms ignore one retransmission.
    for state in [State::SynSent, State::SynReceived] {
        for (forgiven, syns, segments) in [(0, 1, 10), (0, 2, 1), (0, 3, 1), (1, 2, 10), (1, 3, 1)]
        {
            let change = |config: &mut ConnectionConfig| {
                config.platform.lost_syns_forgiven = forgiven;
            };
            let mut scene = repeated(state, syns, None, change);
            assert_eq!(scene.cwnd(), segments * 1000, "{state:?} {forgiven} {syns}");
            // A mapping leaves less room in a segment.
            let mapping = Carries::Mapping { checksum: false, wide: false, wide_ack: false };
            scene.subflow.set_carries(mapping, &[]);
            let mss = u64::from(scene.subflow.mss());
            assert_eq!(scene.cwnd(), segments * mss, "{state:?} {forgiven} {syns}");
        }
    }
}

#[test]
fn a_syn_that_comes_twice_is_no_loss() {
    // RFC 5681 §3.1: no timer expired, although the SYN/ACK was sent twice.
    let mut scene = Scene::closed(Purpose::Initial, State::SynReceived, |_| {});
    scene.subflow.handle_syn(scene.now, &syn(&scene, None));
    assert_eq!(scene.sends().len(), 1);
    scene.takes(syn(&scene, None));
    assert_eq!(scene.sends().len(), 1);
    assert!(scene.takes(scene.ack(1, &[])).established);
    assert_eq!((scene.cwnd(), scene.subflow.rtt().rto()), (10_000, ms(1000)));
}

#[test]
fn the_host_that_closes_last_does_not_linger() {
    // RFC 9293 §3.6
    let mut scene = Scene::open();
    let mut fin = scene.segment(0, 1, 0);
    fin.header.flags |= Flags::FIN;
    scene.takes(fin);
    assert!(scene.subflow.receiver().finished());
    scene.subflow.finish(true);
    assert_eq!(scene.subflow.view().usability, Usability::Closed);
    assert!(scene.replies().is_some_and(|segment| segment.header.flags.contains(Flags::FIN)));
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.end(), Some(SubflowEnd::Finished));
    assert!(!scene.subflow.has_carried_data(), "a FIN is not data");
}

#[test]
fn a_fin_is_not_waited_for_without_end_if_nothing_else_can_come() {
    // RFC 9293 §3.6.1: here the wait lasts as long as TIME-WAIT.
    let mut scene = Scene::open();
    scene.subflow.finish(true);
    assert!(scene.replies().is_some());
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.state(), State::FinWait2);
    assert_eq!(scene.timer(SubflowTimer::TimeWait), Some(Duration::from_secs(60)));
}

#[test]
fn the_wait_for_a_fin_is_limited_once_nothing_else_can_come() {
    // A subflow that was closed alone waits for the peer, which may still send data on it.
    let mut scene = Scene::open();
    scene.subflow.finish(false);
    assert!(scene.replies().is_some());
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.timer(SubflowTimer::TimeWait), None);
    scene.subflow.finish_with_peer(scene.now);
    assert_eq!(scene.timer(SubflowTimer::TimeWait), Some(Duration::from_secs(60)));
}

#[test]
fn a_peer_that_refuses_a_fin_for_lack_of_window_keeps_no_orphan_alive() {
    // RFC 9293 §3.8.6.1: it may keep a connection alive that an application has.
    for orphaned in [true, false] {
        let mut scene = Scene::open();
        scene.write(1);
        let mut refusal = scene.ack(1 + MSS, &[]);
        refusal.header.window = 0;
        scene.takes(refusal.clone());
        scene.subflow.finish(true);
        assert!(scene.replies().is_some_and(|segment| segment.header.flags.contains(Flags::FIN)));
        for _ in 0..30 {
            scene.takes(refusal.clone());
            scene.now = scene.subflow.poll_timeout().min(scene.now + ms(120_000));
            scene.subflow.handle_timeout(scene.now, &[], orphaned);
            scene.sends();
        }
        assert_eq!(scene.subflow.end(), orphaned.then_some(SubflowEnd::TimedOut));
    }
}

#[test]
fn an_unverified_path_has_two_timeouts_to_answer() {
    // RFC 8684 §3.4.2
    let mut scene = Scene::closed(Purpose::Initial, State::SynSent, |_| {});
    scene.subflow.verify_liveness(scene.now);
    assert_eq!(scene.timer(SubflowTimer::Verification), None);
    let mut scene = Scene::open();
    let timeout = scene.subflow.rtt().rto() * 2;
    scene.subflow.verify_liveness(scene.now);
    scene.now += ms(50);
    scene.subflow.verify_liveness(scene.now);
    assert_eq!(scene.timer(SubflowTimer::Verification).map(|left| left + ms(50)), Some(timeout));
}
