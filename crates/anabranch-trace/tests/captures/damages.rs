//! One field of a correct capture is changed, and the analysis must find exactly this.

use anabranch_wire::mptcp::{CapableKeys, Control, Mapping, MpFastclose, MpJoin, WideOrNarrow};
use anabranch_wire::{Flags, Payload};

use super::support::{Captured, analysis, broken, pcap, run, segments, table, texts, violations};

const TWO_PATHS: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"60packets\"\n\
    [[path]]\nname = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\nlimit = \"60packets\"\n";

/// Segments of a transfer of 300 kB, as seen at the server's interfaces.
fn transfer(settings: &str) -> Vec<Captured> {
    let scenario =
        format!("{TWO_PATHS}{settings}workload = {{ kind = \"bulk\", size = \"300kB\" }}\n");
    let mut all = segments(&run(&scenario, 1).capture);
    // Interfaces come in pairs: the client's end and the server's end of each path.
    all.retain(|each| each.interface % 2 == 1);
    assert_eq!(violations(&analysis(&pcap(&all))), [] as [String; 0]);
    all
}

fn download() -> Vec<Captured> {
    transfer("[[connection]]\n")
}

fn with_checksums() -> Vec<Captured> {
    transfer("[[connection]]\ndss_checksum = true\n")
}

/// The server announces its second address.
fn with_announcement() -> Vec<Captured> {
    transfer("family = \"ipv6\"\n[[connection]]\n")
}

#[track_caller]
fn finds(segments: &[Captured], rules: &[&str]) {
    let outcome = analysis(&pcap(segments));
    assert_eq!(broken(&outcome), rules, "{:?}", violations(&outcome));
}

fn from_server(each: &Captured) -> bool {
    each.segment.source.port < each.segment.destination.port
}

fn has_data(each: &Captured) -> bool {
    !each.segment.payload.is_empty()
        && each.segment.options.dss.is_some_and(|d| d.mapping.is_some())
}

/// All join options of the step that `wanted` selects.
fn join(segments: &mut [Captured], wanted: fn(&MpJoin) -> bool) -> Vec<&mut MpJoin> {
    let controls = segments.iter_mut().filter_map(|each| each.segment.options.control.as_mut());
    controls.filter_map(|control| control.join.as_mut()).filter(|join| wanted(join)).collect()
}

fn control_of(
    segments: &mut [Captured],
    wanted: impl Fn(&Captured, &Control) -> bool,
) -> &mut Control {
    let found = segments.iter_mut().find(|each| {
        each.segment.options.control.as_deref().is_some_and(|control| wanted(each, control))
    });
    found.and_then(|each| each.segment.options.control.as_deref_mut()).expect("such a segment")
}

/// Index of a data segment from the server on the first subflow, in the middle of the capture.
fn data_at(segments: &[Captured]) -> usize {
    let middle = segments.len() / 2;
    let port = segments[0].segment.source.port;
    let wanted = |each: &Captured| {
        from_server(each) && has_data(each) && each.segment.destination.port == port
    };
    middle + segments[middle..].iter().position(wanted).expect("data")
}

fn mapping(each: &mut Captured) -> &mut Mapping {
    each.segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut()).expect("a mapping")
}

fn shifted(number: WideOrNarrow, by: u32) -> WideOrNarrow {
    match number {
        WideOrNarrow::Wide(number) => WideOrNarrow::Wide(number + u64::from(by)),
        WideOrNarrow::Narrow(low) => WideOrNarrow::Narrow(low.wrapping_add(by)),
    }
}

#[test]
fn a_wrong_hmac_in_either_step_of_a_join_is_found() {
    // RFC 8684 §3.2
    let mut altered = download();
    for join in join(&mut altered, |join| matches!(join, MpJoin::SynAck { .. })) {
        let MpJoin::SynAck { truncated_hmac, .. } = join else { unreachable!() };
        *truncated_hmac ^= 1 << 63;
    }
    finds(&altered, &["join_hmac"]);
    let mut altered = download();
    for join in join(&mut altered, |join| matches!(join, MpJoin::Ack { .. })) {
        let MpJoin::Ack { hmac } = join else { unreachable!() };
        hmac[19] ^= 1;
    }
    finds(&altered, &["join_hmac"]);
}

#[test]
fn an_unknown_token_is_found() {
    // RFC 8684 §3.2
    let mut altered = download();
    for join in join(&mut altered, |join| matches!(join, MpJoin::Syn { .. })) {
        let MpJoin::Syn { token, .. } = join else { unreachable!() };
        *token ^= 1;
    }
    finds(&altered, &["token_unknown"]);
}

