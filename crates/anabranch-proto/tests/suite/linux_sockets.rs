//! Hosts that count buffers as Linux's sockets do, and do other things as Linux does.

use anabranch_proto::Event;
use anabranch_proto::config::ConnectionConfig;
use anabranch_proto::path_manager::FullMesh;
use anabranch_proto::platform::Platform;
use anabranch_wire::mptcp::{MpJoin, WideOrNarrow};
use anabranch_wire::{Flags, Segment};

use crate::pair::{Fate, Pair, is_on, is_rst, is_syn, ms, on_any_platform, to_server};

const SOCKET: Platform = Platform::linux_socket();
const PAYLOAD: Platform = Platform::linux();

fn config(platform: Platform) -> ConnectionConfig {
    on_any_platform().platform(platform).path_manager(|| Box::new(FullMesh::default()))
}

fn pair(platform: Platform) -> Pair {
    Pair::new(2, config(platform), config(platform))
}

fn is_join(segment: &Segment) -> bool {
    let join = segment.options.control.as_ref().and_then(|control| control.join);
    is_syn(segment) && matches!(join, Some(MpJoin::Syn { .. }))
}

#[test]
fn full_segments_have_the_payload_of_those_of_linux() {
    // A packet has 1500 bytes, of which the headers have 40, the timestamps 12, and the mapping with an 8-byte
    // data sequence number and a 4-byte DATA_ACK 24.
    let mut pair = pair(SOCKET);
    pair.run_ms(100);
    pair.upload(100_000, 5_000);
    assert_eq!(pair.received[1], 100_000);
    let full = pair.last(|s| to_server(s) && s.payload.len() == 1424);
    assert_eq!(full.options.bytes_len(), 36);
    let mapping = full.options.dss.and_then(|dss| dss.mapping).expect("there is one");
    assert!(matches!(mapping.data_seq, WideOrNarrow::Wide(_)));
    assert_eq!(pair.segments(|s| s.payload.len() > 1424), 0);
}

#[test]
fn no_subflow_is_opened_after_the_host_has_closed() {
    for (platform, joins) in [(SOCKET, 0), (PAYLOAD, 1)] {
        let mut pair = pair(platform);
        while !pair.client_events.contains(&Event::Connected) {
            pair.run_ms(1);
        }
        pair.write(0, 200_000);
        pair.client.close(pair.connection);
        pair.run_ms(5_000);
        assert_eq!(pair.received[1], 200_000);
        assert_eq!(pair.segments(is_join), joins, "{:?}", platform.buffers);
    }
}

#[test]
fn a_host_that_has_closed_refuses_subflows() {
    for (platform, refused) in [(SOCKET, true), (PAYLOAD, false)] {
        let mut pair = pair(platform);
        while !pair.server_events.contains(&Event::Accepted) {
            pair.run_ms(1);
        }
        pair.write(1, 200_000);
        let accepted = pair.accepted.expect("the connection was accepted");
        pair.server.close(accepted);
        pair.run_ms(5_000);
        assert_eq!(pair.received[0], 200_000);
        assert_eq!(pair.segments(is_join), 1);
        let resets = pair.segments(|s| is_rst(s) && !to_server(s));
        assert_eq!(resets > 0, refused, "{:?}", platform.buffers);
        let established = pair.segments(|s| s.header.flags.contains(Flags::SYN) && !to_server(s));
        assert_eq!(established, if refused { 1 } else { 2 }, "{:?}", platform.buffers);
    }
}

#[test]
fn data_that_overtakes_the_acknowledgement_of_a_join_resets_the_subflow_for_good() {
    for (platform, resets) in [(SOCKET, true), (PAYLOAD, false)] {
        // What comes first on the second path is late.
        let mut late = 2;
        let mut pair = pair(platform).with_filter(move |_, segment| {
            if late > 0 && is_on(segment, 1) && !to_server(segment) && !is_syn(segment) {
                late -= 1;
                return Fate::Delay(ms(20));
            }
            Fate::Deliver
        });
        pair.download(400_000, 5_000);
        assert_eq!(pair.received, [400_000, 0]);
        pair.run_ms(60_000);
        let sent = pair.segments(|s| is_rst(s) && is_on(s, 1) && to_server(s));
        assert_eq!((sent > 0, pair.segments(is_join)), (resets, 1), "{:?}", platform.buffers);
    }
}
