//! Losses of a trace.

use core::num::NonZeroU64;

/// The losses of a trace, which repeats: of every [`packets`](Self::packets) packets, those with
/// these numbers are lost. A link counts all packets that enter it, also those that it loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossTrace {
    /// Length of the trace in packets.
    pub packets: NonZeroU64,
    /// Numbers of the lost packets, from 1, in increasing order.
    pub lost: Vec<u64>,
}

impl LossTrace {
    /// Returns `true` if packet `number`, counted from 0, is lost.
    pub(crate) fn loses(&self, number: u64) -> bool {
        self.lost.binary_search(&(number % self.packets + 1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_of_the_trace_are_lost_again_in_each_round() {
        let trace = LossTrace { packets: NonZeroU64::new(5).unwrap(), lost: vec![1, 4] };
        let lost: Vec<u64> = (0..12).filter(|&number| trace.loses(number)).collect();
        assert_eq!(lost, [0, 3, 5, 8, 10]);
    }
}
