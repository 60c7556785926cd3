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

/// Delivery times in milliseconds, and packet numbers.
fn deliveries(driver: &Driver) -> Vec<(u64, u32)> {
    driver.delivered.iter().map(|(at, number)| (at.as_millis(), *number)).collect()
}

#[test]
fn a_packet_leaves_with_the_next_opportunity_after_its_arrival() {
    let mut link = driver("0\n2\n5\n");
    // The opportunity at time 0 passes before the packet arrives.
    link.offer(at(0), 0, FULL_SIZE);
    link.run_until(at(4_000));
    link.offer(at(5_000), 1, FULL_SIZE);
    link.offer(at(5_001), 2, FULL_SIZE);
    link.run_out();
    // The period is 5 ms. Opportunities are at 5 (twice: end and start of a period), 7, 10 and 10.
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
    // Bytes 0 to 1503: packets 0, 1, 2 and 4 bytes of 3. To 3007: the rest of 3, and 1008 bytes of
    // packet 4. To 4511: 1504 more bytes of 4. To 6015: its last 488, and packet 5.
    assert_eq!(deliveries(&link), [(1, 0), (1, 1), (1, 2), (2, 3), (4, 4), (4, 5)]);
    assert_eq!(link.link.packets_inside(), 0);
}

#[test]
fn unused_opportunities_are_wasted() {
    let mut link = driver("1\n");
    link.offer(at(0), 0, 100);
    link.run_until(at(1_000));
    // The other 1404 bytes of the opportunity at 1 ms are lost, and all opportunities until 50 ms.
    link.offer(at(50_500), 1, FULL_SIZE);
    link.offer(at(50_500), 2, FULL_SIZE);
    link.run_out();
    assert_eq!(deliveries(&link), [(1, 0), (51, 1), (52, 2)]);
}

#[test]
fn a_saturated_link_uses_exactly_the_opportunities_of_many_periods() {
    let file = "0\n0\n3\n4\n4\n4\n9\n";
    let mut link = driver(file);
    for number in 0..800 {
        link.offer(Instant::ZERO, number, FULL_SIZE);
    }
    // Periods of 9 ms with 7 opportunities. The two at time 0 pass before the packets arrive.
    for millis in [8, 9, 90, 900, 902] {
        link.run_until(at(millis * 1_000));
        let times = file.lines().map(|line| line.parse::<u64>().unwrap());
        let used: u64 = times.map(|time| (millis + 9 - time) / 9).sum::<u64>() - 2;
        let bytes = link.link.stats().bytes_delivered;
        assert_eq!(bytes, used * OPPORTUNITY_BYTES, "until {millis} ms");
    }
}

#[test]
fn a_constant_trace_equals_a_link_with_the_same_rate() {
    // 1504 bytes per millisecond are 12.032 Mbit/s: whole packets at the same times.
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
fn limits_count_waiting_packets_and_a_limit_in_time_uses_the_mean_rate() {
    // The packet that was sent in part has left the queue. No other packet has.
    let mut link = Driver::new(Link::new(config("1\n", "2packets"), 1));
    (0..3).for_each(|number| link.offer(at(0), number, 1_000));
    link.offer(at(1_500), 3, 1_000);
    link.offer(at(1_500), 4, 1_000);
    link.run_out();
    assert_eq!(link.numbers(), [0, 1, 3, 4]);
    // 4 ms at 2 · 1504 · 8 bits in 8 ms are 1504 bytes, however the opportunities are distributed.
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
    // At 12 ms, 1504 bytes of packet 3 were sent. The packet is lost when the link goes down.
    link.link.handle_change(at(12_500), state(StateChange::Down));
    link.link.handle_change(at(12_600), state(StateChange::Up));
    link.offer(at(12_700), 4, FULL_SIZE);
    link.run_out();
    assert_eq!(deliveries(&link), [(1, 0), (10, 1), (11, 2), (13, 4)]);
    assert_eq!((link.link.stats().dropped_down, link.link.packets_inside()), (1, 0));
}

#[test]
fn an_idle_link_requests_no_wake_up() {
    let mut link = driver("1\n");
    assert_eq!(link.link.poll_timeout(), None);
    link.offer(at(300), 0, 100);
    assert_eq!(link.link.poll_timeout(), Some(at(1_000)));
    link.run_out();
    assert_eq!(link.link.poll_timeout(), None);
}
