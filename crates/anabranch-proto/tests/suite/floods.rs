//! More handshakes than a host keeps state for. RFC 4987 §3.6, RFC 8684 §3.1, §3.2.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::mptcp::{CapableFlags, CapableKeys, Control, MpCapable, MpJoin, VERSION};
use anabranch_wire::{
    Flags, Payload, Segment, SeqNumber, SocketAddress, TcpHeader, TcpOptions, Timestamps,
};

use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_rst, is_syn, on_any_platform,
    server_address,
};

/// Half-open connections for which the server keeps state, at most.
const MOST_HALF_OPEN: usize = 4096;

/// The `n`th segment from a host that never answers.
fn stranger(n: u32, flags: Flags, control: Control) -> Segment {
    let address: IpAddr = Ipv4Addr::from_bits(0x0b00_0000 + n).into();
    Segment {
        source: SocketAddress::new(address, 1024 + (n % 60_000) as u16),
        destination: SocketAddress::new(server_address(), PORT),
        header: TcpHeader {
            seq: SeqNumber(n.wrapping_mul(0x9e37_79b9)),
            ack: SeqNumber(n.wrapping_mul(0x85eb_ca6b)),
            flags,
            window: 65_535,
            urgent: 0,
        },
        options: TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: n, echo: 0 }),
            control: Some(Box::new(control)),
            ..TcpOptions::default()
        },
        payload: Payload::EMPTY,
        ecn: 0,
        checksum_ok: true,
    }
}

fn capable(keys: CapableKeys) -> Control {
    let flags = CapableFlags::PLAIN;
    Control { capable: Some(MpCapable { version: VERSION, flags, keys }), ..Control::default() }
}

/// SYNs number `from` to `to` arrive. The server's answers to them are lost.
fn flood(pair: &mut Pair, from: u32, to: u32) {
    for n in from..to {
        let syn = stranger(n, Flags::SYN, capable(CapableKeys::None));
        pair.server.handle_segment(pair.now, syn);
        while pair.server.poll_transmit(pair.now).is_some() {}
    }
}

fn flooded(addresses: u8) -> Pair {
    let mut pair = Pair::new(addresses, on_any_platform(), on_any_platform());
    flood(&mut pair, 0, 10_000);
    pair
}

#[test]
fn a_flood_of_syns_takes_bounded_state_and_blocks_no_other_client() {
    // RFC 8684 §3.1: the echo of its key lets a listener open the connection without state.
    let mut pair = flooded(2);
    assert_eq!(pair.server.connections().count(), MOST_HALF_OPEN);
    assert_eq!(pair.server.counters().stateless_syn_acks, 10_000 - MOST_HALF_OPEN as u64);
    pair.upload(2_000_000, 20_000);
    assert_eq!(pair.received[1], 2_000_000);
    pair.download(2_000_000, 20_000);
    assert_eq!(pair.received[0], 2_000_000);
    assert_eq!(pair.server.counters().join_ack_rx, 1, "the second path joined");
    pair.close_both();
    pair.run_ms(200_000);
    assert_eq!(pair.server.connections().count(), 0, "half-open connections have timed out");
}

#[test]
fn open_connections_do_not_count_as_half_open() {
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform());
    let to = SocketAddress::new(server_address(), PORT);
    for n in 0..MOST_HALF_OPEN {
        let config = on_any_platform();
        pair.client.connect(pair.now, client_address(0), to, config).expect("the address is valid");
        if n % 256 == 255 {
            pair.run_ms(100);
        }
    }
    assert_eq!(pair.server.connections().count(), MOST_HALF_OPEN + 1);
    assert_eq!(pair.server.counters().stateless_syn_acks, 0);
}

#[test]
fn options_of_the_syn_are_known_without_state() {
    depends_on_the_platform("the size of options");
    let mut pair = flooded(1);
    pair.run_ms(100);
    let answer = pair.last(|s| is_syn(s) && s.header.flags.contains(Flags::ACK));
    assert!(answer.options.sack_permitted && answer.options.window_scale.is_some());
    assert!(!answer.header.flags.contains(Flags::ECE), "the client did not offer ECN");
    pair.download(1_000_000, 20_000);
    assert_eq!(pair.received[0], 1_000_000);
    let largest = pair.log.iter().map(|segment| segment.payload.len()).max();
    assert_eq!(largest, Some(1432), "an MTU of 1500 with timestamps and a mapping");
}

