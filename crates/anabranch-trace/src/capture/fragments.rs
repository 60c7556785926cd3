//! Fragments of IP packets, reassembled. RFC 791 §3.2, RFC 8200 §4.5.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use anabranch_wire::Instant;
use etherparse::defrag::IpDefragBuf;
use etherparse::{IpFragOffset, IpNumber};

/// The identity of a fragmented packet at one place of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FragmentKey {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) id: u32,
    /// Interface and direction. Copies at other places have the same identity.
    pub(super) place: (u32, u32),
}

/// One fragment.
pub(super) struct Fragment<'a> {
    pub(super) offset: IpFragOffset,
    pub(super) has_more: bool,
    pub(super) bytes: &'a [u8],
}

/// Packets of which fragments are missing.
#[derive(Default)]
pub(super) struct Fragments {
    waiting: HashMap<FragmentKey, PartialPacket>,
    /// The keys of `waiting` in the order of their first fragments.
    order: VecDeque<(FragmentKey, u64)>,
    created: u64,
}

struct PartialPacket {
    buffer: IpDefragBuf,
    fragments: u64,
    begin: Instant,
    number: u64,
}

impl Fragments {
    /// Add a fragment. Returns the bytes behind the IP header if the packet is now complete, with the
    /// number of its fragments.
    pub(super) fn add(
        &mut self,
        key: FragmentKey,
        fragment: &Fragment<'_>,
        now: Instant,
    ) -> Option<(Vec<u8>, u64)> {
        self.forget_old(now);
        if !self.waiting.contains_key(&key) {
            self.created += 1;
            self.order.push_back((key, self.created));
            let buffer = IpDefragBuf::new(IpNumber(key.protocol), Vec::new(), Vec::new());
            let waiting = PartialPacket { buffer, fragments: 0, begin: now, number: self.created };
            self.waiting.insert(key, waiting);
        }
        let waiting = self.waiting.get_mut(&key)?;
        let Fragment { offset, has_more, bytes } = *fragment;
        if waiting.buffer.add(offset, has_more, bytes).is_err() {
            return None;
        }
        waiting.fragments += 1;
        if !waiting.buffer.is_complete() {
            return None;
        }
        let PartialPacket { buffer, fragments, .. } = self.waiting.remove(&key)?;
        Some((buffer.take_bufs().0, fragments))
    }

    /// Give up packets that wait for too long, and the oldest beyond the limit.
    fn forget_old(&mut self, now: Instant) {
        while let Some((key, number)) = self.order.front().copied() {
            let current = self.waiting.get(&key).filter(|waiting| waiting.number == number);
            let is_old = current.is_none_or(|waiting| {
                now.as_nanos().saturating_sub(waiting.begin.as_nanos()) > LONGEST_WAIT
            });
            if !is_old && self.order.len() < MOST_WAITING {
                return;
            }
            if current.is_some() {
                self.waiting.remove(&key);
            }
            self.order.pop_front();
        }
    }
}

/// Linux drops incomplete packets after this time in nanoseconds (`net.ipv4.ipfrag_time`).
const LONGEST_WAIT: u64 = 30_000_000_000;

/// Largest number of incomplete packets.
const MOST_WAITING: usize = 1_024;
