//! Paths that drop Multipath TCP options. RFC 8684 §3.7.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::remedy::BufferAutotuning;
use anabranch_proto::{Event, Fallback, SubflowStats};
use anabranch_wire::mptcp::{Control, Dss, Mapping, MpPrio, ResetReason, WideOrNarrow};
use anabranch_wire::{Flags, Payload, Segment, SeqNumber};
use proptest::prelude::*;

use crate::pair::{
    Fate, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn, ms,
    on_any_platform, strip, switch, to_server,
};

/// Direction in which options are stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Both,
}

impl Way {
    const ALL: [Way; 3] = [Way::Up, Way::Down, Way::Both];

    fn applies_to(self, segment: &Segment) -> bool {
        match self {
            Way::Up => to_server(segment),
            Way::Down => !to_server(segment),
            Way::Both => true,
        }
    }
}

fn config(dss_checksum: bool) -> ConnectionConfig {
    on_any_platform().dss_checksum(dss_checksum).late_fallback(true)
}

fn careful(dss_checksum: bool) -> ConnectionConfig {
    on_any_platform().dss_checksum(dss_checksum)
}

fn both(addresses: u8, checksum: bool) -> Pair {
    Pair::new(addresses, config(checksum), config(checksum))
}

/// Strip the options of segments on path `path` in direction `way` that satisfy `counts`, except
/// for the first `spared` of them.
fn stripping(
    pair: Pair,
    path: u8,
    way: Way,
    spared: usize,
    counts: impl Fn(&Segment) -> bool + 'static,
) -> Pair {
    let mut seen = 0;
    pair.with_filter(move |_, segment| {
        if is_on(segment, path) && way.applies_to(segment) && counts(segment) {
            seen += 1;
            if seen > spared {
                strip(segment);
            }
        }
        Fate::Deliver
    })
}

/// Two hosts, and a switch that makes the paths strip the options of the server's segments.
fn stripping_downlink(addresses: u8) -> (Pair, Rc<Cell<bool>>) {
    let (spoilt, spoil) = switch();
    let pair = Pair::new(addresses, careful(false), careful(false));
    let pair = pair.with_filter(move |_, segment| {
        if spoilt.get() && !to_server(segment) {
            strip(segment);
        }
        Fate::Deliver
    });
    (pair, spoil)
}

/// Send data in both directions and close. All bytes arrive unchanged.
fn exchange(pair: &mut Pair, case: &str) {
    for _ in 0..3 {
        pair.upload(100_000, 60_000);
        pair.download(100_000, 60_000);
    }
    let [up, down] = pair.written;
    assert_eq!(pair.received, [down, up], "{case}");
    pair.close_both();
    pair.run_ms(5_000);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::Closed), "{case}: {events:?}");
    }
}

fn fell_back(pair: &Pair) -> [bool; 2] {
    [&pair.client_events, &pair.server_events].map(|events| events.contains(&Event::FellBack))
}

fn is_infinite(segment: &Segment) -> bool {
    segment.options.dss.and_then(|dss| dss.mapping).is_some_and(|mapping| mapping.len == 0)
}

/// Reasons of client and server for the fallback: the first data or its acknowledgement without
/// options, missing options later, an infinite mapping of the peer. The last number is 1 if the
/// host sends MP_FAIL.
fn noticed(pair: &Pair) -> [[u64; 4]; 2] {
    [&pair.client, &pair.server].map(|host| {
        let counts = host.counters();
        [
            counts.mp_capable_data_fallback,
            counts.dss_fallback,
            counts.infinite_map_rx,
            counts.mp_fail_tx.min(1),
        ]
    })
}

fn reset_reason(segment: &Segment) -> Option<ResetReason> {
    Some(segment.options.control.as_ref()?.reset?.reason)
}

#[test]
fn options_stripped_from_one_segment_of_the_handshake_lead_to_tcp() {
    // RFC 8684 §3.7: the SYN, the SYN/ACK, or the third ACK with all data that repeats the keys.
    for checksum in [false, true] {
        for step in 0..3 {
            let mut pair = both(2, checksum).with_filter(move |n, segment| {
                let keys = segment.options.control.as_ref().is_some_and(|c| c.capable.is_some());
                if n == step || (step == 2 && n > 2 && keys) {
                    strip(segment);
                }
                Fate::Deliver
            });
            let case = format!("step {step}, checksum {checksum}");
            exchange(&mut pair, &case);
            assert!(fell_back(&pair)[0], "{case}");
            assert_eq!(pair.segments(is_rst), 0, "{case}");
        }
    }
}

