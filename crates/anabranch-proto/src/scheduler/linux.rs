//! The scheduler of Linux 6: the subflow whose queue drains first, in bursts, ahead of its window.
//! Linux 6.18, `mptcp_subflow_get_send` in net/mptcp/protocol.c.

use super::{BuildScheduler, Decision, Pending, ScheduleContext, Scheduler};
use crate::platform::{FRAGMENT, socket_buffer};
use crate::view::{SubflowId, SubflowView};
use anabranch_config::part_without_parameters;

/// The scheduler of Linux ("default").
///
/// Data goes to the subflow on which it would linger for the shortest time. The linger time is the
/// subflow's queued data, sent or not, divided by its pacing rate. Each burst of 64 KiB to 96 KiB
/// is assigned to one subflow, even if the congestion window does not admit it. Data therefore
/// waits behind the window of a slow path as well as in its network, and fills a small receive
/// window.
///
/// Reinjections follow the same rule but require a subflow with room, or wait for one. Linux waits
/// until a subflow is idle.
#[derive(Clone, Debug, Default)]
pub struct Linux {
    /// Subflow of the current burst, if the burst continues.
    burst: Option<SubflowId>,
    /// End of the current or last burst, in bytes of new data.
    end: u64,
    /// Bytes of new data from which on the burst ends with a page fragment.
    enough: u64,
    /// Bytes of new data sent so far.
    carried: u64,
    /// Average pacing rate of each slot.
    paces: Vec<Option<Pace>>,
}

/// Pacing rate of a subflow, averaged over the data assigned to it.
#[derive(Clone, Copy, Debug)]
struct Pace {
    id: SubflowId,
    bytes_per_second: f64,
}

part_without_parameters! {
    /// Selects [`Linux`].
    pub struct LinuxSchedulerConfig;
    NAME = "linux";
    SUMMARY = "Uses the subflow whose queue drains first, in bursts of 64 KiB and more, ahead of its window.";
    SOURCE = "the default of Linux 6.18";
}

impl BuildScheduler for LinuxSchedulerConfig {
    fn as_linux(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Linux::default())
    }
}

/// Bytes of a burst: Linux subtracts the headers from 64 KiB.
const BURST: u64 = (1 << 16) - 20 - 40 - 40 - 8;

/// The rate in bytes per second at which Linux would pace a subflow, even if the subflow is not
/// paced. `None` before the first round-trip time sample.
fn pacing_rate(context: &ScheduleContext<'_>, view: &SubflowView) -> Option<f64> {
    let srtt = view.srtt?.as_secs_f64();
    let paced_window = context.linux.paced_windows.get(view.id.slot.index()).copied().unwrap_or(0);
    (srtt > 0.0).then(|| paced_window as f64 / srtt)
}

impl Linux {
    /// The average pacing rate of a subflow; it starts with the current rate.
    fn pace(&mut self, context: &ScheduleContext<'_>, view: &SubflowView) -> Option<&mut Pace> {
        let index = view.id.slot.index();
        if self.paces.len() <= index {
            self.paces.resize(index + 1, None);
        }
        let pace = &mut self.paces[index];
        if pace.is_none_or(|pace| pace.id != view.id) {
            *pace =
                pacing_rate(context, view).map(|rate| Pace { id: view.id, bytes_per_second: rate });
        }
        pace.as_mut()
    }

    /// Seconds until the queued data of the subflow has left.
    fn linger(&mut self, context: &ScheduleContext<'_>, view: &SubflowView) -> f64 {
        let queued = queued(context, view) as f64;
        // A subflow without a known pacing rate comes last.
        self.pace(context, view).map_or(f64::INFINITY, |pace| queued / pace.bytes_per_second)
    }

    /// The subflow of `views` with the shortest linger time. Of several, it is the oldest
    /// (`mptcp_for_each_subflow`).
    fn soonest<'a>(
        &mut self,
        context: &ScheduleContext<'_>,
        views: impl Iterator<Item = &'a SubflowView>,
    ) -> Option<&'a SubflowView> {
        let lingers = views.map(|view| (self.linger(context, view), view));
        let soonest = lingers.min_by(|(one, first), (other, second)| {
            one.total_cmp(other).then(first.id.generation.cmp(&second.id.generation))
        });
        soonest.map(|(_, view)| view)
    }

    /// Begin a burst, limited by the data and the window. The call after its end picks a subflow
    /// afresh. The average pacing rate moves towards the current rate, in proportion to the data
    /// added to the queue.
    fn begin(&mut self, context: &ScheduleContext<'_>, view: &SubflowView, bytes: u64) {
        let burst = BURST.min(context.available_window);
        self.enough = self.carried + burst;
        let most = self.carried + context.available_window.min(bytes);
        self.end = match context.linux.begins_fragment {
            Some(_) => most,
            // As if full fragments were in a row.
            None => {
                // The last segment of a burst may have gone beyond its end.
                let passed = self.carried.saturating_sub(self.end);
                let start = self.carried - if passed < u64::from(view.mss) { passed } else { 0 };
                (start + burst).next_multiple_of(FRAGMENT).min(most).max(self.carried)
            }
        };
        self.burst = Some(view.id);
        let burst = burst as f64;
        let queued = queued(context, view) as f64;
        let (Some(rate), Some(pace)) = (pacing_rate(context, view), self.pace(context, view))
        else {
            return;
        };
        if queued + burst > 0.0 {
            pace.bytes_per_second =
                (pace.bytes_per_second * queued + rate * burst) / (queued + burst);
        }
    }
}

