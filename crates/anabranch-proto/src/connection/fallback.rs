//! Progress of a connection's fallback to TCP. RFC 8684 §3.7.

use anabranch_wire::mptcp::Mapping;
use anabranch_wire::{DataSeq, SeqNumber};

use super::checksum::Failing;
use crate::view::Slot;

/// Progress of a connection's fallback to TCP.
#[derive(Debug, Default)]
pub(super) struct FallbackState {
    /// The peer may have sent on a further subflow.
    joined: bool,
    /// This host may have sent on a further subflow, or sent data twice on the only one. It does
    /// not do so before the peer can expect it; at the peer this is `joined`.
    repeats: bool,
    /// A checksum failed on the only subflow, and the peer was told.
    failing: Option<Box<Failing>>,
    /// Slot of the subflow that became the TCP connection.
    slot: Slot,
    /// Difference between the stream's offsets and the subflow's, for data that this host sends.
    sent_shift: i64,
    /// The place of data that the peer sends.
    received: Option<Box<PlainStart>>,
}

/// Place of the peer's bytes after the fallback of a Multipath TCP connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainStart {
    /// Difference between the stream's offsets and the peer's subflow offsets.
    shift: u64,
    /// The data sequence number at which the stream's offsets begin.
    idsn: DataSeq,
}

impl PlainStart {
    /// The data from offset `data` on arrives at offset `subflow` of the subflow. The stream's
    /// offsets begin at `idsn`.
    pub(super) fn new(data: u64, subflow: u64, idsn: DataSeq) -> Self {
        PlainStart { shift: data.wrapping_sub(subflow), idsn }
    }

    /// Returns `true` if the mapping places its data where it arrives without options. `next` is the
    /// next data offset expected.
    pub(super) fn agrees_with(&self, mapping: &Mapping, next: u64) -> bool {
        let near = self.idsn + next;
        let data = mapping.data_seq.resolve(near).distance_from(self.idsn) as u32;
        let is_data_fin_alone = mapping.subflow_seq == SeqNumber(0);
        is_data_fin_alone || data.wrapping_sub(mapping.subflow_seq.0) == self.shift as u32
    }
}

impl FallbackState {
    /// From now on the peer may have data on a further subflow.
    pub(super) fn peer_may_spread(&mut self) {
        self.joined = true;
    }

    /// From now on both hosts may have data on a further subflow.
    pub(super) fn both_may_spread(&mut self) {
        (self.joined, self.repeats) = (true, true);
    }

    /// From now on this host sends data twice on its only subflow.
    pub(super) fn repeat(&mut self) {
        self.repeats = true;
    }

    /// Returns `true` if this host may send data twice, or on several subflows.
    #[inline]
    pub(super) fn may_repeat(&self) -> bool {
        self.repeats
    }

    /// A checksum failed, and this host reports it to the peer.
    pub(super) fn begin_failing(&mut self, failing: Failing) {
        self.failing = Some(Box::new(failing));
    }

    /// The failure that this host reports to the peer.
    pub(super) fn failing(&mut self) -> Option<&mut Failing> {
        self.failing.as_deref_mut()
    }

    /// This host stops reporting the failure.
    pub(super) fn end_failing(&mut self) -> Option<Failing> {
        self.failing.take().map(|failing| *failing)
    }

    /// Slot of the subflow that became the TCP connection.
    #[inline]
    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    /// Difference between the stream's offsets and the subflow's, for data that this host sends.
    #[inline]
    pub(super) fn sent_shift(&self) -> i64 {
        self.sent_shift
    }

    /// Returns `true` if the peer may have sent on a further subflow.
    pub(super) fn peer_has_spread(&self) -> bool {
        self.joined
    }

    /// The subflow in `slot` is the TCP connection from now on. `received` is the place of data that
    /// the peer sends.
    pub(super) fn complete(&mut self, slot: Slot, sent_shift: i64, received: PlainStart) {
        let received = Some(Box::new(received));
        *self = FallbackState { slot, sent_shift, received, ..FallbackState::default() };
    }

    /// The place of data that the peer sends, after a fallback.
    pub(super) fn received(&self) -> Option<&PlainStart> {
        self.received.as_deref()
    }
}
