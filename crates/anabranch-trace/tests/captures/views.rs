//! Views of one host complement each other, copies count once, and parts of a capture show no
//! violation that the whole does not have.

use anabranch_trace::{Analysis, Input, analyse};
use anabranch_wire::Flags;
use anabranch_wire::mptcp::WideOrNarrow;
use proptest::prelude::*;

use super::support::{
    Captured, Packets, analysis, broken, emit, essence, numbers, pcap, run, segments, table, texts,
    violations,
};

const SCENARIO: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"20packets\"\nloss = \"1%\"\n\
    [[path]]\nname = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\nlimit = \"60packets\"\n\
    [[connection]]\ndss_checksum = true\nworkload = { kind = \"bulk\", size = \"200kB\" }\n";

/// A transfer as the server's host sees it.
fn transfer() -> Vec<Captured> {
    static ALL: std::sync::OnceLock<Vec<Captured>> = std::sync::OnceLock::new();
    let made = ALL.get_or_init(|| {
        let mut all = segments(&run(SCENARIO, 1).capture);
        all.retain(|each| each.interface % 2 == 1);
        // Distinct times, so that packets of several files have one order.
        for at in 1..all.len() {
            all[at].time = all[at].time.max(all[at - 1].time + 1);
        }
        all
    });
    made.clone()
}

fn is_outgoing(each: &Captured) -> bool {
    each.segment.source.port < each.segment.destination.port
}

fn of_files(files: &[Vec<u8>]) -> Analysis {
    let inputs: Vec<_> = files.iter().map(|file| Input::bytes("file", file)).collect();
    analyse(&inputs, &mut |_, _| true).expect("an analysis")
}

/// Linux's cooked header in version 1.
fn cooked(kind: u8) -> Vec<u8> {
    [&[0, kind, 0, 1, 0, 6][..], &[2; 8], &[8, 0]].concat()
}

/// The same in version 2.
fn cooked_2(interface: u8, kind: u8) -> Vec<u8> {
    [&[8, 0, 0, 0, 0, 0, 0, interface, 0, 1, kind, 6][..], &[2; 8]].concat()
}

/// The parts for which `wanted` is true and false.
fn split(all: &[Captured], mut wanted: impl FnMut(&Captured) -> bool) -> [Vec<u8>; 2] {
    let (yes, no): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|each| wanted(each));
    [pcap(&yes), pcap(&no)]
}

#[test]
fn a_cooked_capture_of_all_interfaces_shows_both_directions() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    assert!(expected.0.len() > 100 && expected.3.is_empty());
    let (mut one, mut two) = (Packets::new(113), Packets::new(276));
    for each in &all {
        let kind = if is_outgoing(each) { 4 } else { 0 };
        one.push(each.time, &[cooked(kind), emit(each)].concat());
        two.push(each.time, &[cooked_2(each.interface as u8, kind), emit(each)].concat());
    }
    for capture in [one.bytes, two.bytes] {
        let outcome = analysis(&capture);
        assert_eq!(essence(&outcome), expected);
        assert_eq!(outcome.notes, [] as [String; 0]);
        let connections = table(&outcome, "connections");
        assert_eq!(numbers(connections, "subflows"), [2]);
        assert_eq!(numbers(connections, "is_complete"), [1]);
        assert_eq!(numbers(connections, "hmacs_right"), [2]);
    }
}

#[test]
fn files_of_one_direction_of_one_time_or_of_some_packets_complement_each_other() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    // A tap with an interface per direction.
    let outcome = of_files(&split(&all, is_outgoing));
    assert_eq!((essence(&outcome), outcome.notes), (expected.clone(), vec![]));
    // Rotated files.
    let parts: Vec<_> = all.chunks(all.len() / 3).map(pcap).collect();
    let outcome = of_files(&parts);
    assert_eq!((essence(&outcome), outcome.notes), (expected.clone(), vec![]));
    // Two interfaces over which the host spreads its packets.
    let mut turn = 0;
    let parts = split(&all, |_| {
        turn += 1;
        turn % 2 == 0
    });
    let outcome = of_files(&parts);
    assert_eq!((essence(&outcome), outcome.notes), (expected, vec![]));
}

