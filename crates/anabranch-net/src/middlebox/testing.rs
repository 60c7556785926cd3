//! Segments and middleboxes for the unit tests of the middleboxes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_wire::mptcp::{Dss, Mapping, WideOrNarrow};
use anabranch_wire::{
    Duration, Flags, Instant, Packet, Payload, Piece, Segment, SeqNumber, SocketAddress, TcpHeader,
    TcpOptions,
};

use super::{BuildMiddlebox, Middlebox, Side, Site};

pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub(super) fn site(seed: u64) -> Site {
    Site {
        seed,
        client: Ipv4Addr::new(10, 1, 0, 0).into(),
        address: Ipv4Addr::new(10, 2, 0, 0).into(),
    }
}

/// A connection whose streams carry the test pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk {
    pub(super) client: IpAddr,
    pub(super) server: IpAddr,
    pub(super) client_isn: u32,
    pub(super) server_isn: u32,
}

impl Talk {
    pub(super) fn v4() -> Self {
        Talk {
            client: Ipv4Addr::new(10, 1, 0, 0).into(),
            server: Ipv4Addr::new(10, 0, 0, 1).into(),
            // The client's sequence numbers wrap early.
            client_isn: u32::MAX - 50,
            server_isn: 1_000,
        }
    }

    pub(super) fn v6() -> Self {
        let address = |last| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, last));
        Talk { client: address(1), server: address(2), ..Talk::v4() }
    }

    fn segment(&self, towards: Side, seq: u32, ack: u32, flags: Flags) -> Segment {
        let client = SocketAddress::new(self.client, 50_000);
        let server = SocketAddress::new(self.server, 5_001);
        let (source, destination, own, other) = match towards {
            Side::Server => (client, server, self.client_isn, self.server_isn),
            Side::Client => (server, client, self.server_isn, self.client_isn),
        };
        let ack = if flags.contains(Flags::ACK) { SeqNumber(other) + ack } else { SeqNumber(0) };
        let header = TcpHeader { seq: SeqNumber(own) + seq, ack, flags, window: 1_000, urgent: 0 };
        Segment {
            source,
            destination,
            header,
            options: TcpOptions::default(),
            payload: Payload::EMPTY,
            ecn: 0,
            checksum_ok: true,
        }
    }

    pub(super) fn syn(&self) -> Segment {
        self.segment(Side::Server, 0, 0, Flags::SYN)
    }

    pub(super) fn syn_ack(&self) -> Segment {
        self.segment(Side::Client, 0, 1, Flags::SYN | Flags::ACK)
    }

    /// `len` bytes from stream offset `from`, with an identity mapping. Acknowledges no data of the
    /// other direction.
    pub(super) fn data(&self, towards: Side, from: u32, len: u32) -> Segment {
        let mut segment = self.segment(towards, from + 1, 1, Flags::ACK | Flags::PSH);
        segment.payload = Piece::pattern(from.into(), len).into();
        segment.options.dss = Some(Dss {
            data_ack: None,
            mapping: Some(Mapping {
                data_seq: WideOrNarrow::Narrow(from + 1),
                subflow_seq: SeqNumber(from + 1),
                len: len as u16,
                checksum: None,
            }),
            data_fin: false,
        });
        segment
    }

    /// An acknowledgement in this direction of the first `bytes` bytes of the other direction.
    pub(super) fn ack(&self, towards: Side, bytes: u32) -> Segment {
        self.segment(towards, 1, bytes + 1, Flags::ACK)
    }

    /// The FIN of a stream of `bytes` bytes.
    pub(super) fn fin(&self, towards: Side, bytes: u32) -> Segment {
        self.segment(towards, bytes + 1, 1, Flags::ACK | Flags::FIN)
    }
}

/// A middlebox with a clock.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) middlebox: Box<dyn Middlebox>,
    pub(super) now: Instant,
}

impl Bench {
    pub(super) fn new(middlebox: Box<dyn Middlebox>) -> Self {
        Bench { middlebox, now: Instant::ZERO }
    }

    /// A middlebox with its default parameters.
    pub(super) fn by_default<P: BuildMiddlebox + Default>() -> Self {
        Bench::new(P::default().build(site(1)))
    }

    /// The bench after the middlebox has seen the SYNs of `talk`.
    pub(super) fn opened(mut self, talk: &Talk) -> Self {
        self.cross(Side::Server, talk.syn());
        self.cross(Side::Client, talk.syn_ack());
        self
    }

    /// Send `segment` into the middlebox. Returns the segments that leave it.
    pub(super) fn put(&mut self, towards: Side, segment: Segment) -> Vec<(Side, Segment)> {
        self.middlebox.handle_packet(self.now, towards, segment.into());
        self.drain()
    }

    /// Send `segment` into the middlebox. Returns the one segment that leaves on the other side.
    pub(super) fn cross(&mut self, towards: Side, segment: Segment) -> Segment {
        let mut out = self.put(towards, segment);
        assert_eq!(out.len(), 1, "{out:?}");
        let (way, segment) = out.remove(0);
        assert_eq!(way, towards);
        segment
    }

    /// Advance the clock to `ms`. Returns the segments that leave the middlebox.
    pub(super) fn wait_until(&mut self, ms: u64) -> Vec<(Side, Segment)> {
        self.now = at(ms);
        self.middlebox.handle_timeout(self.now);
        self.drain()
    }

    fn drain(&mut self) -> Vec<(Side, Segment)> {
        let out = std::iter::from_fn(|| self.middlebox.poll_transmit(self.now));
        let tcp = out.map(|(towards, packet)| match packet {
            Packet::Tcp(segment) => (towards, segment.into_inner()),
            other => panic!("{other:?}"),
        });
        tcp.collect()
    }
}
