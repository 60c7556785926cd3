//! A short test for each failure that was found, named after the failure.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::{Endpoint, Event, SubflowStats};
use anabranch_wire::mptcp::{CapableKeys, Dss, Mapping, MpJoin, WideOrNarrow};
use anabranch_wire::{
    DataSeq, Duration, Flags, Instant, Payload, Piece, Segment, SeqNumber, SocketAddress,
    TcpHeader, TcpOptions,
};
use sha2::{Digest, Sha256};

use crate::pair::{
    Fate, PORT, Pair, both, client_address, depends_on_the_platform, ms, on_any_platform,
    server_address, switch,
};

fn default_pair(addresses: u8) -> Pair {
    both(on_any_platform(), addresses)
}

fn plain() -> ConnectionConfig {
    on_any_platform().protocol(Protocol::Tcp)
}

fn is_on(segment: &Segment, n: u8) -> bool {
    [segment.source.address, segment.destination.address].contains(&client_address(n))
}

fn to_server(segment: &Segment) -> bool {
    segment.destination.address == server_address()
}

fn server_subflow(pair: &Pair) -> SubflowStats {
    let accepted = pair.accepted.expect("accepted");
    pair.server.subflow_stats(accepted).next().expect("one subflow")
}

fn narrow_ack(ack: u32) -> Option<Dss> {
    Some(Dss { data_ack: Some(WideOrNarrow::Narrow(ack)), mapping: None, data_fin: false })
}

/// Initial data sequence numbers of client and server, from their keys.
fn initial_data_seqs(pair: &Pair) -> (u64, u64) {
    let idsn = |key: u64| {
        let digest = Sha256::digest(key.to_be_bytes());
        u64::from_be_bytes(digest[24..].try_into().expect("8 bytes"))
    };
    let keys =
        pair.log.iter().find_map(|segment| match segment.options.control.as_ref()?.capable?.keys {
            CapableKeys::Both { sender, receiver }
            | CapableKeys::WithData { sender, receiver, .. } => Some((sender, receiver)),
            _ => None,
        });
    let (client, server) = keys.expect("keys were exchanged");
    (idsn(client), idsn(server))
}

#[test]
fn closing_in_the_first_round_trip_sends_a_finite_number_of_segments() {
    for data in [true, false] {
        let mut pair = default_pair(1);
        pair.run_ms(21);
        assert!(pair.client_events.contains(&Event::Connected));
        if data {
            pair.client.send_pattern(pair.connection, 0, 100).expect("open");
        }
        pair.client.close(pair.connection);
        pair.drain();
        assert!(pair.log.len() < 10);
        pair.run_ms(1_000);
        assert_eq!(pair.received[1], if data { 100 } else { 0 });
        pair.close_both();
        pair.run_ms(5_000);
        assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
        assert!(pair.server_events.contains(&Event::Closed), "{:?}", pair.server_events);
    }
}

#[test]
fn an_ack_that_does_not_acknowledge_the_syn_ack_opens_no_connection() {
    // RFC 9293 §3.10.7.4
    let mut server = Endpoint::new(vec![server_address()], [2; 32]);
    server.listen(PORT, on_any_platform());
    let segment = |seq, ack, flags| Segment {
        source: SocketAddress::new(client_address(0), 5000),
        destination: SocketAddress::new(server_address(), PORT),
        header: TcpHeader { seq: SeqNumber(seq), ack, flags, window: 1000, urgent: 0 },
        options: TcpOptions::default(),
        payload: Payload::EMPTY,
        ecn: 0,
        checksum_ok: true,
    };
    server.handle_segment(Instant::ZERO, segment(100, SeqNumber(0), Flags::SYN));
    let syn_ack = server.poll_transmit(Instant::ZERO).expect("an answer");
    let guess = SeqNumber(syn_ack.header.seq.0.wrapping_sub(1 << 29));
    let mut blind = segment(101, guess, Flags::ACK);
    blind.payload = Payload::from(Piece::pattern(0, 10));
    server.handle_segment(Instant::ZERO, blind);
    while server.poll_transmit(Instant::ZERO).is_some() {}
    assert!(std::iter::from_fn(|| server.poll_event()).all(|(_, e)| e != Event::Accepted));
}

#[test]
fn a_connection_with_a_new_subflow_does_not_fail_a_minute_later() {
    let mut config = on_any_platform();
    config.tcp.retries = 2;
    let (dead, seen) = switch();
    let mut pair = Pair::new(2, config, on_any_platform())
        .with_filter(move |_, _| if seen.get() { Fate::Drop } else { Fate::Deliver });
    pair.upload(100_000, 5_000);
    dead.set(true);
    pair.upload(100_000, 4_000);
    dead.set(false);
    pair.run_ms(30_000);
    for _ in 0..90 {
        pair.upload(1_000, 500);
        pair.run_ms(1_000);
    }
    assert!(!pair.client_events.iter().any(|event| matches!(event, Event::Failed(_))));
    assert_eq!(pair.received[1], 290_000);
}

