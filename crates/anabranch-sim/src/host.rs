//! A host: the engine and its applications.

use anabranch_net::rng::stream_seed;
use anabranch_net::{EventQueue, Side};
use anabranch_proto::config::{
    CongestionControlFactory, ConnectionConfig, Interfaces, Protocol, TcpConfig,
};
use anabranch_proto::view::SubflowSet;
use anabranch_proto::{ArrivedData, ConnectionId, Counters, Endpoint, Event, TraceEvent};
use anabranch_wire::{Instant, Packet, Piece, PooledSegment, SocketAddress};
use core::fmt;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use crate::app::App;
use crate::custom_policies::{self, CustomPolicies, CustomPoliciesError, Owner, PathNames};
use crate::scenario::{self, Change, CongestionControl, LinkState, Policy};
use crate::states::StateSpan;
use crate::statistics::{ConnectionProgress, ConnectionTotals, Observed, SubflowTotals};
use crate::topology;
use crate::workload::{Sender, Sink, Socket};

/// An application that uses the engine.
struct EngineApp {
    app: App,
    id: Option<ConnectionId>,
    closed: bool,
    failed: bool,
    /// Whether the host's list of progressed connections has this one.
    progressed: bool,
    /// Totals of the closed subflows.
    past_subflows: Vec<SubflowTotals>,
    /// Totals of the connection when it ended.
    past: Option<ConnectionTotals>,
    /// The server address of the connection.
    server: IpAddr,
    config: ConnectionConfig,
}

/// A host on the links of a simulation. Its methods have the same names as the engine's.
pub(crate) trait SimulatedHost: Observed {
    /// A packet arrives.
    fn handle_packet(&mut self, now: Instant, packet: Packet);
    /// Do the work that is due.
    fn handle_timeout(&mut self, now: Instant);
    /// Pass the transport's events to the applications.
    fn handle_events(&mut self, now: Instant);
    /// Returns `true` if there are events to pass to the applications.
    fn has_events(&self) -> bool;
    /// The next packet to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet>;
    /// When the host must be woken.
    fn poll_timeout(&self) -> Option<Instant>;
    /// A connection whose application has written or read since the last call.
    fn poll_progress(&mut self) -> Option<usize>;
    /// The open subflows of a connection of the scenario, and the state of each.
    fn states(&self, connection: usize) -> impl Iterator<Item = (SubflowTotals, StateSpan)> + '_;
    /// Bytes of a connection's data that only the subflow at each place of
    /// [`Observed::subflows`] holds, because they wait for earlier bytes of the subflow.
    fn waiting_on_subflows(&self, connection: usize) -> Vec<u64>;
    /// Totals of the host's TCP.
    fn counters(&self) -> Counters;
}

/// A host that runs the engine. Its methods have the same names as the engine's.
pub struct EngineHost {
    /// The engine.
    pub endpoint: Endpoint,
    apps: Vec<EngineApp>,
    /// The application of each connection.
    app_of: BTreeMap<ConnectionId, usize>,
    /// The connection that had an event last, and its application.
    last_app: Option<(ConnectionId, usize)>,
    /// When each application is due.
    wake_ups: EventQueue,
    /// Segments that writes have caused.
    written: VecDeque<PooledSegment>,
    /// Connections whose applications have written or read, each once.
    progressed: Vec<usize>,
    /// Scheduled changes of the interfaces' states, in reverse chronological order.
    address_changes: Vec<AddressChange>,
}

impl fmt::Debug for EngineHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHost").finish_non_exhaustive()
    }
}

/// A change of an interface's state: when, which address, and whether the interface comes up.
pub type AddressChange = (Instant, IpAddr, bool);

/// A connection of the engine, as the socket of a workload.
struct EngineSocket<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnectionId,
    now: Instant,
    /// Where the segments go that each write causes, if it sends at once. Otherwise the engine sends
    /// after all writes.
    written: Option<&'a mut VecDeque<PooledSegment>>,
}

impl Socket for EngineSocket<'_> {
    fn write(&mut self, piece: Piece) -> usize {
        let written = match piece {
            Piece::Pattern { phase, len } => self.endpoint.send_pattern(self.id, phase.into(), len),
            Piece::Shared(bytes) => self.endpoint.send(self.id, bytes),
        };
        if let Some(segments) = &mut self.written {
            segments.extend(std::iter::from_fn(|| self.endpoint.poll_transmit(self.now)));
        }
        written.unwrap_or(0)
    }

    fn space(&self) -> u64 {
        self.endpoint.send_buffer_space(self.id)
    }

    fn finish(&mut self) {
        self.endpoint.close(self.id);
    }
}

