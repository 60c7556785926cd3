//! TCP Fast Open: cookies that this host issues, and those that it has got. RFC 7413.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_wire::{Duration, FastOpenCookie, Flags, Instant, Payload, Segment, SocketAddress};

use crate::connection::Reception;
use crate::keys::Secrets;
use crate::subflow::{FastOpen, FastOpenOutcome};

/// Bytes of a cookie. With 8, the options of a SYN/ACK with MP_CAPABLE would exceed 40 bytes.
const COOKIE_BYTES: usize = 6;
/// Data of a SYN at most: the segment size that every host accepts, without the longest options. RFC
/// 7413 §4.1.3.
pub(super) const MOST_DATA: usize = 536 - 40;
/// Half-open connections up to which data of SYNs is taken (this project). RFC 7413 §5.1: a valid
/// cookie must not let its owner exhaust this host.
const MOST_HALF_OPEN: usize = 256;
/// Time without TCP Fast Open after a path has dropped it (this project). RFC 7413 §4.1.3.1.
const REFUSAL: Duration = Duration::from_secs(10 * 60);
/// Pairs of addresses about which a client remembers something (this project).
const MOST_KNOWN: usize = 1024;

/// Outcomes of a client's attempts to use TCP Fast Open, by local and remote address.
#[derive(Debug, Default)]
pub(super) struct FastOpenCache(BTreeMap<(IpAddr, IpAddr), Knowledge>);

#[derive(Clone, Copy, Debug)]
enum Knowledge {
    Cookie(FastOpenCookie),
    /// Not to be used until this time.
    RefusedUntil(Instant),
}

impl FastOpenCache {
    /// The first SYN from `local` to `remote` may carry this. Without a cookie, it asks for one. RFC
    /// 7413 §4.2.1.
    pub(super) fn plan(
        &self,
        now: Instant,
        local: IpAddr,
        remote: IpAddr,
        data: Payload,
    ) -> Option<FastOpen> {
        match self.0.get(&(local, remote)) {
            Some(Knowledge::Cookie(cookie)) => Some(FastOpen { cookie: *cookie, data }),
            Some(Knowledge::RefusedUntil(end)) if now < *end => None,
            _ => Some(FastOpen { cookie: FastOpenCookie::REQUEST, data: Payload::EMPTY }),
        }
    }

    /// Remember the outcome that a SYN/ACK from `remote` to `local` shows.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: IpAddr,
        outcome: FastOpenOutcome,
    ) {
        let place = (local, remote);
        if self.0.len() >= MOST_KNOWN && !self.0.contains_key(&place) {
            self.0.pop_first();
        }
        let knowledge = match outcome {
            FastOpenOutcome::Cookie(cookie) => Knowledge::Cookie(cookie),
            FastOpenOutcome::Refused => Knowledge::RefusedUntil(now + REFUSAL),
        };
        self.0.insert(place, knowledge);
    }
}

/// Decide about TCP Fast Open in a SYN for a listener that offers it. `half_open` connections exist.
pub(super) fn receive(secrets: &Secrets, syn: &Segment, half_open: usize) -> Reception {
    let Some(offered) = syn.options.fast_open.as_deref() else { return Reception::Usual };
    let cookie = cookie(secrets, syn);
    if *offered != cookie {
        return Reception::Cookie(cookie);
    }
    let has_data = !syn.payload.is_empty() && !syn.header.flags.contains(Flags::FIN);
    if has_data && syn.payload.len() <= usize::from(u16::MAX) && half_open < MOST_HALF_OPEN {
        Reception::ReceiveData
    } else {
        Reception::Usual
    }
}

/// The cookie for the sender of a SYN. RFC 7413 §4.1.2: it follows from the sender's address, and
/// nobody can guess it without the secret.
fn cookie(secrets: &Secrets, syn: &Segment) -> FastOpenCookie {
    let of = |address| SocketAddress::new(address, 0);
    let (local, remote) = (of(syn.destination.address), of(syn.source.address));
    let bytes = secrets.of_addresses("fast open", local, remote, &[]).to_be_bytes();
    FastOpenCookie::new(&bytes[..COOKIE_BYTES]).expect("6 bytes are a cookie")
}
