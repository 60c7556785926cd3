//! The path manager and the known addresses. The connection asks this part, and carries out the
//! actions that affect its subflows. RFC 8684 §3.4.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::mptcp::RemoveAddr;
use anabranch_wire::{Duration, Instant, SocketAddress};

use super::announcements::Announcements;
use super::probes::Probes;
use crate::path_manager::{LocalAddress, PathAction, PathEvent, PathManager, RemoteAddress};
use crate::platform::Platform;
use crate::view::{SubflowId, SubflowSet, SubflowView};

/// A subflow that the endpoint must open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubflowRequest {
    pub(crate) local: LocalAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) remote_address_id: u8,
    pub(crate) backup: bool,
}

/// An action on a subflow that the path manager requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Duty {
    Close { subflow: SubflowId, reset: bool },
    SetPriority { subflow: SubflowId, backup: bool, signalled: bool },
    Probe { subflow: SubflowId, count: u32, bytes: u32 },
}

/// The path manager and its pending requests.
pub(super) struct PathDriver {
    manager: Box<dyn PathManager>,
    /// Address to which the connection was opened, once further subflows are allowed.
    opened_to: Option<SocketAddress>,
    /// The deadline of the path manager, and the earliest time of the next one.
    due: Instant,
    rests_until: Instant,
    /// Subflows that the path manager wants to open.
    opens: VecDeque<SubflowRequest>,
    /// Identifiers of removed addresses that the peer must be told.
    removals: Vec<u8>,
    pub(super) announcements: Announcements,
    /// Copies with which the path manager probes paths.
    pub(super) probes: Probes,
    /// This host's addresses, with their identifiers.
    addresses: Vec<LocalAddress>,
    /// Identifiers of addresses whose interfaces are down.
    down: Vec<u8>,
    /// The path manager has closed the only subflow, and no other is established yet.
    is_moving: bool,
}

/// Minimum time between two timeouts of a path manager. Without it, a faulty one could make time
/// stand still.
const SHORTEST_REST: Duration = Duration::from_millis(1);
/// Maximum number of actions taken from a path manager at a time, for the same reason.
const MOST_ACTIONS: usize = 256;

impl PathDriver {
    /// A driver for a host with these `addresses`. The interfaces of those in `down` are down.
    pub(super) fn new(
        manager: Box<dyn PathManager>,
        addresses: Vec<LocalAddress>,
        down: &[IpAddr],
        platform: &Platform,
    ) -> Self {
        let is_down = |own: &&LocalAddress| down.contains(&own.address);
        PathDriver {
            manager,
            opened_to: None,
            due: Instant::FAR_FUTURE,
            rests_until: Instant::ZERO,
            opens: VecDeque::new(),
            removals: Vec::new(),
            announcements: Announcements::new(platform),
            probes: Probes::default(),
            down: addresses.iter().filter(is_down).map(|own| own.id).collect(),
            addresses,
            is_moving: false,
        }
    }

    /// From now on, the path manager may open subflows besides the one to `remote`.
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

    /// Pass an event to the path manager.
    pub(super) fn tell(&mut self, now: Instant, event: &PathEvent<'_>, views: &[SubflowView]) {
        self.manager.handle_event(now, event, views);
    }

