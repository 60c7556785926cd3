//! Version 0 of Multipath TCP, RFC 6824: a capture of version 1, rewritten.

use anabranch_wire::mptcp::{CapableKeys, MpJoin, WideOrNarrow};
use anabranch_wire::{DataSeq, Flags, SeqNumber, dss_checksum};
use hmac::{Hmac, KeyInit, Mac};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::support::{
    Captured, Packets, analysis, broken, emit, numbers, pcap, run, segments, table, texts,
    violations,
};

const SCENARIO: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"60packets\"\nloss = \"1%\"\n\
    [[path]]\nname = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\nlimit = \"60packets\"\n\
    [[connection]]\ndss_checksum = true\nworkload = { kind = \"bulk\", size = \"200kB\" }\n";

/// The first 4 and the last 8 bytes of a digest.
fn ends(digest: &[u8]) -> (u32, u64) {
    (
        u32::from_be_bytes(*digest.first_chunk().unwrap()),
        u64::from_be_bytes(*digest.last_chunk().unwrap()),
    )
}

fn sha1(key: u64) -> (u32, u64) {
    ends(&Sha1::digest(key.to_be_bytes()))
}

fn sha256(key: u64) -> (u32, u64) {
    ends(&Sha256::digest(key.to_be_bytes()))
}

fn hmac(keys: [u64; 2], nonces: [u32; 2]) -> [u8; 20] {
    let mut mac = Hmac::<Sha1>::new_from_slice(keys.map(u64::to_be_bytes).as_flattened()).unwrap();
    mac.update(nonces.map(u32::to_be_bytes).as_flattened());
    mac.finalize().into_bytes().into()
}

/// A download over two paths with checksums, as seen at the server, and the same in version 0.
fn versions() -> [Vec<Captured>; 2] {
    let mut all = segments(&run(SCENARIO, 1).capture);
    all.retain(|each| each.interface % 2 == 1);
    let keys =
        all.iter().find_map(|each| match each.segment.options.control.as_deref()?.capable?.keys {
            CapableKeys::Both { sender, receiver } => Some([sender, receiver]),
            _ => None,
        });
    let keys = keys.expect("a third ACK");
    let mut older = all.clone();
    let mut nonces = [0; 2];
    // The client's SYN on each subflow tells what its sequence numbers count from.
    let shift = keys.map(|key| sha1(key).1.wrapping_sub(sha256(key).1));
    for each in &mut older {
        let segment = &mut each.segment;
        // Index of the sender's key.
        let from = usize::from(segment.source.port < segment.destination.port);
        if let Some(control) = segment.options.control.as_deref_mut() {
            if let Some(capable) = &mut control.capable {
                capable.version = 0;
                if capable.keys == CapableKeys::None {
                    capable.keys = CapableKeys::Sender(keys[0]);
                }
            }
            match &mut control.join {
                Some(MpJoin::Syn { token, nonce, .. }) => {
                    *token = sha1(keys[1]).0;
                    nonces[0] = *nonce;
                }
                Some(MpJoin::SynAck { truncated_hmac, nonce, .. }) => {
                    nonces[1] = *nonce;
                    let code = hmac([keys[1], keys[0]], [nonces[1], nonces[0]]);
                    *truncated_hmac = u64::from_be_bytes(*code.first_chunk().unwrap());
                }
                Some(MpJoin::Ack { hmac: code }) => *code = hmac(keys, nonces),
                None => {}
            }
        }
        if let Some(dss) = &mut segment.options.dss {
            if let Some(mapping) = &mut dss.mapping {
                let near = DataSeq(sha256(keys[from]).1);
                let number = mapping.data_seq.resolve(near).0.wrapping_add(shift[from]);
                mapping.data_seq = match mapping.data_seq {
                    WideOrNarrow::Wide(_) => WideOrNarrow::Wide(DataSeq(number)),
                    WideOrNarrow::Narrow(_) => WideOrNarrow::Narrow(number as u32),
                };
                if mapping.checksum.is_some() {
                    let (ssn, len) = (mapping.subflow_seq, mapping.len);
                    let payload = match ssn {
                        SeqNumber(0) => anabranch_wire::Payload::EMPTY,
                        _ => segment.payload.clone(),
                    };
                    mapping.checksum = Some(dss_checksum(DataSeq(number), ssn, len, &payload));
                }
            }
            dss.data_ack = dss.data_ack.map(|data_ack| match data_ack {
                WideOrNarrow::Wide(number) => WideOrNarrow::Wide(number + shift[1 - from]),
                WideOrNarrow::Narrow(low) => {
                    WideOrNarrow::Narrow(low.wrapping_add(shift[1 - from] as u32))
                }
            });
        }
    }
    [all, older]
}

