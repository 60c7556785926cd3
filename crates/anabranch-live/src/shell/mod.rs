//! Any program inside the emulated network.
//!
//! The program runs in a network namespace whose only way out is a TUN device (`sandbox.rs`). The
//! engine ends the program's TCP connections at the device, and carries their bytes over the paths
//! of a scenario to a second engine host. From there, ordinary sockets of this process continue
//! them in the namespace that the command was started in (`forward.rs`). The emulator and all its
//! hosts compute events at their own times, so a late wake-up delays data for the program, but not
//! what the paths do.

mod forward;
mod ports_device;
mod precise_alarm;
mod record;
mod sandbox;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_host::{ConnectionRecord, Device, Emulation, Host, RealTime, Snapshot};
use anabranch_net::network::Paths;
use anabranch_proto::SubflowStats;
use anabranch_proto::config::{ConnectionConfig, Protocol, TcpConfig};
use anabranch_proto::congestion::Cubic;
use anabranch_proto::path_manager::InitialOnly;
use anabranch_sim::driver::{client_address_in, connection_config, server_address_in};
use anabranch_sim::scenario::{Family, Scenario};
use anabranch_sim::{Capture, CustomPolicies, RunError, Side, Table};
use anabranch_wire::Instant;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::counters::{self, HostCounters};
use crate::idle_spinner::IdleSpinner;
use crate::lateness::Lateness;
use crate::run::LiveError;
use crate::settings::KernelSettings;
use crate::sys::{self, Signal, Tun};
use crate::tun_device::TunDevice;

use forward::ClientAddresses;
use ports_device::PortsDevice;
use precise_alarm::PreciseAlarm;
use record::Log;
use sandbox::{Sandbox, SandboxPlan, SandboxProcesses};
pub use sandbox::{Terminal, exec_program, is_sandbox};

/// Options for running a program in a shell.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShellOptions {
    /// Whether the kernel is the client: the program's own sockets use the paths. They use several
    /// only if the program opens Multipath TCP sockets.
    pub of_kernel: bool,
    /// The command that starts the helper: it calls [`exec_program`], which starts the program.
    pub helper: Vec<String>,
    /// Where the program's standard files lead.
    pub terminal: Terminal,
    /// The capture to write.
    pub capture: Option<Capture<'static>>,
    /// The user-defined policies of the scenario's first connection. The emulator's thread calls
    /// them.
    pub custom_policies: CustomPolicies,
}

impl ShellOptions {
    /// The defaults, with this helper: the engine is the client.
    pub fn new(helper: Vec<String>) -> Self {
        ShellOptions {
            of_kernel: false,
            helper,
            terminal: Terminal::default(),
            capture: None,
            custom_policies: CustomPolicies::default(),
        }
    }
}

anabranch_config::setters! { [] ShellOptions {
    of_kernel: bool,
    terminal: Terminal,
    capture: impl Into<Option<Capture<'static>>> => capture.into(),
    custom_policies: CustomPolicies,
} }

/// A program inside the network of a scenario.
pub struct Shell {
    emulation: Emulation,
    orders: Arc<Orders>,
    thread: JoinHandle<Result<ShellOutcome, LiveError>>,
}

impl fmt::Debug for Shell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shell").finish_non_exhaustive()
    }
}

/// Requests to end.
#[derive(Default)]
struct Orders {
    /// Notified when the program shall end soon.
    terminate: Notify,
    /// Notified when everything shall end at once.
    stop: Notify,
}

/// Result of a shell.
#[derive(Clone, Debug)]
pub struct ShellOutcome {
    /// Exit status of the program; 128 plus the number of the signal that ended it.
    pub status: i32,
    /// The tables of a run, and the scenario with a connection for each of the program's. `None` if
    /// the program opened no connection.
    pub recorded: Option<(Vec<Table>, Scenario)>,
    /// Time at the end.
    pub end: Instant,
    /// Number of packets that the two hosts of the network sent.
    pub packets: u64,
    /// Lateness of the emulator.
    pub lateness: Lateness,
    /// Counters of client and server.
    pub counters: [HostCounters; 2],
    /// Time at which the capture reached its limit.
    pub capture_full_at: Option<Instant>,
}

/// The state of a path, for a live display. The numbers of bytes are totals since the start.
#[derive(Clone, Debug)]
pub struct PathState {
    /// Bytes that the link towards the client has delivered.
    pub bytes_down: u64,
    /// Bytes that the link towards the server has delivered.
    pub bytes_up: u64,
    /// Whether packets pass.
    pub up: bool,
    /// Bytes in the queues towards the client and towards the server.
    pub queued: [u64; 2],
    /// Number of subflows.
    pub subflows: usize,
    /// Smoothed round-trip time of the subflow with the largest congestion window, in ns.
    pub srtt_ns: Option<u64>,
    /// Congestion windows of all subflows at both hosts, in bytes.
    pub cwnd: u64,
}

