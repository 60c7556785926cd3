//! Announcing this host's addresses to the peer, and processing the peer's announcements. RFC 8684
//! §3.4.1.

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Instant, SocketAddress};

use super::Connection;
use super::announcements::Echo;
use crate::keys::address_hmac;
use crate::path_manager::{LocalAddress, PathEvent, RemoteAddress};
use crate::view::Slot;

impl Connection {
    /// Hand due announcements to the subflows, each of which sends one at a time.
    pub(super) fn signal_addresses(&mut self, now: Instant) {
        if !self.paths.announcements.are_due(now) {
            return;
        }
        if !self.manages_paths() {
            self.paths.announcements.clear();
            return;
        }
        if let Some(Echo { slot, option }) = self.paths.announcements.next_echo() {
            // RFC 8684 §3.4.1: the echo uses the subflow on which the announcement arrived.
            let subflow = &mut self.subflows[slot].subflow;
            if !subflow.is_established() || subflow.signals_mut().address(option) {
                self.paths.announcements.on_echo_sent();
            }
            return;
        }
        let due = self.paths.announcements.due(now);
        let (Some(local), Some(keys)) = (due, self.session.keys()) else { return };
        let usable = self.subflows.usable().slots().next();
        if usable.is_some_and(|slot| self.subflows[slot].subflow.has_signals_to_send()) {
            // The subflow sends its waiting signals first, at once.
            return;
        }
        let LocalAddress { id, address } = local;
        let hmac = address_hmac(keys.local, keys.remote, id, address, 0);
        let option = AddAddr { address_id: id, address, port: None, truncated_hmac: Some(hmac) };
        let took =
            usable.is_some_and(|slot| self.subflows[slot].subflow.signals_mut().address(option));
        let timeout = self.subflows.longest_backed_off_timeout();
        self.paths.announcements.on_announced(now, took, timeout);
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
        let admitted = self.paths.announcements.admits(told) && self.paths.is_elsewhere(address);
        if hmac != expected || !admitted {
            self.counters.add_addr_drop += 1;
            return;
        }
        // A peer that knows both keys has completed the handshake. RFC 8684 §3.1.
        let ctx = &mut self.subflows[slot];
        ctx.subflow.confirm();
        ctx.signs.on_proof();
        let echo = Echo { slot, option: AddAddr { truncated_hmac: None, ..*option } };
        if self.paths.announcements.hear(told, echo, self.config.add_addr_accepted.map(usize::from))
        {
            self.start_path_manager(now);
            let event = PathEvent::AddressAnnounced { remote, remote_address_id: address_id };
            self.tell_path_manager(now, &event);
        }
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
