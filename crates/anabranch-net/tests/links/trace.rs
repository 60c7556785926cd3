//! Links that follow a trace.

use std::sync::Arc;

use crate::support::{Driver, at};
use anabranch_net::units::QueueLimit;
use anabranch_net::{Link, LinkChange, LinkConfig, Node, OPPORTUNITY_BYTES, StateChange, Trace};
use anabranch_wire::{Duration, Instant};

const FULL_SIZE: u32 = OPPORTUNITY_BYTES as u32;

fn config(trace: &str, limit: &str) -> LinkConfig {
    let trace = Arc::new(Trace::parse(trace).unwrap());
    LinkConfig::new(trace, Duration::ZERO, limit.parse().unwrap())
}

fn driver(trace: &str) -> Driver {
    Driver::new(Link::new(config(trace, "infinite"), 1))
}

/// Times in milliseconds and numbers of what was delivered.
fn deliveries(driver: &Driver) -> Vec<(u64, u32)> {
    driver.delivered.iter().map(|(at, number)| (at.as_millis(), *number)).collect()
}

#[test]
fn a_packet_leaves_with_the_next_opportunity_and_one_at_the_same_time_has_passed() {
    let mut link = driver("0\n2\n5\n");
    // The opportunity of time 0 passes before the packet arrives.
    link.offer(at(0), 0, FULL_SIZE);
    link.run_until(at(4_000));
    link.offer(at(5_000), 1, FULL_SIZE);
    link.offer(at(5_001), 2, FULL_SIZE);
    link.run_out();
    // The period is 5 ms: opportunities at 5 (twice: the end, and the beginning anew), 7, 10, 10.
    assert_eq!(deliveries(&link), [(2, 0), (7, 1), (10, 2)]);
}

#[test]
fn an_opportunity_carries_several_small_packets_and_a_large_packet_uses_several() {
    let mut link = driver("1\n");
    for number in 0..4 {
        link.offer(at(0), number, 500);
    }
    link.offer(at(0), 4, 3_000);
    link.offer(at(0), 5, 100);
    link.run_out();
    // Bytes 0 to 1503: packets 0, 1, 2 and 4 bytes of 3. To 3007: the rest of 3, and 1008 of
    // packet 4. To 4511: 1504 more of it. To 6015: its last 488, and packet 5.
    assert_eq!(deliveries(&link), [(1, 0), (1, 1), (1, 2), (2, 3), (4, 4), (4, 5)]);
    assert_eq!(link.link.packets_inside(), 0);
}

#[test]
fn what_nothing_waits_for_is_wasted() {
    let mut link = driver("1\n");
    link.offer(at(0), 0, 100);
    link.run_until(at(1_000));
    // The other 1404 bytes of the opportunity at 1 ms are gone, and so are those until 50 ms.
    link.offer(at(50_500), 1, FULL_SIZE);
    link.offer(at(50_500), 2, FULL_SIZE);
    link.run_out();
    assert_eq!(deliveries(&link), [(1, 0), (51, 1), (52, 2)]);
}

#[test]
fn a_saturated_link_delivers_exactly_the_opportunities_of_many_periods() {
    let file = "0\n0\n3\n4\n4\n4\n9\n";
    let mut link = driver(file);
    for number in 0..800 {
        link.offer(Instant::ZERO, number, FULL_SIZE);
    }
    // Periods of 9 ms with 7 opportunities. The two at time 0 have passed when the packets come.
    for millis in [8, 9, 90, 900, 902] {
        link.run_until(at(millis * 1_000));
        let times = file.lines().map(|line| line.parse::<u64>().unwrap());
        let used: u64 = times.map(|time| (millis + 9 - time) / 9).sum::<u64>() - 2;
        let bytes = link.link.stats().bytes_delivered;
        assert_eq!(bytes, used * OPPORTUNITY_BYTES, "until {millis} ms");
    }
}

#[test]
fn a_trace_of_constant_opportunities_carries_what_the_same_rate_does() {
    // 1504 bytes each millisecond are 12.032 Mbit/s: whole packets, at the same times.
    let mut traced = driver("1\n");
    let rate = "12.032Mbit/s".parse::<anabranch_net::units::Rate>().unwrap();
    let mut constant =
        Driver::new(Link::new(LinkConfig::new(rate, Duration::ZERO, QueueLimit::Infinite), 1));
    for link in [&mut traced, &mut constant] {
        for number in 0..1_000 {
            link.offer(at(0), number, FULL_SIZE);
        }
        link.run_out();
    }
    assert_eq!(traced.delivered, constant.delivered);
}

#[test]
fn limits_count_what_waits_and_a_limit_in_time_counts_at_the_mean_rate() {
    // The packet that opportunities have begun to send has left the queue, no other has.
    let mut link = Driver::new(Link::new(config("1\n", "2packets"), 1));
    (0..3).for_each(|number| link.offer(at(0), number, 1_000));
    link.offer(at(1_500), 3, 1_000);
    link.offer(at(1_500), 4, 1_000);
    link.run_out();
    assert_eq!(link.numbers(), [0, 1, 3, 4]);
    // 4 ms at 2 · 1504 · 8 bits in 8 ms are 1504 bytes, however the opportunities lie.
    let mut link = Driver::new(Link::new(config("8\n8\n", "4ms"), 1));
    (0..3).for_each(|number| link.offer(at(0), number, 752));
    link.run_out();
    assert_eq!(link.numbers(), [0, 1]);
}

#[test]
fn opportunities_pass_while_the_link_is_suspended_or_down() {
    let state = |state| LinkChange { state: Some(state), ..LinkChange::default() };
    let mut link = driver("1\n");
    (0..3).for_each(|number| link.offer(at(0), number, FULL_SIZE));
    link.run_until(at(1_000));
    link.link.handle_change(at(1_000), state(StateChange::Suspend));
    link.run_until(at(9_500));
    link.link.handle_change(at(9_500), state(StateChange::Resume));
    link.run_until(at(10_000));
    assert_eq!(deliveries(&link), [(1, 0), (10, 1)]);
    link.offer(at(10_000), 3, 2_000);
    link.run_until(at(11_000));
    // At 12 ms 1504 bytes of packet 3 were sent; with the link down the packet is lost.
    link.link.handle_change(at(12_500), state(StateChange::Down));
    link.link.handle_change(at(12_600), state(StateChange::Up));
    link.offer(at(12_700), 4, FULL_SIZE);
    link.run_out();
    assert_eq!(deliveries(&link), [(1, 0), (10, 1), (11, 2), (13, 4)]);
    assert_eq!((link.link.stats().dropped_down, link.link.packets_inside()), (1, 0));
}

#[test]
fn an_idle_link_asks_for_nothing() {
    let mut link = driver("1\n");
    assert_eq!(link.link.poll_timeout(), None);
    link.offer(at(300), 0, 100);
    assert_eq!(link.link.poll_timeout(), Some(at(1_000)));
    link.run_out();
    assert_eq!(link.link.poll_timeout(), None);
}
