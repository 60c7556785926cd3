//! Random draws by number. The draw for packet *n* is a function of (seed, *n*) only. Adding,
//! dropping or delaying one packet therefore does not change the draws of other packets.
//!
//! The functions here never change, because published results depend on their values.

/// Weyl increment: 2⁶⁴ divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random draws, indexed by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// The stream with this seed. [`stream_seed`] derives a seed for each component.
    pub const fn new(seed: u64) -> Self {
        Draws { seed }
    }

    /// 64 uniform bits: output *n* of the SplitMix64 generator started from the seed.
    pub const fn bits(self, n: u64) -> u64 {
        mix(self.seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// A uniform draw in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(self, n: u64) -> f64 {
        unit_interval(self.bits(n))
    }

    /// A uniform draw in [−1, 1) with mean zero.
    pub fn signed(self, n: u64) -> f64 {
        2.0 * self.uniform(n) - 1.0
    }

    /// A draw from the standard normal distribution (mean 0, variance 1), by the Box–Muller
    /// transform.
    pub fn normal(self, n: u64) -> f64 {
        let bits = self.bits(n);
        // 1 − u is in (0, 1], so its logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit_interval(bits)));
        let angle = core::f64::consts::TAU * unit_interval(mix(bits.wrapping_add(GOLDEN)));
        radius * libm::cos(angle)
    }
}

/// The seed of the random stream of `component` in a run with seed `seed`.
///
/// The name is absorbed eight bytes at a time, little-endian and padded with zeros. Its length
/// comes last, so names that differ only in trailing zero bytes have different seeds.
pub fn stream_seed(seed: u64, component: &str) -> u64 {
    let absorb = |state: u64, word: u64| mix((state ^ word).wrapping_add(GOLDEN));
    let words = component.as_bytes().chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    });
    absorb(words.fold(mix(seed.wrapping_add(GOLDEN)), absorb), component.len() as u64)
}

/// A bijective mix of 64 bits, in which each input bit flips each output bit about half of the
/// time. It is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The top 53 bits as a fraction. An `f64` holds 53 bits exactly.
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_published_outputs_of_splitmix64() {
        let zero = Draws::new(0);
        assert_eq!(zero.bits(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(zero.bits(1), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(zero.bits(2), 0x06c4_5d18_8009_454f);
        assert_eq!(Draws::new(1_234_567).bits(0), 6_457_827_717_110_365_317);
        assert_eq!(Draws::new(1_234_567).bits(1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn stream_seeds_never_change() {
        assert_eq!(stream_seed(0, ""), 0xa706_dd2f_4d19_7e6f);
        assert_eq!(stream_seed(0, "loss"), 0xc402_4ad3_1ac9_2df4);
        assert_eq!(stream_seed(1, "loss"), 0xa39d_91dc_5713_f6fe);
        assert_eq!(stream_seed(u64::MAX, "path/wifi/forward"), 0xea49_6b2d_4a91_ba8e);
    }

    #[test]
    fn similar_names_have_unrelated_stream_seeds() {
        let names = ["wifi", "wifi ", "wifj", "wifi\0", "", "\0", "path/wifi/forward/loss"];
        for (n, first) in names.iter().enumerate() {
            for second in &names[n + 1..] {
                let difference = stream_seed(7, first) ^ stream_seed(7, second);
                assert!((12..=52).contains(&difference.count_ones()), "{first:?} {second:?}");
            }
        }
    }

    #[test]
    fn uniform_draws_fill_the_unit_interval_evenly() {
        let draws = Draws::new(stream_seed(1, "uniform"));
        let mut tenths = [0u32; 10];
        for n in 0..100_000 {
            tenths[(draws.uniform(n) * 10.0) as usize] += 1;
        }
        // Each tenth holds 10 000 on average with a standard deviation of √(10⁵·0.1·0.9) = 95.
        assert!(tenths.iter().all(|&count| (9_600..=10_400).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn signed_and_normal_draws_have_the_right_moments() {
        let draws = Draws::new(stream_seed(1, "moments"));
        let moments = |f: &dyn Fn(u64) -> f64| {
            let (sum, squares) = (0..100_000)
                .map(f)
                .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
            (sum / 1e5, squares / 1e5)
        };
        // Standard errors are at most √(1/10⁵) ≈ 0.003 (mean) and √(2/10⁵) ≈ 0.0045 (square).
        let (mean, square) = moments(&|n| draws.signed(n));
        assert!(mean.abs() < 0.01 && (square - 1.0 / 3.0).abs() < 0.01, "{mean} {square}");
        let (mean, square) = moments(&|n| draws.normal(n));
        assert!(mean.abs() < 0.015 && (square - 1.0).abs() < 0.02, "{mean} {square}");
    }
}
