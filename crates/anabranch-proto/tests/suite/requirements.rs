//! Requirements of RFC 8684 that no other test covers.

use anabranch_proto::Event;
use std::cell::Cell;
use std::rc::Rc;

use anabranch_wire::mptcp::{CapableFlags, CapableKeys, MpCapable, WideOrNarrow};
use anabranch_wire::{DataSeq, Flags};
use sha2::{Digest, Sha256};

use crate::pair::{self, Fate, Pair, client_address, is_syn, on_any_platform};

fn pair(addresses: u8) -> Pair {
    Pair::new(addresses, on_any_platform(), on_any_platform())
}

fn is_answer(segment: &anabranch_wire::Segment) -> bool {
    is_syn(segment) && segment.header.flags.contains(Flags::ACK)
}

#[test]
fn mp_capable_of_other_versions_and_with_unknown_bits_means_tcp() {
    // RFC 8684 §3.1: the version, the extensibility bit, and the algorithms.
    type Change = fn(&mut MpCapable);
    let no_bits = |option: &mut MpCapable| option.flags.hmac_sha256 = false;
    let changes: [Change; 5] = [
        |option| option.version = 0,
        |option| option.version = 2,
        |option| option.version = 15,
        |option| option.flags.extensibility = true,
        no_bits,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        for on_answer in [false, true] {
            let mut pair = pair(2).with_filter(move |_, segment| {
                if is_syn(segment)
                    && is_answer(segment) == on_answer
                    && let Some(control) = &mut segment.options.control
                    && let Some(option) = &mut control.capable
                {
                    change(option);
                }
                Fate::Deliver
            });
            pair.upload(100_000, 5_000);
            pair.download(100_000, 5_000);
            assert_eq!(pair.received, [100_000, 100_000], "change {index}, {on_answer}");
            assert!(pair.client_events.contains(&Event::FellBack));
            let answered = pair.log.iter().find(|s| is_answer(s)).expect("answered");
            assert_eq!(answered.options.control.is_some(), on_answer, "change {index}");
        }
    }
}

#[test]
fn unassigned_bits_of_mp_capable_are_ignored() {
    // RFC 8684 §3.1: the responder chooses among the algorithms that the initiator offers.
    let mut pair = pair(1).with_filter(|_, segment| {
        if is_syn(segment)
            && !is_answer(segment)
            && let Some(control) = &mut segment.options.control
            && let Some(option) = &mut control.capable
        {
            option.flags = CapableFlags { unassigned: 0x1e, ..option.flags };
        }
        Fate::Deliver
    });
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 100_000);
    let answer = pair.last(is_answer).options.control.expect("an answer with an option");
    let flags = answer.capable.expect("MP_CAPABLE").flags;
    assert!(
        flags.hmac_sha256 && flags.unassigned == 0,
        "only the bit of the chosen algorithm is set"
    );
}

#[test]
fn no_join_precedes_the_first_data_sequence_signal() {
    // RFC 8684 §3.1: the first signals are lost.
    let mut lost = 0;
    let mut pair = pair(2).with_filter(move |_, segment| {
        let signals = segment.destination.address == client_address(0) && !is_syn(segment);
        lost += u32::from(signals);
        if signals && lost <= 3 { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(50_000, 5_000);
    pair.run_ms(1_000);
    let signals: Vec<usize> = (0..pair.log.len())
        .filter(|index| pair.log[*index].options.dss.is_some())
        .filter(|index| pair.log[*index].destination.address == client_address(0))
        .collect();
    let join = pair.log.iter().position(|s| s.source.address == client_address(1));
    assert!(join.expect("a join") > signals[3], "the join precedes the first signal that arrived");
}

#[test]
fn a_window_without_a_data_ack_is_ignored() {
    // RFC 8684 §3.3.2
    let small = on_any_platform().receive_buffer(20_000);
    let mut pair = Pair::new(1, on_any_platform(), small);
    pair.paused = true;
    pair.write(0, 100_000);
    pair.run_ms(500);
    let sent = |pair: &Pair| -> usize { pair.log.iter().map(|s| s.payload.len()).sum() };
    let before = sent(&pair);
    let mut ack = pair.last(|s| s.destination.address == client_address(0));
    ack.options.dss = None;
    ack.header.window = u16::MAX;
    pair.client.handle_segment(pair.now, ack);
    pair.drain();
    assert!(sent(&pair) <= before + 1, "{} bytes sent after it", sent(&pair) - before);
    pair.resume();
    pair.upload(0, 0);
    pair.run_ms(5_000);
    assert_eq!(pair.received[1], 100_000);
}

#[test]
fn unanswered_syns_are_finally_repeated_without_the_option() {
    // RFC 8684 §3.1, §3.9.3, §6
    let mut pair = pair(2).with_filter(|_, segment| {
        if is_syn(segment) && segment.options.control.is_some() {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.upload(100_000, 60_000);
    assert_eq!(pair.received[1], 100_000);
    assert!(pair.client_events.contains(&Event::FellBack));
    assert_eq!(pair.segments(|s| is_syn(s) && s.options.control.is_some()), 3);
}

#[test]
fn data_with_8_byte_numbers_is_acknowledged_with_8_bytes() {
    // RFC 8684 §3.3.1, §3.3.2. The filter widens the client's numbers on the path. It knows their
    // low 32 bits, and the client sends less than 2³¹ bytes. So the high half is that of the first
    // DATA_ACK with 8 bytes, or one more after a wrap.
    let idsn = Rc::new(Cell::new(None::<u64>));
    let known = Rc::clone(&idsn);
    let mut pair = pair(2).with_filter(move |_, segment| {
        let from_client = segment.destination.address == pair::server_address();
        if let Some(control) = &segment.options.control
            && let Some(option) = control.capable
            && let CapableKeys::Both { sender, .. } | CapableKeys::WithData { sender, .. } =
                option.keys
        {
            known.set(Some(initial_data_seq(sender)));
        }
        if from_client
            && let Some(dss) = &mut segment.options.dss
            && let Some(mapping) = &mut dss.mapping
            && let (WideOrNarrow::Narrow(low), Some(near)) = (mapping.data_seq, known.get())
        {
            let ahead = low.wrapping_sub(near as u32);
            mapping.data_seq = WideOrNarrow::Wide(DataSeq(near.wrapping_add(u64::from(ahead))));
        }
        Fate::Deliver
    });
    pair.upload(500_000, 10_000);
    pair.download(500_000, 10_000);
    assert_eq!(pair.received, [500_000, 500_000]);
    assert!(idsn.get().is_some());
    let acks: Vec<WideOrNarrow> = pair
        .log
        .iter()
        .filter(|s| s.source.address == pair::server_address() && s.header.ack.0 != 0)
        .filter_map(|s| s.options.dss?.data_ack)
        .collect();
    let wide = acks.iter().filter(|ack| matches!(ack, WideOrNarrow::Wide(_))).count();
    assert!(wide + 20 > acks.len(), "{wide} of {} in 8 bytes", acks.len());
    for segment in &pair.log {
        assert!(segment.payload.len() + segment.options.bytes_len() <= 1460, "{segment:?}");
    }
}

/// RFC 8684 §3.1: the least significant 64 bits of the key's SHA-256.
fn initial_data_seq(key: u64) -> u64 {
    let digest = Sha256::digest(key.to_be_bytes());
    u64::from_be_bytes(digest[24..].try_into().expect("SHA-256 gives 32 bytes"))
}
