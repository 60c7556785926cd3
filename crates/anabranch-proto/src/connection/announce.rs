//! Announcing this host's addresses to the peer, and processing the peer's announcements. RFC 8684
//! §3.4.1.

use std::net::IpAddr;

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Instant, SocketAddress};

use super::Connection;
use crate::keys::address_hmac;
use crate::path_manager::{LocalAddress, PathEvent, RemoteAddress};
use crate::view::{Slot, Usability};

/// Addresses that this host announces, and addresses that the peer has announced.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    /// This host's addresses, until the peer has echoed them.
    own: Vec<Announcement>,
    /// The peer's addresses.
    known: Vec<RemoteAddress>,
    /// Echoes to send, oldest first.
    echoes: Vec<Echo>,
}

/// An echo of an address that the peer has announced.
#[derive(Clone, Copy, Debug)]
struct Echo {
    option: AddAddr,
    /// The subflow on which the announcement arrived.
    slot: Slot,
}

#[derive(Debug)]
struct Announcement {
    local: LocalAddress,
    due: Instant,
    told: u32,
}

/// Pause before the host repeats an announcement that the peer has not echoed; it doubles each time
/// (this project; RFC 8684 §3.4.1 leaves it open).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of announcements of the same address (this project).
const MOST_TOLD: u32 = 4;
/// Maximum number of the peer's addresses that the host remembers (this project). It ignores
/// further ones.
const MAX_KNOWN: usize = 8;

impl Announcements {
    /// Time of the next announcement; [`Instant::FAR_FUTURE`] if there is none.
    pub(super) fn next(&self) -> Instant {
        self.own.iter().map(|each| each.due).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn are_due(&self, now: Instant) -> bool {
        !self.echoes.is_empty() || self.next() <= now
    }

    /// Announce an address of this host to the peer.
    pub(super) fn announce(&mut self, local: LocalAddress) {
        self.withdraw(local.id);
        self.own.push(Announcement { local, due: Instant::ZERO, told: 0 });
    }

    /// Stop announcing an address that is gone. RFC 8684 §3.4.2.
    pub(super) fn withdraw(&mut self, local_address_id: u8) {
        self.own.retain(|each| each.local.id != local_address_id);
    }

    /// The peer has echoed an address of this host.
    fn on_echo(&mut self, told: LocalAddress) {
        self.own.retain(|each| each.local != told);
    }

    /// The address of this host whose announcement is due, if there is one.
    fn due(&mut self, now: Instant) -> Option<&mut Announcement> {
        self.own.retain(|each| each.told < MOST_TOLD);
        self.own.iter_mut().find(|each| each.due <= now)
    }

    /// Returns `true` if the peer may announce this address. It may not if its identifier already
    /// belongs to another address, or if it has announced too many.
    fn admits(&self, told: RemoteAddress) -> bool {
        match self.known.iter().find(|known| known.id == told.id) {
            Some(known) => known.end == told.end,
            None => told.id != 0 && self.known.len() < MAX_KNOWN,
        }
    }

    /// The peer has announced an address, which the host must echo. Returns `true` if the address is
    /// new, and the host has not yet accepted `most` addresses.
    fn hear(&mut self, told: RemoteAddress, echo: Echo, most: Option<usize>) -> bool {
        if !self.echoes.iter().any(|waiting| waiting.option == echo.option) {
            self.echoes.push(echo);
        }
        let is_new = self.known.iter().all(|known| known.id != told.id);
        let is_accepted = is_new && most.is_none_or(|most| self.known.len() < most);
        if is_accepted {
            self.known.push(told);
        }
        is_accepted
    }

    /// The peer's addresses, other than the one to which the connection was opened.
    pub(super) fn known(&self) -> &[RemoteAddress] {
        &self.known
    }

    /// The peer has withdrawn an address. Returns true if it was known.
    fn forget(&mut self, id: u8) -> bool {
        let known = self.known.iter().position(|known| known.id == id);
        known.map(|index| self.known.remove(index)).is_some()
    }
}

impl Connection {
    /// Hand due announcements to the subflows, each of which sends one at a time.
    pub(super) fn signal_addresses(&mut self, now: Instant) {
        if !self.paths.announcements.are_due(now) {
            return;
        }
        if !self.manages_paths() {
            self.paths.announcements = Announcements::default();
            return;
        }
        if let Some(Echo { slot, option }) = self.paths.announcements.echoes.first().copied() {
            // RFC 8684 §3.4.1: the echo uses the subflow on which the announcement arrived.
            let subflow = &mut self.subflows[slot].subflow;
            if !subflow.is_established() || subflow.signals_mut().address(option) {
                self.paths.announcements.echoes.remove(0);
            }
            return;
        }
        let due = self.paths.announcements.due(now);
        let (Some(announcement), Some(keys)) = (due, self.session.keys()) else { return };
        let usable =
            self.subflows.views().iter().position(|view| view.usability == Usability::Usable);
        if usable.is_some_and(|slot| self.subflows[slot].subflow.has_signals_to_send()) {
            // The subflow sends its waiting signals first, at once.
            return;
        }
        let LocalAddress { id, address } = announcement.local;
        let hmac = address_hmac(keys.local, keys.remote, id, address, 0);
        let option = AddAddr { address_id: id, address, port: None, truncated_hmac: Some(hmac) };
        announcement.due = now + FIRST_PAUSE * (1 << announcement.told);
        if usable.is_some_and(|slot| self.subflows[slot].subflow.signals_mut().address(option)) {
            announcement.told += 1;
        }
    }

    /// The peer announces an address, or echoes one of this host's.
    pub(super) fn handle_add_addr(&mut self, now: Instant, slot: Slot, option: &AddAddr) {
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
        // RFC 8684 §3.4.1: without a port, the port is that of the subflow that carries the
        // announcement.
        let own_port = self.subflows[slot].subflow.identity().remote.port;
        let remote = SocketAddress::new(address, port.unwrap_or(own_port));
        let told = RemoteAddress { id: address_id, end: remote };
        // RFC 8684 §3.4.1: ignore an address with a wrong HMAC. Also ignore addresses to which
        // nobody can connect.
        let admitted = self.paths.announcements.admits(told) && self.is_elsewhere(address);
        if hmac != expected || !admitted {
            self.counters.add_addr_drop += 1;
            return;
        }
        // A peer that knows both keys has completed the handshake. RFC 8684 §3.1.
        let ctx = &mut self.subflows[slot];
        ctx.subflow.confirm();
        ctx.dss_seen = true;
        let echo = Echo { slot, option: AddAddr { truncated_hmac: None, ..*option } };
        if self.paths.announcements.hear(told, echo, self.config.add_addr_accepted.map(usize::from))
        {
            self.start_path_manager(now);
            let event = PathEvent::AddressAnnounced { remote, remote_address_id: address_id };
            self.tell_path_manager(now, &event);
        }
    }

    /// Returns `true` if the peer may be at `address`. The host's own addresses are excluded: a
    /// peer could otherwise make the host connect to its own local services.
    fn is_elsewhere(&self, address: IpAddr) -> bool {
        let loopback = |address: IpAddr| address.to_canonical().is_loopback();
        let own = self.paths.addresses().iter().any(|own| own.address == address);
        let reachable =
            !loopback(address) || self.paths.addresses().iter().all(|own| loopback(own.address));
        is_unicast(address) && reachable && !own
    }

    /// The peer withdraws addresses. RFC 8684 §3.4.2.
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
