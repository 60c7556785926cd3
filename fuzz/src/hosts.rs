//! Fuzzes hosts with a hostile peer or a hostile network.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::platform::Platform;
use anabranch_proto::{ConnectionId, Endpoint, Event};
use anabranch_wire::{
    Duration, Flags, Instant, Payload, Piece, PooledSegment, SeqNumber, SocketAddress, TcpOptions,
};
use arbitrary::Arbitrary;

const PORT: u16 = 80;
/// Addresses of the client and of the server.
const CLIENT: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 1]];
const SERVER: [u8; 4] = [10, 9, 0, 1];
/// Bytes of a request that a SYN carries: fewer than the most that a SYN can carry.
const REQUEST: u32 = 300;
/// More segments than any single call may produce.
const STORM: usize = 20_000;

/// An event for the two hosts. `segment` numbers the segments in flight, from the oldest, modulo
/// their number.
#[derive(Arbitrary, Clone, Debug)]
pub enum Operation {
    /// Segments arrive, oldest first.
    Deliver(u8),
    /// A segment arrives out of order.
    Overtake(u8),
    /// A segment is lost.
    Lose(u8),
    /// A segment is duplicated: it arrives now and again later.
    Repeat(u8),
    /// A segment of the client arrives with modified header fields, as from an attacker.
    Shift {
        /// Number of the segment.
        segment: u8,
        /// Added to the sequence number.
        seq: i16,
        /// Added to the acknowledgement number.
        ack: i16,
        /// The flags of the header.
        flags: u8,
        /// The window.
        window: u16,
    },
    /// A segment of the client arrives with these options.
    Options {
        /// Number of the segment.
        segment: u8,
        /// Raw bytes of the options.
        bytes: [u8; 28],
        /// Number of bytes that are used.
        len: u8,
    },
    /// A segment of the client arrives with a payload of this length.
    Resize {
        /// Number of the segment.
        segment: u8,
        /// Length in bytes.
        bytes: u16,
    },
    /// Time passes: two to this power, in milliseconds.
    Wait(u8),
    /// An application writes.
    Write {
        /// `true` for the server's application.
        server: bool,
        /// Bytes.
        bytes: u16,
    },
    /// An application closes its direction.
    Close {
        /// `true` for the server's application.
        server: bool,
    },
    /// An application resets the connection.
    Abort {
        /// `true` for the server's application.
        server: bool,
    },
    /// An interface of the client goes down or comes up.
    Interface {
        /// `true` for the second interface.
        second: bool,
        /// `true` if it comes up.
        up: bool,
    },
    /// TCP options that both hosts use. It has an effect only as the first operation. As the second
    /// one, `sack` stands for TCP Fast Open: the client has a cookie, and its SYN has data.
    Use {
        /// `true` if the hosts use SACK.
        sack: bool,
        /// `true` if the hosts use timestamps.
        timestamps: bool,
    },
    /// An acknowledgement arrives that has the numbers of a segment, but no Multipath TCP options.
    Bare {
        /// Number of the segment.
        segment: u8,
        /// Bit 0: the segment itself arrives first. Bit 1: the acknowledgement repeats the FIN. Bit
        /// 2: it has half of the window, so the segment becomes a window update.
        form: u8,
    },
    /// A segment arrives with a window of at most this size.
    Shrink {
        /// Number of the segment.
        segment: u8,
        /// The window field of the header.
        window: u16,
    },
    /// The next segments of a host have zero windows.
    Shut {
        /// `true` for the server.
        server: bool,
        /// Number of segments.
        segments: u8,
    },
}

