//! Two engines in memory: one connection over two subflows, driven by hand in virtual time.
//!
//! `cargo run -p anabranch-proto --example two_engines`

use std::iter::from_fn;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{Endpoint, Event};
use anabranch_wire::{Duration, Instant, SocketAddress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The client has two addresses, so its path manager opens a second subflow.
    let (wifi, cellular) = ([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    let mut client = Endpoint::new(vec![wifi, cellular], [1; 32]);
    let mut server = Endpoint::new(vec![[10, 0, 0, 1].into()], [2; 32]);
    server.listen(80, ConnectionConfig::default());

    let (mut now, to) = (Instant::ZERO, SocketAddress::new([10, 0, 0, 1].into(), 80));
    let upload = client.connect(now, wifi, to, ConnectionConfig::default())?;
    client.send(upload, vec![0x55; 1_000_000])?;

    let mut received = 0;
    while received < 1_000_000 {
        // All segments arrive 10 ms later. A real network would decide for each segment.
        let to_server: Vec<_> = from_fn(|| client.poll_transmit(now)).collect();
        let to_client: Vec<_> = from_fn(|| server.poll_transmit(now)).collect();
        now += Duration::from_millis(10);
        to_server.into_iter().for_each(|segment| server.handle_segment(now, segment));
        to_client.into_iter().for_each(|segment| client.handle_segment(now, segment));
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Readable {
                received += from_fn(|| server.recv(id)).map(|data| data.len()).sum::<usize>();
            }
        }
    }

    println!("{received} bytes in {} ms", now.as_millis());
    for subflow in client.subflow_stats(upload) {
        println!("from {}: {} bytes", subflow.local.address, subflow.bytes_sent);
        assert!(subflow.bytes_sent > 0, "both subflows carry data");
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().expect("the example runs");
}
