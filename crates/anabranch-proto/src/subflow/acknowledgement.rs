//! Processing of acknowledgements: the data that they deliver, the losses that they show, and the
//! congestion window that follows.

use anabranch_wire::{Duration, Flags, Instant, SackBlock, Segment};

use super::recovery::{Judgement, ProbeAnswer, Reduced, Resent};
use super::scoreboard::Delivered;
use super::{Subflow, SubflowTimer};
use crate::congestion::{AckSample, CongestionEvent};
use crate::platform::{Counts, Cwnd, Growth, Reduction};
use crate::view::{RecoveryPhase, SubflowView};

/// Losses so far and data in flight before an acknowledgement, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeAck {
    pub(super) marked_lost: u64,
    pub(super) in_flight: u64,
}

/// Facts of an acknowledgement that decide how the congestion window changes.
struct AckFacts {
    /// Bytes that it acknowledges cumulatively.
    acked: u64,
    /// Bytes that it shows to have arrived.
    delivered: u64,
    /// The segment size before the path MTU may have changed.
    mss: u64,
    /// Bytes in flight before it.
    flight_before: u64,
    shows_loss: bool,
    /// Whether it echoes marks of ECN.
    echoed: bool,
}

impl Subflow {
    /// Process an acknowledgement up to `ack`. Returns `false` if the subflow sends nothing that it could
    /// tell about.
    pub(super) fn process_ack(
        &mut self,
        now: Instant,
        ack: u64,
        same_window: bool,
        segment: &Segment,
        views: &[SubflowView],
    ) -> bool {
        if ack == self.una && self.expects_no_acknowledgement(segment) {
            self.update_pacing();
            return false;
        }
        let flight_before = self.bytes_in_flight();
        let before = self.before_ack();
        let advanced = ack > self.una;
        let acked = ack.saturating_sub(self.una);
        let duplicate_reported = self.handle_dsack(ack, segment.options.sack.as_slice());
        let summary = self.handle_acknowledged(now, ack, segment);
        let mss = u64::from(self.mss());
        let mut delivered = summary.delivered;
        if advanced {
            delivered = delivered.saturating_sub(self.on_advance(ack, acked, mss, views));
        } else if same_window && ack == self.una && self.is_duplicate_ack(segment) {
            delivered = self.recovery.on_duplicate_ack(ack, &mut self.board, mss);
        }
        let echo_counts = advanced && !duplicate_reported;
        self.sample_rtt(now, &summary, echo_counts, segment);
        self.sample_one_way_delay(&summary, echo_counts, segment);
        let judgement = self.undo_if_spurious(segment, views);
        let awaits_retransmissions = advanced && judgement == Judgement::SpuriousOnceAllArrived;
        let detects = summary.delivered > 0 && !awaits_retransmissions;
        let shows_loss = detects && self.detect_losses(now, views);
        let answer = ProbeAnswer {
            una: self.una,
            duplicate_reported,
            plain_duplicate: !advanced && segment.options.sack.is_empty(),
        };
        if self.recovery.probe_repaired_loss(&answer) {
            self.reduce(now, views);
        }
        self.respond_to_losses(now, views);
        let echoed = segment.header.flags.contains(Flags::ECE) && self.ecn.is_agreed();
        let facts = AckFacts { acked, delivered, mss, flight_before, shows_loss, echoed };
        self.update_cwnd(now, before, &summary, &facts, views);
        self.update_pacing();
        if advanced || summary.delivered > 0 {
            self.arm_after_ack(now);
        }
        if self.ecn.is_holding() && self.timers.get(SubflowTimer::Retransmission).is_none() {
            self.arm_retransmission(now);
        }
        true
    }

    /// Update path MTU, liveness, timeout and recovery for `acked` newly acknowledged bytes up to
    /// `ack`. Returns the number of them that duplicate ACKs have counted already.
    #[inline]
    fn on_advance(&mut self, ack: u64, acked: u64, mss: u64, views: &[SubflowView]) -> u64 {
        if self.path_mtu.on_acknowledged(ack) {
            self.settle_mss(views);
        }
        self.liveness.on_progress();
        self.rtt.reset_backoff();
        let counted = self.recovery.on_advance(ack, acked, mss);
        if !self.peer.sack {
            self.recovery.on_partial_ack(ack, &mut self.board);
        }
        counted
    }

