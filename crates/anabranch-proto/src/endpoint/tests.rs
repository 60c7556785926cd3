//! Tests that need the endpoint's own state.

use super::*;
use anabranch_wire::Duration;

#[test]
fn a_key_whose_token_is_in_use_is_not_taken() {
    // RFC 8684 §3.1
    let local: IpAddr = [10, 0, 0, 1].into();
    let remote = SocketAddress::new([10, 0, 0, 2].into(), 80);
    let mut host = Endpoint::new(vec![local], [7; 32]);
    let first = keys::token(host.secrets.for_connection(1).draw("key"));
    host.tokens.insert(first, 12_345);
    host.connect(Instant::ZERO, local, remote, ConnectionConfig::default()).expect("right");
    assert_eq!(host.tokens.get(&first), Some(&12_345));
    let others: Vec<u32> = host.tokens.keys().copied().filter(|other| *other != first).collect();
    assert_eq!(others.len(), 1, "the colliding key must not be used");
}

/// Pass all segments from `from` to `to`, except for one segment in `lose`.
fn pass_on(now: Instant, from: &mut Endpoint, to: &mut Endpoint, lose: u64, count: &mut u64) {
    while let Some(segment) = from.poll_transmit(now) {
        *count += 1;
        if !count.is_multiple_of(lose) {
            to.handle_segment(now, segment);
        }
    }
}

#[test]
fn data_sequence_numbers_of_64_bits_wrap() {
    // RFC 8684 §3.3.1
    const BYTES: u64 = 200_000;
    let (local, remote) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let starts = [1_u64 << 32, 1 << 63, 0].map(|wrap| wrap.wrapping_sub(BYTES / 2));
    for (start, dss_checksum) in starts.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        keys::CHOSEN.set(Some(anabranch_wire::DataSeq(start)));
        let config = ConnectionConfig { dss_checksum, ..ConnectionConfig::default() };
        let mut client = Endpoint::new(vec![local, [10, 0, 1, 1].into()], [7; 32]);
        let mut server = Endpoint::new(vec![remote], [8; 32]);
        server.listen(80, config.clone());
        let to = SocketAddress::new(remote, 80);
        let mut now = Instant::ZERO;
        let id = client.connect(now, local, to, config).expect("right");
        client.send_pattern(id, 0, BYTES as u32).expect("room");
        let (mut received, mut count) = (0, 0);
        let mut closed = 0;
        for _ in 0..5_000 {
            for _ in 0..2 {
                pass_on(now, &mut client, &mut server, 37, &mut count);
                pass_on(now, &mut server, &mut client, 37, &mut count);
            }
            while let Some((id, event)) = server.poll_event() {
                while let Some(payload) = server.recv(id) {
                    assert!(payload.matches_pattern(received), "at {received}");
                    received += payload.len() as u64;
                }
                if event == Event::Readable && server.is_at_end(id) {
                    server.close(id);
                }
            }
            while let Some((_, event)) = client.poll_event() {
                if event == Event::Connected {
                    client.close(id);
                }
                closed += u32::from(event == Event::Closed);
            }
            now += Duration::from_millis(10);
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
        assert_eq!((received, closed), (BYTES, 1), "from {start:#x}, {dss_checksum}");
    }
    keys::CHOSEN.set(None);
}
