//! Memory that connections take: counted by an allocator of the test's own.

use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::Endpoint;
use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::{Duration, Endpoint as Address, Instant, Piece};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn address(n: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0001 + n).into()
}

fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint) {
    loop {
        let mut idle = true;
        while let Some(segment) = a.poll_transmit(now) {
            b.handle_segment(now, segment);
            idle = false;
        }
        while let Some(segment) = b.poll_transmit(now) {
            a.handle_segment(now, segment);
            idle = false;
        }
        while let Some((id, _)) = a.poll_event() {
            while a.recv(id).is_some() {}
        }
        while let Some((id, _)) = b.poll_event() {
            while b.recv(id).is_some() {}
        }
        if idle {
            return;
        }
    }
}

/// Octets of memory that an established, idle connection takes at the host that accepted it, after
/// it received `octets` over so many paths and the host has released what it can.
fn idle_octets(addresses: u32, octets: u32) -> usize {
    const CONNECTIONS: usize = 500;
    let locals: Vec<IpAddr> = (0..addresses).map(address).collect();
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [2; 32]);
    server.listen(80, ConnectionConfig::default());
    let mut client = Endpoint::new(locals.clone(), [1; 32]);
    let to = Address::new(address(99), 80);
    let region = Region::new(ALLOCATOR);
    for _ in 0..CONNECTIONS {
        let id = client.connect(now, locals[0], to, ConnectionConfig::default()).expect("right");
        exchange(now, &mut client, &mut server);
        client.send(id, Piece::pattern(0, octets)).expect("open");
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
    let change = region.change();
    let grown = change.bytes_allocated - change.bytes_deallocated;
    // Both hosts have one each.
    grown / CONNECTIONS / 2
}

#[test]
fn an_idle_connection_takes_at_most_4_kib_and_one_with_two_subflows_8() {
    for (addresses, octets, bound) in [(1, 1, 4096), (1, 100_000, 4096), (2, 100_000, 8192)] {
        let each = idle_octets(addresses, octets);
        println!("{each} octets with {addresses} subflows, {octets} octets received before");
        assert!(each <= bound, "{each} octets with {addresses} subflows, {octets} received");
    }
}
