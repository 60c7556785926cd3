//! Back to plain TCP, or one subflow given up, when a path does not let Multipath TCP through.
//! RFC 8684 §3.7.
//!
//! What a path can do, and what is done about it:
//!
//! * It drops options from the start: a subflow on which data, or an acknowledgement of data, comes
//!   without options before any data sequence signal was heard. The first subflow becomes the TCP
//!   connection, a joined one is reset.
//! * It begins to drop them later: acknowledgements come without DATA_ACK until the data-level
//!   timer expires. A sender that never had a second subflow, and whose stream has run straight on
//!   the one it has, falls back, and says so. Payload for which no mapping comes, though, has the
//!   subflow reset: nobody knows whether the peer has noticed, and without mappings what it sends
//!   again would pass for new.
//! * It changes the payload: see `checksum.rs`.
//!
//! A host reverts both directions at once, if what it has sent and the peer has not
//! DATA_ACKed lies on that subflow in order and without repetitions, and if it knows which byte of
//! the stream it will get next. It announces that by an infinite mapping, on every segment until
//! the peer has acknowledged one of them. Of the bytes on their way then, those that it has sent
//! are where the infinite mapping says; those that the peer has sent are where they would be
//! without options. Mappings that still arrive must agree with that, or the connection ends: a
//! stream with an error is better than a stream with errors.

use anabranch_wire::mptcp::{Dss, Mapping, MpFail, ResetReason, WideOrNarrow};
use anabranch_wire::{DataSeq, Duration, Instant, SeqNumber};

use super::Connection;
use super::checksum::Failing;
use super::handshake::because;
use super::timer::Timer;
use crate::subflow::Purpose;

/// How far a connection is on the way back to TCP.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// The peer may have sent on a further subflow.
    joined: bool,
    /// This host may have sent on a further subflow, or data twice on the only one. No sooner than
    /// the peer has reason to expect it, which is `joined` at the other end.
    repeats: bool,
    /// A checksum failed on the only subflow, and the peer was told.
    failing: Option<Box<Failing>>,
    /// Slot of the subflow that is the TCP connection.
    slot: u8,
    /// Distance from its offsets to those of the stream, for what this host sends.
    sent_shift: i64,
    /// The same for what the peer sends.
    received: Option<Box<PlainStart>>,
}

/// Where the peer's bytes belong after the fallback of a connection that spoke Multipath TCP.
#[derive(Clone, Copy, Debug)]
struct PlainStart {
    /// Distance from its subflow offsets to those of the stream.
    shift: u64,
    /// The data sequence number from which those of the stream count.
    idsn: DataSeq,
}

impl Fallback {
    /// From here on the peer may have data on a further subflow.
    pub(super) fn peer_may_spread(&mut self) {
        self.joined = true;
    }

    /// From here on both hosts may.
    pub(super) fn both_may_spread(&mut self) {
        (self.joined, self.repeats) = (true, true);
    }

    /// From here on this host sends data twice on its only subflow.
    pub(super) fn repeat(&mut self) {
        self.repeats = true;
    }

    /// May this host send data twice, or on several subflows?
    #[inline]
    pub(super) fn may_repeat(&self) -> bool {
        self.repeats
    }

    /// A checksum failed, and this host reports it to the peer.
    pub(super) fn begin_failing(&mut self, failing: Failing) {
        self.failing = Some(Box::new(failing));
    }

    /// The failure that this host reports to the peer.
    pub(super) fn failing(&mut self) -> Option<&mut Failing> {
        self.failing.as_deref_mut()
    }

    /// This host stops reporting the failure.
    pub(super) fn end_failing(&mut self) -> Option<Failing> {
        self.failing.take().map(|failing| *failing)
    }

    /// Slot of the subflow that is the TCP connection.
    #[inline]
    pub(super) fn slot(&self) -> u8 {
        self.slot
    }

    /// Distance from its offsets to those of the stream, for what this host sends.
    #[inline]
    pub(super) fn sent_shift(&self) -> i64 {
        self.sent_shift
    }
}

/// The last run of data on a subflow at one distance from the subflow's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    shift: u64,
    /// Data offsets: of its first byte, and of the one after its last.
    from: u64,
    end: u64,
}

