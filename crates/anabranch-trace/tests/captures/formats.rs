//! Formats: the same packets give the same tables in every format. Files that are no captures are
//! reported.

use anabranch_trace::{AnalyseError, Input, analyse};
use proptest::prelude::*;

use super::support::{
    Captured, analysis, emit, essence, numbers, pcap, run, segments, table, texts, violations,
};

const SCENARIO: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"20packets\"\nloss = \"1%\"\n\
    [[path]]\nname = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\nlimit = \"60packets\"\n\
    [[connection]]\nworkload = { kind = \"bulk\", size = \"200kB\" }\n";

fn at_server(capture: &[u8]) -> Vec<Captured> {
    let mut all = segments(capture);
    all.retain(|each| each.interface % 2 == 1);
    all
}

/// A pcap capture with this byte order, time unit and link type. `before` precedes every packet.
fn classic(all: &[Captured], big: bool, nanos: bool, link: u32, before: &[u8]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut capture = Vec::new();
    capture.extend(word(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    capture.extend(word(if big { 0x0002_0004 } else { 0x0004_0002 }));
    for value in [0, 0, 65_535, link] {
        capture.extend(word(value));
    }
    for each in all {
        let bytes = [before, &emit(each)].concat();
        let fraction = each.time % 1_000_000_000 / if nanos { 1 } else { 1_000 };
        let times = [(each.time / 1_000_000_000) as u32, fraction as u32];
        for value in [times[0], times[1], bytes.len() as u32, bytes.len() as u32] {
            capture.extend(word(value));
        }
        capture.extend(bytes);
    }
    capture
}

#[test]
fn all_pcap_captures_give_the_same_tables() {
    let all = at_server(&run(SCENARIO, 1).capture);
    let expected = essence(&analysis(&pcap(&all)));
    assert!(expected.0.len() > 100 && expected.3.is_empty());
    for (big, nanos) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(essence(&analysis(&classic(&all, big, nanos, 101, &[]))), expected);
    }
}

#[test]
fn all_link_types_give_the_same_tables() {
    let all = at_server(&run(SCENARIO, 1).capture);
    let expected = essence(&analysis(&pcap(&all)));
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let tagged = [&[2; 12][..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0]].concat();
    let sll = [&[0, 0, 0, 1, 0, 6][..], &[0; 8], &[8, 0]].concat();
    let sll2 = [&[8, 0, 0, 0, 0, 0, 0, 3][..], &[0; 12]].concat();
    for (link, before) in [
        (1, &ethernet[..]),
        (1, &tagged),
        (12, &[]),
        (14, &[]),
        (228, &[]),
        (113, &sll),
        (276, &sll2),
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
    ] {
        assert_eq!(
            essence(&analysis(&classic(&all, false, true, link, before))),
            expected,
            "{link}"
        );
    }
    let outcome = analysis(&classic(&all, false, true, 147, &[]));
    assert!(outcome.notes[0].contains("link type 147"), "{:?}", outcome.notes);
    assert_eq!(table(&outcome, "connections").rows(), 0);
}

/// A pcapng capture with this byte order. Its clock counts units of 2⁻²⁰ s from 1000 s earlier.
fn blocks(all: &[Captured], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut capture = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = word(body.len() as u32 + 12);
        capture.extend([&word(kind)[..], &length, body, &length].concat());
    };
    block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat());
    let offset: [u8; 8] = if big { (-1000_i64).to_be_bytes() } else { (-1000_i64).to_le_bytes() };
    let description = [
        &half(101)[..],
        &half(0),
        &word(0),
        &half(9),
        &half(1),
        &[0x80 | 20, 0, 0, 0],
        &half(14),
        &half(8),
        &offset,
        &word(0),
    ];
    block(1, &description.concat());
    block(0x0bad_0001, &[1, 2, 3, 4]);
    for each in all {
        let mut bytes = emit(each);
        let ticks = ((u128::from(each.time) << 20) / 1_000_000_000) as u64 + (1000 << 20);
        let len = word(bytes.len() as u32);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let times = [word((ticks >> 32) as u32), word(ticks as u32)];
        block(6, &[&word(0)[..], &times[0], &times[1], &len, &len, &bytes].concat());
    }
    capture
}

