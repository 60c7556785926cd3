//! One TCP connection, as seen from the place that saw it best.

use std::collections::BTreeMap;

use anabranch_wire::{Checksum, DataSeq, Instant, SeqNumber, SocketAddress};

use crate::ranges::RangeSet;
use crate::stream::MOST_HELD;
use crate::watch::At;

/// The kind of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubflowKind {
    /// Its SYN has MP_CAPABLE.
    Initial,
    /// Its SYN has MP_JOIN.
    Join,
    /// Its SYN has neither.
    Plain,
    /// The capture does not contain its handshake.
    Begun,
}

/// One TCP connection.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) kind: SubflowKind,
    /// The sender and the receiver of the SYN; a guess if the SYN was not captured.
    pub(crate) ends: [SocketAddress; 2],
    pub(crate) connection: Option<u32>,
    /// Whether the listener of the connection opened this subflow. The directions of subflow and
    /// connection are then opposite.
    pub(crate) is_turned: bool,
    pub(crate) place: u32,
    pub(crate) places: u32,
    pub(crate) halves: [Half; 2],
    pub(crate) join: Join,
    /// Whether the subflow uses a version of Multipath TCP that is not decoded.
    pub(crate) is_other_version: bool,
    pub(crate) begin: At,
    pub(crate) end: Instant,
    pub(crate) syn_at: Option<Instant>,
    pub(crate) rtt: Option<u64>,
    pub(crate) is_established: bool,
    /// Reason of the reset, if the subflow was reset.
    pub(crate) reset: Option<String>,
    pub(crate) corrupted: u64,
    /// Whether some options of some segments are unknown.
    pub(crate) lacks_options: bool,
}

/// The contents of a join's handshake.
#[derive(Debug, Default)]
pub(crate) struct Join {
    pub(crate) token: Option<u32>,
    pub(crate) nonces: [Option<u32>; 2],
    pub(crate) ids: [Option<u8>; 2],
    pub(crate) is_backup: bool,
    /// Time of the SYN/ACK.
    pub(crate) answered: Option<Instant>,
    /// Whether the third ACK, and (`has_fourth`) its acknowledgement, were seen.
    pub(crate) has_third: bool,
    pub(crate) has_fourth: bool,
    /// Numbers of right and wrong HMACs.
    pub(crate) right: u8,
    pub(crate) wrong: u8,
    pub(crate) complained: bool,
}

/// One direction of a subflow. A place is an offset from the first byte after the SYN.
#[derive(Debug, Default)]
pub(crate) struct Half {
    /// Sequence number of place 0.
    pub(crate) base: Option<SeqNumber>,
    /// TCP sequence number of subflow sequence number 0. This is the SYN's, if it was seen.
    pub(crate) ssn_base: Option<SeqNumber>,
    /// Whether the SYN was seen.
    pub(crate) is_exact: bool,
    /// The place after the last byte sent.
    pub(crate) next: i64,
    pub(crate) seen: RangeSet,
    pub(crate) acked: Option<i64>,
    /// Time of the last acknowledgement of bytes that were not acknowledged before.
    pub(crate) acked_at: Option<Instant>,
    /// Number of acknowledged bytes that the capture does not contain.
    pub(crate) missing: i64,
    pub(crate) window_scale: Option<u8>,
    /// Maximum segment size that this side of the subflow announced.
    pub(crate) mss: Option<u16>,
    /// Whether all options of the SYN are known.
    pub(crate) has_syn_options: bool,
    pub(crate) fin: Option<i64>,
    /// Bytes that the SYN carried. They have no mapping. RFC 8684 appendix B.
    pub(crate) in_syn: i64,
    mappings: BTreeMap<i64, Mapped>,
    /// The start of the infinite mapping: its place on the subflow and its place in the data.
    pub(crate) infinite: Option<(i64, i64)>,
    pub(crate) unmapped: RangeSet,
    pub(crate) first_unmapped: Option<At>,
    /// Number of bytes whose mapping is unknown, because options are.
    pub(crate) unknown: u64,
    /// The place at which the last mapping begins.
    pub(crate) last_mapping: Option<i64>,
    /// Number of segments, and (`segments`) of those with payload.
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    pub(crate) retransmitted: u64,
    pub(crate) reinjected: u64,
}

