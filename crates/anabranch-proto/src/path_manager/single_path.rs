//! Single-path mode: one subflow at a time, moved to another address when it fails ("break before
//! make"). Paasch et al., "Exploring mobile/WiFi handover with Multipath TCP", CellNet 2012.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Endpoint, Instant};

use super::upkeep::of_family;
use super::{LocalAddress, PathAction, PathEvent, PathManager};
use crate::policy::Entry;
use crate::view::{SubflowId, SubflowView};

/// Keeps one subflow. When its interface goes down, or its retransmission timer expires for the
/// second time in a row (ours), it is reset, and once it is gone the next usable address opens
/// another. A connection that works stays where it is, though an earlier address may be back.
///
/// A host that only receives cannot tell a silent path from an idle peer, so it moves when its
/// interface goes down or the peer resets the subflow.
#[derive(Clone, Debug, Default)]
pub struct SinglePath {
    addresses: Vec<(LocalAddress, bool)>,
    remote: Option<Endpoint>,
    /// Index of the address in use or being tried.
    current: usize,
    /// Attempts since a subflow was last established.
    attempts: u32,
    retry_at: Option<Instant>,
    actions: VecDeque<PathAction>,
}

/// How it is chosen by name.
pub(super) const ENTRY: super::PathManagerEntry = Entry {
    name: "single_path",
    summary: "One subflow at a time, moved to another path when it fails.",
    source: "Paasch et al., CellNet 2012 (single-path mode)",
    parameters: &[],
    make: |_| Box::new(SinglePath::default()),
};

/// Expiries of the retransmission timer after which a subflow has failed (ours): one may be due
/// to a queue that filled quickly.
const FAILED_AFTER: u32 = 2;
/// Pause once every address was tried in vain (ours).
const PAUSE: Duration = Duration::from_secs(1);

impl SinglePath {
    fn leave(&mut self, subflow: SubflowId) {
        self.actions.push_back(PathAction::Close { subflow, reset: true });
    }

    /// Open a subflow from the next usable address; after a round in vain, later.
    fn advance(&mut self, now: Instant) {
        let count = self.addresses.len();
        let next = (1..=count)
            .map(|step| (self.current + step) % count)
            .find(|index| self.addresses[*index].1);
        let Some(next) = next else { return };
        if self.attempts as usize >= count {
            self.attempts = 0;
            self.retry_at = Some(now + PAUSE);
            return;
        }
        self.attempts += 1;
        self.current = next;
        let Some(remote) = self.remote else { return };
        self.actions.push_back(PathAction::Open {
            local: self.addresses[next].0,
            remote,
            remote_address_id: 0,
            backup: false,
        });
    }

    fn on_address_changed(&mut self, now: Instant, id: u8, usable: bool, views: &[SubflowView]) {
        let none_usable = self.addresses.iter().all(|(_, usable)| !usable);
        for (local, state) in &mut self.addresses {
            if local.id == id {
                *state = usable;
            }
        }
        if !usable {
            let on_address: Vec<SubflowId> =
                views.iter().filter(|v| v.local_address_id == id).map(|v| v.id).collect();
            on_address.into_iter().for_each(|subflow| self.leave(subflow));
        } else if none_usable {
            self.attempts = 0;
            self.advance(now);
        }
    }
}

impl PathManager for SinglePath {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator: true, local, remote } => {
                self.addresses = of_family(local, remote).map(|local| (*local, true)).collect();
                self.remote = Some(remote);
            }
            PathEvent::SubflowEstablished(_) => self.attempts = 0,
            PathEvent::SubflowTimeout { id, in_a_row }
                if in_a_row >= FAILED_AFTER && self.remote.is_some() =>
            {
                self.leave(id);
            }
            PathEvent::SubflowClosed { .. } if self.remote.is_some() => self.advance(now),
            PathEvent::AddressChanged { local_address_id, usable } if self.remote.is_some() => {
                self.on_address_changed(now, local_address_id, usable, subflows);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant, _subflows: &[SubflowView]) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.advance(now);
        }
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.actions.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::tests::{actions, address, closed, established, id, local, opened};
    use crate::view::tests::view;

    fn manager() -> SinglePath {
        let mut manager = SinglePath::default();
        assert!(established(&mut manager, true, &[local(0), local(1)]).is_empty());
        manager
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
        manager.handle_event(now, &address(0, false), &[view(0, 20)]);
        assert_eq!(actions(&mut manager), [PathAction::Close { subflow: id(0), reset: true }]);
        manager.handle_event(now, &closed(0), &[]);
        assert!(actions(&mut manager).is_empty() && manager.poll_timeout().is_none());
        manager.handle_event(now, &address(1, true), &[]);
        assert_eq!(opened(&actions(&mut manager)), [(1, false)]);
    }

    #[test]
    fn after_a_round_in_vain_there_is_a_pause() {
        let mut manager = manager();
        let mut now = Instant::ZERO;
        for _ in 0..3 {
            for expected in [1, 0] {
                manager.handle_event(now, &closed(1 - expected), &[]);
                assert_eq!(opened(&actions(&mut manager)).len(), 1);
            }
            manager.handle_event(now, &closed(0), &[]);
            assert!(actions(&mut manager).is_empty());
            now = manager.poll_timeout().expect("it will try again");
            manager.handle_timeout(now, &[]);
            assert_eq!(opened(&actions(&mut manager)).len(), 1);
            manager.handle_event(now, &PathEvent::SubflowEstablished(id(0)), &[]);
        }
    }
}