#[test]
fn options_that_pass_only_in_the_handshake_lead_to_tcp_without_a_reset() {
    // RFC 8684 §3.7: options are stripped in one direction or both, and the client or the server
    // sends first.
    let ways = Way::ALL.into_iter().flat_map(|way| [(way, false), (way, true)]);
    for ((way, server_first), late) in ways.flat_map(|case| [(case, false), (case, true)]) {
        // The SYN and the third ACK pass, or the SYN/ACK, or all three.
        let spared = if way == Way::Up { 2 } else { 1 };
        let spared = if way == Way::Both { 3 } else { spared };
        let pair = if late { both(1, false) } else { Pair::new(1, careful(false), careful(false)) };
        let mut pair = stripping(pair, 0, way, spared, |_| true);
        let case = format!("{way:?}, server first: {server_first}, late fallback: {late}");
        pair.run_ms(50);
        if server_first {
            pair.download(20_000, 10_000);
            pair.upload(20_000, 10_000);
        } else {
            pair.upload(20_000, 10_000);
            pair.download(20_000, 10_000);
        }
        assert_eq!(pair.received, [20_000; 2], "{case}");
        assert_eq!(fell_back(&pair), [true; 2], "{case}");
        assert_eq!(pair.segments(is_rst), 0, "{case}");
        // A host that receives no options detects this. It sends MP_FAIL if it received data
        // without options.
        let expected = |strips: bool, gets_data: bool| {
            if strips { [1, 1, 0, u64::from(gets_data)] } else { [0, 0, 1, 0] }
        };
        let client = expected(way != Way::Up, server_first);
        assert_eq!(noticed(&pair), [client, expected(way != Way::Down, !server_first)], "{case}");
        pair.close_both();
        pair.run_ms(1_000);
        assert!(pair.client_events.contains(&Event::Closed), "{case}");
        assert!(pair.server_events.contains(&Event::Closed), "{case}");
    }
}

#[test]
fn a_fallback_is_announced_by_an_infinite_mapping_until_it_is_acknowledged() {
    // RFC 8684 §3.7: only the client receives no options. It announces the fallback.
    let mut pair = stripping(both(1, false), 0, Way::Down, 1, |_| true);
    pair.upload(200_000, 10_000);
    assert_eq!(pair.received[1], 200_000);
    let infinite = pair.segments(|s| to_server(s) && is_infinite(s));
    assert!((1..=20).contains(&infinite), "{infinite} segments announced it");
    assert_eq!(pair.client.counters().infinite_map_tx, 1);
    assert_eq!(pair.server.counters().infinite_map_rx, 1);
    let last = pair.log.iter().rposition(is_infinite).expect("there is one");
    assert!(pair.log[last..].iter().skip(1).all(|s| s.options.dss.is_none() || !to_server(s)));
    let announced = pair.log.iter().find(|s| is_infinite(s)).expect("there is one");
    let dss = announced.options.dss.expect("just seen");
    assert_eq!(dss.data_ack, None, "no DATA_ACK after the fallback");
}

#[test]
fn options_that_vanish_later_on_a_sole_subflow_lead_to_tcp() {
    // If all data was sent in order on a sole subflow, data without a mapping still has a known
    // place. Both peers detect the loss of options.
    for (way, checksum) in Way::ALL.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        for spared in [5, 20, 63, 150] {
            let mut pair = stripping(both(1, checksum), 0, way, spared, |_| true);
            let case = format!("{way:?} after {spared} segments, checksum {checksum}");
            exchange(&mut pair, &case);
            assert_eq!(fell_back(&pair), [true; 2], "{case}");
            assert_eq!(pair.segments(is_rst), 0, "{case}");
        }
    }
}

