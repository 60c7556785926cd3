//! The sockets of one host: its engine, and the tasks that wait for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::task::{Context, Poll, Waker};

use anabranch_proto::SubflowStats;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{ConnectionError, ConnectionId, ConnectionStats, Endpoint, Event};
use anabranch_wire::{
    Datagram, Flags, Instant, Packet, Payload, PooledSegment, Segment, SocketAddress,
};
use bytes::Bytes;

/// Connections that wait to be accepted by a listener, at most (Linux's `somaxconn`).
const LONGEST_BACKLOG: usize = 4096;
/// Addresses of destinations without connections that a host keeps, at most (this project).
const MOST_UNUSED_ADDRESSES: usize = 1024;
/// Datagrams that wait to be received by a host, at most (this project).
const MOST_DATAGRAMS: usize = 1024;

/// An engine, and what its program holds of it.
pub(crate) struct Sockets {
    pub(crate) endpoint: Endpoint,
    sockets: BTreeMap<ConnectionId, Socket>,
    listeners: BTreeMap<u16, WaitQueue<ConnectionId>>,
    /// Present if a program decides about every SYN.
    interceptor: Option<Interception>,
    /// Addresses of destinations that the engine has for intercepted connections.
    destinations: BTreeSet<IpAddr>,
    datagrams: WaitQueue<Datagram>,
    records: Option<Vec<Record>>,
    /// The device's error.
    broken: Option<(ErrorKind, String)>,
}

/// A queue, and the task that waits for its next element.
#[derive(Debug)]
struct WaitQueue<T> {
    queue: VecDeque<T>,
    task: Option<Waker>,
}

/// SYNs that a program decides about.
#[derive(Default)]
struct Interception {
    new: WaitQueue<PooledSegment>,
    /// Source and destination of the SYNs without a decision. Retransmissions of them are ignored.
    undecided: BTreeSet<(SocketAddress, SocketAddress)>,
    /// Source and destination of the accepted ones.
    accepted: BTreeSet<(SocketAddress, SocketAddress)>,
}

/// A connection that a program holds, or that still delivers data that the program has written.
struct Socket {
    state: SocketState,
    /// Whether the program still holds the stream.
    held: bool,
    /// The peer's stream had arrived up to its end when the connection ended. TCP in Linux: `SOCK_DONE`.
    had_end: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Source and destination of the intercepted SYN.
    intercepted: Option<(SocketAddress, SocketAddress)>,
    /// Index of the record.
    record: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketState {
    Opening,
    Open,
    /// Ended; `None` after an orderly close.
    Ended(Option<ConnectionError>),
}

/// A host's record of a connection.
#[derive(Clone, Debug)]
pub struct Record {
    /// The connection.
    pub id: ConnectionId,
    /// When the host opened or accepted it.
    pub opened: Instant,
    /// The host's own address and port on the first subflow.
    pub local: SocketAddress,
    /// The peer's address and port on the first subflow.
    pub remote: SocketAddress,
    /// When the connection ended, and the error unless it was closed in order. `None` while it is
    /// open.
    pub ended: Option<(Instant, Option<ConnectionError>)>,
    /// Totals when the connection ended.
    pub last: Option<ConnectionStats>,
    /// Totals of the subflows that have closed.
    pub past_subflows: Vec<SubflowStats>,
}

impl Sockets {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Sockets {
            endpoint,
            sockets: BTreeMap::new(),
            listeners: BTreeMap::new(),
            interceptor: None,
            destinations: BTreeSet::new(),
            datagrams: WaitQueue::default(),
            records: None,
            broken: None,
        }
    }

    // ---- from the network

