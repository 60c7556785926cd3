//! Accounts for every instant of every subflow and every byte that a link could have carried.
//!
//! A [`Ledger`] watches a run. It asks the engine after each event what each subflow does, and asks
//! each link what it did since the last event. At the end it writes two tables. `activities` has an
//! interval for each state of each subflow. `capacity` says what became of each byte that each link
//! could have carried: the bytes of a link add up exactly.
//!
//! An unwatched run has no ledger, and is compiled without it.

mod arrivals;
mod lanes;
mod links;
mod states;

use anabranch_net::Side;
use anabranch_net::network::Paths;
use anabranch_wire::{Instant, Packet};

use crate::host::Host;
use crate::recorder::{Flow, Observed, Table, flows};
use crate::scenario::Scenario;
use arrivals::Arrivals;
use lanes::Lanes;
use links::Links;

/// The account of a run.
pub(crate) struct Ledger {
    flows: Vec<Flow>,
    lanes: Lanes,
    links: Links,
    arrivals: Arrivals,
}

impl Ledger {
    /// An account that begins at the start of the run.
    pub(crate) fn new(scenario: &Scenario, paths: &Paths) -> Self {
        let flows = flows(scenario);
        let links = Links::new(scenario, &flows, paths);
        Ledger {
            lanes: Lanes::new(scenario, &flows),
            arrivals: Arrivals::new(scenario, &flows),
            links,
            flows,
        }
    }

    /// The next event is at `now`, and the links have caught up with it.
    pub(crate) fn on_time(&mut self, now: Instant, paths: &Paths) {
        self.links.observe(now, paths, &mut self.lanes);
    }

    /// A packet arrives at `receiver` on `path`.
    pub(crate) fn on_arrival(&mut self, receiver: Side, path: usize, packet: &Packet) {
        self.arrivals.on_arrival(receiver, path, packet);
    }

    /// `receiver` has processed the packet that arrived on `path`.
    pub(crate) fn on_processed(
        &mut self,
        now: Instant,
        receiver: Side,
        path: usize,
        hosts: &[Host; 2],
    ) {
        self.arrivals.on_processed(now, receiver, path, hosts);
    }

    /// The hosts have nothing more to do at `now`.
    pub(crate) fn on_quiet(&mut self, now: Instant, hosts: &[Host; 2], paths: &Paths) {
        self.links.observe(now, paths, &mut self.lanes);
        for (number, flow) in self.flows.iter().enumerate() {
            let host = &hosts[flow.sender as usize];
            self.lanes.update(now, number, *flow, host, &self.links);
            self.links.update(now, number, paths, &self.lanes);
        }
    }

    /// The tables at the end of the run.
    pub(crate) fn finish(
        mut self,
        now: Instant,
        hosts: &[Host; 2],
        paths: &Paths,
    ) -> [Table; 2] {
        self.links.settle_all(now, paths);
        let capacity = self.capacity(hosts, paths);
        [self.lanes.finish(now), capacity]
    }

    fn capacity(&self, hosts: &[Host; 2], paths: &Paths) -> Table {
        let mut table = links::builder();
        for (number, flow) in self.flows.iter().enumerate() {
            let receiver = &hosts[flow.sender.opposite() as usize];
            for (path, account) in self.links.accounts(number) {
                let here = |from: &usize| {
                    paths.paths_crossed(*from, flow.sender.opposite()).any(|each| each == path)
                };
                let arrived = self.arrivals.over(number, here);
                let ends = flow.received_over(receiver, here);
                account.write(&mut table, number, path, arrived, ends);
            }
            let useful = self.arrivals.useful(number);
            let delivered = receiver.sink(flow.connection).received();
            links::write_held(&mut table, number, useful, delivered);
        }
        table.finish()
    }
}
