//! Segments that arrive on a subflow, in the steps of RFC 9293 §3.10.7.

use anabranch_wire::{CE, Duration, Flags, Instant, SackBlock, Segment, TcpOptions};

use super::receiver::Receiver;
use super::recovery::{ProbeAnswer, Resent};
use super::scoreboard::Delivered;
use super::send_window::Announced;
use super::{CHALLENGES_PER_SECOND, MIN_MSS, Peer, Purpose, State, Subflow, SubflowEnd, Timer};
use crate::congestion::{AckSample, CongestionEvent};
use crate::platform::{Cwnd, Reduction};
use crate::view::{Phase, SubflowView};

/// What the data level says about an arriving segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    /// Bytes beyond RCV.NXT that this subflow accepts.
    pub(crate) window: u64,
    /// The window that it announces is the connection's, shared by all subflows. RFC 8684 §3.3.5.
    pub(crate) shared_window: bool,
    /// All subflows of the connection, for coupled congestion control.
    pub(crate) views: &'a [SubflowView],
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handled {
    /// It belongs to the subflow's window and its acknowledgement is valid, so what it says
    /// about the data level counts.
    pub(crate) acceptable: bool,
    /// It completed this end's handshake.
    pub(crate) established: bool,
    /// What it acknowledges, as a subflow offset.
    pub(crate) ack: u64,
}

impl Subflow {
    /// Take a segment; its payload is moved out if it is accepted.
    pub(crate) fn handle_segment(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        arrived: &Arrived<'_>,
    ) -> Handled {
        self.totals.segments_received += 1;
        self.keep_alive_probes = 0;
        let handled = match self.state {
            State::Closed => Handled::default(),
            State::SynSent => self.handle_in_syn_sent(now, segment, arrived),
            _ => self.handle_synchronised(now, segment, arrived),
        };
        self.arm_keep_alive(now);
        handled
    }

    /// Does a segment that comes during the handshake acknowledge what was never sent? The peer has
    /// a connection with these ports from before: RFC 9293 §3.10.7.3 and §3.10.7.4, SYN-RECEIVED,
    /// have it reset.
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

    fn acknowledges_syn(&self, segment: &Segment) -> bool {
        segment.header.ack == self.iss + 1
    }

