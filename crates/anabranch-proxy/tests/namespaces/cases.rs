//! The cases, and the network that they use.
#![expect(clippy::disallowed_methods, reason = "the test measures real time")]

use std::env;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_trace::{Input, analyse};

use crate::instances;
use crate::ipv6;
use crate::measurement;
use crate::operation;
use crate::programs::Transfer;
use crate::replay;
use crate::rooms::{Folder, Room, Running, output};
use crate::strangers;
use crate::tun;
use crate::unmodified;

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The program under test: another build, such as the static one, if `ANABRANCH_PROXY` names it.
pub(crate) fn program() -> String {
    env::var("ANABRANCH_PROXY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_anabranch-proxy").into())
}

/// The destination, and the relay's public address. Both look like addresses of the Internet.
pub(crate) const DESTINATION: &str = "203.0.114.2";
pub(crate) const RELAY: &str = "203.0.115.1";
pub(crate) const PORT: u16 = 5124;
pub(crate) const DESTINATION_PORT: u16 = 80;
/// Rate, delay in each direction, queue. NSDI 2012 §4.2: WiFi with 20 ms and 80 ms of buffer, 3G with
/// 150 ms and 2 s.
pub(crate) const WIFI: [&str; 3] = ["8Mbit/s", "10ms", "54packets"];
pub(crate) const CELLULAR: [&str; 3] = ["2Mbit/s", "75ms", "333packets"];
/// The same with 240 ms of buffer. What waits in the buffer of the remaining uplink is part of any
/// pause.
const SHORT_QUEUE: [&str; 3] = ["2Mbit/s", "75ms", "40packets"];
pub(crate) const FAST: [&str; 3] = ["1Gbit/s", "0ms", "1000packets"];

type Case = fn() -> Result;
/// Cases, and how often each may be tried. Those that depend on time can fail on a busy machine: a client
/// that gets no answer in time tries the next uplink, and a capture then has a further connection.
const CASES: [(&str, Case, usize); 30] = [
    ("curl without changes", unmodified::curl, 1),
    ("Chromium without changes", unmodified::chromium, 1),
    ("iperf3 without changes", unmodified::iperf3, 1),
    ("take-down and clean-up", take_down, 1),
    ("privileges", privileges, 1),
    ("a recorded opening", recorded_opening, 1),
    ("destinations", destinations, 1),
    ("300 connections", many, 1),
    ("the kernel's Multipath TCP without a relay", direct, 1),
    ("an uplink goes and comes back", coming_and_going, 1),
    ("an uplink comes up during the start", during_the_start, 1),
    ("captures of both ends have all packets", captures, 3),
    ("an uplink is used up to its budget", budget, 1),
    ("all programs without a proxy", tun::ipv4, 1),
    ("all programs without a proxy, over IPv6", tun::ipv6, 1),
    ("a client without a proxy drains", tun::draining, 1),
    ("uplinks of both address families", ipv6::uplinks, 1),
    ("several instances on one host", instances::side_by_side, 1),
    ("a program makes the host a router", instances::with_a_router, 1),
    ("a relay drains", operation::draining, 1),
    ("an answer before a reset", operation::answer_before_reset, 1),
    ("logs without destinations", operation::logs, 1),
    ("SIGHUP", operation::hangup, 1),
    ("strangers cannot fill a relay", strangers::cannot_fill_the_relay, 1),
    ("a recorded SYN with a request", replay::recorded_syn, 1),
    ("a measurement finds the links", measurement::finds_the_links, 3),
    ("a request in the SYN saves a round trip", request_in_syn, 3),
    ("a slow uplink costs no throughput", small_windows, 3),
    ("a backup carries nothing until it is needed", backup, 3),
    ("a dead uplink costs less than a second", dead_uplink, 3),
];

