//! The engine carries out the actions of path managers. RFC 8684 §3.3.8, §3.4.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_proto::Event;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::{
    Backup, FullMesh, LocalAddress, NDiffPorts, PathAction, PathEvent, PathManager, SinglePath,
};
use anabranch_proto::view::{Slot, SubflowId, SubflowView};
use anabranch_wire::mptcp::{MpJoin, ResetReason};
use anabranch_wire::{Duration, Flags, Instant, Segment, SocketAddress};

use crate::pair::{
    self, Fate, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn, ms,
    on_any_platform, to_server,
};

fn config<P: PathManager + 'static>(
    make: impl Fn() -> P + Send + Sync + 'static,
) -> ConnectionConfig {
    let path_manager = move || Box::new(make()) as Box<dyn PathManager>;
    on_any_platform().path_manager(path_manager)
}

fn pair_with<P: PathManager + 'static>(
    addresses: u8,
    make: impl Fn() -> P + Send + Sync + 'static,
) -> Pair {
    Pair::new(addresses, config(make), on_any_platform())
}

fn uses(segment: &Segment, n: u8) -> bool {
    [segment.source.address, segment.destination.address].contains(&client_address(n))
}

fn carries_data(segment: &Segment, n: u8) -> bool {
    uses(segment, n) && !segment.payload.is_empty()
}

fn joins(segment: &Segment) -> Option<MpJoin> {
    segment.options.control.as_ref()?.join
}

mod backup {
    use super::*;

    #[test]
    fn backups_carry_no_data_while_the_regular_subflow_works_in_either_direction() {
        for upload in [true, false] {
            let mut pair = pair_with(3, || Backup::new(0));
            if upload {
                pair.upload(2_000_000, 20_000)
            } else {
                pair.download(2_000_000, 20_000)
            }
            assert_eq!(pair.received[usize::from(upload)], 2_000_000);
            let asked = |s: &Segment| matches!(joins(s), Some(MpJoin::Syn { backup: true, .. }));
            assert_eq!(pair.segments(asked), 2);
            for n in [1, 2] {
                assert!(pair.segments(|s| uses(s, n)) >= 4, "subflow {n} is established");
                assert_eq!(pair.segments(|s| carries_data(s, n)), 0);
            }
        }
    }

    #[test]
    fn a_backup_takes_over_until_a_silent_regular_subflow_recovers() {
        let mut pair = pair_with(2, || Backup::new(0)).with_filter(|number, segment| {
            let dead = (300..900).contains(&number) && uses(segment, 0);
            if dead { Fate::Drop } else { Fate::Deliver }
        });
        pair.download(3_000_000, 30_000);
        assert_eq!(pair.received[0], 3_000_000);
        assert!(pair.segments(|s| carries_data(s, 1)) > 0, "the backup never carried data");
        pair.run_ms(2_000);
        pair.download(100_000, 2_000);
        let last = pair.last(|s| !s.payload.is_empty());
        assert!(uses(&last, 0), "the regular subflow has recovered");
    }

    #[test]
    fn mp_prio_turns_the_first_subflow_into_a_backup_at_both_ends() {
        // RFC 8684 §3.3.8
        let mut pair = pair_with(2, || Backup::new(1));
        pair.download(1_000_000, 20_000);
        let is_prio = |s: &Segment| s.options.control.as_ref().is_some_and(|c| c.prio.is_some());
        let prio = pair.log.iter().position(is_prio).expect("an MP_PRIO");
        assert!(uses(&pair.log[prio], 0) && pair.log[prio].payload.is_empty());
        assert_eq!(pair.segments(is_prio), 1);
        assert_eq!((pair.client.counters().mp_prio_tx, pair.server.counters().mp_prio_rx), (1, 1));
        let late = pair.log.iter().skip(prio).filter(|s| carries_data(s, 0)).count();
        assert!(late < 50, "{late} data segments on the backup after MP_PRIO");
        assert!(pair.segments(|s| carries_data(s, 1)) > 500);
        let before = pair.segments(|s| carries_data(s, 0));
        pair.upload(1_000_000, 20_000);
        assert_eq!(
            pair.segments(|s| carries_data(s, 0)),
            before,
            "the client obeys the priority as well"
        );
    }
}

mod single_path {
    use super::*;
    use crate::pair::switch;

    /// Client addresses that have sent a SYN, in order.
    fn opened(pair: &Pair) -> Vec<u8> {
        let syns = pair.log.iter().filter(|s| is_syn(s));
        syns.filter_map(|s| (0..4).find(|n| s.source.address == client_address(*n))).collect()
    }

