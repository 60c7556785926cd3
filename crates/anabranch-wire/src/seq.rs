//! Sequence numbers as types that have no ordering.
//!
//! Both sequence spaces wrap, so "less than" is not transitive and neither type implements `Ord`.
//! Callers use the signed distance between two numbers that they know to be close.

use core::fmt;
use core::ops::Add;

/// A TCP sequence number: 32 bits, wrapping (RFC 9293 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNumber(pub u32);

/// A Multipath TCP data sequence number (DSN): 64 bits, wrapping (RFC 8684 §3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataSeq(pub u64);

impl SeqNumber {
    /// Signed distance from `other` to `self`, correct if they are less than 2³¹ apart.
    pub const fn distance_from(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl DataSeq {
    /// Signed distance from `other` to `self`, correct if they are less than 2⁶³ apart.
    pub const fn distance_from(self, other: DataSeq) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// The low 32 bits, which the 4-byte forms of DSN and DATA_ACK carry.
    pub const fn low32(self) -> u32 {
        self.0 as u32
    }

    /// The 64-bit number closest to `self` whose low 32 bits are `low`.
    ///
    /// RFC 8684 §3.3.1: the receiver expands a 4-byte number with the high bits that it tracks, and
    /// takes a wrap of the low half into account.
    pub const fn expand(self, low: u32) -> DataSeq {
        let step = low.wrapping_sub(self.0 as u32) as i32;
        DataSeq(self.0.wrapping_add(step as i64 as u64))
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    fn add(self, bytes: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(bytes))
    }
}

impl Add<u64> for DataSeq {
    type Output = DataSeq;
    fn add(self, bytes: u64) -> DataSeq {
        DataSeq(self.0.wrapping_add(bytes))
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq {}", self.0)
    }
}

impl fmt::Debug for DataSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dsn {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_crosses_the_wrap() {
        assert_eq!(SeqNumber(5).distance_from(SeqNumber(u32::MAX - 4)), 10);
        assert_eq!(SeqNumber(u32::MAX - 4).distance_from(SeqNumber(5)), -10);
        assert_eq!(DataSeq(5).distance_from(DataSeq(u64::MAX - 4)), 10);
    }

    #[test]
    fn expansion_picks_the_closest_number_across_both_wraps() {
        // RFC 8684 §3.3.1
        let near_32_bit_wrap = DataSeq(0x1_ffff_fff0);
        assert_eq!(near_32_bit_wrap.expand(0x10), DataSeq(0x2_0000_0010));
        assert_eq!(near_32_bit_wrap.expand(0xffff_ff00), DataSeq(0x1_ffff_ff00));
        let near_64_bit_wrap = DataSeq(u64::MAX - 3);
        assert_eq!(near_64_bit_wrap.expand(4), DataSeq(4));
        assert_eq!(DataSeq(4).expand(u32::MAX - 3), DataSeq(u64::MAX - 3));
    }
}
