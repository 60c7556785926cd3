//! Data in the SYN. RFC 7413, RFC 8684 appendix B.

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::{CapableKeys, WideOrNarrow};
use anabranch_wire::{Flags, Payload, Piece, Segment, SeqNumber, SocketAddress};

use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_rst, is_syn, ms, on_any_platform,
    server_address, strip, to_server,
};

/// Bytes of the request that the SYN carries.
const REQUEST: u64 = 100;

fn offering(config: ConnectionConfig) -> ConnectionConfig {
    let tcp = config.tcp.clone().fast_open(true).nagle(false);
    config.tcp(tcp)
}

fn config() -> ConnectionConfig {
    offering(on_any_platform())
}

fn request(bytes: u64) -> bytes::Bytes {
    let mut data = Vec::new();
    Payload::from(Piece::pattern(0, bytes as u32)).for_each_slice(|it| data.extend_from_slice(it));
    data.into()
}

/// The client opens one more connection, with the first `bytes` of the pattern as its first data.
fn connect(pair: &mut Pair, config: &ConnectionConfig, bytes: u64) {
    let to = SocketAddress::new(server_address(), PORT);
    pair.drain();
    let (now, from) = (pair.now, client_address(0));
    let id = pair.client.connect_with_data(now, from, to, config.clone(), request(bytes));
    pair.connection = id.expect("the addresses are valid");
    pair.accepted = None;
    (pair.received, pair.written) = ([0; 2], [bytes, 0]);
    pair.client_events.clear();
    pair.server_events.clear();
    pair.log.clear();
    pair.drain();
}

/// Two hosts whose client has a cookie of the server. `filter` treats the segments after that.
fn with_cookie(
    config: &ConnectionConfig,
    filter: impl FnMut(u64, &mut Segment) -> Fate + 'static,
) -> Pair {
    with_addresses(1, config, filter)
}

fn with_addresses(
    addresses: u8,
    config: &ConnectionConfig,
    mut filter: impl FnMut(u64, &mut Segment) -> Fate + 'static,
) -> Pair {
    let (set, is_set) = crate::pair::switch();
    let mut number = 0;
    let pair = Pair::new(addresses, config.clone(), config.clone());
    let mut pair = pair.with_filter(move |_, segment| {
        if !is_set.get() {
            return Fate::Deliver;
        }
        number += 1;
        filter(number - 1, segment)
    });
    connect(&mut pair, config, REQUEST);
    pair.run_ms(100);
    pair.close_both();
    pair.run_ms(200);
    set.set(true);
    pair
}

fn syn_of(pair: &Pair) -> Segment {
    pair.log.iter().find(|segment| is_syn(segment)).expect("it was sent").clone()
}

fn is_mptcp(pair: &Pair) -> bool {
    let accepted = pair.accepted.expect("accepted");
    pair.server.connection_stats(pair.now, accepted).expect("alive").is_mptcp
}

#[test]
fn the_first_connection_asks_for_a_cookie_and_sends_its_data_after_the_handshake() {
    // RFC 7413 §4.2.1
    let mut pair = Pair::new(1, config(), config());
    connect(&mut pair, &config(), REQUEST);
    pair.run_ms(100);
    let syn = syn_of(&pair);
    assert!(syn.options.fast_open.expect("a request").is_request() && syn.payload.is_empty());
    let answer = pair.last(|it| is_syn(it) && !to_server(it));
    let cookie = answer.options.fast_open.as_ref().expect("a cookie");
    assert!(!cookie.is_request());
    assert!(answer.options.bytes_len() <= 40);
    assert_eq!(pair.received[1], REQUEST);
}

#[test]
fn data_of_the_syn_arrives_after_half_a_round_trip_and_the_answer_after_one() {
    // RFC 7413 §4.2.2. One way takes 10 ms.
    for config in [config(), config().protocol(Protocol::Tcp), config().dss_checksum(true)] {
        let mut pair = with_cookie(&config, |_, _| Fate::Deliver);
        connect(&mut pair, &config, REQUEST);
        assert_eq!(syn_of(&pair).payload.len() as u64, REQUEST);
        pair.run_ms(10);
        assert_eq!(pair.received[1], REQUEST, "with the SYN");
        assert!(pair.server_events.contains(&Event::Accepted));
        pair.write(1, 500);
        pair.run_ms(10);
        assert_eq!(pair.received[0], 500, "with the SYN/ACK");
        pair.write(0, 5_000);
        pair.write(1, 50_000);
        pair.run_ms(1_000);
        assert_eq!(pair.received, [50_000, 5_000]);
        assert_eq!(is_mptcp(&pair), config.protocol == Protocol::Mptcp);
        pair.close_both();
        pair.run_ms(1_000);
        assert!(pair.client_events.contains(&Event::Closed));
        assert!(pair.server_events.contains(&Event::Closed));
        assert_eq!(pair.segments(is_rst), 0);
        let accepted = pair.server_events.iter().filter(|event| **event == Event::Accepted);
        assert_eq!(accepted.count(), 1);
    }
}

