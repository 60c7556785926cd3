//! Use or loss of each byte that a link could have carried.

use std::collections::BTreeMap;

use anabranch_net::network::Paths;
use anabranch_net::{Occupancy, Side, WORK_PER_BYTE};
use anabranch_table::{Builder, Name, Named, row};
use anabranch_wire::Instant;

use super::arrivals::PathArrivals;
use super::timelines::Timelines;
use crate::recorder::DataFlow;
use crate::scenario::Scenario;
use crate::states::{StateSpan, SubflowState};

/// Uses and losses of capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nothing to send, because of the state of a subflow.
    Idle(SubflowState),
    /// Data that arrived for the first time.
    Useful,
    /// IP and TCP headers of segments with data.
    Headers,
    /// Segments without data: acknowledgements, handshakes.
    Control,
    /// Data that this subflow had delivered before.
    Retransmitted,
    /// Data that another subflow had delivered before.
    Reinjected,
    /// Packets that left the link and did not arrive, or not before the end.
    Lost,
    /// Packets of other connections and cross-traffic.
    OtherTraffic,
    /// The link was down or suspended.
    Outage,
}

impl Named for Cause {
    /// The names of the states, and those of the uses.
    const NAMES: &'static [&'static str] = &{
        const STATES: usize = SubflowState::NAMES.len();
        const USES: [&str; 8] = [
            "useful",
            "headers",
            "control",
            "retransmitted",
            "reinjected",
            "lost",
            "other_traffic",
            "outage",
        ];
        let mut names = [""; STATES + USES.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = if at < STATES { SubflowState::NAMES[at] } else { USES[at - STATES] };
            at += 1;
        }
        names
    };

    fn index(self) -> u8 {
        let number = match self {
            Cause::Idle(state) => return state.index(),
            Cause::Useful => 0,
            Cause::Headers => 1,
            Cause::Control => 2,
            Cause::Retransmitted => 3,
            Cause::Reinjected => 4,
            Cause::Lost => 5,
            Cause::OtherTraffic => 6,
            Cause::Outage => 7,
        };
        SubflowState::NAMES.len() as u8 + number
    }
}

pub(super) struct Links {
    /// By path, towards the client and towards the server.
    meters: Vec<[Meter; 2]>,
    /// By flow.
    accounts: Vec<Vec<Account>>,
    /// The direction of each flow's data.
    towards: Vec<Side>,
    /// By path, the link that stands for the route towards the client, and towards the server.
    main: Vec<[LinkSide; 2]>,
}

/// Totals of a link so far.
#[derive(Clone, Copy)]
struct Meter {
    is_busy: bool,
    is_available: bool,
    /// Time up to which the meter counts.
    until: Instant,
    rate: u64,
    /// Bytes that it could have carried, and bytes that it could not carry because it was not
    /// available.
    capacity: u128,
    outage: u128,
    unfilled: u64,
}

/// A link: its path, and its direction in that path.
pub(super) type LinkSide = (usize, Side);

/// The losses of one flow on one link.
pub(super) struct Account {
    place: LinkSide,
    is_running: bool,
    reason: StateSpan,
    idle: BTreeMap<StateSpan, u128>,
    total: u128,
    outage: u128,
}

impl Links {
    pub(super) fn new(scenario: &Scenario, flows: &[DataFlow], paths: &Paths) -> Self {
        let account = |place| Account {
            place,
            is_running: false,
            reason: StateSpan::new(SubflowState::Absent),
            idle: BTreeMap::new(),
            total: 0,
            outage: 0,
        };
        let of = |flow: &DataFlow| {
            let own = scenario.connections[flow.connection].paths.iter();
            let towards = flow.sender.opposite();
            // A link by which no packet leaves counts as well: its capacity is unused.
            let mut crossed: Vec<_> = own
                .flat_map(|path| paths.crossed(*path, towards).chain([(*path, towards)]))
                .collect();
            crossed.sort_unstable();
            crossed.dedup();
            crossed.into_iter().map(account).collect()
        };
        let meter = |path: usize, towards: Side| Meter {
            is_busy: false,
            is_available: true,
            until: Instant::ZERO,
            rate: paths.link_of(path, towards).rate().as_bits_per_second(),
            capacity: 0,
            outage: 0,
            unfilled: 0,
        };
        Links {
            meters: (0..scenario.paths.len())
                .map(|path| [meter(path, Side::Client), meter(path, Side::Server)])
                .collect(),
            accounts: flows.iter().map(of).collect(),
            towards: flows.iter().map(|flow| flow.sender.opposite()).collect(),
            main: (0..scenario.paths.len())
                .map(|path| [Side::Client, Side::Server].map(|side| main_link(paths, path, side)))
                .collect(),
        }
    }

