//! Payload that a middlebox changes: MP_FAIL and infinite mappings. RFC 8684 §3.7.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::Event;
use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::mptcp::{Dss, MpFail, ResetReason, WideOrNarrow};
use anabranch_wire::{Flags, Payload, Piece, Segment};
use proptest::prelude::*;

use crate::pair;
use crate::pair::middlebox::{FILL, Gateway, invert};
use crate::pair::{
    Fate, Pair, depends_on_the_platform, is_on, is_rst, ms, on_any_platform, strip, to_server,
};

fn config() -> ConnectionConfig {
    on_any_platform().dss_checksum(true)
}

fn both(addresses: u8) -> Pair {
    Pair::new(addresses, config(), config())
}

fn fail(segment: &Segment) -> Option<MpFail> {
    segment.options.control.as_ref()?.fail
}

fn is_infinite(segment: &Segment) -> bool {
    segment.options.dss.and_then(|dss| dss.mapping).is_some_and(|mapping| mapping.len == 0)
}

fn fell_back(pair: &Pair) -> [bool; 2] {
    [&pair.client_events, &pair.server_events].map(|events| events.contains(&Event::FellBack))
}

fn pattern(bytes: usize) -> Vec<u8> {
    Payload::from(Piece::pattern(0, bytes as u32)).to_vec()
}

/// Invert one byte in data segment number `nth` to the server on path `path`, in each of its
/// transmissions. Then apply the filter `then`. The cell holds the segment's offset in the stream.
fn inverting(
    pair: Pair,
    path: u8,
    nth: usize,
    mut then: impl FnMut(&mut Segment) -> Fate + 'static,
) -> (Pair, Rc<Cell<Option<u32>>>) {
    let (place, mut first, mut seen) = (Rc::new(Cell::new(None)), None, 0);
    let told = Rc::clone(&place);
    let pair = pair.with_filter(move |_, segment| {
        if is_on(segment, path) && to_server(segment) && segment.payload.len() > 200 {
            let first = *first.get_or_insert(segment.header.seq);
            seen += 1;
            if seen == nth {
                place.set(Some(segment.header.seq.distance_from(first) as u32));
            }
            if place.get() == Some(segment.header.seq.distance_from(first) as u32) {
                invert(segment, 100);
            }
        }
        then(segment)
    });
    (pair, told)
}

/// Inverts a byte of the fifth segment on a sole path. The client never receives MP_FAIL.
fn without_mp_fail() -> (Pair, Rc<Cell<Option<u32>>>) {
    inverting(both(1), 0, 5, |segment| {
        if let Some(control) = &mut segment.options.control {
            control.fail = None;
        }
        Fate::Deliver
    })
}

#[test]
fn changed_payload_on_a_sole_subflow_leads_to_tcp_and_is_delivered_as_tcp_would() {
    // RFC 8684 §3.7: the payload is changed early, later, or in the first data, which repeats the
    // keys.
    for nth in [1, 2, 7, 60] {
        let (mut pair, place) = inverting(both(1), 0, nth, |_| Fate::Deliver);
        (pair.unchecked, pair.kept) = (true, Some(Default::default()));
        pair.run_ms(100);
        pair.upload(200_000, 10_000);
        pair.download(100_000, 10_000);
        let case = format!("data segment {nth}");
        assert_eq!(fell_back(&pair), [true; 2], "{case}");
        let mut expected = pattern(200_000);
        let changed = place.get().expect("a segment was changed") as usize + 100;
        expected[changed] = !expected[changed];
        let [down, up] = pair.kept.take().expect("kept");
        assert!(up == expected, "{case}");
        assert!(down == pattern(100_000), "{case}");
        assert_eq!(pair.segments(is_rst), 0, "{case}");
        let (client, server) = (pair.client.counters(), pair.server.counters());
        assert_eq!((server.data_csum_err, server.mp_fail_tx, client.mp_fail_rx), (1, 1, 1));
        assert_eq!((client.mp_fail_tx, server.mp_fail_rx), (1, 1), "{case}");
        assert_eq!((client.infinite_map_tx, server.infinite_map_rx), (1, 1), "{case}");
        pair.close_both();
        pair.run_ms(2_000);
        assert!(pair.client_events.contains(&Event::Closed), "{case}");
        assert!(pair.server_events.contains(&Event::Closed), "{case}");
    }
}

