//! Sizes of the blocks of a stream, known at both ends.

use super::Sampler;

/// Maximum number of responses to one request.
pub const MAX_RESPONSES: u64 = 1 << 20;

/// The sizes of the blocks of a stream. Each is at least one byte.
#[derive(Clone, Copy, Debug)]
pub enum Sizes {
    /// The same size for all blocks.
    Fixed(u64),
    /// A random size for each block.
    Drawn(Sampler),
    /// A block consists of all responses to one request.
    Responses {
        /// Number of responses to each request: from 1 to [`MAX_RESPONSES`].
        count: Sampler,
        /// Size of each response.
        size: Sampler,
    },
}

impl Sizes {
    /// Size in bytes of block number `block`.
    pub fn of(&self, block: u64) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Drawn(size) => size.of(block).max(1),
            Sizes::Responses { count, size } => {
                let first = block.wrapping_mul(MAX_RESPONSES);
                let sizes = (0..count.of(block).clamp(1, MAX_RESPONSES))
                    .map(|n| size.of(first.wrapping_add(n)).max(1));
                sizes.fold(0, u64::saturating_add)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Distribution;

    #[test]
    fn a_block_is_as_long_as_all_its_responses() {
        let sampler = |distribution| Sampler::new::<u64>(distribution, 7);
        let size = sampler(Distribution::Uniform { min: 10, max: 20 });
        let count = sampler(Distribution::Uniform { min: 1, max: 3 });
        let sizes = Sizes::Responses { count, size };
        for block in 0..100 {
            let first = block * MAX_RESPONSES;
            let expected: u64 = (first..first + count.of(block)).map(|n| size.of(n)).sum();
            assert_eq!(sizes.of(block), expected);
        }
        assert_eq!(Sizes::Drawn(sampler(Distribution::Constant(0))).of(3), 1);
        assert_eq!(Sizes::Fixed(8).of(1), 8);
    }
}
