//! The sending side of the data level: data that the application wrote, data mapped to subflows,
//! and data to resend.
//!
//! Offsets are 64-bit numbers. The IDSN has offset 0, and the first byte has offset 1. RFC 8684
//! §3.3.1.

mod assigned;
mod resend;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use anabranch_wire::{Payload, Piece, pattern};

use crate::platform::{SendBuffer, SendOffsets, Unsent};
use crate::view::{Slot, SubflowSet};
pub(crate) use resend::Resend;
use resend::Resends;

/// Written pieces that together have at most this number of bytes are copied into one (this project).
/// An application that writes single bytes would otherwise take many times their memory.
const LONGEST_JOINED: usize = 1024;

#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Unacknowledged data, with the offset of each piece.
    pieces: VecDeque<(u64, Piece)>,
    buffer: SendBuffer,
    /// First unacknowledged byte, next byte to send, and end of the written data. Only `fin` counts
    /// the DATA_FIN.
    una: u64,
    nxt: u64,
    end: u64,
    finished: bool,
    fin: Fin,
    /// Data that was sent and is not acknowledged, in order, in the segments of its first
    /// transmission.
    mapped: VecDeque<Mapped>,
    /// Starts of segments that must be resent, with the oldest data first. Entries may be stale.
    reinjections: BinaryHeap<Reverse<u64>>,
    /// The subflows that may still have copies to send. `cursors` holds the offset before which
    /// each has none.
    pending_copies: SubflowSet,
    cursors: Vec<u64>,
    /// Bytes that wait on each subflow, by slot: those that are assigned to it and that no subflow has
    /// carried yet, and those that it sends again.
    assigned: Vec<u64>,
    /// `None` until data is sent again, so that other connections do not pay for it.
    resends: Option<Box<Resends>>,
}

/// The DATA_FIN, whose number follows that of the last byte. RFC 8684 §3.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Unsent,
    Sent,
    Acknowledged,
}

/// A range of data that was sent on at least one subflow, or assigned to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    pub(crate) start: u64,
    pub(crate) len: u32,
    sent_on: SentOn,
    queued: bool,
    /// Whether data that was assigned together ends here, so that the segment has PSH.
    pushed: bool,
    /// The first data of a socket buffer of its subflow.
    begins: bool,
}

/// The subflows that carry a range of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentOn {
    /// No subflow yet: the data waits for room on the subflow in this slot.
    Assigned { to: Slot },
    /// The subflows in `by` have carried the data, unless they are gone. Those in `pending_copies`
    /// will carry a copy when they have room.
    Carried { by: SubflowSet, pending_copies: SubflowSet },
}

impl SentOn {
    /// No remaining subflow has carried the data.
    const LOST: SentOn =
        SentOn::Carried { by: SubflowSet::EMPTY, pending_copies: SubflowSet::EMPTY };

    fn is_assigned(self) -> bool {
        matches!(self, SentOn::Assigned { .. })
    }

    /// Returns `true` if the subflow in `slot` will carry the data when it has room.
    fn awaits(self, slot: Slot) -> bool {
        match self {
            SentOn::Assigned { to } => to == slot,
            SentOn::Carried { pending_copies, .. } => pending_copies.contains(slot),
        }
    }

    /// State after the subflow in `slot` has carried the data. This ends an assignment to
    /// any subflow.
    fn by_also(self, slot: Slot) -> SentOn {
        match self {
            SentOn::Assigned { .. } => {
                SentOn::Carried { by: SubflowSet::of(slot), pending_copies: SubflowSet::EMPTY }
            }
            SentOn::Carried { mut by, mut pending_copies } => {
                by.insert(slot);
                pending_copies.remove(slot);
                SentOn::Carried { by, pending_copies }
            }
        }
    }

    /// State as if the subflow in `slot` had not carried the data.
    fn without(self, slot: Slot) -> SentOn {
        match self {
            SentOn::Carried { mut by, pending_copies } => {
                by.remove(slot);
                SentOn::Carried { by, pending_copies }
            }
            assigned @ SentOn::Assigned { .. } => assigned,
        }
    }

    /// State without pending copies.
    fn without_copies(self) -> SentOn {
        match self {
            SentOn::Carried { by, .. } => SentOn::Carried { by, pending_copies: SubflowSet::EMPTY },
            assigned @ SentOn::Assigned { .. } => assigned,
        }
    }