    /// Handle a packet from the network.
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: Packet) {
        match packet {
            Packet::Tcp(segment) => {
                if !self.intercept(&segment) {
                    self.endpoint.handle_segment(now, segment);
                }
            }
            Packet::TooBig(message) => self.endpoint.handle_too_big(&message),
            Packet::Udp(datagram) => {
                if self.datagrams.queue.len() < MOST_DATAGRAMS {
                    self.datagrams.push(datagram.into_inner());
                }
            }
        }
    }

    /// Returns `true` if the program decides about this segment: a SYN that opens a connection.
    fn intercept(&mut self, segment: &Segment) -> bool {
        let Some(interception) = &mut self.interceptor else { return false };
        let flags = segment.header.flags;
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        let control = segment.options.control.as_ref();
        let joins = control.is_some_and(|control| control.join.is_some());
        let between = (segment.source, segment.destination);
        if !opens || joins || !segment.checksum_ok || interception.accepted.contains(&between) {
            return false;
        }
        if interception.undecided.len() < LONGEST_BACKLOG && interception.undecided.insert(between)
        {
            interception.new.push(segment.clone().into());
        }
        true
    }

    /// Process the engine's reports. Returns whether there were any.
    pub(crate) fn handle_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Connected => self.opened(id),
                Event::Accepted => self.accepted(now, id),
                Event::Readable => self.with(id, Socket::wake_reader),
                Event::Writable => self.with(id, Socket::wake_writer),
                Event::Closed => self.ended(now, id, None),
                Event::Failed(why) => self.ended(now, id, Some(why)),
                Event::SubflowClosed(subflow) => {
                    let stats = self.endpoint.subflow_stats(id).find(|it| it.view.id == subflow);
                    if let (Some(record), Some(stats)) = (self.record_mut(id), stats) {
                        record.past_subflows.push(stats);
                    }
                }
                Event::SubflowEstablished(_) | Event::FellBack => {}
            }
        }
        any
    }

    fn with(&mut self, id: ConnectionId, f: impl FnOnce(&mut Socket)) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            f(socket);
        }
    }

    fn opened(&mut self, id: ConnectionId) {
        self.with(id, |socket| {
            socket.state = SocketState::Open;
            socket.wake_writer();
        });
    }

    fn accepted(&mut self, now: Instant, id: ConnectionId) {
        if self.sockets.contains_key(&id) {
            return self.opened(id);
        }
        let port = self.endpoint.local_port(id);
        let backlog = port.and_then(|port| self.listeners.get_mut(&port));
        match backlog.filter(|backlog| backlog.queue.len() < LONGEST_BACKLOG) {
            Some(backlog) => {
                backlog.push(id);
                self.add(now, id, SocketState::Open);
            }
            None => self.endpoint.abort(id),
        }
    }

    fn ended(&mut self, now: Instant, id: ConnectionId, why: Option<ConnectionError>) {
        let stats = self.endpoint.connection_stats(now, id);
        let open: Vec<_> = self.endpoint.subflow_stats(id).collect();
        if let Some(record) = self.record_mut(id) {
            record.ended = Some((now, why));
            record.last = stats;
            let known =
                |it: &SubflowStats| record.past_subflows.iter().any(|p| p.view.id == it.view.id);
            let new: Vec<_> = open.into_iter().filter(|it| !known(it)).collect();
            record.past_subflows.extend(new);
        }
        let had_end = self.endpoint.has_received_all(id);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        (socket.state, socket.had_end) = (SocketState::Ended(why), had_end);
        socket.wake_reader();
        socket.wake_writer();
        if !socket.held {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        let socket = self.sockets.remove(&id);
        let interception = self.interceptor.as_mut();
        if let (Some(between), Some(all)) = (socket.and_then(|it| it.intercepted), interception) {
            all.accepted.remove(&between);
        }
        // The engine keeps unread data.
        while self.endpoint.recv(id).is_some() {}
    }

    fn add(&mut self, now: Instant, id: ConnectionId, state: SocketState) -> &mut Socket {
        let first = self.endpoint.subflow_stats(id).next();
        let record = self.records.as_mut().zip(first).map(|(records, first)| {
            let (local, remote) = (first.local, first.remote);
            let past_subflows = Vec::new();
            records.push(Record {
                id,
                opened: now,
                local,
                remote,
                ended: None,
                last: None,
                past_subflows,
            });
            records.len() - 1
        });
        let socket = Socket {
            state,
            held: true,
            had_end: false,
            reader: None,
            writer: None,
            intercepted: None,
            record,
        };
        self.sockets.entry(id).or_insert(socket)
    }

    // ---- records

    /// Keep records of all connections from now on.
    pub(crate) fn keep_records(&mut self) {
        self.records.get_or_insert_default();
    }

    pub(crate) fn records(&self) -> &[Record] {
        self.records.as_deref().unwrap_or_default()
    }

    fn record_mut(&mut self, id: ConnectionId) -> Option<&mut Record> {
        let index = self.sockets.get(&id)?.record?;
        self.records.as_mut()?.get_mut(index)
    }

    // ---- to open connections

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddress,
        config: ConnectionConfig,
        data: Option<Bytes>,
        addresses: &[IpAddr],
    ) -> io::Result<ConnectionId> {
        self.check()?;
        let known = config.local_addresses.as_deref().unwrap_or(addresses);
        let same_family = |it: &&IpAddr| it.is_ipv4() == remote.address.is_ipv4();
        let local = known.iter().find(same_family).ok_or_else(|| {
            let message = format!("this host has no address of the family of {remote}");
            io::Error::new(ErrorKind::AddrNotAvailable, message)
        })?;
        let opened = match data {
            None => self.endpoint.connect(now, *local, remote, config),
            Some(data) => self.endpoint.connect_with_data(now, *local, remote, config, data),
        };
        let id = opened.map_err(|error| io::Error::new(ErrorKind::AddrInUse, error))?;
        self.add(now, id, SocketState::Opening);
        Ok(id)
    }

    /// Ready once the connection is open, with an error if it could not be opened.
    pub(crate) fn poll_open(
        &mut self,
        id: ConnectionId,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        let Some(socket) = self.sockets.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        match socket.state {
            SocketState::Opening => pending(&mut socket.writer, context),
            SocketState::Ended(Some(why)) => Poll::Ready(Err(error_of(why))),
            _ => Poll::Ready(Ok(())),
        }
    }

    pub(crate) fn listen(&mut self, port: u16, config: ConnectionConfig) -> io::Result<()> {
        if self.listeners.contains_key(&port) {
            let message = format!("this host already listens on port {port}");
            return Err(io::Error::new(ErrorKind::AddrInUse, message));
        }
        self.listeners.insert(port, WaitQueue::default());
        self.endpoint.listen(port, config);
        Ok(())
    }

    pub(crate) fn stop_listening(&mut self, port: u16) {
        self.endpoint.stop_listening(port);
        let backlog = self.listeners.remove(&port).map(|backlog| backlog.queue);
        for id in backlog.into_iter().flatten() {
            self.endpoint.abort(id);
            self.forget(id);
        }
    }

    pub(crate) fn poll_accept(
        &mut self,
        port: u16,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<ConnectionId>> {
        self.check()?;
        let backlog = self.listeners.get_mut(&port).expect("the listener lives");
        loop {
            let Some(id) = backlog.queue.pop_front() else {
                return pending(&mut backlog.task, context);
            };
            // It may have ended, and its subflow may be gone.
            if self.endpoint.subflow_stats(id).next().is_some() {
                return Poll::Ready(Ok(id));
            }
            self.sockets.remove(&id);
        }
    }

    // ---- to intercept connections

    pub(crate) fn start_intercepting(&mut self) {
        self.interceptor.get_or_insert_default();
    }

    pub(crate) fn poll_intercept(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<PooledSegment>> {
        self.check()?;
        let interception = self.interceptor.as_mut().expect("the interceptor lives");
        match interception.new.queue.pop_front() {
            Some(syn) => Poll::Ready(Ok(syn)),
            None => pending(&mut interception.new.task, context),
        }
    }

    /// Ignore a SYN. If its sender repeats it, it is new.
    pub(crate) fn ignore(&mut self, syn: &Segment) {
        if let Some(interception) = &mut self.interceptor {
            interception.undecided.remove(&(syn.source, syn.destination));
        }
    }

    /// Let the engine answer a SYN, as the host with the SYN's destination.
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        syn: PooledSegment,
        config: ConnectionConfig,
    ) -> io::Result<ConnectionId> {
        self.ignore(&syn);
        let between = (syn.source, syn.destination);
        let here = syn.destination;
        // The addresses of other connections are not those of this one.
        let config = config.local_addresses(Some(vec![here.address]));
        self.add_destination(now, here.address);
        self.endpoint.listen(here.port, config);
        self.endpoint.handle_segment(now, syn);
        let endpoint = &self.endpoint;
        let is_this = |id: &ConnectionId| {
            let mut subflows = endpoint.subflow_stats(*id);
            subflows.any(|subflow| (subflow.remote, subflow.local) == between)
        };
        let found = endpoint.connections().find(|id| !self.sockets.contains_key(id) && is_this(id));
        let id = found.ok_or_else(|| {
            io::Error::new(ErrorKind::ResourceBusy, "too many connections are half open")
        })?;
        self.add(now, id, SocketState::Opening).intercepted = Some(between);
        if let Some(interception) = &mut self.interceptor {
            interception.accepted.insert(between);
        }
        Ok(id)
    }

    /// Answer a SYN with RST.
    pub(crate) fn refuse(&mut self, now: Instant, syn: PooledSegment) {
        self.ignore(&syn);
        self.add_destination(now, syn.destination.address);
        self.endpoint.stop_listening(syn.destination.port);
        self.endpoint.handle_segment(now, syn);
    }

    /// Add the address of a destination to those of the engine. If there are many, first remove those
    /// that no connection uses.
    fn add_destination(&mut self, now: Instant, address: IpAddr) {
        if self.endpoint.addresses().contains(&address) {
            return;
        }
        if self.destinations.len() >= MOST_UNUSED_ADDRESSES {
            let endpoint = &self.endpoint;
            let subflows = endpoint.connections().flat_map(|id| endpoint.subflow_stats(id));
            let used: BTreeSet<_> = subflows.map(|subflow| subflow.local.address).collect();
            for unused in self.destinations.difference(&used) {
                self.endpoint.remove_address(now, *unused);
            }
            self.destinations.retain(|address| used.contains(address));
        }
        self.destinations.insert(address);
        self.endpoint.add_address(now, address);
    }

    // ---- to use connections

    pub(crate) fn poll_read(
        &mut self,
        id: ConnectionId,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Payload>>> {
        if let Some(payload) = self.endpoint.recv(id) {
            return Poll::Ready(Ok(Some(payload)));
        }
        self.check()?;
        let Some(socket) = self.sockets.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        match socket.state {
            SocketState::Ended(Some(why)) if !socket.had_end => Poll::Ready(Err(error_of(why))),
            SocketState::Ended(_) => Poll::Ready(Ok(None)),
            _ if self.endpoint.is_at_end(id) => Poll::Ready(Ok(None)),
            _ => pending(&mut socket.reader, context),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        id: ConnectionId,
        context: &mut Context<'_>,
        bytes: Bytes,
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        let Some(socket) = self.sockets.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        match socket.state {
            // Linux: there is nothing left to write to.
            SocketState::Ended(Some(why @ ConnectionError::NoSubflow)) => {
                return Poll::Ready(Err(io::Error::new(ErrorKind::BrokenPipe, why)));
            }
            SocketState::Ended(Some(why)) => return Poll::Ready(Err(error_of(why))),
            _ => {}
        }
        match self.endpoint.send(id, bytes) {
            Ok(0) => pending(&mut socket.writer, context),
            Ok(accepted) => Poll::Ready(Ok(accepted)),
            Err(error) => Poll::Ready(Err(io::Error::new(ErrorKind::BrokenPipe, error))),
        }
    }

    pub(crate) fn has_ended(&self, id: ConnectionId) -> bool {
        self.sockets.get(&id).is_none_or(|socket| matches!(socket.state, SocketState::Ended(_)))
    }

    pub(crate) fn has_failed(&self, id: ConnectionId) -> bool {
        let failed = |socket: &Socket| matches!(socket.state, SocketState::Ended(Some(_)));
        self.sockets.get(&id).is_none_or(failed)
    }

    /// The program drops the stream. `unread` says whether it leaves data.
    pub(crate) fn release(&mut self, id: ConnectionId, unread: bool) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.held = false;
        match socket.state {
            SocketState::Ended(_) => self.forget(id),
            SocketState::Opening => self.endpoint.abort(id),
            SocketState::Open if unread => self.endpoint.abort(id),
            SocketState::Open => self.endpoint.release(id),
        }
    }

    pub(crate) fn poll_datagram(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Datagram>> {
        self.check()?;
        match self.datagrams.queue.pop_front() {
            Some(datagram) => Poll::Ready(Ok(datagram)),
            None => pending(&mut self.datagrams.task, context),
        }
    }

    // ---- the device fails

    pub(crate) fn fail(&mut self, why: &io::Error) {
        self.broken.get_or_insert_with(|| (why.kind(), why.to_string()));
        for socket in self.sockets.values_mut() {
            socket.wake_reader();
            socket.wake_writer();
        }
        let backlogs = self.listeners.values_mut().filter_map(|backlog| backlog.task.take());
        let interceptor = self.interceptor.as_mut().and_then(|it| it.new.task.take());
        let tasks = backlogs.chain(interceptor).chain(self.datagrams.task.take());
        tasks.for_each(Waker::wake);
    }

    fn check(&self) -> io::Result<()> {
        self.broken.as_ref().map_or(Ok(()), |(kind, why)| Err(io::Error::new(*kind, why.clone())))
    }
}

impl Socket {
    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }
}

impl<T> WaitQueue<T> {
    fn push(&mut self, element: T) {
        self.queue.push_back(element);
        self.task.take().into_iter().for_each(Waker::wake);
    }
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue { queue: VecDeque::new(), task: None }
    }
}

