//! Data over several subflows: mappings, DATA_ACK, the shared window, DATA_FIN. RFC 8684 §3.3.

use std::cell::Cell;
use std::rc::Rc;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::remedy::{
    OpportunisticRetransmission, Penalisation, PenalisationForm, Remedy,
};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{Flags, Segment};
use proptest::prelude::*;

use crate::pair::{
    Fate, Pair, client_address, depends_on_the_platform, is_rst, is_syn, ms, on_any_platform,
    server_address, to_server,
};

fn buffers(bytes: u64) -> ConnectionConfig {
    on_any_platform().send_buffer(bytes).receive_buffer(bytes)
}

fn both(config: ConnectionConfig, addresses: u8) -> Pair {
    Pair::new(addresses, config.clone(), config)
}

#[test]
fn every_data_segment_carries_a_mapping_and_a_data_ack() {
    // RFC 8684 §3.7
    let mut pair = both(on_any_platform(), 2);
    pair.download(1_000_000, 5_000);
    for segment in pair.log.iter().filter(|segment| !segment.payload.is_empty()) {
        let dss = segment.options.dss.expect("a data sequence signal");
        let mapping = dss.mapping.expect("a mapping");
        assert_eq!(usize::from(mapping.len), segment.payload.len());
        assert!(dss.data_ack.is_some());
    }
}

#[test]
fn a_small_shared_window_is_never_overrun() {
    let mut pair = both(buffers(20_000), 2).with_slow_path(1, ms(100));
    pair.download(500_000, 60_000);
    assert_eq!(pair.received[0], 500_000);
    assert_eq!(pair.client.counters().no_dss_in_window, 0);
}

#[test]
fn a_probe_detects_a_lost_window_update() {
    depends_on_the_platform("the sizes of the buffers and windows");
    // RFC 9293 §3.8.6.1
    let lost = Rc::new(Cell::new(false));
    let seen = Rc::clone(&lost);
    let mut pair = both(buffers(20_000), 1).with_filter(move |_, segment| {
        let up = segment.destination.address == server_address();
        if up && seen.get() { Fate::Drop } else { Fate::Deliver }
    });
    pair.run_ms(100);
    pair.paused = true;
    pair.download(100_000, 2_000);
    assert_eq!(pair.written[1], 40_000, "both buffers are full");
    lost.set(true);
    pair.resume();
    pair.run_ms(100);
    lost.set(false);
    pair.download(60_000, 60_000);
    assert_eq!(pair.received[0], 100_000);
}

#[test]
fn no_data_is_lost_to_a_black_hole_on_one_path() {
    let mut pair = both(buffers(200_000), 2).with_filter(|n, segment| {
        let on_first =
            [segment.source.address, segment.destination.address].contains(&client_address(0));
        if n > 1_000 && on_first { Fate::Drop } else { Fate::Deliver }
    });
    pair.download(5_000_000, 60_000);
    assert_eq!(pair.received[0], 5_000_000);
    assert!(pair.server.counters().data_level_retransmits > 0);
}

#[test]
fn both_directions_close_in_order_with_data_fin_then_fin() {
    // RFC 8684 §3.3.3
    for protocol in [Protocol::Mptcp, Protocol::Tcp] {
        let mut pair = both(on_any_platform().protocol(protocol), 2);
        pair.upload(100_000, 5_000);
        pair.download(100_000, 5_000);
        pair.close_both();
        pair.run_ms(2_000);
        assert!(pair.client_events.contains(&Event::Closed), "{protocol:?}");
        assert!(pair.server_events.contains(&Event::Closed), "{protocol:?}");
        assert_eq!(pair.segments(is_rst), 0);
        let data_fin = |s: &Segment| s.options.dss.is_some_and(|dss| dss.data_fin);
        let fin = |s: &Segment| s.header.flags.contains(Flags::FIN);
        if protocol == Protocol::Mptcp {
            assert!(pair.log.iter().position(data_fin) < pair.log.iter().position(fin));
        }
        // TIME-WAIT is over, and both hosts have forgotten the connection.
        pair.run_ms(130_000);
        assert_eq!(pair.client.connections().count() + pair.server.connections().count(), 0);
    }
}

#[test]
fn a_lost_data_fin_is_sent_again() {
    let mut dropped = 0;
    let mut pair = both(on_any_platform(), 2).with_filter(move |_, segment| {
        let data_fin = segment.options.dss.is_some_and(|dss| dss.data_fin);
        dropped += u32::from(data_fin);
        if data_fin && dropped <= 3 { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(10_000, 1_000);
    pair.close_both();
    pair.run_ms(20_000);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
    assert!(pair.server_events.contains(&Event::Closed));
}

#[test]
fn a_half_closed_connection_still_delivers_in_the_other_direction() {
    let mut pair = both(on_any_platform(), 2);
    pair.upload(10_000, 1_000);
    pair.client.close(pair.connection);
    pair.run_ms(500);
    pair.download(300_000, 5_000);
    assert_eq!(pair.received, [300_000, 10_000]);
}

#[test]
fn an_abort_reaches_the_peer() {
    let mut pair = both(on_any_platform(), 1);
    pair.upload(10_000, 1_000);
    pair.client.abort(pair.connection);
    pair.run_ms(200);
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::Aborted)));
    assert!(pair.segments(is_rst) > 0);
    assert!(pair.server_events.iter().any(|event| matches!(event, Event::SubflowClosed(_))));
}

