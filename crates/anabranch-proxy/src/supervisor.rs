//! The process with privileges: it sets up the network, starts the other process, follows changes of
//! the interfaces, and takes everything down at the end. It reads no packets.

use std::fs;
use std::future::pending;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anabranch_live::NetworkChanges;
use clap::Parser;
use rustix::thread::CapabilitySet;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command as Process};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::capture_files::{self, CaptureFiles};
use crate::measurement;
use crate::options::{Cli, ClientOptions, Command, CommonOptions, MeasureOptions, RelayOptions};
use crate::orders::{Assignment, Measured, Order, Role, Uplink};
use crate::part_file::PartFile;
use crate::privileges;
use crate::proof::ProofKey;
use crate::setup::{
    self, ClientSetup, Family, InstanceRecord, NO_IPV6, Neighbours, RecordError, RelaySetup, Setup,
    Ways,
};
use crate::worker;

/// Exit status for mistakes of the user, as clap's.
const USAGE: u8 = 2;
/// Longest time for connections to end after SIGTERM (this project). systemd waits for 90 s.
const DRAINING: Duration = Duration::from_secs(30);
/// Changes of interfaces come in groups.
const SETTLING: Duration = Duration::from_millis(100);
const DEFAULT_USER: &str = "nobody";
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1080);
const NO_QLOG: &str = "qlog: this program reads no captures; write one with --pcap FILE --snap 128, \
                       and convert it where Python is: anabranch analyze FILE --qlog OUT";
const MAX_CONNECTIONS: usize = 1024;
const MAX_CONNECTIONS_PER_CLIENT: usize = 256;

/// Reason why the program fails.
enum SupervisorError {
    /// The user has to change something.
    Usage(String),
    /// The system refuses something.
    System(io::Error),
    /// The other process has said why, and ended with this status.
    Told(u8),
}

impl From<io::Error> for SupervisorError {
    fn from(error: io::Error) -> Self {
        SupervisorError::System(error)
    }
}

/// Commands with which this program starts others.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Command that starts this one again: the process without privileges gets its arguments after
    /// these words.
    pub again: &'a [String],
    /// Command that reads a capture from its standard input, and writes qlog to its standard output.
    pub to_qlog: Option<&'a [String]>,
}

/// Run the command with these arguments, and return its exit status.
pub fn main(arguments: &[String], program: Program<'_>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    let _ = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .with_writer(io::stderr)
        .try_init();
    let done = match cli.command {
        Command::Worker => worker::main().map_err(of_worker),
        Command::Client(options) => client(options, program),
        Command::Relay(options) => relay(options, program),
        Command::Measure(options) => measure(&options, program),
    };
    match done {
        Ok(()) => 0,
        Err(SupervisorError::Usage(message)) => {
            eprintln!("anabranch-proxy: {message}");
            USAGE
        }
        Err(SupervisorError::System(error)) => {
            eprintln!("anabranch-proxy: {error}");
            1
        }
        Err(SupervisorError::Told(status)) => status,
    }
}

/// An address of the options that cannot be used is a mistake of the user.
fn of_worker(error: io::Error) -> SupervisorError {
    match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => {
            SupervisorError::Usage(error.to_string())
        }
        _ => SupervisorError::System(error),
    }
}

fn client(options: ClientOptions, program: Program<'_>) -> Result<(), SupervisorError> {
    let options = options.complete().map_err(SupervisorError::Usage)?;
    let common = &options.common;
    let relay = options.relay.as_deref().map(relay_addresses).transpose()?.unwrap_or_default();
    let mut instance = Instance::new(common, "client", program)?;
    let record = instance.prepare(common)?;
    let targets = relay.iter().map(SocketAddr::ip).collect();
    let named = options.uplinks().map_err(SupervisorError::Usage)?;
    let interfaces = named.iter().map(|uplink| uplink.interface.clone()).collect();
    let (regular, neighbours) = (common.uplink.len(), instance.neighbours()?);
    let plan = ClientSetup::new(&instance.name, interfaces, regular, targets, neighbours)?;
    let plan = if options.tun { plan.with_tun() } else { plan };
    if options.tun && relay.is_empty() && !Family::V6.is_supported() {
        warn!("tun: without a relay, connections over IPv6 keep their way: {NO_IPV6}");
    }
    let ways = plan.ways(&[])?;
    let network = plan.plan(instance.owner.0, &ways);
    if common.dry_run {
        print!("{}", network.describe());
        return Ok(());
    }
    let mut uplinks = plan.uplinks(&ways);
    for (uplink, named) in uplinks.iter_mut().zip(named) {
        uplink.budget = named.budget;
    }
    for uplink in uplinks.iter().filter(|uplink| uplink.usable.is_empty()) {
        warn!(uplink = uplink.interface, "no link, or no route, for now");
    }
    let listen = options.listen.unwrap_or(DEFAULT_LISTEN);
    let role = Role::Client { listen, relay, tun: plan.tun().map(str::to_owned) };
    let assignment = instance.assignment(common, plan.device(), uplinks, role);
    let following = Some(Following { plan, ways });
    let done = instance.run(program, &assignment, &network, record, following);
    done.and_then(|()| instance.write_qlog())
}