#[test]
fn captures_of_one_host_may_overlap() {
    // Longer than the longest delay between two places, so that the rest is no late copy.
    let slow = SCENARIO.replace("8Mbit/s", "400kbit/s").replace("4Mbit/s", "200kbit/s");
    let mut all = segments(&run(&slow, 1).capture);
    all.retain(|each| each.interface % 2 == 1);
    let expected = essence(&analysis(&pcap(&all)));
    let (third, two_thirds) = (all.len() / 3, all.len() * 2 / 3);
    let outcome = of_files(&[pcap(&all[..two_thirds]), pcap(&all[third..])]);
    assert_eq!(essence(&outcome), expected);
    assert!(outcome.notes[0].contains("captured at several places"), "{:?}", outcome.notes);
}

#[test]
fn a_mirror_port_and_a_forwarding_host_show_each_packet_once() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let (mut mirrored, mut forwarded) = (Packets::new(101), Packets::new(113));
    for each in &all {
        let packet = emit(each);
        mirrored.push(each.time, &packet);
        mirrored.push(each.time + 30_000, &packet);
        forwarded.push(each.time, &[cooked(0), packet.clone()].concat());
        forwarded.push(each.time + 30_000, &[cooked(4), packet].concat());
    }
    let outcome = analysis(&mirrored.bytes);
    let retransmitted =
        |outcome: &Analysis| numbers(table(outcome, "subflows"), "retransmitted_in");
    assert_eq!(retransmitted(&outcome), retransmitted(&analysis(&pcap(&all))));
    assert_eq!(essence(&outcome).2, expected.2);
    assert_eq!(violations(&outcome), [] as [String; 0]);
    assert!(outcome.notes[0].contains("copies of packets just before"), "{:?}", outcome.notes);
    let outcome = analysis(&forwarded.bytes);
    assert_eq!(essence(&outcome), expected);
    assert!(outcome.notes[0].contains("several places"), "{:?}", outcome.notes);
}

#[test]
fn acknowledgements_with_an_identification_are_copies_as_well() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let mut mirrored = Packets::new(101);
    for (number, each) in (1_u16..).zip(&all) {
        let mut packet = emit(each);
        // The identification is not part of a checksum that the analysis verifies.
        packet[4..6].copy_from_slice(&number.to_be_bytes());
        mirrored.push(each.time, &packet);
        mirrored.push(each.time + 5_000_000, &packet);
    }
    assert_eq!(essence(&analysis(&mirrored.bytes)), expected);
}

#[test]
fn a_simultaneous_open_is_one_connection() {
    // RFC 9293 §3.5
    let all = transfer();
    let mut both: Vec<_> = all.into_iter().take(2).collect();
    both.retain(|each| each.segment.options.control.is_some());
    both[1].segment.header.flags = Flags::SYN;
    both.iter_mut().for_each(|each| each.segment.options.control = None);
    let subflows = numbers(table(&analysis(&pcap(&both)), "connections"), "subflows");
    assert_eq!((both.len(), subflows), (2, vec![1]));
}

#[test]
fn joins_from_many_addresses_with_the_same_contents_are_a_flood() {
    let all = transfer();
    let is_join = |each: &&Captured| {
        let control = each.segment.options.control.as_deref();
        control.is_some_and(|control| control.join.is_some())
    };
    let syn = all.iter().find(is_join).expect("a join").clone();
    let mut flood = all.clone();
    for number in 0..300_u16 {
        let mut copy = syn.clone();
        let [high, low] = number.to_be_bytes();
        copy.segment.source.address = [198, 18, high, low].into();
        copy.time += 1 + u64::from(number);
        flood.push(copy);
    }
    flood.sort_by_key(|each| each.time);
    let outcome = analysis(&pcap(&flood));
    let target = syn.segment.destination;
    let expected = format!("300 joins to {target} from 300 addresses were not completed: a flood");
    assert_eq!(outcome.notes, [expected]);
    // The transfer is what it is without the flood.
    let subflows = table(&outcome, "subflows");
    assert_eq!(texts(subflows, "kind").iter().filter(|kind| *kind == "join").count(), 301);
    let connection = |outcome| numbers(table(outcome, "connections"), "bytes_in");
    assert_eq!(connection(&outcome), connection(&analysis(&pcap(&all))));
}

