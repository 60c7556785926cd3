//! Departures of links that tools make, derived by hand.

use crate::support::{Driver, at};
use anabranch_net::shaper::{DummynetConfig, MininetConfig, NetemConfig, ShaperConfig, TbfConfig};
use anabranch_net::units::{ByteCount, Rate};
use anabranch_net::{
    JitterModel, Link, LinkChange, LinkConfig, Node, Occupancy, StateChange, WORK_PER_BYTE,
};
use anabranch_wire::{Duration, Instant};

/// An IP packet whose Ethernet frame has 1500 bytes.
const PACKET: u32 = 1_486;

/// 8 Mbit/s: one byte per microsecond.
fn config(shaper: impl Into<ShaperConfig>, delay: u64, limit: &str) -> LinkConfig {
    let rate: Rate = "8Mbit/s".parse().unwrap();
    let config = LinkConfig::new(rate, Duration::from_millis(delay), limit.parse().unwrap());
    LinkConfig { shaper: shaper.into(), ..config }
}

fn driver(shaper: impl Into<ShaperConfig>, delay: u64, limit: &str) -> Driver {
    Driver::new(Link::new(config(shaper, delay, limit), 1))
}

fn tbf(burst: u64) -> TbfConfig {
    TbfConfig { burst: ByteCount::new(burst) }
}

/// Offer packets `0..count`, one per `gap` microseconds.
fn offer(driver: &mut Driver, count: u32, gap: u64) {
    (0..count).for_each(|number| driver.offer(at(u64::from(number) * gap), number, PACKET));
}

/// The deliveries of a burst of `count` packets at the epoch, in microseconds.
fn deliveries(mut driver: Driver, count: u32) -> Vec<u64> {
    offer(&mut driver, count, 0);
    driver.run_out();
    driver.delivered.iter().map(|(time, _)| time.as_nanos() / 1_000).collect()
}

fn state(state: StateChange) -> LinkChange {
    LinkChange { state: Some(state), ..LinkChange::default() }
}

#[test]
fn htb_sends_while_the_bucket_is_not_overdrawn() {
    // 1600 tokens: the first packet leaves 100, the second overdraws by 1400. At the rate of one token
    // per microsecond, the debt is paid after 1.4 ms, and each further packet takes 1.5 ms.
    let times = deliveries(driver(MininetConfig {}, 10, "100packets"), 5);
    assert_eq!(times, [10_000, 10_000, 11_400, 12_900, 14_400]);
}

#[test]
fn tbf_sends_what_the_bucket_has_tokens_for() {
    // 4000 tokens: two packets leave 1000, and the third needs 500 more.
    let times = deliveries(driver(tbf(4_000), 10, "infinite"), 5);
    assert_eq!(times, [10_000, 10_000, 10_500, 12_000, 13_500]);
}

#[test]
fn netem_sends_bit_by_bit_after_the_delay() {
    let times = deliveries(driver(NetemConfig {}, 10, "100packets"), 3);
    assert_eq!(times, [11_500, 13_000, 14_500]);
}

#[test]
fn dummynet_sends_at_ticks() {
    // Without Ethernet headers, packets end at 1.486, 2.972, 4.458 and 5.944 ms.
    let times = deliveries(driver(DummynetConfig::default(), 10, "50packets"), 4);
    assert_eq!(times, [12_000, 13_000, 15_000, 16_000]);
    // A packet that arrives between two ticks of an idle pipe has arrived at the first.
    let mut driver = driver(DummynetConfig::default(), 10, "50packets");
    driver.offer(at(20_700), 0, PACKET);
    driver.run_out();
    assert_eq!(driver.delivered, [(at(32_000), 0)]);
}

#[test]
fn a_bucket_fills_again_while_the_link_is_idle() {
    let mut htb = driver(MininetConfig {}, 0, "100packets");
    offer(&mut htb, 4, 0);
    // The fourth packet leaves at 2.9 ms with a debt of 1500. After 3.1 ms, the bucket is full.
    (4..8).for_each(|number| htb.offer(at(6_000), number, PACKET));
    htb.run_out();
    let last: Vec<_> = htb.delivered[3..].iter().map(|(time, _)| *time).collect();
    assert_eq!(last, [at(2_900), at(6_000), at(6_000), at(7_400), at(8_900)]);
}

