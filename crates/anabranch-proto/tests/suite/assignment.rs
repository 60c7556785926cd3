//! Data that a scheduler assigns to a subflow before the subflow has room.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::platform::Platform;
use anabranch_proto::scheduler::{Decision, Linux, Pending, ScheduleContext, Scheduler};
use anabranch_proto::view::Usability;
use anabranch_proto::{ConnectionStats, Event};
use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Duration, Flags, Instant, Payload, Segment, TcpOptions};

use crate::pair::{
    Fate, Pair, depends_on_the_platform, is_on, ms, on_any_platform, tests_platform, to_server,
};

/// Assigns `run` bytes to the first subflow, then `run` bytes to the second, and so on, whether
/// they have room or not.
#[derive(Clone, Copy, Debug)]
struct InTurn {
    run: u64,
    assigned: u64,
}

impl Scheduler for InTurn {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let turn = match context.pending {
            Pending::NewData { bytes } => {
                assert!(bytes > 0, "there is nothing to assign");
                (self.assigned / self.run) as usize
            }
            Pending::Reinjection { .. } => 0,
        };
        let usable: Vec<_> =
            context.subflows.iter().filter(|v| v.usability == Usability::Usable).collect();
        match usable.len() {
            0 => Decision::Wait { until: None },
            open => Decision::Assign(usable[turn % open].id),
        }
    }

    fn on_sent(&mut self, _: anabranch_proto::view::SubflowId, bytes: u64) {
        self.assigned += bytes;
    }
}

fn in_turn(run: u64) -> ConnectionConfig {
    on_any_platform().scheduler(move || Box::new(InTurn { run, assigned: 0 }))
}

fn number(segment: &Segment) -> Option<u32> {
    match segment.options.dss?.mapping?.data_seq {
        WideOrNarrow::Narrow(number) => Some(number),
        WideOrNarrow::Wide(number) => Some(number.low32()),
    }
}

/// The client's data segments, with data sequence numbers relative to the first one.
fn numbered(pair: &Pair) -> impl Iterator<Item = (u32, &Segment)> {
    let data = pair.log.iter().filter(|s| to_server(s) && !s.payload.is_empty());
    // The very first data carries MP_CAPABLE, which has no data sequence number.
    let data = data.filter_map(|s| Some((number(s)?, s)));
    let first = data.clone().next().expect("data").0;
    data.map(move |(number, segment)| (number.wrapping_sub(first), segment))
}

/// The relative data sequence numbers that a subflow has carried.
fn carried(pair: &Pair, subflow: u8) -> Vec<u32> {
    numbered(pair).filter(|(_, s)| is_on(s, subflow)).map(|(number, _)| number).collect()
}

/// Run until the server has received `bytes`. No subflow may exceed its congestion window
/// meanwhile.
fn run_until_received(pair: &mut Pair, bytes: u64) {
    while pair.received[1] < bytes {
        pair.run_ms(1);
        let mut subflows = pair.client.subflow_stats(pair.connection);
        assert!(subflows.all(|stats| stats.view.bytes_in_flight <= stats.view.cwnd));
        assert!(pair.now < Instant::ZERO + ms(10_000));
    }
}

fn client(pair: &Pair) -> ConnectionStats {
    pair.client.connection_stats(pair.now, pair.connection).expect("it is open")
}

#[test]
fn assigned_data_waits_for_room_while_another_subflow_sends_later_data() {
    let config = in_turn(50_000);
    let mut pair = Pair::new(2, config.clone(), config).with_slow_path(1, ms(100));
    pair.settle(500);
    pair.write(0, 400_000);
    let sent: u64 = pair.client.subflow_stats(pair.connection).map(|s| s.bytes_sent).sum();
    let stats = client(&pair);
    assert_eq!(stats.unsent_bytes, 400_000 - sent, "assigned data counts as unsent");
    run_until_received(&mut pair, 400_000);
    let stats = client(&pair);
    assert_eq!((stats.bad_decisions, stats.reinjections, stats.copies), (0, 0, 0));
    assert_eq!(stats.window_limited, Duration::ZERO);
    assert!(pair.client.subflow_stats(pair.connection).all(|s| s.bytes_reinjected == 0));
    for subflow in [0, 1] {
        let numbers = carried(&pair, subflow);
        assert!(numbers.is_sorted(), "each subflow carries the stream in order");
        // In runs of 50,000 bytes, which end at a segment boundary.
        let jumps = numbers.windows(2).filter(|pair| pair[1] - pair[0] > 2_000).count();
        assert_eq!(jumps, 3, "{numbers:?}");
    }
    // The slow subflow's window was too small for its run, and the fast one continued with the next
    // run.
    let place = |subflow, beyond| {
        let due = |(number, s): (u32, &Segment)| is_on(s, subflow) && number > beyond;
        numbered(&pair).position(due).expect("data")
    };
    assert!(place(0, 100_000) < place(1, 90_000));
    // The end of the stream is signalled as usual.
    let data_fin = |s: &Segment| s.options.dss.is_some_and(|dss| dss.data_fin);
    assert_eq!(pair.segments(data_fin), 0);
    pair.close_both();
    pair.run_ms(5_000);
    assert!(
        pair.segments(data_fin) > 0 && pair.segments(|s| s.header.flags.contains(Flags::RST)) == 0
    );
}

