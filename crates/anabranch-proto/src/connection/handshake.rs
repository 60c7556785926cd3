//! MP_CAPABLE and MP_JOIN: establishment of a connection and its further subflows. RFC 8684 §3.1,
//! §3.2.

use anabranch_wire::mptcp::{
    CapableFlags, CapableKeys, Control, MpCapable, MpJoin, MpTcprst, ResetReason, VERSION,
};
use anabranch_wire::{FastOpenCookie, Instant, Payload, Segment, SocketAddress};

use super::session::Nonces;
use super::timer::ConnectionTimer;
use super::{Connection, SubflowAddresses, SubflowRequest};
use crate::event::Event;
use crate::keys;
use crate::path_manager::PathEvent;
use crate::platform::SynFallbackRule;
use crate::subflow::{Carries, FastOpen, FastOpenOutcome, Purpose, Subflow};
use crate::view::{Slot, SubflowSet};

/// Outcome of a host's offer of Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferOutcome {
    /// The peer has answered it.
    Accepted,
    /// SYNs with the offer were lost, and the first SYN without it was answered.
    Lost,
}

/// Treatment of TCP Fast Open in a SYN that opens a connection. RFC 7413 §4.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// None: data of the SYN is dropped, and its sender repeats it.
    Usual,
    /// Issue a cookie, and drop the data.
    Cookie(FastOpenCookie),
    /// Receive the data.
    ReceiveData,
}

fn option(set: impl FnOnce(&mut Control)) -> Option<Box<Control>> {
    let mut control = Box::<Control>::default();
    set(&mut control);
    Some(control)
}

/// The MP_CAPABLE of the segment, if this host supports it. RFC 8684 §3.1: the version must match,
/// the hosts must have a hash algorithm in common, and the extensibility bit must not be set. Any
/// other option counts as absent.
fn acceptable(segment: &Segment) -> Option<MpCapable> {
    let capable = segment.options.control.as_ref()?.capable?;
    let flags = capable.flags;
    let fits = capable.version == VERSION && flags.hmac_sha256 && !flags.extensibility;
    fits.then_some(capable)
}

