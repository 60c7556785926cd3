//! Every kind of end at every moment. RFC 8684 §3.3.3, §3.5.

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::{ConnectionError, Endpoint, Event};
use anabranch_wire::mptcp::{Control, Dss, Mapping, MpFail, MpFastclose, WideOrNarrow};
use anabranch_wire::{Flags, Payload, Segment, SeqNumber, SocketAddress, Timestamps};

use super::support::{
    Draws, assert_closed_and_forgotten, assert_forgotten, assert_takes_no_join, at_server, both,
    buffers, carrying, default_pair, endings, error_of, give, initial_data_seq, keys, live, switch,
};
use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn, ms,
    on_any_platform, server_address, strip, to_server,
};

/// A whole connection of about half a second: data in both directions, and then the client closes,
/// and then the server. `happens` is called after `at_ms` milliseconds.
fn life(mut pair: Pair, at_ms: u64, mut happens: impl FnMut(&mut Pair)) -> Pair {
    for now in 0..700 {
        if now == at_ms {
            happens(&mut pair);
        }
        match now {
            0..150 => pair.write(0, 200_000),
            150..300 if pair.accepted.is_some() => pair.write(1, 200_000),
            300 => pair.client.close(pair.connection),
            400 => {
                if let Some(accepted) = pair.accepted {
                    pair.server.close(accepted);
                }
            }
            _ => {}
        }
        pair.drain();
        pair.run_ms(1);
    }
    pair
}

#[test]
fn an_abort_at_any_moment_ends_both_hosts_once_and_leaves_no_state() {
    for (by_client, at_ms) in (0..600).step_by(3).flat_map(|at| [(true, at), (false, at + 1)]) {
        let mut pair = life(default_pair(2), at_ms, |pair| {
            if by_client {
                pair.client.abort(pair.connection);
            } else if let Some(accepted) = pair.accepted {
                pair.server.abort(accepted);
            }
        });
        let case = format!("by the client: {by_client}, after {at_ms} ms");
        pair.run_ms(300_000);
        let accepted = pair.server_events.contains(&Event::Accepted);
        assert_eq!(endings(&pair.client_events), 1, "{case}: {:?}", pair.client_events);
        let server_ends = endings(&pair.server_events);
        assert!(server_ends == 1 || !accepted, "{case}: {:?}", pair.server_events);
        assert_forgotten(&mut pair, &case);
    }
}

/// MP_FASTCLOSE from the client, sent by the peer or an on-path attacker.
fn fastclose(pair: &Pair, receiver_key: u64, from: u8, flags: Flags) -> Segment {
    let control = Control { fastclose: Some(MpFastclose { receiver_key }), ..Control::default() };
    let mut segment = carrying(pair, client_address(from), control);
    segment.header.flags = flags;
    segment
}

#[test]
fn mp_fastclose_with_the_right_key_ends_the_connection_in_either_form_on_either_subflow() {
    // RFC 8684 §3.5
    for flags in [Flags::ACK, Flags::RST, Flags::RST | Flags::ACK] {
        for from in [0, 1] {
            let mut pair = default_pair(2);
            pair.upload(200_000, 5_000);
            pair.run_ms(100);
            let segment = fastclose(&pair, keys(&pair).1, from, flags);
            give(&mut pair, segment);
            assert_eq!(error_of(&pair.server_events), Some(ConnectionError::Reset));
            // The client itself has not closed. It learns that its peer has forgotten the
            // connection.
            pair.write(0, 300_000);
            pair.run_ms(120_000);
            assert_eq!(endings(&pair.client_events), 1, "{:?}", pair.client_events);
            assert_forgotten(&mut pair, "");
        }
    }
}

#[test]
fn mp_fastclose_with_any_wrong_bit_in_the_key_is_ignored() {
    for bit in 0..64 {
        let mut pair = default_pair(2);
        pair.upload(50_000, 5_000);
        pair.run_ms(100);
        let key = keys(&pair).1;
        for from in [0, 1] {
            let segment = fastclose(&pair, key ^ 1 << bit, from, Flags::ACK);
            give(&mut pair, segment);
        }
        assert_eq!(live(&pair.server, at_server(&pair)), 2, "bit {bit}");
        // On an RST, the segment is an ordinary reset.
        let segment = fastclose(&pair, key ^ 1 << bit, 1, Flags::RST);
        give(&mut pair, segment);
        assert_eq!(error_of(&pair.server_events), None, "bit {bit}");
        pair.upload(50_000, 5_000);
        assert_eq!(pair.received[1], 100_000, "bit {bit}");
        assert_eq!(pair.server.counters().mp_fastclose_rx, 0);
    }
}

