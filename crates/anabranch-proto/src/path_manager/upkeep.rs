//! Keeping a set of subflows alive: what several path managers have in common.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Endpoint, Instant};

use super::{LocalAddress, PathAction, PathEvent};
use crate::view::SubflowView;

/// Subflows that are wanted, by pairs of addresses. A subflow that ends is opened again, after a
/// pause that doubles with each failure in a row; at once when its interface comes back up.
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
    remote: Endpoint,
    remote_id: u8,
    backup: bool,
    /// How many subflows are wanted, and how many exist or are being opened.
    wanted: u32,
    existing: u32,
    address_usable: bool,
    failures: u32,
    retry_at: Option<Instant>,
}

/// Pause before the first attempt to replace a subflow (ours).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between attempts (ours).
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Upkeep {
    /// Have `wanted` subflows between `local` and the address that the connection was opened to,
    /// of which it has one if `local` is the address that it was opened from. RFC 8684 §3.2:
    /// identifier 0.
    pub(super) fn want(
        &mut self,
        local: LocalAddress,
        remote: Endpoint,
        wanted: u32,
        backup: bool,
    ) {
        self.want_pair(local, (0, remote), wanted, backup);
    }

    /// Have a subflow between `local` and an address that the peer has announced, and its
    /// identifier.
    pub(super) fn want_announced(&mut self, local: LocalAddress, remote: (u8, Endpoint)) {
        self.want_pair(local, remote, 1, false);
    }

    fn want_pair(
        &mut self,
        local: LocalAddress,
        (remote_id, remote): (u8, Endpoint),
        wanted: u32,
        backup: bool,
    ) {
        let existing = u32::from(local.id == 0 && remote_id == 0);
        let pair = Pair {
            local,
            remote,
            remote_id,
            backup,
            wanted,
            existing,
            address_usable: !self.down.contains(&local.id),
            failures: 0,
            retry_at: None,
        };
        self.pairs.push(pair);
        self.open_missing(self.pairs.len() - 1);
    }

    /// Take note of what happened to a subflow or an address.
    pub(super) fn handle_event(
        &mut self,
        now: Instant,
        event: &PathEvent<'_>,
        subflows: &[SubflowView],
    ) {
        match *event {
            PathEvent::Established { .. }
            | PathEvent::SubflowTimeout { .. }
            | PathEvent::AddressAnnounced { .. } => {}
            PathEvent::SubflowEstablished(id) => {
                let Some(view) = subflows.iter().find(|view| view.id == id) else { return };
                for pair in &mut self.pairs {
                    if pair.local.id == view.local_address_id {
                        pair.failures = 0;
                    }
                }
            }
            PathEvent::SubflowClosed { local_address_id, remote, .. } => {
                let mut pairs = self.pairs.iter_mut();
                let pair = pairs.find(|p| p.local.id == local_address_id && p.remote == remote);
                if let Some(pair) = pair {
                    pair.on_closed(now);
                }
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
        while pair.address_usable && pair.existing < pair.wanted {
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
    fn on_closed(&mut self, now: Instant) {
        self.existing = self.existing.saturating_sub(1);
        if self.address_usable && self.retry_at.is_none() {
            let pause = FIRST_PAUSE * (1 << self.failures.min(16));
            self.failures += 1;
            self.retry_at = Some(now + pause.min(LONGEST_PAUSE));
        }
    }
}

/// The addresses of the same family as the peer's.
pub(super) fn of_family(
    local: &[LocalAddress],
    remote: Endpoint,
) -> impl Iterator<Item = &LocalAddress> {
    local.iter().filter(move |own| own.address.is_ipv4() == remote.address.is_ipv4())
}