#[test]
fn payload_without_a_mapping_after_a_data_ack_resets_a_sole_subflow() {
    // RFC 8684 §3.7: the peer may not have detected it, and might send the same bytes again.
    for (checksum, spared) in [(false, 40), (true, 40), (false, 10), (true, 10)] {
        let pair = Pair::new(1, careful(checksum), careful(checksum));
        let mut pair = stripping(pair, 0, Way::Both, spared, |_| true);
        pair.upload(100_000, 5_000);
        let reset = pair.log.iter().find(|s| is_rst(s)).expect("a reset");
        assert!(!to_server(reset), "the receiver sends the reset");
        let read = pair.received[1];
        assert!((1..100_000).contains(&read), "{read} bytes were read");
        pair.run_ms(70_000);
        assert_eq!(pair.received[1], read);
        let failed = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Failed(_)));
        assert!(failed(&pair.server_events) && failed(&pair.client_events));
    }
}

#[test]
fn payload_without_a_mapping_after_the_data_of_mp_capable_leads_to_tcp() {
    // RFC 8684 §3.7: options passed in the handshake, and the first data is part of it. Either the
    // client receives a DATA_ACK of this data or it does not. No DSS ever reaches the server.
    for late_fallback in [false, true] {
        for (way, spared) in [(Way::Up, 1), (Way::Both, 2)] {
            let config = careful(false).late_fallback(late_fallback);
            let mut pair = Pair::new(1, config.clone(), config);
            pair.write(0, 500);
            let mut pair = stripping(pair, 0, way, spared, |_| true);
            let case = format!("{way:?} after {spared} segments, late fallback {late_fallback}");
            exchange(&mut pair, &case);
            assert_eq!(fell_back(&pair), [true; 2], "{case}");
            assert_eq!(pair.segments(is_rst), 0, "{case}");
        }
    }
}

#[test]
fn an_acknowledgement_without_options_after_the_data_of_mp_capable_changes_nothing() {
    // RFC 8684 §3.3.2: a segment carries no DATA_ACK if the DATA_ACK has not changed. Here the
    // server has sent no data to acknowledge.
    for late_fallback in [false, true] {
        let config = careful(false).late_fallback(late_fallback);
        let mut pair = Pair::new(1, config.clone(), config);
        pair.write(0, 500);
        pair.run_ms(100);
        let id = pair.accepted.expect("accepted");
        for window in [100, 200] {
            let mut bare = pair.last(|s| to_server(s) && !is_syn(s));
            strip(&mut bare);
            bare.header.seq = bare.header.seq + bare.payload.len() as u32;
            bare.header.window = window;
            bare.payload = Payload::EMPTY;
            pair.server.handle_segment(pair.now, bare);
            pair.drain();
        }
        exchange(&mut pair, "after two bare segments");
        assert_eq!((fell_back(&pair), pair.segments(is_rst)), ([false; 2], 0));
        let stats = pair.server.connection_stats(pair.now, id);
        assert!(stats.is_none_or(|stats| stats.is_mptcp));
    }
}

#[test]
fn data_acknowledged_without_a_data_ack_leads_to_tcp_even_after_the_data_of_mp_capable() {
    // RFC 8684 §3.7: the server has received no DATA_ACK when its first data is acknowledged.
    for late_fallback in [false, true] {
        let config = careful(false).late_fallback(late_fallback);
        let mut pair = Pair::new(1, config.clone(), config);
        pair.write(0, 500);
        let mut pair = stripping(pair, 0, Way::Up, 0, |s| s.payload.is_empty() && !is_syn(s));
        pair.run_ms(50);
        pair.download(1_000, 5_000);
        exchange(&mut pair, "acknowledgements lose their options");
        assert_eq!((fell_back(&pair), pair.segments(is_rst)), ([true; 2], 0));
    }
}

#[test]
fn a_fin_without_options_on_a_new_join_is_no_data_without_a_mapping() {
    // RFC 8684 §3.3.3: a FIN concerns only its subflow. The client closes the join in order.
    let mut pair = Pair::new(2, careful(false), careful(false));
    pair.settle(200);
    let mut fin = pair.last(|s| to_server(s) && is_on(s, 1));
    strip(&mut fin);
    fin.header.flags = Flags::FIN | Flags::ACK;
    pair.server.handle_segment(pair.now, fin);
    pair.drain();
    assert_eq!(pair.segments(is_rst), 0);
    let answer = pair.last(|s| !to_server(s) && is_on(s, 1));
    let expected = pair.last(|s| to_server(s) && is_on(s, 1)).header.seq + 1;
    assert_eq!(answer.header.ack, expected, "the FIN is acknowledged");
}

