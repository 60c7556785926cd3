//! A host: its connections, listeners and addresses.

mod answers;
mod blackhole;
mod demultiplexer;
mod fast_open;
mod ports;
mod slot;
#[cfg(test)]
mod tests;
mod unknown;
mod wake_ups;

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use anabranch_wire::{Flags, Instant, PacketTooBig, Payload, Piece, PooledSegment, SocketAddress};

use crate::activity::Reason;
use crate::config::{ConnectionConfig, Protocol};
use crate::connection::{ArrivedData, Connection, Contents, NewConnection, Registration, Role};
use crate::counters::Counters;
use crate::error::{ConnectError, SendError};
use crate::event::Event;
use crate::flood::WaitingJoins;
use crate::keys::{self, Secrets};
use crate::path_manager::LocalAddress;
use crate::stats::{ConnectionStats, SubflowStats};
use crate::subflow::FastOpen;
use crate::trace::TraceEvent;

use demultiplexer::{Demultiplexer, SubflowIndex};
pub use ports::PortSelection;
use ports::Ports;
use slot::ConnectionSlot;
use wake_ups::WakeUps;

/// Identifies a connection of an [`Endpoint`]; identifiers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

/// All Multipath TCP and TCP connections of one host.
///
/// After any call that takes `&mut self`, call [`Endpoint::poll_transmit`] and
/// [`Endpoint::poll_event`] until both return `None`, then read [`Endpoint::poll_timeout`].
/// Additional calls are harmless.
pub struct Endpoint {
    addresses: Vec<IpAddr>,
    /// Addresses whose interfaces are down.
    addresses_down: Vec<IpAddr>,
    secrets: Secrets,
    slots: Vec<ConnectionSlot>,
    free: Vec<u32>,
    table: Demultiplexer,
    tokens: BTreeMap<u32, u32>,
    listeners: BTreeMap<u16, Arc<ConnectionConfig>>,
    /// Connections that may have something to send.
    dirty: VecDeque<u32>,
    /// Times at which connections need attention.
    wake_ups: WakeUps,
    /// Segments to send before any connection is polled.
    replies: VecDeque<PooledSegment>,
    /// Number of connections whose handshake awaits the peer's next step.
    half_open: usize,
    /// Time until which third ACKs may arrive for SYNs that were answered without state.
    cookies_until: Instant,
    waiting_joins: WaitingJoins,
    fast_open: fast_open::FastOpenCache,
    ports: Ports,
    blackhole: blackhole::Blackhole,
    events: VecDeque<(ConnectionId, Event)>,
    /// The connection whose event was polled last.
    told: Option<u32>,
    counters: Counters,
    opened: u64,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// The key and the source of random numbers of a connection.
struct ConnectionSecrets {
    key: u64,
    secrets: Secrets,
}

impl Endpoint {
    /// A host with `addresses`. All its keys, nonces and initial sequence numbers follow from
    /// `secret`. A real-time driver gets the secret from the system's random source; a simulation
    /// derives it from its seed.
    pub fn new(addresses: Vec<IpAddr>, secret: [u8; 32]) -> Self {
        Endpoint {
            addresses,
            addresses_down: Vec::new(),
            secrets: Secrets::new(secret),
            slots: Vec::new(),
            free: Vec::new(),
            table: Demultiplexer::default(),
            tokens: BTreeMap::new(),
            listeners: BTreeMap::new(),
            dirty: VecDeque::new(),
            wake_ups: WakeUps::default(),
            replies: VecDeque::new(),
            half_open: 0,
            cookies_until: Instant::ZERO,
            waiting_joins: WaitingJoins::default(),
            fast_open: fast_open::FastOpenCache::default(),
            ports: Ports::default(),
            blackhole: blackhole::Blackhole::default(),
            events: VecDeque::new(),
            told: None,
            counters: Counters::default(),
            opened: 0,
        }
    }

    /// Choose the ports of further connections and subflows in this order.
    pub fn select_ports(&mut self, selection: PortSelection) {
        self.ports = Ports::new(selection);
    }

    /// Accept connections to `port` on any address.
    pub fn listen(&mut self, port: u16, config: ConnectionConfig) {
        self.listeners.insert(port, Arc::new(config));
    }

