//! The run loop: executes events in chronological order.

use anabranch_net::network::Arrival;
use anabranch_net::{Network, ScheduledChange, Side};
use anabranch_proto::Counters;
use anabranch_table::Table;
use anabranch_wire::{Duration, Instant, Packet};
use core::fmt;
use std::net::IpAddr;

use crate::capture::{Capture, CaptureFile};
use crate::custom_policies::{self, CustomPolicies};
use crate::error::RunError;
use crate::host::{EngineHost, EngineOptions, SimulatedHost, address_change};
use crate::inspection::Inspection;
use crate::ledger::{Arrivals, Ledger};
use crate::network::network;
use crate::recorder::{Recorder, links_table};
use crate::scenario::{AppliesTo, Change, Scenario};
use crate::statistics::Hosts;
use crate::topology;

/// Options of a run besides the scenario. Each option has a setter with its name.
#[derive(Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The capture to write.
    pub capture: Option<Capture<'a>>,
    /// Serialise and parse every packet before it enters a link. This is slower, and proves that
    /// every packet can be represented in bytes.
    pub round_trip: bool,
    /// Run without the engine's header prediction, without its polls without data or for several segments,
    /// and without express links. This is slower, and proves that these shortcuts do not change the outcome.
    pub without_shortcuts: bool,
    /// User-defined policies. Index *n* holds the policies of connection number *n*; connections
    /// without an entry have none.
    pub custom_policies: &'a [CustomPolicies],
    /// Account for every instant of every subflow, every byte that a link could have carried, and
    /// the delay of every block, in four more tables: `activities`, `capacity`, `block_parts` and `handshakes`.
    pub ledger: bool,
    /// Record the engine's decisions, for [`Simulation::poll_trace`](crate::Simulation::poll_trace).
    pub trace: bool,
    /// Called before each event with the time of the event. Returns true to stop the run.
    pub stop: Option<&'a mut dyn FnMut(Instant) -> bool>,
}

anabranch_config::setters! { [<'a>] Options<'a> {
    capture: impl Into<Option<Capture<'a>>> => capture.into(),
    round_trip: bool,
    without_shortcuts: bool,
    custom_policies: &'a [CustomPolicies],
    ledger: bool,
    trace: bool,
    stop: &'a mut dyn FnMut(Instant) -> bool => Some(stop),
} }

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
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

impl RunOutcome {
    /// The table with this name: `connections`, `subflows`, `links` or one of the time series.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// The run of a scenario between two hosts.
pub(crate) struct RunLoop<'c, H> {
    sample_interval: Duration,
    pub(crate) end: Instant,
    /// The client's addresses by path.
    clients: Vec<IpAddr>,
    pub(crate) now: Instant,
    /// Events so far.
    pub(crate) events: u64,
    /// Client and server.
    pub(crate) hosts: [H; 2],
    /// When each host is due; [`Instant::FAR_FUTURE`] if it has nothing to do.
    hosts_due: [Instant; 2],
    pub(crate) network: Network<Inspection<'c>>,
    pub(crate) recorder: Recorder,
    ledger: Option<Box<Ledger>>,
    /// When the run must be observed: at the next sample, at the end of the warm-up, and with a
    /// ledger at every event.
    observed_at: Instant,
    next_sample: Instant,
    warm_at: Option<Instant>,
    pub(crate) segments: u64,
    data_segments_delivered: u64,
    stop: Option<&'c mut dyn FnMut(Instant) -> bool>,
}

/// The part of the simulation that is due next.
#[derive(Clone, Copy)]
enum Due {
    Host(Side),
    Network,
}

impl<'c> RunLoop<'c, EngineHost> {
    /// The run of `scenario` with `seed`, before its first event.
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        options: Options<'c>,
    ) -> Result<Self, RunError> {
        custom_policies::check_all(scenario, options.custom_policies)?;
        let capture = options.capture.map(|capture| CaptureFile::new(capture, scenario));
        let arrivals = options.ledger.then(|| Arrivals::new(scenario));
        let inspection = Inspection::counting(capture.transpose()?, arrivals, options.round_trip);
        let custom = options.custom_policies;
        let engine_options =
            EngineOptions { header_prediction: !options.without_shortcuts, trace: options.trace };
        let host = |side: Side| EngineHost::with(side, scenario, custom, seed, engine_options);
        let mut network = network(scenario, seed, inspection);
        if options.without_shortcuts {
            network.use_general_links();
        }
        let ledger = options.ledger.then(|| Box::new(Ledger::new(scenario, network.paths())));
        let clients = 0..scenario.paths.len();
        let mut run = RunLoop {
            sample_interval: scenario.sample_interval,
            end: Instant::ZERO + scenario.duration,
            clients: clients.map(|path| topology::client_address(&scenario.paths, path)).collect(),
            now: Instant::ZERO,
            events: 0,
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
        };
        [Side::Client, Side::Server].into_iter().for_each(|side| run.plan_host(side));
        Ok(run)
    }

    /// Change a path at a time that lies ahead.
    pub(crate) fn schedule(&mut self, path: usize, change: &Change) -> Result<(), RunError> {
        let at = Instant::ZERO + change.at;
        if at <= self.now {
            return Err(RunError::PastChange(at));
        }
        let client = *self.clients.get(path).ok_or(RunError::UnknownPath(path))?;
        self.recorder.add_change(at, path);
        for (towards, other) in
            [(Side::Client, AppliesTo::Reverse), (Side::Server, AppliesTo::Forward)]
        {
            if change.applies_to != other {
                let change = ScheduledChange { at, change: change.of_link() };
                self.network.schedule(path, towards, change);
            }
        }
        if let Some(noticed) = address_change(client, change) {
            self.hosts[Side::Client as usize].schedule(noticed);
            self.plan_host(Side::Client);
        }
        Ok(())
    }
}