/// Buffers between the program and the emulator, in bytes. They are large enough for a gigabit per
/// second, and small enough that the program notices how fast the paths are.
const NEAR_BUFFER: u64 = 256 << 10;
/// Time in which connections may still deliver data that the program wrote before it ended.
const DRAIN: Duration = Duration::from_secs(10);
/// If hosts send nothing for a round trip and this time, no lost FIN is sent again: Linux's minimum of the
/// retransmission timeout (`TCP_RTO_MIN`), and some slack.
const QUIET: anabranch_wire::Duration = anabranch_wire::Duration::from_millis(250);
/// Longest time from a request to end until the program and its connections have ended.
const GRACE: Duration = Duration::from_secs(4);
/// Longest time from SIGTERM to SIGKILL for processes that the program has left behind.
const GRACE_OF_CHILDREN: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);
/// Time in TIME-WAIT. Old segments cannot outlive it by much, because the links hold few.
const TIME_WAIT: anabranch_wire::Duration = anabranch_wire::Duration::from_secs(1);

impl Shell {
    /// Start the program. The options of its connections are those of the scenario's first
    /// connection; its workload has no meaning here.
    ///
    /// # Errors
    /// If this host lacks what the shell needs, or the user-defined policies are not those that the
    /// scenario names.
    pub fn start(scenario: &Scenario, seed: u64, options: ShellOptions) -> Result<Self, LiveError> {
        let scenario = scenario.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name("shell".into()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
            runtime.block_on(async {
                let lab = Lab::new(&scenario, seed, options)?;
                let _ = tell.send((lab.emulation.clone(), Arc::clone(&lab.orders)));
                lab.run().await
            })
        })?;
        match told.recv() {
            Ok((emulation, orders)) => Ok(Shell { emulation, orders, thread }),
            Err(_) => Err(joined(thread).err().unwrap_or(LiveError::Outside)),
        }
    }

    /// Returns `true` if the program has ended, and all its data was delivered.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// The state of each path now.
    pub fn paths(&self) -> Vec<PathState> {
        self.emulation.observe(|snapshot| {
            let paths = snapshot.paths;
            let mut states: Vec<_> = (0..paths.count()).map(|path| state_of(paths, path)).collect();
            let mut largest = vec![0; states.len()];
            for (side, endpoint) in SIDES.into_iter().zip(snapshot.endpoints) {
                let all = endpoint.connections().flat_map(|id| endpoint.subflow_stats(id));
                for subflow in all.filter(SubflowStats::is_open) {
                    let client = match side {
                        Side::Client => subflow.local,
                        Side::Server => paths.original(subflow.remote),
                    };
                    let Some(path) = paths.path_of(client.address) else { continue };
                    let (state, view) = (&mut states[path], &subflow.view);
                    // The server knows every subflow, also those of a client outside the engine.
                    state.subflows += usize::from(side == Side::Server);
                    state.cwnd += view.cwnd;
                    if view.cwnd >= largest[path] {
                        largest[path] = view.cwnd;
                        state.srtt_ns = view.srtt.map(|srtt| srtt.as_nanos());
                    }
                }
            }
            states
        })
    }

    /// Take a path up or down, from now on.
    ///
    /// # Errors
    /// [`RunError::UnknownPath`].
    pub fn set_path(&self, path: usize, up: bool) -> Result<(), RunError> {
        self.emulation.set_path(path, up)
    }

    /// End soon: send SIGTERM to the program and all processes that it has started. After 5 s, those
    /// that are left are killed.
    pub fn terminate(&self) {
        self.orders.terminate.notify_one();
    }

    /// End at once: kill the program, and do not wait for its connections.
    pub fn stop(&self) {
        self.orders.stop.notify_one();
    }

    /// Wait for the end.
    ///
    /// # Errors
    /// If a system call failed, or the capture could not be written.
    pub fn finish(self) -> Result<ShellOutcome, LiveError> {
        joined(self.thread)
    }
}

fn joined<T>(thread: JoinHandle<Result<T, LiveError>>) -> Result<T, LiveError> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the emulator panicked").into()))
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn state_of(paths: &Paths, path: usize) -> PathState {
    let links = SIDES.map(|towards| paths.link_of(path, towards));
    PathState {
        bytes_down: links[0].stats().bytes_delivered,
        bytes_up: links[1].stats().bytes_delivered,
        up: links.iter().all(|link| link.is_up()),
        queued: links.map(|link| link.queue_bytes()),
        subflows: 0,
        srtt_ns: None,
        cwnd: 0,
    }
}

/// A running shell, inside its runtime.
struct Lab {
    emulation: Emulation,
    sandbox: Sandbox,
    log: Log,
    sample_interval: Duration,
    lateness: Arc<Mutex<Lateness>>,
    orders: Arc<Orders>,
    of_kernel: bool,
}