/// Options of an engine that do not change the segments that it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineOptions {
    pub(crate) header_prediction: bool,
    /// The engine records its decisions.
    pub(crate) trace: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions { header_prediction: true, trace: false }
    }
}

impl EngineHost {
    /// The host at one side of `scenario`, in a run with seed `seed`.
    pub fn new(
        side: Side,
        scenario: &scenario::Scenario,
        custom_policies: &[CustomPolicies],
        seed: u64,
    ) -> Self {
        EngineHost::with(side, scenario, custom_policies, seed, EngineOptions::default())
    }

    /// The same, with an engine that works in these ways.
    pub(crate) fn with(
        side: Side,
        scenario: &scenario::Scenario,
        custom_policies: &[CustomPolicies],
        seed: u64,
        options: EngineOptions,
    ) -> Self {
        let addresses = match side {
            Side::Client => client_addresses(scenario, 0..scenario.paths.len()).collect(),
            Side::Server => topology::server_addresses(&scenario.paths),
        };
        let mut endpoint = Endpoint::new(addresses, secret(seed, side));
        let none = CustomPolicies::default();
        let app = |(index, connection): (usize, &scenario::Connection)| {
            let paths = PathNames::of(connection, scenario);
            let owner = Owner { connection: connection.name.clone(), side, paths, seed };
            let policies = custom_policies.get(index).unwrap_or(&none);
            let config = config(scenario, connection, &owner, policies);
            let config = config.header_prediction(options.header_prediction).trace(options.trace);
            EngineApp::new(scenario, connection, &owner, config)
        };
        let apps: Vec<EngineApp> = scenario.connections.iter().enumerate().map(app).collect();
        if side == Side::Server {
            for (index, app) in apps.iter().enumerate() {
                endpoint.listen(topology::port_of(index), app.config.clone());
            }
        }
        let mut host = EngineHost {
            endpoint,
            app_of: BTreeMap::new(),
            last_app: None,
            wake_ups: EventQueue::new(apps.len()),
            apps,
            written: VecDeque::new(),
            progressed: Vec::new(),
            address_changes: address_changes(side, scenario),
        };
        (0..host.apps.len()).for_each(|index| host.plan_app(index));
        host
    }

    /// When the host must be woken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (app, _) = self.wake_ups.peek();
        let engine = self.endpoint.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let noticed = self.address_changes.last().map_or(Instant::FAR_FUTURE, |(at, ..)| *at);
        let next = engine.min(app).min(noticed);
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// The engine's connection for a connection of the scenario, once it exists.
    pub fn connection_id(&self, connection: usize) -> Option<ConnectionId> {
        self.apps[connection].id
    }

    /// The next decision in the trace of a connection of the scenario.
    pub(crate) fn poll_trace(&mut self, connection: usize) -> Option<TraceEvent> {
        self.endpoint.poll_trace(self.apps[connection].id?)
    }

    /// Add a change of an interface's state whose time lies ahead.
    pub(crate) fn schedule(&mut self, change: AddressChange) {
        let place = self.address_changes.partition_point(|(at, ..)| *at > change.0);
        self.address_changes.insert(place, change);
    }

    /// Recompute when an application is due.
    fn plan_app(&mut self, index: usize) {
        let app = &self.apps[index].app;
        self.wake_ups.set(index, app.start().into_iter().chain(app.poll_timeout()).min());
    }

