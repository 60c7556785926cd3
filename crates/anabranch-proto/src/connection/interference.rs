//! Fallback to plain TCP, or reset of one subflow, when a path interferes with Multipath TCP. RFC
//! 8684 §3.7.
//!
//! The kinds of interference, and the reactions:
//!
//! * **The path drops options from the start.** Data, or an acknowledgement of data, arrives
//!   without options before any data sequence signal. The first subflow becomes the TCP connection.
//!   A joined subflow is reset.
//! * **The path starts to drop options later.** Acknowledgements arrive without DATA_ACK until the
//!   data-level timer expires. If the sender never had a second subflow, and its stream is
//!   contiguous on the first, it falls back and announces this. If payload arrives without a
//!   mapping, the host resets the subflow instead. It cannot know whether the peer has noticed, and
//!   without mappings it would take resent data for new data.
//! * **The path changes the payload.** See `checksum.rs`.
//!
//! A host reverts both directions at once. This requires two conditions: its data that is not
//! DATA_ACKed lies on that subflow in order and without repetitions, and it knows which byte of the
//! stream arrives next. The host announces the fallback by an infinite mapping on every segment
//! until the peer has acknowledged one of them. For bytes in flight at that time, the infinite
//! mapping places those that the host has sent. Those that the peer has sent belong where they
//! would be without options. Mappings that still arrive must agree with this, otherwise the
//! connection ends: an aborted stream is better than a corrupted one.

use anabranch_wire::mptcp::{Dss, Mapping, MpFail, ResetReason, WideOrNarrow};
use anabranch_wire::{Duration, Instant, SeqNumber};

use super::Connection;
use super::fallback::PlainStart;
use super::handshake::because;
use super::timer::ConnectionTimer;
use crate::subflow::Purpose;
use crate::view::Slot;

/// Maximum time that payload waits for its mapping (this project). RFC 8684 §3.3.1 allows "a short
/// while" and a window's worth of data, but the sender may have no more to send. The time is at
/// most the shortest retransmission timeout in use, after which the peer may resend the data.
const MAPPING_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time if it ends with a reset: enough to retransmit a lost piece of a split segment.
const LATE_MAPPING_TIMEOUT: Duration = Duration::from_secs(1);

/// After this many consecutive DATA_FINs that the peer ignores, the host assumes that none gets
/// through (this project).
const MAX_DATA_FIN_RETRIES: u8 = 4;

/// After this many consecutive window probes or data-level timeouts without a data sequence signal
/// from the peer, the host assumes that the path strips the options (this project).
const MAX_OPTIONLESS_PROBES: u16 = 4;

impl Connection {
    /// An acceptable segment without any Multipath TCP option arrived. RFC 8684 §3.3.2: a segment
    /// that acknowledges no data is no sign of lost options, because the DATA_ACK has not changed.
    pub(super) fn handle_optionless(&mut self, slot: Slot, ack: u64) {
        let ctx = &mut self.subflows[slot];
        // A FIN occupies a sequence number but is not data.
        let first = if self.session.is_initiator() { self.session.first_mapped() } else { 1 };
        let acknowledges_data = ack > first && ctx.subflow.has_sent_data();
        let optionless = !ctx.signs.has_dss() && self.session.is_open();
        if optionless && ctx.has_optionless_data() {
            // RFC 8684 §3.7: options pass on SYNs, but not on data.
            self.on_mapping_missing(slot);
            self.counters.mp_capable_data_fallback += u64::from(self.session.is_tcp());
        } else if optionless && acknowledges_data {
            self.on_options_lost(slot);
            self.counters.mp_capable_data_fallback += u64::from(self.session.is_tcp());
        } else if acknowledges_data {
            ctx.signs.on_optionless_ack();
        }
    }

    /// Data that arrived without options was delivered. Fall back if the stream has ended.
    pub(super) fn check_optionless_end(&mut self, slot: Slot) {
        if self.is_at_optionless_end(slot) {
            self.on_options_lost(slot);
        }
    }

    /// Returns `true` if the peer has closed the only subflow with a FIN without options, before
    /// the end of the stream. A Multipath TCP host ends the stream with a DATA_FIN first (RFC 8684
    /// §3.3.3). Either the path dropped the DATA_FIN, or the peer has fallen back to TCP.
    fn is_at_optionless_end(&self, slot: Slot) -> bool {
        let ctx = &self.subflows[slot];
        let ended = ctx.signs.has_optionless_fin() && ctx.subflow.receiver().finished();
        ended && !self.recv.queue.is_complete() && self.session.is_open() && self.is_alone(slot)
    }

