//! The run loop in real time: one thread waits for packets, sockets and the clock.

use std::io;

use anabranch_net::network::Arrival;
use anabranch_proto::Endpoint;
use anabranch_sim::driver::{
    CaptureFile, ConnectionProgress, EngineHost, Hosts, Observed, Recorder, network,
};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Capture, RunError, Side, Table};
use anabranch_wire::pcap::PacketDirection;
use anabranch_wire::{Duration, Instant, Packet, PooledSegment};
use thiserror::Error;

use crate::catch_up::CatchingUp;
use crate::clock::Clock;
use crate::counters::{self, HostCounters};
use crate::idle_spinner::IdleSpinner;
use crate::kernel_host::KernelHost;
use crate::kernel_setup::noticed_changes;
use crate::lateness::Lateness;
use crate::namespace;
use crate::settings::KernelSettings;
use crate::sys::{self, PollFlags};

/// TCP stack of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStack {
    /// This project's engine.
    Engine,
    /// This kernel.
    Kernel,
}

/// Options of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The client's stack.
    pub client: HostStack,
    /// The server's stack.
    pub server: HostStack,
    /// The capture to write.
    pub capture: Option<Capture<'a>>,
    /// End the run this long after all connections have ended.
    pub linger: Option<Duration>,
    /// Interventions at hosts during the run.
    pub interventions: Vec<Intervention>,
}

impl Options<'_> {
    /// A run with these stacks. It writes no capture, and ends with the scenario.
    pub fn new(client: HostStack, server: HostStack) -> Self {
        Options { client, server, capture: None, linger: None, interventions: Vec::new() }
    }
}

anabranch_config::setters! { [<'a>] Options<'a> {
    capture: impl Into<Option<Capture<'a>>> => capture.into(),
    linger: impl Into<Option<Duration>> => linger.into(),
    interventions: Vec<Intervention>,
} }

/// An intervention at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervention {
    /// Time of the intervention.
    pub at: Instant,
    /// Host.
    pub side: Side,
    /// Action.
    pub what: Action,
}

/// An action at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reset all connections of the host with MP_FASTCLOSE, or with RST for TCP.
    Abort,
    /// Close all open connections of the host for sending.
    Close,
    /// Execute a shell command in the network namespace of a kernel host, such as
    /// `ip mptcp endpoint delete id 1`. The run waits until the command has ended.
    Command(String),
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct LiveOutcome {
    /// The same tables as of a run in virtual time. Values that the kernel does not report are 0.
    pub tables: Vec<Table>,
    /// Time at the end of the run.
    pub end: Instant,
    /// Number of packets that the hosts sent.
    pub packets: u64,
    /// Number of interventions that were due after the end of the run.
    pub interventions_left: usize,
    /// Number of packets that were dropped because they were neither TCP nor UDP, or had no known
    /// source.
    pub foreign: u64,
    /// Lateness of the emulator.
    pub lateness: Lateness,
    /// Counters of client and server.
    pub counters: [HostCounters; 2],
    /// Time at which the capture reached its limit.
    pub capture_full_at: Option<Instant>,
    /// Differences between the run and the scenario.
    pub notices: Vec<String>,
}

/// Error of a failed run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// This process may not create network namespaces.
    #[error("a live run needs network namespaces: start it through `enter`")]
    Outside,
    /// A kernel host cannot run the scenario.
    #[error("{0}")]
    Unsupported(String),
    /// Setting up a host failed, or a socket failed.
    #[error("live run: {0}")]
    System(#[from] io::Error),
    /// The capture could not be written.
    #[error(transparent)]
    Capture(#[from] RunError),
}

/// Run `scenario` in real time. `seed` determines the emulator's random numbers.
///
/// # Errors
/// [`LiveError`] if this process may not create network namespaces, if a kernel host cannot run the
/// scenario, or if a system call fails.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<LiveOutcome, LiveError> {
    let mut scenario = scenario.clone();
    if [options.client, options.server].contains(&HostStack::Kernel) {
        // Linux does not notice that a path drops the options of its data.
        scenario.connections.iter_mut().for_each(|each| each.late_fallback = false);
    }
    let mut lab = Lab::new(&scenario, seed, options)?;
    let _until_the_end = IdleSpinner::begin();
    lab.run()?;
    lab.finish()
}

