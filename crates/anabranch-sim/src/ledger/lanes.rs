//! The state of every subflow at every instant.

use anabranch_net::Side;
use anabranch_proto::view::SubflowId;
use anabranch_proto::{Activity, Reason, SubflowStats};
use anabranch_wire::Instant;

use super::states::{Shown, State};
use crate::host::Host;
use crate::recorder::{Builder, Flow, Kind, NONE, Table};
use crate::scenario::Scenario;
use crate::topology;

/// The subflows of all flows. A lane lasts from the start of the run to the end of its flow, and each
/// instant of it has exactly one state.
pub(super) struct Lanes {
    /// By flow.
    lanes: Vec<Vec<Lane>>,
    table: Builder,
}

struct Lane {
    path: usize,
    /// `None` while no subflow has used the path.
    subflow: Option<SubflowId>,
    /// What the engine says.
    reason: Shown,
    /// What the table shows.
    shown: Shown,
    since: Instant,
}

impl Lanes {
    pub(super) fn new(scenario: &Scenario, flows: &[Flow]) -> Self {
        let lane = |path: &usize| Lane {
            path: *path,
            subflow: None,
            reason: Shown::new(State::Absent),
            shown: Shown::new(State::Absent),
            since: Instant::ZERO,
        };
        let of =
            |flow: &Flow| scenario.connections[flow.connection].paths.iter().map(lane).collect();
        let table = Builder::new(
            "activities",
            &[
                ("connection", Kind::Index),
                ("path", Kind::Index),
                ("subflow", Kind::Index),
                ("generation", Kind::Index),
                ("state", Kind::Flag),
                ("behind", Kind::Index),
                ("from_ns", Kind::Count),
                ("until_ns", Kind::Count),
            ],
        );
        Lanes { lanes: flows.iter().map(of).collect(), table }
    }

    /// Take over what the engines say of a flow. The sending host knows what its subflows do, and the
    /// client which of them it is opening. `busy` says whether a path's link is.
    pub(super) fn update(
        &mut self,
        now: Instant,
        number: usize,
        flow: Flow,
        hosts: &[Host; 2],
        busy: &dyn Fn(usize) -> bool,
    ) {
        let host = &hosts[flow.sender as usize];
        let without = match host.has_fallen_back(now, flow.connection) {
            true => Shown::new(State::FallenBack),
            false => Shown::new(State::Absent),
        };
        let mut alive = 0_u32;
        for (stats, reason) in host.activities(flow.connection) {
            alive |= 1 << reason.subflow.slot;
            self.take(now, number, flow, (stats, reason), busy);
        }
        for lane in 0..self.lanes[number].len() {
            let Lane { path, subflow, .. } = self.lanes[number][lane];
            let gone = match subflow {
                None if is_opening(&hosts[Side::Client as usize], flow.connection, path) => {
                    Shown::new(State::Opening)
                }
                None => without,
                Some(id) if alive & (1 << id.slot) == 0 => Shown::new(State::Closed),
                Some(_) => continue,
            };
            self.set(now, number, lane, gone, busy);
        }
    }

    fn take(
        &mut self,
        now: Instant,
        number: usize,
        flow: Flow,
        (stats, reason): (SubflowStats, Reason),
        busy: &dyn Fn(usize) -> bool,
    ) {
        let client = match flow.sender {
            Side::Client => stats.local,
            Side::Server => stats.remote,
        };
        let Some(path) = topology::path_of(client.address) else { return };
        let lane = self.lane_of(number, path, reason.subflow);
        self.set(now, number, lane, reason.into(), busy);
        // A slot that is in use again belongs to an earlier subflow no longer.
        for other in 0..self.lanes[number].len() {
            let before = self.lanes[number][other].subflow.filter(|_| other != lane);
            if before.is_some_and(|id| id.slot == reason.subflow.slot) {
                self.set(now, number, other, Shown::new(State::Closed), busy);
            }
        }
    }

    /// The lane of a subflow: its own, or the one that waits for the first subflow of its path, or a
    /// new one.
    fn lane_of(&mut self, number: usize, path: usize, id: SubflowId) -> usize {
        let lanes = &mut self.lanes[number];
        let own = lanes.iter().position(|lane| lane.subflow == Some(id));
        let waiting = || lanes.iter().position(|lane| lane.path == path && lane.subflow.is_none());
        if let Some(lane) = own.or_else(waiting) {
            lanes[lane].subflow = Some(id);
            return lane;
        }
        let absent = Shown::new(State::Absent);
        lanes.push(Lane {
            path,
            subflow: Some(id),
            reason: absent,
            shown: absent,
            since: Instant::ZERO,
        });
        lanes.len() - 1
    }

    fn set(
        &mut self,
        now: Instant,
        number: usize,
        lane: usize,
        reason: Shown,
        busy: &dyn Fn(usize) -> bool,
    ) {
        let lane = &mut self.lanes[number][lane];
        lane.reason = reason;
        let shown = lane.seen(busy(lane.path));
        lane.show(now, number, shown, &mut self.table);
    }

    /// A link of these paths has become busy or idle.
    pub(super) fn on_occupancy(&mut self, now: Instant, busy: impl Fn(usize, usize) -> bool) {
        for (number, lanes) in self.lanes.iter_mut().enumerate() {
            for lane in lanes {
                let shown = lane.seen(busy(number, lane.path));
                lane.show(now, number, shown, &mut self.table);
            }
        }
    }

    /// What explains an idle link that these paths cross: the state of the subflow that comes
    /// closest to sending.
    pub(super) fn reason(&self, number: usize, crosses: impl Fn(usize) -> bool) -> Shown {
        let lanes = self.lanes[number].iter().filter(|lane| crosses(lane.path));
        let closest = lanes.map(|lane| lane.reason).min_by_key(|reason| reason.rank());
        closest.unwrap_or(Shown::new(State::Absent))
    }

    /// The lanes of a flow end.
    pub(super) fn end(&mut self, now: Instant, number: usize) {
        for mut lane in std::mem::take(&mut self.lanes[number]) {
            lane.close(now, number, &mut self.table);
        }
    }

    pub(super) fn finish(mut self, now: Instant) -> Table {
        (0..self.lanes.len()).for_each(|number| self.end(now, number));
        self.table.finish()
    }
}

/// Is the client opening a subflow of a connection on this path?
fn is_opening(client: &Host, connection: usize, path: usize) -> bool {
    client.activities(connection).any(|(stats, reason)| {
        reason.activity == Activity::Opening && topology::path_of(stats.local.address) == Some(path)
    })
}

impl Lane {
    /// A full congestion window on a busy path means that the path limits the subflow.
    fn seen(&self, busy: bool) -> Shown {
        match self.reason.state {
            State::CongestionWindow if busy => Shown::new(State::Sending),
            _ => self.reason,
        }
    }

    fn show(&mut self, now: Instant, number: usize, shown: Shown, table: &mut Builder) {
        if self.shown != shown {
            self.close(now, number, table);
            self.shown = shown;
        }
    }

    /// Write the interval that ends now.
    fn close(&mut self, now: Instant, number: usize, table: &mut Builder) {
        if self.since < now {
            table.push([
                number as u64,
                self.path as u64,
                self.subflow.map_or(NONE, |id| u64::from(id.slot)),
                self.subflow.map_or(NONE, |id| u64::from(id.generation)),
                self.shown.state as u64,
                self.shown.behind.map_or(NONE, u64::from),
                self.since.as_nanos(),
                now.as_nanos(),
            ]);
        }
        self.since = now;
    }
}
