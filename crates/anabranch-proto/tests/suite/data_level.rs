//! Data that subflows have delivered and that the peer has not acknowledged. RFC 8684 §3.3.6.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::remedy::{Remedy, RemedyActions, RemedyContext};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::Dss;

use crate::pair::{
    Fate, Pair, both, depends_on_the_platform, is_on, on_any_platform, switch, to_server,
};

/// A connection that has carried data, and on whose `addresses` paths no DATA_ACK comes any more.
fn without_data_acks(config: ConnectionConfig, addresses: u8) -> Pair {
    let (mute, seen) = switch();
    let mut pair = both(config, addresses).with_filter(move |_, segment| {
        if seen.get() && !to_server(segment) {
            segment.options.dss = Some(Dss::default());
        }
        Fate::Deliver
    });
    pair.upload(10_000, 1_000);
    pair.run_ms(1_000);
    mute.set(true);
    pair.client_events.clear();
    pair
}

/// When segments come from the client, in milliseconds from now on: how many bytes, and is it on
/// path 1?
fn watch(pair: &mut Pair, for_ms: u64) -> Vec<(u64, usize, bool)> {
    let mut seen = Vec::new();
    for at in 1..=for_ms {
        let before = pair.log.len();
        pair.run_ms(1);
        let new = pair.log[before..].iter().filter(|s| to_server(s));
        seen.extend(new.map(|s| (at, s.payload.len(), is_on(s, 1))));
    }
    seen
}

/// After so many milliseconds each, twice the retransmission timeout of 200 + 20 ms at first, then
/// twice as much each time, but a minute at most.
fn doubling_pauses(count: usize) -> Vec<u64> {
    let pauses = (0..count).map(|n| (440 << n).min(60_000));
    pauses
        .scan(0, |at, pause| {
            *at += pause;
            Some(*at)
        })
        .collect()
}

#[test]
fn data_goes_out_again_elsewhere_and_then_anywhere_at_pauses_that_double_until_it_is_given_up() {
    depends_on_the_platform("the lengths of the timeouts");
    let mut config = on_any_platform();
    config.tcp.retries = 10;
    let mut pair = without_data_acks(config, 2);
    pair.write(0, 11_000);
    let sent = watch(&mut pair, 292_000);
    let expected: Vec<_> =
        doubling_pauses(10).into_iter().enumerate().map(|(n, at)| (at, 1000, n == 0)).collect();
    assert_eq!(sent, expected);
    let again = pair.client.subflow_stats(pair.connection).map(|stats| stats.bytes_reinjected);
    assert!(again.eq([9_000, 1_000]));
    assert_eq!(pair.client_events, []);
    pair.run_ms(1_000);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn the_oldest_data_goes_out_again_elsewhere_although_newer_is_under_way() {
    depends_on_the_platform("the lengths of the timeouts");
    let mut pair = without_data_acks(on_any_platform(), 2);
    for n in 1..=500 {
        pair.write(0, 10_000 + 100 * n);
        pair.run_ms(1);
    }
    assert!(pair.client.subflow_stats(pair.connection).any(|stats| stats.view.bytes_in_flight > 0));
    assert_eq!(pair.client.counters().data_level_retransmits, 1);
}

#[test]
fn after_half_an_hour_without_a_data_ack_the_connection_is_given_up_whatever_is_configured() {
    let mut config = on_any_platform();
    config.tcp.retries = 1_000;
    let mut pair = without_data_acks(config, 2);
    for minute in 0..30 {
        assert_eq!(pair.client_events, [], "minute {minute}");
        pair.write(0, 11_000 + 1_000 * minute);
        pair.run_ms(60_000);
    }
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn on_the_only_subflow_the_peer_is_asked_for_its_data_ack_before_data_goes_out_again() {
    depends_on_the_platform("the lengths of the timeouts");
    let mut pair = without_data_acks(on_any_platform(), 1);
    pair.write(0, 11_000);
    let sent = watch(&mut pair, 56_000);
    let pauses = doubling_pauses(7);
    let asked = pauses[..2].iter().map(|at| (*at, 0, false));
    let mut expected: Vec<_> = pauses[1..].iter().map(|at| (*at, 1000, false)).collect();
    expected.extend(asked);
    expected.sort();
    assert_eq!(sent, expected);
}

/// The client has sent 6,000 bytes, each in a segment of its own, to a server that acknowledges
/// them to TCP and forgets all after the first 2,500, as long as the switch is on: their mappings
/// say what it has already.
fn to_a_forgetful_receiver(remedies: fn() -> Vec<Box<dyn Remedy>>) -> (Pair, Rc<Cell<bool>>) {
    let mut config = on_any_platform().receive_buffer(100_000).remedies(remedies);
    config.tcp.nagle = false;
    let (forgets, seen) = switch();
    let mut first = None;
    let mut pair = both(config, 1).with_filter(move |_, segment| {
        let mapping = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut());
        if let Some(mapping) = mapping.filter(|mapping| mapping.len > 0) {
            let number = *first.get_or_insert(mapping.data_seq);
            if seen.get() {
                (mapping.data_seq, mapping.len) = (number, segment.payload.len() as u16);
            }
        }
        Fate::Deliver
    });
    for n in 1..=6_000 {
        pair.write(0, n);
        if n % 10 == 0 {
            pair.run_ms(1);
        }
        if n == 2_500 {
            pair.run_ms(50);
            forgets.set(true);
        }
    }
    pair.run_ms(50);
    (pair, forgets)
}

#[test]
fn a_receiver_that_dropped_what_it_acknowledged_to_tcp_gets_it_again_ever_more_at_a_time() {
    depends_on_the_platform("the lengths of the timeouts");
    let (mut pair, forgets) = to_a_forgetful_receiver(Vec::new);
    assert_eq!((pair.received[1], pair.client.counters().data_level_retransmits), (2_500, 0));
    forgets.set(false);
    pair.run_ms(3_000);
    assert_eq!(pair.received[1], 6_000);
    assert_eq!(pair.client.counters().data_level_retransmits, 3_500);
}

#[test]
fn timeouts_while_a_subflow_still_carries_data_do_not_count_against_the_peer() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let (mut pair, forgets) = to_a_forgetful_receiver(Vec::new);
    // Twelve minutes are sixteen timeouts, at each of which a segment is under way.
    for n in 0..12 * 60 * 50 {
        pair.write(0, 6_001 + n);
        pair.run_ms(20);
    }
    forgets.set(false);
    pair.run_ms(300_000);
    assert_eq!(pair.received[1], pair.written[0]);
}

/// Is not to be asked.
#[derive(Debug)]
struct Idle;

impl Remedy for Idle {
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        panic!("one subflow holds up nobody");
    }
}

#[test]
fn remedies_are_not_asked_about_a_single_subflow_that_the_window_of_the_connection_holds_up() {
    // What the receiver forgets it has acknowledged to TCP: the subflow's own window is open.
    let (mut pair, forgets) = to_a_forgetful_receiver(|| vec![Box::new(Idle)]);
    pair.write(0, 200_000);
    pair.run_ms(200);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("it is open");
    assert!(stats.window_room < 1_432 && stats.unsent_bytes > 50_000, "{stats:?}");
    assert!(pair.client.subflow_stats(pair.connection).all(|stats| stats.view.can_send()));
    forgets.set(false);
    pair.run_ms(10_000);
    assert_eq!(pair.received[1], 200_000);
}
