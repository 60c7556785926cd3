//! Hosts that count buffers as Linux's sockets do, and do other things as Linux does.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::FullMesh;
use anabranch_proto::platform::{GiveUpRule, Platform, SilenceRule, SynFallbackRule};
use anabranch_proto::view::Usability;
use anabranch_proto::{ConnectionError, Event, SubflowStats};
use anabranch_wire::mptcp::{MpJoin, WideOrNarrow};
use anabranch_wire::{Duration, Flags, Payload, Segment, SocketAddress};

use crate::pair::{
    Fate, PORT, Pair, client_address, is_on, is_rst, is_syn, ms, on_any_platform, server_address,
    switch, to_server,
};

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

/// The client opens one more connection.
fn connect(pair: &mut Pair, config: &ConnectionConfig) {
    let to = SocketAddress::new(server_address(), PORT);
    let id = pair.client.connect(pair.now, client_address(0), to, config.clone());
    pair.connection = id.expect("the addresses are valid");
    pair.log.clear();
}

fn is_capable_syn(segment: &Segment) -> bool {
    is_syn(segment) && segment.options.control.as_ref().is_some_and(|all| all.capable.is_some())
}

/// Two hosts of a platform, whose path loses SYNs with MP_CAPABLE while the switch is set.
fn with_blackhole(syn_fallback: SynFallbackRule) -> (Pair, ConnectionConfig, Rc<Cell<bool>>) {
    let config = config(Platform { syn_fallback, ..SOCKET });
    let (blocks, seen) = switch();
    blocks.set(true);
    let pair = Pair::new(1, config.clone(), config.clone()).with_filter(move |_, segment| {
        if seen.get() && is_capable_syn(segment) { Fate::Drop } else { Fate::Deliver }
    });
    (pair, config, blocks)
}

/// SYNs of the client with MP_CAPABLE, and without.
fn syns(pair: &Pair) -> [usize; 2] {
    let capable = pair.segments(|s| is_capable_syn(s) && to_server(s));
    [capable, pair.segments(|s| is_syn(s) && to_server(s)) - capable]
}

#[test]
fn linux_opens_no_multipath_connection_for_an_hour_after_only_its_syns_were_lost() {
    // Linux 6.18.44: SYNs with MP_CAPABLE at 0, 1.03 and 2.05 s, and one without at 3.08 s. The next
    // connection begins without (`mptcp_active_should_disable`).
    let hour = Duration::from_secs(3600);
    let rule = SynFallbackRule { syn_retries: Some(2), disabled: hour };
    let (mut pair, config, blocks) = with_blackhole(rule);
    pair.run_ms(2_900);
    assert_eq!(syns(&pair), [3, 0]);
    pair.run_ms(500);
    assert_eq!(syns(&pair), [3, 1]);
    blocks.set(false);
    connect(&mut pair, &config);
    pair.run_ms(1_000);
    assert_eq!(syns(&pair), [0, 1]);
    let counters = pair.client.counters();
    assert_eq!((counters.blackholes, counters.mp_capable_syn_tx_disabled), (1, 1));
    pair.run_ms(3_600_000);
    connect(&mut pair, &config);
    pair.run_ms(1_000);
    assert_eq!(syns(&pair), [1, 0]);
    assert_eq!(pair.client.counters().mp_capable_syn_ack_rx, 1);
}

#[test]
fn a_lost_syn_without_mp_capable_shows_no_blackhole() {
    // `mptcp_active_detect_blackhole` forgets the loss, because SYNs without MP_CAPABLE are lost as well.
    let rule = SynFallbackRule { syn_retries: Some(0), disabled: Duration::from_secs(60) };
    let (pair, config, _) = with_blackhole(rule);
    let mut plain = 0;
    let mut pair = pair.with_filter(move |_, segment| {
        plain += u32::from(is_syn(segment) && to_server(segment) && !is_capable_syn(segment));
        let is_lost = is_capable_syn(segment) || (is_syn(segment) && plain == 1);
        if is_lost { Fate::Drop } else { Fate::Deliver }
    });
    pair.run_ms(30_000);
    assert_eq!(syns(&pair), [1, 2]);
    connect(&mut pair, &config);
    pair.run_ms(100);
    assert_eq!(syns(&pair), [1, 0]);
    assert_eq!(pair.client.counters().blackholes, 0);
}

#[test]
fn the_sysctls_bound_the_fallback() {
    // From 128 on, all SYNs have MP_CAPABLE. With a timeout of 0, every connection begins with it.
    let off = Duration::ZERO;
    let (mut pair, ..) = with_blackhole(SynFallbackRule { syn_retries: Some(128), disabled: off });
    pair.run_ms(200_000);
    assert_eq!(syns(&pair), [11, 0]);
    let rule = SynFallbackRule { syn_retries: Some(2), disabled: off };
    let (mut pair, config, _) = with_blackhole(rule);
    pair.run_ms(30_000);
    connect(&mut pair, &config);
    pair.run_ms(30_000);
    assert_eq!(syns(&pair), [3, 1]);
    assert_eq!(pair.client.counters().blackholes, 0);
}

#[test]
fn syns_of_linux_are_repeated_each_second_before_their_timeout_doubles() {
    // `tcp_retransmit_timer`: `total_rto > tcp_syn_linear_timeouts`. `tcp_write_timeout`: as many more.
    let mut pair = pair(SOCKET).with_filter(|_, _| Fate::Drop);
    let mut times = Vec::new();
    for now in 0..150_000_u64 {
        pair.run_ms(1);
        times.extend(pair.log.drain(..).map(|_| now / 1000));
    }
    // The wheel lengthens each timeout by up to an eighth.
    let expected = [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67];
    assert_eq!(times.len(), expected.len(), "{times:?}");
    for (time, at) in times.iter().zip(expected) {
        assert!((at..=at + at / 8).contains(time), "{times:?}");
    }
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn a_subflow_that_joins_as_the_only_one_carries_waiting_data_although_the_peer_is_silent() {
    let mut pair = pair(SOCKET).with_slow_path(1, ms(200));
    pair.run_ms(100);
    pair.write(1, 5_000);
    // A forged reset reaches the server while the SYN of the join is under way.
    pair.run_ms(100);
    let mut reset = pair.last(|s| to_server(s) && is_on(s, 0));
    reset.header.flags = Flags::RST;
    reset.payload = Payload::EMPTY;
    pair.server.handle_segment(pair.now, reset);
    pair.write(1, 7_000);
    pair.run_ms(100);
    assert_eq!(pair.received[0], 5_000);
    pair.run_ms(10_000);
    assert_eq!(pair.received[0], pair.written[1]);
}