/// Two hosts and the segments in flight between them.
struct Hosts {
    now: Instant,
    /// Client and server.
    hosts: [Endpoint; 2],
    connections: [Option<ConnectionId>; 2],
    /// The server's connection before this one.
    earlier: Option<ConnectionId>,
    /// The client has an answer to its SYN.
    connected: bool,
    /// Segments in flight, with the number of the destination host.
    in_flight: VecDeque<(usize, PooledSegment)>,
    written: [u64; 2],
    received: [u64; 2],
    /// `true` if data to this host was tampered with. The data that arrives may then differ.
    tampered: [bool; 2],
    /// Number of next segments of each host that get zero windows.
    shut: [u8; 2],
    /// Event with which the connection ended at client and server.
    ended: [Option<Event>; 2],
    /// An operation other than loss, reordering and repetition has happened, so the connection may fail.
    disturbed: bool,
    /// All segments so far, with their times and senders.
    sent: DefaultHasher,
}

impl Hosts {
    fn new(config: &ConnectionConfig) -> Self {
        let mut server = Endpoint::new(vec![SERVER.into()], [2; 32]);
        server.listen(PORT, config.clone());
        let mut hosts = Hosts {
            now: Instant::ZERO,
            hosts: [client(), server],
            connections: [None; 2],
            earlier: None,
            connected: false,
            in_flight: VecDeque::new(),
            written: [0; 2],
            received: [0; 2],
            tampered: [false; 2],
            shut: [0; 2],
            ended: [const { None }; 2],
            disturbed: false,
            sent: DefaultHasher::new(),
        };
        if config.tcp.fast_open {
            // The first connection brings the cookie, and its data follows the handshake.
            hosts.connect_with_data(config);
            hosts.end_in_order();
            hosts.wait(300_000);
            hosts.connect_with_data(config);
        } else {
            hosts.connect(config);
        }
        hosts
    }

    /// The client opens a connection.
    fn connect(&mut self, config: &ConnectionConfig) {
        let to = SocketAddress::new(SERVER.into(), PORT);
        let id = self.hosts[0].connect(self.now, CLIENT[0].into(), to, config.clone());
        self.begin(id.ok());
        self.drain();
    }

    /// The client has opened this connection.
    fn begin(&mut self, id: Option<ConnectionId>) {
        self.earlier = self.connections[1];
        (self.connections, self.connected) = ([id, None], false);
        (self.written, self.received, self.ended) = ([0; 2], [0; 2], [const { None }; 2]);
    }

    /// The client restarts, and opens a connection from the port of the last one. The server may still be
    /// in TIME-WAIT, and segments of the last connection may still be in flight. RFC 9293 §3.6.1.
    fn use_the_port_again(&mut self, config: &ConnectionConfig) {
        self.hosts[0] = client();
        self.connect(config);
        self.write(0, 5_000);
        self.drain();
    }

    /// The client opens a connection whose first data is in its SYN, if the client has a cookie.
    fn connect_with_data(&mut self, config: &ConnectionConfig) {
        let mut data = Vec::new();
        let pattern = Payload::from(Piece::pattern(0, REQUEST));
        pattern.for_each_slice(|slice| data.extend_from_slice(slice));
        let (from, to) = (CLIENT[0].into(), SocketAddress::new(SERVER.into(), PORT));
        let id = self.hosts[0].connect_with_data(self.now, from, to, config.clone(), data);
        self.begin(id.ok());
        self.written[0] = REQUEST.into();
        self.drain();
    }

    /// Take all output from both hosts.
    fn drain(&mut self) {
        for side in 0..2 {
            let mut sent = 0;
            loop {
                let mut idle = true;
                while let Some(mut segment) = self.hosts[side].poll_transmit(self.now) {
                    sent += 1;
                    assert!(sent < STORM, "a storm of segments");
                    idle = false;
                    let mut bytes = Vec::new();
                    segment
                        .emit(&mut bytes)
                        .expect("a host sends only segments that can be serialised");
                    (self.now.as_nanos(), side, bytes).hash(&mut self.sent);
                    if let Some(left) = self.shut[side].checked_sub(1) {
                        (self.shut[side], segment.header.window) = (left, 0);
                    }
                    self.in_flight.push_back((1 - side, segment));
                }
                while let Some((id, event)) = self.hosts[side].poll_event() {
                    idle = false;
                    if side == 1 && self.earlier == Some(id) {
                        continue;
                    }
                    self.connections[side].get_or_insert(id);
                    self.connected |= side == 0 && event == Event::Connected;
                    if matches!(event, Event::Closed | Event::Failed(_)) {
                        self.ended[side].get_or_insert(event);
                    }
                    self.read(side, id);
                }
                if idle {
                    break;
                }
            }
        }
        // The network drops segments beyond this number, because a larger backlog only slows down
        // the fuzzer.
        while self.in_flight.len() > 4_096 {
            self.in_flight.pop_front();
        }
    }