fn relay(options: RelayOptions, program: Program<'_>) -> Result<(), SupervisorError> {
    let options = options.complete().map_err(SupervisorError::Usage)?;
    let common = &options.common;
    let mut instance = Instance::new(common, "relay", program)?;
    let record = instance.prepare(common)?;
    let mut interfaces = common.uplink.clone();
    if interfaces.is_empty() {
        let none = "uplink: this host has no default route; name the interface with --uplink";
        let found = setup::default_interface()?;
        interfaces.push(found.ok_or_else(|| SupervisorError::Usage(none.to_owned()))?);
    }
    let port = options.listen.expect("it was checked");
    let families = relay_families(&interfaces)?;
    check_interfaces(&interfaces, &families, common.dry_run)?;
    let neighbours = instance.neighbours()?;
    let plan = RelaySetup::new(&instance.name, interfaces, families, port, neighbours);
    let network = plan.plan(instance.owner.0);
    if common.dry_run {
        print!("{}", network.describe());
        return Ok(());
    }
    let role = Role::Relay {
        port,
        allow: options.allow.clone(),
        deny: options.deny.clone(),
        max_connections: options.max_connections.unwrap_or(MAX_CONNECTIONS),
        max_connections_per_client: options
            .max_connections_per_client
            .unwrap_or(MAX_CONNECTIONS_PER_CLIENT),
    };
    let assignment = instance.assignment(common, plan.device(), vec![plan.uplink()?], role);
    let done = instance.run(program, &assignment, &network, record, None);
    done.and_then(|()| instance.write_qlog())
}

/// Measure the uplinks, print a table, and write a scenario.
fn measure(options: &MeasureOptions, program: Program<'_>) -> Result<(), SupervisorError> {
    let interfaces = options.interfaces().map_err(SupervisorError::Usage)?;
    let budget = options.budget().map_err(SupervisorError::Usage)?;
    let relay = relay_addresses(&options.relay)?;
    // A measurement takes long: say before it if the file cannot be written.
    let create = |path| {
        let file = PartFile::create(path, 0o666);
        file.map_err(|error| SupervisorError::Usage(capture_files::named("out", path, &error)))
    };
    let common = options.common();
    let out = options.out.as_deref().filter(|_| !common.dry_run).map(create).transpose()?;
    let mut instance = Instance::new(&common, "measure", program)?;
    let record = instance.prepare(&common)?;
    let targets = relay.iter().map(SocketAddr::ip).collect();
    let regular = interfaces.len();
    let neighbours = instance.neighbours()?;
    let plan = ClientSetup::new(&instance.name, interfaces.clone(), regular, targets, neighbours)?;
    let ways = plan.ways(&[])?;
    let network = plan.plan(instance.owner.0, &ways);
    if common.dry_run {
        print!("{}", network.describe());
        return Ok(());
    }
    let results = capture_files::create_nameless(&std::env::temp_dir())?;
    instance.results = Some(results.try_clone()?);
    let role = Role::Measure { relay, budget };
    let assignment = instance.assignment(&common, plan.device(), plan.uplinks(&ways), role);
    let done = instance.run(program, &assignment, &network, record, None);
    done?;
    let measured = measurement::read(results)?;
    print!("{}", measurement::table(&interfaces, &measured));
    if !measured.iter().any(|it| matches!(it, Measured::Links { .. })) {
        return Err(SupervisorError::Told(1));
    }
    if let Some(out) = out {
        out.file().write_all(measurement::scenario(&interfaces, &measured).as_bytes())?;
        out.complete()?;
    }
    Ok(())
}