#[test]
fn a_data_fin_that_never_arrives_leads_to_tcp() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.7. All data was sent with MP_CAPABLE. DSS is stripped in both directions, or only
    // towards the server. Then the server's acknowledgements do not reveal it.
    for (way, spared) in [(Way::Up, 1), (Way::Both, 2), (Way::Both, 3)] {
        let mut pair = Pair::new(1, careful(false), careful(false));
        pair.write(0, 500);
        let mut pair = stripping(pair, 0, way, spared, |_| true);
        pair.run_ms(100);
        pair.client.close(pair.connection);
        pair.run_ms(10_000);
        pair.close_both();
        pair.run_ms(5_000);
        let case = format!("{way:?} after {spared} segments");
        assert_eq!(pair.received, [0, 500], "{case}");
        assert_eq!((fell_back(&pair), pair.segments(is_rst)), ([true; 2], 0), "{case}");
        for events in [&pair.client_events, &pair.server_events] {
            assert!(events.contains(&Event::Closed), "{case}: {events:?}");
        }
    }
}

#[test]
fn a_data_fin_lost_in_an_outage_is_no_sign_of_stripped_options() {
    // RFC 8684 §3.7: DATA_FINs are lost during an outage. After it, the path drops nothing.
    for outage in [1_000, 5_000, 10_000, 30_000] {
        let (dark, darken) = switch();
        let fate = move || if dark.get() { Fate::Drop } else { Fate::Deliver };
        let mut pair = Pair::new(1, careful(false), careful(false)).with_filter(move |_, _| fate());
        pair.upload(10_000, 1_000);
        pair.download(10_000, 1_000);
        darken.set(true);
        pair.client.close(pair.connection);
        pair.write(1, 30_000);
        pair.run_ms(outage);
        darken.set(false);
        pair.run_ms(60_000);
        pair.close_both();
        pair.run_ms(5_000);
        assert_eq!((fell_back(&pair), pair.segments(is_rst)), ([false; 2], 0), "{outage} ms");
        assert_eq!(pair.received, [30_000, 10_000], "{outage} ms");
        assert!(pair.client_events.contains(&Event::Closed), "{outage} ms");
    }
}

#[test]
fn a_peer_is_asked_before_a_subflow_without_way_back_counts_as_stripped() {
    // RFC 8684 §3.7: the connection has had two subflows, so it cannot fall back. Of its last one,
    // only the acknowledgements of the last data lose their options.
    let (mut pair, spoil) = stripping_downlink(2);
    pair.upload(100_000, 5_000);
    pair.client.handle_address_change(pair.now, client_address(1), false);
    pair.run_ms(3_000);
    let resets = pair.segments(is_rst);
    spoil.set(true);
    pair.write(0, 105_000);
    pair.run_ms(100);
    spoil.set(false);
    pair.run_ms(30_000);
    assert_eq!((pair.received[1], pair.segments(is_rst)), (105_000, resets));
    pair.close_both();
    pair.run_ms(5_000);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
}

#[test]
fn a_fin_on_a_sole_subflow_ends_the_stream_if_the_data_fin_was_stripped() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.7: data passes in both directions, and then the path strips the server's options.
    // The server gives up on its DATA_FIN and falls back. The client learns of it from the FIN.
    let (mut pair, spoil) = stripping_downlink(1);
    pair.upload(10_000, 1_000);
    pair.download(10_000, 1_000);
    pair.client.close(pair.connection);
    pair.run_ms(500);
    spoil.set(true);
    pair.close_both();
    pair.run_ms(30_000);
    assert_eq!((pair.received, pair.segments(is_rst)), ([10_000; 2], 0));
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::Closed), "{events:?}");
    }
}

