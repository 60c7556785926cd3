//! The sandbox of a program: a network namespace whose only way out is a TUN device of the emulator.
//!
//! A helper process enters the namespaces as their root, makes the device, and sends it to the
//! emulator, which stays outside. When the emulator is ready, the helper gives up its privileges and
//! becomes the program.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_sim::Side;
use anabranch_sim::driver;
use anabranch_sim::scenario::Scenario;
use tokio::time::{sleep, timeout};

use crate::kernel_setup::KernelNetwork;
use crate::namespace::{ip, set_sysctl};
use crate::settings::KernelSettings;
use crate::sys::{self, Namespace, Signal, Tun, Unshare};

use super::TICK;

/// Environment variable of the helper: the descriptor of its socket to the emulator.
const SOCKET: &str = "ANABRANCH_ROOM";
/// Name of the device in the sandbox.
const DEVICE: &str = "paths";
/// Name of the first path's interface, as `kernel_setup.rs` names it.
const FIRST_PATH: &str = "path0";
/// Largest packet between the program and the emulator, in bytes. No link lies between them, so
/// large packets save work. Segments on the paths have the size of the scenario.
pub(super) const MTU: u16 = 65_520;
/// Routing table of the ports of `localhost` that lead to the host.
const LOCALHOST_TABLE: u32 = 77;

/// A message of the helper: the devices follow.
const READY: u8 = 0;
/// Largest number of descriptors in a message (`SCM_MAX_FD`).
const MOST_INTERFACES: usize = 253;

/// The set-up that the helper has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SandboxPlan {
    /// The program's addresses, at most one of each family.
    pub(super) addresses: Vec<IpAddr>,
    /// Ports of the services on the host's loopback interface.
    pub(super) services: BTreeSet<u16>,
    /// The scenario, if the program's own sockets use the paths. The sandbox then has an interface for
    /// each path instead of the device.
    pub(super) paths: Option<String>,
}

/// The terminal of a program.
#[derive(Debug, Default)]
pub struct Terminal {
    /// The end of a pseudo-terminal for the program. It replaces the standard files that are
    /// terminals, and becomes the program's controlling terminal.
    pub slave: Option<OwnedFd>,
}

impl Terminal {
    /// The terminal with this descriptor, which the caller hands over.
    pub fn of(slave: RawFd) -> Self {
        Terminal { slave: Some(sys::inherited(slave)) }
    }
}

/// A program that waits to be started.
pub(super) struct Sandbox {
    pub(super) child: Child,
    pub(super) processes: SandboxProcesses,
    socket: UnixStream,
}

/// The program and all processes that it has started and that are still in the sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct SandboxProcesses {
    namespace: Namespace,
}

impl SandboxProcesses {
    /// Send a signal to all, if there is one. Returns their number.
    pub(super) fn signal(self, signal: Option<Signal>) -> usize {
        sys::signal_all(self.namespace, signal)
    }

    /// Send SIGTERM to all, and SIGKILL to those that are left after `grace`.
    pub(super) async fn end(self, grace: Duration) {
        let ended = async {
            let mut left = self.signal(Some(Signal::TERM));
            while left > 0 {
                sleep(TICK).await;
                left = self.signal(None);
            }
        };
        if timeout(grace, ended).await.is_err() {
            self.signal(Some(Signal::KILL));
        }
    }
}

impl Sandbox {
    /// Start `helper`, which must call [`exec_program`], in new namespaces. Also returns the device
    /// that it makes.
    pub(super) fn open(
        helper: &[String],
        plan: &SandboxPlan,
        terminal: &Terminal,
    ) -> io::Result<(Self, Vec<OwnedFd>)> {
        let start = |unshared| Sandbox::start(helper, plan, terminal, unshared);
        let (mut child, mut socket) =
            start(Unshare::UserAndNetwork).or_else(|_| start(Unshare::Network))?;
        let told = sys::receive_descriptors(socket.as_fd(), MOST_INTERFACES);
        match told {
            Ok(Some((READY, fds))) if !fds.is_empty() => {
                let processes = SandboxProcesses { namespace: Namespace::of(child.id())? };
                Ok((Sandbox { child, processes, socket }, fds))
            }
            other => {
                let mut why = String::new();
                if let Ok(Some((first, _))) = other {
                    why.push(first.into());
                    let _ = socket.read_to_string(&mut why);
                }
                drop(socket);
                let status = child.wait()?;
                let why = if why.is_empty() { format!("{}: {status}", helper[0]) } else { why };
                Err(io::Error::other(why))
            }
        }
    }

