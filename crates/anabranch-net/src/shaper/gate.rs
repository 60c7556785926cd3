//! Gates: rules that decide when a waiting packet may leave.

use anabranch_wire::{Duration, Instant};

use crate::serialiser::{Serialiser, WORK_PER_BYTE};

/// The rule by which a tool keeps the rate of a link.
///
/// All rules share one account, the work of a serialiser: each packet adds its bytes, and the work
/// falls at the rate. The tokens that a bucket lacks are the work in bytes, so an empty account is a
/// full bucket. The account has no rounding errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// A token bucket. Packets leave in no time while there are tokens.
    Tokens {
        /// Bytes that the bucket holds.
        burst: u32,
        /// A packet leaves if the bucket is not overdrawn, even if it has too few tokens for the
        /// packet. Otherwise the bucket must have tokens for the whole packet.
        overdraws: bool,
    },
    /// A transmitter that sends one packet after the other, bit by bit.
    Transmitter,
    /// A transmitter whose clock advances in steps of this time. The transmission of a packet begins
    /// at the last tick, or when the previous packet has been sent, and the packet leaves at the
    /// next tick after its last bit.
    Ticks(Duration),
}

impl Gate {
    /// Returns `true` if a packet of `bytes` bytes can ever leave.
    pub(super) fn admits(self, bytes: u32) -> bool {
        match self {
            Gate::Tokens { burst, overdraws } => overdraws || bytes <= burst,
            Gate::Transmitter | Gate::Ticks(_) => true,
        }
    }

    /// When a packet of `bytes` bytes may leave.
    pub(super) fn opens_at(self, serialiser: &Serialiser, bytes: u32) -> Instant {
        match self {
            Gate::Tokens { burst, overdraws } => {
                let needed = if overdraws { 0 } else { bytes };
                serialiser.falls_to(u64::from(burst - needed) * WORK_PER_BYTE)
            }
            Gate::Transmitter => serialiser.free_at(),
            Gate::Ticks(tick) => next_tick(serialiser.finished_at(), tick),
        }
    }

    /// Start of the transmission of a packet that passes the gate at `now`.
    pub(super) fn starts_at(self, now: Instant, serialiser: &Serialiser) -> Instant {
        match self {
            Gate::Tokens { .. } | Gate::Transmitter => now,
            // Work that was done between two ticks is not lost, unless the link was idle at the
            // second.
            Gate::Ticks(tick) => {
                let last = last_tick(now, tick);
                let was_idle = last > next_tick(serialiser.finished_at(), tick);
                if was_idle { last } else { serialiser.free_at() }
            }
        }
    }

    /// When the packet in transmission leaves.
    pub(super) fn leaves_at(self, serialiser: &Serialiser) -> Instant {
        match self {
            Gate::Tokens { .. } | Gate::Transmitter => serialiser.free_at(),
            Gate::Ticks(tick) => next_tick(serialiser.finished_at(), tick),
        }
    }
}

/// The last tick at or before `at`.
fn last_tick(at: Instant, tick: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos() / tick.as_nanos() * tick.as_nanos())
}

/// The first tick at or after `at`.
fn next_tick(at: Instant, tick: Duration) -> Instant {
    let ticks = at.as_nanos().div_ceil(tick.as_nanos());
    Instant::from_nanos(ticks.saturating_mul(tick.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_down_and_up() {
        let tick = Duration::from_micros(100);
        let nanos = |nanos| Instant::from_nanos(nanos);
        for (at, last, next) in [(0, 0, 0), (1, 0, 100_000), (99_999, 0, 100_000)] {
            assert_eq!(
                (last_tick(nanos(at), tick), next_tick(nanos(at), tick)),
                (nanos(last), nanos(next))
            );
        }
        assert_eq!(next_tick(nanos(100_000), tick), nanos(100_000));
        assert_eq!(next_tick(Instant::FAR_FUTURE, tick), Instant::FAR_FUTURE);
    }
}