/// Memory of the subflow's unsent and unacknowledged data.
fn queued(context: &ScheduleContext<'_>, view: &SubflowView) -> u64 {
    let sent = context.linux.sent_memory.get(view.id.slot.index()).copied();
    let sent = sent.unwrap_or_else(|| socket_buffer::usual_memory(view.bytes_in_flight, view.mss));
    sent + socket_buffer::waiting_memory(context.assigned(view.id.slot))
}

impl Scheduler for Linux {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        let Pending::NewData { bytes } = context.pending else {
            let open = context.eligible().filter(|view| view.can_send());
            let soonest = self.soonest(context, open);
            return soonest.map_or(Decision::Wait { until: None }, |view| Decision::Send(view.id));
        };
        let ends = |id: &mut SubflowId| {
            context.linux.begins_fragment == Some(true)
                && (self.carried >= self.enough || context.linux.full.contains(id.slot))
        };
        self.burst.take_if(ends);
        let goes_on = |id: &SubflowId| context.candidates().any(|view| view.id == *id);
        if let Some(id) = self.burst.filter(goes_on) {
            return Decision::Assign(id);
        }
        let Some(soonest) = self.soonest(context, context.candidates()) else {
            return Decision::Wait { until: None };
        };
        if context.linux.full.contains(soonest.id.slot) {
            return Decision::Wait { until: None };
        }
        if context.available_window > 0 && bytes > 0 {
            self.begin(context, soonest, bytes);
        }
        Decision::Assign(soonest.id)
    }

    fn follows_linux(&self) -> bool {
        true
    }

    fn on_sent(&mut self, subflow: SubflowId, bytes: u64) {
        self.carried += bytes;
        self.burst.take_if(|id| *id != subflow || self.carried >= self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::LinuxView;
    use crate::scheduler::tests::{NEW, context};
    use crate::view::Slot;
    use crate::view::SubflowSet;
    use crate::view::tests::view;

    #[test]
    fn data_goes_where_it_would_linger_for_the_shortest_time() {
        // Windows of 20,000 bytes on both subflows give pacing rates of 1.2 MB/s and 0.16 MB/s.
        let (fast, slow) = (view(0, 20), view(1, 150));
        let subflows = [
            SubflowView { bytes_in_flight: 20_000, ..fast },
            SubflowView { bytes_in_flight: 1_000, ..slow },
        ];
        let mut scheduler = Linux::default();
        let mut context = context(&subflows, NEW);
        // The linger time is 24 ms behind the 20,000 bytes of the fast subflow and their memory,
        // and 11 ms behind the 1,000 bytes of the slow one.
        assert_eq!(scheduler.schedule(&context), Decision::Assign(slow.id));
        // The burst continues in any case until the end of a fragment,
        scheduler.on_sent(slow.id, 2 * FRAGMENT - 1);
        assert_eq!(scheduler.schedule(&context), Decision::Assign(slow.id));
        // and assigned data lingers as well.
        scheduler.on_sent(slow.id, 1000);
        let assigned = [0, 4_000];
        context.assigned = &assigned;
        assert_eq!(scheduler.schedule(&context), Decision::Assign(fast.id));
    }

    #[test]
    fn of_two_idle_subflows_the_older_one_has_the_data() {
        let (first, other) = (view(0, 20), view(1, 40));
        let again = SubflowView { id: SubflowId { slot: Slot(0), generation: 2 }, ..first };
        for (views, oldest) in [([first, other], first), ([again, other], other)] {
            let subflows = views.map(|view| SubflowView { bytes_in_flight: 0, ..view });
            let decision = Linux::default().schedule(&context(&subflows, NEW));
            assert_eq!(decision, Decision::Assign(oldest.id));
        }
    }

    #[test]
    fn where_data_lies_in_page_fragments_a_burst_ends_with_one_of_them() {
        let (one, other) = (SubflowView { bytes_in_flight: 0, ..view(0, 20) }, view(1, 20));
        let subflows = [one, other];
        let mut scheduler = Linux::default();
        let mut ask = |sent: Option<(SubflowView, u64)>, begins: bool, full: SubflowSet| {
            if let Some((view, bytes)) = sent {
                scheduler.on_sent(view.id, bytes);
            }
            let assigned = [70_000 * u64::from(sent.is_some())];
            let general = context(&subflows, NEW);
            let linux = LinuxView { full, begins_fragment: Some(begins), ..general.linux };
            let context = ScheduleContext { assigned: &assigned, linux, ..general };
            scheduler.schedule(&context)
        };
        let none = SubflowSet::EMPTY;
        assert_eq!(ask(None, true, none), Decision::Assign(one.id));
        assert_eq!(ask(Some((one, BURST - 1)), true, none), Decision::Assign(one.id));
        assert_eq!(ask(Some((one, 1)), false, none), Decision::Assign(one.id));
        assert_eq!(ask(Some((one, 1)), true, none), Decision::Assign(other.id));
        // A subflow whose queue is full ends its burst. Nothing goes elsewhere while its queue is the
        // one that drains first.
        let full = SubflowSet::of(Slot(1));
        assert_eq!(ask(Some((other, 1)), false, full), Decision::Assign(other.id));
        assert_eq!(ask(Some((other, 1)), true, full), Decision::Wait { until: None });
    }

    #[test]
    fn what_is_sent_again_waits_for_room() {
        let again = Pending::Reinjection { already_on: crate::view::SubflowSet::of(Slot(1)) };
        let fast = SubflowView { available_cwnd: 0, ..view(0, 20) };
        let subflows = [fast, view(1, 150)];
        let mut scheduler = Linux::default();
        assert_eq!(scheduler.schedule(&context(&subflows, again)), Decision::Wait { until: None });
    }

    #[test]
    fn the_pace_follows_by_as_much_as_is_added() {
        let one = view(0, 100);
        let mut scheduler = Linux::default();
        let subflows = [one];
        let general = context(&subflows, NEW);
        scheduler.schedule(&general);
        scheduler.on_sent(one.id, 2 * FRAGMENT);
        let pace = |scheduler: &mut Linux| {
            scheduler.pace(&general, &one).expect("the round-trip time is known").bytes_per_second
        };
        assert_eq!(pace(&mut scheduler), 1.2 * 20_000.0 / 0.1);
        // A window twice as large, and 10,000 bytes sent in five socket buffers.
        let twice = [SubflowView { bytes_in_flight: 10_000, ..one }];
        let linux = LinuxView { paced_windows: &[48_000], ..general.linux };
        scheduler.schedule(&ScheduleContext { linux, ..context(&twice, NEW) });
        let (before, added) = (10_000.0 + 5.0 * 832.0, BURST as f64);
        let average = (240_000.0 * before + 480_000.0 * added) / (before + added);
        assert!((pace(&mut scheduler) - average).abs() < 1e-6 * average);
    }

    #[test]
    fn what_is_queued_costs_socket_buffers_too() {
        let subflows = [SubflowView { bytes_in_flight: 4_500, ..view(0, 100) }];
        let assigned = [70_000];
        let context = ScheduleContext { assigned: &assigned, ..context(&subflows, NEW) };
        // Each sent buffer holds two segments, each waiting buffer up to 64 KiB.
        assert_eq!(queued(&context, &subflows[0]), 74_500 + (3 + 2) * 832);
    }

    #[test]
    fn a_burst_ends_with_a_fragment_the_window_or_the_data() {
        let (one, other) = (view(0, 20), view(1, 20));
        let subflows = [one, other];
        let mut scheduler = Linux::default();
        let mut begin_at = |carried: u64, available: u64, bytes: u64| {
            (scheduler.burst, scheduler.carried) = (None, carried);
            let mut context = context(&subflows, Pending::NewData { bytes });
            context.available_window = available;
            scheduler.schedule(&context);
            scheduler.end
        };
        // Two fragments exceed 64 KiB less headers. A segment may have gone beyond their end.
        assert_eq!(begin_at(0, 1 << 20, 1 << 20), 2 * FRAGMENT);
        assert_eq!(begin_at(2 * FRAGMENT + 900, 1 << 20, 1 << 20), 4 * FRAGMENT);
        assert_eq!(begin_at(4 * FRAGMENT + 5000, 1 << 20, 1 << 20), 7 * FRAGMENT);
        assert_eq!(begin_at(7 * FRAGMENT, 50_000, 1 << 20), 7 * FRAGMENT + 50_000);
        assert_eq!(begin_at(9 * FRAGMENT - 50, 10_000, 1 << 20), 9 * FRAGMENT - 50 + 10_000);
        assert_eq!(begin_at(20 * FRAGMENT, 1 << 20, 9_000), 20 * FRAGMENT + 9_000);
        // A segment went beyond the end of a burst within a fragment, then beyond the end of the
        // fragment with little room.
        assert_eq!(begin_at(0, FRAGMENT - 700, 1 << 20), FRAGMENT - 700);
        assert_eq!(begin_at(FRAGMENT + 200, 100, 1 << 20), FRAGMENT + 200);
    }
}
