//! Unusual data sequence numbers, windows and acknowledgements. RFC 8684 §3.3.

use anabranch_proto::config::Protocol;
use anabranch_proto::platform::Platform;
use anabranch_wire::mptcp::{Control, Dss, Mapping, MpFail, WideOrNarrow};
use anabranch_wire::{DataSeq, Flags, Instant, Payload, Segment, SeqNumber};
use bytes::Bytes;

use super::resets::{acknowledging, sent_again, under_way};
use super::support::{
    Liar, assert_closed_and_forgotten, at_server, both, buffers, default_pair, give,
    initial_data_seq, keys, of_secrets, secret, switch,
};
use crate::pair::{
    Fate, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn, ms, to_server,
};

/// A secret with which the host's initial data sequence number is less than `bytes` before a
/// multiple of 2^32. The keys of a host follow from its secret.
fn secret_near_wrap(of_client: bool, bytes: u32) -> [u8; 32] {
    let near = (0..).map(secret).find(|secret| {
        let secrets = if of_client { (*secret, [2; 32]) } else { ([1; 32], *secret) };
        let mut pair = of_secrets(secrets.0, secrets.1, &buffers(10_000));
        pair.run_ms(30);
        let keys = keys(&pair);
        let start = initial_data_seq(if of_client { keys.0 } else { keys.1 });
        (start.0 as u32).wrapping_neg() < bytes
    });
    near.expect("one of many secrets fits")
}

#[test]
fn data_sequence_numbers_of_32_bits_may_wrap() {
    // RFC 8684 §3.3.1: the receiver infers the omitted high half from nearby numbers.
    const NEAR: u32 = 1_500_000;
    let (client, server) = (secret_near_wrap(true, NEAR), secret_near_wrap(false, NEAR));
    let mut count = 0;
    let mut pair = of_secrets(client, server, &buffers(300_000)).with_filter(move |_, _| {
        count += 1;
        match count % 53 {
            0 => Fate::Drop,
            17 => Fate::Delay(ms(70)),
            29 => Fate::Twice,
            _ => Fate::Deliver,
        }
    });
    pair.upload(3_000_000, 60_000);
    pair.download(3_000_000, 60_000);
    let wrapped = |up: bool| {
        let numbers = pair.log.iter().filter(|s| to_server(s) == up).filter_map(|segment| {
            let mapping = segment.options.dss?.mapping?;
            Some(match mapping.data_seq {
                WideOrNarrow::Narrow(number) => number,
                WideOrNarrow::Wide(number) => number.0 as u32,
            })
        });
        let numbers: Vec<u32> = numbers.collect();
        numbers.iter().any(|n| *n > u32::MAX - NEAR) && numbers.iter().any(|n| *n < NEAR)
    };
    assert!(wrapped(true) && wrapped(false), "the numbers have wrapped");
    pair.close_both();
    pair.run_ms(5_000);
    assert_closed_and_forgotten(&mut pair, "");
}

#[test]
fn the_first_of_two_mappings_of_the_same_data_counts() {
    // RFC 8684 §3.3.1
    let mut liar = Liar::new();
    liar.say(0, 0, &[1; 1000]);
    liar.say(1000, 500, &[2; 1000]);
    assert_eq!(liar.received(), [vec![1; 1000], vec![2; 500]].concat());
    assert!(liar.is_alive());
    // A mapping lies beyond a hole. The next one covers the hole and extends beyond the first.
    let mut liar = Liar::new();
    liar.say(0, 500, &[1; 300]);
    assert_eq!(liar.received(), [0; 0]);
    let held = liar.pair.server.connection_stats(liar.pair.now, at_server(&liar.pair));
    assert_eq!(held.map(|stats| stats.out_of_order_bytes), Some(300));
    liar.say(300, 0, &[2; 600]);
    let received = liar.received();
    assert_eq!(
        (received.len(), &received[..500], &received[600..]),
        (800, &[2; 500][..], &[1; 200][..])
    );
    liar.say(900, 0, &[3; 800]);
    assert_eq!(liar.received(), [0; 0], "nothing is delivered twice");
    assert!(liar.is_alive());
    let counts = liar.pair.server.counters();
    assert_eq!((counts.ofo_queue, counts.dup_data, counts.no_dss_in_window), (1, 1, 0));
}