/// How long payload waits for its mapping at most (ours: RFC 8684 §3.3.1 has "a short while" and a
/// window's worth of data, but the sender may have no more to send). Not longer than the shortest
/// retransmission timeout in use, after which the peer may send the data again.
const PATIENCE: Duration = Duration::from_millis(200);
/// The same where it ends with a reset: time for a lost piece of a split segment to come again.
const LATE_PATIENCE: Duration = Duration::from_secs(1);

/// This many DATA_FINs in a row that the peer ignores show that none gets through (ours).
const UNHEARD_DATA_FINS: u8 = 4;

impl Default for Run {
    fn default() -> Self {
        Run { shift: 0, from: 1, end: 1 }
    }
}

impl Run {
    /// `len` bytes of data from `data` on went out at subflow offset `subflow`, after all before.
    pub(super) fn extend(&mut self, subflow: u64, data: u64, len: u64) {
        let shift = data.wrapping_sub(subflow);
        if shift != self.shift {
            *self = Run { shift, from: data, end: data };
        }
        self.end = data + len;
    }
}

impl Connection {
    /// An acceptable segment without any Multipath TCP option. RFC 8684 §3.3.2: one that
    /// acknowledges no data is no sign of lost options, since the DATA_ACK has not moved.
    pub(super) fn take_bare(&mut self, slot: u8, ack: u64) {
        let lane = &mut self.lanes[usize::from(slot)];
        // A FIN has a number, and is no data.
        let acknowledges_data = ack > 1 && lane.subflow.has_sent_data();
        let unheard = !lane.heard && self.session.is_open();
        if unheard && lane.has_bare_data() {
            // RFC 8684 §3.7: options got through with the SYNs, and do not with data.
            self.on_mapping_missing(slot);
            self.counters.mp_capable_data_fallback += u64::from(self.session.is_tcp());
        } else if unheard && acknowledges_data {
            self.on_options_lost(slot);
            self.counters.mp_capable_data_fallback += u64::from(self.session.is_tcp());
        } else {
            lane.bare_acks |= acknowledges_data;
        }
    }

    /// What came without options is delivered: was that all?
    pub(super) fn check_bare_end(&mut self, slot: u8) {
        if self.is_at_bare_end(slot) {
            self.on_options_lost(slot);
        }
    }

    /// Has the peer ended the connection's only subflow by a bare FIN, and not the stream? A host
    /// of Multipath TCP ends the stream first, by a DATA_FIN (RFC 8684 §3.3.3): it did not get
    /// through, or the peer is back at TCP.
    fn is_at_bare_end(&self, slot: u8) -> bool {
        let lane = &self.lanes[usize::from(slot)];
        let ended = lane.bare_fin && lane.subflow.peer_finished();
        ended && !self.recv.queue.is_complete() && self.session.is_open() && self.is_alone(slot)
    }

    /// Payload waits on the subflow in `slot`, or did. On the only subflow it does not if some came
    /// without options, perhaps before what it follows: the peer, which is not told of it, might
    /// send the same data again.
    pub(super) fn check_mapped(&mut self, now: Instant, slot: u8) {
        let (alone, late) = (self.is_alone(slot), self.is_late(slot));
        let patience = self.patience(slot);
        let lane = &mut self.lanes[usize::from(slot)];
        let bare = lane.has_bare_data();
        if lane.mappings.has_failed() {
            // The answer to MP_FAIL was lost, or stripped, and the peer is back at TCP: nothing but
            // data without options has come for a while.
            let silent = now.saturating_since(lane.heard_at) > PATIENCE;
            if bare
                && silent
                && let Some(shift) = self.way_back(slot)
            {
                self.counters.dss_corruption_fallback += 1;
                self.revert(slot, shift, true);
            }
        } else if !lane.mappings.lacks_mapping() {
            lane.unmapped_since = None;
        } else if (bare && alone && !late) || lane.mappings.is_beyond_hope() {
            self.on_mapping_missing(slot);
        } else if lane.unmapped_since.is_none() {
            lane.unmapped_since = Some(now);
            self.timers.set_if_earlier(Timer::Unmapped, now + patience);
        }
    }

