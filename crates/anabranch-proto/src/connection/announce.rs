//! Telling the peer this host's addresses, and hearing of its own. RFC 8684 §3.4.1.

use std::net::IpAddr;

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Instant, SocketAddress};

use super::Connection;
use crate::keys::address_hmac;
use crate::path_manager::{LocalAddress, PathEvent, RemoteAddress};
use crate::view::Usability;

/// Addresses that are being told, and those heard of.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    /// This host's, until the peer has echoed them.
    own: Vec<Announcement>,
    /// The peer's.
    heard: Vec<RemoteAddress>,
    /// What is to be echoed, the oldest first.
    echoes: Vec<Echo>,
}

/// An address that the peer is to be told again.
#[derive(Clone, Copy, Debug)]
struct Echo {
    option: AddAddr,
    /// The subflow that the address came on.
    slot: u8,
}

#[derive(Debug)]
struct Announcement {
    local: LocalAddress,
    due: Instant,
    told: u32,
}

/// An address that is not echoed is told again after this pause, which doubles (ours; RFC 8684
/// §3.4.1 leaves it open).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How often an address is told at most (ours).
const MOST_TOLD: u32 = 4;
/// How many of the peer's addresses are remembered at most (ours): more are ignored.
const MOST_HEARD: usize = 8;

impl Announcements {
    /// When an address is to be told next; [`Instant::FAR_FUTURE`] if none is.
    pub(super) fn next(&self) -> Instant {
        self.own.iter().map(|each| each.due).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn are_due(&self, now: Instant) -> bool {
        !self.echoes.is_empty() || self.next() <= now
    }

    /// Tell the peer an address of this host.
    pub(super) fn announce(&mut self, local: LocalAddress) {
        self.withdraw(local.id);
        self.own.push(Announcement { local, due: Instant::ZERO, told: 0 });
    }

    /// Stop telling an address that is gone. RFC 8684 §3.4.2.
    pub(super) fn withdraw(&mut self, local_address_id: u8) {
        self.own.retain(|each| each.local.id != local_address_id);
    }

    /// The peer has echoed an address of this host.
    fn on_echo(&mut self, told: LocalAddress) {
        self.own.retain(|each| each.local != told);
    }

    /// The address of this host that is due, if one is.
    fn due(&mut self, now: Instant) -> Option<&mut Announcement> {
        self.own.retain(|each| each.told < MOST_TOLD);
        self.own.iter_mut().find(|each| each.due <= now)
    }

    /// May the peer tell this address of its own? Not if its identifier stands for another already,
    /// or if there are many.
    fn admits(&self, told: RemoteAddress) -> bool {
        match self.heard.iter().find(|heard| heard.id == told.id) {
            Some(known) => known.end == told.end,
            None => told.id != 0 && self.heard.len() < MOST_HEARD,
        }
    }

    /// The peer has told an address of its own: echo it. True if the address is new.
    fn hear(&mut self, told: RemoteAddress, echo: Echo) -> bool {
        if !self.echoes.iter().any(|waiting| waiting.option == echo.option) {
            self.echoes.push(echo);
        }
        let is_new = self.heard.iter().all(|heard| heard.id != told.id);
        if is_new {
            self.heard.push(told);
        }
        is_new
    }

    /// The peer's addresses, beside the one that the connection was opened to.
    pub(super) fn heard(&self) -> &[RemoteAddress] {
        &self.heard
    }

    /// The peer takes an address back. True if it was known.
    fn forget(&mut self, id: u8) -> bool {
        let known = self.heard.iter().position(|heard| heard.id == id);
        known.map(|index| self.heard.remove(index)).is_some()
    }
}

impl Connection {
    /// Hand what is due to the subflows, each of which sends one at a time.
    pub(super) fn signal_addresses(&mut self, now: Instant) {
        if !self.paths.announcements.are_due(now) {
            return;
        }
        if !self.manages_paths() {
            self.paths.announcements = Announcements::default();
            return;
        }
        if let Some(Echo { slot, option }) = self.paths.announcements.echoes.first().copied() {
            // RFC 8684 §3.4.1: the echo goes back over the subflow that the address came on.
            let subflow = &mut self.lanes[usize::from(slot)].subflow;
            if !subflow.is_established() || subflow.signal_address(option) {
                self.paths.announcements.echoes.remove(0);
            }
            return;
        }
        let due = self.paths.announcements.due(now);
        let (Some(announcement), Some(keys)) = (due, self.session.keys()) else { return };
        let usable = self.lanes.views().iter().position(|view| view.usability == Usability::Usable);
        if usable.is_some_and(|slot| self.lanes[slot].subflow.has_signals_to_send()) {
            // They go first, at once.
            return;
        }
        let LocalAddress { id, address } = announcement.local;
        let hmac = address_hmac(keys.local, keys.remote, id, address, 0);
        let option = AddAddr { address_id: id, address, port: None, truncated_hmac: Some(hmac) };
        announcement.due = now + FIRST_PAUSE * (1 << announcement.told);
        if usable.is_some_and(|slot| self.lanes[slot].subflow.signal_address(option)) {
            announcement.told += 1;
        }
    }

