//! Limits of queues.

use core::fmt;
use core::str::FromStr;

use anabranch_wire::Duration;

use super::byte_count::{ByteCount, SIZE};
use super::decimal::{Quantity, Unit, refuse};
use super::duration::{DURATION, format_duration};
use super::{FULL_SIZE_PACKET, Rate, UnitError};

/// Capacity of a queue. The packet in transmission is not in the queue and does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A number of packets of any size. Written `54packets`.
    Packets(u64),
    /// A number of bytes. A packet that does not fit as a whole is dropped. Written `100kB`.
    Bytes(ByteCount),
    /// The bytes that the link sends in this time at its current rate, or at the mean rate of its
    /// trace. At least one full-size packet of 1500 bytes. Written `80ms`.
    Time(Duration),
    /// No limit. Written `infinite`.
    Infinite,
}

/// A queue limit in all three units, for full-size packets of 1500 bytes at the link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitEquivalents {
    /// Packets, rounded up.
    pub packets: u64,
    /// Bytes.
    pub bytes: ByteCount,
    /// Time to send the bytes, rounded down to a nanosecond.
    pub time: Duration,
}

impl QueueLimit {
    /// The same limit in packets, bytes and time on a link with rate `rate`; `None` if infinite.
    pub fn equivalents(self, rate: Rate) -> Option<LimitEquivalents> {
        let bytes = match self {
            QueueLimit::Packets(packets) => {
                ByteCount::new(packets.saturating_mul(FULL_SIZE_PACKET))
            }
            QueueLimit::Bytes(bytes) => bytes,
            QueueLimit::Time(time) => rate.bytes_in(time).max(ByteCount::new(FULL_SIZE_PACKET)),
            QueueLimit::Infinite => return None,
        };
        let packets = bytes.as_u64().div_ceil(FULL_SIZE_PACKET);
        Some(LimitEquivalents { packets, bytes, time: rate.time_for(bytes) })
    }
}

impl FromStr for QueueLimit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "infinite" {
            return Ok(QueueLimit::Infinite);
        }
        let parts = LIMIT.split(text)?;
        let has = |quantity: &Quantity| quantity.units.iter().any(|(name, _)| *name == parts.unit);
        let (amount, limit) = if has(&SIZE) {
            let bytes = SIZE.parse(text)?;
            (bytes, QueueLimit::Bytes(ByteCount::new(bytes)))
        } else if has(&DURATION) {
            let nanos = DURATION.parse(text)?;
            (nanos, QueueLimit::Time(Duration::from_nanos(nanos)))
        } else {
            let packets = LIMIT.parse(text)?;
            (packets, QueueLimit::Packets(packets))
        };
        match amount {
            0 => Err(refuse(text, "a queue needs room for at least one packet")),
            _ => Ok(limit),
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(packets) => write!(f, "{packets}packets"),
            QueueLimit::Bytes(bytes) => write!(f, "{bytes}"),
            QueueLimit::Time(time) => f.write_str(&format_duration(*time)),
            QueueLimit::Infinite => f.write_str("infinite"),
        }
    }
}

impl fmt::Display for LimitEquivalents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = format_duration(self.time);
        write!(f, "{} packets, {} bytes, {time}", self.packets, self.bytes.as_u64())
    }
}

const UNITS: &[Unit] = &[("packets", 1)];

const LIMIT: Quantity = Quantity {
    noun: "a queue limit",
    example: "\"54packets\", \"100kB\", \"80ms\" or \"infinite\"",
    endings: "packets, B, kB, KiB, MB, MiB, GB, GiB, ns, us, ms or s, or is \"infinite\"",
    counted_in: "packets",
    units: UNITS,
    max: 1_000_000_000,
    max_text: "1000000000packets",
};