/// A mapping that was declared.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The place after the mapping's last byte on the subflow.
    pub(crate) end: i64,
    /// The place of the mapping's first byte in the data.
    pub(crate) data: i64,
    pub(crate) sum: Option<Sum>,
}

/// A checksum, with the data to check it.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) checksum: u16,
    pub(crate) data_seq: DataSeq,
    pub(crate) ssn: SeqNumber,
    pub(crate) len: u16,
    pub(crate) at: At,
    /// The data by its place, with the packet that carried it.
    pieces: BTreeMap<i64, (At, Box<[u8]>)>,
    got: i64,
}

/// A mapping compared with earlier mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    New,
    Again,
    /// An earlier mapping maps some byte to other data.
    Changed,
}

impl Subflow {
    /// A TCP connection whose first segment was just seen.
    pub(crate) fn new(kind: SubflowKind, ends: [SocketAddress; 2], at: At) -> Self {
        Subflow {
            kind,
            ends,
            connection: None,
            is_turned: false,
            place: 0,
            places: 1,
            halves: Default::default(),
            join: Join::default(),
            is_other_version: false,
            begin: at,
            end: at.time,
            syn_at: (kind != SubflowKind::Begun).then_some(at.time),
            rtt: None,
            is_established: false,
            reset: None,
            corrupted: 0,
            lacks_options: false,
        }
    }
}

impl Half {
    /// The place of a sequence number. The first sequence number becomes place 0.
    pub(crate) fn place(&mut self, seq: SeqNumber) -> i64 {
        let base = *self.base.get_or_insert(seq);
        let near = base + self.next as u32;
        self.next + i64::from(seq.distance_from(near))
    }

    /// The SYN was seen.
    pub(crate) fn set_syn(&mut self, seq: SeqNumber) {
        if self.base.is_none() {
            self.base = Some(seq + 1);
            self.ssn_base = Some(seq);
            self.is_exact = true;
        }
    }

    /// The place of a subflow sequence number in a mapping that came with the payload at `seq`.
    pub(crate) fn place_of_ssn(&mut self, ssn: SeqNumber, seq: SeqNumber) -> i64 {
        let here = SeqNumber(seq.0.wrapping_sub(ssn.0));
        // RFC 8684 §3.3.1: subflow sequence numbers count from the SYN. If the SYN was not seen,
        // assume that some mapping begins with the segment that carries it. No mapping begins later.
        let base = match self.ssn_base {
            None => here,
            Some(known) => {
                let earlier = here.distance_from(known);
                if !self.is_exact && (-0xffff..0).contains(&earlier) {
                    // Earlier mappings were placed wrongly. Without keys, no checksums are checked.
                    self.mappings.clear();
                    here
                } else {
                    known
                }
            }
        };
        self.ssn_base = Some(base);
        self.place(base + ssn.0)
    }

    /// Record payload at `start..end`, and return how many of its bytes are new on this subflow.
    pub(crate) fn send(&mut self, start: i64, end: i64) -> i64 {
        self.next = self.next.max(end);
        self.seen.insert(start, end)
    }

    /// Record that the peer acknowledged all bytes before `place`.
    pub(crate) fn acknowledge(&mut self, place: i64, at: Instant, held: &mut usize) {
        // If the capture starts mid-connection, no earlier byte is known to be missing.
        let before = self.acked.unwrap_or(if self.is_exact { 0 } else { place });
        self.acked = Some(before.max(place));
        if place <= before {
            return;
        }
        let fin = i64::from(self.fin.is_some_and(|fin| (before..place).contains(&fin)));
        if place - before > fin {
            self.acked_at = Some(at);
        }
        self.missing += place - before - fin - self.seen.count(before, place);
        while let Some(first) = self.mappings.first_entry()
            && first.get().end <= place
        {
            first.remove().forget(held);
        }
    }