#[test]
fn out_of_order_packets_of_one_interface_are_sorted() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let mut shuffled = all.clone();
    shuffled.chunks_mut(3).for_each(<[Captured]>::reverse);
    assert_eq!(essence(&analysis(&pcap(&shuffled))), expected);
}

#[test]
fn checksums_left_to_the_network_card_are_no_corruption() {
    let all = transfer();
    let expected = essence(&analysis(&pcap(&all)));
    let outgoing = |each: &Captured| is_outgoing(each) && !each.segment.payload.is_empty();
    // CHECKSUM_PARTIAL: the field holds the folded sum of the pseudo-header.
    for every in [1, 5] {
        let (mut capture, mut count) = (Packets::new(101), 0);
        for each in &all {
            let mut packet = emit(each);
            count += usize::from(outgoing(each));
            if outgoing(each) && count % every == 0 {
                let partial = folded_pseudo_header(&packet);
                packet[36..38].copy_from_slice(&partial.to_be_bytes());
            }
            capture.push(each.time, &packet);
        }
        let outcome = analysis(&capture.bytes);
        assert_eq!((essence(&outcome), outcome.notes), (expected.clone(), vec![]));
    }
    // A few wrong checksums of segments that fit are corruption.
    let mut capture = Packets::new(101);
    let mut wrong = 0;
    for (number, each) in all.iter().enumerate() {
        let mut packet = emit(each);
        if outgoing(each) && number % 10 == 0 {
            packet[36] ^= 0x55;
            wrong += 1;
        }
        capture.push(each.time, &packet);
    }
    let outcome = analysis(&capture.bytes);
    let corrupted: u64 = numbers(table(&outcome, "subflows"), "corrupted").iter().sum();
    assert_eq!(corrupted, wrong);
}

