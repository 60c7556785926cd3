//! Options assembled by hand from the figures of RFC 8684, parsed and emitted.

use super::*;
use std::net::IpAddr;

use crate::{DataSeq, SeqNumber};

/// Parsing `$bytes` must give `$value`, and emitting `$value` must append `$bytes` to the buffer.
macro_rules! assert_both_ways {
    ($option:ty, $value:expr, $bytes:expr) => {{
        let (value, bytes): ($option, &[u8]) = ($value, &$bytes);
        assert_eq!(<$option>::parse(bytes), Ok(value));
        assert_eq!(value.bytes_len(), bytes.len());
        let mut out = vec![0xa5; 3];
        value.emit(&mut out);
        assert_eq!(out[..3], [0xa5; 3]);
        assert_eq!(out[3..], *bytes);
    }};
}

const KEY_A: [u8; 8] = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08];
const KEY_B: [u8; 8] = [0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8];
const SENDER: u64 = 0x0102_0304_0506_0708;
const RECEIVER: u64 = 0xf1f2_f3f4_f5f6_f7f8;

const fn capable(flags: CapableFlags, keys: CapableKeys) -> MpCapable {
    MpCapable { version: VERSION, flags, keys }
}

const H_ONLY: CapableFlags = CapableFlags::PLAIN;

#[test]
fn mp_capable_has_five_forms() {
    // RFC 8684 §3.1, figure 4
    assert_both_ways!(MpCapable, capable(H_ONLY, CapableKeys::None), [30, 4, 0x01, 0x01]);

    let syn_ack = [&[30, 12, 0x01, 0x01], &KEY_B[..]].concat();
    assert_both_ways!(MpCapable, capable(H_ONLY, CapableKeys::Sender(RECEIVER)), syn_ack);

    let ack = [&[30, 20, 0x01, 0x01], &KEY_A[..], &KEY_B[..]].concat();
    let both = CapableKeys::Both { sender: SENDER, receiver: RECEIVER };
    assert_both_ways!(MpCapable, capable(H_ONLY, both), ack);

    let with_data = |checksum| CapableKeys::WithData {
        sender: SENDER,
        receiver: RECEIVER,
        data_len: 0x0594,
        checksum,
    };
    let data = [&[30, 22, 0x01, 0x01], &KEY_A[..], &KEY_B[..], &[0x05, 0x94]].concat();
    assert_both_ways!(MpCapable, capable(H_ONLY, with_data(None)), data);

    let summed = [&[30, 24, 0x01, 0x01], &data[4..], &[0xbe, 0xef]].concat();
    assert_both_ways!(MpCapable, capable(H_ONLY, with_data(Some(0xbeef))), summed);
}

#[test]
fn mp_capable_flags_are_at_their_bits() {
    // RFC 8684 §3.1: A is the leftmost bit, H the rightmost.
    let none = CapableFlags { hmac_sha256: false, ..H_ONLY };
    let flags = [
        (CapableFlags { checksum_required: true, ..none }, 0x80),
        (CapableFlags { extensibility: true, ..none }, 0x40),
        (CapableFlags { deny_join_to_source: true, ..none }, 0x20),
        (CapableFlags { unassigned: 0x10, ..none }, 0x10),
        (CapableFlags { unassigned: 0x02, ..none }, 0x02),
        (H_ONLY, 0x01),
    ];
    for (flags, byte) in flags {
        assert_both_ways!(MpCapable, capable(flags, CapableKeys::None), [30, 4, 0x01, byte]);
    }
}

#[test]
fn mp_capable_of_another_version_is_parsed_by_its_length() {
    // RFC 8684 §3.1: version 0 sends a key in the SYN. A peer must read the version to reply.
    let bytes = [&[30, 12, 0x00, 0x81], &KEY_A[..]].concat();
    let option = MpCapable::parse(&bytes).unwrap();
    assert_eq!((option.version, option.keys), (0, CapableKeys::Sender(SENDER)));
    assert_eq!(MpCapable::parse(&[30, 4, 0x0f, 0x01]).unwrap().version, 15);
}