#[test]
fn data_sequence_numbers_half_the_space_away_are_ignored() {
    // RFC 8684 §3.3.1
    for is_ack in [true, false] {
        let mut pair = default_pair(1);
        pair.upload(5_000, 1_000);
        pair.download(5_000, 1_000);
        pair.run_ms(500);
        let (client, server) = initial_data_seqs(&pair);
        let base = if is_ack { server } else { client };
        let far = base.wrapping_add(5_001).wrapping_add(i64::MAX as u64);
        let mut forged = pair.last(|s| to_server(s) && s.options.dss.is_some());
        forged.payload = Payload::EMPTY;
        forged.header.seq = pair.last(|s| !to_server(s)).header.ack;
        for step in 0..3 {
            let number = WideOrNarrow::Wide(DataSeq(far.wrapping_sub(step)));
            let mapping =
                Mapping { data_seq: number, subflow_seq: SeqNumber(1), len: 10, checksum: None };
            forged.options.dss = Some(if is_ack {
                Dss { data_ack: Some(number), mapping: None, data_fin: false }
            } else {
                Dss { data_ack: None, mapping: Some(mapping), data_fin: true }
            });
            pair.server.handle_segment(pair.now, forged.clone());
        }
        pair.upload(5_000, 1_000);
        assert_eq!(pair.received[1], 10_000);
    }
}

