//! Accounts for every instant of every subflow and every byte that a link could have carried.
//!
//! A [`Ledger`] watches a run. It asks the engine after each event what each subflow does, and asks
//! each link what it did since the last event. At the end it writes tables. `activities` has an
//! interval for each state of each subflow. `capacity` says what became of each byte that each link
//! could have carried while the flow was measured: from the end of the warm-up, or the opening of the
//! connection, until its workload has ended. The bytes of a link add up exactly. `block_parts` splits
//! the delay of each block, and `handshakes` counts SYNs.
//!
//! A run without a ledger does not pay for one: the run loop looks here only where it takes
//! samples, and the [`Arrivals`] are counted where captures are written.

mod arrivals;
mod block_delays;
mod handshakes;
mod links;
mod timelines;

use anabranch_net::network::Paths;
use anabranch_table::{Builder, Table};
use anabranch_wire::Instant;

use crate::host::SimulatedHost;
use crate::recorder::{DataFlow, flows};
use crate::scenario::Scenario;
use crate::statistics::Hosts;
use arrivals::ArrivalTotals;
pub(crate) use arrivals::Arrivals;
use links::{Capacity, Links};
use timelines::Timelines;

/// The account of a run.
pub(crate) struct Ledger {
    flows: Vec<DataFlow>,
    /// By flow.
    measured: Vec<Measured>,
    timelines: Timelines,
    links: Links,
}

/// Progress of measuring a flow.
enum Measured {
    /// It begins at this time.
    From(Instant),
    /// It has begun; by then, this had arrived.
    Since(ArrivalTotals),
    /// It has ended; meanwhile, this has arrived.
    Ended(ArrivalTotals),
}

impl Ledger {
    /// An account of a run that has not started.
    pub(crate) fn new(scenario: &Scenario, paths: &Paths) -> Self {
        let flows = flows(scenario);
        let links = Links::new(scenario, &flows, paths);
        let begin = |flow: &DataFlow| {
            let start = scenario.connections[flow.connection].start;
            Measured::From(flow.measured_from(scenario.warm_up, Instant::ZERO + start))
        };
        let measured = flows.iter().map(begin).collect();
        Ledger { measured, timelines: Timelines::new(scenario, &flows), links, flows }
    }

    /// The next event is at `now`, and the links have caught up with it.
    pub(crate) fn on_time(&mut self, now: Instant, paths: &Paths) {
        self.links.observe(now, paths, &mut self.timelines);
    }

    /// The hosts have processed the event at `now`, and have nothing more to do.
    pub(crate) fn on_quiet(
        &mut self,
        now: Instant,
        hosts: &[impl SimulatedHost; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) {
        self.links.observe(now, paths, &mut self.timelines);
        for number in 0..self.flows.len() {
            if matches!(self.measured[number], Measured::Ended(_)) {
                continue;
            }
            let flow = self.flows[number];
            let busy = |path| self.links.is_busy(number, path);
            self.timelines.update(now, number, flow, hosts, &busy);
            self.links.update(now, number, paths, &self.timelines);
            if flow.ended_at(observed(hosts)).is_some() {
                self.end(now, number, hosts, paths, arrivals);
            }
        }
    }

    /// When the measuring of the next flow begins.
    pub(crate) fn next_begin(&self) -> Option<Instant> {
        let begins = self.measured.iter().filter_map(|measured| match measured {
            Measured::From(at) => Some(*at),
            _ => None,
        });
        begins.min()
    }

    /// The measuring begins of the flows that are due at `now`, before the event at that time.
    pub(crate) fn on_begin(
        &mut self,
        now: Instant,
        hosts: &[impl SimulatedHost; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) {
        self.links.observe(now, paths, &mut self.timelines);
        for number in 0..self.flows.len() {
            if matches!(self.measured[number], Measured::From(at) if at <= now) {
                self.links.run_account(now, number, paths, true);
                self.measured[number] = Measured::Since(arrivals.totals(number, hosts));
            }
        }
    }

    fn end(
        &mut self,
        now: Instant,
        number: usize,
        hosts: &[impl SimulatedHost; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) {
        self.links.run_account(now, number, paths, false);
        self.timelines.end(now, number);
        let totals = arrivals.totals(number, hosts);
        // A flow that ends during the warm-up is not measured.
        let before = match &self.measured[number] {
            Measured::Since(before) => before,
            _ => &totals,
        };
        self.measured[number] = Measured::Ended(totals.since(before));
    }

    /// The use of the links until `now`, as in the table `capacity` of a run that ends now.
    pub(crate) fn capacity_until(
        &mut self,
        now: Instant,
        hosts: &[impl SimulatedHost; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) -> Table {
        let mut table = Builder::new("capacity");
        for number in 0..self.flows.len() {
            match &self.measured[number] {
                Measured::From(_) => {}
                Measured::Since(before) => {
                    self.links.run_account(now, number, paths, true);
                    let totals = arrivals.totals(number, hosts).since(before);
                    self.write_capacity(number, &totals, paths, &mut table);
                }
                Measured::Ended(totals) => {
                    self.write_capacity(number, totals, paths, &mut table);
                }
            }
        }
        table.finish()
    }

    /// The states of the subflows: intervals that have ended, and intervals that last.
    pub(crate) fn intervals(&self, now: Instant) -> (&Table, Table) {
        (self.timelines.intervals(), self.timelines.open(now))
    }

    /// The tables at the end of the run.
    pub(crate) fn finish(
        mut self,
        now: Instant,
        hosts: &[impl SimulatedHost; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) -> [Table; 4] {
        for number in 0..self.flows.len() {
            if !matches!(self.measured[number], Measured::Ended(_)) {
                self.end(now, number, hosts, paths, arrivals);
            }
        }
        [
            self.capacity_until(now, hosts, paths, arrivals),
            self.timelines.finish(now),
            arrivals.block_delays().finish(observed(hosts), paths),
            arrivals.handshakes().finish(&self.flows),
        ]
    }

    /// Write the use of the links by a flow for which `totals` arrived.
    fn write_capacity(
        &self,
        number: usize,
        totals: &ArrivalTotals,
        paths: &Paths,
        table: &mut Builder<Capacity>,
    ) {
        let sender = self.flows[number].sender;
        for (place, account) in self.links.accounts(number) {
            let crosses =
                |from: usize, towards| paths.crossed(from, towards).any(|each| each == place);
            let here = |from: &usize| crosses(*from, sender.opposite());
            let mut arrived = totals.over(here);
            // Packets to the sender share a link that their path crosses in reverse.
            arrived.other += totals.bytes_at(sender, |from| crosses(from, sender));
            account.write(table, number, place.0, arrived);
        }
    }
}

fn observed<H: SimulatedHost>(hosts: &[H; 2]) -> Hosts<'_> {
    hosts.each_ref().map(|host| host as _)
}
