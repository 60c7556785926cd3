//! Hosts that count buffers as Linux's sockets do, and do other things as Linux does.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::FullMesh;
use anabranch_proto::platform::{GiveUpRule, Platform, SilenceRule};
use anabranch_proto::view::Usability;
use anabranch_proto::{Event, SubflowStats};
use anabranch_wire::mptcp::{MpJoin, WideOrNarrow};
use anabranch_wire::{Flags, Segment};

use crate::pair::{Fate, Pair, is_on, is_rst, is_syn, ms, on_any_platform, switch, to_server};

const SOCKET: Platform = Platform::linux_socket();
const PAYLOAD: Platform = Platform::linux();

fn config(platform: Platform) -> ConnectionConfig {
    on_any_platform().platform(platform).path_manager(|| Box::new(FullMesh::default()))
}

fn pair(platform: Platform) -> Pair {
    Pair::new(2, config(platform), config(platform))
}

fn is_join(segment: &Segment) -> bool {
    let join = segment.options.control.as_ref().and_then(|control| control.join);
    is_syn(segment) && matches!(join, Some(MpJoin::Syn { .. }))
}

#[test]
fn full_segments_have_the_payload_of_those_of_linux() {
    // A packet has 1500 bytes, of which the headers have 40, the timestamps 12, and the mapping with an 8-byte
    // data sequence number and a 4-byte DATA_ACK 24.
    let mut pair = pair(SOCKET);
    pair.run_ms(100);
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 100_000);
    let full = pair.last(|s| to_server(s) && s.payload.len() == 1424);
    assert_eq!(full.options.bytes_len(), 36);
    let mapping = full.options.dss.and_then(|dss| dss.mapping).expect("there is one");
    assert!(matches!(mapping.data_seq, WideOrNarrow::Wide(_)));
    assert_eq!(pair.segments(|s| s.payload.len() > 1424), 0);
}

#[test]
fn linux_opens_a_further_subflow_once_the_peer_has_acknowledged_or_sent_data() {
    for (platform, joins) in [(SOCKET, 0), (PAYLOAD, 1)] {
        let mut pair = pair(platform);
        pair.run_ms(1_000);
        assert_eq!(pair.segments(is_join), joins, "{:?}", platform.buffers);
        pair.write(0, 10_000);
        pair.run_ms(1_000);
        assert_eq!(pair.segments(is_join), 1, "{:?}", platform.buffers);
    }
}

#[test]
fn no_subflow_is_opened_after_the_host_has_closed() {
    for (platform, joins) in [(SOCKET, 0), (PAYLOAD, 1)] {
        let mut pair = pair(platform);
        while !pair.client_events.contains(&Event::Connected) {
            pair.run_ms(1);
        }
        pair.write(0, 200_000);
        pair.client.close(pair.connection);
        pair.run_ms(5_000);
        assert_eq!(pair.received[1], 200_000);
        assert_eq!(pair.segments(is_join), joins, "{:?}", platform.buffers);
    }
}

#[test]
fn a_host_that_has_closed_refuses_subflows() {
    for (platform, refused) in [(SOCKET, true), (PAYLOAD, false)] {
        let mut pair = pair(platform);
        while !pair.server_events.contains(&Event::Accepted) {
            pair.run_ms(1);
        }
        pair.write(1, 200_000);
        let accepted = pair.accepted.expect("the connection was accepted");
        pair.server.close(accepted);
        pair.run_ms(5_000);
        assert_eq!(pair.received[0], 200_000);
        assert_eq!(pair.segments(is_join), 1);
        let resets = pair.segments(|s| is_rst(s) && !to_server(s));
        assert_eq!(resets > 0, refused, "{:?}", platform.buffers);
        let established = pair.segments(|s| s.header.flags.contains(Flags::SYN) && !to_server(s));
        assert_eq!(established, if refused { 1 } else { 2 }, "{:?}", platform.buffers);
    }
}

