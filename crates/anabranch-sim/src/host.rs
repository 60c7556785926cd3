//! A host: the engine and the applications on it.

use anabranch_proto::config::{ConnectionConfig, Profile, Protocol};
use anabranch_proto::path_manager::{FullMesh, PathManager, Single};
use anabranch_proto::remedy::{
    BufferAutotuning, CwndCap, MptBm, OpportunisticRetransmission, Penalisation, PenalisationForm,
    Remedy,
};
use anabranch_proto::scheduler::{Blest, BlestRule, Ecf, MinRtt, Redundant, RoundRobin};
use anabranch_proto::{ConnectionId, ConnectionStats, Endpoint, Event, SubflowStats, congestion};
use anabranch_wire::{Endpoint as Address, Instant, Piece};

use std::sync::Arc;

use crate::application::Application;
use crate::scenario::{self, CongestionControlName, Direction, PathManagerName, Scheduler};
use crate::topology::{self, Side};
use crate::workload::{Sender, Sink, Socket};

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
    /// One side of `scenario` in the run of `seed`.
    pub(crate) fn new(
        side: Side,
        scenario: &scenario::Scenario,
        secret: [u8; 32],
        seed: u64,
    ) -> Self {
        let addresses = match side {
            Side::Client => (0..scenario.paths.len()).map(topology::client_address).collect(),
            Side::Server => vec![topology::SERVER],
        };
        let mut endpoint = Endpoint::new(addresses, secret);
        let apps: Vec<App> =
            scenario.connections.iter().map(|c| App::new(side, scenario, c, seed)).collect();
        if side == Side::Server {
            for (index, app) in apps.iter().enumerate() {
                endpoint.listen(topology::port_of(index), app.config.clone());
            }
        }
        Host { endpoint, apps }
    }

    /// When the host wants to be woken.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.apps.iter().flat_map(|app| {
            [app.start, app.sender.as_ref().and_then(|sender| sender.poll_timeout())]
        });
        apps.chain([self.endpoint.poll_timeout()]).flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
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
        if let Some(sender) = &mut app.sender {
            let socket = &mut EngineSocket { endpoint: &mut self.endpoint, id };
            sender.on_received(now, app.sink.received(), socket);
        }
        if self.endpoint.is_at_end(id) {
            self.endpoint.close(id);
        }
    }
}

impl App {
    fn new(
        side: Side,
        scenario: &scenario::Scenario,
        connection: &scenario::Connection,
        seed: u64,
    ) -> Self {
        let sends = match connection.direction {
            Direction::Download => side == Side::Server,
            Direction::Upload => side == Side::Client,
        };
        let application = Application::new(connection, sends, seed);
        App {
            id: None,
            sender: application.sender,
            sink: Sink::new(application.received_blocks),
            closed: false,
            failed: false,
            past_subflows: Vec::new(),
            past: None,
            start: (side == Side::Client).then_some(Instant::ZERO + connection.start),
            config: config(side, scenario, connection),
        }
    }
}

/// The engine's configuration for one end of a connection.
fn config(
    side: Side,
    scenario: &scenario::Scenario,
    connection: &scenario::Connection,
) -> ConnectionConfig {
    let profile = match connection.profile {
        scenario::Profile::Linux => Profile::Linux,
        scenario::Profile::Rfc => Profile::Rfc,
    };
    let mtu = connection.paths.iter().map(|path| scenario.paths[*path].mtu).min();
    let mut tcp = profile.tcp();
    tcp.mtu = mtu.unwrap_or(tcp.mtu);
    tcp.nagle = connection.nagle;
    let local_addresses = (side == Side::Client)
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
        congestion_control: congestion_control(connection),
        scheduler: scheduler(connection),
        remedies: remedies(connection),
        path_manager: match connection.path_manager {
            PathManagerName::FullMesh => Arc::new(|| Box::new(FullMesh::default())),
            PathManagerName::Single => Arc::new(|| Box::new(Single) as Box<dyn PathManager>),
        },
        ..ConnectionConfig::default()
    }
}

fn congestion_control(
    connection: &scenario::Connection,
) -> anabranch_proto::config::CongestionControlFactory {
    use congestion::{Balia, Cubic, Lia, NewReno, Olia, WVegas};
    match (connection.congestion_control, connection.hystart) {
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

fn scheduler(connection: &scenario::Connection) -> anabranch_proto::config::SchedulerFactory {
    match connection.scheduler {
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