#[test]
fn mp_fail_names_the_mapping_and_the_infinite_mapping_begins_at_unacknowledged_data() {
    depends_on_the_platform("when data sequence numbers have 8 bytes");
    // RFC 8684 §3.7
    let (mut pair, _) = inverting(both(1), 0, 9, |_| Fate::Deliver);
    pair.unchecked = true;
    pair.run_ms(100);
    pair.upload(50_000, 5_000);
    let up = |s: &&Segment| to_server(s);
    let failed = pair.log.iter().filter(up).filter(|s| s.payload.len() > 200).nth(8);
    let mapping = failed.and_then(|s| s.options.dss?.mapping).expect("mapped");
    let first = pair.log.iter().find_map(fail).expect("MP_FAIL");
    assert_eq!(WideOrNarrow::Narrow(first.data_seq.low32()), mapping.data_seq);
    let infinite = pair.log.iter().find(|s| is_infinite(s)).expect("an infinite mapping");
    let begins = infinite.options.dss.and_then(|dss| dss.mapping).expect("just seen");
    assert_eq!((begins.data_seq, begins.subflow_seq), (mapping.data_seq, mapping.subflow_seq));
    assert_eq!(begins.checksum, Some(0));
    let answers = pair.segments(|s| to_server(s) && is_infinite(s) && fail(s).is_some());
    assert_eq!(answers, 1, "the receiver of MP_FAIL answers with its own");
}

#[test]
fn data_from_the_failed_mapping_on_waits_for_the_infinite_mapping() {
    // RFC 8684 §3.7: the client's answers are lost.
    let silence = Rc::new(Cell::new(false));
    let silent = Rc::clone(&silence);
    let (mut pair, place) = inverting(both(1), 0, 5, move |segment| {
        silent.set(silent.get() || fail(segment).is_some());
        if to_server(segment) && silent.get() && segment.payload.is_empty() {
            return Fate::Drop;
        }
        if to_server(segment) && silent.get() {
            // The client's data arrives, but without its options.
            segment.options.dss = Some(Dss::default());
        }
        Fate::Deliver
    });
    pair.run_ms(100);
    pair.upload(100_000, 400);
    assert!(silence.get());
    let before = u64::from(place.get().expect("a segment was changed"));
    assert_eq!(pair.received[1], before);
    let accepted = pair.accepted.expect("accepted");
    let stats = pair.server.connection_stats(pair.now, accepted).expect("alive");
    assert!(stats.is_mptcp && stats.bytes_delivered == before);
}

#[test]
fn a_lost_mp_fail_and_a_lost_answer_are_repeated() {
    for (lost_up, lost_down) in [(0, 1), (0, 2), (1, 0), (2, 0), (1, 1)] {
        let mut left = [lost_down, lost_up];
        let (mut pair, _) = inverting(both(1), 0, 2_000_000, |_| Fate::Deliver);
        let mut changed = false;
        pair = pair.with_filter(move |_, segment| {
            let up = usize::from(to_server(segment));
            if up == 1 && !changed && segment.payload.len() > 200 {
                changed = true;
                invert(segment, 7);
            }
            if fail(segment).is_some() && left[up] > 0 {
                left[up] -= 1;
                return Fate::Drop;
            }
            Fate::Deliver
        });
        pair.unchecked = true;
        pair.run_ms(100);
        // A single segment is sent, so only acknowledgements can carry MP_FAIL and its answer.
        pair.upload(1_000, 10_000);
        let case = format!("{lost_up} up, {lost_down} down");
        assert_eq!((fell_back(&pair), pair.received[1]), ([true; 2], 1_000), "{case}");
    }
}