/// One of two kinds of host.
enum AnyHost {
    Engine(Box<EngineHost>),
    Kernel(Box<KernelHost>),
}

struct Lab<'s, 'c> {
    scenario: &'s Scenario,
    settings: KernelSettings,
    clock: Clock,
    hosts: [AnyHost; 2],
    network: CatchingUp,
    recorder: Recorder,
    next_sample: Instant,
    warm_at: Option<Instant>,
    lateness: Lateness,
    counters_before: [HostCounters; 2],
    packets: u64,
    foreign: u64,
    capture: Option<CaptureFile<'c>>,
    buffer: Vec<u8>,
    linger: Option<Duration>,
    /// Remaining interventions, latest first.
    interventions: Vec<Intervention>,
    end: Instant,
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// Longest IP packet.
const LONGEST_PACKET: usize = 1 << 16;

impl<'s, 'c> Lab<'s, 'c> {
    fn new(scenario: &'s Scenario, seed: u64, options: Options<'c>) -> Result<Self, LiveError> {
        if !namespace::is_inside() {
            return Err(LiveError::Outside);
        }
        let stacks = [options.client, options.server];
        let mut settings = KernelSettings::new(scenario);
        if stacks.contains(&HostStack::Kernel) {
            settings.check(scenario).map_err(LiveError::Unsupported)?;
        }
        let mut interventions = options.interventions;
        if options.client == HostStack::Kernel {
            let noticed = noticed_changes(scenario, &settings).into_iter();
            interventions.extend(noticed.map(|(at, command)| Intervention {
                at,
                side: Side::Client,
                what: Action::Command(command),
            }));
        }
        let interventions = in_order(interventions, stacks)?;
        sys::set_timer_slack();
        let mut make = |side: Side| -> io::Result<AnyHost> {
            Ok(match stacks[side as usize] {
                HostStack::Engine => {
                    AnyHost::Engine(Box::new(EngineHost::new(side, scenario, &[], seed)))
                }
                HostStack::Kernel => {
                    AnyHost::Kernel(Box::new(KernelHost::new(side, scenario, &mut settings, seed)?))
                }
            })
        };
        // Each run has a separate namespace for the emulator. The kernel may remove the interfaces
        // of one run only after the next run has started.
        let emulator = namespace::Namespace::new()?;
        let hosts = emulator.within(|| Ok([make(Side::Client)?, make(Side::Server)?]))?;
        Ok(Lab {
            scenario,
            counters_before: counters::of(&hosts.each_ref().map(AnyHost::namespace))?,
            hosts,
            settings,
            network: CatchingUp::new(network(scenario, seed, ())),
            recorder: Recorder::new(scenario),
            next_sample: Instant::ZERO,
            warm_at: Some(Instant::ZERO + scenario.warm_up),
            lateness: Lateness::default(),
            packets: 0,
            foreign: 0,
            capture: options
                .capture
                .map(|capture| CaptureFile::new(capture, scenario))
                .transpose()?,
            buffer: vec![0; LONGEST_PACKET],
            linger: options.linger,
            interventions,
            end: Instant::ZERO + scenario.duration,
            clock: Clock::start(),
        })
    }

