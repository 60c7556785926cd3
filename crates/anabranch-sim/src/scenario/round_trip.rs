//! Whatever a scenario holds, its normalised form reads back as the same.

use core::num::NonZeroU64;
use std::sync::Arc;

use anabranch_net::{CoDelConfig, Moment, RedConfig, Trace};
use anabranch_proto::policy::Value;
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
    use anabranch_net::middlebox::{
        BareSegmentsConfig, BlackholedSyns, CoalesceConfig, Directions, NatConfig, OptionCopies,
        OptionName, PayloadChange, ProactiveAckConfig, RewritePayloadConfig, SegmentClass,
        ShrinkWindowConfig, SplitSegmentsConfig, StripOptionsConfig, Towards,
    };
    use anabranch_wire::mptcp::Subtype;
    let sides = [Directions::Both, Directions::Only(Towards::Client)];
    let amounts = (1u32..1_000, durations(), prop::option::of(durations()));
    (0..13, amounts, prop::sample::select(sides.to_vec()), any::<bool>(), durations()).prop_map(
        |(kind, (count, time, maybe), directions, flag, from)| {
            let subtype = Subtype::from_value((count % 9) as u8).unwrap();
            let config = match kind {
                0 => MiddleboxConfig::StripOptions(StripOptionsConfig {
                    options: vec![OptionName::Unknown, OptionName::Subtype(subtype)],
                    segments: vec![SegmentClass::ThirdAck, SegmentClass::Ack],
                    after_packets: count,
                    directions,
                }),
                1 => MiddleboxConfig::Nat(NatConfig { idle_timeout: time, rebind_at: maybe }),
                2 => MiddleboxConfig::SplitSegments(SplitSegmentsConfig {
                    size: count,
                    copies: if flag { OptionCopies::All } else { OptionCopies::First },
                }),
                3 => MiddleboxConfig::Coalesce(CoalesceConfig { size: count, delay: time }),
                4 | 5 => MiddleboxConfig::RewritePayload(RewritePayloadConfig {
                    change: if flag { PayloadChange::Insert } else { PayloadChange::Replace },
                    octets: count,
                    at: time.as_nanos(),
                    directions,
                }),
                6 => MiddleboxConfig::ProactiveAck(ProactiveAckConfig { window: count.into() }),
                7 => MiddleboxConfig::Normalise,
                8 => MiddleboxConfig::HoleRefusal,
                9 => MiddleboxConfig::RewriteIsn,
                10 => MiddleboxConfig::ShrinkWindow(ShrinkWindowConfig {
                    every: Duration::from_millis(count.into()),
                    lasts: time + Duration::from_nanos(1),
                    to: count.into(),
                    refuse: flag,
                    directions,
                }),
                11 => MiddleboxConfig::BareSegments(BareSegmentsConfig {
                    probability: Probability::from_parts_per_billion(count),
                    directions,
                }),
                _ => MiddleboxConfig::BlackholeOptions(match flag {
                    true => BlackholedSyns::All,
                    false => BlackholedSyns::MpJoin,
                }),
            };
            Middlebox { config, from, until: flag.then(|| from + Duration::from_secs(1)) }
        },
    )
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
                let discipline = match n % 3 {
                    0 => Discipline::DropTail,
                    1 => Discipline::CoDel(CoDelConfig::default()),
                    _ => Discipline::Red(RedConfig::default()),
                };
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
                    discipline,
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
