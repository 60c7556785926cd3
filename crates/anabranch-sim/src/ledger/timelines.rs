//! The state of every subflow at every instant.

use anabranch_net::Side;
use anabranch_table::{Builder, Name, Table, row};
use anabranch_wire::Instant;

use crate::host::SimulatedHost;
use crate::recorder::DataFlow;
use crate::scenario::Scenario;
use crate::states::{StateSpan, SubflowState};
use crate::statistics::{FallbackReason, SubflowKey, SubflowTotals};
use crate::topology;

/// The subflows of all flows. A timeline lasts from the start of the run to the end of its flow, and each
/// instant of it has exactly one state.
pub(super) struct Timelines {
    /// By flow.
    timelines: Vec<Vec<Timeline>>,
    table: Builder<Interval>,
}

row! {
    /// An interval in which a subflow has one state.
    struct Interval {
        connection: u32,
        path: u32,
        subflow: Option<u32>,
        generation: Option<u32>,
        state: Name<SubflowState>,
        behind: Option<u32>,
        from_ns: u64,
        until_ns: u64,
    }
}

struct Timeline {
    path: usize,
    /// `None` while no subflow has used the path.
    subflow: Option<SubflowKey>,
    /// State according to the engine.
    reason: StateSpan,
    /// State in the table.
    shown: StateSpan,
    since: Instant,
}

impl Timelines {
    pub(super) fn new(scenario: &Scenario, flows: &[DataFlow]) -> Self {
        let timeline = |path: &usize| Timeline {
            path: *path,
            subflow: None,
            reason: StateSpan::new(SubflowState::Absent),
            shown: StateSpan::new(SubflowState::Absent),
            since: Instant::ZERO,
        };
        let of = |flow: &DataFlow| {
            scenario.connections[flow.connection].paths.iter().map(timeline).collect()
        };
        Timelines { timelines: flows.iter().map(of).collect(), table: Builder::new("activities") }
    }

    /// Take over the engines' states of a flow. The sending host knows the activity of its
    /// subflows, and the client which of them it is opening. `busy` says whether a path's link is.
    pub(super) fn update(
        &mut self,
        now: Instant,
        number: usize,
        flow: DataFlow,
        hosts: &[impl SimulatedHost; 2],
        busy: &dyn Fn(usize) -> bool,
    ) {
        let host = &hosts[flow.sender as usize];
        let without = match has_fallen_back(now, host, flow.connection) {
            true => StateSpan::new(SubflowState::FallenBack),
            false => StateSpan::new(SubflowState::Absent),
        };
        let mut alive = 0_u32;
        for (stats, state) in host.states(flow.connection) {
            alive |= 1 << stats.key.slot;
            self.on_sample(now, number, flow, (stats, state), busy);
        }
        for timeline in 0..self.timelines[number].len() {
            let Timeline { path, subflow, .. } = self.timelines[number][timeline];
            let gone = match subflow {
                None if is_opening(&hosts[Side::Client as usize], flow.connection, path) => {
                    StateSpan::new(SubflowState::Opening)
                }
                None => without,
                Some(id) if alive & (1 << id.slot) == 0 => StateSpan::new(SubflowState::Closed),
                Some(_) => continue,
            };
            self.set(now, number, timeline, gone, busy);
        }
    }

    fn on_sample(
        &mut self,
        now: Instant,
        number: usize,
        flow: DataFlow,
        (stats, state): (SubflowTotals, StateSpan),
        busy: &dyn Fn(usize) -> bool,
    ) {
        let client = match flow.sender {
            Side::Client => stats.local,
            Side::Server => stats.remote,
        };
        let Some(path) = topology::path_of(client.address) else { return };
        let timeline = self.timeline_of(number, path, stats.key);
        self.set(now, number, timeline, state, busy);
        // A slot that is in use again belongs to an earlier subflow no longer.
        for other in 0..self.timelines[number].len() {
            let before = self.timelines[number][other].subflow.filter(|_| other != timeline);
            if before.is_some_and(|id| id.slot == stats.key.slot) {
                self.set(now, number, other, StateSpan::new(SubflowState::Closed), busy);
            }
        }
    }

