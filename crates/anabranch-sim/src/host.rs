//! A host: the engine and the applications on it.

use anabranch_net::StateChange;
use anabranch_net::rng::stream_seed;
use anabranch_proto::config::{
    CongestionControlFactory, ConnectionConfig, PathManagerFactory, Profile, Protocol,
    SchedulerFactory,
};
use anabranch_proto::path_manager::{
    Backup, DRePaS, DRePaSConfig, FullMesh, InitialOnly, NDiffPorts, SinglePath,
};
use anabranch_proto::remedy::{
    BufferAutotuning, CwndCap, MptBm, OpportunisticRetransmission, Penalisation, PenalisationForm,
    Remedy,
};
use anabranch_proto::scheduler::{Blest, BlestRule, Ecf, MinRtt, Redundant, RoundRobin};
use anabranch_proto::{ConnectionId, ConnectionStats, Endpoint, Event, SubflowStats, congestion};
use anabranch_wire::{Endpoint as Address, Instant, Piece};

use std::net::IpAddr;
use std::sync::Arc;

use crate::own_policies::{OwnPolicies, Owner};
use crate::scenario::{
    self, CongestionControl, CongestionControlName, Direction, PathManager, Policy, Scheduler,
    Workload,
};
use crate::topology::{self, Side};
use crate::workload::{Blocks, Bulk, Cbr, Sender, Sink, Socket};

/// One end of a scenario's connection.
pub(crate) struct App {
    pub(crate) id: Option<ConnectionId>,
    pub(crate) sender: Option<Box<dyn Sender>>,
    pub(crate) sink: Sink,
    pub(crate) closed: bool,
    pub(crate) failed: bool,
    /// Totals of subflows that no longer exist.
    pub(crate) past_subflows: Vec<SubflowStats>,
    /// Totals of the connection when it ended.
    pub(crate) past: Option<ConnectionStats>,
    start: Option<Instant>,
    config: ConnectionConfig,
}

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) apps: Vec<App>,
    /// When interfaces go down and come up, latest first.
    address_changes: Vec<(Instant, IpAddr, bool)>,
}

/// The engine's socket, for a workload.
struct EngineSocket<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnectionId,
}

impl Socket for EngineSocket<'_> {
    fn write(&mut self, piece: Piece) -> usize {
        self.endpoint.send(self.id, piece).unwrap_or(0)
    }

    fn room(&self) -> u64 {
        self.endpoint.send_room(self.id)
    }

    fn finish(&mut self) {
        self.endpoint.close(self.id);
    }
}

impl Host {
    pub(crate) fn new(
        side: Side,
        scenario: &scenario::Scenario,
        own_policies: &[OwnPolicies],
        seed: u64,
    ) -> Self {
        let addresses = match side {
            Side::Client => (0..scenario.paths.len()).map(topology::client_address).collect(),
            Side::Server => vec![topology::SERVER],
        };
        let mut endpoint = Endpoint::new(addresses, secret(seed, side));
        let none = OwnPolicies::default();
        let app = |(index, connection): (usize, &scenario::Connection)| {
            let owner = Owner { connection: connection.name.clone(), side, seed };
            let policies = own_policies.get(index).unwrap_or(&none);
            App::new(scenario, connection, &owner, policies)
        };
        let apps: Vec<App> = scenario.connections.iter().enumerate().map(app).collect();
        if side == Side::Server {
            for (index, app) in apps.iter().enumerate() {
                endpoint.listen(topology::port_of(index), app.config.clone());
            }
        }
        Host { endpoint, apps, address_changes: address_changes(side, scenario) }
    }

