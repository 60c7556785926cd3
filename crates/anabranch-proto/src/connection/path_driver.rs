//! What the path manager wants, and what is known of addresses: asked by the connection, which
//! carries out what concerns its subflows. RFC 8684 §3.4.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::mptcp::RemoveAddr;
use anabranch_wire::{Duration, Instant, SocketAddress};

use super::announce::Announcements;
use super::probes::Probes;
use crate::path_manager::{LocalAddress, PathAction, PathEvent, PathManager, RemoteAddress};
use crate::view::{SubflowId, SubflowSet, SubflowView};

/// A subflow to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) local: LocalAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) remote_address_id: u8,
    pub(crate) backup: bool,
}

/// What the path manager wants done to a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Duty {
    Close { subflow: SubflowId, reset: bool },
    SetPriority { subflow: SubflowId, backup: bool, signalled: bool },
    Probe { subflow: SubflowId, count: u32, bytes: u32 },
}

/// The path manager, and what it waits for.
pub(super) struct PathDriver {
    manager: Box<dyn PathManager>,
    /// Where the connection was opened to, once further subflows may be opened.
    opened_to: Option<SocketAddress>,
    /// When the path manager wants to be woken, and when it may be again at the earliest.
    due: Instant,
    rests_until: Instant,
    /// Subflows that it wants opened.
    opens: VecDeque<Opening>,
    /// Addresses of which the peer is to be told that they are gone.
    removals: Vec<u8>,
    pub(super) announcements: Announcements,
    /// Copies that the path manager has asked for, to measure paths.
    pub(super) probes: Probes,
    /// This host's addresses, with their identifiers.
    addresses: Vec<LocalAddress>,
    /// Identifiers of those whose interfaces are down.
    down: Vec<u8>,
}

/// Between two timeouts of a path manager: without it a bad one could make time stand still.
const SHORTEST_REST: Duration = Duration::from_millis(1);
/// Actions that are taken from a path manager at a time, for the same reason.
const MOST_ACTIONS: usize = 256;

impl PathDriver {
    /// For a host with these `addresses`; the interfaces of those in `down` are down.
    pub(super) fn new(
        manager: Box<dyn PathManager>,
        addresses: Vec<LocalAddress>,
        down: &[IpAddr],
    ) -> Self {
        let is_down = |own: &&LocalAddress| down.contains(&own.address);
        PathDriver {
            manager,
            opened_to: None,
            due: Instant::FAR_FUTURE,
            rests_until: Instant::ZERO,
            opens: VecDeque::new(),
            removals: Vec::new(),
            announcements: Announcements::default(),
            probes: Probes::default(),
            down: addresses.iter().filter(is_down).map(|own| own.id).collect(),
            addresses,
        }
    }

    /// Further subflows may be opened from now on, beside the one to `remote`.
    pub(super) fn start(
        &mut self,
        now: Instant,
        initiator: bool,
        remote: SocketAddress,
        views: &[SubflowView],
    ) {
        self.opened_to = Some(remote);
        for id in &self.down {
            let down = PathEvent::AddressChanged { local_address_id: *id, usable: false };
            self.manager.handle_event(now, &down, views);
        }
        let event = PathEvent::Established { initiator, local: &self.addresses, remote };
        self.manager.handle_event(now, &event, views);
    }

    #[inline]
    pub(super) fn is_started(&self) -> bool {
        self.opened_to.is_some()
    }

    /// Tell the path manager.
    pub(super) fn tell(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.manager.handle_event(now, event, views);
    }