    /// Check payload that waits for mappings on the subflow in `slot`. On the only subflow, payload
    /// does not wait if some of it arrived without options, perhaps out of order. The peer does not
    /// know that its mappings are missing, and might resend the data.
    pub(super) fn check_mapped(&mut self, now: Instant, slot: Slot) {
        let (alone, late) = (self.is_alone(slot), self.is_late(slot));
        let mapping_timeout = self.mapping_timeout(slot);
        let ctx = &mut self.subflows[slot];
        let optionless = ctx.has_optionless_data();
        if ctx.mappings.has_failed() {
            // The answer to MP_FAIL was lost or removed, and the peer has fallen back to TCP. For a
            // while, only data without options has arrived.
            let is_silent = now.saturating_since(ctx.signs.last_dss()) > MAPPING_TIMEOUT;
            if optionless
                && is_silent
                && let Some(shift) = self.way_back(slot)
            {
                self.counters.dss_corruption_fallback += 1;
                self.revert(slot, shift, true);
            }
        } else if !ctx.mappings.lacks_mapping() {
            ctx.signs.end_waiting();
        } else if (optionless && alone && !late) || ctx.mappings.is_beyond_hope() {
            self.on_mapping_missing(slot);
        } else if ctx.signs.begin_to_wait(now) {
            self.timers.set_if_earlier(ConnectionTimer::Unmapped, now + mapping_timeout);
        }
    }

    /// Payload may have waited too long for its mapping.
    pub(super) fn on_unmapped_timeout(&mut self, now: Instant) {
        for slot in self.subflows.slots() {
            let mapping_timeout = self.mapping_timeout(slot);
            let ctx = &mut self.subflows[slot];
            let waits = !ctx.is_reaped() && ctx.mappings.lacks_mapping();
            let Some(since) = ctx.signs.waiting_since().filter(|_| waits) else { continue };
            let due = since + mapping_timeout;
            if due <= now {
                self.on_mapping_missing(slot);
            } else {
                self.timers.set_if_earlier(ConnectionTimer::Unmapped, due);
            }
        }
    }

    /// The data-level timer expired. The peer has sent segments after each of several DATA_FINs. It
    /// has acknowledged all data but no DATA_FIN, so the path drops options in one direction or
    /// both. RFC 8684 §3.7.
    pub(super) fn give_up_on_data_fin(&mut self) {
        let waits =
            self.send.queue.fin_outstanding() && self.send.queue.una() == self.send.queue.end();
        if self.data_fin.count_ignored(waits) >= MAX_DATA_FIN_RETRIES
            && let Some(slot) = self.data_fin.was_on()
            && self.is_alone(slot)
        {
            self.data_fin.forget_ignored();
            self.on_options_lost(slot);
        }
    }

    /// For a long time, the peer has not acknowledged data at the data level. If it acknowledged
    /// the oldest unacknowledged data on a subflow without options, the options are lost there.
    /// Other acknowledgements without options are no sign: RFC 8684 §3.3.2 allows a peer to omit a
    /// DATA_ACK that has not changed. A subflow that cannot fall back ends only after the peer was
    /// asked several times, because single segments with the DATA_ACK may have been lost.
    pub(super) fn give_up_on_optionless_acks(&mut self) {
        let Some(oldest) = self.send.queue.head() else { return };
        let was_asked = self.data_rto.timeouts() >= u32::from(MAX_OPTIONLESS_PROBES);
        let data_seq = self.session.data_seq(oldest.start);
        for slot in oldest.carried_by().slots() {
            let ctx = &self.subflows[slot];
            let mut under_way = ctx.subflow.unacknowledged_data();
            if ctx.signs.has_optionless_acks()
                && self.session.is_mptcp()
                && (was_asked || self.is_alone(slot))
                && !under_way.any(|(from, len)| (data_seq.distance_from(from) as u64) < len)
            {
                drop(under_way);
                self.on_options_lost(slot);
            }
        }
    }

    /// The peer has answered this number of consecutive window probes without a data sequence
    /// signal. After several answers, the host assumes that every subflow loses the options. The
    /// window counts from the DATA_ACK (RFC 8684 §3.3.1), so it would otherwise stay closed for ever.
    pub(super) fn give_up_on_window(&mut self, optionless_probes: u16) {
        if optionless_probes < MAX_OPTIONLESS_PROBES {
            return;
        }
        for slot in self.subflows.slots() {
            if self.session.is_mptcp() && self.subflows[slot].subflow.is_established() {
                self.on_options_lost(slot);
            }
        }
    }

