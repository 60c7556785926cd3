//! The subflows of a connection, and their views for policies.

use std::ops::{Deref, DerefMut};

use anabranch_wire::Instant;

use super::fallback;
use super::mapping::MappingTable;
use super::session::Nonces;
use crate::bottleneck::{Detector, Totals};
use crate::counters::Counters;
use crate::path_manager::Retry;
use crate::remedy::{BufferContext, BufferSide, Remedy};
use crate::subflow::Subflow;
use crate::view::{Slot, SubflowId, SubflowSet, SubflowView, Usability};

/// A subflow and its state at the data level.
#[derive(Debug)]
pub(super) struct SubflowContext {
    pub(super) subflow: Subflow,
    pub(super) mappings: MappingTable,
    /// Nonces of a join in progress.
    pub(super) nonces: Nonces,
    /// The end of the subflow has been processed.
    pub(super) reaped: bool,
    pub(super) reinjected_bytes: u64,
    /// A data sequence signal has arrived on the subflow.
    pub(super) dss_seen: bool,
    /// Since the last data sequence signal, data was acknowledged without any Multipath TCP option.
    pub(super) optionless_acks: bool,
    /// Time of the last data sequence signal.
    pub(super) dss_seen_at: Instant,
    /// Subflow offset of the end of the last payload without any Multipath TCP option.
    pub(super) optionless_end: u64,
    /// The end of the last short segment of new data, as a subflow offset.
    pub(super) short_end: u64,
    /// The peer's FIN came without any Multipath TCP option.
    pub(super) optionless_fin: bool,
    /// Time since which payload waits for a mapping.
    pub(super) unmapped_since: Option<Instant>,
    /// The most recent run of contiguous data sent on the subflow.
    pub(super) run: fallback::Run,
    /// Segments in the largest congestion window that the send buffer was tuned to.
    pub(super) tuned_segments: u16,
    /// The path modifies its payload, so data acknowledged on the subflow may not have arrived.
    pub(super) payload_unreliable: bool,
    /// The peer's indication about another attempt when it reset the subflow. RFC 8684 §3.6.
    pub(super) retry: Option<Retry>,
}

impl SubflowContext {
    fn new(subflow: Subflow) -> Self {
        SubflowContext {
            subflow,
            mappings: MappingTable::default(),
            nonces: Nonces::default(),
            reaped: false,
            reinjected_bytes: 0,
            dss_seen: false,
            optionless_acks: false,
            dss_seen_at: Instant::ZERO,
            optionless_end: 0,
            short_end: 0,
            optionless_fin: false,
            unmapped_since: None,
            run: fallback::Run::default(),
            tuned_segments: 0,
            payload_unreliable: false,
            retry: None,
        }
    }

    /// Returns `true` if payload has arrived without any Multipath TCP option and no mapping covers
    /// it. Pieces of a split segment may arrive without its options.
    pub(super) fn has_optionless_data(&self) -> bool {
        let reach = self.mappings.reach();
        self.optionless_end > reach && self.subflow.receive_next() > reach
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
    detector: Option<Detector>,
    /// Counters of subflows that have ended.
    ended: Option<Box<Counters>>,
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
        &mut self.subflows.contexts[self.slot]
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

impl DerefMut for Subflows {
    #[inline]
    fn deref_mut(&mut self) -> &mut [SubflowContext] {
        &mut self.contexts
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
            detector: loss_threshold.map(Detector::new),
            ended: None,
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
            Totals { sent: totals.segments_sent + again, lost: again }
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
        let live = self.contexts.iter().filter(|ctx| !ctx.reaped);
        live.for_each(|ctx| ctx.subflow.add_to(sum));
    }

    /// Identifier of the next subflow.
    pub(super) fn next_id(&self) -> SubflowId {
        let slot = self.free_slot();
        let before = self.contexts.get(slot).map(|ctx| ctx.subflow.id().generation);
        let generation = before.map_or(0, |generation| generation.wrapping_add(1));
        SubflowId { slot: Slot(slot as u8), generation }
    }

    /// All slots that were ever used, in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.contexts.len() as u8).map(Slot)
    }

    /// Add a subflow that has this identifier, and return its slot.
    pub(super) fn add(&mut self, subflow: Subflow) -> Slot {
        let slot = subflow.id().slot;
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
        (&mut self.contexts[slot], &self.views)
    }

    /// Update the view of the subflow in `slot` after changes without [`Subflows::edit`].
    #[inline]
    pub(super) fn refresh(&mut self, slot: Slot) {
        let view = &mut self.views[slot];
        *view = self.contexts[slot].subflow.view();
        limit_room(&mut self.remedies, view);
    }

    /// Update the view of the subflow in `slot` after it has sent new data.
    #[inline]
    pub(super) fn refresh_after_sending(&mut self, now: Instant, slot: Slot) {
        let view = &mut self.views[slot];
        self.contexts[slot].subflow.after_sending(now, view);
        limit_room(&mut self.remedies, view);
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
        let usable = self.views.iter().filter(|view| view.usability == Usability::Usable);
        usable.map(|view| u64::from(view.mss)).max().unwrap_or(1)
    }

    /// The largest window that the peer has advertised on any subflow.
    pub(super) fn largest_window(&self) -> u64 {
        self.contexts.iter().map(|ctx| ctx.subflow.largest_window()).max().unwrap_or(0)
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