#[test]
fn mp_join_has_three_forms() {
    // RFC 8684 §3.2, figure 5
    let syn = MpJoin::Syn { backup: true, address_id: 7, token: 0x0a0b_0c0d, nonce: 0x1122_3344 };
    assert_both_ways!(
        MpJoin,
        syn,
        [30, 12, 0x11, 7, 0x0a, 0x0b, 0x0c, 0x0d, 0x11, 0x22, 0x33, 0x44]
    );
    // RFC 8684 §3.2, figure 6
    let syn_ack =
        MpJoin::SynAck { backup: false, address_id: 9, truncated_hmac: SENDER, nonce: 0x1122_3344 };
    let bytes = [&[30, 16, 0x10, 9], &KEY_A[..], &[0x11, 0x22, 0x33, 0x44]].concat();
    assert_both_ways!(MpJoin, syn_ack, bytes);
    // RFC 8684 §3.2, figure 7
    let bytes = [&[30, 24, 0x10, 0], &[0xc3; 20][..]].concat();
    assert_both_ways!(MpJoin, MpJoin::Ack { hmac: [0xc3; 20] }, bytes);
}

#[test]
fn dss_has_every_combination_of_ack_and_mapping() {
    // RFC 8684 §3.3, figure 9
    let wide = |number| WideOrNarrow::Wide(DataSeq(number));
    let narrow = WideOrNarrow::Narrow;
    let acks: [(_, u8, &[u8]); 3] = [
        (None, 0x00, &[]),
        (Some(narrow(0xf1f2_f3f4)), 0x01, &KEY_B[..4]),
        (Some(wide(RECEIVER)), 0x03, &KEY_B),
    ];
    let numbers: [(_, u8, &[u8]); 3] = [
        (None, 0x00, &[]),
        (Some(narrow(0x0102_0304)), 0x04, &KEY_A[..4]),
        (Some(wide(SENDER)), 0x0c, &KEY_A),
    ];
    for (data_ack, ack_flags, ack_bytes) in acks {
        for (data_seq, map_flags, seq_bytes) in numbers {
            for checksum in [None, Some(0xbeef)] {
                for data_fin in [false, true] {
                    let mapping = data_seq.map(|data_seq| Mapping {
                        data_seq,
                        subflow_seq: SeqNumber(0x2122_2324),
                        len: 0x0594,
                        checksum,
                    });
                    let flags = ack_flags | map_flags | if data_fin { 0x10 } else { 0 };
                    let mut bytes = [&[30, 0, 0x20, flags], ack_bytes, seq_bytes].concat();
                    if mapping.is_some() {
                        bytes.extend([0x21, 0x22, 0x23, 0x24, 0x05, 0x94]);
                        bytes.extend(checksum.into_iter().flat_map(u16::to_be_bytes));
                    }
                    bytes[1] = bytes.len() as u8;
                    assert_both_ways!(Dss, Dss { data_ack, mapping, data_fin }, bytes);
                }
            }
        }
    }
}

#[test]
fn dss_width_flags_mean_nothing_alone() {
    // RFC 8684 §3.3: "a" and "m" without "A" and "M" are ignored.
    assert_eq!(Dss::parse(&[30, 4, 0x20, 0x0a]), Ok(Dss::default()));
}

#[test]
fn dss_whose_length_contradicts_its_flags_is_an_error() {
    // RFC 8684 §3.3: a 4-byte DATA_ACK and an 8-byte DSN give 22 bytes, or 24 with a checksum.
    for length in (0..=40).filter(|length| ![22, 24].contains(length)) {
        let mut bytes = vec![0; length];
        bytes.iter_mut().zip([30, length as u8, 0x20, 0x0d]).for_each(|(byte, is)| *byte = is);
        assert!(Dss::parse(&bytes).is_err(), "length {length}");
    }
    let mut bytes = [0; 26];
    bytes[..4].copy_from_slice(&[30, 26, 0x20, 0x0d]);
    let expected = Lengths(&[22, 24]);
    let error = ParseError::MptcpLength { subtype: Subtype::Dss, found: 26, expected };
    assert_eq!(Dss::parse(&bytes), Err(error));
}

