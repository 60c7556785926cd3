//! Rates, sizes, times, limits and probabilities, as numbers and as configuration strings.
//!
//! A string always has a unit (`8Mbit/s`, `20ms`, `54packets`, `1%`). A number without a unit is an
//! error. Numbers are read as exact decimals, never through floating point, and have one canonical
//! form that reads back as the same value.

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

/// Length of a full-size packet in bytes: the MTU of Ethernet. Limits in packets, bytes and time
/// are converted into one another by it.
pub const FULL_SIZE_PACKET: u64 = 1_500;

/// Error of a configuration string that is not the expected quantity. It displays as one line that
/// states the problem and the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

#[cfg(test)]
mod tests;
