//! The addresses that the hosts announce to each other. RFC 8684 §3.4.1.

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Instant};

use crate::path_manager::{LocalAddress, RemoteAddress};
use crate::view::Slot;

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
pub(super) struct Echo {
    pub(super) option: AddAddr,
    /// The subflow on which the announcement arrived.
    pub(super) slot: Slot,
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

    pub(super) fn are_due(&self, now: Instant) -> bool {
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
    pub(super) fn on_echo(&mut self, told: LocalAddress) {
        self.own.retain(|each| each.local != told);
    }

    /// The address of this host whose announcement is due, if there is one.
    pub(super) fn due(&mut self, now: Instant) -> Option<LocalAddress> {
        self.own.retain(|each| each.told < MOST_TOLD);
        self.own.iter().find(|each| each.due <= now).map(|each| each.local)
    }

    /// The address that was due is announced, or has to wait because no subflow `took` it.
    pub(super) fn on_announced(&mut self, now: Instant, took: bool) {
        if let Some(each) = self.own.iter_mut().find(|each| each.due <= now) {
            each.due = now + FIRST_PAUSE * (1 << each.told);
            each.told += u32::from(took);
        }
    }

    /// The oldest echo to send.
    pub(super) fn next_echo(&self) -> Option<Echo> {
        self.echoes.first().copied()
    }

    /// The oldest echo is sent, or its subflow is gone.
    pub(super) fn on_echo_sent(&mut self) {
        self.echoes.remove(0);
    }

    /// Returns `true` if the peer may announce this address. It may not if its identifier already
    /// belongs to another address, or if it has announced too many.
    pub(super) fn admits(&self, told: RemoteAddress) -> bool {
        match self.known.iter().find(|known| known.id == told.id) {
            Some(known) => known.end == told.end,
            None => told.id != 0 && self.known.len() < MAX_KNOWN,
        }
    }

    /// The peer has announced an address, which the host must echo. Returns `true` if the address is
    /// new, and the host has not yet accepted `most` addresses.
    pub(super) fn hear(&mut self, told: RemoteAddress, echo: Echo, most: Option<usize>) -> bool {
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

    /// No more subflows are wanted.
    pub(super) fn clear(&mut self) {
        *self = Announcements::default();
    }

    /// The peer's addresses, other than the one to which the connection was opened.
    pub(super) fn known(&self) -> &[RemoteAddress] {
        &self.known
    }

    /// The peer has withdrawn an address. Returns true if it was known.
    pub(super) fn forget(&mut self, id: u8) -> bool {
        let known = self.known.iter().position(|known| known.id == id);
        known.map(|index| self.known.remove(index)).is_some()
    }
}