    /// Measure the one-way delay by the peer's timestamp. The newest segment is what made the peer
    /// acknowledge, unless its timer did.
    #[inline]
    fn sample_one_way_delay(&mut self, summary: &AckSummary, echo_counts: bool, segment: &Segment) {
        let newest = summary.clean.filter(|_| echo_counts && !summary.retransmitted);
        self.one_way_delay =
            segment.options.timestamps.filter(|_| self.peer.timestamps).zip(newest).map(
                |(timestamps, (_, newest))| {
                    timestamps.value.wrapping_sub(self.clock.value(newest)) as i32
                },
            );
    }

    /// Undo the last reduction if it was spurious. Returns the judgement.
    #[inline]
    fn undo_if_spurious(&mut self, segment: &Segment, views: &[SubflowView]) -> Judgement {
        let timestamps = segment.options.timestamps.filter(|_| self.peer.timestamps);
        let judgement = self.judge_reduction(timestamps.map(|timestamps| timestamps.echo));
        if judgement == Judgement::Spurious {
            self.board.undo_losses();
            self.notify(&CongestionEvent::Undo, views);
            self.totals.undone += 1;
        }
        judgement
    }

    /// Let the congestion window follow an acknowledgement, by the rule of the phase. `before` is
    /// present if congestion control models the path.
    #[inline]
    fn update_cwnd(
        &mut self,
        now: Instant,
        before: Option<BeforeAck>,
        summary: &AckSummary,
        facts: &AckFacts,
        views: &[SubflowView],
    ) {
        let &AckFacts { acked, mss, .. } = facts;
        // RFC 5681 §3.1: after a timeout every acknowledgement of new data lets the window grow.
        let fast = self.recovery.phase() == RecoveryPhase::Recovery;
        let recovered = self.recovery.leave_if_done(self.una) && fast;
        let grows = !recovered || self.config.platform.recovery.grows_at_the_end;
        let counted = self.counted_bytes(acked, summary);
        if let Some(before) = before {
            self.model(now, before, summary);
        } else if self.recovery.phase() == RecoveryPhase::Recovery {
            let ssthresh = self.congestion.ssthresh();
            let is_safe = acked > 0 && !facts.shows_loss;
            let catches_up = is_safe || !self.config.platform.recovery.catches_up_if_safe;
            let extra = if catches_up { mss } else { 0 };
            let delivered = match self.counts_segments() {
                true => summary.segments * mss,
                false => facts.delivered,
            };
            self.recovery.on_progress(delivered, self.flight(), ssthresh, mss, extra);
        } else if facts.echoed {
            // RFC 3168 §6.1.2: the window does not grow, whether the echo is news or not.
            self.respond_to_echo(now, acked, views);
        } else if grows && counted > 0 {
            self.grow(now, counted, facts.flight_before, summary, views);
        }
    }