#[test]
fn data_that_overtakes_the_acknowledgement_of_a_join_resets_the_subflow_for_good() {
    for (platform, resets) in [(SOCKET, true), (PAYLOAD, false)] {
        // What comes first on the second path is late.
        let mut late = 2;
        let mut pair = pair(platform).with_filter(move |_, segment| {
            if late > 0 && is_on(segment, 1) && !to_server(segment) && !is_syn(segment) {
                late -= 1;
                return Fate::Delay(ms(20));
            }
            Fate::Deliver
        });
        pair.download(400_000, 5_000);
        assert_eq!(pair.received, [400_000, 0]);
        pair.run_ms(60_000);
        let sent = pair.segments(|s| is_rst(s) && is_on(s, 1) && to_server(s));
        assert_eq!((sent > 0, pair.segments(is_join)), (resets, 1), "{:?}", platform.buffers);
    }
}

/// Two hosts of a platform, with an upload under way, whose second path then loses everything. The
/// switch lets it work again.
fn with_dead_path(platform: Platform) -> (Pair, Rc<Cell<bool>>) {
    let (dead, seen) = switch();
    let mut pair = pair(platform).with_filter(move |_, segment| {
        if seen.get() && is_on(segment, 1) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(400_000, 5_000);
    dead.set(true);
    (pair, dead)
}

fn second(pair: &Pair) -> SubflowStats {
    pair.client.subflow_stats(pair.connection).nth(1).expect("there are two")
}

#[test]
fn a_silent_subflow_of_linux_stays_in_use_for_five_periods_of_the_data_level_timer() {
    // `mptcp_pm_nl_subflow_chk_stale`: more than `stale_loss_cnt` periods, of at least 200 ms.
    for (platform, at_first_timeout) in [(SOCKET, false), (PAYLOAD, true)] {
        let (mut pair, _dead) = with_dead_path(platform);
        let mut first_timeout = None;
        let mut out_of_use = None;
        for now in 0..8_000_u64 {
            pair.write(0, 50_000_000);
            pair.run_ms(1);
            let second = second(&pair);
            if second.timeouts > 0 {
                first_timeout.get_or_insert(now);
            }
            if second.view.usability == Usability::PotentiallyFailed {
                out_of_use.get_or_insert(now);
            }
        }
        let (first_timeout, out_of_use) = (first_timeout.expect("one"), out_of_use.expect("it is"));
        let waits = out_of_use - first_timeout;
        assert_eq!(waits == 0, at_first_timeout, "{waits} ms after the first timeout");
        assert!(at_first_timeout || waits > 500, "{waits} ms after the first timeout");
    }
}

#[test]
fn a_stale_subflow_of_linux_returns_when_its_peer_answers() {
    let (mut pair, dead) = with_dead_path(SOCKET);
    pair.upload(50_000_000, 8_000);
    assert_eq!(second(&pair).view.usability, Usability::PotentiallyFailed);
    let before = second(&pair).bytes_sent;
    dead.set(false);
    pair.run_ms(15_000);
    pair.upload(5_000_000, 5_000);
    assert_eq!(second(&pair).view.usability, Usability::Usable);
    assert!(second(&pair).bytes_sent > before + 100_000, "it carries new data");
}

#[test]
fn linux_never_retires_a_subflow_with_a_stale_loss_count_of_0() {
    let never = Platform { silence: SilenceRule::Periods(0), ..SOCKET };
    let (mut pair, _dead) = with_dead_path(never);
    pair.upload(50_000_000, 8_000);
    pair.run_ms(4_000);
    assert_eq!(second(&pair).view.usability, Usability::Usable);
    assert!(second(&pair).timeouts > 2);
}

#[test]
fn retries_of_linux_are_a_time() {
    // 200 + 400 + 800 + 1600 ms after the first retransmission, whatever the timeout is.
    let give_up = GiveUpRule { retries: Some(3), ..SOCKET.give_up };
    let (mut pair, _dead) = with_dead_path(Platform { give_up, ..SOCKET });
    let closed = |pair: &Pair| second(pair).view.usability == Usability::Closed;
    let mut first_timeout = None;
    let mut lasts = 0;
    for now in 0..20_000_u64 {
        pair.write(0, 50_000_000);
        pair.run_ms(1);
        if closed(&pair) {
            lasts = now - first_timeout.expect("it precedes");
            break;
        }
        if second(&pair).timeouts > 0 {
            first_timeout.get_or_insert(now);
        }
    }
    // The first expiry of the doubling timer from 3 s on.
    assert!((3_000..7_000).contains(&lasts), "{lasts} ms");
}