impl<H: SimulatedHost> RunLoop<'_, H> {
    /// Execute all events until `until`, which is not after the end of the run.
    pub(crate) fn execute_until(&mut self, until: Instant) -> Result<(), RunError> {
        loop {
            let (at, due) = self.next();
            self.observe_until(at.min(until));
            if at > until {
                break;
            }
            self.execute(at, due)?;
        }
        self.now = self.now.max(until);
        if until < self.end { Ok(()) } else { self.network.tap_mut().finish_capture() }
    }

    /// Execute the next event. Returns `false` if there was none before the end of the run.
    pub(crate) fn execute_next(&mut self) -> Result<bool, RunError> {
        let (at, due) = self.next();
        if at > self.end {
            return self.execute_until(self.end).map(|()| false);
        }
        self.observe_until(at);
        self.execute(at, due).map(|()| true)
    }

    #[inline]
    fn execute(&mut self, at: Instant, due: Due) -> Result<(), RunError> {
        if self.stop.as_mut().is_some_and(|stop| stop(at)) {
            return Err(RunError::Stopped);
        }
        self.now = at;
        self.events += 1;
        match due {
            Due::Host(side) => {
                self.hosts[side as usize].handle_timeout(self.now);
                self.serve_host(side)
            }
            Due::Network => self.serve_network(),
        }
    }

    /// Returns `true` once nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.now == self.end && self.next().0 > self.end
    }

    /// Totals so far, as in the tables of a run that ends now.
    pub(crate) fn totals(&mut self) -> [Table; 4] {
        let paths = self.network.observe(self.now);
        let hosts = observed(&self.hosts);
        [
            self.recorder.connections(self.now, hosts),
            self.recorder.subflows(hosts, paths),
            links_table(paths),
            self.recorder.blocks(hosts),
        ]
    }

    /// The use of the links so far; `None` without a ledger.
    pub(crate) fn capacity(&mut self) -> Option<Table> {
        self.account_until(self.now);
        let ledger = self.ledger.as_mut()?;
        let arrivals = self.network.tap().arrivals()?;
        Some(ledger.capacity_until(self.now, &self.hosts, self.network.paths(), arrivals))
    }

    /// The states of the subflows so far: intervals that have ended, and intervals that last.
    pub(crate) fn activities(&mut self) -> Option<(&Table, Table)> {
        self.account_until(self.now);
        self.ledger.as_ref().map(|ledger| ledger.intervals(self.now))
    }

    /// The next due part, and its time. Of simultaneous events, the client's come first, then the
    /// server's. A part that was due in the past is due now.
    #[inline]
    fn next(&self) -> (Instant, Due) {
        let [client, server] = self.hosts_due;
        let network = self.network.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let (at, due) = if client <= server && client <= network {
            (client, Due::Host(Side::Client))
        } else if server <= network {
            (server, Due::Host(Side::Server))
        } else {
            (network, Due::Network)
        };
        (at.max(self.now), due)
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
            self.next_sample += self.sample_interval;
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
            while let Some(connection) = self.hosts[number].poll_progress() {
                self.recorder.on_progress(self.now, connection, self.hosts.each_ref());
            }
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

    #[cold] // Most runs neither capture nor check packets.
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

    pub(crate) fn conclude(mut self) -> RunOutcome {
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
        RunOutcome {
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

fn observed<H: SimulatedHost>(hosts: &[H; 2]) -> Hosts<'_> {
    hosts.each_ref().map(|host| host as _)
}