    #[test]
    fn it_breaks_before_make_and_loses_nothing() {
        depends_on_the_platform("hosts that refuse joins while they close stay on a silent path");
        // RFC 8684 §3.3.3
        let mut pair = pair_with(2, SinglePath::default).with_filter(|number, segment| {
            if number > 400 && uses(segment, 0) { Fate::Drop } else { Fate::Deliver }
        });
        pair.upload(2_000_000, 30_000);
        assert_eq!(pair.received[1], 2_000_000);
        assert_eq!(opened(&pair), [0, 1]);
        let syn = pair.log.iter().position(|s| joins(s).is_some()).expect("a join");
        let reset = pair.log.iter().position(is_rst).expect("a reset");
        assert!(reset < syn, "break before make");
        let reason = pair.log[reset].options.control.as_ref().and_then(|control| control.reset);
        assert_eq!(reason.map(|r| r.reason), Some(ResetReason::UNACCEPTABLE_PERFORMANCE));
    }

    #[test]
    fn it_stays_on_a_silent_path_if_the_peer_accepts_no_other_subflow() {
        // RFC 8684 §3.1: the "C" flag, and no announced address.
        let config = |deny: bool| {
            let config = on_any_platform().path_manager(|| Box::new(SinglePath::default()));
            config.allow_join_initial_addr_port(!deny)
        };
        let (silent, turn) = switch();
        let drops = move |_, segment: &mut Segment| match silent.get() && !is_syn(segment) {
            true => Fate::Drop,
            false => Fate::Deliver,
        };
        let mut pair = Pair::new(2, config(false), config(true)).with_filter(drops);
        pair.upload(200_000, 5_000);
        turn.set(true);
        pair.write(0, 250_000);
        pair.run_ms(10_000);
        turn.set(false);
        pair.upload(100_000, 30_000);
        assert_eq!(pair.received[1], pair.written[0]);
        assert_eq!(opened(&pair), [0]);
    }

    #[test]
    fn an_application_that_closes_between_two_subflows_still_delivers_its_data() {
        depends_on_the_platform("hosts that refuse joins while they close stay on a silent path");
        let (silent, turn) = switch();
        let mut pair = pair_with(1, SinglePath::default)
            .with_filter(move |_, _| if silent.get() { Fate::Drop } else { Fate::Deliver });
        pair.upload(200_000, 5_000);
        turn.set(true);
        pair.write(0, 250_000);
        while pair.segments(is_rst) == 0 {
            pair.run_ms(1);
        }
        pair.client.close(pair.connection);
        pair.run_ms(5_000);
        turn.set(false);
        pair.run_ms(60_000);
        assert_eq!(pair.received[1], 250_000);
        assert!(pair.server_events.contains(&Event::Readable));
    }

    #[test]
    fn a_receiver_moves_when_its_interface_goes_down() {
        let mut pair = pair_with(2, SinglePath::default).with_filter(|number, segment| {
            if number > 400 && uses(segment, 0) { Fate::Drop } else { Fate::Deliver }
        });
        pair.download(400_000, 3_000);
        pair.client.handle_address_change(pair.now, client_address(0), false);
        pair.download(2_000_000, 30_000);
        assert_eq!(pair.received[0], pair.written[1]);
        assert_eq!(opened(&pair), [0, 1]);
    }

    #[test]
    fn without_any_usable_address_it_waits_for_one() {
        // RFC 8684 §3.3.3
        let mut pair = pair_with(2, SinglePath::default);
        pair.upload(200_000, 5_000);
        for n in [1, 0] {
            pair.client.handle_address_change(pair.now, client_address(n), false);
        }
        pair.drain();
        pair.write(0, 600_000);
        pair.run_ms(20_000);
        assert_eq!(pair.received[1], 200_000);
        pair.client.handle_address_change(pair.now, client_address(1), true);
        pair.drain();
        pair.upload(1, 5_000);
        assert_eq!(pair.received[1], pair.written[0]);
        assert_eq!(opened(&pair), [0, 1]);
    }
}

mod ndiffports {
    use super::*;

    #[test]
    fn all_subflows_run_between_the_same_addresses_and_carry_data() {
        let mut pair = pair_with(2, || NDiffPorts::new(4));
        pair.download(4_000_000, 30_000);
        assert_eq!(pair.received[0], 4_000_000);
        let mut ports: Vec<u16> =
            pair.log.iter().filter(|s| carries_data(s, 0)).map(|s| s.destination.port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 4);
        assert_eq!(pair.segments(|s| uses(s, 1)), 0);
    }
}

