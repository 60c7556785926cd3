//! Checksums of mappings. RFC 8684 §3.1 (negotiation), §3.3.1.

use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::{CapableKeys, Mapping, ResetReason};
use anabranch_wire::{Payload, Segment};
use bytes::Bytes;
use proptest::prelude::*;

use crate::pair::{
    Fate, Pair, depends_on_the_platform, is_on, is_rst, ms, on_any_platform, to_server,
};

fn config(dss_checksum: bool) -> ConnectionConfig {
    on_any_platform().dss_checksum(dss_checksum)
}

fn both(addresses: u8) -> Pair {
    Pair::new(addresses, config(true), config(true))
}

fn mapping(segment: &Segment) -> Option<Mapping> {
    segment.options.dss?.mapping
}

fn requires_checksums(segment: &Segment) -> Option<bool> {
    Some(segment.options.control.as_ref()?.capable?.flags.checksum_required)
}

fn closes(pair: &mut Pair) {
    pair.close_both();
    pair.run_ms(5_000);
    assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
    assert!(pair.server_events.contains(&Event::Closed), "{:?}", pair.server_events);
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn checksums_are_used_in_both_directions_if_either_host_requires_them() {
    // RFC 8684 §3.1
    for (client, server) in [(false, false), (true, false), (false, true), (true, true)] {
        let expected = client || server;
        let mut pair = Pair::new(2, config(client), config(server));
        pair.upload(100_000, 5_000);
        pair.download(100_000, 5_000);
        closes(&mut pair);
        let case = format!("client {client}, server {server}");
        let flags: Vec<bool> = pair.log.iter().filter_map(requires_checksums).collect();
        // SYN, SYN/ACK, and all segments that repeat the keys.
        assert_eq!(flags[..2], [client, expected], "{case}");
        assert!(flags[2..].iter().all(|flag| *flag == expected), "{case}");
        let mappings = pair.log.iter().filter_map(mapping);
        let with = mappings.filter(|mapping| mapping.checksum.is_some()).count();
        let all = pair.log.iter().filter_map(mapping).count();
        assert_eq!(with, if expected { all } else { 0 }, "{case}");
    }
}

#[test]
fn a_segment_with_checksum_fills_a_packet_exactly() {
    depends_on_the_platform("the size of options");
    // IP and TCP headers 40, timestamps 10, DSS with checksum 20: 1500 - 40 - 32.
    let mut pair = both(2);
    pair.upload(200_000, 5_000);
    let longest = pair.log.iter().map(Segment::wire_len).max();
    assert_eq!(longest, Some(1_500));
    let data = |s: &&Segment| !s.payload.is_empty() && mapping(s).is_some();
    assert_eq!(pair.log.iter().filter(data).map(|s| s.payload.len()).max(), Some(1_428));
    // MP_CAPABLE with keys, length and checksum 24, timestamps 10: 1500 - 40 - 36.
    let first = pair.log.iter().find(|s| !s.payload.is_empty()).expect("data");
    let keys = first.options.control.as_ref().and_then(|control| control.capable);
    assert!(matches!(
        keys.map(|capable| capable.keys),
        Some(CapableKeys::WithData { checksum: Some(_), data_len: 1_424, .. })
    ));
}

#[test]
fn checksums_of_shared_memory_and_of_a_data_fin_with_the_last_bytes_are_correct() {
    // RFC 8684 §3.3.1
    // RFC 8684 §3.3.3: the DATA_FIN counts towards the mapping's length, but it is no byte of the
    // data.
    let mut pair = both(1);
    pair.kept = Some(Default::default());
    pair.unchecked = true;
    pair.run_ms(100);
    let bytes: Vec<u8> = (0..5_001_u32).map(|n| (n * n / 8) as u8).collect();
    pair.client.send(pair.connection, bytes.clone()).expect("open");
    pair.client.close(pair.connection);
    pair.run_ms(500);
    assert_eq!(pair.kept.as_ref().expect("kept")[1], bytes);
    let fin = pair.log.iter().find(|s| s.options.dss.is_some_and(|dss| dss.data_fin));
    assert!(
        fin.is_some_and(|segment| !segment.payload.is_empty()),
        "the DATA_FIN is on a segment with data"
    );
    closes(&mut pair);
    assert_eq!(pair.server.counters().data_csum_err, 0);
}

#[test]
fn a_mapping_that_arrives_in_parts_is_delivered_when_it_is_complete() {
    // RFC 8684 §3.3.1: the second part is lost at first. Its retransmission declares the original
    // mapping.
    for options_on in [[true, true], [true, false], [false, true]] {
        let mut split = None;
        let mut pair = both(1).with_filter(move |n, segment| {
            if n > 30 && split.is_none() && to_server(segment) && segment.payload.len() > 1_000 {
                split = Some(segment.header.seq + 400);
                return Fate::Split { at: 400, options_on };
            }
            Fate::Deliver
        });
        pair.upload(200_000, 10_000);
        closes(&mut pair);
        assert_eq!(pair.received[1], 200_000, "{options_on:?}");
        assert_eq!(pair.server.counters().data_csum_err, 0, "{options_on:?}");
    }
}

#[test]
fn the_rest_of_a_split_segment_repeats_the_mapping_of_the_whole_segment() {
    // RFC 8684 §3.3.1: neither a mapping nor its checksum changes.
    for checksum in [false, true] {
        let mut cut = false;
        let mut pair =
            Pair::new(1, config(checksum), config(checksum)).with_filter(move |n, segment| {
                if n > 30 && !cut && to_server(segment) && segment.payload.len() > 1_000 {
                    cut = true;
                    segment.payload = segment.payload.slice(0, 400);
                }
                Fate::Deliver
            });
        pair.upload(100_000, 10_000);
        assert_eq!(pair.received[1], 100_000);
        let mut whole = std::collections::BTreeMap::new();
        for segment in pair.log.iter().filter(|s| to_server(s)) {
            if let Some(mapping) = mapping(segment) {
                let first = *whole.entry(mapping.subflow_seq.0).or_insert(mapping);
                assert_eq!(first, mapping);
            }
        }
        let rest = |s: &Segment| {
            mapping(s).is_some_and(|mapping| usize::from(mapping.len) == s.payload.len() + 400)
        };
        assert!(pair.segments(rest) > 0, "checksum {checksum}");
        assert_eq!(pair.server.counters().dss_not_matching, 0);
    }
}

#[test]
fn a_mapping_without_a_checksum_that_was_agreed_resets_the_subflow() {
    // RFC 8684 §3.3; a checksum that was not agreed resets the subflow as well.
    for agreed in [true, false] {
        let mut pair =
            Pair::new(2, config(agreed), config(agreed)).with_filter(move |n, segment| {
                if n > 100
                    && is_on(segment, 1)
                    && to_server(segment)
                    && let Some(dss) = &mut segment.options.dss
                    && let Some(mapping) = &mut dss.mapping
                {
                    mapping.checksum = if agreed { None } else { Some(7) };
                }
                Fate::Deliver
            });
        pair.upload(1_000_000, 20_000);
        assert_eq!(pair.received[1], 1_000_000);
        let reset = pair.log.iter().find(|s| is_rst(s) && !to_server(s)).expect("a reset");
        let reason = reset.options.control.as_ref().and_then(|control| control.reset);
        assert_eq!(reason.map(|reset| reset.reason), Some(ResetReason::MPTCP_SPECIFIC));
        assert!(is_on(reset, 1));
    }
}

#[test]
fn a_first_mapping_without_the_agreed_checksum_ends_the_connection() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // RFC 8684 §3.1, §3.3: MP_CAPABLE with data has 22 bytes instead of 24.
    let mut pair = both(1).with_filter(|_, segment| {
        if let Some(control) = &mut segment.options.control
            && let Some(capable) = &mut control.capable
            && let CapableKeys::WithData { checksum, .. } = &mut capable.keys
        {
            *checksum = None;
        }
        Fate::Deliver
    });
    pair.upload(10_000, 2_000);
    assert_eq!(pair.received[1], 0);
    let reset = Event::Failed(ConnectionError::Reset);
    assert!(pair.client_events.contains(&reset), "{:?}", pair.client_events);
}

