//! Conclusions from answers to SYNs, for connections that the host opens later.

use anabranch_wire::{Instant, Segment};

use super::Endpoint;
use super::demultiplexer::SubflowIndex;

impl Endpoint {
    /// A SYN/ACK may show whether its path and its sender take data in SYNs, and whether the path takes
    /// MP_CAPABLE.
    pub(super) fn learn_from_answer(&mut self, now: Instant, on: SubflowIndex, syn_ack: &Segment) {
        let Some(connection) = &mut self.slots[on.connection as usize].connection else { return };
        if let Some(outcome) = connection.fast_open_outcome(on.slot, syn_ack) {
            let (local, remote) = (syn_ack.destination.address, syn_ack.source.address);
            self.fast_open.learn(now, local, remote, outcome);
        }
        if let Some((outcome, rule)) = connection.take_offer_outcome() {
            self.counters.blackholes += u64::from(self.blackhole.learn(now, outcome, rule));
        }
    }
}
