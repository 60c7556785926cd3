//! A kernel host: its sockets and their applications.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anabranch_proto::config::TcpConfig;
use anabranch_sim::Side;
use anabranch_sim::driver::{
    self, App, ConnectionProgress, ConnectionTotals, Observed, SubflowTotals,
};
use anabranch_sim::scenario::{Connection, Family, Protocol, Scenario};
use anabranch_sim::workload::{Sender, Sink, Socket};
use anabranch_wire::{Duration, Instant, Piece};
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::kernel_setup::KernelNetwork;
use crate::kernel_stats;
use crate::settings::KernelSettings;
use crate::sys::{self, PollFd, PollFlags};

/// A namespace with its sockets.
pub(crate) struct KernelHost {
    pub(crate) network: KernelNetwork,
    apps: Vec<KernelApp>,
    buffer: Vec<u8>,
}

/// An application with its kernel socket.
struct KernelApp {
    app: App,
    /// Stays open for MP_JOINs: Linux accepts them only while a socket listens on the port.
    listener: Option<TcpListener>,
    plan: SocketPlan,
    socket: Option<TcpStream>,
    connecting: bool,
    /// Whether the socket accepted less than the sender offered.
    blocked: bool,
    /// Whether the application will write no more data.
    finished: bool,
    at_end: bool,
    failed: bool,
    written: u64,
    /// The subflows at the last observation.
    seen: Vec<SubflowTotals>,
    /// Earlier subflows that have ended, with their last totals.
    gone: Vec<SubflowTotals>,
}

/// Instructions for creating a socket.
struct SocketPlan {
    protocol: Protocol,
    ipv4_only: bool,
    /// The address that the client binds to, or that the server listens on.
    local: SocketAddr,
    server: SocketAddr,
    congestion_control: &'static str,
    send_buffer: Option<u64>,
    receive_buffer: Option<u64>,
    nagle: bool,
    keep_alive: Option<Duration>,
}

/// An application's socket, for writing.
struct SocketWriter<'a> {
    stream: &'a TcpStream,
    blocked: &'a mut bool,
    finished: &'a mut bool,
    failed: &'a mut bool,
    written: &'a mut u64,
}

