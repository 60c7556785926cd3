//! The process that parses packets. It gives up all privileges before it reads the first one.

mod capture;
mod carry;
mod client;
mod clients;
mod connections;
mod counted_device;
mod measure;
mod metrics;
mod pending;
mod probe;
mod relay;
mod tun;
mod two_families;

use std::io::{self, BufRead};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{panic, process, thread};

use anabranch_host::Host;
use anabranch_live::TunDevice;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::{Backup, FullMesh, InitialOnly, PathManager};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::orders::{Assignment, Order, Role, Uplink};
use crate::policies::with_interfaces;
use crate::privileges;
use capture::Capture;
use connections::Connections;
use counted_device::{CountedDevice, Traffic};
use metrics::Metrics;
use two_families::TwoFamilies;

/// Longest time for the ends of the last streams, after a process has no connections to carry (this
/// project): some retransmission timeouts.
const MOST_LINGERING_TIME: Duration = Duration::from_secs(1);
/// Time between two looks at what remains (this project).
const LINGERING_INTERVAL: Duration = Duration::from_millis(50);

/// State that all tasks of the process share.
struct WorkerState {
    host: Host,
    uplinks: Vec<OpenUplink>,
    metrics: Metrics,
    log_destinations: bool,
    connections: Arc<Connections>,
}

/// An uplink while the process runs.
struct OpenUplink {
    interface: String,
    /// The engine's addresses, and whether each is usable.
    addresses: Vec<(IpAddr, AtomicBool)>,
    backup: bool,
    traffic: Arc<Traffic>,
}

impl OpenUplink {
    fn new(uplink: &Uplink) -> Self {
        OpenUplink {
            interface: uplink.interface.clone(),
            addresses: uplink.addresses.iter().map(|it| (*it, AtomicBool::new(true))).collect(),
            backup: uplink.backup,
            traffic: Traffic::of(uplink),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|(own, _)| *own == address)
    }

    fn is_usable(&self) -> bool {
        self.addresses.iter().any(|(_, usable)| usable.load(Ordering::Relaxed))
    }

    /// The usable address of the family of one of these peers, and this peer.
    fn way<'a>(&self, peers: &'a [SocketAddr]) -> Option<(IpAddr, &'a SocketAddr)> {
        let usable = self.addresses.iter().filter(|(_, usable)| usable.load(Ordering::Relaxed));
        usable.map(|(own, _)| *own).find_map(|own| {
            peers.iter().find(|peer| peer.is_ipv4() == own.is_ipv4()).map(|peer| (own, peer))
        })
    }

    /// The address for a connection to these peers: a usable one, if there is one.
    fn address(&self, peers: &[SocketAddr]) -> Option<IpAddr> {
        let fits = |own: &IpAddr| peers.iter().any(|peer| peer.is_ipv4() == own.is_ipv4());
        let any = || self.addresses.iter().map(|(own, _)| *own).find(fits);
        self.way(peers).map(|(own, _)| own).or_else(any)
    }
}

/// Run until the supervisor says that it is enough. Its first line on the standard input is the
/// [`Assignment`]. Privileges last until the devices are open: some systems let only root open them.
pub(crate) fn main() -> io::Result<()> {
    end_with_a_panic();
    let mut line = String::new();
    let mut input = io::BufReader::new(io::stdin());
    input.read_line(&mut line)?;
    let assignment: Assignment = serde_json::from_str(&line)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let devices = {
        let _runtime = runtime.enter();
        Devices::open(&assignment)?
    };
    privileges::give_up(assignment.owner)?;
    let (tell, orders) = unbounded_channel();
    // Standard input is a pipe, and lines are rare.
    thread::Builder::new().name("orders".into()).spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str(&line) else { break };
            if tell.send(order).is_err() {
                break;
            }
        }
    })?;
    let done = runtime.block_on(run(assignment, devices, orders));
    // A look-up of a name may still wait for its time limit.
    runtime.shutdown_background();
    done
}

