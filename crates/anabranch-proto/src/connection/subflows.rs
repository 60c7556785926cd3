//! The subflows of a connection, and their views for policies.

use std::ops::{Deref, DerefMut, Index, IndexMut};

use anabranch_wire::mptcp::ResetReason;
use anabranch_wire::{Duration, Instant};

use super::carried::Carried;
use super::data_rto::LONGEST_PAUSE;
use super::handshake::because;
use super::mapping::MappingTable;
use super::session::Nonces;
use super::signs::Signs;
use super::staleness::Silence;
use crate::bottleneck::{Detector, SegmentTotals};
use crate::counters::Counters;
use crate::path_manager::Retry;
use crate::remedy::{BufferContext, BufferSide, Remedy};
use crate::subflow::{Purpose, State, Subflow};
use crate::view::{Slot, SubflowId, SubflowSet, SubflowView, Usability};

/// A subflow and its state at the data level.
#[derive(Debug)]
pub(super) struct SubflowContext {
    pub(super) subflow: Subflow,
    pub(super) mappings: MappingTable,
    /// The data that it has carried.
    pub(super) carried: Carried,
    /// Observed treatment of options and payload by the path.
    pub(super) signs: Signs,
    /// Periods without progress.
    pub(super) silence: Silence,
    /// Nonces of a join in progress.
    nonces: Nonces,
    /// The end of the subflow has been processed.
    reaped: bool,
    /// Segments in the largest congestion window that the send buffer was tuned to.
    tuned_segments: u16,
    /// The peer's indication about another attempt when it reset the subflow. RFC 8684 §3.6.
    retry: Option<Retry>,
}

impl SubflowContext {
    fn new(subflow: Subflow) -> Self {
        SubflowContext {
            subflow,
            mappings: MappingTable::default(),
            carried: Carried::default(),
            signs: Signs::new(),
            silence: Silence::default(),
            nonces: Nonces::default(),
            reaped: false,
            tuned_segments: 0,
            retry: None,
        }
    }

    /// Returns `true` if the end of the subflow has been processed.
    #[inline]
    pub(super) fn is_reaped(&self) -> bool {
        self.reaped
    }

    /// Returns `true` if the subflow has ended, and its end has not been processed.
    #[inline]
    pub(super) fn has_just_ended(&self) -> bool {
        self.subflow.state() == State::Closed && !self.reaped
    }

    pub(super) fn nonces(&self) -> Nonces {
        self.nonces
    }

    /// The subflow joins, with these nonces as far as they are known.
    pub(super) fn set_nonces(&mut self, nonces: Nonces) {
        self.nonces = nonces;
    }

    /// The peer has answered the SYN of a join with this nonce.
    pub(super) fn on_nonce(&mut self, remote: u32) {
        self.nonces.remote = remote;
    }

    /// Segments in the largest congestion window that the send buffer was tuned to.
    #[inline]
    pub(super) fn tuned_segments(&self) -> u16 {
        self.tuned_segments
    }

    /// The congestion window has this number of segments and is not full of data.
    pub(super) fn tune_to(&mut self, segments: u16) {
        self.tuned_segments = self.tuned_segments.max(segments);
    }

    /// The peer's indication about another attempt, or this host's own.
    pub(super) fn set_retry(&mut self, retry: Option<Retry>) {
        self.retry = retry;
    }

    /// Returns when the path manager should try another subflow in place of this one.
    pub(super) fn retry(&self) -> Retry {
        let good = self.subflow.has_carried_data() && !self.signs.payload_unreliable();
        match self.retry {
            Some(said @ (Retry::Later | Retry::Never)) => said,
            _ if good => Retry::Soon,
            _ => Retry::Later,
        }
    }

    /// Returns `true` if payload waits for its mapping, or did so when it was last looked at.
    #[inline]
    pub(super) fn awaits_mapping(&self) -> bool {
        self.mappings.waiting_bytes() > 0 || self.signs.waiting_since().is_some()
    }

    /// Returns `true` if payload has arrived without any Multipath TCP option and no mapping covers
    /// it. Pieces of a split segment may arrive without its options.
    pub(super) fn has_optionless_data(&self) -> bool {
        let reach = self.mappings.reach();
        self.signs.optionless_end() > reach && self.subflow.receiver().nxt() > reach
    }
}

