//! For any scenario, parsing its normalised form gives an equal scenario.

use core::num::NonZeroU64;
use std::sync::Arc;

use anabranch_config::Selection;
use anabranch_net::middlebox::{
    BareSegmentsConfig, BlackholeOptionsConfig, BlackholedSyns, ClampMssConfig, CoalesceConfig,
    Directions as Affected, MiddleboxConfig, NatConfig, OptionCopies, OptionName, PayloadChange,
    ProactiveAckConfig, RewritePayloadConfig, SegmentClass, ShrinkWindowConfig,
    SplitSegmentsConfig, StripOptionsConfig,
};
use anabranch_net::queue::{CakeConfig, FqCoDelConfig, Isolation, PieConfig};
use anabranch_net::units::{ByteCount, Probability, QueueLimit, Rate};
use anabranch_net::{CoDelConfig, Discipline, Moment, RedConfig, ShaperConfig, Trace};
use proptest::option;
use proptest::prelude::*;

use super::tests::{FULL, read};
use super::*;
use crate::workload::{Blocks, Bulk, Cbr, OnOff, RequestResponse};

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0u64..1_000_000_000_000).prop_map(Duration::from_nanos)]
}

/// Durations above zero.
fn lengths() -> impl Strategy<Value = Duration> {
    (1u64..1_000_000_000_000).prop_map(Duration::from_nanos)
}

fn sizes() -> impl Strategy<Value = ByteCount> {
    (1u64..1_000_000_000).prop_map(ByteCount::new)
}

fn rates() -> impl Strategy<Value = Rate> {
    (1u64..100_000_000_000).prop_map(Rate::from_bits_per_second)
}

fn probabilities() -> impl Strategy<Value = Probability> {
    (0u32..=1_000_000_000).prop_map(Probability::from_parts_per_billion)
}

/// A rate or a trace.
fn capacities() -> impl Strategy<Value = (Option<Rate>, Option<TraceSource>)> {
    let steps = prop::collection::vec((1u64..1_000, 1u64..4), 1..20);
    let traces = steps.prop_map(|steps| {
        let mut millis = 0;
        let moments = steps.into_iter().map(|(step, opportunities)| {
            millis += step;
            Moment { millis, opportunities: NonZeroU64::new(opportunities).unwrap() }
        });
        Arc::new(Trace::new(moments.collect()).unwrap())
    });
    prop_oneof![
        rates().prop_map(|rate| (Some(rate), None)),
        traces.prop_map(|trace| (None, Some(TraceSource::Content(trace))))
    ]
}

fn reverses() -> impl Strategy<Value = Reverse> {
    let limits = prop_oneof![
        (1u64..1_000).prop_map(QueueLimit::Packets),
        sizes().prop_map(QueueLimit::Bytes),
        (1u64..1_000_000_000).prop_map(|nanos| QueueLimit::Time(Duration::from_nanos(nanos))),
        Just(QueueLimit::Infinite),
    ];
    let traces = prop::option::of(loss_traces());
    (capacities(), durations(), limits, durations(), probabilities(), traces).prop_map(
        |((rate, trace), delay, limit, jitter, loss, loss_trace)| {
            let (delay, limit) = (Some(delay), Some(limit));
            let (jitter, loss) = (Some(jitter), Some(loss));
            Reverse { rate, trace, delay, limit, jitter, loss, loss_trace }
        },
    )
}

fn loss_traces() -> impl Strategy<Value = LossTrace> {
    prop::collection::btree_set(1u64..1_000, 0..5).prop_map(|lost| LossTrace {
        packets: NonZeroU64::new(1_000).unwrap(),
        lost: lost.into_iter().collect(),
    })
}

fn changes() -> impl Strategy<Value = Change> {
    use prop::option::of;
    let states = [LinkState::Up, LinkState::Down, LinkState::Suspend, LinkState::Resume];
    let applies_to = [AppliesTo::Forward, AppliesTo::Reverse, AppliesTo::Both];
    let change = (rates(), of(durations()), of(durations()), of(probabilities()));
    let state = of(prop::sample::select(states.to_vec()));
    (durations(), change, state, prop::sample::select(applies_to.to_vec())).prop_map(
        |(at, (rate, delay, jitter, loss), state, applies_to)| Change {
            at,
            rate: Some(rate),
            delay,
            jitter,
            loss,
            state,
            applies_to,
            noticed: matches!(state, Some(LinkState::Up | LinkState::Down)),
        },
    )
}