    fn run(&mut self) -> Result<(), LiveError> {
        loop {
            let now = self.clock.now();
            self.receive_packets(now)?;
            self.network.handle_timeout(now);
            self.deliver()?;
            self.intervene()?;
            for side in SIDES {
                self.serve_host(side)?;
            }
            self.observe_until(self.clock.now().min(self.end));
            self.end_early();
            if self.clock.now() >= self.end {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// End the run early if nothing more can happen.
    fn end_early(&mut self) {
        let Some(linger) = self.linger else { return };
        let connections = 0..self.scenario.connections.len();
        let is_over = |host: &dyn Observed| {
            connections.clone().all(|each| host.progress(each) != ConnectionProgress::Underway)
        };
        if observed(&self.hosts).into_iter().all(is_over) {
            self.end = self.end.min(self.clock.now() + linger);
            self.linger = None;
        }
    }

    /// Pass the packets of kernel hosts to the network, in the order of sending.
    fn receive_packets(&mut self, now: Instant) -> Result<(), LiveError> {
        let mut sent = Vec::new();
        for (side, host) in SIDES.iter().zip(&self.hosts) {
            let AnyHost::Kernel(host) = host else { continue };
            for port in &host.network.ports {
                while let Some((len, stamp)) = port.receive(&mut self.buffer)? {
                    match Packet::parse(&self.buffer[..len]) {
                        Ok(packet) => sent.push((self.clock.at_time_of_day(stamp), *side, packet)),
                        Err(_) => self.foreign += 1,
                    }
                }
            }
        }
        sent.sort_by_key(|(at, ..)| *at);
        for (at, side, packet) in sent {
            self.send(at.min(now), side, packet)?;
        }
        Ok(())
    }

    fn send(&mut self, at: Instant, side: Side, packet: Packet) -> Result<(), LiveError> {
        let towards = side.opposite();
        let Some(path) = self.network.paths().path_of_packet(towards, &packet) else {
            self.foreign += 1;
            return Ok(());
        };
        self.packets += 1;
        if let Some(capture) = &mut self.capture {
            capture.write(at, path, side, PacketDirection::Outbound, &packet)?;
        }
        self.network.handle_packet(at, towards, path, packet);
        Ok(())
    }

    /// Deliver arrived packets to the hosts.
    fn deliver(&mut self) -> Result<(), LiveError> {
        for (due, arrival) in self.network.take_arrived() {
            let now = self.clock.now();
            self.lateness.record(now.saturating_since(due));
            let Arrival { receiver: side, path, packet } = arrival;
            if let Some(capture) = &mut self.capture {
                capture.write(now, path, side, PacketDirection::Inbound, &packet)?;
            }
            match (&mut self.hosts[side as usize], packet) {
                // No host receives cross-traffic.
                (_, Packet::Udp(_)) => {}
                (AnyHost::Engine(host), Packet::Tcp(segment)) => {
                    host.endpoint.handle_segment(now, segment);
                }
                (AnyHost::Engine(host), Packet::TooBig(message)) => {
                    host.endpoint.handle_too_big(&message);
                }
                (AnyHost::Kernel(host), packet) => {
                    let mut bytes = Vec::with_capacity(packet.wire_len());
                    packet.emit(&mut bytes).map_err(RunError::from)?;
                    host.deliver(path, &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Execute the interventions that are due.
    fn intervene(&mut self) -> Result<(), LiveError> {
        let now = self.clock.now();
        while let Some(due) = self.interventions.pop_if(|each| each.at <= now) {
            self.hosts[due.side as usize].intervene(&due.what)?;
        }
        Ok(())
    }

    /// Let a host act, and send its packets.
    fn serve_host(&mut self, side: Side) -> Result<(), LiveError> {
        let now = self.clock.now();
        let mut sent = Vec::new();
        match &mut self.hosts[side as usize] {
            AnyHost::Kernel(host) => host.serve(now, &mut self.settings)?,
            AnyHost::Engine(host) => {
                host.handle_timeout(now);
                while let Some(segments) = act(host, now) {
                    sent.extend(segments);
                }
            }
        }
        for connection in 0..self.scenario.connections.len() {
            self.recorder.on_progress(now, connection, observed(&self.hosts));
        }
        sent.into_iter().try_for_each(|segment| self.send(now, side, segment.into()))
    }

    /// Take the samples that are due before `until`.
    fn observe_until(&mut self, until: Instant) {
        if let Some(at) = self.warm_at.filter(|at| *at <= until) {
            self.warm_at = None;
            if at > Instant::ZERO {
                self.recorder.on_warm(self.clock.now(), observed(&self.hosts));
            }
        }
        while self.next_sample <= until {
            let (now, at) = (self.clock.now(), self.next_sample);
            self.hosts.iter_mut().for_each(AnyHost::observe);
            let at = at.max(now);
            self.recorder.sample(at, observed(&self.hosts), self.network.observe(at));
            self.next_sample += self.scenario.sample_interval;
        }
    }

    /// Wait for a packet, a socket, or the next timer.
    fn wait(&self) -> io::Result<()> {
        let mut fds = Vec::new();
        let intervention = self.interventions.last().map(|each| each.at);
        let own = [Some(self.next_sample), self.warm_at, intervention, self.network.poll_timeout()];
        let mut due = own.into_iter().flatten().chain([self.end]).min();
        for host in &self.hosts {
            due = due.into_iter().chain(host.poll_timeout()).min();
            if let AnyHost::Kernel(host) = host {
                fds.extend(host.network.ports.iter().map(|port| sys::poll_fd(port, PollFlags::IN)));
                host.wanted(&mut fds);
            }
        }
        let left = due.unwrap_or(self.end).saturating_since(self.clock.now());
        sys::poll(&mut fds, left.into())
    }

    fn finish(mut self) -> Result<LiveOutcome, LiveError> {
        let now = self.clock.now();
        self.capture.as_mut().map_or(Ok(()), CaptureFile::finish)?;
        self.network.handle_timeout(now);
        self.hosts.iter_mut().for_each(AnyHost::observe);
        let after = counters::of(&self.hosts.each_ref().map(AnyHost::namespace))?;
        let mut counters = counters::differences(&self.counters_before, after);
        for (host, counters) in self.hosts.iter().zip(&mut counters) {
            if let AnyHost::Engine(host) = host {
                *counters = counters::of_engine(&host.endpoint.counters());
            }
        }
        Ok(LiveOutcome {
            tables: self.recorder.finish(now, observed(&self.hosts), self.network.paths()),
            end: now,
            packets: self.packets,
            interventions_left: self.interventions.len(),
            foreign: self.foreign,
            lateness: self.lateness,
            counters,
            capture_full_at: self.capture.as_ref().and_then(CaptureFile::full_at),
            notices: self.settings.notices,
        })
    }
}

impl AnyHost {
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            AnyHost::Engine(host) => host.poll_timeout(),
            AnyHost::Kernel(host) => host.poll_timeout(),
        }
    }

    fn intervene(&mut self, what: &Action) -> io::Result<()> {
        match (self, what) {
            (AnyHost::Engine(host), _) => {
                let all: Vec<_> = host.endpoint.connections().collect();
                let verb = if *what == Action::Abort { Endpoint::abort } else { Endpoint::close };
                all.into_iter().for_each(|id| verb(&mut host.endpoint, id));
            }
            (AnyHost::Kernel(host), Action::Abort) => host.abort(),
            (AnyHost::Kernel(host), Action::Close) => host.close(),
            (AnyHost::Kernel(host), Action::Command(command)) => {
                host.network.namespace.within(|| namespace::shell(command))?;
            }
        }
        Ok(())
    }

    fn observe(&mut self) {
        if let AnyHost::Kernel(host) = self {
            host.observe();
        }
    }

    fn namespace(&self) -> Option<&namespace::Namespace> {
        match self {
            AnyHost::Engine(_) => None,
            AnyHost::Kernel(host) => Some(&host.network.namespace),
        }
    }
}

/// Sort the interventions, latest first. Fails if an intervention is impossible.
fn in_order(
    mut interventions: Vec<Intervention>,
    stacks: [HostStack; 2],
) -> Result<Vec<Intervention>, LiveError> {
    for Intervention { side, what, .. } in &interventions {
        if let (HostStack::Engine, Action::Command(command)) = (stacks[*side as usize], what) {
            return Err(LiveError::Unsupported(format!(
                "the {side} runs the engine: it has no network namespace to execute {command:?} in"
            )));
        }
    }
    interventions.reverse();
    interventions.sort_by_key(|each| std::cmp::Reverse(each.at));
    Ok(interventions)
}

/// Let an engine host's applications act. Returns the segments that the host sends, or `None` if
/// nothing happens.
fn act(host: &mut EngineHost, now: Instant) -> Option<Vec<PooledSegment>> {
    let acted = host.has_events();
    host.handle_events(now);
    let segments: Vec<_> = std::iter::from_fn(|| host.poll_transmit(now)).collect();
    (acted || !segments.is_empty()).then_some(segments)
}

fn observed(hosts: &[AnyHost; 2]) -> Hosts<'_> {
    hosts.each_ref().map(|host| match host {
        AnyHost::Engine(host) => host.as_ref() as &dyn Observed,
        AnyHost::Kernel(host) => host.as_ref() as &dyn Observed,
    })
}
