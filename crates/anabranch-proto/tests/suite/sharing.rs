//! Resources that subflows share: buffers, windows, timers and copies. Statistics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_proto::TraceKind;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::remedy::{BufferContext, Remedy, RemedyActions, RemedyContext};
use anabranch_proto::scheduler::{
    Decision, MinRtt, Pending, Redundant, RoundRobin, ScheduleContext, Scheduler,
};
use anabranch_proto::view::{Bottleneck, SubflowView, Usability};
use anabranch_proto::{ConnectionError, ConnectionStats, Event, SubflowStats};
use anabranch_wire::mptcp::Dss;
use anabranch_wire::{Flags, Payload, Segment, TcpOptions};

use crate::pair::{
    Fate, Pair, both, client_address, depends_on_the_platform, is_on, is_rst, ms, on_any_platform,
    strip, switch, to_server,
};

fn buffers(bytes: u64) -> ConnectionConfig {
    on_any_platform().send_buffer(bytes).receive_buffer(bytes)
}

fn client(pair: &Pair) -> ConnectionStats {
    pair.client.connection_stats(pair.now, pair.connection).expect("it is open")
}

fn client_subflows(pair: &Pair) -> Vec<SubflowStats> {
    pair.client.subflow_stats(pair.connection).collect()
}

#[test]
fn a_peer_fills_no_more_than_the_first_receive_buffer_until_all_of_it_opens() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let server = buffers(1 << 20).first_receive_buffer(Some(16_000));
    let mut pair = Pair::new(2, buffers(1 << 20), server);
    pair.paused = true;
    pair.upload(1 << 20, 1_000);
    let delivered = |pair: &Pair, accepted| {
        pair.server.connection_stats(pair.now, accepted).expect("it is open").bytes_delivered
    };
    let accepted = pair.accepted.expect("it is open");
    // The window field has units of 32 bytes, so it may round up by 31.
    let before = delivered(&pair, accepted);
    assert!((16_000..16_032).contains(&before), "{before}");
    // The peer learns of it without a read.
    pair.server.open_receive_buffer(accepted);
    pair.drain();
    pair.run_ms(1_000);
    assert_eq!(delivered(&pair, accepted), 1 << 20);
    pair.resume();
    assert_eq!(pair.received[1], 1 << 20);
}

#[test]
fn statistics_are_exact() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let (lose, seen) = switch();
    let mut pair = both(on_any_platform(), 1).with_filter(move |_, segment| {
        let lost = to_server(segment) && segment.payload.len() > 1000 && seen.take();
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(100_000, 2_000);
    lose.set(true);
    pair.upload(100_000, 2_000);
    pair.run_ms(500);
    let carried: u64 =
        pair.log.iter().filter(|s| to_server(s)).map(|s| s.payload.len() as u64).sum();
    let (stats, subflow) = (client(&pair), client_subflows(&pair)[0]);
    assert_eq!((stats.bytes_written, stats.bytes_acknowledged), (200_000, 200_000));
    assert_eq!((stats.send_buffer, stats.receive_buffer), (4 << 20, 6 << 20));
    assert_eq!((subflow.bytes_sent, subflow.segments_retransmitted), (200_000, 1));
    assert_eq!(subflow.bytes_retransmitted, carried - 200_000);
    let accepted = pair.accepted.expect("accepted");
    let server = pair.server.connection_stats(pair.now, accepted).expect("it is open");
    assert_eq!(server.bytes_delivered, 200_000);
    pair.close_both();
    pair.run_ms(100);
    let server = pair.server.connection_stats(pair.now, accepted).expect("not forgotten yet");
    assert_eq!(server.bytes_delivered, 200_000, "a DATA_FIN does not count as a byte");
    assert_eq!((client(&pair).bytes_written, client(&pair).bytes_acknowledged), (200_000, 200_000));
    // The host's counters keep the segments of ended connections.
    pair.run_ms(130_000);
    assert_eq!(pair.client.connections().count(), 0);
    assert_eq!(pair.client.counters().retransmitted, 1);
}

#[test]
fn resets_with_a_reason_are_counted() {
    // RFC 8684 §3.6: the second path starts to strip options.
    let (stripping, seen) = switch();
    let mut pair = both(on_any_platform(), 2).with_filter(move |_, segment| {
        if is_on(segment, 1) && seen.get() {
            strip(segment);
        }
        Fate::Deliver
    });
    pair.upload(1_000_000, 5_000);
    stripping.set(true);
    pair.upload(1_000_000, 5_000);
    let with_reason = |s: &Segment| s.options.control.as_ref().is_some_and(|c| c.reset.is_some());
    let sent = pair.segments(with_reason) as u64;
    assert!(sent > 0);
    assert_eq!(pair.client.counters().mp_rst_tx + pair.server.counters().mp_rst_tx, sent);
    let resets = pair.segments(is_rst) as u64;
    assert_eq!(pair.client.counters().out_resets + pair.server.counters().out_resets, resets);
}

#[test]
fn an_application_that_found_the_send_buffer_full_is_notified_of_room() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let mut pair = both(buffers(10_000), 1);
    pair.run_ms(100);
    for (write, written, told) in [(5_000, 5_000, false), (30_000, 15_000, true)] {
        pair.client_events.clear();
        pair.write(0, write);
        assert_eq!(pair.written[0], written);
        assert_eq!(pair.client.send_buffer_space(pair.connection), if told { 0 } else { 5_000 });
        assert_eq!(pair.client_events, []);
        pair.run_ms(200);
        assert_eq!(pair.client_events.contains(&Event::Writable), told);
    }
}

