//! The end of connections and subflows. RFC 8684 §3.3.3.

use anabranch_wire::mptcp::MpFastclose;
use anabranch_wire::{DataSeq, Duration, Instant};

use super::data_rto::DataRto;
use super::scheduling::FullBuffers;
use super::subflows::SubflowContext;
use super::timer::ConnectionTimer;
use super::{Connection, Registration};
use crate::error::ConnectionError;
use crate::event::Event;
use crate::path_manager::PathEvent;
use crate::platform::SilenceRule;
use crate::subflow::{State, SubflowEnd};
use crate::view::{Slot, SubflowView, Usability};

/// Time that a released connection waits for the end of the peer's stream. Linux: `tcp_fin_timeout`; RFC
/// 9293 §3.6 has no limit.
const RELEASED_WAIT: Duration = Duration::from_secs(60);

impl Connection {
    /// The application will write no more.
    pub(crate) fn close(&mut self) {
        self.send.queue.finish();
        if self.session.is_opening() && self.subflows.iter().all(|l| !l.subflow.is_established()) {
            for ctx in self.subflows.iter_mut() {
                ctx.subflow.finish(true);
            }
        }
    }

    /// The application will neither read nor write any more.
    pub(crate) fn release(&mut self) {
        self.recv.release();
        self.close();
        self.abort_if_data_is_lost();
    }

    /// If the application has released the connection, and only the end of the peer's stream is missing,
    /// do not wait for it without end.
    #[inline]
    pub(super) fn limit_wait_for_peer(&mut self, now: Instant) {
        if self.recv.is_released() {
            self.limit_wait_if_released(now);
        }
    }

    #[cold]
    fn limit_wait_if_released(&mut self, now: Instant) {
        if self.waits_only_for_peer() {
            let end = now + RELEASED_WAIT;
            self.timers.set_if_earlier(ConnectionTimer::GiveUp, end);
        }
    }

    /// Returns `true` if the application has released the connection, the peer has acknowledged the end of
    /// the stream, and only the end of its own stream is missing.
    pub(super) fn waits_only_for_peer(&self) -> bool {
        let end_is_acknowledged = || match self.session.is_mptcp() {
            true => self.send.queue.fin_acknowledged(),
            false => {
                let ctx = self.subflows.get(self.fallback.slot().index());
                ctx.is_some_and(|ctx| ctx.subflow.state() == State::FinWait2)
            }
        };
        self.recv.is_released()
            && !self.session.has_ended()
            && !self.peer_has_finished()
            && end_is_acknowledged()
    }

    /// The peer does not let a released connection end. Multipath TCP tells it so (Linux: `mptcp_worker`).
    /// TCP ends silently (`tcp_time_wait`, `tcp_write_err`), because a reset could make the peer discard data
    /// that it has acknowledged.
    pub(super) fn give_up_released(&mut self) {
        if self.session.is_mptcp() {
            return self.abort();
        }
        for slot in self.subflows.slots() {
            self.subflows.edit(slot).subflow.abandon(SubflowEnd::TimedOut);
        }
    }

    /// RFC 9293 §3.6.1: a reset tells the peer that this host has dropped data that nobody will
    /// read.
    #[inline]
    pub(super) fn abort_if_data_is_lost(&mut self) {
        if self.recv.has_lost_data() {
            self.abort();
        }
    }

    /// The application aborts the connection. Reset every subflow, and tell the peer that the
    /// connection has ended. RFC 8684 §3.5, the form with RST.
    pub(crate) fn abort(&mut self) {
        let key = self.session.keys().map(|keys| keys.remote);
        for ctx in self.subflows.iter_mut().filter(|ctx| !ctx.is_reaped()) {
            // The host reveals the peer's key only to a peer that has proved to know it.
            match key.filter(|_| ctx.subflow.is_confirmed()) {
                Some(receiver_key) => ctx.subflow.fastclose(MpFastclose { receiver_key }),
                None => ctx.subflow.reset(None),
            }
        }
        self.fail(ConnectionError::Aborted);
        self.recv.queue.discard();
    }

