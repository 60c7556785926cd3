//! The emulated network in real time. It processes every event at the event's own time until it
//! reaches the present. A late wake-up therefore delays packets, but does not change departure times.

use anabranch_net::network::{Arrival, Paths};
use anabranch_net::{Network, Side};
use anabranch_wire::{Instant, Packet};

/// A network, and the time up to which its events are processed.
pub(crate) struct CatchingUp {
    network: Network,
    now: Instant,
    /// Arrivals at hosts with their exact times.
    arrived: Vec<(Instant, Arrival)>,
}

impl CatchingUp {
    pub(crate) fn new(network: Network) -> Self {
        CatchingUp { network, now: Instant::ZERO, arrived: Vec::new() }
    }

    /// Accept a packet that a host sent at `at`. If the network has passed that time, the packet
    /// enters at the network's current time.
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

    /// Process all events up to `until`, each at its own time.
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

    /// Links, middleboxes and routes in their state after the last call.
    pub(crate) fn paths(&self) -> &Paths {
        self.network.paths()
    }
}