    /// When the host wants to be woken.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.apps.iter().flat_map(|app| {
            [app.start, app.sender.as_ref().and_then(|sender| sender.poll_timeout())]
        });
        let noticed = self.address_changes.last().map(|(at, ..)| *at);
        apps.chain([self.endpoint.poll_timeout(), noticed]).flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        while let Some((_, address, usable)) = self.address_changes.pop_if(|(at, ..)| *at <= now) {
            self.endpoint.handle_address_change(now, address, usable);
        }
        for index in 0..self.apps.len() {
            let app = &mut self.apps[index];
            if app.start.is_some_and(|at| at <= now) {
                app.start = None;
                self.connect(now, index);
            }
            let due = |sender: &dyn Sender| sender.poll_timeout().is_some_and(|at| at <= now);
            if self.apps[index].sender.as_deref().is_some_and(due) {
                self.write(now, index);
            }
        }
    }

    fn connect(&mut self, now: Instant, index: usize) {
        let app = &mut self.apps[index];
        let local = app.config.local_addresses.as_ref().expect("a client's addresses")[0];
        let remote = Address::new(topology::SERVER, topology::port_of(index));
        let opened = self.endpoint.connect(now, local, remote, app.config.clone());
        app.id = Some(opened.expect("the topology's addresses are right"));
    }

    /// Tell the applications what happened; true if anything did.
    pub(crate) fn handle_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            any = true;
            let Some(index) = self.app_of(id) else { continue };
            match event {
                Event::Connected | Event::Accepted | Event::Writable => self.write(now, index),
                Event::Readable => self.read(now, index, id),
                Event::Closed => {
                    self.apps[index].closed = true;
                    self.apps[index].past = self.endpoint.connection_stats(now, id);
                }
                Event::Failed(_) => {
                    self.apps[index].failed = true;
                    self.apps[index].past = self.endpoint.connection_stats(now, id);
                }
                Event::SubflowClosed(subflow) => {
                    let mut subflows = self.endpoint.subflow_stats(id);
                    if let Some(last) = subflows.find(|stats| stats.view.id == subflow) {
                        drop(subflows);
                        self.apps[index].past_subflows.push(last);
                    }
                }
                Event::SubflowEstablished(_) | Event::FellBack => {}
            }
        }
        any
    }

    /// The application of a connection; a listener's is found by the port, once.
    fn app_of(&mut self, id: ConnectionId) -> Option<usize> {
        if let Some(index) = self.apps.iter().position(|app| app.id == Some(id)) {
            return Some(index);
        }
        let port = self.endpoint.local_port(id)?;
        let index = topology::connection_of(port);
        let app = self.apps.get_mut(index).filter(|app| app.id.is_none())?;
        app.id = Some(id);
        Some(index)
    }

    fn write(&mut self, now: Instant, index: usize) {
        let app = &mut self.apps[index];
        if let (Some(sender), Some(id)) = (&mut app.sender, app.id) {
            sender.on_writable(now, &mut EngineSocket { endpoint: &mut self.endpoint, id });
        }
    }

    fn read(&mut self, now: Instant, index: usize, id: ConnectionId) {
        let app = &mut self.apps[index];
        while let Some(payload) = self.endpoint.recv(id) {
            app.sink.on_data(now, &payload);
        }
        if self.endpoint.is_at_end(id) {
            self.endpoint.close(id);
        }
    }
}

impl App {
    fn new(
        scenario: &scenario::Scenario,
        connection: &scenario::Connection,
        owner: &Owner,
        policies: &OwnPolicies,
    ) -> Self {
        let side = owner.side;
        let sends = match connection.direction {
            Direction::Download => side == Side::Server,
            Direction::Upload => side == Side::Client,
        };
        let sender: Option<Box<dyn Sender>> = match &connection.workload {
            _ if !sends => None,
            Workload::Bulk { size } => Some(Box::new(Bulk::new(size.map(|size| size.as_u64())))),
            Workload::Blocks { block_size, count } => {
                Some(Box::new(Blocks::new(block_size.as_u64(), *count)))
            }
            Workload::Cbr { rate, block_size, count } => {
                Some(Box::new(Cbr::new(*rate, block_size.as_u64(), *count)))
            }
        };
        let block_size = match &connection.workload {
            Workload::Blocks { block_size, .. } | Workload::Cbr { block_size, .. } if !sends => {
                Some(block_size.as_u64())
            }
            _ => None,
        };
        App {
            id: None,
            sender,
            sink: Sink::new(block_size),
            closed: false,
            failed: false,
            past_subflows: Vec::new(),
            past: None,
            start: (side == Side::Client).then_some(Instant::ZERO + connection.start),
            config: config(scenario, connection, owner, policies),
        }
    }
}

/// What a host notices of its interfaces, latest first.
fn address_changes(side: Side, scenario: &scenario::Scenario) -> Vec<(Instant, IpAddr, bool)> {
    if side == Side::Server {
        return Vec::new();
    }
    let paths = scenario.paths.iter().enumerate();
    let noticed = paths.flat_map(|(index, path)| {
        let changes = path.changes.iter().filter(|change| change.noticed);
        changes.map(move |change| {
            let up = change.change.state == Some(StateChange::Up);
            (Instant::ZERO + change.at, topology::client_address(index), up)
        })
    });
    let mut all: Vec<_> = noticed.collect();
    all.sort_by_key(|(at, ..)| core::cmp::Reverse(*at));
    all
}

