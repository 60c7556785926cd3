//! Payload whose mapping arrives late or never. RFC 8684 §3.3.1.

use anabranch_proto::Event;
use anabranch_proto::config::ConnectionConfig;
use anabranch_wire::mptcp::{Dss, Mapping, ResetReason, WideOrNarrow};
use anabranch_wire::{Flags, Payload, Segment, SeqNumber, dss_checksum};
use bytes::Bytes;

use super::support::{Liar, assert_takes_no_join, buffers, give};
use crate::pair::to_server;

fn late(late_fallback: bool) -> ConnectionConfig {
    buffers(100_000).late_fallback(late_fallback)
}

fn fell_back(liar: &Liar) -> bool {
    liar.pair.server_events.contains(&Event::FellBack)
}

fn reason(segment: &Segment) -> Option<ResetReason> {
    Some(segment.options.control.as_ref()?.reset?.reason)
}

#[test]
fn payload_whose_mapping_arrives_with_a_later_segment_waits_for_it() {
    // RFC 8684 §3.3.1: a mapping covers bytes, not a segment. A late mapping does not mean that the
    // path strips options, even if it stripped them from an earlier copy.
    for late_fallback in [false, true] {
        let mut liar = Liar::of(late(late_fallback));
        let copy = liar.bare(500_u32.wrapping_neg(), &[0; 500]);
        give(&mut liar.pair, copy);
        for round in 0..3 {
            let at = round * 2000;
            liar.say_unmapped(at, &[1; 1000]);
            liar.pair.run_ms(190);
            assert_eq!(liar.received(), [0; 0]);
            liar.say_mapped(at + 1000, &[2; 1000], at, i64::from(at), 2000);
            assert_eq!(liar.received(), [[1; 1000], [2; 1000]].concat(), "round {round}");
            liar.pair.run_ms(5);
        }
        liar.pair.run_ms(1_500);
        assert!(liar.is_alive() && !fell_back(&liar), "{late_fallback}");
    }
}

#[test]
fn each_payload_without_a_mapping_waits_for_the_full_time() {
    // RFC 8684 §3.3.1, §3.7: the subflow ends, or with late fallback, Multipath TCP does.
    for late_fallback in [false, true] {
        let mut liar = Liar::of(late(late_fallback));
        liar.say_unmapped(0, &[1; 1000]);
        liar.pair.run_ms(100);
        liar.say_mapped(1000, &[2; 1000], 0, 0, 2000);
        liar.pair.run_ms(3_000);
        liar.say_unmapped(2000, &[3; 1000]);
        let limit_ms = if late_fallback { 200 } else { 1_000 };
        liar.pair.run_ms(limit_ms - 1);
        assert!(liar.is_alive() && !fell_back(&liar), "{late_fallback}");
        liar.pair.run_ms(2);
        assert_eq!((liar.is_alive(), fell_back(&liar)), (late_fallback, late_fallback));
        if !late_fallback {
            let reset = liar.pair.last(crate::pair::is_rst);
            assert_eq!(reason(&reset), Some(ResetReason::MIDDLEBOX_INTERFERENCE));
        }
    }
}

#[test]
fn payload_without_a_mapping_after_the_end_of_the_stream_is_ignored() {
    // RFC 8684 §3.3.3: nothing follows the DATA_FIN. The host may close whenever it wants.
    for late_fallback in [false, true] {
        let mut liar = Liar::of(late(late_fallback));
        let mut last = liar.bare(0, &[1; 1000]);
        let mapping = Mapping {
            data_seq: WideOrNarrow::Wide(liar.data_seq),
            subflow_seq: SeqNumber(liar.subflow_seq),
            len: 1001,
            checksum: None,
        };
        last.options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: true });
        give(&mut liar.pair, last);
        assert_eq!(liar.received(), [1; 1000]);
        for round in 0..3 {
            liar.say_unmapped(1000 + 500 * round, &[2; 500]);
            liar.pair.run_ms(3_000);
        }
        assert!(liar.is_alive() && !fell_back(&liar) && liar.received().is_empty());
        let is_data_fin = |segment: &Segment| {
            !to_server(segment) && segment.options.dss.is_some_and(|dss| dss.data_fin)
        };
        assert_eq!(liar.pair.segments(is_data_fin), 0);
        liar.pair.close_both();
        assert!(liar.is_alive() && liar.pair.segments(is_data_fin) > 0, "{late_fallback}");
    }
}

#[test]
fn a_connection_does_not_fall_back_on_a_closed_subflow() {
    // RFC 8684 §3.7: payload on this subflow was waiting for its mapping.
    let mut liar = Liar::of(late(true));
    liar.say_unmapped(0, &[1; 1000]);
    let mut reset = liar.bare(1000, &[]);
    reset.header.flags = Flags::RST;
    give(&mut liar.pair, reset);
    liar.pair.run_ms(1_000);
    assert!(!fell_back(&liar), "{:?}", liar.pair.server_events);
}

#[test]
fn a_connection_that_fell_back_accepts_no_join() {
    // RFC 8684 §3.7
    let mut liar = Liar::of(late(true));
    liar.say_unmapped(0, &[1; 1000]);
    liar.pair.run_ms(1_000);
    assert!(fell_back(&liar));
    assert_takes_no_join(&mut liar.pair);
}

#[test]
fn a_mapping_with_checksum_may_arrive_byte_by_byte() {
    // RFC 8684 §3.3.1
    for bytes in [500, 4_000, 10_000] {
        let mut liar = Liar::of(buffers(100_000).dss_checksum(true));
        let payload = Payload::from(Bytes::from(vec![5; usize::from(bytes)]));
        let subflow_seq = SeqNumber(liar.subflow_seq);
        let checksum = Some(dss_checksum(liar.data_seq, subflow_seq, bytes, &payload));
        let data_seq = WideOrNarrow::Wide(liar.data_seq);
        let mapping = Mapping { data_seq, subflow_seq, len: bytes, checksum };
        let mut first = liar.bare(0, &[5]);
        first.options.dss = Some(Dss { data_ack: None, mapping: Some(mapping), data_fin: false });
        give(&mut liar.pair, first);
        for at in 1..u32::from(bytes) {
            liar.say_unmapped(at, &[5]);
        }
        assert!(liar.is_alive() && liar.received().len() == usize::from(bytes), "{bytes}");
    }
}