#[test]
fn a_different_key_or_checksum_flag_in_the_third_ack_is_found() {
    // RFC 8684 §3.1
    let third = |_: &Captured, control: &Control| {
        matches!(control.capable.map(|c| c.keys), Some(CapableKeys::Both { .. }))
    };
    let mut altered = download();
    let capable = control_of(&mut altered, third).capable.as_mut().unwrap();
    let CapableKeys::Both { receiver, .. } = &mut capable.keys else { unreachable!() };
    *receiver ^= 1;
    finds(&altered, &["key_mismatch"]);
    let mut altered = download();
    control_of(&mut altered, third).capable.as_mut().unwrap().flags.checksum_required = true;
    finds(&altered, &["checksum_flag"]);
}

#[test]
fn a_syn_without_algorithm_or_with_a_key_is_found() {
    // RFC 8684 §3.1
    let syn = |each: &Captured, control: &Control| {
        each.segment.header.flags == Flags::SYN && control.capable.is_some()
    };
    let mut altered = download();
    control_of(&mut altered, syn).capable.as_mut().unwrap().flags.hmac_sha256 = false;
    finds(&altered, &["no_algorithm"]);
    let mut altered = download();
    control_of(&mut altered, syn).capable.as_mut().unwrap().keys = CapableKeys::Sender(7);
    finds(&altered, &["wrong_step"]);
}

#[test]
fn a_join_to_a_denied_address_is_found() {
    // RFC 8684 §3.1
    let mut altered = download();
    let syn_ack = |each: &Captured, control: &Control| {
        each.segment.header.flags == Flags::SYN | Flags::ACK && control.capable.is_some()
    };
    control_of(&mut altered, syn_ack).capable.as_mut().unwrap().flags.deny_join_to_source = true;
    finds(&altered, &["denied_address"]);
}

#[test]
fn reserved_bits_wrong_lengths_and_unknown_subtypes_are_found() {
    // RFC 8684 §3.3, §7.2
    for (bytes, rule) in [
        (vec![30, 8, 0x20, 0x21], "reserved_bits"),
        (vec![30, 7, 0x20, 0x01], "option_length"),
        (vec![30, 4, 0xa0, 0x00], "unknown_subtype"),
    ] {
        let mut altered = download();
        let pure = altered.iter_mut().rev().find(|each| {
            each.segment.payload.is_empty()
                && each
                    .segment
                    .options
                    .dss
                    .is_some_and(|d| d.mapping.is_none() && d.data_ack.is_some())
        });
        let options = &mut pure.expect("a pure acknowledgement").segment.options;
        let mut raw = Vec::new();
        options.dss.take().unwrap().emit(&mut raw);
        let mut changed = bytes.clone();
        changed.extend(raw[4..].iter().take(usize::from(bytes[1]) - 4));
        if bytes[2] != 0x20 {
            changed.truncate(4);
        }
        options.unknown = Some(changed.into());
        finds(&altered, &[rule]);
    }
}

#[test]
fn data_without_a_mapping() {
    // RFC 8684 §3.3.1
    let mut altered = download();
    let at = data_at(&altered);
    altered[at].segment.options.dss = None;
    finds(&altered, &["unmapped_data"]);
}

#[test]
fn a_mapping_to_another_place_is_found() {
    // RFC 8684 §3.3.1
    let mut altered = download();
    let at = data_at(&altered);
    let mapping = mapping(&mut altered[at]);
    mapping.data_seq = shifted(mapping.data_seq, 7);
    finds(&altered, &["different_data"]);
}

#[test]
fn a_mapping_that_changes_is_found() {
    // RFC 8684 §3.3.1
    let mut altered = download();
    let at = data_at(&altered);
    let mut copy = altered[at].clone();
    let changed = mapping(&mut copy);
    changed.data_seq = shifted(changed.data_seq, 100);
    altered.insert(at + 1, copy);
    finds(&altered, &["mapping_changed"]);
}

#[test]
fn a_mapping_of_bytes_outside_its_segment_is_found() {
    // RFC 8684 §3.3.1
    let mut altered = download();
    let at = data_at(&altered);
    let moved = mapping(&mut altered[at]);
    moved.subflow_seq = moved.subflow_seq + 1_000_000;
    finds(&altered, &["mapping_elsewhere", "unmapped_data"]);
}

#[test]
fn different_data_with_the_same_numbers_is_found() {
    // RFC 8684 §3.3.1
    let mut altered = download();
    let at = data_at(&altered);
    let mut copy = altered[at].clone();
    let mut bytes = Vec::new();
    copy.segment.payload.for_each_slice(|slice| bytes.extend_from_slice(slice));
    bytes[3] ^= 0x10;
    copy.segment.payload = Payload::from(bytes);
    altered.insert(at + 1, copy);
    finds(&altered, &["different_data"]);
}

