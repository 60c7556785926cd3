//! Data-level processing of arriving segments.

use std::collections::VecDeque;

use anabranch_wire::mptcp::{
    CapableKeys, Control, Dss, MpCapable, MpTcprst, ResetReason, WideOrNarrow,
};
use anabranch_wire::{Flags, Instant, PooledSegment, Segment, SeqNumber};

use super::Connection;
use super::mapping::Received;
use super::session::SessionKeys;
use super::timer::ConnectionTimer;
use crate::path_manager::Retry;
use crate::platform::DataAckRule;
use crate::subflow::{Purpose, RxContext, State};
use crate::view::Slot;

/// Subflow bytes beyond RCV.NXT that are accepted when the data level has its own window: twice
/// the receive buffer, because a subflow may carry copies of data that another delivered.
const COPIES: u64 = 2;

impl Connection {
    /// Returns `true` if the segment belongs to an earlier connection between the ports of the
    /// subflow in `slot`.
    #[inline]
    pub(crate) fn is_about_another(&self, slot: Slot, segment: &Segment) -> bool {
        let subflow = &self.subflows[slot].subflow;
        subflow.is_opening() && subflow.is_about_another(segment, self.recv.queue.accepted_window())
    }

    /// An earlier connection has answered the SYN of the subflow in `slot`, and is reset.
    pub(crate) fn repeat_syn_soon(&mut self, now: Instant, slot: Slot) {
        self.subflows[slot].subflow.repeat_syn_soon(now);
    }

    /// End the subflow in `slot` if the SYN opens a new connection between its ports, and return the
    /// initial sequence number for that connection. The subflow stays if its connection has not ended.
    pub(crate) fn give_way(
        &mut self,
        now: Instant,
        slot: Slot,
        syn: &Segment,
    ) -> Option<SeqNumber> {
        if !self.is_done() && !self.session.has_ended() {
            return None;
        }
        let iss = self.subflows[slot].subflow.give_way(now, syn)?;
        self.subflows.refresh(slot);
        self.reap(now);
        Some(iss)
    }

    /// Set the initial sequence number of the first subflow, before it sends anything.
    pub(crate) fn begin_at(&mut self, iss: SeqNumber) {
        self.subflows[Slot(0)].subflow.begin_at(iss);
    }

    /// Handle a segment for the subflow in `slot`; its payload is moved out. RFC 8684 §3.4.1.
    /// Segments to send before all segments that are polled go to `pushed`.
    pub(crate) fn handle_segment(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
        pushed: &mut VecDeque<PooledSegment>,
    ) {
        self.scheduling.on_change();
        if !self.handle_predicted(now, slot, segment) {
            self.handle_any_segment(now, slot, segment, pushed);
        }
    }