    /// RFC 9293 §3.10.7.3.
    fn handle_in_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment,
        arrived: &Arrived<'_>,
    ) -> Handled {
        let flags = segment.header.flags;
        if flags.contains(Flags::ACK) && !self.acknowledges_syn(segment) {
            return Handled::default();
        }
        if flags.contains(Flags::RST) {
            if flags.contains(Flags::ACK) {
                self.close(SubflowEnd::Refused);
            }
            return Handled::default();
        }
        if !flags.contains(Flags::SYN) {
            return Handled::default();
        }
        self.take_syn(now, segment);
        if !flags.contains(Flags::ACK) {
            // Simultaneous open: both have sent a SYN.
            self.state = State::SynReceived;
            self.syn_due = true;
            self.text_of_syn = text_of_syn(segment);
            return Handled::default();
        }
        self.judge_handshake(now, &segment.options, arrived.views);
        let window = u64::from(segment.header.window);
        self.send_window.take(Announced {
            seq: 0,
            ack: 1,
            acknowledges: true,
            window,
            shared: false,
        });
        self.establish(now);
        self.text_of_syn = text_of_syn(segment);
        self.receive_text_of_syn(now, arrived.window);
        self.receiver.demand_ack();
        Handled { acceptable: true, established: true, ack: 1 }
    }

    /// What a SYN says about the peer. RFC 9293 §3.7.1, RFC 7323 §2.2 and §3.2, RFC 2018 §2.
    pub(super) fn take_syn(&mut self, now: Instant, segment: &Segment) {
        self.ecn.take_syn(segment.header.flags);
        let options = &segment.options;
        self.receiver = Receiver::new(
            segment.header.seq,
            self.config.platform.acknowledging,
            self.config.platform.opening(self.config.receive_buffer),
        );
        self.peer = Peer {
            mss: options.mss.unwrap_or(536).max(MIN_MSS),
            // RFC 7323 §2.3: larger shifts count as 14.
            window_scale: options.window_scale.map(|scale| scale.min(14)),
            sack: options.sack_permitted && self.config.tcp.sack,
            timestamps: options.timestamps.is_some() && self.config.tcp.timestamps,
        };
        self.mss = self.mss_without_options();
        if options.window_scale.is_none() {
            // RFC 7323 §1.3: scaling is used in both directions or in none.
            self.receive_scale = 0;
        }
        if let Some(timestamps) = options.timestamps {
            self.clock.begin(now, timestamps);
        }
    }

    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.una = 1;
        self.syn_due = false;
        self.timers.stop(Timer::Retransmission);
        self.rtt.reset_backoff();
        self.timeouts_in_a_row = 0;
        self.update_pacing();
        if self.purpose == Purpose::Join && !self.confirmed {
            self.timers.set(Timer::Retransmission, now + self.rtt.rto());
        }
    }

    /// RFC 9293 §3.10.7.4.
    fn handle_synchronised(
        &mut self,
        now: Instant,
        segment: &mut Segment,
        arrived: &Arrived<'_>,
    ) -> Handled {
        let mut flags = segment.header.flags;
        let mut distance = self.receiver.distance(segment.header.seq);
        let mut text_at = segment.header.seq;
        if self.opens_simultaneously(segment, distance) {
            // RFC 9293 §3.5, figure 8: both have sent a SYN, and this one acknowledges ours. It
            // lies before the window and is answered, by §3.10.7.4.
            flags = Flags(flags.0 & !Flags::SYN.0);
            (distance, text_at) = (0, segment.header.seq + 1);
            self.receiver.demand_ack();
        } else if self.state == State::SynReceived && flags.contains(Flags::SYN) && distance == -1 {
            // The SYN again: so the SYN/ACK was lost, or crossed it.
            self.ecn.take_syn(flags);
            if !self.is_old_duplicate(now, &segment.options) {
                // The answer echoes this one.
                self.update_recent_timestamp(now, distance, &segment.options);
            }
            self.syn_due = true;
            return Handled::default();
        }
        // First, sequence number and timestamps; second, RST.
        if flags.contains(Flags::RST) {
            self.handle_reset(now, distance, arrived.window);
            return Handled::default();
        }
        if self.lacks_timestamp(&segment.options) {
            return Handled::default();
        }
        if self.is_old_duplicate(now, &segment.options)
            || !self.is_in_window(distance, segment, arrived.window)
        {
            self.refuse(now, distance, segment, arrived.window);
            return Handled::default();
        }
        // Fourth, SYN. RFC 5961 §4.2: never believed, answered with a challenge.
        if flags.contains(Flags::SYN) {
            self.challenge(now);
            return Handled::default();
        }
        // Fifth, ACK.
        if !flags.contains(Flags::ACK) {
            return Handled::default();
        }
        let ack = self.una as i64 + i64::from(segment.header.ack.distance_from(self.snd_una()));
        if self.state == State::SynReceived && ack != self.nxt as i64 {
            // RFC 9293 §3.10.7.4: only an acknowledgement of the SYN/ACK opens the connection; the
            // endpoint has answered others.
            return Handled::default();
        }
        let oldest = self.una as i64 - self.send_window.largest().max(u64::from(u16::MAX)) as i64;
        if ack > self.nxt as i64 || ack < oldest {
            // RFC 5961 §5.2
            self.challenge(now);
            return Handled::default();
        }
        let ack = ack.max(0) as u64;
        self.answered = true;
        let same_window = self.take_window(now, distance, ack, segment, arrived.shared_window);
        let established = self.complete_handshake(now, &segment.options, arrived.views);
        if std::mem::take(&mut self.doubted) {
            self.timers.stop(Timer::Doubt);
        }
        self.repeat_priority(now, segment);
        self.update_recent_timestamp(now, distance, &segment.options);
        self.process_ack(now, ack, same_window, segment, arrived.views);
        // Seventh, the text; eighth, FIN.
        let queued = established && self.receive_text_of_syn(now, arrived.window);
        let distance = if queued { self.receiver.distance(text_at) } else { distance };
        self.receive(now, distance, segment, arrived.window);
        self.advance_close(now);
        Handled { acceptable: true, established, ack }
    }

    /// Is it the SYN/ACK of a peer that has opened the connection at the same time?
    fn opens_simultaneously(&self, segment: &Segment, distance: i64) -> bool {
        self.state == State::SynReceived
            && self.active
            && segment.header.flags.contains(Flags::SYN | Flags::ACK)
            && !segment.header.flags.contains(Flags::RST)
            && distance == -1
    }

    /// Returns false if the segment announces another window: TCP's has changed, or the shared one
    /// of Multipath TCP, which shrinks with each DATA_ACK, has grown.
    #[inline(always)]
    fn take_window(
        &mut self,
        now: Instant,
        distance: i64,
        ack: u64,
        segment: &Segment,
        shared: bool,
    ) -> bool {
        let before = self.send_window.announced();
        if ack >= self.una {
            let refused = self.recovery.phase() == Phase::Loss && self.is_refused();
            let seq = (self.receiver.nxt() as i64 + distance).max(0) as u64;
            let window = self.announced_window(segment);
            let acknowledges = ack > self.una;
            self.send_window.take(Announced { seq, ack, acknowledges, window, shared });
            if refused && !self.is_refused() {
                self.on_window_opened(now);
            }
        }
        let after = self.send_window.announced();
        if shared { after <= before } else { after == before }
    }

    /// The peer refused the retransmissions that probed its window: retransmit now, whatever the
    /// timer.
    #[cold]
    fn on_window_opened(&mut self, now: Instant) {
        self.board.mark_all_lost();
        self.rtt.reset_backoff();
        self.timers.set(Timer::Retransmission, now + self.rtt.rto());
    }

    fn complete_handshake(
        &mut self,
        now: Instant,
        options: &TcpOptions,
        views: &[SubflowView],
    ) -> bool {
        let established = self.state == State::SynReceived;
        if established {
            self.confirmed = true;
            self.judge_handshake(now, options, views);
            self.establish(now);
            if options.control.is_some() {
                // RFC 8684 §3.2: the initiator may not send on a joined subflow before this ACK. On
                // the first subflow the ACK is ours. It brings the first data sequence signal.
                // Without one, a bare acknowledgement of a middlebox would mean a fallback (§3.7).
                self.receiver.demand_ack();
            }
        } else if self.purpose == Purpose::Join && !self.confirmed {
            self.confirmed = true;
            self.timeouts_in_a_row = 0;
            if self.board.is_empty() {
                self.timers.stop(Timer::Retransmission);
            }
        }
        established
    }

    /// Data that comes on a subflow which the peer was asked to leave alone, two round trips later:
    /// the MP_PRIO may have been lost, as it is not acknowledged. RFC 8684 §3.3.8.
    fn repeat_priority(&mut self, now: Instant, segment: &Segment) {
        let pause = self.rtt.srtt().unwrap_or(Duration::from_secs(1)) * 2;
        if self.priority.signalled
            && !segment.payload.is_empty()
            && now.saturating_since(self.priority_sent) > pause
        {
            self.signal_priority(true);
        }
    }

    /// RFC 5961 §3.2: RST counts at exactly RCV.NXT; elsewhere in the window it is challenged.
    fn handle_reset(&mut self, now: Instant, distance: i64, window: u64) {
        if distance == 0 {
            // RFC 9293 §3.10.7.4: in SYN-RECEIVED an active open was refused.
            let refused = self.active && self.state == State::SynReceived;
            self.close(if refused { SubflowEnd::Refused } else { SubflowEnd::Reset });
        } else if distance > 0 && (distance as u64) < window {
            self.challenge(now);
        }
    }

    /// RFC 7323 §5.3: protection against wrapped sequence numbers.
    fn is_old_duplicate(&self, now: Instant, options: &TcpOptions) -> bool {
        let timestamps = options.timestamps.filter(|_| self.peer.timestamps);
        timestamps.is_some_and(|timestamps| self.clock.is_old(now, timestamps))
    }

    /// RFC 7323 §3.2: a segment without the timestamps that were agreed.
    fn lacks_timestamp(&self, options: &TcpOptions) -> bool {
        options.timestamps.is_none()
            && self.peer.timestamps
            && self.config.platform.requires_timestamps
    }

    /// RFC 9293 §3.10.7.4, the four cases of the acceptability test.
    fn is_in_window(&self, distance: i64, segment: &Segment, window: u64) -> bool {
        let fin = segment.header.flags.contains(Flags::FIN);
        let len = segment.payload.len() as i64 + i64::from(fin);
        let window = i64::try_from(window).unwrap_or(i64::MAX);
        match (len, window) {
            (_, 0) => distance == 0,
            (0, _) => (0..window).contains(&distance),
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
                self.receiver.receive(now, distance, payload, false, window);
            }
            self.receiver.demand_ack();
        }
    }

    /// RFC 5961 §7: challenge ACKs are limited, per subflow so that nobody can read another
    /// connection's state from the rate (CVE-2016-5696).
    fn challenge(&mut self, now: Instant) {
        let (since, sent) = self.challenges;
        if now.saturating_since(since) >= Duration::from_secs(1) {
            self.challenges = (now, 0);
        } else if sent >= CHALLENGES_PER_SECOND {
            return;
        }
        self.challenges.1 += 1;
        self.totals.challenge_acks += 1;
        self.receiver.demand_ack();
    }

    fn update_recent_timestamp(&mut self, now: Instant, distance: i64, options: &TcpOptions) {
        if let Some(timestamps) = options.timestamps.filter(|_| self.peer.timestamps) {
            self.clock.take(now, self.receiver.nxt() as i64 + distance, timestamps);
        }
    }

    fn process_ack(
        &mut self,
        now: Instant,
        ack: u64,
        same_window: bool,
        segment: &Segment,
        views: &[SubflowView],
    ) {
        if ack == self.una && self.expects_no_acknowledgement(segment) {
            return self.update_pacing();
        }
        let flight_before = self.bytes_in_flight();
        let advanced = ack > self.una;
        let acked = ack.saturating_sub(self.una);
        let duplicate_reported = self.take_duplicate_report(ack, segment.options.sack.as_slice());
        let tally = self.take_acknowledged(now, ack, segment);
        let mss = u64::from(self.mss());
        let mut delivered = tally.delivered;
        if advanced {
            self.timeouts_in_a_row = 0;
            self.rtt.reset_backoff();
            delivered = delivered.saturating_sub(self.recovery.on_advance(ack, acked, mss));
            if !self.peer.sack {
                self.recovery.on_partial_ack(ack, &mut self.board);
            }
        } else if !self.peer.sack
            && same_window
            && ack == self.una
            && self.is_duplicate_ack(segment)
        {
            delivered = self.recovery.on_duplicate_ack(ack, &mut self.board, mss);
        }
        let echo_counts = advanced && !duplicate_reported;
        self.take_round_trip(now, &tally, echo_counts, segment);
        let timestamps = segment.options.timestamps.filter(|_| self.peer.timestamps);
        // The newest segment is what made the peer acknowledge, unless its timer did.
        let newest = tally.clean.map(|(_, newest)| self.clock.value(newest));
        self.one_way_delay = timestamps
            .zip(newest.filter(|_| echo_counts && !tally.retransmitted))
            .map(|(timestamps, sent)| timestamps.value.wrapping_sub(sent) as i32);
        let echo = timestamps.map(|timestamps| timestamps.echo);
        if self.recovery.is_spurious(self.una, echo) {
            self.board.undo_losses();
            self.notify(&CongestionEvent::Undo, views);
            self.totals.undone += 1;
        }
        if tally.delivered > 0 {
            self.detect_losses(now, views);
        }
        let answer = ProbeAnswer {
            una: self.una,
            duplicate_reported,
            plain_duplicate: !advanced && segment.options.sack.is_empty(),
        };
        if self.recovery.probe_repaired_loss(&answer) {
            self.reduce(now, views);
        }
        self.respond_to_losses(now, views);
        // RFC 5681 §3.1: after a timeout every acknowledgement of new data lets the window grow.
        let fast = self.recovery.phase() == Phase::Recovery;
        let recovered = self.recovery.leave_if_done(self.una) && fast;
        let echoed = segment.header.flags.contains(Flags::ECE) && self.ecn.is_agreed();
        if self.recovery.phase() == Phase::Recovery {
            let ssthresh = self.congestion_control.ssthresh();
            self.recovery.on_progress(delivered, self.bytes_in_flight(), ssthresh, mss);
        } else if echoed {
            // RFC 3168 §6.1.2: the window does not grow, whether the echo is news or not.
            self.respond_to_echo(now, acked, views);
        } else if !recovered && advanced {
            self.grow(now, acked, flight_before, &tally, views);
        }
        self.update_pacing();
        if advanced || tally.delivered > 0 {
            self.arm_after_ack(now);
        }
        if self.ecn.is_holding() && self.timers.get(Timer::Retransmission).is_none() {
            self.timers.set(Timer::Retransmission, now + self.rtt.rto());
        }
    }

    /// Is nothing outstanding or in doubt, and nothing said about it? This is the common case of a
    /// host that only receives.
    fn expects_no_acknowledgement(&self, segment: &Segment) -> bool {
        self.board.is_empty()
            && self.recovery.is_settled()
            && segment.options.sack.is_empty()
            && !segment.header.flags.contains(Flags::ECE)
    }

    /// RFC 3168 §6.1.2: marks slow the sender down as a loss does, but nothing is sent again. The
    /// echo came with an acknowledgement of `acked` bytes, which were outstanding until then.
    fn respond_to_echo(&mut self, now: Instant, acked: u64, views: &[SubflowView]) {
        self.totals.ece_received += 1;
        if self.recovery.phase() != Phase::Open || !self.ecn.is_news(self.una) {
            return;
        }
        if self.congestion_control.cwnd() < 2 * u64::from(self.mss()) {
            // A window of one segment.
            self.ecn.hold();
        }
        let flight_size = self.flight_size(acked);
        self.notify(&CongestionEvent::Marked { now, flight_size }, views);
        self.ecn.on_marks(self.nxt);
        self.recovery.on_congestion(self.una);
        self.totals.ecn_reductions += 1;
    }

    /// RFC 2883 §4: does the first block report something that had arrived before?
    fn take_duplicate_report(&mut self, ack: u64, blocks: &[SackBlock]) -> bool {
        let Some(first) = blocks.first().filter(|_| self.peer.sack) else { return false };
        let (start, end) = self.block_offsets(first);
        let below = end <= ack as i64;
        let inside = blocks.get(1).is_some_and(|second| {
            let (outer_start, outer_end) = self.block_offsets(second);
            outer_start <= start && end <= outer_end
        });
        let reported = start < end && (below || inside);
        if reported {
            self.recovery.on_duplicate_report(end, self.una, self.nxt);
        }
        reported
    }

    /// Take what is newly acknowledged off the scoreboard.
    fn take_acknowledged(&mut self, now: Instant, ack: u64, segment: &Segment) -> Tally {
        let mut tally = Tally::default();
        let min_rtt = self.rtt.min_rtt();
        if ack > self.una {
            let Subflow { board, recovery, .. } = self;
            board.acknowledge(ack, |record| {
                recovery.on_delivered(now, &record, min_rtt);
                tally.add(&record);
            });
            self.una = ack;
        }
        if self.peer.sack {
            for block in segment.options.sack.as_slice() {
                let (start, end) = self.block_offsets(block);
                // RFC 2018 §5.1, RFC 5961: blocks outside of what is outstanding say nothing.
                if start >= self.una as i64 && end <= self.nxt as i64 {
                    let Subflow { board, recovery, .. } = self;
                    board.sack(start as u64, end as u64, |record| {
                        recovery.on_delivered(now, &record, min_rtt);
                        tally.add(&record);
                    });
                }
            }
        }
        tally
    }

    fn block_offsets(&self, block: &SackBlock) -> (i64, i64) {
        let offset = |seq: anabranch_wire::SeqNumber| {
            self.una as i64 + i64::from(seq.distance_from(self.snd_una()))
        };
        (offset(block.start), offset(block.end))
    }

    /// RFC 5681 §2: no payload, nothing new, and something outstanding. The caller has compared the
    /// windows. RFC 8684 §3 and §4: a segment that exists for its options is no duplicate ACK.
    fn is_duplicate_ack(&self, segment: &Segment) -> bool {
        segment.payload.is_empty()
            && segment.options.control.is_none()
            && !segment.header.flags.intersects(Flags::SYN | Flags::FIN)
            && !self.board.is_empty()
    }

    /// RFC 6298 §3 (Karn): segments sent more than once give no sample, but the echo of a
    /// timestamp does, RFC 7323 §4.1, unless the acknowledgement answers a duplicate: that one's
    /// timestamp is not what it echoes.
    fn take_round_trip(
        &mut self,
        now: Instant,
        tally: &Tally,
        echo_counts: bool,
        segment: &Segment,
    ) {
        if let Some((oldest, newest)) = tally.clean.filter(|_| !tally.retransmitted) {
            self.rtt.update(now.saturating_since(oldest), now.saturating_since(newest));
        } else if echo_counts
            && self.peer.timestamps
            && let Some(timestamps) = segment.options.timestamps
            && let Some(rtt) = self.clock.since_echo(now, timestamps)
        {
            self.rtt.update(rtt, rtt);
        }
    }

    /// What an answered SYN says about the path. Of one that was sent again, when the last was
    /// answered (RFC 6298 §3, RFC 7323 §4.1): an older echo is that of a SYN that came late, or of
    /// one whose answer was lost.
    fn judge_handshake(&mut self, now: Instant, options: &TcpOptions, views: &[SubflowView]) {
        let echo = options.timestamps.filter(|_| self.peer.timestamps).map(|t| t.echo);
        let is_answered =
            |sent: &_| self.syn_transmissions == 1 || echo == Some(self.clock.value(*sent));
        if let Some(sent) = self.syn_sent.filter(is_answered) {
            let rtt = now.saturating_since(sent);
            self.rtt.update(rtt, rtt);
        } else if self.totals.expiries > 0 {
            self.rtt.begin_without_sample();
        }
        if self.totals.expiries > self.config.platform.lost_syns_forgiven {
            self.notify(&CongestionEvent::SynLost, views);
        }
    }

    pub(super) fn detect_losses(&mut self, now: Instant, views: &[SubflowView]) {
        if !self.peer.sack {
            return;
        }
        let mss = u64::from(self.mss());
        match self.recovery.detect(now, &mut self.board, &self.rtt, mss) {
            Some(at) => self.timers.set(Timer::Reordering, at),
            None => self.timers.stop(Timer::Reordering),
        }
        self.respond_to_losses(now, views);
    }

    /// Begin fast recovery when something was found lost. RFC 5681 §3.2, RFC 6675 §5.
    fn respond_to_losses(&mut self, now: Instant, views: &[SubflowView]) {
        if self.recovery.phase() != Phase::Open || self.board.next_lost().is_none() {
            return;
        }
        let flight = self.nxt - self.una;
        let (segments, oldest) = self.board.resent_in_flight();
        let oldest = oldest.map(|at| self.clock.value(at));
        self.recovery.enter_recovery(self.una, self.nxt, flight, Resent { segments, oldest });
        self.reduce(now, views);
        let ssthresh = self.congestion_control.ssthresh();
        let mss = u64::from(self.mss());
        self.recovery.on_progress(0, self.bytes_in_flight(), ssthresh, mss);
        self.totals.recoveries += 1;
        self.timers.stop(Timer::TailLossProbe);
    }

    fn reduce(&mut self, now: Instant, views: &[SubflowView]) {
        if self.ecn.was_reduced_since(self.una) {
            return;
        }
        let flight_size = self.flight_size(0);
        self.notify(&CongestionEvent::Recovery { now, flight_size }, views);
        self.ecn.on_reduction(self.nxt);
    }

    /// What a reduction starts from: bytes outstanding until `acked` of them were acknowledged, or
    /// the window. RFC 5681 §3.2: what limited transmit has sent does not count.
    fn flight_size(&self, acked: u64) -> u64 {
        let cwnd = self.congestion_control.cwnd();
        match self.config.platform.reduction {
            Reduction::Cwnd => cwnd,
            Reduction::Flight => (self.nxt - self.una + acked).min(cwnd),
        }
    }

    fn grow(
        &mut self,
        now: Instant,
        acked: u64,
        flight_before: u64,
        tally: &Tally,
        views: &[SubflowView],
    ) {
        let bytes = self.congestion_control.cwnd();
        let full = flight_before + u64::from(self.mss()) > bytes;
        let slow_start = bytes < self.congestion_control.ssthresh();
        let sample = AckSample {
            now,
            acked,
            rtt: tally.clean.map(|(_, newest)| now.saturating_since(newest)),
            srtt: self.rtt.srtt().unwrap_or(self.rtt.rto()),
            bytes_in_flight: self.bytes_in_flight(),
            snd_una: self.una,
            snd_nxt: self.nxt,
            cwnd_limited: self.cwnd_usage.limits(Cwnd { bytes, full, slow_start }),
        };
        self.congestion_control.on_ack(&sample, usize::from(self.id.slot), views);
    }

    /// RFC 6298 §5.2, §5.3.
    fn arm_after_ack(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmission);
            self.timers.stop(Timer::TailLossProbe);
            self.timers.stop(Timer::Reordering);
            self.timers.stop(Timer::UserTimeout);
            self.tail_probe_due = false;
        } else {
            self.timers.set(Timer::Retransmission, now + self.rtt.rto());
            if let Some(timeout) = self.config.tcp.user_timeout {
                self.timers.set(Timer::UserTimeout, now + timeout);
            }
            self.arm_tail_loss_probe(now);
        }
    }

    /// RFC 9293 §3.10.7.3: what came with the SYN is taken when the subflow is established.
    fn receive_text_of_syn(&mut self, now: Instant, window: u64) -> bool {
        let Some(mut segment) = self.text_of_syn.take() else { return false };
        self.receive(now, 0, &mut segment, window);
        self.advance_close(now);
        true
    }

    fn receive(&mut self, now: Instant, distance: i64, segment: &mut Segment, window: u64) {
        let fin = segment.header.flags.contains(Flags::FIN);
        let payload = std::mem::take(&mut segment.payload);
        if payload.is_empty() && !fin {
            return;
        }
        self.take_receive_rtt(now, payload.len(), &segment.options);
        if segment.ecn == CE || segment.header.flags.contains(Flags::CWR) {
            self.take_mark(segment);
        }
        let (before, finished) = (self.receiver.nxt(), self.receiver.finished());
        let waiting = self.receiver.ack_is_delayed();
        self.receiver.receive(now, distance, payload, fin, window);
        // The FIN has a number and is no byte.
        let end = self.receiver.nxt() - u64::from(self.receiver.finished() && !finished);
        self.totals.bytes_received += end - before;
        if self.receiver.ack_is_delayed() && !waiting {
            self.timers.set(Timer::DelayedAck, self.receiver.ack_deadline(now));
        }
    }

    /// RFC 3168 §6.1.5: only data within the window counts. The sender hears of a mark at
    /// once, not after a delayed acknowledgement.
    fn take_mark(&mut self, segment: &Segment) {
        let marked = segment.ecn == CE;
        self.totals.ce_received += u64::from(marked);
        if self.ecn.take_mark(segment.header.flags, marked) {
            self.receiver.demand_ack();
        }
    }

    fn take_receive_rtt(&mut self, now: Instant, bytes: usize, options: &TcpOptions) {
        if let Some(timestamps) = options.timestamps.filter(|_| self.peer.timestamps) {
            let full = 2 * bytes as u64 >= u64::from(self.mss());
            self.clock.take_receive_rtt(now, timestamps, full);
        }
    }

    /// State changes by FINs sent, acknowledged and received. RFC 9293 §3.6.
    fn advance_close(&mut self, now: Instant) {
        let ours_acknowledged = self.fin_sent && self.una == self.nxt;
        let theirs_arrived = self.receiver.finished();
        let state = match (self.state, ours_acknowledged, theirs_arrived) {
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
            self.timers.set(Timer::TimeWait, now + self.config.tcp.time_wait);
        }
        if state == State::FinWait2 && self.state != State::FinWait2 && self.peer_is_done {
            // Nothing is waited for but a FIN, which a dead path may never bring.
            self.timers.set(Timer::TimeWait, now + self.config.tcp.time_wait);
        }
        self.state = state;
    }

    fn arm_keep_alive(&mut self, now: Instant) {
        if let Some(idle) = self.config.tcp.keep_alive
            && self.is_established()
            && self.state != State::TimeWait
        {
            self.timers.set(Timer::KeepAlive, now + idle);
        }
    }

    fn snd_una(&self) -> anabranch_wire::SeqNumber {
        self.iss + self.una as u32
    }
}

/// A SYN with text or a FIN, to be taken later. Not one of Multipath TCP: there is no mapping for
/// its text, which the peer will send again.
fn text_of_syn(syn: &Segment) -> Option<Box<Segment>> {
    let text = !syn.payload.is_empty() || syn.header.flags.contains(Flags::FIN);
    (text && syn.options.control.is_none()).then(|| Box::new(syn.clone()))
}

/// What one acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    delivered: u64,
    /// Transmission times of the oldest and the newest record sent only once.
    clean: Option<(Instant, Instant)>,
    /// Some of it had been sent more than once, so that nobody knows which copy arrived.
    retransmitted: bool,
}

impl Tally {
    fn add(&mut self, record: &Delivered) {
        self.delivered += record.len;
        self.retransmitted |= record.retransmitted;
        if !record.retransmitted {
            let (oldest, newest) = self.clean.unwrap_or((record.sent_at, record.sent_at));
            self.clean = Some((oldest.min(record.sent_at), newest.max(record.sent_at)));
        }
    }
}