    /// The peer tells an address of its own, or echoes one of this host's.
    pub(super) fn take_address(&mut self, now: Instant, slot: u8, option: &AddAddr) {
        let AddAddr { address_id, address, port, truncated_hmac } = *option;
        let Some(hmac) = truncated_hmac else {
            self.counters.echo_add += 1;
            let told = LocalAddress { id: address_id, address };
            return self.paths.announcements.on_echo(told);
        };
        self.counters.add_addr += 1;
        let Some(keys) = self.session.keys() else { return };
        let expected =
            address_hmac(keys.remote, keys.local, address_id, address, port.unwrap_or(0));
        // RFC 8684 §3.4.1: without a port it is that of the subflow on which the address is told.
        let own_port = self.lanes[usize::from(slot)].subflow.remote.port;
        let remote = SocketAddress::new(address, port.unwrap_or(own_port));
        let told = RemoteAddress { id: address_id, end: remote };
        // RFC 8684 §3.4.1: with a wrong HMAC it is ignored. So are addresses that nobody can be
        // connected to.
        let admitted = self.paths.announcements.admits(told) && self.is_elsewhere(address);
        if hmac != expected || !admitted {
            self.counters.add_addr_drop += 1;
            return;
        }
        // Who knows both keys has completed the handshake. RFC 8684 §3.1.
        let lane = &mut self.lanes[usize::from(slot)];
        (lane.subflow.confirmed, lane.heard) = (true, true);
        let echo = Echo { slot, option: AddAddr { truncated_hmac: None, ..*option } };
        if self.paths.announcements.hear(told, echo) {
            self.start_path_manager(now);
            let event = PathEvent::AddressAnnounced { remote, remote_address_id: address_id };
            self.tell_path_manager(now, &event);
        }
    }

    /// Can the peer be at `address`? Not if this host is: a peer could have it connect to services
    /// that are meant for itself alone.
    fn is_elsewhere(&self, address: IpAddr) -> bool {
        let loopback = |address: IpAddr| address.to_canonical().is_loopback();
        let own = self.paths.addresses().iter().any(|own| own.address == address);
        let reachable =
            !loopback(address) || self.paths.addresses().iter().all(|own| loopback(own.address));
        is_unicast(address) && reachable && !own
    }

    /// The peer takes addresses back. RFC 8684 §3.4.2.
    pub(super) fn forget_addresses(&mut self, now: Instant, address_ids: &[u8]) {
        for &remote_address_id in address_ids {
            if self.paths.announcements.forget(remote_address_id) {
                self.tell_path_manager(now, &PathEvent::AddressWithdrawn { remote_address_id });
            }
        }
    }
}

fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || address.is_multicast() || address.is_unspecified())
}