#[test]
fn a_host_falls_back_after_a_while_if_the_answer_to_mp_fail_was_stripped() {
    // RFC 8684 §3.7: the peer sends no more options, and its bytes are the stream. One or two
    // segments without options may have been in flight already.
    let mut silent = false;
    let (mut pair, place) = inverting(both(1), 0, 5, move |segment| {
        silent |= fail(segment).is_some();
        if silent && to_server(segment) {
            strip(segment);
        }
        Fate::Deliver
    });
    (pair.unchecked, pair.kept) = (true, Some(Default::default()));
    pair.run_ms(100);
    for _ in 0..1_000 {
        if pair.segments(|s| fail(s).is_some()) == 0 {
            pair.write(0, 60_000);
            pair.run_ms(1);
        }
    }
    pair.run_ms(150);
    let changed = place.get().expect("a segment was changed") as usize;
    assert_eq!(pair.received[1], changed as u64);
    pair.upload(60_000 - pair.written[0], 1);
    pair.run_ms(1_000);
    pair.upload(40_000, 5_000);
    assert_eq!(fell_back(&pair), [true; 2]);
    let mut expected = pattern(100_000);
    expected[changed + 100] = !expected[changed + 100];
    assert!(pair.kept.take().expect("kept")[1] == expected);
    assert_eq!(pair.server.counters().dss_corruption_fallback, 1);
    assert_eq!(pair.server.counters().infinite_map_rx, 0);
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn the_last_of_two_subflows_becomes_the_tcp_connection_at_any_place_of_the_stream() {
    // RFC 8684 §3.7: the present number of subflows counts, not earlier ones.
    for opening in [false, true] {
        let mut changes = false;
        let turned = Rc::new(Cell::new(false));
        let turn = Rc::clone(&turned);
        let mut pair = both(2).with_filter(move |_, segment| {
            // A join that never completes is no subflow in use.
            if opening && turned.get() && is_on(segment, 0) && to_server(segment) {
                return Fate::Drop;
            }
            if turned.get() && !changes && to_server(segment) && segment.payload.len() > 200 {
                changes = true;
                invert(segment, 100);
            }
            Fate::Deliver
        });
        (pair.unchecked, pair.kept) = (true, Some(Default::default()));
        pair.upload(300_000, 5_000);
        pair.download(200_000, 5_000);
        pair.run_ms(500);
        pair.client.handle_address_change(pair.now, pair::client_address(0), false);
        pair.drain();
        // The place of the next byte on the last subflow is known once the subflow has carried
        // data.
        pair.upload(50_000, 5_000);
        pair.download(50_000, 5_000);
        turn.set(true);
        if opening {
            pair.client.handle_address_change(pair.now, pair::client_address(0), true);
            pair.drain();
        }
        pair.upload(100_000, 5_000);
        pair.download(100_000, 5_000);
        let case = format!("a join is opening: {opening}");
        assert_eq!(fell_back(&pair), [true; 2], "{case}");
        let mut expected = pattern(450_000);
        expected[350_100] = !expected[350_100];
        let [down, up] = pair.kept.take().expect("kept");
        assert!(up == expected && down == pattern(350_000), "{case}");
        assert_eq!(pair.client.counters().dss_corruption_fallback, 1, "{case}");
        pair.close_both();
        pair.run_ms(5_000);
        assert!(pair.client_events.contains(&Event::Closed), "{case}");
        assert!(pair.server_events.contains(&Event::Closed), "{case}");
    }
}

#[test]
fn a_host_whose_data_was_carried_by_another_subflow_continues_after_fallback() {
    // RFC 8684 §3.7
    let turned = Rc::new(Cell::new(false));
    let turn = Rc::clone(&turned);
    let mut pair = both(2).with_filter(move |_, segment| {
        if to_server(segment) && segment.payload.len() > 200 && turn.take() {
            invert(segment, 100);
        }
        Fate::Deliver
    });
    (pair.unchecked, pair.kept) = (true, Some(Default::default()));
    pair.client.handle_address_change(pair.now, pair::client_address(1), false);
    pair.download(100_000, 5_000);
    for (n, usable) in [(1, true), (0, false)] {
        pair.client.handle_address_change(pair.now, pair::client_address(n), usable);
        pair.drain();
        pair.run_ms(500);
    }
    turned.set(true);
    pair.upload(50_000, 5_000);
    pair.run_ms(100);
    assert_eq!(fell_back(&pair), [true; 2]);
    // A duplicate acknowledgement with the new sequence numbers counts as a duplicate.
    pair.write(1, 101_000);
    let mut again = pair.last(to_server);
    again.header.seq = again.header.seq + again.payload.len() as u32;
    again.payload = Payload::EMPTY;
    pair.server.handle_segment(pair.now, again);
    let accepted = pair.accepted.expect("accepted");
    let stats = pair.server.connection_stats(pair.now, accepted).expect("open");
    assert_eq!(stats.bytes_acknowledged, 100_000);
    pair.download(99_000, 5_000);
    assert_eq!(pair.received, [200_000, 50_000]);
    assert!(pair.kept.take().expect("kept")[0] == pattern(200_000));
    pair.close_both();
    pair.run_ms(5_000);
    assert!(pair.client_events.contains(&Event::Closed));
    assert!(pair.server_events.contains(&Event::Closed));
}

#[test]
fn a_peer_that_does_not_answer_mp_fail_is_reset() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    let (mut pair, place) = without_mp_fail();
    pair.run_ms(100);
    pair.upload(50_000, 10_000);
    assert_eq!(pair.received[1], u64::from(place.get().expect("a segment was changed")));
    pair.run_ms(60_000);
    // A new subflow delivered the rest.
    assert_eq!(pair.received[1], 50_000);
    let reset = pair.log.iter().find(|s| is_rst(s)).expect("a reset");
    assert!(!to_server(reset) && fail(reset).is_some());
    assert_eq!(pair.server.counters().mp_fail_tx, 7, "six MP_FAILs, and one with the reset");
}