/// Abort the process at the first panic. Otherwise, a panic in one task would leave a process that looks
/// healthy and carries no data.
fn end_with_a_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        process::abort();
    }));
}

/// The open TUN devices.
struct Devices {
    /// Where the engine's packets enter the host.
    engine: TunDevice,
    /// Where the packets of programs arrive that need no proxy.
    programs: Option<TunDevice>,
}

impl Devices {
    fn open(assignment: &Assignment) -> io::Result<Self> {
        let open = |name: &String| {
            TunDevice::open_with_offload(name)
                .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
        };
        let programs = match &assignment.role {
            Role::Client { tun, .. } => tun.as_ref().map(open).transpose()?,
            _ => None,
        };
        Ok(Devices { engine: open(&assignment.device)?, programs })
    }
}

async fn run(
    assignment: Assignment,
    devices: Devices,
    orders: UnboundedReceiver<Order>,
) -> io::Result<()> {
    let config = assignment.policies.config().map_err(io::Error::other)?;
    let uplinks = &assignment.uplinks;
    let of_uplink = |uplink: &Uplink| {
        let mtu = uplink.mtu;
        uplink.addresses.iter().map(move |address| (*address, mtu)).collect::<Vec<_>>()
    };
    let mtus: Vec<_> = uplinks.iter().flat_map(of_uplink).collect();
    let addresses = mtus.iter().map(|(address, _)| *address).collect();
    // The addresses of a relay's engine mean nothing to clients. The client opens all subflows.
    let config = with_interfaces(config, mtus).path_manager(|| Box::new(InitialOnly));
    let capture = match assignment.capture {
        Some(order) => Capture::begin(order, uplinks)?,
        None => Capture::none(),
    };
    let uplinks: Vec<_> = uplinks.iter().map(OpenUplink::new).collect();
    let traffic = uplinks.iter().map(|uplink| Arc::clone(&uplink.traffic)).collect();
    let host = Host::new(
        CountedDevice { device: devices.engine, traffic, capture },
        addresses,
        random()?,
        config,
    );
    let shared = Arc::new(WorkerState {
        host,
        uplinks,
        metrics: Metrics::default(),
        log_destinations: assignment.log_destinations,
        connections: Arc::default(),
    });
    for uplink in &assignment.uplinks {
        let is_down = |address: &&IpAddr| !uplink.usable.contains(*address);
        uplink.addresses.iter().filter(is_down).for_each(|it| shared.set_usable(*it, false));
    }
    let has_budget = |index: &usize| shared.uplinks[*index].traffic.left().is_some();
    for index in (0..shared.uplinks.len()).filter(has_budget) {
        tokio::spawn(Arc::clone(&shared).watch_budget(index));
    }
    if let Some(address) = assignment.metrics {
        metrics::serve(address, Arc::clone(&shared)).await?;
    }
    let work = start(&assignment, devices.programs, &shared).await?;
    tokio::select! {
        done = work => done,
        done = Arc::clone(&shared).follow(orders) => done,
    }
}

