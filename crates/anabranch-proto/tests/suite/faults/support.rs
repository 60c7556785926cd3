//! Helpers that several tests share.

use std::net::IpAddr;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::view::Usability;
use anabranch_proto::{ConnectionError, ConnectionId, Endpoint, Event};
use anabranch_wire::mptcp::{Control, Dss, Mapping, MpJoin, WideOrNarrow};
use anabranch_wire::{DataSeq, Flags, Payload, Segment, SeqNumber, SocketAddress};
use bytes::Bytes;
use sha2::{Digest, Sha256};

pub(crate) use crate::pair::announcing::keys;
use crate::pair::{
    PORT, Pair, client_address, is_on, is_rst, on_any_platform, server_address, to_server,
};
pub(crate) use crate::pair::{both, switch};

/// A small random number generator, so that a single number determines a case.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

pub(crate) fn default_pair(addresses: u8) -> Pair {
    both(on_any_platform(), addresses)
}

pub(crate) fn buffers(bytes: u64) -> ConnectionConfig {
    on_any_platform().send_buffer(bytes).receive_buffer(bytes)
}

/// Like `both` with one address, but the hosts have other secrets.
pub(crate) fn of_secrets(client: [u8; 32], server: [u8; 32], config: &ConnectionConfig) -> Pair {
    let mut pair = both(config.clone(), 1);
    let local = crate::pair::client_address(0);
    pair.client = Endpoint::new(vec![local], client);
    pair.server = Endpoint::new(vec![server_address()], server);
    pair.server.listen(PORT, config.clone());
    let to = SocketAddress::new(server_address(), PORT);
    pair.connection = pair.client.connect(pair.now, local, to, config.clone()).expect("right");
    pair
}

pub(crate) fn secret(number: u64) -> [u8; 32] {
    let mut secret = [9; 32];
    secret[..8].copy_from_slice(&number.to_be_bytes());
    secret
}

pub(crate) fn error_of(events: &[Event]) -> Option<ConnectionError> {
    events.iter().find_map(|event| match event {
        Event::Failed(error) => Some(*error),
        _ => None,
    })
}

/// Number of times that the connection ended.
pub(crate) fn endings(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Closed | Event::Failed(_))).count()
}

/// Number of subflows that are open or opening.
pub(crate) fn live(host: &Endpoint, id: ConnectionId) -> usize {
    host.subflow_stats(id).filter(|stats| stats.view.usability != Usability::Closed).count()
}

pub(crate) fn at_server(pair: &Pair) -> ConnectionId {
    pair.accepted.expect("accepted")
}

/// Deliver a segment at once.
pub(crate) fn give(pair: &mut Pair, segment: Segment) {
    if to_server(&segment) {
        pair.server.handle_segment(pair.now, segment);
    } else {
        pair.client.handle_segment(pair.now, segment);
    }
    pair.drain();
}

/// RFC 8684 §3.1
pub(crate) fn initial_data_seq(key: u64) -> DataSeq {
    let digest = Sha256::digest(key.to_be_bytes());
    DataSeq(u64::from_be_bytes(digest[24..].try_into().expect("8 bytes")))
}

/// RFC 8684 §3.2
pub(crate) fn token(key: u64) -> u32 {
    let digest = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes(digest[..4].try_into().expect("4 bytes"))
}

/// An acknowledgement like the last segment from `source`, with `control` as its only MPTCP option.
pub(crate) fn carrying(pair: &Pair, source: IpAddr, control: Control) -> Segment {
    let mut segment = pair.last(|segment| segment.source.address == source);
    segment.header.seq = segment.header.seq + segment.payload.len() as u32;
    segment.header.flags = anabranch_wire::Flags::ACK;
    segment.payload = Payload::EMPTY;
    segment.options.sack = anabranch_wire::SackBlocks::default();
    segment.options.dss = None;
    segment.options.control = Some(Box::new(control));
    segment
}

