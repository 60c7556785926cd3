//! Segments that arrive on a subflow, in the steps of RFC 9293 §3.10.7.

use anabranch_wire::{CE, Duration, Flags, Instant, Segment, SeqNumber, TcpOptions};

use super::receiver::{ArrivalOrder, Receiver};
use super::send_window::Advertised;
use super::{MIN_MSS, Peer, State, Subflow, SubflowEnd, SubflowTimer};
use crate::config::Protocol;
use crate::congestion::CongestionEvent;
use crate::view::{RecoveryPhase, SubflowView};

const LARGEST_UNSCALED_WINDOW: u32 = u16::MAX as u32;

/// Data-level information about an arriving segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxContext<'a> {
    /// Bytes beyond RCV.NXT that this subflow accepts.
    pub(crate) window: u64,
    /// The window that it advertises is the connection's, shared by all subflows. RFC 8684 §3.3.5.
    pub(crate) shared_window: bool,
    /// All subflows of the connection, for coupled congestion control.
    pub(crate) views: &'a [SubflowView],
}

/// Outcome of processing a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RxOutcome {
    /// It belongs to the subflow's window and its acknowledgement is valid, so its information
    /// about the data level counts.
    pub(crate) acceptable: bool,
    /// It completed this end's handshake.
    pub(crate) established: bool,
    /// Acknowledged data, as a subflow offset.
    pub(crate) ack: u64,
}

impl Subflow {
    /// Handle a segment; its payload is moved out if it is accepted.
    pub(crate) fn handle_segment(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        arrived: &RxContext<'_>,
    ) -> RxOutcome {
        self.totals.segments_received += 1;
        self.liveness.on_segment();
        let handled = match self.state {
            State::Closed => RxOutcome::default(),
            State::SynSent => self.handle_in_syn_sent(now, segment, arrived),
            _ => self.handle_synchronised(now, segment, arrived),
        };
        self.arm_keep_alive(now);
        handled
    }

    /// Returns `true` if a segment that arrives during the handshake acknowledges data that was
    /// never sent. The peer has a connection with these ports from before: RFC 9293 §3.10.7.3 and
    /// §3.10.7.4, SYN-RECEIVED, have it reset.
    pub(crate) fn is_about_another(&self, segment: &Segment, window: u64) -> bool {
        let flags = segment.header.flags;
        let acceptable = self.state == State::SynSent || {
            let distance = self.receiver.distance(segment.header.seq);
            !flags.contains(Flags::SYN)
                && !self.lacks_timestamp(&segment.options)
                && self.is_in_window(distance, segment, window)
        };
        acceptable
            && flags.contains(Flags::ACK)
            && !flags.contains(Flags::RST)
            && !self.acknowledges_syn(segment)
    }

    /// End a subflow in TIME-WAIT if a SYN opens a new connection between its ports, and return a
    /// sequence number larger than all that the subflow has used. The SYN is newer than the subflow by
    /// its sequence number or its timestamp. RFC 9293 §3.6.1 (MAY-2). Linux:
    /// `tcp_timewait_state_process`.
    pub(crate) fn give_way(&mut self, now: Instant, syn: &Segment) -> Option<SeqNumber> {
        let Segment { header, options, .. } = syn;
        let newer = self.receiver.distance(header.seq) > 0
            || (options.timestamps.filter(|_| self.peer.timestamps))
                .is_some_and(|timestamps| self.clock.is_newer(timestamps));
        let opens = self.state == State::TimeWait
            && header.flags.contains(Flags::SYN)
            && !header.flags.intersects(Flags::ACK | Flags::RST)
            && !self.is_old_duplicate(now, options)
            && newer;
        if !opens {
            return None;
        }
        self.close(SubflowEnd::Finished);
        Some(self.iss + (self.nxt as u32).wrapping_add(LARGEST_UNSCALED_WINDOW + 2))
    }

    /// Returns `true` if the segment acknowledges the SYN, and not more than was sent.
    fn acknowledges_syn(&self, segment: &Segment) -> bool {
        self.acknowledged_beyond_syn(segment).is_some()
    }

