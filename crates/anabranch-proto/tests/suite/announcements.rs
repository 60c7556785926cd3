//! Announced addresses. RFC 8684 §3.4.1.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_proto::Event;
use anabranch_proto::path_manager::{LocalAddress, PathAction, PathEvent, PathManager};
use anabranch_proto::platform::{AnnounceRule, Platform};
use anabranch_proto::view::{SubflowView, Usability};
use anabranch_wire::mptcp::AddAddr;
use anabranch_wire::{Duration, Instant, Segment};

use crate::pair::{
    Fate, Pair, client_address, depends_on_the_platform, is_syn, most_syns, ms, on_any_platform,
    server_address,
};

fn six(host: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host).into()
}

/// Both hosts have an IPv4 and an IPv6 address. The connection is opened over IPv4.
fn dual_stack() -> Pair {
    let client = vec![client_address(0), six(1)];
    let server = vec![server_address(), six(9)];
    Pair::of_addresses(client, server, on_any_platform(), on_any_platform())
}

fn told(segment: &Segment) -> Option<AddAddr> {
    segment.options.control.as_ref()?.add_addr
}

fn is_told(segment: &Segment) -> bool {
    told(segment).is_some_and(|option| option.truncated_hmac.is_some())
}

fn is_echo(segment: &Segment) -> bool {
    told(segment).is_some_and(|option| option.truncated_hmac.is_none())
}

fn over_six(segment: &Segment) -> bool {
    segment.source.address.is_ipv6() && !segment.payload.is_empty()
}

#[test]
fn the_listener_announces_its_other_family_and_the_initiator_joins_over_it() {
    let mut pair = dual_stack();
    pair.download(2_000_000, 5_000);
    assert_eq!(pair.received[0], 2_000_000);
    assert_eq!((pair.segments(is_told), pair.segments(is_echo)), (1, 1));
    assert!(pair.segments(over_six) > 100, "{}", pair.segments(over_six));
    // RFC 9293 §3.7.1: IPv6's longer header leaves 20 bytes less in a packet of 1500 bytes.
    let longest = |six: bool| {
        let lengths = pair.log.iter().filter(|s| s.source.address.is_ipv6() == six);
        lengths.map(|s| s.payload.len()).max()
    };
    assert_eq!(longest(true), longest(false).map(|four| four - 20));
    let counters = (pair.client.counters(), pair.server.counters());
    assert_eq!((counters.0.add_addr, counters.0.echo_add_tx), (1, 1));
    assert_eq!((counters.1.add_addr_tx, counters.1.echo_add), (1, 1));
}

