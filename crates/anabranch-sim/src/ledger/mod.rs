//! Accounts for every instant of every subflow and every byte that a link could have carried.
//!
//! A [`Ledger`] watches a run. It asks the engine after each event what each subflow does, and asks
//! each link what it did since the last event. At the end it writes tables. `activities` has an
//! interval for each state of each subflow. `capacity` says what became of each byte that each link
//! could have carried: the bytes of a link add up exactly. A third table, `block_parts`, splits the
//! delay of each block.
//!
//! A run without a ledger does not pay for one: the run loop looks here only where it takes
//! samples, and the [`Arrivals`] are counted where captures are written.

mod arrivals;
mod journeys;
mod lanes;
mod links;
mod states;

use anabranch_net::network::Paths;
use anabranch_wire::Instant;

use crate::host::Host;
use crate::recorder::{Flow, Observed, Table, flows};
use crate::scenario::Scenario;
pub(crate) use arrivals::Arrivals;
use lanes::Lanes;
use links::Links;

/// The account of a run.
pub(crate) struct Ledger {
    flows: Vec<Flow>,
    lanes: Lanes,
    links: Links,
}

impl Ledger {
    /// An account that begins at the start of the run.
    pub(crate) fn new(scenario: &Scenario, paths: &Paths) -> Self {
        let flows = flows(scenario);
        let links = Links::new(scenario, &flows, paths);
        Ledger { lanes: Lanes::new(scenario, &flows), links, flows }
    }

    /// The next event is at `now`, and the links have caught up with it.
    pub(crate) fn on_time(&mut self, now: Instant, paths: &Paths) {
        self.links.observe(now, paths, &mut self.lanes);
    }

    /// The hosts have processed the event at `now`, and have nothing more to do.
    pub(crate) fn on_quiet(&mut self, now: Instant, hosts: &[Host; 2], paths: &Paths) {
        self.links.observe(now, paths, &mut self.lanes);
        for (number, flow) in self.flows.iter().enumerate() {
            let host = &hosts[flow.sender as usize];
            let busy = |path| self.links.is_busy(number, path);
            self.lanes.update(now, number, *flow, host, &busy);
            self.links.update(now, number, paths, &self.lanes);
        }
    }

    /// The tables at the end of the run.
    pub(crate) fn finish(
        mut self,
        now: Instant,
        hosts: &[Host; 2],
        paths: &Paths,
        arrivals: &Arrivals,
    ) -> [Table; 3] {
        self.links.settle_all(now, paths);
        let capacity = self.capacity(hosts, paths, arrivals);
        let observed = hosts.each_ref().map(|host| host as _);
        [self.lanes.finish(now), capacity, arrivals.journeys().finish(observed, paths)]
    }

    fn capacity(&self, hosts: &[Host; 2], paths: &Paths, arrivals: &Arrivals) -> Table {
        let mut table = links::builder();
        for (number, flow) in self.flows.iter().enumerate() {
            let receiver = &hosts[flow.sender.opposite() as usize];
            for (place, account) in self.links.accounts(number) {
                let crosses =
                    |from: usize, towards| paths.crossed(from, towards).any(|each| each == place);
                let here = |from: &usize| crosses(*from, flow.sender.opposite());
                let mut arrived = arrivals.over(number, here);
                // Packets to the sender share a link that their path crosses in reverse.
                arrived.other += arrivals.bytes_at(flow.sender, |from| crosses(from, flow.sender));
                let ends = flow.received_over(receiver, here);
                account.write(&mut table, number, place.0, arrived, ends);
            }
            let useful = arrivals.useful(number);
            let delivered = receiver.sink(flow.connection).received();
            links::write_held(&mut table, number, useful, delivered);
        }
        table.finish()
    }
}