    /// Do the work that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        while let Some((_, address, usable)) = self.address_changes.pop_if(|(at, ..)| *at <= now) {
            self.endpoint.handle_address_change(now, address, usable);
        }
        while let (at, index) = self.wake_ups.peek()
            && at <= now
        {
            self.wake_app(now, index);
        }
    }

    fn wake_app(&mut self, now: Instant, index: usize) {
        if self.apps[index].app.is_starting(now) {
            self.connect(now, index);
        }
        if self.apps[index].app.poll_timeout().is_some_and(|at| at <= now) {
            self.write(now, index);
        }
        self.plan_app(index);
    }

    fn connect(&mut self, now: Instant, index: usize) {
        let app = &mut self.apps[index];
        let local = app.config.local_addresses.as_ref().expect("a client's addresses")[0];
        let remote = SocketAddress::new(app.server, topology::port_of(index));
        let opened = self.endpoint.connect(now, local, remote, app.config.clone());
        let id = opened.expect("the topology's addresses are right");
        app.id = Some(id);
        self.app_of.insert(id, index);
    }

    /// Pass the engine's events to the applications.
    pub fn handle_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            let Some(index) = self.app_of(id) else { continue };
            match event {
                Event::Connected | Event::Accepted | Event::Writable => self.write(now, index),
                Event::Readable => self.read(now, index, id),
                Event::Closed => {
                    self.apps[index].closed = true;
                    self.apps[index].past = self.endpoint.connection_stats(now, id).map(Into::into);
                }
                Event::Failed(_) => {
                    self.apps[index].failed = true;
                    self.apps[index].past = self.endpoint.connection_stats(now, id).map(Into::into);
                }
                Event::SubflowClosed(last) => {
                    self.apps[index].past_subflows.push((*last).into());
                }
                Event::SubflowEstablished(_) | Event::FellBack => {}
            }
        }
    }

    /// Returns `true` if the engine has events for the applications.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.endpoint.has_events()
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<PooledSegment> {
        self.written.pop_front().or_else(|| self.endpoint.poll_transmit(now))
    }

    /// Data of a connection that has arrived, while the connection is open.
    fn arrived_at_engine(&self, connection: usize) -> Option<ArrivedData> {
        let EngineApp { id, closed, failed, .. } = &self.apps[connection];
        id.filter(|_| !closed && !failed).and_then(|id| self.endpoint.arrived(id))
    }

    /// The application of a connection.
    #[inline]
    fn app_of(&mut self, id: ConnectionId) -> Option<usize> {
        match self.last_app {
            Some((last, index)) if last == id => Some(index),
            _ => {
                let found = self.find_app_of(id);
                self.last_app = found.map(|index| (id, index));
                found
            }
        }
    }

    /// At a listener, the port identifies the application at the first event.
    fn find_app_of(&mut self, id: ConnectionId) -> Option<usize> {
        if let Some(index) = self.app_of.get(&id) {
            return Some(*index);
        }
        let port = self.endpoint.local_port(id)?;
        let index = topology::connection_of(port);
        let app = self.apps.get_mut(index).filter(|app| app.id.is_none())?;
        app.id = Some(id);
        self.app_of.insert(id, index);
        Some(index)
    }

    fn write(&mut self, now: Instant, index: usize) {
        let EngineApp { app, id, config, .. } = &mut self.apps[index];
        if let Some(id) = *id {
            let written = config.platform.sends_each_write.then_some(&mut self.written);
            app.on_writable(
                now,
                &mut EngineSocket { endpoint: &mut self.endpoint, id, now, written },
            );
            self.plan_app(index);
            self.note_progress(index);
        }
    }

    fn note_progress(&mut self, index: usize) {
        if !std::mem::replace(&mut self.apps[index].progressed, true) {
            self.progressed.push(index);
        }
    }

    fn read(&mut self, now: Instant, index: usize, id: ConnectionId) {
        let EngineApp { app, .. } = &mut self.apps[index];
        while let Some(payload) = self.endpoint.recv(id) {
            app.on_data(now, &payload);
        }
        if app.sender().is_some() {
            let endpoint = &mut self.endpoint;
            app.on_received(now, &mut EngineSocket { endpoint, id, now, written: None });
            self.plan_app(index);
        }
        self.note_progress(index);
        if self.apps[index].app.closes_with_peer() && self.endpoint.is_at_end(id) {
            self.endpoint.close(id);
        }
    }
}

impl SimulatedHost for EngineHost {
    #[inline(always)] // A packet is large: copy it once only.
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        match packet {
            Packet::Tcp(segment) => self.endpoint.handle_segment(now, segment),
            Packet::TooBig(message) => self.endpoint.handle_too_big(&message),
            // Hosts ignore cross-traffic.
            Packet::Udp(_) => {}
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    #[inline]
    fn handle_events(&mut self, now: Instant) {
        self.handle_events(now);
    }

    #[inline]
    fn has_events(&self) -> bool {
        self.has_events()
    }

    #[inline(always)]
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.poll_transmit(now).map(Packet::Tcp)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    #[inline]
    fn poll_progress(&mut self) -> Option<usize> {
        let index = self.progressed.pop()?;
        self.apps[index].progressed = false;
        Some(index)
    }

    fn states(&self, connection: usize) -> impl Iterator<Item = (SubflowTotals, StateSpan)> + '_ {
        let id = self.apps[connection].id;
        let all = id
            .into_iter()
            .flat_map(|id| self.endpoint.subflow_stats(id).zip(self.endpoint.activities(id)));
        all.map(|(stats, reason)| (stats.into(), reason.into()))
    }