    /// Record a mapping of `start..end` to the data at place `data`.
    pub(crate) fn declare(
        &mut self,
        (start, end): (i64, i64),
        data: i64,
        sum: Option<Sum>,
        held: &mut usize,
    ) -> Declared {
        self.last_mapping = Some(self.last_mapping.map_or(start, |last| last.max(start)));
        let overlapping = self.mappings.range(..end.max(start + 1)).rev();
        let mut overlapping = overlapping.take_while(|(_, mapped)| mapped.end > start);
        if overlapping.any(|(at, mapped)| mapped.data - at != data - start) {
            return Declared::Changed;
        }
        match self.mappings.get_mut(&start) {
            Some(known) if known.end == end => return Declared::Again,
            // The same mapping with another extent: its checksum covers other bytes.
            Some(known) => {
                known.end = known.end.max(end);
                known.forget(held);
            }
            None => {
                self.mappings.insert(start, Mapped { end, data, sum });
            }
        }
        if self.mappings.len() > MOST_MAPPINGS
            && let Some((_, mut lowest)) = self.mappings.pop_first()
        {
            lowest.forget(held);
        }
        Declared::New
    }

    /// The first part of `start..end` with one mapping: its end, and its place in the data.
    pub(crate) fn mapped(&self, start: i64, end: i64) -> (i64, Option<i64>) {
        if let Some((from, data)) = self.infinite
            && start >= from
        {
            return (end, Some(data + (start - from)));
        }
        let before = self.mappings.range(..=start).next_back();
        if let Some((from, mapped)) = before.filter(|(_, mapped)| mapped.end > start) {
            return (mapped.end.min(end), Some(mapped.data + (start - from)));
        }
        let next = self.mappings.range(start..end).next().map_or(end, |(from, _)| *from);
        let next = self.infinite.map_or(next, |(from, _)| next.min(from));
        (next, None)
    }

    /// Drop the data of incomplete mappings.
    pub(crate) fn release(&mut self, held: &mut usize) {
        self.mappings.values_mut().for_each(|mapped| mapped.forget(held));
    }

    /// Add the payload of a packet to the mappings that wait for it, and return the mappings that are
    /// complete.
    pub(crate) fn sum_up(
        &mut self,
        packet: At,
        start: i64,
        payload: &[u8],
        is_cut: bool,
        held: &mut usize,
    ) -> Vec<(i64, Sum)> {
        let end = start + payload.len() as i64;
        let mut done = Vec::new();
        let waiting = self.mappings.range_mut(..end.max(start + 1)).rev();
        for (from, mapped) in waiting.take_while(|(_, mapped)| mapped.end > start) {
            let (low, high) = (start.max(*from), end.min(mapped.end));
            let bytes = &payload[(low - start) as usize..(high - start) as usize];
            if is_cut || *held + bytes.len() > MOST_HELD {
                mapped.forget(held);
            }
            let Some(sum) = &mut mapped.sum else { continue };
            // A copy adds nothing. With other edges it makes pieces overlap; see `verifies`.
            if bytes.is_empty() || sum.pieces.contains_key(&low) {
                continue;
            }
            sum.got += bytes.len() as i64;
            *held += bytes.len();
            sum.pieces.insert(low, (packet, bytes.into()));
            if sum.got >= mapped.end - from
                && let Some(sum) = mapped.sum.take()
            {
                *held -= sum.got as usize;
                done.push((*from, sum));
            }
        }
        done
    }
}

impl Mapped {
    /// Drop the data, because the checksum will not be checked.
    fn forget(&mut self, held: &mut usize) {
        if let Some(sum) = self.sum.take() {
            *held -= sum.got as usize;
        }
    }
}

impl Sum {
    pub(crate) fn new(checksum: u16, data_seq: DataSeq, ssn: SeqNumber, len: u16, at: At) -> Self {
        Sum { checksum, data_seq, ssn, len, at, pieces: BTreeMap::new(), got: 0 }
    }