mod re_creation {
    use super::*;

    /// Returns `true` if a subflow has been established since event number `events_before`.
    fn back_after(pair: &Pair, events_before: usize) -> bool {
        let events = &pair.client_events[events_before..];
        events.iter().any(|event| matches!(event, Event::SubflowEstablished(_)))
    }

    #[test]
    fn a_subflow_that_was_reset_is_back_within_two_seconds() {
        depends_on_the_platform("whether a subflow that has ended is replaced");
        let mut armed = false;
        let mut pair = Pair::new(2, on_any_platform(), on_any_platform()).with_filter(
            move |number, segment| {
                // A middlebox turns one segment of the second subflow into a reset.
                if !armed && number > 300 && carries_data(segment, 1) {
                    armed = true;
                    segment.header.flags = anabranch_wire::Flags::RST;
                    segment.payload = anabranch_wire::Payload::EMPTY;
                }
                Fate::Deliver
            },
        );
        pair.download(3_000_000, 500);
        let closed = |events: &[Event]| {
            events.iter().filter(|event| matches!(event, Event::SubflowClosed(_))).count()
        };
        assert_eq!(closed(&pair.client_events), 1);
        let seen = pair.client_events.len();
        pair.run_ms(2_000);
        assert!(back_after(&pair, seen));
    }

    #[test]
    fn a_path_that_was_refused_for_long_is_used_within_a_minute_of_its_recovery() {
        depends_on_the_platform("whether a subflow that has ended is replaced");
        // Joins are refused for 300 s: the interval between attempts has reached its limit of 60 s.
        let open = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let opened = Arc::clone(&open);
        let mut pair =
            Pair::new(2, on_any_platform(), on_any_platform()).with_filter(move |_, segment| {
                let open = opened.load(std::sync::atomic::Ordering::Relaxed);
                if !open
                    && let Some(control) = &mut segment.options.control
                    && let Some(MpJoin::Syn { token, .. }) = &mut control.join
                {
                    *token ^= 1;
                }
                make_transient(segment);
                Fate::Deliver
            });
        pair.download(1_000, 1_000);
        pair.run_ms(300_000);
        let attempts = pair.segments(|s| matches!(joins(s), Some(MpJoin::Syn { .. })));
        assert!((8..=12).contains(&attempts), "{attempts} attempts in 300 s");
        open.store(true, std::sync::atomic::Ordering::Relaxed);
        let seen = pair.client_events.len();
        pair.run_ms(61_000);
        assert!(back_after(&pair, seen));
    }
}

/// A path manager with a constant stream of nonsensical actions.
#[derive(Debug)]
struct Raving {
    local: Option<(LocalAddress, SocketAddress)>,
    wants: u64,
}

impl PathManager for Raving {
    fn handle_event(&mut self, _now: Instant, event: &PathEvent<'_>, _views: &[SubflowView]) {
        if let PathEvent::Established { local, remote, .. } = *event {
            self.local = Some((local[0], remote));
        }
        self.wants += 1;
    }