/// The subflows by slot, and a view of each. Changes through [`Subflows::edit`] update the view.
/// Changes that do not affect a view need no `edit`.
pub(super) struct Subflows {
    contexts: Vec<SubflowContext>,
    /// Views of the subflows, by slot.
    views: Vec<SubflowView>,
    /// Remedies may limit a subflow's data in flight, and thereby the room in its view.
    remedies: Vec<Box<dyn Remedy>>,
    /// Detects which subflows share bottlenecks.
    detector: Option<Box<Detector>>,
    /// Counters of subflows that have ended.
    ended: Option<Box<Counters>>,
    /// The subflows that may have something to send or have ended. The others had nothing to send, or
    /// no room for it, when they were last asked, and have not changed since.
    touched: SubflowSet,
    /// The subflows that left `touched` since the last [`Subflows::take_earliest_set`]. Their deadlines may
    /// have changed.
    deadlines_may_differ: SubflowSet,
    /// The subflows whose views [have room](SubflowView::can_send).
    with_room: SubflowSet,
    /// The largest MSS of a usable subflow, or 1.
    largest_mss: u32,
    /// The segments of some subflow leave at a rate.
    paced: bool,
}

/// A subflow that is being changed. Dropping it updates the subflow's view.
pub(super) struct Edit<'a> {
    subflows: &'a mut Subflows,
    slot: Slot,
}

impl Deref for Edit<'_> {
    type Target = SubflowContext;

    #[inline]
    fn deref(&self) -> &SubflowContext {
        &self.subflows.contexts[self.slot]
    }
}

impl DerefMut for Edit<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut SubflowContext {
        &mut self.subflows[self.slot]
    }
}

impl Drop for Edit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.subflows.refresh(self.slot);
    }
}

impl Deref for Subflows {
    type Target = [SubflowContext];

    #[inline]
    fn deref(&self) -> &[SubflowContext] {
        &self.contexts
    }
}

impl Index<Slot> for Subflows {
    type Output = SubflowContext;

    #[inline]
    fn index(&self, slot: Slot) -> &SubflowContext {
        &self.contexts[slot]
    }
}

impl IndexMut<Slot> for Subflows {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut SubflowContext {
        self.touched.insert(slot);
        &mut self.contexts[slot]
    }
}

impl Subflows {
    /// No subflows yet. The remedies limit the data in flight of later subflows. `loss_threshold`
    /// is the loss rate above which a subflow counts as congested; `None` turns the detection of
    /// shared bottlenecks off.
    pub(super) fn new(remedies: Vec<Box<dyn Remedy>>, loss_threshold: Option<f64>) -> Self {
        Subflows {
            contexts: Vec::new(),
            views: Vec::new(),
            remedies,
            detector: loss_threshold.map(|threshold| Box::new(Detector::new(threshold))),
            ended: None,
            touched: SubflowSet::EMPTY,
            deadlines_may_differ: SubflowSet::EMPTY,
            with_room: SubflowSet::EMPTY,
            largest_mss: 1,
            paced: false,
        }
    }