#[test]
fn data_outside_of_the_window_is_dropped_and_old_data_is_not_delivered_again() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 8684 §3.3.5
    let mut liar = Liar::new();
    let mut at = 0;
    let far = [100_001, 1 << 31, (1 << 31) - 1, 1 << 32, i64::MAX, i64::MIN, -(1 << 31)];
    for data in far.into_iter().chain([-1000, -10_000, -500_000]) {
        liar.say(at, data, &[7; 1000]);
        at += 1000;
        assert_eq!(liar.received(), [0; 0], "{data}");
    }
    let held = liar.pair.server.connection_stats(liar.pair.now, at_server(&liar.pair));
    assert_eq!(held.map(|stats| stats.out_of_order_bytes), Some(0));
    if liar.is_alive() {
        liar.say(at, 0, &[8; 1000]);
        assert_eq!(liar.received(), [8; 1000]);
    } else {
        liar.pair.run_ms(200_000);
        assert_eq!(liar.received(), [0; 0]);
    }
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let mut liar = Liar::new();
    liar.say(0, 102_000, &[3; 1000]);
    assert_eq!(liar.pair.server.counters().no_dss_in_window, 1);
    let mut liar = Liar::new();
    liar.say(0, 99_500, &[1; 1000]);
    let held = liar.pair.server.connection_stats(liar.pair.now, at_server(&liar.pair));
    assert!(held.is_some_and(|stats| stats.out_of_order_bytes <= 1000));
    for n in 0..100 {
        liar.say(1000 + n * 1000, i64::from(n) * 1000, &[2; 1000]);
    }
    let received = liar.received();
    assert!(received.len() >= 100_000, "{}", received.len());
    assert!(received.iter().enumerate().all(|(at, byte)| {
        *byte == if (99_500..100_500).contains(&at) { 1 } else { 2 } || at >= 99_500
    }));
    assert!(received[..99_500].iter().all(|byte| *byte == 2));
    assert!(liar.is_alive());
}

#[test]
fn a_mapping_of_65535_bytes_applies_to_the_bytes_that_arrive() {
    let mut liar = Liar::new();
    liar.say_mapped(0, &[1], 0, 0, u16::MAX);
    for n in 0..65 {
        let mut segment = liar.base.clone();
        segment.header.seq = segment.header.seq + (1 + n * 1000);
        segment.header.flags = Flags::ACK;
        segment.payload = Payload::from(Bytes::from(vec![1; 1000]));
        segment.options.dss = None;
        give(&mut liar.pair, segment);
    }
    assert_eq!(liar.received(), [1; 65_001]);
    assert!(liar.is_alive());
}

#[test]
fn out_of_order_data_of_connections_and_subflows_is_counted() {
    let mut liar = Liar::new();
    for (at, data) in [1_000, 5_000, 3_000, 2_000, 0].into_iter().enumerate() {
        liar.say(at as u32 * 1000, data, &[1; 1000]);
    }
    let stats = liar.pair.server.connection_stats(liar.pair.now, at_server(&liar.pair));
    let counts = stats.map(|s| (s.out_of_order_segments, s.stray_segments, s.out_of_order_bytes));
    assert_eq!(counts, Some((4, 2, 1_000)));
}

#[test]
fn mappings_of_distant_subflow_bytes_are_not_kept() {
    let mut liar = Liar::new();
    let before = liar.pair.server.counters().dss_not_matching;
    for subflow in [1 << 20, 1 << 30, (1 << 30) * 2 - 20_000] {
        liar.say_mapped(0, &[], subflow, 0, 1000);
    }
    assert_eq!(liar.pair.server.counters().dss_not_matching - before, 3);
    for before_the_first in [1 << 31, 3 << 30, u32::MAX - (1 << 20)] {
        liar.say_mapped(0, &[], before_the_first, 0, 1000);
    }
    liar.say(0, 0, &[1; 1000]);
    assert_eq!(liar.received(), [1; 1000]);
}

