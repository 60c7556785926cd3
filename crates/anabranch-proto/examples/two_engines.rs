//! Two engines in memory: one connection over two paths, driven by hand in virtual time.
//!
//! `cargo run -p anabranch-proto --example two_engines`

use std::collections::BTreeMap;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{ConnectError, ConnectionId, Endpoint, Event};
use anabranch_wire::{Duration, Endpoint as Address, Instant, Piece, Segment};

const OCTETS: u64 = 1_000_000;

fn main() -> Result<(), ConnectError> {
    // The client has two addresses, so the path manager opens a second subflow.
    let (wifi, cellular, there) =
        ([10, 1, 0, 1].into(), [10, 2, 0, 1].into(), [10, 0, 0, 1].into());
    let mut client = Endpoint::new(vec![wifi, cellular], [1; 32]);
    let mut server = Endpoint::new(vec![there], [2; 32]);
    server.listen(80, ConnectionConfig::default());
    let to = Address::new(there, 80);
    let upload = client.connect(Instant::ZERO, wifi, to, ConnectionConfig::default())?;

    // Segments under way, by time of arrival; the number keeps them in order.
    let mut network: BTreeMap<(Instant, u64), (bool, Segment)> = BTreeMap::new();
    // When the transmitter of each path is free.
    let mut free_at = [Instant::ZERO; 2];
    let (mut now, mut number, mut written, mut received) = (Instant::ZERO, 0, 0, 0);
    while received < OCTETS {
        // Write until the send buffer is full; data for a test is a slice of a pattern.
        let piece = Piece::pattern(written, (OCTETS - written) as u32);
        written += client.send(upload, piece).map_or(0, |octets| octets as u64);
        received += read(&mut server);
        while client.poll_event().is_some() {}

        // Pull until empty.
        for (host, to_server) in [(&mut client, true), (&mut server, false)] {
            while let Some(segment) = host.poll_transmit(now) {
                let ends = [segment.source.address, segment.destination.address];
                let path = usize::from(ends.contains(&cellular));
                // Both paths send at 8 Mbit/s, one octet per microsecond.
                free_at[path] = free_at[path].max(now) + micros(segment.wire_len());
                let arrival = free_at[path] + micros([10_000, 30_000][path]);
                network.insert((arrival, number), (to_server, segment));
                number += 1;
            }
        }

        // Go on to the next arrival or deadline.
        let arrival = network.first_key_value().map(|((at, _), _)| *at);
        let deadlines = [arrival, client.poll_timeout(), server.poll_timeout()];
        let next = deadlines.into_iter().flatten().min();
        now = now.max(next.expect("a transfer that is under way waits for something"));
        if arrival == Some(now) {
            let (_, (to_server, segment)) = network.pop_first().expect("it arrives now");
            let host = if to_server { &mut server } else { &mut client };
            host.handle_segment(now, segment);
        } else {
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
    }
    report(now, &client, upload);
    Ok(())
}

fn micros(count: usize) -> Duration {
    Duration::from_micros(count as u64)
}

/// Read all data that is in order. Returns the number of octets.
fn read(server: &mut Endpoint) -> u64 {
    let mut octets = 0;
    while let Some((id, event)) = server.poll_event() {
        if event == Event::Readable {
            octets += std::iter::from_fn(|| server.recv(id)).map(|p| p.len() as u64).sum::<u64>();
        }
    }
    octets
}

fn report(now: Instant, client: &Endpoint, upload: ConnectionId) {
    println!("{OCTETS} octets in {} ms", now.as_millis());
    let subflows: Vec<_> = client.subflow_stats(upload).collect();
    for subflow in &subflows {
        println!("  from {}: {} octets", subflow.local.address, subflow.octets_sent);
    }
    assert_eq!(subflows.len(), 2, "the path manager opened the second subflow");
    assert!(subflows.iter().all(|subflow| subflow.octets_sent > 0), "both subflows carry data");
}

#[test]
fn it_runs() {
    main().expect("the addresses are right");
}
