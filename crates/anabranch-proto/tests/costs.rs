//! The cost of hostile segments: CPU time and memory per segment do not grow with their number.
//!
//! `cargo test --release -p anabranch-proto --test costs -- --nocapture` prints the figures of
//! docs/reliability.md. The bounds here are loose, because other work may share the machine. They
//! are still far below a cost that grows with the number of holes.

mod pair;

use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_proto::Endpoint;
use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_wire::mptcp::{AddAddr, Control, Dss, Mapping, MpJoin, WideOrNarrow};
use anabranch_wire::{
    DataSeq, Flags, Instant, Payload, Piece, SackBlock, SackBlocks, Segment, SeqNumber,
    SocketAddress,
};
use pair::announcing::announced;
use pair::{Fate, Pair, client_address, is_syn, ms, server_address};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SEGMENTS: u32 = 100_000;
/// Number of joins in a flood: a tenth of it in test builds, which take several times as long for
/// each.
const JOINS: u32 = if cfg!(debug_assertions) { SEGMENTS } else { 10 * SEGMENTS };
/// CPU time in microseconds that a segment may take on a busy machine, in a test build.
const MOST_MICROSECONDS: f64 = 60.0;

/// Bytes by which all segments together may increase memory: a full window of tiny pieces.
const MOST_GROWTH: i64 = 32 << 20;

/// Memory is counted for the whole process, so the tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A multiplicative walk through `0..SEGMENTS` in an order that looks random. `SEGMENTS` is not a
/// multiple of the prime.
fn scattered(n: u32) -> u32 {
    (u64::from(n) * 48_271 % u64::from(SEGMENTS)) as u32
}

/// Pass `segments` to `take` one by one, and check the cost of a segment.
fn measure(what: &str, segments: impl Iterator<Item = Segment>, mut take: impl FnMut(Segment)) {
    let region = Region::new(ALLOCATOR);
    let mut count = 0;
    #[expect(clippy::disallowed_methods, reason = "a measurement of this process")]
    let begun = std::time::Instant::now();
    for segment in segments {
        take(segment);
        count += 1;
    }
    let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(count);
    let change = region.change();
    let grown = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    println!("{what}, {count}: {each:.2} µs a segment, memory grew by {grown} bytes");
    assert!(grown < MOST_GROWTH, "{what}: memory grew by {grown} bytes");
    assert!(each < MOST_MICROSECONDS, "{what}: {each:.1} µs a segment");
}

fn give(now: Instant, host: &mut Endpoint, what: &str, segments: impl Iterator<Item = Segment>) {
    measure(what, segments, |segment| {
        host.handle_segment(now, segment);
        while host.poll_transmit(now).is_some() {}
        while host.poll_event().is_some() {}
    });
}

fn give_server(pair: &mut Pair, what: &str, segments: impl Iterator<Item = Segment>) {
    give(pair.now, &mut pair.server, what, segments);
}

/// A connection with wide windows, and the last data segment of the client.
fn established() -> (Pair, Segment) {
    let wide = || ConnectionConfig::default().send_buffer(64 << 20).receive_buffer(64 << 20);
    let mut pair = Pair::new(1, wide(), wide());
    pair.upload(100_000, 5_000);
    pair.run_ms(500);
    let last = pair.last(|segment| segment.source.address == client_address(0));
    (pair, last)
}

/// One byte of data, `beyond` bytes after the end of the data sent so far.
fn byte_beyond(last: &Segment, beyond: u32) -> Segment {
    let mut segment = last.clone();
    segment.header.seq = last.header.seq + beyond;
    segment.payload = Payload::from(Piece::pattern(0, 1));
    segment.options.dss = None;
    segment
}

#[test]
fn tiny_holes_cost_the_receiver_little() {
    let _alone = alone();
    // CVE-2018-5390.
    for (what, place) in [
        ("holes from the front", (|n| n) as fn(u32) -> u32),
        ("holes from the back", |n| SEGMENTS - n),
        ("holes in random order", scattered),
    ] {
        let (mut pair, last) = established();
        let segments = (0..SEGMENTS).map(|n| byte_beyond(&last, 2 + 2 * place(n)));
        give_server(&mut pair, what, segments);
    }
}