    /// Refuse new connections to `port`. Connections that were already accepted remain.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Add an address to the host, or restore one that was removed.
    ///
    /// Open connections can use it, unless
    /// [`local_addresses`](ConnectionConfig#structfield.local_addresses) excludes it. Their path
    /// managers are notified: of a new address by
    /// [`AddressAdded`](crate::path_manager::PathEvent::AddressAdded), and of an address that the
    /// connection had before by [`AddressChanged`](crate::path_manager::PathEvent::AddressChanged).
    /// `NDiffPorts` and `InitialOnly` ignore new addresses.
    pub fn add_address(&mut self, now: Instant, address: IpAddr) {
        if self.addresses.contains(&address) {
            return;
        }
        self.addresses.push(address);
        self.addresses_down.retain(|other| *other != address);
        for index in 0..self.slots.len() as u32 {
            if let Some(connection) = &mut self.slots[index as usize].connection {
                connection.add_address(now, address);
                self.touched(index);
            }
        }
    }

    /// Remove an address from the host. Its connections are notified as by
    /// [`handle_address_change`](Endpoint::handle_address_change). The host no longer accepts or
    /// opens connections and subflows at the address.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) {
        if self.addresses.contains(&address) {
            self.handle_address_change(now, address, false);
            self.addresses.retain(|other| *other != address);
            self.addresses_down.retain(|other| *other != address);
        }
    }

