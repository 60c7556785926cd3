//! Whatever a scenario holds, its normalised form reads back as the same.

use core::num::NonZeroU64;
use std::sync::Arc;

use anabranch_net::{Moment, Trace, middlebox, queue};
use anabranch_wire::entry::{Kind, Parameter, Value};
use proptest::prelude::*;

use super::policies::tests::host;
use super::tests::{FULL, read};
use super::*;

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0u64..1_000_000_000_000).prop_map(Duration::from_nanos)]
}

/// Durations that are not zero.
fn lengths() -> impl Strategy<Value = Duration> {
    (1u64..1_000_000_000_000).prop_map(Duration::from_nanos)
}

fn sizes() -> impl Strategy<Value = Octets> {
    (1u64..1_000_000_000).prop_map(Octets::new)
}

fn rates() -> impl Strategy<Value = Rate> {
    (1u64..100_000_000_000).prop_map(Rate::from_bits_per_second)
}

fn probabilities() -> impl Strategy<Value = Probability> {
    (0u32..=1_000_000_000).prop_map(Probability::from_parts_per_billion)
}

fn capacities() -> impl Strategy<Value = Capacity> {
    let steps = prop::collection::vec((1u64..1_000, 1u64..4), 1..20);
    let traces = steps.prop_map(|steps| {
        let mut millis = 0;
        let moments = steps.into_iter().map(|(step, opportunities)| {
            millis += step;
            Moment { millis, opportunities: NonZeroU64::new(opportunities).unwrap() }
        });
        Arc::new(Trace::new(moments.collect()).unwrap())
    });
    prop_oneof![rates().prop_map(Capacity::Rate), traces.prop_map(Capacity::Trace)]
}

fn directions() -> impl Strategy<Value = PathDirection> {
    let limits = prop_oneof![
        (1u64..1_000).prop_map(QueueLimit::Packets),
        sizes().prop_map(QueueLimit::Octets),
        (1u64..1_000_000_000).prop_map(|nanos| QueueLimit::Time(Duration::from_nanos(nanos))),
        Just(QueueLimit::Infinite),
    ];
    (capacities(), durations(), limits, durations(), probabilities()).prop_map(
        |(capacity, delay, limit, jitter, loss)| PathDirection {
            capacity,
            delay,
            limit,
            jitter,
            loss,
        },
    )
}

fn changes() -> impl Strategy<Value = PathChange> {
    use prop::option::of;
    let states = [StateChange::Up, StateChange::Down, StateChange::Suspend, StateChange::Resume];
    let applies_to = [AppliesTo::Forward, AppliesTo::Reverse, AppliesTo::Both];
    let change = (rates(), of(durations()), of(durations()), of(probabilities()));
    let state = of(prop::sample::select(states.to_vec()));
    (durations(), change, state, prop::sample::select(applies_to.to_vec())).prop_map(
        |(at, (rate, delay, jitter, loss), state, applies_to)| PathChange {
            at,
            change: LinkChange { rate: Some(rate), delay, jitter, loss, state },
            applies_to,
            noticed: matches!(state, Some(StateChange::Up | StateChange::Down)),
        },
    )
}

fn middleboxes() -> impl Strategy<Value = Middlebox> {
    let amounts = (1u32..1_000, durations(), any::<bool>());
    let kinds = prop::sample::select(middlebox::ALL.to_vec());
    (kinds, amounts, durations()).prop_map(|(kind, (count, time, flag), from)| {
        let entry = middlebox::ALL.iter().find(|entry| entry.name == kind.name).unwrap();
        let mut chosen = Chosen::new(entry);
        for parameter in entry.parameters {
            chosen.values.set(parameter.name, value(parameter, count, time, flag));
        }
        Middlebox { chosen, from, until: flag.then(|| from + Duration::from_secs(1)) }
    })
}