    /// The peer ends the connection with MP_FASTCLOSE, in the form with ACK or with RST. It must
    /// know this host's key. RFC 8684 §3.5.
    pub(super) fn handle_fastclose(&mut self, fastclose: MpFastclose) {
        if fastclose.receiver_key == self.session.key() && self.session.is_mptcp() {
            self.counters.mp_fastclose_rx += 1;
            self.fail(ConnectionError::Reset);
        }
    }

    /// All data was sent: send the end of the stream as well.
    pub(super) fn plan_fin(&mut self) {
        // Before the third ACK, it is open whether the stream ends with a DATA_FIN or with a FIN.
        if !self.session.is_open()
            || self.session.is_negotiating()
            || !self.send.queue.fin_is_next()
        {
            return;
        }
        match self.session.is_mptcp() {
            true => {
                self.send.queue.fin_sent();
                self.data_fin.send();
            }
            false => {
                // RFC 9293 §3.10.4: the FIN follows the data, and like the data must be inside the
                // peer's window.
                let slot = self.fallback.slot();
                let has_window = self.subflows[slot].subflow.has_window();
                if self.send.queue.una() == self.send.queue.end() || has_window {
                    self.subflows.edit(slot).subflow.finish(false);
                }
            }
        }
    }

    /// The DATA_FIN to send on the subflow in `slot`, if this subflow should carry it.
    pub(super) fn data_fin_for(&mut self, now: Instant, slot: Slot) -> Option<DataSeq> {
        if !self.data_fin.is_due() || self.keys_are_due() {
            return None;
        }
        let of = |usability| move |view: &&SubflowView| view.usability == usability;
        // Use subflows that do not answer only if there are no others. Otherwise a new one among
        // many would wait for its turn.
        let usable =
            match self.subflows.views().iter().any(|view| view.usability == Usability::Usable) {
                true => of(Usability::Usable),
                false => of(Usability::PotentiallyFailed),
            };
        let key = |view: &SubflowView| (view.srtt_or_max(), view.id.slot);
        let own = key(self.subflows.views().get(slot.index()).filter(usable)?);
        let all = || self.subflows.views().iter().filter(usable);
        // The best subflow first, then in turn: a dead path shows no other sign if this host has
        // nothing else to send.
        let turn = self.data_rto.timeouts() as usize % all().count();
        let on = self.data_fin.is_due_on().filter(|on| all().any(|view| view.id.slot == *on));
        let own_turn = match on {
            Some(on) => slot == on,
            None => all().filter(|view| key(view) < own).count() == turn,
        };
        if !own_turn {
            return None;
        }
        self.subflows[slot].subflow.demand_ack();
        self.start_retransmission(now);
        Some(self.session.data_seq(self.send.queue.end()))
    }

    /// RFC 8684 §3.1: the initiator's keys come first, on the third ACK or on data.
    fn keys_are_due(&self) -> bool {
        let totals = &self.subflows[Slot(0)].subflow.totals();
        self.keys_to_repeat().is_some() && totals.acks_sent == 0 && totals.segments_sent == 0
    }

    /// If the peer has closed the subflow in `slot` before the end of the stream, close it as well. No
    /// DATA_FIN can arrive on it, and the connection must not wait for one on a subflow that only this
    /// host keeps open. Linux: `__mptcp_close_subflow`.
    #[inline]
    pub(super) fn close_with_peer(&mut self, slot: Slot) {
        if self.subflows[slot].subflow.state() == State::CloseWait {
            self.close_with_peer_early(slot);
        }
    }

    #[cold]
    fn close_with_peer_early(&mut self, slot: Slot) {
        let lacks_mapping = self.subflows[slot].mappings.lacks_mapping();
        let is_early = self.session.is_mptcp() && !self.recv.queue.is_complete();
        if is_early && self.session.is_open() && !lacks_mapping {
            self.subflows.edit(slot).subflow.finish(false);
        }
    }