    fn waiting_on_subflows(&self, connection: usize) -> Vec<u64> {
        self.arrived_at_engine(connection).map(|arrived| arrived.on_subflows).unwrap_or_default()
    }

    fn counters(&self) -> Counters {
        self.endpoint.counters()
    }
}

impl Observed for EngineHost {
    fn sink(&self, connection: usize) -> &Sink {
        self.apps[connection].app.sink()
    }

    fn sender(&self, connection: usize) -> Option<&dyn Sender> {
        self.apps[connection].app.sender()
    }

    fn arrived(&self, connection: usize) -> u64 {
        let read = self.sink(connection).received();
        self.arrived_at_engine(connection).map_or(read, |arrived| arrived.bytes.max(read))
    }

    fn progress(&self, connection: usize) -> ConnectionProgress {
        match &self.apps[connection] {
            EngineApp { failed: true, .. } => ConnectionProgress::Failed,
            EngineApp { closed: true, .. } => ConnectionProgress::Closed,
            _ => ConnectionProgress::Underway,
        }
    }

    fn stats(&self, now: Instant, connection: usize) -> Option<ConnectionTotals> {
        let id = self.apps[connection].id?;
        self.endpoint.connection_stats(now, id).map(Into::into)
    }

    fn last_stats(&self, connection: usize) -> Option<ConnectionTotals> {
        self.apps[connection].past
    }

    fn subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        let id = self.apps[connection].id;
        id.into_iter().flat_map(|id| self.endpoint.subflow_stats(id)).map(Into::into).collect()
    }

    fn past_subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        self.apps[connection].past_subflows.clone()
    }
}

impl EngineApp {
    fn new(
        scenario: &scenario::Scenario,
        connection: &scenario::Connection,
        owner: &Owner,
        config: ConnectionConfig,
    ) -> Self {
        EngineApp {
            app: App::new(owner.side, connection, owner.seed),
            id: None,
            closed: false,
            failed: false,
            progressed: false,
            past_subflows: Vec::new(),
            past: None,
            server: topology::server_address(&scenario.paths[connection.paths[0]]),
            config,
        }
    }
}

/// The client's addresses on these paths.
fn client_addresses(
    scenario: &scenario::Scenario,
    paths: impl Iterator<Item = usize>,
) -> impl Iterator<Item = IpAddr> {
    paths.map(|path| topology::client_address(&scenario.paths, path))
}

/// Interface changes that the host notices, in reverse chronological order.
pub fn address_changes(side: Side, scenario: &scenario::Scenario) -> Vec<AddressChange> {
    if side == Side::Server {
        return Vec::new();
    }
    let paths = scenario.paths.iter().enumerate();
    let noticed = paths.flat_map(|(index, path)| {
        let address = topology::client_address(&scenario.paths, index);
        path.changes.iter().filter_map(move |change| address_change(address, change))
    });
    let mut all: Vec<_> = noticed.collect();
    // Of simultaneous changes, the last one in the scenario takes effect last.
    all.sort_by_key(|(at, ..)| *at);
    all.reverse();
    all
}

/// The change of the client's interface, if the client notices the change of its path.
pub(crate) fn address_change(address: IpAddr, change: &Change) -> Option<AddressChange> {
    let is_up = change.state == Some(LinkState::Up);
    change.noticed.then(|| (Instant::ZERO + change.at, address, is_up))
}

/// The engine's configuration for the `side` end of connection number `index`. `custom_policies` has the
/// user-defined policies of each connection.
///
/// # Errors
/// If these are not the policies that the scenario names.
pub fn connection_config(
    scenario: &scenario::Scenario,
    index: usize,
    side: Side,
    seed: u64,
    custom_policies: &[CustomPolicies],
) -> Result<ConnectionConfig, CustomPoliciesError> {
    custom_policies::check_all(scenario, custom_policies)?;
    let connection = &scenario.connections[index];
    let paths = PathNames::of(connection, scenario);
    let owner = Owner { connection: connection.name.clone(), side, paths, seed };
    let policies = custom_policies.get(index).cloned().unwrap_or_default();
    Ok(config(scenario, connection, &owner, &policies))
}