#[test]
fn changed_payload_on_one_of_two_subflows_resets_it_and_all_data_arrives() {
    // RFC 8684 §3.7
    for path in [0, 1] {
        let (mut pair, _) = inverting(both(2), path, 30, |_| Fate::Deliver);
        pair.run_ms(200);
        pair.upload(500_000, 5_000);
        assert_eq!(pair.received[1], 500_000);
        assert_eq!(fell_back(&pair), [false; 2]);
        let reset = pair.log.iter().find(|s| is_rst(s)).expect("a reset");
        assert!(is_on(reset, path) && fail(reset).is_some());
        let reason = reset.options.control.as_ref().and_then(|control| control.reset);
        assert_eq!(reason.map(|r| r.reason), Some(ResetReason::MIDDLEBOX_INTERFERENCE));
        let (client, server) = (pair.client.counters(), pair.server.counters());
        assert_eq!((server.data_csum_err, server.dss_corruption_reset), (1, 1));
        // With Linux's sockets, further data is under way, and the same reset answers it.
        let most = if crate::pair::tests_platform("linux-socket") { 2 } else { 1 };
        assert!((1..=most).contains(&server.mp_fail_tx), "{} MP_FAILs", server.mp_fail_tx);
        assert_eq!(client.mp_fail_rx, 1);
        assert_eq!(pair.segments(is_infinite), 0);
    }
}