    /// State after the end of the subflow in `slot`, to which the data is not assigned.
    fn after_end_of(self, slot: Slot) -> SentOn {
        match self {
            SentOn::Carried { by, mut pending_copies } => {
                pending_copies.remove(slot);
                SentOn::Carried { by, pending_copies }.without(slot)
            }
            assigned @ SentOn::Assigned { .. } => assigned,
        }
    }
}

impl Mapped {
    /// Data that is sent now, or waits for room.
    fn new(start: u64, len: u32, sent_on: SentOn) -> Self {
        Mapped { start, len, sent_on, queued: false, pushed: false, begins: false }
    }

    /// The remaining subflows that have carried the data.
    pub(crate) fn carried_by(&self) -> SubflowSet {
        match self.sent_on {
            SentOn::Assigned { .. } => SubflowSet::EMPTY,
            SentOn::Carried { by, .. } => by,
        }
    }

    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

impl SendQueue {
    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.pieces.shrink_to_fit();
        self.mapped.shrink_to_fit();
        self.reinjections.shrink_to_fit();
        self.cursors.shrink_to_fit();
        self.assigned.shrink_to_fit();
        self.resends.take_if(|resends| resends.is_empty());
    }

    pub(crate) fn new(buffer: SendBuffer) -> Self {
        SendQueue {
            pieces: VecDeque::new(),
            buffer,
            una: 1,
            nxt: 1,
            end: 1,
            finished: false,
            fin: Fin::Unsent,
            mapped: VecDeque::new(),
            reinjections: BinaryHeap::new(),
            pending_copies: SubflowSet::EMPTY,
            cursors: Vec::new(),
            assigned: Vec::new(),
            resends: None,
        }
    }

    /// The send buffer, which limits the data that the application can write.
    pub(crate) fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    /// The send buffer, for changes.
    pub(crate) fn buffer_mut(&mut self) -> &mut SendBuffer {
        &mut self.buffer
    }

    /// Accept as much of `piece` as the buffer has room for. Returns the number of bytes.
    pub(crate) fn write(&mut self, piece: Piece) -> usize {
        let start = self.end;
        let accepted = self.reserve(piece.len() as u64) as usize;
        if accepted == 0 {
            return 0;
        }
        let piece = if accepted == piece.len() { piece } else { piece.slice(0, accepted) };
        let rest = match self.pieces.back_mut() {
            Some((_, back)) => {
                back.try_join(piece).or_else(|piece| back.join_short(piece, LONGEST_JOINED)).err()
            }
            None => Some(piece),
        };
        if let Some(piece) = rest {
            self.pieces.push_back((start, piece));
        }
        accepted
    }

    /// Advance the end by up to `wanted` bytes. Returns the number of bytes.
    fn reserve(&mut self, wanted: u64) -> u64 {
        let mut bytes = 0;
        loop {
            let more = self.space().min(wanted - bytes);
            if more == 0 {
                return bytes;
            }
            let offsets = self.offsets();
            self.buffer.charge(more, offsets);
            self.end += more;
            bytes += more;
        }
    }

    /// Unsent data, where nothing is assigned. Linux fills up a socket buffer of TCP from the next
    /// one before it sends it (`tcp_grow_skb`).
    pub(crate) fn waiting(&self) -> Unsent {
        let all = self.unsent();
        Unsent { all, first: self.buffer.first_unsent(self.offsets()), at_a_time: all }
    }

    fn offsets(&self) -> SendOffsets {
        SendOffsets { una: self.una, nxt: self.nxt, end: self.end }
    }

    /// Number of bytes that the application can write at present.
    pub(crate) fn space(&self) -> u64 {
        if self.finished { 0 } else { self.buffer.space(self.offsets()) }
    }

    /// Returns `true` if an application that waits for room can write again.
    pub(crate) fn wakes_writer(&self) -> bool {
        !self.finished && self.buffer.wakes_writer(self.offsets())
    }

