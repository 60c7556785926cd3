//! Telling the peer this host's addresses, and hearing of its own. RFC 8684 §3.4.1.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Endpoint, Instant};

use super::Connection;
use crate::keys::address_hmac;
use crate::path_manager::{LocalAddress, PathEvent};
use crate::view::Usability;

/// Addresses that are being told, and those heard of.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    /// This host's, until the peer has echoed them.
    own: Vec<Announcement>,
    /// The peer's.
    heard: Vec<(u8, Endpoint)>,
    /// What is to be echoed, and on which slot.
    echoes: VecDeque<(u8, AddAddr)>,
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
        if let Some((slot, echo)) = self.paths.announcements.echoes.front().copied() {
            // RFC 8684 §3.4.1: the echo goes back over the subflow that the address came on.
            let subflow = &mut self.lanes[usize::from(slot)].subflow;
            if !subflow.is_established() || subflow.signal_address(echo) {
                self.paths.announcements.echoes.pop_front();
            }
            return;
        }
        let own = &mut self.paths.announcements.own;
        own.retain(|each| each.told < MOST_TOLD);
        let (Some(announcement), Some(keys)) =
            (own.iter_mut().find(|each| each.due <= now), self.session.keys())
        else {
            return;
        };
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
        let remote = Endpoint::new(address, port.unwrap_or(own_port));
        // RFC 8684 §3.4.1: with a wrong HMAC it is ignored. So are an identifier that stands for
        // another address already, and addresses that nobody can be connected to.
        let known = self.paths.announcements.heard.iter().find(|(id, _)| *id == address_id);
        let contradicts = address_id == 0 || known.is_some_and(|(_, other)| *other != remote);
        let full = known.is_none() && self.paths.announcements.heard.len() >= MOST_HEARD;
        if hmac != expected || contradicts || full || !self.is_elsewhere(address) {
            self.counters.add_addr_drop += 1;
            return;
        }
        // Who knows both keys has completed the handshake. RFC 8684 §3.1.
        let lane = &mut self.lanes[usize::from(slot)];
        (lane.subflow.confirmed, lane.heard) = (true, true);
        let is_new = known.is_none();
        let echo = AddAddr { truncated_hmac: None, ..*option };
        let echoes = &mut self.paths.announcements.echoes;
        if !echoes.iter().any(|(_, waiting)| *waiting == echo) {
            echoes.push_back((slot, echo));
        }
        if is_new {
            self.paths.announcements.heard.push((address_id, remote));
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
            let heard = &mut self.paths.announcements.heard;
            if let Some(index) = heard.iter().position(|(id, _)| *id == remote_address_id) {
                heard.remove(index);
                self.tell_path_manager(now, &PathEvent::AddressWithdrawn { remote_address_id });
            }
        }
    }
}

fn is_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || address.is_multicast() || address.is_unspecified())
}