#[test]
fn ecn_is_agreed_without_state_if_a_timestamp_can_store_it() {
    // RFC 3168 §6.1.1
    for timestamps in [true, false] {
        let mut config = on_any_platform();
        (config.tcp.ecn, config.tcp.timestamps) = (true, timestamps);
        let mut pair = Pair::new(1, config.clone(), config);
        flood(&mut pair, 0, 5_000);
        pair.run_ms(100);
        let answer = pair.last(|s| is_syn(s) && s.header.flags.contains(Flags::ACK));
        assert_eq!(answer.header.flags.contains(Flags::ECE), timestamps);
        pair.download(300_000, 20_000);
        assert_eq!(pair.received[0], 300_000);
        let markable = pair.segments(|s| s.ecn != 0 && s.source.address == server_address());
        assert_eq!(markable > 0, timestamps, "{markable}");
    }
}

#[test]
fn a_peer_without_multipath_tcp_is_served_without_state() {
    // RFC 8684 §3.1: a third ACK without MP_CAPABLE means TCP.
    let mut pair = flooded(1).with_filter(|_, segment| {
        segment.options.control = None;
        Fate::Deliver
    });
    pair.upload(500_000, 20_000);
    pair.download(500_000, 20_000);
    assert_eq!(pair.received, [500_000, 500_000]);
}

#[test]
fn without_state_and_timestamps_a_connection_works_with_fewer_options() {
    let mut config = on_any_platform();
    config.tcp.timestamps = false;
    let mut pair = Pair::new(1, config, on_any_platform());
    flood(&mut pair, 0, 5_000);
    pair.upload(300_000, 60_000);
    pair.download(300_000, 60_000);
    assert_eq!(pair.received, [300_000, 300_000]);
}

#[test]
fn the_first_data_opens_the_connection_if_the_third_ack_was_lost() {
    let mut pair = flooded(1).with_filter(|number, _| match number {
        2 => Fate::Drop,
        _ => Fate::Deliver,
    });
    pair.upload(100_000, 20_000);
    assert_eq!(pair.received[1], 100_000);
}

#[test]
fn guessed_acknowledgements_open_nothing() {
    let mut pair = flooded(1);
    let before = pair.server.connections().count();
    for n in 20_000..120_000 {
        let keys = CapableKeys::Both { sender: 1, receiver: 2 };
        pair.server.handle_segment(pair.now, stranger(n, Flags::ACK, capable(keys)));
        while pair.server.poll_transmit(pair.now).is_some() {}
    }
    assert_eq!(pair.server.connections().count(), before);
}

#[test]
fn a_cookie_is_valid_for_about_two_minutes() {
    // The number has five bits for the period of 64 s.
    for (wait_ms, works) in [(60_000, true), (130_000, false), (32 * 64_000, false)] {
        let mut pair = flooded(1).with_filter(|number, _| match number {
            0 | 1 => Fate::Deliver,
            _ => Fate::Drop,
        });
        pair.run_ms(25);
        let third = pair.last(|segment| segment.source.address == client_address(0));
        assert!(third.options.control.is_some());
        pair.run_ms(wait_ms);
        flood(&mut pair, 10_000, 10_001 + MOST_HALF_OPEN as u32);
        pair.server.handle_segment(pair.now, third);
        pair.drain();
        assert_eq!(pair.accepted.is_some(), works, "after {wait_ms} ms");
    }
}

/// Joins to the server's only connection arrive, numbered `from` to `to`.
fn join_flood(pair: &mut Pair, token: u32, from: u32, to: u32) {
    for n in from..to {
        let join = MpJoin::Syn { backup: false, address_id: n as u8, token, nonce: n };
        let control = Control { join: Some(join), ..Control::default() };
        pair.server.handle_segment(pair.now, stranger(n, Flags::SYN, control));
        while pair.server.poll_transmit(pair.now).is_some() {}
    }
}