    /// Returns `true` if nothing is outstanding or unsettled, and the segment reports nothing about
    /// it. This is the common case of a host that only receives.
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
        if self.recovery.phase() != RecoveryPhase::Open || !self.ecn.is_news(self.una) {
            return;
        }
        if self.congestion.cwnd() < 2 * u64::from(self.mss()) {
            // A window of one segment.
            self.ecn.hold();
        }
        let flight_size = self.flight_size(acked);
        self.notify(&CongestionEvent::Marked { now, flight_size }, views);
        self.ecn.on_marks(self.nxt);
        self.recovery.on_congestion(self.una);
        self.totals.ecn_reductions += 1;
    }

    /// Returns `true` if the first block reports data that had arrived before. RFC 2883 §4.
    fn handle_dsack(&mut self, ack: u64, blocks: &[SackBlock]) -> bool {
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

    /// Remove newly acknowledged data from the scoreboard.
    fn handle_acknowledged(&mut self, now: Instant, ack: u64, segment: &Segment) -> AckSummary {
        let mut summary = AckSummary::default();
        let min_rtt = self.rtt.min_rtt();
        if ack > self.una {
            let Subflow { board, recovery, congestion, .. } = self;
            let head = board.acknowledge(ack, |record| {
                recovery.on_delivered(now, &record, min_rtt);
                congestion.on_delivered(&record);
                summary.add(&record);
            });
            summary.delivered += head;
            self.una = ack;
        }
        if self.peer.sack {
            for block in segment.options.sack.as_slice() {
                let (start, end) = self.block_offsets(block);
                // RFC 2018 §5.1, RFC 5961: blocks outside of the outstanding data are ignored.
                if start >= self.una as i64 && end <= self.nxt as i64 {
                    let Subflow { board, recovery, congestion, .. } = self;
                    board.sack(start as u64, end as u64, |record| {
                        recovery.on_delivered(now, &record, min_rtt);
                        congestion.on_delivered(&record);
                        summary.add(&record);
                    });
                }
            }
        }
        summary
    }

    fn block_offsets(&self, block: &SackBlock) -> (i64, i64) {
        let offset = |seq: anabranch_wire::SeqNumber| {
            self.una as i64 + i64::from(seq.distance_from(self.snd_una()))
        };
        (offset(block.start), offset(block.end))
    }

    /// RFC 5681 §2: no payload, nothing new, and something outstanding. The caller has compared the
    /// windows. RFC 8684 §3 and §4: a segment that exists for its options is no duplicate ACK. With
    /// SACK, only blocks count.
    fn is_duplicate_ack(&self, segment: &Segment) -> bool {
        !self.peer.sack
            && segment.payload.is_empty()
            && segment.options.control.is_none()
            && !segment.header.flags.intersects(Flags::SYN | Flags::FIN)
            && !self.board.is_empty()
    }

    /// RFC 6298 §3 (Karn): segments sent more than once give no sample, but the echo of a
    /// timestamp does, RFC 7323 §4.1, unless the acknowledgement answers a duplicate: that one's
    /// timestamp is not what it echoes.
    fn sample_rtt(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        echo_counts: bool,
        segment: &Segment,
    ) {
        if let Some((oldest, newest)) = summary.clean.filter(|_| !summary.retransmitted) {
            self.rtt.on_acknowledged(now, oldest, newest);
        } else if echo_counts
            && self.peer.timestamps
            && let Some(timestamps) = segment.options.timestamps
            && let Some(rtt) = self.clock.since_echo(now, timestamps)
        {
            self.rtt.update(rtt, rtt);
        }
    }

    /// Returns the judgement whether the last reduction was spurious. A host may wait until no
    /// retransmission is outstanding.
    fn judge_reduction(&mut self, echo: Option<u32>) -> Judgement {
        let Subflow { board, recovery, config, .. } = self;
        let waits = config.platform.reordering.undo_awaits_retransmissions;
        recovery.judge_reduction(self.una, echo, || waits && board.resent_in_flight().0 > 0)
    }

    /// Look for lost segments. Returns true if some were found. RFC 8985 §6.2 step 5.
    fn detect_losses(&mut self, now: Instant, views: &[SubflowView]) -> bool {
        if !self.peer.sack {
            return false;
        }
        let mss = u64::from(self.mss());
        let before = self.board.lost_at_most();
        match self.recovery.detect(now, &mut self.board, &self.rtt, mss) {
            Some(at) => self.timers.set(SubflowTimer::Reordering, at + self.timer_slack()),
            None => self.timers.stop(SubflowTimer::Reordering),
        }
        let found = self.board.lost_at_most() > before;
        self.respond_to_losses(now, views);
        found
    }

    /// RFC 8985 §6.2 step 5: the timer waits for the latest of the segments that may be lost. It is
    /// set for the earliest, and the others are looked at when it expires, so that acknowledgements
    /// need not look at all.
    pub(super) fn on_reordering_timer(&mut self, now: Instant, views: &[SubflowView]) {
        let mss = u64::from(self.mss());
        let latest = self.recovery.latest_deadline(&self.board, &self.rtt, mss);
        match latest.map(|at| at + self.timer_slack()).filter(|at| *at > now) {
            Some(at) => self.timers.set(SubflowTimer::Reordering, at),
            None => {
                self.detect_losses(now, views);
            }
        }
    }

    pub(super) fn timer_slack(&self) -> Duration {
        self.config.platform.reordering.timer_slack
    }

    /// Begin fast recovery when something was found lost. RFC 5681 §3.2, RFC 6675 §5.
    #[inline]
    fn respond_to_losses(&mut self, now: Instant, views: &[SubflowView]) {
        if self.board.has_lost() && self.recovery.phase() == RecoveryPhase::Open {
            self.enter_recovery_if_lost(now, views);
        }
    }

    /// Begin fast recovery if a record of the scoreboard is lost.
    #[cold]
    fn enter_recovery_if_lost(&mut self, now: Instant, views: &[SubflowView]) {
        if self.board.next_lost().is_none() {
            return;
        }
        if self.path_mtu.on_lost(self.una) {
            // RFC 8899 §3: the loss of a probe is no sign of congestion.
            return self.fit_segments(views);
        }
        let mss = u64::from(self.mss());
        // Linux counts whole segments, from the congestion window on (`tcp_cwnd_reduction`).
        let from = match self.counts_segments() {
            true => Reduced { flight: self.congestion.cwnd(), unit: mss as u16 },
            false => Reduced { flight: self.nxt - self.una, unit: 1 },
        };
        let (segments, oldest) = self.board.resent_in_flight();
        let oldest = oldest.map(|at| self.clock.value(at));
        self.recovery.enter_recovery(self.una, self.nxt, from, Resent { segments, oldest });
        self.reduce(now, views);
        let ssthresh = self.congestion.ssthresh();
        self.recovery.on_progress(0, self.flight(), ssthresh, mss, mss);
        self.totals.recoveries += 1;
        self.timers.stop(SubflowTimer::TailLossProbe);
    }

    fn reduce(&mut self, now: Instant, views: &[SubflowView]) {
        if self.ecn.was_reduced_since(self.una) {
            return;
        }
        let flight_size = self.flight_size(0);
        self.notify(&CongestionEvent::Recovery { now, flight_size }, views);
        self.ecn.on_reduction(self.nxt);
    }

    /// Data that a reduction starts from: bytes outstanding until `acked` of them were
    /// acknowledged, or the window. RFC 5681 §3.2: what limited transmit has sent does not count.
    fn flight_size(&self, acked: u64) -> u64 {
        let cwnd = self.congestion.cwnd();
        match self.config.platform.reduction {
            Reduction::Cwnd => cwnd,
            Reduction::Flight => (self.nxt - self.una + acked).min(cwnd),
        }
    }

    /// Bytes by which an acknowledgement lets the window grow: `acked` cumulatively, or as many as
    /// it delivered. Where the window counts segments, each counts in full.
    fn counted_bytes(&self, acked: u64, summary: &AckSummary) -> u64 {
        let in_order = acked > 0;
        match self.config.platform.reordering.counts {
            Counts::Acknowledged => acked,
            Counts::EachAcknowledgement if acked == 0 => 0,
            Counts::EachAcknowledgement => {
                let segment = u64::from(self.mss());
                let slow_start = self.congestion.cwnd() < self.congestion.ssthresh();
                if slow_start { summary.segments * segment } else { segment }
            }
            Counts::Delivered if in_order || self.recovery.is_much_reordered(self.mss()) => {
                match self.counts_segments() {
                    true => summary.segments * u64::from(self.mss()),
                    false => summary.delivered,
                }
            }
            Counts::Delivered => 0,
        }
    }

    fn grow(
        &mut self,
        now: Instant,
        acked: u64,
        flight_before: u64,
        summary: &AckSummary,
        views: &[SubflowView],
    ) {
        let bytes = self.congestion.cwnd();
        let free = match self.config.platform.growth {
            Growth::WhileFull(segments) => u64::from(segments) + 1,
            Growth::OnceFull => 1,
        };
        let full = flight_before + free * u64::from(self.mss()) > bytes;
        let slow_start = bytes < self.congestion.ssthresh();
        let sample = AckSample {
            now,
            acked,
            rtt: summary.clean.map(|(_, newest)| now.saturating_since(newest)),
            srtt: self.rtt.srtt().unwrap_or(self.rtt.rto()),
            bytes_in_flight: self.bytes_in_flight(),
            snd_una: self.una,
            snd_nxt: self.nxt,
            cwnd_limited: self.congestion.limits(Cwnd { bytes, full, slow_start }),
        };
        self.congestion.on_ack(&sample, self.identity.id.slot, views);
    }

    /// RFC 6298 §5.2, §5.3.
    fn arm_after_ack(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timers.stop(SubflowTimer::Retransmission);
            self.timers.stop(SubflowTimer::TailLossProbe);
            self.timers.stop(SubflowTimer::Reordering);
            self.timers.stop(SubflowTimer::UserTimeout);
            self.recovery.cancel_probe();
        } else {
            self.arm_retransmission(now);
            if let Some(timeout) = self.config.tcp.user_timeout {
                self.timers.set(SubflowTimer::UserTimeout, now + timeout);
            }
            self.arm_tail_loss_probe(now, None);
        }
    }
}

/// Data that one acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    pub(super) delivered: u64,
    /// Number of records.
    segments: u64,
    /// Transmission times of the oldest and the newest record sent only once.
    pub(super) clean: Option<(Instant, Instant)>,
    /// Some of it had been sent more than once, so that nobody knows which copy arrived.
    retransmitted: bool,
}

impl AckSummary {
    fn add(&mut self, record: &Delivered) {
        self.delivered += record.len;
        self.segments += 1;
        self.retransmitted |= record.retransmitted;
        if !record.retransmitted {
            let (oldest, newest) = self.clean.unwrap_or((record.sent_at, record.sent_at));
            self.clean = Some((oldest.min(record.sent_at), newest.max(record.sent_at)));
        }
    }
}
