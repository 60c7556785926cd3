use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_wire::{
    Datagram, Duration, Flags, Payload, Piece, Segment, SeqNumber, SocketAddress, TcpHeader,
    TcpOptions,
};

use super::*;
use crate::middlebox::Middlebox;
use crate::schedule::{LinkChange, ScheduledChange, StateChange};
use crate::units::Rate;
use crate::{Link, LinkConfig, Mtu};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

/// Length of the packets in bytes, including headers. A packet takes 1 ms at 8 Mbit/s.
const BYTES: u32 = 1_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// 8 Mbit/s and 10 ms: a packet of 1000 bytes arrives after 11 ms.
fn link() -> Link {
    Link::new(link_config(), 1)
}

fn link_config() -> LinkConfig {
    let rate: Rate = "8Mbit/s".parse().unwrap();
    LinkConfig::new(rate, Duration::from_millis(10), "100packets".parse().unwrap())
}

fn path() -> Path {
    Path { forward: link(), reverse: link(), boxes: None, via: vec![], egress: [None; 2] }
}

fn boxed(kind: TestBoxKind) -> Path {
    Path { boxes: Some(Box::new(TestBox { kind, out: VecDeque::new() })), ..path() }
}

/// A path in the direction of its own.
fn along(path: usize) -> Hop {
    Hop { path, reversed: false }
}

/// A path from its server's end to its client's end.
fn against(path: usize) -> Hop {
    Hop { path, reversed: true }
}

/// The client's address on a path is 10.1.0.`path`, or 10.2.0.`path` after translation.
fn client(path: u8) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, path).into()
}

fn locate(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(v4) if v4.octets()[1] > 0 => Some(v4.octets()[3].into()),
        _ => None,
    }
}

fn packet(towards: Side, client: IpAddr) -> Packet {
    let client = SocketAddress::new(client, 1);
    let server = SocketAddress::new(Ipv4Addr::new(10, 0, 0, 9).into(), 2);
    let (source, destination) = match towards {
        CLIENT => (server, client),
        SERVER => (client, server),
    };
    let payload = Payload::from(Piece::pattern(0, BYTES - 28));
    Datagram { source, destination, payload, ecn: 0 }.into()
}

/// Which links packets entered, and when.
#[derive(Debug, Default)]
struct Trail(Vec<(Instant, usize)>);

impl Tap for Trail {
    fn on_enter(&mut self, now: Instant, link: LinkId, _packet: &Packet) {
        self.0.push((now, link.number()));
    }
}

/// A simple middlebox without delay.
#[derive(Debug)]
struct TestBox {
    kind: TestBoxKind,
    out: VecDeque<(Side, Packet)>,
}

#[derive(Debug)]
enum TestBoxKind {
    /// Passes every packet.
    Pass,
    /// Passes every packet at this time.
    Hold(Instant),
    /// Sends every packet back.
    Reflect,
    /// Shows servers 10.2.0.`path` in place of the client's 10.1.0.`client`.
    Translate { path: u8, client: u8 },
}

impl Middlebox for TestBox {
    fn handle_packet(&mut self, _now: Instant, towards: Side, mut packet: Packet) {
        let Packet::Udp(datagram) = &mut packet else { return };
        let Datagram { source, destination, .. } = &mut **datagram;
        let mut way = towards;
        match self.kind {
            TestBoxKind::Pass | TestBoxKind::Hold(_) => {}
            TestBoxKind::Reflect => {
                way = towards.opposite();
                std::mem::swap(source, destination);
            }
            TestBoxKind::Translate { path, client: number } => match towards {
                CLIENT => destination.address = client(number),
                SERVER => source.address = Ipv4Addr::new(10, 2, 0, path).into(),
            },
        }
        self.out.push_back((way, packet));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Packet)> {
        self.poll_timeout().filter(|due| *due <= now).and_then(|_| self.out.pop_front())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = if let TestBoxKind::Hold(until) = self.kind { until } else { Instant::ZERO };
        self.out.front().map(|_| due)
    }

