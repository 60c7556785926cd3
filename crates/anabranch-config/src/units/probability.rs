//! Probabilities.

use core::fmt;
use core::str::FromStr;

use super::UnitError;
use super::decimal::{Quantity, Unit, format};

/// A probability from 0 to 1 in whole parts per billion. Written as a percentage, e.g. `0.5%`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability(0);
    /// Probability 1.
    pub const ONE: Probability = Probability(1_000_000_000);

    /// A probability in parts per billion.
    ///
    /// # Panics
    /// If `parts` is above one billion.
    pub const fn from_parts_per_billion(parts: u32) -> Self {
        assert!(parts <= Probability::ONE.0, "probability out of range");
        Probability(parts)
    }

    /// As a fraction of 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        PROBABILITY.parse(text).map(|parts| Probability(parts as u32))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(u64::from(self.0), UNITS))
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const UNITS: &[Unit] = &[("%", 10_000_000)];

const PROBABILITY: Quantity = Quantity {
    noun: "a probability",
    example: "\"1%\"",
    endings: "%",
    counted_in: "parts per billion (0.0000001%)",
    units: UNITS,
    max: Probability::ONE.0 as u64,
    max_text: "100%",
};