    fn handle_timeout(&mut self, _now: Instant, _views: &[SubflowView]) {
        self.wants += 1;
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.wants += 1;
        let nobody = SubflowId { slot: Slot(31), generation: 7 };
        let (local, remote) = self.local?;
        Some(match self.wants % 5 {
            0 => PathAction::Open { local, remote, remote_address_id: 9, backup: true },
            1 => PathAction::Close { subflow: nobody, reset: true },
            2 => PathAction::SetPriority { subflow: nobody, backup: true, signalled: true },
            3 => PathAction::Probe { subflow: nobody, count: u32::MAX, bytes: u32::MAX },
            _ => {
                let first = SubflowId { slot: Slot(0), generation: 0 };
                PathAction::Probe { subflow: first, count: 3, bytes: 0 }
            }
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

#[test]
fn a_path_manager_with_nonsensical_actions_neither_loses_data_nor_stalls_the_connection() {
    let mut pair = pair_with(1, || Raving { local: None, wants: 0 });
    pair.download(500_000, 10_000);
    assert_eq!(pair.received[0], 500_000);
    assert!(pair.now < Instant::ZERO + Duration::from_secs(10) + ms(1));
}

/// Counts the events that it receives and its timeouts. It asks for timeouts all the time.
#[derive(Debug)]
struct Listening(Arc<[AtomicU32; 2]>, Instant);

impl PathManager for Listening {
    fn handle_event(&mut self, _now: Instant, _event: &PathEvent<'_>, _views: &[SubflowView]) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }

    fn handle_timeout(&mut self, now: Instant, _views: &[SubflowView]) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
        self.1 = now + ms(100);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.1)
    }
}

/// Two hosts with such path managers, and the counts of both.
struct Listened {
    pair: Pair,
    counts: [Arc<[AtomicU32; 2]>; 2],
}

impl Listened {
    fn new(filter: impl FnMut(u64, &mut Segment) -> Fate + 'static) -> Self {
        let counts: [Arc<[AtomicU32; 2]>; 2] = Default::default();
        let [client, server] = counts.clone().map(|count| {
            let config = config(move || Listening(Arc::clone(&count), Instant::ZERO));
            config.late_fallback(true)
        });
        Listened { pair: Pair::new(2, client, server).with_filter(filter), counts }
    }

    /// An address of the client goes down or comes up.
    fn change(&mut self, usable: bool) {
        self.pair.client.handle_address_change(self.pair.now, client_address(1), usable);
        self.pair.run_ms(150);
    }

    /// Number of events at each host.
    fn told(&self) -> [u32; 2] {
        [0, 1].map(|side| self.counts[side][0].load(Ordering::Relaxed))
    }

    /// Numbers of events and of timeouts at each host.
    fn all(&self) -> [[u32; 2]; 2] {
        let woken = [0, 1].map(|side| self.counts[side][1].load(Ordering::Relaxed));
        [self.told(), woken]
    }
}

#[test]
fn a_path_manager_receives_events_only_from_multipath_connections() {
    // RFC 8684 §3.7: the events are an address that is down, the connection, and the address that
    // comes up.
    for (is_mptcp, expected) in [(true, [3, 1]), (false, [0, 0])] {
        let mut listened = Listened::new(move |_, segment| {
            if is_syn(segment) && !is_mptcp {
                pair::strip(segment);
            }
            Fate::Deliver
        });
        listened.pair.client.handle_address_change(listened.pair.now, client_address(1), false);
        listened.pair.upload(10_000, 1_000);
        listened.pair.run_ms(50);
        listened.change(true);
        assert_eq!(listened.told(), expected);
        assert_eq!(listened.all()[1].map(|woken| woken > 0), [is_mptcp; 2]);
    }
}

#[test]
fn a_path_manager_receives_no_event_after_fallback() {
    // RFC 8684 §3.7
    let stripping = std::rc::Rc::new(std::cell::Cell::new(false));
    let strips = std::rc::Rc::clone(&stripping);
    let mut listened = Listened::new(move |_, segment| {
        if strips.get() {
            pair::strip(segment);
        }
        Fate::Deliver
    });
    listened.pair.upload(10_000, 1_000);
    stripping.set(true);
    listened.pair.upload(10_000, 5_000);
    listened.pair.run_ms(1_000);
    assert!(listened.pair.client_events.contains(&Event::FellBack));
    let before = listened.all();
    listened.change(false);
    listened.change(true);
    assert_eq!(listened.all(), before);
}

#[test]
fn a_path_manager_receives_no_event_after_the_end_of_the_connection() {
    let mut listened = Listened::new(|_, _| Fate::Deliver);
    listened.pair.upload(10_000, 1_000);
    listened.pair.close_both();
    while !listened.pair.client_events.contains(&Event::Closed)
        || !listened.pair.server_events.contains(&Event::Closed)
    {
        listened.pair.run_ms(1);
    }
    let before = listened.all();
    listened.change(false);
    listened.pair.run_ms(200_000);
    assert_eq!(listened.all(), before);
}

#[test]
fn a_subflow_beyond_the_limit_is_opened_when_another_ends() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    let two = on_any_platform().max_subflows(2);
    let mut pair = Pair::new(3, two, on_any_platform());
    pair.upload(10_000, 1_000);
    pair.run_ms(5_000);
    let opened = |pair: &Pair, n| pair.segments(|s| is_syn(s) && to_server(s) && is_on(s, n));
    assert_eq!([1, 2].map(|n| opened(&pair, n)), [1, 0]);
    pair.client.handle_address_change(pair.now, client_address(1), false);
    pair.run_ms(61_000);
    assert_eq!([1, 2].map(|n| opened(&pair, n)), [1, 1]);
}

/// Closes the first established join when its successor is established.
#[derive(Debug, Default)]
struct Behind {
    mesh: FullMesh,
    first: Option<SubflowId>,
    close: Option<PathAction>,
}

impl PathManager for Behind {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.mesh.handle_event(now, event, views);
        if let PathEvent::SubflowEstablished(id) = *event {
            let subflow = *self.first.get_or_insert(id);
            self.close = (subflow != id).then_some(PathAction::Close { subflow, reset: true });
        }
    }

    fn handle_timeout(&mut self, now: Instant, views: &[SubflowView]) {
        self.mesh.handle_timeout(now, views);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.mesh.poll_action().or_else(|| self.close.take())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.mesh.poll_timeout()
    }
}

#[test]
fn an_action_for_a_closed_subflow_does_not_affect_its_successor() {
    depends_on_the_platform("segments without_slot timestamps count");
    let mut pair = pair_with(2, Behind::default);
    pair.upload(100_000, 2_000);
    pair.run_ms(100);
    let mut reset = pair.last(|s| !to_server(s) && is_on(s, 1));
    reset.header.flags = Flags::RST;
    pair.client.handle_segment(pair.now, reset);
    pair.run_ms(3_000);
    let joins = |event: &&Event| matches!(event, Event::SubflowEstablished(_));
    assert_eq!(pair.client_events.iter().filter(joins).count(), 2);
    assert_eq!(pair.segments(|s| is_rst(s) && to_server(s)), 0);
}

/// Makes the second subflow a backup at once, and probes it every 100 ms.
#[derive(Debug, Default)]
struct Probing {
    mesh: FullMesh,
    actions: Vec<PathAction>,
    next: Option<Instant>,
}

impl PathManager for Probing {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.mesh.handle_event(now, event, views);
        if let PathEvent::SubflowEstablished(subflow) = *event {
            let (backup, signalled) = (true, false);
            self.actions.push(PathAction::SetPriority { subflow, backup, signalled });
            self.next = Some(now + ms(100));
        }
    }