/// Sets the size of a socket's buffer.
type SetBuffer = fn(BorrowedFd<'_>, usize) -> rustix::io::Result<()>;

/// Bytes per read and write.
const CHUNK: usize = 64 << 10;
/// Largest value of `TCP_KEEPIDLE` and `TCP_KEEPINTVL`, in seconds.
const LONGEST_KEEP_ALIVE: u32 = 32_767;

impl KernelHost {
    /// Create the host of one side of `scenario`, for a run with `seed`.
    pub(crate) fn new(
        side: Side,
        scenario: &Scenario,
        settings: &mut KernelSettings,
        seed: u64,
    ) -> io::Result<Self> {
        let network = KernelNetwork::new(side, scenario, settings)?;
        let apps = scenario.connections.iter().enumerate().map(|(index, connection)| {
            let plan = SocketPlan::new(side, scenario, index, settings.congestion_control[index]);
            KernelApp::new(side, connection, plan, seed)
        });
        let mut host = KernelHost { network, apps: apps.collect(), buffer: vec![0; CHUNK] };
        if side == Side::Server {
            host.listen(settings)?;
        }
        Ok(host)
    }

    fn listen(&mut self, settings: &mut KernelSettings) -> io::Result<()> {
        let apps = &mut self.apps;
        self.network.namespace.within(|| {
            for app in apps.iter_mut() {
                let listener = TcpListener::from(app.plan.socket(settings)?);
                sys::bind(&listener, app.plan.local)?;
                sys::listen(&listener)?;
                app.listener = Some(listener);
            }
            Ok(())
        })
    }

    /// Deliver a packet that arrived on a path. As on any host, a packet is lost if the interface has
    /// no room.
    pub(crate) fn deliver(&self, path: usize, packet: &[u8]) -> io::Result<()> {
        let ports = &self.network.ports;
        match ports[path.min(ports.len() - 1)].send(packet) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => Ok(()),
            other => other,
        }
    }

    /// Append the descriptors to wait for.
    pub(crate) fn wanted<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        for app in &self.apps {
            if let Some(listener) =
                app.listener.as_ref().filter(|_| app.socket.is_none() && !app.failed)
            {
                fds.push(sys::poll_fd(listener, PollFlags::IN));
            }
            let Some(socket) = &app.socket else { continue };
            let writes = app.connecting || app.blocked && !app.finished;
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, !app.at_end && !app.failed);
            events.set(PollFlags::OUT, writes && !app.failed);
            if !events.is_empty() {
                fds.push(sys::poll_fd(socket, events));
            }
        }
    }

    /// When the next timer of an application expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = |each: &KernelApp| {
            let open = each.socket.is_some() && !each.connecting && !each.blocked && !each.failed;
            let writes = each.app.poll_timeout().filter(|_| open && !each.finished);
            [each.app.start(), writes]
        };
        self.apps.iter().flat_map(due).flatten().min()
    }

    /// Take the statistics that the recorder will ask for.
    pub(crate) fn observe(&mut self) {
        self.apps.iter_mut().for_each(KernelApp::look_at_subflows);
    }

    /// Reset all connections: MP_FASTCLOSE, or RST.
    pub(crate) fn abort(&mut self) {
        for app in &mut self.apps {
            if let Some(socket) = app.socket.take() {
                app.failed = true;
                // A socket that does not linger loses unsent data when it is closed.
                let _ = sys::reset_when_closed(&socket);
            }
        }
    }

    /// Close all connections for sending.
    pub(crate) fn close(&mut self) {
        self.apps.iter_mut().for_each(KernelApp::close);
    }

    /// Let every application accept, connect, read and write as far as possible.
    pub(crate) fn serve(&mut self, now: Instant, settings: &mut KernelSettings) -> io::Result<()> {
        for app in &mut self.apps {
            if app.app.is_starting(now) {
                let plan = &app.plan;
                let stream = self.network.namespace.within(|| plan.connect(settings))?;
                (app.socket, app.connecting) = (Some(stream), true);
            }
            app.serve(now, &mut self.buffer);
        }
        Ok(())
    }
}

