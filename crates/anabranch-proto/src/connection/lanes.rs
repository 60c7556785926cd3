//! The subflows of a connection, and how they look to policies.

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
use crate::view::{SubflowId, SubflowSet, SubflowView, Usability};

/// A subflow and what the data level keeps for it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) subflow: Subflow,
    pub(super) mappings: MappingTable,
    /// Those of a join in progress.
    pub(super) nonces: Nonces,
    /// The end of the subflow has been dealt with.
    pub(super) reaped: bool,
    pub(super) reinjected_bytes: u64,
    /// A data sequence signal has come on it.
    pub(super) heard: bool,
    /// Since the last one, data was acknowledged without any Multipath TCP option.
    pub(super) bare_acks: bool,
    /// When a data sequence signal last came.
    pub(super) heard_at: Instant,
    /// Subflow offset of the end of the last payload without any Multipath TCP option.
    pub(super) bare_end: u64,
    /// The end of the last short segment of new data, as a subflow offset.
    pub(super) short_end: u64,
    /// The peer's FIN came without any Multipath TCP option.
    pub(super) bare_fin: bool,
    /// Since when payload waits for a mapping.
    pub(super) unmapped_since: Option<Instant>,
    /// What was sent lately.
    pub(super) run: fallback::Run,
    /// The path changes what it carries: what was acknowledged on the subflow may not have arrived.
    pub(super) distrusted: bool,
    /// What the peer said of another attempt when it reset the subflow. RFC 8684 §3.6.
    pub(super) retry: Option<Retry>,
}

impl Lane {
    fn new(subflow: Subflow) -> Self {
        Lane {
            subflow,
            mappings: MappingTable::default(),
            nonces: Nonces::default(),
            reaped: false,
            reinjected_bytes: 0,
            heard: false,
            bare_acks: false,
            heard_at: Instant::ZERO,
            bare_end: 0,
            short_end: 0,
            bare_fin: false,
            unmapped_since: None,
            run: fallback::Run::default(),
            distrusted: false,
            retry: None,
        }
    }

    /// Has payload arrived, without any Multipath TCP option, that no mapping covers? Pieces of a
    /// segment that was split may come without its options.
    pub(super) fn has_bare_data(&self) -> bool {
        let reach = self.mappings.reach();
        self.bare_end > reach && self.subflow.receive_next() > reach
    }
}

/// Subflows by slot, and a view of each. The views follow what is done through [`Lanes::edit`];
/// what does not show in a view may be changed without.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// In parallel.
    views: Vec<SubflowView>,
    /// They may limit what a subflow has under way, and with it the room that its view shows.
    remedies: Vec<Box<dyn Remedy>>,
    /// Finds out which subflows share bottlenecks.
    detector: Option<Detector>,
    /// What subflows that have ended counted.
    ended: Option<Box<Counters>>,
}

/// A lane that is being changed: when this is dropped, its view is brought up to date.
pub(super) struct Edit<'a> {
    lanes: &'a mut Lanes,
    slot: u8,
}

impl Deref for Edit<'_> {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        &self.lanes.lanes[usize::from(self.slot)]
    }
}

impl DerefMut for Edit<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.lanes.lanes[usize::from(self.slot)]
    }
}

impl Drop for Edit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lanes.refresh(self.slot);
    }
}

impl Deref for Lanes {
    type Target = [Lane];

    #[inline]
    fn deref(&self) -> &[Lane] {
        &self.lanes
    }
}

impl DerefMut for Lanes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }
}

impl Lanes {
    /// No subflows yet. The remedies limit what later ones have under way.
    /// `loss_threshold`: if shared bottlenecks are to be found, losses above this rate show one.
    pub(super) fn new(remedies: Vec<Box<dyn Remedy>>, loss_threshold: Option<f64>) -> Self {
        Lanes {
            lanes: Vec::new(),
            views: Vec::new(),
            remedies,
            detector: loss_threshold.map(Detector::new),
            ended: None,
        }
    }

    fn free_slot(&self) -> usize {
        self.lanes.iter().position(|lane| lane.reaped).unwrap_or(self.lanes.len())
    }

    /// The subflow in `slot` has ended, and that is being dealt with.
    pub(super) fn reap(&mut self, slot: u8) -> &Lane {
        let lane = &mut self.lanes[usize::from(slot)];
        lane.reaped = true;
        lane.subflow.add_to(self.ended.get_or_insert_default());
        if let Some(detector) = &mut self.detector {
            detector.forget(lane.subflow.id);
        }
        self.refresh(slot);
        &self.lanes[usize::from(slot)]
    }

    /// RFC 8382: the subflow in `slot` has measured a one-way delay, if it has.
    #[inline]
    pub(super) fn detect_bottlenecks(&mut self, now: Instant, slot: u8) {
        let Some(detector) = &mut self.detector else { return };
        let subflow = &mut self.lanes[usize::from(slot)].subflow;
        let Some(delay) = subflow.one_way_delay.take() else { return };
        detector.on_delay(now, subflow.id, delay);
        if !detector.is_due(now) {
            return;
        }
        let lanes = &self.lanes;
        let totals = |id: SubflowId| {
            let totals = lanes[usize::from(id.slot)].subflow.totals;
            let again = totals.segments_retransmitted;
            Totals { sent: totals.segments_sent + again, lost: again }
        };
        let verdicts = detector.close_interval(now, totals);
        for (id, verdict) in verdicts {
            if let Some(mut lane) = self.edit_by_id(id) {
                lane.subflow.bottleneck = verdict;
            }
        }
    }

