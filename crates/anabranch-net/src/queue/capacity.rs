//! The limit of a queue.

use crate::units::{QueueLimit, Rate};

/// The limit of a queue, in packets and bytes at the present rate of the transmitter.
#[derive(Clone, Debug)]
pub(crate) struct QueueCapacity {
    limit: QueueLimit,
    max_packets: u64,
    max_bytes: u64,
}

impl QueueCapacity {
    /// The capacity of a queue in front of a transmitter with rate `rate`.
    pub(crate) fn new(limit: QueueLimit, rate: Rate) -> Self {
        let mut capacity = QueueCapacity { limit, max_packets: 0, max_bytes: 0 };
        capacity.set_rate(rate);
        capacity
    }

    /// Set the transmitter's rate. A limit in time then corresponds to a different number of bytes.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        let equivalents = self.limit.equivalents(rate);
        (self.max_packets, self.max_bytes) = match (self.limit, equivalents) {
            (QueueLimit::Packets(packets), _) => (packets, u64::MAX),
            (_, Some(limit)) => (u64::MAX, limit.bytes.as_u64()),
            (_, None) => (u64::MAX, u64::MAX),
        };
    }

    /// Returns `true` if another packet fits next to `packets` packets, and all of them have `bytes`
    /// bytes.
    #[inline]
    pub(crate) fn fits(&self, packets: u64, bytes: u64) -> bool {
        packets < self.max_packets && bytes <= self.max_bytes
    }
}
