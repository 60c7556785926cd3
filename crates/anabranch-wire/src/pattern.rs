//! The test pattern: an endless byte stream whose every slice is known from its offset.
//!
//! Bulk workloads send it and check it. Byte `n` of the stream depends on `n` modulo
//! [`PERIOD`], a prime, so a slice that is displaced by any multiple of a segment, block or
//! power-of-two size is told apart from the right one. A slice of the pattern is described by
//! two numbers, so sending gigabytes of it needs no memory, and still every byte is defined and
//! goes on the wire when a segment is emitted.

use std::sync::LazyLock;

/// Period of the pattern in bytes: the largest prime below 2¹⁶.
pub const PERIOD: u64 = 65_521;

/// Longest slice that [`slice()`] can lend, in bytes.
pub const MAX_SLICE: usize = 1 << 16;

static BYTES: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..PERIOD as usize + MAX_SLICE).map(|n| byte(n as u64 % PERIOD)).collect());

/// The phase (offset modulo [`PERIOD`]) of stream offset `offset`.
pub fn phase_of(offset: u64) -> u32 {
    (offset % PERIOD) as u32
}

/// `len` bytes of the pattern from phase `phase`.
///
/// # Panics
/// If `phase` ≥ [`PERIOD`] or `len` > [`MAX_SLICE`].
pub fn slice(phase: u32, len: usize) -> &'static [u8] {
    assert!(u64::from(phase) < PERIOD && len <= MAX_SLICE, "slice of the pattern out of bounds");
    &BYTES[phase as usize..phase as usize + len]
}

/// One byte of the pattern: the top byte of a 64-bit mix of its phase, so that neighbours look
/// unrelated and no short run repeats.
fn byte(phase: u64) -> u8 {
    let mut x = phase.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_continue_each_other_across_the_period() {
        let end = slice(PERIOD as u32 - 10, 20);
        assert_eq!(&end[..10], &slice(PERIOD as u32 - 20, 20)[10..]);
        assert_eq!(&end[10..], slice(0, 10));
    }

    #[test]
    fn displaced_slices_differ() {
        for shift in [1u32, 2, 512, 1428, 1448, 8192] {
            assert_ne!(slice(0, 64), slice(shift, 64), "shift {shift}");
        }
    }
}