    /// Add what all subflows have counted, those included that are gone.
    pub(super) fn add_to(&self, sum: &mut Counters) {
        if let Some(ended) = &self.ended {
            sum.add(ended);
        }
        let live = self.lanes.iter().filter(|lane| !lane.reaped);
        live.for_each(|lane| lane.subflow.add_to(sum));
    }

    /// What the next subflow is called.
    pub(super) fn next_id(&self) -> SubflowId {
        let slot = self.free_slot();
        let before = self.lanes.get(slot).map(|lane| lane.subflow.id.generation);
        let generation = before.map_or(0, |generation| generation.wrapping_add(1));
        SubflowId { slot: slot as u8, generation }
    }

    /// Add a subflow, called so; its slot.
    pub(super) fn add(&mut self, subflow: Subflow) -> u8 {
        let slot = subflow.id.slot;
        let (view, lane) = (subflow.view(), Lane::new(subflow));
        match self.lanes.get_mut(usize::from(slot)) {
            Some(free) => {
                *free = lane;
                self.views[usize::from(slot)] = view;
            }
            None => {
                self.lanes.push(lane);
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
    pub(super) fn view(&self, slot: u8) -> &SubflowView {
        &self.views[usize::from(slot)]
    }

    /// The subflow in `slot` is changed in a way that may show in its view.
    #[inline]
    pub(super) fn edit(&mut self, slot: u8) -> Edit<'_> {
        Edit { lanes: self, slot }
    }

    /// The same, if it is still there.
    pub(super) fn edit_by_id(&mut self, id: SubflowId) -> Option<Edit<'_>> {
        let lane = self.lanes.get(usize::from(id.slot))?;
        (lane.subflow.id == id && !lane.reaped).then(|| self.edit(id.slot))
    }

    /// The subflow in `slot` and all views, for what it tells its congestion control.
    #[inline]
    pub(super) fn with_views(&mut self, slot: u8) -> (&mut Lane, &[SubflowView]) {
        (&mut self.lanes[usize::from(slot)], &self.views)
    }

    /// Bring the view of the subflow in `slot` up to date, which was changed without
    /// [`Lanes::edit`].
    #[inline]
    pub(super) fn refresh(&mut self, slot: u8) {
        let view = &mut self.views[usize::from(slot)];
        *view = self.lanes[usize::from(slot)].subflow.view();
        limit_room(&mut self.remedies, view);
    }

    /// The same after the subflow has sent new data.
    #[inline]
    pub(super) fn refresh_after_sending(&mut self, now: Instant, slot: u8) {
        let view = &mut self.views[usize::from(slot)];
        self.lanes[usize::from(slot)].subflow.after_sending(now, view);
        limit_room(&mut self.remedies, view);
    }

    /// Those that may carry data.
    #[inline]
    pub(super) fn usable(&self) -> SubflowSet {
        let mut set = SubflowSet::EMPTY;
        for view in self.views.iter().filter(|view| view.usability == Usability::Usable) {
            set.insert(view.id.slot);
        }
        set
    }

    /// Size of a full segment on the subflows, for decisions about windows.
    #[inline]
    pub(super) fn largest_mss(&self) -> u64 {
        let usable = self.views.iter().filter(|view| view.usability == Usability::Usable);
        usable.map(|view| u64::from(view.mss)).max().unwrap_or(1)
    }

    /// The largest window that the peer has announced on any of them.
    pub(super) fn largest_window(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.subflow.largest_window()).max().unwrap_or(0)
    }

    /// How many remedies there are.
    #[inline]
    pub(super) fn remedies(&self) -> usize {
        self.remedies.len()
    }

    /// Ask one of the remedies.
    pub(super) fn ask<R>(
        &mut self,
        remedy: usize,
        ask: impl FnOnce(&mut dyn Remedy, &[SubflowView]) -> R,
    ) -> R {
        ask(&mut *self.remedies[remedy], &self.views)
    }

    /// The largest buffer that any remedy asks for; `None` if none has an opinion.
    pub(super) fn buffer_target(
        &mut self,
        now: Instant,
        side: BufferSide,
        progress: u64,
    ) -> Option<u64> {
        let context = BufferContext { now, side, progress, subflows: &self.views };
        self.remedies.iter_mut().filter_map(|remedy| remedy.buffer_target(&context)).max()
    }

    /// Bytes that the buffer of a new connection has at the most.
    pub(super) fn initial_buffer(&mut self, side: BufferSide) -> u64 {
        self.buffer_target(Instant::ZERO, side, 0).unwrap_or(u64::MAX)
    }

    /// Give back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.lanes.shrink_to_fit();
        self.views.shrink_to_fit();
        for lane in &mut self.lanes {
            lane.mappings.release_memory();
            lane.subflow.release_memory();
        }
    }
}

/// What the remedies let a subflow send.
fn limit_room(remedies: &mut [Box<dyn Remedy>], view: &mut SubflowView) {
    for remedy in remedies {
        if let Some(limit) = remedy.send_limit(view) {
            view.room = view.room.min(limit.saturating_sub(view.bytes_in_flight));
        }
    }
}
