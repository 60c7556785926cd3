//! Opening a connection. RFC 8684 §3.1.

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::view::{Slot, SubflowId};
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::mptcp::{CapableKeys, MpCapable};
use anabranch_wire::{Flags, Segment};

use crate::pair::{
    Fate, PORT, Pair, client_address, depends_on_the_platform, is_on, is_rst, is_syn, ms,
    on_any_platform, server_address, to_server,
};

fn keys(segment: &Segment) -> Option<CapableKeys> {
    Some(segment.options.control.as_ref()?.capable?.keys)
}

fn plain() -> ConnectionConfig {
    on_any_platform().protocol(Protocol::Tcp)
}

#[test]
fn the_handshake_carries_no_key_one_key_both_keys_and_both_with_data() {
    depends_on_the_platform("the size of options");
    // RFC 8684 §3.1
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform());
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 100_000);
    assert_eq!(keys(&pair.log[0]), Some(CapableKeys::None));
    assert!(matches!(keys(&pair.log[1]), Some(CapableKeys::Sender(_))));
    let both = pair.log.iter().filter_map(keys).find_map(|keys| match keys {
        CapableKeys::WithData { data_len, .. } => Some(data_len),
        _ => None,
    });
    // IP and TCP headers, timestamps (10 bytes) and MP_CAPABLE with data length (22).
    assert_eq!(both, Some(1500 - 40 - 32));
    assert!(pair.client_events.contains(&Event::Connected));
    assert!(pair.server_events.contains(&Event::Accepted));
    let accepted = pair.accepted.expect("accepted");
    let stats = pair.server.connection_stats(pair.now, accepted).expect("alive");
    assert!(stats.is_mptcp);
}

#[test]
fn when_the_listener_sends_first_the_third_ack_carries_both_keys() {
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform());
    pair.download(100_000, 5_000);
    assert_eq!(pair.received[0], 100_000);
    assert!(pair.log.iter().filter_map(keys).any(|k| matches!(k, CapableKeys::Both { .. })));
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn each_lost_handshake_segment_is_recovered() {
    for lost in 0..6 {
        for upload in [true, false] {
            let mut pair = Pair::new(1, on_any_platform(), on_any_platform())
                .with_filter(move |n, _| if n == lost { Fate::Drop } else { Fate::Deliver });
            if upload {
                pair.upload(50_000, 10_000);
            } else {
                pair.download(50_000, 10_000);
            }
            let side = usize::from(upload);
            assert_eq!(pair.received[side], 50_000, "segment {lost} lost, upload {upload}");
            let id = pair.accepted.expect("accepted");
            let stats = pair.server.connection_stats(pair.now, id).expect("alive");
            assert!(stats.is_mptcp, "segment {lost} lost, upload {upload}");
        }
    }
}

#[test]
fn a_lost_handshake_segment_does_not_distort_the_round_trip_time() {
    depends_on_the_platform("when acknowledgements are delayed");
    // RFC 6298 §3, RFC 7323 §4.1: the round trip is 20 ms whichever segment is lost, and the
    // timeout of a second does not count.
    for lost in 0..3 {
        let mut pair = Pair::new(1, on_any_platform(), on_any_platform())
            .with_filter(move |n, _| if n == lost { Fate::Drop } else { Fate::Deliver });
        pair.upload(50_000, 10_000);
        pair.download(50_000, 10_000);
        let accepted = pair.accepted.expect("accepted");
        for (host, id) in [(&pair.client, pair.connection), (&pair.server, accepted)] {
            let subflow = host.subflow_stats(id).next().expect("it is open");
            let srtt = subflow.view.srtt.expect("measured");
            assert!(srtt < ms(40), "segment {lost} lost: {srtt:?}");
        }
    }
}

#[test]
fn a_peer_that_does_not_answer_with_mp_capable_gets_tcp() {
    // RFC 8684 §3.7
    for (client, server) in [(on_any_platform(), plain()), (plain(), on_any_platform())] {
        let mut pair = Pair::new(2, client, server);
        pair.upload(200_000, 5_000);
        pair.download(200_000, 5_000);
        assert_eq!(pair.received, [200_000; 2]);
        assert_eq!(pair.segments(|s| s.options.dss.is_some()), 0);
    }
}