#[test]
fn an_announcement_is_repeated_until_it_is_echoed_but_not_without_limit() {
    depends_on_the_platform("the pause before an announcement is repeated");
    let mut lost = 0;
    let mut pair = dual_stack().with_filter(move |_, segment| {
        lost += u32::from(is_told(segment));
        if is_told(segment) && lost <= 2 { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(200_000, 10_000);
    pair.run_ms(10_000);
    assert_eq!((pair.segments(is_told), pair.segments(is_echo)), (3, 1));
    pair.download(200_000, 10_000);
    assert!(pair.segments(over_six) > 0);

    let no_echo = |_, segment: &mut Segment| {
        if is_echo(segment) { Fate::Drop } else { Fate::Deliver }
    };
    let mut pair = dual_stack().with_filter(no_echo);
    pair.download(1_000, 1_000);
    // The intervals double.
    for (told, for_ms) in [(1, 900), (2, 1_900), (3, 3_900), (4, 60_000)] {
        assert_eq!((pair.segments(is_told), pair.segments(is_echo)), (told, told));
        pair.run_ms(for_ms);
        assert_eq!((pair.segments(is_told), pair.segments(is_echo)), (told, told));
        pair.run_ms(100);
    }
}

#[test]
fn an_announcement_with_a_wrong_hmac_or_of_an_impossible_address_is_ignored() {
    let spoil: [fn(&mut AddAddr); 3] = [
        |option| option.truncated_hmac = option.truncated_hmac.map(|hmac| hmac ^ 1),
        |option| option.address = six(66),
        |option| option.address_id += 1,
    ];
    for change in spoil {
        let mut pair = dual_stack().with_filter(move |_, segment| {
            if is_told(segment) {
                let control = segment.options.control.as_mut().expect("it has ADD_ADDR");
                change(control.add_addr.as_mut().expect("it has ADD_ADDR"));
            }
            Fate::Deliver
        });
        pair.download(200_000, 5_000);
        pair.run_ms(20_000);
        assert_eq!(pair.received[0], 200_000);
        assert_eq!((pair.segments(is_echo), pair.segments(over_six)), (0, 0));
        let counters = pair.client.counters();
        assert_eq!((counters.add_addr, counters.add_addr_drop), (4, 4));
    }
    let multicast: IpAddr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into();
    let mut pair = Pair::of_addresses(
        vec![client_address(0), six(1)],
        vec![server_address(), multicast],
        on_any_platform(),
        on_any_platform(),
    );
    pair.download(200_000, 5_000);
    assert_eq!((pair.segments(is_told), pair.segments(is_echo)), (1, 0));
    assert_eq!(pair.client.counters().add_addr_drop, 1);
}

#[test]
fn a_host_remembers_only_a_few_of_very_many_announced_addresses() {
    let server = std::iter::once(server_address()).chain((1..=200).map(six)).collect();
    let client = vec![client_address(0), six(1_000)];
    let mut pair = Pair::of_addresses(client, server, on_any_platform(), on_any_platform());
    pair.download(2_000_000, 30_000);
    pair.run_ms(30_000);
    assert_eq!(pair.received[0], 2_000_000);
    let client = pair.client.counters();
    assert_eq!(client.add_addr - client.add_addr_drop, 8, "{client:?}");
}

/// Announces and removes its second address in turn, every 100 ms, `most` times in all.
#[derive(Debug, Default)]
struct Fickle {
    most: u32,
    local: Option<LocalAddress>,
    at: Option<Instant>,
    turns: u32,
    action: Option<PathAction>,
}

impl Fickle {
    fn of(most: u32) -> Self {
        Fickle { most, ..Fickle::default() }
    }
}

impl PathManager for Fickle {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, _: &[SubflowView]) {
        if let PathEvent::Established { local, .. } = event {
            self.local = Some(local[1]);
            self.at = Some(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant, _: &[SubflowView]) {
        let local = self.local.expect("it is established");
        let told = self.turns.is_multiple_of(2);
        let taken_back = PathAction::Remove { local_address_id: local.id };
        self.action = Some(if told { PathAction::Announce { local } } else { taken_back });
        self.turns += 1;
        self.at = (self.turns < self.most).then_some(now + ms(100));
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.action.take()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }
}

#[test]
fn an_address_that_is_announced_and_removed_repeatedly_has_one_subflow_at_a_time() {
    // RFC 8684 §3.4.2
    let server = on_any_platform().path_manager(|| Box::new(Fickle::of(41)));
    let mut pair = Pair::of_addresses(
        vec![client_address(0), six(1)],
        vec![server_address(), six(9)],
        on_any_platform(),
        server,
    );
    pair.download(200_000, 6_000);
    pair.run_ms(6_000);
    let live = pair.client.subflow_stats(pair.connection);
    let usable = live.filter(|stats| stats.view.usability == Usability::Usable).count();
    assert!(usable <= 2, "{usable}");
}

#[test]
fn an_announced_address_that_does_not_answer_is_not_tried_again() {
    let mut pair = dual_stack().with_filter(|_, segment| {
        if segment.source.address.is_ipv6() { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(200_000, 5_000);
    pair.run_ms(600_000);
    let syns = pair.segments(|segment| is_syn(segment) && segment.source.address.is_ipv6());
    // One attempt with its retransmissions. RFC 9293 §3.8.3: the user timeout limits their number.
    assert!((1..=most_syns()).contains(&syns), "{syns}");
}

#[test]
fn a_stripped_announcement_does_not_lead_to_fallback() {
    // RFC 8684 §3.7: a sender falls back if the first acknowledgement of its data has no options.
    // The acknowledgement of the first data carries its DATA_ACK. An announcement waits if there is
    // no room for both.
    for upload in [true, false] {
        let mut pair = dual_stack().with_filter(|_, segment| {
            if is_told(segment) {
                segment.options.control = None;
            }
            Fate::Deliver
        });
        match upload {
            true => pair.upload(200_000, 5_000),
            false => pair.download(200_000, 5_000),
        }
        pair.run_ms(20_000);
        let events = [&pair.client_events, &pair.server_events];
        assert!(events.iter().all(|events| !events.contains(&Event::FellBack)), "upload: {upload}");
        assert_eq!(pair.segments(is_told), 4, "upload: {upload}");
    }
}

#[test]
fn announcements_are_no_duplicate_acknowledgements() {
    // RFC 8684 §4
    let without_sack = || {
        let mut config = on_any_platform();
        config.tcp.sack = false;
        config
    };
    let server = std::iter::once(server_address()).chain((1..=5).map(six)).collect();
    let client = vec![client_address(0), six(1_000)];
    let mut pair = Pair::of_addresses(client, server, without_sack(), without_sack());
    pair.upload(300_000, 5_000);
    let sent_again = pair.client.subflow_stats(pair.connection).map(|stats| stats.recoveries);
    assert_eq!(sent_again.sum::<u64>(), 0);
}

#[test]
fn a_removed_address_is_not_announced_again() {
    // RFC 8684 §3.4.2
    let server = on_any_platform().path_manager(|| Box::new(Fickle::of(2)));
    let client = vec![client_address(0), six(1)];
    let hosts = vec![server_address(), six(9)];
    let mut pair = Pair::of_addresses(client, hosts, on_any_platform(), server)
        .with_filter(|_, segment| if is_told(segment) { Fate::Drop } else { Fate::Deliver });
    pair.download(1_000, 1_000);
    pair.run_ms(60_000);
    assert_eq!(pair.segments(is_told), 1);
}

#[test]
fn addresses_that_are_announced_together_are_each_echoed_once() {
    // RFC 8684 §3.4.1
    depends_on_the_platform("whether a host announces several addresses at once");
    let mut pair = Pair::of_addresses(
        vec![client_address(0), six(1)],
        vec![server_address(), six(8), six(9)],
        on_any_platform(),
        on_any_platform(),
    )
    .with_filter(|_, segment| if is_told(segment) { Fate::Drop } else { Fate::Deliver });
    pair.download(1_000, 1_000);
    let first: Vec<Segment> = pair.log.iter().filter(|s| is_told(s)).cloned().collect();
    assert_eq!(first.len(), 2);
    let last = pair.last(|s| s.destination.address == client_address(0));
    for segment in first.iter().chain(&first) {
        let mut segment = Segment { header: last.header, ..segment.clone() };
        segment.header.seq = segment.header.seq + last.payload.len() as u32;
        segment.options.timestamps = last.options.timestamps;
        pair.client.handle_segment(pair.now, segment);
    }
    pair.drain();
    pair.run_ms(100);
    let echoed =
        pair.log.iter().filter(|s| is_echo(s)).filter_map(told).map(|option| option.address);
    assert_eq!(echoed.collect::<Vec<_>>(), [six(8), six(9)]);
}

/// A server with two further addresses on a platform of Linux, whose announcements are lost. The times of
/// the announcements in ms, by address identifier, from the first one on.
fn announced_in_vain(most: Duration) -> [Vec<u64>; 2] {
    let platform =
        Platform { announcing: AnnounceRule::OneAtATime { most }, ..Platform::linux_socket() };
    let config = || on_any_platform().platform(platform);
    let server = vec![server_address(), six(9), six(10)];
    let lost = |_, segment: &mut Segment| {
        if is_told(segment) { Fate::Drop } else { Fate::Deliver }
    };
    let mut pair =
        Pair::of_addresses(vec![client_address(0)], server, config(), config()).with_filter(lost);
    pair.write(0, 1_000);
    let mut times = [Vec::new(), Vec::new()];
    for now in 0..20_000 {
        pair.run_ms(1);
        let all = pair.log.drain(..).filter_map(|segment| told(&segment));
        all.for_each(|option| times[usize::from(option.address_id) - 1].push(now));
    }
    let start = times[0][0];
    times.map(|of| of.into_iter().map(|at: u64| at - start).collect())
}

#[test]
fn linux_announces_an_address_at_a_time_and_repeats_it_thrice() {
    // Linux 6.18.44 over a direct link, without echoes: the first address at 0, 207, 631 and 1463 ms, and
    // the second one at 1463, 1675, 2107 and 2939 ms. The timeouts are 200, 400 and 800 ms and a variance.
    let [first, second] = announced_in_vain(Duration::from_secs(120));
    assert_eq!((first.len(), second.len()), (4, 4), "{first:?} {second:?}");
    assert!(second[0] - first[3] <= 1, "{first:?} {second:?}");
    for times in [first, second] {
        let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (pause, least) in pauses.iter().zip([200, 400, 800]) {
            assert!((least..least + least / 4).contains(pause), "{pauses:?}");
        }
    }
}

#[test]
fn with_a_timeout_of_0_linux_announces_only_one_address_and_that_once() {
    // Linux 6.18.44 does so with net.mptcp.add_addr_timeout = 0.
    assert_eq!(announced_in_vain(Duration::ZERO), [vec![0], vec![]]);
}

#[test]
fn the_timeout_bounds_the_first_pause() {
    let [first, _] = announced_in_vain(ms(50));
    let pauses: Vec<u64> = first.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([50, 100, 200]) {
        assert!((least..least + 10).contains(pause), "{pauses:?}");
    }
}

#[test]
fn linux_announces_the_next_address_when_the_peer_echoes_one() {
    let config = || on_any_platform().platform(Platform::linux_socket());
    let server = vec![server_address(), six(9), six(10)];
    let mut pair = Pair::of_addresses(vec![client_address(0)], server, config(), config());
    pair.download(1_000, 1_000);
    pair.run_ms(100);
    let order = pair.log.iter().filter(|segment| told(segment).is_some()).map(is_echo);
    assert_eq!(order.collect::<Vec<_>>(), [false, true, false, true]);
}
