//! Former mistakes of path managers, and REMOVE_ADDR. RFC 8684 §3.3.8, §3.4.2.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anabranch_proto::Event;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::{
    Backup, DRePaS, DRePaSConfig, FullMesh, PathAction, PathEvent, PathManager, SinglePath,
};
use anabranch_proto::view::{SubflowView, Usability};
use anabranch_wire::mptcp::{MpJoin, RemoveAddr};
use anabranch_wire::{Instant, Segment};

use crate::pair::{
    Fate, Pair, client_address, depends_on_the_platform, is_rst, is_syn, ms, on_any_platform,
    server_address,
};

fn config<P: PathManager + 'static>(
    make: impl Fn() -> P + Send + Sync + 'static,
) -> ConnectionConfig {
    let path_manager = move || Box::new(make()) as Box<dyn PathManager>;
    on_any_platform().path_manager(path_manager)
}

fn pair_with<P: PathManager + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Pair {
    Pair::new(2, config(make), on_any_platform())
}

/// A switch: tests set the first handle, and filters read the second.
fn switch() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let switch = Arc::new(AtomicBool::new(false));
    (Arc::clone(&switch), switch)
}

fn uses(segment: &Segment, n: u8) -> bool {
    [segment.source.address, segment.destination.address].contains(&client_address(n))
}

fn carries_data(segment: &Segment, n: u8) -> bool {
    uses(segment, n) && !segment.payload.is_empty()
}

fn usable(views: impl Iterator<Item = SubflowView>) -> usize {
    views.filter(|view| view.usability == Usability::Usable).count()
}

/// Usable subflows at client and server.
fn both_usable(pair: &Pair) -> (usize, usize) {
    let accepted = pair.accepted.expect("it was accepted");
    let client = pair.client.subflow_stats(pair.connection).map(|stats| stats.view);
    let server = pair.server.subflow_stats(accepted).map(|stats| stats.view);
    (usable(client), usable(server))
}

/// Opens the second address as a backup, and makes it a regular subflow once it is established.
#[derive(Debug, Default)]
struct Promoting(Vec<PathAction>);

impl PathManager for Promoting {
    fn handle_event(&mut self, _now: Instant, event: &PathEvent<'_>, _views: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator: true, local, remote } => {
                let local = local[1];
                let open = PathAction::Open { local, remote, remote_address_id: 0, backup: true };
                self.0.push(open);
            }
            PathEvent::SubflowEstablished(subflow) => {
                self.0.push(PathAction::SetPriority { subflow, backup: false, signalled: true });
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Instant, _views: &[SubflowView]) {}

