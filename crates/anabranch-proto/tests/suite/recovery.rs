//! TCP on one subflow: loss, reordering, timers, and forged segments.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anabranch_proto::config::{ConnectionConfig, Protocol, TcpConfig};
use anabranch_proto::platform::Platform;
use anabranch_proto::{ConnectionError, Endpoint, Event, SubflowStats};
use anabranch_wire::{Duration, Flags, Instant, Payload, Piece, SocketAddress};
use anabranch_wire::{Segment, SeqNumber};

use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_syn, ms, on_any_platform,
    server_address, to_server,
};

fn tcp(change: impl FnOnce(&mut TcpConfig)) -> ConnectionConfig {
    let mut config = on_any_platform().protocol(Protocol::Tcp);
    change(&mut config.tcp);
    config
}

fn on(platform: Platform) -> ConnectionConfig {
    tcp(|_| {}).platform(platform)
}

fn pair_of(config: ConnectionConfig) -> Pair {
    Pair::new(1, config.clone(), config)
}

fn client(pair: &Pair) -> SubflowStats {
    pair.client.subflow_stats(pair.connection).next().expect("one subflow")
}

fn is_upload_data(segment: &Segment) -> bool {
    segment.destination.address == server_address() && !segment.payload.is_empty()
}

/// Drop the data segments of an upload with these numbers, counted from 0. Retransmissions pass.
fn dropping(config: ConnectionConfig, wanted: &'static [u64]) -> Pair {
    let mut seen = 0;
    let mut last = None;
    pair_of(config).with_filter(move |_, segment| {
        let seq = segment.header.seq;
        let new = is_upload_data(segment)
            && last.is_none_or(|last: SeqNumber| seq.distance_from(last) > 0);
        if !new {
            return Fate::Deliver;
        }
        last = Some(seq);
        seen += 1;
        if wanted.contains(&(seen - 1)) { Fate::Drop } else { Fate::Deliver }
    })
}

#[test]
fn a_single_loss_is_repaired_by_one_retransmission_without_a_timeout() {
    // RFC 8684 §3.3.1
    // RFC 8985 §6.2
    let mut pair = dropping(tcp(|_| {}), &[30]);
    pair.upload(200_000, 2_000);
    assert_eq!(pair.received[1], 200_000);
    let stats = client(&pair);
    assert_eq!((stats.segments_retransmitted, stats.timeouts, stats.recoveries), (1, 0, 1));
}

#[test]
fn many_losses_in_one_window_cost_one_reduction_and_no_timeout() {
    // RFC 6675 §5
    let mut pair = dropping(tcp(|_| {}), &[40, 42, 45, 50, 51]);
    pair.upload(300_000, 2_000);
    let stats = client(&pair);
    assert_eq!((stats.segments_retransmitted, stats.timeouts, stats.recoveries), (5, 0, 1));
}

#[test]
fn without_sack_losses_are_repaired_by_partial_acknowledgements() {
    // RFC 6582 §3.2
    let mut pair = dropping(tcp(|tcp| tcp.sack = false), &[40, 44]);
    pair.upload(300_000, 4_000);
    assert_eq!(pair.received[1], 300_000);
    let stats = client(&pair);
    assert_eq!((stats.timeouts, stats.recoveries), (0, 1));
}

#[test]
fn a_probe_repairs_a_lost_tail_before_the_timeout() {
    // RFC 8985 §7: 20 segments, the last one lost.
    let mut pair = dropping(tcp(|_| {}), &[19]);
    pair.upload(20 * 1448, 2_000);
    let stats = client(&pair);
    assert_eq!((stats.probes, stats.timeouts), (1, 0));
    assert!(pair.now.as_millis() < 400, "{:?}", pair.now);
}