    fn handle_any_segment(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
        pushed: &mut VecDeque<PooledSegment>,
    ) {
        if self.waits_for_keys(slot, segment) || self.subflows[slot].subflow.reset_pending() {
            return;
        }
        let (window, shared_window) = self.accepted_window();
        if self.config.platform.data_ack == DataAckRule::BeforeAck && shared_window {
            self.acknowledge_data_first(now, slot, segment, window, pushed);
        }
        let ctx = &mut self.subflows[slot];
        let was_opening = ctx.subflow.state() == State::SynSent;
        let was_confirmed = ctx.subflow.is_confirmed();
        let overtakes = ctx.subflow.overtakes_fourth_ack(segment);
        let optionless = segment.options.dss.is_none() && segment.options.control.is_none();
        if optionless && !was_opening && !segment.payload.is_empty() {
            ctx.signs.on_optionless_payload(ctx.subflow.end_of(segment));
        }
        let (ctx, views) = self.subflows.with_views(slot);
        let arrived = RxContext { window, shared_window, views };
        let una = ctx.subflow.una();
        let handled = ctx.subflow.handle_segment(now, segment, &arrived);
        let confirmed = ctx.subflow.is_confirmed() && !was_confirmed;
        let opened = handled.established || confirmed || segment.options.control.is_some();
        if ctx.subflow.una() > una || opened {
            self.scheduling.on_change();
        }
        if segment.header.flags.contains(Flags::RST) && ctx.subflow.state() == State::Closed {
            self.handle_reset(now, slot, segment);
        }
        if handled.established {
            if was_opening {
                self.on_syn_ack(now, slot, segment);
            } else {
                self.on_third_ack(now, slot, segment);
            }
        } else if confirmed && self.subflows[slot].subflow.identity().purpose == Purpose::Join {
            self.on_subflow_ready(now, slot);
        }
        if overtakes && self.config.platform.joins.resets_overtaken {
            self.subflows.break_off(slot, ResetReason::MPTCP_SPECIFIC);
        }
        // RFC 8684 §3.2: nothing counts on a subflow whose other end has not proved itself. RFC 9293
        // §3.10.7.4, LAST-ACK: an acceptable segment that closes the subflow in order counts.
        if handled.acceptable && !self.subflows[slot].subflow.reset_is_due() {
            self.data_rto.on_segment();
            self.data_fin.on_segment();
            self.answer_join(slot, segment);
            if optionless && self.session.is_mptcp() {
                if segment.header.flags.contains(Flags::FIN) {
                    self.subflows[slot].signs.on_optionless_fin();
                }
                self.handle_optionless(slot, handled.ack);
            }
            match self.session.is_mptcp() {
                true => self.handle_options(now, slot, segment),
                false => self.handle_plain(now, slot, segment),
            }
            self.handle_payload(now, slot);
        }
        self.abort_if_data_is_lost();
        self.subflows.refresh(slot);
        self.end_segment(now, slot);
    }

    /// Bytes that a subflow accepts beyond RCV.NXT, and whether its window is the connection's.
    #[inline]
    pub(super) fn accepted_window(&self) -> (u64, bool) {
        match self.session.is_mptcp() {
            true => ((self.recv.queue.window().most() * COPIES).max(1 << 16), true),
            false => (self.recv.queue.accepted_window(), false),
        }
    }

    /// Deliver the data that a segment has completed, and plan its acknowledgement. A subflow that
    /// is about to be reset delivers nothing, not even data from this segment.
    #[inline]
    pub(super) fn handle_payload(&mut self, now: Instant, slot: Slot) {
        if self.subflows[slot].subflow.reset_is_due() {
            return;
        }
        let held = self.recv.queue.out_of_order_bytes();
        self.deliver(now, slot);
        self.note_data_hole(slot, held);
        if self.session.is_mptcp() {
            self.check_optionless_end(slot);
            self.close_with_peer(slot);
        }
        self.plan_acknowledgement(slot);
    }

    /// Data may have arrived beyond a hole of the data level, where `held` bytes were before.
    #[inline]
    pub(super) fn note_data_hole(&mut self, slot: Slot, held: u64) {
        if self.recv.queue.out_of_order_bytes() > held
            && self.config.platform.acknowledging.quick_beyond_data_hole
        {
            let window = self.recv.queue.accepted_window();
            self.subflows[slot].subflow.enter_quickack(window);
        }
    }