    /// Payload of the subflow in `slot` has no mapping.
    fn on_mapping_missing(&mut self, slot: Slot) {
        let ctx = &mut self.subflows[slot];
        if self.recv.queue.is_complete() && ctx.signs.has_dss() {
            // RFC 8684 §3.3.3: no data follows the DATA_FIN. A middlebox has merged segments that
            // repeat data. A reset would only remove the subflow on which this host must close.
            ctx.mappings.discard();
            ctx.signs.end_waiting();
            return;
        }
        if self.is_late(slot) {
            return self.subflows.break_off(slot, ResetReason::MIDDLEBOX_INTERFERENCE);
        }
        let fail = self.first_unread();
        self.on_options_lost(slot);
        if self.session.is_tcp() {
            // Also send MP_FAIL. A peer may take an announced address as proof that the path is
            // usable, and then ignore everything else.
            self.subflows[slot].subflow.signals_mut().fail(fail);
        }
    }

    /// Returns `true` if it is too late for this host to start the fallback. RFC 8684 §3.7: a peer
    /// whose data was DATA_ACKed may not notice that mappings vanish. It may then resend the same
    /// data, which this host would take for new data. The data that arrived with MP_CAPABLE does
    /// not count: if no data sequence signal has arrived yet, the path dropped them from the start.
    fn is_late(&self, slot: Slot) -> bool {
        let mapped = self.recv.queue.next_data() > 1 && self.subflows[slot].signs.has_dss();
        mapped && !self.config.late_fallback
    }

    fn mapping_timeout(&self, slot: Slot) -> Duration {
        if self.is_late(slot) { LATE_MAPPING_TIMEOUT } else { MAPPING_TIMEOUT }
    }

    /// MP_FAIL from the first byte on that this host has not DATA_ACKed.
    fn first_unread(&self) -> MpFail {
        MpFail { data_seq: self.session.peer_idsn() + self.recv.queue.next_data() }
    }

    /// The path of the subflow in `slot` drops options.
    fn on_options_lost(&mut self, slot: Slot) {
        // RFC 8684 §3.7: only the first subflow can fall back, before another is added.
        let alone = self.is_alone(slot) && self.subflows[slot].mappings.is_straight();
        match self.way_back(slot).filter(|_| alone) {
            Some(shift) => {
                self.counters.dss_fallback += 1;
                self.revert(slot, shift, true);
            }
            None => self.subflows.break_off(slot, ResetReason::MIDDLEBOX_INTERFERENCE),
        }
    }

    /// Returns `true` if it is the connection's first subflow, and there has never been another.
    fn is_alone(&self, slot: Slot) -> bool {
        let subflow = &self.subflows[slot].subflow;
        subflow.identity().purpose == Purpose::Initial && !self.fallback.peer_has_spread()
    }

    /// The difference between the stream's offsets and those of the subflow in `slot`, for data
    /// that this host sends. `None` if a fallback to TCP is impossible.
    pub(super) fn way_back(&mut self, slot: Slot) -> Option<i64> {
        let next = self.recv.queue.next_data();
        let open = self.session.is_open();
        let ctx = &mut self.subflows[slot];
        let usable = open && !ctx.subflow.reset_pending() && ctx.mappings.continues(next);
        self.sent_in_place(slot).filter(|_| usable)
    }

    /// RFC 8684 §3.7: all data that was sent and is not DATA_ACKed must be contiguous on the
    /// subflow.
    fn sent_in_place(&self, slot: Slot) -> Option<i64> {
        let (una, end) = (self.send.queue.una(), self.send.queue.carried_to());
        let ctx = &self.subflows[slot];
        if let Some(shift) = ctx.carried.shift(una, end) {
            return Some(shift as i64);
        }
        (una == end).then(|| end as i64 - ctx.subflow.send_next() as i64)
    }

