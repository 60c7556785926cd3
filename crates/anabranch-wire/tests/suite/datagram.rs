//! UDP datagrams: known bytes, comparison with etherparse, and parse errors.

use std::net::IpAddr;

use anabranch_wire::{
    Datagram, EmitError, Packet, ParseError, Payload, Piece, Segment, SocketAddress, pattern,
};
use bytes::Bytes;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder, UdpSlice};
use proptest::prelude::*;

fn datagram(payload: impl Into<Payload>) -> Datagram {
    Datagram {
        source: SocketAddress::new([10, 0, 0, 1].into(), 0x1234),
        destination: SocketAddress::new([10, 0, 0, 2].into(), 80),
        payload: payload.into(),
        ecn: 1,
    }
}

fn emitted(datagram: &Datagram) -> Vec<u8> {
    let mut out = Vec::new();
    datagram.emit(&mut out).unwrap();
    out
}

#[test]
fn a_datagram_by_hand() {
    // IP: 4501 001f 4000 4011 0a00 0001 0a00 0002 = d934, complement 26cb.
    let mut bytes = vec![0x45, 0x01, 0, 0x1f, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcb];
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    // UDP: pseudo-header 0a00 0001 0a00 0002 0011 000b = 141f; header 1234 0050 000b = 128f;
    // payload 6869 2100 = 8969; together b017, complement 4fe8.
    bytes.extend([0x12, 0x34, 0, 80, 0, 11, 0x4f, 0xe8, b'h', b'i', b'!']);
    let datagram = datagram(Bytes::from_static(b"hi!"));
    assert_eq!(emitted(&datagram), bytes);
    assert_eq!(datagram.wire_len(), bytes.len());
    assert_eq!(Datagram::parse(&bytes), Ok(datagram.clone()));
    assert_eq!(Packet::parse(&bytes), Ok(datagram.into()));
}

#[test]
fn a_checksum_of_zero_is_sent_as_ffff() {
    // The payload word makes the sum all ones. The sum of `a_datagram_by_hand` with length 10 (one
    // less in both length fields) is 141e + 128e = 26ac, and ffff − 26ac = d953.
    let bytes = emitted(&datagram(Bytes::from_static(&[0xd9, 0x53])));
    assert_eq!(bytes[26..28], [0xff, 0xff]);
}

#[test]
fn malformed_datagrams_are_errors_with_a_reason() {
    let bytes = emitted(&datagram(Bytes::from_static(b"hi!")));
    let with_length = |length: u8| {
        let mut bytes = bytes.clone();
        bytes[25] = length;
        Datagram::parse(&bytes)
    };
    assert_eq!(with_length(12), Err(ParseError::UdpLength { found: 12, available: 11 }));
    assert_eq!(with_length(7), Err(ParseError::UdpLength { found: 7, available: 11 }));
    let tcp = ParseError::Protocol { found: 17, expected: "6 (TCP)" };
    assert_eq!(Segment::parse(&bytes), Err(tcp));
    let long = datagram(Piece::pattern(0, 65_528));
    let error = EmitError::PacketTooLong { bytes: 65_556, limit: 65_555 };
    assert_eq!(long.emit(&mut Vec::new()), Err(error));
}

#[test]
fn a_packet_of_another_protocol_is_an_error() {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
        .icmpv4_echo_request(1, 1)
        .write(&mut bytes, b"ping")
        .unwrap();
    let error = Packet::parse(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "IP protocol is 1, expected 6 (TCP) or 17 (UDP)");
}

fn datagrams() -> impl Strategy<Value = Datagram> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|[from, to]| (IpAddr::from(from), IpAddr::from(to))),
        any::<[[u8; 16]; 2]>().prop_map(|[from, to]| (IpAddr::from(from), IpAddr::from(to))),
    ];
    (addresses, any::<[u16; 2]>(), 0..pattern::PERIOD, 0u32..1_500, 0u8..4).prop_map(
        |((from, to), ports, offset, len, ecn)| Datagram {
            source: SocketAddress::new(from, ports[0]),
            destination: SocketAddress::new(to, ports[1]),
            payload: Piece::pattern(offset, len).into(),
            ecn,
        },
    )
}

proptest! {
    #[test]
    fn etherparse_reads_the_same_fields_and_checksum(datagram in datagrams()) {
        let bytes = emitted(&datagram);
        prop_assert_eq!(bytes.len(), datagram.wire_len());
        let (source, destination) = (datagram.source.address, datagram.destination.address);
        let (udp, checksum) = match (source, destination) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let ip = Ipv4HeaderSlice::from_slice(&bytes).unwrap();
                prop_assert_eq!((ip.protocol().0, ip.ecn().value()), (17, datagram.ecn));
                let udp = UdpSlice::from_slice(&bytes[20..]).unwrap();
                let sum = udp.to_header().calc_checksum_ipv4_raw(
                    from.octets(), to.octets(), udp.payload(),
                );
                (udp, sum)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let ip = Ipv6HeaderSlice::from_slice(&bytes).unwrap();
                prop_assert_eq!((ip.next_header().0, ip.ecn().value()), (17, datagram.ecn));
                let udp = UdpSlice::from_slice(&bytes[40..]).unwrap();
                let sum = udp.to_header().calc_checksum_ipv6_raw(
                    from.octets(), to.octets(), udp.payload(),
                );
                (udp, sum)
            }
            _ => unreachable!("the strategy does not mix address families"),
        };
        prop_assert_eq!(udp.source_port(), datagram.source.port);
        prop_assert_eq!(udp.destination_port(), datagram.destination.port);
        prop_assert_eq!(udp.payload(), datagram.payload.to_vec());
        prop_assert_eq!(udp.checksum(), checksum.unwrap());
        prop_assert_eq!(Packet::parse(&bytes), Ok(datagram.into()));
    }
}