    /// Payload may have waited long enough for its mapping.
    pub(super) fn on_unmapped_timeout(&mut self, now: Instant) {
        for slot in 0..self.lanes.len() as u8 {
            let patience = self.patience(slot);
            let lane = &mut self.lanes[usize::from(slot)];
            let waits = !lane.reaped && lane.mappings.lacks_mapping();
            let Some(since) = lane.unmapped_since.filter(|_| waits) else { continue };
            let due = since + patience;
            if due <= now {
                self.on_mapping_missing(slot);
            } else {
                self.timers.set_if_earlier(Timer::Unmapped, due);
            }
        }
    }

    /// The data-level timer expired. The peer has spoken after each of several DATA_FINs, and has
    /// acknowledged none of them, but all data: the path drops options in one direction or both.
    /// RFC 8684 §3.7.
    pub(super) fn give_up_on_data_fin(&mut self) {
        let waits =
            self.send.queue.fin_outstanding() && self.send.queue.una() == self.send.queue.end();
        if self.data_fin.count_unheard(waits) >= UNHEARD_DATA_FINS
            && let Some(slot) = self.data_fin.was_on()
            && self.is_alone(slot)
        {
            self.data_fin.forget_unheard();
            self.on_options_lost(slot);
        }
    }

    /// The peer has not acknowledged data for long at data level. If it acknowledged the oldest of
    /// it on a subflow, without options, those are lost there. Others may go without rightly: RFC
    /// 8684 §3.3.2 lets a peer leave out a DATA_ACK that says nothing new.
    pub(super) fn give_up_unheard(&mut self) {
        let Some(oldest) = self.send.queue.head() else { return };
        let data_seq = self.session.data_seq(oldest.start);
        for slot in oldest.carried_by().slots() {
            let lane = &self.lanes[usize::from(slot)];
            let mut under_way = lane.subflow.unacknowledged_data();
            if lane.bare_acks
                && self.session.is_mptcp()
                && !under_way.any(|(from, len)| (data_seq.distance_from(from) as u64) < len)
            {
                drop(under_way);
                self.on_options_lost(slot);
            }
        }
    }

    /// No mapping comes for payload of the subflow in `slot`.
    fn on_mapping_missing(&mut self, slot: u8) {
        let lane = &mut self.lanes[usize::from(slot)];
        if self.recv.queue.is_complete() && lane.heard {
            // RFC 8684 §3.3.3: nothing follows the DATA_FIN. A box has merged segments that repeat
            // data, and a reset would only take away the subflow that this host has to close on.
            lane.mappings.discard();
            lane.unmapped_since = None;
            return;
        }
        if self.is_late(slot) {
            return self.break_subflow(slot, ResetReason::MIDDLEBOX_INTERFERENCE);
        }
        let fail = self.first_unread();
        self.on_options_lost(slot);
        if self.session.is_tcp() {
            // A peer may take an announced address for proof that the path is fit, and then heeds
            // nothing else.
            self.lanes[usize::from(slot)].subflow.signal_fail(fail);
        }
    }

    /// Is it too late to go back to TCP of one's own accord? RFC 8684 §3.7: a peer whose data was
    /// DATA_ACKed need not notice that mappings vanish. It may send the same data again, which
    /// would pass for more of the stream. The data of MP_CAPABLE does not count: a path on which no
    /// data sequence signal has come yet did not let them through from the start.
    fn is_late(&self, slot: u8) -> bool {
        let mapped = self.recv.queue.next_data() > 1 && self.lanes[usize::from(slot)].heard;
        mapped && !self.config.late_fallback
    }

    fn patience(&self, slot: u8) -> Duration {
        if self.is_late(slot) { LATE_PATIENCE } else { PATIENCE }
    }

    /// MP_FAIL from the first byte on that the peer has not been DATA_ACKed.
    fn first_unread(&self) -> MpFail {
        MpFail { data_seq: self.session.peer_idsn() + self.recv.queue.next_data() }
    }

    /// The path of the subflow in `slot` does not let options through, or no more.
    fn on_options_lost(&mut self, slot: u8) {
        // RFC 8684 §3.7: fallback is for the first subflow, before any is added.
        let alone = self.is_alone(slot) && self.lanes[usize::from(slot)].mappings.is_straight();
        match self.way_back(slot).filter(|_| alone) {
            Some(shift) => {
                self.counters.dss_fallback += 1;
                self.revert(slot, shift, true);
            }
            None => self.break_subflow(slot, ResetReason::MIDDLEBOX_INTERFERENCE),
        }
    }