#[test]
fn the_receiver_of_data_without_options_announces_the_fallback_by_mp_fail() {
    // RFC 8684 §3.7. DSS is stripped from data but not from acknowledgements, so the peer may
    // consider the path fit. The server has no data that could carry an infinite mapping.
    let data = |segment: &Segment| !segment.payload.is_empty();
    let mut pair = stripping(both(1, false), 0, Way::Up, 0, data);
    pair.download(1_000, 1_000);
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received, [1_000, 100_000]);
    let told = |s: &Segment| s.options.control.as_ref().and_then(|control| control.fail);
    let first = pair.log.iter().filter(|s| !to_server(s)).find_map(told).expect("MP_FAIL");
    let idsn = pair.log.iter().filter(|s| !to_server(s)).find_map(|s| s.options.dss?.data_ack);
    let Some(WideOrNarrow::Narrow(idsn)) = idsn else { panic!("no DATA_ACK") };
    assert_eq!(first.data_seq.low32(), idsn, "MP_FAIL names the first byte");
}

#[test]
fn options_that_vanish_on_a_join_reset_only_that_subflow() {
    // RFC 8684 §3.7: options vanish from the SYN on, from the first data on, or later.
    for (way, checksum) in Way::ALL.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        for spared in [0, 1, 2, 3, 10, 60] {
            let mut pair = stripping(both(2, checksum), 1, way, spared, |_| true);
            let case = format!("{way:?} after {spared} segments, checksum {checksum}");
            exchange(&mut pair, &case);
            assert_eq!(fell_back(&pair), [false; 2], "{case}");
            let on_first = pair.segments(|s| is_rst(s) && is_on(s, 0));
            assert_eq!(on_first, 0, "{case}");
        }
    }
}

#[test]
fn a_join_that_carries_data_without_options_is_reset_for_middlebox_interference() {
    // RFC 8684 §3.7
    let data = |segment: &Segment| !is_syn(segment) && !segment.payload.is_empty();
    let mut pair = stripping(both(2, false), 1, Way::Up, 0, data);
    pair.upload(1_000_000, 20_000);
    assert_eq!(pair.received[1], 1_000_000);
    let reset = pair.log.iter().find(|s| is_rst(s) && is_on(s, 1) && !to_server(s));
    assert_eq!(reset.and_then(reset_reason), Some(ResetReason::MIDDLEBOX_INTERFERENCE));
}

#[test]
fn options_that_vanish_on_the_first_of_two_subflows_reset_only_that_subflow() {
    // RFC 8684 §3.7: no fallback is possible after a second subflow was added.
    for way in Way::ALL {
        for spared in [100, 200] {
            let mut pair = stripping(both(2, false), 0, way, spared, |_| true);
            let case = format!("{way:?} after {spared} segments");
            exchange(&mut pair, &case);
            assert_eq!(fell_back(&pair), [false; 2], "{case}");
            let on_second = pair.segments(|s| is_rst(s) && is_on(s, 1));
            assert_eq!(on_second, 0, "{case}");
        }
    }
}

#[test]
fn data_acknowledged_on_a_subflow_without_options_is_reinjected_at_once() {
    // RFC 8684 §3.3.6, §3.7: subflow ACKs do not show the delivery of data without a mapping.
    let mut pair = stripping(both(2, false), 0, Way::Up, 40, |_| true);
    pair.upload(1_000_000, 3_000);
    assert_eq!(pair.received[1], 1_000_000, "in three seconds");
}

#[test]
fn an_acknowledgement_without_options_proves_nothing_about_later_data() {
    // RFC 8684 §3.3.2: it may lack options. Then the path goes down, and data waits for a long
    // time.
    let dark = Rc::new(Cell::new(false));
    let is_dark = Rc::clone(&dark);
    let mut pair = both(1, false)
        .with_filter(move |_, _| if is_dark.get() { Fate::Drop } else { Fate::Deliver });
    pair.upload(100_000, 5_000);
    pair.run_ms(500);
    let mut bare = pair.last(|s| !to_server(s));
    strip(&mut bare);
    pair.client.handle_segment(pair.now, bare);
    dark.set(true);
    pair.write(0, 100_500);
    pair.run_ms(5_000);
    dark.set(false);
    pair.run_ms(20_000);
    assert_eq!((fell_back(&pair), pair.segments(is_rst)), ([false; 2], 0));
    assert_eq!(pair.received[1], 100_500);
}