#[test]
fn a_saturated_bucket_keeps_the_exact_rate() {
    for shaper in [MininetConfig {}.into(), tbf(1_500).into(), ShaperConfig::from(NetemConfig {})] {
        let rate: Rate = "7Mbit/s".parse().unwrap();
        let config = LinkConfig { capacity: rate.into(), ..config(shaper, 0, "infinite") };
        let mut driver = Driver::new(Link::new(config, 1));
        offer(&mut driver, 70_001, 0);
        driver.run_out();
        // 12 000 bits take 12 000/7 µs. The bucket is full for the first packets only.
        let (first, last) = (driver.delivered[2].0, driver.delivered[70_000].0);
        let nanos = last.saturating_since(first).as_nanos();
        assert!(nanos.abs_diff(69_998 * 12_000_000 / 7) <= 1, "{shaper:?}: {nanos}");
    }
}

#[test]
fn the_limit_of_netem_counts_packets_that_are_delayed() {
    for shaper in [ShaperConfig::from(MininetConfig {}), NetemConfig {}.into()] {
        let mut driver = driver(shaper, 10, "4packets");
        offer(&mut driver, 10, 1_000);
        driver.run_out();
        // The first packet leaves at 10 ms (mininet) or later.
        assert_eq!(driver.numbers(), [0, 1, 2, 3], "{shaper:?}");
        let stats = driver.link.stats();
        assert_eq!((stats.dropped_by_queue, stats.queue_packets_max), (6, 4), "{shaper:?}");
    }
    // netem holds a packet until its last bit is sent.
    let mut netem = driver(NetemConfig {}, 10, "1packets");
    netem.offer(at(0), 0, PACKET);
    netem.offer(at(11_400), 1, PACKET);
    netem.offer(at(11_500), 2, PACKET);
    netem.run_out();
    assert_eq!(netem.numbers(), [0, 2]);
}

#[test]
fn the_limit_of_tbf_counts_frames_that_wait() {
    let mut driver = driver(tbf(1_500), 10, "3000B");
    offer(&mut driver, 5, 0);
    // One packet has left, and two wait.
    assert_eq!(driver.link.stats().dropped_by_queue, 2);
    assert_eq!((driver.link.queue_packets(), driver.link.queue_bytes()), (2, 2 * 1_486));
}

#[test]
fn tbf_drops_packets_larger_than_its_bucket() {
    let mut driver = driver(tbf(1_499), 10, "infinite");
    driver.offer(at(0), 0, PACKET);
    driver.offer(at(0), 1, PACKET - 1);
    driver.run_out();
    assert_eq!(driver.numbers(), [1]);
}

/// 1000 packets, one per 2 ms, with jitter of ±8 ms.
fn jittered(shaper: impl Into<ShaperConfig>, jitter_model: JitterModel) -> Driver {
    let jitter = Duration::from_millis(8);
    let config = LinkConfig { jitter, jitter_model, ..config(shaper, 10, "100packets") };
    let mut driver = Driver::new(Link::new(config, 1));
    offer(&mut driver, 1_000, 2_000);
    driver.run_out();
    assert_eq!(driver.delivered.len(), 1_000);
    driver
}

#[test]
fn jitter_reorders_before_the_bucket_of_mininet() {
    let driver = jittered(MininetConfig {}, JitterModel::Reordering);
    assert!(!driver.numbers().is_sorted());
    // The bucket comes last: no interval carries more than the rate, the bucket and one packet.
    let times: Vec<_> = driver.delivered.iter().map(|(time, _)| *time).collect();
    for (n, first) in times.iter().enumerate() {
        for (m, last) in times.iter().enumerate().skip(n) {
            let bytes = (m - n + 1) as u64 * 1_500;
            assert!(bytes <= 1_600 + 1_500 + last.saturating_since(*first).as_micros());
        }
    }
}

#[test]
fn a_long_delay_holds_up_the_packets_behind_it_in_netem() {
    let driver = jittered(NetemConfig {}, JitterModel::Fifo);
    assert!(driver.numbers().is_sorted());
    let gaps = driver.delivered.windows(2).map(|pair| pair[1].0.saturating_since(pair[0].0));
    assert!(gaps.min().unwrap() >= Duration::from_micros(1_500));
}

