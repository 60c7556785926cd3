//! The abrupt close of a whole connection. RFC 8684 §3.5.

use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::MpFastclose;
use anabranch_wire::{Flags, Segment};

use crate::pair::{Fate, Pair, client_address, is_rst, is_syn, on_any_platform};

fn two_paths() -> Pair {
    Pair::new(2, on_any_platform(), on_any_platform())
}

fn fastclose(segment: &mut Segment) -> Option<&mut MpFastclose> {
    segment.options.control.as_mut()?.fastclose.as_mut()
}

fn failed(events: &[Event]) -> Option<ConnectionError> {
    events.iter().find_map(|event| match event {
        Event::Failed(error) => Some(*error),
        _ => None,
    })
}

fn subflows_closed(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::SubflowClosed(_))).count()
}

/// Both subflows carry data, and then the client aborts.
fn abort(mut pair: Pair) -> Pair {
    pair.upload(500_000, 5_000);
    pair.client.abort(pair.connection);
    pair.run_ms(500);
    assert_eq!(failed(&pair.client_events), Some(ConnectionError::Aborted));
    pair
}

#[test]
fn a_single_mp_fastclose_reset_ends_the_connection_on_all_subflows() {
    let pair = abort(two_paths().with_filter(|_, segment| {
        let on_second = segment.source.address == client_address(1);
        if is_rst(segment) && on_second { Fate::Drop } else { Fate::Deliver }
    }));
    assert_eq!(failed(&pair.server_events), Some(ConnectionError::Reset));
    assert_eq!(subflows_closed(&pair.server_events), 2);
    assert_eq!(pair.client.counters().mp_fastclose_tx, 2);
    assert_eq!(pair.server.counters().mp_fastclose_rx, 1);
}

#[test]
fn mp_fastclose_on_an_ack_is_answered_with_resets() {
    let pair = abort(two_paths().with_filter(|_, segment| {
        if fastclose(segment).is_none() {
            return Fate::Deliver;
        }
        if segment.source.address == client_address(1) {
            return Fate::Drop;
        }
        segment.header.flags = Flags::ACK;
        Fate::Deliver
    }));
    assert_eq!(failed(&pair.server_events), Some(ConnectionError::Reset));
    assert_eq!(pair.server.counters().mp_fastclose_rx, 1);
    let from_server = |segment: &Segment| segment.destination.address == client_address(0);
    assert!(pair.segments(|segment| is_rst(segment) && from_server(segment)) >= 1);
}

#[test]
fn a_reset_with_a_wrong_key_resets_only_its_subflow() {
    let pair = abort(two_paths().with_filter(|_, segment| {
        let on_second = segment.source.address == client_address(1);
        let Some(fastclose) = fastclose(segment) else { return Fate::Deliver };
        fastclose.receiver_key ^= 1;
        if on_second { Fate::Drop } else { Fate::Deliver }
    }));
    assert_eq!(failed(&pair.server_events), None);
    assert!(subflows_closed(&pair.server_events) >= 1);
    assert_eq!(pair.server.counters().mp_fastclose_rx, 0);
}

/// RFC 8684 §3.5: the key is for the peer only. Knowing a token is not enough.
#[test]
fn mp_fastclose_is_not_sent_to_an_unauthenticated_host() {
    let mut pair = two_paths().with_filter(|_, segment| {
        // The third ACK of the join is always lost.
        let from_second = segment.source.address == client_address(1);
        if from_second && !is_syn(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(50_000, 300);
    pair.server.abort(pair.accepted.expect("it was accepted"));
    pair.run_ms(100);
    let to_second = |segment: &Segment| segment.destination.address == client_address(1);
    let told = |segment: &Segment| {
        segment.options.control.as_ref().is_some_and(|control| control.fastclose.is_some())
    };
    assert!(pair.segments(|segment| told(segment) && !to_second(segment)) >= 1);
    assert_eq!(pair.segments(|segment| told(segment) && to_second(segment)), 0);
}