    /// Reinject the data of the subflow in `slot` that the peer has not acknowledged on it.
    pub(super) fn reinject_outstanding(&mut self, slot: Slot) {
        if !self.session.is_mptcp() {
            return;
        }
        let usable = self.subflows.usable();
        let start = self.session.data_seq(0);
        for (data_seq, len) in self.subflows[slot].subflow.outstanding_data() {
            let from = data_seq.distance_from(start) as u64;
            self.send.queue.reinject(from, from + len, usable);
        }
        // Data that waits for the only subflow of a host stays there, in order.
        if self.fallback.may_repeat() {
            self.send.queue.reassign(slot);
        }
    }

    /// The subflow in `slot` has ended or may have ended. Its data beyond a hole may be lost,
    /// although it was SACKed. RFC 8684 §3.3.6 requires the sender to keep all data until it is
    /// acknowledged at the data level.
    fn reinject_unacknowledged(&mut self, slot: Slot) {
        if !self.session.is_mptcp() {
            return;
        }
        let usable = self.subflows.usable();
        let start = self.session.data_seq(0);
        for (data_seq, len) in self.subflows[slot].subflow.unacknowledged_data() {
            let from = data_seq.distance_from(start) as u64;
            self.send.queue.reinject(from, from + len, usable);
        }
    }

    /// The subflow in `slot` has ended or may have ended: resend its data, or on some platforms all
    /// data (`__mptcp_close_ssk`). A sole subflow does not resend its own data, so that a fallback stays
    /// possible.
    pub(super) fn resend_for(&mut self, slot: Slot) {
        match self.config.platform.silence {
            SilenceRule::Periods(_) if self.session.is_mptcp() && self.subflows.have_several() => {
                self.resend_all();
            }
            _ => self.reinject_unacknowledged(slot),
        }
    }

    /// A subflow is available again that can carry data of subflows that do not answer.
    pub(super) fn reinject_from_failed(&mut self) {
        if self.config.platform.silence != SilenceRule::FirstTimeout {
            return;
        }
        for slot in self.subflows.slots() {
            if self.subflows.view(slot).usability == Usability::PotentiallyFailed {
                self.reinject_outstanding(slot);
            }
        }
    }

    /// RFC 8684 §3.3.3: once both DATA_FINs are acknowledged, close the subflows.
    fn close_subflows_when_done(&mut self, now: Instant) {
        if self.session.is_mptcp() && self.is_done() {
            for slot in self.subflows.slots() {
                if !self.subflows[slot].is_reaped() {
                    self.subflows.edit(slot).subflow.finish_with_peer(now);
                }
            }
        }
    }

    /// Process the subflows that have ended, and the end of the connection after its last subflow.
    #[inline]
    pub(super) fn reap(&mut self, now: Instant) {
        if self.is_done() || self.subflows.has_ended() {
            self.reap_ended(now);
        }
    }

    #[cold]
    fn reap_ended(&mut self, now: Instant) {
        self.close_subflows_when_done(now);
        for slot in self.subflows.slots() {
            if self.subflows[slot].has_just_ended() {
                self.reap_subflow(now, slot);
            }
        }
        self.finish_when_done(now);
    }

    fn reap_subflow(&mut self, now: Instant, slot: Slot) {
        let subflow = &self.subflows.reap(slot).subflow;
        let (id, local, remote) =
            (subflow.id(), subflow.identity().local, subflow.identity().remote);
        let (local_address_id, end) = (subflow.identity().local_address_id, subflow.end());
        self.outbox.register(Registration { slot, local, remote, exists: false });
        self.resend_for(slot);
        if self.subflows[slot].signs.payload_unreliable() && self.session.is_mptcp() {
            // RFC 8684 §3.7: reinject data that was not DATA_ACKed, even if the subflow
            // acknowledged it.
            self.send.queue.reinject_carried(slot, self.subflows.usable());
        }
        if self.fallback.failing().is_some_and(|failing| failing.slot == slot) {
            self.fallback.end_failing();
        }
        self.send.queue.forget_carrier(slot);
        if self.data_fin.lose(slot) && self.send.queue.fin_outstanding() {
            // RFC 8684 §3.3.6: resend a DATA_FIN that was lost with the subflow.
            self.data_fin.send();
        }
        if self.session.is_known() {
            let last = Box::new(self.stats_of(slot));
            self.outbox.tell(Event::SubflowClosed(last));
        }
        let (id, retry) = (Some(id), self.subflows[slot].retry());
        let reopens = self.config.platform.reopens_subflows;
        let closed = PathEvent::SubflowClosed { id, local_address_id, remote, retry, reopens };
        self.tell_path_manager(now, &closed);
        if self.subflows.iter().all(|ctx| ctx.is_reaped()) {
            self.on_last_subflow(now, end);
        }
    }

