//! How large the buffers are: as configured, or as a remedy wants them, up to that.

use anabranch_wire::Instant;

use super::Connection;
use crate::remedy::{BufferContext, BufferSide, Remedy};
use crate::view::SubflowView;

/// The largest that any remedy asks for; `None` if none has an opinion.
fn target(
    remedies: &mut [Box<dyn Remedy>],
    now: Instant,
    side: BufferSide,
    progress: u64,
    subflows: &[SubflowView],
) -> Option<u64> {
    let context = BufferContext { now, side, progress, subflows };
    remedies.iter_mut().filter_map(|remedy| remedy.buffer_target(&context)).max()
}

/// Size in octets that the buffer of a new connection has.
pub(super) fn initial(remedies: &mut [Box<dyn Remedy>], side: BufferSide, configured: u64) -> u64 {
    target(remedies, Instant::ZERO, side, 0, &[]).map_or(configured, |size| size.min(configured))
}

impl Connection {
    /// Let the buffers grow to what the remedies want.
    pub(super) fn tune_buffers(&mut self, now: Instant) {
        self.offer_buffer();
        if self.remedies.is_empty() {
            return;
        }
        let mut ask = |side, progress| target(&mut self.remedies, now, side, progress, &self.views);
        let send = ask(BufferSide::Send, self.send.una() - 1);
        let receive = ask(BufferSide::Receive, self.recv.octets_read());
        if let Some(size) = send {
            self.send.grow_to(size.min(self.config.send_buffer));
            self.wake_writer();
        }
        if let Some(size) = receive {
            self.recv.grow_to(size.min(self.config.receive_buffer));
        }
    }

    /// The whole receive buffer is offered while every subflow has brought data.
    fn offer_buffer(&mut self) {
        let Some(at_first) = self.config.receive_buffer_at_first else { return };
        let mut lanes = self.lanes.iter().filter(|lane| !lane.reaped);
        let all = self.opens.is_empty() && lanes.all(|lane| lane.subflow.receive_next() > 1);
        self.recv.offer(if all { u64::MAX } else { at_first });
    }

    /// Linux' socket buffers are as large as the subflow's segments and the peer's window allow.
    pub(super) fn measure_send_memory(&mut self) {
        if let (Some(memory), Some(lane)) = (self.send.memory_mut(), self.lanes.first()) {
            memory.measure(u64::from(lane.subflow.mss()), lane.subflow.largest_window());
        }
    }

    /// The application may write again if there is room.
    pub(super) fn wake_writer(&mut self) {
        self.measure_send_memory();
        if self.send_blocked && self.send.room() > 0 {
            self.send_blocked = false;
            self.writable = true;
        }
    }
}