    /// All subflows, for changes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SubflowContext> {
        self.touch_all();
        self.contexts.iter_mut()
    }

    /// All subflows may have something to send.
    pub(super) fn touch_all(&mut self) {
        self.slots().for_each(|slot| self.touched.insert(slot));
    }

    /// The application has read all data.
    #[inline]
    pub(super) fn on_drained(&mut self) {
        if self.paced {
            // See `end_bursts`.
            self.touch_all();
        }
        for (slot, ctx) in self.slots().zip(&mut self.contexts) {
            if ctx.subflow.on_drained() {
                self.touched.insert(slot);
            }
        }
    }

    /// Returns `true` if the end of a subflow has not been processed yet.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.touched.slots().any(|slot| self.contexts[slot].has_just_ended())
    }

    /// The subflows that may have something to send or have ended.
    #[inline]
    pub(super) fn touched(&self) -> SubflowSet {
        self.touched
    }

    /// Returns `true` if no other subflow than the touched ones has ended or has anything to send.
    pub(super) fn untouched_are_idle(&self) -> bool {
        self.slots().filter(|slot| !self.touched.contains(*slot)).all(|slot| {
            let ctx = &self.contexts[slot];
            (ctx.subflow.is_quiet() || ctx.subflow.only_awaits_room()) && !ctx.has_just_ended()
        })
    }

    /// All subflows were asked, and have nothing to send for now.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.deadlines_may_differ.extend(self.touched);
        for slot in self.touched.slots() {
            let ctx = &self.contexts[slot];
            // See `end_bursts` for paced connections.
            let waits = ctx.subflow.is_quiet() || (!self.paced && ctx.subflow.only_awaits_room());
            if waits && !ctx.has_just_ended() {
                self.touched.remove(slot);
            }
        }
    }

    /// Returns `true` if no subflow has anything to send but what the scheduler decides, and the end of
    /// each that has ended was processed.
    #[inline]
    pub(super) fn are_quiet(&self) -> bool {
        self.touched.slots().all(|slot| {
            let ctx = &self.contexts[slot];
            ctx.subflow.is_quiet() && !ctx.has_just_ended()
        })
    }

    /// Returns `true` if the tail loss probe of a subflow is due.
    #[inline]
    pub(super) fn want_tail_probe(&self) -> bool {
        self.touched.slots().any(|slot| self.contexts[slot].subflow.wants_tail_probe())
    }

    /// All subflows were asked, and [are quiet](Subflows::are_quiet).
    #[inline]
    pub(super) fn settle_all(&mut self) {
        self.deadlines_may_differ.extend(std::mem::take(&mut self.touched));
    }

    /// Returns `true` if no usable subflow has room for a full segment, and one of them has data in
    /// flight, so that an acknowledgement will make room.
    #[inline]
    pub(super) fn are_full(&self) -> bool {
        let usable = |view: &&SubflowView| view.usability == Usability::Usable;
        self.with_room.is_empty()
            && self.views.iter().filter(usable).any(|view| view.bytes_in_flight > 0)
    }

    /// The subflows that have room for a full segment.
    #[inline]
    pub(super) fn with_room(&self) -> SubflowSet {
        debug_assert!(
            self.views.iter().all(|v| self.with_room.contains(v.id.slot) == v.can_send())
        );
        self.with_room
    }

    /// Returns `true` if the segments of some subflow leave at a rate.
    #[inline]
    pub(super) fn are_paced(&self) -> bool {
        self.paced
    }

    /// The subflows were asked, and add nothing to the bursts that they began. `application_limited`:
    /// those with room lack data. The rate samples of a paced connection therefore depend on which
    /// subflows were touched.
    #[cold]
    pub(super) fn end_bursts(&mut self, now: Instant, application_limited: bool) {
        for slot in self.touched.slots() {
            let subflow = &mut self.contexts[slot].subflow;
            subflow.end_burst(now);
            if application_limited {
                subflow.on_application_limited();
            }
            self.refresh(slot);
        }
    }

    fn free_slot(&self) -> usize {
        self.contexts.iter().position(|ctx| ctx.reaped).unwrap_or(self.contexts.len())
    }

    /// The subflow in `slot` has ended, and its end is being processed.
    pub(super) fn reap(&mut self, slot: Slot) -> &SubflowContext {
        let ctx = &mut self.contexts[slot];
        ctx.reaped = true;
        ctx.subflow.add_to(self.ended.get_or_insert_default());
        if let Some(detector) = &mut self.detector {
            detector.forget(ctx.subflow.id());
        }
        self.refresh(slot);
        &self.contexts[slot]
    }

    /// RFC 8382: pass the one-way delay that the subflow in `slot` has measured to the detector, if
    /// there is one.
    #[inline]
    pub(super) fn detect_bottlenecks(&mut self, now: Instant, slot: Slot) {
        let Some(detector) = &mut self.detector else { return };
        let subflow = &mut self.contexts[slot].subflow;
        let Some(delay) = subflow.take_one_way_delay() else { return };
        detector.on_delay(now, subflow.id(), delay);
        if !detector.is_due(now) {
            return;
        }
        let subflows = &self.contexts;
        let totals = |id: SubflowId| {
            let totals = subflows[id.slot].subflow.totals();
            let again = totals.segments_retransmitted;
            SegmentTotals { sent: totals.segments_sent + again, lost: again }
        };
        let verdicts = detector.close_interval(now, totals);
        for (id, verdict) in verdicts {
            if let Some(mut ctx) = self.edit_by_id(id) {
                ctx.subflow.on_bottleneck(verdict);
            }
        }
    }

    /// Add the counters of all subflows, including those that have ended.
    pub(super) fn add_to(&self, sum: &mut Counters) {
        if let Some(ended) = &self.ended {
            sum.add(ended);
        }
        self.live().for_each(|ctx| ctx.subflow.add_to(sum));
    }

    /// The subflows whose end has not been processed.
    pub(super) fn live(&self) -> impl Iterator<Item = &SubflowContext> {
        self.contexts.iter().filter(|ctx| !ctx.reaped)
    }

    /// Returns `true` if no other subflow is in use.
    pub(super) fn is_sole(&self, slot: Slot) -> bool {
        self.contexts.iter().enumerate().all(|(other, ctx)| {
            let live = ctx.subflow.is_established() && !ctx.subflow.reset_pending();
            other == slot.index() || !live
        })
    }

    /// Reset the subflow in `slot`, whose payload is unreliable. Other subflows reinject its data.
    pub(super) fn break_off(&mut self, slot: Slot, reason: ResetReason) {
        let mut ctx = self.edit(slot);
        ctx.signs.mark_payload_unreliable();
        if !ctx.subflow.reset_pending() {
            ctx.subflow.reset(Some(because(reason)));
        }
    }

    /// The subflows that the peer is opening, oldest slot first.
    pub(super) fn half_open_joins(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots().zip(&self.contexts).filter_map(|(slot, ctx)| {
            let half_open = ctx.subflow.state() == State::SynReceived
                && ctx.subflow.identity().purpose == Purpose::Join
                && !ctx.is_reaped();
            half_open.then_some(slot)
        })
    }

    /// Returns `true` if all subflows for which `counts` is true have brought data.
    pub(super) fn bring_data(&self, counts: impl Fn(&SubflowContext) -> bool) -> bool {
        self.live().filter(|ctx| counts(ctx)).all(|ctx| ctx.subflow.receiver().nxt() > 1)
    }

    /// The path manager wants this priority of a subflow.
    pub(super) fn set_priority(&mut self, id: SubflowId, backup: bool, signalled: bool) {
        let Some(mut ctx) = self.edit_by_id(id) else { return };
        if signalled {
            ctx.subflow.signal_priority(backup);
        } else {
            ctx.subflow.set_standby(backup);
        }
    }

    /// The window opened by much: tell the peer on every subflow, the quickest of which it will
    /// hear first.
    pub(super) fn demand_acks(&mut self) {
        for ctx in self.iter_mut() {
            if ctx.subflow.is_established() {
                ctx.subflow.demand_ack();
            }
        }
    }

    /// Returns `true` if a regular subflow is usable.
    pub(super) fn have_regular(&self) -> bool {
        self.views.iter().any(|view| view.usability == Usability::Usable && !view.backup)
    }

    /// Returns `true` if more than one subflow is usable.
    pub(super) fn have_several(&self) -> bool {
        self.usable_contexts().nth(1).is_some()
    }

    /// Returns `true` if a subflow has sent data that the peer has not acknowledged on it.
    #[inline]
    pub(super) fn have_outstanding(&self) -> bool {
        self.contexts.iter().any(|ctx| ctx.subflow.has_outstanding())
    }

    #[inline]
    fn usable_contexts(&self) -> impl Iterator<Item = (&SubflowContext, &SubflowView)> {
        let subflows = self.contexts.iter().zip(&self.views);
        subflows.filter(|(_, view)| view.usability == Usability::Usable)
    }

    /// The earliest deadline that a subflow has set since the last call.
    #[inline]
    pub(super) fn take_earliest_set(&mut self) -> Instant {
        let mut changed = std::mem::take(&mut self.deadlines_may_differ);
        changed.extend(self.touched);
        changed.slots().fold(Instant::FAR_FUTURE, |earliest, slot| {
            earliest.min(self.contexts[slot].subflow.take_earliest_set(self.paced))
        })
    }

    /// Retransmission timeout of the slowest usable subflow.
    #[inline]
    pub(super) fn longest_timeout(&self) -> Duration {
        let timeouts =
            self.usable_contexts().map(|(ctx, _)| ctx.subflow.rtt().rto_without_backoff());
        timeouts.max().unwrap_or(Duration::from_secs(1))
    }

    /// Longest retransmission timeout of any subflow, with its back-off.
    pub(super) fn longest_backed_off_timeout(&self) -> Duration {
        let timeouts = self.contexts.iter().map(|ctx| ctx.subflow.rtt().rto());
        timeouts.max().unwrap_or(Duration::from_secs(1))
    }

    /// Shortest retransmission timeout of any subflow.
    pub(super) fn shortest_rto(&self) -> Duration {
        self.contexts.iter().map(|ctx| ctx.subflow.rtt().rto()).min().unwrap_or(LONGEST_PAUSE)
    }

    /// Longest time until a usable subflow retransmits or probes, other than those that make no
    /// progress.
    #[inline]
    pub(super) fn longest_loss_timer(&self, now: Instant) -> Duration {
        let progressing = self.usable_contexts().filter(|(ctx, _)| ctx.silence.periods() == 0);
        let pending = progressing.filter_map(|(ctx, _)| ctx.subflow.next_loss_timer());
        pending.max().map_or(Duration::ZERO, |at| at.saturating_since(now))
    }

    /// Probe the peer for its DATA_ACK and its window. RFC 8684 §3.3.5 allows any subflow. The
    /// first attempt uses the subflow with the least RTT, and later attempts take turns: a dead path
    /// with no outstanding data gives no other sign.
    pub(super) fn probe_peer(&mut self, attempt: u32) {
        let usable = || self.views.iter().filter(|view| view.usability == Usability::Usable);
        let key = |view: &SubflowView| (view.srtt_or_max(), view.id.slot);
        let turn = attempt as usize % usable().count().max(1);
        let next =
            |view: &&SubflowView| usable().filter(|other| key(other) < key(view)).count() == turn;
        if let Some(id) = usable().find(next).map(|view| view.id) {
            self[id.slot].subflow.demand_probe();
        }
    }

    /// Identifier of the next subflow.
    pub(super) fn next_id(&self) -> SubflowId {
        let slot = self.free_slot();
        let youngest = self.contexts.iter().map(|ctx| ctx.subflow.id().generation).max();
        let generation = youngest.map_or(0, |generation| generation.wrapping_add(1));
        SubflowId { slot: Slot(slot as u8), generation }
    }

    /// All slots that were ever used, in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.contexts.len() as u8).map(Slot)
    }

    /// Add a subflow that has this identifier, and return its slot.
    pub(super) fn add(&mut self, subflow: Subflow) -> Slot {
        let slot = subflow.id().slot;
        self.paced |= subflow.is_paced();
        let (view, ctx) = (subflow.view(), SubflowContext::new(subflow));
        match self.contexts.get_mut(slot.index()) {
            Some(free) => {
                *free = ctx;
                self.views[slot] = view;
            }
            None => {
                self.contexts.push(ctx);
                self.views.push(view);
            }
        }
        self.touched.insert(slot);
        self.note_room(slot);
        self.find_largest_mss();
        slot
    }

    /// The views, by slot.
    #[inline]
    pub(super) fn views(&self) -> &[SubflowView] {
        &self.views
    }

    /// The view of the subflow in `slot`.
    #[inline]
    pub(super) fn view(&self, slot: Slot) -> &SubflowView {
        &self.views[slot]
    }

    /// Access the subflow in `slot` for changes that may affect its view.
    #[inline]
    pub(super) fn edit(&mut self, slot: Slot) -> Edit<'_> {
        Edit { subflows: self, slot }
    }

    /// As [`Subflows::edit`], if the subflow still exists.
    pub(super) fn edit_by_id(&mut self, id: SubflowId) -> Option<Edit<'_>> {
        let ctx = self.contexts.get(id.slot.index())?;
        (ctx.subflow.id() == id && !ctx.reaped).then(|| self.edit(id.slot))
    }

    /// The subflow in `slot` and all views, which its congestion control needs.
    #[inline]
    pub(super) fn with_views(&mut self, slot: Slot) -> (&mut SubflowContext, &[SubflowView]) {
        self.touched.insert(slot);
        (&mut self.contexts[slot], &self.views)
    }

    /// Update the view of the subflow in `slot` after changes without [`Subflows::edit`].
    #[inline]
    pub(super) fn refresh(&mut self, slot: Slot) {
        let view = &mut self.views[slot];
        let before = (view.usability, view.mss);
        *view = self.contexts[slot].subflow.view();
        limit_room(&mut self.remedies, view);
        let is_same = before == (view.usability, view.mss);
        self.note_room(slot);
        if !is_same {
            self.find_largest_mss();
        }
    }

    /// Update the view of the subflow in `slot` after it has only received data.
    #[inline]
    pub(super) fn refresh_after_receiving(&mut self, slot: Slot) {
        let view = &mut self.views[slot];
        match self.contexts[slot].subflow.after_receiving(view) {
            true => {
                limit_room(&mut self.remedies, view);
                self.note_room(slot);
            }
            false => self.refresh(slot),
        }
    }

    /// The view of the subflow in `slot` is new.
    #[inline]
    fn note_room(&mut self, slot: Slot) {
        match self.views[slot].can_send() {
            true => self.with_room.insert(slot),
            false => self.with_room.remove(slot),
        }
    }

    fn find_largest_mss(&mut self) {
        let usable = self.views.iter().filter(|view| view.usability == Usability::Usable);
        self.largest_mss = usable.map(|view| view.mss).max().unwrap_or(1);
    }

    /// Update the view of the subflow in `slot` after it has sent new data.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    pub(super) fn refresh_after_sending(&mut self, now: Instant, slot: Slot) {
        let view = &mut self.views[slot];
        self.contexts[slot].subflow.after_sending(now, view);
        limit_room(&mut self.remedies, view);
        self.note_room(slot);
    }

    /// The subflows that may carry data.
    #[inline]
    pub(super) fn usable(&self) -> SubflowSet {
        let mut set = SubflowSet::EMPTY;
        for view in self.views.iter().filter(|view| view.usability == Usability::Usable) {
            set.insert(view.id.slot);
        }
        set
    }

    /// Size of a full segment on the subflows, for window decisions.
    #[inline]
    pub(super) fn largest_mss(&self) -> u64 {
        self.largest_mss.into()
    }

    /// The largest window that the peer has advertised on any subflow.
    pub(super) fn largest_window(&self) -> u64 {
        self.contexts.iter().map(|ctx| ctx.subflow.send_window().largest()).max().unwrap_or(0)
    }

    /// Number of remedies.
    #[inline]
    pub(super) fn remedies(&self) -> usize {
        self.remedies.len()
    }

    /// Ask one remedy.
    pub(super) fn ask<R>(
        &mut self,
        remedy: usize,
        ask: impl FnOnce(&mut dyn Remedy, &[SubflowView]) -> R,
    ) -> R {
        ask(&mut *self.remedies[remedy], &self.views)
    }

    /// The largest buffer that any remedy requests; `None` if none requests one.
    pub(super) fn buffer_target(
        &mut self,
        now: Instant,
        side: BufferSide,
        progress: u64,
    ) -> Option<u64> {
        let context = BufferContext { now, side, progress, subflows: &self.views };
        self.remedies.iter_mut().filter_map(|remedy| remedy.buffer_target(&context)).max()
    }

    /// Maximum size of a new connection's buffer in bytes.
    pub(super) fn initial_buffer(&mut self, side: BufferSide) -> u64 {
        self.buffer_target(Instant::ZERO, side, 0).unwrap_or(u64::MAX)
    }

    /// Release unused memory.
    pub(super) fn release_memory(&mut self) {
        self.contexts.shrink_to_fit();
        self.views.shrink_to_fit();
        for ctx in &mut self.contexts {
            ctx.mappings.release_memory();
            ctx.subflow.release_memory();
        }
    }
}

/// Limit a subflow's room as the remedies request.
fn limit_room(remedies: &mut [Box<dyn Remedy>], view: &mut SubflowView) {
    for remedy in remedies {
        if let Some(limit) = remedy.send_limit(view) {
            view.available_cwnd =
                view.available_cwnd.min(limit.saturating_sub(view.bytes_in_flight));
        }
    }
}