#[test]
fn bytes_inserted_or_removed_on_a_sole_subflow_are_delivered_as_tcp_would() {
    // RFC 8684 §3.7: from the change on, the two hosts count subflow sequence numbers differently.
    for change in [1, 37, -1, -37] {
        let gateway = Rc::new(std::cell::RefCell::new(Gateway::new(change)));
        let place = Rc::new(Cell::new(None));
        let (box_, at) = (Rc::clone(&gateway), Rc::clone(&place));
        let mut first = None;
        let mut pair = both(1).with_filter(move |n, segment| {
            if to_server(segment) {
                if first.is_none() && !segment.payload.is_empty() {
                    first = Some(segment.header.seq);
                }
                box_.borrow_mut().forward(segment, n > 60);
                at.set(box_.borrow().place().zip(first).map(|(at, first)| at.distance_from(first)));
            } else {
                box_.borrow().backward(segment);
            }
            Fate::Deliver
        });
        (pair.unchecked, pair.kept) = (true, Some(Default::default()));
        let bytes = 150_000;
        while pair.written[0] < bytes {
            pair.write(0, bytes);
            pair.run_ms(10);
        }
        pair.run_ms(5_000);
        pair.download(100_000, 10_000);
        pair.close_both();
        pair.run_ms(5_000);
        assert_eq!(fell_back(&pair), [true; 2], "{change}");
        let at = place.get().expect("changed") as usize;
        let mut expected = pattern(bytes as usize);
        let gone = at + (-change).max(0) as usize;
        expected.splice(at..gone, vec![FILL; change.max(0) as usize]);
        let [down, up] = pair.kept.take().expect("kept");
        assert_eq!(up.len(), expected.len(), "{change}");
        assert!(up == expected && down == pattern(100_000), "{change}");
        assert!(pair.client_events.contains(&Event::Closed), "{change}");
        assert!(pair.server_events.contains(&Event::Closed), "{change}");
    }
}

#[test]
fn bytes_inserted_or_removed_on_one_of_two_subflows_reset_only_that_subflow() {
    // RFC 8684 §3.7
    for (change, path) in [(1, 0), (-1, 1), (50, 1), (-50, 0)] {
        let mut gateway = Gateway::new(change);
        let mut reset = false;
        let mut pair = both(2).with_filter(move |n, segment| {
            reset |= is_rst(segment) && is_on(segment, path);
            if is_on(segment, path) && !reset {
                if to_server(segment) {
                    gateway.forward(segment, n > 120);
                } else {
                    gateway.backward(segment);
                }
            }
            Fate::Deliver
        });
        pair.upload(500_000, 20_000);
        assert_eq!(pair.received[1], 500_000, "{change} on {path}");
        assert_eq!(fell_back(&pair), [false; 2], "{change} on {path}");
        assert!(pair.segments(|s| is_rst(s) && fail(s).is_some() && is_on(s, path)) > 0);
        assert!(pair.segments(|s| is_rst(s) && !is_on(s, path)) == 0);
    }
}

#[test]
fn payload_changed_in_both_directions_at_once_leads_both_hosts_to_tcp() {
    // RFC 8684 §3.7: two MP_FAILs cross, and each is the answer to the other.
    let mut changed = [false; 2];
    let mut pair = both(1).with_filter(move |n, segment| {
        let way = usize::from(to_server(segment));
        if n > 20 && !changed[way] && segment.payload.len() > 200 {
            changed[way] = true;
            invert(segment, 50);
        }
        Fate::Deliver
    });
    pair.unchecked = true;
    pair.run_ms(100);
    for _ in 0..50 {
        pair.write(0, 60_000);
        pair.write(1, 60_000);
        pair.run_ms(20);
    }
    assert_eq!(pair.received, [60_000; 2]);
    assert_eq!(fell_back(&pair), [true; 2]);
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn data_that_is_not_contiguous_on_the_last_subflow_resets_that_subflow() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // RFC 8684 §3.7: the path of the first subflow fails. The engine reinjects its data on the
    // second, where the payload is changed.
    let dark = Rc::new(Cell::new(false));
    let is_dark = Rc::clone(&dark);
    let mut changed = false;
    let mut pair = both(2).with_filter(move |_, segment| {
        if !is_dark.get() {
            return Fate::Deliver;
        }
        if is_on(segment, 0) {
            return Fate::Drop;
        }
        if to_server(segment) && !changed && segment.payload.len() > 200 {
            changed = true;
            invert(segment, 3);
        }
        Fate::Deliver
    });
    pair.run_ms(200);
    pair.write(0, 300_000);
    pair.run_ms(25);
    dark.set(true);
    pair.client.handle_address_change(pair.now, pair::client_address(0), false);
    pair.drain();
    pair.run_ms(400);
    assert_eq!(fell_back(&pair), [false; 2]);
    assert!(pair.segments(|s| is_rst(s) && fail(s).is_some()) > 0);
    // The pair checks each byte. A new subflow delivers the rest.
    pair.run_ms(60_000);
    assert_eq!(pair.received[1], 300_000);
}

