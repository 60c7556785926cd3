//! Compares links with numbers derived by hand.

use crate::support::{Driver, at};
use anabranch_net::units::Rate;
use anabranch_net::{
    JitterModel, Link, LinkChange, LinkConfig, Node, Occupancy, ScheduledChange, StateChange,
    WORK_PER_BYTE,
};
use anabranch_wire::{Duration, Instant};

/// 8 Mbit/s: one byte per microsecond.
fn config(delay: u64, limit: &str) -> LinkConfig {
    let rate: Rate = "8Mbit/s".parse().unwrap();
    LinkConfig::new(rate, Duration::from_millis(delay), limit.parse().unwrap())
}

fn driver(config: LinkConfig) -> Driver {
    Driver::new(Link::new(config, 1))
}

fn with_changes(changes: &[(u64, LinkChange)]) -> Driver {
    let changes =
        changes.iter().map(|&(micros, change)| ScheduledChange { at: at(micros), change });
    driver(LinkConfig { changes: changes.collect(), ..config(10, "infinite") })
}

fn state(state: StateChange) -> LinkChange {
    LinkChange { state: Some(state), ..LinkChange::default() }
}

/// Offer packets `0..count` of 1500 bytes at the epoch.
fn burst(driver: &mut Driver, count: u32) {
    (0..count).for_each(|number| driver.offer(Instant::ZERO, number, 1_500));
}

#[test]
fn a_packet_takes_its_serialisation_and_the_delay() {
    let mut driver = driver(config(10, "54packets"));
    driver.offer(Instant::ZERO, 0, 1_500);
    assert_eq!(driver.link.poll_timeout(), Some(at(11_500)));
    driver.run_out();
    driver.offer(at(20_000), 1, 40);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(11_500), 0), (at(30_040), 1)]);
    assert_eq!(driver.link.poll_timeout(), None);
}

#[test]
fn an_idle_link_knows_since_when() {
    let mut driver = driver(config(10, "infinite"));
    burst(&mut driver, 2);
    assert_eq!(driver.link.occupancy(at(0)), Occupancy::Busy);
    // Two packets take 3 ms. The last bit then left long before anybody asked.
    driver.link.handle_timeout(at(9_000));
    assert_eq!(driver.link.occupancy(at(9_000)), Occupancy::Idle { since: at(3_000) });
    // 8 Mbit/s carry 6000 bytes in 6 ms.
    let work = driver.link.capacity_between(at(3_000), at(9_000));
    assert_eq!(work, 6_000 * u128::from(WORK_PER_BYTE));
}

#[test]
fn a_link_that_is_down_or_suspended_is_not_available() {
    for (change, back) in
        [(StateChange::Down, StateChange::Up), (StateChange::Suspend, StateChange::Resume)]
    {
        let mut driver = with_changes(&[(1_000, state(change)), (2_000, state(back))]);
        driver.link.handle_timeout(at(1_500));
        assert_eq!(driver.link.occupancy(at(1_500)), Occupancy::Unavailable, "{change:?}");
        driver.link.handle_timeout(at(2_500));
        assert!(matches!(driver.link.occupancy(at(2_500)), Occupancy::Idle { .. }), "{change:?}");
    }
}

#[test]
fn a_burst_is_delivered_one_serialisation_apart() {
    let mut driver = driver(config(10, "infinite"));
    burst(&mut driver, 4);
    driver.run_out();
    assert_eq!(
        driver.delivered,
        [(at(11_500), 0), (at(13_000), 1), (at(14_500), 2), (at(16_000), 3)]
    );
}