    /// The host's addresses, whether their interfaces are up or not.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Open a connection from address `local` to `remote`.
    ///
    /// # Errors
    /// [`ConnectError`] if `local` is not an address of this host, or belongs to another family
    /// than `remote`.
    pub fn connect(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: SocketAddress,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, ConnectError> {
        self.open(now, local, remote, config, None)
    }

    /// Open a connection as [`connect`](Endpoint::connect) does, with `data` as the first data of its
    /// stream. The SYN carries the first bytes of it if the host has a cookie of the peer, and asks for
    /// a cookie otherwise. If the peer does not take data in SYNs, or the path drops such SYNs, the
    /// data follows the handshake. RFC 7413.
    ///
    /// # Errors
    /// As [`connect`](Endpoint::connect).
    pub fn connect_with_data(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: SocketAddress,
        config: ConnectionConfig,
        data: impl Into<Bytes>,
    ) -> Result<ConnectionId, ConnectError> {
        let data = data.into();
        let in_syn = data.slice(..data.len().min(fast_open::MOST_DATA));
        let plan = self.fast_open.plan(now, local, remote.address, in_syn.into());
        let id = self.open(now, local, remote, config, plan)?;
        let connection = self.connection_mut(id).expect("just opened");
        connection.send(Piece::Shared(data)).expect("it is new, and not closed");
        Ok(id)
    }

    fn open(
        &mut self,
        now: Instant,
        local: IpAddr,
        remote: SocketAddress,
        config: ConnectionConfig,
        fast_open: Option<FastOpen>,
    ) -> Result<ConnectionId, ConnectError> {
        if !self.addresses.contains(&local) {
            return Err(ConnectError::UnknownLocalAddress);
        }
        if local.is_ipv4() != remote.address.is_ipv4() {
            return Err(ConnectError::MixedFamilies);
        }
        let port = self.free_port(local, remote).ok_or(ConnectError::InUse)?;
        self.counters.active_opens += 1;
        let wants_mptcp = config.protocol == Protocol::Mptcp;
        let is_disabled = wants_mptcp && self.blackhole.disables(now, config.platform.syn_fallback);
        self.counters.mp_capable_syn_tx += u64::from(wants_mptcp && !is_disabled);
        self.counters.mp_capable_syn_tx_disabled += u64::from(is_disabled);
        let index = self.add(Arc::new(config), Role::Initiator, local);
        let connection = self.slots[index as usize].connection.as_mut().expect("just added");
        if is_disabled {
            connection.fall_back();
        }
        connection.connect(now, SocketAddress::new(local, port), remote, fast_open);
        self.touched(index);
        Ok(self.id(index))
    }

    /// Process a segment that has arrived.
    pub fn handle_segment(&mut self, now: Instant, segment: impl Into<PooledSegment>) {
        self.process(now, segment.into());
    }

    fn process(&mut self, now: Instant, mut segment: PooledSegment) {
        self.counters.segments_in += 1;
        if !segment.checksum_ok {
            self.counters.checksum_errors += 1;
            return;
        }
        match self.table.find(&segment.destination, &segment.source) {
            Some(on @ SubflowIndex { connection: index, slot }) => {
                let connection =
                    self.slots[index as usize].connection.as_mut().expect("the table is current");
                if connection.is_about_another(slot, &segment) {
                    return self.refuse_earlier(now, on, &segment);
                }
                if segment.header.flags.contains(Flags::SYN) {
                    return self.handle_syn_of_known(now, on, segment);
                }
                connection.handle_segment(now, slot, &mut segment, &mut self.replies);
                self.touched(index);
            }
            None => self.handle_unknown(now, &segment),
        }
    }

    /// Handle a segment with SYN between the addresses of a subflow. It may open a new connection if the
    /// subflow is in TIME-WAIT. RFC 9293 §3.6.1 (MAY-2).
    #[inline(never)]
    fn handle_syn_of_known(&mut self, now: Instant, on: SubflowIndex, mut segment: PooledSegment) {
        let listener = self.listener_with_room(&segment);
        let connection = &mut self.slots[on.connection as usize].connection;
        let connection = connection.as_mut().expect("the table is current");
        if let Some(config) = listener
            && let Some(iss) = connection.give_way(now, on.slot, &segment)
        {
            self.touched(on.connection);
            return self.answer(now, &segment, config, Some(iss));
        }
        connection.handle_segment(now, on.slot, &mut segment, &mut self.replies);
        self.learn_from_answer(now, on, &segment);
        self.touched(on.connection);
    }

    /// A router reports that a segment was larger than the MTU of a link. The subflow sends smaller
    /// segments from now on, and retransmits data that was too large. Reports about segments that
    /// are not outstanding have no effect. RFC 1191, RFC 8201.
    pub fn handle_too_big(&mut self, message: &PacketTooBig) {
        let found = self.table.find(&message.quoted_source, &message.quoted_destination);
        let Some(SubflowIndex { connection: index, slot }) = found else { return };
        if let Some(connection) = &mut self.slots[index as usize].connection {
            connection.handle_too_big(slot, message.quoted_seq, message.mtu);
            self.touched(index);
        }
    }

    /// The interface with `address` went down or came up. The path managers of all connections are
    /// notified. The driver decides what happens to segments sent from the address in the meantime.
    pub fn handle_address_change(&mut self, now: Instant, address: IpAddr, usable: bool) {
        self.addresses_down.retain(|other| *other != address);
        if !usable {
            self.addresses_down.push(address);
        }
        for index in 0..self.slots.len() as u32 {
            if let Some(connection) = &mut self.slots[index as usize].connection {
                connection.handle_address_change(now, address, usable);
                self.touched(index);
            }
        }
    }

    /// The deadline of [`Endpoint::poll_timeout`] has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, index)) = self.wake_ups.pop_due(now) {
            let slot = &mut self.slots[index as usize];
            if slot.wake_up != at {
                continue;
            }
            slot.wake_up = Instant::FAR_FUTURE;
            let Some(connection) = &mut slot.connection else { continue };
            match connection.poll_timeout() {
                Some(deadline) if deadline <= now => {
                    connection.handle_timeout(now);
                    self.touched(index);
                }
                Some(deadline) => self.wake_ups.wake_by(deadline, index, &mut self.slots),
                None => {}
            }
        }
    }

    /// The next segment to send.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<PooledSegment> {
        if let Some(reply) = self.replies.pop_front() {
            self.counters.segments_out += 1;
            return Some(reply);
        }
        if self.dirty.is_empty() { None } else { self.poll_dirty(now) }
    }

    /// The next segment of the connections that may have something to send.
    fn poll_dirty(&mut self, now: Instant) -> Option<PooledSegment> {
        while let Some(&index) = self.dirty.front() {
            let had_requests = self.open_subflows(now, index);
            let mut connection = self.slots[index as usize].connection.as_mut();
            let segment = connection.as_mut().and_then(|c| c.poll_transmit(now, &mut self.replies));
            if let (Some(connection), Some(sent)) = (connection, &segment) {
                connection.count(sent);
                self.counters.segments_out += 1;
                if connection.is_settled() {
                    self.settle(index);
                }
                return segment;
            }
            let connection = &self.slots[index as usize].connection;
            if !had_requests && connection.as_ref().is_some_and(|c| c.has_requests()) {
                // A subflow has just ended, and the path manager wants another in its place.
                continue;
            }
            self.settle(index);
        }
        None
    }

    /// When to call [`Endpoint::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.wake_ups.next()
    }

    /// Returns `true` if there are events to poll.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event. Totals of a connection and of its subflows are available until the next call
    /// after its last event.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        if let Some(index) = self.told.take() {
            self.forget_if_gone(index);
        }
        let (id, event) = self.events.pop_front()?;
        self.slots[id.index as usize].on_event_polled();
        self.told = self.connection(id).map(|_| id.index);
        Some((id, event))
    }

    /// The next trace event of a connection that records them.
    pub fn poll_trace(&mut self, id: ConnectionId) -> Option<TraceEvent> {
        self.connection_mut(id)?.poll_trace()
    }

    /// Write data. Returns the number of bytes accepted. If it is smaller than the number offered,
    /// the send buffer is full, and [`Event::Writable`] follows when it has room again.
    ///
    /// # Errors
    /// [`SendError`] if the connection has ended or its sending direction is closed.
    pub fn send(&mut self, id: ConnectionId, data: impl Into<Bytes>) -> Result<usize, SendError> {
        self.write(id, Piece::Shared(data.into()))
    }

    /// Write `len` bytes of the test pattern from stream offset `offset`; see
    /// [`anabranch_wire::pattern`]. The pattern takes no memory, and its reader can verify it.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_pattern(
        &mut self,
        id: ConnectionId,
        offset: u64,
        len: u32,
    ) -> Result<usize, SendError> {
        self.write(id, Piece::pattern(offset, len))
    }

    fn write(&mut self, id: ConnectionId, piece: Piece) -> Result<usize, SendError> {
        let connection = self.connection_mut(id).ok_or(SendError::NotConnected)?;
        let accepted = connection.send(piece)?;
        self.touched(id.index);
        Ok(accepted)
    }

    /// Number of bytes that [`Endpoint::send`] would accept now. It may accept more if buffers are
    /// charged with memory ([`crate::platform::Buffers::Socket`]).
    pub fn send_buffer_space(&self, id: ConnectionId) -> u64 {
        self.connection(id).map_or(0, Connection::send_buffer_space)
    }

    /// Read the next in-order data, if there is any.
    pub fn recv(&mut self, id: ConnectionId) -> Option<Payload> {
        let payload = self.connection_mut(id)?.recv()?;
        self.touched(id.index);
        Some(payload)
    }

    /// Open all of the receive buffer of a connection with
    /// [`first_receive_buffer`](crate::config::ConnectionConfig::first_receive_buffer).
    pub fn open_receive_buffer(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection_mut(id) {
            connection.open_receive_buffer();
            self.touched(id.index);
        }
    }

    /// Returns `true` if the peer has closed its sending direction and the application has read
    /// everything.
    pub fn is_at_end(&self, id: ConnectionId) -> bool {
        self.connection(id).is_none_or(Connection::is_at_end)
    }

    /// Returns `true` if the peer's stream has arrived up to its end, and the application has read it or can
    /// read it. `false` once the host has forgotten the connection.
    pub fn has_received_all(&self, id: ConnectionId) -> bool {
        self.connection(id).is_some_and(Connection::has_received_all)
    }

    /// The local port of the subflow in the first slot. It is that of the connection until its first
    /// subflow ends.
    pub fn local_port(&self, id: ConnectionId) -> Option<u16> {
        self.connection(id)?.local_port()
    }

    /// Close the sending direction after all written data. A connection that the host has forgotten is
    /// closed already.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection_mut(id) {
            connection.close();
            self.touched(id.index);
        }
    }

    /// Give the connection up: the application will neither read nor write any more.
    ///
    /// Written data is still delivered, as by [`Endpoint::close`]. If received data was not read, or
    /// if more data arrives, the connection is reset as by [`Endpoint::abort`], so that the peer
    /// learns that its data was lost (RFC 9293 §3.6.1). This is what close(2) does.
    ///
    /// The connection also ends if the peer has acknowledged everything and keeps its own direction open
    /// for a minute, or keeps its window closed until window probes are as far apart as the longest
    /// retransmission timeout. Multipath TCP then sends MP_FASTCLOSE, and TCP sends nothing. Linux:
    /// `tcp_fin_timeout`, `tcp_probe_timer`.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection_mut(id) {
            connection.release();
            self.touched(id.index);
        }
    }

    /// Reset the connection, unless it has ended.
    pub fn abort(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection_mut(id) {
            connection.abort();
            self.touched(id.index);
        }
    }

    /// Totals of a connection until `now`; `None` once the host has forgotten it.
    pub fn connection_stats(&self, now: Instant, id: ConnectionId) -> Option<ConnectionStats> {
        Some(self.connection(id)?.stats(now))
    }

    /// Totals of a connection's subflows, by slot. Subflows that have ended are among them until others
    /// take their slots: see [`SubflowStats::is_open`].
    pub fn subflow_stats(&self, id: ConnectionId) -> impl Iterator<Item = SubflowStats> + '_ {
        self.connection(id).into_iter().flat_map(Connection::subflow_stats)
    }

    /// Data of a connection's stream that has arrived so far, with what still waits for earlier data;
    /// `None` once the host has forgotten the connection. The cost grows with the data that waits.
    pub fn arrived(&self, id: ConnectionId) -> Option<ArrivedData> {
        Some(self.connection(id)?.arrived())
    }

    /// Contents of a connection's buffers; `None` once the host has forgotten it. The cost grows with
    /// the data that waits.
    pub fn contents(&self, id: ConnectionId) -> Option<Contents> {
        Some(self.connection(id)?.contents())
    }

    /// Activity of each subflow of a connection, by slot: the reason why it sends nothing more. The
    /// answer is exact once [`poll_transmit`](Endpoint::poll_transmit) has returned `None`.
    pub fn activities(&self, id: ConnectionId) -> impl Iterator<Item = Reason> + '_ {
        self.connection(id).into_iter().flat_map(Connection::activities)
    }

    /// The connections that the host has not forgotten yet.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        (0..self.slots.len() as u32)
            .filter(|index| self.slots[*index as usize].connection.is_some())
            .map(|index| self.id(index))
    }

    /// The connection that has a subflow between a local and a remote address and port.
    pub fn connection_between(
        &mut self,
        local: SocketAddress,
        remote: SocketAddress,
    ) -> Option<ConnectionId> {
        let index = self.table.find(&local, &remote)?.connection;
        Some(self.id(index))
    }

    /// Release memory that queues no longer need. Call it from time to time on a host with many
    /// idle connections; its cost is proportional to their number.
    pub fn release_memory(&mut self) {
        let live = self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut());
        live.for_each(|connection| connection.release_memory());
        PooledSegment::release_memory();
        self.replies.shrink_to_fit();
        self.events.shrink_to_fit();
    }

    /// Number of occurrences of each event on this host.
    pub fn counters(&self) -> Counters {
        let live = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        let mut sum = self.counters;
        live.for_each(|connection| connection.add_to(&mut sum));
        sum.segments_out = sum.segments_out.saturating_sub(sum.retransmitted);
        sum
    }

    fn id(&self, index: u32) -> ConnectionId {
        ConnectionId { index, generation: self.slots[index as usize].generation }
    }

    fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize)?;
        slot.connection.as_deref_mut().filter(|_| slot.generation == id.generation)
    }

    #[inline]
    fn touched(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push_back(index);
        }
        if slot.has_output() {
            self.collect_output(index);
        }
    }

    /// Collect a connection's events for the application and its registrations with this endpoint.
    #[inline(never)]
    fn collect_output(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.half_open && !slot.connection.as_ref().is_some_and(|c| c.is_half_open()) {
            slot.half_open = false;
            self.half_open -= 1;
        }
        let Some(connection) = &mut slot.connection else { return };
        let before = self.events.len();
        while let Some(event) = connection.poll_event() {
            let id = ConnectionId { index, generation: slot.generation };
            self.events.push_back((id, event));
        }
        let registers = connection.has_registrations();
        slot.on_events(self.events.len() - before);
        if registers {
            self.register(index);
        }
    }

    /// The first of the dirty connections has nothing more to send for now.
    fn settle(&mut self, index: u32) {
        self.dirty.pop_front();
        let slot = &mut self.slots[index as usize];
        slot.dirty = false;
        if slot.has_output() {
            self.collect_output(index);
        }
        self.forget_if_gone(index);
        let slot = &mut self.slots[index as usize];
        let Some(connection) = &mut slot.connection else { return };
        // A deadline is seldom earlier than the next wake-up.
        let wake_up = slot.wake_up;
        let is_due = connection.has_earlier_deadline(wake_up) || wake_up == Instant::FAR_FUTURE;
        if is_due && let Some(deadline) = connection.poll_timeout() {
            self.wake_ups.wake_by(deadline, index, &mut self.slots);
        }
    }

    /// Forget a connection that has nothing left to do and whose events were polled.
    #[inline]
    fn forget_if_gone(&mut self, index: u32) {
        if self.slots[index as usize].has_ended() {
            self.forget_ended(index);
        }
    }

    #[cold]
    fn forget_ended(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(connection) = slot.connection.as_ref().filter(|c| c.is_gone()) else { return };
        let any_waits = || self.events.iter().any(|(of, _)| of.index == index);
        if self.told == Some(index) || slot.has_waiting_event().unwrap_or_else(any_waits) {
            return;
        }
        connection.add_to(&mut self.counters);
        self.tokens.remove(&connection.token());
        slot.forget();
        self.free.push(index);
    }

    fn register(&mut self, index: u32) {
        let Some(connection) = &mut self.slots[index as usize].connection else { return };
        while let Some(change) = connection.poll_registration() {
            let Registration { slot, local, remote, exists } = change;
            match exists {
                true => self.table.insert(local, remote, SubflowIndex { connection: index, slot }),
                false => self.table.remove(local, remote),
            }
        }
    }

    /// Open the subflows that the path manager requests; returns false if there are none.
    #[inline]
    fn open_subflows(&mut self, now: Instant, index: u32) -> bool {
        let connection = &self.slots[index as usize].connection;
        connection.as_ref().is_some_and(|c| c.has_path_work(now)) && self.open_wanted(now, index)
    }

    fn open_wanted(&mut self, now: Instant, index: u32) -> bool {
        let Some(connection) = &mut self.slots[index as usize].connection else { return false };
        connection.wake_path_manager(now);
        let any = connection.has_requests();
        if !any {
            return false;
        }
        for request in connection.take_requests() {
            let port = self.free_port(request.local.address, request.remote);
            let is_here = self.addresses.contains(&request.local.address);
            let Some(connection) = &mut self.slots[index as usize].connection else { return any };
            match port.filter(|_| is_here && connection.can_open(&request)) {
                Some(port) => {
                    self.counters.active_opens += 1;
                    self.counters.join_syn_tx += 1;
                    connection.join(now, &request, port);
                }
                None => connection.could_not_open(now, &request),
            }
            self.register(index);
        }
        any
    }

    /// A port that is not in use with `remote`.
    fn free_port(&mut self, local: IpAddr, remote: SocketAddress) -> Option<u16> {
        let is_free = |port| !self.table.contains(SocketAddress::new(local, port), remote);
        self.ports.choose(&mut self.secrets, local, remote, is_free)
    }

    /// Create a connection whose first subflow uses `local`.
    fn add(&mut self, config: Arc<ConnectionConfig>, role: Role, local: IpAddr) -> u32 {
        let mut secrets = self.secrets.for_connection(self.opened + 1);
        // RFC 8684 §3.1: the token of a new key must not be in use.
        let key = std::iter::repeat_with(|| secrets.draw("key"))
            .find(|key| !self.tokens.contains_key(&keys::token(*key)))
            .expect("an endless supply of keys");
        let connection = self.make(config, role, local, ConnectionSecrets { key, secrets });
        self.insert(connection)
    }

    fn make(
        &self,
        config: Arc<ConnectionConfig>,
        role: Role,
        local: IpAddr,
        own: ConnectionSecrets,
    ) -> Connection {
        let ConnectionSecrets { key, secrets } = own;
        Connection::new(NewConnection {
            role,
            key,
            secrets,
            addresses: self.addresses_from(local, &config),
            addresses_down: &self.addresses_down,
            config,
        })
    }

    fn insert(&mut self, connection: Connection) -> u32 {
        self.opened += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            self.slots.len() as u32 - 1
        });
        self.tokens.insert(connection.token(), index);
        self.slots[index as usize].connection = Some(Box::new(connection));
        index
    }

    /// This host's addresses, with identifier 0 for `first`. RFC 8684 §3.2, §3.4.1.
    fn addresses_from(&self, first: IpAddr, config: &ConnectionConfig) -> Vec<LocalAddress> {
        let usable = config.local_addresses.as_ref().unwrap_or(&self.addresses);
        let others =
            usable.iter().filter(|address| **address != first && self.addresses.contains(address));
        // RFC 8684 §3.4.1: an identifier has eight bits.
        (0..=u8::MAX)
            .zip(std::iter::once(&first).chain(others))
            .map(|(id, address)| LocalAddress { id, address: *address })
            .collect()
    }
}