    /// Bytes beyond the SYN that the segment acknowledges: those of the SYN's own data, or those that
    /// followed the SYN/ACK. RFC 7413 §4.2.2.
    fn acknowledged_beyond_syn(&self, segment: &Segment) -> Option<u64> {
        let sent = self.handshake.data_in_syn().max(self.nxt.saturating_sub(1));
        let beyond = segment.header.ack.distance_from(self.iss + 1);
        u64::try_from(beyond).ok().filter(|beyond| *beyond <= sent)
    }

    /// RFC 9293 §3.10.7.3.
    fn handle_in_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment,
        arrived: &RxContext<'_>,
    ) -> RxOutcome {
        let flags = segment.header.flags;
        let taken = self.acknowledged_beyond_syn(segment);
        if flags.contains(Flags::ACK) && taken.is_none() {
            return RxOutcome::default();
        }
        if flags.contains(Flags::RST) {
            if flags.contains(Flags::ACK) {
                self.close(SubflowEnd::Refused);
            }
            return RxOutcome::default();
        }
        if !flags.contains(Flags::SYN) {
            return RxOutcome::default();
        }
        self.handle_syn(now, segment);
        if !flags.contains(Flags::ACK) {
            // Simultaneous open: both have sent a SYN.
            self.state = State::SynReceived;
            self.handshake.demand_syn();
            self.handshake.keep_payload(segment);
            return RxOutcome::default();
        }
        self.judge_handshake(now, &segment.options, arrived.views);
        let taken = taken.unwrap_or(0);
        self.apply_syn_window(segment, 1 + taken);
        self.establish(now);
        (self.una, self.nxt) = (1 + taken, 1 + taken);
        self.totals.bytes_sent += taken;
        self.handshake.keep_payload(segment);
        self.receive_kept_syn(now, arrived.window);
        self.receiver.demand_ack();
        RxOutcome { acceptable: true, established: true, ack: 1 + taken }
    }

    /// Apply the peer's parameters in a SYN. RFC 9293 §3.7.1, RFC 7323 §2.2 and §3.2, RFC 2018 §2.
    pub(super) fn handle_syn(&mut self, now: Instant, segment: &Segment) {
        self.ecn.on_syn(segment.header.flags);
        let options = &segment.options;
        self.peer = Peer {
            mss: options.mss.unwrap_or(536).max(MIN_MSS),
            // RFC 7323 §2.3: larger shifts count as 14.
            window_scale: options.window_scale.map(|scale| scale.min(14)),
            sack: options.sack_permitted && self.config.tcp.sack,
            timestamps: options.timestamps.is_some() && self.config.tcp.timestamps,
        };
        let platform = &self.config.platform;
        let is_tcp = self.config.protocol == Protocol::Tcp;
        let opening = platform.buffers.opening(self.config.receive_buffer, self.own_mss(), is_tcp);
        self.receiver = Receiver::new(segment.header.seq, platform.acknowledging, opening);
        self.mss = self.mss_without_options();
        if options.window_scale.is_none() {
            // RFC 7323 §1.3: scaling is used in both directions or in none.
            self.offered.stop_scaling();
        }
        if let Some(timestamps) = options.timestamps {
            self.clock.begin(now, timestamps);
        }
    }

    /// Apply the window of a SYN, which begins at the offset `from`.
    fn apply_syn_window(&mut self, segment: &Segment, from: u64) {
        let window = u64::from(segment.header.window);
        self.send_window.update(Advertised {
            seq: 0,
            ack: from,
            acknowledges: true,
            window,
            shared: false,
        });
    }

    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.una = 1;
        self.handshake.end_syns();
        self.timers.stop(SubflowTimer::Retransmission);
        self.rtt.reset_backoff();
        self.liveness.on_progress();
        self.update_pacing();
        if self.awaits_confirmation() || !self.board.is_empty() {
            self.arm_retransmission(now);
        }
    }

    /// RFC 9293 §3.10.7.4.
    fn handle_synchronised(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        arrived: &RxContext<'_>,
    ) -> RxOutcome {
        let mut flags = segment.header.flags;
        let mut distance = self.receiver.distance(segment.header.seq);
        let mut text_at = segment.header.seq;
        if self.opens_simultaneously(segment, distance) {
            // RFC 9293 §3.5, figure 8: both have sent a SYN, and this one acknowledges this host's.
            // It lies before the window and is answered, by §3.10.7.4.
            flags = Flags(flags.0 & !Flags::SYN.0);
            (distance, text_at) = (0, segment.header.seq + 1);
            self.receiver.demand_ack();
        } else if self.state == State::SynReceived
            && flags.contains(Flags::SYN)
            && distance == -(self.receiver.nxt() as i64)
        {
            self.handle_repeated_syn(now, distance, segment);
            return RxOutcome::default();
        }
        if !self.passes_first_steps(now, flags, distance, segment, arrived.window) {
            return RxOutcome::default();
        }
        let Some(ack) = self.acceptable_ack(now, segment) else { return RxOutcome::default() };
        let same_window = self.update_window(now, distance, ack, segment, arrived.shared_window);
        let established = self.complete_handshake(now, &segment.options, arrived.views);
        if self.liveness.on_answer() {
            self.timers.stop(SubflowTimer::Verification);
        }
        self.repeat_priority(now, segment);
        self.update_recent_timestamp(now, distance, &segment.options);
        self.process_ack(now, ack, same_window, segment, arrived.views);
        // Seventh, the text; eighth, FIN.
        let queued = established && self.receive_kept_syn(now, arrived.window);
        let distance = if queued { self.receiver.distance(text_at) } else { distance };
        self.receive(now, distance, segment, arrived.window);
        self.advance_close(now);
        RxOutcome { acceptable: true, established, ack }
    }

    /// Handle a repeated SYN: the SYN/ACK was lost, or crossed it.
    fn handle_repeated_syn(&mut self, now: Instant, distance: i64, segment: &Segment) {
        self.ecn.on_syn(segment.header.flags);
        if !self.is_old_duplicate(now, &segment.options) {
            // The answer echoes this one.
            self.update_recent_timestamp(now, distance, &segment.options);
        }
        self.handshake.demand_syn();
    }

    /// Process the first four steps of RFC 9293 §3.10.7.4. `flags` are the segment's, without the
    /// SYN of a simultaneous open. Returns `false` if nothing more of the segment is processed.
    #[inline]
    fn passes_first_steps(
        &mut self,
        now: Instant,
        flags: Flags,
        distance: i64,
        segment: &mut Segment,
        window: u64,
    ) -> bool {
        // First, sequence number and timestamps; second, RST.
        if flags.contains(Flags::RST) {
            self.handle_reset(now, distance, window);
            return false;
        }
        if self.lacks_timestamp(&segment.options) {
            return false;
        }
        if self.is_old_duplicate(now, &segment.options)
            || !self.is_in_window(distance, segment, window)
        {
            self.refuse(now, distance, segment, window);
            if self.state == State::TimeWait {
                // The peer repeats its FIN, so it lacks the acknowledgement.
                self.timers.set(SubflowTimer::TimeWait, now + self.config.tcp.time_wait);
            }
            return false;
        }
        // Fourth, SYN. RFC 5961 §4.2: never believed, answered with a challenge.
        if flags.contains(Flags::SYN) {
            self.challenge(now);
            return false;
        }
        true
    }

    /// The fifth step: the acknowledgement, if the segment has one that is acceptable.
    #[inline]
    fn acceptable_ack(&mut self, now: Instant, segment: &Segment) -> Option<u64> {
        if !segment.header.flags.contains(Flags::ACK) {
            return None;
        }
        let ack = self.una as i64 + i64::from(segment.header.ack.distance_from(self.snd_una()));
        if self.state == State::SynReceived && !(1..=self.nxt as i64).contains(&ack) {
            // RFC 9293 §3.10.7.4: only an acknowledgement of the SYN/ACK opens the connection; the
            // endpoint has answered others.
            return None;
        }
        let oldest = self.una as i64 - self.send_window.largest().max(u64::from(u16::MAX)) as i64;
        if ack > self.nxt as i64 || ack < oldest {
            // RFC 5961 §5.2
            self.challenge(now);
            return None;
        }
        Some(ack.max(0) as u64)
    }

    /// Returns `true` if it is the SYN/ACK of a peer that has opened the connection at the same
    /// time.
    fn opens_simultaneously(&self, segment: &Segment, distance: i64) -> bool {
        self.state == State::SynReceived
            && self.handshake.is_active()
            && segment.header.flags.contains(Flags::SYN | Flags::ACK)
            && !segment.header.flags.contains(Flags::RST)
            && distance == -1
    }

    /// Returns false if the segment advertises another window: TCP's has changed, or the shared one
    /// of Multipath TCP, which shrinks with each DATA_ACK, has grown.
    #[inline(always)]
    pub(super) fn update_window(
        &mut self,
        now: Instant,
        distance: i64,
        ack: u64,
        segment: &Segment,
        shared: bool,
    ) -> bool {
        let before = self.send_window.advertised();
        if ack >= self.una {
            let refused = self.recovery.phase() == RecoveryPhase::Loss && self.is_refused();
            let seq = (self.receiver.nxt() as i64 + distance).max(0) as u64;
            let window = self.advertised_window(segment);
            let acknowledges = ack > self.una;
            self.send_window.update(Advertised { seq, ack, acknowledges, window, shared });
            if refused && !self.is_refused() {
                self.on_window_opened(now);
            }
        }
        let after = self.send_window.advertised();
        if shared { after <= before } else { after == before }
    }

    /// The peer refused the retransmissions that probed its window: retransmit now, whatever the
    /// timer.
    #[cold]
    fn on_window_opened(&mut self, now: Instant) {
        self.board.mark_all_lost();
        self.rtt.reset_backoff();
        self.arm_retransmission(now);
    }

    fn complete_handshake(
        &mut self,
        now: Instant,
        options: &TcpOptions,
        views: &[SubflowView],
    ) -> bool {
        let established = self.state == State::SynReceived;
        if established {
            self.handshake.confirm();
            self.judge_handshake(now, options, views);
            self.establish(now);
            let is_join = self.identity.purpose == super::Purpose::Join;
            if options.control.is_some() && (is_join || self.config.platform.acknowledges_third_ack)
            {
                // RFC 8684 §3.2: the initiator may not send on a joined subflow before this ACK. On
                // the first subflow this host sends the ACK. It brings the first data sequence
                // signal. Without one, a bare acknowledgement of a middlebox would mean a fallback
                // (§3.7).
                self.receiver.demand_ack();
            }
        } else if self.awaits_confirmation() {
            self.handshake.confirm();
            self.liveness.on_progress();
            if self.board.is_empty() {
                self.timers.stop(SubflowTimer::Retransmission);
            }
        }
        established
    }

    /// Data that comes on a subflow which the peer was asked to leave alone, two round trips later:
    /// the MP_PRIO may have been lost, as it is not acknowledged. RFC 8684 §3.3.8.
    fn repeat_priority(&mut self, now: Instant, segment: &Segment) {
        let pause = self.rtt.srtt().unwrap_or(Duration::from_secs(1)) * 2;
        if self.priority.is_signalled()
            && !segment.payload.is_empty()
            && self.signals.since_priority(now) > pause
        {
            self.signal_priority(true);
        }
    }

    /// RFC 5961 §3.2: RST counts at exactly RCV.NXT; elsewhere in the window it is challenged.
    fn handle_reset(&mut self, now: Instant, distance: i64, window: u64) {
        if distance == 0 {
            // RFC 9293 §3.10.7.4: in SYN-RECEIVED an active open was refused.
            let refused = self.handshake.is_active() && self.state == State::SynReceived;
            self.close(if refused { SubflowEnd::Refused } else { SubflowEnd::Reset });
        } else if distance > 0 && (distance as u64) < window {
            self.challenge(now);
        }
    }

    /// Returns `true` if the subflow will accept the segment with its acknowledgement. RFC 9293
    /// §3.10.7.4.
    pub(crate) fn accepts(&self, now: Instant, segment: &Segment, window: u64) -> bool {
        let flags = segment.header.flags;
        let ack = i64::from(segment.header.ack.distance_from(self.snd_una()));
        self.is_established()
            && flags.contains(Flags::ACK)
            && !flags.intersects(Flags::SYN | Flags::RST)
            && !self.lacks_timestamp(&segment.options)
            && !self.is_old_duplicate(now, &segment.options)
            && self.is_in_window(self.receiver.distance(segment.header.seq), segment, window)
            && ack <= (self.nxt - self.una) as i64
            && ack >= -(self.send_window.largest().max(u64::from(u16::MAX)) as i64)
    }

    /// RFC 7323 §5.3: protection against wrapped sequence numbers.
    #[inline]
    pub(super) fn is_old_duplicate(&self, now: Instant, options: &TcpOptions) -> bool {
        let timestamps = options.timestamps.filter(|_| self.peer.timestamps);
        timestamps.is_some_and(|timestamps| self.clock.is_old(now, timestamps))
    }

    /// RFC 7323 §3.2: a segment without the timestamps that were agreed.
    fn lacks_timestamp(&self, options: &TcpOptions) -> bool {
        options.timestamps.is_none()
            && self.peer.timestamps
            && self.config.platform.requires_timestamps
    }

    /// RFC 9293 §3.10.7.4, the four cases of the acceptability test. A bare acknowledgement at the edge
    /// also counts, as in Linux (`tcp_sequence`): it comes from a peer that has filled the window. If
    /// both ends do that and lose data, no acknowledgement of either would count otherwise.
    fn is_in_window(&self, distance: i64, segment: &Segment, window: u64) -> bool {
        let fin = segment.header.flags.contains(Flags::FIN);
        let len = segment.payload.len() as i64 + i64::from(fin);
        let window = i64::try_from(window).unwrap_or(i64::MAX);
        match (len, window) {
            (_, 0) => distance == 0,
            (0, _) => (0..=window).contains(&distance),
            _ => distance < window && distance + len > 0,
        }
    }

    /// A segment outside of the window is answered with an acknowledgement, so that the peer
    /// learns where this end stands. RFC 9293 §3.10.7.4. Empty ones could answer each other for
    /// ever, so those are limited.
    fn refuse(&mut self, now: Instant, distance: i64, segment: &mut Segment, window: u64) {
        if segment.payload.is_empty() {
            self.challenge(now);
        } else {
            if distance + segment.payload.len() as i64 <= 0 {
                let payload = std::mem::take(&mut segment.payload);
                self.receiver.receive(now, distance, payload, Flags::ACK, window);
            }
            self.receiver.demand_ack();
        }
    }

    /// Send a challenge ACK, unless there were too many lately. RFC 5961 §7.
    fn challenge(&mut self, now: Instant) {
        if self.challenges.admit(now) {
            self.totals.challenge_acks += 1;
            self.receiver.demand_ack();
        }
    }

    #[inline]
    pub(super) fn update_recent_timestamp(
        &mut self,
        now: Instant,
        distance: i64,
        options: &TcpOptions,
    ) {
        if let Some(timestamps) = options.timestamps.filter(|_| self.peer.timestamps) {
            self.clock.on_timestamps(now, self.receiver.nxt() as i64 + distance, timestamps);
        }
    }

    /// Take a round-trip sample of the path from an answered SYN.
    fn judge_handshake(&mut self, now: Instant, options: &TcpOptions, views: &[SubflowView]) {
        let echo = options.timestamps.filter(|_| self.peer.timestamps).map(|t| t.echo);
        let echoes = |sent| echo == Some(self.clock.value(sent));
        if let Some(rtt) = self.handshake.rtt(now, echoes) {
            self.rtt.update(rtt, rtt);
        } else if self.totals.expiries > 0 {
            self.rtt.begin_without_sample();
        }
        if self.totals.expiries > self.config.platform.lost_syns_forgiven {
            self.notify(&CongestionEvent::SynLost, views);
        }
    }

    /// Receive the data of the SYN now, before the handshake is complete. RFC 7413 §4.2.2.
    pub(crate) fn receive_syn_data(&mut self, now: Instant, syn: &Segment, window: u64) {
        self.apply_syn_window(syn, 1);
        self.handshake.on_syn_data_received();
        self.receive(now, 0, &mut syn.clone(), window);
    }

    /// Receive the data of the SYN that was kept until the subflow is established. RFC 9293 §3.10.7.3.
    /// Returns `true` if there was any.
    fn receive_kept_syn(&mut self, now: Instant, window: u64) -> bool {
        let Some(mut segment) = self.handshake.take_payload() else { return false };
        self.receive(now, 0, &mut segment, window);
        self.advance_close(now);
        true
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        distance: i64,
        segment: &mut Segment,
        window: u64,
    ) {
        let flags = segment.header.flags;
        if segment.payload.is_empty() && !flags.contains(Flags::FIN) {
            return;
        }
        self.on_text(now, segment);
        let payload = std::mem::take(&mut segment.payload);
        let (before, finished) = (self.receiver.nxt(), self.receiver.finished());
        let waiting = self.receiver.ack_is_delayed();
        let bytes = payload.len() as u32;
        let arrival = self.receiver.receive(now, distance, payload, flags, window);
        // RFC 5681 §3.2: without selective acknowledgements, only those with equal windows count as
        // duplicates (`tcp_data_queue_ofo`).
        if arrival == ArrivalOrder::OutOfOrder && self.peer.sack {
            self.receiver.open_beyond_hole(bytes);
        }
        // The FIN has a number and is no byte.
        let end = self.receiver.nxt() - u64::from(self.receiver.finished() && !finished);
        self.totals.bytes_received += end - before;
        self.delay_ack(now, waiting);
    }

    /// A segment brings data or the end of the data.
    #[inline]
    pub(super) fn on_text(&mut self, now: Instant, segment: &Segment) {
        self.sample_receive_rtt(now, segment.payload.len(), &segment.options);
        if segment.ecn == CE || segment.header.flags.contains(Flags::CWR) {
            self.handle_ecn_mark(segment);
        }
    }

    /// Start the timer of a delayed acknowledgement, unless one was `waiting` already.
    #[inline]
    pub(super) fn delay_ack(&mut self, now: Instant, waiting: bool) {
        if self.receiver.ack_is_delayed() && !waiting {
            self.timers.set(SubflowTimer::DelayedAck, self.receiver.ack_deadline(now));
        }
    }

    /// RFC 3168 §6.1.5: only data within the window counts. The sender hears of a mark at
    /// once, not after a delayed acknowledgement.
    fn handle_ecn_mark(&mut self, segment: &Segment) {
        let marked = segment.ecn == CE;
        self.totals.ce_received += u64::from(marked);
        if self.ecn.on_mark(segment.header.flags, marked) {
            self.receiver.demand_ack();
        }
    }

    fn sample_receive_rtt(&mut self, now: Instant, bytes: usize, options: &TcpOptions) {
        if let Some(timestamps) = options.timestamps.filter(|_| self.peer.timestamps) {
            let full = 2 * bytes as u64 >= u64::from(self.mss());
            let takes_smaller = self.config.platform.takes_smaller_receive_rtt;
            self.clock.on_receive_rtt(now, timestamps, full, takes_smaller);
        }
    }

    /// State changes by FINs sent, acknowledged and received. RFC 9293 §3.6.
    fn advance_close(&mut self, now: Instant) {
        let fin_acknowledged = self.ending.has_sent_fin() && self.una == self.nxt;
        let fin_received = self.receiver.finished();
        let state = match (self.state, fin_acknowledged, fin_received) {
            (State::Established, _, true) => State::CloseWait,
            (State::FinWait1, true, true) => State::TimeWait,
            (State::FinWait1, true, false) => State::FinWait2,
            (State::FinWait1, false, true) => State::Closing,
            (State::FinWait2, _, true) | (State::Closing, true, _) => State::TimeWait,
            (State::LastAck, true, _) => return self.close(SubflowEnd::Finished),
            (state, ..) => state,
        };
        if state == State::TimeWait && self.state != State::TimeWait {
            self.timers.stop_all();
            self.timers.set(SubflowTimer::TimeWait, now + self.config.tcp.time_wait);
        }
        if state == State::FinWait2 && self.state != State::FinWait2 && self.ending.peer_is_done() {
            self.limit_fin_wait(now);
        }
        self.state = state;
    }

    fn arm_keep_alive(&mut self, now: Instant) {
        if let Some(idle) = self.config.tcp.keep_alive
            && self.is_established()
            && self.state != State::TimeWait
        {
            self.timers.set(SubflowTimer::KeepAlive, now + idle);
        }
    }

    pub(super) fn snd_una(&self) -> anabranch_wire::SeqNumber {
        self.iss + self.una as u32
    }
}