/// The relay's addresses. This host can use one of them at least.
fn relay_addresses(written: &str) -> Result<Vec<SocketAddr>, SupervisorError> {
    let wrong = |problem: &str| SupervisorError::Usage(format!("relay: {problem}"));
    let found = setup::resolve(written).map_err(|problem| wrong(&problem))?;
    match found.iter().any(|address| Family::of(address.ip()).is_supported()) {
        true => Ok(found),
        false => Err(wrong(&format!("{written:?} has IPv6 addresses only: {NO_IPV6}"))),
    }
}

/// Check the interfaces of a relay. One may be missing for now, unless all are, or unless this program
/// has to make it forward packets.
fn check_interfaces(
    interfaces: &[String],
    families: &[Family],
    dry_run: bool,
) -> Result<(), SupervisorError> {
    let mut missing = Vec::new();
    for interface in interfaces {
        if !setup::exists(interface)? {
            missing.push(interface);
        }
    }
    for interface in &missing {
        let follows = families.iter().all(|family| family.forwards(interface));
        if !dry_run && (missing.len() == interfaces.len() || !follows) {
            let message = format!("uplink: this host has no interface {interface:?}; see: ip link");
            return Err(SupervisorError::Usage(message));
        }
        warn!(uplink = interface, "no such interface, for now");
    }
    Ok(())
}

/// Families with which clients reach a relay through these interfaces.
fn relay_families(interfaces: &[String]) -> Result<Vec<Family>, SupervisorError> {
    let mut families = vec![Family::V4];
    for interface in interfaces {
        if !setup::has_ipv6(interface)? || families.contains(&Family::V6) {
            continue;
        }
        match Family::V6.is_supported() {
            true => families.push(Family::V6),
            false => warn!(interface, "its IPv6 addresses are not used: {NO_IPV6}"),
        }
    }
    Ok(families)
}

/// A named client or relay of this host.
struct Instance {
    name: String,
    /// User and group of the process without privileges.
    owner: (u32, u32),
    key: Option<ProofKey>,
    /// The process without privileges gets the file of the packets as its standard output.
    capture: Option<CaptureFiles>,
    /// File for the results of a measurement, in place of a capture.
    results: Option<fs::File>,
    /// Command that converts a capture to qlog.
    to_qlog: Vec<String>,
}

impl Instance {
    fn new(
        common: &CommonOptions,
        default_name: &str,
        program: Program<'_>,
    ) -> Result<Self, SupervisorError> {
        if common.qlog.is_some() && program.to_qlog.is_none() {
            return Err(SupervisorError::Usage(NO_QLOG.to_owned()));
        }
        let to_qlog = program.to_qlog.unwrap_or_default().to_vec();
        let capabilities = rustix::thread::capabilities(None).map_err(io::Error::from)?;
        if !common.dry_run && !capabilities.effective.contains(CapabilitySet::NET_ADMIN) {
            let message = "run it as root: it sets up interfaces, routes and nftables";
            return Err(SupervisorError::Usage(message.to_owned()));
        }
        let name = common.name.as_deref().unwrap_or(default_name).to_owned();
        let key = common.secret_file.as_deref().map(read_key).transpose();
        let key =
            key.map_err(|problem| SupervisorError::Usage(format!("secret_file: {problem}")))?;
        let owner = find_owner(common.user.as_deref()).map_err(SupervisorError::Usage)?;
        Ok(Instance { name, owner, key, capture: None, results: None, to_qlog })
    }

    /// Remove what an earlier process has left, and create the files of a capture. Returns the record of
    /// this process, unless it changes nothing.
    fn prepare(
        &mut self,
        common: &CommonOptions,
    ) -> Result<Option<InstanceRecord>, SupervisorError> {
        if common.dry_run {
            return Ok(None);
        }
        let opened = InstanceRecord::open(&self.name);
        let (mut record, left) = opened.map_err(|error| match error {
            RecordError::Running(_) => SupervisorError::Usage(error.to_string()),
            RecordError::File(..) => SupervisorError::System(io::Error::other(error)),
        })?;
        if let Some(left) = left {
            info!(name = self.name, "removing what an earlier process has left");
            left.remove(&setup::others(&self.name));
            record.empty();
        }
        if common.qlog.is_some() {
            capture_files::check_converter(&self.to_qlog, self.owner)
                .map_err(SupervisorError::Usage)?;
        }
        // A file belongs to the instance with this name until it ends.
        self.capture = CaptureFiles::create(common).map_err(SupervisorError::Usage)?;
        Ok(Some(record))
    }

