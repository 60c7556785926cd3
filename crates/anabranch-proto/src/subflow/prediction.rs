//! Header prediction: the usual segment of an established subflow. Linux: `tcp_rcv_established`.

use anabranch_wire::{Flags, Instant, Payload, Segment};

use super::input::RxContext;
use super::{State, Subflow, SubflowTimer};

/// A usual segment that was processed.
#[derive(Debug)]
pub(crate) struct Predicted {
    /// The subflow has data outstanding, and the segment may have acknowledged some. Otherwise, it only
    /// receives.
    pub(crate) acknowledges: bool,
    /// The payload, if it is the next in order and nothing else waits. Otherwise empty: the subflow holds
    /// the payload.
    pub(crate) payload: Payload,
}

impl Subflow {
    /// Accept the segment if it is a usual one; its payload is moved out. Otherwise returns `None`,
    /// and nothing has changed.
    ///
    /// For such a segment, the steps of RFC 9293 §3.10.7.4 that are left out here find nothing to do.
    #[inline]
    pub(crate) fn handle_predicted(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        arrived: &RxContext<'_>,
    ) -> Option<Predicted> {
        let distance = self.receiver.distance(segment.header.seq);
        let ahead = i64::from(segment.header.ack.distance_from(self.snd_una()));
        if !self.is_usual()
            || segment.header.flags | Flags::PSH != Flags::ACK | Flags::PSH
            || !(0..arrived.window as i64).contains(&distance)
            || !(0..=(self.nxt - self.una) as i64).contains(&ahead)
            || (self.peer.timestamps && segment.options.timestamps.is_none())
            || self.is_old_duplicate(now, &segment.options)
        {
            return None;
        }
        let ack = self.una + ahead as u64;
        self.totals.segments_received += 1;
        self.liveness.on_segment();
        let same_window = self.update_window(now, distance, ack, segment, arrived.shared_window);
        if self.liveness.on_answer() {
            self.timers.stop(SubflowTimer::Verification);
        }
        self.update_recent_timestamp(now, distance, &segment.options);
        let acknowledges = self.process_ack(now, ack, same_window, segment, arrived.views);
        let payload = self.receive_usual(now, distance, segment, arrived.window);
        Some(Predicted { acknowledges, payload })
    }

    /// Accept the payload. Returns it if it is the next, and nothing waits for the data level or
    /// for missing data.
    #[inline(always)] // Each segment takes it, and LLVM does not inline it.
    fn receive_usual(
        &mut self,
        now: Instant,
        distance: i64,
        segment: &mut Segment,
        window: u64,
    ) -> Payload {
        let bytes = segment.payload.len();
        if bytes == 0 {
            return Payload::EMPTY;
        }
        if distance > 0 || bytes as u64 > window || !self.receiver.holds_nothing() {
            self.receive(now, distance, segment, window);
            return Payload::EMPTY;
        }
        self.on_text(now, segment);
        let waiting = self.receiver.ack_is_delayed();
        self.receiver.receive_next(now, bytes, segment.header.flags);
        self.totals.bytes_received += bytes as u64;
        self.delay_ack(now, waiting);
        std::mem::take(&mut segment.payload)
    }

    /// The data level cannot take this payload yet, which [`Subflow::handle_predicted`] has returned.
    pub(crate) fn put_back(&mut self, payload: Payload) {
        self.receiver.put_back(payload);
    }

    /// The handshake is complete, no FIN was sent or has arrived, and nothing is to be said or repeated
    /// because of an arrival.
    #[inline]
    fn is_usual(&self) -> bool {
        self.state == State::Established
            && self.handshake.is_confirmed()
            && !self.receiver.knows_end()
            && !self.ending.reset_is_due()
            && !self.priority.is_signalled()
            && self.config.tcp.keep_alive.is_none()
    }
}
