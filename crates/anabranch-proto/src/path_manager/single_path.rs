//! Single-path mode: one subflow at a time, moved to another address when it fails ("break before
//! make"). Paasch et al., "Exploring mobile/WiFi handover with Multipath TCP", CellNet 2012.

use anabranch_config::part_without_parameters;
use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant, SocketAddress};

use super::upkeep::{is_of_family, of_family};
use super::{BuildPathManager, LocalAddress, PathAction, PathEvent, PathManager, Retry};
use crate::view::{SubflowId, SubflowView, Usability};

/// Keeps one subflow. The manager resets it when its interface goes down, or when its
/// retransmission timer expires for the second consecutive time (this project). It then opens a
/// subflow from the next usable address. If that takes more than three seconds (this project), it
/// tries the address after that. A working connection stays where it is, even if an earlier address
/// is usable again.
///
/// A host that only receives cannot distinguish a silent path from an idle peer. It therefore moves
/// only when its interface goes down or the peer resets the subflow.
#[derive(Clone, Debug, Default)]
pub struct SinglePath {
    addresses: Vec<(LocalAddress, bool)>,
    /// Identifiers of addresses that went down before the connection was established.
    down: Vec<u8>,
    remote: Option<SocketAddress>,
    /// Index of the address in use or being tried.
    current: usize,
    state: SwitchState,
    /// Addresses tried in this round, and failed rounds, since a subflow last carried data.
    attempts: usize,
    rounds: u32,
    actions: VecDeque<PathAction>,
}

#[derive(Clone, Copy, Debug, Default)]
enum SwitchState {
    /// A subflow exists.
    #[default]
    Settled,
    /// A subflow is being opened; the attempt ends at this time.
    Trying(Instant),
    /// All addresses failed; the next round begins at this time.
    Pausing(Instant),
    /// No address is usable.
    Waiting,
}

part_without_parameters! {
    /// Selects [`SinglePath`].
    pub struct SinglePathConfig;
    NAME = "single_path";
    SUMMARY = "Opens one subflow at a time, and moves it to another path when it fails.";
    SOURCE = "Paasch et al., CellNet 2012 (single-path mode)";
}

impl BuildPathManager for SinglePathConfig {
    fn build(&self) -> Box<dyn PathManager> {
        Box::new(SinglePath::default())
    }
}

/// Consecutive expiries of the retransmission timer after which a subflow counts as failed (this
/// project). A single expiry may be due to a queue that filled quickly.
const FAILED_AFTER: u32 = 2;
/// Time that a subflow may take to open (this project): a SYN and its first retransmission, RFC
/// 6298 §2.
const OPENING: Duration = Duration::from_secs(3);
/// Pause after all addresses have failed; it doubles with each round (this project).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl SinglePath {
    fn leave(&mut self, subflow: SubflowId) {
        self.actions.push_back(PathAction::Close { subflow, reset: true });
    }

    /// Open a subflow from the next usable address, or pause if all addresses have failed.
    fn advance(&mut self, now: Instant) {
        let count = self.addresses.len();
        let steps = (1..=count).map(|step| (self.current + step) % count);
        let Some(next) = steps.into_iter().find(|index| self.addresses[*index].1) else {
            self.state = SwitchState::Waiting;
            return;
        };
        if self.attempts >= count {
            let pause = FIRST_PAUSE * (1 << self.rounds.min(16));
            self.attempts = 0;
            self.rounds += 1;
            self.state = SwitchState::Pausing(now + pause.min(LONGEST_PAUSE));
            return;
        }
        self.attempts += 1;
        self.current = next;
        self.state = SwitchState::Trying(now + OPENING);
        let Some(remote) = self.remote else { return };
        self.actions.push_back(PathAction::Open {
            local: self.addresses[next].0,
            remote,
            remote_address_id: 0,
            backup: false,
        });
    }

    fn on_address_changed(&mut self, now: Instant, id: u8, usable: bool, views: &[SubflowView]) {
        self.down.retain(|other| *other != id);
        if !usable {
            self.down.push(id);
        }
        self.set_usable(id, usable);
        if self.remote.is_none() {
            return;
        }
        if !usable {
            let on_address = views.iter().filter(|view| view.local_address_id == id);
            let subflows: Vec<SubflowId> = on_address.map(|view| view.id).collect();
            subflows.into_iter().for_each(|subflow| self.leave(subflow));
            self.actions.push_back(PathAction::Remove { local_address_id: id });
        } else if matches!(self.state, SwitchState::Waiting | SwitchState::Pausing(_)) {
            self.attempts = 0;
            self.advance(now);
        }
    }

    fn set_usable(&mut self, id: u8, usable: bool) {
        for (_, state) in self.addresses.iter_mut().filter(|(local, _)| local.id == id) {
            *state = usable;
        }
    }

    /// Opening the subflow has taken too long.
    fn give_up_opening(&mut self, now: Instant, subflows: &[SubflowView]) {
        let opening = subflows.iter().filter(|view| view.usability == Usability::Opening);
        let opening: Vec<SubflowId> = opening.map(|view| view.id).collect();
        if opening.is_empty() {
            return self.advance(now);
        }
        // The reset is reported as an event, which makes the manager try the next address.
        self.state = SwitchState::Trying(now + OPENING);
        opening.into_iter().for_each(|subflow| self.leave(subflow));
    }
}

