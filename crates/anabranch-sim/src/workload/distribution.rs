//! Sizes, counts and times that are constant or random.

use anabranch_net::rng::Draws;
use anabranch_net::units::ByteCount;
use anabranch_wire::Duration;

use anabranch_config::written::Factor;

/// The distribution of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution<T> {
    /// A constant.
    Constant(T),
    /// Uniform over the whole numbers of bytes, nanoseconds or items in a range.
    Uniform {
        /// Minimum.
        min: T,
        /// Maximum, at least `min`.
        max: T,
    },
    /// Exponential.
    Exponential {
        /// Mean, above zero.
        mean: T,
    },
    /// Pareto, which has a heavy tail.
    Pareto {
        /// Mean, above zero.
        mean: T,
        /// Exponent of the tail, above 1. Below 2, the variance is infinite.
        shape: Factor,
    },
    /// Lognormal.
    Lognormal {
        /// Median, above zero.
        median: T,
        /// Standard deviation of the natural logarithm.
        sigma: Factor,
    },
}

/// A quantity that can be drawn as a whole number.
pub trait Amount: Copy {
    /// The amount in bytes, nanoseconds or items.
    fn amount(self) -> u64;
}

impl Amount for ByteCount {
    fn amount(self) -> u64 {
        self.as_u64()
    }
}

impl Amount for Duration {
    fn amount(self) -> u64 {
        self.as_nanos()
    }
}

impl Amount for u64 {
    fn amount(self) -> u64 {
        self
    }
}

/// Draws from a distribution by number. Draw *n* is a function of (seed, *n*), so both ends of a
/// connection know it without communicating.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    distribution: Distribution<u64>,
    draws: Draws,
}

impl Sampler {
    /// Draws from `distribution` with the random stream of `seed`.
    pub fn new<T: Amount>(distribution: Distribution<T>, seed: u64) -> Self {
        Sampler { distribution: distribution.amounts(), draws: Draws::new(seed) }
    }

    /// Draw number `n`, rounded to a whole number and at most [`MAX_DRAW`].
    pub fn of(&self, n: u64) -> u64 {
        let drawn = match self.distribution {
            Distribution::Constant(value) => return value,
            Distribution::Uniform { min, max } => {
                let span = (max - min + 1) as f64;
                return (min + (self.draws.uniform(n) * span) as u64).min(max);
            }
            Distribution::Exponential { mean } => -(mean as f64) * libm::log(self.positive(n)),
            Distribution::Pareto { mean, shape } => {
                let shape = shape.as_f64();
                let smallest = mean as f64 * (shape - 1.0) / shape;
                smallest / libm::pow(self.positive(n), 1.0 / shape)
            }
            Distribution::Lognormal { median, sigma } => {
                median as f64 * libm::exp(sigma.as_f64() * self.draws.normal(n))
            }
        };
        (drawn.round() as u64).min(MAX_DRAW)
    }

    /// A uniform draw in (0, 1].
    fn positive(&self, n: u64) -> f64 {
        1.0 - self.draws.uniform(n)
    }
}

impl<T: Amount> Distribution<T> {
    fn amounts(self) -> Distribution<u64> {
        match self {
            Distribution::Constant(value) => Distribution::Constant(value.amount()),
            Distribution::Uniform { min, max } => {
                Distribution::Uniform { min: min.amount(), max: max.amount() }
            }
            Distribution::Exponential { mean } => Distribution::Exponential { mean: mean.amount() },
            Distribution::Pareto { mean, shape } => {
                Distribution::Pareto { mean: mean.amount(), shape }
            }
            Distribution::Lognormal { median, sigma } => {
                Distribution::Lognormal { median: median.amount(), sigma }
            }
        }
    }
}

/// Largest draw: 10¹⁸ nanoseconds, the longest configurable duration.
pub const MAX_DRAW: u64 = 1_000_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 100_000;

    fn draws(distribution: Distribution<u64>) -> Vec<u64> {
        let sampler = Sampler::new(distribution, 1);
        (0..N).map(|n| sampler.of(n)).collect()
    }

    fn mean(draws: &[u64]) -> f64 {
        draws.iter().sum::<u64>() as f64 / draws.len() as f64
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value}, expected {expected}");
    }

    #[test]
    fn constants_are_constant_and_uniform_draws_reach_both_ends() {
        assert_eq!(draws(Distribution::Constant(7)), vec![7; N as usize]);
        let dice = draws(Distribution::Uniform { min: 1, max: 6 });
        let faces: Vec<usize> =
            (0..8).map(|face| dice.iter().filter(|draw| **draw == face).count()).collect();
        assert_eq!((faces[0], faces[7]), (0, 0));
        // Each face: 10⁵/6 = 16 667, standard deviation √(10⁵·1/6·5/6) = 118. The bounds are four
        // of them.
        assert!(faces[1..7].iter().all(|count| (16_195..=17_139).contains(count)), "{faces:?}");
        assert_eq!(draws(Distribution::Uniform { min: 5, max: 5 })[0], 5);
    }

    #[test]
    fn exponential_draws_have_the_right_mean_and_tail() {
        let draws = draws(Distribution::Exponential { mean: 1_000_000 });
        // Standard error of the mean: 10⁶/√10⁵ = 3162. The tolerance is four of them.
        assert_near(mean(&draws), 1e6, 12_650.0);
        // P(x > 2·mean) = e⁻² = 0.1353: 13 534 ± 4·√(10⁵·0.1353·0.8647) = 433.
        let tail = draws.iter().filter(|draw| **draw > 2_000_000).count();
        assert_near(tail as f64, 13_534.0, 433.0);
    }

    #[test]
    fn pareto_draws_have_the_right_minimum_and_tail() {
        let shape = Factor::from_thousandths(2_500);
        let draws = draws(Distribution::Pareto { mean: 1_000_000, shape });
        // Minimum: 10⁶·1.5/2.5. P(x > 2·minimum) = 2^−2.5 = 0.17678: 17 678 ± 4·121.
        assert!(*draws.iter().min().unwrap() >= 600_000);
        let tail = draws.iter().filter(|draw| **draw > 1_200_000).count();
        assert_near(tail as f64, 17_678.0, 483.0);
        // Variance: minimum²·α/((α−1)²·(α−2)) = (894 427)². The mean converges slowly because of
        // the tail.
        assert_near(mean(&draws), 1e6, 20_000.0);
    }

    #[test]
    fn lognormal_draws_have_the_right_median_and_spread() {
        let sigma = Factor::from_thousandths(500);
        let draws = draws(Distribution::Lognormal { median: 16_000, sigma });
        // Φ(1) = 0.8413 of the draws are below median·e^σ = 26 380.
        let below = |limit: u64| draws.iter().filter(|draw| **draw < limit).count() as f64;
        assert_near(below(16_000), 50_000.0, 633.0);
        assert_near(below(26_380), 84_134.0, 463.0);
        // Mean: median·e^(σ²/2) = 18 130; standard error 18 130·√(e^0.25 − 1)/√10⁵ = 31.
        assert_near(mean(&draws), 18_130.0, 124.0);
    }

    #[test]
    fn no_draw_exceeds_the_configurable_maximum() {
        let shape = Factor::from_thousandths(1_001);
        let wild = Distribution::Pareto { mean: MAX_DRAW, shape };
        assert!(draws(wild).iter().all(|draw| *draw <= MAX_DRAW));
        let wild = Distribution::Exponential { mean: MAX_DRAW };
        assert_eq!(draws(wild).into_iter().max(), Some(MAX_DRAW));
    }
}
