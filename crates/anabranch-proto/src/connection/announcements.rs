//! The addresses that the hosts announce to each other. RFC 8684 §3.4.1.

use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Instant};

use crate::path_manager::{LocalAddress, RemoteAddress};
use crate::platform::{AnnounceRule, ExpiryRule, Platform};
use crate::view::Slot;

/// Addresses that this host announces, and addresses that the peer has announced.
#[derive(Debug)]
pub(super) struct Announcements {
    rule: AnnounceRule,
    expiry: ExpiryRule,
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

/// Maximum number of announcements of the same address (Linux: 1 and ADD_ADDR_RETRANS_MAX; RFC 8684
/// §3.4.1 leaves it open).
const MOST_TOLD: u32 = 4;
/// Maximum number of the peer's addresses that the host remembers (this project). It ignores
/// further ones.
const MAX_KNOWN: usize = 8;

impl Announcements {
    pub(super) fn new(platform: &Platform) -> Self {
        Announcements {
            rule: platform.announcing,
            expiry: platform.expiry,
            own: Vec::new(),
            known: Vec::new(),
            echoes: Vec::new(),
        }
    }

    /// Time of the next announcement; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        if self.own.is_empty() {
            return Instant::FAR_FUTURE;
        }
        self.candidates().map(|each| each.due).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn is_one_at_a_time(&self) -> bool {
        matches!(self.rule, AnnounceRule::OneAtATime { .. })
    }

    /// The announcements that do not wait for another one.
    fn candidates(&self) -> impl Iterator<Item = &Announcement> {
        self.own.iter().take(if self.is_one_at_a_time() { 1 } else { usize::MAX })
    }

    #[inline]
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
        self.candidates().find(|each| each.due <= now).map(|each| each.local)
    }

    /// The address that was due is announced, or has to wait because no subflow `took` it. `timeout` is
    /// the longest retransmission timeout of a subflow.
    pub(super) fn on_announced(&mut self, now: Instant, took: bool, timeout: Duration) {
        if let Some(each) = self.own.iter_mut().find(|each| each.due <= now) {
            let pause = self.rule.pause(timeout, each.told);
            each.due = match pause {
                Some(pause) => self.expiry.fires(now, pause),
                None if took => Instant::FAR_FUTURE,
                None => now + timeout,
            };
            each.told += u32::from(took);
        }
        if self.is_one_at_a_time() {
            // The next address follows the last announcement of this one at once.
            self.own.retain(|each| each.told < MOST_TOLD);
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
        self.own.clear();
        self.known.clear();
        self.echoes.clear();
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