#[test]
fn a_bucket_is_busy_until_it_is_full() {
    let mut driver = driver(MininetConfig {}, 0, "100packets");
    offer(&mut driver, 4, 0);
    driver.run_out();
    let idle = Occupancy::Idle { since: at(6_000) };
    for (micros, occupancy) in
        [(3_000, Occupancy::Busy), (5_999, Occupancy::Busy), (6_000, idle), (9_000, idle)]
    {
        driver.link.handle_timeout(at(micros));
        assert_eq!(driver.link.occupancy(at(micros)), occupancy, "{micros}");
    }
    // The busy time has carried exactly what was sent.
    let work = driver.link.capacity_between(at(0), at(6_000));
    assert_eq!(work, 4 * 1_500 * u128::from(WORK_PER_BYTE));
}

#[test]
fn a_new_rate_applies_to_what_waits() {
    let faster = LinkChange { rate: Some("16Mbit/s".parse().unwrap()), ..LinkChange::default() };
    let times = |shaper: ShaperConfig| {
        let mut driver = driver(shaper, 10, "infinite");
        offer(&mut driver, 3, 0);
        driver.run_until(at(10_900));
        driver.link.handle_change(at(10_900), faster);
        driver.run_out();
        driver.delivered.iter().map(|(time, _)| time.as_nanos() / 1_000).collect::<Vec<_>>()
    };
    // Mininet: 500 tokens of debt are left, and take 250 µs.
    assert_eq!(times(MininetConfig {}.into()), [10_000, 10_000, 11_150]);
    // netem: 600 bytes are left of the first packet.
    assert_eq!(times(NetemConfig {}.into()), [11_200, 11_950, 12_700]);
}

#[test]
fn a_new_delay_applies_to_packets_whose_delay_begins() {
    let change = LinkChange { delay: Some(Duration::from_millis(2)), ..LinkChange::default() };
    let times = |shaper: ShaperConfig| {
        let mut driver = driver(shaper, 10, "infinite");
        driver.offer(at(0), 0, PACKET);
        driver.link.handle_change(at(0), change);
        driver.offer(at(20_000), 1, PACKET);
        driver.run_out();
        driver.delivered.iter().map(|(time, _)| *time).collect::<Vec<_>>()
    };
    assert_eq!(times(MininetConfig {}.into()), [at(10_000), at(22_000)]);
    assert_eq!(times(tbf(3_000).into()), [at(10_000), at(22_000)]);
}

#[test]
fn a_suspended_shaper_lets_nothing_pass() {
    for shaper in [MininetConfig {}.into(), tbf(3_000).into(), ShaperConfig::from(NetemConfig {})] {
        let mut driver = driver(shaper, 0, "infinite");
        driver.link.handle_change(at(0), state(StateChange::Suspend));
        offer(&mut driver, 2, 1_000);
        assert_eq!(driver.link.queue_packets(), 2, "{shaper:?}");
        driver.link.handle_change(at(50_000), state(StateChange::Resume));
        driver.run_out();
        assert!(driver.delivered.iter().all(|(time, _)| *time >= at(50_000)), "{shaper:?}");
        assert_eq!(driver.delivered.len(), 2, "{shaper:?}");
    }
}

#[test]
fn a_shaper_that_goes_down_loses_what_is_inside() {
    for shaper in [MininetConfig {}.into(), tbf(3_000).into(), ShaperConfig::from(NetemConfig {})] {
        let mut driver = driver(shaper, 10, "infinite");
        offer(&mut driver, 4, 0);
        driver.link.handle_change(at(5_000), state(StateChange::Down));
        assert_eq!((driver.link.packets_inside(), driver.link.stats().dropped_down), (0, 4));
        driver.link.handle_change(at(6_000), state(StateChange::Up));
        driver.offer(at(6_000), 9, PACKET);
        driver.run_out();
        assert_eq!(driver.numbers(), [9], "{shaper:?}");
        assert!(driver.delivered[0].0 <= Instant::ZERO + Duration::from_micros(17_500));
    }
}
