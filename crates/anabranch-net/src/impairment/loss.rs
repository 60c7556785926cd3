//! Random loss.

use crate::rng::{Draws, stream_seed};
use crate::units::Probability;

/// Bernoulli loss: each packet is lost with the same probability, independently of the others.
#[derive(Debug)]
pub(crate) struct Loss {
    draws: Draws,
    probability: Probability,
}

impl Loss {
    /// Loss whose draws come from the link's seed.
    pub(crate) fn new(probability: Probability, link_seed: u64) -> Self {
        Loss { draws: Draws::new(stream_seed(link_seed, "loss")), probability }
    }

    /// Set the loss probability from now on.
    pub(crate) fn set_probability(&mut self, probability: Probability) {
        self.probability = probability;
    }

    /// Returns `true` if packet `number` is lost.
    pub(crate) fn loses(&self, number: u64) -> bool {
        self.probability != Probability::ZERO
            && self.draws.uniform(number) < self.probability.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_of_100_000(probability: &str, seed: u64) -> usize {
        let loss = Loss::new(probability.parse().unwrap(), seed);
        (0..100_000).filter(|&number| loss.loses(number)).count()
    }

    #[test]
    fn the_loss_rate_lies_within_binomial_bounds() {
        // 1 % of 10⁵: mean 1000, standard deviation √(10⁵·0.01·0.99) = 31.5. The bounds are four of
        // them.
        for seed in 0..20 {
            let lost = lost_of_100_000("1%", seed);
            assert!((874..=1_126).contains(&lost), "seed {seed}: {lost}");
        }
    }

    #[test]
    fn zero_and_certain_loss_are_exact() {
        assert_eq!(lost_of_100_000("0%", 1), 0);
        assert_eq!(lost_of_100_000("100%", 1), 100_000);
    }
}
