//! Data that a DATA_ACK admits before the acknowledgement of its subflow counts.

use std::collections::VecDeque;

use anabranch_wire::{Instant, Segment};

use super::Connection;
use crate::view::Slot;

impl Connection {
    /// Process the DATA_ACK of a segment, and send what it admits, while the subflow in `slot` still
    /// has everything in flight that the segment acknowledges. Its window counts as full then, and
    /// the scheduler may choose a slower subflow. Nothing more is sent until something else happens:
    /// the subflow's acknowledgement frees memory, a write, or a timer. `window` is the subflow's
    /// receive window. What is sent goes to `pushed`, and leaves before all that is polled.
    pub(super) fn acknowledge_data_first(
        &mut self,
        now: Instant,
        slot: Slot,
        segment: &Segment,
        window: u64,
        pushed: &mut VecDeque<Segment>,
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