/// Some value of a parameter.
fn value(parameter: &Parameter, count: u32, time: Duration, flag: bool) -> Value {
    let pick = |names: &[&'static str]| names[count as usize % names.len()];
    match parameter.kind {
        Kind::Time { .. } if flag && parameter.default == Value::Unset => Value::Unset,
        Kind::Time { .. } => Value::Time(time + Duration::from_nanos(1)),
        Kind::Count { .. } => Value::Count(count),
        Kind::Octets { .. } => Value::Octets(count.into()),
        Kind::Probability => Value::Probability(count),
        Kind::Flag => Value::Flag(flag),
        Kind::Choice(names) => Value::Choice(pick(names)),
        Kind::Choices(names) => Value::Choices(vec![names[names.len() - 1], pick(names)].into()),
        Kind::Number { .. } | Kind::Path => panic!("no parameter of a middlebox"),
    }
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let models = prop::sample::select(vec![JitterModel::Fifo, JitterModel::Reordering]);
    let changes = prop::collection::vec(changes(), 0..3);
    let boxes = prop::collection::vec(middleboxes(), 0..4);
    let path = (directions(), directions(), models, 576u16.., changes, any::<bool>(), boxes);
    prop::collection::vec(path, 2..5).prop_map(|paths| {
        let named = paths.into_iter().enumerate();
        named
            .map(|(n, (forward, reverse, jitter_model, mtu, changes, shares, boxes))| {
                let name = format!("path {n} \"quoted\"");
                let via = n.checked_sub(1).filter(|_| shares);
                let queue = Chosen::new(&queue::ALL[n % queue::ALL.len()]);
                let burst_loss = shares.then_some(GilbertElliottConfig {
                    to_bad: forward.loss,
                    to_good: reverse.loss,
                    loss_in_bad: Probability::ONE,
                    loss_in_good: Probability::ZERO,
                });
                let constant =
                    |direction: &PathDirection| matches!(direction.capacity, Capacity::Rate(_));
                // What follows a trace has no rate that could change.
                let changes =
                    if constant(&forward) && constant(&reverse) { changes } else { vec![] };
                Path {
                    name,
                    forward,
                    reverse,
                    jitter_model,
                    mtu,
                    family: if shares { Family::Ipv6 } else { Family::Ipv4 },
                    burst_loss,
                    queue,
                    via,
                    middleboxes: boxes,
                    changes,
                }
            })
            .collect()
    })
}

fn distributions<T: Clone + core::fmt::Debug>(
    amounts: impl Fn(u64) -> T + Clone,
) -> impl Strategy<Value = Distribution<T>> {
    let factors = (1_001u32..5_000).prop_map(Factor::from_thousandths);
    (0..5, 1u64..1_000_000, 0u64..1_000_000, factors).prop_map(
        move |(kind, amount, more, factor)| match kind {
            0 => Distribution::Constant(amounts(amount)),
            1 => Distribution::Uniform { min: amounts(amount), max: amounts(amount + more) },
            2 => Distribution::Exponential { mean: amounts(amount) },
            3 => Distribution::Pareto { mean: amounts(amount), shape: factor },
            _ => Distribution::Lognormal { median: amounts(amount), sigma: factor },
        },
    )
}

fn workloads() -> impl Strategy<Value = Workload> {
    prop_oneof![
        prop::option::of(sizes()).prop_map(|size| Workload::Bulk { size }),
        (sizes(), prop::option::of(1u64..1_000_000))
            .prop_map(|(block_size, count)| Workload::Blocks { block_size, count }),
        (rates(), sizes(), prop::option::of(1u64..1_000_000))
            .prop_map(|(rate, block_size, count)| Workload::Cbr { rate, block_size, count }),
        (
            distributions(Octets::new),
            distributions(Duration::from_nanos),
            prop::option::of(1u64..1_000_000)
        )
            .prop_map(|(burst_size, interval, count)| Workload::OnOff {
                burst_size,
                interval,
                count
            }),
        (
            distributions(Octets::new),
            distributions(|count| count.div_ceil(8)),
            distributions(Octets::new),
            distributions(Duration::from_nanos),
            distributions(Duration::from_nanos),
            prop::option::of(1u64..1_000_000)
        )
            .prop_map(
                |(request_size, responses, response_size, think_time, interval, count)| {
                    Workload::RequestResponse {
                        request_size,
                        responses,
                        response_size,
                        think_time,
                        interval,
                        count,
                    }
                }
            ),
    ]
}

fn on_sockets() -> Host {
    let mut host = host("linux");
    host.values.set("buffers", Value::Choice("socket"));
    host
}

proptest! {
    #[test]
    fn the_normalised_form_reads_back(
        paths in paths(),
        workload in workloads(),
        buffers in (sizes(), sizes()),
        switches: (bool, bool, bool, bool),
        others: (bool, bool, bool, bool),
        which_host in 0_usize..3,
        (start, keep_alive) in (durations(), prop::option::of(lengths())),
    ) {
        let mut scenario = read(FULL);
        scenario.duration = Duration::from_secs(10_000);
        scenario.paths = paths;
        let connection = &mut scenario.connections[0];
        (connection.send_buffer, connection.receive_buffer) = buffers;
        (connection.nagle, connection.hystart, connection.dss_checksum, connection.ecn) = switches;
        (
            connection.late_fallback,
            connection.allow_join_initial_addr_port,
            connection.sack,
            connection.timestamps,
        ) = others;
        connection.host = [host("linux"), host("rfc"), on_sockets()][which_host].clone();
        connection.workload = workload;
        connection.start = start;
        connection.keep_alive = keep_alive;
        let written = scenario.to_toml();
        let read = Scenario::from_toml(&written, "written.toml");
        prop_assert_eq!(read.as_ref(), Ok(&scenario));
        prop_assert_eq!(read.unwrap().to_toml(), written);
    }
}
