//! Hosts whose peer, or whose network, does what it likes.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::platform::{Buffers, Platform};
use anabranch_proto::{ConnectionId, Endpoint};
use anabranch_wire::{
    Duration, Flags, Instant, Payload, Piece, Segment, SeqNumber, SocketAddress, TcpOptions,
};
use arbitrary::Arbitrary;

const PORT: u16 = 80;
/// More segments than any one call may bring about.
const STORM: usize = 20_000;

/// What happens next to two hosts. Segments under way are numbered from the oldest, modulo their
/// number.
#[derive(Arbitrary, Clone, Debug)]
pub enum Operation {
    /// Segments arrive, the oldest first.
    Deliver(u8),
    /// One arrives before its turn.
    Overtake(u8),
    /// One is lost.
    Lose(u8),
    /// One arrives, and will arrive again.
    Repeat(u8),
    /// The client is not who it should be: one of its segments arrives with other numbers.
    Shift {
        /// Which.
        segment: u8,
        /// Added to the sequence number.
        seq: i16,
        /// Added to the acknowledgement.
        ack: i16,
        /// The flags, as in the header.
        flags: u8,
        /// The window.
        window: u16,
    },
    /// One of the client's segments arrives with these options.
    Options {
        /// Which.
        segment: u8,
        /// Bytes of the options.
        bytes: [u8; 28],
        /// How many of these.
        len: u8,
    },
    /// One of the client's segments arrives with so much payload.
    Resize {
        /// Which.
        segment: u8,
        /// Bytes.
        bytes: u16,
    },
    /// Time passes: milliseconds, to the power of two.
    Wait(u8),
    /// An application writes.
    Write {
        /// The server's?
        server: bool,
        /// Bytes.
        bytes: u16,
    },
    /// An application closes its direction.
    Close {
        /// The server's?
        server: bool,
    },
    /// An application resets the connection.
    Abort {
        /// The server's?
        server: bool,
    },
    /// An interface of the client goes down or comes up.
    Interface {
        /// The second one?
        second: bool,
        /// Is it up?
        up: bool,
    },
    /// What both hosts use of TCP's options, as the first of all operations; nothing later on.
    Use {
        /// Selective acknowledgements?
        sack: bool,
        /// Timestamps?
        timestamps: bool,
    },
    /// An acknowledgement arrives that says what a segment says, without options of Multipath TCP.
    Bare {
        /// Of which segment.
        segment: u8,
        /// Bit 0: the segment arrives first. Bit 1: the FIN is said too. Bit 2: of half the window,
        /// so that the segment is a window update.
        form: u8,
    },
    /// A segment arrives with a window that is no larger than this.
    Shrink {
        /// Which.
        segment: u8,
        /// The window, as in the header.
        window: u16,
    },
    /// The next segments that a host sends have windows of zero.
    Shut {
        /// The server's?
        server: bool,
        /// How many.
        segments: u8,
    },
}

/// Two hosts and the segments between them.
struct Hosts {
    now: Instant,
    /// Client, server.
    hosts: [Endpoint; 2],
    connections: [Option<ConnectionId>; 2],
    /// Segments under way, with the host that they go to.
    under_way: VecDeque<(usize, Segment)>,
    written: [u64; 2],
    received: [u64; 2],
    /// Has what goes to this host been tampered with? Then its data need not arrive as it was.
    tampered: [bool; 2],
    /// Segments of this host that are still to have windows of zero.
    shut: [u8; 2],
}

impl Hosts {
    fn new(config: &ConnectionConfig) -> Self {
        let locals: Vec<IpAddr> = vec![[10, 0, 0, 1].into(), [10, 0, 1, 1].into()];
        let remote: IpAddr = [10, 9, 0, 1].into();
        let mut client = Endpoint::new(locals.clone(), [1; 32]);
        let mut server = Endpoint::new(vec![remote], [2; 32]);
        server.listen(PORT, config.clone());
        let to = SocketAddress::new(remote, PORT);
        let id = client.connect(Instant::ZERO, locals[0], to, config.clone());
        let mut hosts = Hosts {
            now: Instant::ZERO,
            hosts: [client, server],
            connections: [id.ok(), None],
            under_way: VecDeque::new(),
            written: [0; 2],
            received: [0; 2],
            tampered: [false; 2],
            shut: [0; 2],
        };
        hosts.drain();
        hosts
    }