#[test]
fn without_a_cookie_the_same_answer_takes_two_round_trips() {
    // The comparison for the test above.
    let plain = on_any_platform().tcp(on_any_platform().tcp.clone().nagle(false));
    let mut pair = Pair::new(1, plain.clone(), plain);
    pair.write(0, REQUEST);
    let mut answered = false;
    while pair.received[0] == 0 {
        pair.run_ms(1);
        if pair.received[1] == REQUEST && !answered {
            pair.write(1, 500);
            answered = true;
        }
    }
    assert_eq!(pair.now.as_nanos(), ms(40).as_nanos());
}

#[test]
fn data_of_the_syn_has_no_data_sequence_numbers() {
    // RFC 8684 appendix B: the first byte after it is mapped as if it were not there.
    let config = config();
    let mut pair = with_cookie(&config, |_, _| Fate::Deliver);
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(10);
    pair.write(1, 500);
    pair.run_ms(10);
    let early = pair.last(|it| !to_server(it) && !it.payload.is_empty());
    let dss = early.options.dss.expect("a mapping");
    assert!(dss.data_ack.is_none(), "the server has no key of the client yet");
    assert_eq!(dss.mapping.expect("a mapping").subflow_seq, SeqNumber(1));
    pair.write(0, 300);
    pair.run_ms(5);
    let first = pair.last(|it| to_server(it) && !it.payload.is_empty());
    let keys = first.options.control.expect("MP_CAPABLE").capable.expect("MP_CAPABLE").keys;
    assert!(matches!(keys, CapableKeys::WithData { data_len: 200, .. }), "{keys:?}");
    pair.run_ms(100);
    pair.write(0, 400);
    pair.run_ms(5);
    let second = pair.last(|it| to_server(it) && !it.payload.is_empty());
    let mapping = second.options.dss.expect("a mapping").mapping.expect("a mapping");
    assert_eq!(mapping.subflow_seq, SeqNumber(301));
    pair.run_ms(100);
    let acknowledged = pair.last(|it| !to_server(it)).options.dss.expect("DSS").data_ack;
    // 200 bytes with the keys, and the 100 of this mapping, have arrived.
    let low = |number| match number {
        WideOrNarrow::Narrow(low) => low,
        WideOrNarrow::Wide(whole) => whole.low32(),
    };
    let (ack, start) = (acknowledged.map(low), low(mapping.data_seq));
    assert_eq!(ack, Some(start.wrapping_add(100)));
    assert_eq!(pair.received[1], 400);
}

#[test]
fn further_subflows_open_once_the_server_has_the_keys() {
    // RFC 8684 §3.2: before that, it would not know the token's connection as one of Multipath TCP.
    let config = config();
    let mut pair = with_addresses(2, &config, |_, _| Fate::Deliver);
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(10);
    pair.write(1, 500);
    pair.run_ms(200);
    pair.write(1, 100_000);
    pair.write(0, 100_000);
    pair.run_ms(1_000);
    assert_eq!(pair.received, [100_000; 2]);
    let subflows = pair.client.subflow_stats(pair.connection).count();
    assert_eq!((subflows, pair.segments(is_rst)), (2, 0));
}

#[test]
fn any_two_lost_segments_are_recovered() {
    for config in [config(), config().protocol(Protocol::Tcp)] {
        for lost in (0..10).flat_map(|first| (first..10).map(move |second| [first, second])) {
            let drop_them = move |n, _: &mut Segment| match lost.contains(&n) {
                true => Fate::Drop,
                false => Fate::Deliver,
            };
            let mut pair = with_cookie(&config, drop_them);
            connect(&mut pair, &config, REQUEST);
            for _ in 0..120 {
                pair.run_ms(50);
                if pair.received[1] > 0 {
                    pair.write(1, 20_000);
                }
                pair.write(0, 20_000);
            }
            assert_eq!(pair.received, [20_000; 2], "segments {lost:?} lost");
            assert_eq!(
                is_mptcp(&pair),
                config.protocol == Protocol::Mptcp,
                "segments {lost:?} lost"
            );
            assert_eq!(pair.segments(is_rst), 0, "segments {lost:?} lost");
        }
    }
}

