//! The Internet checksum (RFC 1071), and the checksums of TCP and of the DSS option that use it.

use std::net::IpAddr;

use crate::{DataSeq, Payload, Piece, SeqNumber, pattern};

/// A running Internet checksum: the one's complement sum of big-endian 16-bit words.
///
/// Bytes may be added in slices of any length, including odd lengths. The result equals the
/// checksum of the concatenated slices, padded with one zero byte if their total length is odd.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// One's complement sum in 64 bits, congruent to the 16-bit sum.
    sum: u64,
    /// Whether an odd number of bytes has been added. The next byte is then the low half of a word.
    odd: bool,
}

/// Checksum of a DSS mapping of `len` bytes, where a DATA_FIN counts as one byte. `payload` holds
/// the mapped bytes of the subflow. RFC 8684 §3.3.1.
pub fn dss_checksum(data_seq: DataSeq, subflow_seq: SeqNumber, len: u16, payload: &Payload) -> u16 {
    let mut checksum = Checksum::of_dss_pseudo_header(data_seq, subflow_seq, len);
    checksum.add_payload(payload);
    checksum.finish()
}

impl Checksum {
    /// An empty sum.
    pub const fn new() -> Self {
        Checksum { sum: 0, odd: false }
    }

    /// The sum of the pseudo-header of `protocol`, for `bytes` bytes of header and payload.
    pub(crate) fn of_pseudo_header(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        bytes: usize,
    ) -> Self {
        let mut checksum = Checksum::new();
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => checksum.add_words(u64::from(address.to_bits())),
                IpAddr::V6(address) => {
                    let bits = address.to_bits();
                    checksum.add_words((bits >> 64) as u64);
                    checksum.add_words(bits as u64);
                }
            }
        }
        // The 16-bit length of IPv4 and the 32-bit length of IPv6 contribute the same to the sum.
        checksum.add_words(bytes as u64);
        checksum.add_words(u64::from(protocol));
        checksum
    }

    /// The sum of the pseudo-header of a DSS mapping. A receiver starts from it, adds the mapping's
    /// bytes as they arrive on the subflow, and calls [`Checksum::verifies`].
    pub fn of_dss_pseudo_header(data_seq: DataSeq, subflow_seq: SeqNumber, len: u16) -> Self {
        let mut checksum = Checksum::new();
        // RFC 8684 §3.3.1: the sum covers all 64 bits of the DSN, even if the option carries 4
        // bytes.
        checksum.add_words(data_seq.0);
        checksum.add_words(u64::from(subflow_seq.0));
        checksum.add_words(u64::from(len));
        checksum
    }

    /// Add bytes.
    #[inline] // Headers have constant lengths.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.odd
            && let [low_half, rest @ ..] = bytes
        {
            self.add_words(u64::from(*low_half));
            self.odd = false;
            bytes = rest;
        }
        let (eights, rest) = bytes.as_chunks();
        // RFC 1071 §2(B), §2(C): the sum does not depend on the order of bytes, if the result is
        // swapped. Halves of 32 bits need no carry, so the compiler adds several at once.
        let halves = eights.iter().map(|eight| u64::from_le_bytes(*eight));
        let sum: u64 = halves.map(|word| (word >> 32) + (word & u64::from(u32::MAX))).sum();
        self.add_words(sum.swap_bytes());
        let (pairs, rest) = rest.as_chunks();
        for pair in pairs {
            self.add_words(u64::from(u16::from_be_bytes(*pair)));
        }
        if let [high_half] = rest {
            self.add_words(u64::from(*high_half) << 8);
            self.odd = true;
        }
    }

    /// Add the bytes of a payload.
    pub fn add_payload(&mut self, payload: &Payload) {
        for piece in payload.pieces() {
            match piece {
                Piece::Pattern { phase, len } => self.add_pattern(*phase, *len),
                Piece::Shared(bytes) => self.add(bytes),
            }
        }
    }

    /// Add `len` bytes of the test pattern from phase `phase`. The cost does not grow with their number.
    fn add_pattern(&mut self, phase: u32, len: u32) {
        let (mut phase, mut left) = (phase, len);
        while left > 0 {
            let len = left.min(pattern::PERIOD as u32 - phase);
            let sum = u64::from(pattern::sum(phase, len));
            // RFC 1071 §2(B): with the other halves of words, the sum is swapped. 2⁸ is then a factor.
            let is_swapped = self.odd == phase.is_multiple_of(2);
            self.add_words(if is_swapped { sum << 8 } else { sum });
            self.odd ^= !len.is_multiple_of(2);
            left -= len;
            phase = 0;
        }
    }

    /// The checksum: the complement of the sum.
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// Returns `true` if the received `checksum` matches the bytes added. If the checksum field
    /// itself is among the bytes added, pass 0.
    ///
    /// 0x0000 and 0xffff both represent zero in one's complement, so each is accepted for the
    /// other.
    pub const fn verifies(self, checksum: u16) -> bool {
        let sum = self.fold() as u32 + checksum as u32;
        sum == 0xffff || sum == 0x1_fffe
    }

    /// Add four 16-bit words at once. 2⁶⁴ − 1 is a multiple of 2¹⁶ − 1, so a 64-bit sum with
    /// end-around carry is congruent to the 16-bit sum.
    const fn add_words(&mut self, words: u64) {
        let (sum, carry) = self.sum.overflowing_add(words);
        // After a carry the sum is at most 2⁶⁴ − 2, so this addition cannot overflow.
        self.sum = sum + carry as u64;
    }

    /// The sum folded into 16 bits. It is 0 only if all words were 0.
    const fn fold(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Piece;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn sum_of(bytes: &[u8]) -> u16 {
        let mut checksum = Checksum::new();
        checksum.add(bytes);
        checksum.finish()
    }

    /// A plain transcription of RFC 1071 §4.1.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071() {
        // RFC 1071 §3: 0001 f203 f4f5 f6f7 sum to ddf2 after folding.
        assert_eq!(sum_of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn an_odd_length_is_padded_with_zero() {
        assert_eq!(sum_of(&[0x12, 0x34, 0x56]), !(0x1234 + 0x5600));
        assert_eq!(sum_of(&[]), 0xffff);
    }

    #[test]
    fn dss_checksum_by_hand() {
        // RFC 8684 §3.3.1. Words: DSN 0000 0001 0000 0002, SSN 0000 0003, length 0003, zeros,
        // bytes 6162 6300: 1 + 2 + 3 + 3 + 0x6162 + 0x6300 = 0xc46b.
        let payload = Payload::from(Bytes::from_static(b"abc"));
        let checksum = dss_checksum(DataSeq(0x1_0000_0002), SeqNumber(3), 3, &payload);
        assert_eq!(checksum, !0xc46b);
    }

    #[test]
    fn dss_checksum_uses_all_64_bits_of_the_data_sequence_number() {
        // RFC 8684 §3.3.1
        let of = |dsn| dss_checksum(DataSeq(dsn), SeqNumber(1), 0, &Payload::EMPTY);
        assert_ne!(of(0x1_0000_0000), of(0));
        assert_ne!(of(1 << 48), of(0));
    }

    #[test]
    fn a_mapping_summed_in_pieces_verifies() {
        // RFC 8684 §3.3.1
        let payload = Payload::new(Piece::pattern(7, 1001), Bytes::from_static(b"odd").into());
        let expected = dss_checksum(DataSeq(u64::MAX), SeqNumber(9), 1004, &payload);
        let mut pieces = Checksum::of_dss_pseudo_header(DataSeq(u64::MAX), SeqNumber(9), 1004);
        for (from, to) in [(0, 1), (1, 400), (400, 401), (401, 1002), (1002, 1004)] {
            pieces.add_payload(&payload.slice(from, to));
        }
        assert!(pieces.verifies(expected));
        assert!(!pieces.verifies(expected ^ 0x0100));
    }

    #[test]
    fn both_zeros_of_ones_complement_verify() {
        let mut checksum = Checksum::new();
        checksum.add(&[0xff, 0xff]);
        assert!(checksum.verifies(0x0000) && checksum.verifies(0xffff));
        assert!(Checksum::new().verifies(0xffff) && !Checksum::new().verifies(0x0000));
    }

    proptest! {
        #[test]
        fn a_slice_of_the_pattern_sums_like_its_bytes(
            before in prop::collection::vec(any::<u8>(), 0..3),
            offset in any::<u32>(),
            len in prop_oneof![0..3_000_u32, 65_000..200_000_u32],
        ) {
            let payload = Payload::from(Piece::pattern(offset.into(), len));
            let mut checksum = Checksum::new();
            checksum.add(&before);
            checksum.add_payload(&payload);
            checksum.add(b"end");
            let bytes = [before, payload.to_vec(), b"end".to_vec()].concat();
            prop_assert_eq!(checksum.finish(), sum_of(&bytes));
        }

        #[test]
        fn two_pieces_sum_like_their_bytes(
            offsets in any::<[u32; 2]>(),
            lens in [0..3_000_u32, 0..3_000_u32],
            memory in prop::collection::vec(any::<u8>(), 0..40),
            memory_at in 0..3_usize,
        ) {
            let [first, second] = [0, 1].map(|n| match memory_at == n {
                true => Piece::from(Bytes::from(memory.clone())),
                false => Piece::pattern(offsets[n].into(), lens[n]),
            });
            let payload = Payload::new(first, second);
            let mut checksum = Checksum::new();
            checksum.add_payload(&payload);
            checksum.add(b"end");
            prop_assert_eq!(checksum.finish(), sum_of(&[&payload.to_vec(), &b"end"[..]].concat()));
        }

        #[test]
        fn any_split_gives_the_same_sum(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut checksum = Checksum::new();
            for ends in cuts.windows(2) {
                checksum.add(&bytes[ends[0]..ends[1]]);
            }
            prop_assert_eq!(checksum.finish(), reference(&bytes));
        }
    }
}
