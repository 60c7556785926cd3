//! How a subflow begins and ends.

use super::*;

#[test]
fn a_subflow_is_given_up_after_as_many_repeats_as_configured() {
    // RFC 9293 §3.8.3
    let mut scene = Scene::open_to(all_options(), |tcp| (tcp.retries, tcp.sack) = (3, false));
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
    // RFC 8684 §3.1, §3.2, §6: a listener's answers and joins keep them.
    for (purpose, state, with_options) in [
        (Purpose::Initial, State::SynSent, 3),
        (Purpose::Initial, State::SynReceived, 7),
        (Purpose::Join, State::SynSent, 7),
        (Purpose::Join, State::SynReceived, 7),
    ] {
        let mut scene = Scene::closed(purpose, state, |_| {});
        scene.subflow.handshake_options = Some(Box::default());
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

#[test]
fn a_handshake_whose_begin_is_forgotten_gives_no_sample() {
    // RFC 6298 §2.2, RFC 4987 §3.6: the SYN/ACK was a cookie.
    for (forgotten, srtt) in [(false, Some(ms(100))), (true, None)] {
        let mut scene = Scene::closed(Purpose::Initial, State::SynReceived, |_| {});
        let mut syn = scene.segment(-1, 0, 0);
        syn.header.flags = Flags::SYN;
        scene.subflow.take_syn(scene.now, &syn);
        assert_eq!(scene.sends().len(), 1);
        if forgotten {
            scene.subflow.take_no_sample_of_handshake();
        }
        scene.now += ms(100);
        assert!(scene.takes(scene.ack(1, &[])).established);
        assert_eq!(scene.subflow.view().srtt, srtt);
    }
}

/// A handshake in which every SYN but the last of `syns`, a second or more apart, gets no answer,
/// and the last one gets it 80 ms later; with timestamps it answers the SYN with number `answered`.
fn repeated(
    state: State,
    syns: usize,
    answered: Option<usize>,
    change: impl FnOnce(&mut TcpConfig),
) -> Scene {
    let mut scene = Scene::closed(Purpose::Initial, state, |tcp| {
        tcp.timestamps = answered.is_some();
        change(tcp);
    });
    let stamped = |echo| answered.map(|_| Timestamps { value: 9, echo });
    if state == State::SynReceived {
        let mut syn = scene.segment(-1, 0, 0);
        syn.header.flags = Flags::SYN;
        syn.options.timestamps = stamped(0);
        scene.subflow.take_syn(scene.now, &syn);
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
    let echo = answered.and_then(|number| sent[number].options.timestamps);
    answer.options.timestamps = stamped(echo.map_or(0, |timestamps| timestamps.value));
    assert!(scene.takes(answer).established);
    scene
}

#[test]
fn a_handshake_that_was_sent_again_is_measured_by_its_timestamps() {
    // RFC 6298 §3, §5.7; RFC 7323 §4.1: 80 ms, or 1000 ms more if the first SYN was answered.
    for state in [State::SynSent, State::SynReceived] {
        for (answered, srtt, rto) in [
            (Some(1), Some(ms(80)), ms(1000)),
            (Some(0), Some(ms(1080)), ms(1080 + 4 * 540)),
            (None, None, ms(3000)),
        ] {
            let subflow = repeated(state, 2, answered, |_| {}).subflow;
            assert_eq!((subflow.view().srtt, subflow.rto()), (srtt, rto), "{state:?}");
        }
    }
}

#[test]
fn a_subflow_whose_syn_was_lost_begins_with_one_segment() {
    // RFC 5681 §3.1, in segments of 1000 octets: not if the SYN was late only; Linux forgives one.
    for state in [State::SynSent, State::SynReceived] {
        for (profile, syns, answered, cwnd) in [
            (Profile::Rfc, 1, Some(0), 10_000),
            (Profile::Rfc, 2, Some(1), 1_000),
            (Profile::Rfc, 2, Some(0), 10_000),
            (Profile::Rfc, 2, None, 1_000),
            (Profile::Linux, 2, Some(1), 10_000),
            (Profile::Linux, 3, Some(2), 1_000),
            (Profile::Linux, 3, Some(1), 10_000),
        ] {
            let scene = repeated(state, syns, answered, |tcp| tcp.profile = profile);
            assert_eq!(scene.cwnd(), cwnd, "{state:?} {profile:?} {syns} {answered:?}");
        }
    }
}

#[test]
fn the_host_that_closes_last_does_not_linger() {
    // RFC 9293 §3.6
    let mut scene = Scene::open();
    let mut fin = scene.segment(0, 1, 0);
    fin.header.flags |= Flags::FIN;
    scene.takes(fin);
    assert!(scene.subflow.peer_finished());
    scene.subflow.finish(true);
    assert_eq!(scene.subflow.view().usability, Usability::Closed);
    assert!(scene.replies().is_some_and(|segment| segment.header.flags.contains(Flags::FIN)));
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.end(), Some(SubflowEnd::Finished));
    assert!(!scene.subflow.has_carried_data(), "a FIN is no data");
}

#[test]
fn a_fin_is_not_waited_for_without_end_if_nothing_else_can_come() {
    // RFC 9293 §3.6.1: here for as long as in TIME-WAIT.
    let mut scene = Scene::open();
    scene.subflow.finish(true);
    assert!(scene.replies().is_some());
    scene.takes(scene.ack(2, &[]));
    assert_eq!(scene.subflow.state(), State::FinWait2);
    assert_eq!(scene.timer(Timer::TimeWait), Some(Duration::from_secs(60)));
}

#[test]
fn a_path_in_doubt_has_two_timeouts_to_answer() {
    // RFC 8684 §3.4.2
    let mut scene = Scene::closed(Purpose::Initial, State::SynSent, |_| {});
    scene.subflow.doubt(scene.now);
    assert_eq!(scene.timer(Timer::Doubt), None);
    let mut scene = Scene::open();
    let patience = scene.subflow.rto() * 2;
    scene.subflow.doubt(scene.now);
    scene.now += ms(50);
    scene.subflow.doubt(scene.now);
    assert_eq!(scene.timer(Timer::Doubt).map(|left| left + ms(50)), Some(patience));
}