    /// Take everything out of both hosts.
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
                    segment.emit(&mut bytes).expect("what a host sends can be written");
                    if let Some(left) = self.shut[side].checked_sub(1) {
                        (self.shut[side], segment.header.window) = (left, 0);
                    }
                    self.under_way.push_back((1 - side, segment));
                }
                while let Some((id, _)) = self.hosts[side].poll_event() {
                    idle = false;
                    self.connections[side].get_or_insert(id);
                    self.read(side, id);
                }
                if idle {
                    break;
                }
            }
        }
        // A network that holds as much as it is given would only cost the fuzzer its time.
        while self.under_way.len() > 4_096 {
            self.under_way.pop_front();
        }
    }

    fn read(&mut self, side: usize, id: ConnectionId) {
        if self.connections[side] != Some(id) {
            // A SYN that came again, after its connection had been reset, has opened another.
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

    fn arrive(&mut self, to: usize, segment: Segment) {
        self.hosts[to].handle_segment(self.now, segment);
        self.drain();
    }

    fn take(&mut self, number: u8) -> Option<(usize, Segment)> {
        let index = usize::from(number).checked_rem(self.under_way.len())?;
        self.under_way.remove(index)
    }

    /// A segment of the client's that can be tampered with: the number-th, or the last.
    fn take_from_client(&mut self, number: u8) -> Option<Segment> {
        let theirs: Vec<usize> =
            (0..self.under_way.len()).filter(|index| self.under_way[*index].0 == 1).collect();
        let index = theirs[usize::from(number).checked_rem(theirs.len())?];
        self.tampered[1] = true;
        self.under_way.remove(index).map(|(_, segment)| segment)
    }

    /// A bare companion of a segment arrives, as any host could send it.
    fn accompany(&mut self, number: u8, form: u8) {
        let Some(index) = usize::from(number).checked_rem(self.under_way.len()) else { return };
        let (to, original) = self.under_way[index].clone();
        let flags = original.header.flags;
        if !flags.contains(Flags::ACK) || flags.intersects(Flags::SYN | Flags::RST) {
            return;
        }
        let mut bare = Segment { payload: Payload::EMPTY, ..original.clone() };
        let TcpOptions { timestamps, sack, .. } = original.options;
        bare.options = TcpOptions { timestamps, sack, ..TcpOptions::default() };
        bare.header.flags = Flags::ACK;
        if form & 4 != 0 {
            bare.header.window /= 2;
        }
        // Keys, a MAC and an infinite mapping are said in time. RFC 8684 §§3.1, 3.2, 3.7.
        let mapping = original.options.dss.and_then(|dss| dss.mapping);
        let in_time = original.options.control.is_some() || mapping.is_some_and(|m| m.len == 0);
        let fin = flags.contains(Flags::FIN);
        if form & 1 != 0 || in_time {
            let counted = original.payload.len() as u32 + u32::from(fin);
            bare.header.seq = original.header.seq + counted;
            self.under_way.remove(index);
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
        panic!("timers that never rest");
    }

    fn carry_out(&mut self, operation: &Operation) {
        match *operation {
            Operation::Deliver(count) => {
                for _ in 0..=count {
                    let Some((to, segment)) = self.under_way.pop_front() else { break };
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
                    self.under_way.push_back((to, segment.clone()));
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
                let address = if second { [10, 0, 1, 1] } else { [10, 0, 0, 1] };
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

    fn write(&mut self, side: usize, bytes: u16) {
        let Some(id) = self.connections[side] else { return };
        let sent = self.hosts[side].send_pattern(id, self.written[side], bytes.into());
        if let Ok(accepted) = sent {
            self.written[side] += accepted as u64;
        }
    }
}

/// Small buffers, so that their limits are reached, on one of the platforms.
fn config(dss_checksum: bool, platform: usize) -> ConnectionConfig {
    let platforms =
        [Platform::linux(Buffers::Payload), Platform::linux(Buffers::Socket), Platform::rfc()];
    ConnectionConfig::default()
        .platform(platforms[platform % platforms.len()])
        .send_buffer(100_000)
        .receive_buffer(50_000)
        .dss_checksum(dss_checksum)
}

/// Two hosts, of which the client's segments may be anybody's. What the server writes arrives at
/// the client as it was written, and nothing panics or goes on for ever.
pub fn peers(operations: &[Operation]) {
    let mut config = config(operations.len() % 2 == 1, operations.len() / 2);
    if let Some(Operation::Use { sack, timestamps }) = operations.first() {
        (config.tcp.sack, config.tcp.timestamps) = (*sack, *timestamps);
    }
    let mut hosts = Hosts::new(&config);
    for operation in operations.iter().take(2_000) {
        hosts.carry_out(operation);
    }
    hosts.wait(200_000);
}

/// One host with a connection, to which arbitrary segments come: five bytes are a header relative
/// to what the host expects, then come options and a length of payload. How many bytes there are
/// chooses the hosts.
pub fn endpoint(bytes: &[u8]) {
    let len = bytes.len();
    let mut config = config(len % 2 == 1, len / 64);
    // One time in eight each: without SACK, without timestamps, without both.
    config.tcp.sack = !matches!(len / 2 % 8, 5 | 7);
    config.tcp.timestamps = !matches!(len / 2 % 8, 6 | 7);
    // One time in five the client is the host, one time in four its first data is still under way,
    // with MP_CAPABLE.
    let host = usize::from(len % 5 != 4);
    let mut hosts = Hosts::new(&config);
    if len / 16 % 4 == 3 {
        hosts.write(0, 3_000);
        hosts.carry_out(&Operation::Deliver(1));
        if host == 0 {
            // The server's first segment after its SYN/ACK is the model.
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
    let Some((_, model)) = hosts.under_way.iter().rev().find(|(to, _)| *to == host).cloned() else {
        return;
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
}
