//! Properties of links under random configurations and arrivals.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::support::{Driver, FLOWS};
use anabranch_net::queue::{CakeConfig, FqCoDelConfig, PieConfig};
use anabranch_net::shaper::{DummynetConfig, MininetConfig, NetemConfig, ShaperConfig, TbfConfig};
use anabranch_net::units::{ByteCount, Probability, QueueLimit, Rate};
use anabranch_net::{
    Capacity, CoDelConfig, Discipline, GilbertElliottConfig, JitterModel, Link, LinkChange,
    LinkConfig, LossTrace, Moment, Node, RedConfig, ScheduledChange, StateChange, Trace,
};
use anabranch_wire::{Duration, Instant};
use proptest::option::weighted;
use proptest::prelude::*;

/// A packet offered: nanoseconds since the previous one, and bytes.
type Arrival = (u64, u32);

fn rates() -> impl Strategy<Value = Rate> {
    (100_000u64..1_000_000_000).prop_map(Rate::from_bits_per_second)
}

fn traces() -> impl Strategy<Value = Arc<Trace>> {
    prop::collection::vec((1u64..9, 1u64..4), 1..6).prop_map(|steps| {
        let mut millis = 0;
        let moments = steps.into_iter().map(|(step, opportunities)| {
            millis += step;
            Moment { millis, opportunities: NonZeroU64::new(opportunities).unwrap() }
        });
        Arc::new(Trace::new(moments.collect()).unwrap())
    })
}

fn capacities() -> impl Strategy<Value = Capacity> {
    prop_oneof![2 => rates().prop_map(Capacity::Rate), 1 => traces().prop_map(Capacity::Trace)]
}

fn durations(max_micros: u64) -> impl Strategy<Value = Duration> {
    (0..max_micros * 1_000).prop_map(Duration::from_nanos)
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u64..30).prop_map(QueueLimit::Packets),
        (100u64..40_000).prop_map(|bytes| QueueLimit::Bytes(ByteCount::new(bytes))),
        durations(20_000).prop_map(QueueLimit::Time),
        Just(QueueLimit::Infinite),
    ]
}

fn probabilities() -> impl Strategy<Value = Probability> {
    prop_oneof![
        Just(Probability::ZERO),
        (0u32..=1_000_000_000).prop_map(Probability::from_parts_per_billion)
    ]
}

fn states() -> impl Strategy<Value = StateChange> {
    prop::sample::select(vec![
        StateChange::Up,
        StateChange::Down,
        StateChange::Suspend,
        StateChange::Resume,
    ])
}

fn changes() -> impl Strategy<Value = ScheduledChange> {
    let change = (
        weighted(0.5, rates()),
        weighted(0.5, durations(20_000)),
        weighted(0.3, durations(20_000)),
        weighted(0.3, probabilities()),
        weighted(0.5, states()),
    );
    (0u64..200_000_000, change).prop_map(|(at, (rate, delay, jitter, loss, state))| {
        let change = LinkChange { rate, delay, jitter, loss, state };
        ScheduledChange { at: Instant::from_nanos(at), change }
    })
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    let weight = Probability::from_parts_per_billion(500_000_000);
    let red = RedConfig { min_packets: 1, max_packets: 4, weight, ..RedConfig::default() };
    let target = Duration::from_millis(1);
    let codel = CoDelConfig { target, ..CoDelConfig::default() };
    let interval = Duration::from_millis(5);
    let fq_codel = FqCoDelConfig { target, interval, ..FqCoDelConfig::default() };
    let (update_interval, max_burst) = (target, Duration::ZERO);
    let pie = PieConfig { target, update_interval, max_burst, ..PieConfig::default() };
    prop::sample::select(vec![
        Discipline::default(),
        Discipline::CoDel(codel),
        Discipline::Red(red),
        Discipline::FqCoDel(fq_codel),
        Discipline::Pie(pie),
        Discipline::Cake(CakeConfig { rtt: interval, ..CakeConfig::default() }),
    ])
}

fn shapers() -> impl Strategy<Value = ShaperConfig> {
    prop::sample::select(vec![
        MininetConfig {}.into(),
        NetemConfig {}.into(),
        TbfConfig { burst: ByteCount::new(1_514) }.into(),
        TbfConfig { burst: ByteCount::new(10_000) }.into(),
        DummynetConfig::default().into(),
    ])
}

fn burst_losses() -> impl Strategy<Value = GilbertElliottConfig> {
    (probabilities(), probabilities(), probabilities()).prop_map(
        |(to_bad, to_good, loss_in_bad)| GilbertElliottConfig {
            to_bad,
            to_good,
            loss_in_bad,
            loss_in_good: Probability::ZERO,
        },
    )
}

fn loss_traces() -> impl Strategy<Value = LossTrace> {
    prop::collection::btree_set(1u64..20, 0..5).prop_map(|lost| LossTrace {
        packets: NonZeroU64::new(20).unwrap(),
        lost: lost.into_iter().collect(),
    })
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    let models = prop::sample::select(vec![JitterModel::Fifo, JitterModel::Reordering]);
    let plain =
        (capacities(), durations(20_000), limits(), durations(20_000), models, probabilities());
    let more = (disciplines(), weighted(0.3, burst_losses()), weighted(0.3, loss_traces()));
    let more = (more, weighted(0.5, shapers()));
    (plain, more, prop::collection::vec(changes(), 0..6)).prop_map(
        |(
            (capacity, delay, limit, jitter, jitter_model, loss),
            ((discipline, burst_loss, loss_trace), shaper),
            changes,
        )| {
            LinkConfig {
                capacity,
                delay,
                limit,
                discipline,
                shaper: shaper.unwrap_or_default(),
                jitter,
                jitter_model,
                loss,
                burst_loss,
                loss_trace,
                mtu: None,
                changes,
            }
        },
    )
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gaps = prop_oneof![Just(0), 0u64..1_000, 0u64..3_000_000];
    prop::collection::vec((gaps, 40u32..1_500), 1..150)
}

