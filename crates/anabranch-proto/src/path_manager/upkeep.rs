//! Upkeep of a set of subflows, shared by several path managers.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant, SocketAddress};

use super::{LocalAddress, PathAction, PathEvent, RemoteAddress, Retry};
use crate::view::{SubflowView, Usability};

/// The wanted subflows, by pairs of addresses. A subflow that ends is reopened after a pause, which
/// doubles with each consecutive failure, or at once when its interface comes up again. If the peer
/// has reset it for good, or this host's kernel reopens none, it is reopened only when its interface
/// comes up again.
#[derive(Clone, Debug, Default)]
pub(super) struct Upkeep {
    pairs: Vec<Pair>,
    /// Identifiers of addresses whose interfaces are down.
    down: Vec<u8>,
    actions: VecDeque<PathAction>,
}

#[derive(Clone, Debug)]
struct Pair {
    local: LocalAddress,
    remote: SocketAddress,
    remote_id: u8,
    backup: bool,
    /// Number of wanted subflows, and number of subflows that exist or are being opened.
    wanted: u32,
    existing: u32,
    address_usable: bool,
    failures: u32,
    /// When a subflow of this pair was last established.
    worked_at: Option<Instant>,
    /// The peer has reset a subflow of this pair for good, or this host's kernel would not open another
    /// one. RFC 8684 §3.6.
    refused: bool,
    retry_at: Option<Instant>,
}

impl Pair {
    /// A pair with one wanted subflow and no existing one.
    fn new(local: LocalAddress, remote: RemoteAddress) -> Self {
        Pair {
            local,
            remote: remote.end,
            remote_id: remote.id,
            backup: false,
            wanted: 1,
            existing: 0,
            address_usable: true,
            failures: 0,
            worked_at: None,
            refused: false,
            retry_at: None,
        }
    }
}

