//! SYN cookies: the host answers handshakes without keeping state when too many are open. RFC 4987
//! §3.6, RFC 8684 §3.1.
//!
//! The initial sequence number of the SYN/ACK is a cookie. It contains a counter that advances
//! every 64 seconds, the peer's segment size, and a hash over the addresses and numbers. The other
//! options of the SYN are encoded in the lowest bits of the timestamp, which the peer echoes. The
//! third ACK repeats the peer's key of Multipath TCP, and this host's key follows from the cookie.
//! The third ACK of a join has no token, so it is not sufficient to restore the join. Such joins
//! wait in a table of fixed size, where a new join replaces an old one.

use anabranch_wire::mptcp::{CapableKeys, Control, MpCapable, MpJoin};
use anabranch_wire::{Flags, Instant, Payload, Segment, SeqNumber, SocketAddress, TcpOptions};

use crate::keys::Secrets;

/// Maximum number of half-open connections with state on a host (this project; Linux's default
/// backlog).
pub(crate) const MOST_HALF_OPEN: usize = 4096;
/// Maximum number of half-open joins with state of one connection (this project).
pub(crate) const MOST_HALF_OPEN_JOINS: usize = 4;
/// Size of the table of joins that were answered without state, as in Linux.
const JOIN_SLOTS: u64 = 1024;
/// Minimum lifetime of a cookie in seconds; the maximum is twice as long.
pub(crate) const COOKIE_SECONDS: u64 = 64;

/// Segment sizes that a cookie can represent. It holds the largest one that does not exceed the
/// peer's.
const SEGMENT_SIZES: [u16; 8] = [88, 536, 1220, 1360, 1400, 1440, 1460, 8960];
/// Bits of the timestamp that encode the options of the SYN.
const STAMP_BITS: u32 = 0x3f;
const STAMP_ECN: u32 = 0x20;
const STAMP_SACK: u32 = 0x10;
/// The SYN offered no window scaling. RFC 7323 §2.3: the largest shift is 14.
const STAMP_UNSCALED: u32 = 0x0f;

/// The numbers of a subflow that was answered without state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) iss: SeqNumber,
    pub(crate) timestamp_offset: u32,
}

/// The inputs of this host's numbers and key for one peer.
pub(crate) struct Cookies<'a> {
    pub(crate) secrets: &'a Secrets,
    pub(crate) local: SocketAddress,
    pub(crate) remote: SocketAddress,
}

impl<'a> Cookies<'a> {
    /// The inputs for the sender of `segment`.
    pub(crate) fn towards(secrets: &'a Secrets, segment: &Segment) -> Self {
        Cookies { secrets, local: segment.destination, remote: segment.source }
    }

    fn draw(&self, label: &str, numbers: &[u32]) -> u64 {
        self.secrets.of_addresses(label, self.local, self.remote, numbers)
    }

    fn timestamp_offset(&self) -> u32 {
        self.draw("cookie timestamp", &[]) as u32
    }

    /// From the highest bit on: five bits of the period, three of the segment size, 24 of the hash.
    fn cookie(&self, period: u64, size: usize, peer: SeqNumber) -> SeqNumber {
        let (period, size) = (period as u32, size as u32);
        let hash = self.draw("cookie", &[period, size, peer.0]) as u32 >> 8;
        SeqNumber(period << 27 | size << 24 | hash)
    }

    /// The numbers for the answer to `syn`.
    pub(crate) fn numbers(&self, now: Instant, syn: &Segment) -> Numbers {
        let offered = syn.options.mss.unwrap_or(536);
        let size = SEGMENT_SIZES.iter().rposition(|size| *size <= offered).unwrap_or(0);
        Numbers {
            iss: self.cookie(period(now), size, syn.header.seq),
            timestamp_offset: self.timestamp_offset(),
        }
    }

    /// The key of Multipath TCP that belongs to a cookie. RFC 8684 §3.1: a host without state
    /// generates it in a way that it can verify.
    pub(crate) fn key(&self, numbers: Numbers) -> u64 {
        self.draw("cookie key", &[numbers.iss.0])
    }

