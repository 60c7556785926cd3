//! Carrying out what the path manager wants. RFC 8684 §3.3.8, §3.4.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::mptcp::{RemoveAddr, ResetReason};
use anabranch_wire::{Duration, Endpoint, Instant, Segment};

use super::handshake::because;
use super::transmit::Again;
use super::{Connection, Mode, Role, Status};
use crate::path_manager::{LocalAddress, PathAction, PathEvent, Retry};
use crate::subflow::DataLevel;
use crate::view::{SubflowId, SubflowSet, Usability};

/// A subflow to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) local: LocalAddress,
    pub(crate) remote: Endpoint,
    pub(crate) remote_address_id: u8,
    pub(crate) backup: bool,
}

/// Copies of data under way that one subflow is to carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeBurst {
    subflow: SubflowId,
    /// Data offsets: the next octet to copy, and the end.
    next: u64,
    end: u64,
    /// Octets in a segment.
    octets: u32,
}

/// Between two timeouts of a path manager: without it a bad one could make time stand still.
const SHORTEST_REST: Duration = Duration::from_millis(1);
/// Actions that are taken from a path manager at a time, for the same reason.
const MOST_ACTIONS: usize = 256;

impl Connection {
    /// RFC 8684 §3.2: further subflows only once the handshake is known to be complete.
    /// RFC 8684 §3.1.
    pub(super) fn start_path_manager(&mut self, now: Instant) {
        if self.path_manager_started || self.mode != Mode::Mptcp {
            return;
        }
        self.path_manager_started = true;
        for id in &self.addresses_down {
            let down = PathEvent::AddressChanged { local_address_id: *id, usable: false };
            self.path_manager.handle_event(now, &down, &self.views);
        }
        let event = PathEvent::Established {
            initiator: self.role == Role::Initiator,
            local: &self.addresses,
            remote: self.lanes[0].subflow.remote,
        };
        self.path_manager.handle_event(now, &event, &self.views);
        self.carry_out_path_actions();
    }

    /// Are subflows managed: has that begun, and is there still use for them?
    pub(super) fn manages_paths(&self) -> bool {
        self.path_manager_started && self.wants_subflows()
    }

    pub(super) fn tell_path_manager(&mut self, now: Instant, event: &PathEvent<'_>) {
        if self.manages_paths() {
            self.path_manager.handle_event(now, event, &self.views);
            self.carry_out_path_actions();
        }
    }

    pub(super) fn path_manager_timeout(&self) -> Instant {
        if self.manages_paths() { self.path_manager_due } else { Instant::FAR_FUTURE }
    }

    /// Is there anything in view that would bring a subflow?
    pub(super) fn expects_subflows(&self) -> bool {
        let planned = self.has_openings() || self.path_manager_timeout() != Instant::FAR_FUTURE;
        planned || !self.addresses_down.is_empty()
    }

    /// Let the path manager act if its time has come.
    pub(crate) fn wake_path_manager(&mut self, now: Instant) {
        if self.path_manager_timeout() <= now {
            self.path_manager_rests_until = now + SHORTEST_REST;
            self.path_manager.handle_timeout(now, &self.views);
            self.carry_out_path_actions();
        }
    }

    /// The subflows that the endpoint is to open.
    pub(crate) fn take_openings(&mut self) -> VecDeque<Opening> {
        std::mem::take(&mut self.opens)
    }

    /// Are there subflows for the endpoint to open?
    pub(crate) fn has_openings(&self) -> bool {
        !self.opens.is_empty()
    }

    pub(crate) fn could_not_open(&mut self, now: Instant, opening: &Opening) {
        let (local_address_id, remote) = (opening.local.id, opening.remote);
        let retry = Retry::Later;
        let event = PathEvent::SubflowClosed { id: None, local_address_id, remote, retry };
        self.tell_path_manager(now, &event);
    }

    /// Can the subflow be opened: has it an address of this host, of the peer's family, and is
    /// there room for it?
    pub(crate) fn can_open(&self, opening: &Opening) -> bool {
        let family = opening.local.address.is_ipv4() == opening.remote.address.is_ipv4();
        // RFC 8684 §3.1: not where the peer has set the "C" flag.
        let welcome = self.closed_to_joins.1 != Some(opening.remote);
        family && welcome && self.addresses.contains(&opening.local) && self.may_open()
    }

    pub(super) fn may_open(&self) -> bool {
        self.may_open_beside(0)
    }

    /// The same if `uncounted` of the subflows did not exist.
    pub(super) fn may_open_beside(&self, uncounted: usize) -> bool {
        let live = self.lanes.iter().filter(|lane| !lane.reaped).count() - uncounted;
        self.wants_subflows() && live < self.config.max_subflows
    }

    /// Is further subflows' time not over?
    pub(super) fn wants_subflows(&self) -> bool {
        self.mode == Mode::Mptcp && self.status == Status::Open
    }

