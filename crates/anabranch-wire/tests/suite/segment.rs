//! Whole packets: known bytes, emit errors, and a comparison of every field with etherparse.

use std::net::IpAddr;

use anabranch_wire::{
    Checksum, EmitError, Flags, ParseError, Payload, Piece, Segment, SeqNumber, SocketAddress,
    TcpHeader, TcpOptions, pattern,
};
use bytes::Bytes;
use etherparse::{IpFragOffset, Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder, TcpSlice};
use proptest::prelude::*;

use crate::arbitrary;

fn segment(source: IpAddr, destination: IpAddr) -> Segment {
    Segment {
        source: SocketAddress::new(source, 0x1234),
        destination: SocketAddress::new(destination, 80),
        header: TcpHeader {
            seq: SeqNumber(1),
            ack: SeqNumber(2),
            flags: Flags::ACK | Flags::PSH,
            window: 0xfaf0,
            urgent: 0,
        },
        options: TcpOptions::default(),
        payload: Bytes::from_static(b"hi!").into(),
        ecn: 1,
        checksum_ok: true,
    }
}

fn v4() -> Segment {
    segment([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

fn v6() -> Segment {
    let address = |last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    segment(address(1), address(2))
}

fn emitted(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit(&mut out).unwrap();
    out
}

/// The TCP header and payload of [`segment`], with the given checksum.
fn tcp(checksum: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0xfa, 0xf0];
    bytes.extend(checksum);
    bytes.extend([0, 0, b'h', b'i', b'!']);
    bytes
}

#[test]
fn an_ipv4_packet_by_hand() {
    // Sum of the IP header: 4501 002b 4000 4006 0a00 0001 0a00 0002 = d935, complement 26ca.
    let mut bytes = vec![0x45, 0x01, 0, 0x2b, 0, 0, 0x40, 0, 64, 6, 0x26, 0xca];
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    // Pseudo-header 0a00 0001 0a00 0002 0006 0017 = 1420; TCP 1234 0050 0001 0002 5018 faf0
    // 6869 2100 = 1e6f8, folded e6f9; together fb19, complement 04e6.
    bytes.extend(tcp([0x04, 0xe6]));
    assert_eq!(emitted(&v4()), bytes);
    assert_eq!(v4().wire_len(), 43);
    assert_eq!(Segment::parse(&bytes), Ok(v4()));
}

#[test]
fn an_ipv6_packet_by_hand() {
    let mut bytes = vec![0x60, 0x10, 0, 0, 0, 23, 6, 64];
    for last in [1, 2] {
        bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    // Pseudo-header 2001 0db8 0001 2001 0db8 0002 0017 0006 = 5b92; TCP as in IPv4 e6f9;
    // together 1428b, folded 428c, complement bd73.
    bytes.extend(tcp([0xbd, 0x73]));
    assert_eq!(emitted(&v6()), bytes);
    assert_eq!(v6().wire_len(), 63);
    assert_eq!(Segment::parse(&bytes), Ok(v6()));
}

#[test]
fn a_corrupted_segment_is_emitted_with_a_wrong_checksum() {
    for segment in [v4(), v6()] {
        let corrupted = Segment { checksum_ok: false, ..segment.clone() };
        let bytes = emitted(&corrupted);
        assert_ne!(bytes, emitted(&segment));
        assert_eq!(Segment::parse(&bytes), Ok(corrupted));
    }
}

#[test]
fn an_unfinished_checksum_is_the_sum_of_the_pseudo_header() {
    for segment in [v4(), v6()] {
        let more = [segment.payload.clone(), Payload::from(b"x".to_vec())];
        let mut whole = segment.clone();
        whole.payload =
            [segment.payload.to_vec(), more[0].to_vec(), more[1].to_vec()].concat().into();
        let mut open = Vec::new();
        let tcp_at = segment.emit_unsummed(&more, &mut open).expect("short enough");
        // Virtio 1.2 §5.1.6.2: the device computes the checksum from the TCP header onwards,
        // including the current value of the checksum field, and stores it in that field.
        let mut closed = open.clone();
        let mut checksum = Checksum::new();
        checksum.add(&open[tcp_at..]);
        closed[tcp_at + 16..][..2].copy_from_slice(&checksum.finish().to_be_bytes());
        assert_eq!(closed, emitted(&whole));
        assert_eq!(Segment::parse_unsummed(&Bytes::from(open.clone())), Ok(whole));
        assert!(!Segment::parse(&open).expect("well-formed").checksum_ok);
    }
}

#[test]
fn mixed_address_families_cannot_be_emitted() {
    let mixed = Segment { destination: v6().destination, ..v4() };
    let error =
        EmitError::MixedAddressFamilies { from: v4().source.address, to: v6().destination.address };
    let mut out = vec![0xa5];
    assert_eq!(mixed.emit(&mut out), Err(error));
    assert_eq!(out, [0xa5]);
}

#[test]
fn packets_up_to_the_limit_of_their_header_can_be_emitted() {
    let limits = [(v4(), 65_535), (v6(), 65_575)];
    for (segment, limit) in limits {
        let headers = segment.wire_len() - 3;
        let with = |len: usize| Segment {
            payload: Piece::pattern(0, len as u32).into(),
            ..segment.clone()
        };
        let longest = with(limit - headers);
        assert_eq!(Segment::parse(&emitted(&longest)), Ok(longest));
        let mut out = vec![0xa5];
        let error = EmitError::PacketTooLong { bytes: limit + 1, limit };
        assert_eq!(with(limit + 1 - headers).emit(&mut out), Err(error));
        assert_eq!(out, [0xa5]);
    }
}

#[test]
fn options_that_do_not_fit_cannot_be_emitted() {
    let options = TcpOptions { unknown: Some([254; 41].into()), ..TcpOptions::default() };
    let mut out = vec![0xa5];
    let error = EmitError::OptionsTooLong { bytes: 44 };
    assert_eq!(Segment { options, ..v4() }.emit(&mut out), Err(error));
    assert_eq!(out, [0xa5]);
}

#[test]
fn a_tcp_header_that_does_not_fit_is_an_error_with_a_reason() {
    // RFC 9293 §3.1: the data offset is at least 5 words and lies within the segment.
    let mut bytes = emitted(&v4());
    bytes[32] = 0x40;
    assert_eq!(Segment::parse(&bytes), Err(ParseError::TcpDataOffset { found: 16 }));
    bytes[32] = 0x60;
    let error = ParseError::Truncated { what: "TCP header", needed: 24, available: 23 };
    assert_eq!(Segment::parse(&bytes), Err(error));
    let error = ParseError::Truncated { what: "IPv4 packet", needed: 43, available: 39 };
    assert_eq!(Segment::parse(&bytes[..39]), Err(error));
    let error = ParseError::Truncated { what: "IP header", needed: 1, available: 0 };
    assert_eq!(Segment::parse(&[]), Err(error));
}

#[test]
fn pattern_payload_is_written_to_the_wire() {
    let end = Piece::Shared(Bytes::from_static(b"end"));
    let payload = Payload::new(Piece::pattern(pattern::PERIOD - 5, 10), end);
    let segment = Segment { payload, ..v4() };
    let bytes = emitted(&segment);
    assert!(bytes.ends_with(&[pattern::slice(0, 5), b"end"].concat()));
    assert_eq!(Segment::parse(&bytes), Ok(segment));
}

/// Compare every field of the TCP header and the checksum with the values etherparse reads.
fn assert_tcp_agrees(segment: &Segment, tcp: &TcpSlice<'_>) {
    let header = &segment.header;
    assert_eq!(tcp.source_port(), segment.source.port);
    assert_eq!(tcp.destination_port(), segment.destination.port);
    assert_eq!(tcp.sequence_number(), header.seq.0);
    assert_eq!(tcp.acknowledgment_number(), header.ack.0);
    let flags = [
        (tcp.fin(), Flags::FIN),
        (tcp.syn(), Flags::SYN),
        (tcp.rst(), Flags::RST),
        (tcp.psh(), Flags::PSH),
        (tcp.ack(), Flags::ACK),
        (tcp.urg(), Flags::URG),
        (tcp.ece(), Flags::ECE),
        (tcp.cwr(), Flags::CWR),
    ];
    for (set, flag) in flags {
        assert_eq!(set, header.flags.contains(flag), "{flag:?}");
    }
    assert!(!tcp.ns());
    assert_eq!(tcp.window_size(), header.window);
    assert_eq!(tcp.urgent_pointer(), header.urgent);
    assert_eq!(tcp.options().len(), segment.options.bytes_len());
    assert_eq!(tcp.payload(), segment.payload.to_vec());
    let expected = match (segment.source.address, segment.destination.address) {
        (IpAddr::V4(from), IpAddr::V4(to)) => tcp.calc_checksum_ipv4(from.octets(), to.octets()),
        (IpAddr::V6(from), IpAddr::V6(to)) => tcp.calc_checksum_ipv6(from.octets(), to.octets()),
        _ => unreachable!("the strategy does not mix address families"),
    };
    assert_eq!(tcp.checksum() == expected.unwrap(), segment.checksum_ok);
}

fn assert_v4_agrees(segment: &Segment, bytes: &[u8]) {
    let ip = Ipv4HeaderSlice::from_slice(bytes).unwrap();
    assert_eq!(IpAddr::from(ip.source_addr()), segment.source.address);
    assert_eq!(IpAddr::from(ip.destination_addr()), segment.destination.address);
    assert_eq!((ip.version(), ip.ihl(), ip.ttl(), ip.protocol().0), (4, 5, 64, 6));
    assert_eq!(usize::from(ip.total_len()), bytes.len());
    assert_eq!((ip.dont_fragment(), ip.more_fragments()), (true, false));
    assert_eq!((ip.dcp().value(), ip.ecn().value()), (0, segment.ecn));
    assert_eq!(ip.fragments_offset(), IpFragOffset::ZERO);
    assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
    assert_tcp_agrees(segment, &TcpSlice::from_slice(&bytes[20..]).unwrap());
}

fn assert_v6_agrees(segment: &Segment, bytes: &[u8]) {
    let ip = Ipv6HeaderSlice::from_slice(bytes).unwrap();
    assert_eq!(IpAddr::from(ip.source_addr()), segment.source.address);
    assert_eq!(IpAddr::from(ip.destination_addr()), segment.destination.address);
    assert_eq!((ip.version(), ip.hop_limit(), ip.next_header().0), (6, 64, 6));
    assert_eq!(usize::from(ip.payload_length()), bytes.len() - 40);
    assert_eq!((ip.dscp().value(), ip.ecn().value()), (0, segment.ecn));
    assert_eq!(ip.flow_label().value(), 0);
    assert_tcp_agrees(segment, &TcpSlice::from_slice(&bytes[40..]).unwrap());
}

#[test]
fn packets_built_by_etherparse_parse_to_their_fields() {
    let builder = |segment: &Segment| match (segment.source.address, segment.destination.address) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 9),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 9),
        _ => unreachable!("neither packet mixes address families"),
    };
    for segment in [v4(), v6()] {
        let mut bytes = Vec::new();
        let tcp = builder(&segment).tcp(0x1234, 80, 1, 0xfaf0).ack(2).psh();
        tcp.options_raw(&[2, 4, 5, 0xb4, 1, 0]).unwrap().write(&mut bytes, b"hi!").unwrap();
        let options = TcpOptions { mss: Some(1460), ..TcpOptions::default() };
        assert_eq!(Segment::parse(&bytes), Ok(Segment { options, ecn: 0, ..segment }));
    }
}

proptest! {
    #[test]
    fn etherparse_reads_the_same_fields_and_checksums(segment in arbitrary::segment()) {
        let bytes = emitted(&segment);
        match segment.source.address {
            IpAddr::V4(_) => assert_v4_agrees(&segment, &bytes),
            IpAddr::V6(_) => assert_v6_agrees(&segment, &bytes),
        }
    }
}
