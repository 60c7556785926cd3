//! Options of Multipath TCP, and the options that fit next to them.

use super::*;

fn signalled(scene: &mut Scene) -> bool {
    let control = scene.replies().and_then(|segment| segment.options.control);
    control.is_some_and(|control| control.prio.is_some())
}

#[test]
fn a_priority_is_told_again_if_data_comes_later_than_two_round_trips() {
    // RFC 8684 §3.3.8
    let mut scene = Scene::open();
    scene.subflow.confirm();
    scene.subflow.signal_priority(true);
    assert!(signalled(&mut scene));
    for (after, again) in [(150, false), (50, false), (1, true)] {
        scene.now += ms(after);
        scene.takes(scene.segment(0, 1, 100));
        assert_eq!(signalled(&mut scene), again, "{after}");
    }
}

#[test]
fn what_is_to_be_told_waits_for_the_keys_and_is_forgotten_with_multipath_tcp() {
    // RFC 8684 §3.1, §3.7
    let mut scene = Scene::open();
    scene.subflow.confirm();
    scene.subflow.signal_priority(true);
    let keys = CapableKeys::Both { sender: 1, receiver: 2 };
    let keys = MpCapable { version: 1, flags: CapableFlags::PLAIN, keys };
    scene.level.keys = Some(keys);
    let control = scene.replies().and_then(|segment| segment.options.control).expect("options");
    assert_eq!((control.capable, control.prio), (Some(keys), None));
    scene.level.keys = None;
    assert!(signalled(&mut scene));
    scene.subflow.signal_priority(true);
    scene.subflow.forget_signals();
    scene.subflow.demand_ack();
    assert!(!signalled(&mut scene) && !scene.subflow.view().backup);
}

#[test]
fn the_end_of_multipath_tcp_is_announced_until_it_was_heard() {
    // RFC 8684 §3.7
    let mut scene = Scene::open();
    assert!(!scene.subflow.announces_infinite());
    let mapping = Mapping {
        data_seq: WideOrNarrow::Narrow(1),
        subflow_seq: SeqNumber(1),
        len: 0,
        checksum: None,
    };
    scene.subflow.announce_infinite(mapping);
    assert!(scene.subflow.announces_infinite());
    let sent = scene.write_bytes(100, None);
    assert_eq!(sent.options.dss.and_then(|dss| dss.mapping), Some(mapping));
    scene.takes(scene.ack(101, &[]));
    assert!(scene.subflow.end_announcement() && !scene.subflow.announces_infinite());
}

#[test]
fn a_reset_acknowledges_data_once_the_join_is_complete() {
    // RFC 8684 §3.2
    for confirmed in [false, true] {
        let mut scene = Scene::joining(Purpose::Join, Flags::default(), all_options(), |_| {});
        scene.level = DSS;
        if confirmed {
            scene.subflow.confirm();
        }
        scene.subflow.reset(None);
        let sent = scene.sends();
        assert_eq!(sent[0].header.flags, Flags::RST | Flags::ACK);
        assert_eq!(sent[0].options.dss.is_some(), confirmed);
    }
}

#[test]
fn a_repeat_whose_numbers_have_become_wide_fits_the_packet() {
    // RFC 8684 §3.3.1: without DATA_ACK if there is not enough room.
    let wide = WideOrNarrow::Wide(DataSeq(7));
    for (level, growth) in
        [(DataLevel { wide: true, ..DSS }, 4), (DataLevel { data_ack: Some(wide), ..DSS }, 4)]
    {
        for (short_by, acknowledges) in [(0, false), (growth - 1, false), (growth, true)] {
            let mut scene = Scene::open();
            scene.level = DSS;
            scene.subflow.confirm();
            let carries = Carries::Mapping { checksum: false, wide: false, wide_ack: false };
            scene.subflow.set_carries(carries, &[]);
            let bytes = scene.subflow.mss() - short_by;
            scene.write_bytes(bytes, Some(MappingMeta::new(DataSeq(1))));
            scene.waits();
            scene.level = level;
            let again = scene.subflow.send_tail_probe(scene.now, &scene.level).expect("a probe");
            assert!(again.payload.len() + again.options.bytes_len() <= 1000);
            let Dss { data_ack, mapping, .. } = again.options.dss.expect("a mapping");
            assert_eq!((data_ack.is_some(), mapping.is_some()), (acknowledges, true), "{short_by}");
        }
    }
}

#[test]
fn no_packet_is_larger_than_the_path_takes() {
    // RFC 9293 §3.7.1: the peer would accept more. Selective acknowledgements must not exceed the
    // limit either.
    let mut scene = Scene::open();
    assert_eq!(scene.subflow.mss(), 1000);
    scene.takes(scene.segment(500, 1, 500));
    for bytes in [1000, 980] {
        let sent = scene.write_bytes(bytes, None);
        assert!(sent.payload.len() + sent.options.bytes_len() <= 1000);
        scene.takes(scene.segment(500, 1, 500));
    }
}

#[test]
fn what_does_not_fit_with_an_address_is_told_apart_from_it() {
    // RFC 8684 §3.4.1: ADD_ADDR with an IPv6 address and timestamps fill the options.
    let mut scene = Scene::stamping();
    scene.subflow.confirm();
    let address = std::net::Ipv6Addr::LOCALHOST.into();
    let told = AddAddr { address_id: 3, address, port: None, truncated_hmac: Some(7) };
    assert!(scene.subflow.signals.address(told));
    scene.subflow.signal_priority(true);
    let mut sent = Vec::new();
    while let Some(segment) = scene.replies() {
        assert!(segment.options.bytes_len() <= MAX_OPTION_BYTES);
        sent.extend(segment.options.control.map(|it| (it.prio.is_some(), it.add_addr)));
    }
    assert_eq!(sent, [(true, None), (false, Some(told))]);
}