    /// Is it the connection's first subflow, and has there been no other?
    fn is_alone(&self, slot: u8) -> bool {
        let subflow = &self.lanes[usize::from(slot)].subflow;
        subflow.purpose == Purpose::Initial && !self.fallback.joined
    }

    /// Is no other subflow in use?
    pub(super) fn is_sole(&self, slot: u8) -> bool {
        self.lanes.iter().enumerate().all(|(other, lane)| {
            let live = lane.subflow.is_established() && !lane.subflow.is_doomed();
            other == usize::from(slot) || !live
        })
    }

    /// The way back to TCP, if there is one: the distance from the offsets of the subflow in `slot`
    /// to those of the stream, for what this host sends.
    pub(super) fn way_back(&mut self, slot: u8) -> Option<i64> {
        let next = self.recv.queue.next_data();
        let open = self.session.is_open();
        let lane = &mut self.lanes[usize::from(slot)];
        let usable = open && !lane.subflow.is_doomed() && lane.mappings.continues(next);
        self.sent_in_place(slot).filter(|_| usable)
    }

    /// RFC 8684 §3.7: all that was sent and is not DATA_ACKed must be contiguous on the subflow.
    fn sent_in_place(&self, slot: u8) -> Option<i64> {
        let (una, end) =
            (self.unacknowledged_from(), self.send.queue.carried_to().min(self.send.queue.end()));
        let Run { shift, from, end: run_end } = self.lanes[usize::from(slot)].run;
        if run_end == end && from <= una {
            return Some(shift as i64);
        }
        let next = self.lanes[usize::from(slot)].subflow.send_next();
        (una == end).then(|| end as i64 - next as i64)
    }

    /// The first data offset that is not acknowledged, the DATA_FIN aside.
    fn unacknowledged_from(&self) -> u64 {
        self.send.queue.una().min(self.send.queue.end())
    }

    /// RFC 8684 §3.7: from here on the subflow in `slot` is a TCP connection, and the stream what
    /// it brings, the bytes included that wait on it. The others are reset.
    pub(super) fn revert(&mut self, slot: u8, sent_shift: i64, announce: bool) {
        let infinite = announce.then(|| self.infinite_mapping(sent_shift));
        self.counters.infinite_map_tx += u64::from(announce);
        let (next, idsn) = (self.recv.queue.next_data(), self.session.peer_idsn());
        self.fall_back();
        self.send.become_plain();
        self.recv.queue.become_plain();
        self.stop_timers();
        self.data_fin.cancel();
        self.paths.become_plain();
        for other in (0..self.lanes.len()).filter(|other| *other != usize::from(slot)) {
            let lane = &mut self.lanes[other];
            if !lane.subflow.is_doomed() {
                lane.subflow.reset(Some(because(ResetReason::MIDDLEBOX_INTERFERENCE)));
            }
        }
        let lane = &mut self.lanes[usize::from(slot)];
        self.fallback = Fallback {
            slot,
            sent_shift,
            received: Some(Box::new(PlainStart {
                shift: next.wrapping_sub(lane.mappings.head()),
                idsn,
            })),
            ..Fallback::default()
        };
        while let Some(payload) = lane.mappings.poll_plain() {
            self.recv.queue.append(payload);
            self.outbox.tell_readable();
        }
        lane.subflow.forget_signals();
        lane.subflow.demand_ack();
        // What TCP has acknowledged meanwhile is acknowledged now, and nobody will say so again.
        let una = (lane.subflow.una() as i64 + sent_shift).max(1) as u64;
        if self.send.queue.acknowledge(una.min(self.send.queue.end())) {
            self.outbox.tell_writable();
        }
        match infinite {
            Some(mapping) => self.lanes[usize::from(slot)].subflow.announce_infinite(mapping),
            None => self.settle_options(slot),
        }
        self.lanes.refresh(slot);
    }