/// A connection whose second path drops everything until a flood of joins has begun: `per_ms` joins
/// a millisecond, for half a second.
fn joined_during_a_flood(per_ms: u32) -> Pair {
    let blocked = Rc::new(Cell::new(true));
    let block = Rc::clone(&blocked);
    let config = ConnectionConfig::default;
    let mut pair = Pair::new(2, config(), config()).with_filter(move |_, segment| {
        let second = segment.source.address == client_address(1);
        if second && block.get() { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(1000, 1000);
    pair.run_ms(950);
    blocked.set(false);
    let join = pair.last(|s| s.source.address == client_address(1)).options.control;
    let Some(MpJoin::Syn { token, .. }) = join.and_then(|control| control.join) else {
        panic!("the second path joins")
    };
    for n in 0..500 {
        join_flood(&mut pair, token, n * per_ms, (n + 1) * per_ms);
        pair.run_ms(1);
    }
    pair
}

#[test]
fn a_flood_of_joins_with_the_right_token_takes_bounded_state() {
    // RFC 8684 §3.2
    let mut pair = joined_during_a_flood(200);
    let id = pair.accepted.expect("accepted");
    let slots = pair.server.subflow_stats(id).count();
    assert!(slots <= 8, "{slots} subflows");
    let counters = pair.server.counters();
    assert!(counters.stateless_syn_acks > 90_000);
    assert!(counters.join_syn_rx >= counters.stateless_syn_acks);
    pair.upload(1_000_000, 20_000);
    assert_eq!(pair.received[1], 1_001_000);
}

#[test]
fn a_join_succeeds_during_a_flood_of_joins() {
    // 20 joins a millisecond and a round trip of 20 ms: 400 other joins arrive between the SYN and
    // the third ACK of the client's join. Each of them takes its place in the table with a
    // probability of 1 in 1024.
    let mut pair = joined_during_a_flood(20);
    pair.run_ms(2000);
    pair.upload(1_000_000, 20_000);
    assert_eq!(pair.received[1], 1_001_000);
    assert_eq!(pair.server.counters().join_ack_rx, 1);
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn joins_with_unknown_tokens_are_answered_without_any_state() {
    // RFC 8684 §3.2
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform());
    pair.upload(1000, 1000);
    join_flood(&mut pair, 0xdead_beef, 0, 100_000);
    assert_eq!(pair.server.connections().count(), 1);
    assert_eq!(pair.server.counters().join_no_token_found, 100_000);
}

#[test]
fn a_million_syns_of_each_kind_leave_the_host_able_to_serve() {
    depends_on_the_platform("Nagle's rule");
    let mut pair = Pair::new(2, on_any_platform(), on_any_platform());
    pair.upload(1_000, 1_000);
    pair.run_ms(100);
    let join = pair.last(|s| is_syn(s) && s.source.address == client_address(1));
    let Some(MpJoin::Syn { token, .. }) = join.options.control.and_then(|control| control.join)
    else {
        panic!("the second path joins")
    };
    let id = pair.accepted.expect("accepted");
    for n in 0..1_000 {
        let from = n * 1_000;
        flood(&mut pair, from, from + 1_000);
        join_flood(&mut pair, token, 2_000_000 + from, 2_001_000 + from);
        join_flood(&mut pair, token ^ 1, 4_000_000 + from, 4_001_000 + from);
        assert!(pair.server.connections().count() <= MOST_HALF_OPEN + 1);
        assert!(pair.server.subflow_stats(id).count() <= 8);
        // An open connection makes progress meanwhile.
        let target = pair.written[0] + 1_000;
        pair.write(0, target);
        pair.run_ms(1);
    }
    pair.run_ms(100);
    assert_eq!(pair.received[1], pair.written[0]);
    assert_eq!(pair.server.counters().join_no_token_found, 1_000_000);
    pair.run_ms(200_000);
    assert_eq!(pair.server.connections().count(), 1, "half-open connections have timed out");
}

#[test]
fn an_answer_without_state_echoes_the_timestamp_of_the_syn() {
    // RFC 7323 §3.2
    let mut pair = flooded(1);
    pair.run_ms(100);
    let is_answer = |s: &Segment| is_syn(s) && s.header.flags.contains(Flags::ACK);
    let syn = pair.last(|s| is_syn(s) && !is_answer(s)).options.timestamps.expect("timestamps");
    let answer = pair.last(is_answer).options.timestamps.expect("timestamps");
    assert_eq!(answer.echo, syn.value);
}
