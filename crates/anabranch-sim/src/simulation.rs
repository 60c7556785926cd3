//! The run loop: executes events in chronological order until the end of the run.

use anabranch_net::network::Arrival;
use anabranch_net::{Network, Side};
use anabranch_proto::Counters;
use anabranch_table::Table;
use anabranch_wire::{Instant, Packet};
use core::fmt;

use crate::capture::{Capture, CaptureFile};
use crate::custom_policies::{self, CustomPolicies};
use crate::error::RunError;
use crate::host::{EngineHost, Host};
use crate::inspection::Inspection;
use crate::ledger::{Arrivals, Ledger};
use crate::network::network;
use crate::recorder::Recorder;
use crate::scenario::Scenario;
use crate::statistics::Hosts;

/// Options of a run besides the scenario.
#[derive(Default)]
pub struct Options<'a> {
    /// The capture to write.
    pub capture: Option<Capture<'a>>,
    /// Serialise and parse every packet before it enters a link. This is slower, and proves that
    /// every packet can be represented in bytes.
    pub round_trip: bool,
    /// Use neither the engine's header prediction nor the short form of links. The outcome is the same,
    /// and takes longer.
    pub long_way: bool,
    /// User-defined policies. Index *n* holds the policies of connection number *n*; connections
    /// without an entry have none.
    pub custom_policies: &'a [CustomPolicies],
    /// Account for every instant of every subflow, every byte that a link could have carried, and
    /// the delay of every block, in four more tables: `activities`, `capacity`, `block_parts` and `handshakes`.
    pub ledger: bool,
    /// Called before each event with the time of the event. Returns true to stop the run.
    pub stop: Option<&'a mut dyn FnMut(Instant) -> bool>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Fingerprint of all packets that entered a link.
    pub digest: u64,
    /// Segments sent by both hosts.
    pub segments: u64,
    /// Segments with payload that were delivered.
    pub data_segments_delivered: u64,
    /// Virtual time at the end.
    pub end: Instant,
    /// The tables of the run.
    pub tables: Vec<Table>,
    /// Counters of client and server.
    pub counters: [Counters; 2],
    /// When the capture reached its maximum size.
    pub capture_full_at: Option<Instant>,
}

impl Outcome {
    /// The table with this name: `connections`, `subflows`, `links` or one of the time series.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Run `scenario` with `seed`.
///
/// # Errors
/// [`RunError`] if the capture cannot be written, if the round-trip check fails, if the
/// user-defined policies do not match the scenario, or if the run was stopped.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<Outcome, RunError> {
    let mut simulation = Simulation::new(scenario, seed, options)?;
    simulation.run()?;
    Ok(simulation.finish())
}

struct Simulation<'s, 'c, H> {
    scenario: &'s Scenario,
    now: Instant,
    /// Client and server.
    hosts: [H; 2],
    /// When each host is due; [`Instant::FAR_FUTURE`] if it has nothing to do.
    hosts_due: [Instant; 2],
    network: Network<Inspection<'c>>,
    recorder: Recorder,
    ledger: Option<Box<Ledger>>,
    /// When the run must be observed: at the next sample, at the end of the warm-up, and with a
    /// ledger at every event.
    observed_at: Instant,
    next_sample: Instant,
    warm_at: Option<Instant>,
    segments: u64,
    data_segments_delivered: u64,
    stop: Option<&'c mut dyn FnMut(Instant) -> bool>,
}

/// The part of the simulation that is due next.
#[derive(Clone, Copy)]
enum Due {
    Host(Side),
    Network,
}

impl<'s, 'c> Simulation<'s, 'c, EngineHost> {
    fn new(scenario: &'s Scenario, seed: u64, options: Options<'c>) -> Result<Self, RunError> {
        custom_policies::check_all(scenario, options.custom_policies)?;
        let capture = options.capture.map(|capture| CaptureFile::new(capture, scenario));
        let arrivals = options.ledger.then(|| Arrivals::new(scenario));
        let inspection = Inspection::counting(capture.transpose()?, arrivals, options.round_trip);
        let host = |side: Side| {
            EngineHost::new(side, scenario, options.custom_policies, seed, !options.long_way)
        };
        let mut network = network(scenario, seed, inspection);
        if options.long_way {
            network.use_general_links();
        }
        let ledger = options.ledger.then(|| Box::new(Ledger::new(scenario, network.paths())));
        Ok(Simulation {
            scenario,
            now: Instant::ZERO,
            hosts: [host(Side::Client), host(Side::Server)],
            hosts_due: [Instant::FAR_FUTURE; 2],
            network,
            recorder: Recorder::new(scenario),
            ledger,
            observed_at: Instant::ZERO,
            next_sample: Instant::ZERO,
            warm_at: Some(Instant::ZERO + scenario.warm_up),
            segments: 0,
            data_segments_delivered: 0,
            stop: options.stop,
        })
    }
}

impl<H: Host> Simulation<'_, '_, H> {
    fn run(&mut self) -> Result<(), RunError> {
        let end = Instant::ZERO + self.scenario.duration;
        [Side::Client, Side::Server].into_iter().for_each(|side| self.plan_host(side));
        loop {
            let (at, due) = self.next();
            // A time in the past means now.
            let at = at.max(self.now);
            self.observe_until(at.min(end));
            if at > end {
                break;
            }
            if self.stop.as_mut().is_some_and(|stop| stop(at)) {
                return Err(RunError::Stopped);
            }
            self.now = at;
            match due {
                Due::Host(side) => {
                    self.hosts[side as usize].handle_timeout(self.now);
                    self.serve_host(side)?;
                }
                Due::Network => self.serve_network()?,
            }
        }
        self.now = end;
        Ok(())
    }