#[test]
fn mp_fastclose_with_a_wrong_key_is_ignored_at_any_moment() {
    depends_on_the_platform("the lengths of the timeouts");
    for at_ms in (25..600).step_by(5) {
        let mut pair = life(default_pair(2), at_ms, |pair| {
            for (from, key) in [(client_address(0), 1), (server_address(), 2)] {
                let option = Some(MpFastclose { receiver_key: key });
                let control = Control { fastclose: option, ..Control::default() };
                let segment = carrying(pair, from, control);
                if !is_syn(&segment) {
                    give(pair, segment);
                }
            }
        });
        pair.run_ms(5_000);
        assert_eq!(pair.received, [pair.written[1], pair.written[0]]);
        assert_closed_and_forgotten(&mut pair, &format!("after {at_ms} ms"));
    }
}

/// Two hosts that write up to 100 kB each, and close at any time. The network loses, repeats and
/// delays segments, acknowledgements and ends of streams, so one acknowledgement often covers data
/// and the end: up to `lost_acks` % of the early acknowledgements are lost. `mangle` changes each
/// segment first.
fn both_close(
    seed: u64,
    config: ConnectionConfig,
    (addresses, lost_acks): (u8, u64),
    mangle: fn(&mut Segment),
) {
    let mut draws = Draws::new(seed);
    let (client_at, server_at) = (draws.below(400), draws.below(400));
    let bytes = [draws.below(100_000), draws.below(100_000)];
    let (loss, late, lost_acks) = (draws.below(20), draws.below(30), draws.below(1 + lost_acks));
    let mut ends = draws.below(4);
    let mut filter = Draws::new(seed + 1_000);
    let mut pair = both(config, addresses).with_filter(move |n, segment| {
        mangle(segment);
        let data_fin = segment.options.dss.is_some_and(|dss| dss.data_fin);
        if ends > 0 && (data_fin || segment.header.flags.contains(Flags::FIN)) {
            ends -= 1;
            return match filter.below(3) {
                0 => Fate::Drop,
                1 => Fate::Twice,
                _ => Fate::Delay(ms(300)),
            };
        }
        let plain_ack = segment.header.flags == Flags::ACK && segment.payload.is_empty();
        match filter.below(100) {
            draw if n > 6 && draw < loss => Fate::Drop,
            draw if (7..200).contains(&n) && plain_ack && draw < lost_acks => Fate::Drop,
            draw if draw < loss + late => Fate::Delay(ms(filter.below(200))),
            _ => Fate::Deliver,
        }
    });
    let mut closed = [false; 2];
    // Timeouts of up to a minute each (RFC 6298) can take many minutes at 27 % loss.
    for now in 0..3_600_000 {
        pair.write(0, bytes[0]);
        if pair.accepted.is_some() {
            pair.write(1, bytes[1]);
        }
        // RFC 9293 §3.10.4: closing before the connection is open discards the written data.
        let connected = pair.client_events.contains(&Event::Connected);
        if now >= client_at && connected && !closed[0] && pair.written[0] == bytes[0] {
            closed[0] = true;
            pair.client.close(pair.connection);
        }
        if now >= server_at
            && !closed[1]
            && pair.written[1] == bytes[1]
            && let Some(accepted) = pair.accepted
        {
            closed[1] = true;
            pair.server.close(accepted);
        }
        pair.drain();
        pair.run_ms(1);
        if endings(&pair.client_events) + endings(&pair.server_events) == 2 {
            break;
        }
    }
    pair.run_ms(60_000);
    assert_eq!(closed, [true; 2], "seed {seed}");
    assert_eq!(pair.received, [bytes[1], bytes[0]], "seed {seed}");
    assert_closed_and_forgotten(&mut pair, &format!("seed {seed}"));
}