impl SocketPlan {
    fn new(
        side: Side,
        scenario: &Scenario,
        index: usize,
        congestion_control: &'static str,
    ) -> Self {
        let connection = &scenario.connections[index];
        let path = connection.paths[0];
        let paths = connection.paths.iter().map(|path| &scenario.paths[*path]);
        let ipv4_only = paths.clone().all(|path| path.family == Family::Ipv4);
        // An IPv6 socket uses IPv4-mapped addresses. Only such a socket can have subflows of both
        // families.
        let of_socket = |address: IpAddr| match address {
            IpAddr::V4(v4) if !ipv4_only => v4.to_ipv6_mapped().into(),
            other => other,
        };
        let any: IpAddr =
            if ipv4_only { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let port = driver::port_of(index);
        let client = of_socket(driver::client_address(&scenario.paths, path));
        let server = of_socket(driver::server_address(&scenario.paths[path]));
        SocketPlan {
            protocol: connection.protocol,
            ipv4_only,
            local: match side {
                Side::Client => SocketAddr::new(client, 0),
                Side::Server => SocketAddr::new(any, port),
            },
            server: SocketAddr::new(server, port),
            congestion_control,
            send_buffer: connection.send_buffer.map(|size| size.as_u64()),
            receive_buffer: connection.receive_buffer.map(|size| size.as_u64()),
            nagle: connection.nagle,
            keep_alive: connection.keep_alive,
        }
    }

    /// Create a socket in this thread's namespace. Deviations from the scenario become notices.
    fn socket(&self, settings: &mut KernelSettings) -> io::Result<OwnedFd> {
        let protocol = match self.protocol {
            Protocol::Mptcp => sys::MPTCP,
            Protocol::Tcp => sys::TCP,
        };
        let socket = sys::stream_socket(self.ipv4_only, protocol)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if !self.nagle {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        if let Some(idle) = self.keep_alive {
            keep_alive(&socket, idle, settings)?;
        }
        let used = sys::set_congestion_control(&socket, self.congestion_control);
        if used.as_ref().ok().map(String::as_str) != Some(self.congestion_control) {
            let why = used.unwrap_or_else(|error| error.to_string());
            settings.notice(&format!("congestion control {}: {why}", self.congestion_control));
        }
        let set_send: SetBuffer = |fd, bytes| sockopt::set_socket_send_buffer_size(fd, bytes);
        let set_receive: SetBuffer = |fd, bytes| sockopt::set_socket_recv_buffer_size(fd, bytes);
        for (set, key, limit, bytes) in [
            (set_send, "send_buffer", "wmem_max", self.send_buffer),
            (set_receive, "receive_buffer", "rmem_max", self.receive_buffer),
        ] {
            // A socket cannot request a larger buffer. The kernel then tunes the buffer up to
            // tcp_wmem and tcp_rmem, which are set to this size.
            let most = largest_buffer(limit);
            match bytes {
                Some(bytes) if bytes <= most => set(socket.as_fd(), bytes as usize)?,
                Some(bytes) => settings.notice(&format!(
                    "{key} of {bytes} bytes exceeds net.core.{limit} ({most}): the kernel autotunes \
                     the buffer up to the stated size"
                )),
                None => settings
                    .notice(&format!("{key} is not stated: the kernel autotunes the buffer")),
            }
        }
        Ok(socket)
    }

    fn connect(&self, settings: &mut KernelSettings) -> io::Result<TcpStream> {
        let stream = TcpStream::from(self.socket(settings)?);
        sys::bind(&stream, self.local)?;
        sys::connect(&stream, self.server)?;
        Ok(stream)
    }
}

/// Configure keep-alive probes as in the engine: one after each idle time, and the end of the subflow
/// after the same number of unanswered probes.
fn keep_alive(socket: &OwnedFd, idle: Duration, settings: &mut KernelSettings) -> io::Result<()> {
    let exact = idle.as_secs_f64();
    let seconds = (exact.ceil() as u32).clamp(1, LONGEST_KEEP_ALIVE);
    if f64::from(seconds) != exact {
        settings.notice(&format!("keep_alive of {exact} s: the kernel uses {seconds} s"));
    }
    let time = std::time::Duration::from_secs(seconds.into());
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, time)?;
    sockopt::set_tcp_keepintvl(socket, time)?;
    sockopt::set_tcp_keepcnt(socket, TcpConfig::default().retries)?;
    Ok(())
}

/// The system's limit for a socket's buffer.
fn largest_buffer(name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(212_992)
}

impl KernelApp {
    fn new(side: Side, connection: &Connection, plan: SocketPlan, seed: u64) -> Self {
        KernelApp {
            app: App::new(side, connection, seed),
            listener: None,
            plan,
            socket: None,
            connecting: false,
            blocked: false,
            finished: false,
            at_end: false,
            failed: false,
            written: 0,
            seen: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn serve(&mut self, now: Instant, buffer: &mut [u8]) {
        self.accept(now);
        if self.connecting && !self.finish_connecting(now) {
            return;
        }
        if self.socket.is_none() || self.failed {
            return;
        }
        self.read(now, buffer);
        let writes = match self.blocked {
            true => self.has_room(),
            false => self.app.poll_timeout().is_some_and(|at| at <= now),
        };
        if writes {
            self.write(now);
        }
    }

    /// Returns `true` if the kernel wakes a program that waits to write. The kernel does so when a
    /// third of the send buffer is free.
    fn has_room(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| sys::is_ready(socket, PollFlags::OUT))
    }

    fn accept(&mut self, now: Instant) {
        let listener = self.listener.as_ref().filter(|_| self.socket.is_none() && !self.failed);
        let Some(Ok((stream, _))) = listener.map(TcpListener::accept) else { return };
        self.failed |= stream.set_nonblocking(true).is_err();
        self.socket = Some(stream);
        self.write(now);
    }

    /// Returns `true` if the connection is established.
    fn finish_connecting(&mut self, now: Instant) -> bool {
        let Some(socket) = &self.socket else { return false };
        match socket.take_error() {
            Ok(None) if socket.peer_addr().is_ok() => {
                self.connecting = false;
                self.write(now);
                true
            }
            Ok(None) => false,
            _ => {
                self.failed = true;
                false
            }
        }
    }

    fn write(&mut self, now: Instant) {
        self.blocked = false;
        self.with_socket(|app, socket| app.on_writable(now, socket));
    }

    fn read(&mut self, now: Instant, buffer: &mut [u8]) {
        while !self.at_end {
            let Some(mut socket) = self.socket.as_ref() else { return };
            match socket.read(buffer) {
                Ok(0) => self.at_end = true,
                Ok(len) => {
                    let piece = Piece::Shared(Bytes::copy_from_slice(&buffer[..len]));
                    self.app.on_data(now, &piece.into());
                    self.with_socket(|app, socket| app.on_received(now, socket));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.failed = true;
                    return;
                }
            }
        }
        if self.at_end && self.app.closes_with_peer() {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.socket.is_some() && !self.finished {
            self.finished = true;
            self.look_at_subflows();
            let _ = self.socket.as_ref().map(|socket| socket.shutdown(Shutdown::Write));
        }
    }

    fn with_socket(&mut self, f: impl FnOnce(&mut App, &mut dyn Socket)) {
        let KernelApp { app, socket, blocked, finished, failed, written, .. } = self;
        if let Some(stream) = socket.as_ref().filter(|_| !*finished) {
            f(app, &mut SocketWriter { stream, blocked, finished, failed, written });
        }
    }

    /// The socket, once it is connected.
    fn stream(&self) -> Option<&TcpStream> {
        self.socket.as_ref().filter(|_| !self.connecting)
    }

    /// Record the subflows, because the kernel forgets a subflow's totals when the subflow ends.
    fn look_at_subflows(&mut self) {
        let Some(stream) = self.stream() else { return };
        let now = kernel_stats::subflows(stream);
        let before = std::mem::replace(&mut self.seen, now);
        let is_gone = |stats: &SubflowTotals| !self.seen.iter().any(|now| now.key == stats.key);
        self.gone.extend(before.into_iter().filter(is_gone));
    }
}

impl Socket for SocketWriter<'_> {
    fn write(&mut self, piece: Piece) -> usize {
        let mut accepted = 0;
        while accepted < piece.len() && !*self.failed {
            let part = piece.slice(accepted, piece.len().min(accepted + CHUNK));
            let mut bytes = Vec::with_capacity(part.len());
            part.for_each_slice(|slice| bytes.extend_from_slice(slice));
            match self.stream.write(&bytes) {
                Ok(len) => accepted += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    *self.failed |= error.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        *self.blocked = accepted < piece.len();
        *self.written += accepted as u64;
        accepted
    }

    fn space(&self) -> u64 {
        let all = sockopt::socket_send_buffer_size(self.stream).unwrap_or(0);
        all.saturating_sub(sys::unacknowledged(self.stream)) as u64
    }

    fn finish(&mut self) {
        *self.finished = true;
        *self.failed |= self.stream.shutdown(Shutdown::Write).is_err();
    }
}

impl Observed for KernelHost {
    fn sink(&self, connection: usize) -> &Sink {
        self.apps[connection].app.sink()
    }

    fn sender(&self, connection: usize) -> Option<&dyn Sender> {
        self.apps[connection].app.sender()
    }

    fn progress(&self, connection: usize) -> ConnectionProgress {
        match &self.apps[connection] {
            KernelApp { failed: true, .. } => ConnectionProgress::Failed,
            KernelApp { finished: true, at_end: true, .. } => ConnectionProgress::Closed,
            _ => ConnectionProgress::Underway,
        }
    }

    fn stats(&self, _now: Instant, connection: usize) -> Option<ConnectionTotals> {
        let app = &self.apps[connection];
        Some(kernel_stats::connection(app.stream()?, app.written, app.app.sink().received()))
    }

    fn last_stats(&self, _connection: usize) -> Option<ConnectionTotals> {
        None
    }

    fn subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        self.apps[connection].seen.clone()
    }

    fn past_subflows(&self, connection: usize) -> Vec<SubflowTotals> {
        self.apps[connection].gone.clone()
    }
}
