//! Joins from the peer, with and without state. RFC 8684 §3.2.

use anabranch_wire::mptcp::{Control, MpJoin, ResetReason};
use anabranch_wire::{Instant, PooledSegment, Segment};

use super::session::Nonces;
use super::{Connection, Reception, SubflowAddresses};
use crate::flood::{MOST_HALF_OPEN_JOINS, Numbers, remember_in_timestamp};
use crate::keys;
use crate::subflow::{Purpose, Subflow, SubflowEnd};
use crate::view::{Slot, SubflowId};

/// A connection's answer to the SYN of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinAnswer {
    /// The subflow is opening.
    Accepted,
    /// There is room for a subflow, but too many are half open: answer without state.
    Flooded,
    /// The connection accepts no further subflow, for this reason.
    Refused(ResetReason),
}

/// This host's numbers for a join that is answered without state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) numbers: Numbers,
    pub(crate) nonce: u32,
}

/// The content of a join's SYN, and this host's part of the answer.
struct Joining {
    place: SubflowAddresses,
    backup: bool,
    nonces: Nonces,
    answer: Box<Control>,
}

impl Connection {
    /// Answer a SYN that joins this connection, which the endpoint has found by the token.
    pub(crate) fn accept_join(&mut self, now: Instant, syn: &Segment, join: MpJoin) -> JoinAnswer {
        let half_open = self.subflows.half_open_joins().count();
        // RFC 8684 §3.1: the "C" flag told the peer.
        if self.session.is_closed_here(syn.destination) {
            return JoinAnswer::Refused(ResetReason::PROHIBITED);
        }
        if !self.wants_subflows() {
            return JoinAnswer::Refused(ResetReason::MPTCP_SPECIFIC);
        }
        if !self.may_open_in_addition(half_open) {
            return JoinAnswer::Refused(ResetReason::LACK_OF_RESOURCES);
        }
        if half_open >= MOST_HALF_OPEN_JOINS || !self.may_open() {
            return JoinAnswer::Flooded;
        }
        let nonce = self.secrets.draw("nonce") as u32;
        let Some(joining) = self.joining(now, syn, join, nonce) else {
            return JoinAnswer::Refused(ResetReason::MPTCP_SPECIFIC);
        };
        self.add_joining(now, syn, joining, None);
        JoinAnswer::Accepted
    }

    /// The SYN/ACK for a join, without keeping state.
    pub(crate) fn answer_join_without_state(
        &mut self,
        now: Instant,
        syn: &Segment,
        join: MpJoin,
        answered: Answered,
    ) -> Option<PooledSegment> {
        let joining = self.joining(now, syn, join, answered.nonce)?;
        let nobody = SubflowId { slot: Slot(u8::MAX), generation: 0 };
        let accept = |open: crate::subflow::Open<'_>| Subflow::accept(open, now, syn);
        let mut subflow = self.make_subflow(nobody, accept, joining.place);
        subflow.use_numbers(answered.numbers);
        subflow.carry_handshake(Some(joining.answer));
        let mut answer = subflow.poll_transmit(now, &self.data_level())?;
        remember_in_timestamp(&mut answer, syn);
        self.counters.join_syn_rx += 1;
        Some(answer)
    }

    /// The third ACK of a join arrived that was answered without state. Returns the slot of its
    /// subflow. If there is no other room, the subflow replaces a half-open one.
    pub(crate) fn resume_join(
        &mut self,
        now: Instant,
        syn: &Segment,
        join: MpJoin,
        answered: Answered,
    ) -> Option<Slot> {
        if !self.may_open() {
            let oldest = self.subflows.half_open_joins().next()?;
            self.subflows.edit(oldest).subflow.abandon(SubflowEnd::TimedOut);
            self.reap(now);
        }
        let joining = self.joining(now, syn, join, answered.nonce).filter(|_| self.may_open())?;
        Some(self.add_joining(now, syn, joining, Some(answered.numbers)))
    }

    /// The addresses and identifiers of a join. RFC 8684 §3.4.1.
    fn joining(&self, now: Instant, syn: &Segment, join: MpJoin, nonce: u32) -> Option<Joining> {
        let MpJoin::Syn { backup, address_id, nonce: remote_nonce, .. } = join else { return None };
        let keys = self.session.keys()?;
        let address = syn.destination.address;
        let local_id = self.paths.id_of(address);
        let place = SubflowAddresses {
            now,
            purpose: Purpose::Join,
            local: syn.destination,
            remote: syn.source,
            local_address_id: local_id,
            remote_address_id: address_id,
        };
        let nonces = Nonces { local: nonce, remote: remote_nonce };
        let hmac = keys.proof(nonces);
        let answer = MpJoin::SynAck {
            // This flag is this host's own request to the peer, which need not match the peer's.
            backup: false,
            address_id: local_id,
            truncated_hmac: keys::truncated_64(&hmac),
            nonce,
        };
        let answer = Box::new(Control { join: Some(answer), ..Control::default() });
        Some(Joining { place, backup, nonces, answer })
    }

    fn add_joining(
        &mut self,
        now: Instant,
        syn: &Segment,
        joining: Joining,
        answered: Option<Numbers>,
    ) -> Slot {
        let slot = self.add_subflow(|open| Subflow::accept(open, now, syn), joining.place);
        let ctx = &mut self.subflows[slot];
        ctx.set_nonces(joining.nonces);
        ctx.subflow.on_priority_request(joining.backup);
        ctx.subflow.carry_handshake(Some(joining.answer));
        match answered {
            Some(numbers) => self.resume(now, slot, numbers),
            None => self.counters.join_syn_rx += 1,
        }
        self.subflows.refresh(slot);
        slot
    }

    /// The SYN/ACK for a SYN that opens a connection, without keeping state: the caller drops this
    /// connection.
    pub(crate) fn answer_without_state(
        mut self,
        now: Instant,
        syn: &Segment,
        numbers: Numbers,
    ) -> Option<PooledSegment> {
        self.accept(now, syn, Reception::Usual);
        let level = self.data_level();
        let subflow = &mut self.subflows[Slot(0)].subflow;
        subflow.use_numbers(numbers);
        let mut answer = subflow.poll_transmit(now, &level)?;
        remember_in_timestamp(&mut answer, syn);
        Some(answer)
    }

    /// Open the connection whose SYN was answered without state.
    pub(crate) fn accept_answered(&mut self, now: Instant, syn: &Segment, numbers: Numbers) {
        self.accept(now, syn, Reception::Usual);
        self.resume(now, Slot(0), numbers);
    }

    /// This host sent the SYN/ACK of the subflow in `slot` before it kept any state of the subflow.
    pub(super) fn resume(&mut self, now: Instant, slot: Slot, numbers: Numbers) {
        let level = self.data_level();
        let subflow = &mut self.subflows[slot].subflow;
        subflow.use_numbers(numbers);
        subflow.poll_transmit(now, &level);
        subflow.skip_handshake_sample();
    }
}
