//! Opening a connection. RFC 8684 §3.1.

mod pair;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::view::SubflowId;
use anabranch_proto::{ConnectionError, Event};
use anabranch_wire::Segment;
use anabranch_wire::mptcp::CapableKeys;
use pair::{Fate, PORT, Pair, is_rst, is_syn};

fn keys(segment: &Segment) -> Option<CapableKeys> {
    Some(segment.options.control.as_ref()?.capable?.keys)
}

fn plain() -> ConnectionConfig {
    ConnectionConfig { protocol: Protocol::Tcp, ..ConnectionConfig::default() }
}

#[test]
fn the_four_steps_carry_no_key_one_key_both_keys_and_both_with_data() {
    // RFC 8684 §3.1
    let mut pair = Pair::new(1, ConnectionConfig::default(), ConnectionConfig::default());
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 100_000);
    assert_eq!(keys(&pair.log[0]), Some(CapableKeys::None));
    assert!(matches!(keys(&pair.log[1]), Some(CapableKeys::Sender(_))));
    let both = pair.log.iter().filter_map(keys).find_map(|keys| match keys {
        CapableKeys::WithData { data_len, .. } => Some(data_len),
        _ => None,
    });
    // IP and TCP headers, timestamps (10 octets) and MP_CAPABLE with data length (22).
    assert_eq!(both, Some(1500 - 40 - 32));
    assert!(pair.client_events.contains(&Event::Connected));
    assert!(pair.server_events.contains(&Event::Accepted));
    let accepted = pair.accepted.expect("accepted");
    let stats = pair.server.connection_stats(pair.now, accepted).expect("alive");
    assert!(stats.is_mptcp);
}

#[test]
fn when_the_listener_sends_first_the_third_ack_carries_both_keys() {
    let mut pair = Pair::new(1, ConnectionConfig::default(), ConnectionConfig::default());
    pair.download(100_000, 5_000);
    assert_eq!(pair.received[0], 100_000);
    assert!(pair.log.iter().filter_map(keys).any(|k| matches!(k, CapableKeys::Both { .. })));
    assert_eq!(pair.segments(is_rst), 0);
}

#[test]
fn each_lost_handshake_segment_is_recovered() {
    for lost in 0..6 {
        for upload in [true, false] {
            let mut pair = Pair::new(1, ConnectionConfig::default(), ConnectionConfig::default())
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
fn a_peer_that_does_not_answer_with_mp_capable_is_spoken_to_in_tcp() {
    // RFC 8684 §3.7
    for (client, server) in
        [(ConnectionConfig::default(), plain()), (plain(), ConnectionConfig::default())]
    {
        let mut pair = Pair::new(2, client, server);
        pair.upload(200_000, 5_000);
        pair.download(200_000, 5_000);
        assert_eq!(pair.received, [200_000; 2]);
        assert_eq!(pair.segments(|s| s.options.dss.is_some()), 0);
    }
}

#[test]
fn mp_capable_stripped_at_any_step_leaves_a_working_tcp_connection() {
    // RFC 8684 §3.7: in the SYN, the SYN/ACK, or everything after.
    for step in 0..3 {
        let mut pair = Pair::new(2, ConnectionConfig::default(), ConnectionConfig::default())
            .with_filter(move |n, segment| {
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
    // A translator sends the SYN to a port that nobody listens on, and the answer back.
    let mut pair = Pair::new(1, ConnectionConfig::default(), ConnectionConfig::default())
        .with_filter(|_, segment| {
            if is_syn(segment) {
                segment.destination.port = PORT + 1;
            } else if segment.source.port == PORT + 1 {
                segment.source.port = PORT;
            }
            Fate::Deliver
        });
    pair.run_ms(1_000);
    assert_eq!(pair.client_events.first(), Some(&Event::SubflowClosed(FIRST)));
    assert!(pair.client_events.contains(&Event::Failed(ConnectionError::Refused)));
    assert_eq!(pair.segments(is_rst), 1);
}

const FIRST: SubflowId = SubflowId { slot: 0, generation: 0 };