#[test]
fn data_fins_in_every_order_end_both_directions_after_all_data() {
    // RFC 8684 §3.3.3: DATA_FINs are sent without data or with it, lost, repeated, ahead of data
    // that fills a hole, or from both hosts at once.
    for seed in 0..300 {
        both_close(seed, buffers(30_000), (1 + (seed % 3) as u8, 0), |_| ());
    }
}

#[test]
fn fins_in_every_order_end_both_directions_of_tcp_after_all_data() {
    // RFC 9293 §3.10.7.4: in FIN-WAIT-1, CLOSING and LAST-ACK, one acknowledgement may cover data and
    // the FIN.
    for seed in 0..300 {
        let config = buffers(30_000).protocol(Protocol::Tcp);
        both_close(seed, config, (1, 60), |_| ());
    }
}

#[test]
fn fins_in_every_order_end_both_directions_after_a_fallback() {
    // RFC 8684 §3.7
    for seed in 0..300 {
        both_close(seed, buffers(30_000), (1 + (seed % 3) as u8, 60), strip);
    }
}

/// A network that adds a FIN to one data segment of the client.
fn with_a_fin(addresses: u8, on: u8) -> Pair {
    let (off, turn) = switch();
    let mut pair = default_pair(addresses).with_filter(move |_, segment| {
        if off.get() && is_on(segment, on) && to_server(segment) && !segment.payload.is_empty() {
            off.set(false);
            segment.header.flags |= Flags::FIN;
        }
        Fate::Deliver
    });
    pair.upload(100_000, 5_000);
    turn.set(true);
    pair
}

#[test]
fn a_fin_without_a_data_fin_is_not_the_end_of_the_stream() {
    // RFC 8684 §3.3.3
    for on in [0, 1] {
        let mut pair = with_a_fin(2, on);
        pair.upload(500_000, 60_000);
        assert_eq!(pair.received[1], 600_000, "FIN on {on}");
        assert!(!pair.server.is_at_end(at_server(&pair)));
    }
    let mut pair = with_a_fin(1, 0);
    pair.upload(500_000, 120_000);
    let ended = pair.server.is_at_end(at_server(&pair)) && error_of(&pair.server_events).is_none();
    assert!(!ended, "{} bytes and the end were delivered", pair.received[1]);
    pair.run_ms(3_600_000);
    let whole = pair.received[1] == 600_000;
    let failed = error_of(&pair.client_events).is_some();
    assert!(whole || failed, "{} bytes, {:?}", pair.received[1], pair.client_events);
    assert!(pair.segments(is_rst) < 1_000);
}