/// The engine's configuration for one end of a connection.
fn config(
    scenario: &scenario::Scenario,
    connection: &scenario::Connection,
    owner: &Owner,
    policies: &OwnPolicies,
) -> ConnectionConfig {
    let profile = match connection.profile {
        scenario::Profile::Linux => Profile::Linux,
        scenario::Profile::Rfc => Profile::Rfc,
    };
    let mtu = connection.paths.iter().map(|path| scenario.paths[*path].mtu).min();
    let mut tcp = profile.tcp();
    tcp.mtu = mtu.unwrap_or(tcp.mtu);
    tcp.nagle = connection.nagle;
    let local_addresses = (owner.side == Side::Client)
        .then(|| connection.paths.iter().map(|path| topology::client_address(*path)).collect());
    ConnectionConfig {
        protocol: match connection.protocol {
            scenario::Protocol::Mptcp => Protocol::Mptcp,
            scenario::Protocol::Tcp => Protocol::Tcp,
        },
        tcp,
        send_buffer: connection.send_buffer.as_u64(),
        receive_buffer: connection.receive_buffer.as_u64(),
        local_addresses,
        max_subflows: most_subflows(connection),
        congestion_control: match &connection.congestion_control {
            Policy::BuiltIn(each) => congestion_control(connection, each),
            Policy::Own(_) => policies.congestion_control_factory(owner),
        },
        shared_bottleneck_detection: connection
            .shared_bottleneck_detection
            .map(|sbd| sbd.loss_threshold.as_f64()),
        scheduler: match connection.scheduler {
            Policy::BuiltIn(built_in) => scheduler(built_in),
            Policy::Own(_) => policies.scheduler_factory(owner),
        },
        remedies: remedies(connection),
        path_manager: match connection.path_manager {
            Policy::BuiltIn(manager) => path_manager(manager),
            Policy::Own(_) => policies.path_manager_factory(owner),
        },
        ..ConnectionConfig::default()
    }
}

fn path_manager(manager: PathManager) -> PathManagerFactory {
    match manager {
        PathManager::FullMesh => Arc::new(|| Box::new(FullMesh::default())),
        PathManager::InitialOnly => Arc::new(|| Box::new(InitialOnly)),
        PathManager::Ndiffports { subflows } => {
            Arc::new(move || Box::new(NDiffPorts::new(subflows.get())))
        }
        PathManager::Backup { regular } => Arc::new(move || Box::new(Backup::new(regular))),
        PathManager::SinglePath => Arc::new(|| Box::new(SinglePath::default())),
        PathManager::Drepas { threshold, period, hysteresis } => {
            let (threshold, hysteresis) = (threshold.as_f64(), hysteresis.get());
            let config = DRePaSConfig { threshold, period, hysteresis };
            Arc::new(move || Box::new(DRePaS::new(config)))
        }
    }
}

/// Room for all that the path manager wants, and for the remains of what it replaced.
fn most_subflows(connection: &scenario::Connection) -> usize {
    let wanted = match connection.path_manager {
        Policy::BuiltIn(PathManager::Ndiffports { subflows }) => subflows.get() as usize,
        // What it wants is not known.
        Policy::Own(_) => PathManager::MOST_SUBFLOWS as usize,
        Policy::BuiltIn(_) => connection.paths.len(),
    };
    (2 * wanted).clamp(8, PathManager::MOST_SUBFLOWS as usize)
}

/// The congestion control of each subflow, by the path of the connection that it uses.
fn congestion_control(
    connection: &scenario::Connection,
    each: &CongestionControl,
) -> CongestionControlFactory {
    let hystart = connection.hystart;
    let each = match each {
        CongestionControl::Same(name) => return one_congestion_control(*name, hystart),
        CongestionControl::PerPath(each) => each.iter().map(|uncoupled| uncoupled.name()),
    };
    let factories = each.map(|name| one_congestion_control(name, hystart));
    let addresses = connection.paths.iter().map(|path| topology::client_address(*path));
    let by_address: Vec<_> = addresses.zip(factories).collect();
    Arc::new(move |start| {
        // The client's address names the path, at either end.
        let mut all = by_address.iter();
        let found = all.find(|(address, _)| [start.local, start.remote].contains(address));
        let (_, factory) = found.expect("every subflow has an address of the connection's");
        factory(start)
    })
}

