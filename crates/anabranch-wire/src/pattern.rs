//! The test pattern: an endless byte stream in which the offset determines every byte.
//!
//! Bulk workloads send and verify it. Byte `n` of the stream depends on `n` modulo [`PERIOD`], a
//! prime. A slice that is displaced by any multiple of a segment, block or power-of-two size
//! therefore differs from the correct one. Two numbers describe a slice of the pattern, so sending
//! gigabytes needs no memory. The bytes are real nevertheless: emitting a segment writes them to
//! the wire.

use std::sync::LazyLock;

/// Period of the pattern in bytes: the largest prime below 2¹⁶.
pub const PERIOD: u64 = 65_521;

/// Maximum length in bytes of a slice that [`slice()`] returns.
pub const MAX_SLICE: usize = 1 << 16;

static BYTES: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..PERIOD as usize + MAX_SLICE).map(|n| byte(n as u64 % PERIOD)).collect());

/// For each phase, the sum of all bytes before it as halves of big-endian 16-bit words. A byte at an even
/// phase is a high half.
static SUMS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let word_half =
        |phase: u64| u32::from(byte(phase)) << if phase.is_multiple_of(2) { 8 } else { 0 };
    let mut sum = 0;
    let after = (0..PERIOD).map(|phase| {
        sum += word_half(phase);
        sum
    });
    std::iter::once(0).chain(after).collect()
});

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

/// Sum of the big-endian 16-bit words of `len` bytes from phase `phase`. A byte at an even phase is the
/// high half of a word.
///
/// # Panics
/// If the bytes are not in one period.
pub(crate) fn sum(phase: u32, len: u32) -> u32 {
    SUMS[(phase + len) as usize] - SUMS[phase as usize]
}

/// One byte of the pattern: the top byte of a 64-bit mix of its phase. Neighbouring bytes look
/// unrelated, and no short run repeats.
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
    fn consecutive_slices_continue_across_the_period() {
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