#[test]
fn a_queue_of_54_packets_drops_the_56th_of_a_burst() {
    let mut driver = driver(config(10, "54packets"));
    burst(&mut driver, 55);
    assert_eq!(driver.link.stats().dropped_by_queue, 0);
    burst(&mut driver, 1);
    assert_eq!(driver.link.stats().dropped_by_queue, 1);
    assert_eq!((driver.link.queue_packets(), driver.link.queue_bytes()), (54, 81_000));
    assert_eq!(driver.link.packets_inside(), 55);
    // At 1.5 ms one packet has left the queue, so one more fits.
    driver.offer(at(1_500), 100, 1_500);
    driver.offer(at(1_500), 101, 1_500);
    driver.run_out();
    let stats = driver.link.stats();
    assert_eq!((stats.packets_in, stats.packets_delivered, stats.dropped_by_queue), (58, 56, 2));
    assert_eq!((stats.queue_packets_max, stats.queue_bytes_max), (54, 81_000));
    assert_eq!(stats.bytes_dropped, 3_000);
    assert_eq!(driver.delivered.last(), Some(&(at(56 * 1_500 + 10_000), 100)));
}

#[test]
fn a_queue_of_80_ms_holds_80_kb() {
    let mut driver = driver(config(10, "80ms"));
    burst(&mut driver, 100);
    // One packet is in transmission. 53 packets of 1500 bytes are 79 500 bytes, and a 54th does not
    // fit.
    assert_eq!((driver.link.queue_packets(), driver.link.queue_bytes()), (53, 79_500));
}

#[test]
fn the_queueing_delay_includes_the_rest_of_the_packet_in_transmission() {
    let mut driver = driver(config(10, "infinite"));
    assert_eq!(driver.link.queueing_delay(Instant::ZERO), Duration::ZERO);
    burst(&mut driver, 3);
    driver.run_until(at(500));
    assert_eq!(driver.link.queueing_delay(at(500)), Duration::from_millis(4));
    driver.link.handle_timeout(at(4_500));
    assert_eq!(driver.link.queueing_delay(at(4_500)), Duration::ZERO);
}

#[test]
fn a_million_packets_at_an_odd_rate_arrive_without_drift() {
    let rate: Rate = "7Mbit/s".parse().unwrap();
    let limit = "infinite".parse().unwrap();
    let mut driver = driver(LinkConfig::new(rate, Duration::ZERO, limit));
    // On average, one packet per 2 ms exceeds the rate, so the link never idles.
    for number in 0..1_000_000 {
        driver.offer(at(u64::from(number) * 1_000), number, 1_500);
    }
    driver.run_out();
    // Packet n (counted from 1) ends at n·12 000/7 µs, rounded down to a nanosecond.
    let exact = |number: u64| Instant::from_nanos((number + 1) * 12_000_000 / 7);
    assert!(driver.delivered.iter().all(|&(time, number)| time == exact(u64::from(number))));
    assert_eq!(driver.delivered.len(), 1_000_000);
}

#[test]
fn a_rate_change_affects_the_packet_in_transmission_and_waiting_packets() {
    let change = LinkChange { rate: Some("4Mbit/s".parse().unwrap()), ..LinkChange::default() };
    let mut driver = with_changes(&[(2_000, change)]);
    burst(&mut driver, 3);
    driver.run_out();
    // Packet 1 has 1000 bytes left at 2 ms, which take 2 ms more. Packet 2 takes 3 ms.
    assert_eq!(driver.delivered, [(at(11_500), 0), (at(14_000), 1), (at(17_000), 2)]);
}

#[test]
fn a_delay_change_affects_packets_that_have_not_left() {
    let change = LinkChange { delay: Some(Duration::from_millis(30)), ..LinkChange::default() };
    let mut driver = with_changes(&[(2_000, change)]);
    burst(&mut driver, 3);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(11_500), 0), (at(33_000), 1), (at(34_500), 2)]);
}

#[test]
fn a_shorter_delay_does_not_reorder_under_fifo() {
    let change = LinkChange { delay: Some(Duration::ZERO), ..LinkChange::default() };
    let mut fifo = with_changes(&[(2_000, change)]);
    burst(&mut fifo, 3);
    fifo.run_out();
    assert_eq!(fifo.delivered, [(at(11_500), 0), (at(11_500), 1), (at(11_500), 2)]);

    let changes = vec![ScheduledChange { at: at(2_000), change }];
    let jitter_model = JitterModel::Reordering;
    let mut reordering = driver(LinkConfig { changes, jitter_model, ..config(10, "infinite") });
    burst(&mut reordering, 3);
    reordering.run_out();
    assert_eq!(reordering.delivered, [(at(3_000), 1), (at(4_500), 2), (at(11_500), 0)]);
}

