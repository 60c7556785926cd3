//! Header prediction: usual segments skip most steps. Linux: `tcp_rcv_established`. Prediction of polls:
//! a connection that has no data to send looks for none.
//!
//! In a bulk transfer, nearly every segment brings data or an acknowledgement and no rare option, on a
//! subflow in its usual state. Most steps of [`Connection::handle_segment`] find nothing to do for it.
//! Header prediction leaves out these steps and no others, so the result is the same. The soak compares
//! runs with and without it.

use std::collections::VecDeque;

use anabranch_wire::mptcp::Dss;
use anabranch_wire::{Flags, Instant, Payload, PooledSegment, Segment};

use super::Connection;
use super::scheduling::FullBuffers;
use super::timer::ConnectionTimer;
use crate::platform::DataAckRule;
use crate::subflow::{DataLevel, RxContext};
use crate::view::Slot;

/// Segments of one poll, so that large windows take no memory besides the links' queues.
const MOST_AT_ONCE: usize = 64;

impl Connection {
    /// Take the segment if it is a usual one. Otherwise returns `false`, and nothing has changed.
    #[inline]
    pub(super) fn handle_predicted(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &mut Segment,
    ) -> bool {
        let has_dss = segment.options.dss.is_some();
        if !self.is_usual()
            || has_dss != self.session.is_mptcp()
            || segment.options.control.is_some()
        {
            return false;
        }
        let (window, shared_window) = self.accepted_window();
        let (ctx, views) = self.subflows.with_views(slot);
        let optionless = !has_dss && !segment.payload.is_empty();
        let optionless_end = optionless.then(|| ctx.subflow.end_of(segment));
        let arrived = RxContext { window, shared_window, views };
        let Some(predicted) = ctx.subflow.handle_predicted(now, segment, &arrived) else {
            return false;
        };
        self.data_rto.on_segment();
        self.data_fin.on_segment();
        match &segment.options.dss {
            Some(dss) => {
                ctx.signs.on_dss(now);
                self.handle_data_ack(now, slot, dss, segment);
                self.handle_usual(now, slot, predicted.payload, dss);
            }
            None => {
                optionless_end.into_iter().for_each(|end| ctx.signs.on_optionless_payload(end));
                self.handle_plain(now, slot, segment);
                self.handle_usual_plain(now, slot, predicted.payload);
            }
        }
        self.abort_if_data_is_lost();
        match predicted.acknowledges {
            true => self.subflows.refresh(slot),
            false => self.subflows.refresh_after_receiving(slot),
        }
        self.end_segment(now, slot);
        true
    }

    /// Handle the next payload of the subflow, which may be empty, from a segment with this DSS
    /// option. If a mapping covers exactly the payload, the payload goes straight to the stream.
    #[inline]
    fn handle_usual(&mut self, now: Instant, slot: Slot, payload: Payload, dss: &Dss) {
        let mapping = self.mapping_of(slot, dss);
        let held = self.recv.queue.out_of_order_bytes();
        let ctx = &mut self.subflows[slot];
        let is_usual = !ctx.awaits_mapping()
            && !ctx.subflow.receiver().has_ready()
            && !ctx.subflow.reset_is_due();
        let passes = is_usual
            && match &mapping {
                Some(mapping) => ctx.mappings.pass_with(mapping, payload.len() as u64),
                None => payload.is_empty(),
            };
        if !passes {
            if !payload.is_empty() {
                ctx.subflow.put_back(payload);
            }
            if let Some(mapping) = mapping {
                self.add_mapping(slot, mapping);
            }
            return self.handle_payload(now, slot);
        }
        if let Some(mapping) = mapping {
            self.handle_mapped(slot, mapping.data, payload);
            self.note_data_hole(slot, held);
        }
        self.plan_acknowledgement(slot);
    }