    fn read(&mut self, side: usize, id: ConnectionId) {
        if self.connections[side] != Some(id) {
            // A retransmitted SYN opened another connection after the first one was reset.
            while self.hosts[side].recv(id).is_some() {}
            return;
        }
        while let Some(payload) = self.hosts[side].recv(id) {
            let right = payload.matches_pattern(self.received[side]);
            assert!(right || self.tampered[side], "corrupt data");
            self.received[side] += payload.len() as u64;
        }
        if self.tampered == [false; 2] {
            assert!(self.received[side] <= self.written[1 - side], "more than was written");
        }
    }

    fn arrive(&mut self, to: usize, segment: PooledSegment) {
        self.hosts[to].handle_segment(self.now, segment);
        self.drain();
    }

    fn take(&mut self, number: u8) -> Option<(usize, PooledSegment)> {
        let index = usize::from(number).checked_rem(self.in_flight.len())?;
        self.in_flight.remove(index)
    }

    /// A segment of the client to tamper with, selected by number modulo their count.
    fn take_from_client(&mut self, number: u8) -> Option<PooledSegment> {
        let from_client: Vec<usize> =
            (0..self.in_flight.len()).filter(|index| self.in_flight[*index].0 == 1).collect();
        let index = from_client[usize::from(number).checked_rem(from_client.len())?];
        self.tampered[1] = true;
        self.in_flight.remove(index).map(|(_, segment)| segment)
    }

    /// An acknowledgement without Multipath TCP options arrives, as any host could send it.
    fn accompany(&mut self, number: u8, form: u8) {
        let Some(index) = usize::from(number).checked_rem(self.in_flight.len()) else { return };
        let (to, original) = self.in_flight[index].clone();
        let flags = original.header.flags;
        if !flags.contains(Flags::ACK) || flags.intersects(Flags::SYN | Flags::RST) {
            return;
        }
        let mut bare = original.clone();
        bare.payload = Payload::EMPTY;
        let TcpOptions { timestamps, sack, .. } = original.options;
        bare.options = TcpOptions { timestamps, sack, ..TcpOptions::default() };
        bare.header.flags = Flags::ACK;
        if form & 4 != 0 {
            bare.header.window /= 2;
        }
        // RFC 8684 §§3.1, 3.2, 3.7: keys, a MAC or an infinite mapping must not be omitted, so the
        // segment itself arrives first.
        let mapping = original.options.dss.and_then(|dss| dss.mapping);
        let in_time = original.options.control.is_some() || mapping.is_some_and(|m| m.len == 0);
        let fin = flags.contains(Flags::FIN);
        if form & 1 != 0 || in_time {
            let counted = original.payload.len() as u32 + u32::from(fin);
            bare.header.seq = original.header.seq + counted;
            self.in_flight.remove(index);
            self.arrive(to, original);
        } else if form & 2 != 0 && fin && original.payload.is_empty() {
            bare.header.flags = Flags::ACK | Flags::FIN;
        }
        self.arrive(to, bare);
    }

    fn wait(&mut self, milliseconds: u64) {
        let until = self.now + Duration::from_millis(milliseconds);
        for _ in 0..STORM {
            let next = self.hosts.iter().filter_map(Endpoint::poll_timeout).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            for side in 0..2 {
                self.hosts[side].handle_timeout(self.now);
            }
            self.drain();
        }
        panic!("timers fire endlessly");
    }