    /// Restore the SYN whose handshake `ack` completes, as far as possible. `None` if this host has
    /// not answered such a SYN within the last two periods.
    pub(crate) fn recall(&self, now: Instant, ack: &Segment) -> Option<(Segment, Numbers)> {
        let (peer, iss) = (ack.header.seq + u32::MAX, ack.header.ack + u32::MAX);
        let size = (iss.0 >> 24 & 7) as usize;
        let recent = [period(now), period(now).wrapping_sub(1)];
        let genuine = recent.iter().any(|period| self.cookie(*period, size, peer) == iss);
        if !genuine {
            return None;
        }
        let mut flags = Flags::SYN;
        let mut options = TcpOptions { mss: Some(SEGMENT_SIZES[size]), ..TcpOptions::default() };
        if let Some(timestamps) = ack.options.timestamps {
            options.timestamps = Some(timestamps);
            options.sack_permitted = timestamps.echo & STAMP_SACK != 0;
            if timestamps.echo & STAMP_ECN != 0 {
                flags |= Flags::ECE | Flags::CWR;
            }
            let scale = timestamps.echo & STAMP_UNSCALED;
            options.window_scale = (scale != STAMP_UNSCALED).then_some(scale as u8);
        }
        options.control = ack.options.control.as_ref().and_then(|control| offered(control));
        let mut header = ack.header;
        (header.seq, header.ack, header.flags) = (peer, SeqNumber(0), flags);
        let syn = Segment { header, options, payload: Payload::EMPTY, ..ack.clone() };
        Some((syn, Numbers { iss, timestamp_offset: self.timestamp_offset() }))
    }
}

/// MP_CAPABLE of the SYN, restored from the one in the third ACK or the first data.
fn offered(control: &Control) -> Option<Box<Control>> {
    let capable = control.capable?;
    let capable = MpCapable { keys: CapableKeys::None, ..capable };
    Some(Box::new(Control { capable: Some(capable), ..Control::default() }))
}

/// Encode the options of `syn` in the timestamp of `answer`. This may decrease the timestamp a
/// little.
pub(crate) fn remember_in_timestamp(answer: &mut Segment, syn: &Segment) {
    let Some(timestamps) = &mut answer.options.timestamps else {
        answer.header.flags = Flags::SYN | Flags::ACK;
        return;
    };
    let scale = syn.options.window_scale.map_or(STAMP_UNSCALED, |scale| u32::from(scale.min(14)));
    let sack = if answer.options.sack_permitted { STAMP_SACK } else { 0 };
    let ecn = if answer.header.flags.contains(Flags::ECE) { STAMP_ECN } else { 0 };
    let coded = timestamps.value & !STAMP_BITS | scale | sack | ecn;
    let ahead = coded > timestamps.value;
    timestamps.value = coded.wrapping_sub(if ahead { STAMP_BITS + 1 } else { 0 });
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000 / COOKIE_SECONDS
}

/// A join that was answered without state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingJoin {
    local: SocketAddress,
    remote: SocketAddress,
    /// The SYN's sequence number.
    seq: SeqNumber,
    /// The SYN's option.
    pub(crate) join: MpJoin,
    /// This host's nonce. RFC 8684 §3.2: each join needs a new one, otherwise an eavesdropper could
    /// replay an earlier exchange. It therefore cannot follow from a cookie.
    pub(crate) nonce: u32,
}

/// Joins that were answered without state: a table of fixed size, indexed by an unpredictable hash.
#[derive(Debug, Default)]
pub(crate) struct WaitingJoins {
    slots: Vec<Option<WaitingJoin>>,
}

impl WaitingJoins {
    fn slot(secrets: &Secrets, segment: &Segment) -> usize {
        let hash = secrets.of_addresses("join", segment.destination, segment.source, &[]);
        (hash % JOIN_SLOTS) as usize
    }

    /// Remember the SYN of a join and this host's nonce. The new join may replace another one.
    pub(crate) fn put(&mut self, secrets: &Secrets, syn: &Segment, join: MpJoin, nonce: u32) {
        self.slots.resize(JOIN_SLOTS as usize, None);
        let (local, remote, seq) = (syn.destination, syn.source, syn.header.seq);
        self.slots[Self::slot(secrets, syn)] =
            Some(WaitingJoin { local, remote, seq, join, nonce });
    }

    /// The join of `syn`, if no other join has replaced it.
    pub(crate) fn get(&self, secrets: &Secrets, syn: &Segment) -> Option<WaitingJoin> {
        self.slots.get(Self::slot(secrets, syn)).copied().flatten().filter(|held| {
            (held.local, held.remote, held.seq) == (syn.destination, syn.source, syn.header.seq)
        })
    }

    /// Remove and return the join of `syn`.
    pub(crate) fn take(&mut self, secrets: &Secrets, syn: &Segment) -> Option<WaitingJoin> {
        let held = self.get(secrets, syn)?;
        self.slots[Self::slot(secrets, syn)] = None;
        Some(held)
    }
}