#[test]
fn add_addr_has_eight_forms() {
    // RFC 8684 §3.4.1, figure 12
    let v4: (IpAddr, &[u8]) = ([192, 0, 2, 1].into(), &[192, 0, 2, 1]);
    let v6_bytes = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
    let v6: (IpAddr, &[u8]) = (v6_bytes.into(), &v6_bytes);
    let mut lengths = Vec::new();
    for (address, address_bytes) in [v4, v6] {
        for port in [None, Some(0x1f90)] {
            for truncated_hmac in [None, Some(SENDER)] {
                let echo = u8::from(truncated_hmac.is_none());
                let mut bytes = [&[30, 0, 0x30 | echo, 3], address_bytes].concat();
                bytes.extend(port.into_iter().flat_map(u16::to_be_bytes));
                bytes.extend(truncated_hmac.into_iter().flat_map(u64::to_be_bytes));
                bytes[1] = bytes.len() as u8;
                lengths.push(bytes.len());
                let option = AddAddr { address_id: 3, address, port, truncated_hmac };
                assert_both_ways!(AddAddr, option, bytes);
            }
        }
    }
    assert_eq!(lengths, [8, 16, 10, 18, 20, 28, 22, 30]);
}

#[test]
fn add_addr_has_an_hmac_unless_it_is_an_echo() {
    // RFC 8684 §3.4.1: the HMAC is present if and only if E is 0.
    let mut bytes = [0; 16];
    bytes[..3].copy_from_slice(&[30, 16, 0x31]);
    assert!(AddAddr::parse(&bytes).is_err());
    assert!(AddAddr::parse(&[30, 8, 0x30, 1, 192, 0, 2, 1]).is_err());
}

#[test]
fn remove_addr_lists_one_identifier_or_many() {
    // RFC 8684 §3.4.2, figure 13
    assert_both_ways!(RemoveAddr, RemoveAddr::new(&[5]).unwrap(), [30, 4, 0x40, 5]);
    assert_both_ways!(RemoveAddr, RemoveAddr::new(&[1, 0, 9]).unwrap(), [30, 6, 0x40, 1, 0, 9]);
    let most: Vec<u8> = (0..37).collect();
    let bytes = [&[30, 40, 0x40], &most[..]].concat();
    assert_both_ways!(RemoveAddr, RemoveAddr::new(&most).unwrap(), bytes);
}

#[test]
fn mp_prio_carries_the_backup_bit() {
    // RFC 8684 §3.3.8, figure 11
    assert_both_ways!(MpPrio, MpPrio { backup: true }, [30, 3, 0x51]);
    assert_both_ways!(MpPrio, MpPrio { backup: false }, [30, 3, 0x50]);
}

#[test]
fn mp_fail_carries_the_data_sequence_number() {
    // RFC 8684 §3.7, figure 16
    let bytes = [&[30, 12, 0x60, 0], &KEY_A[..]].concat();
    assert_both_ways!(MpFail, MpFail { data_seq: DataSeq(SENDER) }, bytes);
}

#[test]
fn fastclose_carries_the_receivers_key() {
    // RFC 8684 §3.5, figure 14
    let bytes = [&[30, 12, 0x70, 0], &KEY_B[..]].concat();
    assert_both_ways!(MpFastclose, MpFastclose { receiver_key: RECEIVER }, bytes);
}

