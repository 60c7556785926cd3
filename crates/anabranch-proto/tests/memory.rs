//! Memory of connections, counted by the test's own allocator.

mod hosts;

use std::alloc::System;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{ConnectionId, Endpoint};
use anabranch_wire::{Duration, Instant, SocketAddress};
use hosts::{address, exchange, pass};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Memory is counted for the whole process, so the tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn grown(region: &Region<'_, System>) -> i64 {
    let change = region.change();
    change.bytes_allocated as i64 - change.bytes_deallocated as i64
}

/// Resident memory of the process, including memory that its allocator keeps for reuse.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Bytes of memory of an established, idle connection at the host that accepted it. The host has
/// received `bytes` over `addresses` paths and has released all memory that it can.
fn idle_bytes(addresses: u32, bytes: u32) -> usize {
    const CONNECTIONS: usize = 500;
    let locals: Vec<IpAddr> = (0..addresses).map(address).collect();
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [2; 32]);
    server.listen(80, ConnectionConfig::default());
    let mut client = Endpoint::new(locals.clone(), [1; 32]);
    let to = SocketAddress::new(address(99), 80);
    let region = Region::new(ALLOCATOR);
    for _ in 0..CONNECTIONS {
        let id = client.connect(now, locals[0], to, ConnectionConfig::default()).expect("right");
        exchange(now, &mut client, &mut server);
        client.send_pattern(id, 0, bytes).expect("open");
        // The first segment arrives last, so the receiver has to hold the others.
        let late = client.poll_transmit(now).expect("data");
        exchange(now, &mut client, &mut server);
        server.handle_segment(now, late);
        exchange(now, &mut client, &mut server);
    }
    now += Duration::from_secs(1);
    for host in [&mut client, &mut server] {
        host.handle_timeout(now);
    }
    exchange(now, &mut client, &mut server);
    for host in [&mut client, &mut server] {
        host.release_memory();
    }
    let id = server.connections().next().expect("accepted");
    assert_eq!(server.subflow_stats(id).count(), addresses as usize);
    // Each host has one end of each connection.
    grown(&region) as usize / CONNECTIONS / 2
}

#[test]
fn an_idle_connection_takes_at_most_4_kib_and_one_with_two_subflows_8() {
    let _alone = alone();
    for (addresses, bytes, bound) in [(1, 1, 4096), (1, 100_000, 4096), (2, 100_000, 8192)] {
        let each = idle_bytes(addresses, bytes);
        println!("{each} bytes with {addresses} subflows, {bytes} bytes received before");
        assert!(each <= bound, "{each} bytes with {addresses} subflows, {bytes} received");
    }
}

/// A connection to port 80 of `server` that carries 10 kB each way. `None` if its port is in
/// TIME-WAIT at the server, because opening it would take another second.
fn open(now: Instant, client: &mut Endpoint, server: &mut Endpoint) -> Option<[ConnectionId; 2]> {
    let to = SocketAddress::new(address(99), 80);
    let id = client.connect(now, address(0), to, ConnectionConfig::default()).expect("right");
    let before: BTreeSet<ConnectionId> = server.connections().collect();
    exchange(now, client, server);
    let accepted = server.connections().find(|id| !before.contains(id));
    let Some(accepted) = accepted else {
        client.abort(id);
        return None;
    };
    client.send_pattern(id, 0, 10_000).expect("open");
    exchange(now, client, server);
    server.send_pattern(accepted, 0, 10_000).expect("open");
    exchange(now, client, server);
    Some([id, accepted])
}

#[test]
fn ended_connections_leave_no_memory_behind_however_they_end() {
    let _alone = alone();
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [2; 32]);
    server.listen(80, ConnectionConfig::default());
    let mut client = Endpoint::new(vec![address(0), address(1)], [1; 32]);
    let mut region = Region::new(ALLOCATOR);
    for round in 0..40 {
        if round == 20 {
            region = Region::new(ALLOCATOR);
        }
        for n in 0..50 {
            let Some([id, accepted]) = open(now, &mut client, &mut server) else { continue };
            match n % 5 {
                0 => client.abort(id),
                1 => server.abort(accepted),
                2 => server.close(accepted),
                _ => client.close(id),
            }
            exchange(now, &mut client, &mut server);
            client.close(id);
            server.close(accepted);
            exchange(now, &mut client, &mut server);
        }
        pass(&mut now, Duration::from_secs(300), &mut client, &mut server);
        assert_eq!(client.connections().count() + server.connections().count(), 0);
    }
    let grown = grown(&region);
    println!("{grown} bytes after 1000 further connections");
    assert!(grown < 4_096, "{grown} bytes are left of 1000 connections");
}

