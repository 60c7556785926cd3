//! Segments from an attacker who does not see the connection's segments. RFC 5961, CVE-2016-5696.

use anabranch_proto::config::Protocol;
use anabranch_wire::mptcp::Control;
use anabranch_wire::{Flags, Payload, Piece, SackBlock, SackBlocks, Segment, SocketAddress};

use super::support::{Draws, at_server, both, carrying, give, live, switch};
use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_on, ms, on_any_platform,
    server_address, to_server,
};

/// Maximum number of challenge ACKs per second on one subflow.
const MOST_CHALLENGES: usize = 10;

/// A segment of a blind attacker. Addresses and ports are known, but the offset `ahead` from the
/// expected byte is a guess.
fn forged(pair: &Pair, from_client: bool, path: u8, flags: Flags, ahead: u32) -> Segment {
    let last = pair.last(|s| is_on(s, path) && to_server(s) != from_client);
    let mut segment = last.clone();
    std::mem::swap(&mut segment.source, &mut segment.destination);
    segment.header.seq = last.header.ack + ahead;
    segment.header.ack = last.header.seq;
    segment.header.flags = flags;
    segment.payload = Payload::EMPTY;
    segment.options = anabranch_wire::TcpOptions::default();
    segment
}

fn from_target(pair: &Pair, from_client: bool, path: u8) -> usize {
    pair.segments(|s| is_on(s, path) && to_server(s) != from_client)
}

#[test]
fn blind_resets_and_syns_in_the_window_do_no_harm_and_get_ten_answers_a_second() {
    depends_on_the_platform("segments without_slot timestamps count");
    // RFC 5961 §3.2, §4.2, §7
    let kinds = [Flags::RST, Flags::RST | Flags::ACK, Flags::SYN, Flags::SYN | Flags::ACK];
    for (from_client, path) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let mut pair = both(on_any_platform(), 2);
        pair.upload(200_000, 5_000);
        pair.download(200_000, 5_000);
        pair.run_ms(1_500);
        for flags in kinds {
            let before = from_target(&pair, from_client, path);
            let base = forged(&pair, from_client, path, flags, 0);
            // Every 64th byte of 16 MiB, which is more than the largest window, and both edges.
            for n in 1..(1 << 18) {
                let mut segment = base.clone();
                segment.header.seq = segment.header.seq + n * 64;
                give(&mut pair, segment);
            }
            for edge in [1, 2, u32::MAX, u32::MAX - 1, 1 << 31] {
                let mut segment = base.clone();
                segment.header.seq = segment.header.seq + edge;
                give(&mut pair, segment);
            }
            let answers = from_target(&pair, from_client, path) - before;
            let case = format!("{flags:?} to {path}, {answers} answers");
            assert!((1..=MOST_CHALLENGES).contains(&answers), "{case}");
            assert_eq!(live(&pair.client, pair.connection), 2, "{case}");
            assert_eq!(live(&pair.server, at_server(&pair)), 2, "{case}");
            pair.run_ms(1_500);
        }
        pair.upload(100_000, 5_000);
        pair.download(100_000, 5_000);
        assert_eq!(pair.received, [300_000; 2]);
    }
}

#[test]
fn blind_data_and_acknowledgements_change_nothing() {
    // RFC 5961 §5.2: the attacker has to guess the acknowledgement number as well. RFC 8684 §3.3.1:
    // and data without a mapping has no place in the stream.
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        let config = on_any_platform().protocol(protocol);
        let mut pair = both(config, 2);
        pair.upload(200_000, 5_000);
        pair.run_ms(500);
        let mut draws = Draws::new(5);
        let base = forged(&pair, true, 0, Flags::ACK, 0);
        for _ in 0..100_000 {
            let mut segment = base.clone();
            segment.header.seq = segment.header.seq + draws.below(1 << 24) as u32;
            // Beyond the numbers that the largest window would accept as old.
            let distance = (1 << 25) + draws.below((1 << 32) - (1 << 26));
            segment.header.ack = segment.header.ack + distance as u32;
            segment.payload = Payload::from(Piece::pattern(7, draws.below(1_000) as u32));
            pair.server.handle_segment(pair.now, segment);
        }
        pair.drain();
        pair.upload(200_000, 5_000);
        assert_eq!(pair.received[1], 400_000, "{protocol:?}");
    }
}