#[test]
fn a_transmission_that_ends_at_the_time_of_a_change_precedes_it() {
    let delay = LinkChange { delay: Some(Duration::from_millis(30)), ..LinkChange::default() };
    let mut driver = with_changes(&[(1_500, delay), (11_500, state(StateChange::Down))]);
    burst(&mut driver, 2);
    driver.run_out();
    // Packet 0 leaves with the old delay and arrives. Packet 1 is lost.
    assert_eq!(driver.delivered, [(at(11_500), 0)]);
    assert_eq!(driver.link.stats().dropped_down, 1);
}

#[test]
fn a_limit_in_time_follows_the_rate() {
    let mut driver = driver(config(10, "3ms"));
    let faster = LinkChange { rate: Some("16Mbit/s".parse().unwrap()), ..LinkChange::default() };
    driver.link.handle_change(Instant::ZERO, faster);
    burst(&mut driver, 10);
    // 3 ms at 16 Mbit/s are 6000 bytes, in addition to the packet in transmission.
    assert_eq!(driver.link.queue_packets(), 4);
}

#[test]
fn a_link_that_is_down_loses_packets_inside_and_packets_offered() {
    let mut driver =
        with_changes(&[(12_000, state(StateChange::Down)), (20_000, state(StateChange::Up))]);
    burst(&mut driver, 12);
    driver.offer(at(15_000), 100, 1_500);
    assert!(!driver.link.is_up());
    driver.offer(at(20_000), 101, 1_500);
    driver.run_out();
    // Only packet 0 arrives before 12 ms.
    assert_eq!(driver.delivered, [(at(11_500), 0), (at(31_500), 101)]);
    let stats = driver.link.stats();
    assert_eq!((stats.dropped_down, stats.bytes_dropped), (12, 18_000));
    assert_eq!((driver.link.packets_inside(), driver.link.is_up()), (0, true));
}

#[test]
fn packets_that_arrived_before_a_cut_survive_a_late_wake_up() {
    for jitter_model in [JitterModel::Fifo, JitterModel::Reordering] {
        let changes = vec![ScheduledChange { at: at(12_000), change: state(StateChange::Down) }];
        let mut driver = driver(LinkConfig { changes, jitter_model, ..config(10, "infinite") });
        burst(&mut driver, 3);
        driver.link.handle_timeout(at(50_000));
        assert_eq!((driver.link.packets_inside(), driver.link.stats().dropped_down), (1, 2));
        driver.run_until(at(50_000));
        assert_eq!(driver.numbers(), [0]);
    }
}

#[test]
fn a_lost_packet_does_not_delay_later_ones() {
    let slow = LinkChange { delay: Some(Duration::from_secs(1)), ..LinkChange::default() };
    let mut driver = with_changes(&[]);
    driver.link.handle_change(Instant::ZERO, slow);
    burst(&mut driver, 1);
    driver.link.handle_change(at(2_000), state(StateChange::Down));
    let fast = LinkChange { delay: Some(Duration::ZERO), ..state(StateChange::Up) };
    driver.link.handle_change(at(3_000), fast);
    driver.offer(at(3_000), 1, 1_500);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(4_500), 1)]);
}

#[test]
fn a_suspended_link_queues_and_continues_where_it_paused() {
    let mut driver =
        with_changes(&[(2_000, state(StateChange::Suspend)), (50_000, state(StateChange::Resume))]);
    burst(&mut driver, 2);
    driver.offer(at(30_000), 2, 1_500);
    assert!(driver.link.is_suspended());
    assert_eq!(driver.link.queue_packets(), 1);
    driver.run_out();
    // Packet 0 has left. Packet 1 has 1000 bytes left, and packet 2 follows it.
    assert_eq!(driver.delivered, [(at(11_500), 0), (at(61_000), 1), (at(62_500), 2)]);
}