impl Connection {
    /// Open the connection: the first subflow sends a SYN.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        local: SocketAddress,
        remote: SocketAddress,
        fast_open: Option<FastOpen>,
    ) {
        let place = SubflowAddresses {
            now,
            purpose: Purpose::Initial,
            local,
            remote,
            local_address_id: 0,
            remote_address_id: 0,
        };
        let slot = self.add_subflow(Subflow::connect, place);
        self.open_receive_window(slot);
        if self.session.is_negotiating() {
            let syn = self.session.capable(CapableKeys::None);
            self.subflows[slot]
                .subflow
                .carry_handshake(option(|control| control.capable = Some(syn)));
        }
        if let Some(fast_open) = fast_open {
            self.subflows[slot].subflow.set_fast_open(fast_open);
        }
    }

    /// Answer the SYN that opens a connection.
    pub(crate) fn accept(&mut self, now: Instant, syn: &Segment, fast_open: Reception) {
        let place = SubflowAddresses {
            now,
            purpose: Purpose::Initial,
            local: syn.destination,
            remote: syn.source,
            local_address_id: 0,
            remote_address_id: 0,
        };
        let slot = self.add_subflow(|open| Subflow::accept(open, now, syn), place);
        self.open_receive_window(slot);
        if self.session.is_negotiating() {
            let offer = acceptable(syn).filter(|offer| offer.keys == CapableKeys::None);
            if let Some(offer) = offer {
                self.counters.mp_capable_syn_rx += 1;
                // RFC 8684 §3.1: checksums are used if either host requires them.
                self.session.handle_checksum_flag(offer.flags);
                let answer = self.session.capable(CapableKeys::Sender(self.session.key()));
                self.subflows[slot]
                    .subflow
                    .carry_handshake(option(|control| control.capable = Some(answer)));
            } else {
                self.session.fall_back();
            }
        }
        match fast_open {
            Reception::Usual => {}
            Reception::Cookie(cookie) => {
                let fast_open = FastOpen { cookie, data: Payload::EMPTY };
                self.subflows[slot].subflow.set_fast_open(fast_open);
            }
            Reception::ReceiveData => self.receive_syn_data(now, slot, syn),
        }
    }

    /// The application gets the data of the SYN, and may answer, before the handshake is complete. RFC
    /// 7413 §4.2.2. The data has no data sequence numbers. RFC 8684 appendix B.
    fn receive_syn_data(&mut self, now: Instant, slot: Slot, syn: &Segment) {
        let window = self.recv.queue.accepted_window();
        let ctx = &mut self.subflows[slot];
        ctx.subflow.receive_syn_data(now, syn, window);
        let taken = ctx.subflow.receiver().nxt() - 1;
        ctx.mappings.begin_at(1 + taken);
        self.session.had_data_in_syn(taken as u16);
        self.send.widen(1, u64::from(syn.header.window));
        self.open(now, slot, Event::Accepted);
        self.handle_payload(now, slot);
        self.subflows.refresh(slot);
    }

    /// The window begins as the first subflow opens it.
    fn open_receive_window(&mut self, slot: Slot) {
        let first = self.subflows[slot].subflow.first_window();
        self.recv.queue.window_mut().begin_at(first);
    }

    /// Open a further subflow. RFC 8684 §3.2.
    pub(crate) fn join(&mut self, now: Instant, request: &SubflowRequest, port: u16) {
        let SubflowRequest { local, remote, remote_address_id, backup } = *request;
        let Some(agreed) = self.session.keys() else { return };
        let place = SubflowAddresses {
            now,
            purpose: Purpose::Join,
            local: SocketAddress::new(local.address, port),
            remote,
            local_address_id: local.id,
            remote_address_id,
        };
        let slot = self.add_subflow(Subflow::connect, place);
        let nonce = self.secrets.draw("nonce") as u32;
        let mut ctx = self.subflows.edit(slot);
        ctx.set_nonces(Nonces { local: nonce, ..Nonces::default() });
        ctx.subflow.request_priority(backup);
        ctx.subflow.carry_handshake(option(|control| {
            let token = keys::token(agreed.remote);
            control.join = Some(MpJoin::Syn { backup, address_id: local.id, token, nonce });
        }));
    }

    /// The SYN/ACK arrived: process the peer's answer.
    pub(super) fn on_syn_ack(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        match self.subflows[slot].subflow.identity().purpose {
            Purpose::Initial => self.on_capable_syn_ack(now, slot, segment),
            Purpose::Join => self.on_join_syn_ack(slot, segment),
        }
    }

    /// RFC 8684 §3.7.
    fn on_capable_syn_ack(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        self.subflows[slot].subflow.carry_handshake(None);
        self.on_data_of_syn_taken(slot);
        if self.session.is_negotiating() {
            // RFC 8684 §3.1: the listener chooses one of the offered hash algorithms, of which
            // there is only one.
            let answer = acceptable(segment).filter(|capable| capable.flags.unassigned == 0);
            match answer.map(|capable| (capable.keys, capable.flags)) {
                Some((CapableKeys::Sender(key), flags)) => {
                    self.counters.mp_capable_syn_ack_rx += 1;
                    self.offer_outcome = Some(OfferOutcome::Accepted);
                    self.session.handle_checksum_flag(flags);
                    self.agree(slot, key, flags);
                }
                _ => {
                    self.counters.mp_capable_fallback_syn_ack += 1;
                    if self.subflows[slot].subflow.has_just_omitted_capable() {
                        self.offer_outcome = Some(OfferOutcome::Lost);
                    }
                    self.fall_back();
                }
            }
        }
        self.plan_opening_acknowledgement(slot);
        self.open(now, slot, Event::Connected);
    }

    /// The SYN/ACK acknowledges the SYN's data, or not. In that case the data follows as usual data.
    /// RFC 7413 §4.2.2.
    fn on_data_of_syn_taken(&mut self, slot: Slot) {
        let taken = self.subflows[slot].subflow.una() - 1;
        if taken > 0 {
            self.send.queue.map_next(taken as u32, slot, SubflowSet::EMPTY);
            self.send.queue.acknowledge(1 + taken);
            self.session.had_data_in_syn(taken as u16);
        }
    }

    /// The last step of the handshake arrived, so the connection is open at the listener.
    pub(super) fn on_third_ack(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        let ctx = &mut self.subflows[slot];
        let passive = self.session.is_listener() || ctx.subflow.identity().purpose == Purpose::Join;
        self.counters.passive_opens += u64::from(passive);
        ctx.subflow.carry_handshake(None);
        if ctx.subflow.identity().purpose == Purpose::Join {
            return self.on_join_ack(now, slot, segment);
        }
        if self.session.is_negotiating() {
            match acceptable(segment).and_then(|capable| self.session.initiator(&capable)) {
                Some((key, flags)) => {
                    self.counters.mp_capable_ack_rx += 1;
                    self.agree(slot, key, flags);
                }
                None => {
                    self.counters.mp_capable_fallback_ack += 1;
                    self.fall_back();
                }
            }
        }
        let simultaneous = self.session.is_initiator();
        let event = if simultaneous { Event::Connected } else { Event::Accepted };
        self.open(now, slot, event);
    }

    /// Both hosts use Multipath TCP, and `remote` is the peer's key.
    fn agree(&mut self, slot: Slot, remote: u64, flags: CapableFlags) {
        let subflow = &self.subflows[slot].subflow;
        self.session.agree(remote, flags, subflow.identity().local, subflow.identity().remote);
    }

    /// RFC 8684 §3.7: continue as plain TCP.
    pub(crate) fn fall_back(&mut self) {
        self.session.fall_back();
        self.outbox.tell(Event::FellBack);
    }

    fn open(&mut self, now: Instant, slot: Slot, event: Event) {
        // With data in the SYN, the connection was open before the third ACK.
        let is_new = self.session.is_opening();
        self.session.open();
        self.settle_options(slot);
        if is_new {
            self.outbox.tell(event);
        }
        // An application may have been waiting that wrote before the connection was open.
        self.outbox.tell_writable();
        if self.session.is_listener() && !self.session.is_negotiating() {
            self.start_path_manager(now);
        }
        if self.session.is_tcp() {
            self.subflows[slot].subflow.confirm();
        }
    }

    pub(super) fn settle_options(&mut self, slot: Slot) {
        let carries = match self.session.is_tcp() {
            true => Carries::Nothing,
            false => self.mapping_carried(),
        };
        let (ctx, views) = self.subflows.with_views(slot);
        ctx.subflow.set_carries(carries, views);
        self.subflows.refresh(slot);
    }

    /// The options that data segments of Multipath TCP carry from now on.
    pub(super) fn mapping_carried(&self) -> Carries {
        let (checksum, wide, wide_ack) =
            (self.session.checksums(), self.send.is_wide(), self.recv.wide_acks());
        Carries::Mapping { checksum, wide, wide_ack }
    }

    /// The size of data sequence numbers changes.
    pub(super) fn settle_all_options(&mut self) {
        for slot in self.subflows.slots() {
            if self.subflows[slot].subflow.is_established() {
                self.settle_options(slot);
                self.send.queue.recut(slot, self.subflows.view(slot).mss);
            }
        }
    }

    /// RFC 8684 §3.2: the listener proves that it knows the keys.
    fn on_join_syn_ack(&mut self, slot: Slot, segment: &Segment) {
        let join = segment.options.control.as_ref().and_then(|control| control.join);
        let wanted = self.wants_subflows();
        let ctx = &mut self.subflows[slot];
        let (Some(MpJoin::SynAck { backup, address_id, truncated_hmac, nonce }), Some(agreed)) =
            (join, self.session.keys())
        else {
            ctx.subflow.reset(Some(because(ResetReason::MPTCP_SPECIFIC)));
            return;
        };
        self.counters.join_syn_ack_rx += 1;
        if !wanted {
            ctx.subflow.reset(Some(because(ResetReason::MPTCP_SPECIFIC)));
            return;
        }
        ctx.on_nonce(nonce);
        ctx.subflow.on_join_answer(address_id, backup);
        let expected = keys::truncated_64(&agreed.proof_of_peer(ctx.nonces()));
        if !keys::equal_in_constant_time(&expected.to_be_bytes(), &truncated_hmac.to_be_bytes()) {
            self.counters.join_syn_ack_hmac_failure += 1;
            ctx.subflow.reset(Some(because(ResetReason::MPTCP_SPECIFIC)));
            return;
        }
        // From the third ACK on, the peer may have data on both subflows.
        self.fallback.peer_may_spread();
        let hmac = agreed.proof(ctx.nonces());
        ctx.subflow.carry_handshake(option(|control| {
            control.join = Some(MpJoin::Ack { hmac: keys::truncated_160(&hmac) });
        }));
        self.settle_options(slot);
    }

    /// RFC 8684 §3.2: the initiator proves that it knows the keys.
    fn on_join_ack(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        let join = segment.options.control.as_ref().and_then(|control| control.join);
        let ctx = &mut self.subflows[slot];
        let (Some(MpJoin::Ack { hmac }), Some(agreed)) = (join, self.session.keys()) else {
            ctx.subflow.reset(Some(because(ResetReason::MPTCP_SPECIFIC)));
            return;
        };
        self.counters.join_ack_rx += 1;
        let expected = agreed.proof_of_peer(ctx.nonces());
        if !keys::equal_in_constant_time(&keys::truncated_160(&expected), &hmac) {
            self.counters.join_ack_hmac_failure += 1;
            ctx.subflow.reset(Some(because(ResetReason::MPTCP_SPECIFIC)));
            return;
        }
        self.settle_options(slot);
        self.on_subflow_ready(now, slot);
        // Without another subflow, a peer that has nothing to send may send no further segment.
        if self.config.platform.joins.used_from_next_segment && self.subflows.have_several() {
            self.scheduling.on_pushed();
        }
    }

    /// A joined subflow can carry data at both ends.
    pub(super) fn on_subflow_ready(&mut self, now: Instant, slot: Slot) {
        self.subflows.edit(slot).subflow.carry_handshake(None);
        self.timers.stop(ConnectionTimer::Orphan);
        self.paths.end_move();
        self.fallback.both_may_spread();
        self.abandon_failing();
        let id = self.subflows[slot].subflow.id();
        self.outbox.tell(Event::SubflowEstablished(id));
        self.reinject_from_failed();
        if self.send.queue.fin_outstanding() && self.data_rto.timeouts() > 0 {
            // No DATA_FIN has reached the peer so far.
            self.data_fin.send_on(slot);
        }
        self.tell_path_manager(now, &PathEvent::SubflowEstablished(id));
    }

    /// MP_CAPABLE with both keys, while the peer may not have this host's key. RFC 8684 §3.1.
    #[inline]
    pub(super) fn keys_to_repeat(&self) -> Option<MpCapable> {
        if !self.session.is_initiator() {
            return None;
        }
        let subflow = &self.subflows.first()?.subflow;
        let initial = subflow.identity().purpose == Purpose::Initial;
        (initial && !subflow.is_confirmed()).then(|| self.session.capable_with_keys()).flatten()
    }

    /// Outcome of the attempt to use TCP Fast Open, if the SYN/ACK of the first subflow shows one.
    pub(crate) fn fast_open_outcome(
        &self,
        slot: Slot,
        syn_ack: &Segment,
    ) -> Option<FastOpenOutcome> {
        let subflow = &self.subflows[slot].subflow;
        subflow.is_established().then(|| subflow.fast_open_outcome(syn_ack)).flatten()
    }

    /// Outcome of the offer of Multipath TCP, once after the SYN/ACK has shown one.
    pub(crate) fn take_offer_outcome(&mut self) -> Option<(OfferOutcome, SynFallbackRule)> {
        self.offer_outcome.take().map(|outcome| (outcome, self.config.platform.syn_fallback))
    }

    /// Returns `true` if the handshake of the first subflow is in progress, whether the application
    /// knows the connection or not.
    pub(crate) fn is_half_open(&self) -> bool {
        self.session.is_opening()
            || (self.session.has_data_in_syn()
                && self.subflows.first().is_some_and(|ctx| ctx.subflow.is_opening()))
    }

    /// This host's token, by which joins identify the connection.
    pub(crate) fn token(&self) -> u32 {
        self.session.token()
    }
}

/// The option that gives a reason for a reset. RFC 8684 §3.6: prohibited or incomprehensible
/// actions stay so. For other reasons, a different route, more resources or less traffic may help.
pub(crate) fn because(reason: ResetReason) -> MpTcprst {
    let for_good = [ResetReason::PROHIBITED, ResetReason::MPTCP_SPECIFIC].contains(&reason);
    MpTcprst { unassigned: 0, transient: !for_good, reason }
}