#[test]
fn tiny_mappings_cost_the_receiver_little() {
    let _alone = alone();
    let (mut pair, last) = established();
    let known = last.options.dss.and_then(|dss| dss.data_ack);
    let segments = (0..SEGMENTS).map(|n| {
        let at = 2 + 2 * scattered(n);
        let mut segment = byte_beyond(&last, at);
        let mapping = Mapping {
            data_seq: WideOrNarrow::Narrow(at.wrapping_mul(77)),
            subflow_seq: SeqNumber(100_001 + at),
            len: 1,
            checksum: None,
        };
        segment.options.dss =
            Some(Dss { data_ack: known, mapping: Some(mapping), data_fin: false });
        segment
    });
    give_server(&mut pair, "mappings of one byte, in random order", segments);
}

#[test]
fn mappings_outside_of_every_window_leave_no_memory_behind() {
    let _alone = alone();
    let (mut pair, last) = established();
    let segments = (0..SEGMENTS).map(|n| {
        let mut segment = byte_beyond(&last, 1);
        let mapping = Mapping {
            data_seq: WideOrNarrow::Wide(DataSeq(u64::from(n) << 40)),
            subflow_seq: SeqNumber(1 << 31 | scattered(n)),
            len: u16::MAX,
            checksum: None,
        };
        segment.options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
        segment.payload = Payload::EMPTY;
        segment
    });
    give_server(&mut pair, "mappings outside of every window", segments);
}

fn in_flight(pair: &Pair) -> u64 {
    pair.client.subflow_stats(pair.connection).map(|s| s.view.bytes_in_flight).sum()
}

#[test]
fn scattered_selective_acknowledgements_cost_the_sender_little() {
    let _alone = alone();
    // CVE-2019-11477 to 11479: the peer requires tiny segments, and SACKs tiny pieces of them.
    let config = || ConnectionConfig::default().send_buffer(16 << 20).receive_buffer(16 << 20);
    let mut pair = Pair::new(1, config(), config()).with_filter(|_, segment| {
        if is_syn(segment) && segment.header.flags.contains(Flags::ACK) {
            segment.options.mss = Some(48);
        }
        Fate::Deliver
    });
    pair.upload(6_000_000, 60_000);
    pair = pair.with_filter(|_, _| Fate::Drop);
    pair.write(0, 16_000_000);
    pair.run_ms(1);
    let acked = pair.last(|segment| segment.destination.address == client_address(0));
    let outstanding = in_flight(&pair);
    println!("{outstanding} bytes in flight in segments of about 60");
    let base = acked.header.ack;
    let segments = (0..SEGMENTS).map(|n| {
        let mut ack = acked.clone();
        let mut blocks = SackBlocks::default();
        for k in 0..3 {
            let at = scattered((n + k * 7919) % SEGMENTS) * (outstanding as u32 / SEGMENTS);
            blocks.push(SackBlock { start: base + at, end: base + (at + 120) });
        }
        ack.options.sack = blocks;
        ack.options.dss = None;
        ack
    });
    let what = "scattered selective acknowledgements";
    give(pair.now + ms(15), &mut pair.client, what, segments);
    assert!(in_flight(&pair) < outstanding / 2, "the sender accepted the SACK blocks");
}