#[test]
fn a_data_ack_of_unsent_data_is_found() {
    // RFC 8684 §3.3.2
    let mut altered = download();
    let at = data_at(&altered);
    let ack = altered[at..].iter_mut().find(|each| !from_server(each)).expect("an ACK");
    let dss = ack.segment.options.dss.as_mut().expect("a DATA_ACK");
    dss.data_ack = dss.data_ack.map(|ack| shifted(ack, 1_000_000));
    finds(&altered, &["ack_beyond_data"]);
}

#[test]
fn a_decreasing_data_ack_is_no_violation() {
    let mut altered = download();
    let at = data_at(&altered);
    let ack = altered[at..].iter_mut().find(|each| !from_server(each)).expect("an ACK");
    let dss = ack.segment.options.dss.as_mut().expect("a DATA_ACK");
    dss.data_ack = dss.data_ack.map(|ack| shifted(ack, 20_000_u32.wrapping_neg()));
    finds(&altered, &[]);
}

#[test]
fn data_beyond_the_window_is_found() {
    // RFC 8684 §3.3.4, §3.3.5
    let mut altered = download();
    for each in altered.iter_mut().filter(|each| !from_server(each)) {
        each.segment.header.window = each.segment.header.window.min(1);
    }
    let outcome = analysis(&pcap(&altered));
    let mut rules = broken(&outcome);
    rules.dedup();
    assert_eq!(rules, ["outside_window"]);
}

#[test]
fn a_data_fin_that_moves_is_found() {
    // RFC 8684 §3.3.3
    let mut altered = download();
    let fin =
        |each: &Captured| from_server(each) && each.segment.options.dss.is_some_and(|d| d.data_fin);
    let at = altered.iter().position(fin).expect("a DATA_FIN");
    let mut copy = altered[at].clone();
    copy.segment.payload = Payload::default();
    let moved = mapping(&mut copy);
    (moved.data_seq, moved.len) = (shifted(moved.data_seq, u32::from(moved.len) + 4), 1);
    moved.subflow_seq.0 = 0;
    altered.insert(at + 1, copy);
    finds(&altered, &["data_fin_moved"]);
}

#[test]
fn data_after_the_data_fin_is_found() {
    // RFC 8684 §3.3.3
    let mut altered = download();
    let at = data_at(&altered);
    let mut copy = altered[at].clone();
    copy.segment.payload = Payload::default();
    let end = mapping(&mut copy);
    (end.len, end.subflow_seq.0) = (1, 0);
    copy.segment.options.dss.as_mut().unwrap().data_fin = true;
    altered.insert(at, copy);
    let outcome = analysis(&pcap(&altered));
    let found = broken(&outcome);
    assert_eq!(found[0], "data_after_fin", "{:?}", violations(&outcome));
    assert!(found.iter().all(|rule| rule.starts_with("data_")), "{found:?}");
}

/// The packets, with the data of one of them in three segments.
fn in_three(packets: &[Captured], at: usize) -> Vec<Captured> {
    let mut bytes = Vec::new();
    packets[at].segment.payload.for_each_slice(|slice| bytes.extend_from_slice(slice));
    let mut parts = vec![packets[at].clone(); 3];
    let third = bytes.len() / 3;
    for (index, part) in parts.iter_mut().enumerate() {
        let from = index * third;
        let to = if index == 2 { bytes.len() } else { from + third };
        part.segment.payload = Payload::from(bytes[from..to].to_vec());
        part.segment.header.seq = packets[at].segment.header.seq + from as u32;
        if index > 0 {
            part.segment.options.dss.as_mut().unwrap().mapping = None;
        }
    }
    [&packets[..at], &parts, &packets[at + 1..]].concat()
}