#[test]
fn a_redundant_scheduler_sends_all_bytes_and_the_data_fin_on_every_subflow() {
    // RFC 8684 §3.3.3
    let config = on_any_platform().scheduler(|| Box::<Redundant>::default());
    let mut pair = both(config, 2);
    pair.settle(200);
    pair.client.send_pattern(pair.connection, 0, 5_000).expect("it is open");
    pair.client.close(pair.connection);
    pair.drain();
    let (stats, subflows) = (client(&pair), client_subflows(&pair));
    assert_eq!((stats.copies, stats.bad_decisions), (4, 0));
    let fins = |n| {
        pair.segments(|s| {
            let dss = s.options.dss.filter(|dss| dss.data_fin && dss.mapping.is_some());
            is_on(s, n) && dss.is_some() && !s.payload.is_empty()
        })
    };
    for n in [0, 1] {
        assert_eq!((subflows[usize::from(n)].bytes_sent, fins(n)), (5_000, 1), "path {n}");
    }
    pair.run_ms(100);
    assert_eq!(pair.received[1], 5_000);
}

/// Counts its calls for a full window and for a full send buffer.
#[derive(Debug)]
struct Asked(Arc<[AtomicU32; 2]>);

impl Remedy for Asked {
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        RemedyActions::default()
    }

    fn on_send_buffer_full(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        assert!(context.send_buffer_full);
        self.0[1].fetch_add(1, Ordering::Relaxed);
        RemedyActions::default()
    }
}

#[test]
fn remedies_are_asked_when_a_buffer_blocks_one_of_several_subflows() {
    depends_on_the_platform("when an application that waits for room is woken");
    let (small, large) = (20_000, 1 << 20);
    for (send_buffer, receive_buffer, addresses, expected) in [
        (large, small, 2, [true, false]),
        (small, large, 2, [false, true]),
        (large, large, 2, [false, false]),
        (small, large, 1, [false, false]),
        (large, small, 1, [false, false]),
    ] {
        let asked = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (counts, blocked) = (Arc::clone(&asked), Arc::new(AtomicU32::new(0)));
        let remedy = move || vec![Box::new(Asked(Arc::clone(&counts))) as Box<dyn Remedy>];
        let told = Arc::clone(&blocked);
        let config = on_any_platform()
            .send_buffer(send_buffer)
            .receive_buffer(receive_buffer)
            .remedies(remedy)
            .scheduler(move || Box::new(Watching(Arc::clone(&told), addresses)));
        let mut pair = both(config, addresses);
        pair.run_ms(200);
        pair.write(0, 100_000);
        pair.upload(100_000 - pair.written[0], 5_000);
        pair.run_ms(500);
        assert_eq!(pair.received[1], 100_000);
        let case = format!("{send_buffer} {receive_buffer} {addresses}");
        let seen = [0, 1].map(|index| asked[index].load(Ordering::Relaxed) > 0);
        assert_eq!(seen, expected, "{case}");
        assert_eq!(blocked.load(Ordering::Relaxed) > 0, expected != [false; 2], "{case}");
    }
}