    /// Both hosts know the connection. With data in a SYN, the server accepts it before the client has
    /// an answer.
    fn is_open(&self) -> bool {
        self.connections[1].is_some() && self.connected
    }

    fn carry_out(&mut self, operation: &Operation) {
        use Operation::{Deliver, Lose, Overtake, Repeat, Use, Wait, Write};
        // In a second no host gives up, and the first SYNs have not been repeated without options.
        let harmless = matches!(operation, Deliver(_) | Lose(_) | Overtake(_) | Repeat(_))
            || matches!(operation, Use { .. } | Write { .. })
            // RFC 9293 §3.10.4: closing before the connection is open discards the written data.
            || matches!(operation, Operation::Close { .. } if self.is_open())
            || matches!(operation, Wait(exponent) if exponent % 20 < 8);
        self.disturbed |= !harmless;
        match *operation {
            Operation::Deliver(count) => {
                for _ in 0..=count {
                    let Some((to, segment)) = self.in_flight.pop_front() else { break };
                    self.arrive(to, segment);
                }
            }
            Operation::Overtake(number) => {
                if let Some((to, segment)) = self.take(number) {
                    self.arrive(to, segment);
                }
            }
            Operation::Lose(number) => drop(self.take(number)),
            Operation::Repeat(number) => {
                if let Some((to, segment)) = self.take(number) {
                    self.in_flight.push_back((to, segment.clone()));
                    self.arrive(to, segment);
                }
            }
            Operation::Shift { segment, seq, ack, flags, window } => {
                if let Some(mut segment) = self.take_from_client(segment) {
                    let header = &mut segment.header;
                    header.seq = SeqNumber(header.seq.0.wrapping_add_signed(seq.into()));
                    header.ack = SeqNumber(header.ack.0.wrapping_add_signed(ack.into()));
                    header.flags = Flags(flags);
                    header.window = window;
                    self.arrive(1, segment);
                }
            }
            Operation::Options { segment, bytes, len } => {
                let bytes = &bytes[..usize::from(len) % (bytes.len() + 1)];
                if let Ok(options) = TcpOptions::parse(bytes)
                    && let Some(mut segment) = self.take_from_client(segment)
                {
                    segment.options = options;
                    self.arrive(1, segment);
                }
            }
            Operation::Resize { segment, bytes } => {
                if let Some(mut segment) = self.take_from_client(segment) {
                    segment.payload = Payload::from(Piece::pattern(0, u32::from(bytes)));
                    self.arrive(1, segment);
                }
            }
            Operation::Wait(exponent) => self.wait(1 << (exponent % 20)),
            Operation::Write { server, bytes } => self.write(usize::from(server), bytes),
            Operation::Close { server } => {
                let side = usize::from(server);
                if let Some(id) = self.connections[side] {
                    self.hosts[side].close(id);
                }
            }
            Operation::Abort { server } => {
                let side = usize::from(server);
                if let Some(id) = self.connections[side] {
                    self.hosts[side].abort(id);
                }
            }
            Operation::Interface { second, up } => {
                let address = CLIENT[usize::from(second)];
                self.hosts[0].handle_address_change(self.now, address.into(), up);
            }
            Operation::Use { .. } => {}
            Operation::Bare { segment, form } => self.accompany(segment, form),
            Operation::Shrink { segment, window } => {
                if let Some((to, mut segment)) = self.take(segment) {
                    segment.header.window = segment.header.window.min(window);
                    self.arrive(to, segment);
                }
            }
            Operation::Shut { server, segments } => self.shut[usize::from(server)] = segments,
        }
        self.drain();
    }

