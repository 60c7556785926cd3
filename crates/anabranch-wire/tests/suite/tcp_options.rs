//! The options of a TCP header: known bytes both ways, order, padding, and options kept raw.

use anabranch_wire::mptcp::{Dss, Mapping, MpPrio, WideOrNarrow};
use anabranch_wire::{
    DataSeq, EmitError, ParseError, SackBlock, SackBlocks, SeqNumber, TcpOptions, Timestamps,
};

/// Emitting `options` must append `bytes` to the buffer, and parsing `bytes` must give `options`.
fn assert_both_ways(options: &TcpOptions, bytes: &[u8]) {
    assert_eq!(emitted(options), bytes);
    assert_eq!(options.bytes_len(), bytes.len());
    assert_eq!(&TcpOptions::parse(bytes).unwrap(), options);
}

fn emitted(options: &TcpOptions) -> Vec<u8> {
    let mut out = vec![0xa5; 5];
    options.emit(&mut out).unwrap();
    assert_eq!(out[..5], [0xa5; 5]);
    out.split_off(5)
}

fn sack(blocks: &[(u32, u32)]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for (start, end) in blocks {
        assert!(sack.push(SackBlock { start: SeqNumber(*start), end: SeqNumber(*end) }));
    }
    sack
}

const TIMESTAMPS: Option<Timestamps> = Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 });

#[test]
fn no_options_take_no_bytes() {
    assert_both_ways(&TcpOptions::default(), &[]);
}

#[test]
fn the_options_of_a_syn() {
    // RFC 9293 §3.2, RFC 2018 §2, RFC 7323 §2.2 and §3.2
    let options = TcpOptions {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: TIMESTAMPS,
        window_scale: Some(7),
        ..TcpOptions::default()
    };
    let bytes = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 3, 3, 7, 1];
    assert_both_ways(&options, &bytes);
}

#[test]
fn sack_blocks_follow_the_timestamps() {
    // RFC 2018 §3
    let options = TcpOptions {
        timestamps: TIMESTAMPS,
        sack: sack(&[(1, 2), (0xffff_fff0, 0x10)]),
        ..TcpOptions::default()
    };
    let bytes = [
        8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xf0, 0, 0,
        0, 0x10,
    ];
    assert_both_ways(&options, &bytes);
}

#[test]
fn timestamps_and_the_longest_dss_fill_the_header() {
    // RFC 8684 §3.3: a DSS option of 28 bytes and 10 bytes of timestamps, padded to 40.
    let mapping = Mapping {
        data_seq: WideOrNarrow::Wide(DataSeq(1)),
        subflow_seq: SeqNumber(2),
        len: 3,
        checksum: Some(4),
    };
    let dss = Dss {
        data_ack: Some(WideOrNarrow::Wide(DataSeq(5))),
        mapping: Some(mapping),
        data_fin: true,
    };
    let options = TcpOptions { timestamps: TIMESTAMPS, dss: Some(dss), ..TcpOptions::default() };
    let bytes = [
        8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 30, 28, 0x20, 0x1f, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0,
        0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 1, 1,
    ];
    assert_both_ways(&options, &bytes);
}

#[test]
fn options_can_fill_whole_words_as_linux_writes_them() {
    // Timestamps of 10 bytes and 2 of padding, a DSS option with an 8-byte DATA_ACK of 12 bytes, and
    // a SACK option of 10 bytes and 2 of padding.
    let options = TcpOptions {
        timestamps: TIMESTAMPS,
        dss: Some(Dss { data_ack: Some(WideOrNarrow::Wide(DataSeq(5))), ..Dss::default() }),
        sack: sack(&[(1, 2)]),
        word_aligned: true,
        ..TcpOptions::default()
    };
    let bytes = [
        8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 30, 12, 0x20, 3, 0, 0, 0, 0, 0, 0, 0, 5, 5, 10, 0, 0,
        0, 1, 0, 0, 0, 2, 1, 1,
    ];
    assert_eq!(options.bytes_len(), bytes.len());
    assert_eq!(emitted(&options), bytes);
    assert_eq!(TcpOptions::parse(&bytes), Ok(options));
}