#[test]
fn a_peer_that_ends_its_last_subflow_without_a_data_fin_is_not_waited_for() {
    // RFC 8684 §3.3.3: the network has dropped the server's DATA_FIN, and the server has given up. It
    // has sent data over another subflow as well, so a fallback is impossible.
    let (gone, leave) = switch();
    let mut pair = default_pair(2).with_filter(move |_, segment| {
        if gone.get() && !to_server(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.run_ms(500);
    for _ in 0..100 {
        pair.write(1, 200_000);
        pair.drain();
        pair.run_ms(10);
    }
    pair.client.handle_address_change(pair.now, client_address(1), false);
    pair.drain();
    pair.run_ms(2_000);
    let mut fin = pair.last(|s| !to_server(s) && is_on(s, 0));
    fin.header.seq = fin.header.seq + fin.payload.len() as u32;
    fin.payload = Payload::default();
    fin.header.flags = Flags::FIN | Flags::ACK;
    (fin.options.dss, fin.options.control) = (None, None);
    leave.set(true);
    give(&mut pair, fin);
    pair.run_ms(3_600_000);
    assert_eq!(endings(&pair.client_events), 1);
    assert!(error_of(&pair.client_events).is_some());
}

#[test]
fn a_host_that_has_forgotten_a_connection_can_reuse_its_ports() {
    // RFC 9293 §3.5.1, RFC 5961 §4: the old connection is still open, or in TIME-WAIT.
    for closed in [false, true] {
        let mut pair = default_pair(1);
        pair.upload(10_000, 1_000);
        if closed {
            pair.server.close(at_server(&pair));
            pair.run_ms(100);
            pair.client.close(pair.connection);
        }
        pair.run_ms(1_000);
        assert_eq!(pair.server.connections().count(), 1);
        // A host with the same secret chooses the same ports.
        let port = pair.client.local_port(pair.connection).or(Some(pair.log[0].source.port));
        pair.client = Endpoint::new(vec![client_address(0)], [1; 32]);
        let to = SocketAddress::new(server_address(), PORT);
        let config = on_any_platform();
        let id = pair.client.connect(pair.now, client_address(0), to, config).expect("right");
        assert_eq!(pair.client.local_port(id), port);
        (pair.connection, pair.client_events) = (id, Vec::new());
        pair.run_ms(3_000);
        assert!(pair.client_events.contains(&Event::Connected), "{:?}", pair.client_events);
    }
}

/// The SYN that opened the connection of `pair` comes again, with other numbers. Returns whether it
/// opens a connection.
fn reopens(pair: &mut Pair, seq: i32, stamp: i32) -> bool {
    let mut syn = pair.log.iter().find(|s| is_syn(s) && to_server(s)).expect("a SYN").clone();
    let last = pair.last(to_server);
    syn.header.seq = last.header.seq + seq as u32;
    let last = last.options.timestamps.expect("they are in use").value;
    syn.options.timestamps = Some(Timestamps { value: last.wrapping_add_signed(stamp), echo: 0 });
    let before = pair.log.len();
    give(pair, syn);
    pair.log[before..].iter().any(|s| !to_server(s) && is_syn(s))
}

#[test]
fn time_wait_gives_way_to_newer_timestamps_where_the_host_listens() {
    // RFC 9293 §3.6.1 (MAY-2), RFC 7323 §5.3
    let in_time_wait = || {
        let mut pair = both(on_any_platform().protocol(Protocol::Tcp), 1);
        pair.upload(10_000, 1_000);
        pair.server.close(at_server(&pair));
        pair.run_ms(100);
        pair.client.close(pair.connection);
        pair.run_ms(100);
        pair
    };
    for (seq, stamp, newer) in
        [(-500, 1, true), (-500, 0, false), (100_000, 0, true), (100_000, -1, false)]
    {
        assert_eq!(reopens(&mut in_time_wait(), seq, stamp), newer, "{seq}, {stamp}");
    }
    let mut pair = in_time_wait();
    pair.server.remove_address(pair.now, server_address());
    assert!(!reopens(&mut pair, 100_000, 1), "nobody listens at this address any more");
}

#[test]
fn a_tcp_connection_reset_before_both_directions_end_has_failed() {
    // RFC 9293 §3.10.7.4
    let config = on_any_platform().protocol(Protocol::Tcp);
    for client_closes in [true, false] {
        let mut pair = both(config.clone(), 1);
        pair.upload(10_000, 1_000);
        let accepted = at_server(&pair);
        if client_closes {
            pair.client.close(pair.connection);
        } else {
            pair.server.close(accepted);
        }
        pair.drain();
        pair.run_ms(500);
        pair.server.abort(accepted);
        pair.drain();
        pair.run_ms(500);
        assert_eq!(error_of(&pair.client_events), Some(ConnectionError::Reset), "{client_closes}");
    }
}

#[test]
fn a_data_fin_is_sent_on_the_fastest_path_first() {
    // RFC 8684 §3.3.3
    for slow in [0, 1] {
        let mut pair = default_pair(2).with_slow_path(slow, ms(40));
        pair.upload(500_000, 5_000);
        pair.run_ms(1_000);
        pair.client.close(pair.connection);
        pair.drain();
        let first = pair.log.iter().find(|s| s.options.dss.is_some_and(|dss| dss.data_fin));
        assert!(first.is_some_and(|s| !is_on(s, slow)), "{slow}");
    }
}

#[test]
fn closing_cancels_an_opening_subflow_only_if_it_is_the_first() {
    depends_on_the_platform("joins after a close");
    let mut pair = default_pair(1);
    pair.drain();
    pair.client.close(pair.connection);
    pair.run_ms(500);
    assert!(error_of(&pair.client_events).is_some());
    assert_eq!(pair.segments(|s| is_syn(s) && to_server(s)), 1);
    // The only subflow has failed, and its successor is opening. That one carries the written data.
    let mut pair = default_pair(1);
    pair.upload(10_000, 1_000);
    pair.run_ms(500);
    let mut reset = pair.last(|s| !to_server(s));
    reset.header.flags = Flags::RST;
    give(&mut pair, reset);
    let syns = |pair: &Pair| pair.segments(|s| is_syn(s) && to_server(s));
    for _ in 0..5_000 {
        if syns(&pair) == 1 {
            pair.run_ms(1);
        }
    }
    pair.write(0, 12_000);
    pair.close_both();
    pair.run_ms(5_000);
    assert_closed_and_forgotten(&mut pair, "");
    assert_eq!(syns(&pair), 2);
}

#[test]
fn a_host_that_lost_all_subflows_has_closed_if_it_sent_its_data_fin_and_otherwise_failed() {
    depends_on_the_platform("joins after a close");
    // RFC 8684 §3.3.3: the peer acknowledges the DATA_FIN, ends its subflows, and forgets the
    // connection.
    for sent in [true, false] {
        let (lost, lose) = switch();
        let mut pair = both(on_any_platform(), 1).with_filter(move |_, segment| {
            if lost.get() && !to_server(segment) { Fate::Drop } else { Fate::Deliver }
        });
        pair.upload(10_000, 1_000);
        let accepted = at_server(&pair);
        pair.server.close(accepted);
        pair.drain();
        pair.run_ms(500);
        lose.set(true);
        if sent {
            pair.client.close(pair.connection);
            pair.drain();
            pair.run_ms(100);
        }
        pair.client.handle_address_change(pair.now, client_address(0), false);
        pair.drain();
        if !sent {
            pair.client.close(pair.connection);
            pair.drain();
        }
        pair.run_ms(100_000);
        assert_eq!(endings(&pair.client_events), 1, "{:?}", pair.client_events);
        let error = error_of(&pair.client_events);
        assert_eq!(error, (!sent).then_some(ConnectionError::NoSubflow), "sent: {sent}");
        assert_eq!(pair.server_events.contains(&Event::Closed), sent, "{:?}", pair.server_events);
    }
}

#[test]
fn a_client_that_closes_at_once_sends_its_keys_before_its_data_fin() {
    // RFC 8684 §3.1: a server without the client's key cannot interpret a DATA_FIN.
    let mut pair = default_pair(1);
    pair.run_ms(15);
    let answer = pair.last(is_syn);
    pair.client.handle_segment(pair.now, answer);
    pair.client.close(pair.connection);
    pair.drain();
    let third = pair.log.iter().find(|s| to_server(s) && !is_syn(s)).expect("a third ACK");
    assert!(third.options.control.as_ref().is_some_and(|control| control.capable.is_some()));
    pair.run_ms(500);
    pair.close_both();
    pair.run_ms(500);
    assert_closed_and_forgotten(&mut pair, "");
}

#[test]
fn the_fin_of_a_tcp_connection_follows_the_last_data_at_once() {
    // RFC 9293 §3.10.4
    let config = on_any_platform().protocol(Protocol::Tcp);
    let mut pair = both(config, 1);
    pair.run_ms(100);
    pair.write(0, 5_000);
    pair.client.close(pair.connection);
    pair.drain();
    pair.run_ms(11);
    assert_eq!(pair.received[1], 5_000);
    assert!(pair.server.is_at_end(at_server(&pair)));
}

#[test]
fn a_fin_respects_the_window_while_data_is_in_flight() {
    depends_on_the_platform("when acknowledgements are delayed");
    // RFC 9293 §3.10.4
    let config = buffers(8_000).protocol(Protocol::Tcp);
    let mut pair = both(config, 1);
    pair.run_ms(100);
    pair.paused = true;
    pair.write(0, 8_000);
    pair.client.close(pair.connection);
    pair.drain();
    let fins = |pair: &Pair| pair.segments(|segment| segment.header.flags.contains(Flags::FIN));
    // The end of the data is sent after 20 ms and acknowledged after 40 ms.
    pair.run_ms(35);
    assert_eq!((pair.segments(|segment| !segment.payload.is_empty()), fins(&pair)), (6, 0));
    pair.resume();
    pair.run_ms(100);
    assert_eq!((pair.received[1], fins(&pair)), (8_000, 1));
    assert!(pair.server.is_at_end(at_server(&pair)));
}

/// Both directions have ended, but the subflow has not, because FINs are lost.
fn ended() -> Pair {
    let late = on_any_platform().late_fallback(true);
    let mut pair = both(late, 1).with_filter(|_, segment| {
        let fin = segment.header.flags.contains(Flags::FIN);
        if fin { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(10_000, 1_000);
    pair.close_both();
    pair.run_ms(100);
    assert!(pair.server_events.contains(&Event::Closed));
    pair
}

#[test]
fn signals_after_the_end_of_a_connection_cause_no_fallback() {
    // RFC 8684 §3.7: MP_FAIL, and an infinite mapping.
    for infinite in [false, true] {
        let mut pair = ended();
        let (client_key, server_key) = keys(&pair);
        let fail = Some(MpFail { data_seq: initial_data_seq(server_key) + 2 });
        let mut said = carrying(&pair, client_address(0), Control { fail, ..Control::default() });
        if infinite {
            let data_seq = WideOrNarrow::Wide(initial_data_seq(client_key) + 10_001);
            let subflow_seq = SeqNumber(10_001);
            let mapping = Some(Mapping { data_seq, subflow_seq, len: 0, checksum: None });
            said.options.control = None;
            said.options.dss = Some(Dss { mapping, ..Dss::default() });
        }
        give(&mut pair, said);
        assert!(!pair.server_events.contains(&Event::FellBack), "{:?}", pair.server_events);
    }
}

#[test]
fn a_connection_that_has_ended_accepts_no_join() {
    // RFC 8684 §3.2
    let mut pair = ended();
    assert_takes_no_join(&mut pair);
}

/// The client's third path is down. Its other paths fail just before it closes. Five seconds later
/// the third path comes up, but the server's answers to the join's third ACK are lost.
fn closed_in_the_dark() -> Pair {
    let (dark, darken) = switch();
    let mut pair = default_pair(3).with_filter(move |_, segment| {
        let mute = !to_server(segment) && !is_syn(segment);
        if dark.get() && (mute || !is_on(segment, 2)) { Fate::Drop } else { Fate::Deliver }
    });
    pair.client.handle_address_change(pair.now, client_address(2), false);
    pair.upload(100_000, 5_000);
    pair.run_ms(500);
    darken.set(true);
    pair.client.close(pair.connection);
    pair.run_ms(5_000);
    pair.client.handle_address_change(pair.now, client_address(2), true);
    pair.run_ms(50);
    pair
}

fn data_fins_on(pair: &Pair, n: u8) -> usize {
    pair.segments(|s| is_on(s, n) && s.options.dss.is_some_and(|dss| dss.data_fin))
}

#[test]
fn a_lost_data_fin_is_sent_at_once_on_a_new_subflow() {
    depends_on_the_platform("joins after a close");
    // RFC 8684 §3.3.3
    let mut pair = closed_in_the_dark();
    assert!(data_fins_on(&pair, 0) > 0 && data_fins_on(&pair, 2) == 0);
    let ready = pair.last(|s| !to_server(s) && is_on(s, 2));
    give(&mut pair, ready);
    assert_eq!(data_fins_on(&pair, 2), 1);
}

#[test]
fn a_data_fin_is_sent_on_the_old_subflows_again_if_the_new_one_fails() {
    depends_on_the_platform("joins after a close");
    // RFC 8684 §3.3.3
    let mut pair = closed_in_the_dark();
    let ready = pair.last(|s| !to_server(s) && is_on(s, 2));
    pair.client.handle_segment(pair.now, ready.clone());
    let (before, mut reset) = (data_fins_on(&pair, 0), ready);
    reset.header.flags = Flags::RST;
    give(&mut pair, reset);
    pair.run_ms(60_000);
    assert!(data_fins_on(&pair, 0) > before && data_fins_on(&pair, 2) == 0);
}

#[test]
fn a_data_fin_in_flight_is_not_repeated_on_a_new_subflow() {
    let mut pair = default_pair(2);
    pair.run_ms(30);
    pair.write(0, 1_000);
    let third = |s: &Segment| to_server(s) && is_on(s, 1) && !is_syn(s);
    while pair.segments(third) == 0 {
        pair.run_ms(1);
    }
    pair.run_ms(5);
    pair.client.close(pair.connection);
    pair.drain();
    let ready = |e: &Event| matches!(e, Event::SubflowEstablished(_));
    assert!(!pair.client_events.iter().any(ready));
    pair.run_ms(1_000);
    assert!(pair.client_events.iter().any(ready));
    assert_eq!([0, 1].map(|n| data_fins_on(&pair, n)), [1, 0]);
}

#[test]
fn a_released_connection_whose_peer_keeps_its_direction_open_ends_after_a_minute() {
    // RFC 9293 §3.6: an application that may still read waits without limit.
    for (config, released) in [(tcp(), true), (mptcp(), true), (tcp(), false), (mptcp(), false)] {
        let is_tcp = config.protocol == Protocol::Tcp;
        let mut pair = both(config, 1);
        pair.upload(50_000, 1_000);
        let case = format!("TCP: {is_tcp}, released: {released}");
        match released {
            true => pair.client.release(pair.connection),
            false => pair.client.close(pair.connection),
        }
        pair.run_ms(59_000);
        assert_eq!(pair.client.connections().count(), 1, "{case}");
        pair.run_ms(2_000);
        assert_eq!(pair.client.connections().count(), usize::from(!released), "{case}");
        assert_eq!(pair.received[1], 50_000, "{case}");
        // TCP ends silently, so that its peer keeps the data that it has not read.
        assert_eq!(error_of(&pair.server_events).is_some(), released && !is_tcp, "{case}");
    }
}

#[test]
fn a_connection_released_after_its_end_has_arrived_is_limited_as_well() {
    for config in [tcp(), mptcp()] {
        let mut pair = both(config, 1);
        pair.upload(50_000, 1_000);
        pair.client.close(pair.connection);
        pair.run_ms(100_000);
        pair.client.release(pair.connection);
        pair.run_ms(59_000);
        assert_eq!(pair.client.connections().count(), 1);
        pair.run_ms(2_000);
        assert_eq!(pair.client.connections().count(), 0);
    }
}

#[test]
fn a_released_connection_whose_peer_ends_within_the_minute_closes_in_order() {
    for config in [tcp(), mptcp()] {
        let mut pair = both(config, 1);
        pair.upload(50_000, 1_000);
        pair.client.release(pair.connection);
        pair.run_ms(58_000);
        let accepted = at_server(&pair);
        pair.server.close(accepted);
        pair.run_ms(1_000);
        assert_closed_and_forgotten(&mut pair, "");
    }
}

#[test]
fn a_released_connection_does_not_probe_a_closed_window_for_ever() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // Released at once, or when the probes are far apart already.
    for (protocol, released_after_s) in [(tcp(), 0), (mptcp(), 0), (mptcp(), 1_000), (tcp(), 1_000)]
    {
        let mut pair = both(protocol.receive_buffer(20_000), 1);
        pair.run_ms(300);
        pair.paused = true;
        for _ in 0..1_000 {
            pair.write(0, 100_000);
            pair.run_ms(1);
        }
        let case = format!("released after {released_after_s} s");
        pair.client.close(pair.connection);
        pair.run_ms(released_after_s * 1_000);
        assert_eq!(pair.client.connections().count(), 1, "{case}");
        pair.client.release(pair.connection);
        pair.run_ms(50_000);
        let expected = usize::from(released_after_s == 0);
        assert_eq!(pair.client.connections().count(), expected, "{case}");
        pair.run_ms(300_000);
        assert_eq!(pair.client.connections().count(), 0, "{case}");
    }
}

fn tcp() -> ConnectionConfig {
    on_any_platform().protocol(Protocol::Tcp)
}

fn mptcp() -> ConnectionConfig {
    on_any_platform()
}