    /// The interface with `address` went down, or came back up.
    pub(crate) fn handle_address_change(&mut self, now: Instant, address: IpAddr, usable: bool) {
        let known = self.addresses.iter().find(|own| own.address == address);
        if let Some(local_address_id) = known.map(|own| own.id) {
            self.addresses_down.retain(|id| *id != local_address_id);
            if usable {
                self.removals.retain(|id| *id != local_address_id);
            } else {
                self.addresses_down.push(local_address_id);
            }
            self.tell_path_manager(now, &PathEvent::AddressChanged { local_address_id, usable });
            self.reap(now);
        }
    }

    fn carry_out_path_actions(&mut self) {
        for _ in 0..MOST_ACTIONS {
            let Some(action) = self.path_manager.poll_action() else { break };
            match action {
                PathAction::Open { local, remote, remote_address_id, backup } => {
                    if self.opens.len() < SubflowSet::CAPACITY {
                        let opening = Opening { local, remote, remote_address_id, backup };
                        self.opens.push_back(opening);
                    }
                }
                PathAction::Close { subflow, reset } => self.close_subflow(subflow, reset),
                PathAction::SetPriority { subflow, backup, signalled } => {
                    self.set_priority(subflow, backup, signalled);
                }
                PathAction::Remove { local_address_id } => {
                    self.removals.retain(|id| *id != local_address_id);
                    self.removals.push(local_address_id);
                    self.withdraw(local_address_id);
                }
                PathAction::Announce { local } => self.announce(local),
                PathAction::Probe { subflow, count, octets } => {
                    self.start_probes(subflow, count, octets);
                }
            }
        }
        let due = self.path_manager.poll_timeout();
        let due = due.unwrap_or(Instant::FAR_FUTURE);
        self.path_manager_due = due.max(self.path_manager_rests_until);
    }

    fn close_subflow(&mut self, id: SubflowId, reset: bool) {
        let Some(lane) = self.lane_mut(id) else { return };
        if reset {
            lane.subflow.reset(Some(because(ResetReason::UNACCEPTABLE_PERFORMANCE)));
        } else {
            lane.subflow.finish(false);
        }
        self.send.reassign(id.slot);
        self.refresh(id.slot);
    }

    fn set_priority(&mut self, id: SubflowId, backup: bool, signalled: bool) {
        let Some(lane) = self.lane_mut(id) else { return };
        if signalled {
            lane.subflow.signal_priority(backup);
        } else {
            lane.subflow.priority.standby = backup;
        }
        self.refresh(id.slot);
    }

    /// Tell the peer which addresses are gone, on every subflow that can carry it: the option is
    /// not acknowledged. RFC 8684 §3.4.2.
    pub(super) fn signal_removals(&mut self) {
        let Some(removed) = RemoveAddr::new(&self.removals) else { return };
        let mut told = false;
        for (lane, view) in self.lanes.iter_mut().zip(&self.views) {
            let usable = view.usability == Usability::Usable;
            if usable && !self.removals.contains(&view.local_address_id) {
                lane.subflow.signal_removal(removed);
                told = true;
            }
        }
        if told {
            self.removals.clear();
        }
    }

    /// The peer says that it has lost these addresses: the subflows from them are not to be
    /// scheduled on until they show that they live.
    pub(super) fn doubt_subflows(&mut self, now: Instant, told_on: u8, address_ids: &[u8]) {
        for slot in 0..self.lanes.len() as u8 {
            let lane = &mut self.lanes[usize::from(slot)];
            let lost = address_ids.contains(&lane.subflow.remote_address_id);
            if lost && slot != told_on && !lane.reaped {
                lane.subflow.doubt(now);
                self.refresh(slot);
                // Whoever lost the interface drops what came beyond a hole, too.
                self.reinject_unacknowledged(slot);
                self.send.reassign(slot);
            }
        }
    }

    /// The newest data under way, in order, so that copies that arrive first are of some use.
    fn start_probes(&mut self, subflow: SubflowId, count: u32, octets: u32) {
        let end = self.send.carried_to().min(self.send.end());
        let wanted = u64::from(count) * u64::from(octets);
        let next = end.saturating_sub(wanted).max(self.send.una());
        self.probes.retain(|burst| burst.subflow != subflow);
        self.probes.push(ProbeBurst { subflow, next, end, octets });
    }

    /// The next probe for which a subflow has room.
    pub(super) fn poll_probe(&mut self, now: Instant, level: &DataLevel) -> Option<Segment> {
        let una = self.send.una();
        let views = &self.views;
        self.probes.retain_mut(|burst| {
            burst.next = burst.next.max(una);
            let there = views.get(usize::from(burst.subflow.slot));
            burst.next < burst.end && there.is_some_and(|view| view.id == burst.subflow)
        });
        let can_send = |burst: &&mut ProbeBurst| views[usize::from(burst.subflow.slot)].can_send();
        let burst = self.probes.iter_mut().find(can_send)?;
        let (slot, start) = (burst.subflow.slot, burst.next);
        let mss = u64::from(views[usize::from(slot)].mss);
        let len = u64::from(burst.octets).min(mss).min(burst.end - start);
        burst.next += len;
        let payload = self.send.payload(start, len as u32);
        Some(self.send_again_on(now, level, slot, start, payload, Again::Probe))
    }
}