#[test]
fn an_mp_fail_for_data_in_flight_leads_to_tcp_and_any_other_is_ignored() {
    depends_on_the_platform("when data sequence numbers have 8 bytes");
    // RFC 8684 §3.7
    for ahead in [0, 10_000, 1 << 20] {
        let mut pair = both(1);
        pair.upload(50_000, 1_000);
        pair.run_ms(500);
        let mut forged = pair.last(|s| !to_server(s) && s.options.dss.is_some());
        let mapped =
            pair.last(|s| to_server(s) && s.options.dss.is_some_and(|d| d.mapping.is_some()));
        let WideOrNarrow::Narrow(low) =
            mapped.options.dss.expect("seen").mapping.expect("seen").data_seq
        else {
            panic!("the engine sends the narrow form")
        };
        let near = pair.log.iter().find_map(|s| {
            use anabranch_wire::mptcp::CapableKeys;
            match s.options.control.as_ref()?.capable?.keys {
                CapableKeys::WithData { sender, .. } => Some(sender),
                _ => None,
            }
        });
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(near.expect("keys").to_be_bytes());
        let idsn = u64::from_be_bytes(digest[24..].try_into().expect("8 bytes"));
        let data_seq = anabranch_wire::DataSeq(idsn).expand(low) + ahead;
        let under_way = ahead == 10_000;
        if under_way {
            // The server's DATA_ACK, which would show the same, was lost.
            forged.options.dss = None;
            pair.write(0, 100_000);
        }
        forged.options.control_mut().fail = Some(MpFail { data_seq });
        pair.client.handle_segment(pair.now, forged);
        pair.drain();
        pair.upload(100_000 - pair.written[0], 1);
        pair.run_ms(2_000);
        assert_eq!((fell_back(&pair), pair.received[1]), ([under_way; 2], 100_000), "{ahead}");
        assert_eq!(pair.client.counters().mp_fail_rx, 1);
    }
}

#[test]
fn an_unanswered_mp_fail_ends_with_its_subflow() {
    // RFC 8684 §3.7: the next subflow uses its slot, but is not reset for it.
    let (mut pair, place) = without_mp_fail();
    pair.run_ms(100);
    pair.upload(50_000, 100);
    assert!(place.get().is_some() && pair.received[1] < 50_000);
    for usable in [false, true] {
        pair.client.handle_address_change(pair.now, pair::client_address(0), usable);
        pair.drain();
        pair.run_ms(20);
    }
    pair.run_ms(10_000);
    assert_eq!(pair.received[1], 50_000);
    assert_eq!(pair.segments(|s| is_rst(s) && fail(s).is_some()), 0);
}

#[test]
fn two_hosts_that_both_announce_a_fallback_do_not_acknowledge_acknowledgements() {
    // RFC 8684 §3.7: the acknowledgement of more data would end the announcements, but no more data
    // is sent.
    let mut pair = both(1).with_filter(|_, segment| {
        if segment.payload.len() > 200 {
            invert(segment, 50);
        }
        Fate::Deliver
    });
    pair.unchecked = true;
    pair.run_ms(100);
    pair.write(0, 1_000);
    pair.write(1, 1_000);
    pair.run_ms(1_000);
    assert_eq!((fell_back(&pair), pair.received), ([true; 2], [1_000; 2]));
    let before = pair.log.len();
    pair.run_ms(5_000);
    assert_eq!(pair.log.len(), before);
}

