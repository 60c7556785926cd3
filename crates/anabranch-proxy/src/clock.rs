//! The clock of the calendar. This crate runs in real time, so it reads it here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch_wire::Instant;

/// Milliseconds since 1970.
pub(crate) fn milliseconds() -> u64 {
    since_1970().as_millis() as u64
}

/// Time since 1970, as captures have it.
pub(crate) fn calendar() -> Instant {
    Instant::from_nanos(since_1970().as_nanos() as u64)
}

#[expect(clippy::disallowed_methods, reason = "proofs and captures refer to the calendar")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