#[test]
fn a_flood_of_connections_in_time_wait_takes_little_memory_for_a_limited_time() {
    let _alone = alone();
    const CONNECTIONS: usize = 2_000;
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [2; 32]);
    server.listen(80, ConnectionConfig::default());
    let mut client = Endpoint::new(vec![address(0)], [1; 32]);
    let region = Region::new(ALLOCATOR);
    for _ in 0..CONNECTIONS {
        let Some([id, accepted]) = open(now, &mut client, &mut server) else { continue };
        server.close(accepted);
        exchange(now, &mut client, &mut server);
        client.close(id);
        exchange(now, &mut client, &mut server);
    }
    pass(&mut now, Duration::from_secs(1), &mut client, &mut server);
    for host in [&mut client, &mut server] {
        host.release_memory();
    }
    let waiting = client.connections().count() + server.connections().count();
    assert!(waiting >= CONNECTIONS / 2, "{waiting} wait");
    let each = grown(&region) / waiting as i64;
    println!("{each} bytes for a connection in TIME-WAIT");
    assert!(each <= 4096, "{each} bytes for a connection in TIME-WAIT");
    pass(&mut now, Duration::from_secs(130), &mut client, &mut server);
    assert_eq!(client.connections().count() + server.connections().count(), 0);
}

/// Open ten thousand connections from a host with address `n`. Each of them sends a byte.
fn open_many(now: Instant, n: u32, server: &mut Endpoint) -> (Endpoint, Vec<ConnectionId>) {
    let mut client = Endpoint::new(vec![address(n)], [n as u8; 32]);
    let to = SocketAddress::new(address(99), 80);
    let ids = (0..10_000).map(|_| {
        let config = ConnectionConfig::default();
        let id = client.connect(now, address(n), to, config).expect("right");
        exchange(now, &mut client, server);
        client.send_pattern(id, 0, 1).expect("open");
        exchange(now, &mut client, server);
        id
    });
    let ids = ids.collect();
    (client, ids)
}

#[test]
fn a_hundred_thousand_idle_connections_are_held_and_served() {
    const CONNECTIONS: usize = 100_000;
    let _alone = alone();
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [200; 32]);
    server.listen(80, ConnectionConfig::default());
    let region = Region::new(ALLOCATOR);
    let mut last: Option<(Endpoint, Vec<ConnectionId>)> = None;
    for n in 0..10 {
        // The previous clients have vanished without closing, as idle clients may.
        drop(last.take());
        let (mut client, ids) = open_many(now, n, &mut server);
        now += Duration::from_secs(1);
        server.handle_timeout(now);
        client.handle_timeout(now);
        exchange(now, &mut client, &mut server);
        last = Some((client, ids));
        server.release_memory();
    }
    let (mut client, ids) = last.expect("there are ten hosts");
    assert_eq!(server.connections().count(), CONNECTIONS);
    assert_eq!(server.counters().mp_capable_ack_rx, CONNECTIONS as u64);
    // Each connection of the last host still works despite their number.
    #[expect(clippy::disallowed_methods, reason = "a measurement of this process")]
    let begun = std::time::Instant::now();
    for id in &ids {
        client.send_pattern(*id, 1, 100).expect("open");
        exchange(now, &mut client, &mut server);
    }
    let each = begun.elapsed().as_secs_f64() * 1e6 / ids.len() as f64;
    let received = server.connections().filter_map(|id| server.connection_stats(now, id));
    let received: u64 = received.map(|stats| stats.bytes_delivered).sum();
    assert_eq!(received, (CONNECTIONS + ids.len() * 100) as u64);
    server.release_memory();
    drop((client, ids));
    let held = grown(&region);
    println!("{held} bytes for {CONNECTIONS} connections, {each:.1} µs to send and read 100 bytes");
    assert!(held <= 1 << 30, "{held} bytes");
    if let Some(resident) = resident_bytes() {
        println!("{resident} bytes of the process are resident");
        assert!(resident <= 1 << 30, "{resident} bytes resident");
    }
    #[expect(clippy::disallowed_methods, reason = "a measurement of this process")]
    let begun = std::time::Instant::now();
    for id in server.connections().collect::<Vec<_>>() {
        server.abort(id);
    }
    while server.poll_transmit(now).is_some() {}
    while server.poll_event().is_some() {}
    let each = begun.elapsed().as_secs_f64() * 1e6 / CONNECTIONS as f64;
    println!("{each:.1} µs to end a connection, all of them at once");
    assert!(each < 60.0, "{each:.1} µs to end a connection, all of them at once");
    server.release_memory();
    let left = grown(&region);
    assert_eq!(server.connections().count(), 0);
    println!("{left} bytes after the end of the connections");
    assert!(left < held / 10, "{left} bytes");
}