fn middleboxes() -> impl Strategy<Value = Middlebox> {
    let amounts = (1u32..1_000, durations(), any::<bool>());
    let names = prop::sample::select(MiddleboxConfig::ALL.to_vec());
    (names, amounts, durations()).prop_map(|(part, (count, time, flag), from)| Middlebox {
        config: middlebox(part.name, count, time + Duration::from_nanos(1), flag),
        presence: Presence { from, until: flag.then(|| from + Duration::from_secs(1)) },
    })
}

/// A middlebox whose parameters have some values.
fn middlebox(name: &str, count: u32, time: Duration, flag: bool) -> MiddleboxConfig {
    let pick = |number: u32| (count % number) as usize;
    let bytes = ByteCount::new(count.into());
    let directions = [Affected::Forward, Affected::Reverse, Affected::Both][pick(3)];
    match name {
        "strip_options" => {
            let options = [OptionName::Unknown, OptionName::MpJoin, OptionName::MpTcprst];
            let segments = [SegmentClass::Syn, SegmentClass::ThirdAck, SegmentClass::Ack];
            let (options, segments) = (vec![options[2], options[pick(3)]], vec![segments[pick(3)]]);
            StripOptionsConfig { options, segments, after_packets: count, directions }.into()
        }
        "nat" => NatConfig { idle_timeout: time, rebind_at: (!flag).then_some(time) }.into(),
        "split_segments" => {
            let options_on = [OptionCopies::All, OptionCopies::First][pick(2)];
            SplitSegmentsConfig { size: bytes, options_on }.into()
        }
        "coalesce" => CoalesceConfig { size: bytes, delay: time }.into(),
        "rewrite_payload" => {
            let changes = [PayloadChange::Replace, PayloadChange::Insert, PayloadChange::Remove];
            let change = changes[pick(3)];
            RewritePayloadConfig { directions, change, bytes: count, at: bytes }.into()
        }
        "proactive_ack" => ProactiveAckConfig { window: bytes }.into(),
        "blackhole_options" => {
            let syns = [BlackholedSyns::Mptcp, BlackholedSyns::MpJoin, BlackholedSyns::All];
            BlackholeOptionsConfig { syns: syns[pick(3)] }.into()
        }
        "shrink_window" => {
            let (every, lasts) = (time, time * 2);
            ShrinkWindowConfig { directions, every, lasts, to: bytes, refuse: flag }.into()
        }
        "bare_segments" => {
            let probability = Probability::from_parts_per_billion(count);
            BareSegmentsConfig { directions, probability }.into()
        }
        "clamp_mss" => ClampMssConfig { mtu: ByteCount::new(u64::from(count) + 576) }.into(),
        _ => anabranch_config::named(name).expect("it has no parameters"),
    }
}

fn queue(number: usize) -> Queue {
    Queue(match number % 6 {
        0 => Discipline::default(),
        1 => CoDelConfig { target: Duration::from_millis(9), ..CoDelConfig::default() }.into(),
        2 => RedConfig { max_packets: 99, ..RedConfig::default() }.into(),
        3 => FqCoDelConfig { flows: 9, ..FqCoDelConfig::default() }.into(),
        4 => CakeConfig { isolation: Isolation::DualSrchost, ..CakeConfig::default() }.into(),
        _ => PieConfig { max_burst: Duration::from_millis(9), ..PieConfig::default() }.into(),
    })
}

