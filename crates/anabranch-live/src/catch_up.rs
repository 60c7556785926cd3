//! The emulated network in real time: it is brought up to the present, event by event, so that a
//! late wake-up delays what is due but changes no departure time.

use anabranch_net::network::{Arrival, Paths};
use anabranch_net::{Network, Side};
use anabranch_wire::{Instant, Packet};

/// A network with the time up to which it has come.
pub(crate) struct CatchingUp {
    network: Network,
    now: Instant,
    /// What has come to hosts, and when it was there.
    arrived: Vec<(Instant, Arrival)>,
}

impl CatchingUp {
    pub(crate) fn new(network: Network) -> Self {
        CatchingUp { network, now: Instant::ZERO, arrived: Vec::new() }
    }

    /// A host sends a packet on `path` at `at`, or when something later has happened already.
    pub(crate) fn handle_packet(
        &mut self,
        at: Instant,
        towards: Side,
        path: usize,
        packet: Packet,
    ) {
        self.handle_timeout(at);
        self.network.handle_packet(self.now, towards, path, packet);
    }

    /// Do what is due up to `until`.
    pub(crate) fn handle_timeout(&mut self, until: Instant) {
        while let Some(at) = self.network.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.network.handle_timeout(self.now);
            while let Some(arrival) = self.network.poll_transmit(self.now) {
                self.arrived.push((self.now, arrival));
            }
        }
        self.now = self.now.max(until);
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.network.poll_timeout()
    }

    /// Take what has arrived, in the order of arrival.
    pub(crate) fn take_arrived(&mut self) -> Vec<(Instant, Arrival)> {
        std::mem::take(&mut self.arrived)
    }

    /// Links and middleboxes, brought up to `now`, which is not before the last call.
    pub(crate) fn observe(&mut self, now: Instant) -> &Paths {
        self.handle_timeout(now);
        self.network.observe(now)
    }

    /// Links, middleboxes, and which packets cross them, as of the last call that took a time.
    pub(crate) fn paths(&self) -> &Paths {
        self.network.paths()
    }
}