#[test]
fn pcapng_captures_of_either_byte_order_and_other_clocks_give_the_same_tables() {
    let all = at_server(&run(SCENARIO, 1).capture);
    let expected = essence(&analysis(&pcap(&all)));
    for big in [false, true] {
        let outcome = analysis(&blocks(&all, big));
        assert_eq!(essence(&outcome), expected);
        let first = numbers(table(&outcome, "files"), "first_ns")[0];
        assert!(all[0].time - first < 1_000, "{first} {}", all[0].time);
    }
}

#[test]
fn truncated_packets_still_count() {
    let all = at_server(&run(SCENARIO, 1).capture);
    let expected = essence(&analysis(&pcap(&all)));
    let mut cut = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    cut.extend([96, 0, 0, 0, 101, 0, 0, 0]);
    for each in &all {
        let bytes = emit(each);
        let captured = bytes.len().min(96);
        for word in [0, each.time as u32, captured as u32, bytes.len() as u32] {
            cut.extend(word.to_le_bytes());
        }
        cut.extend(&bytes[..captured]);
    }
    assert_eq!(essence(&analysis(&cut)), expected);
}

#[test]
fn both_ends_of_a_transfer_are_merged_in_one_file_or_from_two() {
    let capture = run(SCENARIO, 1).capture;
    let all = segments(&capture);
    let split =
        |end| all.iter().filter(|each| each.interface % 2 == end).cloned().collect::<Vec<_>>();
    let (client, server) = (pcap(&split(0)), pcap(&split(1)));
    let expected = essence(&analysis(&server));
    assert_eq!(essence(&analysis(&capture)), expected);
    let files = [Input::bytes("client", &client), Input::bytes("server", &server)];
    let merged = analyse(&files, &mut |_, _| true).unwrap();
    assert_eq!(essence(&merged), expected);
    assert_eq!(texts(table(&merged, "connections"), "protocol"), ["MPTCP"]);
    // The receiver's side alone does not show the lost packets, but it shows no violation.
    assert_eq!(violations(&analysis(&client)), [] as [String; 0]);
}

#[test]
fn a_capture_that_begins_in_the_middle_shows_connections_but_no_violations() {
    let all = at_server(&run(SCENARIO, 1).capture);
    let outcome = analysis(&pcap(&all[all.len() / 3..]));
    assert_eq!(violations(&outcome), [] as [String; 0]);
    let connections = table(&outcome, "connections");
    assert_eq!(texts(connections, "protocol")[0], "MPTCP");
    assert_eq!(numbers(connections, "is_complete")[0], 0);
    assert_eq!(numbers(connections, "token_listener")[0], u64::from(u32::MAX));
    let new =
        numbers(table(&outcome, "segments"), "kind").iter().filter(|kind| **kind == 1).count();
    assert!(new > 50, "{new}");
}

#[test]
fn a_capture_of_one_of_two_paths_shows_no_violation() {
    let mut all = at_server(&run(SCENARIO, 1).capture);
    for path in [1, 3] {
        let mut one = all.clone();
        one.retain(|each| each.interface == path);
        let outcome = analysis(&pcap(&one));
        assert_eq!(violations(&outcome), [] as [String; 0]);
        assert_eq!(numbers(table(&outcome, "connections"), "is_complete"), [0]);
    }
    // The capture lacks a hundred packets.
    all.drain(100..200);
    assert_eq!(violations(&analysis(&pcap(&all))), [] as [String; 0]);
}