fn pending<T>(task: &mut Option<Waker>, context: &mut Context<'_>) -> Poll<T> {
    *task = Some(context.waker().clone());
    Poll::Pending
}

fn gone() -> io::Error {
    ErrorKind::NotConnected.into()
}

fn error_of(why: ConnectionError) -> io::Error {
    let kind = match why {
        ConnectionError::Refused => ErrorKind::ConnectionRefused,
        ConnectionError::TimedOut => ErrorKind::TimedOut,
        ConnectionError::Reset => ErrorKind::ConnectionReset,
        ConnectionError::Aborted => ErrorKind::ConnectionAborted,
        ConnectionError::NoSubflow => ErrorKind::NetworkUnreachable,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, why)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn addresses_of_destinations_are_not_kept_for_ever() {
        let own = IpAddr::from([10, 0, 0, 1]);
        let mut sockets = Sockets::new(Endpoint::new(vec![own], [7; 32]));
        sockets.start_intercepting();
        let syn = |host: u32, port| {
            let address = IpAddr::from(Ipv4Addr::from(0xcb00_0000 + host));
            let mut syn = Segment {
                source: SocketAddress::new([192, 0, 2, 1].into(), port),
                destination: SocketAddress::new(address, 80),
                header: anabranch_wire::TcpHeader::default(),
                options: anabranch_wire::TcpOptions::default(),
                payload: Payload::EMPTY,
                ecn: 0,
                checksum_ok: true,
            };
            syn.header.flags = Flags::SYN;
            PooledSegment::new(syn)
        };
        let used = syn(0, 1000);
        sockets.accept(Instant::ZERO, used, ConnectionConfig::default()).expect("room");
        for host in 1..5_000 {
            sockets.refuse(Instant::ZERO, syn(host, 1000));
        }
        let addresses = sockets.endpoint.addresses();
        assert!(addresses.len() <= MOST_UNUSED_ADDRESSES + 2, "{}", addresses.len());
        assert!(addresses.contains(&own) && addresses.contains(&[203, 0, 0, 0].into()));
    }
}