    /// The other instances, for the plan of this one's network.
    fn neighbours(&self) -> Result<Neighbours, SupervisorError> {
        let full = "name: no further instance fits on this host";
        Neighbours::new(&setup::others(&self.name))
            .ok_or_else(|| SupervisorError::Usage(full.to_owned()))
    }

    fn assignment(
        &self,
        common: &CommonOptions,
        device: &str,
        uplinks: Vec<Uplink>,
        role: Role,
    ) -> Assignment {
        let changes_user = rustix::process::geteuid().is_root() && self.owner.0 != 0;
        Assignment {
            owner: changes_user.then_some(self.owner),
            device: device.to_owned(),
            uplinks,
            key: self.key.as_ref().map(ProofKey::to_bytes),
            policies: common.policies(),
            capture: common.capture().expect("it was checked"),
            metrics: common.metrics,
            log_destinations: common.log_destinations,
            role,
        }
    }

    /// Convert the capture, if there is to be a qlog file.
    fn write_qlog(self) -> Result<(), SupervisorError> {
        let Some(capture) = self.capture else { return Ok(()) };
        if capture.convert(&self.to_qlog, self.owner)? {
            Ok(())
        } else {
            Err(SupervisorError::Told(1))
        }
    }

    /// Set up the network, run the other process to its end, and take the network down.
    fn run(
        &self,
        program: Program<'_>,
        assignment: &Assignment,
        network: &Setup,
        mut record: Option<InstanceRecord>,
        following: Option<Following>,
    ) -> Result<(), SupervisorError> {
        privileges::keep_those_of_setup()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            // From here on, signals end the program in order.
            let signals = Signals::new()?;
            if let Some(record) = &mut record {
                record.write(network).map_err(io::Error::other)?;
            }
            let made = network.make();
            record.iter_mut().for_each(InstanceRecord::let_others_change);
            let done = match made {
                Ok(()) => self.supervise(program, assignment, following, signals).await,
                Err(error) => Err(error.into()),
            };
            record.into_iter().for_each(|record| record.remove(&self.name, network));
            done
        })
    }

    async fn supervise(
        &self,
        program: Program<'_>,
        assignment: &Assignment,
        mut following: Option<Following>,
        mut signals: Signals,
    ) -> Result<(), SupervisorError> {
        let (mut child, mut orders) = self.start(program, assignment).await?;
        // The first look finds changes since the plan was made.
        let changes = following.as_ref().map(|_| NetworkChanges::subscribe()).transpose()?;
        loop {
            if let Some(following) = &mut following {
                for order in following.update()? {
                    send(&mut orders, &order).await?;
                }
            }
            let change = async {
                match &changes {
                    Some(changes) => changes.changed(SETTLING).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                status = child.wait() => return ended(status?),
                end = signals.next() => if end { break },
                changed = change => changed?,
            }
        }
        send(&mut orders, &Order::Drain).await?;
        tokio::select! {
            status = timeout(DRAINING, child.wait()) => match status {
                Ok(status) => return ended(status?),
                Err(_) => warn!("connections are left after {} s", DRAINING.as_secs()),
            },
            () = signals.end() => {}
        }
        Ok(child.kill().await?)
    }

    /// Start the process without privileges.
    async fn start(
        &self,
        program: Program<'_>,
        assignment: &Assignment,
    ) -> io::Result<(Child, ChildStdin)> {
        let again = program.again;
        let mut command = Process::new(&again[0]);
        // The name that `ps` shows must not depend on the process that looks.
        if again.len() == 1 {
            command.arg0("anabranch-proxy");
        }
        command.args(&again[1..]).arg("worker").stdin(Stdio::piped()).kill_on_drop(true);
        let packets = self.capture.as_ref().map(CaptureFiles::packets).transpose()?;
        let results = self.results.as_ref().map(fs::File::try_clone).transpose()?;
        command.stdout(packets.or(results.map(Stdio::from)).unwrap_or_else(Stdio::null));
        // A terminal's signals are for the supervisor.
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", again[0])))?;
        let mut orders = child.stdin.take().expect("it is piped");
        send(&mut orders, assignment).await?;
        Ok((child, orders))
    }
}

async fn send(orders: &mut ChildStdin, what: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    orders.write_all(line.as_bytes()).await
}

fn ended(status: ExitStatus) -> Result<(), SupervisorError> {
    match status.code().map(u8::try_from) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(told)) => Err(SupervisorError::Told(told)),
        _ => {
            let message = format!("the process without privileges has ended: {status}");
            Err(SupervisorError::System(io::Error::other(message)))
        }
    }
}

