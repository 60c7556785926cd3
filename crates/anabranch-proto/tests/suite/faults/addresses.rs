//! Addresses that are announced, forged and removed. RFC 8684 §3.4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::mptcp::{AddAddr, Control, RemoveAddr};
use anabranch_wire::{Flags, Segment};

use super::support::{Draws, at_server, carrying, default_pair, give, live};
use crate::pair::announcing::announced;
use crate::pair::{Fate, PORT, Pair, client_address, is_rst, is_syn, most_syns, server_address};

fn victim(n: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, n).into()
}

fn announce(pair: &mut Pair, option: AddAddr) {
    let control = Control { add_addr: Some(option), ..Control::default() };
    let segment = carrying(pair, server_address(), control);
    give(pair, segment);
}

fn withdraw(pair: &mut Pair, ids: &[u8]) {
    let remove_addr = RemoveAddr::new(ids);
    let control = Control { remove_addr, ..Control::default() };
    let segment = carrying(pair, server_address(), control);
    give(pair, segment);
}

fn open() -> Pair {
    let mut pair = default_pair(1);
    pair.download(50_000, 2_000);
    pair.run_ms(200);
    pair
}

fn syns_to(pair: &Pair, address: IpAddr) -> usize {
    let opens = |s: &Segment| is_syn(s) && !s.header.flags.contains(Flags::ACK);
    pair.segments(|s| opens(s) && s.destination.address == address)
}

#[test]
fn addresses_that_a_peer_cannot_have_are_ignored() {
    let impossible: [IpAddr; 8] = [
        Ipv4Addr::LOCALHOST.into(),
        Ipv4Addr::new(127, 9, 9, 9).into(),
        Ipv6Addr::LOCALHOST.into(),
        Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv4Addr::BROADCAST.into(),
        Ipv4Addr::new(224, 0, 0, 1).into(),
        // The client's own address.
        client_address(0),
    ];
    for address in impossible {
        for port in [None, Some(22)] {
            let mut pair = open();
            let option = announced(&pair, 3, address, port);
            announce(&mut pair, option);
            pair.run_ms(3_000);
            assert_eq!(syns_to(&pair, address), 0, "{address}");
            let counters = pair.client.counters();
            assert_eq!((counters.add_addr, counters.add_addr_drop), (1, 1), "{address}");
            assert_eq!(counters.echo_add_tx, 0, "{address}");
        }
    }
}

#[test]
fn the_hmac_covers_identifier_address_port_and_family() {
    let mut pair = open();
    let right = announced(&pair, 3, victim(1), Some(PORT));
    let six: IpAddr = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().into();
    let mut wrong = vec![
        AddAddr { address_id: 4, ..right },
        AddAddr { address: victim(2), ..right },
        AddAddr { address: six, ..right },
        AddAddr { port: None, ..right },
        AddAddr { port: Some(PORT + 1), ..right },
        AddAddr { address_id: 0, ..announced(&pair, 0, victim(1), None) },
    ];
    let proof = right.truncated_hmac.expect("it has one");
    wrong.extend((0..64).map(|bit| AddAddr { truncated_hmac: Some(proof ^ 1 << bit), ..right }));
    let count = wrong.len() as u64;
    for option in wrong {
        announce(&mut pair, option);
    }
    pair.run_ms(2_000);
    assert_eq!(pair.segments(is_syn), 2, "only the first subflow has SYNs");
    assert_eq!(pair.client.counters().add_addr_drop, count);
    announce(&mut pair, right);
    pair.run_ms(100);
    assert_eq!(syns_to(&pair, victim(1)), 1, "the valid option is accepted");
}

#[test]
fn announcing_256_addresses_causes_no_storm_of_syns() {
    let mut pair = open();
    for id in 0..=255 {
        let option = announced(&pair, id, victim(id), Some(7));
        announce(&mut pair, option);
    }
    pair.run_ms(200_000);
    let syns = pair.segments(|s| is_syn(s) && s.destination.port == 7);
    // Seven subflows besides the first, each with its retransmissions.
    assert!((7..=7 * most_syns()).contains(&syns), "{syns} SYNs");
    assert_eq!(pair.client.counters().echo_add_tx, 8);
    pair.download(50_000, 2_000);
    assert_eq!(pair.received[0], 100_000);
}

#[test]
fn an_address_announced_and_removed_causes_at_most_one_syn_each_time() {
    // RFC 8684 §5: a peer can make this host send SYNs to a third host, but not more than it sends
    // segments itself.
    let mut pair = open();
    let count = 500;
    for n in 0..count {
        let option = announced(&pair, 3, victim(n as u8), Some(7));
        announce(&mut pair, option);
        withdraw(&mut pair, &[3]);
        pair.run_ms(1);
    }
    let syns = pair.segments(|s| is_syn(s) && s.destination.port == 7);
    assert!(syns <= count, "{syns} SYNs");
    assert!(live(&pair.client, pair.connection) <= 8);
    pair.run_ms(200_000);
    let syns = pair.segments(|s| is_syn(s) && s.destination.port == 7);
    assert!(syns <= most_syns() * count, "{syns} SYNs with all repeats");
    pair.download(50_000, 2_000);
    assert_eq!(pair.received[0], 100_000);
}

