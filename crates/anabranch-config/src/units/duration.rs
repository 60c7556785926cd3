//! Durations as configuration strings.

use anabranch_wire::Duration;

use super::UnitError;
use super::decimal::{Quantity, Unit, format};

/// The duration in `text`, e.g. `20ms`, `1.5s`, `200us` or `100ns`.
///
/// # Errors
/// If the unit is missing or unknown, or if the number is negative, finer than a nanosecond or
/// above 10⁹ seconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// The canonical text of `duration`. [`parse_duration`] reads it back.
pub fn format_duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    format(duration.as_nanos(), UNITS)
}

pub(super) const UNITS: &[Unit] =
    &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

pub(super) const DURATION: Quantity = Quantity {
    noun: "a duration",
    example: "\"20ms\"",
    endings: "ns, us, ms or s",
    counted_in: "nanoseconds",
    units: UNITS,
    max: 1_000_000_000_000_000_000,
    max_text: "1000000000s",
};