    /// RFC 8684 §3.7: it begins with the oldest data that is not DATA_ACKed.
    fn infinite_mapping(&self, sent_shift: i64) -> Mapping {
        let from = self.unacknowledged_from();
        Mapping {
            data_seq: WideOrNarrow::Narrow(self.session.data_seq(from).low32()),
            subflow_seq: SeqNumber((from as i64 - sent_shift) as u32),
            len: 0,
            // RFC 8684 §3.3.1: there is nothing that it could cover.
            checksum: self.session.checksums().then_some(0),
        }
    }

    /// The peer goes back to TCP: its bytes from subflow offset `subflow` on are data from `data`
    /// on, without end.
    pub(super) fn take_infinite_mapping(&mut self, slot: u8, subflow: u64, data: u64) {
        self.counters.infinite_map_rx += 1;
        let head = self.lanes[usize::from(slot)].mappings.head();
        let placed = data.wrapping_add(head.wrapping_sub(subflow)) == self.recv.queue.next_data();
        // The peer takes every byte of its only subflow for the stream's: copies among them would
        // be taken for what comes next.
        let copies = self.fallback.repeats && !self.fallback.joined;
        match self.way_back(slot).filter(|_| placed && !copies) {
            Some(shift) => self.revert(slot, shift, false),
            None => {
                self.counters.dss_corruption_reset += 1;
                self.break_subflow(slot, ResetReason::MPTCP_SPECIFIC);
            }
        }
    }

    /// The peer says that a mapping failed its checksum. RFC 8684 §3.7: it is answered with
    /// MP_FAIL and an infinite mapping if all data in flight is contiguous, with a reset if not.
    pub(super) fn take_fail(&mut self, slot: u8, fail: MpFail) {
        let near = self.session.data_seq(self.send.queue.una());
        let distance = fail.data_seq.distance_from(near);
        if distance < 0 || distance as u64 > self.send.queue.nxt() - self.send.queue.una() {
            // What it DATA_ACKed had arrived, and what was not sent cannot have failed.
            return;
        }
        let answers = self.fallback.failing.is_some();
        let own = self.first_unread();
        match self.way_back(slot).filter(|_| self.is_sole(slot)) {
            Some(shift) => {
                self.counters.dss_corruption_fallback += 1;
                self.revert(slot, shift, true);
                if !answers {
                    self.lanes[usize::from(slot)].subflow.signal_fail(own);
                }
            }
            None => self.break_failing(slot, own),
        }
    }

    /// Reset the subflow in `slot`, whatever it has carried going out on others.
    pub(super) fn break_subflow(&mut self, slot: u8, reason: ResetReason) {
        let mut lane = self.lanes.edit(slot);
        lane.distrusted = true;
        if !lane.subflow.is_doomed() {
            lane.subflow.reset(Some(because(reason)));
        }
    }

    /// What may still arrive of Multipath TCP on the subflow that is the TCP connection now.
    pub(super) fn take_remains(&mut self, slot: u8, dss: Option<&Dss>, fails: bool) {
        self.counters.mp_fail_rx += u64::from(fails);
        let subflow = &mut self.lanes[usize::from(slot)].subflow;
        if fails && subflow.announces_infinite() {
            // The answer was lost: the infinite mapping goes out again.
            subflow.demand_ack();
        }
        let mapping = dss.and_then(|dss| dss.mapping);
        let (Some(mapping), Some(received)) = (mapping, &self.fallback.received) else { return };
        let near = received.idsn + self.recv.queue.nxt();
        let data = mapping.data_seq.resolve(near).distance_from(received.idsn) as u32;
        let bare_fin = mapping.subflow_seq == SeqNumber(0);
        if !bare_fin && data.wrapping_sub(mapping.subflow_seq.0) != received.shift as u32 {
            self.counters.dss_corruption_reset += 1;
            self.break_subflow(slot, ResetReason::MIDDLEBOX_INTERFERENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_anew_where_data_is_repeated_or_left_out() {
        let mut run = Run::default();
        run.extend(1, 1, 1000);
        run.extend(1001, 1001, 500);
        assert_eq!((run.from, run.end), (1, 1501));
        run.extend(1501, 1, 1000);
        assert_eq!((run.from, run.end), (1, 1001));
        run.extend(2501, 1001, 100);
        assert_eq!((run.from, run.end), (1, 1101));
        run.extend(2601, 5001, 100);
        assert_eq!((run.from, run.end), (5001, 5101));
    }
}
