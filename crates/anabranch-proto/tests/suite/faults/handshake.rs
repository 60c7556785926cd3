//! Joins from other hosts than the peer, and equal tokens. RFC 8684 §3.2.

use std::net::IpAddr;

use anabranch_proto::{ConnectionId, Endpoint, Event};
use anabranch_wire::mptcp::{Control, MpJoin};
use anabranch_wire::{Flags, Instant, Segment, SocketAddress};

use super::support::{at_server, default_pair, give, keys, live, token};
use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn,
    on_any_platform, server_address,
};

fn join(segment: &Segment) -> Option<MpJoin> {
    segment.options.control.as_ref()?.join
}

fn join_mut(segment: &mut Segment) -> Option<&mut MpJoin> {
    segment.options.control.as_mut()?.join.as_mut()
}

#[test]
fn each_flipped_bit_of_an_hmac_resets_only_the_subflow() {
    for (in_ack, bit) in (0..64).map(|bit| (false, bit)).chain((0..160).map(|bit| (true, bit))) {
        let mut pair = default_pair(2).with_filter(move |_, segment| {
            match join_mut(segment) {
                Some(MpJoin::SynAck { truncated_hmac, .. }) if !in_ack => {
                    *truncated_hmac ^= 1 << bit;
                }
                Some(MpJoin::Ack { hmac }) if in_ack => hmac[bit / 8] ^= 1 << (bit % 8),
                _ => {}
            }
            Fate::Deliver
        });
        pair.download(20_000, 500);
        pair.run_ms(300);
        let case = format!("bit {bit}, in the third ACK: {in_ack}");
        assert_eq!(pair.received[0], 20_000, "{case}");
        let failures = (
            pair.client.counters().join_syn_ack_hmac_failure,
            pair.server.counters().join_ack_hmac_failure,
        );
        assert_eq!(failures, if in_ack { (0, 1) } else { (1, 0) }, "{case}");
        assert_eq!(live(&pair.client, pair.connection), 1, "{case}");
        assert_eq!(live(&pair.server, at_server(&pair)), 1, "{case}");
        assert!(pair.segments(|s| is_rst(s) && is_on(s, 1)) > 0, "{case}");
        assert_eq!(pair.segments(|s| is_rst(s) && is_on(s, 0)), 0, "{case}");
    }
}

/// The SYN and the third ACK of a join, as seen on the wire.
fn overheard(pair: &Pair) -> (Segment, Segment) {
    let syn = pair.log.iter().find(|s| matches!(join(s), Some(MpJoin::Syn { .. })));
    let third = pair.log.iter().find(|s| matches!(join(s), Some(MpJoin::Ack { .. })));
    (syn.expect("a join").clone(), third.expect("its third ACK").clone())
}

/// Repeat them. The third ACK is adapted to the new SYN/ACK.
fn replay(pair: &mut Pair, syn: &Segment, third: &Segment) {
    let before = pair.log.len();
    give(pair, syn.clone());
    let answer = pair.log[before..].iter().find(|s| is_syn(s)).expect("an answer").clone();
    let mut third = third.clone();
    third.header.ack = answer.header.seq + 1;
    give(pair, third);
}

#[test]
fn an_overheard_join_cannot_be_replayed() {
    // RFC 8684 §3.2: the nonces prevent this.
    let mut pair = default_pair(2);
    pair.upload(100_000, 2_000);
    let (mut syn, mut third) = overheard(&pair);
    for port in 1..50 {
        (syn.source.port, third.source.port) = (port, port);
        replay(&mut pair, &syn, &third);
        assert_eq!(pair.server.counters().join_ack_hmac_failure, u64::from(port));
        assert_eq!(live(&pair.server, at_server(&pair)), 2);
    }
    pair.upload(100_000, 2_000);
    assert_eq!(pair.received[1], 200_000);
}