#[test]
fn more_than_40_bytes_are_an_error_and_leave_the_buffer_unchanged() {
    let options = TcpOptions {
        timestamps: TIMESTAMPS,
        sack: sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]),
        ..TcpOptions::default()
    };
    let mut out = vec![0xa5];
    assert_eq!(options.emit(&mut out), Err(EmitError::OptionsTooLong { bytes: 44 }));
    assert_eq!(out, [0xa5]);
}

#[test]
fn options_after_the_end_of_list_are_ignored() {
    // RFC 9293 §3.2
    let options = TcpOptions::parse(&[1, 4, 2, 1, 0, 3, 3, 7]).unwrap();
    assert_eq!(options, TcpOptions { sack_permitted: true, ..TcpOptions::default() });
}

#[test]
fn unknown_kinds_and_subtypes_are_kept_raw() {
    // RFC 8684 §7.2: subtype 0xf is for private use, 9 is unassigned.
    let bytes = [34, 3, 0xaa, 30, 4, 0xf0, 1, 30, 3, 0x90, 253, 2];
    let options = TcpOptions::parse(&bytes).unwrap();
    assert_eq!(options.unknown.as_deref(), Some(&bytes[..]));
    assert_both_ways(&options, &bytes);
}

#[test]
fn options_with_invalid_lengths_are_kept_raw() {
    // RFC 9293 §3.1: a receiver ignores an unknown option without error, and uses its length to
    // find the next option.
    let bytes =
        [2, 3, 5, 3, 4, 7, 0, 4, 3, 0, 5, 2, 8, 2, 30, 4, 0x50, 1, 30, 2, 30, 4, 0x20, 0x01];
    let options = TcpOptions::parse(&bytes).unwrap();
    assert_eq!(options.unknown.as_deref(), Some(&bytes[..]));
    assert_eq!(options.control, None);
    assert_both_ways(&options, &bytes);
}

#[test]
fn repeated_options_are_kept_raw() {
    let bytes =
        [3, 3, 1, 3, 3, 2, 4, 2, 4, 2, 30, 3, 0x51, 30, 3, 0x50, 30, 4, 0x20, 0, 30, 4, 0x20, 0x10];
    let options = TcpOptions::parse(&bytes).unwrap();
    assert_eq!(options.window_scale, Some(1));
    assert_eq!(options.control.as_ref().unwrap().prio, Some(MpPrio { backup: true }));
    assert_eq!(options.dss, Some(Dss::default()));
    let copies = [3, 3, 2, 4, 2, 30, 3, 0x50, 30, 4, 0x20, 0x10];
    assert_eq!(options.unknown.as_deref(), Some(&copies[..]));
    assert_eq!(TcpOptions::parse(&emitted(&options)).unwrap(), options);
}

#[test]
fn a_malformed_copy_does_not_displace_a_valid_one() {
    let options = TcpOptions::parse(&[2, 3, 9, 2, 4, 0x05, 0xb4]).unwrap();
    assert_eq!(options.mss, Some(1460));
    assert_eq!(options.unknown.as_deref(), Some(&[2, 3, 9][..]));
}

#[test]
fn options_that_cannot_be_separated_are_an_error() {
    let short = |found| ParseError::OptionTooShort { kind: 8, found };
    assert_eq!(TcpOptions::parse(&[8, 0, 1, 1]), Err(short(0)));
    assert_eq!(TcpOptions::parse(&[8, 1, 1, 1]), Err(short(1)));
    let overrun = ParseError::OptionOverrun { kind: 254, found: 4, available: 3 };
    assert_eq!(TcpOptions::parse(&[1, 254, 4, 0]), Err(overrun));
    let truncated = ParseError::Truncated { what: "TCP option", needed: 2, available: 1 };
    assert_eq!(TcpOptions::parse(&[1, 1, 1, 8]), Err(truncated));
}