    fn start(
        helper: &[String],
        plan: &SandboxPlan,
        terminal: &Terminal,
        unshared: Unshare,
    ) -> io::Result<(Child, UnixStream)> {
        let (mut stream, helper_end) = UnixStream::pair()?;
        let mut command = Command::new(&helper[0]);
        command.args(&helper[1..]).env(SOCKET, helper_end.as_raw_fd().to_string());
        if let Some(slave) = &terminal.slave {
            let stdio = |is_terminal: bool| -> io::Result<Stdio> {
                Ok(if is_terminal { slave.try_clone()?.into() } else { Stdio::inherit() })
            };
            command.stdin(stdio(io::stdin().is_terminal())?);
            command.stdout(stdio(io::stdout().is_terminal())?);
            command.stderr(stdio(io::stderr().is_terminal())?);
        }
        let controlling = terminal.slave.is_some() && io::stdin().is_terminal();
        sys::keep_open(&mut command, helper_end.into(), controlling);
        sys::start_in_namespaces(&mut command, unshared, false);
        let child = command.spawn()?;
        let (user, group) = sys::user_and_group();
        // A user without a namespace of its own stays root.
        let drops = unshared == Unshare::UserAndNetwork && user != 0;
        let text = plan.to_text(drops.then_some((user, group)));
        stream.write_all(&(text.len() as u32).to_be_bytes())?;
        stream.write_all(text.as_bytes())?;
        Ok((child, stream))
    }

    /// Let the program run.
    pub(super) fn go(&mut self) -> io::Result<()> {
        self.socket.write_all(&[1])
    }
}

impl SandboxPlan {
    fn to_text(&self, user: Option<(u32, u32)>) -> String {
        let mut lines = Vec::new();
        lines.extend(user.map(|(user, group)| format!("user {user} {group}")));
        lines.extend(self.addresses.iter().map(|address| format!("address {address}")));
        lines.extend(self.services.iter().map(|port| format!("service {port}")));
        lines.push(format!("paths {}", self.paths.as_deref().unwrap_or_default()));
        lines.join("\n")
    }

    fn from_text(text: &str) -> Option<(Self, Option<(u32, u32)>)> {
        let (text, paths) = text.split_once("paths ")?;
        let paths = Some(paths.to_owned()).filter(|toml| !toml.is_empty());
        let mut plan = SandboxPlan { addresses: Vec::new(), services: BTreeSet::new(), paths };
        let mut user = None;
        for line in text.lines() {
            let (kind, value) = line.split_once(' ')?;
            match kind {
                "user" => {
                    let (id, group) = value.split_once(' ')?;
                    user = Some((id.parse().ok()?, group.parse().ok()?));
                }
                "address" => plan.addresses.push(value.parse().ok()?),
                "service" => drop(plan.services.insert(value.parse().ok()?)),
                _ => return None,
            }
        }
        Some((plan, user))
    }

    /// Make and configure the device, in this process's network namespace.
    fn set_up(&self) -> io::Result<Tun> {
        let tun = Tun::open(DEVICE, false)?;
        let mut commands = vec!["link set lo up".to_owned()];
        commands.push(format!("link set {DEVICE} mtu {MTU} up"));
        // No other host is on this link, so neither family has to be announced.
        let _ = set_sysctl(&format!("ipv6/conf/{DEVICE}/accept_ra"), "0");
        let _ = set_sysctl(&format!("ipv6/conf/{DEVICE}/addr_gen_mode"), "1");
        for address in &self.addresses {
            let (family, bits) = if address.is_ipv4() { ("", "32") } else { ("-6 ", "128 nodad") };
            commands.push(format!("{family}addr add {address}/{bits} dev {DEVICE}"));
            commands.push(format!("{family}route add default dev {DEVICE} src {address}"));
        }
        if let Some(address) = self.addresses.iter().find(|address| address.is_ipv4()) {
            commands.extend(self.localhost(*address, DEVICE));
        }
        ip(&commands)?;
        accept_localhost(DEVICE)?;
        Ok(tun)
    }

    /// Make an interface for each path, and move this thread to where they are. Returns their far
    /// ends.
    fn set_up_paths(&self, toml: &str) -> io::Result<Vec<OwnedFd>> {
        let scenario = Scenario::from_toml(toml, "scenario").map_err(io::Error::other)?;
        let mut settings = KernelSettings::new(&scenario);
        settings.check(&scenario).map_err(io::Error::other)?;
        let KernelNetwork { namespace, ports } =
            KernelNetwork::new(Side::Client, &scenario, &settings)?;
        namespace.stay()?;
        let first = driver::client_address(&scenario.paths, 0);
        if first.is_ipv4() {
            ip(&self.localhost(first, FIRST_PATH))?;
            accept_localhost(FIRST_PATH)?;
        }
        ports.iter().map(|port| port.as_fd().try_clone_to_owned()).collect()
    }