#[test]
fn data_assigned_to_a_broken_subflow_is_sent_on_another() {
    let broken = Rc::new(Cell::new(false));
    let seen = Rc::clone(&broken);
    let config = in_turn(50_000);
    let mut pair = Pair::new(2, config.clone(), config)
        .with_filter(
            move |_, segment| {
                if is_on(segment, 1) && seen.get() { Fate::Drop } else { Fate::Deliver }
            },
        )
        .with_slow_path(1, ms(100));
    pair.run_ms(500);
    broken.set(true);
    // Linux's sockets have assigned more to the broken subflow before its first timeout.
    let within = if tests_platform("linux-socket") { 5_000 } else { 3_000 };
    pair.upload(400_000, within);
    assert_eq!(pair.received, [0, 400_000]);
}

#[test]
fn assigned_data_precedes_reinjections_and_both_wait_for_room() {
    depends_on_the_platform("the lengths of the timeouts");
    let config = in_turn(50_000);
    let mut pair = Pair::new(2, config.clone(), config);
    pair.settle(500);
    pair.write(0, 100_000);
    let mut reset = pair.last(|s| is_on(s, 1) && !to_server(s));
    reset.header.flags = Flags::RST;
    (reset.payload, reset.options) = (Payload::EMPTY, TcpOptions::default());
    pair.client.handle_segment(pair.now, reset);
    pair.client.close(pair.connection);
    run_until_received(&mut pair, 100_000);
    assert!(carried(&pair, 0).is_sorted(), "the subflow sends its own 50,000 bytes first");
}

#[test]
fn the_last_assigned_data_carries_the_data_fin() {
    // RFC 8684 §3.3.3
    let config = in_turn(50_000);
    let mut pair = Pair::new(2, config.clone(), config).with_slow_path(1, ms(100));
    pair.run_ms(500);
    pair.write(0, 100_000);
    pair.client.close(pair.connection);
    run_until_received(&mut pair, 100_000);
    let data_fin = |s: &Segment| s.options.dss.is_some_and(|dss| dss.data_fin);
    assert_eq!(pair.segments(data_fin), 1);
    assert!(!pair.last(data_fin).payload.is_empty());
    assert!(pair.server.is_at_end(pair.accepted.expect("accepted")));
}

#[test]
fn the_shared_window_limits_assigned_data() {
    // RFC 8684 §3.3.5
    let written = |receive_buffer| {
        let config = in_turn(200_000).receive_buffer(receive_buffer);
        let mut pair = Pair::new(2, config.clone(), config).with_slow_path(1, ms(100));
        pair.settle(500);
        pair.write(0, 300_000);
        pair
    };
    // The receive window is filled to its last byte, as in Linux, however short the last segment
    // is.
    for receive_buffer in 40_000..40_003 {
        assert_eq!(client(&written(receive_buffer)).available_window, 0);
    }
    let mut pair = written(40_000);
    run_until_received(&mut pair, 300_000);
    assert!(client(&pair).window_limited > ms(100), "the other subflow had room");
    let accepted = pair.accepted.expect("accepted");
    let server = pair.server.connection_stats(pair.now, accepted).expect("it is open");
    assert_eq!(server.bytes_delivered, 300_000);
    assert_eq!(pair.server.counters().no_dss_in_window, 0);
}

#[test]
fn only_one_short_segment_is_assigned_at_a_time_and_it_does_not_wait_for_full_ones() {
    depends_on_the_platform("Nagle's rule");
    // RFC 9293 §3.7.4, as in Linux
    let config = in_turn(200_000);
    let mut pair = Pair::new(2, config.clone(), config);
    pair.settle(500);
    let room = client(&pair).available_window;
    for (written, mapped) in [(100_000, 100_000), (100_100, 100_000)] {
        pair.write(0, written);
        assert_eq!(room - client(&pair).available_window, mapped);
    }
    run_until_received(&mut pair, 100_100);
}