impl Lab {
    fn new(scenario: &Scenario, seed: u64, options: ShellOptions) -> Result<Self, LiveError> {
        let ShellOptions { of_kernel, helper, terminal, capture, custom_policies } = options;
        let custom_policies = vec![custom_policies];
        let scenario = &for_stack(scenario, of_kernel)?;
        let config = far_config(scenario, seed, &custom_policies)?;
        let addresses = addresses_of(scenario);
        // The program has the client's addresses on the first path, and its datagrams take that
        // path.
        let first = [&addresses.ipv4, &addresses.ipv6].into_iter().filter_map(|of| of.first());
        let plan = SandboxPlan {
            addresses: first.copied().collect(),
            services: sandbox::services(),
            paths: of_kernel.then(|| scenario.to_toml()),
        };
        let (sandbox, mut fds) = Sandbox::open(&helper, &plan, &terminal)?;
        let tun = (!of_kernel).then(|| Tun::from_fd(fds.remove(0)));
        let client: Option<Box<dyn Device>> =
            if of_kernel { Some(Box::new(PortsDevice::new(fds)?)) } else { None };
        let alarm = Box::new(PreciseAlarm::new()?);
        let parts = RealTime { alarm, capture, client, custom_policies };
        let emulation = Emulation::in_real_time(scenario, seed, parts)?;
        let own: Vec<IpAddr> = [Family::Ipv4, Family::Ipv6].map(server_address_in).into();
        let (client, server) = (emulation.client(), emulation.server());
        addresses.ipv4.iter().chain(&addresses.ipv6).for_each(|each| client.add_address(*each));
        client.keep_records();
        server.keep_records();
        if let Some(tun) = tun {
            let (device, secret) = (TunDevice::new(tun)?, sys::random_secret()?);
            let program = Host::new(device, Vec::new(), secret, near_config());
            tokio::spawn(forward::from_program(program.clone(), client.clone(), addresses, config));
            tokio::spawn(forward::datagrams(program.clone(), client.clone()));
            tokio::spawn(forward::datagrams(client.clone(), program));
        }
        tokio::spawn(forward::to_host(server.clone(), own.clone()));
        tokio::spawn(forward::datagrams_to_host(server.clone(), own));
        let lateness = Arc::new(Mutex::new(Lateness::default()));
        let shared = Arc::clone(&lateness);
        emulation.on_arrival(move |due, noticed| {
            lock(&shared).record(noticed.saturating_since(due));
        });
        let sample_interval = Duration::from_nanos(scenario.sample_interval.as_nanos());
        let (log, orders) = (Log::new(scenario, of_kernel), Arc::default());
        Ok(Lab { emulation, sandbox, log, sample_interval, lateness, orders, of_kernel })
    }

    async fn run(mut self) -> Result<ShellOutcome, LiveError> {
        let ended = sys::watch(sys::process_end(self.sandbox.child.id())?)?;
        self.sandbox.go()?;
        sys::set_timer_slack();
        sys::prefer_this_thread();
        let _until_the_end = IdleSpinner::begin();
        let mut samples = interval(self.sample_interval);
        samples.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (emulation, orders) = (self.emulation.clone(), Arc::clone(&self.orders));
        let (processes, of_kernel) = (self.sandbox.processes, self.of_kernel);
        let mut over = pin!(async move {
            let ending = pin!(async {
                let _ = ended.readable().await;
                drained(&emulation, of_kernel).await;
            });
            if ended_by(&orders, processes, ending).await == First::One {
                processes.signal(Some(Signal::KILL));
            }
            // The program may have left processes behind, which lose their network now.
            processes.end(GRACE_OF_CHILDREN).await;
        });
        while first_of(samples.tick(), over.as_mut()).await == First::One {
            self.emulation.observe(|snapshot| self.log.sample(&snapshot));
        }
        let _ = self.sandbox.child.kill();
        let status = self.sandbox.child.wait()?;
        let status = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        let Lab { emulation, log, lateness, .. } = self;
        if let Some(error) = emulation.take_capture_error() {
            return Err(error.into());
        }
        Ok(emulation.observe(|snapshot| ShellOutcome {
            status,
            end: snapshot.now,
            packets: snapshot.packets,
            lateness: lock(&lateness).clone(),
            counters: snapshot.endpoints.map(|host| counters::of_engine(&host.counters())),
            capture_full_at: snapshot.capture_full_at,
            recorded: log.finish(&snapshot),
        }))
    }
}

/// Wait for the end of the program: by itself (`ending`), or after SIGTERM. Returns `One` if everything
/// must end at once.
async fn ended_by(
    orders: &Orders,
    processes: SandboxProcesses,
    mut ending: impl Future + Unpin,
) -> First {
    let in_time = async {
        if first_of(orders.terminate.notified(), &mut ending).await == First::One {
            processes.signal(Some(Signal::TERM));
            let _ = timeout(GRACE, ending).await;
        }
    };
    first_of(orders.stop.notified(), in_time).await
}