    /// Routes that lead the host's services on `localhost` to the device, before the sandbox's own.
    fn localhost(&self, source: IpAddr, device: &str) -> Vec<String> {
        let mut commands = vec![
            "rule add pref 1000 lookup local".to_owned(),
            "rule del pref 0 lookup local".to_owned(),
            format!("route add 127.0.0.0/8 dev {device} src {source} table {LOCALHOST_TABLE}"),
        ];
        for port in &self.services {
            commands.extend(["tcp", "udp"].map(|protocol| {
                format!(
                    "rule add pref 100 to 127.0.0.0/8 ipproto {protocol} dport {port} \
                     lookup {LOCALHOST_TABLE}"
                )
            }));
        }
        commands
    }
}

/// Let packets of 127.0.0.1 arrive at an interface.
fn accept_localhost(interface: &str) -> io::Result<()> {
    for interface in ["all", interface] {
        set_sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "0")?;
        set_sysctl(&format!("ipv4/conf/{interface}/route_localnet"), "1")?;
    }
    Ok(())
}

/// Returns `true` if this process is the helper of a sandbox, and must call [`exec_program`].
pub fn is_sandbox() -> bool {
    env::var_os(SOCKET).is_some()
}

/// In the helper of a sandbox: set it up, wait until the emulator is ready, and become the program.
/// Returns only if the program cannot be started. The emulator reports other errors.
pub fn exec_program(command: &[String]) -> io::Error {
    let Some(fd) = env::var(SOCKET).ok().and_then(|text| text.parse().ok()) else {
        return io::Error::new(ErrorKind::InvalidInput, format!("{SOCKET} is not a descriptor"));
    };
    let socket = UnixStream::from(sys::inherited(fd));
    match prepare(&socket) {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            let _ = (&socket).write_all(error.to_string().as_bytes());
            std::process::exit(1);
        }
    }
    drop(socket);
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).env_remove(SOCKET);
    program.exec()
}

/// Set up the sandbox, and hand over its device. Returns whether the program shall run.
fn prepare(socket: &UnixStream) -> io::Result<bool> {
    let mut reader = socket;
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    reader.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let damaged = || io::Error::new(ErrorKind::InvalidData, "the plan of the sandbox is damaged");
    let (plan, user) = SandboxPlan::from_text(&text).ok_or_else(damaged)?;
    let fds = match &plan.paths {
        Some(toml) => plan.set_up_paths(toml)?,
        None => vec![plan.set_up()?.into()],
    };
    let lent: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    sys::send_descriptors(socket.as_fd(), &lent)?;
    drop(fds);
    let mut go = [0];
    if reader.read(&mut go)? == 0 {
        return Ok(false);
    }
    if let Some(user) = user {
        sys::become_user(user)?;
    }
    sys::end_with_parent();
    Ok(true)
}

/// The ports of this host's loopback interface on which a service waits for TCP or UDP.
pub(super) fn services() -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    for (file, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let text = fs::read_to_string(format!("/proc/net/{file}")).unwrap_or_default();
        found.extend(text.lines().skip(1).filter_map(|line| listening_port(line, state)));
    }
    found
}

/// The port of a line of `/proc/net/tcp` and its like, if the socket is in this state and reachable
/// through the loopback interface.
fn listening_port(line: &str, state: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace();
    let (local, found) = (fields.nth(1)?, fields.nth(1)?);
    let (address, port) = local.split_once(':')?;
    let any = address.bytes().all(|digit| digit == b'0');
    // 127.0.0.0/8 and ::1, in the byte order of the machine (little-endian).
    let loopback = address.len() == 8 && address.ends_with("7F")
        || address == "00000000000000000000000001000000";
    let port = u16::from_str_radix(port, 16).ok()?;
    (found == state && (any || loopback)).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_its_text() {
        let plan = SandboxPlan {
            addresses: vec![[10, 1, 0, 0].into(), "2001:db8:1::".parse().expect("an address")],
            services: [8000, 53].into(),
            paths: Some("name = \"two\"\nlines = 2\n".to_owned()),
        };
        for user in [None, Some((1000, 100))] {
            assert_eq!(SandboxPlan::from_text(&plan.to_text(user)), Some((plan.clone(), user)));
        }
        assert_eq!(SandboxPlan::from_text("address nowhere"), None);
    }

    #[test]
    fn services_are_listening_sockets_that_the_loopback_interface_reaches() {
        let line = |local, state| format!("   0: {local} 00000000:0000 {state} 00000000:00000000");
        // 127.0.0.53:53, 0.0.0.0:8000 and 192.168.1.1:80; 0A is LISTEN, 01 ESTABLISHED.
        assert_eq!(listening_port(&line("3500007F:0035", "0A"), "0A"), Some(53));
        assert_eq!(listening_port(&line("00000000:1F40", "0A"), "0A"), Some(8000));
        assert_eq!(listening_port(&line("0101A8C0:0050", "0A"), "0A"), None);
        assert_eq!(listening_port(&line("00000000:1F40", "01"), "0A"), None);
        let ip6 = "00000000000000000000000001000000:1F40";
        assert_eq!(listening_port(&line(ip6, "0A"), "0A"), Some(8000));
    }
}