/// The sum of an IPv4 pseudo-header for the TCP segment of this packet, without the complement.
fn folded_pseudo_header(packet: &[u8]) -> u16 {
    let words = packet[12..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum: u32 = words.sum::<u32>() + 6 + (packet.len() as u32 - 20);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_payload_above_the_maximum_segment_size_has_no_checksum() {
    let mut all = transfer();
    let expected: u64 = numbers(table(&analysis(&pcap(&all)), "subflows"), "bytes_in").iter().sum();
    // Both ends announce a smaller size than the segments have: the kernel merged them.
    for each in all.iter_mut().filter(|each| each.segment.header.flags.contains(Flags::SYN)) {
        each.segment.options.mss = Some(536);
    }
    let mut altered = 0;
    for (number, each) in all.iter_mut().enumerate() {
        if number % 7 == 0 && each.segment.payload.len() > 536 {
            each.segment.checksum_ok = false;
            altered += 1;
        }
    }
    assert!(altered > 5, "{altered}");
    let outcome = analysis(&pcap(&all));
    let subflows = table(&outcome, "subflows");
    assert_eq!(numbers(subflows, "corrupted").iter().sum::<u64>(), 0);
    assert_eq!(numbers(subflows, "bytes_in").iter().sum::<u64>(), expected);
}

#[test]
fn checksums_are_not_judged_where_half_of_the_number_is_unknown() {
    // RFC 8684 §3.3.1: the checksum covers all 64 bits, and the option may carry 32.
    let mut all = transfer();
    all.retain(|each| {
        each.segment.options.control.is_none() && !each.segment.header.flags.contains(Flags::SYN)
    });
    for each in &mut all {
        let Some(dss) = each.segment.options.dss.as_mut() else { continue };
        for number in dss.mapping.iter_mut().map(|m| &mut m.data_seq).chain(&mut dss.data_ack) {
            if let WideOrNarrow::Wide(wide) = *number {
                *number = WideOrNarrow::Narrow(wide.0 as u32);
            }
        }
    }
    assert!(all.iter().any(|each| each.segment.options.dss.is_some_and(|dss| dss.data_fin)));
    assert_eq!(violations(&analysis(&pcap(&all))), [] as [String; 0]);
}

#[test]
fn a_window_whose_scale_was_not_captured_opens_the_window_of_all_subflows() {
    // The first SYN is missing, and a join tells the scale of its own windows alone.
    let all = transfer();
    for len in 70..100 {
        let outcome = analysis(&pcap(&all[1..=len]));
        assert_eq!(violations(&outcome), [] as [String; 0], "{len} packets");
    }
}

#[test]
fn one_direction_of_a_connection_shows_no_violation() {
    for way in split(&transfer(), is_outgoing) {
        let outcome = analysis(&way);
        assert_eq!(violations(&outcome), [] as [String; 0]);
        assert_eq!(numbers(table(&outcome, "connections"), "is_complete")[0], 0);
    }
}

#[test]
fn options_that_were_cut_are_named_and_not_judged() {
    let all = transfer();
    for snap_length in [40, 44, 52, 60] {
        let mut cut = Packets::new(101);
        for each in &all {
            cut.push_cut(each.time, &emit(each), snap_length);
        }
        let outcome = analysis(&cut.bytes);
        assert_eq!(violations(&outcome), [] as [String; 0]);
        let note = outcome.notes.iter().any(|note| note.contains("TCP options that were cut"));
        assert!(note, "{snap_length}: {:?}", outcome.notes);
        // Bytes are known from the IP header.
        let bytes: u64 = numbers(table(&outcome, "subflows"), "bytes_in").iter().sum();
        let out: u64 = numbers(table(&outcome, "subflows"), "bytes_out").iter().sum();
        assert!(bytes.max(out) >= 200_000, "{snap_length}: {bytes}");
        let connections = table(&outcome, "connections");
        let known = ["bytes_in", "bytes_out"].map(|name| numbers(connections, name));
        let known: u64 = known.iter().flatten().sum();
        // A join whose token was cut has no connection.
        assert!(known <= bytes + out && known > 150_000, "{snap_length}: {known}, {bytes}");
        assert!(!texts(table(&outcome, "connections"), "fallback").iter().any(|f| !f.is_empty()));
    }
    // Even the fixed part of the TCP header is cut.
    let mut cut = Packets::new(101);
    all.iter().for_each(|each| cut.push_cut(each.time, &emit(each), 39));
    let outcome = analysis(&cut.bytes);
    let words = format!("{} packets were not read", all.len());
    assert!(outcome.notes[0].contains(&words), "{:?}", outcome.notes);
    assert!(outcome.notes[0].contains("cut by the snap length (first: packet 1)"));
    assert_eq!(numbers(table(&outcome, "files"), "unread_packets"), [all.len() as u64]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn parts_of_a_good_capture_show_no_violation(
        begin in 0..400_usize,
        len in 1..800_usize,
        interface in prop::option::of(prop::sample::select(vec![1_u32, 3])),
        way in prop::option::of(any::<bool>()),
        snap_length in prop::option::of(40..128_usize),
        each_of in 1..6_usize,
        drops_each in any::<bool>(),
    ) {
        let all = transfer();
        let end = all.len().min(begin + len);
        let mut cut = Packets::new(101);
        for (number, each) in all[begin.min(end)..end].iter().enumerate() {
            let is_nth = each_of == 1 || (number % each_of == 0) != drops_each;
            let on_path = interface.is_none_or(|interface| each.interface == interface);
            let is_way = way.is_none_or(|way| is_outgoing(each) == way);
            if is_nth && on_path && is_way {
                cut.push_cut(each.time, &emit(each), snap_length.unwrap_or(usize::MAX));
            }
        }
        let outcome = analysis(&cut.bytes);
        prop_assert_eq!(broken(&outcome), [] as [String; 0], "{:?}", violations(&outcome));
    }
}