/// The default scheduler. Keeps the latest count of blocked subflows; the other number is that of
/// all subflows.
#[derive(Debug)]
struct Watching(Arc<AtomicU32>, u8);

impl Scheduler for Watching {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let about_nothing = context.pending == (Pending::NewData { bytes: 0 });
        assert!(!about_nothing || self.1 > 1, "a sole subflow cannot block others");
        self.0.store(context.blocked as u32, Ordering::Relaxed);
        MinRtt.schedule(context)
    }
}

/// Requests reinjection of the oldest data if true.
#[derive(Debug)]
struct RetransmitCause(bool);

impl Remedy for RetransmitCause {
    fn on_window_limited(&mut self, _context: &RemedyContext<'_>) -> RemedyActions {
        RemedyActions { reinject: self.0, penalise: None }
    }
}

#[test]
fn the_oldest_data_is_reinjected_once_for_each_change_if_any_remedy_requests_it() {
    depends_on_the_platform("when data is retransmitted at the data level");
    for wanted in [true, false] {
        let remedies = move || {
            [wanted, false].map(|again| Box::new(RetransmitCause(again)) as Box<dyn Remedy>).into()
        };
        let config = on_any_platform().receive_buffer(20_000).remedies(remedies).trace(true);
        let mut pair = both(config, 2).with_slow_path(1, ms(50));
        pair.run_ms(200);
        pair.upload(100_000, 5_000);
        pair.run_ms(500);
        assert_eq!(pair.received[1], 100_000);
        let before = client(&pair).reinjections;
        pair.write(0, 200_000);
        assert_eq!(client(&pair).reinjections - before, u64::from(wanted));
        let mut reasons = BTreeSet::new();
        while let Some(event) = pair.client.poll_trace(pair.connection) {
            if let TraceKind::Reinjected { opportunistic, .. } = event.kind {
                reasons.insert(opportunistic);
            }
        }
        assert!(reasons.iter().eq([true].iter().filter(|_| wanted)), "{reasons:?}");
    }
}

#[test]
fn only_one_short_segment_is_in_flight_at_a_time() {
    // RFC 9293 §3.7.4, as in Linux
    let mut pair = both(on_any_platform(), 1);
    pair.upload(10_000, 1_000);
    pair.run_ms(500);
    let before = pair.log.len();
    for (bytes, segments) in [(10_100, 1), (10_200, 1), (20_000, 7)] {
        pair.write(0, bytes);
        let sent = pair.log[before..].iter().filter(|s| to_server(s)).count();
        assert_eq!(sent, segments, "{bytes} bytes");
    }
}

#[test]
fn the_whole_shared_window_is_used_and_a_tail_loss_probe_is_new_data_if_a_segment_fits() {
    depends_on_the_platform("the size of options");
    // RFC 8684 §3.3.5, RFC 8985 §7.3
    const MSS: u64 = 1_432;
    let lost = |s: &Segment| to_server(s) && !s.payload.is_empty();
    let sent = |receive_buffer| {
        let server = on_any_platform().receive_buffer(receive_buffer);
        let mut pair = Pair::new(1, on_any_platform(), server)
            .with_filter(move |_, s| if lost(s) { Fate::Drop } else { Fate::Deliver });
        pair.run_ms(21);
        pair.write(0, 100_000);
        let flight = client_subflows(&pair)[0].bytes_sent;
        pair.run_ms(150);
        (flight, client_subflows(&pair)[0].bytes_sent - flight)
    };
    let (flight, _) = sent(1 << 20);
    assert!(flight > 9 * MSS, "the congestion window's ten segments: {flight}");
    for (beyond, new) in [(0, 0), (MSS - 1, 0), (MSS, MSS), (MSS + 1, MSS)] {
        assert_eq!(sent(flight + beyond), (flight, new), "a window of {beyond} more");
    }
}

