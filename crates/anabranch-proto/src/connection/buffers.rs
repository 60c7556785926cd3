//! How large the buffers are: as configured, or as a remedy wants them, up to that.

use anabranch_wire::Instant;

use super::Connection;
use crate::remedy::BufferSide;

impl Connection {
    /// Let the buffers grow to what the remedies want.
    pub(super) fn tune_buffers(&mut self, now: Instant) {
        self.offer_buffer();
        if self.lanes.remedies() == 0 {
            return;
        }
        let mut ask = |side, progress| self.lanes.buffer_target(now, side, progress);
        let send = ask(BufferSide::Send, self.send.queue.una() - 1);
        let receive = ask(BufferSide::Receive, self.recv.queue.bytes_read());
        if let Some(bytes) = send {
            self.send.queue.buffer_mut().grow_to(bytes);
            self.wake_writer();
        }
        if let Some(bytes) = receive {
            self.recv.queue.window_mut().grow_to(bytes);
        }
    }

    /// The receive window opens with the data of the subflow that has brought the most. The whole
    /// buffer is offered while every subflow has brought data.
    fn offer_buffer(&mut self) {
        if self.recv.queue.window().is_opening() {
            let brought = self.lanes.iter().filter(|lane| lane.subflow.receive_next() > 1);
            if let Some(missing) = brought.map(|lane| lane.subflow.window_to_open()).min() {
                self.recv.queue.window_mut().open_but(missing);
            }
        }
        if self.recv.queue.window().is_smaller_at_first() {
            let mut lanes = self.lanes.iter().filter(|lane| !lane.reaped);
            let all =
                !self.paths.has_openings() && lanes.all(|lane| lane.subflow.receive_next() > 1);
            self.recv.queue.window_mut().offer(all);
        }
    }

    /// What data takes up may depend on the subflow's segments and on the peer's window.
    pub(super) fn measure_send_memory(&mut self) {
        if self.send.queue.buffer().is_measured()
            && let Some(lane) = self.lanes.first()
        {
            let mss = u64::from(lane.subflow.mss());
            self.send.queue.buffer_mut().measure(mss, lane.subflow.largest_window());
        }
    }

    /// The application may write again if there is room.
    pub(super) fn wake_writer(&mut self) {
        self.measure_send_memory();
        if self.send.take_writer_wakeup() {
            self.outbox.tell_writable();
        }
    }
}