/// Pause before the first attempt to replace a subflow (this project).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between attempts (this project).
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Upkeep {
    /// Want `wanted` subflows between `local` and the address to which the connection was opened.
    /// If the connection was opened from `local`, one of them exists already. RFC 8684 §3.2:
    /// identifier 0.
    pub(super) fn want(
        &mut self,
        local: LocalAddress,
        remote: SocketAddress,
        wanted: u32,
        backup: bool,
    ) {
        let existing = u32::from(local.id == 0);
        let remote = RemoteAddress { id: 0, end: remote };
        self.want_pair(Pair { wanted, existing, backup, ..Pair::new(local, remote) });
    }

    /// Want a subflow between `local` and an address that the peer has announced with this
    /// identifier, unless a subflow from an earlier announcement remains.
    pub(super) fn want_announced(
        &mut self,
        local: LocalAddress,
        remote: RemoteAddress,
        subflows: &[SubflowView],
    ) {
        let left = subflows.iter().any(|view| {
            let between = (view.local_address_id, view.remote_address_id) == (local.id, remote.id);
            between && view.usability != Usability::Closed
        });
        self.want_pair(Pair { existing: u32::from(left), ..Pair::new(local, remote) });
    }

    fn want_pair(&mut self, new: Pair) {
        let known = |pair: &Pair| pair.local.id == new.local.id && pair.remote == new.remote;
        if self.pairs.iter().any(known) {
            return;
        }
        let address_usable = !self.down.contains(&new.local.id);
        self.pairs.reserve_exact(1); // most connections have few pairs
        self.pairs.push(Pair { address_usable, ..new });
        self.open_missing(self.pairs.len() - 1);
    }

    /// Update the pairs after an event of a subflow or an address.
    pub(super) fn handle_event(
        &mut self,
        now: Instant,
        event: &PathEvent<'_>,
        subflows: &[SubflowView],
    ) {
        match *event {
            PathEvent::Established { .. }
            | PathEvent::SubflowTimeout { .. }
            | PathEvent::AddressAdded { .. }
            | PathEvent::AddressAnnounced { .. } => {}
            PathEvent::SubflowEstablished(id) => {
                let Some(view) = subflows.iter().find(|view| view.id == id) else { return };
                for pair in self.pairs.iter_mut().filter(|pair| pair.is_of(view)) {
                    pair.worked_at = Some(now);
                }
            }
            PathEvent::SubflowClosed { id, local_address_id, remote, retry, reopens } => {
                let mut pairs = self.pairs.iter_mut();
                let pair = pairs.find(|p| p.local.id == local_address_id && p.remote == remote);
                if let Some(pair) = pair {
                    return pair.on_closed(now, retry, reopens);
                }
                // The identifier may now belong to another address, whose subflow had to wait.
                let view = subflows.iter().find(|view| Some(view.id) == id);
                let heir = |pair: &Pair| pair.remote_id != 0 && view.is_some_and(|v| pair.is_of(v));
                if let Some(index) = self.pairs.iter().position(heir) {
                    self.pairs[index].existing = self.pairs[index].existing.saturating_sub(1);
                    self.open_missing(index);
                }
            }
            PathEvent::AddressWithdrawn { remote_address_id } => {
                self.pairs.retain(|pair| pair.remote_id != remote_address_id);
            }
            PathEvent::AddressChanged { local_address_id, usable } => {
                self.on_address_changed(local_address_id, usable, subflows);
            }
        }
    }

    fn on_address_changed(&mut self, id: u8, usable: bool, subflows: &[SubflowView]) {
        self.down.retain(|other| *other != id);
        if !usable {
            self.down.push(id);
            let on_address = subflows.iter().filter(|view| view.local_address_id == id);
            self.actions
                .extend(on_address.map(|v| PathAction::Close { subflow: v.id, reset: true }));
            self.actions.push_back(PathAction::Remove { local_address_id: id });
        }
        for index in 0..self.pairs.len() {
            let pair = &mut self.pairs[index];
            if pair.local.id == id {
                pair.address_usable = usable;
                pair.failures = 0;
                pair.refused = false;
                pair.retry_at = None;
                self.open_missing(index);
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.pairs.len() {
            if self.pairs[index].retry_at.is_some_and(|at| at <= now) {
                self.pairs[index].retry_at = None;
                self.open_missing(index);
            }
        }
    }

    pub(super) fn is_down(&self, local_address_id: u8) -> bool {
        self.down.contains(&local_address_id)
    }

    pub(super) fn push(&mut self, action: PathAction) {
        self.actions.push_back(action);
    }

    pub(super) fn poll_action(&mut self) -> Option<PathAction> {
        self.actions.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pairs.iter().filter_map(|pair| pair.retry_at).min()
    }

    fn open_missing(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        while pair.address_usable && !pair.refused && pair.existing < pair.wanted {
            pair.existing += 1;
            self.actions.push_back(PathAction::Open {
                local: pair.local,
                remote: pair.remote,
                remote_address_id: pair.remote_id,
                backup: pair.backup,
            });
        }
    }
}

impl Pair {
    fn is_of(&self, view: &SubflowView) -> bool {
        let announced = self.remote_id == 0 || self.remote_id == view.remote_address_id;
        announced && self.local.id == view.local_address_id
    }

    fn on_closed(&mut self, now: Instant, retry: Retry, reopens: bool) {
        self.existing = self.existing.saturating_sub(1);
        // RFC 8684 §3.6
        self.refused |= retry == Retry::Never || !reopens;
        // A subflow that was open for long without carrying data has not failed.
        let lasted = self.worked_at.is_some_and(|at| now.saturating_since(at) >= LONGEST_PAUSE);
        if retry == Retry::Soon || lasted {
            self.failures = 0;
        }
        // RFC 8684 §3.4.1: the host does not retry an announced address that it could not reach.
        let worth_it = (self.remote_id == 0 || self.worked_at.is_some()) && !self.refused;
        if worth_it && self.address_usable && self.retry_at.is_none() {
            let pause = FIRST_PAUSE * (1 << self.failures.min(16));
            self.failures += 1;
            self.retry_at = Some(now + pause.min(LONGEST_PAUSE));
        }
    }
}

/// Returns `true` if both addresses belong to the same family.
pub(super) fn is_of_family(local: &LocalAddress, remote: SocketAddress) -> bool {
    local.address.is_ipv4() == remote.address.is_ipv4()
}

/// The addresses that belong to the same family as the peer's.
pub(super) fn of_family(
    local: &[LocalAddress],
    remote: SocketAddress,
) -> impl Iterator<Item = &LocalAddress> {
    local.iter().filter(move |own| is_of_family(own, remote))
}