#[test]
fn an_overheard_join_cannot_be_replayed_during_a_flood() {
    let mut pair = default_pair(2).with_filter(|_, segment| {
        // The second path drops everything until the flood has begun.
        if is_on(segment, 1) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(1_000, 500);
    pair.run_ms(100);
    let first = pair.last(|s| is_syn(s) && is_on(s, 1));
    for n in 0..4 {
        let mut other = first.clone();
        other.source.address = client_address(100 + n);
        pair.server.handle_segment(pair.now, other);
        while pair.server.poll_transmit(pair.now).is_some() {}
    }
    pair = pair.with_filter(|_, _| Fate::Deliver);
    pair.run_ms(1_500);
    assert_eq!(pair.server.counters().stateless_syn_acks, 1);
    assert_eq!(pair.server.counters().join_ack_rx, 1);
    let (syn, third) = overheard(&pair);
    // The subflow ends, and its port is free again. The half-open subflows remain.
    let mut reset =
        pair.last(|s| is_on(s, 1) && !is_syn(s) && s.source.address == client_address(1));
    reset.header.seq = reset.header.seq + reset.payload.len() as u32;
    reset.header.flags = Flags::RST;
    pair =
        pair.with_filter(|_, segment| if is_on(segment, 1) { Fate::Drop } else { Fate::Deliver });
    give(&mut pair, reset);
    let before = live(&pair.server, at_server(&pair));
    replay(&mut pair, &syn, &third);
    assert_eq!(pair.server.counters().stateless_syn_acks, 2);
    assert_eq!(pair.server.counters().join_ack_hmac_failure, 1, "a new nonce requires a new HMAC");
    assert!(live(&pair.server, at_server(&pair)) <= before);
}

#[test]
fn a_host_does_not_join_itself() {
    let mut pair = default_pair(2);
    pair.upload(100_000, 2_000);
    let (syn, _) = overheard(&pair);
    // The host receives its own SYN, whose token is the peer's.
    let mut mirrored = syn.clone();
    std::mem::swap(&mut mirrored.source, &mut mirrored.destination);
    mirrored.source.port += 1;
    give(&mut pair, mirrored);
    assert_eq!(pair.client.counters().join_no_token_found, 1);
    // A SYN from one of its own addresses, with its own token. The host receives its own answers.
    let mut own = syn.clone();
    own.source = SocketAddress::new(client_address(0), 7);
    own.destination = syn.source;
    own.destination.port = 8;
    let Some(MpJoin::Syn { token: name, .. }) = join_mut(&mut own) else { panic!("a join") };
    *name = token(keys(&pair).0);
    let before = live(&pair.client, pair.connection);
    pair.client.handle_segment(pair.now, own);
    for _ in 0..100 {
        let Some(segment) = pair.client.poll_transmit(pair.now) else { break };
        pair.client.handle_segment(pair.now, segment);
    }
    assert_eq!(live(&pair.client, pair.connection), before);
    pair.upload(100_000, 2_000);
    assert_eq!(pair.received[1], 200_000);
}

/// Hosts that exchange segments without delay.
struct Net {
    now: Instant,
    hosts: Vec<(Vec<IpAddr>, Endpoint)>,
    accepted: Vec<(usize, ConnectionId)>,
}

impl Net {
    fn new(hosts: &[(&[IpAddr], [u8; 32])]) -> Self {
        let make = |(addresses, secret): &(&[IpAddr], [u8; 32])| {
            let mut host = Endpoint::new(addresses.to_vec(), *secret);
            host.listen(PORT, on_any_platform());
            (addresses.to_vec(), host)
        };
        let hosts = hosts.iter().map(make).collect();
        Net { now: Instant::ZERO, hosts, accepted: Vec::new() }
    }

    fn exchange(&mut self) {
        let mut idle = 0;
        while idle < self.hosts.len() {
            idle = 0;
            for from in 0..self.hosts.len() {
                let Some(segment) = self.hosts[from].1.poll_transmit(self.now) else {
                    idle += 1;
                    continue;
                };
                let home = |host: &&mut (Vec<IpAddr>, Endpoint)| {
                    host.0.contains(&segment.destination.address)
                };
                if let Some((_, host)) = self.hosts.iter_mut().find(home) {
                    host.handle_segment(self.now, segment);
                }
            }
        }
        for (n, (_, host)) in self.hosts.iter_mut().enumerate() {
            while let Some((id, event)) = host.poll_event() {
                if event == Event::Accepted {
                    self.accepted.push((n, id));
                }
            }
        }
    }

    fn connect(&mut self, to: IpAddr) -> ConnectionId {
        let (addresses, host) = &mut self.hosts[0];
        let to = SocketAddress::new(to, PORT);
        let id = host.connect(self.now, addresses[0], to, on_any_platform());
        self.exchange();
        id.expect("the addresses are valid")
    }

    /// Check that accepted connection `n` has two subflows, and that its data is the pattern at
    /// `offset`.
    fn assert_right(&mut self, n: usize, offset: u64) {
        let (host, id) = self.accepted[n];
        let host = &mut self.hosts[host].1;
        assert_eq!(live(host, id), 2, "connection {n}");
        let mut at = offset;
        while let Some(payload) = host.recv(id) {
            assert!(payload.matches_pattern(at), "connection {n} at {at}");
            at += payload.len() as u64;
        }
        assert_eq!(at, offset + 5_000, "connection {n}");
    }
}

#[test]
fn joins_find_their_connection_among_many() {
    depends_on_the_platform("Nagle's rule");
    let client = [client_address(0), client_address(1)];
    let mut net = Net::new(&[(&client, [1; 32]), (&[server_address()], [2; 32])]);
    let ids: Vec<ConnectionId> = (0..200).map(|_| net.connect(server_address())).collect();
    for (id, n) in ids.iter().zip(0..) {
        net.hosts[0].1.send_pattern(*id, n * 7_919, 5_000).expect("open");
    }
    net.exchange();
    for n in 0..ids.len() {
        net.assert_right(n, n as u64 * 7_919);
    }
    assert_eq!(net.hosts[1].1.counters().join_ack_rx, 200);
}

#[test]
fn two_peers_with_the_same_token_are_told_apart() {
    depends_on_the_platform("Nagle's rule");
    // RFC 8684 §3.2: a token is valid only at the host that chose the key. Hosts with the same
    // secret have the same keys.
    let client = [client_address(0), client_address(1)];
    let (a, b) = (server_address(), IpAddr::from([10, 9, 0, 2]));
    let mut net = Net::new(&[(&client, [1; 32]), (&[a], [2; 32]), (&[b], [2; 32])]);
    for (to, n) in [(a, 0), (b, 1)] {
        let id = net.connect(to);
        net.hosts[0].1.send_pattern(id, n * 7_919, 5_000).expect("open");
        net.exchange();
    }
    assert_eq!(net.accepted.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [1, 2]);
    net.assert_right(0, 0);
    net.assert_right(1, 7_919);
}

#[test]
fn a_token_with_any_wrong_bit_is_refused() {
    let mut pair = default_pair(2);
    pair.upload(10_000, 1_000);
    pair.run_ms(100);
    let (syn, _) = overheard(&pair);
    for bit in 0..32 {
        let mut guess = syn.clone();
        guess.source.port = 100 + bit;
        let Some(MpJoin::Syn { token, .. }) = join_mut(&mut guess) else { panic!("a join") };
        *token ^= 1 << bit;
        give(&mut pair, guess);
    }
    assert_eq!(pair.server.counters().join_no_token_found, 32);
    assert_eq!(pair.server.connections().count(), 1);
    let refused = |s: &Segment| {
        is_rst(s) && s.options.control.as_deref().is_some_and(|c: &Control| c.reset.is_some())
    };
    assert_eq!(pair.segments(refused), 32);
}
