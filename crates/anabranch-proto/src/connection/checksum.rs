//! Checksums of mappings, and the reaction to a wrong one. RFC 8684 §3.3.1, §3.7.
//!
//! With checksums, the bytes of a mapping reach the data level only when all of them have arrived
//! and the checksum is correct. A wrong checksum means that a middlebox has changed the payload,
//! and perhaps its length. Nothing on the subflow from the start of that mapping on can then be
//! placed in the stream, although the subflow acknowledges it. These bytes wait on the subflow, and
//! DATA_ACK stays before them.
//!
//! * If there are other subflows, the host resets this one with MP_FAIL and discards its bytes. The
//!   peer reinjects them on another subflow, because they are not DATA_ACKed.
//! * If it is the only subflow, the host sends MP_FAIL on an acknowledgement, and the bytes wait.
//!   If the peer's data in flight is contiguous, it answers with MP_FAIL and an infinite mapping
//!   from the last DATA_ACKed byte on. The waiting bytes are then the stream as it arrived: plain
//!   TCP would have delivered the same modified bytes. If the data is not contiguous, the peer
//!   resets the subflow. If the peer does not answer any of the repeated MP_FAILs, this host resets
//!   the subflow.

use anabranch_wire::mptcp::{MpFail, ResetReason};
use anabranch_wire::{Instant, Payload};

use super::Connection;
use super::handshake::because;
use super::mapping::ChecksumVerdict;
use super::recv_queue::Inserted;
use super::timer::ConnectionTimer;
use crate::view::Slot;

/// A mapping failed its checksum on the only subflow. Its bytes wait for the peer's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    pub(super) slot: Slot,
    fail: MpFail,
    /// Number of MP_FAILs sent.
    told: u32,
}

impl Failing {
    /// The next MP_FAIL, and the number of those before; `None` after the last repetition.
    fn next(&mut self) -> Option<(MpFail, u32)> {
        let before = self.told;
        self.told += 1;
        (before < MOST_TOLD).then_some((self.fail, before))
    }
}

/// Maximum number of MP_FAILs, at intervals that double from the retransmission timeout (this
/// project: options on acknowledgements may be lost. Other hosts send it once and wait for two
/// minutes).
const MOST_TOLD: u32 = 6;

impl Connection {
    /// Hand mapped data with a correct checksum to the data level.
    pub(super) fn hand_over(&mut self, now: Instant, slot: Slot) {
        loop {
            while let Some((data, payload)) = self.subflows[slot].mappings.poll() {
                self.handle_mapped(slot, data, payload);
            }
            if !self.session.checksums() {
                return;
            }
            let verdict = self.subflows[slot].mappings.verify(self.session.peer_idsn());
            match verdict {
                Some(ChecksumVerdict::Right(None)) => {}
                Some(ChecksumVerdict::Right(Some(data_fin))) => {
                    self.handle_data_fin(slot, data_fin)
                }
                Some(ChecksumVerdict::Wrong(data)) => {
                    return self.on_wrong_checksum(now, slot, data);
                }
                None => return,
            }
        }
    }

    /// Payload that arrived on the subflow in `slot` belongs at data offset `data`.
    #[inline]
    pub(super) fn handle_mapped(&mut self, slot: Slot, data: u64, payload: Payload) {
        match self.recv.queue.insert(slot, data, payload) {
            Inserted::Delivered => self.outbox.tell_readable(),
            Inserted::Waiting => self.counters.ofo_queue += 1,
            Inserted::Duplicate => self.counters.dup_data += 1,
            Inserted::OutsideWindow => self.counters.no_dss_in_window += 1,
        }
    }

    /// RFC 8684 §3.3.3: the peer's DATA_FIN occupies data offset `data_fin`.
    pub(super) fn handle_data_fin(&mut self, slot: Slot, data_fin: u64) {
        if self.recv.queue.set_fin(data_fin) {
            self.outbox.tell_readable();
        }
        // In any case, the peer must learn that its DATA_FIN arrived.
        self.subflows[slot].subflow.demand_ack();
    }

    fn on_wrong_checksum(&mut self, now: Instant, slot: Slot, data: u64) {
        self.counters.data_csum_err += 1;
        let fail = MpFail { data_seq: self.session.peer_idsn() + data };
        if self.subflows.is_sole(slot) && self.way_back(slot).is_some() {
            self.fallback.begin_failing(Failing { slot, fail, told: 0 });
            self.tell_failure(now);
        } else {
            self.break_failing(slot, fail);
        }
    }

    /// RFC 8684 §3.7: reset the subflow with MP_FAIL.
    pub(super) fn break_failing(&mut self, slot: Slot, fail: MpFail) {
        self.counters.dss_corruption_reset += 1;
        let mut ctx = self.subflows.edit(slot);
        ctx.signs.mark_payload_unreliable();
        ctx.subflow.reset_failing(fail, because(ResetReason::MIDDLEBOX_INTERFERENCE));
    }

    /// Send MP_FAIL to the peer, or give up after the last repetition.
    pub(super) fn tell_failure(&mut self, now: Instant) {
        let Some(failing) = self.fallback.failing() else { return };
        let subflow = &mut self.subflows[failing.slot].subflow;
        let Some((fail, before)) = failing.next() else { return self.abandon_failing() };
        subflow.signals_mut().fail(fail);
        let pause = subflow.rtt().rto_without_backoff() * (1 << before);
        self.timers.set(ConnectionTimer::Fail, now + pause);
    }

    /// The subflow that waits for an answer to MP_FAIL is not the only one any more.
    pub(super) fn abandon_failing(&mut self) {
        if let Some(Failing { slot, fail, .. }) = self.fallback.end_failing() {
            self.break_failing(slot, fail);
        }
    }

    /// RFC 8684 §3.3: a host violates the negotiation if it omits agreed checksums, or uses
    /// checksums without agreement. The subflow is then reset.
    pub(super) fn is_as_agreed(&mut self, slot: Slot, checksum: Option<u16>) -> bool {
        let agreed = checksum.is_some() == self.session.checksums();
        if !agreed {
            self.subflows.break_off(slot, ResetReason::MPTCP_SPECIFIC);
        }
        agreed
    }
}