#[test]
fn a_receiver_that_lacks_data_of_another_subflow_resets_the_last_one_on_a_wrong_checksum() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // RFC 8684 §3.7: the next byte of this subflow is not the next byte of the stream.
    let turned = Rc::new(Cell::new(false));
    let turn = Rc::clone(&turned);
    let mut pair = both(2).with_slow_path(1, ms(60)).with_filter(move |_, segment| {
        if turn.get() && to_server(segment) && segment.payload.len() > 200 {
            if is_on(segment, 0) {
                return Fate::Drop;
            }
            invert(segment, 3);
        }
        Fate::Deliver
    });
    pair.upload(100_000, 5_000);
    pair.run_ms(500);
    turned.set(true);
    pair.write(0, 600_000);
    pair.client.handle_address_change(pair.now, pair::client_address(0), false);
    pair.drain();
    turned.set(false);
    // The reset follows lost data, so the client accepts only its second transmission.
    pair.run_ms(200);
    let first = pair.log.iter().find(|s| fail(s).is_some()).expect("MP_FAIL");
    assert!(is_rst(first) && !to_server(first), "{first:?}");
    pair.run_ms(60_000);
    assert_eq!((pair.received[1], fell_back(&pair)), (600_000, [false; 2]));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// A middlebox inverts bytes or strips options at random. While a host speaks Multipath TCP,
    /// every byte that it delivers is correct. After a fallback, a byte may be inverted. Either all
    /// bytes arrive or the connection ends with an error.
    #[test]
    fn changed_bytes_are_never_delivered_by_multipath_tcp(
        seed in any::<u64>(),
        addresses in 1u8..4,
        loss_percent in 0u64..5,
        every in 5u64..300,
        stripping in any::<bool>(),
    ) {
        let mut state = seed;
        let mut draw = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut pair = both(addresses).with_slow_path(1, ms(seed % 60)).with_filter(
            move |n, segment| {
                // The first of several paths is left unchanged, so data can always pass.
                let honest = addresses > 1 && is_on(segment, 0);
                if !honest && n > 5 && draw(every) == 0 && segment.payload.len() > 8 {
                    invert(segment, draw(1_000) as usize);
                }
                if !honest && stripping && draw(every) == 0 && !segment.header.flags.contains(Flags::SYN) {
                    strip(segment);
                }
                if draw(100) < loss_percent { Fate::Drop } else { Fate::Deliver }
            },
        );
        (pair.unchecked, pair.kept) = (true, Some(Default::default()));
        let mut exact = [0, 0];
        for target in [40_000, 80_000, 120_000] {
            for side in [0, 1] {
                pair.write(side, target);
                for _ in 0..400 {
                    pair.run_ms(5);
                    check(&mut pair, &mut exact)?;
                    pair.write(side, target);
                }
                // A connection without a subflow gives up after a minute.
                for _ in 0..120 {
                    if pair.received[1 - side] < target {
                        pair.run_ms(1_000);
                        check(&mut pair, &mut exact)?;
                    }
                }
            }
        }
        let failed = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Failed(_)));
        prop_assert!(
            pair.received == [120_000; 2] || failed(&pair.client_events) || failed(&pair.server_events),
            "{:?} received, {:?} {:?}", pair.received, pair.client_events, pair.server_events
        );
    }
}

/// Check the bytes that were read since the last call. A fallback since then may precede some of
/// them.
fn check(pair: &mut Pair, exact: &mut [usize; 2]) -> Result<(), TestCaseError> {
    let plain = fell_back(pair);
    let kept = pair.kept.as_ref().expect("kept");
    for side in [0, 1] {
        let expected = pattern(kept[side].len());
        for at in exact[side]..kept[side].len() {
            let (found, right) = (kept[side][at], expected[at]);
            let fine = found == right || (plain[side] && found == !right);
            prop_assert!(fine, "byte {at} at side {side} is {found}, not {right}");
        }
        exact[side] = kept[side].len();
    }
    Ok(())
}
