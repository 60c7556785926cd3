//! The sockets of one host: its engine, and the tasks that wait for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::task::{Context, Poll, Waker, ready};

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
    sockets: BTreeMap<ConnectionId, SocketEntry>,
    listeners: BTreeMap<u16, WaitQueue<ConnectionId>>,
    /// Present if a program decides about every SYN.
    interceptor: Option<Interception>,
    /// Addresses of destinations that the engine has for intercepted connections.
    destinations: BTreeSet<IpAddr>,
    datagrams: WaitQueue<Datagram>,
    records: Option<Vec<ConnectionRecord>>,
    /// The device's error.
    broken: Option<(ErrorKind, String)>,
}

/// A queue, and the tasks that wait for its next element.
#[derive(Debug)]
struct WaitQueue<T> {
    queue: VecDeque<T>,
    tasks: Vec<Waker>,
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
struct SocketEntry {
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
pub struct ConnectionRecord {
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
                Event::Readable => self.with(id, SocketEntry::wake_reader),
                Event::Writable => self.with(id, SocketEntry::wake_writer),
                Event::Closed => self.ended(now, id, None),
                Event::Failed(why) => self.ended(now, id, Some(why)),
                Event::SubflowClosed(last) => {
                    if let Some(record) = self.record_mut(id) {
                        record.past_subflows.push(*last);
                    }
                }
                Event::SubflowEstablished(_) | Event::FellBack => {}
            }
        }
        any
    }

    fn with(&mut self, id: ConnectionId, f: impl FnOnce(&mut SocketEntry)) {
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
        // Its ports may be used again, even if the program still holds the stream.
        if let (Some(between), Some(all)) = (socket.intercepted.take(), &mut self.interceptor) {
            all.accepted.remove(&between);
        }
        if !socket.held {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        self.sockets.remove(&id);
        // The engine keeps unread data.
        while self.endpoint.recv(id).is_some() {}
    }

    fn add(&mut self, now: Instant, id: ConnectionId, state: SocketState) -> &mut SocketEntry {
        let first = self.endpoint.subflow_stats(id).next();
        let record = self.records.as_mut().zip(first).map(|(records, first)| {
            let (local, remote) = (first.local, first.remote);
            let past_subflows = Vec::new();
            records.push(ConnectionRecord {
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
        let socket = SocketEntry {
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

    pub(crate) fn records(&self) -> &[ConnectionRecord] {
        self.records.as_deref().unwrap_or_default()
    }

    fn record_mut(&mut self, id: ConnectionId) -> Option<&mut ConnectionRecord> {
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

    pub(crate) fn stop_listening(&mut self, now: Instant, port: u16) {
        self.endpoint.stop_listening(port);
        let backlog = self.listeners.remove(&port).map(|backlog| backlog.queue);
        for id in backlog.into_iter().flatten() {
            if !self.has_ended(id) {
                self.endpoint.abort(id);
                self.ended(now, id, Some(ConnectionError::Aborted));
            }
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
            let id = ready!(backlog.poll_pop(context));
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
        interception.new.poll_pop(context).map(Ok)
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
        let earlier = self.endpoint.connection_between(here, between.0);
        self.endpoint.handle_segment(now, syn);
        let found = self.endpoint.connection_between(here, between.0);
        let id = found.filter(|_| found != earlier).ok_or_else(|| match earlier {
            None => io::Error::new(ErrorKind::ResourceBusy, "too many connections are half open"),
            Some(_) => {
                io::Error::new(ErrorKind::AddrInUse, "an earlier connection has these ports")
            }
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
        let failed = |socket: &SocketEntry| matches!(socket.state, SocketState::Ended(Some(_)));
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
        self.datagrams.poll_pop(context).map(Ok)
    }

    // ---- the device fails

    pub(crate) fn fail(&mut self, why: &io::Error) {
        self.broken.get_or_insert_with(|| (why.kind(), why.to_string()));
        for socket in self.sockets.values_mut() {
            socket.wake_reader();
            socket.wake_writer();
        }
        self.listeners.values_mut().for_each(WaitQueue::wake);
        if let Some(interception) = &mut self.interceptor {
            interception.new.wake();
        }
        self.datagrams.wake();
    }

    fn check(&self) -> io::Result<()> {
        self.broken.as_ref().map_or(Ok(()), |(kind, why)| Err(io::Error::new(*kind, why.clone())))
    }
}

impl SocketEntry {
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
        self.wake();
    }

    /// Wake all tasks. One gets the next element, and the others wait again.
    fn wake(&mut self) {
        self.tasks.drain(..).for_each(Waker::wake);
    }

    fn poll_pop(&mut self, context: &mut Context<'_>) -> Poll<T> {
        if let Some(element) = self.queue.pop_front() {
            return Poll::Ready(element);
        }
        if !self.tasks.iter().any(|task| task.will_wake(context.waker())) {
            self.tasks.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue { queue: VecDeque::new(), tasks: Vec::new() }
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

    use anabranch_wire::{SeqNumber, TcpHeader, TcpOptions};

    use super::*;

    const OWN: [u8; 4] = [10, 0, 0, 1];

    fn intercepting() -> Sockets {
        let mut sockets = Sockets::new(Endpoint::new(vec![OWN.into()], [7; 32]));
        sockets.start_intercepting();
        sockets
    }

    /// A segment of a program to port 80 of a destination.
    fn segment(host: u32, flags: Flags, seq: u32, ack: SeqNumber) -> PooledSegment {
        let address = IpAddr::from(Ipv4Addr::from(0xcb00_0000 + host));
        PooledSegment::new(Segment {
            source: SocketAddress::new([192, 0, 2, 1].into(), 1000),
            destination: SocketAddress::new(address, 80),
            header: TcpHeader { seq: SeqNumber(seq), ack, flags, window: 65_535, urgent: 0 },
            options: TcpOptions::default(),
            payload: Payload::EMPTY,
            ecn: 0,
            checksum_ok: true,
        })
    }

    fn syn(host: u32, seq: u32) -> PooledSegment {
        segment(host, Flags::SYN, seq, SeqNumber(0))
    }

    /// The program's SYN is intercepted and accepted.
    fn accept(sockets: &mut Sockets, seq: u32) -> io::Result<ConnectionId> {
        let now = Instant::ZERO;
        sockets.handle_packet(now, Packet::Tcp(syn(0, seq)));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(syn)) = sockets.poll_intercept(&mut context) else {
            panic!("a program decides about the SYN {seq}");
        };
        sockets.accept(now, syn, ConnectionConfig::default())
    }

    #[test]
    fn a_program_uses_the_ports_of_an_ended_connection_again() {
        let (now, mut sockets) = (Instant::ZERO, intercepting());
        let first = accept(&mut sockets, 1000).expect("room");
        let answer = sockets.endpoint.poll_transmit(now).expect("a SYN/ACK");
        let iss = answer.header.seq;
        sockets.handle_packet(now, Packet::Tcp(segment(0, Flags::ACK, 1001, iss + 1)));
        sockets.endpoint.close(first);
        let fin = sockets.endpoint.poll_transmit(now).expect("a FIN");
        assert!(fin.header.flags.contains(Flags::FIN), "{fin:?}");
        let last = segment(0, Flags::FIN | Flags::ACK, 1001, iss + 2);
        sockets.handle_packet(now, Packet::Tcp(last));
        sockets.handle_events(now);
        assert!(sockets.has_ended(first) && !sockets.has_failed(first), "TIME-WAIT");
        // The stream is still held. A SYN from before does not open it again.
        let early = accept(&mut sockets, 900).expect_err("it is old");
        assert_eq!(early.kind(), ErrorKind::AddrInUse);
        let second = accept(&mut sockets, 70_000).expect("it is new");
        assert_ne!(first, second);
        while let Some(answer) = sockets.endpoint.poll_transmit(now) {
            if answer.header.flags.contains(Flags::SYN) {
                let third = segment(0, Flags::ACK, 70_001, answer.header.seq + 1);
                sockets.handle_packet(now, Packet::Tcp(third));
            }
        }
        sockets.handle_events(now);
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(sockets.poll_open(second, &mut context), Poll::Ready(Ok(()))));
    }

    #[test]
    fn addresses_of_destinations_are_not_kept_for_ever() {
        let mut sockets = intercepting();
        let used = syn(0, 1000);
        sockets.accept(Instant::ZERO, used, ConnectionConfig::default()).expect("room");
        for host in 1..5_000 {
            sockets.refuse(Instant::ZERO, syn(host, 1000));
        }
        let addresses = sockets.endpoint.addresses();
        assert!(addresses.len() <= MOST_UNUSED_ADDRESSES + 2, "{}", addresses.len());
        assert!(addresses.contains(&OWN.into()) && addresses.contains(&[203, 0, 0, 0].into()));
    }
}