    /// When the path manager wants to be woken.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        (self.due != Instant::FAR_FUTURE).then_some(self.due)
    }

    /// The path manager's time has come.
    pub(super) fn wake(&mut self, now: Instant, views: &[SubflowView]) {
        self.rests_until = now + SHORTEST_REST;
        self.manager.handle_timeout(now, views);
    }

    /// What the path manager wants done to subflows; what else it wants is noted.
    pub(super) fn take_duties(&mut self) -> Vec<Duty> {
        let mut duties = Vec::new();
        for _ in 0..MOST_ACTIONS {
            let Some(action) = self.manager.poll_action() else { break };
            match action {
                PathAction::Open { local, remote, remote_address_id, backup } => {
                    if self.opens.len() < SubflowSet::CAPACITY {
                        let opening = Opening { local, remote, remote_address_id, backup };
                        self.opens.push_back(opening);
                    }
                }
                PathAction::Close { subflow, reset } => duties.push(Duty::Close { subflow, reset }),
                PathAction::SetPriority { subflow, backup, signalled } => {
                    duties.push(Duty::SetPriority { subflow, backup, signalled });
                }
                PathAction::Remove { local_address_id } => {
                    self.removals.retain(|id| *id != local_address_id);
                    self.removals.push(local_address_id);
                    self.announcements.withdraw(local_address_id);
                }
                PathAction::Announce { local } if self.has(local) => {
                    self.announcements.announce(local);
                }
                PathAction::Announce { local } => self.announcements.withdraw(local.id),
                PathAction::Probe { subflow, count, bytes } => {
                    duties.push(Duty::Probe { subflow, count, bytes });
                }
            }
        }
        let due = self.manager.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        self.due = due.max(self.rests_until);
        duties
    }

    /// Are there subflows for the endpoint to open?
    #[inline]
    pub(super) fn has_openings(&self) -> bool {
        !self.opens.is_empty()
    }

    /// The subflows that the endpoint is to open.
    pub(super) fn take_openings(&mut self) -> VecDeque<Opening> {
        std::mem::take(&mut self.opens)
    }

    /// Is it one of this host's addresses, with its identifier?
    pub(super) fn has(&self, local: LocalAddress) -> bool {
        self.addresses.contains(&local)
    }

    pub(super) fn addresses(&self) -> &[LocalAddress] {
        &self.addresses
    }

    /// The identifier of this host's address; 0 for one that it does not know.
    pub(super) fn id_of(&self, address: IpAddr) -> u8 {
        self.addresses.iter().find(|own| own.address == address).map_or(0, |own| own.id)
    }

    /// May an interface that is down come up again?
    pub(super) fn awaits_an_interface(&self) -> bool {
        !self.down.is_empty()
    }

    /// The peer's addresses, the one that the connection was opened to first.
    pub(super) fn remote_addresses(&self) -> Vec<RemoteAddress> {
        let first = self.opened_to.map(|end| RemoteAddress { id: 0, end });
        first.into_iter().chain(self.announcements.heard().iter().copied()).collect()
    }

    /// This host has a further address, with an identifier that no other has had; `None` if there is
    /// none left, or if it had the address before.
    pub(super) fn add(&mut self, address: IpAddr) -> Option<LocalAddress> {
        if self.addresses.iter().any(|own| own.address == address) {
            return None;
        }
        let last = self.addresses.iter().map(|own| own.id).max().unwrap_or(0);
        let local = LocalAddress { id: last.checked_add(1)?, address };
        self.addresses.push(local);
        Some(local)
    }

    /// The interface with `address` went down, or came back up; what the path manager is to be told
    /// of that, if the connection has the address.
    pub(super) fn change(&mut self, address: IpAddr, usable: bool) -> Option<PathEvent<'static>> {
        let own = self.addresses.iter().find(|own| own.address == address)?;
        let local_address_id = own.id;
        self.down.retain(|id| *id != local_address_id);
        if usable {
            self.removals.retain(|id| *id != local_address_id);
        } else {
            self.down.push(local_address_id);
        }
        Some(PathEvent::AddressChanged { local_address_id, usable })
    }

    /// Is the peer to be told of addresses that they are gone?
    #[inline]
    pub(super) fn has_removals(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Identifiers of addresses of which the peer is to be told that they are gone.
    pub(super) fn removals(&self) -> Option<RemoveAddr> {
        RemoveAddr::new(&self.removals)
    }

    /// The peer has been told.
    pub(super) fn removals_are_told(&mut self) {
        self.removals.clear();
    }

    /// It is plain TCP: no other subflow comes, and nothing is told of addresses.
    pub(super) fn become_plain(&mut self) {
        self.opens.clear();
        self.removals.clear();
        self.probes.clear();
    }

    /// Give back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.opens.shrink_to_fit();
    }
}