    /// An acknowledgement that is due may be sent before the application has read.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn plan_acknowledgement(&mut self, slot: Slot) {
        if self.subflows[slot].subflow.receiver().ack_is_due() {
            self.offer_buffer(slot);
            let subflow = &self.subflows[slot].subflow;
            self.recv.plan_early_acknowledgement(slot, subflow);
        }
    }

    /// The segment is processed, and the view of the subflow in `slot` is current.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn end_segment(&mut self, now: Instant, slot: Slot) {
        self.subflows.detect_bottlenecks(now, slot);
        self.tune_buffers(now, slot);
        self.reap(now);
    }

    /// RFC 8684 §3.2: the initiator repeats the third ACK of a join until it is acknowledged.
    fn answer_join(&mut self, slot: Slot, segment: &Segment) {
        if segment.options.control.as_ref().is_some_and(|control| control.join.is_some()) {
            self.subflows[slot].subflow.demand_ack();
            self.plan_opening_acknowledgement(slot);
        }
    }

    /// The acknowledgement of the handshake's last segment may come before the application's data.
    pub(super) fn plan_opening_acknowledgement(&mut self, slot: Slot) {
        if self.config.platform.acknowledges_opening_early {
            self.recv.acknowledge_early(slot);
        }
    }

    /// RFC 8684 §3.1: until the listener has the initiator's key it cannot use a data sequence
    /// signal; the first data will be sent again, with the keys.
    fn waits_for_keys(&self, slot: Slot, segment: &Segment) -> bool {
        let subflow = &self.subflows[slot].subflow;
        let has_keys = segment.options.control.as_ref().is_some_and(|c| c.capable.is_some());
        subflow.state() == State::SynReceived
            && subflow.identity().purpose == Purpose::Initial
            && self.session.is_negotiating()
            && segment.options.dss.is_some()
            && !has_keys
            && !segment.header.flags.contains(Flags::RST)
    }

    /// The data sequence signal of an acceptable segment. RFC 8684 §3.3.
    fn handle_options(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        if let Some(dss) = &segment.options.dss {
            let confirmed = self.confirm_by(slot, dss);
            if confirmed {
                self.subflows[slot].signs.on_dss(now);
            }
            self.handle_data_ack(now, slot, dss, segment);
            self.handle_mapping(slot, dss);
            if confirmed {
                self.start_path_manager(now);
            }
        } else if let Some(control) = &segment.options.control
            && let Some(capable) = control.capable
        {
            self.handle_first_mapping(slot, capable);
        }
        if let Some(control) = &segment.options.control {
            self.handle_control(now, slot, control);
        }
        if self.send.has_no_window() {
            // The handshake's own windows count from the first byte that it does not acknowledge.
            let window = self.subflows[slot].subflow.advertised_window(segment);
            self.send.widen(self.send.queue.una(), window);
        }
    }

    /// RFC 8684 §3.1: the initiator's first data is mapped from IDSN + 1 at subflow sequence 1, if
    /// its sender knows the keys. Data of the SYN comes before that.
    fn handle_first_mapping(&mut self, slot: Slot, capable: MpCapable) {
        if let CapableKeys::WithData { sender, receiver, data_len, checksum } = capable.keys
            && let Some(SessionKeys { local, remote }) = self.session.keys()
            && (sender, receiver) == (remote, local)
            && self.session.is_listener()
            && self.subflows[slot].subflow.identity().purpose == Purpose::Initial
            && self.is_as_agreed(slot, checksum)
        {
            let len = u64::from(data_len);
            let first = self.session.first_mapped();
            let mapping = Received { subflow: first, data: first, len, data_fin: false, checksum };
            self.add_mapping(slot, mapping);
        }
    }

    /// Confirm the subflow if the signal shows that the peer has this host's key. Returns `true` if it
    /// does. After data in the SYN, the peer may send data before it has the key. Such a signal has no
    /// DATA_ACK. RFC 8684 appendix B.
    #[inline]
    fn confirm_by(&mut self, slot: Slot, dss: &Dss) -> bool {
        let subflow = &mut self.subflows[slot].subflow;
        if self.session.has_data_in_syn() && !subflow.is_confirmed() {
            if dss.data_ack.is_none() {
                return false;
            }
            subflow.demand_ack();
        }
        subflow.confirm();
        true
    }

    /// Handle a reset that passed validation.
    fn handle_reset(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        if let Some(dss) = &segment.options.dss
            && self.session.is_mptcp()
            && self.subflows[slot].subflow.is_confirmed()
        {
            self.handle_data_ack(now, slot, dss, segment);
        }
        let Some(control) = &segment.options.control else { return };
        self.counters.mp_rst_rx += u64::from(control.reset.is_some());
        self.counters.mp_fail_rx += u64::from(control.fail.is_some());
        let because_of = |reason| control.reset.is_some_and(|reset| reset.reason == reason);
        let ctx = &mut self.subflows[slot];
        ctx.set_retry(control.reset.map(retry_after));
        // RFC 8684 §3.7: the peer has discarded the payload that it received on this subflow.
        if control.fail.is_some()
            || because_of(ResetReason::MIDDLEBOX_INTERFERENCE)
            || because_of(ResetReason::MPTCP_SPECIFIC)
        {
            ctx.signs.mark_payload_unreliable();
        }
        if let Some(fastclose) = control.fastclose {
            self.handle_fastclose(fastclose);
        }
    }

    fn handle_control(&mut self, now: Instant, slot: Slot, control: &Control) {
        if let Some(prio) = control.prio {
            // RFC 8684 §3.3.8: it concerns the subflow that it arrives on.
            self.counters.mp_prio_rx += 1;
            self.subflows[slot].subflow.on_priority_request(prio.backup);
        }
        if let Some(removed) = &control.remove_addr {
            self.counters.rm_addr += removed.address_ids().len() as u64;
            self.forget_addresses(now, removed.address_ids());
            self.verify_liveness_of(now, slot, removed.address_ids());
        }
        if let Some(fastclose) = control.fastclose {
            self.handle_fastclose(fastclose);
        }
        if let Some(option) = &control.add_addr {
            self.handle_add_addr(now, slot, option);
        }
        if let Some(fail) = control.fail {
            self.counters.mp_fail_rx += 1;
            // If an infinite mapping came with it, there is nothing left to do.
            if self.session.is_mptcp() {
                self.handle_fail(slot, fail);
            }
        }
    }

    /// RFC 8684 §3.3.2: DATA_ACK acknowledges cumulatively, and the window counts from it.
    pub(super) fn handle_data_ack(
        &mut self,
        now: Instant,
        slot: Slot,
        dss: &Dss,
        segment: &Segment,
    ) {
        let Some(data_ack) = dss.data_ack else { return };
        let outstanding = self.send.queue.outstanding();
        let near = self.session.data_seq(*outstanding.start());
        let distance = data_ack.resolve(near).distance_from(near);
        let Some(offset) = outstanding.start().checked_add_signed(distance) else { return };
        if offset < 1 || offset > *outstanding.end() {
            return;
        }
        let subflow = &self.subflows[slot].subflow;
        let keeps = self.config.platform.keeps_larger_window;
        let window =
            if keeps { subflow.send_window().kept() } else { subflow.advertised_window(segment) };
        if self.send.widen(offset, window) && !keeps && self.data_rto.timeouts() > 0 {
            // The peer has room again for data that it may have dropped.
            self.timers.set(ConnectionTimer::Retransmission, now);
        }
        if self.send.queue.acknowledge(offset) {
            self.on_data_progress(now);
        }
    }

    pub(super) fn handle_mapping(&mut self, slot: Slot, dss: &Dss) {
        if let Some(mapping) = self.mapping_of(slot, dss) {
            self.add_mapping(slot, mapping);
        }
    }

    /// The mapping that a data sequence signal declares, if it is valid and finite. RFC 8684 §3.3.1.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn mapping_of(&mut self, slot: Slot, dss: &Dss) -> Option<Received> {
        let mapping = dss.mapping?;
        if matches!(mapping.data_seq, WideOrNarrow::Wide(_)) && self.recv.widen_acks() {
            self.settle_all_options();
        }
        let near = self.session.peer_idsn() + self.recv.queue.nxt();
        let distance = mapping.data_seq.resolve(near).distance_from(near);
        let data = self.recv.queue.nxt().checked_add_signed(distance)?;
        data.checked_add(u64::from(mapping.len))?;
        let next = self.subflows[slot].subflow.receiver().nxt();
        let subflow =
            next as i64 + i64::from(mapping.subflow_seq.0.wrapping_sub(next as u32) as i32);
        let subflow = u64::try_from(subflow).ok();
        let mut len = u64::from(mapping.len);
        if len == 0 {
            self.handle_infinite_mapping(slot, subflow.unwrap_or(0), data);
            return None;
        }
        let checksum = mapping.checksum;
        if !self.is_as_agreed(slot, checksum) {
            return None;
        }
        // RFC 8684 §3.3.3: the DATA_FIN is the mapping's last byte.
        len -= u64::from(dss.data_fin);
        if dss.data_fin && (len == 0 || checksum.is_none()) {
            if self.session.admits_data_fin(data, checksum) {
                self.handle_data_fin(slot, data + len);
            } else {
                self.counters.data_csum_err += 1;
            }
        }
        let data_fin = dss.data_fin;
        subflow.map(|subflow| Received { subflow, data, len, data_fin, checksum })
    }

    pub(super) fn add_mapping(&mut self, slot: Slot, mapping: Received) {
        let ctx = &mut self.subflows[slot];
        let next = ctx.subflow.receiver().nxt();
        let reach = self.recv.queue.window().most() * COPIES + (1 << 16);
        let near = mapping.subflow + mapping.len > next.saturating_sub(reach)
            && mapping.subflow < next + reach
            && !ctx.mappings.is_full(reach);
        if mapping.len > 0 && !(near && ctx.mappings.add(mapping)) {
            self.counters.dss_not_matching += 1;
        }
    }

    /// Plain TCP: the subflow's bytes are the stream's. RFC 8684 §3.7: after a fallback as well,
    /// only its ACKs count.
    pub(super) fn handle_plain(&mut self, now: Instant, slot: Slot, segment: &Segment) {
        let shift = self.fallback.sent_shift();
        let edge = self.subflows[slot].subflow.send_window().edge();
        if let Some(edge) = edge.checked_add_signed(shift) {
            self.send.set_edge(edge);
        }
        // The FIN has a number at subflow level only.
        let una = self.subflows[slot].subflow.una().checked_add_signed(shift);
        if self.send.queue.acknowledge(una.map_or(0, |una| una.min(self.send.queue.end()))) {
            self.on_data_progress(now);
        }
        let control = segment.options.control.as_ref();
        if segment.options.dss.is_some() || control.is_some() {
            let fails = control.is_some_and(|control| control.fail.is_some());
            self.handle_after_fallback(slot, segment.options.dss.as_ref(), fails);
        }
        if self.subflows[slot].subflow.end_announcement() {
            // RFC 8684 §3.7: from here on there are no options.
            self.settle_options(slot);
        }
    }

    /// Move the subflow's in-order data to the data level.
    fn deliver(&mut self, now: Instant, slot: Slot) {
        let ctx = &mut self.subflows[slot];
        if !self.session.is_mptcp() {
            while let Some(payload) = ctx.subflow.poll_received() {
                self.recv.queue.append(payload);
                self.outbox.tell_readable();
            }
            if self.peer_has_finished() {
                self.outbox.tell_readable();
            }
            return;
        }
        while let Some(payload) = self.subflows[slot].subflow.poll_received() {
            let mappings = &mut self.subflows[slot].mappings;
            if !self.config.header_prediction {
                mappings.push(payload);
            } else if let Some((data, payload)) = mappings.pass(payload) {
                self.handle_mapped(slot, data, payload);
            }
        }
        self.hand_over(now, slot);
        let ctx = &mut self.subflows[slot];
        if ctx.mappings.holds_more_than(self.recv.queue.window().most() * COPIES) {
            // RFC 8684 §3.3.1: payload without a mapping cannot be delivered.
            self.subflows.break_off(slot, ResetReason::MIDDLEBOX_INTERFERENCE);
        } else if ctx.awaits_mapping() {
            self.check_mapped(now, slot);
        }
    }

    /// The peer acknowledged data.
    fn on_data_progress(&mut self, now: Instant) {
        self.on_data_acknowledged(now);
        if !self.send.queue.buffer().grows_with_any_subflow() {
            self.wake_writer();
        }
    }
}

/// RFC 8684 §3.6: never if the reset is not transient (flag T). Too much outstanding data is meant
/// to start again; other reasons take time to pass.
fn retry_after(reset: MpTcprst) -> Retry {
    match reset.reason {
        _ if !reset.transient => Retry::Never,
        ResetReason::TOO_MUCH_OUTSTANDING_DATA => Retry::Soon,
        _ => Retry::Later,
    }
}
