//! Choice of the next segment and of its subflow.

use std::collections::VecDeque;

use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Flags, Instant, PooledSegment, Segment};

use super::Connection;
use super::prediction::is_pure_ack;
use super::receiver::EarlyAcknowledgement;
use super::reinjection::RetransmitCause;
use super::schedule::SubflowChoice;
use super::timer::ConnectionTimer;
use crate::remedy::{RemedyActions, RemedyContext};
use crate::scheduler::Pending;
use crate::subflow::{Carries, DataLevel, MappingMeta};
use crate::trace::TraceKind;
use crate::view::{Slot, SubflowSet, SubflowView, Usability};

/// Full segments that must follow a probe of the path MTU, so that duplicate acknowledgements show its
/// loss. Linux: `tcp_mtu_probe`, with a reordering of 3.
const PROBE_FOLLOWERS: u64 = 4;

impl Connection {
    /// The next segment to send, if any. Segments that follow it at once go to `following`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        following: &mut VecDeque<PooledSegment>,
    ) -> Option<PooledSegment> {
        self.settled = false;
        self.limit_wait_for_peer(now);
        if let Some(segment) = self.acknowledge_early(now) {
            return Some(segment);
        }
        let mss = self.subflows.largest_mss();
        let (window, update_is_due) = self.recv.queue.poll_window(mss);
        if update_is_due {
            self.subflows.demand_acks();
        }
        let offers_data = !self.offers_no_data(now);
        if !offers_data && self.subflows.are_quiet() {
            self.settle_without_data(now);
            return None;
        }
        let level = self.data_level_with(window);
        let first = self.poll_or_settle(now, &level, offers_data)?;
        if self.subflows.largest_mss() == mss {
            let still_offers_none = !offers_data && is_pure_ack(&first);
            self.poll_following(now, &level, still_offers_none, following);
        }
        Some(first)
    }

    /// Returns `true` if nothing was left to send after the last poll, and no subflow is to be opened.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.settled && !self.has_requests()
    }

    /// The next segment with the data-level fields of `level`. If there is none, there is nothing to send
    /// for now.
    pub(super) fn poll_or_settle(
        &mut self,
        now: Instant,
        level: &DataLevel,
        offers_data: bool,
    ) -> Option<PooledSegment> {
        let segment = self.poll_segment(now, level, offers_data);
        match segment {
            Some(_) => self.recv.queue.on_advertised(level.window),
            None => self.settle(now),
        }
        segment
    }

    /// There is nothing to send for now.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if self.subflows.are_paced() {
            let lacks_data = match self.session.is_tcp() {
                true => self.send.queue.unsent() < self.subflows.largest_mss(),
                false => self.config.platform.subflows_are_application_limited,
            };
            self.subflows.end_bursts(now, lacks_data);
        }
        self.subflows.settle();
        self.settled = true;
    }

    /// The same, where [`Connection::offers_no_data`] and no subflow has anything to send.
    #[inline]
    pub(super) fn settle_without_data(&mut self, now: Instant) {
        self.pass_over_data(now);
        self.subflows.settle_all();
        self.settled = true;
    }

    /// `offers_data` is false if [`Connection::offers_no_data`].
    fn poll_segment(
        &mut self,
        now: Instant,
        level: &DataLevel,
        offers_data: bool,
    ) -> Option<PooledSegment> {
        debug_assert!(self.subflows.untouched_are_idle());
        for slot in self.subflows.touched().slots() {
            if let Some(segment) = self.subflows[slot].subflow.poll_transmit(now, level) {
                self.subflows.refresh(slot);
                return Some(segment);
            }
        }
        if !offers_data {
            self.pass_over_data(now);
        } else {
            if self.session.is_open() && self.scheduling.may_admit_more() {
                if let Some(segment) = self.poll_data(now, level) {
                    return Some(segment);
                }
                self.scheduling.limited_by(now, self.full_buffers());
            }
            self.plan_fin();
            if self.paths.has_removals() {
                self.signal_removals();
            }
            self.signal_addresses(now);
            if self.data_fin.is_due() {
                self.subflows.touch_all();
            }
        }
        for slot in self.subflows.touched().slots() {
            let data_fin = self.data_fin_for(now, slot);
            let ctx = &mut self.subflows[slot];
            if !ctx.subflow.has_more_to_say() {
                continue;
            }
            let level = DataLevel { data_fin, ..*level };
            let probe = if ctx.subflow.wants_tail_probe() {
                ctx.subflow.send_tail_probe(now, &level)
            } else {
                None
            };
            let segment = probe.or_else(|| ctx.subflow.poll_acknowledge(now, &level));
            if let Some(segment) = segment {
                self.on_acknowledgement(slot, &segment);
                return Some(segment);
            }
        }
        self.reap(now);
        None
    }

    /// The segment leaves: count its signals.
    #[inline]
    pub(crate) fn count(&mut self, segment: &Segment) {
        self.counters.on_sent(segment);
    }

    /// Acknowledge the latest data, with the window before the application has read all of it.
    fn acknowledge_early(&mut self, now: Instant) -> Option<PooledSegment> {
        let EarlyAcknowledgement { slot, edge } = self.recv.take_early_acknowledgement()?;
        let window = match edge {
            Some(edge) => self.recv.queue.advertise_up_to(edge, self.subflows.largest_mss()),
            // Linux: at least the window that another subflow has advertised (`mptcp_set_rwin`).
            None => self.subflows[slot].subflow.advertised().max(self.recv.queue.promised_window()),
        };
        let level = self.data_level_with(window);
        let segment = self.subflows[slot].subflow.poll_acknowledge(now, &level)?;
        if edge.is_some() {
            self.recv.queue.on_advertised(window);
        }
        self.on_acknowledgement(slot, &segment);
        Some(segment)
    }

    /// Account for an acknowledgement, an end or a tail probe that is sent on the subflow in
    /// `slot`.
    #[inline]
    fn on_acknowledgement(&mut self, slot: Slot, segment: &Segment) {
        if segment.options.dss.is_some_and(|dss| dss.data_fin) {
            self.data_fin.went_alone(slot);
        }
        // A bare acknowledgement changes no field of the view.
        if segment.header.flags.contains(Flags::FIN) || !segment.payload.is_empty() {
            self.subflows.refresh(slot);
        }
    }

    /// Data-level fields of segments, with the current window.
    pub(super) fn data_level(&mut self) -> DataLevel {
        let (window, _) = self.recv.queue.poll_window(self.subflows.largest_mss());
        self.data_level_with(window)
    }

    fn data_level_with(&self, window: u64) -> DataLevel {
        let data_ack =
            self.session.is_mptcp().then(|| self.session.peer_idsn() + self.recv.queue.nxt()).map(
                |ack| match self.recv.wide_acks() {
                    true => WideOrNarrow::Wide(ack),
                    false => WideOrNarrow::Narrow(ack.low32()),
                },
            );
        DataLevel {
            window,
            data_ack,
            data_fin: None,
            keys: self.keys_to_repeat(),
            precedes_keys: self.session.is_negotiating() && self.session.is_open(),
            checksums: self.session.checksums(),
            wide: self.send.is_wide(),
            writer_waits: self.session.is_tcp() && self.send.writer_waits(),
            ends_quickack: self.config.platform.acknowledging.quick_beyond_data_hole
                && self.recv.queue.is_half_full(),
        }
    }

    /// Data, new or again.
    pub(super) fn poll_data(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        self.timers.stop(ConnectionTimer::Scheduler);
        if self.send.queue.has_mapped_to_send()
            && let Some(segment) = self.poll_mapped(now, level)
        {
            return Some(segment);
        }
        if !self.paths.probes.is_empty()
            && let Some(segment) = self.poll_probe(now, level)
        {
            return Some(segment);
        }
        if let Some(segment) = self.poll_tail_probe(now, level) {
            return Some(segment);
        }
        let unsent = self.send.queue.unsent();
        if unsent > 0 {
            self.poll_new_data(now, level, unsent)
        } else {
            self.on_all_sent(now, level)
        }
    }

    /// Data that was sent before, or that is assigned to a subflow.
    fn poll_mapped(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        if let Some(segment) = self.poll_reinjection(now, level) {
            return Some(segment);
        }
        if self.assigns_ahead() {
            self.assign_resends(now);
            self.assign_written(now);
        }
        self.poll_copy(now, level)
    }

    /// RFC 8985 §7.3: a tail loss probe is new data if there is any that may be sent.
    fn poll_tail_probe(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        let mut touched = self.subflows.touched().slots();
        let slot = touched.find(|slot| self.subflows[*slot].subflow.wants_tail_probe())?;
        if self.subflows.view(slot).usability != Usability::Usable {
            return None;
        }
        if self.send.queue.next_resend(slot).is_some() {
            let segment = self.send_resend(now, level, slot);
            self.subflows[slot].subflow.tail_probe_was_new(now);
            return segment;
        }
        if let Some(start) =
            self.send.queue.next_copy(slot).filter(|start| self.send.queue.is_assigned(*start))
        {
            let segment = self.retransmit_on(now, level, start, slot, RetransmitCause::Assigned);
            self.subflows[slot].subflow.tail_probe_was_new(now);
            return segment;
        }
        let len = self.next_segment_bytes(slot);
        if len == 0 || self.send.available_window() < len {
            return None;
        }
        // The scheduler is not asked, but the subflows for copies remain those that it chose.
        let choice =
            SubflowChoice { copies: self.scheduling.copies(), ..SubflowChoice::only(slot) };
        let segment = self.send_new(now, level, choice, len);
        self.subflows[slot].subflow.tail_probe_was_new(now);
        Some(segment)
    }

    fn poll_new_data(
        &mut self,
        now: Instant,
        level: &DataLevel,
        unsent: u64,
    ) -> Option<PooledSegment> {
        if self.send.check_number_width(now) {
            self.settle_all_options();
        }
        let mut unsent = unsent;
        let choice = loop {
            let choice = self.schedule(now, Pending::NewData { bytes: unsent })?;
            if !choice.held {
                break choice;
            }
            match self.assign(now, choice.slot) {
                Some(left) => unsent = left,
                None => return self.on_assigned(now, level),
            }
        };
        self.scheduling.set_copies(choice.copies);
        if self.would_overtake(choice.slot) {
            self.assign(now, choice.slot);
            return self.on_assigned(now, level);
        }
        let len = self.next_segment_bytes(choice.slot);
        if self.is_held_by_nagle(len, choice.slot) {
            return self.on_all_sent(now, level);
        }
        let len = if choice.to_edge { self.send.up_to_edge(len) } else { len };
        if choice.to_edge && self.is_short_held(choice.slot, len) {
            self.assign(now, choice.slot);
            return self.on_assigned(now, level);
        }
        let available = self.send.available_window();
        if available < len {
            return self.on_window_limited(now, level, choice, available);
        }
        let waiting = || self.send.queue.waiting();
        if self.subflows[choice.slot].subflow.waits_for_room(now, waiting) {
            return None;
        }
        Some(self.send_new(now, level, choice, len))
    }

    /// Returns `true` if new data on the subflow in `slot` would overtake data that waits there, while
    /// the peer may still read the only subflow as TCP. RFC 8684 §3.7: a fallback needs contiguous data.
    fn would_overtake(&self, slot: Slot) -> bool {
        !self.fallback.may_repeat()
            && self.send.queue.assigned().get(slot.index()).is_some_and(|waiting| *waiting > 0)
    }

    /// Assign written data, up to the peer's window and as the scheduler decides.
    fn assign_written(&mut self, now: Instant) {
        while self.send.queue.left_to_resend() == 0
            && self.send.available_window() > 0
            && let bytes @ 1.. = self.send.queue.unsent()
            && let Some(choice) = self.schedule(now, Pending::NewData { bytes })
            && choice.held
        {
            self.assign(now, choice.slot);
        }
        self.send.queue.push_assigned();
    }

    /// Assign the next segment's data to the subflow in `slot`, which sends it when it has room.
    /// Returns the bytes that follow and are not yet assigned.
    fn assign(&mut self, now: Instant, slot: Slot) -> Option<u64> {
        let len = self.next_segment_bytes(slot);
        let len = match self.send.queue.fragment() {
            Some(rest) => len.min(rest),
            None if self.is_held_by_nagle(len, slot) => return None,
            None => len,
        };
        let len = self.send.up_to_edge(len);
        if self.send.available_window() < len {
            return None;
        }
        let SubflowView { id, mss, .. } = *self.subflows.view(slot);
        let len = self.send.queue.assign_next(len as u32, slot, mss);
        self.scheduling.set_copies(SubflowSet::EMPTY);
        self.start_retransmission(now);
        if len < u64::from(mss) {
            self.send.went_short();
        }
        self.scheduling.on_sent(id, len);
        Some(self.send.queue.unsent()).filter(|unsent| *unsent > 0)
    }

    /// Handle the case that all data, or all that the shared window admits, is assigned. If the
    /// window is the limit and some subflow has room, the remedies may help.
    fn on_assigned(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        if let Some(segment) = self.poll_copy(now, level) {
            return Some(segment);
        }
        let available = self.send.available_window();
        let idle =
            self.subflows.views().iter().find(|view| view.can_send()).map(|view| view.id.slot);
        let slot = idle.filter(|slot| available < self.next_segment_bytes(*slot))?;
        self.on_window_limited(now, level, SubflowChoice::only(slot), available)
    }

    fn next_segment_bytes(&self, slot: Slot) -> u64 {
        let checksum = self.session.checksums();
        let carries = match self.is_first_data_with_keys() {
            true => Carries::Keys { checksum },
            false => self.mapping_carried(),
        };
        let (subflow, unsent) = (&self.subflows[slot].subflow, self.send.queue.unsent());
        let full = subflow.segment_bytes(carries);
        // A segment with which to search for the path MTU, if enough data follows to show its loss.
        let probe = subflow.mtu_probe_bytes();
        let probe = probe.filter(|bytes| *bytes > full && unsent >= bytes + PROBE_FOLLOWERS * full);
        unsent.min(probe.unwrap_or(full))
    }

    /// RFC 8684 §3.1: the initiator's first data repeats the keys.
    fn is_first_data_with_keys(&self) -> bool {
        self.session.is_mptcp()
            && self.send.queue.nxt() == self.session.first_mapped()
            && self.keys_to_repeat().is_some()
    }

    /// RFC 9293 §3.7.4: a short segment waits.
    pub(super) fn is_held_by_nagle(&self, len: u64, slot: Slot) -> bool {
        self.config.tcp.nagle
            && len < u64::from(self.subflows.view(slot).mss)
            && self.send.queue.una() < self.config.platform.nagle.awaits(self.send.short_segments())
            && !self.send.queue.is_finished()
    }

    fn send_new(
        &mut self,
        now: Instant,
        level: &DataLevel,
        choice: SubflowChoice,
        len: u64,
    ) -> PooledSegment {
        let SubflowChoice { slot, copies, .. } = choice;
        let start = self.send.queue.nxt();
        let with_keys = self.is_first_data_with_keys();
        let payload = self.send.queue.map_next(len as u32, slot, copies);
        let last = self.send.queue.unsent() == 0;
        let is_short = len < u64::from(self.subflows.view(slot).mss);
        if is_short {
            self.send.went_short();
        }
        // RFC 8684 §3.3.3: the DATA_FIN rides on the last data.
        let data_fin =
            last && self.session.is_mptcp() && self.send.queue.is_finished() && !with_keys;
        if data_fin {
            self.send.queue.fin_sent();
            self.data_fin.went_with_data();
        }
        let data_seq = self.session.data_seq(start);
        let meta = (!self.session.is_tcp()).then_some(MappingMeta {
            data_fin,
            with_keys,
            ..MappingMeta::new(data_seq)
        });
        let (ctx, views) = self.subflows.with_views(slot);
        ctx.carried.on_sent(ctx.subflow.send_next(), start, len);
        let id = ctx.subflow.id();
        let segment = ctx.subflow.send_data(now, level, payload, meta, last, views);
        if is_short {
            ctx.carried.on_short(ctx.subflow.send_next());
        }
        self.scheduling.on_sent(id, len);
        self.outbox.record(now, TraceKind::Scheduled { subflow: id, data_seq, len: len as u32 });
        self.subflows.refresh_after_sending(now, slot);
        self.start_retransmission(now);
        segment
    }

    /// The shared window is full, but a subflow could send: ask the remedies. RFC 8684 §3.3.5
    /// defines the window and leaves the reaction to the sender.
    fn on_window_limited(
        &mut self,
        now: Instant,
        level: &DataLevel,
        choice: SubflowChoice,
        available: u64,
    ) -> Option<PooledSegment> {
        if let Some(segment) = self.ask_remedies(now, level, choice.slot, true) {
            return Some(segment);
        }
        if self.send.queue.una() == self.send.queue.nxt() {
            let largest = self.subflows.largest_window();
            if self.send.may_use_small_window(available, largest) {
                return Some(self.send_new(now, level, choice, available));
            }
            self.arm_persist(now, available);
        }
        None
    }

    /// Everything was sent that makes a segment. If that is because the send buffer is full, the
    /// remedies may help.
    fn on_all_sent(&mut self, now: Instant, level: &DataLevel) -> Option<PooledSegment> {
        if !self.send.writer_waits()
            || self.scheduling.has_asked_remedies()
            || self.subflows.len() < 2
        {
            return None;
        }
        let choice = self.schedule(now, Pending::NewData { bytes: 0 })?;
        if choice.held {
            return None;
        }
        self.ask_remedies(now, level, choice.slot, false)
    }

    fn ask_remedies(
        &mut self,
        now: Instant,
        level: &DataLevel,
        slot: Slot,
        window_limited: bool,
    ) -> Option<PooledSegment> {
        // Remedies need two subflows, because one of them must block the other.
        if self.scheduling.has_asked_remedies()
            || self.subflows.len() < 2
            || !self.session.is_mptcp()
        {
            return None;
        }
        self.scheduling.ask_remedies(window_limited || self.send.queue.space() == 0);
        if self.subflows.remedies() == 0 {
            return None;
        }
        // Without outstanding data, there is nothing to reinject.
        let head = self.send.queue.head()?;
        let subflow = self.subflows.view(slot).id;
        if window_limited {
            self.outbox.record(now, TraceKind::WindowLimited { subflow });
        }
        let mut reinject = false;
        for remedy in 0..self.subflows.remedies() {
            let send_buffer_full = self.send.queue.space() == 0;
            let actions = self.subflows.ask(remedy, |remedy, subflows| {
                let head_carried_by = head.carried_by();
                let context = RemedyContext {
                    now,
                    subflows,
                    blocked: slot,
                    head_carried_by,
                    send_buffer_full,
                };
                match window_limited {
                    true => remedy.on_window_limited(&context),
                    false => remedy.on_send_buffer_full(&context),
                }
            });
            reinject |= actions.reinject;
            self.penalise(now, actions);
        }
        if !reinject || !self.fallback.may_repeat() {
            return None;
        }
        self.retransmit_on(now, level, head.start, slot, RetransmitCause::Opportunistic)
    }

    fn penalise(&mut self, now: Instant, actions: RemedyActions) {
        let Some((blocking, reduction)) = actions.penalise else { return };
        for slot in self.subflows.slots() {
            if blocking.contains(slot) {
                self.subflows.edit(slot).subflow.penalise(reduction);
                let view = self.subflows.view(slot);
                let (subflow, cwnd) = (view.id, view.cwnd);
                self.outbox.record(now, TraceKind::Penalised { subflow, cwnd });
            }
        }
    }
}
