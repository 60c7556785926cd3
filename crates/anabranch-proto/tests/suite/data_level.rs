//! Data that subflows have delivered but the peer has not DATA_ACKed. RFC 8684 §3.3.6.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::remedy::{Remedy, RemedyActions, RemedyContext};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::Dss;

use crate::pair::{
    Fate, Pair, both, depends_on_the_platform, is_on, on_any_platform, switch, to_server,
};

/// A connection that has carried data over `addresses` paths. From now on, no DATA_ACK arrives.
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

/// The client's segments of the next `for_ms` milliseconds: time from now in milliseconds, payload
/// bytes, and whether the segment is on path 1.
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

/// Times of data-level timeouts in milliseconds. The first interval is twice the retransmission
/// timeout of 200 + 20 ms. Each further interval doubles, up to a minute.
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
fn data_is_reinjected_on_another_subflow_then_on_any_at_doubling_intervals_until_failure() {
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
fn the_oldest_data_is_reinjected_on_another_subflow_although_newer_data_is_in_flight() {
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
fn after_half_an_hour_without_a_data_ack_the_connection_fails_whatever_the_configuration() {
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
fn a_sole_subflow_probes_for_a_data_ack_before_data_is_sent_again() {
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

/// The client has sent 6,000 bytes, each in its own segment. While the switch is on, the server
/// acknowledges them at the TCP level only and loses all after the first 2,500: the filter changes
/// their mappings to data that the server already has.
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
fn data_that_the_receiver_lost_after_a_tcp_acknowledgement_is_resent_in_growing_amounts() {
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
    // Twelve minutes contain sixteen timeouts. At each of them a segment is in flight.
    for n in 0..12 * 60 * 50 {
        pair.write(0, 6_001 + n);
        pair.run_ms(20);
    }
    forgets.set(false);
    pair.run_ms(300_000);
    assert_eq!(pair.received[1], pair.written[0]);
}

/// Must not be asked.
#[derive(Debug)]
struct Idle;

impl Remedy for Idle {
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        panic!("a sole subflow cannot block others");
    }
}

#[test]
fn remedies_are_not_asked_if_the_connections_window_blocks_a_sole_subflow() {
    // The receiver acknowledges the lost data at the TCP level, so the subflow's own window is
    // open.
    let (mut pair, forgets) = to_a_forgetful_receiver(|| vec![Box::new(Idle)]);
    pair.write(0, 200_000);
    pair.run_ms(200);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("it is open");
    assert!(stats.available_window < 1_432 && stats.unsent_bytes > 50_000, "{stats:?}");
    assert!(pair.client.subflow_stats(pair.connection).all(|stats| stats.view.can_send()));
    forgets.set(false);
    pair.run_ms(10_000);
    assert_eq!(pair.received[1], 200_000);
}
