//! Options of every subtype, version and length, with random content. RFC 8684 §3.

use anabranch_wire::mptcp::Control;
use anabranch_wire::{Flags, Segment, SocketAddress, TcpOptions};

use super::support::{Draws, at_server, both, buffers, carrying, default_pair, error_of, give};
use crate::pair::{Fate, Pair, client_address, is_syn, on_any_platform, server_address, to_server};

/// TCP option kind of Multipath TCP. RFC 8684 §3.
const MPTCP: u8 = 30;
/// Maximum length of the options in a TCP header, in bytes.
const MOST: usize = 40;

/// An option of this subtype and length with random content, sometimes twice if there is room.
fn drawn(draws: &mut Draws, subtype: u8, len: usize) -> TcpOptions {
    let mut option = vec![MPTCP, len as u8];
    option.resize(len, 0);
    for byte in &mut option[2..] {
        *byte = [0, 1, 0xff, draws.below(256) as u8][draws.below(4) as usize];
    }
    if len > 2 {
        // The low half is a version or flags.
        option[2] = subtype << 4 | option[2] & 0x0f;
    }
    let twice = draws.below(2) == 0 && 2 * len <= MOST;
    let bytes = option.repeat(if twice { 2 } else { 1 });
    TcpOptions::parse(&bytes).expect("an unknown option is no error")
}

fn every_option() -> impl Iterator<Item = (u8, usize)> {
    (0..16).flat_map(|subtype| (2..=MOST).map(move |len| (subtype, len)))
}

#[test]
fn options_of_any_kind_on_an_open_connection_do_no_harm() {
    for (subtype, len) in every_option() {
        let mut draws = Draws::new(u64::from(subtype) << 8 | len as u64);
        let mut pair = both(buffers(50_000), 2);
        pair.upload(20_000, 2_000);
        pair.run_ms(100);
        for n in 0..20 {
            let from = [client_address(0), client_address(1), server_address()][n % 3];
            let mut segment = carrying(&pair, from, Control::default());
            let timestamps = segment.options.timestamps;
            segment.options = TcpOptions { timestamps, ..drawn(&mut draws, subtype, len) };
            give(&mut pair, segment);
        }
        // Whatever the options were, the data that arrives is the stream: the pair checks each
        // byte.
        pair.upload(100_000, 3_000);
        let ended = error_of(&pair.client_events).or(error_of(&pair.server_events)).is_some();
        let case = format!("subtype {subtype}, {len} bytes, {}", pair.received[1]);
        assert!(ended || pair.received[1] == 120_000 || subtype == 2 || subtype == 6, "{case}");
        // A forged mapping may delay the stream, but not without end.
        pair.run_ms(2_000_000);
        let ended = error_of(&pair.client_events).or(error_of(&pair.server_events)).is_some();
        assert!(ended || pair.received[1] == pair.written[0], "{case}");
    }
}

#[test]
fn options_of_any_kind_in_a_handshake_neither_open_nor_prevent_connections() {
    let mut draws = Draws::new(1);
    let mut pair = default_pair(1);
    pair.upload(10_000, 1_000);
    let syn = pair.log[0].clone();
    let mut port = 1_000;
    for (subtype, len) in every_option().chain(every_option()) {
        port += 1;
        let mut stranger: Segment = syn.clone();
        stranger.source = SocketAddress::new(client_address(200), port);
        stranger.options = drawn(&mut draws, subtype, len);
        give(&mut pair, stranger.clone());
        let answer = pair.last(|s| !to_server(s));
        stranger.header.flags = Flags::ACK;
        stranger.header.seq = stranger.header.seq + 1;
        stranger.header.ack = answer.header.seq + 1;
        stranger.options = drawn(&mut draws, subtype, len);
        give(&mut pair, stranger);
    }
    assert!(pair.segments(|s| is_syn(s) && !to_server(s)) > 1_000);
    pair.accepted = pair.server.connections().next();
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 110_000);
    assert_eq!(pair.server.subflow_stats(at_server(&pair)).count(), 1);
}

#[test]
fn options_of_any_kind_on_every_answer_let_the_connection_end() {
    for (subtype, len) in every_option() {
        let mut draws = Draws::new(u64::from(subtype) << 16 | len as u64);
        let config = on_any_platform();
        let mut pair = Pair::new(2, config.clone(), config).with_filter(move |n, segment| {
            // A quarter of all segments, also in the handshake, have another option in place of
            // their own.
            if n > 0 && draws.below(4) == 0 {
                let options = drawn(&mut draws, subtype, len);
                (segment.options.dss, segment.options.control) = (options.dss, options.control);
            }
            Fate::Deliver
        });
        // Forged mappings put bytes in the wrong place.
        pair.unchecked = true;
        pair.upload(50_000, 2_000);
        pair.client.close(pair.connection);
        pair.run_ms(3_700_000);
        pair.client.abort(pair.connection);
        pair.run_ms(300_000);
        assert_eq!(pair.client.connections().count(), 0, "subtype {subtype}, {len} bytes");
        assert!(pair.log.len() < 20_000, "{} segments", pair.log.len());
    }
}
