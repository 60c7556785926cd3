//! Rates, sizes, times, limits and probabilities, as numbers and as configuration strings.
//!
//! A string always carries its unit (`8Mbit/s`, `20ms`, `54packets`, `1%`); a bare number is
//! refused. Numbers are read as exact decimals, never through floating point, and written in
//! one canonical form that reads back as the same value.

mod byte_count;
mod decimal;
mod duration;
mod probability;
mod queue_limit;
mod rate;

pub use byte_count::ByteCount;
pub use duration::{format_duration, parse_duration};
pub use probability::Probability;
pub use queue_limit::{LimitEquivalents, QueueLimit};
pub use rate::Rate;

/// Bytes of a full-size packet, the unit in which limits in packets, bytes and time are
/// converted into one another: the MTU of Ethernet.
pub(crate) const FULL_SIZE_PACKET: u64 = 1_500;

/// A configuration string that is not the quantity it should be. Displays as one line that says
/// what was found and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

#[cfg(test)]
mod tests;
