//! Sizes in bytes.

use core::fmt;
use core::str::FromStr;

use super::UnitError;
use super::decimal::{Quantity, Unit};

/// A number of bytes. Written `1500B`, `200kB` (1 kB = 1000 bytes) or `200KiB` (1 KiB = 1024
/// bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);

impl ByteCount {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        ByteCount(bytes)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        SIZE.parse(text).map(ByteCount)
    }
}

impl fmt::Display for ByteCount {
    /// The shortest whole number with its unit. Of two equally short forms, the decimal one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole =
            SIZE.units.iter().filter(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor));
        let written = whole.map(|(name, factor)| format!("{}{name}", self.0 / factor));
        let shortest = written.min_by_key(|text| (text.len(), text.contains('i')));
        f.write_str(&shortest.unwrap_or_else(|| "0B".to_owned()))
    }
}

impl fmt::Debug for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const UNITS: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

pub(super) const SIZE: Quantity = Quantity {
    noun: "a size",
    example: "\"200kB\"",
    endings: "B, kB, KiB, MB, MiB, GB or GiB",
    counted_in: "bytes",
    units: UNITS,
    max: 1_000_000_000_000_000,
    max_text: "1000000GB",
};