#[test]
fn challenge_acks_of_one_connection_reveal_nothing_about_another() {
    depends_on_the_platform("segments without_slot timestamps count");
    // CVE-2016-5696: a limit that all connections share would tell an attacker about their state.
    let challenged = |attacked: usize| {
        let mut pair = both(on_any_platform(), 1);
        pair.upload(10_000, 1_000);
        let to = SocketAddress::new(server_address(), PORT);
        let config = on_any_platform();
        let other = pair.client.connect(pair.now, client_address(0), to, config).expect("right");
        pair.run_ms(2_000);
        let ports = [pair.connection, other].map(|id| pair.client.local_port(id).expect("open"));
        let [first, second] = ports.map(|port| {
            let last = pair.last(|s| s.destination.port == port);
            let mut syn = forged(&pair, true, 0, Flags::SYN, 0);
            (syn.source, syn.header.seq) = (last.destination, last.header.ack + 100);
            syn
        });
        for _ in 0..attacked {
            give(&mut pair, first.clone());
        }
        let answers = |pair: &Pair| pair.segments(|s| s.destination.port == ports[1]);
        let before = answers(&pair);
        for _ in 0..100 {
            give(&mut pair, second.clone());
        }
        answers(&pair) - before
    };
    assert_eq!(challenged(0), MOST_CHALLENGES);
    assert_eq!(challenged(1_000), MOST_CHALLENGES);
}

#[test]
fn a_receiver_that_discards_sacked_data_receives_it_again() {
    // RFC 2018 §8: only cumulative acknowledgements are final.
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        for first in [1, 1_432, 5_000] {
            let (off, lose) = switch();
            let config = on_any_platform().protocol(protocol);
            let mut pair = both(config, 1).with_filter(move |_, segment| {
                if off.get() && to_server(segment) { Fate::Drop } else { Fate::Deliver }
            });
            pair.upload(100_000, 5_000);
            pair.run_ms(500);
            lose.set(true);
            pair.write(0, 200_000);
            pair.run_ms(5);
            let mut lie = carrying(&pair, server_address(), Control::default());
            let sent = pair.last(to_server);
            let end = sent.header.seq + sent.payload.len() as u32;
            let mut sack = SackBlocks::default();
            sack.push(SackBlock { start: lie.header.ack + first, end });
            (lie.options.sack, lie.options.control) = (sack, None);
            give(&mut pair, lie);
            lose.set(false);
            let begun = pair.now;
            pair.upload(100_000 - (pair.written[0] - 100_000), 30_000);
            assert_eq!(pair.received[1], 200_000, "{protocol:?}, from {first} on");
            let took = pair.now.saturating_since(begun);
            assert!(took < ms(5_000), "{took:?}, {protocol:?}, from {first} on");
        }
    }
}

#[test]
fn a_storm_of_duplicate_reports_does_not_stall_the_connection() {
    // RFC 2883
    let mut pair = both(on_any_platform(), 1);
    pair.upload(100_000, 5_000);
    pair.run_ms(200);
    let base = carrying(&pair, server_address(), Control::default());
    let mut draws = Draws::new(3);
    for n in 0..50_000 {
        let mut lie = base.clone();
        let start = lie.header.ack + (draws.below(200_000) as u32).wrapping_sub(100_000);
        let mut sack = SackBlocks::default();
        for k in 0..3 {
            let start = start + k * draws.below(5_000) as u32;
            sack.push(SackBlock { start, end: start + draws.below(3_000) as u32 });
        }
        (lie.options.sack, lie.options.control) = (sack, None);
        pair.client.handle_segment(pair.now, lie);
        if n % 100 == 0 {
            let target = pair.written[0] + 1_000;
            pair.write(0, target);
            pair.run_ms(1);
        }
    }
    pair.upload(100_000, 60_000);
    assert_eq!(pair.received[1], pair.written[0]);
}