#[test]
fn a_lost_retransmission_is_detected_without_a_timeout() {
    // RFC 8985 §6.2: losses are detected by transmission time, so a lost retransmission is detected
    // as well.
    let mut copies = 0;
    let mut target = None;
    let mut pair = pair_of(tcp(|_| {})).with_filter(move |n, segment| {
        if target.is_none() && n > 40 && is_upload_data(segment) {
            target = Some(segment.header.seq);
        }
        let hit = is_upload_data(segment) && target == Some(segment.header.seq);
        copies += u32::from(hit);
        if hit && copies <= 2 { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(2_000_000, 3_000);
    assert_eq!(pair.received[1], 2_000_000);
    assert_eq!(client(&pair).timeouts, 0);
}

#[test]
fn reordering_is_learnt_and_its_reductions_are_undone() {
    // RFC 8985 §6.2 step 4, RFC 4015: every 50th segment arrives 8 ms late.
    let mut pair = pair_of(tcp(|_| {})).with_filter(|n, segment| {
        if n % 50 == 49 && is_upload_data(segment) { Fate::Delay(ms(8)) } else { Fate::Deliver }
    });
    pair.upload(3_000_000, 10_000);
    let stats = client(&pair);
    assert_eq!(pair.received[1], 3_000_000);
    assert_eq!(stats.timeouts, 0);
    assert!(stats.recoveries <= 3 + stats.undone, "{} {}", stats.recoveries, stats.undone);
}

#[test]
fn a_silent_path_is_retried_at_doubling_intervals() {
    // RFC 6298 §5.5
    let mut pair =
        pair_of(tcp(|_| {})).with_filter(|n, _| if n < 30 { Fate::Deliver } else { Fate::Drop });
    pair.upload(100_000, 100);
    let before = pair.log.len();
    let mut times = Vec::new();
    for _ in 0..8_000 {
        let sent = pair.log.len();
        pair.run_ms(1);
        if pair.log.len() > sent {
            times.push(pair.now.as_millis());
        }
    }
    assert!(pair.log.len() > before);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for gap in gaps.windows(2).skip(1) {
        let ratio = gap[1] as f64 / gap[0] as f64;
        assert!((1.9..=2.1).contains(&ratio), "{gaps:?}");
    }
}

#[test]
fn a_timeout_because_of_a_long_delay_is_undone() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 3522, RFC 4015: all segments are delayed by 400 ms once.
    let mut pair = pair_of(tcp(|_| {})).with_filter(|n, _| {
        if (200..260).contains(&n) { Fate::Delay(ms(400)) } else { Fate::Deliver }
    });
    pair.upload(3_000_000, 5_000);
    let stats = client(&pair);
    assert!(stats.timeouts >= 1 && stats.undone >= 1, "{} {}", stats.timeouts, stats.undone);
    assert_eq!(pair.received[1], 3_000_000);
}

#[test]
fn an_acknowledgement_is_sent_for_every_second_segment_or_after_40_ms() {
    // RFC 9293 §3.8.6.3, on the platform that does not start with immediate acknowledgements.
    let mut pair = pair_of(on(Platform::rfc()));
    pair.upload(1_000 * 1448, 5_000);
    let acks = pair.segments(|s| s.source.address == server_address() && !is_syn(s));
    assert!((500..=520).contains(&acks), "{acks} acknowledgements for 1000 segments");
}

#[test]
fn small_writes_wait_for_an_acknowledgement_but_the_end_of_a_large_write_does_not() {
    // RFC 9293 §3.7.4. Linux waits only while another short segment is unacknowledged.
    for (platform, round_trips) in [(Platform::default(), 1), (Platform::rfc(), 2)] {
        let mut pair = pair_of(on(platform));
        pair.run_ms(50);
        let before = pair.now;
        pair.upload(10_000, 1_000);
        let elapsed = pair.now.saturating_since(before);
        assert!(elapsed >= ms(20 * (round_trips - 1)), "{platform:?}: {elapsed:?}");
        assert!(elapsed < ms(20 * round_trips), "{platform:?}: {elapsed:?}");
    }
    let mut pair = pair_of(tcp(|_| {}));
    pair.run_ms(50);
    for bytes in (100..=1_000).step_by(100) {
        pair.write(0, bytes);
    }
    pair.run_ms(1_000);
    assert_eq!(pair.received[1], 1_000);
    assert_eq!(pair.segments(is_upload_data), 2, "the first 100 bytes, then the rest");
}

/// A client that sends a keep-alive probe every `seconds` seconds, up to `retries` of them. The
/// path drops all segments after the first `segments`. Where an acknowledgement of the SYN/ACK comes
/// before data, that is one more.
fn asking(seconds: u64, retries: u32, segments: u64) -> Pair {
    let keep_alive = tcp(|tcp| {
        tcp.keep_alive = Some(Duration::from_secs(seconds));
        tcp.retries = retries;
    });
    let acknowledges_first = keep_alive.platform.acknowledges_opening_early;
    let segments = segments.saturating_add(acknowledges_first.into());
    Pair::new(1, keep_alive, tcp(|_| {}))
        .with_filter(move |n, _| if n < segments { Fate::Deliver } else { Fate::Drop })
}

#[test]
fn keep_alive_detects_a_dead_peer() {
    // RFC 9293 §3.8.4: three probes at intervals of 10 s, and then the connection fails.
    let mut pair = asking(10, 3, 4);
    pair.upload(1_000, 500);
    assert_eq!(pair.received[1], 1_000);
    pair.run_ms(30_000);
    assert!(!pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
    pair.run_ms(15_000);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn keep_alive_probes_are_answered_and_keep_the_connection() {
    let mut pair = asking(10, 15, u64::MAX);
    pair.upload(1_000, 500);
    let before = pair.log.len();
    pair.run_ms(100_000);
    let probes = pair.log[before..].iter().filter(|s| s.destination.address == server_address());
    assert!((9..=11).contains(&probes.count()), "one probe every 10 s");
    pair.upload(1_000, 500);
    assert_eq!(pair.received[1], 2_000);
}

#[test]
fn keep_alive_sends_no_probes_while_data_is_in_flight() {
    // RFC 9293 §3.8.4: the retransmission timer detects a dead peer.
    let mut pair = asking(1, 8, 4);
    pair.upload(1_000, 30_000);
    assert_eq!(pair.client.counters().keep_alive_probes, 0);
    assert!(!pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn keep_alive_begins_with_the_connection_and_ends_with_it() {
    // The client sends probes even if no segment follows the SYN/ACK.
    let mut pair = asking(1, 15, 2);
    pair.run_ms(20_000);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
    // No probes are sent in TIME-WAIT.
    let mut pair = asking(1, 15, u64::MAX);
    pair.upload(1_000, 500);
    pair.close_both();
    pair.run_ms(500);
    let before = pair.log.len();
    pair.run_ms(50_000);
    assert_eq!(pair.log.len(), before);
}

#[test]
fn the_user_timeout_ends_a_connection_whose_data_is_never_acknowledged() {
    // RFC 9293 §3.8.3
    let mut pair = pair_of(tcp(|tcp| tcp.user_timeout = Some(Duration::from_secs(5))))
        .with_filter(|n, _| if n < 10 { Fate::Deliver } else { Fate::Drop });
    pair.upload(1_000_000, 100);
    pair.run_ms(6_000);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

/// A segment forged by an attacker who knows the addresses and ports. It starts `ahead` bytes after
/// the byte that the server expects.
fn forged(pair: &Pair, flags: Flags, ahead: u32) -> Segment {
    let last = pair.log.iter().rev().find(|s| s.source.address == server_address());
    let last = last.expect("the server has spoken");
    let mut segment = last.clone();
    std::mem::swap(&mut segment.source, &mut segment.destination);
    segment.header.seq = last.header.ack + ahead;
    segment.header.ack = last.header.seq;
    segment.header.flags = flags;
    segment.payload = anabranch_wire::Payload::EMPTY;
    segment.options = anabranch_wire::TcpOptions::default();
    segment
}

#[test]
fn a_reset_is_accepted_only_at_the_exact_number_and_challenged_elsewhere() {
    depends_on_the_platform("segments without_slot timestamps count");
    // RFC 5961 §3.2
    let mut pair = pair_of(tcp(|_| {}));
    pair.upload(10_000, 1_000);
    pair.run_ms(500);
    for ahead in [1, 1_000, 100_000] {
        let before = pair.log.len();
        let reset = forged(&pair, Flags::RST, ahead);
        pair.server.handle_segment(pair.now, reset);
        pair.drain();
        assert_eq!(pair.log.len(), before + 1, "one challenge at {ahead}");
    }
    pair.upload(10_000, 1_000);
    assert_eq!(pair.received[1], 20_000);
    let reset = forged(&pair, Flags::RST, 0);
    pair.server.handle_segment(pair.now, reset);
    pair.drain();
    assert!(pair.server_events.contains(&Event::Failed(ConnectionError::Reset)));
}

#[test]
fn a_syn_inside_the_window_is_challenged_and_challenges_are_limited() {
    depends_on_the_platform("segments without_slot timestamps count");
    // RFC 5961 §4.2, §7
    let mut pair = pair_of(tcp(|_| {}));
    pair.upload(10_000, 1_000);
    pair.run_ms(500);
    let before = pair.log.len();
    for _ in 0..1_000 {
        let syn = forged(&pair, Flags::SYN, 0);
        pair.server.handle_segment(pair.now, syn);
        pair.drain();
    }
    let challenges = pair.log.len() - before;
    assert!((1..=20).contains(&challenges), "{challenges} challenges in no time");
    pair.upload(10_000, 1_000);
    assert_eq!(pair.received[1], 20_000);
}

#[test]
fn a_segment_with_an_old_timestamp_is_dropped() {
    // RFC 7323 §5.3
    let mut pair = pair_of(tcp(|_| {}));
    pair.upload(10_000, 1_000);
    let data = pair.log.iter().rfind(|s| is_upload_data(s)).expect("data was sent").clone();
    let mut old = data;
    old.header.seq = forged(&pair, Flags::ACK, 0).header.seq;
    old.payload = anabranch_wire::Payload::from(anabranch_wire::Piece::pattern(7, 100));
    let stamps = old.options.timestamps.as_mut().expect("timestamps are on");
    stamps.value = stamps.value.wrapping_sub(100_000);
    pair.server.handle_segment(pair.now, old);
    pair.drain();
    assert_eq!(pair.received[1], 10_000);
    pair.upload(10_000, 1_000);
    assert_eq!(pair.received[1], 20_000);
}

#[test]
fn the_window_restarts_after_an_idle_time() {
    // RFC 5681 §4.1
    let mut pair = pair_of(tcp(|_| {}));
    pair.upload(2_000_000, 5_000);
    let wide = client(&pair).view.cwnd;
    pair.run_ms(20_000);
    pair.upload(1_448, 100);
    let restarted = client(&pair).view.cwnd;
    assert!(wide > 4 * restarted && restarted >= 10 * 1448, "{wide} {restarted}");
    assert_eq!(client(&pair).idle_restarts, 1);
}

/// Some segments are late, and none is lost. Returns the sender's totals.
fn upload_with_late_segments(platform: Platform) -> SubflowStats {
    let mut draw = 12_345u64;
    let mut pair = pair_of(on(platform)).with_filter(move |_, segment| {
        if segment.destination.address != server_address() || segment.payload.is_empty() {
            return Fate::Deliver;
        }
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let late = (draw >> 33).is_multiple_of(20);
        if late { Fate::Delay(ms((draw >> 45) % 15 + 1)) } else { Fate::Deliver }
    });
    pair.upload(80_000_000, 120_000);
    client(&pair)
}

#[test]
fn reductions_because_of_reordering_are_undone_although_retransmissions_are_in_flight() {
    depends_on_the_platform("when acknowledgements are delayed");
    let linux = Platform::default();
    let prompt = Platform { reordering: Platform::rfc().reordering, ..linux };
    // Linux waits longer before it takes a segment for lost.
    for (platform, least) in [(prompt, 10), (linux, 1)] {
        let stats = upload_with_late_segments(platform);
        assert!(stats.recoveries >= least, "{}", stats.recoveries);
        assert_eq!(stats.undone, stats.recoveries + stats.timeouts);
    }
}

#[test]
fn what_overtook_a_late_segment_lets_the_window_grow_where_acknowledgements_are_counted_by_bytes() {
    // RFC 5681 §3.1; Linux (`tcp_may_raise_cwnd`) does not count what arrived beyond a hole.
    let linux = Platform::default();
    let rfc = Platform { reordering: Platform::rfc().reordering, ..linux };
    for (platform, grown_to) in [(linux, 18), (rfc, 20)] {
        let mut sent = 0;
        let mut pair = pair_of(on(platform)).with_filter(move |_, segment| {
            sent += u64::from(is_upload_data(segment));
            // Two of the ten segments of the initial window overtake the eighth.
            if is_upload_data(segment) && sent == 8 { Fate::Delay(ms(2)) } else { Fate::Deliver }
        });
        pair.upload(10 * 1448, 1_000);
        pair.run_ms(100);
        let view = client(&pair).view;
        assert_eq!(view.cwnd / u64::from(view.mss), grown_to);
    }
}

/// A late segment is retransmitted needlessly, and the reduction is undone. Then a segment is lost.
/// The duplicate report of the first retransmission says nothing about the second.
#[test]
fn a_duplicate_report_about_an_earlier_recovery_undoes_nothing() {
    for (late, gap) in (0..45).step_by(5).flat_map(|late| [22, 26, 30].map(|gap| (late, gap))) {
        let (mut seen, mut newest, mut target) = (0, None, None);
        let (mut since, mut dropped) = (0, false);
        let mut pair = pair_of(tcp(|_| {})).with_filter(move |_, segment| {
            if segment.destination.address != server_address() || segment.payload.is_empty() {
                return Fate::Deliver;
            }
            let (seq, stamps) = (segment.header.seq, segment.options.timestamps);
            let stamp = stamps.expect("in use").value;
            if Some(seq) == target {
                return Fate::Delay(ms(late));
            }
            if newest.is_some_and(|newest| seq.distance_from(newest) <= 0) {
                return Fate::Deliver;
            }
            newest = Some(seq);
            seen += 1;
            if seen == 45 {
                (target, since) = (Some(seq), stamp);
                return Fate::Delay(ms(8));
            }
            if !dropped && target.is_some() && stamp.wrapping_sub(since) >= gap {
                dropped = true;
                return Fate::Drop;
            }
            Fate::Deliver
        });
        pair.upload(2_000_000, 5_000);
        let stats = client(&pair);
        assert!(stats.undone < stats.recoveries, "late {late}, gap {gap}: {}", stats.undone);
    }
}

/// A connection of plain TCP, and a switch that makes the path drop everything in both directions.
fn silenced() -> (Pair, Rc<Cell<bool>>) {
    let dark = Rc::new(Cell::new(false));
    let seen = Rc::clone(&dark);
    let pair = pair_of(tcp(|_| {}))
        .with_filter(move |_, _| if seen.get() { Fate::Drop } else { Fate::Deliver });
    (pair, dark)
}

#[test]
fn initial_sequence_numbers_follow_the_clock() {
    // RFC 9293 §3.4.1: for equal addresses and ports, the number grows by one every 64 ns (in the
    // RFC, every 4 µs).
    let start = |at: Instant| {
        let mut host = Endpoint::new(vec![client_address(0)], [1; 32]);
        let to = SocketAddress::new(server_address(), PORT);
        host.connect(at, client_address(0), to, tcp(|_| {})).expect("the addresses are valid");
        host.poll_transmit(at).expect("a SYN").header.seq
    };
    let minute = Instant::ZERO + Duration::from_secs(64);
    assert_eq!(start(minute).distance_from(start(Instant::ZERO)), 1_000_000_000);
}

#[test]
fn a_syn_is_retransmitted_as_often_as_configured() {
    // RFC 9293 §3.8.3
    depends_on_the_platform("SYN retransmissions before the timeout doubles");
    let mut pair = pair_of(tcp(|tcp| tcp.syn_retries = 2)).with_filter(|_, _| Fate::Drop);
    pair.run_ms(60_000);
    assert_eq!(pair.segments(is_syn), 3);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

#[test]
fn after_one_timeout_sacked_data_is_not_retransmitted() {
    // RFC 6675 §5.1: there are ten holes, more than an acknowledgement can report. No
    // retransmission arrives before the timer expires.
    let holes = Rc::new(RefCell::new(Vec::new()));
    let (made, mut seen, mut since) = (Rc::clone(&holes), 0, None);
    let mut pair = pair_of(tcp(|_| {})).with_filter(move |_, segment| {
        let (seq, stamps) = (segment.header.seq, segment.options.timestamps);
        if !is_upload_data(segment) {
            return Fate::Deliver;
        }
        let stamp = stamps.expect("in use").value;
        if made.borrow().contains(&seq) {
            let early = since.is_some_and(|since| stamp.wrapping_sub(since) < 180);
            return if early { Fate::Drop } else { Fate::Deliver };
        }
        seen += 1;
        if !(41..60).contains(&seen) || seen % 2 == 0 {
            return Fate::Deliver;
        }
        since.get_or_insert(stamp);
        made.borrow_mut().push(seq);
        Fate::Drop
    });
    pair.upload(100_000, 3_000);
    assert_eq!((pair.received[1], client(&pair).timeouts), (100_000, 1));
    assert_eq!(holes.borrow().len(), 10);
    let data: Vec<_> = pair.log.iter().filter(|s| is_upload_data(s)).collect();
    for (n, segment) in data.iter().enumerate() {
        let again = data[..n].iter().any(|earlier| earlier.header.seq == segment.header.seq);
        assert!(
            !again || holes.borrow().contains(&segment.header.seq),
            "only lost segments are retransmitted"
        );
    }
}

#[test]
fn a_timeout_sends_a_single_segment() {
    // RFC 5681 §3.1: the loss window.
    let (mut pair, dark) = silenced();
    pair.upload(20_000_000, 200);
    dark.set(true);
    let mut before = pair.log.len();
    while client(&pair).timeouts == 0 {
        before = pair.log.len();
        pair.run_ms(1);
    }
    assert_eq!(pair.log[before..].iter().filter(|s| to_server(s)).count(), 1);
}

#[test]
fn a_tail_loss_probe_is_new_data_if_there_is_any() {
    // RFC 8985 §7.3
    let (mut pair, dark) = silenced();
    pair.upload(20_000_000, 100);
    dark.set(true);
    let mut newest = pair.last(is_upload_data).header.seq;
    while client(&pair).probes == 0 {
        newest = pair.last(is_upload_data).header.seq;
        pair.run_ms(1);
    }
    assert!(pair.last(is_upload_data).header.seq.distance_from(newest) > 0);
    assert_eq!(client(&pair).segments_retransmitted, 0);
}

#[test]
fn a_probe_for_a_single_segment_leaves_time_for_a_delayed_acknowledgement() {
    // RFC 8985 §7.2
    let mut pair = dropping(tcp(|_| {}), &[0]);
    pair.run_ms(50);
    pair.upload(1_000, 150);
    assert_eq!(pair.segments(is_upload_data), 1);
    pair.run_ms(150);
    assert_eq!(pair.received[1], 1_000);
}

#[test]
fn the_echoed_timestamp_is_that_of_the_first_unacknowledged_segment() {
    // RFC 7323 §4.3
    let mut pair = pair_of(tcp(|tcp| tcp.nagle = false).platform(Platform::rfc()));
    pair.run_ms(50);
    for bytes in [100, 200] {
        pair.write(0, bytes);
        pair.run_ms(5);
    }
    pair.run_ms(500);
    let first = pair.log.iter().find(|s| is_upload_data(s)).and_then(|s| s.options.timestamps);
    let end = pair.last(is_upload_data).header.seq + 100;
    let ack = pair.log.iter().find(|s| !to_server(s) && s.header.ack == end);
    let echo = ack.and_then(|ack| ack.options.timestamps).expect("in use").echo;
    assert_eq!(Some(echo), first.map(|stamps| stamps.value));
}

#[test]
fn an_unused_window_does_not_grow() {
    // RFC 7661 §4: the window allows ten segments per round trip, and the sender uses one.
    let mut pair = pair_of(tcp(|_| {}));
    pair.run_ms(50);
    let before = client(&pair).view.cwnd;
    for _ in 0..50 {
        pair.upload(1_448, 100);
        pair.run_ms(20);
    }
    assert_eq!(pair.received[1], 50 * 1_448);
    assert_eq!(client(&pair).view.cwnd, before);
}

#[test]
fn a_receiver_measures_the_round_trip_time_by_echoed_timestamps() {
    let mut pair = pair_of(tcp(|_| {}));
    pair.download(500_000, 2_000);
    let measured = client(&pair).view.receive_rtt.expect("data has arrived");
    assert!((ms(20)..=ms(30)).contains(&measured), "{measured:?} on a path of 20 ms");
}

#[test]
fn a_half_closed_connection_carries_data_in_the_other_direction_without_time_limit() {
    // RFC 9293 §3.6: the state FIN-WAIT-2 has no timeout.
    let mut pair = pair_of(tcp(|_| {}));
    pair.upload(10_000, 1_000);
    pair.client.close(pair.connection);
    pair.run_ms(600_000);
    pair.download(10_000, 1_000);
    assert_eq!(pair.received, [10_000, 10_000]);
}

#[test]
fn data_with_an_acknowledgement_far_in_the_past_is_challenged() {
    depends_on_the_platform("segments without_slot timestamps count");
    // RFC 5961 §5.2
    let config = tcp(|_| {});
    let mut pair = pair_of(config.receive_buffer(100_000));
    pair.download(1_000_000, 5_000);
    pair.run_ms(500);
    for (back, delivered, challenges) in [(500_000_u32, 0, 1), (50_000, 100, 1)] {
        let mut data = forged(&pair, Flags::ACK, 0);
        data.header.ack = data.header.ack + back.wrapping_neg();
        data.payload = Payload::from(Piece::pattern(0, 100));
        pair.server.handle_segment(pair.now, data);
        pair.drain();
        let seen = (pair.received[1], pair.server.counters().challenge_acks);
        assert_eq!(seen, (delivered, challenges), "{back} bytes back");
    }
}