    fn original(&self, public: SocketAddress) -> Option<SocketAddress> {
        match self.kind {
            TestBoxKind::Translate { path, client: number }
                if public.address == Ipv4Addr::new(10, 2, 0, path) =>
            {
                Some(SocketAddress::new(client(number), public.port))
            }
            _ => None,
        }
    }
}

/// Sends a packet every millisecond, starting at 1 ms.
#[derive(Debug)]
struct Ticking {
    next: Instant,
    packet: Packet,
}

impl TrafficSource for Ticking {
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        (self.next <= now).then(|| {
            self.next += Duration::from_millis(1);
            self.packet.clone()
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

fn network(paths: Vec<Path>) -> Network<Trail> {
    Network::new(paths, locate, Vec::new(), Trail::default())
}

/// Drive the network until nothing is due or `until` has passed. Returns the arrivals and their
/// times.
fn drive(network: &mut Network<Trail>, until: u64) -> Vec<(Instant, Arrival)> {
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    while let Some(due) = network.poll_timeout().filter(|due| *due <= at(until)) {
        now = now.max(due);
        network.handle_timeout(now);
        arrived.extend(std::iter::from_fn(|| Some((now, network.poll_transmit(now)?))));
    }
    arrived
}

/// The links that a packet crosses, and the path and time of its arrival.
fn cross(network: &mut Network<Trail>, towards: Side, path: u8) -> (Vec<usize>, usize, Instant) {
    network.tap_mut().0.clear();
    network.handle_packet(Instant::ZERO, towards, path.into(), packet(towards, client(path)));
    let mut arrived = drive(network, 1_000);
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    let (when, arrival) = arrived.remove(0);
    assert_eq!(arrival.receiver, towards);
    let links = network.tap_mut().0.iter().map(|(_, link)| *link).collect();
    (links, arrival.path, when)
}

#[test]
fn a_packet_crosses_a_path_either_way() {
    for (towards, link) in [(CLIENT, 2), (SERVER, 3)] {
        let mut network = network(vec![path(), path()]);
        assert_eq!(network.poll_timeout(), None);
        assert_eq!(cross(&mut network, towards, 1), (vec![link], 1, at(11)));
        assert_eq!(network.paths().link_of(1, towards).stats().packets_delivered, 1);
        assert_eq!(network.paths().link_of(1, towards.opposite()).stats().packets_in, 0);
        assert_eq!(network.poll_timeout(), None);
    }
}

#[test]
fn a_path_crosses_its_own_links_and_the_links_it_leads_via() {
    // core (0), a via core (1), b via a (2); each link takes 11 ms.
    let via = |number| Path { via: vec![along(number)], ..path() };
    let paths = || vec![path(), via(0), via(1)];
    let crossed = |towards, path| cross(&mut network(paths()), towards, path);
    assert_eq!(crossed(CLIENT, 2), (vec![0, 2, 4], 2, at(33)));
    assert_eq!(crossed(SERVER, 2), (vec![5, 3, 1], 2, at(33)));
    assert_eq!(crossed(CLIENT, 1), (vec![0, 2], 1, at(22)));
    assert_eq!(crossed(SERVER, 0), (vec![1], 0, at(11)));
}

#[test]
fn a_route_is_a_list_of_paths_in_either_direction() {
    // Cables 0 and 1 lead up to a switch. Path 2 climbs cable 0 and descends cable 1, and path 3
    // does the opposite. Path 4 leads via the whole route of path 2, against its direction.
    let via = |hops: Vec<Hop>| Path { via: hops, ..path() };
    let paths = || {
        let routes = [vec![along(0), against(1)], vec![along(1), against(0)], vec![against(2)]];
        [path(), path()].into_iter().chain(routes.map(via)).collect::<Vec<_>>()
    };
    let crossed = |towards, path| cross(&mut network(paths()), towards, path);
    assert_eq!(crossed(SERVER, 2), (vec![5, 1, 2], 2, at(33)));
    assert_eq!(crossed(CLIENT, 2), (vec![3, 0, 4], 2, at(33)));
    assert_eq!(crossed(SERVER, 3), (vec![7, 3, 0], 3, at(33)));
    assert_eq!(crossed(CLIENT, 3), (vec![1, 2, 6], 3, at(33)));
    assert_eq!(crossed(SERVER, 4), (vec![9, 3, 0, 4], 4, at(44)));
    assert_eq!(crossed(CLIENT, 4), (vec![5, 1, 2, 8], 4, at(44)));
    let network = network(paths());
    let listed: Vec<_> = network.paths().crossed(2, SERVER).collect();
    assert_eq!(listed, [(2, SERVER), (0, SERVER), (1, CLIENT)]);
}

#[test]
fn packets_to_both_hosts_share_a_link() {
    // Path 1 crosses the cable upwards, path 2 downwards: packets of path 1 to the server and of
    // path 2 to the client wait in one queue, 1 ms each.
    let paths = || {
        vec![
            path(),
            Path { via: vec![along(0)], ..path() },
            Path { via: vec![against(0)], ..path() },
        ]
    };
    let mut network = network(paths());
    network.handle_packet(at(0), SERVER, 1, packet(SERVER, client(1)));
    network.handle_packet(at(10), CLIENT, 2, packet(CLIENT, client(2)));
    network.handle_packet(at(10), CLIENT, 2, packet(CLIENT, client(2)));
    let arrived = drive(&mut network, 99).into_iter();
    let order: Vec<_> = arrived.map(|(when, each)| (when, each.path, each.receiver)).collect();
    // The cable sends from 10 to 13 ms: two packets to the client, then at 11 ms one from path 1.
    assert_eq!(order, [(at(23), 1, SERVER), (at(32), 2, CLIENT), (at(33), 2, CLIENT)]);
}

#[test]
#[should_panic(expected = "a route crosses each path once")]
fn a_route_without_circles() {
    let a = Path { via: vec![along(0)], ..path() };
    network(vec![path(), a, Path { via: vec![along(1), against(0)], ..path() }]);
}

#[test]
#[should_panic(expected = "middleboxes face the server")]
fn middleboxes_are_not_crossed_in_reverse() {
    network(vec![boxed(TestBoxKind::Pass), Path { via: vec![against(0)], ..path() }]);
}

#[test]
fn links_are_listed_by_path_and_direction() {
    let network = network(vec![path(), Path { via: vec![along(0)], ..path() }]);
    let listed: Vec<_> = network.paths().links().map(|(path, side, _)| (path, side)).collect();
    assert_eq!(listed, [(0, CLIENT), (0, SERVER), (1, CLIENT), (1, SERVER)]);
}

#[test]
fn middleboxes_are_at_the_servers_end() {
    let mut network = network(vec![boxed(TestBoxKind::Pass)]);
    network.handle_packet(at(1), CLIENT, 0, packet(CLIENT, client(0)));
    assert_eq!(network.tap_mut().0, [], "the packet leaves the boxes in a separate event");
    assert!(network.poll_transmit(at(1)).is_none());
    assert!(network.poll_timeout().is_some_and(|due| due <= at(1)));
    network.handle_timeout(at(1));
    assert!(network.poll_transmit(at(1)).is_none());
    assert_eq!(network.tap_mut().0, [(at(1), 0)]);

    network.handle_packet(at(1), SERVER, 0, packet(SERVER, client(0)));
    assert_eq!(
        network.tap_mut().0.last(),
        Some(&(at(1), 1)),
        "towards the server, the link comes first"
    );
    let arrived: Vec<_> =
        drive(&mut network, 99).into_iter().map(|(_, each)| each.receiver).collect();
    assert_eq!(arrived, [CLIENT, SERVER]);
}

#[test]
fn a_box_that_answers_at_once_does_so_in_a_separate_event() {
    let mut network = network(vec![boxed(TestBoxKind::Reflect)]);
    network.handle_packet(at(3), CLIENT, 0, packet(CLIENT, client(0)));
    assert!(network.poll_transmit(at(3)).is_none());
    network.handle_timeout(at(3));
    let expected = Arrival { receiver: SERVER, path: 0, packet: packet(SERVER, client(0)) };
    assert_eq!(network.poll_transmit(at(3)), Some(expected));
    assert!(network.poll_transmit(at(3)).is_none());
    assert_eq!(network.poll_timeout(), None);

    // A packet from the client crosses both links: 11 ms there, 11 ms back.
    network.handle_packet(at(4), SERVER, 0, packet(SERVER, client(0)));
    let (when, arrival) = drive(&mut network, 99).remove(0);
    assert_eq!((when, arrival.receiver), (at(26), CLIENT));
    assert_eq!(network.tap_mut().0, [(at(4), 1), (at(15), 0)]);
}

#[test]
fn a_translated_address_leads_back_to_its_path() {
    // Path 1 leads via path 0, whose middlebox translates 10.1.0.1 to 10.2.0.0.
    let core = boxed(TestBoxKind::Translate { path: 0, client: 1 });
    let mut network = network(vec![core, Path { via: vec![along(0)], ..path() }]);
    network.handle_packet(at(0), SERVER, 1, packet(SERVER, client(1)));
    let (_, arrival) = drive(&mut network, 99).remove(0);
    let seen = arrival.packet.source();
    assert_eq!((arrival.path, seen), (0, Ipv4Addr::new(10, 2, 0, 0).into()));
    let original = network.paths().original(SocketAddress::new(seen, 7));
    assert_eq!(original, SocketAddress::new(client(1), 7));
    assert_eq!(network.paths().original(original), original);

    network.handle_packet(at(100), CLIENT, 0, packet(CLIENT, seen));
    let (_, arrival) = drive(&mut network, 999).remove(0);
    assert_eq!((arrival.receiver, arrival.path), (CLIENT, 1));
    assert_eq!(arrival.packet, packet(CLIENT, client(1)));
}

#[test]
fn packets_in_flight_are_lost_when_a_link_goes_down() {
    let change = LinkChange { state: Some(StateChange::Down), ..LinkChange::default() };
    let changes = vec![ScheduledChange { at: at(5), change }];
    let forward = Link::new(LinkConfig { changes, ..link_config() }, 1);
    let mut network = network(vec![Path { forward, ..path() }]);
    network.handle_packet(at(0), CLIENT, 0, packet(CLIENT, client(0)));
    assert!(drive(&mut network, 99).is_empty());
    assert_eq!(network.poll_timeout(), None);
    assert_eq!(network.observe(at(99)).link_of(0, CLIENT).stats().dropped_down, 1);
}

#[test]
fn simultaneous_events_are_ordered_by_path_and_then_forward_before_reverse() {
    let mut network = network(vec![path(), path()]);
    for (path, towards) in [(1, SERVER), (0, SERVER), (1, CLIENT), (0, CLIENT)] {
        let client = client(path as u8);
        network.handle_packet(at(0), towards, path, packet(towards, client));
    }
    let arrived = drive(&mut network, 99).into_iter();
    let order: Vec<_> = arrived.map(|(when, each)| (when, each.path, each.receiver)).collect();
    let due = at(11);
    assert_eq!(order, [(due, 0, CLIENT), (due, 0, SERVER), (due, 1, CLIENT), (due, 1, SERVER)]);
}

#[test]
fn one_call_serves_one_link_so_that_a_host_can_answer_in_between() {
    let mut network = network(vec![path(), path()]);
    for path in [0, 1] {
        network.handle_packet(at(0), CLIENT, path, packet(CLIENT, client(path as u8)));
    }
    network.handle_timeout(at(11));
    assert_eq!(network.poll_transmit(at(11)).map(|arrival| arrival.path), Some(0));
    network.handle_packet(at(11), SERVER, 0, packet(SERVER, client(0)));
    assert!(network.poll_transmit(at(11)).is_none());
    assert_eq!(network.poll_timeout(), Some(at(11)), "the other link is due");
    network.handle_timeout(at(11));
    assert_eq!(network.poll_transmit(at(11)).map(|arrival| arrival.path), Some(1));
    assert!(network.poll_transmit(at(11)).is_none());
    assert_eq!(network.poll_timeout(), Some(at(22)), "the answer");
}

#[test]
fn a_source_follows_links_that_are_due_at_the_same_time() {
    let source = Ticking { next: at(11), packet: packet(CLIENT, client(1)) };
    let traffic = Traffic { towards: CLIENT, path: 1, source: Box::new(source) };
    let paths = vec![path(), path(), Path { via: vec![along(1)], ..path() }];
    let mut network = Network::new(paths, locate, vec![traffic], Trail::default());
    // The packet that arrives at 11 ms enters the link of the last path at that time.
    network.handle_packet(at(0), CLIENT, 2, packet(CLIENT, client(2)));
    drive(&mut network, 12);
    assert_eq!(network.tap_mut().0, [(at(0), 2), (at(11), 4), (at(11), 2), (at(12), 2)]);
}

#[test]
fn middleboxes_follow_a_source_that_is_due_at_the_same_time() {
    let source = Ticking { next: at(5), packet: packet(CLIENT, client(1)) };
    let traffic = Traffic { towards: CLIENT, path: 1, source: Box::new(source) };
    let paths = vec![boxed(TestBoxKind::Hold(at(5))), path()];
    let mut network = Network::new(paths, locate, vec![traffic], Trail::default());
    network.handle_packet(at(0), CLIENT, 0, packet(CLIENT, client(0)));
    drive(&mut network, 5);
    assert_eq!(network.tap().0, [(at(5), 2), (at(5), 0)]);
}

#[test]
fn an_unnecessary_call_is_harmless() {
    let mut network = network(vec![path()]);
    network.handle_timeout(at(1));
    assert!(network.poll_transmit(at(1)).is_none());
    network.handle_packet(at(1), CLIENT, 0, packet(CLIENT, client(0)));
    network.handle_timeout(at(2));
    assert!(network.poll_transmit(at(2)).is_none());
    network.handle_timeout(at(12));
    network.handle_timeout(at(12));
    assert!(network.poll_transmit(at(12)).is_some());
}

#[test]
fn an_address_on_no_path_has_no_path() {
    let network = network(vec![path(), path()]);
    let of = |address: [u8; 4]| network.paths().path_of(Ipv4Addr::from(address).into());
    assert_eq!([[10, 1, 0, 1], [10, 1, 0, 2], [10, 0, 0, 1]].map(of), [Some(1), None, None]);
}

fn segment(towards: Side, client: IpAddr, payload: u32) -> Packet {
    let Packet::Udp(datagram) = packet(towards, client) else { panic!("a datagram") };
    let Datagram { source, destination, .. } = datagram.into_inner();
    Segment {
        source,
        destination,
        header: TcpHeader {
            seq: SeqNumber(77),
            ack: SeqNumber(0),
            flags: Flags::ACK,
            window: 0,
            urgent: 0,
        },
        options: TcpOptions::default(),
        payload: Piece::pattern(0, payload).into(),
        ecn: 0,
        checksum_ok: true,
    }
    .into()
}

#[test]
fn a_segment_above_the_mtu_is_dropped_and_answered() {
    for answers in [true, false] {
        let narrow = || {
            let mtu = Some(Mtu { bytes: 1400, answers });
            Link::new(LinkConfig { mtu, ..link_config() }, 1)
        };
        for towards in [CLIENT, SERVER] {
            let own = Path { via: vec![along(0)], ..path() };
            let mut network =
                network(vec![Path { forward: narrow(), reverse: narrow(), ..path() }, own]);
            // 40 bytes of headers: 1400 bytes pass, and 1401 do not.
            for payload in [1360, 1361] {
                network.handle_packet(at(0), towards, 1, segment(towards, client(1), payload));
            }
            let arrivals = drive(&mut network, 200);
            let passed = arrivals.iter().filter(|(_, arrival)| arrival.receiver == towards);
            assert_eq!(passed.count(), 1);
            let answer = arrivals.into_iter().find(|(_, a)| a.receiver == towards.opposite());
            assert_eq!(answer.is_some(), answers);
            let Some((_, Arrival { path, packet: Packet::TooBig(message), .. })) = answer else {
                continue;
            };
            assert_eq!((path, message.mtu, message.quoted_seq), (1, 1400, SeqNumber(77)));
            let dropped = network.paths().link_of(0, towards).stats().dropped_too_big;
            assert_eq!(dropped, 1);
        }
    }
}