    /// The timeline of a subflow: its own, or the one that waits for the first subflow of its path, or a
    /// new one.
    fn timeline_of(&mut self, number: usize, path: usize, id: SubflowKey) -> usize {
        let timelines = &mut self.timelines[number];
        let own = timelines.iter().position(|timeline| timeline.subflow == Some(id));
        let waiting = || {
            timelines
                .iter()
                .position(|timeline| timeline.path == path && timeline.subflow.is_none())
        };
        if let Some(timeline) = own.or_else(waiting) {
            timelines[timeline].subflow = Some(id);
            return timeline;
        }
        let absent = StateSpan::new(SubflowState::Absent);
        timelines.push(Timeline {
            path,
            subflow: Some(id),
            reason: absent,
            shown: absent,
            since: Instant::ZERO,
        });
        timelines.len() - 1
    }

    fn set(
        &mut self,
        now: Instant,
        number: usize,
        timeline: usize,
        reason: StateSpan,
        busy: &dyn Fn(usize) -> bool,
    ) {
        let timeline = &mut self.timelines[number][timeline];
        timeline.reason = reason;
        let shown = timeline.seen(busy(timeline.path));
        timeline.show(now, number, shown, &mut self.table);
    }

    /// A link of these paths has become busy or idle.
    pub(super) fn on_occupancy(&mut self, now: Instant, busy: impl Fn(usize, usize) -> bool) {
        for (number, timelines) in self.timelines.iter_mut().enumerate() {
            for timeline in timelines {
                let shown = timeline.seen(busy(number, timeline.path));
                timeline.show(now, number, shown, &mut self.table);
            }
        }
    }

    /// Explanation for an idle link that these paths cross: the state of the subflow that comes
    /// closest to sending.
    pub(super) fn reason(&self, number: usize, crosses: impl Fn(usize) -> bool) -> StateSpan {
        let timelines = self.timelines[number].iter().filter(|timeline| crosses(timeline.path));
        let closest = timelines.map(|timeline| timeline.reason).min_by_key(|reason| reason.rank());
        closest.unwrap_or(StateSpan::new(SubflowState::Absent))
    }

    /// The intervals that have ended.
    pub(super) fn intervals(&self) -> &Table {
        self.table.table()
    }

    /// The intervals that last until `now` or longer.
    pub(super) fn open(&self, now: Instant) -> Table {
        let mut table = Builder::new("activities");
        for (number, timelines) in self.timelines.iter().enumerate() {
            timelines.iter().for_each(|timeline| timeline.write(now, number, &mut table));
        }
        table.finish()
    }

    /// The timelines of a flow end.
    pub(super) fn end(&mut self, now: Instant, number: usize) {
        for mut timeline in std::mem::take(&mut self.timelines[number]) {
            timeline.close(now, number, &mut self.table);
        }
    }

    pub(super) fn finish(mut self, now: Instant) -> Table {
        (0..self.timelines.len()).for_each(|number| self.end(now, number));
        self.table.finish()
    }
}

/// Returns `true` if the connection has fallen back to TCP, as far as this host knows.
fn has_fallen_back(now: Instant, host: &impl SimulatedHost, connection: usize) -> bool {
    let stats = host.stats(now, connection);
    stats.is_some_and(|stats| stats.fallback != FallbackReason::None)
}

/// Returns `true` if the client is opening a subflow of a connection on this path.
fn is_opening(client: &impl SimulatedHost, connection: usize, path: usize) -> bool {
    client.states(connection).any(|(stats, state)| {
        state.state == SubflowState::Opening && topology::path_of(stats.local.address) == Some(path)
    })
}

impl Timeline {
    /// A full congestion window or pacing on a busy path mean that the path limits the subflow.
    fn seen(&self, busy: bool) -> StateSpan {
        match self.reason.state {
            SubflowState::CongestionWindow | SubflowState::Paced if busy => {
                StateSpan::new(SubflowState::Sending)
            }
            _ => self.reason,
        }
    }

    fn show(
        &mut self,
        now: Instant,
        number: usize,
        shown: StateSpan,
        table: &mut Builder<Interval>,
    ) {
        if self.shown != shown {
            self.close(now, number, table);
            self.shown = shown;
        }
    }

    /// Write the interval that ends now.
    fn close(&mut self, now: Instant, number: usize, table: &mut Builder<Interval>) {
        self.write(now, number, table);
        self.since = now;
    }

    /// Write the present interval up to `now`.
    fn write(&self, now: Instant, number: usize, table: &mut Builder<Interval>) {
        if self.since < now {
            table.push(Interval {
                connection: number as u32,
                path: self.path as u32,
                subflow: self.subflow.map(|id| id.slot.into()),
                generation: self.subflow.map(|id| id.generation),
                state: Name(self.shown.state),
                behind: self.shown.behind.map(u32::from),
                from_ns: self.since.as_nanos(),
                until_ns: now.as_nanos(),
            });
        }
    }
}
