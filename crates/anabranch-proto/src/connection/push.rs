//! Sending between the two levels of an acknowledgement: after its DATA_ACK, and before its ACK.

use std::collections::VecDeque;

use anabranch_wire::{Instant, PooledSegment, Segment};

use super::Connection;
use crate::view::Slot;

impl Connection {
    /// Process the DATA_ACK of a segment, and send the data that it admits. The subflow in `slot`
    /// still has the acknowledged data in flight, so its window may be full, and the scheduler may
    /// choose a slower subflow. The scheduler is not asked again before the next event: the
    /// acknowledgement of data on the subflow, a write, or a timer. `window` is the subflow's receive
    /// window. The segments go to `pushed`, to be sent before all segments that are polled.
    pub(super) fn acknowledge_data_first(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        window: u64,
        pushed: &mut VecDeque<PooledSegment>,
    ) {
        let Some(dss) = &segment.options.dss else { return };
        if !self.subflows[slot].subflow.accepts(now, segment, window) {
            return;
        }
        self.handle_data_ack(now, slot, dss, segment);
        if !self.session.is_open() {
            return;
        }
        let level = self.data_level();
        while let Some(segment) = self.poll_data(now, &level) {
            self.count(&segment);
            pushed.push_back(segment);
            self.recv.queue.on_advertised(level.window);
        }
        self.scheduling.on_pushed();
    }
}