    /// Returns `Some(true)` if the checksum matches the data from `start` on. `None` if the pieces
    /// overlap or leave gaps.
    pub(crate) fn verifies(&self, start: i64) -> Option<bool> {
        // RFC 8684 §3.3.1: over the pseudo-header and the data covered.
        let mut checksum = Checksum::of_dss_pseudo_header(self.data_seq, self.ssn, self.len);
        let mut next = start;
        for (at, (_, bytes)) in &self.pieces {
            if *at != next {
                return None;
            }
            checksum.add(bytes);
            next += bytes.len() as i64;
        }
        Some(checksum.verifies(self.checksum))
    }

    /// The packets that carried the mapping and the data.
    pub(crate) fn places(&self) -> Vec<At> {
        [self.at].into_iter().chain(self.pieces.values().map(|(at, _)| *at)).collect()
    }

    /// The packets that carried the data, in the order of the data: "packet 3" or "packets 3, 4 and 7".
    /// With several files, "2:7" is packet 7 of the second file.
    pub(crate) fn packets(&self) -> String {
        let is_one_file = self.pieces.values().all(|(at, _)| at.file == self.at.file);
        let name = |at: &At| match is_one_file {
            true => at.packet.to_string(),
            false => format!("{}:{}", at.file + 1, at.packet),
        };
        let mut names: Vec<String> = self.pieces.values().map(|(at, _)| name(at)).collect();
        names.dedup();
        if names.len() > MOST_NAMED {
            let rest = names.len() - MOST_NAMED;
            names.truncate(MOST_NAMED);
            return format!("packets {} and {rest} more", names.join(", "));
        }
        match names.split_last() {
            None => String::new(),
            Some((only, [])) => format!("packet {only}"),
            Some((last, others)) => format!("packets {} and {last}", others.join(", ")),
        }
    }
}

/// Largest number of mappings stored for one direction.
const MOST_MAPPINGS: usize = 1 << 16;

/// Largest number of packets that are named in one sentence.
const MOST_NAMED: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_on_across_the_wrap() {
        let mut half = Half::default();
        half.set_syn(SeqNumber(u32::MAX - 2));
        assert_eq!(half.place(SeqNumber(u32::MAX - 1)), 0);
        half.send(0, 10);
        assert_eq!(half.place(SeqNumber(8)), 10);
        assert_eq!(half.place_of_ssn(SeqNumber(11), SeqNumber(8)), 10);
    }

    #[test]
    fn acknowledged_bytes_that_nobody_saw_are_missing() {
        let mut half = Half::default();
        half.set_syn(SeqNumber(0));
        half.send(0, 10);
        half.send(15, 20);
        half.fin = Some(20);
        half.acknowledge(10, Instant::ZERO, &mut 0);
        assert_eq!(half.missing, 0);
        half.acknowledge(21, Instant::ZERO, &mut 0);
        assert_eq!(half.missing, 5);
    }

    #[test]
    fn a_mapping_stays_what_it_was() {
        // RFC 8684 §3.3.1
        let mut half = Half::default();
        assert_eq!(half.declare((0, 10), 100, None, &mut 0), Declared::New);
        assert_eq!(half.declare((0, 10), 100, None, &mut 0), Declared::Again);
        assert_eq!(half.declare((5, 15), 105, None, &mut 0), Declared::New);
        assert_eq!(half.declare((12, 20), 113, None, &mut 0), Declared::Changed);
        assert_eq!(half.mapped(3, 30), (10, Some(103)));
        assert_eq!(half.mapped(15, 30), (30, None));
    }

    #[test]
    fn where_the_syn_is_unknown_the_earliest_mapping_tells() {
        // The capture starts in the middle of a mapping over two segments.
        let mut half = Half::default();
        assert_eq!(half.place(SeqNumber(2000)), 0);
        assert_eq!(half.place_of_ssn(SeqNumber(1001), SeqNumber(2000)), 0);
        half.send(0, 500);
        // The next mapping begins with its segment: the first began 100 bytes before its own.
        assert_eq!(half.place_of_ssn(SeqNumber(1601), SeqNumber(2500)), 500);
    }
}
