//! Addresses and listeners that are added and removed while a host runs.

use std::net::IpAddr;

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::{PathAction, PathEvent, PathManager};
use anabranch_proto::view::SubflowView;
use anabranch_proto::{ConnectError, ConnectionError, ConnectionId, Event, SubflowStats};
use anabranch_wire::{Flags, Instant, Segment, SocketAddress};

use crate::pair::{
    Fate, PORT, Pair, client_address, is_on, is_rst, is_syn, ms, on_any_platform, server_address,
};

fn pair(addresses: u8) -> Pair {
    Pair::new(addresses, on_any_platform(), on_any_platform())
}

/// Open another connection from client address 0.
fn connect(pair: &mut Pair, config: ConnectionConfig) -> ConnectionId {
    let to = SocketAddress::new(server_address(), PORT);
    pair.client.connect(pair.now, client_address(0), to, config).expect("the address is valid")
}

/// Client addresses of a connection's subflows.
fn used(pair: &Pair, id: ConnectionId) -> Vec<u8> {
    let is_at = |n: &u8, at: &SocketAddress| at.address == client_address(*n);
    let number =
        |at: SocketAddress| (0..9).find(|n| is_at(n, &at)).expect("an address of the client");
    pair.client.subflow_stats(id).map(|stats| number(stats.local)).collect()
}

fn removes_an_address(segment: &Segment) -> bool {
    segment.options.control.as_ref().is_some_and(|control| control.remove_addr.is_some())
}

#[test]
fn a_stopped_listener_refuses_new_connections_and_keeps_open_ones() {
    let mut pair = pair(1);
    pair.upload(100_000, 5_000);
    pair.server.stop_listening(PORT);
    connect(&mut pair, on_any_platform());
    pair.run_ms(100);
    assert_eq!(pair.client_events.last(), Some(&Event::Failed(ConnectionError::Refused)));
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 200_000);
}

#[test]
fn a_syn_that_an_earlier_connection_has_answered_is_repeated_soon() {
    // RFC 9293 §3.5.2, figure 9. The earlier connection's acknowledgement stands in for the SYN/ACK.
    let mut is_first = true;
    let answer = move |_, segment: &mut Segment| {
        if segment.header.flags == Flags::SYN | Flags::ACK && std::mem::take(&mut is_first) {
            segment.header.flags = Flags::ACK;
            segment.header.ack = segment.header.ack + 1_000;
        }
        Fate::Deliver
    };
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform()).with_filter(answer);
    pair.run_ms(200);
    assert_eq!(pair.client_events.first(), Some(&Event::Connected));
    let syns = pair.segments(|segment| segment.header.flags == Flags::SYN);
    assert_eq!((syns, pair.segments(is_rst)), (2, 1));
}

#[test]
fn an_added_address_serves_open_connections() {
    let mut pair = pair(1).with_slow_path(0, ms(50));
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0]);
    pair.client.add_address(pair.now, client_address(1));
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0, 1]);
    let carried: Vec<_> = pair.client.subflow_stats(pair.connection).collect();
    assert!(carried[1].bytes_sent >= 10_000, "{}", carried[1].bytes_sent);
}

#[test]
fn an_added_address_serves_later_connections() {
    let mut pair = pair(1);
    pair.settle(500);
    pair.client.add_address(pair.now, client_address(1));
    let later = connect(&mut pair, on_any_platform());
    pair.run_ms(100);
    pair.client.send_pattern(later, 0, 1_000).expect("it is open");
    pair.run_ms(500);
    assert_eq!(used(&pair, later), [0, 1]);
}

#[test]
fn a_server_announces_an_added_address() {
    let mut pair = pair(1);
    pair.upload(100_000, 5_000);
    let further = "10.9.0.2".parse().expect("an address");
    pair.server.add_address(pair.now, further);
    pair.upload(500_000, 5_000);
    let remote = |stats: SubflowStats| stats.remote.address;
    let at: Vec<_> = pair.client.subflow_stats(pair.connection).map(remote).collect();
    assert_eq!(at, [server_address(), further]);
    assert_eq!(pair.received[1], 600_000);
}

#[test]
fn a_removed_address_has_no_subflows_until_it_is_added_again() {
    let mut pair = pair(2);
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0, 1]);

    pair.client.remove_address(pair.now, client_address(1));
    pair.run_ms(1_000);
    assert!(pair.segments(|s| is_rst(s) && is_on(s, 1)) > 0, "the subflow is reset");
    assert!(pair.segments(|s| removes_an_address(s) && is_on(s, 0)) > 0, "the peer learns of it");
    let joined = pair.segments(|s| is_syn(s) && is_on(s, 1));
    pair.upload(500_000, 5_000);
    assert_eq!(pair.received[1], 1_000_000);
    let to = SocketAddress::new(server_address(), PORT);
    let refused = pair.client.connect(pair.now, client_address(1), to, on_any_platform());
    assert_eq!(refused, Err(ConnectError::UnknownLocalAddress));
    pair.run_ms(10_000);
    assert_eq!(pair.segments(|s| is_syn(s) && is_on(s, 1)), joined, "no subflow from there");

    pair.client.add_address(pair.now, client_address(1));
    pair.run_ms(500);
    assert!(pair.segments(|s| is_syn(s) && is_on(s, 1)) > joined, "a new subflow opens at once");
    pair.upload(500_000, 5_000);
    assert_eq!(pair.received[1], 1_500_000);
}