#[test]
fn mappings_are_kept_up_to_64_kib_beyond_the_window_of_a_subflow() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // Twice the buffer of 100,000 bytes plus 65,536.
    let mut liar = Liar::new();
    for n in 0..400 {
        liar.say(n * 1000, i64::from(n) * 1000, &[1; 1000]);
    }
    for (from_next, kept) in
        [(260_000, true), (270_000, false), (-265_000, true), (-270_000, false)]
    {
        let before = liar.pair.server.counters().dss_not_matching;
        let from_next: i32 = from_next;
        let subflow = 400_000_u32.wrapping_add_signed(from_next);
        liar.say_mapped(400_000, &[], subflow, i64::from(subflow), 1000);
        let refused = liar.pair.server.counters().dss_not_matching - before;
        assert_eq!(refused == 0, kept, "{from_next}");
    }
}

#[test]
fn data_acks_of_unsent_or_very_old_data_are_ignored() {
    depends_on_the_platform("when acknowledgements are delayed");
    // RFC 8684 §3.3.2
    let mut pair = both(buffers(50_000), 1);
    pair.upload(100_000, 5_000);
    pair.run_ms(200);
    pair = pair.with_filter(|_, s| if to_server(s) { Fate::Drop } else { Fate::Deliver });
    pair.write(0, 150_000);
    pair.run_ms(5);
    let stats = |pair: &Pair| {
        let stats = pair.client.connection_stats(pair.now, pair.connection).expect("open");
        (stats.bytes_acknowledged, stats.available_window)
    };
    let (base, before) = (pair.last(|s| !to_server(s)), stats(&pair));
    let start = initial_data_seq(keys(&pair).0) + 1;
    let sent = 100_000 + 50_000;
    let ahead = [sent + 1, sent + 100_000, 1 << 31, 1 << 32, 1 << 62, 1 << 63];
    let back = [0, 1, 99_999, u64::MAX - 1, u64::MAX - (1 << 32)];
    for offset in ahead.into_iter().chain(back) {
        let number = start + offset;
        for data_ack in [WideOrNarrow::Wide(number), WideOrNarrow::Narrow(number.0 as u32)] {
            let mut ack = base.clone();
            ack.options.dss =
                Some(Dss { data_ack: Some(data_ack), mapping: None, data_fin: false });
            give(&mut pair, ack);
            let narrow = matches!(data_ack, WideOrNarrow::Narrow(_));
            // In 32 bits, some offsets stand for nearby numbers.
            if !narrow || offset as u32 as u64 == offset {
                assert_eq!(stats(&pair), before, "{offset:#x} {narrow}");
            }
        }
    }
    pair = pair.with_filter(|_, _| Fate::Deliver);
    pair.upload(100_000, 60_000);
    assert_eq!(pair.received[1], pair.written[0]);
}

#[test]
fn a_window_that_shrinks_or_closes_for_a_time_does_not_stall_the_connection() {
    // RFC 9293 §3.8.6: a receiver should not do this, but a sender must tolerate it.
    for (from, length, shut) in
        (0..6).flat_map(|n| [(n, 200, true), (n, 5_000, true), (n, 5_000, false)])
    {
        let (off, on) = switch();
        let mut pair = both(buffers(60_000), 2).with_filter(move |_, segment| {
            if off.get() && !to_server(segment) && !is_syn(segment) {
                segment.header.window = if shut { 0 } else { segment.header.window.min(2) };
            }
            Fate::Deliver
        });
        pair.upload(100_000, 5_000);
        pair.run_ms(from * 7);
        on.set(true);
        pair.upload(300_000, length);
        on.set(false);
        let left = pair.written[0] - pair.received[1];
        pair.upload(300_000, 30_000);
        let case = format!("{from} {length} {shut}: {left} left");
        assert_eq!(pair.received[1], pair.written[0], "{case}");
        pair.close_both();
        pair.run_ms(5_000);
        assert_closed_and_forgotten(&mut pair, &case);
    }
}