    fn poll_action(&mut self) -> Option<PathAction> {
        self.0.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_subflow_opened_as_backup_can_become_a_regular_one_at_both_ends() {
    let mut pair = pair_with(Promoting::default);
    pair.download(2_000_000, 20_000);
    let down = pair.segments(|s| carries_data(s, 1));
    pair.upload(2_000_000, 20_000);
    let up = pair.segments(|s| carries_data(s, 1)) - down;
    assert!(down > 100 && up > 100, "{down} segments down, {up} up");
}

#[test]
fn a_lost_mp_prio_is_resent_when_data_keeps_arriving() {
    let mut lost = false;
    let is_prio = |s: &Segment| s.options.control.as_ref().is_some_and(|c| c.prio.is_some());
    let mut pair = pair_with(|| Backup::new(1)).with_filter(move |_, segment| {
        let drops = is_prio(segment) && !std::mem::replace(&mut lost, true);
        if drops { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(3_000_000, 30_000);
    pair.run_ms(1_000);
    let before = pair.segments(|s| carries_data(s, 0));
    pair.download(1_000_000, 30_000);
    assert_eq!(pair.segments(is_prio), 2);
    assert_eq!(pair.segments(|s| carries_data(s, 0)), before, "the backup carried data");
}

#[test]
fn single_path_keeps_one_subflow_however_its_interfaces_come_and_go() {
    let (refusing, refuses) = switch();
    let mut pair = pair_with(SinglePath::default).with_filter(move |_, segment| {
        if refuses.load(Relaxed)
            && let Some(control) = &mut segment.options.control
            && let Some(MpJoin::Syn { token, .. }) = &mut control.join
        {
            *token ^= 1;
        }
        if let Some(reset) = segment.options.control.as_mut().and_then(|c| c.reset.as_mut()) {
            reset.transient = true;
        }
        Fate::Deliver
    });
    pair.upload(100_000, 5_000);
    refusing.store(true, Relaxed);
    let change = |pair: &mut Pair, n: u8, usable: bool| {
        pair.client.handle_address_change(pair.now, client_address(n), usable);
        pair.drain();
    };
    change(&mut pair, 0, false);
    change(&mut pair, 0, true);
    pair.run_ms(200);
    refusing.store(false, Relaxed);
    for (n, usable) in [(0, false), (1, false), (0, true), (1, true)] {
        change(&mut pair, n, usable);
    }
    pair.run_ms(3_000);
    assert_eq!(both_usable(&pair).0, 1);
}

#[test]
fn single_path_returns_from_a_path_that_turns_out_dead() {
    depends_on_the_platform("the lengths of the timeouts");
    // The second address is dead all the time, and the first one for two seconds.
    let (silent, is_silent) = switch();
    let mut pair = pair_with(SinglePath::default).with_filter(move |_, segment| {
        if uses(segment, 1) || is_silent.load(Relaxed) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(100_000, 5_000);
    silent.store(true, Relaxed);
    pair.upload(1_000_000, 2_000);
    silent.store(false, Relaxed);
    let from = pair.now;
    pair.upload(1_000_000, 60_000);
    assert_eq!(pair.received[1], pair.written[0]);
    // Three seconds for the dead path, and a handshake.
    assert!(pair.now.saturating_since(from) < ms(4_000));
}

#[test]
fn single_path_stays_on_a_dead_path_when_the_peer_may_have_closed_the_connection() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.3.3: the server has both ends of the stream, and accepts no further subflow. Its
    // answer is lost in an outage, after which the path works again.
    let (silent, is_silent) = switch();
    let mut pair = pair_with(SinglePath::default).with_filter(move |_, segment| {
        let is_lost = is_silent.load(Relaxed) && segment.source.address == server_address();
        if is_lost { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(100_000, 5_000);
    pair.server.close(pair.accepted.expect("it was accepted"));
    pair.run_ms(500);
    silent.store(true, Relaxed);
    pair.write(0, 100_500);
    pair.client.close(pair.connection);
    pair.run_ms(15_000);
    silent.store(false, Relaxed);
    pair.run_ms(120_000);
    assert_eq!(pair.segments(is_rst), 0);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
}

#[test]
fn a_connection_that_the_peer_has_forgotten_ends_within_two_minutes() {
    let period = ms(1_000);
    let drepas = move || DRePaS::new(DRePaSConfig { threshold: 0.1, period, hysteresis: 2 });
    for config in [config(FullMesh::default), config(SinglePath::default), config(drepas)] {
        let mut pair = Pair::new(2, config, on_any_platform());
        pair.upload(100_000, 5_000);
        pair.server.abort(pair.accepted.expect("it was accepted"));
        pair.drain();
        pair.run_ms(120_000);
        assert!(pair.client_events.iter().any(|event| matches!(event, Event::Failed(_))));
        assert!(pair.segments(is_syn) < 40, "{} SYNs", pair.segments(is_syn));
    }
}

#[test]
fn addresses_that_are_down_from_the_start_are_used_only_when_they_come_up() {
    let mut pair = Pair::new(3, config(FullMesh::default), on_any_platform());
    for n in [1, 2] {
        pair.client.handle_address_change(pair.now, client_address(n), false);
    }
    pair.settle(1_000);
    for n in [1, 2] {
        assert_eq!(pair.segments(|s| uses(s, 1) || uses(s, 2)) > 0, n > 1);
        pair.client.handle_address_change(pair.now, client_address(n), true);
        pair.drain();
        pair.run_ms(200);
        assert_eq!(both_usable(&pair), (1 + usize::from(n), 1 + usize::from(n)));
    }
}

mod remove_addr {
    use super::*;

    fn removed(segment: &Segment) -> Option<Vec<u8>> {
        let option = segment.options.control.as_ref()?.remove_addr?;
        Some(option.address_ids().to_vec())
    }

    #[test]
    fn a_flapping_interface_of_an_idle_connection_leaves_no_dead_subflows() {
        let (down, is_down) = switch();
        let mut pair = pair_with(FullMesh::default).with_filter(move |_, segment| {
            let gone = uses(segment, 1) && is_down.load(Relaxed);
            if gone { Fate::Drop } else { Fate::Deliver }
        });
        pair.download(100_000, 5_000);
        for flap in 0..40 {
            for (usable, expected) in [(false, (1, 1)), (true, (2, 2))] {
                down.store(!usable, Relaxed);
                pair.client.handle_address_change(pair.now, client_address(1), usable);
                pair.run_ms(5_000);
                assert_eq!(both_usable(&pair), expected, "flap {flap}");
            }
        }
        let told = pair.log.iter().filter_map(removed).filter(|ids| *ids == [1]).count();
        assert_eq!(told, 40);
        let counters = (pair.client.counters().rm_addr_tx, pair.server.counters().rm_addr);
        assert_eq!(counters, (40, 40));
    }

    #[test]
    fn a_path_that_still_answers_is_kept() {
        // RFC 8684 §3.4.2: an attacker may have forged the option.
        let mut forged = false;
        let mut pair = pair_with(FullMesh::default).with_filter(move |number, segment| {
            let fits = number > 100
                && segment.source.address == client_address(0)
                && segment.options.control.is_none();
            if fits && !std::mem::replace(&mut forged, true) {
                segment.options.control_mut().remove_addr = RemoveAddr::new(&[1]);
            }
            Fate::Deliver
        });
        pair.download(1_000_000, 10_000);
        pair.run_ms(5_000);
        assert_eq!(pair.server.counters().rm_addr, 1);
        assert_eq!(both_usable(&pair), (2, 2));
    }
}

#[test]
fn data_in_flight_on_a_silent_path_is_reinjected_at_once_on_a_new_one() {
    depends_on_the_platform("when a silent subflow goes out of use");
    // RFC 8684 §3.3.6
    let dark = std::rc::Rc::new(std::cell::Cell::new(false));
    let is_dark = std::rc::Rc::clone(&dark);
    let mut pair = pair_with(FullMesh::default).with_filter(move |_, segment| {
        if is_dark.get() && uses(segment, 0) { Fate::Drop } else { Fate::Deliver }
    });
    pair.client.handle_address_change(pair.now, client_address(1), false);
    pair.upload(100_000, 5_000);
    dark.set(true);
    pair.write(0, 110_000);
    pair.run_ms(4_000);
    pair.client.handle_address_change(pair.now, client_address(1), true);
    pair.drain();
    pair.run_ms(100);
    assert_eq!(pair.received[1], 110_000);
}

#[test]
fn addresses_that_are_lost_together_are_removed_together_on_another_subflow() {
    // RFC 8684 §3.4.2
    let mut pair = Pair::new(3, config(FullMesh::default), on_any_platform());
    pair.upload(200_000, 5_000);
    pair.run_ms(500);
    for n in [1, 2] {
        pair.client.handle_address_change(pair.now, client_address(n), false);
    }
    pair.drain();
    let removed = |s: &Segment| s.options.control.as_ref().and_then(|control| control.remove_addr);
    let told: Vec<(bool, usize)> = (pair.log.iter())
        .filter_map(|s| Some((uses(s, 0), removed(s)?.address_ids().len())))
        .collect();
    assert_eq!(told, [(true, 2)]);
    // An address that comes up before the peer was told of its loss counts as never lost.
    for (usable, after_ms) in [(true, 500), (false, 500), (true, 0)] {
        if after_ms > 0 {
            pair.run_ms(after_ms);
        }
        pair.client.handle_address_change(pair.now, client_address(1), usable);
    }
    pair.run_ms(2_000);
    assert_eq!(pair.segments(|s| removed(s).is_some()), 1);
}

/// Removes the second address as soon as its subflow is established, but keeps the subflow.
#[derive(Debug, Default)]
struct Withdrawing(FullMesh, Option<PathAction>);

impl PathManager for Withdrawing {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.0.handle_event(now, event, views);
        if matches!(event, PathEvent::SubflowEstablished(_)) {
            self.1 = Some(PathAction::Remove { local_address_id: 1 });
        }
    }

    fn handle_timeout(&mut self, now: Instant, views: &[SubflowView]) {
        self.0.handle_timeout(now, views);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.0.poll_action().or_else(|| self.1.take())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}

#[test]
fn remove_addr_is_not_sent_on_a_working_subflow_from_that_address() {
    // RFC 8684 §3.4.2
    let mut pair = pair_with(Withdrawing::default);
    pair.upload(100_000, 5_000);
    pair.run_ms(500);
    let removes = |s: &Segment| s.options.control.as_ref().is_some_and(|c| c.remove_addr.is_some());
    assert_eq!([0, 1].map(|n| pair.segments(|s| uses(s, n) && removes(s))), [1, 0]);
}