#[test]
fn while_the_application_waits_for_the_send_buffer_no_short_segment_follows_others() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 9293 §3.7.4: the application will certainly write more, which will fill the segment.
    let config = on_any_platform().send_buffer(9_000);
    let mut pair = both(config, 1);
    pair.upload(5_000, 1_000);
    pair.run_ms(500);
    let before = pair.log.len();
    pair.write(0, 200_000);
    let sent: Vec<_> = pair.log[before..].iter().map(|s| s.payload.len()).collect();
    assert_eq!(sent, [1_432; 6], "408 bytes wait");
}

#[test]
fn a_window_that_opens_widely_is_advertised_on_every_subflow_at_once() {
    // RFC 8684 §3.3.5
    let mut pair = both(buffers(20_000), 2);
    pair.run_ms(200);
    pair.paused = true;
    pair.download(100_000, 2_000);
    let before = pair.log.len();
    pair.resume();
    for n in [0, 1] {
        let updates = pair.log[before..].iter().filter(|s| to_server(s) && is_on(s, n));
        assert_eq!(updates.count(), 1, "path {n}");
    }
}

/// Upload until the window of the server, which does not read, is closed and everything sent is
/// acknowledged.
fn until_shut(pair: &mut Pair) {
    pair.run_ms(300);
    pair.paused = true;
    for _ in 0..1_000 {
        pair.write(0, 100_000);
        pair.run_ms(1);
    }
    assert_eq!((client(pair).available_window, client(pair).bytes_acknowledged), (0, 20_000));
}

#[test]
fn the_time_in_which_only_the_window_blocks_data_is_counted() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let mut pair = both(buffers(20_000), 2);
    until_shut(&mut pair);
    let before = client(&pair).window_limited;
    pair.run_ms(1_000);
    assert_eq!(client(&pair).window_limited, before + ms(1_000));
    pair.resume();
    pair.run_ms(500);
    assert_eq!((client(&pair).unsent_bytes, pair.received[1]), (0, pair.written[0]));
    let in_all = client(&pair).window_limited;
    pair.run_ms(1_000);
    assert_eq!(client(&pair).window_limited, in_all);
}

#[test]
fn a_closed_window_is_probed_on_the_fastest_path_first() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 9293 §3.8.6.1, RFC 8684 §3.3.5
    let mut pair = both(buffers(20_000), 2).with_slow_path(0, ms(50));
    until_shut(&mut pair);
    pair.settle(400);
    let before = pair.log.len();
    pair.run_ms(3_000);
    let probe = pair.log[before..].iter().find(|s| to_server(s)).expect("a probe");
    assert_eq!(probe.source.address, client_address(1));
}

#[test]
fn a_window_that_stays_closed_is_probed_at_doubling_intervals() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 9293 §3.8.6.1
    let mut pair = both(buffers(20_000), 1);
    until_shut(&mut pair);
    let mut probes = Vec::new();
    for at in 0..20_000 {
        let before = pair.log.len();
        pair.run_ms(1);
        probes.extend(pair.log[before..].iter().filter(|s| to_server(s)).map(|_| at));
    }
    let pauses: Vec<u32> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.len() >= 3 && pauses.windows(2).all(|two| two[1] == 2 * two[0]), "{pauses:?}");
}

#[test]
fn a_connection_fails_if_its_peer_closed_the_window_and_answers_none_of_the_probes() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let (dark, seen) = switch();
    let mut config = buffers(20_000);
    config.tcp.retries = 3;
    let mut pair = both(config, 1)
        .with_filter(move |_, _| if seen.get() { Fate::Drop } else { Fate::Deliver });
    until_shut(&mut pair);
    pair.run_ms(100);
    dark.set(true);
    let before = pair.log.len();
    pair.run_ms(60_000);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::TimedOut)));
    let probe = |s: &&Segment| to_server(s) && !is_rst(s);
    assert_eq!(pair.log[before..].iter().filter(probe).count(), 3);
}