    /// The deadline of the path manager.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        (self.due != Instant::FAR_FUTURE).then_some(self.due)
    }

    /// The deadline of the path manager has passed.
    pub(super) fn wake(&mut self, now: Instant, views: &[SubflowView]) {
        self.rests_until = now + SHORTEST_REST;
        self.manager.handle_timeout(now, views);
    }

    /// Poll the path manager for its actions on subflows. Its other requests are stored.
    pub(super) fn drain_duties(&mut self) -> Vec<Duty> {
        let mut duties = Vec::new();
        for _ in 0..MOST_ACTIONS {
            let Some(action) = self.manager.poll_action() else { break };
            match action {
                PathAction::Open { local, remote, remote_address_id, backup } => {
                    if self.opens.len() < SubflowSet::CAPACITY {
                        let request = SubflowRequest { local, remote, remote_address_id, backup };
                        self.opens.push_back(request);
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

    /// The path manager closes the only subflow, to open another.
    pub(super) fn begin_move(&mut self) {
        self.is_moving = true;
    }

    /// A subflow is established.
    pub(super) fn end_move(&mut self) {
        self.is_moving = false;
    }

    /// Returns `true` if the path manager has closed the only subflow, and no other is established.
    pub(super) fn is_moving(&self) -> bool {
        self.is_moving
    }

    /// Returns `true` if the path manager wants the endpoint to open subflows.
    #[inline]
    pub(super) fn has_requests(&self) -> bool {
        !self.opens.is_empty()
    }

    /// The subflows that the endpoint must open.
    pub(super) fn take_requests(&mut self) -> VecDeque<SubflowRequest> {
        std::mem::take(&mut self.opens)
    }

    /// Returns `true` if the address belongs to this host, with the same identifier.
    pub(super) fn has(&self, local: LocalAddress) -> bool {
        self.addresses.contains(&local)
    }

    /// Returns `true` if the peer may be at `address`. The host's own addresses are excluded: a
    /// peer could otherwise make the host connect to its own local services.
    pub(super) fn is_elsewhere(&self, address: IpAddr) -> bool {
        let loopback = |address: IpAddr| address.to_canonical().is_loopback();
        let own = self.addresses.iter().any(|own| own.address == address);
        let reachable =
            !loopback(address) || self.addresses.iter().all(|own| loopback(own.address));
        is_unicast(address) && reachable && !own
    }

    /// The identifier of this host's address; 0 for an unknown address.
    pub(super) fn id_of(&self, address: IpAddr) -> u8 {
        self.addresses.iter().find(|own| own.address == address).map_or(0, |own| own.id)
    }

    /// Returns `true` if the interface of the address is down.
    pub(super) fn is_down(&self, address_id: u8) -> bool {
        self.down.contains(&address_id)
    }

    /// Returns `true` if an interface is down that may come up again.
    pub(super) fn awaits_an_interface(&self) -> bool {
        !self.down.is_empty()
    }

    /// The peer's addresses, beginning with the one to which the connection was opened.
    pub(super) fn remote_addresses(&self) -> Vec<RemoteAddress> {
        let first = self.opened_to.map(|end| RemoteAddress { id: 0, end });
        first.into_iter().chain(self.announcements.known().iter().copied()).collect()
    }

    /// Add an address of this host, with an identifier that no earlier address had. Returns `None`
    /// if all identifiers are used, or if the host already has the address.
    pub(super) fn add(&mut self, address: IpAddr) -> Option<LocalAddress> {
        if self.addresses.iter().any(|own| own.address == address) {
            return None;
        }
        let last = self.addresses.iter().map(|own| own.id).max().unwrap_or(0);
        let local = LocalAddress { id: last.checked_add(1)?, address };
        self.addresses.push(local);
        Some(local)
    }

    /// The interface with `address` went down or came up. Returns the event for the path manager,
    /// if the connection has the address.
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

    /// Returns `true` if the peer must be told about removed addresses.
    #[inline]
    pub(super) fn has_removals(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Identifiers of removed addresses that the peer must be told.
    pub(super) fn removals(&self) -> Option<RemoveAddr> {
        RemoveAddr::new(&self.removals)
    }

    /// Returns `true` if no probe, no announcement and no removal is to be sent now.
    #[inline]
    pub(super) fn has_nothing_to_tell(&self, now: Instant) -> bool {
        self.probes.is_empty() && self.removals.is_empty() && !self.announcements.are_due(now)
    }

    /// The peer has been told about the removed addresses.
    pub(super) fn removals_are_told(&mut self) {
        self.removals.clear();
    }

    /// The connection is plain TCP: no further subflows, announcements or removals.
    pub(super) fn become_plain(&mut self) {
        self.opens.clear();
        self.removals.clear();
        self.probes.clear();
    }

    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.opens.shrink_to_fit();
    }
}

fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || address.is_multicast() || address.is_unspecified())
}