#[test]
fn random_losses_delays_and_copies_change_no_byte() {
    let protocols = [config(), config().dss_checksum(true), config().protocol(Protocol::Tcp)];
    for (seed, config) in (0..120_u64).zip(protocols.iter().cycle()) {
        let mut state = seed * 2 + 1;
        let disturb = move |n: u64, _: &mut Segment| {
            // The multiplier is that of MMIX (Knuth).
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match (state >> 33) % 12 {
                0 | 1 if n < 60 => Fate::Drop,
                2 => Fate::Twice,
                3 => Fate::Delay(ms((state >> 40) % 40)),
                _ => Fate::Deliver,
            }
        };
        let mut pair = with_addresses(2, config, disturb);
        connect(&mut pair, config, REQUEST);
        for _ in 0..600 {
            pair.run_ms(50);
            if pair.received[1] > 0 {
                pair.write(1, 30_000);
            }
            if pair.received[0] > 0 {
                pair.write(0, 30_000);
            }
        }
        assert_eq!(pair.received, [30_000; 2], "seed {seed}");
        pair.close_both();
        pair.run_ms(60_000);
        for events in [&pair.client_events, &pair.server_events] {
            assert!(events.contains(&Event::Closed), "seed {seed}: {events:?}");
        }
    }
}

#[test]
fn segments_that_arrive_twice_or_late_change_nothing() {
    let config = config();
    for (number, late) in (0..8).flat_map(|number| [(number, false), (number, true)]) {
        let disturb = move |n, _: &mut Segment| match (n == number, late) {
            (true, true) => Fate::Delay(ms(35)),
            (true, false) => Fate::Twice,
            _ => Fate::Deliver,
        };
        let mut pair = with_cookie(&config, disturb);
        connect(&mut pair, &config, REQUEST);
        pair.run_ms(50);
        pair.write(1, 20_000);
        pair.write(0, 20_000);
        pair.run_ms(3_000);
        pair.write(1, 20_000);
        pair.run_ms(3_000);
        assert_eq!(pair.received, [20_000; 2], "segment {number}, late: {late}");
    }
}

#[test]
fn a_path_that_drops_syns_with_data_costs_one_timeout_once() {
    // RFC 7413 §4.1.3.1
    let config = config();
    let mut pair = with_cookie(&config, |_, segment| {
        if is_syn(segment) && !segment.payload.is_empty() { Fate::Drop } else { Fate::Deliver }
    });
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(2_000);
    assert_eq!(pair.received[1], REQUEST);
    assert!(is_mptcp(&pair));
    let syns: Vec<_> = pair.log.iter().filter(|it| is_syn(it) && to_server(it)).collect();
    assert_eq!(syns.len(), 2);
    assert!(syns[1].payload.is_empty() && syns[1].options.fast_open.is_none());
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(100);
    assert_eq!((pair.received[1], pair.segments(is_syn)), (REQUEST, 2));
    assert!(syn_of(&pair).options.fast_open.is_none());
}

#[test]
fn a_middlebox_that_removes_the_data_delays_it_only() {
    let config = config();
    let mut pair = with_cookie(&config, |_, segment| {
        if is_syn(segment) {
            segment.payload = Payload::EMPTY;
        }
        Fate::Deliver
    });
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(40);
    assert_eq!(pair.received[1], REQUEST);
    pair.write(1, 1_000);
    pair.run_ms(100);
    assert_eq!(pair.received[0], 1_000);
    assert!(is_mptcp(&pair));
}

#[test]
fn a_cookie_of_another_secret_is_replaced_and_the_data_follows() {
    // RFC 7413 §4.2.2
    let config = config();
    let mut pair = with_cookie(&config, |_, segment| {
        if is_syn(segment) && to_server(segment) {
            let other = anabranch_wire::FastOpenCookie::new(&[7; 6]).expect("6 bytes");
            segment.options.fast_open = Some(Box::new(other));
        }
        Fate::Deliver
    });
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(15);
    assert_eq!(pair.received[1], 0, "the data of this SYN does not count");
    let answer = pair.last(|it| is_syn(it) && !to_server(it));
    assert!(answer.options.fast_open.is_some_and(|cookie| !cookie.is_request()));
    pair.run_ms(30);
    assert_eq!(pair.received[1], REQUEST);
}