#[test]
fn version_0_is_verified_like_version_1() {
    // RFC 6824 §3.1, §3.2 and §3.3
    let [newer, older] = versions().map(|all| analysis(&pcap(&all)));
    assert_eq!(violations(&older), [] as [String; 0]);
    let of = |outcome, name| numbers(table(outcome, "connections"), name);
    assert_eq!((of(&newer, "version"), of(&older, "version")), (vec![1], vec![0]));
    for name in ["subflows", "hmacs_right", "tokens_right", "checksums_right", "is_complete"] {
        assert_eq!(of(&older, name), of(&newer, name), "{name}");
    }
    assert!(of(&older, "checksums_right")[0] > 100);
    assert_ne!(of(&older, "token_listener"), of(&newer, "token_listener"));
    let kinds = |outcome| numbers(table(outcome, "segments"), "kind");
    assert_eq!(kinds(&older), kinds(&newer));
    assert_eq!(texts(table(&older, "connections"), "protocol"), ["MPTCP"]);
}

#[test]
fn a_wrong_hmac_in_version_0_names_its_rfc() {
    // RFC 6824 §3.2
    let [_, mut older] = versions();
    for each in &mut older {
        let control = each.segment.options.control.as_deref_mut();
        if let Some(MpJoin::Ack { hmac }) = control.and_then(|c| c.join.as_mut()) {
            hmac[19] ^= 1;
        }
    }
    let outcome = analysis(&pcap(&older));
    assert_eq!(broken(&outcome), ["join_hmac"]);
    assert_eq!(texts(table(&outcome, "violations"), "clause"), ["RFC 6824 §3.2"]);
}

#[test]
fn a_syn_ack_without_the_option_makes_it_tcp() {
    // RFC 6824 §3.1 and §3.6
    let [_, mut older] = versions();
    let client = older[0].segment.source;
    older.retain(|each| each.segment.source == client || each.segment.destination == client);
    for each in older.iter_mut().skip(1) {
        each.segment.options.control = None;
        each.segment.options.dss = None;
    }
    let outcome = analysis(&pcap(&older));
    assert_eq!(violations(&outcome), [] as [String; 0]);
    let connections = table(&outcome, "connections");
    assert_eq!(texts(connections, "fallback"), ["no MP_CAPABLE in the SYN/ACK"]);
    let bytes: u64 = numbers(table(&outcome, "subflows"), "bytes_in").iter().sum();
    assert_eq!(numbers(connections, "bytes_in"), [bytes]);
}

#[test]
fn an_announced_address_of_version_0_needs_neither_hmac_nor_echo() {
    // RFC 6824 §3.4.1
    let [_, older] = versions();
    let mut capture = Packets::new(101);
    let mut announced = 0;
    for each in &older {
        let mut packet = emit(each);
        let is_plain = each.segment.options.control.is_none() && each.segment.options.dss.is_none();
        let is_ack = each.segment.header.flags == Flags::ACK && packet.len() > 20 + 32;
        // An option of 8 bytes instead of the first ones of a segment.
        if is_ack && announced < 4 && !is_plain {
            packet[40..48].copy_from_slice(&[30, 8, 0x34, 7, 10, 9, 8, 7]);
            // The rest of the option list becomes padding.
            let end = 20 + usize::from(packet[32] >> 4) * 4;
            packet[48..end].fill(1);
            // Left to the network card.
            packet[36..38].fill(0);
            announced += 1;
        }
        capture.push(each.time, &packet);
    }
    assert_eq!(announced, 4);
    let outcome = analysis(&capture.bytes);
    let events = table(&outcome, "events");
    let names = texts(events, "event");
    assert_eq!(names.iter().filter(|name| *name == "add_addr").count(), 4);
    assert!(texts(events, "detail").contains(&"address 7: 10.9.8.7".to_owned()));
    let about_addresses = ["add_addr_hmac", "add_addr_unanswered", "echo_unasked", "option_length"];
    assert!(!broken(&outcome).iter().any(|rule| about_addresses.contains(&rule.as_str())));
}
