//! Emitted values parse to the same value, parsed bytes can be emitted, and nothing panics.

use anabranch_wire::{Datagram, Packet, Segment, TcpOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::arbitrary;

fn datagram(of: Segment) -> Datagram {
    let Segment { source, destination, payload, ecn, .. } = of;
    Datagram { source, destination, payload, ecn }
}

fn emitted(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit(&mut out).expect("the strategies make segments that fit");
    out
}

/// Parse arbitrary bytes. If they parse, emitting and parsing again must give the same value.
fn parse_and_repeat(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(segment) = Segment::parse(bytes) {
        prop_assert_eq!(Segment::parse(&emitted(&segment)), Ok(segment));
    }
    Ok(())
}

/// Options of plausible kinds and subtypes, with valid and invalid lengths.
fn plausible_options() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => Just(30u8), 1 => 2..9u8, 1 => any::<u8>()];
    let option = (kind, 0..31u8, any::<u8>(), vec(any::<u8>(), 30), 0..40u8).prop_map(
        |(kind, data, low_half, mut bytes, lie)| {
            bytes[0] = low_half & 0x1f | bytes[0] & 0xe0;
            bytes.truncate(usize::from(data));
            // One length in forty contradicts the number of bytes available.
            let length = if lie == 0 { data } else { data + 2 };
            [&[kind, length], &bytes[..]].concat()
        },
    );
    vec(option, 0..5).prop_map(|options| {
        let mut bytes = options.concat();
        bytes.truncate(40);
        bytes
    })
}

proptest! {
    #[test]
    fn a_segment_survives_the_wire(segment in arbitrary::segment()) {
        let mut out = vec![0xa5; 7];
        segment.emit(&mut out).unwrap();
        prop_assert_eq!(&out[..7], &[0xa5; 7]);
        prop_assert_eq!(out.len() - 7, segment.wire_len());
        // Trailing bytes, such as the padding of a short Ethernet frame, have no effect.
        out.extend([0xa5; 3]);
        prop_assert_eq!(Segment::parse(&out[7..]), Ok(segment));
    }

    #[test]
    fn the_start_of_a_packet_equals_that_of_the_whole(
        segment in arbitrary::segment(),
        most in prop_oneof![Just(usize::MAX), 0..3_000_usize],
    ) {
        let packets = [Packet::from(segment.clone()), datagram(segment).into()];
        for packet in packets {
            let mut all = Vec::new();
            packet.emit(&mut all).unwrap();
            let mut out = vec![0xa5; 7];
            packet.emit_start(most, &mut out).unwrap();
            prop_assert_eq!(&out[7..], &all[..most.min(all.len())]);
        }
    }

    #[test]
    fn options_survive_the_wire(options in arbitrary::options()) {
        let mut out = vec![0xa5];
        options.emit(&mut out).unwrap();
        prop_assert_eq!(out.len() - 1, options.bytes_len());
        prop_assert_eq!(TcpOptions::parse(&out[1..]), Ok(options));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        first in prop_oneof![Just(0x45u8), Just(0x60), any::<u8>()],
        mut bytes in vec(any::<u8>(), 0..200),
    ) {
        bytes.insert(0, first);
        parse_and_repeat(&bytes)?;
    }

    #[test]
    fn mutated_packets_never_panic(
        segment in arbitrary::segment(),
        mutations in vec((any::<Index>(), any::<u8>()), 1..8),
        kept in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = emitted(&segment);
        // Only the headers are mutated; the payload is long and not interesting.
        let headers = bytes.len() - segment.payload.len();
        for (index, byte) in mutations {
            bytes[index.index(headers)] = byte;
        }
        if cut {
            bytes.truncate(kept.index(bytes.len()));
        }
        parse_and_repeat(&bytes)?;
    }

    #[test]
    fn a_flipped_bit_clears_the_checksum(
        segment in arbitrary::segment(),
        at in any::<Index>(),
        bit in 0..8u8,
    ) {
        let segment = Segment { checksum_ok: true, ..segment };
        let mut bytes = emitted(&segment);
        let tcp = anabranch_wire::ip_header_bytes(segment.source.address);
        bytes[tcp + at.index(segment.wire_len() - tcp)] ^= 1 << bit;
        if let Ok(parsed) = Segment::parse(&bytes) {
            prop_assert!(!parsed.checksum_ok);
        }
    }

    #[test]
    fn plausible_options_never_panic_and_repeat(bytes in plausible_options()) {
        if let Ok(options) = TcpOptions::parse(&bytes) {
            let mut out = Vec::new();
            options.emit(&mut out).expect("never longer than the parsed bytes");
            prop_assert_eq!(TcpOptions::parse(&out), Ok(options));
        }
    }
}