/// The engine's configuration for one end of a connection.
fn config(
    scenario: &scenario::Scenario,
    connection: &scenario::Connection,
    owner: &Owner,
    policies: &CustomPolicies,
) -> ConnectionConfig {
    let mtus = || connection.paths.iter().map(|path| scenario.paths[*path].mtu);
    let mut tcp = TcpConfig::default()
        .nagle(connection.nagle)
        .ecn(connection.ecn)
        .sack(connection.sack)
        .timestamps(connection.timestamps)
        .keep_alive(connection.keep_alive)
        .mtu_probing(connection.mtu_probing.into())
        .pacing(connection.pacing);
    // The server's interface carries the packets of all paths.
    tcp.mtu = mtus().max().unwrap_or(tcp.mtu);
    let local_addresses = (owner.side == Side::Client)
        .then(|| client_addresses(scenario, connection.paths.iter().copied()).collect::<Vec<_>>());
    let interfaces = Interfaces {
        mtus: local_addresses.iter().flatten().copied().zip(mtus()).collect(),
        unreachable: topology::unreachable(&scenario.paths),
    };
    let scenario::Limits { subflows, add_addr_accepted } = connection.limits;
    let mut config = ConnectionConfig::default()
        .protocol(match connection.protocol {
            scenario::Protocol::Mptcp => Protocol::Mptcp,
            scenario::Protocol::Tcp => Protocol::Tcp,
        })
        .platform(connection.host.part().build())
        .tcp(tcp)
        .send_buffer(connection.send_buffer.map(|size| size.as_u64()))
        .receive_buffer(connection.receive_buffer.map(|size| size.as_u64()))
        .dss_checksum(connection.dss_checksum)
        .late_fallback(connection.late_fallback)
        .allow_join_initial_addr_port(connection.allow_join_initial_addr_port)
        .local_addresses(local_addresses)
        .interfaces(Some(Arc::new(interfaces)))
        .max_subflows(
            subflows.map_or(SubflowSet::CAPACITY as u8, |further| further.saturating_add(1)),
        )
        .add_addr_accepted(add_addr_accepted)
        .shared_bottleneck_detection(
            connection.shared_bottleneck_detection.map(|sbd| sbd.loss_threshold.as_f64()),
        );
    config.congestion_control = match &*connection.congestion_control {
        Policy::BuiltIn(each) => congestion_control(connection, each),
        Policy::Custom(_) => policies.congestion_control_factory(owner),
    };
    config.scheduler = match &connection.scheduler {
        Policy::BuiltIn(selected) => {
            let selected = selected.clone();
            Arc::new(move || selected.part().build())
        }
        Policy::Custom(_) => policies.scheduler_factory(owner),
    };
    config.path_manager = match &connection.path_manager {
        Policy::BuiltIn(selected) => {
            let selected = selected.clone();
            Arc::new(move || selected.part().build())
        }
        Policy::Custom(_) => policies.path_manager_factory(owner),
    };
    let remedies = connection.remedies.clone();
    config.remedies(move || remedies.iter().map(|each| each.part().build()).collect())
}

/// The congestion control of each subflow, by the path that the subflow uses.
fn congestion_control(
    connection: &scenario::Connection,
    each: &CongestionControl,
) -> CongestionControlFactory {
    let hystart = *connection.hystart;
    let each = match each {
        CongestionControl::Same(same) => {
            let same = same.clone();
            return Arc::new(move |start| same.part().build(start, hystart));
        }
        CongestionControl::PerPath(by_path) => by_path,
    };
    let each = connection.paths.by_name().map(|(name, path)| (path, each[name].clone()));
    let by_path: Vec<_> = each.collect();
    Arc::new(move |start| {
        // The client's address identifies the path at both ends.
        let path = topology::path_of(start.local).or(topology::path_of(start.remote));
        let found = by_path.iter().find(|(each, _)| Some(*each) == path);
        let (_, each) = found.expect("every subflow uses an address of the connection");
        each.part().build(start, hystart)
    })
}

/// The secret of a host: 256 bits derived from the seed and the host's name.
pub fn secret(seed: u64, side: Side) -> [u8; 32] {
    let mut secret = [0; 32];
    for (part, bytes) in secret.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&stream_seed(seed, &format!("host/{side}/{part}")).to_be_bytes());
    }
    secret
}