#[test]
fn a_peer_that_answers_with_a_closed_window_is_not_given_up() {
    // RFC 9293 §3.8.6.1. Linux: `tcp_rtx_probe0_timed_out`.
    for platform in [Platform::rfc(), Platform::linux(), Platform::linux_socket()] {
        let (silent, mute) = switch();
        let (closed, close) = switch();
        let mut config = buffers(60_000);
        (config.protocol, config.platform) = (Protocol::Tcp, platform);
        let mut pair = both(config, 1).with_filter(move |_, segment| {
            if closed.get() && !to_server(segment) {
                segment.header.window = 0;
            } else if closed.get() && !segment.payload.is_empty() {
                // Refused, and answered.
                segment.payload = Payload::EMPTY;
                segment.header.seq = SeqNumber(segment.header.seq.0.wrapping_sub(1));
            }
            if silent.get() { Fate::Drop } else { Fate::Deliver }
        });
        pair.upload(50_000, 1_000);
        mute.set(true);
        // Several timeouts without an answer come first.
        pair.upload(10_000, 5_000);
        close.set(true);
        mute.set(false);
        pair.run_ms(1_300_000);
        close.set(false);
        pair.run_ms(300_000);
        assert_eq!(pair.written[0], 60_000);
        assert_eq!(pair.received[1], pair.written[0], "{:?}", platform.buffers);
    }
}

#[test]
fn a_lost_window_update_is_probed_on_any_path_that_works() {
    // RFC 9293 §3.8.6.1
    for dead in [0, 1] {
        let (lost, lose) = switch();
        let (gone, kill) = switch();
        let mut pair = both(buffers(40_000), 2).with_filter(move |_, segment| {
            let lost = lost.get() && to_server(segment);
            let dead = gone.get() && is_on(segment, dead);
            if lost || dead { Fate::Drop } else { Fate::Deliver }
        });
        pair.download(100_000, 5_000);
        pair.paused = true;
        pair.download(200_000, 2_000);
        assert_eq!(pair.received[0], 100_000);
        lose.set(true);
        pair.resume();
        pair.run_ms(100);
        lose.set(false);
        kill.set(true);
        let (left, begun) = (300_000 - pair.written[1], pair.now);
        pair.download(left, 60_000);
        assert_eq!(pair.received[0], 300_000, "path {dead} dead");
        let took = pair.now.saturating_since(begun);
        assert!(took < ms(20_000), "{took:?} with path {dead} dead");
    }
}

#[test]
fn a_reader_slower_than_a_kilobyte_a_second_receives_all_data() {
    let mut pair = both(buffers(5_000), 2);
    pair.paused = true;
    pair.run_ms(100);
    let id = at_server(&pair);
    while pair.received[1] < 60_000 {
        pair.write(0, 60_000);
        if let Some(payload) = pair.server.recv(id) {
            assert!(payload.matches_pattern(pair.received[1]));
            pair.received[1] += payload.len() as u64;
        }
        pair.drain();
        pair.run_ms(1_500);
        assert!(pair.now < Instant::ZERO + ms(300_000), "{} bytes", pair.received[1]);
    }
    assert_eq!(pair.segments(is_rst), 0);
    assert!(pair.segments(|_| true) < 1_000, "no storm of probes");
}

#[test]
fn a_subflow_takes_copies_beyond_the_window_of_the_connection() {
    // RFC 8684 §3.3.5: the window belongs to the connection. A subflow accepts twice as much, and
    // at least 64 KiB.
    for (buffer, ahead, taken) in [
        (100_000, 150_000, true),
        (100_000, 250_000, false),
        (10_000, 60_000, true),
        (10_000, 70_000, false),
    ] {
        let mut liar = Liar::of(buffers(buffer));
        liar.say(ahead, 0, &[1; 1000]);
        let answer = liar.pair.last(|s| !to_server(s));
        assert_eq!(!answer.options.sack.is_empty(), taken, "{ahead} bytes ahead");
    }
}