#[test]
fn a_window_whose_probes_are_answered_without_options_opens_after_a_fallback() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 8684 §3.7: the path begins to strip options while the window is closed. The window then
    // opens, but without DATA_ACKs the client cannot know it.
    let (spoilt, spoil) = switch();
    let config = buffers(20_000).late_fallback(true);
    let mut pair = both(config, 1).with_filter(move |_, segment| {
        if spoilt.get() {
            strip(segment);
        }
        Fate::Deliver
    });
    until_shut(&mut pair);
    spoil.set(true);
    pair.resume();
    pair.run_ms(60_000);
    assert!(pair.client_events.contains(&Event::FellBack));
    assert_eq!(pair.received[1], pair.written[0]);
}

#[test]
fn data_in_flight_on_a_sole_subflow_is_not_resent_although_no_data_ack_arrives() {
    depends_on_the_platform("when acknowledgements are delayed");
    // RFC 8684 §3.3.6: TCP delivers all data, and a copy would prevent fallback.
    let (mute, seen) = switch();
    let mut pair = both(on_any_platform(), 1).with_filter(move |_, segment| {
        if seen.get() && !to_server(segment) {
            segment.options.dss = Some(Dss::default());
        }
        Fate::Deliver
    });
    pair.upload(10_000, 1_000);
    mute.set(true);
    for n in 1..=1_000 {
        pair.write(0, 10_000 + 100 * n);
        pair.run_ms(5);
    }
    mute.set(false);
    pair.upload(1_000, 1_000);
    assert_eq!(pair.received[1], 111_000);
    assert_eq!(pair.client.counters().data_level_retransmits, 0);
}

#[test]
fn data_of_a_reset_subflow_is_reinjected_at_once() {
    // RFC 8684 §3.3.6
    let config = on_any_platform().scheduler(|| Box::new(RoundRobin::default()));
    let mut pair = both(config, 2).with_slow_path(1, ms(200));
    pair.settle(1_000);
    pair.write(0, 20_000);
    let mut reset = pair.last(|s| is_on(s, 1) && !to_server(s));
    reset.header.flags = Flags::RST;
    (reset.payload, reset.options) = (Payload::EMPTY, TcpOptions::default());
    assert!(client_subflows(&pair)[1].view.bytes_in_flight > 0);
    let before = pair.client.counters().data_level_retransmits;
    pair.client.handle_segment(pair.now, reset);
    pair.run_ms(25);
    assert!(pair.client.counters().data_level_retransmits > before);
}

#[test]
fn a_data_fin_on_a_reset_subflow_is_sent_on_another_at_once() {
    // RFC 8684 §3.3.6
    let mut pair = both(on_any_platform(), 2);
    pair.settle(1_000);
    pair.client.close(pair.connection);
    let is_data_fin = |s: &Segment| s.options.dss.is_some_and(|dss| dss.data_fin);
    let sent = pair.client.poll_transmit(pair.now).expect("a DATA_FIN");
    assert!(is_data_fin(&sent));
    let path = u8::from(is_on(&sent, 1));
    let mut reset = pair.last(|s| is_on(s, path) && !to_server(s));
    reset.header.flags = Flags::RST;
    (reset.payload, reset.options) = (Payload::EMPTY, TcpOptions::default());
    pair.client.handle_segment(pair.now, reset);
    let again = pair.client.poll_transmit(pair.now).expect("a segment");
    assert!(is_data_fin(&again) && !is_on(&again, path), "{again:?}");
}