#[test]
fn an_identifier_stands_for_one_address_until_it_is_removed() {
    let mut pair = open();
    let first = announced(&pair, 3, victim(1), None);
    let second = announced(&pair, 3, victim(2), None);
    announce(&mut pair, first);
    announce(&mut pair, second);
    announce(&mut pair, first);
    pair.run_ms(100);
    assert_eq!((syns_to(&pair, victim(1)), syns_to(&pair, victim(2))), (1, 0));
    let counters = pair.client.counters();
    assert_eq!((counters.add_addr, counters.add_addr_drop, counters.echo_add_tx), (3, 1, 2));
    withdraw(&mut pair, &[3]);
    announce(&mut pair, second);
    pair.run_ms(100);
    assert_eq!(syns_to(&pair, victim(2)), 0, "one attempt under an identifier at a time");
    pair.run_ms(200_000);
    assert!((1..=most_syns()).contains(&syns_to(&pair, victim(2))));
    assert!(syns_to(&pair, victim(1)) <= most_syns());
}

/// A server with a second address, whose announcements are all lost.
fn announcing_in_vain() -> Pair {
    let remote = vec![server_address(), Ipv4Addr::new(10, 9, 1, 1).into()];
    let config = ConnectionConfig::default;
    let mut pair = Pair::of_addresses(vec![client_address(0)], remote, config(), config())
        .with_filter(|_, segment| if is_told(segment) { Fate::Drop } else { Fate::Deliver });
    pair.download(50_000, 2_000);
    pair
}

fn is_told(segment: &Segment) -> bool {
    segment.options.control.as_ref().is_some_and(|control| control.add_addr.is_some())
}

#[test]
fn a_forged_echo_ends_the_announcement_only_if_it_names_the_same_address() {
    // RFC 8684 §3.4.1: the echo has no HMAC. All that a forged one can do is prevent a subflow.
    let told = |pair: &Pair| pair.last(is_told).options.control.and_then(|c| c.add_addr);
    let spoil: [fn(&mut AddAddr); 4] = [
        |echo| echo.address_id += 1,
        |echo| echo.address = victim(1),
        |echo| echo.address_id = 0,
        |_| (),
    ];
    for (n, change) in spoil.into_iter().enumerate() {
        let mut pair = announcing_in_vain();
        let mut echo = told(&pair).expect("an announcement");
        echo.truncated_hmac = None;
        change(&mut echo);
        let control = Control { add_addr: Some(echo), ..Control::default() };
        let before = pair.segments(is_told);
        let segment = carrying(&pair, client_address(0), control);
        give(&mut pair, segment);
        pair.run_ms(30_000);
        let repeats = pair.segments(is_told) - before;
        assert_eq!(repeats == 0, n == 3, "{repeats} repeats after echo {n}");
        pair.download(50_000, 2_000);
        assert_eq!(pair.received[0], 100_000);
    }
}

#[test]
fn data_arrives_whatever_addresses_are_removed() {
    // RFC 8684 §3.4.2: REMOVE_ADDR has no HMAC, so the receiver first checks the path.
    let all: Vec<u8> = (0..=255).collect();
    let cases: [&[u8]; 5] = [&[77], &[0], &[1], &[0, 1, 2], &all];
    for addresses in [1, 3] {
        for (ids, to_client) in cases.iter().flat_map(|ids| [(ids, true), (ids, false)]) {
            let mut pair = default_pair(addresses);
            pair.upload(200_000, 5_000);
            for chunk in ids.chunks(RemoveAddr::MAX_IDS) {
                let control = Control { remove_addr: RemoveAddr::new(chunk), ..Control::default() };
                let from = if to_client { server_address() } else { client_address(0) };
                let segment = carrying(&pair, from, control);
                give(&mut pair, segment);
            }
            pair.upload(200_000, 5_000);
            pair.download(200_000, 5_000);
            let case = format!("{addresses} addresses, {} removed", ids.len());
            assert_eq!(pair.received, [200_000, 400_000], "{case}");
            assert_eq!(pair.segments(is_rst), 0, "{case}");
            assert_eq!(live(&pair.client, pair.connection), usize::from(addresses), "{case}");
        }
    }
}

#[test]
fn an_off_path_attacker_cannot_remove_addresses() {
    let mut draws = Draws::new(1);
    let mut pair = default_pair(3);
    pair.upload(100_000, 5_000);
    for n in 0..10_000_u32 {
        let remove_addr = RemoveAddr::new(&[0, 1, 2]);
        let control = Control { remove_addr, ..Control::default() };
        let from = [client_address((n % 3) as u8), server_address()][usize::from(n % 7 == 0)];
        let mut forged = carrying(&pair, from, control);
        // Far from the window, or with an acknowledgement of data that was never sent.
        let far = (1 << 28) + draws.below(1 << 31) as u32;
        if n % 2 == 0 {
            forged.header.seq = forged.header.seq + far;
        } else {
            forged.header.ack = forged.header.ack + far;
        }
        give(&mut pair, forged);
    }
    assert_eq!((pair.client.counters().rm_addr, pair.server.counters().rm_addr), (0, 0));
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 200_000);
    assert_eq!(live(&pair.server, at_server(&pair)), 3);
}