/// Signals that the program obeys.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            reload: signal(SignalKind::hangup())?,
        })
    }

    /// Wait for the next signal. Returns `true` if the program has to end, and `false` if it has to
    /// look at the interfaces again.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.interrupt.recv() => true,
            _ = self.reload.recv() => false,
        }
    }

    /// Wait until the program has to end.
    async fn end(&mut self) {
        while !self.next().await {}
    }
}

/// The uplinks of a client, which come and go.
struct Following {
    plan: ClientSetup,
    ways: Vec<Ways>,
}

impl Following {
    /// Connect uplinks that have come up. Returns what the other process has to know.
    fn update(&mut self) -> io::Result<Vec<Order>> {
        let mut orders = Vec::new();
        for (index, now) in self.plan.ways(&self.ways)?.into_iter().enumerate() {
            for family in self.plan.families().to_vec() {
                self.update_way(index, family, &now, &mut orders);
            }
        }
        Ok(orders)
    }

    fn update_way(&mut self, index: usize, family: Family, now: &Ways, orders: &mut Vec<Order>) {
        let (before, link) = (self.ways[index].get(family), now.get(family));
        // Without the route, the interface has gone and come back since the last look.
        if before == link && (link.is_none() || self.plan.is_connected(index, family)) {
            return;
        }
        let address = self.plan.address(index, family);
        if before.is_some() {
            orders.push(Order::Uplink { address, usable: false });
        }
        self.ways[index].set(family, link.cloned());
        let Some(link) = link else { return };
        let mut steps = self.plan.connect(index, family, link).into_iter();
        match steps.try_for_each(|step| step.execute()) {
            Ok(()) => orders.push(Order::Uplink { address, usable: true }),
            // The interface is gone again.
            Err(error) => {
                warn!(%address, %error, "the uplink cannot be used");
                self.ways[index].set(family, None);
            }
        }
    }
}

/// Read the secret, which nobody but its owner may read.
fn read_key(file: &Path) -> Result<ProofKey, String> {
    let named = |problem: String| format!("{}: {problem}", file.display());
    let metadata = fs::metadata(file).map_err(|error| named(error.to_string()))?;
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(named(format!("others may read it (mode {mode:o}); run: chmod 600")));
    }
    let secret = fs::read(file).map_err(|error| named(error.to_string()))?;
    ProofKey::derive(&secret).map_err(|problem| named(problem.to_string()))
}

/// User and group of the process without privileges. Only root can change them. Inside a user
/// namespace that lacks the user, the process stays root there, and has no capability.
fn find_owner(user: Option<&str>) -> Result<(u32, u32), String> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if own.0 != 0 {
        return match user {
            Some(user) => Err(format!("user: only root can become {user}")),
            None => Ok(own),
        };
    }
    let name = user.unwrap_or(DEFAULT_USER);
    let all = fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
    let found = all.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        (fields.first() == Some(&name))
            .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
    });
    let (id, group) = found.ok_or_else(|| format!("user: {name:?} is not in /etc/passwd"))?;
    if id == 0 {
        return Err(format!("user: {name:?} is root; name a user without privileges"));
    }
    let maps = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    Ok(if is_mapped(&maps, id) { (id, group) } else { own })
}

/// Returns `true` if a user exists in a namespace with this `/proc/self/uid_map`.
fn is_mapped(maps: &str, id: u32) -> bool {
    maps.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        (first..first + count).contains(&id.into())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_private_and_long() {
        let file = std::env::temp_dir().join(format!("anabranch-secret-{}", std::process::id()));
        let write = |text: &str, mode| {
            fs::write(&file, text).expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("changed");
            read_key(&file)
        };
        assert!(write(&"x".repeat(32), 0o600).is_ok());
        assert!(write(&"x".repeat(32), 0o640).expect_err("public").contains("chmod 600"));
        assert!(write("short", 0o600).expect_err("short").contains("5 characters"));
        fs::remove_file(&file).expect("removed");
        assert!(read_key(&file).is_err());
    }

    #[test]
    fn users_of_a_namespace_are_known() {
        let initial = "         0          0 4294967295\n";
        assert!(is_mapped(initial, 65534) && is_mapped(initial, 0));
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        assert!(is_mapped(rootless, 65534) && !is_mapped("0 1000 1", 65534));
    }
}