fn one_congestion_control(name: CongestionControlName, hystart: bool) -> CongestionControlFactory {
    use congestion::{Balia, Cubic, Lia, NewReno, Olia, WVegas};
    match (name, hystart) {
        (CongestionControlName::NewReno, false) => Arc::new(|start| Box::new(NewReno::new(start))),
        (CongestionControlName::NewReno, true) => {
            Arc::new(|start| Box::new(NewReno::with_hystart(start)))
        }
        (CongestionControlName::Cubic, true) => Arc::new(|start| Box::new(Cubic::new(start))),
        (CongestionControlName::Cubic, false) => {
            Arc::new(|start| Box::new(Cubic::without_hystart(start)))
        }
        (CongestionControlName::Lia, false) => Arc::new(|start| Box::new(Lia::new(start))),
        (CongestionControlName::Lia, true) => Arc::new(|start| Box::new(Lia::with_hystart(start))),
        (CongestionControlName::Olia, false) => Arc::new(|start| Box::new(Olia::new(start))),
        (CongestionControlName::Olia, true) => {
            Arc::new(|start| Box::new(Olia::with_hystart(start)))
        }
        (CongestionControlName::Balia, false) => Arc::new(|start| Box::new(Balia::new(start))),
        (CongestionControlName::Balia, true) => {
            Arc::new(|start| Box::new(Balia::with_hystart(start)))
        }
        (CongestionControlName::Wvegas, _) => Arc::new(|start| Box::new(WVegas::new(start))),
    }
}

fn scheduler(scheduler: Scheduler) -> SchedulerFactory {
    match scheduler {
        Scheduler::MinRtt => Arc::new(|| Box::new(MinRtt)),
        Scheduler::RoundRobin { num_segments, cwnd_limited } => {
            Arc::new(move || Box::new(RoundRobin::new(num_segments.get(), cwnd_limited)))
        }
        Scheduler::Redundant => Arc::new(|| Box::new(Redundant)),
        Scheduler::Blest(rule) => {
            let rule = match rule {
                scenario::BlestRule::Linux => BlestRule::Linux,
                scenario::BlestRule::Paper { step } => BlestRule::Paper { step: step.as_f64() },
            };
            Arc::new(move || Box::new(Blest::new(rule)))
        }
        Scheduler::Ecf { beta } => Arc::new(move || Box::new(Ecf::new(beta.as_f64()))),
    }
}

fn remedies(connection: &scenario::Connection) -> anabranch_proto::config::RemedyFactory {
    let form = match connection.penalisation {
        scenario::Penalisation::Off => None,
        scenario::Penalisation::Nsdi12 => Some(PenalisationForm::Nsdi12),
        scenario::Penalisation::Conext13 => Some(PenalisationForm::Conext13),
    };
    let retransmit = connection.opportunistic_retransmission;
    let cap = connection.cwnd_cap.map(|factor| CwndCap::new(factor.as_f64()));
    let mpt_bm = connection.mpt_bm.map(|bm| MptBm::new(bm.lambda.as_f64(), bm.theta));
    let autotune = connection.buffer_autotuning;
    Arc::new(move || {
        let mut remedies: Vec<Box<dyn Remedy>> = Vec::new();
        remedies.extend(form.map(|form| Box::new(Penalisation::new(form)) as Box<dyn Remedy>));
        if retransmit {
            remedies.push(Box::new(OpportunisticRetransmission));
        }
        remedies.extend(cap.clone().map(|cap| Box::new(cap) as Box<dyn Remedy>));
        remedies.extend(mpt_bm.map(|mpt_bm| Box::new(mpt_bm) as Box<dyn Remedy>));
        if autotune {
            remedies.push(Box::new(BufferAutotuning::default()));
        }
        remedies
    })
}

/// A host's secret: 256 bits that follow from the seed and the host's name.
fn secret(seed: u64, side: Side) -> [u8; 32] {
    let mut secret = [0; 32];
    for (part, octets) in secret.chunks_exact_mut(8).enumerate() {
        octets.copy_from_slice(&stream_seed(seed, &format!("host/{side}/{part}")).to_be_bytes());
    }
    secret
}