#[test]
fn a_data_fin_without_data_whose_checksum_is_wrong_is_ignored() {
    depends_on_the_platform("the lengths of the timeouts");
    // RFC 8684 §3.3.3: the checksum covers the pseudo-header. The retransmission is correct.
    let mut changed = 0;
    let mut pair = both(1).with_filter(move |_, segment| {
        if let Some(dss) = &mut segment.options.dss
            && let Some(mapping) = dss.mapping.as_mut().filter(|_| dss.data_fin)
            && changed < 2
        {
            changed += 1;
            mapping.checksum = mapping.checksum.map(|checksum| checksum ^ 1);
        }
        Fate::Deliver
    });
    pair.upload(10_000, 1_000);
    pair.client.close(pair.connection);
    pair.run_ms(50);
    let accepted = pair.accepted.expect("accepted");
    assert!(!pair.server.is_at_end(accepted));
    assert_eq!(pair.server.counters().data_csum_err, 1);
    pair.run_ms(5_000);
    assert!(pair.server.is_at_end(accepted));
}

#[test]
fn a_data_fin_whose_mapping_fails_its_checksum_is_ignored() {
    // RFC 8684 §3.7: nothing in a mapping with a wrong checksum counts before the fallback.
    let mut pair = both(1).with_filter(|_, segment| {
        let data_fin = segment.options.dss.is_some_and(|dss| dss.data_fin);
        if data_fin && !segment.payload.is_empty() {
            let zeros = Bytes::from(vec![0; segment.payload.len()]);
            segment.payload = Payload::from(zeros);
        }
        // The answer to MP_FAIL is always lost.
        let fails = |s: &Segment| s.options.control.as_ref().is_some_and(|c| c.fail.is_some());
        if to_server(segment) && fails(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.run_ms(100);
    pair.client.send_pattern(pair.connection, 0, 5_000).expect("open");
    pair.client.close(pair.connection);
    pair.run_ms(22);
    let accepted = pair.accepted.expect("accepted");
    assert_eq!(pair.server.counters().data_csum_err, 1);
    assert!(!pair.server.is_at_end(accepted));
    assert!(pair.received[1] < 5_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// With checksums, the engine tolerates loss, reordering, duplication, splitting and small
    /// buffers: every checksum is correct.
    #[test]
    fn no_subflow_is_reset_if_the_network_changes_no_byte(
        seed in any::<u64>(),
        loss_percent in 0u64..10,
        buffer in 3_000u64..300_000,
        addresses in 1u8..4,
        slow_ms in 0u64..200,
    ) {
        let config = config(true)
.send_buffer(buffer)
.receive_buffer(buffer);
        let mut state = seed;
        let mut draw = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut pair = Pair::new(addresses, config.clone(), config)
            .with_slow_path(1, ms(slow_ms))
            .with_filter(move |_, segment| match draw(100) {
                n if n < loss_percent => Fate::Drop,
                n if n < 20 => Fate::Delay(ms(draw(100))),
                n if n < 25 => Fate::Twice,
                n if n < 35 && segment.payload.len() > 1 => Fate::Split {
                    at: 1 + draw(segment.payload.len() as u64 - 1) as usize,
                    options_on: [true, draw(2) == 0],
                },
                _ => Fate::Deliver,
            });
        pair.upload(100_000, 600_000);
        pair.download(100_000, 600_000);
        prop_assert_eq!(pair.received, [100_000; 2]);
        pair.close_both();
        pair.run_ms(600_000);
        prop_assert!(pair.client_events.contains(&Event::Closed), "{:?}", pair.client_events);
        for host in [&pair.client, &pair.server] {
            prop_assert_eq!(host.counters().data_csum_err, 0);
        }
    }
}
