//! Paths fail and recover, and readers pause. All data written still arrives, and soon.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::remedy::{
    OpportunisticRetransmission, Penalisation, PenalisationForm, Remedy,
};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::{Duration, Segment};
use proptest::prelude::*;

use crate::pair::{self, Fate, Pair, client_address, ms, on_any_platform, server_address};

/// A path's treatment of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Fine,
    Dead,
    DeadUpwards,
    DeadDownwards,
}

impl Path {
    fn swallows(self, upwards: bool) -> bool {
        match self {
            Path::Fine => false,
            Path::Dead => true,
            Path::DeadUpwards => upwards,
            Path::DeadDownwards => !upwards,
        }
    }
}

/// A time in which the paths and readers do not change.
#[derive(Clone, Debug)]
struct Spell {
    paths: [Path; 3],
    paused: bool,
    steps: u32,
}

fn spells() -> impl Strategy<Value = Vec<Spell>> {
    let path = prop_oneof![
        3 => Just(Path::Fine),
        1 => Just(Path::Dead),
        1 => Just(Path::DeadUpwards),
        1 => Just(Path::DeadDownwards),
    ];
    let spell = ([path.clone(), path.clone(), path], prop::bool::weighted(0.25), 1u32..800)
        .prop_map(|(paths, paused, steps)| Spell { paths, paused, steps });
    prop::collection::vec(spell, 0..8)
}

fn configs() -> impl Strategy<Value = ConnectionConfig> {
    let buffer = prop::sample::select(vec![3_000_u64, 20_000, 60_000, 200_000, 1_000_000]);
    let flags = any::<[bool; 5]>();
    (buffer.clone(), buffer, flags).prop_map(|(send_buffer, receive_buffer, flags)| {
        let [plain, remedied, nagle, sack, timestamps] = flags;
        let mut config = on_any_platform().send_buffer(send_buffer).receive_buffer(receive_buffer);
        if plain {
            config.protocol = Protocol::Tcp;
        }
        config.tcp.nagle = nagle;
        config.tcp.sack = sack;
        config.tcp.timestamps = timestamps;
        if remedied {
            config.remedies = Arc::new(|| {
                vec![
                    Box::new(Penalisation::new(PenalisationForm::NSDI12)) as Box<dyn Remedy>,
                    Box::new(OpportunisticRetransmission),
                ]
            });
        }
        config
    })
}

fn path_of(segment: &Segment) -> (usize, bool) {
    let upwards = segment.destination.address == server_address();
    let client = if upwards { segment.source.address } else { segment.destination.address };
    ((0..3).find(|n| client_address(*n) == client).unwrap_or(0).into(), upwards)
}

fn failed(pair: &Pair) -> bool {
    let mut events = pair.client_events.iter().chain(&pair.server_events);
    events.any(|event| matches!(event, Event::Failed(_)))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn all_written_data_arrives_soon_after_the_paths_recover(
        config in configs(),
        addresses in 1u8..4,
        slow_ms in 0u64..200,
        loss_percent in prop::sample::select(vec![0u64, 1, 5]),
        reorder_percent in prop::sample::select(vec![0u64, 5, 30]),
        spells in spells(),
        small_writes in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let state = Rc::new(Cell::new(([Path::Fine; 3], loss_percent)));
        let seen = Rc::clone(&state);
        let mut random = seed | 1;
        let mut draw = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let mut pair = Pair::new(addresses, config.clone(), config)
            .with_slow_path(1, ms(slow_ms))
            .with_filter(move |_, segment| {
                let (path, upwards) = path_of(segment);
                let (paths, loss) = seen.get();
                if paths[path].swallows(upwards) || draw(100) < loss {
                    Fate::Drop
                } else if draw(100) < reorder_percent {
                    Fate::Delay(ms(draw(80)))
                } else {
                    Fate::Deliver
                }
            });
        while pair.accepted.is_none() {
            pair.run_ms(1_000);
        }
        pair.run_ms(5_000);
        let mut target = 0;
        for spell in &spells {
            state.set((spell.paths, loss_percent));
            pair.paused = spell.paused;
            for _ in 0..spell.steps {
                target += if small_writes { 200 } else { 20_000 };
                pair.write(0, target);
                pair.write(1, target);
                pair.run_ms(3);
            }
            if !spell.paused {
                pair.resume();
            }
        }
        state.set(([Path::Fine; 3], 0));
        pair.resume();
        let (mut last, mut since) = (pair.received, pair.now);
        while pair.received != [pair.written[1], pair.written[0]] {
            pair.run_ms(50);
            if pair.received != last {
                (last, since) = (pair.received, pair.now);
            }
            prop_assert!(!failed(&pair), "{:?} {:?}", pair.client_events, pair.server_events);
            let gap = pair.now.saturating_since(since);
            // RFC 6298 §5.5: after an outage of up to 20 s, the next attempt may be another 20 s
            // away.
            prop_assert!(gap < Duration::from_secs(40), "{gap:?} without_slot progress");
        }
        pair.close_both();
        pair.run_ms(200_000);
        prop_assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
        prop_assert!(pair.server_events.contains(&Event::Closed), "{:?}", pair.server_events);
    }
}

/// A connection over two paths has carried data, and both hosts have closed it. The first path is
/// the faster one. Segments of these client addresses are lost from then on.
fn pair_that_loses(addresses: &'static [u8]) -> Pair {
    let dead = Rc::new(Cell::new(false));
    let switch = Rc::clone(&dead);
    let mut pair = Pair::new(2, on_any_platform(), on_any_platform())
        .with_slow_path(1, ms(20))
        .with_filter(move |_, segment| {
            let uses = |n: &u8| pair::is_on(segment, *n);
            if dead.get() && addresses.iter().any(uses) { Fate::Drop } else { Fate::Deliver }
        });
    pair.upload(100_000, 10_000);
    pair.run_ms(1_000);
    switch.set(true);
    pair.close_both();
    pair
}

#[test]
fn a_data_fin_is_sent_on_another_path_if_its_path_died_silently() {
    // RFC 8684 §3.3.3: only the DATA_FIN is outstanding, so no subflow can look dead.
    let mut pair = pair_that_loses(&[0]);
    pair.run_ms(20_000);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
    assert!(pair.server_events.contains(&Event::Closed), "{:?}", pair.server_events);
}

#[test]
fn a_connection_whose_data_fin_is_never_answered_fails() {
    let mut pair = pair_that_loses(&[0, 1]);
    pair.run_ms(3_600_000);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(events.contains(&Event::Failed(ConnectionError::TimedOut)), "{events:?}");
    }
}