/// A path of `before`, in the opposite direction if it has no middleboxes.
fn via(name: &str, before: &[Path]) -> Via {
    let before: Vec<_> = before.iter().map(Path::as_earlier).collect();
    let reversed = Via::new(vec![format!("-{name}")], &before);
    reversed.or_else(|_| Via::new(vec![name.to_owned()], &before)).unwrap()
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let models = prop::sample::select(vec![JitterOrder::Fifo, JitterOrder::Reordering]);
    let changes = prop::collection::vec(changes(), 0..3);
    let boxes = prop::collection::vec(middleboxes(), 0..4);
    let path = (reverses(), reverses(), models, 576u16.., changes, any::<bool>(), boxes);
    prop::collection::vec(path, 2..5).prop_map(|drawn| {
        let mut paths: Vec<Path> = Vec::new();
        for (n, (forward, reverse, jitter_model, mtu, changes, shares, boxes)) in
            drawn.into_iter().enumerate()
        {
            let via = paths.last().filter(|_| shares).map(|last| via(&last.name, &paths));
            let burst_loss = shares.then_some(BurstLoss {
                to_bad: forward.loss.unwrap(),
                to_good: reverse.loss.unwrap(),
                loss_in_bad: Probability::ONE,
                loss_in_good: Probability::ZERO,
            });
            // A direction that follows a trace has no rate to change.
            let constant = forward.rate.is_some() && reverse.rate.is_some();
            paths.push(Path {
                name: format!("path {n} \"quoted\""),
                rate: forward.rate,
                trace: forward.trace,
                delay: forward.delay.unwrap(),
                limit: forward.limit.unwrap(),
                jitter: forward.jitter.unwrap(),
                jitter_model,
                loss: forward.loss.unwrap(),
                mtu,
                icmp: n % 2 == 0,
                family: if shares { Family::Ipv6 } else { Family::Ipv4 },
                burst_loss,
                loss_trace: forward.loss_trace,
                queue: queue(n),
                shaper: ShaperConfig::default(),
                via: via.unwrap_or_default(),
                routing: Routing::default(),
                reverse,
                middleboxes: boxes,
                changes: if constant { changes } else { vec![] },
            });
        }
        paths
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
    use prop::option::of;
    let count = || of(1u64..1_000_000).prop_map(|count| count.and_then(NonZeroU64::new));
    let times = || distributions(Duration::from_nanos);
    let bursts = (distributions(ByteCount::new), times(), count());
    let sizes_of_rounds = (distributions(ByteCount::new), distributions(ByteCount::new));
    let responses = distributions(|count| count.div_ceil(8));
    prop_oneof![
        of(sizes()).prop_map(|size| Workload::Bulk(Bulk { size })),
        (sizes(), count())
            .prop_map(|(block_size, count)| Workload::Blocks(Blocks { block_size, count })),
        (rates(), sizes(), count()).prop_map(|(rate, block_size, count)| {
            // Blocks of one byte cause too many events at the highest rates.
            let block_size = block_size.max(ByteCount::new(100_000));
            Workload::Cbr(Cbr { rate, block_size, count })
        }),
        bursts.prop_map(|(burst_size, interval, count)| {
            Workload::OnOff(OnOff { burst_size, interval, count })
        }),
        (sizes_of_rounds, responses, times(), times(), count()).prop_map(
            |((request_size, response_size), responses, think_time, interval, count)| {
                Workload::RequestResponse(RequestResponse {
                    interval,
                    request_size,
                    responses,
                    response_size,
                    think_time,
                    count,
                })
            }
        ),
    ]
}

proptest! {
    // Other tests cover the keys of connections, through their defaults and `FULL`.
    #[test]
    fn the_normalised_form_reads_back(
        paths in paths(),
        workload in workloads(),
        buffers in (option::of(sizes()), option::of(sizes())),
        (start, keep_alive) in (durations(), prop::option::of(lengths())),
    ) {
        let mut scenario = read(FULL);
        scenario.duration = Duration::from_secs(10_000);
        let connection = &mut scenario.connections[0];
        connection.paths = Paths::new(vec![1, 0], &paths);
        (connection.send_buffer, connection.receive_buffer) = buffers;
        connection.workload = workload;
        connection.start = start;
        connection.keep_alive = keep_alive;
        scenario.connections[1].paths = Paths::new(vec![1], &paths);
        scenario.paths = paths;
        let written = scenario.to_toml();
        let read = Scenario::from_toml(&written, "written.toml");
        prop_assert_eq!(read.as_ref(), Ok(&scenario));
        prop_assert_eq!(read.unwrap().to_toml(), written);
    }
}
