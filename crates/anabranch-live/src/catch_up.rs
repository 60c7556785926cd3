//! The emulated network in real time: it is brought up to the present, event by event, so that a
//! late wake-up delays what is due but changes no departure time.

use anabranch_net::network::{Arrival, Paths};
use anabranch_net::{Network, Side};
use anabranch_wire::{Instant, Packet};

/// A network, and the time up to which it has been served.
pub(crate) struct CatchingUp {
    network: Network,
    now: Instant,
    /// Arrivals at hosts, each with its exact time.
    arrived: Vec<(Instant, Arrival)>,
}

impl CatchingUp {
    pub(crate) fn new(network: Network) -> Self {
        CatchingUp { network, now: Instant::ZERO, arrived: Vec::new() }
    }

    /// Take a packet that a host sent at `at`. If the network is past that time, the packet enters
    /// it at the present one.
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

    /// Serve everything due up to `until`, each part at its own time.
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

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.network.poll_timeout()
    }

    /// Take all arrivals, in order of time.
    pub(crate) fn take_arrived(&mut self) -> Vec<(Instant, Arrival)> {
        std::mem::take(&mut self.arrived)
    }

    /// Links, middleboxes and routes at `now`.
    pub(crate) fn observe(&mut self, now: Instant) -> &Paths {
        self.handle_timeout(now);
        self.network.observe(now)
    }

    /// Links, middleboxes and routes, in the state that the last call left them in.
    pub(crate) fn paths(&self) -> &Paths {
        self.network.paths()
    }
}