#[test]
fn mp_capable_stripped_at_any_step_leaves_a_working_tcp_connection() {
    // RFC 8684 §3.7: it is stripped from the SYN, from the SYN/ACK, or from everything after them.
    for step in 0..3 {
        let mut pair =
            Pair::new(2, on_any_platform(), on_any_platform()).with_filter(move |n, segment| {
                if n == step || (step == 2 && n >= 2) {
                    segment.options.control = None;
                    segment.options.dss = None;
                }
                Fate::Deliver
            });
        pair.upload(100_000, 20_000);
        assert_eq!(pair.received[1], 100_000, "step {step}");
        assert!(pair.client_events.contains(&Event::FellBack), "step {step}");
        assert_eq!(pair.segments(is_rst), 0, "step {step}");
    }
}

#[test]
fn a_connection_to_a_closed_port_is_refused() {
    // A translator sends the SYN to a closed port, and translates the answer.
    let mut pair = Pair::new(1, on_any_platform(), on_any_platform()).with_filter(|_, segment| {
        if is_syn(segment) {
            segment.destination.port = PORT + 1;
        } else if segment.source.port == PORT + 1 {
            segment.source.port = PORT;
        }
        Fate::Deliver
    });
    pair.run_ms(1_000);
    let first = pair.client_events.first();
    assert!(matches!(first, Some(Event::SubflowClosed(last)) if last.view.id == FIRST));
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::Refused)));
    assert_eq!(pair.segments(is_rst), 1);
}

const FIRST: SubflowId = SubflowId { slot: Slot(0), generation: 0 };

/// A pair in which a middlebox changes MP_CAPABLE. The server requires checksums if `checksum` is
/// set.
fn changing(checksum: bool, mut change: impl FnMut(&Segment, &mut MpCapable) + 'static) -> Pair {
    let config = on_any_platform().dss_checksum(checksum);
    Pair::new(2, on_any_platform(), config).with_filter(move |_, segment| {
        let original = segment.clone();
        if let Some(capable) = segment.options.control.as_mut().and_then(|c| c.capable.as_mut()) {
            change(&original, capable);
        }
        Fate::Deliver
    })
}

fn is_plain_tcp(mut pair: Pair, case: &str) {
    pair.upload(100_000, 10_000);
    pair.download(100_000, 10_000);
    assert_eq!(pair.received, [100_000; 2], "{case}");
    assert!(pair.client_events.contains(&Event::FellBack), "{case}");
    assert_eq!(pair.segments(is_rst), 0, "{case}");
    let accepted = pair.accepted.expect("accepted");
    assert!(!pair.server.connection_stats(pair.now, accepted).expect("alive").is_mptcp, "{case}");
}

fn is_syn_only(segment: &Segment) -> bool {
    is_syn(segment) && !segment.header.flags.contains(Flags::ACK)
}

#[test]
fn unsupported_versions_lead_to_tcp() {
    // RFC 8684 §3.1: version 0 is that of RFC 6824, and the others are not defined.
    for version in (0..16).filter(|version| *version != 1) {
        for answer in [false, true] {
            let pair = changing(false, move |segment, capable| {
                if is_syn(segment) && is_syn_only(segment) != answer {
                    capable.version = version;
                }
            });
            is_plain_tcp(pair, &format!("version {version}, in the answer: {answer}"));
        }
    }
}

#[test]
fn unsupported_flags_lead_to_tcp() {
    // RFC 8684 §3.1: "B" is an extension that a host must understand. Without "H", the hosts have
    // no hash algorithm in common.
    for (answer, extensible) in [(false, false), (false, true), (true, false), (true, true)] {
        let pair = changing(false, move |segment, capable| {
            if is_syn(segment) && is_syn_only(segment) != answer {
                capable.flags.extensibility = extensible;
                capable.flags.hmac_sha256 = extensible;
            }
        });
        is_plain_tcp(pair, &format!("B {extensible}, in the answer: {answer}"));
    }
}

#[test]
fn an_answer_that_names_two_hash_algorithms_leads_to_tcp() {
    // RFC 8684 §3.1: the answer must have one bit of "D" to "H".
    let pair = changing(false, |segment, capable| {
        if is_syn(segment) && !is_syn_only(segment) {
            capable.flags.unassigned = 0x02;
        }
    });
    is_plain_tcp(pair, "G next to H");
}

