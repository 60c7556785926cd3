//! Further subflows. RFC 8684 §3.2.

use anabranch_proto::Event;
use anabranch_wire::mptcp::{MpJoin, ResetReason};
use anabranch_wire::{Flags, Segment};

use crate::pair::{Fate, Pair, client_address, is_rst, ms, on_any_platform};

fn join(segment: &Segment) -> Option<MpJoin> {
    segment.options.control.as_ref()?.join
}

fn default_pair(addresses: u8) -> Pair {
    Pair::new(addresses, on_any_platform(), on_any_platform())
}

#[test]
fn a_client_with_three_addresses_uses_three_subflows_both_ways() {
    // RFC 8684 §3.9.1
    for upload in [true, false] {
        let mut pair = default_pair(3);
        if upload {
            pair.upload(3_000_000, 20_000);
        } else {
            pair.download(3_000_000, 20_000);
        }
        assert_eq!(pair.received[usize::from(upload)], 3_000_000);
        for n in 0..3 {
            let address = client_address(n);
            let data = pair.segments(|s| {
                (s.source.address == address || s.destination.address == address)
                    && !s.payload.is_empty()
            });
            assert!(data > 100, "address {n} carried {data} segments");
        }
        assert_eq!(pair.segments(is_rst), 0);
    }
}

#[test]
fn no_data_is_sent_on_a_join_before_the_fourth_ack() {
    // RFC 8684 §3.2
    let mut pair = default_pair(2).with_slow_path(0, ms(40));
    pair.upload(2_000_000, 10_000);
    let joined = |s: &Segment| s.source.address == client_address(1);
    let third = pair.log.iter().position(|s| matches!(join(s), Some(MpJoin::Ack { .. })));
    let first_data = pair.log.iter().position(|s| joined(s) && !s.payload.is_empty());
    let fourth = pair.log.iter().position(|s| {
        s.destination.address == client_address(1) && !s.header.flags.contains(Flags::SYN)
    });
    let steps = [third, fourth, first_data];
    assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{steps:?}");
}

#[test]
fn a_third_ack_that_is_acknowledged_in_time_is_not_repeated() {
    // RFC 8684 §3.2
    let mut pair = default_pair(2);
    pair.settle(2_000);
    assert_eq!(pair.segments(|s| matches!(join(s), Some(MpJoin::Ack { .. }))), 1);
}

#[test]
fn each_lost_join_segment_is_recovered() {
    for lost in 0..4 {
        let mut seen = 0;
        let mut pair = default_pair(2).with_filter(move |_, segment| {
            let on_join =
                [segment.source.address, segment.destination.address].contains(&client_address(1));
            seen += u64::from(on_join);
            if on_join && seen == lost + 1 { Fate::Drop } else { Fate::Deliver }
        });
        pair.download(1_000, 1_000);
        pair.run_ms(5_000);
        let established =
            |events: &[Event]| events.iter().any(|e| matches!(e, Event::SubflowEstablished(_)));
        assert!(established(&pair.client_events), "segment {lost} lost: client");
        assert!(established(&pair.server_events), "segment {lost} lost: server");
    }
}

#[test]
fn a_wrong_hmac_resets_the_subflow_and_leaves_the_connection_alone() {
    // RFC 8684 §3.2
    for in_ack in [false, true] {
        let mut pair = default_pair(2).with_filter(move |_, segment| {
            if let Some(control) = &mut segment.options.control {
                match &mut control.join {
                    Some(MpJoin::SynAck { truncated_hmac, .. }) if !in_ack => *truncated_hmac ^= 1,
                    Some(MpJoin::Ack { hmac }) if in_ack => hmac[19] ^= 0x80,
                    _ => {}
                }
            }
            Fate::Deliver
        });
        pair.download(500_000, 3_000);
        assert_eq!(pair.received[0], 500_000);
        assert!(pair.segments(is_rst) > 0);
        let counters = (
            pair.client.counters().join_syn_ack_hmac_failure,
            pair.server.counters().join_ack_hmac_failure,
        );
        assert!(if in_ack { counters.1 > 0 } else { counters.0 > 0 }, "{counters:?}");
    }
}

#[test]
fn an_unknown_token_is_answered_with_reset() {
    // RFC 8684 §3.2
    let mut pair = default_pair(2).with_filter(|_, segment| {
        if let Some(control) = &mut segment.options.control
            && let Some(MpJoin::Syn { token, .. }) = &mut control.join
        {
            *token ^= 1;
        }
        Fate::Deliver
    });
    pair.download(100_000, 2_000);
    assert_eq!(pair.received[0], 100_000);
    assert!(pair.server.counters().join_no_token_found > 0);
    assert!(
        pair.log.iter().any(|s| is_rst(s)
            && s.options.control.as_ref().is_some_and(|control| control.reset.is_some()))
    );
}

#[test]
fn a_join_segment_without_its_option_costs_only_that_subflow() {
    // RFC 8684 §3.7: a joined subflow never falls back.
    for step in 0..3 {
        let mut pair = default_pair(2).with_filter(move |_, segment| {
            let strip = match join(segment) {
                Some(MpJoin::Syn { .. }) => step == 0,
                Some(MpJoin::SynAck { .. }) => step == 1,
                Some(MpJoin::Ack { .. }) => step == 2,
                None => false,
            };
            if strip {
                segment.options.control = None;
            }
            Fate::Deliver
        });
        pair.download(500_000, 5_000);
        assert_eq!(pair.received[0], 500_000, "step {step}");
    }
}

#[test]
fn the_opening_of_a_connection_and_of_a_subflow_is_reported_and_counted_once_at_each_end() {
    let mut pair = Pair::new(2, on_any_platform(), on_any_platform());
    pair.upload(300_000, 5_000);
    pair.download(300_000, 5_000);
    for events in [&pair.client_events, &pair.server_events] {
        let told = events.iter().filter(|e| matches!(e, Event::SubflowEstablished(_))).count();
        assert_eq!(told, 1, "an event for the join, but not for the first subflow");
    }
    let (client, server) = (pair.client.counters(), pair.server.counters());
    assert_eq!((server.mp_capable_syn_rx, client.mp_capable_syn_ack_rx), (1, 1));
    assert_eq!((server.mp_capable_ack_rx, server.passive_opens), (1, 2));
    assert_eq!((server.join_syn_rx, client.join_syn_ack_rx, server.join_ack_rx), (1, 1, 1));
}

#[test]
fn a_join_beyond_max_subflows_is_refused_for_lack_of_resources() {
    // RFC 8684 §3.6: the other subflows are open by then.
    let server = on_any_platform().max_subflows(2);
    let mut pair = Pair::new(3, on_any_platform(), server).with_slow_path(2, ms(50));
    pair.upload(10_000, 1_000);
    pair.run_ms(500);
    let answer = pair.last(|s| s.destination.address == client_address(2));
    let reset = answer.options.control.as_ref().and_then(|control| control.reset);
    assert!(is_rst(&answer));
    assert_eq!(reset.map(|reset| reset.reason), Some(ResetReason::LACK_OF_RESOURCES));
}