impl PathManager for SinglePath {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator: true, local, remote } => {
                let usable = |id: u8| !self.down.contains(&id);
                self.addresses =
                    of_family(local, remote).map(|local| (*local, usable(local.id))).collect();
                self.remote = Some(remote);
            }
            PathEvent::SubflowEstablished(_) => {
                self.state = SwitchState::Settled;
            }
            PathEvent::SubflowTimeout { id, in_a_row }
                if in_a_row >= FAILED_AFTER && self.remote.is_some() =>
            {
                self.leave(id);
            }
            PathEvent::SubflowClosed { local_address_id, retry, .. } if self.remote.is_some() => {
                match retry {
                    Retry::Soon => (self.attempts, self.rounds) = (0, 0),
                    Retry::Later => {}
                    // RFC 8684 §3.6: not before the interface comes up again.
                    Retry::Never => self.set_usable(local_address_id, false),
                }
                if matches!(self.state, SwitchState::Settled | SwitchState::Trying(_)) {
                    self.advance(now);
                }
            }
            PathEvent::AddressAdded { local, .. }
                if self.remote.is_some_and(|remote| is_of_family(&local, remote)) =>
            {
                self.addresses.push((local, true));
                self.on_address_changed(now, local.id, true, subflows);
            }
            PathEvent::AddressChanged { local_address_id, usable } => {
                self.on_address_changed(now, local_address_id, usable, subflows);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]) {
        match self.state {
            SwitchState::Trying(until) if until <= now => self.give_up_opening(now, subflows),
            SwitchState::Pausing(until) if until <= now => self.advance(now),
            _ => {}
        }
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.actions.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            SwitchState::Trying(until) | SwitchState::Pausing(until) => Some(until),
            SwitchState::Settled | SwitchState::Waiting => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::tests::{
        actions, added, address, closed, closed_for, established, id, local, opened,
    };
    use crate::view::tests::view;

    fn manager() -> SinglePath {
        let mut manager = SinglePath::default();
        assert!(established(&mut manager, true, &[local(0), local(1)]).is_empty());
        manager
    }

    #[test]
    fn an_added_address_is_used_at_once_if_none_could_be() {
        let mut manager = manager();
        assert!(added(&mut manager, local(2)).is_empty(), "a working connection stays where it is");
        let mut manager = SinglePath::default();
        established(&mut manager, true, &[local(0)]);
        manager.handle_event(Instant::ZERO, &address(0, false), &[view(0, 20)]);
        manager.handle_event(Instant::ZERO, &closed(0), &[]);
        actions(&mut manager);
        assert_eq!(opened(&added(&mut manager, local(1))), [(1, false)]);
    }

    #[test]
    fn the_second_timeout_in_a_row_breaks_and_only_then_the_next_address_makes() {
        let mut manager = manager();
        let timeout = |in_a_row| PathEvent::SubflowTimeout { id: id(0), in_a_row };
        manager.handle_event(Instant::ZERO, &timeout(1), &[view(0, 20)]);
        assert!(actions(&mut manager).is_empty());
        manager.handle_event(Instant::ZERO, &timeout(2), &[view(0, 20)]);
        assert_eq!(actions(&mut manager), [PathAction::Close { subflow: id(0), reset: true }]);
        manager.handle_event(Instant::ZERO, &closed(0), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
    }

    #[test]
    fn an_address_that_is_down_is_passed_over_and_one_that_comes_back_is_tried_at_once() {
        let mut manager = manager();
        let now = Instant::ZERO;
        manager.handle_event(now, &address(1, false), &[view(0, 20)]);
        actions(&mut manager);
        manager.handle_event(now, &address(0, false), &[view(0, 20)]);
        let reset = PathAction::Close { subflow: id(0), reset: true };
        assert_eq!(actions(&mut manager), [reset, PathAction::Remove { local_address_id: 0 }]);
        manager.handle_event(now, &closed(0), &[]);
        assert!(actions(&mut manager).is_empty() && manager.poll_timeout().is_none());
        manager.handle_event(now, &address(1, true), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
    }

    #[test]
    fn after_a_round_in_vain_there_is_a_pause_that_doubles() {
        let mut manager = manager();
        let mut now = Instant::ZERO;
        manager.handle_event(now, &closed(0), &[]);
        for pause in [1, 2, 4] {
            for _ in 0..2 {
                assert_eq!(opened(&actions(&mut manager)).len(), 1);
                manager.handle_event(now, &closed(0), &[]);
            }
            assert!(actions(&mut manager).is_empty());
            let at = manager.poll_timeout().expect("a retry is planned");
            assert_eq!(at, now + Duration::from_secs(pause));
            now = at;
            manager.handle_timeout(now, &[]);
        }
        manager.handle_event(now, &PathEvent::SubflowEstablished(id(0)), &[]);
        assert!(manager.poll_timeout().is_none());
    }

    #[test]
    fn subflows_that_open_and_close_again_are_in_vain_unless_they_carry_data() {
        let mut manager = manager();
        let now = Instant::ZERO;
        manager.handle_event(now, &closed(0), &[]);
        for slot in [1, 0] {
            assert_eq!(opened(&actions(&mut manager)), [(slot, false)]);
            manager.handle_event(now, &PathEvent::SubflowEstablished(id(slot)), &[]);
            manager.handle_event(now, &closed(slot), &[]);
        }
        assert!(actions(&mut manager).is_empty(), "the manager pauses");
        let at = manager.poll_timeout().expect("a retry is planned");
        manager.handle_timeout(at, &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
        manager.handle_event(at, &PathEvent::SubflowEstablished(id(1)), &[]);
        manager.handle_event(at, &closed_for(1, Retry::Soon), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(0, false)]);
        // RFC 8684 §3.6: an address that was refused for good is skipped from then on.
        manager.handle_event(at, &closed_for(0, Retry::Never), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
        manager.handle_event(at, &closed_for(1, Retry::Never), &[]);
        assert!(actions(&mut manager).is_empty() && manager.poll_timeout().is_none());
    }

    #[test]
    fn an_opening_that_takes_too_long_makes_way_for_the_next_address() {
        let mut manager = manager();
        manager.handle_event(Instant::ZERO, &closed(0), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
        let opening = SubflowView { usability: Usability::Opening, ..view(1, 20) };
        let at = manager.poll_timeout().expect("the attempt has a deadline");
        assert_eq!(at, Instant::ZERO + OPENING);
        manager.handle_timeout(at, &[opening]);
        assert_eq!(actions(&mut manager), [PathAction::Close { subflow: id(1), reset: true }]);
        manager.handle_event(at, &closed(1), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(0, false)]);
    }
}
