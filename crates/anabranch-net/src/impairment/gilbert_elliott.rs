//! Burst loss: the Gilbert–Elliott channel.

use crate::rng::{Draws, stream_seed};
use crate::units::Probability;

/// A channel with a good and a bad state. Each state has its own loss probability, and the state
/// may change before each packet. In netem: `loss gemodel p r 1-h 1-k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliottConfig {
    /// Probability of a transition from good to bad (netem's p).
    pub to_bad: Probability,
    /// Probability of a transition from bad to good (netem's r). A burst lasts 1 / r packets on
    /// average.
    pub to_good: Probability,
    /// Loss probability in the bad state (netem's 1 − h).
    pub loss_in_bad: Probability,
    /// Loss probability in the good state (netem's 1 − k).
    pub loss_in_good: Probability,
}

/// The state of a channel. Random draws are indexed by packet number, so the state depends only on
/// the seed and on the number of packets offered.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    config: GilbertElliottConfig,
    transitions: Draws,
    losses: Draws,
    bad: bool,
}

impl GilbertElliott {
    /// A channel in the good state.
    pub(crate) fn new(config: GilbertElliottConfig, link_seed: u64) -> Self {
        GilbertElliott {
            config,
            transitions: Draws::new(stream_seed(link_seed, "gilbert-elliott/state")),
            losses: Draws::new(stream_seed(link_seed, "gilbert-elliott/loss")),
            bad: false,
        }
    }

    /// Returns `true` if packet `number` is lost. Call this once per packet, in order.
    pub(crate) fn loses(&mut self, number: u64) -> bool {
        let change = if self.bad { self.config.to_good } else { self.config.to_bad };
        self.bad ^= self.transitions.uniform(number) < change.as_f64();
        let loss = if self.bad { self.config.loss_in_bad } else { self.config.loss_in_good };
        self.losses.uniform(number) < loss.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> GilbertElliottConfig {
        let probability = |text: &str| text.parse().expect("a probability");
        GilbertElliottConfig {
            to_bad: probability("1%"),
            to_good: probability("20%"),
            loss_in_bad: probability("100%"),
            loss_in_good: probability("0%"),
        }
    }

    #[test]
    fn mean_loss_and_mean_burst_length_match_the_chain() {
        // Stationary share of the bad state: 0.01 / 0.21 = 4.76 %. Bursts last 1 / 0.2 = 5 packets.
        let mut channel = GilbertElliott::new(config(), 3);
        let lost: Vec<bool> = (0..200_000).map(|number| channel.loses(number)).collect();
        let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        assert!((share - 0.01 / 0.21).abs() < 0.004, "{share}");
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean = share * lost.len() as f64 / bursts;
        assert!((mean - 5.0).abs() < 0.25, "{mean}");
    }

    #[test]
    fn the_same_seed_loses_the_same_packets() {
        let run = |seed| {
            let mut channel = GilbertElliott::new(config(), seed);
            (0..5_000).map(|number| channel.loses(number)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