    fn on_last_subflow(&mut self, now: Instant, end: Option<SubflowEnd>) {
        if self.session.has_ended() {
            return;
        }
        if self.is_done() {
            return;
        }
        let finished = end == Some(SubflowEnd::Finished);
        let waits = self.session.is_mptcp() && self.session.is_open() && !finished;
        let may_come = self.session.is_listener()
            || self.expects_subflows()
            || (!self.config.platform.reopens_subflows && self.wants_subflows());
        if waits && may_come {
            // The timeout starts when the last working subflow ended.
            self.timers.set_if_earlier(
                ConnectionTimer::Orphan,
                now + self.config.platform.give_up.orphaned,
            );
            return;
        }
        self.give_up(match end {
            Some(SubflowEnd::Refused) => ConnectionError::Refused,
            Some(SubflowEnd::TimedOut) => ConnectionError::TimedOut,
            Some(SubflowEnd::Reset) => ConnectionError::Reset,
            _ => ConnectionError::NoSubflow,
        });
    }

    /// Returns `true` if both directions ended in order.
    pub(super) fn is_done(&self) -> bool {
        match self.session.is_mptcp() {
            true => self.send.queue.fin_acknowledged() && self.recv.queue.is_complete(),
            false => {
                let sent =
                    self.send.queue.is_finished() && self.send.queue.una() == self.send.queue.end();
                sent && self.peer_has_finished()
            }
        }
    }

    fn finish_when_done(&mut self, now: Instant) {
        if !self.session.is_open() || !self.is_done() {
            return;
        }
        // With Multipath TCP, both hosts know the end of the stream. Plain TCP also needs the FINs
        // acknowledged.
        let closing =
            |ctx: &SubflowContext| matches!(ctx.subflow.state(), State::TimeWait | State::Closed);
        if self.session.is_mptcp() || self.subflows.iter().all(closing) {
            self.session.end();
            self.scheduling.limited_by(now, FullBuffers::default());
            self.stop_timers();
            self.outbox.tell(Event::Closed);
        }
    }

    pub(super) fn stop_timers(&mut self) {
        self.timers.stop_all();
        self.data_rto = DataRto::default();
    }

    pub(super) fn fail(&mut self, error: ConnectionError) {
        self.end(Some(error));
    }

    /// No subflow is left, or none receives an answer. The peer acknowledges the last DATA_FIN only
    /// once before it disappears. If only that acknowledgement is missing, all data has arrived at
    /// both ends.
    pub(super) fn give_up(&mut self, error: ConnectionError) {
        let mptcp = self.session.is_mptcp();
        let arrived = mptcp
            && self.recv.queue.is_complete()
            && self.send.queue.una() == self.send.queue.end();
        let told = self.data_fin.was_told() && self.send.queue.fin_outstanding();
        self.end(Some(error).filter(|_| !(arrived && told)));
    }

    fn end(&mut self, error: Option<ConnectionError>) {
        if !self.session.has_ended() {
            let known = self.session.is_known();
            self.session.end();
            if error.is_some() && !self.config.platform.keeps_unread_data {
                self.recv.queue.discard();
            }
            for ctx in self.subflows.iter_mut().filter(|ctx| !ctx.subflow.reset_pending()) {
                ctx.subflow.reset(None);
            }
            self.stop_timers();
            if known {
                self.outbox.tell(error.map_or(Event::Closed, Event::Failed));
            }
        }
    }
}