    /// The application will write no more data: a DATA_FIN follows the data.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Number of bytes never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.nxt
    }

    /// Memory of the bytes never sent, as the buffer charges segments.
    pub(crate) fn unsent_memory(&self) -> u64 {
        self.buffer.unsent_memory(self.offsets())
    }

    /// Number of bytes from the next one to the end of its page fragment. `None` if the host does
    /// not keep written data in page fragments.
    pub(crate) fn fragment(&self) -> Option<u64> {
        self.buffer.fragments().map(|fragments| fragments.rest_from(self.nxt))
    }

    /// Returns whether the next byte begins a page fragment. `None` if the host does not keep
    /// written data in page fragments.
    pub(crate) fn begins_fragment(&self) -> Option<bool> {
        self.buffer.fragments().map(|fragments| fragments.end_at(self.nxt))
    }

    /// Offset of the first unacknowledged byte. It never goes back.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Offset of the next byte to send.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Offsets that a DATA_ACK may have: from the highest that arrived to the end of the sent data,
    /// both with the DATA_FIN.
    pub(crate) fn outstanding(&self) -> RangeInclusive<u64> {
        let acknowledged = self.una + u64::from(self.fin == Fin::Acknowledged);
        acknowledged..=self.nxt + u64::from(self.fin != Fin::Unsent)
    }

    /// Returns `true` if nothing that was sent is unacknowledged.
    pub(crate) fn all_acknowledged(&self) -> bool {
        self.una == self.nxt && self.fin != Fin::Sent
    }

    /// The offset after the last byte written. The DATA_FIN has this offset.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns `true` if all data was sent, so that the DATA_FIN is next.
    pub(crate) fn fin_is_next(&self) -> bool {
        let waits = self.mapped.back().is_some_and(|mapped| mapped.sent_on.is_assigned());
        self.finished && self.fin == Fin::Unsent && self.nxt == self.end && !waits
    }

    /// The DATA_FIN was sent.
    pub(crate) fn fin_sent(&mut self) {
        self.fin = Fin::Sent;
    }

    /// Returns `true` if the DATA_FIN was sent and is unacknowledged.
    pub(crate) fn fin_outstanding(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// Returns `true` if everything is acknowledged, including the DATA_FIN.
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.fin == Fin::Acknowledged
    }

    /// Send the next `len` bytes for the first time, on the subflow in `slot`. The subflows in
    /// `pending_copies` will carry copies.
    pub(crate) fn map_next(
        &mut self,
        len: u32,
        slot: Slot,
        mut pending_copies: SubflowSet,
    ) -> Payload {
        let start = self.nxt;
        self.nxt += u64::from(len);
        pending_copies.remove(slot);
        let sent_on = SentOn::Carried { by: SubflowSet::of(slot), pending_copies };
        self.mapped.push_back(Mapped::new(start, len, sent_on));
        if !pending_copies.is_empty() {
            self.add_pending(pending_copies, start);
        }
        self.payload(start, len)
    }

    fn add_pending(&mut self, pending_copies: SubflowSet, start: u64) {
        for slot in pending_copies.slots().filter(|slot| !self.pending_copies.contains(*slot)) {
            let index = slot.index();
            if self.cursors.len() <= index {
                self.cursors.resize(index + 1, 0);
            }
            self.cursors[index] = start;
        }
        self.pending_copies.extend(pending_copies);
    }

    /// The subflows that may still have copies to send.
    pub(crate) fn pending_copies(&self) -> SubflowSet {
        self.pending_copies
    }

    /// Returns `true` if there may be data to send that is mapped already: to be reinjected, copied, or
    /// assigned to a subflow.
    #[inline]
    pub(crate) fn has_mapped_to_send(&self) -> bool {
        !self.reinjections.is_empty()
            || self.pending_copies != SubflowSet::EMPTY
            || self.buffer.fragments().is_some()
    }

    /// Start of the oldest data of which the subflow in `slot` must send a copy. Acknowledged data
    /// needs no copy.
    pub(crate) fn next_copy(&mut self, slot: Slot) -> Option<u64> {
        let next = self.cursors.get(slot.index()).copied().and_then(|from| {
            let index = self.mapped.partition_point(|mapped| mapped.start < from);
            self.mapped.range(index..).find(|mapped| mapped.sent_on.awaits(slot))
        });
        match next.map(|mapped| mapped.start) {
            Some(start) => {
                self.cursors[slot] = start;
                Some(start)
            }
            None => {
                if !self.has_resends(slot) {
                    self.pending_copies.remove(slot);
                }
                None
            }
        }
    }

    /// Start of the oldest data that is assigned to the subflow in `slot` and waits there.
    fn next_assigned(&mut self, slot: Slot) -> Option<u64> {
        self.next_copy(slot).filter(|start| self.is_assigned(*start))
    }

    /// Everything below `ack` has reached the peer. Returns `true` if this is new. RFC 8684 §3.3.2.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64) -> bool {
        let outstanding = self.outstanding();
        let is_new = ack > *outstanding.start() && ack <= *outstanding.end();
        if is_new {
            self.remove_acknowledged(ack);
        }
        is_new
    }

    fn remove_acknowledged(&mut self, ack: u64) {
        if ack > self.end {
            self.fin = Fin::Acknowledged;
        }
        let ack = ack.min(self.end);
        self.una = ack;
        while let Some(gone) = self.mapped.pop_front_if(|mapped| mapped.end() <= ack) {
            if !self.outlives(&gone) {
                self.unassign(&gone);
            }
        }
        if let Some(front) = self.mapped.front_mut().filter(|front| front.start < ack) {
            // A middlebox has split the segment, and only its head has arrived.
            let bytes = ack - front.start;
            let gone = Mapped { len: bytes as u32, pushed: false, ..*front };
            front.len -= bytes as u32;
            front.start = ack;
            if front.queued {
                self.reinjections.push(Reverse(ack));
            }
            if !self.outlives(&gone) {
                self.unassign(&gone);
            }
        }
        while let Some((start, piece)) = self.pieces.front_mut() {
            if *start + piece.len() as u64 <= ack {
                self.pieces.pop_front();
                continue;
            }
            // A piece of the pattern may be endless, so keep only the needed part.
            if let Piece::Pattern { phase, len } = piece {
                let gone = ack - *start;
                *phase = pattern::phase_of(u64::from(*phase) + gone);
                *len -= gone as u32;
                *start = ack;
            }
            break;
        }
    }

    /// The oldest data that is not acknowledged at the data level.
    pub(crate) fn head(&self) -> Option<Mapped> {
        self.mapped.front().copied()
    }

    /// The next segment that must be resent.
    pub(crate) fn next_reinjection(&mut self) -> Option<Mapped> {
        while let Some(&Reverse(start)) = self.reinjections.peek() {
            if let Some(mapped) = self.find(start).filter(|mapped| mapped.queued) {
                return Some(*mapped);
            }
            self.reinjections.pop();
        }
        None
    }

    /// A subflow failed to deliver the data from `start` to `end`. Resend it, except for data that
    /// one of the `usable` subflows also has in flight.
    pub(crate) fn reinject(&mut self, start: u64, end: u64, usable: SubflowSet) {
        let first = self.mapped.partition_point(|mapped| mapped.end() <= start);
        for mapped in self.mapped.range_mut(first..) {
            if mapped.start >= end {
                break;
            }
            if !mapped.queued && !mapped.carried_by().intersects(usable) {
                mapped.queued = true;
                self.reinjections.push(Reverse(mapped.start));
            }
        }
    }

    /// Resend the data that the subflow in `slot` has carried, except for data that one of the
    /// `usable` subflows also has in flight.
    pub(crate) fn reinject_carried(&mut self, slot: Slot, usable: SubflowSet) {
        for mapped in self.mapped.iter_mut().filter(|mapped| mapped.carried_by().contains(slot)) {
            if !mapped.queued && !mapped.carried_by().intersects(usable) {
                mapped.queued = true;
                self.reinjections.push(Reverse(mapped.start));
            }
        }
    }

    /// Resend data whose carriers are all gone.
    pub(crate) fn reinject_uncarried(&mut self) {
        let lost =
            |mapped: &&mut Mapped| mapped.carried_by().is_empty() && !mapped.sent_on.is_assigned();
        for mapped in self.mapped.iter_mut().filter(lost) {
            if !mapped.queued {
                mapped.queued = true;
                self.reinjections.push(Reverse(mapped.start));
            }
        }
    }

    /// Continue the stream as that of a sole subflow that has all sent data in flight. Nothing is
    /// resent at the data level, and the FIN replaces the DATA_FIN. RFC 8684 §3.7.
    pub(crate) fn become_plain(&mut self) {
        self.nxt = self.carried_to();
        self.fin = Fin::Unsent;
        while self.mapped.pop_back_if(|mapped| mapped.sent_on.is_assigned()).is_some() {}
        self.assigned.clear();
        self.resends = None;
        self.reinjections.clear();
        self.pending_copies = SubflowSet::EMPTY;
        for mapped in &mut self.mapped {
            mapped.queued = false;
            mapped.sent_on = mapped.sent_on.without_copies();
        }
    }

    /// Resend the oldest data, up to `segments` segments, whichever subflow has carried it.
    pub(crate) fn reinject_first(&mut self, segments: u32) {
        let count = self.mapped.len().min(segments as usize);
        for mapped in self.mapped.range_mut(..count).rev().filter(|mapped| !mapped.queued) {
            mapped.queued = true;
            self.reinjections.push(Reverse(mapped.start));
        }
    }

    /// A subflow is gone, and another one may use its slot.
    pub(crate) fn forget_carrier(&mut self, slot: Slot) {
        self.drop_resends(slot);
        self.reassign(slot);
        for mapped in &mut self.mapped {
            mapped.sent_on = mapped.sent_on.after_end_of(slot);
        }
        self.pending_copies.remove(slot);
    }

    /// Send the data at `start` on the subflow in `slot` too, with at most `limit` bytes. Returns
    /// the payload.
    pub(crate) fn retransmit_on(&mut self, start: u64, limit: u32, slot: Slot) -> Option<Payload> {
        let index = self.mapped.partition_point(|mapped| mapped.start < start);
        let mapped = self.mapped.get_mut(index).filter(|mapped| mapped.start == start)?;
        let before = Mapped { len: mapped.len.min(limit), ..*mapped };
        mapped.sent_on = mapped.sent_on.by_also(slot);
        mapped.queued = false;
        if mapped.len > limit {
            let rest = Mapped {
                start: start + u64::from(limit),
                len: mapped.len - limit,
                sent_on: before.sent_on.without(slot),
                begins: false,
                ..before
            };
            mapped.len = limit;
            mapped.pushed = false;
            if rest.queued {
                self.reinjections.push(Reverse(rest.start));
            }
            self.mapped.insert(index + 1, rest);
        }
        self.unassign(&before);
        Some(self.payload(start, before.len))
    }

    fn find(&self, start: u64) -> Option<&Mapped> {
        let index = self.mapped.partition_point(|mapped| mapped.start < start);
        self.mapped.get(index).filter(|mapped| mapped.start == start)
    }

    /// The bytes `start..start + len`, in at most two pieces. More pieces are copied together,
    /// which happens only if the application writes in small pieces.
    #[inline]
    pub(crate) fn payload(&self, start: u64, len: u32) -> Payload {
        match self.pieces.front() {
            // The test pattern takes one piece, whatever its length.
            Some((at, Piece::Pattern { phase, len: all }))
                if start + u64::from(len) <= at + u64::from(*all) =>
            {
                Piece::pattern(u64::from(*phase) + (start - at), len).into()
            }
            _ => self.payload_of_pieces(start, len),
        }
    }

    fn payload_of_pieces(&self, start: u64, len: u32) -> Payload {
        let index = self.pieces.partition_point(|(at, _)| *at <= start) - 1;
        let (at, piece) = &self.pieces[index];
        let (from, len) = ((start - at) as usize, len as usize);
        if from + len <= piece.len() {
            return Payload::from(piece.slice(from, from + len));
        }
        let first = piece.slice(from, piece.len());
        let left = len - first.len();
        if let Some((_, next)) = self.pieces.get(index + 1)
            && left <= next.len()
        {
            return Payload::new(first, next.slice(0, left));
        }
        let mut bytes = Vec::with_capacity(len);
        first.for_each_slice(|slice| bytes.extend_from_slice(slice));
        for (_, piece) in self.pieces.iter().skip(index + 1) {
            let take = piece.len().min(len - bytes.len());
            piece.slice(0, take).for_each_slice(|slice| bytes.extend_from_slice(slice));
        }
        Payload::from(bytes::Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests;
