//! Sizes of the buffers: the configured size, or a smaller one that a remedy asks for.

use anabranch_wire::Instant;

use super::Connection;
use super::subflows::SubflowContext;
use crate::platform::{Incoming, socket_buffer};
use crate::remedy::BufferSide;
use crate::scheduler::LinuxView;
use crate::view::{Slot, SubflowSet};

impl Connection {
    /// Let the buffers grow to the sizes that the remedies want.
    pub(super) fn tune_buffers(&mut self, now: Instant, slot: Slot) {
        self.autotune(now);
        self.offer_buffer(slot);
        if self.subflows.remedies() == 0 {
            return;
        }
        let mut ask = |side, progress| self.subflows.buffer_target(now, side, progress);
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

    /// Let a send buffer of no stated size grow.
    fn autotune(&mut self, now: Instant) {
        if !self.session.is_opening() {
            self.recv.queue.window_mut().note_arrival(now);
        }
        if !self.send.queue.buffer().is_autotuned() || !self.send.writer_waits() {
            return;
        }
        if self.send.queue.buffer().grows_with_any_subflow() {
            self.grow_all_shares();
        } else {
            self.autotune_send_buffer(now);
        }
    }

    /// The application has read. The receive window may follow that.
    pub(super) fn on_read(&mut self) {
        if !self.recv.queue.window().follows_reading() {
            return;
        }
        let rtts = self.subflows.views().iter().filter_map(|view| view.receive_rtt);
        let mss = self.subflows.iter().map(|ctx| ctx.subflow.advertised_mss()).max();
        let (Some(rtt), Some(mss)) = (rtts.max(), mss) else { return };
        let incoming = Incoming {
            rtt,
            mss: mss.into(),
            open_ones_bring_data: self.subflows.bring_data(|ctx| ctx.subflow.is_established()),
            all_bring_data: self.all_bring_data(),
        };
        let read = self.recv.queue.bytes_read();
        if let Some(window) = self.recv.queue.window_mut().on_read(read, incoming) {
            for ctx in self.subflows.iter_mut() {
                ctx.subflow.open_window_up_to(window);
            }
        }
    }

    /// Returns `true` if all subflows have brought data. Subflows that this host opens count from
    /// their SYN on, and others once they are open.
    fn all_bring_data(&self) -> bool {
        let opens = !self.session.is_listener();
        !self.paths.has_requests()
            && self.subflows.bring_data(|ctx| opens || ctx.subflow.is_established())
    }

    /// The send buffer grows while the application waits for room. It is the sum of the subflows'
    /// shares. The share of a subflow whose data fills its congestion window does not grow.
    fn autotune_send_buffer(&mut self, now: Instant) {
        let queue = &self.send.queue;
        let is_tcp = self.session.is_tcp();
        let open = |ctx: &&mut SubflowContext| !ctx.is_reaped() && !ctx.subflow.is_opening();
        let live = self.subflows.iter_mut().filter(open);
        let shares = live.map(|ctx| {
            let view = ctx.subflow.view();
            let mss = u64::from(view.mss.max(1));
            let waits = match is_tcp {
                true => queue.waiting(),
                false => queue.waiting_on(view.id.slot),
            };
            // Linux compares whole segments after it has sent the first ones
            // (`tcp_event_new_data_sent`, `tcp_should_expand_sndbuf`). It counts a short segment in
            // the window as a whole one.
            let sent = match ctx.subflow.defers(now, waits) {
                true => 0,
                false => waits.at_a_time.min(ctx.subflow.segments_at_a_time(&view) * mss),
            };
            if (ctx.subflow.flight() + sent).div_ceil(mss) < view.cwnd / mss {
                let segments = u16::try_from(view.cwnd.div_ceil(mss)).unwrap_or(u16::MAX);
                ctx.tune_to(segments);
            }
            queue.buffer().share(ctx.tuned_segments())
        });
        let all = shares.sum();
        self.send.queue.buffer_mut().tune(all);
        self.wake_writer();
    }

    /// The send buffer grows while the application waits for room and a subflow has some. A subflow's
    /// share then has as many segments as its window sends in the longest round-trip time.
    fn grow_all_shares(&mut self) {
        let open = |ctx: &&mut SubflowContext| !ctx.is_reaped() && !ctx.subflow.is_opening();
        let views = self.subflows.iter().map(|ctx| ctx.subflow.view());
        let longest = views.filter_map(|view| view.srtt).max().unwrap_or_default();
        let has_room = self.subflows.iter().any(|ctx| {
            let view = ctx.subflow.view();
            let mss = u64::from(view.mss.max(1));
            !ctx.subflow.is_opening() && ctx.subflow.flight().div_ceil(mss) < view.cwnd / mss
        });
        let buffer = self.send.queue.buffer();
        let shares = self.subflows.iter_mut().filter(open).map(|ctx| {
            let view = ctx.subflow.view();
            if has_room {
                let own = view.srtt.unwrap_or(longest).as_nanos().max(1);
                let segments = view.cwnd.div_ceil(view.mss.max(1).into());
                let segments = u128::from(segments) * u128::from(longest.as_nanos().max(1));
                ctx.tune_to(u16::try_from(segments / u128::from(own)).unwrap_or(u16::MAX));
            }
            buffer.share(ctx.tuned_segments())
        });
        let all = shares.sum();
        self.send.queue.buffer_mut().tune(all);
        self.wake_writer();
    }

    /// The view of schedulers that follow Linux. `paced_windows` and `sent_memory` have room for all
    /// slots.
    pub(super) fn linux_view<'a>(
        &self,
        paced_windows: &'a mut [u64],
        sent_memory: &'a mut [u64],
    ) -> LinuxView<'a> {
        for (ctx, slot) in self.subflows.iter().zip(self.subflows.slots()) {
            paced_windows[slot] = ctx.subflow.paced_window();
            sent_memory[slot] = self.sent_memory(ctx);
        }
        LinuxView {
            paced_windows,
            sent_memory,
            full: self.full_subflows(),
            begins_fragment: match self.send.queue.left_to_resend() {
                0 => self.send.queue.begins_fragment(),
                // Whole fragments are resent.
                _ => Some(true),
            },
            unsent_memory: self.send.queue.unsent_memory(),
        }
    }

    /// Memory of the data that a subflow has sent and that is not acknowledged. On a host without
    /// socket buffers, it is as if each had the usual number of segments.
    fn sent_memory(&self, ctx: &SubflowContext) -> u64 {
        let (bytes, buffers) = (ctx.subflow.unacknowledged(), ctx.subflow.socket_buffers());
        match self.send.queue.buffer().fragments() {
            Some(_) => socket_buffer::memory(bytes, buffers),
            None => socket_buffer::usual_memory(bytes, ctx.subflow.mss()),
        }
    }

    /// The subflows whose share of the send buffer is full. Only Linux's sockets have such shares.
    fn full_subflows(&self) -> SubflowSet {
        let queue = &self.send.queue;
        let mut full = SubflowSet::EMPTY;
        if queue.buffer().fragments().is_none() {
            return full;
        }
        for (ctx, view) in self.subflows.iter().zip(self.subflows.views()) {
            let waits = queue.assigned().get(view.id.slot.index()).copied().unwrap_or(0);
            let queued = self.sent_memory(ctx) + socket_buffer::waiting_memory(waits);
            if queue.buffer().share_is_full(queued, ctx.tuned_segments()) {
                full.insert(view.id.slot);
            }
        }
        full
    }

    /// The subflow in `slot` advertises the window as far as its own data has opened it.
    pub(super) fn offer_buffer(&mut self, slot: Slot) {
        if self.session.is_tcp()
            && let Some(ctx) = self.subflows.first()
        {
            let bytes = ctx.subflow.receiver().out_of_order_bytes();
            self.recv.queue.window_mut().note_waiting_below(bytes);
        }
        let subflow = &self.subflows[slot].subflow;
        if subflow.receiver().nxt() > 1 {
            self.recv.queue.window_mut().open_to(subflow.receiver().opening().opened);
        }
    }

    /// Measure the memory that data takes up, which may depend on the subflow's segments and on the
    /// peer's window.
    pub(super) fn measure_send_memory(&mut self) {
        if self.send.queue.buffer().is_measured()
            && let Some(ctx) = self.subflows.first()
        {
            let mss = u64::from(ctx.subflow.mss());
            self.send.queue.buffer_mut().measure(mss, ctx.subflow.send_window().largest());
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