#[test]
fn a_data_ack_inside_a_segment_leaves_the_rest_to_be_reinjected() {
    let (cut, seen) = switch();
    let mut pair = default_pair(2).with_slow_path(1, ms(50)).with_filter(move |_, s| {
        if seen.get() && is_on(s, 0) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(5_000, 500);
    pair.run_ms(1_000);
    let mut forged = pair.last(|s| to_server(s) && is_on(s, 0) && s.options.dss.is_some());
    let (_, server) = initial_data_seqs(&pair);
    cut.set(true);
    pair.write(1, 5_000);
    forged.payload = Payload::EMPTY;
    forged.header.seq = pair.last(|s| !to_server(s) && is_on(s, 0)).header.ack;
    forged.options.dss = narrow_ack(server.wrapping_add(1 + 100) as u32);
    pair.server.handle_segment(pair.now, forged);
    pair.drain();
    pair.run_ms(5_000);
    assert!(pair.server.counters().data_level_retransmits > 0);
}

#[test]
fn the_rest_of_a_split_segment_keeps_its_mapping() {
    // RFC 8684 §3.3.1: without reinjection on a sole subflow, data and subflow sequence numbers
    // have a constant difference.
    let mut long = 0;
    let mut pair = default_pair(1).with_filter(move |_, segment| {
        long += u32::from(segment.payload.len() > 1000);
        if long == 30 && segment.payload.len() > 1000 {
            segment.payload = segment.payload.slice(0, 500);
        }
        Fate::Deliver
    });
    pair.download(200_000, 10_000);
    let mappings = pair.log.iter().filter(|s| !s.payload.is_empty() && !to_server(s));
    let distances: std::collections::BTreeSet<u32> = mappings
        .filter_map(|segment| segment.options.dss?.mapping)
        .map(|mapping| match mapping.data_seq {
            WideOrNarrow::Narrow(seq) => seq.wrapping_sub(mapping.subflow_seq.0),
            WideOrNarrow::Wide(seq) => seq.low32().wrapping_sub(mapping.subflow_seq.0),
        })
        .collect();
    assert_eq!(distances.len(), 1);
    assert_eq!(pair.client.counters().dss_not_matching, 0);
}

#[test]
fn data_with_a_wrong_hmac_is_not_delivered() {
    // RFC 8684 §3.4.1
    // RFC 8684 §3.2
    let mut next = 0_u32;
    let mut injected = false;
    let mut pair = default_pair(2).with_filter(move |_, segment| {
        if to_server(segment)
            && let Some(Mapping { data_seq: WideOrNarrow::Narrow(seq), len, .. }) =
                segment.options.dss.and_then(|dss| dss.mapping)
        {
            next = seq.wrapping_add(u32::from(len));
        }
        if let Some(control) = &mut segment.options.control
            && let Some(MpJoin::Ack { hmac }) = &mut control.join
        {
            hmac[0] ^= 1;
            if !injected && next != 0 {
                injected = true;
                segment.options.timestamps = None;
                segment.options.dss = Some(Dss {
                    data_ack: None,
                    data_fin: false,
                    mapping: Some(Mapping {
                        data_seq: WideOrNarrow::Narrow(next),
                        subflow_seq: SeqNumber(1),
                        len: 16,
                        checksum: None,
                    }),
                });
                segment.payload = bytes::Bytes::from_static(b"not from the peer").into();
            }
        }
        Fate::Deliver
    });
    pair.upload(5_000, 50);
    pair.run_ms(2_000);
    assert!(pair.server.counters().join_ack_hmac_failure > 0);
    assert_eq!(pair.received[1], 5_000);
}

#[test]
fn when_two_of_three_paths_fail_in_turn_the_third_carries_the_data() {
    let buffer = 400_000;
    let config = on_any_platform().send_buffer(buffer).receive_buffer(buffer);
    let dead = Rc::new(Cell::new([false; 2]));
    let seen = Rc::clone(&dead);
    let mut pair = both(config, 3).with_slow_path(2, ms(50)).with_filter(move |_, s| {
        let lost = (0..2).any(|n| seen.get()[usize::from(n)] && is_on(s, n));
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(3_000_000, 20_000);
    dead.set([true, false]);
    for _ in 0..255 {
        pair.write(1, 20_000_000);
        pair.run_ms(1);
    }
    dead.set([true, true]);
    let left = 20_000_000 - pair.written[1];
    let before = pair.now;
    pair.download(left, 30_000);
    assert_eq!(pair.received[0], 20_000_000);
    assert!(pair.now.saturating_since(before) < Duration::from_secs(15));
}

#[test]
fn a_reader_that_pauses_causes_no_timeout_and_resumes() {
    // RFC 9293 §3.8.6.1: the window closes, the sender probes it, and it opens again.
    for buffer in [65_000, 100_001, 300_001, 6 << 20] {
        for protocol in [Protocol::Tcp, Protocol::Mptcp] {
            let mut pair = both(
                on_any_platform().protocol(protocol).send_buffer(8 << 20).receive_buffer(buffer),
                1,
            );
            pair.run_ms(100);
            pair.paused = true;
            pair.download(20_000_000, 20_000);
            assert_eq!(server_subflow(&pair).timeouts, 0, "{protocol:?} {buffer}");
            pair.resume();
            let left = 20_000_000 - pair.written[1];
            pair.download(left, 20_000);
            assert_eq!(pair.received[0], 20_000_000, "{protocol:?} {buffer}");
        }
    }
}

#[test]
fn held_payload_without_a_mapping_is_bounded() {
    // RFC 8684 §3.3.1
    let config = on_any_platform().receive_buffer(65_536);
    let mut pair = both(config, 1);
    pair.upload(5_000, 1_000);
    let mut segment = pair.last(|s| to_server(s) && s.options.dss.is_some());
    let start = pair.last(|s| !to_server(s)).header.ack;
    segment.header.seq = start;
    segment.options.dss = None;
    let mut acknowledged = 0;
    for _ in 0..2_000 {
        segment.payload = Payload::from(Piece::pattern(0, 1_400));
        pair.server.handle_segment(pair.now, segment.clone());
        while let Some(answer) = pair.server.poll_transmit(pair.now) {
            if answer.header.flags.contains(Flags::RST) {
                continue;
            }
            acknowledged = answer.header.ack.distance_from(start).max(acknowledged);
        }
        segment.header.seq = segment.header.seq + 1_400;
    }
    assert!(acknowledged < 4 * 65_536, "{acknowledged}");
}

#[test]
fn the_payload_of_a_segment_with_an_old_timestamp_is_ignored() {
    depends_on_the_platform("Nagle's rule");
    // RFC 7323 §5.3
    let mut pair = both(plain(), 1);
    pair.upload(5_000, 1_000);
    pair.run_ms(100);
    let mut segment = pair.last(|s| to_server(s) && !s.payload.is_empty());
    let next = pair.last(|s| !to_server(s)).header.ack;
    segment.header.seq = SeqNumber(next.0.wrapping_sub(10));
    segment.payload = bytes::Bytes::from(vec![0x55; 100]).into();
    let stamps = segment.options.timestamps.as_mut().expect("timestamps are on");
    stamps.value = stamps.value.wrapping_sub(1_000_000);
    pair.server.handle_segment(pair.now, segment);
    let answer = std::iter::from_fn(|| pair.server.poll_transmit(pair.now)).last();
    assert_eq!(answer.expect("an acknowledgement").header.ack, next);
}

#[test]
fn a_connection_closes_although_one_path_drops_the_fins() {
    // RFC 8684 §3.3.3
    for (dark, label) in [(false, "the server's FINs"), (true, "everything from its FIN on")] {
        let mut cut = false;
        let mut pair = default_pair(2).with_filter(move |_, segment| {
            let from_server = is_on(segment, 1) && !to_server(segment);
            let fin = from_server && segment.header.flags.contains(Flags::FIN);
            cut |= fin && dark;
            if fin || cut && from_server { Fate::Drop } else { Fate::Deliver }
        });
        pair.upload(100_000, 5_000);
        pair.close_both();
        for _ in 0..120 {
            pair.run_ms(60_000);
        }
        for events in [&pair.client_events, &pair.server_events] {
            assert!(events.contains(&Event::Closed), "{label}: {events:?}");
            assert!(!events.iter().any(|event| matches!(event, Event::Failed(_))), "{label}");
        }
        assert_eq!(pair.client.connections().count() + pair.server.connections().count(), 0);
    }
}

#[test]
fn an_unnecessary_probe_does_not_reduce_the_window() {
    // RFC 8985 §7.4.2: the acknowledgements are 100 ms late once.
    let (slow, seen) = switch();
    let mut pair = default_pair(1).with_filter(move |_, segment| {
        let late = seen.get() && to_server(segment);
        if late { Fate::Delay(ms(100)) } else { Fate::Deliver }
    });
    pair.download(300_000, 5_000);
    pair.run_ms(150);
    let before = server_subflow(&pair);
    slow.set(true);
    pair.write(1, 310_000);
    pair.run_ms(35);
    slow.set(false);
    pair.run_ms(300);
    let after = server_subflow(&pair);
    assert_eq!(after.probes, before.probes + 1);
    assert_eq!(before.view.ssthresh, after.view.ssthresh);
}

#[test]
fn a_late_old_acknowledgement_does_not_widen_the_window() {
    // RFC 8684 §3.3.5
    let config = plain().receive_buffer(65_000).send_buffer(1 << 20);
    let mut pair = both(config, 1);
    pair.run_ms(100);
    pair.paused = true;
    pair.write(1, 20_000_000);
    pair.run_ms(25);
    let old = pair.last(to_server);
    pair.run_ms(300);
    let accepted = pair.accepted.expect("accepted");
    let room = |pair: &Pair| {
        pair.server.connection_stats(pair.now, accepted).expect("alive").available_window
    };
    let before = room(&pair);
    pair.server.handle_segment(pair.now, old);
    assert_eq!(room(&pair), before);
}

#[test]
fn samples_from_an_outage_do_not_distort_the_timeout() {
    // RFC 6298 §3: for 5 s, data arrives but acknowledgements do not.
    let (dark, seen) = switch();
    let mut pair = both(plain(), 1).with_filter(move |_, s| {
        if seen.get() && to_server(s) { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(300_000, 5_000);
    pair.run_ms(300);
    dark.set(true);
    pair.write(1, 400_000);
    pair.run_ms(5_000);
    dark.set(false);
    pair.run_ms(3_000);
    let srtt = server_subflow(&pair).view.srtt.expect("a sample");
    assert!(srtt < ms(100), "{srtt:?} on a path of 20 ms");
}

#[test]
fn a_reset_subflow_sends_nothing_more() {
    let (lossy, seen) = switch();
    let mut count = 0;
    let mut pair = default_pair(2).with_filter(move |_, segment| {
        let data = seen.get() && is_on(segment, 1) && segment.payload.len() > 1000;
        count += u32::from(data);
        if data && count % 2 == 0 { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(2_000_000, 20_000);
    lossy.set(true);
    for _ in 0..45 {
        pair.write(1, 50_000_000);
        pair.run_ms(1);
    }
    let mut reset = pair.last(|s| is_on(s, 1) && to_server(s));
    reset.header.flags = Flags::RST;
    reset.payload = Payload::EMPTY;
    reset.options = TcpOptions::default();
    pair.server.handle_segment(pair.now, reset.clone());
    let accepted = pair.accepted.expect("it is open");
    let open = |stats: &SubflowStats| stats.is_open();
    assert_eq!(pair.server.subflow_stats(accepted).filter(open).count(), 1);
    let before = pair.log.len();
    pair.drain();
    for _ in 0..900 {
        pair.write(1, 50_000_000);
        pair.run_ms(1);
    }
    assert!(pair.server_events.iter().any(|event| matches!(event, Event::SubflowClosed(_))));
    let same = |s: &&Segment| s.destination == reset.source && !s.payload.is_empty();
    assert_eq!(pair.log[before..].iter().filter(same).count(), 0);
}