    /// Let both applications close, and the network deliver everything from now on. A connection that
    /// nothing has disturbed ends in order at both hosts, after all data. RFC 9293 §3.6, RFC 8684
    /// §3.3.3.
    fn end_in_order(&mut self) {
        for _ in 0..400 {
            if let [Some(client), Some(server)] = self.connections
                && self.is_open()
            {
                self.hosts[0].close(client);
                self.hosts[1].close(server);
            }
            self.drain();
            while let Some((to, segment)) = self.in_flight.pop_front() {
                self.arrive(to, segment);
            }
            let are_over = self.ended.iter().all(Option::is_some);
            self.wait(500);
            if are_over {
                break;
            }
        }
        assert_eq!(
            self.ended,
            [const { Some(Event::Closed) }; 2],
            "an undisturbed connection fails"
        );
        assert_eq!(self.received, [self.written[1], self.written[0]], "data is missing");
    }

    /// A host that has data, window and a subflow with room for it sends the data, or a timer runs.
    fn check_progress(&self) {
        for host in &self.hosts {
            let idle = |id: &ConnectionId| {
                let stats = host.connection_stats(self.now, *id);
                stats.is_some_and(|it| it.unsent_bytes > 0 && it.available_window > 0)
                    && host.subflow_stats(*id).any(|subflow| subflow.view.can_send())
            };
            if host.poll_timeout().is_none() {
                assert_eq!(host.connections().find(idle), None, "data waits, and no timer runs");
            }
        }
    }

    /// The application of one host releases its connections, and the network delivers everything from now
    /// on. The other application does nothing. The host forgets the connections in the end.
    fn forget(&mut self, side: usize) {
        for _ in 0..500 {
            let ids: Vec<ConnectionId> = self.hosts[side].connections().collect();
            ids.into_iter().for_each(|id| self.hosts[side].release(id));
            self.drain();
            while let Some((to, segment)) = self.in_flight.pop_front() {
                self.arrive(to, segment);
            }
            self.wait(10_000);
        }
        assert_eq!(self.hosts[side].connections().count(), 0, "a released connection stays");
    }

    fn outcome(&self) -> Outcome {
        (self.sent.finish(), self.written, self.received, self.ended.clone())
    }

    fn write(&mut self, side: usize, bytes: u16) {
        let Some(id) = self.connections[side] else { return };
        let sent = self.hosts[side].send_pattern(id, self.written[side], bytes.into());
        if let Ok(accepted) = sent {
            self.written[side] += accepted as u64;
        }
    }
}

/// The client. It draws the same ports and keys each time.
fn client() -> Endpoint {
    Endpoint::new(CLIENT.map(IpAddr::from).to_vec(), [1; 32])
}

/// A configuration with small buffers, so their limits are reached, on one of the platforms.
fn config(dss_checksum: bool, platform: usize) -> ConnectionConfig {
    let platforms = [Platform::linux(), Platform::linux_socket(), Platform::rfc()];
    ConnectionConfig::default()
        .platform(platforms[platform % platforms.len()])
        .send_buffer(100_000)
        .receive_buffer(50_000)
        .dss_checksum(dss_checksum)
}

/// Outcome of a run: a hash of all segments, bytes written and received at each host, and final events.
type Outcome = (u64, [u64; 2], [u64; 2], [Option<Event>; 2]);

/// Run hosts with this configuration. One input of four runs again without header prediction, which
/// only skips steps without an effect: the outcome must be the same.
fn compared(input: usize, config: ConnectionConfig, run: impl Fn(&ConnectionConfig) -> Outcome) {
    let outcome = run(&config);
    if input.is_multiple_of(4) {
        assert_eq!(
            run(&config.header_prediction(false)),
            outcome,
            "header prediction has an effect"
        );
    }
}

