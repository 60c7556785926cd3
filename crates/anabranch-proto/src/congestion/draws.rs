//! Random numbers of a congestion control.

/// A linear congruential generator with the multiplier of Knuth's MMIX.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Draws(seed)
    }

    /// A random number in [0, 2^31).
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 33
    }
}
