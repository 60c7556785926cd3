//! Bit rates.

use core::fmt;
use core::str::FromStr;

use super::decimal::{Quantity, Unit, format, refuse};
use super::{ByteCount, UnitError};
use anabranch_wire::Duration;

/// A bit rate from 1 bit/s to 1000 Tbit/s. Written `8Mbit/s`. Prefixes are powers of 1000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// The highest rate, 1000 Tbit/s.
    pub const MAX: Rate = Rate(1_000_000_000_000_000);

    /// A rate in bits per second.
    ///
    /// # Panics
    /// If `bits` is zero or above [`Rate::MAX`].
    pub const fn from_bits_per_second(bits: u64) -> Self {
        assert!(bits > 0 && bits <= Rate::MAX.0, "rate out of range");
        Rate(bits)
    }

    /// Bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// Whole bytes that can be sent in `time` at this rate.
    pub fn bytes_in(self, time: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / (8 * 1_000_000_000);
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Time to send `bytes` at this rate, rounded down to a nanosecond.
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        let nanos = u128::from(bytes.as_u64()) * (8 * 1_000_000_000) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let parts = RATE.split(text)?;
        if let Some(meant) = bits_for_tc(parts.unit) {
            let number = text.trim().trim_end_matches(parts.unit).trim_end();
            let unit = parts.unit;
            return Err(refuse(
                text,
                format_args!(
                    "tc reads {unit:?} as bytes per second; \
                     write \"{number}{meant}\" for bits per second"
                ),
            ));
        }
        match RATE.parse(text)? {
            0 => Err(refuse(text, "a rate must be more than zero")),
            bits => Ok(Rate(bits)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(self.0, UNITS))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The unit that the user probably meant by "bps". tc reads it as bytes per second, most people as
/// bits per second.
fn bits_for_tc(unit: &str) -> Option<&'static str> {
    match unit.to_ascii_lowercase().as_str() {
        "bps" => Some("bit/s"),
        "kbps" => Some("kbit/s"),
        "mbps" => Some("Mbit/s"),
        "gbps" => Some("Gbit/s"),
        "tbps" => Some("Tbit/s"),
        _ => None,
    }
}

const UNITS: &[Unit] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];

const RATE: Quantity = Quantity {
    noun: "a rate",
    example: "\"8Mbit/s\"",
    endings: "bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s",
    counted_in: "bits per second",
    units: UNITS,
    max: Rate::MAX.0,
    max_text: "1000Tbit/s",
};