/// Two hosts, of which the client's segments may come from an attacker. Nothing panics or runs
/// forever. Data from the server arrives at the client unchanged.
pub fn peers(operations: &[Operation]) {
    let mut config = config(operations.len() % 2 == 1, operations.len() / 2);
    if let Some(Operation::Use { sack, timestamps }) = operations.first() {
        (config.tcp.sack, config.tcp.timestamps) = (*sack, *timestamps);
    }
    config.tcp.fast_open = matches!(operations.get(1), Some(Operation::Use { sack: true, .. }));
    compared(operations.len() / 6, config, |config| {
        let mut hosts = Hosts::new(config);
        for operation in operations.iter().take(2_000) {
            hosts.carry_out(operation);
        }
        if !hosts.disturbed && operations.len() < 100 {
            hosts.end_in_order();
            // With TCP Fast Open, the ended connection was the client's second one, and had the second port.
            if !config.tcp.fast_open {
                hosts.use_the_port_again(config);
                hosts.end_in_order();
            }
        }
        hosts.wait(200_000);
        hosts.check_progress();
        // Other properties than those that select the configuration.
        let number_of = |is: fn(&Operation) -> bool| operations.iter().filter(|it| is(it)).count();
        if number_of(|it| matches!(it, Operation::Write { .. })).is_multiple_of(3) {
            hosts.forget(number_of(|it| matches!(it, Operation::Deliver(_))) % 2);
        }
        hosts.outcome()
    });
}

/// One host with a connection that receives arbitrary segments. Each segment is described by six
/// bytes (a header relative to what the host expects, a payload length and a pause), followed by
/// options. The total length selects the configuration and the host.
pub fn endpoint(bytes: &[u8]) {
    let len = bytes.len();
    let mut config = config(len % 2 == 1, len / 64);
    // One eighth each: without SACK, without timestamps, and without both.
    config.tcp.sack = !matches!(len / 2 % 8, 5 | 7);
    config.tcp.timestamps = !matches!(len / 2 % 8, 6 | 7);
    compared(len / 3, config, |config| receive(bytes, config));
}

/// The run of [`endpoint`] with a configuration.
fn receive(bytes: &[u8], config: &ConnectionConfig) -> Outcome {
    let len = bytes.len();
    // In one fifth of the cases, the host is the client. In one fourth, its first data with
    // MP_CAPABLE is still in flight.
    let host = usize::from(len % 5 != 4);
    let mut hosts = Hosts::new(config);
    if len / 16 % 4 == 3 {
        hosts.write(0, 3_000);
        hosts.carry_out(&Operation::Deliver(1));
        if host == 0 {
            // The server's first segment after its SYN/ACK is the template.
            hosts.carry_out(&Operation::Overtake(0));
        }
    } else {
        for _ in 0..8 {
            hosts.carry_out(&Operation::Deliver(9));
        }
        hosts.write(1, 20_000);
        hosts.write(0, 3_000);
    }
    hosts.drain();
    let Some((_, model)) = hosts.in_flight.iter().rev().find(|(to, _)| *to == host).cloned() else {
        return hosts.outcome();
    };
    hosts.tampered[host] = true;
    let mut rest = bytes;
    for _ in 0..500 {
        let Some((head, tail)) = rest.split_first_chunk::<6>() else { break };
        let [seq, ack, flags, window, len, wait] = *head;
        let (options, tail) = tail.split_at(tail.len().min(usize::from(len % 41)));
        rest = tail;
        let mut segment = model.clone();
        let step = |n: u8| i32::from(n as i8) * [1, 1, 536, 65_537][usize::from(n) % 4];
        let header = &mut segment.header;
        header.seq = SeqNumber(header.seq.0.wrapping_add_signed(step(seq)));
        header.ack = SeqNumber(header.ack.0.wrapping_add_signed(step(ack)));
        header.flags = Flags(flags);
        header.window = u16::from(window) << (window % 9);
        if let Ok(options) = TcpOptions::parse(options) {
            segment.options = options;
        }
        segment.payload = Payload::from(Piece::pattern(0, u32::from(len) * 6));
        hosts.arrive(host, segment);
        if wait & 1 == 1 {
            hosts.wait(1 << (wait % 18));
        }
    }
    hosts.check_progress();
    if len.is_multiple_of(3) {
        hosts.forget(host);
    }
    hosts.outcome()
}
