//! Memory of a long-lived connection, counted by the test's own allocator. The test has its own
//! process, because the test harness would allocate memory for other tests.

mod hosts;

use std::alloc::System;

use anabranch_proto::Endpoint;
use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::{Duration, Instant, SocketAddress};
use hosts::{address, exchange, pass};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn memory_of_a_connection_that_alternates_between_idle_and_busy_does_not_grow() {
    let config = || {
        let mut config = ConnectionConfig::default();
        // Distant deadlines are set again and again, behind near ones.
        config.tcp.keep_alive = Some(Duration::from_secs(7_200));
        config
    };
    let mut now = Instant::ZERO;
    let mut server = Endpoint::new(vec![address(99)], [2; 32]);
    server.listen(80, config());
    let mut client = Endpoint::new(vec![address(0)], [1; 32]);
    let to = SocketAddress::new(address(99), 80);
    let id = client.connect(now, address(0), to, config()).expect("right");
    exchange(now, &mut client, &mut server);
    let mut region = Region::new(ALLOCATOR);
    for turn in 0..20_000 {
        if turn == 1_000 {
            region = Region::new(ALLOCATOR);
        }
        client.send_pattern(id, 0, 100).expect("open");
        pass(&mut now, Duration::from_millis(300), &mut client, &mut server);
    }
    let change = region.change();
    let grown = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    assert!(grown < 4_096, "{grown} bytes in 19,000 turns");
}
