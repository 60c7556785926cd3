//! Drives a link in virtual time, and wakes it only when it asks for it.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_net::{Link, Node};
use anabranch_wire::{
    Flags, Instant, Packet, Piece, Segment, SeqNumber, SocketAddress, TcpHeader, TcpOptions,
};

/// Bytes of an IPv4 and a TCP header without options.
pub(crate) const HEADERS: u32 = 40;

/// Number of flows.
pub(crate) const FLOWS: u32 = 3;

/// A packet of `bytes` bytes that carries `number` as its sequence number. The flows take turns.
pub(crate) fn packet(number: u32, bytes: u32) -> Packet {
    let endpoint = |port| SocketAddress::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let segment = Segment {
        source: endpoint((number % FLOWS) as u16),
        destination: endpoint(1),
        header: TcpHeader { seq: SeqNumber(number), flags: Flags::ACK, ..Default::default() },
        options: TcpOptions::default(),
        payload: Piece::pattern(0, bytes - HEADERS).into(),
        ecn: 0,
        checksum_ok: true,
    };
    segment.into()
}

/// `micros` microseconds after the epoch.
pub(crate) fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// A link, and the times and packet numbers of its deliveries.
pub(crate) struct Driver {
    pub(crate) link: Link,
    pub(crate) delivered: Vec<(Instant, u32)>,
}

impl Driver {
    pub(crate) fn new(link: Link) -> Self {
        Driver { link, delivered: Vec::new() }
    }

    /// Serve all wake-ups until `now`, then offer packet `number` to the link.
    pub(crate) fn offer(&mut self, now: Instant, number: u32, bytes: u32) {
        self.run_until(now);
        self.link.handle_packet(now, packet(number, bytes));
        self.collect(now);
    }

    /// Serve all wake-ups until `now`.
    pub(crate) fn run_until(&mut self, now: Instant) {
        while let Some(timeout) = self.link.poll_timeout().filter(|&timeout| timeout <= now) {
            self.link.handle_timeout(timeout);
            self.collect(timeout);
            assert!(self.link.poll_timeout().is_none_or(|next| next > timeout), "no progress");
        }
    }

    /// Serve all remaining wake-ups.
    pub(crate) fn run_out(&mut self) {
        self.run_until(Instant::FAR_FUTURE);
    }

    /// The numbers of the packets delivered so far.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.delivered.iter().map(|(_, number)| *number).collect()
    }

    fn collect(&mut self, now: Instant) {
        while let Some(packet) = self.link.poll_transmit(now) {
            let Packet::Tcp(segment) = packet else { panic!("only segments were offered") };
            self.delivered.push((now, segment.header.seq.0));
        }
    }
}