#[test]
fn mp_capable_in_the_form_of_another_step_leads_to_tcp() {
    // RFC 8684 §3.1, figure 4: 4, 12, 20, and 22 or 24 bytes.
    let forms = [
        CapableKeys::None,
        CapableKeys::Sender(7),
        CapableKeys::Both { sender: 7, receiver: 8 },
        CapableKeys::WithData { sender: 7, receiver: 8, data_len: 9, checksum: None },
    ];
    for (step, form) in (0..3).flat_map(|step| forms.map(|form| (step, form))) {
        let fits = match form {
            CapableKeys::None => step == 0,
            CapableKeys::Sender(_) => step == 1,
            CapableKeys::Both { .. } | CapableKeys::WithData { .. } => false,
        };
        if fits {
            continue;
        }
        let pair = changing(false, move |segment, capable| {
            let at = if is_syn_only(segment) { 0 } else { 1 + u32::from(!is_syn(segment)) };
            if at == step {
                capable.keys = form;
            }
        });
        is_plain_tcp(pair, &format!("{form:?} in step {step}"));
    }
}

#[test]
fn a_checksum_flag_that_a_middlebox_changes_leads_to_tcp() {
    // RFC 8684 §3.1: the two hosts would disagree about the form of mappings.
    for (required, step) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let pair = changing(required, move |segment, capable| {
            let at = if is_syn_only(segment) { 0 } else { 1 + u32::from(!is_syn(segment)) };
            if at == step {
                capable.flags.checksum_required = !required;
            }
        });
        is_plain_tcp(pair, &format!("required {required}, changed in step {step}"));
    }
}

#[test]
fn first_data_with_wrong_keys_on_an_established_connection_maps_nothing() {
    // RFC 8684 §3.1: the third ACK was valid, so other keys come from another host.
    let mut pair = changing(false, |_, capable| {
        if let CapableKeys::WithData { sender, .. } = &mut capable.keys {
            *sender ^= 1;
        }
    });
    pair.run_ms(25);
    pair.upload(50_000, 3_000);
    // The bytes with the wrong keys are next in the stream all the same: plain TCP.
    assert_eq!(pair.received[1], 50_000);
    assert_eq!(pair.server.counters().mp_capable_ack_rx, 1);
}

#[test]
fn a_host_that_denies_joins_to_its_initial_address_receives_none_there() {
    // RFC 8684 §3.1, the "C" flag.
    let denying = on_any_platform().allow_join_initial_addr_port(false);
    let mut pair = Pair::new(2, on_any_platform(), denying.clone());
    pair.upload(500_000, 10_000);
    pair.run_ms(10_000);
    assert_eq!(pair.received[1], 500_000);
    assert_eq!(pair.segments(|s| is_syn(s) && is_on(s, 1)), 0);
    let flag =
        |s: &Segment| s.options.control.as_ref()?.capable.map(|c| c.flags.deny_join_to_source);
    let flags: Vec<_> = pair.log.iter().filter_map(|s| Some((to_server(s), flag(s)?))).collect();
    assert!(flags.iter().all(|(up, denies)| *denies != *up), "{flags:?}");
    // Joins to an announced address are allowed.
    let other = [10, 9, 1, 1].into();
    let mut pair = Pair::of_addresses(
        vec![client_address(0), client_address(1)],
        vec![server_address(), other],
        on_any_platform(),
        denying,
    );
    pair.upload(500_000, 10_000);
    pair.run_ms(2_000);
    let joins = |address| pair.segments(|s| is_syn_only(s) && s.destination.address == address);
    assert_eq!((joins(server_address()), joins(other)), (1, 2));
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn a_join_in_spite_of_the_c_flag_is_refused() {
    // RFC 8684 §3.1: the flag was lost on the path.
    let denying = on_any_platform().allow_join_initial_addr_port(false);
    let mut pair = Pair::new(2, on_any_platform(), denying).with_filter(|_, segment| {
        if let Some(capable) = segment.options.control.as_mut().and_then(|c| c.capable.as_mut()) {
            capable.flags.deny_join_to_source = false;
        }
        Fate::Deliver
    });
    pair.upload(500_000, 10_000);
    assert_eq!(pair.received[1], 500_000);
    assert!(pair.segments(|s| is_rst(s) && is_on(s, 1)) > 0);
    assert_eq!(pair.segments(|s| is_on(s, 1) && !s.payload.is_empty()), 0);
}