#[test]
fn a_suspended_idle_link_queues_packets() {
    let mut driver =
        with_changes(&[(0, state(StateChange::Suspend)), (50_000, state(StateChange::Resume))]);
    driver.offer(at(10_000), 0, 1_500);
    assert_eq!((driver.link.queue_packets(), driver.delivered.len()), (1, 0));
    driver.run_out();
    assert_eq!(driver.delivered, [(at(61_500), 0)]);
}

#[test]
fn a_link_stays_suspended_while_it_goes_down_and_up() {
    let mut driver = with_changes(&[
        (1_000, state(StateChange::Suspend)),
        (2_000, state(StateChange::Down)),
        (3_000, state(StateChange::Up)),
        (9_000, state(StateChange::Resume)),
    ]);
    burst(&mut driver, 2);
    driver.offer(at(4_000), 2, 1_500);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(20_500), 2)]);
}

/// Deliveries of 1000 packets of 40 bytes, one per 100 µs, with jitter of ±2 ms.
fn jittered(jitter_model: JitterModel, seed: u64) -> Driver {
    let jitter = Duration::from_millis(2);
    let config = LinkConfig { jitter, jitter_model, ..config(10, "infinite") };
    let mut driver = Driver::new(Link::new(config, seed));
    (0..1_000).for_each(|number| driver.offer(at(u64::from(number) * 100), number, 40));
    driver.run_out();
    driver
}

#[test]
fn fifo_jitter_varies_the_delay_but_not_the_order() {
    let driver = jittered(JitterModel::Fifo, 1);
    assert!(driver.numbers().is_sorted());
    let delays = driver
        .delivered
        .iter()
        .map(|&(time, number)| time.saturating_since(at(u64::from(number) * 100 + 40)).as_micros());
    let delays: Vec<_> = delays.collect();
    assert!(delays.iter().all(|delay| (8_000..=12_000).contains(delay)));
    assert!(delays.iter().max().unwrap() - delays.iter().min().unwrap() > 1_000);
}

#[test]
fn reordering_jitter_above_the_gap_changes_the_order() {
    let driver = jittered(JitterModel::Reordering, 1);
    let mut numbers = driver.numbers();
    assert!(!numbers.is_sorted());
    assert!(driver.delivered.is_sorted_by_key(|(time, _)| *time));
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn a_waiting_packet_may_arrive_first() {
    // Delays are between 0 and 40 ms, and transmissions take 1.5 ms. The link must ask to be woken
    // for each delivery, even for a packet that was not sent yet. A link that is polled after every
    // departure must not deliver packets earlier.
    let jitter = Duration::from_millis(20);
    let jitter_model = JitterModel::Reordering;
    let config = LinkConfig { jitter, jitter_model, ..config(20, "infinite") };
    let mut woken = driver(config.clone());
    burst(&mut woken, 50);
    woken.run_out();
    let mut watched = driver(config);
    burst(&mut watched, 50);
    for departure in (1..=50).map(|packet| at(packet * 1_500)) {
        watched.run_until(departure);
        watched.link.handle_timeout(departure);
    }
    watched.run_out();
    assert_eq!(woken.delivered, watched.delivered);
    assert!(!woken.numbers().is_sorted());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for model in [JitterModel::Fifo, JitterModel::Reordering] {
        assert_eq!(jittered(model, 7).delivered, jittered(model, 7).delivered);
        assert_ne!(jittered(model, 7).delivered, jittered(model, 8).delivered);
    }
}

#[test]
fn random_loss_occupies_neither_queue_nor_transmitter() {
    let loss = "100%".parse().unwrap();
    let mut driver = driver(LinkConfig { loss, ..config(10, "1packets") });
    burst(&mut driver, 10);
    let stats = driver.link.stats();
    assert_eq!((stats.dropped_by_loss, stats.dropped_by_queue), (10, 0));
    let none = LinkChange { loss: Some("0%".parse().unwrap()), ..LinkChange::default() };
    driver.link.handle_change(Instant::ZERO, none);
    driver.offer(Instant::ZERO, 10, 1_500);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(11_500), 10)]);
}