/// For closed connections: check that everything has arrived, both hosts report the end, and no
/// state of the connection is left.
pub(crate) fn assert_closed_and_forgotten(pair: &mut Pair, case: &str) {
    assert_eq!(pair.received, [pair.written[1], pair.written[0]], "{case}");
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::Closed), "{case}: {events:?}");
        assert_eq!(endings(events), 1, "{case}: {events:?}");
    }
    assert_forgotten(pair, case);
}

pub(crate) fn assert_forgotten(pair: &mut Pair, case: &str) {
    pair.run_ms(300_000);
    let left = pair.client.connections().count() + pair.server.connections().count();
    assert_eq!(left, 0, "{case}");
}

/// Check that a join with the right token is refused with a reset.
pub(crate) fn assert_takes_no_join(pair: &mut Pair) {
    let mut syn = pair.log[0].clone();
    syn.source = SocketAddress::new(client_address(1), 999);
    let token = token(keys(pair).1);
    let join = Some(MpJoin::Syn { backup: false, address_id: 1, token, nonce: 1 });
    syn.options.control = Some(Box::new(Control { join, ..Control::default() }));
    give(pair, syn);
    let answer = pair.last(|s| !to_server(s) && is_on(s, 1));
    assert!(is_rst(&answer), "{answer:?}");
}

/// A client whose segments the test forges, and a server that keeps the data that it reads.
pub(crate) struct Liar {
    pub(crate) pair: Pair,
    pub(crate) base: Segment,
    /// Relative subflow sequence number and data sequence number of the next byte.
    pub(crate) subflow_seq: u32,
    pub(crate) data_seq: DataSeq,
    read: usize,
}

impl Liar {
    pub(crate) fn new() -> Self {
        Liar::of(buffers(100_000))
    }

    pub(crate) fn of(config: ConnectionConfig) -> Self {
        let mut pair = both(config, 1);
        pair.upload(10_000, 1_000);
        pair.run_ms(500);
        pair.unchecked = true;
        pair.kept = Some([Vec::new(), Vec::new()]);
        let mut base = pair.last(to_server);
        base.header.seq = base.header.seq + base.payload.len() as u32;
        let plain = pair.segments(|s| s.options.control.is_some()) == 0;
        let data_seq = if plain { DataSeq(0) } else { initial_data_seq(keys(&pair).0) + 10_001 };
        Liar { pair, base, subflow_seq: 10_001, data_seq, read: 0 }
    }

    /// Send `bytes` at an offset of `subflow` from the next byte, mapped to an offset of `data`.
    pub(crate) fn say(&mut self, subflow: u32, data: i64, bytes: &[u8]) {
        let len = bytes.len() as u16;
        self.say_mapped(subflow, bytes, subflow, data, len);
    }

    pub(crate) fn say_mapped(&mut self, at: u32, bytes: &[u8], subflow: u32, data: i64, len: u16) {
        let mut segment = self.bare(at, bytes);
        let mapping = Mapping {
            data_seq: WideOrNarrow::Wide(DataSeq(self.data_seq.0.wrapping_add_signed(data))),
            subflow_seq: SeqNumber(self.subflow_seq + subflow),
            len,
            checksum: None,
        };
        segment.options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
        give(&mut self.pair, segment);
    }

    /// A segment with `bytes` at an offset of `at` from the next byte, without MPTCP options.
    pub(crate) fn bare(&self, at: u32, bytes: &[u8]) -> Segment {
        let mut segment = self.base.clone();
        segment.header.seq = segment.header.seq + at;
        segment.header.flags = Flags::ACK;
        segment.payload = Payload::from(Bytes::copy_from_slice(bytes));
        segment.options.dss = None;
        segment
    }

    /// Send such a segment with a data sequence signal that has no mapping.
    pub(crate) fn say_unmapped(&mut self, at: u32, bytes: &[u8]) {
        let mut segment = self.bare(at, bytes);
        segment.options.dss = Some(Dss::default());
        give(&mut self.pair, segment);
    }

    /// The data that the server has read since the last call.
    pub(crate) fn received(&mut self) -> Vec<u8> {
        let all = &self.pair.kept.as_ref().expect("kept")[1];
        let new = all[self.read..].to_vec();
        self.read = all.len();
        new
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.pair.segments(is_rst) == 0
    }
}