    /// The same without Multipath TCP, where the subflow's bytes are the stream's.
    #[inline]
    fn handle_usual_plain(&mut self, now: Instant, slot: Slot, payload: Payload) {
        if !payload.is_empty() {
            self.recv.queue.append(payload);
            self.outbox.tell_readable();
        }
        self.handle_payload(now, slot);
    }

    /// No handshake is under way, and Multipath TCP has its path manager and the peer's window.
    #[inline]
    fn is_usual(&self) -> bool {
        let ready = || {
            self.paths.is_started()
                && !self.send.has_no_window()
                && self.config.platform.data_ack != DataAckRule::BeforeAck
        };
        self.config.header_prediction
            && self.session.is_open()
            && (!self.session.is_mptcp() || ready())
    }

    /// Returns `true` if the data level of an open connection has nothing to send for now: neither new
    /// data nor copies, no probe, no announcement and no end of the stream.
    ///
    /// Then the steps between urgent segments and acknowledgements find nothing to do but
    /// [`Connection::pass_over_data`]. This is never true if a step might change any other state.
    #[inline]
    pub(super) fn offers_no_data(&self, now: Instant) -> bool {
        self.config.header_prediction
            && self.lacks_data_or_room()
            && self.session.is_open()
            && !self.send.queue.is_finished()
            && !self.send.queue.has_mapped_to_send()
            && !self.subflows.are_paced()
            && !self.subflows.want_tail_probe()
            && !self.data_fin.is_due()
            && self.paths.has_nothing_to_tell(now)
    }

    /// Nothing is unsent and the remedies are not to be asked, or no subflow has room and the scheduler
    /// waits for that.
    #[inline]
    fn lacks_data_or_room(&self) -> bool {
        if !self.scheduling.may_admit_more() {
            return true;
        }
        match self.send.queue.unsent() {
            0 => {
                !self.send.writer_waits()
                    || self.scheduling.has_asked_remedies()
                    || self.subflows.len() < 2
            }
            _ => {
                self.scheduling.waits_for_room()
                    && !self.send.number_width_is_due()
                    && self.subflows.are_full()
            }
        }
    }

    /// A segment was sent. Nothing has happened since, so what other segments say of the data level is the
    /// same: send those as well that follow at once. If `still_offers_none`, the connection
    /// [offers no data](Connection::offers_no_data).
    pub(super) fn poll_following(
        &mut self,
        now: Instant,
        level: &DataLevel,
        mut still_offers_none: bool,
        following: &mut VecDeque<PooledSegment>,
    ) {
        let mss = self.subflows.largest_mss();
        while self.config.header_prediction
            && self.subflows.largest_mss() == mss
            && following.len() < MOST_AT_ONCE
            && level.holds_for_all(self.send.is_wide())
            && !self.has_path_work(now)
        {
            debug_assert!(!still_offers_none || self.offers_no_data(now));
            let offers_data = !still_offers_none && !self.offers_no_data(now);
            if !offers_data && self.subflows.are_quiet() {
                return self.settle_without_data(now);
            }
            let Some(segment) = self.poll_or_settle(now, level, offers_data) else { return };
            still_offers_none = !offers_data && is_pure_ack(&segment);
            self.count(&segment);
            following.push_back(segment);
        }
    }

    /// The effects of looking for data, if there is none to send.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn pass_over_data(&mut self, now: Instant) {
        if !self.scheduling.may_admit_more() {
            return;
        }
        self.timers.stop(ConnectionTimer::Scheduler);
        let full = match self.send.queue.unsent() {
            0 => self.full_buffers(),
            _ => {
                self.note_pending_timers(now);
                FullBuffers::default()
            }
        };
        self.scheduling.limited_by(now, full);
    }
}

/// Returns `true` if the segment is an acknowledgement, with any options. Sending it changes neither the
/// data to be sent nor the room for it.
#[inline]
pub(super) fn is_pure_ack(segment: &Segment) -> bool {
    segment.header.flags == Flags::ACK && segment.payload.is_empty()
}