#[test]
fn a_connection_with_listed_addresses_uses_no_removed_address() {
    let mut pair = pair(3);
    pair.settle(500);
    pair.client.remove_address(pair.now, client_address(1));
    let local_addresses = Some([0, 1, 2].map(client_address).to_vec());
    let config = on_any_platform().local_addresses(local_addresses);
    let later = connect(&mut pair, config);
    pair.run_ms(100);
    pair.client.send_pattern(later, 0, 1_000).expect("it is open");
    pair.run_ms(500);
    assert_eq!(used(&pair, later), [0, 2]);
}

#[test]
fn a_listener_does_not_answer_on_a_removed_address() {
    let mut pair = pair(1);
    pair.server.remove_address(pair.now, server_address());
    pair.run_ms(5_000);
    assert!(pair.segments(is_syn) > 1, "the client repeats its SYN");
    assert_eq!(pair.segments(|s| s.source.address == server_address()), 0);
}

/// Opens a subflow from the second address, and opens another one whenever an address changes.
#[derive(Debug, Default)]
struct Stubborn {
    open: Option<PathAction>,
    again: Option<PathAction>,
}

impl PathManager for Stubborn {
    fn handle_event(&mut self, _now: Instant, event: &PathEvent<'_>, _subflows: &[SubflowView]) {
        if let PathEvent::Established { local, remote, .. } = *event {
            let (local, remote_address_id) = (local[1], 0);
            self.open = Some(PathAction::Open { local, remote, remote_address_id, backup: false });
            self.again = self.open;
        } else if let PathEvent::AddressChanged { .. } = event {
            self.open = self.again;
        }
    }

    fn handle_timeout(&mut self, _now: Instant, _subflows: &[SubflowView]) {}

    fn poll_action(&mut self) -> Option<PathAction> {
        self.open.take()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn no_path_manager_opens_a_subflow_from_a_removed_address() {
    let path_manager = || Box::new(Stubborn::default()) as Box<dyn PathManager>;
    let client = on_any_platform().path_manager(path_manager);
    let mut pair = Pair::new(2, client, on_any_platform());
    pair.settle(500);
    let joined = pair.segments(|s| is_syn(s) && is_on(s, 1));
    assert_eq!(joined, 2, "SYN and SYN/ACK");
    pair.client.remove_address(pair.now, client_address(1));
    pair.run_ms(1_000);
    assert_eq!(pair.segments(|s| is_syn(s) && is_on(s, 1)), joined);
}

#[test]
fn the_initial_address_of_a_connection_is_used_again_when_it_is_added_though_not_listed() {
    let config = on_any_platform().local_addresses(Some(vec![client_address(1)]));
    let mut pair = Pair::new(2, config, on_any_platform());
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0, 1]);
    pair.client.remove_address(pair.now, client_address(0));
    pair.run_ms(1_000);
    let joined = pair.segments(|s| is_syn(s) && is_on(s, 0));
    pair.client.add_address(pair.now, client_address(0));
    pair.run_ms(30_000);
    assert!(pair.segments(|s| is_syn(s) && is_on(s, 0)) > joined, "a new subflow");
    // An address that is neither listed nor known is not used.
    pair.client.add_address(pair.now, client_address(2));
    pair.run_ms(30_000);
    assert_eq!(pair.segments(|s| is_syn(s) && is_on(s, 2)), 0);
}

#[test]
fn an_added_address_joins_the_initial_address_of_the_peer() {
    // The first slot holds another subflow meanwhile.
    let address = |n: u8| IpAddr::from([10, 9, 0, n]);
    let (local, remote) = (vec![client_address(0)], vec![server_address(), address(2)]);
    let mut pair = Pair::of_addresses(local, remote, on_any_platform(), on_any_platform());
    pair.upload(500_000, 5_000);
    pair.server.remove_address(pair.now, server_address());
    pair.run_ms(300);
    pair.server.add_address(pair.now, address(3));
    pair.run_ms(300);
    pair.client.add_address(pair.now, client_address(1));
    pair.run_ms(3_000);
    pair.server.add_address(pair.now, server_address());
    pair.run_ms(120_000);
    let joins =
        pair.segments(|s| is_syn(s) && is_on(s, 1) && s.destination.address == server_address());
    assert!(joins > 0, "from the added address to the one that the connection was opened to");
}

#[test]
fn adding_an_address_of_the_other_family_or_before_the_connection_is_open_does_no_harm() {
    let mut pair = pair(1);
    pair.client.add_address(pair.now, client_address(1));
    pair.client.add_address(pair.now, "2001:db8::1".parse().expect("an address"));
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0, 1]);
    pair.client.add_address(pair.now, "2001:db8::2".parse().expect("an address"));
    pair.upload(500_000, 5_000);
    assert_eq!(used(&pair, pair.connection), [0, 1]);
    assert_eq!(pair.received[1], 1_000_000);
}

#[test]
fn totals_are_available_until_the_last_event_was_polled() {
    let mut pair = pair(2);
    pair.upload(100_000, 5_000);
    let server = pair.accepted.expect("data has arrived");
    pair.client.abort(pair.connection);
    while let Some(segment) = pair.client.poll_transmit(pair.now) {
        pair.server.handle_segment(pair.now, segment);
    }
    while pair.server.poll_transmit(pair.now).is_some() {}
    let mut last = None;
    while let Some((id, event)) = pair.server.poll_event() {
        if id == server && event == Event::Failed(ConnectionError::Reset) {
            last = pair.server.connection_stats(pair.now, id);
        }
    }
    assert_eq!(last.map(|stats| stats.bytes_delivered), Some(100_000));
    while pair.server.poll_transmit(pair.now).is_some() {}
    assert!(pair.server.connection_stats(pair.now, server).is_none());
}
