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

/// Phases from one entry of [`SUMS`] to the next. With an entry for each phase, the table would fill a
/// quarter of a usual second-level cache.
const STEP: usize = 8;

/// For each multiple of [`STEP`], the sum of the big-endian 16-bit words before it.
static SUMS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut sum = 0;
    let (steps, _) = BYTES[..PERIOD as usize + STEP].as_chunks();
    let before = steps.iter().map(|bytes| {
        let before = sum;
        sum += sum_of_words(u64::from_be_bytes(*bytes));
        before
    });
    before.collect()
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
    sum_before(phase as usize + len as usize) - sum_before(phase as usize)
}

/// Sum of the big-endian 16-bit words before `phase`, which is at most [`PERIOD`]. An odd byte is the high
/// half of a word.
fn sum_before(phase: usize) -> u32 {
    let (step, bytes) = (phase / STEP, phase % STEP);
    let next: [u8; STEP] = *BYTES[step * STEP..].first_chunk().expect("the slices end later");
    // Only the first `bytes` of them are before the phase.
    let word = u64::from_be_bytes(next) & !(u64::MAX >> (8 * bytes));
    SUMS[step] + sum_of_words(word)
}

/// Sum of four 16-bit words.
fn sum_of_words(words: u64) -> u32 {
    const EVEN: u64 = 0x0000_ffff_0000_ffff;
    let pairs = (words & EVEN) + (words >> 16 & EVEN);
    pairs as u32 + (pairs >> 32) as u32
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
    fn a_sum_is_that_of_its_bytes_at_every_phase() {
        let mut before = 0;
        for phase in 0..PERIOD as u32 {
            assert_eq!(sum(0, phase), before, "{phase}");
            before += u32::from(byte(phase.into())) << if phase % 2 == 0 { 8 } else { 0 };
        }
        assert_eq!(sum(0, PERIOD as u32), before);
        assert_eq!(sum(7, 0), 0);
        assert_eq!(sum(3, 2), u32::from(byte(3)) + (u32::from(byte(4)) << 8));
    }

    #[test]
    fn displaced_slices_differ() {
        for shift in [1u32, 2, 512, 1428, 1448, 8192] {
            assert_ne!(slice(0, 64), slice(shift, 64), "shift {shift}");
        }
    }
}
