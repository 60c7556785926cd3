//! The engine as the stack under test, in virtual time.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anabranch_proto::config::{ConnectionConfig, Protocol, TcpConfig};
use anabranch_proto::congestion::{Cubic, NewReno};
use anabranch_proto::path_manager::{Backup, FullMesh};
use anabranch_proto::view::Usability;
use anabranch_proto::{ConnectionError, ConnectionId, Endpoint, Event};
use anabranch_wire::{Duration, Instant, Payload, Segment, SocketAddress};

use crate::layout::Layout;
use crate::settings::{Congestion, EndpointUse, ScriptSettings};
use crate::stack::{CallState, Handle, SocketOption, StackError, StackInfo, StackUnderTest};

/// An [`Endpoint`] and the sockets that a script has opened on it.
pub struct EngineStack {
    now: Instant,
    endpoint: Endpoint,
    settings: ScriptSettings,
    sockets: Vec<EngineSocket>,
    sent: VecDeque<(Instant, Segment)>,
    /// Reports of the engine about its connections.
    known: BTreeMap<ConnectionId, ConnectionStatus>,
}

impl fmt::Debug for EngineStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineStack").finish_non_exhaustive()
    }
}

/// The window that Linux offers at first, and the largest that a SYN can offer. With a larger buffer,
/// the stack would advertise a larger window right after the handshake, which every script would have
/// to expect.
const RECEIVE_BUFFER: u64 = 65_535;

#[derive(Default)]
struct EngineSocket {
    mptcp: bool,
    host: Option<u8>,
    port: u16,
    options: Vec<SocketOption>,
    aborts: bool,
    /// Connections that wait for `accept`.
    accepted: VecDeque<ConnectionId>,
    listens: bool,
    connection: Option<ConnectionId>,
    /// Data that was read from the engine, but not yet by the script.
    unread: Payload,
}

#[derive(Default)]
struct ConnectionStatus {
    connected: bool,
    /// An error that no call has returned yet.
    error: Option<&'static str>,
    /// No subflow is left. As on Linux, this is a state and no error.
    disconnected: bool,
}

impl EngineStack {
    /// Create a host as the header of a script describes it.
    pub fn new(settings: &ScriptSettings) -> Self {
        let layout = Layout { ipv6: settings.ipv6 };
        EngineStack {
            now: Instant::ZERO,
            endpoint: Endpoint::new(layout.hosts().collect(), [7; 32]),
            settings: settings.clone(),
            sockets: Vec::new(),
            sent: VecDeque::new(),
            known: BTreeMap::new(),
        }
    }

    fn config(&self, socket: &EngineSocket) -> ConnectionConfig {
        let settings = &self.settings;
        let layout = self.layout();
        let tcp = TcpConfig::default()
            .mtu(settings.mtu)
            .initial_window_segments(settings.initial_window)
            .timestamps(settings.timestamps)
            .sack(settings.sack)
            .ecn(settings.ecn)
            .keep_alive(settings.keep_alive.map(|seconds| Duration::from_secs(seconds.into())));
        let further = settings.endpoints.iter().map(|(host, _)| layout.host(*host));
        let first = layout.host(socket.host.unwrap_or(0));
        let has_backup = settings.endpoints.iter().any(|(_, used)| *used == EndpointUse::Backup);
        let mut config = ConnectionConfig::default()
            .protocol(if socket.mptcp { Protocol::Mptcp } else { Protocol::Tcp })
            .platform(settings.platform)
            .tcp(tcp)
            .dss_checksum(settings.checksum)
            .late_fallback(settings.late_fallback)
            .allow_join_initial_addr_port(settings.allow_join)
            .local_addresses(Some(std::iter::once(first).chain(further).collect()))
            .receive_buffer(RECEIVE_BUFFER);
        config.congestion_control = match settings.congestion {
            Congestion::Reno => Arc::new(|start| Box::new(NewReno::new(start))),
            Congestion::Cubic => Arc::new(|start| Box::new(Cubic::without_hystart(start))),
        };
        if has_backup {
            config.path_manager = Arc::new(|| Box::new(Backup::new(0)));
        } else {
            config.path_manager = Arc::new(|| Box::new(FullMesh::default()));
        }
        for option in &socket.options {
            apply(*option, &mut config);
        }
        config
    }