/// Which of two futures came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    One,
    Other,
}

async fn first_of(one: impl Future, other: impl Future) -> First {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if other.as_mut().poll(context).is_ready() {
            return Poll::Ready(First::Other);
        }
        one.as_mut().poll(context).map(|_| First::One)
    })
    .await
}

/// Wait until all connections have delivered the program's data and their subflows have closed, for
/// some time at most.
async fn drained(emulation: &Emulation, of_kernel: bool) {
    let (client, server) = (emulation.client(), emulation.server());
    let is_open = || any(server, |record| record.ended.is_none());
    // A host forgets a connection when its subflows have closed, unless it keeps it in TIME-WAIT. A
    // kernel's TIME-WAIT is unknown.
    let is_kept = || any(server, |_| true) && (of_kernel || any(client, |_| true));
    let progress = || emulation.observe(|it| (it.now, it.packets, longest_rtt(&it)));
    let wait = async {
        // The last data of the program may still be on its way.
        sleep(TICK).await;
        while is_open() {
            sleep(TICK).await;
        }
        // The FINs of the subflows complete the capture. In TIME-WAIT at both hosts, nothing follows.
        let (mut since, mut packets, _) = progress();
        while is_kept() {
            let (now, sent, rtt) = progress();
            if sent != packets {
                (since, packets) = (now, sent);
            } else if now.saturating_since(since) > rtt + QUIET {
                break;
            }
            sleep(TICK).await;
        }
    };
    let _ = timeout(DRAIN, wait).await;
}

/// The longest smoothed round-trip time of a subflow.
fn longest_rtt(snapshot: &Snapshot<'_>) -> anabranch_wire::Duration {
    let subflows = snapshot
        .endpoints
        .into_iter()
        .flat_map(|endpoint| endpoint.connections().flat_map(|id| endpoint.subflow_stats(id)));
    subflows.filter_map(|subflow| subflow.view.srtt).max().unwrap_or_default()
}

/// Returns `true` if a host still has any of these connections. Connections that carried no data
/// are ignored: they have nothing to deliver.
fn any(host: &Host, these: fn(&ConnectionRecord) -> bool) -> bool {
    host.inspect(|now, endpoint, records| {
        records.iter().filter(|record| these(record)).any(|record| {
            let stats = endpoint.connection_stats(now, record.id);
            stats.is_some_and(|stats| stats.bytes_written + stats.bytes_delivered > 0)
        })
    })
}

/// The client's addresses on the paths of the scenario's first connection. Both families work on
/// every path, unless a middlebox, which has one address, might translate between them.
fn addresses_of(scenario: &Scenario) -> ClientAddresses {
    let paths = &scenario.connections[0].paths;
    let plain = scenario.paths.iter().all(|path| path.middleboxes.is_empty());
    let of = |family| {
        let usable = |path: &&usize| plain || scenario.paths[**path].family == family;
        paths.iter().filter(usable).map(|path| client_address_in(family, *path)).collect()
    };
    ClientAddresses { ipv4: of(Family::Ipv4), ipv6: of(Family::Ipv6) }
}

/// The scenario for a stack: a kernel takes less of it.
fn for_stack(scenario: &Scenario, of_kernel: bool) -> Result<Scenario, LiveError> {
    let mut scenario = scenario.clone();
    scenario.connections.truncate(1);
    if of_kernel {
        // Linux does not notice that a path drops the options of its data.
        scenario.connections[0].late_fallback = false;
        KernelSettings::new(&scenario).check(&scenario).map_err(LiveError::Unsupported)?;
    }
    Ok(scenario)
}

/// The options of connections over the paths.
fn far_config(
    scenario: &Scenario,
    seed: u64,
    custom_policies: &[CustomPolicies],
) -> Result<ConnectionConfig, LiveError> {
    let mut config = connection_config(scenario, 0, Side::Client, seed, custom_policies)
        .map_err(RunError::from)?;
    // The program's own sockets decide whether to wait for more data.
    config.tcp = config.tcp.nagle(false).time_wait(TIME_WAIT);
    Ok(config)
}

/// The options of connections between the program and its device: TCP without a network.
fn near_config() -> ConnectionConfig {
    ConnectionConfig::default()
        .protocol(Protocol::Tcp)
        .send_buffer(NEAR_BUFFER)
        .receive_buffer(NEAR_BUFFER)
        .tcp(TcpConfig::default().mtu(sandbox::MTU).nagle(false).time_wait(TIME_WAIT))
        .congestion_control(|start| Box::new(Cubic::new(start)))
        .path_manager(|| Box::new(InitialOnly))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