#[test]
fn a_split_segment_keeps_the_connection_alive_whichever_part_has_its_options() {
    depends_on_the_platform("how many segments go before the first that is split");
    // RFC 8684 §3.3.1: a mapping covers bytes, not a segment.
    for options_on in [[true, true], [true, false], [false, true]] {
        for (addresses, checksum) in [(1, false), (1, true), (2, false), (2, true)] {
            // With late fallback, a first part without options is sufficient reason to fall back.
            let plain = options_on == [false, true] && addresses == 1;
            for (config, plain) in [(careful(checksum), false), (config(checksum), plain)] {
                let pair = Pair::new(addresses, config.clone(), config);
                let mut pair = pair.with_filter(move |n, segment| {
                    if n > 60 && n % 5 == 0 && segment.payload.len() > 500 {
                        return Fate::Split { at: 300 + n as usize % 200, options_on };
                    }
                    Fate::Deliver
                });
                let case = format!("{options_on:?}, {addresses} subflows, checksum {checksum}");
                exchange(&mut pair, &case);
                assert_eq!(fell_back(&pair), [plain; 2], "{case}");
                assert_eq!(pair.segments(is_rst), 0, "{case}");
            }
        }
    }
}

#[test]
fn payload_without_options_after_a_hole_leads_to_tcp_without_delay() {
    depends_on_the_platform("the size of options");
    // Otherwise the peer would resend the last bytes, because they were not DATA_ACKed. TCP would
    // then deliver them twice. With checksums, the 40,000 bytes are segments of 1424, 27 times
    // 1428, and 20 bytes.
    let mut dropped = false;
    let mut pair = both(1, true).with_filter(move |n, segment| {
        if to_server(segment) && n > 25 && (1..100).contains(&segment.payload.len()) {
            strip(segment);
        }
        let first = n > 25 && to_server(segment) && segment.payload.len() > 1_000 && !dropped;
        dropped |= first;
        // The server's announcement is lost as well.
        if first || is_infinite(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.run_ms(100);
    pair.upload(40_000, 10_000);
    assert_eq!((fell_back(&pair)[1], pair.received[1]), (true, 40_000));
    pair.run_ms(10_000);
    assert_eq!(pair.received[1], 40_000);
}

#[test]
fn after_a_fallback_a_mapping_that_contradicts_it_ends_the_connection() {
    // A truncated stream is better than a corrupt one.
    let forging = std::rc::Rc::new(std::cell::Cell::new(false));
    let forges = std::rc::Rc::clone(&forging);
    let mut pair = stripping(both(1, false), 0, Way::Both, 60, |_| true);
    pair.upload(100_000, 5_000);
    pair.run_ms(2_000);
    assert_eq!(fell_back(&pair), [true; 2]);
    pair = pair.with_filter(move |_, segment| {
        if forges.get() && !segment.payload.is_empty() {
            let mapping = Mapping {
                data_seq: WideOrNarrow::Narrow(12_345),
                subflow_seq: SeqNumber(100_001),
                len: segment.payload.len() as u16,
                checksum: None,
            };
            segment.options.dss = Some(Dss { mapping: Some(mapping), ..Dss::default() });
        }
        Fate::Deliver
    });
    forging.set(true);
    pair.upload(10_000, 2_000);
    assert_eq!(pair.received[1], 100_000);
    assert_eq!(pair.server.counters().dss_corruption_reset, 1);
    assert!(pair.server_events.iter().any(|event| matches!(event, Event::Failed(_))));
}

#[test]
fn a_peer_that_omits_unchanged_data_acks_keeps_its_subflows() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.3.2: this is valid. The data of one segment is lost eighteen times, on whatever
    // subflow it is sent. DATA_ACK does not advance meanwhile, although both subflows make
    // progress.
    let (mut last, mut unlucky, mut lost) = (0, None, 0);
    let mut pair = both(2, false).with_filter(move |n, segment| {
        if let Some(mapping) = segment.options.dss.and_then(|dss| dss.mapping)
            && n > 150
            && to_server(segment)
            && *unlucky.get_or_insert(mapping.data_seq) == mapping.data_seq
            && lost < 18
        {
            lost += 1;
            return Fate::Drop;
        }
        let dss = segment.options.dss;
        if let Some(WideOrNarrow::Narrow(data_ack)) = dss.and_then(|dss| dss.data_ack)
            && !to_server(segment)
            && segment.payload.is_empty()
        {
            if data_ack == last {
                strip(segment);
            }
            last = data_ack;
        }
        Fate::Deliver
    });
    pair.upload(1_000_000, 60_000);
    assert_eq!(pair.received[1], 1_000_000);
    assert_eq!(pair.segments(is_rst), 0);
    assert_eq!(fell_back(&pair), [false; 2]);
}

#[test]
fn an_infinite_mapping_that_does_not_continue_the_stream_resets_the_subflow() {
    // RFC 8684 §3.7: data without a known place is not delivered.
    let mut done = false;
    let mut pair = both(1, false).with_filter(move |n, segment| {
        if n > 40 && to_server(segment) && !done && !segment.payload.is_empty() {
            done = true;
            let mapping = segment.options.dss.and_then(|dss| dss.mapping).expect("a mapping");
            let subflow_seq = mapping.subflow_seq + 5;
            let infinite = Mapping { len: 0, subflow_seq, ..mapping };
            segment.options.dss = Some(Dss { mapping: Some(infinite), ..Dss::default() });
        }
        Fate::Deliver
    });
    pair.upload(200_000, 1_000);
    assert_eq!(fell_back(&pair), [false; 2]);
    assert_eq!(pair.server.counters().dss_corruption_reset, 1);
    let reset = pair.log.iter().find(|s| is_rst(s) && !to_server(s));
    assert_eq!(reset.and_then(reset_reason), Some(ResetReason::MPTCP_SPECIFIC));
}

#[test]
fn after_a_fallback_no_subflow_is_added_and_segments_have_room_for_more_payload() {
    // RFC 8684 §3.7: a connection that fell back never returns to MPTCP.
    let mut pair = stripping(both(3, false), 0, Way::Both, 3, |_| true);
    pair.upload(500_000, 20_000);
    pair.run_ms(70_000);
    assert_eq!(pair.segments(|s| is_syn(s) && !is_on(s, 0)), 0);
    let stats: Vec<SubflowStats> = pair.client.subflow_stats(pair.connection).collect();
    assert_eq!(stats.len(), 1);
    // 1500 bytes minus IP and TCP headers and timestamps.
    assert_eq!(stats[0].view.mss, 1500 - 40 - 12);
    assert_eq!(pair.received[1], 500_000);
}

#[test]
fn an_acknowledgement_without_options_of_no_data_proves_nothing() {
    // RFC 8684 §3.7: only an acknowledgement of data counts. The fourth segment is the listener's
    // answer to a probe.
    let mut pair = Pair::new(1, careful(false), careful(false)).with_filter(|n, segment| {
        if n == 3 {
            assert!(!to_server(segment) && segment.payload.is_empty());
            strip(segment);
        }
        Fate::Deliver
    });
    pair.settle(100);
    pair.upload(100_000, 2_000);
    assert_eq!(pair.received[1], 100_000);
    assert_eq!(fell_back(&pair), [false; 2]);
}

#[test]
fn the_statistics_name_the_reason_for_a_fallback() {
    for (strips_answer, expected) in [
        (None, [Fallback::None, Fallback::None]),
        (Some(false), [Fallback::SynAck, Fallback::Syn]),
        (Some(true), [Fallback::SynAck, Fallback::ThirdAck]),
    ] {
        let mut pair = both(1, false).with_filter(move |_, segment| {
            let answer = segment.header.flags.contains(anabranch_wire::Flags::ACK);
            if is_syn(segment) && strips_answer == Some(answer) {
                strip(segment);
            }
            Fate::Deliver
        });
        pair.upload(10_000, 1_000);
        let accepted = pair.accepted.expect("accepted");
        let client = pair.client.connection_stats(pair.now, pair.connection).expect("open");
        let server = pair.server.connection_stats(pair.now, accepted).expect("open");
        assert_eq!([client.fallback, server.fallback], expected, "{strips_answer:?}");
        assert_eq!(client.is_mptcp, strips_answer.is_none());
    }
}

#[test]
fn data_is_not_resent_to_a_peer_whose_signals_are_lost() {
    // The peer's acknowledgement has another option in place of the DATA_ACK. From then on the path
    // strips data sequence signals, and for a while it drops all segments of the peer. The peer
    // falls back because the DATA_FIN does not reach it. It would take resent data for a
    // continuation of the stream.
    let mut answers = 0;
    let mut pair = both(1, false).with_filter(move |n, segment| {
        if n >= 2 && !to_server(segment) {
            answers += 1;
            let dss = segment.options.dss.take();
            assert!(dss.is_some() || answers > 1);
            if answers == 1 {
                let prio = Some(MpPrio { backup: false });
                segment.options.control = Some(Box::new(Control { prio, ..Control::default() }));
            }
        } else if answers > 0 {
            segment.options.dss = None;
        }
        if (2..6).contains(&answers) && !to_server(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(300, 100);
    assert_eq!(pair.received[1], 300);
    pair.client.close(pair.connection);
    pair.run_ms(20_000);
    pair.close_both();
    pair.run_ms(60_000);
    assert_eq!(pair.received[1], 300);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::Closed) && events.contains(&Event::FellBack), "{events:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Whatever is stripped, all delivered bytes are correct (the pair checks each). Either all of
    /// them arrive or the connection ends with an error.
    #[test]
    fn stripped_options_never_corrupt_the_stream(
        seed in any::<u64>(),
        addresses in 1u8..4,
        checksum in any::<bool>(),
        loss_percent in 0u64..6,
        mean_run in 1u64..200,
        slow_ms in 0u64..80,
    ) {
        let mut state = seed;
        let mut draw = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        // Each direction of each path strips options for some segments, and then lets some pass.
        let mut strips = [[false; 2]; 3];
        let mut pair = both(addresses, checksum).with_slow_path(1, ms(slow_ms)).with_filter(
            move |_, segment| {
                let path = (0..3).find(|n| is_on(segment, *n)).expect("a client's address");
                let strips = &mut strips[usize::from(path)][usize::from(to_server(segment))];
                if draw(mean_run) == 0 {
                    *strips = !*strips && draw(3) == 0;
                }
                if *strips {
                    strip(segment);
                }
                if draw(100) < loss_percent { Fate::Drop } else { Fate::Deliver }
            },
        );
        for _ in 0..3 {
            pair.upload(60_000, 30_000);
            pair.download(60_000, 30_000);
        }
        pair.close_both();
        pair.run_ms(300_000);
        let failed = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Failed(_)));
        let clean = pair.received == pair.written.map(|_| 180_000);
        prop_assert!(
            clean || failed(&pair.client_events) || failed(&pair.server_events),
            "{:?} received, {:?} {:?}", pair.received, pair.client_events, pair.server_events
        );
    }
}

#[test]
fn a_fallback_after_an_acknowledged_data_fin_leaves_tuned_buffers_as_they_are() {
    // The DATA_FIN has a number, and no byte: the fallback takes its acknowledgement back, but no
    // progress of the data.
    let (off, stripping) = switch();
    let mut tuned = config(false);
    tuned.remedies = Arc::new(|| vec![Box::new(BufferAutotuning::default())]);
    let mut pair = Pair::new(1, tuned.clone(), tuned).with_filter(move |_, segment| {
        if off.get() {
            strip(segment);
        }
        Fate::Deliver
    });
    pair.upload(50_000, 5_000);
    pair.download(50_000, 5_000);
    pair.client.close(pair.connection);
    pair.run_ms(500);
    let stats = |pair: &Pair| {
        pair.client.connection_stats(pair.now, pair.connection).expect("the server has not closed")
    };
    let before = stats(&pair);
    stripping.set(true);
    pair.download(200_000, 5_000);
    let after = stats(&pair);
    assert_eq!((fell_back(&pair), pair.received), ([true; 2], [250_000, 50_000]));
    assert_eq!(after.bytes_acknowledged, before.bytes_acknowledged);
    assert_eq!(after.send_buffer, before.send_buffer);
    pair.close_both();
    pair.run_ms(5_000);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
}