#[test]
fn mp_reset_carries_flags_and_reason() {
    // RFC 8684 §3.6, figure 15
    let reset = |unassigned, transient, reason| MpTcprst { unassigned, transient, reason };
    assert_both_ways!(
        MpTcprst,
        reset(0, true, ResetReason::UNACCEPTABLE_PERFORMANCE),
        [30, 4, 0x81, 5]
    );
    assert_both_ways!(MpTcprst, reset(0x0e, false, ResetReason(0xee)), [30, 4, 0x8e, 0xee]);
}

#[test]
fn reserved_bits_are_ignored() {
    // RFC 8684 §3.2, §3.3, §3.4.1, §3.5, §3.7: receivers ignore reserved bits.
    assert_eq!(MpPrio::parse(&[30, 3, 0x5f]), Ok(MpPrio { backup: true }));
    assert_eq!(Dss::parse(&[30, 4, 0x2f, 0xe0]), Ok(Dss::default()));
    let bytes = [&[30, 12, 0x6f, 0xff], &KEY_A[..]].concat();
    assert_eq!(MpFail::parse(&bytes), Ok(MpFail { data_seq: DataSeq(SENDER) }));
    let bytes = [&[30, 24, 0x1f, 0xff], &[1; 20][..]].concat();
    assert_eq!(MpJoin::parse(&bytes), Ok(MpJoin::Ack { hmac: [1; 20] }));
}

#[test]
fn every_option_refuses_every_other_length() {
    type Accepts = fn(&[u8]) -> bool;
    let table: [(Subtype, Accepts, &[usize]); 8] = [
        (Subtype::Capable, |o| MpCapable::parse(o).is_ok(), &[4, 12, 20, 22, 24]),
        (Subtype::Join, |o| MpJoin::parse(o).is_ok(), &[12, 16, 24]),
        (Subtype::Dss, |o| Dss::parse(o).is_ok(), &[4]),
        (Subtype::AddAddr, |o| AddAddr::parse(o).is_ok(), &[16, 18, 28, 30]),
        (Subtype::Prio, |o| MpPrio::parse(o).is_ok(), &[3]),
        (Subtype::Fail, |o| MpFail::parse(o).is_ok(), &[12]),
        (Subtype::Fastclose, |o| MpFastclose::parse(o).is_ok(), &[12]),
        (Subtype::Tcprst, |o| MpTcprst::parse(o).is_ok(), &[4]),
    ];
    for (subtype, accepts, lengths) in table {
        let accepted: Vec<_> =
            (3..=60).filter(|length| accepts(&zeros(subtype, *length))).collect();
        assert_eq!(accepted, lengths, "{subtype}");
    }
    let removes =
        (3..=60).filter(|length| RemoveAddr::parse(&zeros(Subtype::RemoveAddr, *length)).is_ok());
    assert_eq!(removes.collect::<Vec<_>>(), (4..=40).collect::<Vec<_>>());
}

#[test]
fn errors_state_the_reason() {
    let expected = Subtype::Prio;
    assert_eq!(MpPrio::parse(&[30, 3, 0x60]), Err(ParseError::MptcpSubtype { found: 6, expected }));
    assert_eq!(
        MpPrio::parse(&[8, 3, 0x50]),
        Err(ParseError::OptionKind { found: 8, expected: 30 })
    );
    assert_eq!(
        MpPrio::parse(&[30, 4, 0x50]),
        Err(ParseError::OptionOverrun { kind: 30, found: 4, available: 3 })
    );
    assert_eq!(
        MpPrio::parse(&[30, 4, 0x50, 0]),
        Err(ParseError::MptcpLength { subtype: expected, found: 4, expected: Lengths(&[3]) })
    );
    assert_eq!(
        MpPrio::parse(&[30]),
        Err(ParseError::Truncated { what: "MP_PRIO", needed: 3, available: 1 })
    );
}

/// An option of this subtype and length whose other bytes are zero.
fn zeros(subtype: Subtype, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..3].copy_from_slice(&opening(subtype, length, 0));
    bytes
}