    /// The next due part, and its time. Of simultaneous events, the client's come first, then the
    /// server's.
    #[inline]
    fn next(&self) -> (Instant, Due) {
        let [client, server] = self.hosts_due;
        let network = self.network.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if client <= server && client <= network {
            (client, Due::Host(Side::Client))
        } else if server <= network {
            (server, Due::Host(Side::Server))
        } else {
            (network, Due::Network)
        }
    }

    /// Observe the state due at or before `until`, the time of the next event.
    #[inline]
    fn observe_until(&mut self, until: Instant) {
        if self.observed_at <= until {
            self.observe(until);
        }
    }

    #[cold] // Most runs are observed far less often than there are events.
    fn observe(&mut self, until: Instant) {
        self.account_until(until);
        if let Some(at) = self.warm_at.filter(|at| *at <= until) {
            self.warm_at = None;
            if at > Instant::ZERO {
                self.recorder.on_warm(at, observed(&self.hosts));
            }
        }
        while self.next_sample <= until {
            let at = self.next_sample;
            self.recorder.sample(at, observed(&self.hosts), self.network.observe(at));
            self.next_sample += self.scenario.sample_interval;
        }
        if self.ledger.is_none() {
            self.observed_at = self.warm_at.unwrap_or(Instant::FAR_FUTURE).min(self.next_sample);
        }
    }

    /// Account for the last event, and for the time until the next one.
    fn account_until(&mut self, until: Instant) {
        let Some(ledger) = &mut self.ledger else { return };
        if let Some(arrivals) = self.network.tap_mut().arrivals_mut() {
            arrivals.on_processed(self.now, &self.hosts);
        }
        self.network.observe(self.now);
        if let Some(arrivals) = self.network.tap().arrivals() {
            ledger.on_quiet(self.now, &self.hosts, self.network.paths(), arrivals);
        }
        while let Some(at) = ledger.next_begin().filter(|at| *at <= until) {
            self.network.observe(at);
            if let Some(arrivals) = self.network.tap().arrivals() {
                ledger.on_begin(at, &self.hosts, self.network.paths(), arrivals);
            }
        }
        ledger.on_time(until, self.network.observe(until));
    }

    /// Deliver the packets that arrive now. A host reacts to each packet before the next one
    /// arrives.
    fn serve_network(&mut self) -> Result<(), RunError> {
        self.network.handle_timeout(self.now);
        while let Some(arrival) = self.network.poll_transmit(self.now) {
            self.arrive(arrival)?;
        }
        self.network.tap_mut().take_error().map_or(Ok(()), Err)
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<(), RunError> {
        let Arrival { receiver, path, packet } = arrival;
        self.network.tap_mut().on_received(self.now, receiver, path, &packet)?;
        match &packet {
            Packet::Tcp(segment) => {
                self.data_segments_delivered += u64::from(!segment.payload.is_empty());
            }
            Packet::TooBig(_) => {}
            // Hosts ignore cross-traffic.
            Packet::Udp(_) => return Ok(()),
        }
        self.hosts[receiver as usize].handle_packet(self.now, packet);
        self.serve_host(receiver)
    }

    /// Run the applications of a host, and send its segments.
    fn serve_host(&mut self, side: Side) -> Result<(), RunError> {
        let number = side as usize;
        loop {
            self.hosts[number].handle_events(self.now);
            while let Some(packet) = self.hosts[number].poll_transmit(self.now) {
                self.send(side, packet)?;
            }
            if !self.hosts[number].has_events() {
                break;
            }
        }
        self.plan_host(side);
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, side: Side, packet: Packet) -> Result<(), RunError> {
        let client = match side {
            Side::Client => packet.source(),
            Side::Server => packet.destination(),
        };
        // An address without a path has no route. A real host would drop the packet as well.
        let Some(path) = self.network.paths().path_of(client) else {
            return Ok(());
        };
        self.segments += 1;
        if self.network.tap().looks_at_sent() {
            return self.send_inspected(side, path, packet);
        }
        self.network.handle_packet(self.now, side.opposite(), path, packet);
        Ok(())
    }

    #[cold] // In a function of its own, so that the common case copies packets once only.
    fn send_inspected(
        &mut self,
        side: Side,
        path: usize,
        mut packet: Packet,
    ) -> Result<(), RunError> {
        self.network.tap_mut().on_sent(self.now, side, path, &mut packet)?;
        self.network.handle_packet(self.now, side.opposite(), path, packet);
        Ok(())
    }

    #[inline]
    fn plan_host(&mut self, side: Side) {
        let due = self.hosts[side as usize].poll_timeout();
        self.hosts_due[side as usize] = due.unwrap_or(Instant::FAR_FUTURE);
    }

    fn finish(mut self) -> Outcome {
        if let Some(arrivals) = self.network.tap_mut().arrivals_mut() {
            arrivals.on_end(self.now, &self.hosts);
        }
        let paths = self.network.paths();
        let arrivals = self.network.tap().arrivals();
        let more = self
            .ledger
            .zip(arrivals)
            .map(|(ledger, arrivals)| ledger.finish(self.now, &self.hosts, paths, arrivals));
        let hosts = observed(&self.hosts);
        Outcome {
            segments: self.segments,
            data_segments_delivered: self.data_segments_delivered,
            end: self.now,
            counters: self.hosts.each_ref().map(|host| host.counters()),
            tables: {
                let mut tables = self.recorder.finish(self.now, hosts, paths);
                tables.extend(more.into_iter().flatten());
                tables
            },
            digest: self.network.tap().digest(),
            capture_full_at: self.network.tap().capture_full_at(),
        }
    }
}

fn observed<H: Host>(hosts: &[H; 2]) -> Hosts<'_> {
    hosts.each_ref().map(|host| host as _)
}
