//! Two hosts in lockstep: every segment takes a fixed time, unless a test drops or changes the
//! segment.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of the harness")]

pub mod announcing;
pub mod middlebox;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::platform::Platform;
use anabranch_proto::{ConnectionId, Endpoint, Event};
use anabranch_wire::{Duration, Flags, Instant, Payload, Segment, SocketAddress};

pub const PORT: u16 = 80;

/// The network's treatment of a segment.
pub enum Fate {
    Deliver,
    Drop,
    /// The segment arrives later by this time.
    Delay(Duration),
    Twice,
    /// The segment arrives as two segments, with its payload cut at `at`. `options_on` states which
    /// of them keep the Multipath TCP options.
    Split {
        at: usize,
        options_on: [bool; 2],
    },
}

type Filter = Box<dyn FnMut(u64, &mut Segment) -> Fate>;

pub struct Pair {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    pub connection: ConnectionId,
    pub accepted: Option<ConnectionId>,
    /// The applications do not read.
    pub paused: bool,
    /// The data is not the pattern, so it is read without a check.
    pub unchecked: bool,
    /// Data that client and server have read, if it is kept.
    pub kept: Option<[Vec<u8>; 2]>,
    /// Bytes that client and server have read in order and checked against the pattern.
    pub received: [u64; 2],
    /// Bytes that client and server have accepted from their applications.
    pub written: [u64; 2],
    /// All segments sent so far, including dropped ones.
    pub log: Vec<Segment>,
    one_way: Duration,
    slower: BTreeMap<IpAddr, Duration>,
    filter: Filter,
    in_flight: BTreeMap<(Instant, u64), (bool, Segment)>,
    sent: u64,
}

pub fn client_address(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, n, 1).into()
}

pub fn server_address() -> IpAddr {
    Ipv4Addr::new(10, 9, 0, 1).into()
}

/// A switch: tests set the first handle, and filters read the second.
pub fn switch() -> (Rc<Cell<bool>>, Rc<Cell<bool>>) {
    let shared = Rc::new(Cell::new(false));
    (Rc::clone(&shared), shared)
}

thread_local! {
    static DEPENDS: Cell<bool> = const { Cell::new(false) };
}

/// Run this test on the default platform only. `on` states which property of the platform its
/// expectations depend on.
pub fn depends_on_the_platform(_on: &str) {
    DEPENDS.set(true);
}

/// Returns `true` if this run of the tests starts from the platform with this name.
pub fn tests_platform(name: &str) -> bool {
    std::env::var("ANABRANCH_TEST_HOST").is_ok_and(|named| named == name && !DEPENDS.get())
}

/// The configuration that a test starts from. `ANABRANCH_TEST_HOST` names its platform, unless the
/// test depends on the default one. `make test-platforms` runs the tests on each platform.
pub fn on_any_platform() -> ConnectionConfig {
    let named = std::env::var("ANABRANCH_TEST_HOST").ok().filter(|_| !DEPENDS.get());
    let platform = match named.as_deref() {
        None => Platform::default(),
        Some("linux-socket") => Platform::linux_socket(),
        Some("rfc") => Platform::rfc(),
        Some(other) => panic!("ANABRANCH_TEST_HOST: there is no platform {other}"),
    };
    // Tests depend on the size of buffers, which must not be tuned.
    ConnectionConfig::default().platform(platform).send_buffer(4 << 20).receive_buffer(6 << 20)
}

/// SYNs of an attempt to open a subflow, at most. Linux adds `tcp_syn_linear_timeouts`.
pub fn most_syns() -> usize {
    if tests_platform("linux-socket") { 11 } else { 7 }
}