    /// Returns `true` if any link is busy that the flow's packets on `path` cross.
    pub(super) fn is_busy(&self, number: usize, path: usize) -> bool {
        let (path, towards) = self.main[path][self.towards[number] as usize];
        self.meters[path][towards as usize].is_busy
    }

    /// The accounts of a flow, by path.
    pub(super) fn accounts(&self, number: usize) -> impl Iterator<Item = (LinkSide, &Account)> {
        self.accounts[number].iter().map(|account| (account.place, account))
    }

    /// Count the work of the links since the last call.
    pub(super) fn observe(&mut self, now: Instant, paths: &Paths, timelines: &mut Timelines) {
        for path in 0..self.meters.len() {
            for towards in [Side::Client, Side::Server] {
                self.observe_link(now, path, towards, paths, timelines);
            }
        }
    }

    fn observe_link(
        &mut self,
        now: Instant,
        path: usize,
        towards: Side,
        paths: &Paths,
        timelines: &mut Timelines,
    ) {
        let link = paths.link_of(path, towards);
        let meter = self.meters[path][towards as usize];
        let occupancy = link.occupancy(now);
        let is_busy = occupancy == Occupancy::Busy;
        let is_available = occupancy != Occupancy::Unavailable;
        let rate = link.rate().as_bits_per_second();
        let same = (is_busy, is_available, rate) == (meter.is_busy, meter.is_available, meter.rate);
        if same {
            return;
        }
        // The link may have run empty between two events. Everything else happens at events.
        let at = match occupancy {
            Occupancy::Idle { since } if meter.is_busy => since.clamp(meter.until, now),
            _ => now,
        };
        self.settle(at, path, towards, paths);
        let meter = &mut self.meters[path][towards as usize];
        (meter.is_busy, meter.is_available, meter.rate) = (is_busy, is_available, rate);
        timelines.on_occupancy(at, |number, path| self.is_busy(number, path));
    }

    /// Count up to `at`, during which nothing has changed.
    fn settle(&mut self, at: Instant, path: usize, towards: Side, paths: &Paths) {
        let link = paths.link_of(path, towards);
        let meter = &mut self.meters[path][towards as usize];
        let Meter { until, is_busy, is_available, .. } = *meter;
        if at < until {
            return;
        }
        let work = match link.follows_trace() {
            true => link.capacity_between(until, at),
            false => u128::from(at.saturating_since(until).as_nanos()) * u128::from(meter.rate),
        };
        // Opportunities that were not filled passed while the link was busy.
        let unfilled = link.bytes_unfilled() - meter.unfilled;
        meter.unfilled += unfilled;
        meter.until = at;
        meter.capacity += work;
        let idle = match is_available && !is_busy {
            true => work,
            false => (u128::from(unfilled) * u128::from(WORK_PER_BYTE)).min(work),
        };
        let outage = if is_available { 0 } else { work };
        meter.outage += outage;
        let accounts = self.accounts.iter_mut().flatten();
        let here = |account: &&mut Account| account.place == (path, towards) && account.is_running;
        for account in accounts.filter(here) {
            account.total += work;
            account.outage += outage;
            if idle > 0 {
                *account.idle.entry(account.reason).or_default() += idle;
            }
        }
    }

    /// The states of a flow's subflows may have changed.
    pub(super) fn update(
        &mut self,
        now: Instant,
        number: usize,
        paths: &Paths,
        timelines: &Timelines,
    ) {
        let towards = self.towards[number];
        for index in 0..self.accounts[number].len() {
            let Account { place, reason, .. } = self.accounts[number][index];
            let crosses = |from: usize| paths.crossed(from, towards).any(|each| each == place);
            let new = timelines.reason(number, crosses);
            if new != reason {
                self.settle(now, place.0, place.1, paths);
                self.accounts[number][index].reason = new;
            }
        }
    }

    /// The accounts of a flow begin or end.
    pub(super) fn run_account(&mut self, now: Instant, number: usize, paths: &Paths, runs: bool) {
        for index in 0..self.accounts[number].len() {
            let (path, towards) = self.accounts[number][index].place;
            self.settle(now, path, towards, paths);
            self.accounts[number][index].is_running = runs;
        }
    }
}