/// Offer `arrivals`, and call `look` after each.
fn offer_all(driver: &mut Driver, arrivals: &[Arrival], mut look: impl FnMut(&Driver)) {
    let mut now = Instant::ZERO;
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        now += Duration::from_nanos(gap);
        driver.offer(now, number as u32, bytes);
        look(driver);
    }
}

fn assert_conserved(link: &Link) {
    let stats = link.stats();
    let dropped = stats.dropped_by_queue + stats.dropped_by_loss + stats.dropped_down;
    assert_eq!(stats.packets_in, stats.packets_delivered + dropped + link.packets_inside());
}

/// The deliveries of a FIFO link without jitter, loss and changes, computed packet by packet with
/// exact fractions.
fn expected(link_rate: Rate, config: &LinkConfig, arrivals: &[Arrival]) -> Vec<(Instant, u32)> {
    let rate = u128::from(link_rate.as_bits_per_second());
    let (mut now, mut delivered) = (0u128, Vec::new());
    // Start and end of each transmission in nanoseconds times the rate, and its bytes.
    let mut sent: Vec<(u128, u128, u64)> = Vec::new();
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        now += u128::from(gap);
        // A packet waits until its transmission starts, in whole nanoseconds.
        let waiting = sent.iter().filter(|(start, _, _)| start / rate > now);
        let (packets, waiting_bytes) =
            waiting.fold((0, 0), |(packets, sum), (_, _, bytes)| (packets + 1, sum + bytes));
        let idle = sent.last().is_none_or(|(_, end, _)| end / rate <= now);
        let room = match config.limit {
            QueueLimit::Packets(limit) => packets < limit,
            QueueLimit::Infinite => true,
            limit => {
                let limit = limit.equivalents(link_rate).unwrap().bytes.as_u64();
                waiting_bytes + u64::from(bytes) <= limit
            }
        };
        if idle || room {
            let start = sent.last().map_or(0, |(_, end, _)| *end).max(now * rate);
            let end = start + u128::from(bytes) * 8_000_000_000;
            sent.push((start, end, u64::from(bytes)));
            delivered
                .push((Instant::from_nanos((end / rate) as u64) + config.delay, number as u32));
        }
    }
    delivered
}

proptest! {
    #[test]
    fn packets_are_conserved(config in configs(), arrivals in arrivals(), seed: u64) {
        let mut driver = Driver::new(Link::new(config.clone(), seed));
        offer_all(&mut driver, &arrivals, |driver| assert_conserved(&driver.link));
        driver.run_out();
        assert_conserved(&driver.link);
        let stats = driver.link.stats();
        prop_assert_eq!(stats.packets_in, arrivals.len() as u64);
        prop_assert_eq!(stats.packets_delivered, driver.delivered.len() as u64);
        prop_assert!(stats.queue_packets_max <= stats.packets_in);
        if !driver.link.is_suspended() {
            prop_assert_eq!(driver.link.packets_inside(), 0);
            prop_assert_eq!(stats.bytes_in, stats.bytes_delivered + stats.bytes_dropped);
        }
    }

    #[test]
    fn packets_are_delivered_at_most_once_and_in_order_under_fifo(
        config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let (model, discipline) = (config.jitter_model, config.discipline);
        let mut driver = Driver::new(Link::new(config, seed));
        offer_all(&mut driver, &arrivals, |_| ());
        driver.run_out();
        let mut numbers = driver.numbers();
        if model == JitterModel::Fifo {
            let has_flows = matches!(discipline, Discipline::FqCoDel(_) | Discipline::Cake(_));
            prop_assert!(has_flows || numbers.is_sorted());
            for flow in 0..FLOWS {
                let of_flow = numbers.iter().filter(|&number| number % FLOWS == flow);
                prop_assert!(of_flow.is_sorted());
            }
        }
        numbers.sort_unstable();
        prop_assert!(numbers.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_plain_link_agrees_with_exact_arithmetic(
        rate in rates(), config in configs(), arrivals in arrivals(), seed: u64,
    ) {
        let config = LinkConfig::new(rate, config.delay, config.limit);
        let mut driver = Driver::new(Link::new(config.clone(), seed));
        offer_all(&mut driver, &arrivals, |_| ());
        driver.run_out();
        prop_assert_eq!(driver.delivered, expected(rate, &config, &arrivals));
    }

    #[test]
    fn extra_wake_ups_change_nothing(
        config in configs(), arrivals in arrivals(), seed: u64,
        extra in prop::collection::vec(0u64..300_000_000, 0..100),
    ) {
        let mut plain = Driver::new(Link::new(config.clone(), seed));
        offer_all(&mut plain, &arrivals, |_| ());
        plain.run_out();

        let mut extra: Vec<_> = extra.into_iter().map(Instant::from_nanos).collect();
        extra.sort_unstable();
        let mut woken = Driver::new(Link::new(config, seed));
        let (mut now, mut extra) = (Instant::ZERO, extra.into_iter().peekable());
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            while let Some(time) = extra.next_if(|&time| time < now) {
                woken.run_until(time);
                woken.link.handle_timeout(time);
            }
            woken.offer(now, number as u32, bytes);
        }
        woken.run_out();
        prop_assert_eq!(plain.delivered, woken.delivered);
        prop_assert_eq!(plain.link.stats(), woken.link.stats());
    }
}
