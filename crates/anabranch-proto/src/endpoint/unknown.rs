//! Segments that belong to no known subflow: SYNs for listeners, joins, and stray segments.

use std::sync::Arc;

use anabranch_wire::mptcp::{Control, MpJoin, ResetReason};
use anabranch_wire::{
    Duration, Flags, Instant, Payload, PooledSegment, Segment, SeqNumber, TcpHeader, TcpOptions,
};

use super::demultiplexer::SubflowIndex;
use super::{ConnectionSecrets, Endpoint, fast_open};
use crate::config::ConnectionConfig;
use crate::connection::{Answered, JoinAnswer, Reception, Role, because};
use crate::flood::{COOKIE_SECONDS, Cookies, MOST_HALF_OPEN, Numbers};
use crate::keys;
use crate::view::Slot;

impl Endpoint {
    /// Handle a segment that belongs to no known subflow: a SYN for a listener, a join, or a stray.
    pub(super) fn handle_unknown(&mut self, now: Instant, segment: &Segment) {
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) || !self.addresses.contains(&segment.destination.address) {
            return;
        }
        if flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) {
            let join = segment.options.control.as_ref().and_then(|control| control.join);
            if let Some(join @ MpJoin::Syn { token, .. }) = join {
                return self.handle_join(now, segment, token, join);
            }
            if let Some(config) = self.listeners.get(&segment.destination.port) {
                let config = Arc::clone(config);
                return self.handle_syn(now, segment, config);
            }
        } else if now < self.cookies_until
            && (self.handle_answer(now, segment)
                || self.listeners.contains_key(&segment.destination.port))
        {
            // The segment opened a connection, or may follow a third ACK that was lost.
            return;
        } else if !flags.contains(Flags::ACK)
            && self.listeners.contains_key(&segment.destination.port)
        {
            // RFC 9293 §3.10.7.2: in LISTEN, a segment without RST, ACK and SYN is dropped.
            return;
        }
        self.refuse(segment, None);
    }

    /// The listener for a SYN that opens a connection, if this host can keep state for it.
    pub(super) fn listener_with_room(&self, syn: &Segment) -> Option<Arc<ConnectionConfig>> {
        let control = syn.options.control.as_ref();
        let opens = self.half_open < MOST_HALF_OPEN
            && self.addresses.contains(&syn.destination.address)
            && control.is_none_or(|it| it.join.is_none());
        self.listeners.get(&syn.destination.port).filter(|_| opens).cloned()
    }

    /// Answer a SYN and keep state. `iss` is the initial sequence number; without it, one is drawn.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        syn: &Segment,
        config: Arc<ConnectionConfig>,
        iss: Option<SeqNumber>,
    ) {
        let reception = match config.tcp.fast_open {
            true => fast_open::receive(&self.secrets, syn, self.half_open),
            false => Reception::Usual,
        };
        let index = self.add(config, Role::Listener, syn.destination.address);
        let slot = &mut self.slots[index as usize];
        let connection = slot.connection.as_mut().expect("just added");
        connection.accept(now, syn, reception);
        if let Some(iss) = iss {
            connection.begin_at(iss);
        }
        slot.half_open = true;
        self.half_open += 1;
        self.touched(index);
    }

    fn handle_syn(&mut self, now: Instant, syn: &Segment, config: Arc<ConnectionConfig>) {
        let local = syn.destination.address;
        if self.half_open < MOST_HALF_OPEN {
            return self.answer(now, syn, config, None);
        }
        let (numbers, key) = self.cookie(now, syn);
        let own = ConnectionSecrets { key, secrets: self.secrets.for_connection(0) };
        let connection = self.make(config, Role::Listener, local, own);
        let Some(mut answer) = connection.answer_without_state(now, syn, numbers) else { return };
        if self.tokens.contains_key(&keys::token(key)) {
            // RFC 8684 §3.1: the cookie allows no other key, so the connection falls back to TCP.
            answer.options.control = None;
        }
        self.reply_without_state(now, answer);
    }

    fn cookie(&self, now: Instant, syn: &Segment) -> (Numbers, u64) {
        let cookies = Cookies::towards(&self.secrets, syn);
        let numbers = cookies.numbers(now, syn);
        (numbers, cookies.key(numbers))
    }

    fn reply_without_state(&mut self, now: Instant, answer: PooledSegment) {
        self.cookies_until = now + Duration::from_secs(2 * COOKIE_SECONDS);
        self.counters.stateless_syn_acks += 1;
        self.replies.push_back(answer);
    }

    /// Handle a segment that completes a handshake answered without state; returns false if it does
    /// not.
    fn handle_answer(&mut self, now: Instant, segment: &Segment) -> bool {
        if !segment.header.flags.contains(Flags::ACK) {
            return false;
        }
        let cookies = Cookies::towards(&self.secrets, segment);
        let Some((syn, numbers)) = cookies.recall(now, segment) else { return false };
        let key = cookies.key(numbers);
        let control = segment.options.control.as_ref();
        let (index, slot) = if control.is_some_and(|control| control.join.is_some()) {
            let Some(held) = self.waiting_joins.take(&self.secrets, &syn) else { return false };
            let (join, nonce) = (held.join, held.nonce);
            let MpJoin::Syn { token, .. } = join else { return false };
            let Some(index) = self.tokens.get(&token).copied() else { return false };
            let connection = self.slots[index as usize].connection.as_mut();
            let slot = connection
                .and_then(|c| c.resume_join(now, &syn, join, Answered { numbers, nonce }));
            let Some(slot) = slot else { return false };
            (index, slot)
        } else {
            let Some(config) = self.listeners.get(&segment.destination.port) else { return false };
            if self.tokens.contains_key(&keys::token(key)) {
                return false;
            }
            let secrets = self.secrets.for_connection(self.opened + 1);
            let local = segment.destination.address;
            let own = ConnectionSecrets { key, secrets };
            let mut connection = self.make(Arc::clone(config), Role::Listener, local, own);
            connection.accept_answered(now, &syn, numbers);
            (self.insert(connection), Slot(0))
        };
        let connection = self.slots[index as usize].connection.as_mut();
        let connection = connection.expect("just found");
        connection.handle_segment(now, slot, &mut segment.clone(), &mut self.replies);
        self.touched(index);
        true
    }

    fn handle_join(&mut self, now: Instant, syn: &Segment, token: u32, join: MpJoin) {
        let index = self.tokens.get(&token).copied();
        let connection = index.and_then(|i| self.slots[i as usize].connection.as_mut());
        let Some((index, connection)) = index.zip(connection) else {
            self.counters.join_no_token_found += 1;
            // RFC 8684 §3.2: an unknown token is answered with RST.
            return self.refuse(syn, Some(ResetReason::MPTCP_SPECIFIC));
        };
        match connection.accept_join(now, syn, join) {
            JoinAnswer::Accepted => self.touched(index),
            JoinAnswer::Refused(reason) => self.refuse(syn, Some(reason)),
            JoinAnswer::Flooded => {
                let numbers = Cookies::towards(&self.secrets, syn).numbers(now, syn);
                // A retransmitted SYN gets the same nonce, because the first answer may still be in
                // flight.
                let held = self.waiting_joins.get(&self.secrets, syn).filter(|h| h.join == join);
                let nonce =
                    held.map_or_else(|| self.secrets.draw("nonce") as u32, |held| held.nonce);
                let answered = Answered { numbers, nonce };
                let answer = connection.answer_join_without_state(now, syn, join, answered);
                if let Some(answer) = answer {
                    self.waiting_joins.put(&self.secrets, syn, join, nonce);
                    self.reply_without_state(now, answer);
                }
            }
        }
    }

    /// Reset an earlier connection of the peer between the ports of a subflow that is opening.
    pub(super) fn refuse_earlier(&mut self, now: Instant, on: SubflowIndex, segment: &Segment) {
        // The segment may acknowledge a SYN/ACK that was sent without keeping state.
        if now < self.cookies_until && self.listeners.contains_key(&segment.destination.port) {
            return;
        }
        if let Some(connection) = &mut self.slots[on.connection as usize].connection {
            connection.repeat_syn_soon(now, on.slot);
        }
        self.refuse(segment, None);
        self.touched(on.connection);
    }

    /// RFC 9293 §3.10.7.1: answer a segment that belongs to no connection with RST.
    pub(super) fn refuse(&mut self, segment: &Segment, reason: Option<ResetReason>) {
        let header = &segment.header;
        let (seq, ack, flags) = if header.flags.contains(Flags::ACK) {
            (header.ack, SeqNumber(0), Flags::RST)
        } else {
            let syn_fin = u32::from(header.flags.contains(Flags::SYN))
                + u32::from(header.flags.contains(Flags::FIN));
            let ack = header.seq + (segment.payload.len() as u32 + syn_fin);
            (SeqNumber(0), ack, Flags::RST | Flags::ACK)
        };
        let control = reason
            .map(|reason| Box::new(Control { reset: Some(because(reason)), ..Control::default() }));
        self.counters.out_resets += 1;
        let reset = Segment {
            source: segment.destination,
            destination: segment.source,
            header: TcpHeader { seq, ack, flags, window: 0, urgent: 0 },
            options: TcpOptions { control, ..TcpOptions::default() },
            payload: Payload::EMPTY,
            ecn: 0,
            checksum_ok: true,
        };
        self.replies.push_back(reset.into());
    }
}