#[test]
fn a_listener_that_does_not_offer_it_gets_the_data_after_the_handshake() {
    let usual = on_any_platform();
    let mut pair = Pair::new(1, config(), usual);
    for _ in 0..2 {
        connect(&mut pair, &config(), REQUEST);
        pair.run_ms(100);
        assert_eq!(pair.received[1], REQUEST);
        assert!(syn_of(&pair).payload.is_empty());
    }
}

#[test]
fn without_multipath_options_on_some_segments_the_stream_is_plain_tcp() {
    // RFC 8684 §3.7. The server answers before it knows.
    type Choice = fn(&Segment) -> bool;
    let cases: [(&str, Choice); 4] = [
        ("SYN", |it| is_syn(it) && to_server(it)),
        ("SYN/ACK", |it| is_syn(it) && !to_server(it)),
        ("all of the client but the SYN", |it| !is_syn(it) && to_server(it)),
        ("all but the SYN and the SYN/ACK", |it| !is_syn(it)),
    ];
    for (name, choose) in cases {
        let config = config();
        let mut pair = with_cookie(&config, move |_, segment| {
            if choose(segment) {
                strip(segment);
            }
            Fate::Deliver
        });
        connect(&mut pair, &config, REQUEST);
        pair.run_ms(10);
        pair.write(1, 500);
        pair.run_ms(100);
        pair.write(0, 30_000);
        pair.write(1, 30_000);
        pair.run_ms(3_000);
        assert_eq!(pair.received, [30_000; 2], "{name}");
        assert!(!is_mptcp(&pair), "{name}");
    }
}

#[test]
fn a_server_may_end_the_stream_before_the_handshake_is_complete() {
    for config in [config(), config().protocol(Protocol::Tcp)] {
        let mut pair = with_cookie(&config, |_, _| Fate::Deliver);
        connect(&mut pair, &config, REQUEST);
        pair.run_ms(10);
        pair.write(1, 500);
        let accepted = pair.accepted.expect("accepted");
        pair.server.close(accepted);
        pair.drain();
        pair.run_ms(100);
        assert_eq!(pair.received[0], 500);
        assert!(pair.client.is_at_end(pair.connection));
        pair.client.close(pair.connection);
        pair.drain();
        pair.run_ms(1_000);
        assert!(pair.server_events.contains(&Event::Closed));
    }
}

#[test]
fn a_client_that_vanishes_after_its_syn_fails_the_connection_of_the_application() {
    let config = config();
    let mut pair = with_cookie(&config, |_, segment| {
        if to_server(segment) && !is_syn(segment) { Fate::Drop } else { Fate::Deliver }
    });
    connect(&mut pair, &config, REQUEST);
    pair.run_ms(10);
    pair.write(1, 500);
    pair.client.abort(pair.connection);
    pair.run_ms(300_000);
    let failed = |event: &Event| {
        matches!(event, Event::Failed(ConnectionError::TimedOut | ConnectionError::Reset))
    };
    assert!(pair.server_events.iter().any(failed), "{:?}", pair.server_events);
}

#[test]
fn long_data_is_cut_at_the_size_that_any_host_takes() {
    depends_on_the_platform("the initial window");
    let config = config();
    let mut pair = with_cookie(&config, |_, _| Fate::Deliver);
    connect(&mut pair, &config, 3_000);
    // RFC 7413 §4.1.3: 536 bytes without options, which take up to 40.
    assert_eq!(syn_of(&pair).payload.len(), 496);
    pair.run_ms(30);
    assert_eq!(pair.received[1], 3_000);
}

#[test]
fn data_of_syns_is_left_when_many_handshakes_are_open() {
    // RFC 7413 §5.1
    let config = config();
    let mut pair = with_cookie(&config, |_, _| Fate::Deliver);
    connect(&mut pair, &config, REQUEST);
    let syn = syn_of(&pair);
    let mut taken = 0;
    for port in 1_000..1_600 {
        let mut flood = syn.clone();
        flood.source.port = port;
        pair.server.handle_segment(pair.now, flood);
        while let Some(answer) = pair.server.poll_transmit(pair.now) {
            if answer.header.flags.contains(Flags::SYN) {
                taken += u32::from(answer.header.ack == syn.header.seq + 1 + REQUEST as u32);
            }
        }
        while pair.server.poll_event().is_some() {}
    }
    assert_eq!(taken, 256);
}