    /// RFC 8684 §3.7: from now on the subflow in `slot` is a TCP connection, and its bytes are the
    /// stream, including those that wait on it. The other subflows are reset.
    pub(super) fn revert(&mut self, slot: Slot, sent_shift: i64, announce: bool) {
        let infinite = announce.then(|| self.infinite_mapping(sent_shift));
        self.counters.infinite_map_tx += u64::from(announce);
        let (next, idsn) = (self.recv.queue.next_data(), self.session.peer_idsn());
        self.fall_back();
        self.send.become_plain();
        self.recv.queue.become_plain();
        self.stop_timers();
        self.data_fin.cancel();
        self.paths.become_plain();
        for other in self.subflows.slots().filter(|other| *other != slot) {
            let ctx = &mut self.subflows[other];
            if !ctx.subflow.reset_pending() {
                ctx.subflow.reset(Some(because(ResetReason::MIDDLEBOX_INTERFERENCE)));
            }
        }
        let ctx = &mut self.subflows[slot];
        let received = PlainStart::new(next, ctx.mappings.head(), idsn);
        self.fallback.complete(slot, sent_shift, received);
        while let Some(payload) = ctx.mappings.poll_plain() {
            self.recv.queue.append(payload);
            self.outbox.tell_readable();
        }
        ctx.subflow.forget_signals();
        ctx.subflow.demand_ack();
        // Apply what TCP has acknowledged in the meantime, because the peer does not acknowledge it
        // again.
        let una = (ctx.subflow.una() as i64 + sent_shift).max(1) as u64;
        if self.send.queue.acknowledge(una.min(self.send.queue.end())) {
            self.outbox.tell_writable();
        }
        match infinite {
            Some(mapping) => self.subflows[slot].subflow.announce_infinite(mapping),
            None => self.settle_options(slot),
        }
        self.subflows.refresh(slot);
    }

    /// RFC 8684 §3.7: the infinite mapping begins with the oldest data that is not DATA_ACKed.
    fn infinite_mapping(&self, sent_shift: i64) -> Mapping {
        let from = self.send.queue.una();
        Mapping {
            data_seq: WideOrNarrow::Narrow(self.session.data_seq(from).low32()),
            subflow_seq: SeqNumber((from as i64 - sent_shift) as u32),
            len: 0,
            // RFC 8684 §3.3.1: there is nothing that the checksum could cover.
            checksum: self.session.checksums().then_some(0),
        }
    }

    /// The peer falls back to TCP. From subflow offset `subflow` on, its bytes are data from `data`
    /// on, without end.
    pub(super) fn handle_infinite_mapping(&mut self, slot: Slot, subflow: u64, data: u64) {
        self.counters.infinite_map_rx += 1;
        let head = self.subflows[slot].mappings.head();
        let placed = data.wrapping_add(head.wrapping_sub(subflow)) == self.recv.queue.next_data();
        // The peer takes every byte of its only subflow as part of the stream, so it would take
        // copies for new data.
        let copies = self.fallback.may_repeat() && !self.fallback.peer_has_spread();
        match self.way_back(slot).filter(|_| placed && !copies) {
            Some(shift) => self.revert(slot, shift, false),
            None => {
                self.counters.dss_corruption_reset += 1;
                self.subflows.break_off(slot, ResetReason::MPTCP_SPECIFIC);
            }
        }
    }

    /// The peer reports that a mapping failed its checksum. RFC 8684 §3.7: if all data in flight is
    /// contiguous, the host answers with MP_FAIL and an infinite mapping, otherwise with a reset.
    pub(super) fn handle_fail(&mut self, slot: Slot, fail: MpFail) {
        let outstanding = self.send.queue.outstanding();
        let distance = fail.data_seq.distance_from(self.session.data_seq(*outstanding.start()));
        if distance < 0 || distance as u64 > outstanding.end() - outstanding.start() {
            // Data that the peer DATA_ACKed has arrived, and unsent data cannot have failed.
            return;
        }
        let answers = self.fallback.failing().is_some();
        let own = self.first_unread();
        match self.way_back(slot).filter(|_| self.subflows.is_sole(slot)) {
            Some(shift) => {
                self.counters.dss_corruption_fallback += 1;
                self.revert(slot, shift, true);
                if !answers {
                    self.subflows[slot].subflow.signals_mut().fail(own);
                }
            }
            None => self.break_failing(slot, own),
        }
    }

    /// Process Multipath TCP options that still arrive on the subflow that became the TCP
    /// connection.
    pub(super) fn handle_after_fallback(&mut self, slot: Slot, dss: Option<&Dss>, fails: bool) {
        self.counters.mp_fail_rx += u64::from(fails);
        let subflow = &mut self.subflows[slot].subflow;
        if fails && subflow.announces_infinite() {
            // The answer was lost, so send the infinite mapping again.
            subflow.demand_ack();
        }
        let mapping = dss.and_then(|dss| dss.mapping);
        let (Some(mapping), Some(received)) = (mapping, self.fallback.received()) else { return };
        if !received.agrees_with(&mapping, self.recv.queue.nxt()) {
            self.counters.dss_corruption_reset += 1;
            self.subflows.break_off(slot, ResetReason::MIDDLEBOX_INTERFERENCE);
        }
    }
}