/// The link of a path's route that is busy most of the time: its own, unless packets leave by another
/// path. Few routes have a second link.
fn main_link(paths: &Paths, path: usize, towards: Side) -> LinkSide {
    let own = (path, towards);
    let mut crossed = paths.crossed(path, towards);
    crossed
        .find(|place| *place == own)
        .or_else(|| paths.crossed(path, towards).next())
        .unwrap_or(own)
}

row! {
    /// Bytes that a link could have carried, by cause.
    pub(super) struct Capacity {
        connection: u32,
        path: u32,
        cause: Name<Cause>,
        behind: Option<u32>,
        bytes: u64,
    }
}

impl Account {
    /// Write a row for each cause. The bytes of all rows add up to what the link could have
    /// carried.
    pub(super) fn write(
        &self,
        table: &mut Builder<Capacity>,
        number: usize,
        path: usize,
        arrived: PathArrivals,
    ) {
        let (connection, path) = (number as u32, path as u32);
        let mut push = |cause: Cause, behind: Option<u8>, bytes: u64| {
            if bytes > 0 {
                let (cause, behind) = (Name(cause), behind.map(u32::from));
                table.push(Capacity { connection, path, cause, behind, bytes });
            }
        };
        let idle: u128 = self.idle.values().sum();
        // Whole bytes: each boundary between two causes is rounded once.
        let mut split = Split::default();
        let mut used = split.take((self.total - self.outage - idle).next_multiple_of(BYTE));
        push(Cause::Outage, None, split.take(self.outage));
        for (shown, work) in &self.idle {
            // Packets that the link carried before the account began may arrive after it.
            let bytes = split.take(*work);
            let earlier = arrived.useful.saturating_sub(used).min(bytes);
            used += earlier;
            push(Cause::Idle(shown.state), shown.behind, bytes - earlier);
        }
        for (cause, bytes) in arrived.split(used) {
            push(cause, None, bytes);
        }
    }
}

const BYTE: u128 = WORK_PER_BYTE as u128;

/// Splits work into whole bytes without losing any.
#[derive(Default)]
struct Split {
    work: u128,
    bytes: u128,
}

impl Split {
    fn take(&mut self, work: u128) -> u64 {
        self.work += work;
        let until = self.work / BYTE;
        let bytes = until - self.bytes;
        self.bytes = until;
        bytes as u64
    }
}

impl PathArrivals {
    /// Uses of the `used` bytes that the link sent.
    fn split(self, used: u64) -> [(Cause, u64); 7] {
        let mut left = used;
        let mut take = |bytes: u64| {
            let taken = bytes.min(left);
            left -= taken;
            taken
        };
        let again = self.payload.saturating_sub(self.useful);
        let elsewhere = self.received.saturating_sub(self.useful).min(again);
        let causes = [
            (Cause::Useful, take(self.useful)),
            (Cause::Reinjected, take(elsewhere)),
            (Cause::Retransmitted, take(again - elsewhere)),
            (Cause::Headers, take(self.headers)),
            (Cause::Control, take(self.control)),
            (Cause::OtherTraffic, take(self.other)),
        ];
        let [a, b, c, d, e, f] = causes;
        [a, b, c, d, e, f, (Cause::Lost, left)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_bytes_add_up_whatever_the_parts() {
        // 1.5 + 1.5 + 1 bytes: the first boundary lies within a byte.
        let mut split = Split::default();
        let parts = [3 * BYTE / 2, 3 * BYTE / 2, BYTE].map(|work| split.take(work));
        assert_eq!(parts, [1, 2, 1]);
    }

    #[test]
    fn what_a_link_sent_is_split_by_what_arrived() {
        // Of 1000 bytes of data, 600 are new. The subflow received 700 for the first time, so another
        // one had delivered 100 before, and 300 arrived twice on this one. 1200 - 1000 - 80 - 40 =
        // 80 bytes did not arrive.
        let arrived = PathArrivals {
            payload: 1000,
            useful: 600,
            received: 700,
            headers: 80,
            control: 40,
            other: 0,
        };
        let split: BTreeMap<u8, u64> =
            arrived.split(1200).into_iter().map(|(cause, bytes)| (cause.index(), bytes)).collect();
        let of = |cause: Cause| split[&cause.index()];
        assert_eq!(of(Cause::Useful), 600);
        assert_eq!(of(Cause::Reinjected), 100);
        assert_eq!(of(Cause::Retransmitted), 300);
        assert_eq!(of(Cause::Lost), 80);
        assert_eq!(split.values().sum::<u64>(), 1200);
    }
}