    fn handle_timeout(&mut self, now: Instant, views: &[SubflowView]) {
        self.mesh.handle_timeout(now, views);
        let standby = views.iter().find(|view| view.backup).map(|view| view.id);
        let probe = |subflow| PathAction::Probe { subflow, count: 5, bytes: 1000 };
        self.actions.extend(standby.map(probe));
        self.next = Some(now + ms(100));
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.mesh.poll_action().or_else(|| self.actions.pop())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

#[test]
fn probes_are_copies_of_data_in_flight_and_may_be_lost() {
    // Every probe is lost, and the backup carries no other data.
    let make = || -> Box<dyn PathManager> { Box::new(Probing::default()) };
    let server = on_any_platform().path_manager(make);
    let mut pair = Pair::new(2, on_any_platform(), server).with_filter(|_, segment| {
        if carries_data(segment, 1) && segment.payload.len() <= 1000 {
            return Fate::Drop;
        }
        Fate::Deliver
    });
    pair.download(3_000_000, 10_000);
    assert_eq!(pair.received[0], 3_000_000);
    let probes = pair.segments(|s| carries_data(s, 1) && s.payload.len() == 1000);
    assert!(probes >= 5, "{probes} probes");
    let server = pair.server.connection_stats(pair.now, pair.accepted.expect("accepted"));
    let counted = server.expect("it is open").path_probes;
    assert!((5..=probes as u64).contains(&counted), "{counted} probes in {probes} segments");
    let long = pair.segments(|s| carries_data(s, 1) && s.payload.len() > 1000);
    assert!(long < 100, "{long} other segments on the backup");
    let regular: Vec<_> = pair.log.iter().filter(|s| carries_data(s, 0)).collect();
    let mapping = |s: &Segment| s.options.dss.and_then(|dss| dss.mapping);
    let first = |s: &Segment| mapping(s).map(|mapping| mapping.data_seq);
    let near = anabranch_wire::DataSeq(0);
    for probe in pair.log.iter().filter(|s| carries_data(s, 1) && s.payload.len() == 1000) {
        let at = first(probe).expect("a mapping").resolve(near);
        let covered = regular.iter().any(|s| {
            let start = first(s).expect("a mapping").resolve(near);
            let distance = at.distance_from(start);
            (0..s.payload.len() as i64).contains(&distance)
        });
        assert!(covered, "a probe of data that the regular subflow has not carried");
    }
}

/// Makes all joins backups, and probes them once, all at the same time.
#[derive(Debug, Default)]
struct ProbingOnce {
    mesh: FullMesh,
    standbys: Vec<SubflowId>,
    actions: Vec<PathAction>,
    at: Option<Instant>,
}

impl PathManager for ProbingOnce {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.mesh.handle_event(now, event, views);
        if let PathEvent::SubflowEstablished(subflow) = *event {
            let (backup, signalled) = (true, false);
            self.actions.push(PathAction::SetPriority { subflow, backup, signalled });
            self.standbys.push(subflow);
            self.at = Some(now + ms(1_000));
        }
    }

    fn handle_timeout(&mut self, _now: Instant, _views: &[SubflowView]) {
        self.at = None;
        let probe = |subflow| PathAction::Probe { subflow, count: 3, bytes: 1000 };
        self.actions.extend(self.standbys.drain(..).map(probe));
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.mesh.poll_action().or_else(|| self.actions.pop())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }
}

#[test]
fn simultaneous_probes_of_several_subflows_end_with_the_data_in_flight() {
    depends_on_the_platform("Nagle's rule");
    // The round-trip time of the first path is a second, and its window is two segments.
    let mut client = config(ProbingOnce::default);
    client.tcp.initial_window_segments = 2;
    let mut pair = Pair::new(3, client, on_any_platform()).with_slow_path(0, ms(500));
    pair.settle(2_600);
    pair.write(0, 10_000);
    pair.run_ms(600);
    let lengths = |n| pair.log.iter().filter(move |s| carries_data(s, n)).map(|s| s.payload.len());
    let under_way: usize = lengths(0).sum();
    for n in [1, 2] {
        assert_eq!(lengths(n).collect::<Vec<_>>(), [1000, 1000, under_way - 2000], "path {n}");
    }
}

/// Mark a reset as transient. RFC 8684 §3.6.
fn make_transient(segment: &mut Segment) {
    if let Some(reset) = segment.options.control.as_mut().and_then(|c| c.reset.as_mut()) {
        reset.transient = true;
    }
}

/// Number of joins that the client attempts within 100 s, without repeated SYNs.
fn joins_tried(
    server: ConnectionConfig,
    filter: impl FnMut(u64, &mut Segment) -> Fate + 'static,
) -> u64 {
    let mut pair = Pair::new(2, on_any_platform(), server).with_filter(filter);
    pair.run_ms(50);
    pair.upload(10_000, 1_000);
    pair.run_ms(100_000);
    pair.client.counters().join_syn_tx
}

#[test]
fn a_permanently_refused_path_is_left_alone_and_a_transiently_refused_one_retried() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // RFC 8684 §3.6. The third ACK of the join arrives without its option, so the server resets the
    // join.
    let strip = |segment: &mut Segment| {
        let third = to_server(segment) && is_on(segment, 1) && !is_syn(segment);
        if third && segment.options.control.as_ref().is_some_and(|c| c.join.is_some()) {
            segment.options.control = None;
        }
    };
    let for_good = joins_tried(on_any_platform(), move |_, segment| {
        strip(segment);
        Fate::Deliver
    });
    assert_eq!(for_good, 1);
    // If the same reset is marked as transient, further attempts follow after 1, 2, 4, 8, 16 and 32
    // s.
    let for_now = joins_tried(on_any_platform(), move |_, segment| {
        strip(segment);
        make_transient(segment);
        Fate::Deliver
    });
    assert_eq!(for_now, 7);
    // The same holds if the server has no room.
    let full = on_any_platform().max_subflows(1);
    assert_eq!(joins_tried(full, |_, _| Fate::Deliver), 7);
}

#[test]
fn a_path_that_always_breaks_at_once_is_tried_less_and_less_often() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // Each subflow over the path is established by the server's answer to the third ACK. All later
    // segments from the server are resets.
    let mut open = std::collections::BTreeSet::new();
    let filter = move |_: u64, segment: &mut Segment| {
        let answers = !to_server(segment) && is_on(segment, 1) && !is_syn(segment);
        if answers && !open.insert(segment.destination.port) {
            segment.header.flags = Flags::RST | Flags::ACK;
        }
        Fate::Deliver
    };
    let mut pair = Pair::new(2, on_any_platform(), on_any_platform()).with_filter(filter);
    pair.run_ms(50);
    for _ in 0..100 {
        pair.upload(20_000, 1_000);
        pair.run_ms(1_000);
    }
    let tried = pair.client.counters().join_syn_tx;
    assert!((5..=8).contains(&tried), "{tried}");
    assert_eq!(pair.received[1], 2_000_000);
}