#[test]
fn mp_fail_for_unsent_data_is_ignored() {
    // RFC 8684 §3.7
    for (ahead, believed) in [(1_000, false), (0, true)] {
        let mut liar = Liar::new();
        liar.pair.download(5_000, 1_000);
        liar.pair.run_ms(500);
        let data_seq = initial_data_seq(keys(&liar.pair).1) + 5_001 + ahead;
        let mut segment = liar.pair.last(to_server);
        let control = Control { fail: Some(MpFail { data_seq }), ..Control::default() };
        segment.options.control = Some(Box::new(control));
        segment.options.dss = None;
        give(&mut liar.pair, segment);
        let accepted = at_server(&liar.pair);
        let stats = liar.pair.server.connection_stats(liar.pair.now, accepted).expect("alive");
        assert_eq!(stats.is_mptcp, !believed, "{ahead} bytes ahead");
    }
}

#[test]
fn data_carries_an_8_byte_data_ack_if_it_fits() {
    // RFC 8684 §3.3.2: data with 8-byte numbers has arrived.
    let mut liar = Liar::new();
    liar.say(0, 0, &[1; 1000]);
    let before = liar.pair.log.len();
    liar.pair.download(10_000, 1_000);
    let carries = |s: &&Segment| !to_server(s) && !s.payload.is_empty();
    let sent: Vec<&Segment> = liar.pair.log[before..].iter().filter(carries).collect();
    assert!(sent.len() > 2, "{} segments", sent.len());
    for data in sent {
        let ack = data.options.dss.and_then(|dss| dss.data_ack);
        assert_eq!(ack, Some(WideOrNarrow::Wide(liar.data_seq + 1000)), "{data:?}");
    }
}

#[test]
fn an_opening_window_triggers_further_data_level_retransmissions() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.3.5, §3.3.6: the peer may have had no room for data that it acknowledged at the
    // TCP level.
    let mut pair = under_way();
    let start = initial_data_seq(keys(&pair).0);
    let widening = |pair: &Pair, n: u8, by: u16| {
        let mut segment = acknowledging(pair, n);
        segment.header.window += by;
        let data_ack = Some(WideOrNarrow::Wide(start + 300_001));
        segment.options.dss = Some(Dss { data_ack, ..Dss::default() });
        segment
    };
    for n in [0, 1] {
        let segment = widening(&pair, n, 1 + u16::from(n));
        give(&mut pair, segment);
        pair.run_ms(1);
    }
    assert_eq!(sent_again(&pair), 0, "no data is late");
    for _ in 0..5_000 {
        if sent_again(&pair) == 0 {
            pair.run_ms(1);
        }
    }
    let before = sent_again(&pair);
    assert!(before > 0);
    let (same, wider) = (widening(&pair, 1, 2), widening(&pair, 1, 3));
    give(&mut pair, same);
    pair.run_ms(1);
    assert_eq!(sent_again(&pair), before);
    give(&mut pair, wider);
    pair.run_ms(1);
    assert!(sent_again(&pair) > before);
}

#[test]
fn a_window_may_open_before_the_first_acknowledgement_of_data() {
    // RFC 8684 §3.3.5
    let mut pair = both(buffers(100_000), 1).with_filter(|_, segment| {
        if is_syn(segment) {
            segment.header.window = 1_000;
        }
        Fate::Deliver
    });
    pair.run_ms(21);
    pair.write(0, 100_000);
    let sent = |pair: &Pair| pair.log.iter().map(|s| s.payload.len()).sum::<usize>();
    assert_eq!(sent(&pair), 1_000);
    let mut wider = pair.last(|s| !to_server(s));
    wider.header.seq = wider.header.seq + 1;
    wider.header.flags = Flags::ACK;
    wider.header.window = 20_000;
    wider.options.control = None;
    let data_ack = Some(WideOrNarrow::Wide(initial_data_seq(keys(&pair).0) + 1));
    wider.options.dss = Some(Dss { data_ack, ..Dss::default() });
    give(&mut pair, wider);
    assert!(sent(&pair) > 5_000, "{}", sent(&pair));
}