fn remedies() -> ConnectionConfig {
    on_any_platform().remedies(|| {
        vec![
            Box::new(Penalisation::new(PenalisationForm::CONEXT13)) as Box<dyn Remedy>,
            Box::new(OpportunisticRetransmission),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// All bytes written are delivered once and in order, whatever the network does.
    #[test]
    fn the_stream_survives_loss_reordering_duplication_and_small_buffers(
        seed in any::<u64>(),
        loss_percent in 0u64..12,
        reorder_percent in 0u64..30,
        buffer in 3_000u64..300_000,
        addresses in 1u8..4,
        slow_ms in 0u64..300,
        with_remedies in any::<bool>(),
        plain in any::<bool>(),
    ) {
        let base = if with_remedies { remedies() } else { on_any_platform() };
        let protocol = if plain { Protocol::Tcp } else { Protocol::Mptcp };
        let config = base
.protocol(protocol)
.send_buffer(buffer)
.receive_buffer(buffer);
        let mut state = seed;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100
        };
        let mut pair = both(config, addresses).with_slow_path(1, ms(slow_ms)).with_filter(
            move |_, _| {
                if draw() < loss_percent {
                    Fate::Drop
                } else if draw() < reorder_percent {
                    Fate::Delay(ms(draw()))
                } else if draw() < 3 {
                    Fate::Twice
                } else {
                    Fate::Deliver
                }
            },
        );
        pair.upload(150_000, 600_000);
        prop_assert_eq!(pair.received[1], 150_000);
        pair.download(150_000, 600_000);
        prop_assert_eq!(pair.received[0], 150_000);
        pair.close_both();
        pair.run_ms(600_000);
        prop_assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
        prop_assert!(pair.server_events.contains(&Event::Closed), "{:?}", pair.server_events);
    }
}

#[test]
fn a_subflow_respects_a_window_that_a_middlebox_has_shrunk() {
    // RFC 8684 §3.3.5
    const SHRUNK: u16 = 100;
    let mut pair = Pair::new(2, on_any_platform(), on_any_platform()).with_filter(|_, segment| {
        if segment.destination.address == client_address(1) && !is_syn(segment) {
            segment.header.window = segment.header.window.min(SHRUNK);
        }
        Fate::Deliver
    });
    pair.upload(20_000_000, 20_000);
    assert_eq!(pair.received[1], 20_000_000);
    let answer = pair.last(|s| is_syn(s) && s.destination.address == client_address(1));
    let window = u32::from(SHRUNK) << answer.options.window_scale.expect("scaling");
    // The window of the SYN/ACK is not scaled, and the filter does not change it.
    let (mut edge, mut sent) = (answer.header.ack + u32::from(answer.header.window), 0);
    for segment in &pair.log {
        if segment.destination.address == client_address(1) && !is_syn(segment) {
            let promised = segment.header.ack + window;
            edge = if promised.distance_from(edge) > 0 { promised } else { edge };
        } else if segment.source.address == client_address(1) && !segment.payload.is_empty() {
            let end = segment.header.seq + segment.payload.len() as u32;
            sent += segment.payload.len() as u64;
            assert!(end.distance_from(edge) <= 0, "data beyond the window");
        }
    }
    assert!(sent > 100_000, "the second path carried {sent} bytes");
}

#[test]
fn numbers_have_8_bytes_when_4_bytes_could_wrap_within_a_segments_lifetime() {
    depends_on_the_platform("when data sequence numbers have 8 bytes");
    // RFC 8684 §3.3.1: half of the 32-bit numbers, 2^31 bytes, is sent in less than two minutes, or
    // in more. One segment in 500 is lost, so some segments are retransmitted with longer options.
    const HALF: u64 = 1 << 31;
    for (pause_ms, expected) in [(0, true), (130_000, false)] {
        let mut config = on_any_platform().send_buffer(32 << 20).receive_buffer(32 << 20);
        config.tcp.mtu = u16::MAX;
        let mut pair = Pair::new(1, config.clone(), config)
            .with_filter(|number, _| if number % 500 == 499 { Fate::Drop } else { Fate::Deliver });
        pair.run_ms(100);
        let is_wide = |s: &Segment| {
            let mapping = s.options.dss.and_then(|dss| dss.mapping);
            mapping.is_some_and(|map| matches!(map.data_seq, WideOrNarrow::Wide(_)))
        };
        let mut wide_before = 0;
        for bytes in [HALF / 2, HALF / 2 - 1_000_000, 40_000_000] {
            wide_before = pair.segments(is_wide);
            pair.run_ms(pause_ms);
            pair.upload(bytes, 60_000);
        }
        pair.run_ms(100);
        assert_eq!(pair.received[1], HALF + 39_000_000);
        assert_eq!(wide_before, 0, "below 2^31 bytes");
        assert_eq!(pair.segments(is_wide) > 400, expected, "{}", pair.segments(is_wide));
        let wide_ack = |s: &Segment| {
            let ack = s.options.dss.and_then(|dss| dss.data_ack);
            matches!(ack, Some(WideOrNarrow::Wide(_)))
        };
        // RFC 8684 §3.3.2
        assert_eq!(pair.segments(|s| !to_server(s) && wide_ack(s)) > 0, expected);
        if !expected {
            // A slow connection may become fast.
            pair.upload(HALF, 60_000);
            assert!(pair.segments(is_wide) > 0);
        }
        let largest = pair.log.iter().map(Segment::wire_len).max();
        assert!(largest <= Some(usize::from(u16::MAX)), "{largest:?}");
    }
}