/// Open what the role needs. The result is the work itself.
async fn start(
    assignment: &Assignment,
    programs: Option<TunDevice>,
    shared: &Arc<WorkerState>,
) -> io::Result<std::pin::Pin<Box<dyn Future<Output = io::Result<()>> + Send>>> {
    let key = assignment.key.map(crate::proof::ProofKey::from_bytes);
    match &assignment.role {
        Role::Client { listen, relay, .. } => {
            let relay = key.filter(|_| !relay.is_empty()).map(|key| (relay.clone(), key));
            let proxy = client::start(*listen, relay.clone(), Arc::clone(shared)).await?;
            let Some(programs) = programs else { return Ok(Box::pin(proxy)) };
            let tun = tun::start(programs, relay, Arc::clone(shared))?;
            Ok(Box::pin(async {
                tokio::select! {
                    done = proxy => done,
                    done = tun => done,
                }
            }))
        }
        Role::Measure { relay, budget } => {
            let key = key.ok_or_else(|| io::Error::other("a relay needs a secret"))?;
            Ok(Box::pin(measure::run(relay.clone(), key, *budget, Arc::clone(shared))))
        }
        Role::Relay { .. } => {
            let key = key.ok_or_else(|| io::Error::other("a relay needs a secret"))?;
            Ok(Box::pin(relay::start(&assignment.role, key, Arc::clone(shared))?))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Random bytes of the system.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // Linux fills up to 256 bytes at once.
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if count == N { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl WorkerState {
    /// Do what the supervisor says. Returns after the last connection, or if the supervisor is gone.
    async fn follow(self: Arc<Self>, mut orders: UnboundedReceiver<Order>) -> io::Result<()> {
        loop {
            match orders.recv().await {
                Some(Order::Uplink { address, usable }) => self.set_usable(address, usable),
                Some(Order::Drain) => break,
                None => {
                    error!("the process that set up the network is gone");
                    return Ok(());
                }
            }
        }
        self.connections.drain();
        info!(connections = self.connections.open(), "draining");
        tokio::select! {
            () = self.connections.all_ended() => {}
            () = async { while orders.recv().await.is_some() {} } => {}
        }
        self.linger().await;
        Ok(())
    }

    /// Wait a little while connections remain: the end of a stream may have to be sent again.
    async fn linger(&self) {
        let until = Instant::now() + MOST_LINGERING_TIME;
        let remain = || self.host.inspect(|_, endpoint, _| endpoint.connections().next().is_some());
        while remain() && Instant::now() < until {
            sleep(LINGERING_INTERVAL).await;
        }
    }

    fn set_usable(&self, address: IpAddr, usable: bool) {
        let Some(uplink) = self.uplinks.iter().find(|uplink| uplink.has(address)) else { return };
        let before = uplink.is_usable();
        // An uplink whose budget is used up stays out of use.
        let usable = usable && uplink.traffic.left() != Some(0);
        let own = uplink.addresses.iter().filter(|(own, _)| *own == address);
        own.for_each(|(_, state)| state.store(usable, Ordering::Relaxed));
        self.host.set_address_usable(address, usable);
        let after = uplink.is_usable();
        if before != after || !after {
            let state = if after { "up" } else { "down" };
            info!(uplink = uplink.interface, state, %address, "uplink");
        }
    }

    /// Wait until the budget of the uplink at this index is used up, and then use it no longer.
    async fn watch_budget(self: Arc<Self>, index: usize) {
        let uplink = &self.uplinks[index];
        uplink.traffic.spent.notified().await;
        warn!(uplink = uplink.interface, "its budget is used up");
        uplink.addresses.iter().for_each(|(address, _)| self.set_usable(*address, false));
    }

    /// Options of a connection to one of these peers, whose first subflow uses the uplink at this
    /// index.
    fn config_from(&self, first: usize, peers: &[SocketAddr]) -> ConnectionConfig {
        let mut uplinks: Vec<_> = self.uplinks.iter().collect();
        uplinks[..=first].rotate_right(1);
        let with_address = |uplink: &OpenUplink| Some((uplink.address(peers)?, uplink.backup));
        let ends: Vec<_> = uplinks.into_iter().filter_map(with_address).collect();
        let addresses = ends.iter().map(|(address, _)| *address).collect();
        let regular = ends.iter().position(|(_, backup)| !backup);
        let regular = regular.filter(|_| ends.iter().any(|(_, backup)| *backup));
        let peers = peers.to_vec();
        let manager = move || -> Box<dyn PathManager> {
            let manager: Box<dyn PathManager> = match regular {
                Some(regular) => Box::new(Backup::new(regular)),
                None => Box::new(FullMesh::default()),
            };
            match peers.len() {
                2 => Box::new(TwoFamilies::new(manager, &peers)),
                _ => manager,
            }
        };
        self.host.config().clone().local_addresses(Some(addresses)).path_manager(manager)
    }
}