#[test]
fn a_reader_that_pauses_receives_all_data_even_in_tiny_pieces() {
    let mut liar = Liar::new();
    liar.pair.paused = true;
    for n in 0..5_000 {
        liar.say(n, i64::from(n), &[5]);
    }
    liar.pair.resume();
    assert_eq!(liar.received(), [5; 5_000]);
    // The same with plain TCP.
    let config = buffers(100_000).protocol(Protocol::Tcp);
    let mut liar = Liar::of(config);
    liar.pair.paused = true;
    for n in 0..5_000 {
        let segment = liar.bare(n, &[5]);
        give(&mut liar.pair, segment);
    }
    liar.pair.resume();
    assert_eq!(liar.received(), [5; 5_000]);
}

#[test]
fn the_first_valid_data_fin_counts() {
    // RFC 8684 §3.3.3
    let mut liar = Liar::new();
    let accepted = at_server(&liar.pair);
    let fin = |liar: &mut Liar, data: i64| {
        let mut segment = liar.bare(0, &[]);
        let data_seq = WideOrNarrow::Wide(DataSeq(liar.data_seq.0.wrapping_add_signed(data)));
        let mapping = Mapping { data_seq, subflow_seq: SeqNumber(0), len: 1, checksum: None };
        segment.options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
        give(&mut liar.pair, segment);
    };
    liar.pair.paused = true;
    for data in [-500, 150_000, 2_000, 1_000] {
        fin(&mut liar, data);
    }
    liar.say(0, 0, &[1; 1000]);
    liar.say(1000, 1000, &[2; 900]);
    assert!(!liar.pair.server.is_at_end(accepted));
    liar.say(1900, 1900, &[3; 100]);
    assert!(!liar.pair.server.is_at_end(accepted), "there is unread data");
    liar.pair.resume();
    assert_eq!(liar.received().len(), 2_000);
    assert!(liar.pair.server.is_at_end(accepted));
    assert_eq!(liar.pair.server.counters().dss_not_matching, 0);
}

#[test]
fn a_closed_window_opens_by_at_least_a_segment() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 9293 §3.8.6.2.2
    let mut liar = Liar::of(buffers(20_000));
    liar.pair.paused = true;
    for n in 0..200 {
        liar.say(n * 100, i64::from(n) * 100, &[1; 100]);
    }
    let accepted = at_server(&liar.pair);
    let told = |liar: &mut Liar| {
        let again = liar.bare(100_u32.wrapping_neg(), &[0; 100]);
        give(&mut liar.pair, again);
        liar.pair.last(|s| !to_server(s)).header.window
    };
    let shut = told(&mut liar);
    assert!(shut < 100, "{shut}");
    let opened = (0..16).find_map(|_| {
        assert!(liar.pair.server.recv(accepted).is_some_and(|payload| payload.len() == 100));
        Some(told(&mut liar)).filter(|window| *window != shut)
    });
    assert!(opened.is_some_and(|window| window > 1_400), "{opened:?}");
}

#[test]
fn data_acknowledged_by_tcp_counts_as_acknowledged_when_mp_fail_arrives() {
    // RFC 8684 §3.7: on the last of two subflows, whose sequence numbers differ from the stream's
    // by another offset.
    let (dark, darken) = switch();
    let mut pair = default_pair(2)
        .with_filter(move |_, _| if dark.get() { Fate::Drop } else { Fate::Deliver });
    pair.upload(300_000, 5_000);
    pair.client.handle_address_change(pair.now, client_address(0), false);
    pair.drain();
    pair.upload(50_000, 5_000);
    pair.run_ms(500);
    darken.set(true);
    let before = pair.log.len();
    pair.write(0, 353_000);
    let (first, second) = (pair.log[before].header.seq, pair.log[before + 1].header.seq);
    let data_seq = initial_data_seq(keys(&pair).0) + 350_001;
    let mut fails = pair.last(|s| !to_server(s) && is_on(s, 1));
    fails.header.ack = second;
    fails.options.dss = None;
    fails.options.control_mut().fail = Some(MpFail { data_seq });
    give(&mut pair, fails);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("open");
    let acknowledged = second.distance_from(first) as u64;
    assert_eq!((stats.is_mptcp, stats.bytes_acknowledged), (false, 350_000 + acknowledged));
}
