//! Packets that were captured twice: by a mirror port, or on several interfaces of one host.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use anabranch_wire::{Checksum, Flags, Instant};

use crate::input::Sighting;

/// Detects copies among the packets of the last moments.
#[derive(Default)]
pub(crate) struct CopyDetector {
    recent: HashMap<u64, Seen>,
    order: VecDeque<(Instant, u64)>,
}

#[derive(Clone, Copy)]
struct Seen {
    time: Instant,
    place: u32,
}

impl CopyDetector {
    /// Returns `true` if the packet is a copy of an earlier one. Otherwise remembers it. `rtt` is
    /// the round-trip time of the handshake in nanoseconds, if it is known.
    pub(crate) fn is_copy(&mut self, sighting: &Sighting<'_>, rtt: Option<u64>) -> bool {
        self.forget(sighting.time);
        let identity = identity(sighting);
        let seen = Seen { time: sighting.time, place: sighting.place };
        if let Some(known) = self.recent.get(&identity).copied() {
            let apart = sighting.time.as_nanos().saturating_sub(known.time.as_nanos());
            if longest(sighting, known.place, rtt).is_some_and(|longest| apart <= longest) {
                return true;
            }
        }
        self.recent.insert(identity, seen);
        self.order.push_back((sighting.time, identity));
        false
    }

    fn forget(&mut self, now: Instant) {
        while let Some((time, identity)) = self.order.front().copied()
            && (now.as_nanos().saturating_sub(time.as_nanos()) > LONGEST
                || self.order.len() > MOST_REMEMBERED)
        {
            self.order.pop_front();
            // The entry may be of a later packet with equal headers.
            if self.recent.get(&identity).is_some_and(|seen| seen.time == time) {
                self.recent.remove(&identity);
            }
        }
    }
}

/// Longest time in nanoseconds between a packet and its copy; `None` if copies cannot be recognised. A
/// retransmission may have the same TCP header, but it has another IPv4 identification. Without
/// identifications, a retransmission comes a round-trip time later or more, and a host may repeat an
/// acknowledgement at any time.
fn longest(sighting: &Sighting<'_>, place: u32, rtt: Option<u64>) -> Option<u64> {
    let segment = &sighting.segment;
    let has_id = sighting.ip_id.is_some_and(|id| id != 0);
    if has_id || place != sighting.place {
        return Some(LONGEST);
    }
    let ends = Flags::SYN.0 | Flags::FIN.0;
    let is_repeatable = segment.payload_len == 0 && segment.header.flags.0 & ends == 0;
    (!is_repeatable).then(|| LONGEST_WITHOUT_ID.min(rtt.unwrap_or(u64::MAX) / 2))
}

/// A hash of everything but the checksum, which a network card may fill in between two copies.
fn identity(sighting: &Sighting<'_>) -> u64 {
    let segment = &sighting.segment;
    let mut hasher = DefaultHasher::new();
    (segment.source, segment.destination, sighting.ip_id, sighting.epoch).hash(&mut hasher);
    let header = segment.header;
    let mut sum = Checksum::new();
    if !segment.is_cut() {
        sum.add(segment.payload);
    }
    (header.seq.0, header.ack.0, header.flags.0, header.window, header.urgent).hash(&mut hasher);
    (segment.options, segment.payload_len, sum.finish()).hash(&mut hasher);
    hasher.finish()
}

/// Longest time in nanoseconds between two copies.
const LONGEST: u64 = 100_000_000;

/// Longest time in nanoseconds between two copies of a packet without identification.
const LONGEST_WITHOUT_ID: u64 = 2_000_000;

/// Largest number of packets that are remembered.
const MOST_REMEMBERED: usize = 1 << 16;