#[test]
fn wrong_missing_and_unagreed_checksums_are_found() {
    // RFC 8684 §3.3, §3.3.1
    let mut altered = with_checksums();
    let at = data_at(&altered);
    mapping(&mut altered[at]).checksum = mapping(&mut altered[at]).checksum.map(|sum| sum ^ 0x100);
    finds(&altered, &["checksum_wrong"]);

    let mut altered = with_checksums();
    let at = data_at(&altered);
    let mut bytes = Vec::new();
    altered[at].segment.payload.for_each_slice(|slice| bytes.extend_from_slice(slice));
    bytes[100] ^= 1;
    altered[at].segment.payload = Payload::from(bytes);
    finds(&altered, &["checksum_wrong"]);

    // One mapping over three segments: the violation names the packets of all three.
    let outcome = analysis(&pcap(&in_three(&altered, at)));
    assert_eq!(broken(&outcome), ["checksum_wrong"]);
    let what = &texts(table(&outcome, "violations"), "what")[0];
    let [first, second, third] = [at + 1, at + 2, at + 3];
    assert!(what.contains(&format!("of the mapping in packet {first} ")), "{what}");
    assert!(what.ends_with(&format!("bytes in packets {first}, {second} and {third}")), "{what}");
    let packets = &texts(table(&outcome, "violations"), "packets")[0];
    assert_eq!(*packets, format!("{first}, {second}, {third}"));

    let mut altered = with_checksums();
    let at = data_at(&altered);
    mapping(&mut altered[at]).checksum = None;
    finds(&altered, &["checksum_missing"]);

    let mut altered = download();
    let at = data_at(&altered);
    mapping(&mut altered[at]).checksum = Some(1);
    finds(&altered, &["checksum_unexpected"]);
}

#[test]
fn wrong_hmacs_missing_echoes_and_unfounded_echoes_of_announcements_are_found() {
    // RFC 8684 §3.4.1
    let announced = |_: &Captured, control: &Control| {
        control.add_addr.is_some_and(|option| option.truncated_hmac.is_some())
    };
    let mut altered = with_announcement();
    let option = control_of(&mut altered, announced).add_addr.as_mut().unwrap();
    option.truncated_hmac = option.truncated_hmac.map(|hmac| hmac ^ 1);
    finds(&altered, &["add_addr_hmac"]);

    let echoed = |_: &Captured, control: &Control| {
        control.add_addr.is_some_and(|option| option.truncated_hmac.is_none())
    };
    let mut altered = with_announcement();
    control_of(&mut altered, echoed).add_addr.as_mut().unwrap().address_id ^= 0x40;
    finds(&altered, &["echo_unasked"]);

    let mut altered = with_announcement();
    control_of(&mut altered, echoed).add_addr = None;
    let at = altered.iter().position(|each| {
        each.segment.options.control.as_deref().is_some_and(|control| announced(each, control))
    });
    let copy = altered[at.unwrap()].clone();
    altered.insert(at.unwrap(), copy.clone());
    // Both copies may have been lost.
    finds(&altered, &[]);
    altered.insert(at.unwrap(), copy);
    let last = altered.len() - 1;
    altered[last].time += 2_000_000_000;
    finds(&altered, &["add_addr_unanswered"]);
}

#[test]
fn data_on_a_join_before_its_fourth_ack_is_found() {
    // RFC 8684 §3.2
    let mut altered = transfer("[[connection]]\ndirection = \"upload\"\n");
    let first = altered[0].segment.source;
    let on_join = |each: &Captured| {
        let ends = [each.segment.source, each.segment.destination];
        !ends.contains(&first)
    };
    let data = altered.iter().position(|each| on_join(each) && has_data(each)).expect("data");
    let mut place = 0;
    altered.retain(|each| {
        place += 1;
        let is_syn = each.segment.header.flags.contains(Flags::SYN);
        place > data || !on_join(each) || !from_server(each) || is_syn
    });
    finds(&altered, &["early_data"]);
}

#[test]
fn a_fastclose_with_another_key_is_found() {
    // RFC 8684 §3.5
    let mut altered = download();
    let mut copy = altered.last().unwrap().clone();
    copy.segment.header.flags = Flags::RST | Flags::ACK;
    copy.segment.options.control_mut().fastclose = Some(MpFastclose { receiver_key: 1 });
    altered.push(copy);
    finds(&altered, &["fastclose_key"]);
}

#[test]
fn a_join_to_a_connection_that_fell_back_is_found() {
    // RFC 8684 §3.7
    let mut altered = download();
    let join = altered.iter().position(|each| {
        each.segment.options.control.as_deref().is_some_and(|control| control.join.is_some())
    });
    let data = altered.iter().position(|each| from_server(each) && has_data(each)).expect("data");
    let mut syn = altered.remove(join.unwrap());
    mapping(&mut altered[data - usize::from(join.unwrap() < data)]).len = 0;
    // The join's SYN is seen after the server has announced the fallback.
    syn.time = altered[data].time;
    altered.insert(data + 1, syn);
    altered[data + 1].time += 1;
    let outcome = analysis(&pcap(&altered));
    assert!(
        broken(&outcome).contains(&"join_after_fallback".to_owned()),
        "{:?}",
        violations(&outcome)
    );
}