#[test]
fn damage_is_reported_with_its_place_and_earlier_packets_count() {
    let capture = run(SCENARIO, 1).capture;
    let whole = analysis(&capture);
    let packets = numbers(table(&whole, "files"), "packets")[0];
    let half = analysis(&capture[..capture.len() / 2]);
    let damage = half.damages[0].as_ref().expect("damage");
    assert_eq!(damage.what, "the file ends in the middle of a packet");
    assert!(damage.offset as usize <= capture.len() / 2 && damage.packets < packets);
    assert_eq!(numbers(table(&half, "files"), "packets")[0], damage.packets);
    let at = damage.offset as usize;
    let mut longer = capture.clone();
    longer[at + 4..at + 8].copy_from_slice(&[0xff; 4]);
    let damage = analysis(&longer).damages[0].as_ref().expect("damage").what.clone();
    assert_eq!(damage, "a block claims 4294967295 bytes");
    let mut unequal = capture;
    unequal[at - 4] ^= 4;
    let damage = analysis(&unequal).damages[0].as_ref().expect("damage").what.clone();
    assert_eq!(damage, "a block whose two lengths differ");
}

#[test]
fn a_file_that_is_no_capture_is_refused_with_the_reason() {
    for (bytes, reason) in [
        (&b""[..], "empty"),
        (b"PK", "not a capture: neither pcapng nor pcap"),
        (b"name = \"t\"", "not a capture: neither pcapng nor pcap"),
        (&[0x1f, 0x8b, 8, 0, 0], "unexpected end of file"),
        (
            &[0xfd, b'7', b'z', b'X', b'Z', 0],
            "compressed with xz, bzip2 or lz4: unpack it first (gzip and Zstandard are read as they \
             are)",
        ),
        (&[0xd4, 0xc3, 0xb2, 0xa1, 2], "the file ends in the middle of a packet"),
    ] {
        let failed = analyse(&[Input::bytes("x", bytes)], &mut |_, _| true);
        match failed {
            Err(AnalyseError::NoCapture { damage, .. }) => assert_eq!(damage.what, reason),
            other => panic!("{reason}: {other:?}"),
        }
    }
}

#[test]
fn the_progress_callback_can_stop_the_analysis() {
    let capture = run(&SCENARIO.replace("200kB", "10MB"), 1).capture;
    let mut seen = Vec::new();
    let stopped = analyse(&[Input::bytes("x", &capture)], &mut |done, all| {
        seen.push((done, all));
        seen.len() < 2
    });
    assert!(matches!(stopped, Err(AnalyseError::Interrupted)));
    assert!(seen[0].0 < seen[1].0 && seen[1].1 == 2 * capture.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000), format in 0..3_usize) {
        let starts: [&[u8]; 3] = [
            &[],
            &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0],
        ];
        let capture = [starts[format], &bytes].concat();
        let _ = analyse(&[Input::bytes("x", &capture)], &mut |_, _| true);
    }

    #[test]
    fn headers_of_a_capture_altered_at_random_never_panic(
        alterations in prop::collection::vec((any::<prop::sample::Index>(), 0..80_usize, any::<u8>()), 1..60),
        dropped in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut packets: Vec<_> = small().iter().map(emit).collect();
        for (packet, at, byte) in alterations {
            let packet = packet.index(packets.len());
            if let Some(place) = packets[packet].get_mut(at) {
                *place = byte;
            }
        }
        for packet in dropped {
            packets.remove(packet.index(packets.len()));
        }
        let mut capture = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        capture.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        for (time, packet) in packets.iter().enumerate() {
            let len = packet.len() as u32;
            for word in [0, time as u32, len, len] {
                capture.extend(word.to_le_bytes());
            }
            capture.extend(packet);
        }
        let outcome = analysis(&capture);
        prop_assert!(table(&outcome, "segments").rows() <= packets.len());
        prop_assert!(table(&outcome, "violations").rows() <= 40 * packets.len());
    }
}

/// A transfer of a few segments with wrong TCP checksums. The analysis ignores wrong checksums if
/// most are wrong, so it still processes altered segments.
fn small() -> Vec<Captured> {
    static ALL: std::sync::OnceLock<Vec<Captured>> = std::sync::OnceLock::new();
    let made = ALL.get_or_init(|| {
        let scenario = SCENARIO
            .replace("200kB", "20kB")
            .replace("[[connection]]\n", "[[connection]]\ndss_checksum = true\n");
        let mut all = at_server(&run(&scenario, 1).capture);
        all.iter_mut().for_each(|each| each.segment.checksum_ok = false);
        all
    });
    made.clone()
}