#[test]
fn floods_of_joins_and_addresses_cost_little_and_leave_nothing() {
    let _alone = alone();
    let (mut pair, last) = established();
    let syn = |n: u32, token: u32| {
        let mut segment = last.clone();
        let source: IpAddr = Ipv4Addr::from_bits(0x0b00_0000 + n).into();
        segment.source = SocketAddress::new(source, 1024);
        segment.header.flags = Flags::SYN;
        segment.header.seq = SeqNumber(n);
        segment.options.dss = None;
        let join = MpJoin::Syn { backup: false, address_id: 9, token, nonce: n };
        segment.options.control =
            Some(Box::new(Control { join: Some(join), ..Control::default() }));
        segment.payload = Payload::EMPTY;
        segment
    };
    let unknown = (0..JOINS).map(|n| syn(n, n));
    give_server(&mut pair, "joins with unknown tokens", unknown);
    // The token is a hash of the listener's key, which is in its SYN/ACK. A join reveals the token.
    let mut twin = Pair::new(2, ConnectionConfig::default(), ConnectionConfig::default());
    twin.upload(1000, 1000);
    twin.run_ms(500);
    let join = twin.last(|s| is_syn(s) && s.source.address == client_address(1));
    let Some(MpJoin::Syn { token, .. }) = join.options.control.and_then(|control| control.join)
    else {
        panic!("a join")
    };
    let known = (0..JOINS).map(|n| syn(n, token));
    give_server(&mut twin, "joins with the right token", known);
    let addresses = (0..SEGMENTS).map(|n| {
        let mut segment = byte_beyond(&last, 1);
        segment.payload = Payload::EMPTY;
        let option = AddAddr {
            address_id: n as u8,
            address: Ipv4Addr::from_bits(0x0c00_0000 + n).into(),
            port: None,
            truncated_hmac: Some(u64::from(n)),
        };
        let control = Control { add_addr: Some(option), ..Control::default() };
        segment.options.control = Some(Box::new(control));
        segment
    });
    give_server(&mut pair, "announced addresses with a guessed HMAC", addresses);
}

#[test]
fn repeated_address_announcements_cost_little_and_leave_nothing() {
    // RFC 8684 §3.4.1
    let _alone = alone();
    let mut pair = Pair::new(1, ConnectionConfig::default(), ConnectionConfig::default());
    pair.download(50_000, 2_000);
    let mut bare = pair.last(|segment| segment.source.address == server_address());
    bare.header.seq = bare.header.seq + bare.payload.len() as u32;
    bare.payload = Payload::EMPTY;
    bare.options.dss = None;
    let announcements: Vec<AddAddr> = (0..=255)
        .map(|id| announced(&pair, id, Ipv4Addr::new(192, 0, 2, id).into(), None))
        .collect();
    let segments = (0..SEGMENTS).map(|n| {
        let add_addr = Some(announcements[n as usize % announcements.len()]);
        let control = Control { add_addr, ..Control::default() };
        let mut segment = bare.clone();
        segment.options.control = Some(Box::new(control));
        segment
    });
    give(pair.now, &mut pair.client, "256 announced addresses with the right HMAC", segments);
    let counters = pair.client.counters();
    assert!(counters.add_addr > counters.add_addr_drop, "the client accepted some of them");
}

/// One host writes single bytes, each in its own segment, and the other host does not read.
fn single_bytes(protocol: Protocol) {
    let config = || {
        let mut config = ConnectionConfig::default().protocol(protocol);
        config.tcp.nagle = false;
        config.receive_buffer = Some(1 << 20);
        config
    };
    let mut pair = Pair::new(1, config(), config());
    pair.upload(1, 1000);
    pair.paused = true;
    let region = Region::new(ALLOCATOR);
    for _ in 0..40_000 {
        let target = pair.written[0] + 1;
        pair.write(0, target);
        if pair.written[0].is_multiple_of(10) {
            pair.run_ms(1);
        }
    }
    pair.run_ms(1000);
    pair.log = Vec::new();
    let change = region.change();
    let grown = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    assert!(grown < 4_000_000, "{protocol:?}: memory grew by {grown} bytes");
    let id = pair.accepted.expect("accepted");
    let held = pair.server.connection_stats(pair.now, id).expect("open").bytes_delivered;
    assert_eq!(held, 40_001, "the receiver stores all data inside the window, in fewer pieces");
    pair.resume();
    pair.run_ms(120_000);
    assert_eq!(pair.received[1], 40_001, "{protocol:?}");
}

#[test]
fn segments_of_one_byte_do_not_exhaust_memory_and_no_byte_is_lost() {
    // RFC 8684 §4
    // RFC 8684 §3.3.6
    let _alone = alone();
    single_bytes(Protocol::Tcp);
    single_bytes(Protocol::Mptcp);
}