    /// Take the engine's segments and events.
    fn drain(&mut self) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            self.sent.push_back((self.now, segment.into_inner()));
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.handle_event(id, event);
        }
    }

    fn handle_event(&mut self, id: ConnectionId, event: Event) {
        let known = self.known.entry(id).or_default();
        match event {
            Event::Connected => known.connected = true,
            Event::Failed(ConnectionError::NoSubflow) => known.disconnected = true,
            Event::Failed(error) => known.error = errno(error),
            Event::Accepted => {
                known.connected = true;
                let port = self.endpoint.local_port(id);
                let listener = self.sockets.iter_mut().find(|s| s.listens && Some(s.port) == port);
                if let Some(listener) = listener {
                    listener.accepted.push_back(id);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, socket: EngineSocket) -> Handle {
        self.sockets.push(socket);
        Handle(self.sockets.len() - 1)
    }

    fn connection(&self, socket: Handle) -> Option<ConnectionId> {
        self.sockets[socket.0].connection
    }
}

fn apply(option: SocketOption, config: &mut ConnectionConfig) {
    match option {
        SocketOption::ReceiveBuffer(bytes) => config.receive_buffer = Some(bytes.into()),
        SocketOption::SendBuffer(bytes) => config.send_buffer = Some(bytes.into()),
        SocketOption::NoDelay(on) => config.tcp.nagle = !on,
        SocketOption::UserTimeout(millis) => {
            config.tcp.user_timeout = Some(Duration::from_millis(millis.into()));
        }
        SocketOption::Abort(_) => {}
    }
}

fn errno(error: ConnectionError) -> Option<&'static str> {
    Some(match error {
        ConnectionError::Refused => "ECONNREFUSED",
        ConnectionError::TimedOut => "ETIMEDOUT",
        ConnectionError::Reset => "ECONNRESET",
        _ => return None,
    })
}

impl StackUnderTest for EngineStack {
    fn now(&self) -> Instant {
        self.now
    }

    fn wait(&mut self, until: Instant) -> Result<(), StackError> {
        let due = self.endpoint.poll_timeout().filter(|due| *due <= until);
        self.now = due.unwrap_or(until).max(self.now);
        self.endpoint.handle_timeout(self.now);
        self.drain();
        Ok(())
    }

    fn next_segment(&mut self) -> Option<(Instant, Segment)> {
        self.sent.pop_front()
    }

    fn inject(&mut self, segment: Segment) -> Result<(), StackError> {
        self.endpoint.handle_segment(self.now, segment);
        self.drain();
        Ok(())
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn layout(&self) -> Layout {
        Layout { ipv6: self.settings.ipv6 }
    }

    fn socket(&mut self, mptcp: bool) -> CallState<Handle> {
        CallState::Done(self.push(EngineSocket { mptcp, ..EngineSocket::default() }))
    }

    fn set_option(&mut self, socket: Handle, option: SocketOption) -> CallState<()> {
        let socket = &mut self.sockets[socket.0];
        match option {
            SocketOption::Abort(aborts) => socket.aborts = aborts,
            // The engine gets its configuration when a connection is opened.
            _ if socket.listens || socket.connection.is_some() => {
                return CallState::Failed("EOPNOTSUPP");
            }
            other => socket.options.push(other),
        }
        CallState::Done(())
    }

    fn bind(&mut self, socket: Handle, host: Option<u8>, port: u16) -> CallState<()> {
        let socket = &mut self.sockets[socket.0];
        (socket.host, socket.port) = (host, port);
        CallState::Done(())
    }

    fn listen(&mut self, socket: Handle) -> CallState<()> {
        let config = self.config(&self.sockets[socket.0]);
        let socket = &mut self.sockets[socket.0];
        socket.listens = true;
        self.endpoint.listen(socket.port, config);
        CallState::Done(())
    }

    fn accept(&mut self, socket: Handle) -> CallState<Handle> {
        let listener = &mut self.sockets[socket.0];
        if !listener.listens {
            return CallState::Failed("EINVAL");
        }
        let mptcp = listener.mptcp;
        match listener.accepted.pop_front() {
            Some(id) => {
                let connection = Some(id);
                CallState::Done(self.push(EngineSocket {
                    mptcp,
                    connection,
                    ..EngineSocket::default()
                }))
            }
            None => CallState::Blocked,
        }
    }

    fn connect(&mut self, socket: Handle, peer: u8, port: u16) -> CallState<()> {
        if let Some(id) = self.connection(socket) {
            let known = self.known.entry(id).or_default();
            return match known.error.take() {
                Some(error) => CallState::Failed(error),
                None if known.connected => CallState::Done(()),
                None => CallState::Blocked,
            };
        }
        let layout = self.layout();
        let config = self.config(&self.sockets[socket.0]);
        let local = layout.host(self.sockets[socket.0].host.unwrap_or(0));
        let remote = SocketAddress::new(layout.peer(peer), port);
        match self.endpoint.connect(self.now, local, remote, config) {
            Ok(id) => self.sockets[socket.0].connection = Some(id),
            Err(_) => return CallState::Failed("EADDRINUSE"),
        }
        self.drain();
        CallState::Blocked
    }

    fn write(&mut self, socket: Handle, from: u64, len: u32) -> CallState<u32> {
        let Some(id) = self.connection(socket) else { return CallState::Failed("EPIPE") };
        let known = self.known.entry(id).or_default();
        if let Some(error) = known.error.take() {
            return CallState::Failed(error);
        }
        if !known.connected {
            return CallState::Blocked;
        }
        let sent = self.endpoint.send_pattern(id, from, len);
        self.drain();
        match sent {
            Ok(0) if len > 0 => CallState::Blocked,
            Ok(bytes) => CallState::Done(bytes as u32),
            Err(_) => CallState::Failed("EPIPE"),
        }
    }

    fn read(&mut self, socket: Handle, len: u32) -> CallState<Payload> {
        let Some(id) = self.connection(socket) else { return CallState::Failed("ENOTCONN") };
        while self.sockets[socket.0].unread.len() < len as usize
            && let Some(more) = self.endpoint.recv(id)
        {
            let unread = &mut self.sockets[socket.0].unread;
            *unread = Payload::concat(unread, &more);
        }
        self.drain();
        let unread = &mut self.sockets[socket.0].unread;
        if !unread.is_empty() {
            let taken = unread.len().min(len as usize);
            let payload = unread.slice(0, taken);
            *unread = unread.slice(taken, unread.len());
            return CallState::Done(payload);
        }
        let known = self.known.entry(id).or_default();
        match known.error.take() {
            Some(error) => CallState::Failed(error),
            None if known.disconnected => CallState::Failed("ENOTCONN"),
            None if self.endpoint.is_at_end(id) => CallState::Done(Payload::EMPTY),
            None => CallState::Blocked,
        }
    }

    fn take_error(&mut self, socket: Handle) -> Option<&'static str> {
        let id = self.connection(socket)?;
        self.known.get_mut(&id)?.error.take()
    }

    fn shutdown(&mut self, socket: Handle) -> CallState<()> {
        let Some(id) = self.connection(socket) else { return CallState::Failed("ENOTCONN") };
        self.endpoint.close(id);
        self.drain();
        CallState::Done(())
    }

    fn close(&mut self, socket: Handle) -> CallState<()> {
        if let Some(id) = self.connection(socket) {
            let EngineSocket { aborts, unread, .. } = &self.sockets[socket.0];
            if *aborts || !unread.is_empty() {
                self.endpoint.abort(id);
            } else {
                self.endpoint.release(id);
            }
            self.drain();
        }
        CallState::Done(())
    }

    fn set_address(&mut self, host: u8, up: bool) -> Result<(), StackError> {
        let address = self.layout().host(host);
        self.endpoint.handle_address_change(self.now, address, up);
        self.drain();
        Ok(())
    }

    fn info(&mut self, socket: Handle) -> Option<StackInfo> {
        let id = self.connection(socket)?;
        let stats = self.endpoint.connection_stats(self.now, id)?;
        let live =
            |usability| matches!(usability, Usability::Usable | Usability::PotentiallyFailed);
        let views: Vec<_> = self.endpoint.subflow_stats(id).map(|stats| stats.view).collect();
        let subflows = views.iter().filter(|view| live(view.usability)).count() as u64;
        let first = views.first();
        let cwnd = first.map_or(0, |view| view.cwnd / u64::from(view.mss.max(1)));
        Some(StackInfo { is_mptcp: stats.is_mptcp, subflows, cwnd })
    }
}