#[test]
fn only_one_short_segment_at_the_edge_of_the_window_is_in_flight_on_a_subflow() {
    depends_on_the_platform("Nagle's rule");
    // RFC 9293 §3.7.4, as in Linux (Minshall's variant): each acknowledgement opens the window by
    // 500 bytes, and four acknowledgements arrive at a time.
    for (nagle, short) in [(true, 1), (false, 4)] {
        let mut config = in_turn(50_000).receive_buffer(4 * 1_432);
        config.tcp.nagle = nagle;
        let mut edge = None;
        let mut pair = Pair::new(1, config.clone(), config).with_filter(move |_, segment| {
            let data_ack = segment.options.dss.and_then(|dss| dss.data_ack);
            if let (false, Some(WideOrNarrow::Narrow(next))) = (to_server(segment), data_ack) {
                let next_edge = edge.map_or(next + 4 * 1_432, |edge: u32| edge + 500);
                edge = Some(next_edge);
                segment.header.window = (next_edge - next) as u16;
            }
            Fate::Deliver
        });
        pair.upload(1_000, 500);
        pair.run_ms(50);
        pair.write(0, 10_000);
        pair.run_ms(30);
        let lengths = || pair.log.iter().filter(|s| to_server(s)).map(|s| s.payload.len());
        let count = lengths().filter(|len| *len == 500).count();
        assert_eq!(count, short, "{:?}", lengths().collect::<Vec<_>>());
        run_until_received(&mut pair, 10_000);
    }
}

#[test]
fn data_assigned_to_a_sole_subflow_survives_fallback() {
    // RFC 8684 §3.7: the path drops all options after a while.
    let config = in_turn(50_000).late_fallback(true);
    let mut pair = Pair::new(1, config.clone(), config).with_filter(|n, segment| {
        if n > 80 {
            (segment.options.dss, segment.options.control) = (None, None);
        }
        Fate::Deliver
    });
    pair.settle(500);
    // The first data, which carries the keys, is not assigned.
    pair.upload(1_000, 100);
    let room = client(&pair).available_window;
    pair.write(0, 300_000);
    assert!(
        room - client(&pair).available_window > 290_000,
        "all data but a short last segment is assigned"
    );
    run_until_received(&mut pair, 300_000);
    pair.run_ms(2_000);
    assert_eq!((client(&pair).bad_decisions, pair.received[1]), (0, 300_000));
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::FellBack), "{events:?}");
    }
}

#[test]
fn data_assigned_to_a_sole_subflow_stays_there_when_its_timer_expires() {
    // The other path drops all joins, so no other subflow could send the data.
    let mut data = 0;
    let config = in_turn(50_000);
    let mut pair = Pair::new(2, config.clone(), config).with_filter(move |_, segment| {
        let is_data = to_server(segment) && !segment.payload.is_empty();
        data += u32::from(is_data);
        let lost = is_on(segment, 1) || is_data && (20..50).contains(&data);
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(300_000, 5_000);
    assert_eq!(pair.received[1], 300_000);
    assert!(pair.client.counters().timeouts > 0);
    assert_eq!(client(&pair).reinjections, 0);
}

#[test]
fn linux_scheduler_delivers_over_unequal_paths() {
    let config = on_any_platform()
        .scheduler(|| Box::new(Linux::default()))
        .send_buffer(200_000)
        .receive_buffer(100_000);
    let mut pair = Pair::new(2, config.clone(), config).with_slow_path(1, ms(70));
    pair.run_ms(300);
    pair.upload(2_000_000, 30_000);
    assert_eq!(pair.received, [0, 2_000_000]);
    assert!(!carried(&pair, 1).is_empty());
}

#[test]
fn after_a_large_hole_is_filled_the_acknowledgement_waits_until_64_kib_are_read_as_in_linux() {
    depends_on_the_platform("the buffers of sockets compared with those of payload");
    // A program that asks for 320,000 bytes is given twice as much, of which 395,000 bytes are
    // payload.
    const BUFFER: u64 = 395_000;
    let pair = |run, charges| {
        let server = match charges {
            true => in_turn(run).platform(Platform::linux_socket()).receive_buffer(320_000),
            false => in_turn(run).receive_buffer(BUFFER),
        };
        let mut pair = Pair::new(2, in_turn(run), server).with_slow_path(1, ms(500));
        pair.settle(3_000);
        pair
    };
    let first = pair(1, false);
    let mss = first.client.subflow_stats(first.connection).map(|s| u64::from(s.view.mss)).min();
    let mss = mss.expect("a subflow");
    // One run on the fast subflow, one on the slow one, and another one on the fast one, which
    // waits.
    let run = 60 * mss;
    for (charges, unread) in [(false, 0), (true, run + mss - 65_536)] {
        let mut pair = pair(run, charges);
        // Both subflows have delivered data before.
        pair.upload(2 * run, 10_000);
        pair.write(0, 5 * run);
        run_until_received(&mut pair, 5 * run);
        pair.run_ms(1_000);
        let syn_ack = pair.last(|s| !to_server(s) && s.header.flags.contains(Flags::SYN));
        let scale = syn_ack.options.window_scale.expect("it is offered");
        let last = pair.last(|s| !to_server(s));
        let window = u64::from(last.header.window) << scale;
        assert!(is_on(&last, 1), "the acknowledgement was sent on the slow subflow");
        assert!(window.abs_diff(BUFFER - unread) <= 1 << scale, "{window}, {unread} unread");
    }
}