#[test]
fn a_lost_address_makes_only_its_own_subflow_potentially_failed() {
    // RFC 8684 §3.4.2
    let mut pair = both(on_any_platform(), 3);
    pair.settle(500);
    pair.client.handle_address_change(pair.now, client_address(2), false);
    let mut liveness_unverified = [false; 3];
    for _ in 0..100 {
        pair.run_ms(1);
        let accepted = pair.accepted.expect("accepted");
        for (slot, stats) in pair.server.subflow_stats(accepted).enumerate() {
            liveness_unverified[slot] |= stats.view.usability != Usability::Usable;
        }
    }
    assert_eq!(liveness_unverified, [false, false, true]);
}

#[test]
fn a_path_that_only_delivers_data_from_the_peer_stays_potentially_failed() {
    depends_on_the_platform("when a silent subflow goes out of use");
    // RFC 8684 §3.3.6: only acknowledged data counts.
    let (deaf, seen) = switch();
    let mut pair = both(on_any_platform(), 2).with_filter(move |_, segment| {
        let lost = seen.get() && is_on(segment, 1) && to_server(segment);
        if lost && !segment.payload.is_empty() { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(200_000, 2_000);
    pair.download(200_000, 2_000);
    deaf.set(true);
    let mut failed_for = 0;
    for _ in 0..3_000 {
        pair.write(0, 50_000_000);
        pair.write(1, 50_000_000);
        pair.run_ms(1);
        let failed = client_subflows(&pair)[1].view.usability == Usability::PotentiallyFailed;
        assert!(failed || failed_for == 0, "usable again after {failed_for} ms");
        failed_for += u32::from(failed);
    }
    assert!(failed_for > 1_000, "{failed_for}");
    assert!(client_subflows(&pair)[1].bytes_received > 1_000_000);
}

#[test]
fn a_data_fin_follows_the_keys_at_once() {
    // RFC 8684 §3.1, §3.3.3
    let mut pair = both(on_any_platform(), 1);
    pair.run_ms(21);
    pair.client.close(pair.connection);
    pair.drain();
    let data_fin = |s: &Segment| s.options.dss.is_some_and(|dss| dss.data_fin);
    assert_eq!(pair.segments(data_fin), 1);
}

/// Requests buffers that grow with the data that passed through them, and a limit for data in
/// flight.
#[derive(Debug)]
struct Sparing;

impl Remedy for Sparing {
    fn buffer_target(&mut self, context: &BufferContext<'_>) -> Option<u64> {
        Some(20_000 + 2 * context.progress)
    }

    fn send_limit(&mut self, _view: &SubflowView) -> Option<u64> {
        Some(5_000)
    }
}

#[test]
fn remedies_control_buffer_sizes_and_data_in_flight() {
    depends_on_the_platform("the sizes of the buffers and windows");
    let config = buffers(100_000).remedies(|| vec![Box::new(Sparing) as Box<dyn Remedy>]);
    let mut pair = both(config, 1);
    let sizes = |pair: &Pair| {
        let accepted = pair.accepted.expect("accepted");
        let server = pair.server.connection_stats(pair.now, accepted).expect("it is open");
        (client(pair).send_buffer, server.receive_buffer)
    };
    pair.run_ms(100);
    assert_eq!(sizes(&pair), (20_000, 20_000));
    pair.write(0, 50_000);
    assert_eq!(pair.written[0], 20_000, "the buffer is full");
    let in_flight = client_subflows(&pair)[0].view.bytes_in_flight;
    assert!((1..=5_000).contains(&in_flight), "{in_flight}");
    // A duplicate acknowledgement frees no buffer space.
    pair.client_events.clear();
    let again = pair.last(|s| !to_server(s));
    pair.client.handle_segment(pair.now, again);
    pair.drain();
    assert!(!pair.client_events.contains(&Event::Writable));
    pair.upload(30_000 - pair.written[0], 1_000);
    pair.run_ms(500);
    // The receive buffer grows with the first segment after the data was read.
    pair.upload(1, 1_000);
    pair.run_ms(500);
    assert_eq!(sizes(&pair), (80_002, 80_000));
    pair.upload(100_000, 5_000);
    assert_eq!(sizes(&pair), (100_000, 100_000), "the configured size is the limit");
}

#[test]
fn data_in_flight_on_a_sole_subflow_is_not_resent_after_a_timeout() {
    // RFC 8684 §3.3.6: this holds even if data was once resent there, because the peer's DATA_ACKs
    // had been missing for a long time.
    let (mute, seen) = switch();
    let (dark, darkness) = switch();
    let mut pair = both(on_any_platform(), 1).with_filter(move |_, segment| {
        if seen.get() && !to_server(segment) {
            segment.options.dss = Some(Dss::default());
        }
        if darkness.get() { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(10_000, 1_000);
    mute.set(true);
    pair.upload(1_000, 1_000);
    pair.run_ms(20_000);
    mute.set(false);
    pair.run_ms(60_000);
    let before = pair.client.counters().data_level_retransmits;
    assert!(before > 0);
    dark.set(true);
    pair.write(0, 31_000);
    pair.run_ms(1_000);
    dark.set(false);
    pair.upload(1, 10_000);
    assert_eq!(pair.received[1], pair.written[0]);
    assert_eq!(pair.client.counters().data_level_retransmits, before);
}

#[test]
fn all_scheduling_decisions_are_in_the_trace_if_it_is_enabled() {
    for trace in [true, false] {
        let mut pair = both(on_any_platform().trace(trace), 2);
        pair.upload(100_000, 2_000);
        let mut scheduled = 0;
        while let Some(event) = pair.client.poll_trace(pair.connection) {
            if let TraceKind::Scheduled { len, .. } = event.kind {
                scheduled += u64::from(len);
            }
        }
        assert_eq!(scheduled, if trace { 100_000 } else { 0 });
    }
}

/// The detected bottleneck after thirty and after sixty seconds. One segment in five is lost on the
/// path, and one in ten is late. A loss rate above `threshold` indicates a bottleneck.
fn bottleneck(threshold: f64) -> [Bottleneck; 2] {
    let mut config = on_any_platform().shared_bottleneck_detection(Some(threshold));
    config.tcp.nagle = false;
    let (mut new, mut last) = (0, None);
    let mut pair = both(config, 1).with_filter(move |_, segment| {
        let is_new = last.is_none_or(|last| segment.header.seq.distance_from(last) > 0);
        if !to_server(segment) || segment.payload.is_empty() || !is_new {
            return Fate::Deliver;
        }
        (new, last) = (new + 1, Some(segment.header.seq));
        match new % 20 {
            1..=4 => Fate::Drop,
            15 | 16 => Fate::Delay(ms(5)),
            _ => Fate::Deliver,
        }
    });
    [30_000, 30_000].map(|for_ms| {
        let end = pair.now + ms(for_ms);
        while pair.now < end {
            for _ in 0..2 {
                pair.write(0, pair.written[0] + 100);
            }
            pair.run_ms(20);
        }
        client_subflows(&pair)[0].view.bottleneck
    })
}

#[test]
fn the_loss_rate_of_bottleneck_detection_counts_retransmissions_as_sent() {
    depends_on_the_platform("when acknowledgements are delayed");
    // RFC 8382 §3.2.5, §3.3: the loss rate is one in six. There is no result before 100 intervals of
    // 350 ms: 50 for the estimates, and 50 in which the verdict does not change.
    assert_eq!(bottleneck(0.1), [Bottleneck::Unknown, Bottleneck::Shared(0)]);
    assert_eq!(bottleneck(0.2), [Bottleneck::Unknown, Bottleneck::None]);
}

#[test]
fn a_short_segment_is_acknowledged_as_soon_as_all_data_is_read() {
    depends_on_the_platform("when acknowledgements are delayed");
    // As in Linux: the sender of the next short segment may wait for the acknowledgement.
    for (paused, segments) in [(false, 2), (true, 1)] {
        let mut pair = both(on_any_platform(), 1);
        pair.upload(100_000, 5_000);
        pair.run_ms(1_000);
        pair.paused = paused;
        let before = pair.log.len();
        pair.write(0, 100_100);
        pair.run_ms(15);
        assert_eq!(pair.log.len() - before, segments, "paused: {paused}");
    }
}