pub fn both(config: ConnectionConfig, addresses: u8) -> Pair {
    Pair::new(addresses, config.clone(), config)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Pair {
    /// A client with `addresses` addresses opens a connection. It has not sent anything yet.
    pub fn new(addresses: u8, client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let local = (0..addresses).map(client_address).collect();
        Pair::of_addresses(local, vec![server_address()], client, server)
    }

    /// Two hosts with these addresses. The client opens the connection from its first address to
    /// the server's first.
    pub fn of_addresses(
        local: Vec<IpAddr>,
        remote: Vec<IpAddr>,
        client: ConnectionConfig,
        server: ConnectionConfig,
    ) -> Self {
        let (first, to) = (local[0], SocketAddress::new(remote[0], PORT));
        let mut client_host = Endpoint::new(local, [1; 32]);
        let mut server_host = Endpoint::new(remote, [2; 32]);
        server_host.listen(PORT, server);
        let connection =
            client_host.connect(Instant::ZERO, first, to, client).expect("the addresses are valid");
        Pair {
            now: Instant::ZERO,
            client: client_host,
            server: server_host,
            client_events: Vec::new(),
            server_events: Vec::new(),
            connection,
            accepted: None,
            paused: false,
            unchecked: false,
            kept: None,
            received: [0; 2],
            written: [0; 2],
            log: Vec::new(),
            one_way: ms(10),
            slower: BTreeMap::new(),
            filter: Box::new(|_, _| Fate::Deliver),
            in_flight: BTreeMap::new(),
            sent: 0,
        }
    }

    pub fn with_filter(mut self, filter: impl FnMut(u64, &mut Segment) -> Fate + 'static) -> Self {
        self.filter = Box::new(filter);
        self
    }

    /// Segments from or to client address `n` take longer by `extra`.
    pub fn with_slow_path(mut self, n: u8, extra: Duration) -> Self {
        self.slower.insert(client_address(n), extra);
        self
    }

    /// Run for `for_ms` milliseconds.
    pub fn run_ms(&mut self, for_ms: u64) {
        let end = self.now + ms(for_ms);
        self.drain();
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.deliver_due();
            if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
                self.client.handle_timeout(self.now);
            }
            if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
                self.server.handle_timeout(self.now);
            }
            self.drain();
        }
        self.now = end;
    }

    /// Run for `for_ms` milliseconds, in which the hosts open all subflows. A keep-alive probe of
    /// the client (RFC 9293 §3.8.4) makes the server answer with the first data sequence signal.
    pub fn settle(&mut self, for_ms: u64) {
        let end = self.now + ms(for_ms);
        while !self.server_events.contains(&Event::Accepted) {
            self.run_ms(1);
        }
        let mut probe = self.last(|segment| to_server(segment) && !is_syn(segment));
        probe.header.seq = probe.header.seq + u32::MAX;
        probe.payload = Payload::EMPTY;
        self.server.handle_segment(self.now, probe);
        self.run_ms(end.saturating_since(self.now).as_millis());
    }

    /// Run while the client writes `bytes` of the pattern, as fast as its buffer allows, until all
    /// have arrived or `limit_ms` has passed.
    pub fn upload(&mut self, bytes: u64, limit_ms: u64) {
        self.transfer(0, bytes, limit_ms);
    }

    /// Like `upload`, but the server writes.
    pub fn download(&mut self, bytes: u64, limit_ms: u64) {
        self.transfer(1, bytes, limit_ms);
    }

    fn transfer(&mut self, side: usize, bytes: u64, limit_ms: u64) {
        let target = self.written[side] + bytes;
        let end = self.now + ms(limit_ms);
        while self.now < end && self.received[1 - side] < target {
            self.write(side, target);
            self.run_ms(1);
        }
    }

    pub fn write(&mut self, side: usize, target: u64) {
        let id = if side == 0 { Some(self.connection) } else { self.accepted };
        let (Some(id), left) = (id, target - self.written[side]) else { return };
        let host = if side == 0 { &mut self.client } else { &mut self.server };
        if left > 0
            && let Ok(accepted) =
                host.send_pattern(id, self.written[side], left.min(1 << 20) as u32)
        {
            self.written[side] += accepted as u64;
        }
        self.drain();
    }

    /// The applications start to read again.
    pub fn resume(&mut self) {
        self.paused = false;
        self.read(0, self.connection);
        if let Some(accepted) = self.accepted {
            self.read(1, accepted);
        }
        self.drain();
    }

    fn read(&mut self, side: usize, id: ConnectionId) {
        let host = if side == 0 { &mut self.client } else { &mut self.server };
        let received = &mut self.received[side];
        while let Some(payload) = host.recv(id) {
            let right = self.unchecked || payload.matches_pattern(*received);
            assert!(right, "corrupt data at offset {received}");
            *received += payload.len() as u64;
            if let Some(kept) = &mut self.kept {
                payload.for_each_slice(|bytes| kept[side].extend_from_slice(bytes));
            }
        }
    }

    /// The last segment that satisfies `wanted`.
    pub fn last(&self, wanted: impl Fn(&Segment) -> bool) -> Segment {
        self.log.iter().rfind(|segment| wanted(segment)).expect("there is one").clone()
    }

    pub fn close_both(&mut self) {
        self.client.close(self.connection);
        if let Some(accepted) = self.accepted {
            self.server.close(accepted);
        }
        self.drain();
    }

    pub fn segments(&self, wanted: impl Fn(&Segment) -> bool) -> usize {
        self.log.iter().filter(|segment| wanted(segment)).count()
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        [arrival, self.client.poll_timeout(), self.server.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(self.now))
    }

    fn deliver_due(&mut self) {
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (to_server, segment) = entry.remove();
            if to_server {
                self.server.handle_segment(self.now, segment);
            } else {
                self.client.handle_segment(self.now, segment);
            }
            self.drain();
        }
    }

    /// Collect events and segments from both hosts until there are no more.
    pub fn drain(&mut self) {
        loop {
            self.take_events();
            let mut idle = true;
            while let Some(segment) = self.client.poll_transmit(self.now) {
                self.launch(true, segment.into_inner());
                idle = false;
            }
            while let Some(segment) = self.server.poll_transmit(self.now) {
                self.launch(false, segment.into_inner());
                idle = false;
            }
            if idle {
                break;
            }
        }
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.client.poll_event() {
            let is_readable = event == Event::Readable;
            self.client_events.push(event);
            if is_readable && !self.paused {
                self.read(0, id);
            }
        }
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Accepted {
                self.accepted = Some(id);
            }
            let is_readable = event == Event::Readable;
            self.server_events.push(event);
            if is_readable && !self.paused {
                self.read(1, id);
            }
        }
    }

    fn launch(&mut self, to_server: bool, mut segment: Segment) {
        self.log.push(segment.clone());
        assert!(self.log.len() < 1_000_000, "a storm of segments");
        let number = self.sent;
        self.sent += 1;
        let far = if to_server { segment.source } else { segment.destination };
        let extra = self.slower.get(&far.address).copied().unwrap_or(Duration::ZERO);
        let arrival = self.now + self.one_way + extra;
        match (self.filter)(number, &mut segment) {
            Fate::Drop => {}
            Fate::Deliver => {
                self.in_flight.insert((arrival, 2 * number), (to_server, segment));
            }
            Fate::Delay(by) => {
                self.in_flight.insert((arrival + by, 2 * number), (to_server, segment));
            }
            Fate::Twice => {
                self.in_flight.insert((arrival, 2 * number), (to_server, segment.clone()));
                self.in_flight.insert((arrival, 2 * number + 1), (to_server, segment));
            }
            Fate::Split { at, options_on } => {
                let parts = split(segment, at, options_on);
                for (part, n) in parts.into_iter().zip(0..) {
                    self.in_flight.insert((arrival, 2 * number + n), (to_server, part));
                }
            }
        }
    }
}

fn split(segment: Segment, at: usize, options_on: [bool; 2]) -> [Segment; 2] {
    let at = at.min(segment.payload.len());
    let mut parts = [segment.clone(), segment];
    parts[0].payload = parts[0].payload.slice(0, at);
    parts[0].header.flags = Flags::ACK;
    parts[1].payload = parts[1].payload.slice(at, parts[1].payload.len());
    parts[1].header.seq = parts[1].header.seq + at as u32;
    for (part, keeps) in parts.iter_mut().zip(options_on) {
        if !keeps {
            strip(part);
        }
    }
    parts
}

/// Remove all Multipath TCP options from a segment.
pub fn strip(segment: &mut Segment) {
    segment.options.dss = None;
    segment.options.control = None;
}

/// Returns `true` if the segment was sent from or to client address `n`.
pub fn is_on(segment: &Segment, n: u8) -> bool {
    [segment.source.address, segment.destination.address].contains(&client_address(n))
}

pub fn to_server(segment: &Segment) -> bool {
    segment.destination.address == server_address()
}

pub fn is_syn(segment: &Segment) -> bool {
    segment.header.flags.contains(Flags::SYN)
}

pub fn is_rst(segment: &Segment) -> bool {
    segment.header.flags.contains(Flags::RST)
}