pub(crate) fn run_all(arguments: &[String]) {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && !anabranch_live::is_inside() {
        match anabranch_live::enter(arguments) {
            Ok(status) => exit(status.code().unwrap_or(1)),
            Err(error) => return println!("namespaces skipped: {error}"),
        }
    }
    if let Some(missing) = missing() {
        return println!("namespaces skipped: {missing}");
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let failed = AtomicI32::new(0);
    // Most cases spend their time waiting. Those that depend on time therefore run in parallel to the
    // others. They need a processor at once, while other tests use the processors, so they have a higher
    // priority. Without the privilege, they run at normal priority.
    thread::scope(|scope| {
        for (measure, nice) in [(true, -10), (false, -5)] {
            let of_lane = move |case: &&(&str, Case, usize)| (case.2 > 1) == measure;
            let failed = &failed;
            scope.spawn(move || {
                // On Linux, a thread has its own priority, which its programs inherit.
                let _ = rustix::process::nice(nice);
                for (name, case, tries) in CASES.iter().filter(of_lane) {
                    if chosen(name) && !passes(name, *case, *tries) {
                        failed.store(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    exit(failed.into_inner());
}

/// Run a case, and print its outcome. Returns `true` if it passes.
fn passes(name: &str, case: Case, tries: usize) -> bool {
    let started = Instant::now();
    let mut outcome = case();
    for _ in 1..tries {
        let Err(error) = &outcome else { break };
        println!("    {name}: again, on a machine that may be busy: {error}");
        outcome = case();
    }
    let took = started.elapsed().as_secs_f64();
    match &outcome {
        Ok(()) => println!("{name} ... ok ({took:.1} s)"),
        Err(error) => println!("{name} ... FAILED ({took:.1} s): {error}"),
    }
    outcome.is_ok()
}

/// Means that this host lacks.
fn missing() -> Option<String> {
    for (program, argument) in
        [("ip", "-V"), ("nft", "--version"), ("unshare", "-V"), ("nsenter", "-V")]
    {
        if output(Command::new(program).arg(argument)).is_err() {
            return Some(format!("the program {program} is missing"));
        }
    }
    let room = match Room::new() {
        Ok(room) => room,
        Err(error) => return Some(format!("no namespaces: {error}")),
    };
    let tries = ["ip tuntap add dev t mode tun", "nft add table ip t"];
    tries.iter().find_map(|command| room.run(command).err()).map(|error| error.to_string())
}

/// Client, relay and destination, with two uplinks.
pub(crate) struct World {
    pub(crate) client: Room,
    pub(crate) relay: Room,
    pub(crate) destination: Room,
    pub(crate) folder: Folder,
    _wires: Vec<Running>,
    _server: Running,
}

impl World {
    pub(crate) fn new(uplinks: [[&str; 3]; 2]) -> Result<Self> {
        let (client, relay, destination) = (Room::new()?, Room::new()?, Room::new()?);
        let folder = Folder::new()?;
        let mut wires = Vec::new();
        for (index, link) in uplinks.iter().enumerate() {
            let number = index + 1;
            let ends = [format!("c{number}"), format!("r{number}")];
            let sockets = ends.each_ref().map(|end| folder.file(end));
            for (end, room) in [&client, &relay].into_iter().enumerate() {
                let interface = &ends[end];
                let mut command = room.command(&this());
                command.arg("--wire").arg(interface).arg(&sockets[end]).arg(&sockets[1 - end]);
                let _ = fs::remove_file(&sockets[end]);
                wires.push(Running::start(command.args(link))?);
                wait_for(&sockets[end])?;
                let host = 2 - end;
                room.run(&format!("ip addr add 10.{number}.0.{host}/24 dev {interface}"))?;
                room.run(&format!("ip link set dev {interface} txqueuelen 1000 up"))?;
            }
            client.run(&format!("ip route add default dev c{number} metric {number}00"))?;
        }
        let relay_process = relay.pid();
        destination.run(&format!(
            "ip link add dev far0 type veth peer name near0 netns {relay_process}"
        ))?;
        relay.run("ip addr add 203.0.114.1/24 dev near0")?;
        relay.run("ip link set dev near0 up")?;
        relay.run(&format!("ip addr add {RELAY}/32 dev lo"))?;
        destination.run(&format!("ip addr add {DESTINATION}/24 dev far0"))?;
        destination.run("ip link set dev far0 up")?;
        wait_for_carrier(&relay, "near0")?;
        let mut server = destination.command(&this());
        let server = Running::start(server.args(["--serve", &DESTINATION_PORT.to_string()]))?;
        let secret = folder.file("secret");
        let mut file = fs::File::create(&secret)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        writeln!(file, "0123456789abcdefghijklmnopqrstuvwxyz")?;
        Ok(World { client, relay, destination, folder, _wires: wires, _server: server })
    }

    pub(crate) fn proxy(&self, room: &Room, arguments: &str) -> Command {
        let mut command = room.command(Path::new(&program()));
        command.args(arguments.split(' ').filter(|word| !word.is_empty()));
        command.env("RUNTIME_DIRECTORY", self.folder.file("run"));
        command
    }

    pub(crate) fn secret(&self) -> String {
        self.folder.file("secret").display().to_string()
    }

    pub(crate) fn start_relay(&self, more: &str) -> Result<Running> {
        let arguments = format!(
            "relay --listen {PORT} --uplink r1 --uplink r2 --secret-file {} {more}",
            self.secret()
        );
        let running = Running::start(&mut self.proxy(&self.relay, &arguments))?;
        running.wait_for("ready for clients")?;
        Ok(running)
    }

    fn client_command(&self, more: &str) -> Command {
        let arguments =
            format!("client --relay {RELAY}:{PORT} --secret-file {} {more}", self.secret());
        self.proxy(&self.client, &arguments)
    }

    pub(crate) fn start_client(&self, more: &str) -> Result<Running> {
        let running = Running::start(&mut self.client_command(more))?;
        running.wait_for("ready for SOCKS5")?;
        Ok(running)
    }

    /// Fetch through the proxy.
    pub(crate) fn fetch(&self, bytes: usize, connections: usize) -> Result<Vec<Transfer>> {
        self.fetch_from(&format!("{DESTINATION}:{DESTINATION_PORT}"), bytes, connections)
    }

    /// Fetch through the proxy from this address and port.
    pub(crate) fn fetch_from(
        &self,
        target: &str,
        bytes: usize,
        connections: usize,
    ) -> Result<Vec<Transfer>> {
        let mut command = self.client.command(&this());
        command.args(["--fetch", target, &bytes.to_string(), &connections.to_string()]);
        let text = output(&mut command)?;
        let parse = |line: &str| Transfer::parse(line).ok_or_else(|| line.to_owned().into());
        text.lines().map(parse).collect()
    }

    /// A metric of the client, which serves them at port 9124.
    pub(crate) fn metric(&self, name: &str) -> Result<f64> {
        self.metric_of(&self.client, name)
    }

    /// A metric of the client or the relay, which serves them at port 9124.
    pub(crate) fn metric_of(&self, room: &Room, name: &str) -> Result<f64> {
        let request = self.folder.file("request");
        fs::write(&request, "GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut command = room.command(&this());
        let bytes = output(command.args(["--send", "127.0.0.1:9124"]).arg(request))?;
        let bytes = bytes.trim().trim_matches(['[', ']']).split(", ").map(str::parse);
        let text = String::from_utf8(bytes.collect::<std::result::Result<_, _>>()?)?;
        let key = format!("anabranch_proxy_{name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&key));
        Ok(value.ok_or_else(|| format!("no {name} in {text}"))?.parse()?)
    }

    /// The state that the proxy changes.
    pub(crate) fn state(&self, room: &Room) -> Result<String> {
        let mut state = String::new();
        for command in [
            "ip link show",
            "ip rule show",
            "ip route show table all",
            "nft list ruleset",
            "sysctl net.ipv4.conf.all.forwarding net.ipv4.conf.default.forwarding",
        ] {
            state += &room.run(command)?;
        }
        for interface in ["c1", "c2", "r1", "r2"] {
            let key = format!("sysctl net.ipv4.conf.{interface}.forwarding");
            state += &room.run(&key).unwrap_or_default();
        }
        Ok(state)
    }
}

pub(crate) fn this() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn wait_for(file: &Path) -> Result {
    wait_until(|| Ok(file.exists()), || format!("{} does not appear", file.display()))
}

/// Waits until the link is up. A busy kernel needs up to a second, and then also changes the routes.
pub(crate) fn wait_for_carrier(room: &Room, interface: &str) -> Result {
    let is_up = || Ok(room.run(&format!("ip link show {interface}"))?.contains("state UP"));
    wait_until(is_up, || format!("{interface} gets no carrier"))
}

/// Waits up to five seconds.
fn wait_until(condition: impl Fn() -> Result<bool>, message: impl FnOnce() -> String) -> Result {
    for _ in 0..500 {
        if condition()? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(message().into())
}

pub(crate) fn require(condition: bool, message: impl Into<String>) -> Result {
    if condition { Ok(()) } else { Err(message.into().into()) }
}

/// SIGTERM takes everything down; after SIGKILL the next start does.
fn take_down() -> Result {
    let world = World::new([FAST, FAST])?;
    let before = (world.state(&world.client)?, world.state(&world.relay)?);
    let mut dry = world.proxy(
        &world.client,
        &format!(
            "client --uplink c1 --relay {RELAY}:{PORT} --secret-file {} --dry-run",
            world.secret()
        ),
    );
    let plan = output(&mut dry)?;
    require(plan.contains("ip -4 rule add from 198.18.77.1 lookup"), &*plan)?;
    require(world.state(&world.client)? == before.0, "--dry-run has changed the network")?;
    let (mut relay, mut client) =
        (world.start_relay("")?, world.start_client("--uplink c1 --uplink c2")?);
    require(world.state(&world.client)? != before.0, "the client has set up nothing")?;
    world.fetch(100_000, 1)?;
    client.end("-TERM")?;
    relay.end("-TERM")?;
    unchanged(&before.0, &world.state(&world.client)?)?;
    unchanged(&before.1, &world.state(&world.relay)?)?;
    let (mut relay, mut client) =
        (world.start_relay("")?, world.start_client("--uplink c1 --uplink c2")?);
    client.end("-KILL")?;
    relay.end("-KILL")?;
    thread::sleep(Duration::from_millis(300));
    require(world.state(&world.client)? != before.0, "SIGKILL cannot take anything down")?;
    let (mut relay, mut client) =
        (world.start_relay("")?, world.start_client("--uplink c1 --uplink c2")?);
    world.fetch(100_000, 1)?;
    client.end("-INT")?;
    relay.end("-TERM")?;
    unchanged(&before.0, &world.state(&world.client)?)?;
    unchanged(&before.1, &world.state(&world.relay)?)
}

pub(crate) fn unchanged(before: &str, after: &str) -> Result {
    let new: Vec<_> = after.lines().filter(|line| !before.contains(line)).collect();
    let gone: Vec<_> = before.lines().filter(|line| !after.contains(line)).collect();
    require(before == after, format!("left behind: {new:#?}, lost: {gone:#?}"))
}

/// The process that parses packets has no privilege, and the other one few.
fn privileges() -> Result {
    let world = World::new([FAST, FAST])?;
    let (_relay, _client) =
        (world.start_relay("")?, world.start_client("--uplink c1 --uplink c2")?);
    // A process that a program has forked has the program's name until it executes its command.
    let mut found = (0, 0);
    for _ in 0..50 {
        found = processes_with_privileges(&world)?;
        if found == (2, 2) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let (supervisors, workers) = found;
    Err(format!("{supervisors} and {workers} processes").into())
}

/// Check the privileges of all supervisors and workers of this run, and count them.
fn processes_with_privileges(world: &World) -> Result<(usize, usize)> {
    let run = world.folder.file("run").display().to_string();
    let (mut supervisors, mut workers) = (0, 0);
    for entry in fs::read_dir("/proc")?.flatten() {
        let folder = entry.path();
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let (command, status) = (text("cmdline"), text("status"));
        let is_worker = command.ends_with("\0worker\0");
        let is_program = is_worker || command.starts_with(&program());
        if !is_program || !text("environ").contains(&run) {
            continue;
        }
        if !is_worker {
            supervisors += 1;
            // CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP and CAP_NET_ADMIN.
            let few = "CapPrm:\t00000000000011e2";
            require(status.contains(few), format!("no {few:?} in {status}"))?;
            continue;
        }
        workers += 1;
        for line in [
            "CapInh:\t0000000000000000",
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "CapAmb:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            require(status.contains(line), format!("no {line:?} in {status}"))?;
        }
        let mapped = fs::read_to_string("/proc/self/uid_map")?.contains("4294967295");
        if mapped {
            require(!status.contains("Uid:\t0\t"), "the process is still root")?;
        }
    }
    Ok((supervisors, workers))
}

/// The relay refuses a request that somebody has recorded and sends again.
fn recorded_opening() -> Result {
    let world = World::new([FAST, FAST])?;
    let file = world.folder.file("opening");
    let mut recorder = world.relay.command(&this());
    let mut recorder = Running::start(recorder.args(["--record", &PORT.to_string()]).arg(&file))?;
    thread::sleep(Duration::from_millis(300));
    {
        let _client = world.start_client("--uplink c1 --uplink c2")?;
        let _ = world.fetch(1000, 1);
    }
    recorder.child.wait()?;
    let _relay = world.start_relay("")?;
    let send = |file: &Path| -> Result<Vec<u8>> {
        let mut command = world.client.command(&this());
        let text = output(command.args(["--send", &format!("{RELAY}:{PORT}")]).arg(file))?;
        let numbers = text.trim().trim_matches(['[', ']']).split(", ").map(str::parse);
        Ok(numbers.collect::<std::result::Result<_, _>>()?)
    };
    // The relay has started after the recording.
    require(send(&file)?[4..7] == [30, 1, 32], "an opening from before the relay's start")?;
    // A relay that ran then accepts it once.
    drop(_relay);
    let mut recorder = world.relay.command(&this());
    let mut recorder =
        Running::start(recorder.args(["--record", &(PORT + 1).to_string()]).arg(&file))?;
    let _relay = world.start_relay("")?;
    {
        let arguments = format!(
            "client --uplink c1 --relay {RELAY}:{} --secret-file {}",
            PORT + 1,
            world.secret()
        );
        let client = Running::start(&mut world.proxy(&world.client, &arguments))?;
        client.wait_for("ready for SOCKS5")?;
        let _ = world.fetch(1000, 1);
    }
    recorder.child.wait()?;
    let first = send(&file)?;
    require(first == [1, 1, 0x22, 0x63], format!("the first time: {first:?}"))?;
    let again = send(&file)?;
    // RFC 8803 §6.2.8: 32 is "not authorized".
    require(again == [1, 2, 0x22, 0x63, 30, 1, 32, 0], format!("the second time: {again:?}"))
}

/// Private addresses and the relay itself are no destinations, unless they are allowed.
fn destinations() -> Result {
    let world = World::new([FAST, FAST])?;
    world.destination.run("ip addr add 192.168.77.1/32 dev lo")?;
    world.relay.run(&format!("ip route add 192.168.77.1 via {DESTINATION}"))?;
    let client = world.start_client("--uplink c1 --uplink c2")?;
    let ask = |target: &str| -> Result<String> {
        let mut command = world.client.command(&this());
        Ok(output(command.args(["--fetch", target, "1000", "1"]))?.trim().to_owned())
    };
    let relay = world.start_relay("")?;
    // An address that the relay's host gets later is its own, too.
    for address in ["198.51.90.7/24", "198.51.90.8/24"] {
        world.relay.run(&format!("ip addr add {address} dev lo"))?;
    }
    for target in [
        "192.168.77.1:80",
        "10.1.0.1:80",
        "169.254.169.254:80",
        "203.0.114.1:80",
        "198.51.90.7:80",
        // The kernel prefers the first address of a network as the source.
        "198.51.90.8:80",
    ] {
        let answer = ask(target)?;
        require(answer.contains("code 2"), format!("{target}: {answer}"))?;
    }
    // RFC 8803 §6.2.5: the relay's loopback is no address of a destination at all.
    // The client resolves names.
    for target in ["127.0.0.1:80", "localhost:80"] {
        require(ask(target)?.contains("code 1"), target)?;
    }
    let closed = ask(&format!("{DESTINATION}:81"))?;
    require(closed.contains("code 5"), format!("a closed port: {closed}"))?;
    drop(relay);
    // The old relay's network is there until the next start.
    let _relay = world.start_relay(&format!("--allow 192.168.77.0/24 --deny {DESTINATION}"))?;
    let answer = ask("192.168.77.1:80")?;
    require(answer.starts_with("1000 "), format!("an allowed range: {answer}"))?;
    let answer = ask(&format!("{DESTINATION}:{DESTINATION_PORT}"))?;
    require(answer.contains("code 2"), format!("a denied address: {answer}"))?;
    drop(client);
    Ok(())
}

/// Many connections at once, each with all its bytes.
fn many() -> Result {
    const CONNECTIONS: usize = 300;
    let world = World::new([FAST, FAST])?;
    let _relay = world.start_relay("--max-connections-per-client 300")?;
    let _client = world.start_client("--uplink c1 --uplink c2")?;
    let transfers = world.fetch(200_000, CONNECTIONS)?;
    require(transfers.len() == CONNECTIONS, format!("{} transfers", transfers.len()))?;
    drop(_relay);
    let _relay = world.start_relay("--max-connections-per-client 5")?;
    let mut command = world.client.command(&this());
    let target = format!("{DESTINATION}:{DESTINATION_PORT}");
    let text = output(command.args(["--fetch", &target, "3000000", "20"]))?;
    let refused = text.lines().filter(|line| line.contains("code 3")).count();
    require((1..=15).contains(&refused), format!("{refused} of 20 are refused: {text}"))
}

/// Without a relay, a destination whose kernel speaks Multipath TCP uses both uplinks.
fn direct() -> Result {
    let world = World::new([FAST, FAST])?;
    world.relay.run("sysctl -qw net.ipv4.ip_forward=1")?;
    world.destination.run("ip route add default via 203.0.114.1")?;
    let arguments = "client --uplink c1 --uplink c2 --metrics 127.0.0.1:9124";
    let client = Running::start(&mut world.proxy(&world.client, arguments))?;
    client.wait_for("ready for SOCKS5")?;
    world.fetch(20_000_000, 1)?;
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        println!("    skipped: this kernel has no Multipath TCP");
        return Ok(());
    }
    for uplink in ["c1", "c2"] {
        let bytes = world
            .metric(&format!("uplink_bytes_total{{uplink=\"{uplink}\",direction=\"received\"}}"))?;
        require(bytes > 1e6, format!("{uplink} received {bytes} bytes"))?;
    }
    Ok(())
}

/// The client notices that an interface goes down, and uses it again when it has a route.
fn coming_and_going() -> Result {
    let world = World::new([FAST, FAST])?;
    let _relay = world.start_relay("")?;
    // The second uplink has no link at the start.
    world.client.run("ip link set dev c2 down")?;
    let client = world.start_client("--uplink c1 --uplink c2 --metrics 127.0.0.1:9124")?;
    let usable = |uplink: &str| world.metric(&format!("uplink_usable{{uplink=\"{uplink}\"}}"));
    require((usable("c1")?, usable("c2")?) == (1.0, 0.0), "c2 is down")?;
    world.fetch(100_000, 1)?;
    world.client.run("ip link set dev c2 up")?;
    world.client.run("ip route add default dev c2 metric 200")?;
    client.wait_for("uplink=\"c2\" state=\"up\"")?;
    world.client.run("ip link set dev c1 down")?;
    client.wait_for("uplink=\"c1\" state=\"down\"")?;
    world.fetch(1_000_000, 1)?;
    world.client.run("ip link set dev c1 up")?;
    world.client.run("ip route add default dev c1 metric 100")?;
    client.wait_for("uplink=\"c1\" state=\"up\"")?;
    require((usable("c1")?, usable("c2")?) == (1.0, 1.0), "both are up")?;
    // The kernel removes all routes of c1, and its address is back before the client looks.
    world.client.run("ip link set dev c2 down")?;
    client.wait_for("uplink=\"c2\" state=\"down\"")?;
    let renewed = "address=$(ip -4 -o addr show dev c1 | awk '{ print $4 }') && \
        ip addr flush dev c1 && ip addr add $address dev c1 && \
        ip route add default dev c1 metric 100";
    output(world.client.command(Path::new("sh")).args(["-c", renewed]))?;
    client.wait_for("uplink=\"c1\" state=\"up\"")?;
    world.fetch(100_000, 1)?;
    Ok(())
}

/// An uplink that comes up while the client sets up its network is used.
fn during_the_start() -> Result {
    let world = World::new([FAST, FAST])?;
    world.client.run("ip link set dev c2 down")?;
    let client = Running::start(&mut world.client_command("--uplink c1 --uplink c2"))?;
    // The client looks at the uplinks before it creates its device. The change has to come soon after
    // that look, so there is no pause.
    let exists = || world.client.run("ip link show dev ab-client").is_ok();
    require((0..500).any(|_| exists()), "the client creates no device")?;
    world.client.run("ip link set dev c2 up")?;
    world.client.run("ip route add default dev c2 metric 200")?;
    Ok(client.wait_for("uplink=\"c2\" state=\"up\"")?)
}

/// The capture of each end has connections, subflows and data as they were, and no violation of RFC
/// 8684, also where a SYN has carried data.
fn captures() -> Result {
    let world = World::new([WIFI, FAST])?;
    let files = ["client.pcapng", "relay.pcapng"].map(|name| world.folder.file(name));
    let options = files.each_ref().map(|file| format!("--pcap {} --snap 128", file.display()));
    let mut relay = world.start_relay(&options[1])?;
    let mut client = world.start_client(&format!("--uplink c1 --uplink c2 {}", options[0]))?;
    for _ in 0..3 {
        world.fetch(1_000_000, 1)?;
    }
    // The last subflows end a round trip later.
    thread::sleep(Duration::from_secs(1));
    client.end("-TERM")?;
    relay.end("-TERM")?;
    for file in &files {
        require(fs::metadata(file)?.permissions().mode() & 0o77 == 0, "others may read it")?;
        let found = analyse(&[Input::file(file)], &mut |_, _| true)?;
        let table = |name: &str| found.tables.iter().find(|table| table.name == name);
        let rows = |name: &str| table(name).map_or(0, anabranch_trace::Table::rows);
        let states = format!("{:?}", table("subflows"));
        let [connections, subflows, violations] =
            ["connections", "subflows", "violations"].map(rows);
        require(violations == 0, format!("{:?}", table("violations")))?;
        require(states.contains("closed") && !states.contains("reset"), states)?;
        require(connections == 3 && subflows == 6, format!("{connections}, {subflows} subflows"))?;
        if let Some(folder) = std::env::var_os("KEEP_CAPTURES") {
            fs::copy(file, Path::new(&folder).join(file.file_name().expect("a name")))?;
        }
    }
    Ok(())
}

/// An uplink with a budget carries about as many bytes, and then none, even if its interface comes
/// back.
fn budget() -> Result {
    const BUDGET: f64 = 2e6;
    // What is under way when the budget is used up arrives nevertheless.
    const UNDER_WAY: f64 = 5e6;
    let world = World::new([FAST, FAST])?;
    let _relay = world.start_relay("")?;
    let client =
        world.start_client("--uplink c1 --uplink c2,budget=2MB --metrics 127.0.0.1:9124")?;
    let used = || -> Result<f64> {
        let of = |direction: &str| {
            let name = format!("uplink_bytes_total{{uplink=\"c2\",direction=\"{direction}\"}}");
            world.metric(&name)
        };
        Ok(of("sent")? + of("received")?)
    };
    world.fetch(30_000_000, 1)?;
    client.wait_for("its budget is used up")?;
    client.wait_for("uplink=\"c2\" state=\"down\"")?;
    let before = used()?;
    require((BUDGET..BUDGET + UNDER_WAY).contains(&before), format!("{before} bytes"))?;
    require(world.metric("uplink_budget_left_bytes{uplink=\"c2\"}")? == 0.0, "nothing is left")?;
    world.client.run("ip link set dev c2 down")?;
    client.wait_for("uplink=\"c2\" state=\"down\"")?;
    world.client.run("ip link set dev c2 up")?;
    world.client.run("ip route add default dev c2 metric 200")?;
    client.wait_for("uplink=\"c2\" state=\"down\"")?;
    world.fetch(10_000_000, 1)?;
    require(used()? - before < 2_000.0, format!("{before} bytes, and then {}", used()?))
}

/// The relay gets the request with the SYN, and answers before the handshake is complete. The first
/// connection over an uplink has to ask for a cookie.
fn request_in_syn() -> Result {
    const ROUND_TRIP: f64 = 0.1;
    let world = World::new([["100Mbit/s", "50ms", "1000packets"], FAST])?;
    let _relay = world.start_relay("")?;
    let _client = world.start_client("--uplink c1")?;
    let first = world.fetch(1000, 1)?[0].first_byte;
    let mut later = Vec::new();
    for _ in 0..5 {
        later.push(world.fetch(1000, 1)?[0].first_byte);
    }
    later.sort_by(f64::total_cmp);
    let median = later[2];
    println!("    first byte after {:.0} ms, and then {:.0} ms", 1e3 * first, 1e3 * median);
    // Handshake, request to the relay, request to the destination: 3 round trips, and then 2.
    require(first >= 3.0 * ROUND_TRIP, format!("{first:.3} s for the first"))?;
    let saved = first - median;
    require(saved > 0.7 * ROUND_TRIP, format!("{first:.3} s, and then {median:.3} s"))
}

/// 8 Mbit/s and 20 ms, 2 Mbit/s and 150 ms: the second uplink must not cost throughput, also with
/// small windows. NSDI 2012, figure 4: without remedies it does.
fn small_windows() -> Result {
    let world = World::new([WIFI, CELLULAR])?;
    for buffer in ["64KiB", "200KiB"] {
        let relay = world.start_relay(&format!("--buffer {buffer}"))?;
        let mut measured = Vec::new();
        for uplinks in ["--uplink c1", "--uplink c1 --uplink c2"] {
            let client = world.start_client(&format!("{uplinks} --buffer {buffer}"))?;
            measured.push(world.fetch(8_000_000, 1)?[0].mbit_per_s());
            drop(client);
        }
        let (better, both) = (measured[0], measured[1]);
        println!("    {buffer}: {better:.2} Mbit/s over the better uplink, {both:.2} over both");
        require(both >= 0.95 * better, format!("{buffer}: {both:.2} of {better:.2} Mbit/s"))?;
        drop(relay);
    }
    Ok(())
}

/// A backup carries no data until the uplink dies, and then all.
fn backup() -> Result {
    let world = World::new([WIFI, SHORT_QUEUE])?;
    let _relay = world.start_relay("")?;
    let _client = world.start_client("--uplink c1 --backup c2 --metrics 127.0.0.1:9124")?;
    world.fetch(2_000_000, 1)?;
    let received = |uplink: &str| {
        world.metric(&format!("uplink_bytes_total{{uplink=\"{uplink}\",direction=\"received\"}}"))
    };
    let (regular, backup) = (received("c1")?, received("c2")?);
    require(regular >= 2e6 && backup < 1e4, format!("{regular} and {backup} bytes"))?;
    let cuts = ["c1.cut", "r1.cut"].map(|name| world.folder.file(name));
    let cutting = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        cuts.iter().try_for_each(|file| fs::write(file, ""))
    });
    let transfer = world.fetch(1_500_000, 1)?[0];
    cutting.join().expect("no panic")?;
    let (pause, bytes) = (transfer.longest_pause, received("c2")?);
    println!("    longest pause {pause:.2} s");
    require(pause < 1.0 && bytes > 1e5, format!("{pause:.2} s, {bytes} bytes over the backup"))
}

/// An uplink that swallows everything, without a signal, stops a transfer for less than a second, and
/// costs no byte. If all data travels over two equal uplinks, the pause is shorter. With the buffer of
/// 3G on the other uplink, it is longer.
fn dead_uplink() -> Result {
    // Data that waits in the other uplink's buffer, which has 2 s in the last case, is part of a pause.
    let cases = [("", SHORT_QUEUE, 1.0), ("--scheduler redundant", WIFI, 0.3), ("", CELLULAR, 3.0)];
    for (policy, other, most) in cases {
        let world = World::new([WIFI, other])?;
        let _relay = world.start_relay(policy)?;
        let _client = world.start_client(&format!("--uplink c1 --uplink c2 {policy}"))?;
        let cuts = ["c1.cut", "r1.cut"].map(|name| world.folder.file(name));
        let cutting = thread::spawn(move || {
            thread::sleep(Duration::from_secs(2));
            cuts.iter().try_for_each(|file| fs::write(file, ""))
        });
        let transfer = world.fetch(3_000_000, 1)?[0];
        cutting.join().expect("no panic")?;
        let Transfer { longest_pause, seconds, .. } = transfer;
        println!("    {policy} {other:?}: longest pause {longest_pause:.2} s, in {seconds:.1} s");
        require(seconds > 2.5, format!("it was over after {seconds:.1} s"))?;
        require(longest_pause < most, format!("{policy}: {longest_pause:.2} s"))?;
        // New connections open over the other uplink.
        let next = world.fetch(1000, 1)?[0];
        println!("    a new connection has its first byte after {:.2} s", next.first_byte);
        require(next.first_byte < 1.0, format!("{:.2} s until the first byte", next.first_byte))?;
    }
    Ok(())
}
