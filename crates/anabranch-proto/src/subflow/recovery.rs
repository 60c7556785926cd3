//! Loss detection and recovery: RACK-TLP (RFC 8985) with selective acknowledgements, duplicate
//! acknowledgements without (RFC 6582), proportional rate reduction (RFC 6937), and undoing
//! spurious reductions (RFC 4015, RFC 3708).

use anabranch_wire::{Duration, Instant};

use super::scoreboard::{Delivered, LossVerdict, Scoreboard};
use crate::rtt::RttEstimator;
use crate::view::RecoveryPhase;

/// RFC 5681 §3.2, RFC 8985 §6.2: number of segments beyond a hole that indicate a loss.
const DUP_THRESHOLD: u64 = 3;
/// RFC 8985 §6.2 step 4: number of recoveries after which the reordering window shrinks to its
/// initial size.
const REORDERING_PERSISTENCE: u8 = 16;

#[derive(Debug)]
pub(crate) struct Recovery {
    phase: RecoveryPhase,
    /// Recovery ends when all data sent before it began is acknowledged.
    point: u64,
    rack: Rack,
    prr: ProportionalRate,
    /// Unit of the data that may be sent in recovery.
    unit: u16,
    undo: Option<Undo>,
    /// Consecutive duplicate acknowledgements, for peers without SACK.
    duplicate_acks: u32,
    /// Bytes that have arrived beyond the hole according to these acknowledgements.
    arrived_unreported: u64,
    /// A tail loss probe must be sent. RFC 8985 §7.3.
    probe_due: bool,
    /// SND.NXT when a tail loss probe was sent, and whether it repeated data. RFC 8985 §7.3.
    probe: Option<TailLossProbe>,
    /// SND.UNA at the last two losses or reductions because of marks, the older first.
    losses: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct TailLossProbe {
    end: u64,
    repeated: bool,
}

/// Properties of an acknowledgement that answers a tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeAnswer {
    pub(crate) una: u64,
    /// It reports a duplicate arrival.
    pub(crate) duplicate_reported: bool,
    /// It acknowledges nothing new, cumulatively or selectively.
    pub(crate) plain_duplicate: bool,
}

/// Judgement of the last reduction after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Nothing against it.
    Justified,
    /// It was spurious.
    Spurious,
    /// It was spurious, and is undone once no retransmission is outstanding.
    SpuriousOnceAllArrived,
}

/// RFC 8985 §6.1.
#[derive(Debug)]
struct Rack {
    /// The latest transmission known to have arrived, by its position among all transmissions.
    newest: Option<u64>,
    rtt: Duration,
    /// Highest offset delivered.
    forward: u64,
    reordering_seen: bool,
    /// Most bytes by which a segment was overtaken.
    extent: u32,
    window_multiplier: u8,
    persistence: u8,
    /// The window widens at most once per round trip, so not before this offset is acknowledged.
    widened_until: u64,
}

/// RFC 6937.
#[derive(Clone, Copy, Debug, Default)]
struct ProportionalRate {
    delivered: u64,
    sent: u64,
    flight_at_start: u64,
    quota: u64,
}

/// Starting point of proportional rate reduction, in bytes. RFC 6937 §3: RecoverFS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduced {
    pub(super) flight: u64,
    /// Unit of the data that may be sent.
    pub(super) unit: u16,
}

/// State needed to detect a spurious reduction.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// First byte outstanding at the reduction.
    una: u64,
    /// This host's timestamp clock at the first retransmission that counts: one in flight at the
    /// reduction, or one made after it. `None` until there is one.
    first_retransmission: Option<u32>,
    /// Number of retransmissions that the peer has not reported as duplicates.
    unreported: i64,
}

/// Retransmissions in flight at a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resent {
    pub(crate) segments: i64,
    /// This host's timestamp clock when the first of them was first sent.
    pub(crate) oldest: Option<u32>,
}

impl Recovery {
    pub(crate) fn new() -> Self {
        Recovery {
            phase: RecoveryPhase::Open,
            point: 0,
            rack: Rack {
                newest: None,
                rtt: Duration::ZERO,
                forward: 0,
                reordering_seen: false,
                extent: 0,
                window_multiplier: 1,
                persistence: REORDERING_PERSISTENCE,
                widened_until: 0,
            },
            prr: ProportionalRate::default(),
            unit: 1,
            undo: None,
            duplicate_acks: 0,
            arrived_unreported: 0,
            probe_due: false,
            probe: None,
            losses: [0; 2],
        }
    }

    /// Losses or marks indicate congestion when SND.UNA is `una`.
    pub(crate) fn on_congestion(&mut self, una: u64) {
        self.losses = [self.losses[1], una];
    }

    /// Bytes acknowledged since the last loss, or between the last two losses if that is more.
    pub(crate) fn loss_interval(&self, una: u64) -> u64 {
        let [before_last, last] = self.losses;
        una.saturating_sub(last).max(last - before_last)
    }

    pub(crate) fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// Returns `true` if no loss, reduction or probe depends on future acknowledgements.
    pub(crate) fn is_settled(&self) -> bool {
        self.phase == RecoveryPhase::Open && self.undo.is_none() && self.probe.is_none()
    }

    /// Number of bytes that may be sent in fast recovery. RFC 6937 §3.
    pub(crate) fn quota(&self) -> u64 {
        self.prr.quota
    }

    /// A record was acknowledged. RFC 8985 §6.2 steps 2 and 3.
    pub(crate) fn on_delivered(&mut self, now: Instant, record: &Delivered, min_rtt: Duration) {
        let rtt = now.saturating_since(record.sent_at);
        if record.end < self.rack.forward && !record.retransmitted {
            self.rack.reordering_seen = true;
            let extent = self.rack.forward - (record.end - record.len);
            self.rack.extent = self.rack.extent.max(u32::try_from(extent).unwrap_or(u32::MAX));
        }
        self.rack.forward = self.rack.forward.max(record.end);
        // RFC 8985 §6.2 step 2: an acknowledgement that arrives sooner than the minimum round-trip
        // time belongs to an earlier transmission.
        if record.retransmitted && rtt < min_rtt {
            return;
        }
        self.rack.rtt = rtt;
        self.rack.newest = self.rack.newest.max(Some(record.order));
    }

    /// The peer reports that bytes up to `end` arrived twice. RFC 8985 §6.2 step 4, RFC 3708:
    /// reports of data acknowledged before the reduction do not count towards its undoing.
    pub(crate) fn on_duplicate_report(&mut self, end: i64, una: u64, nxt: u64) {
        if let Some(undo) = &mut self.undo
            && end > undo.una as i64
        {
            undo.unreported -= 1;
        }
        if una >= self.rack.widened_until {
            self.rack.widened_until = nxt;
            self.rack.window_multiplier = self.rack.window_multiplier.saturating_add(1);
            self.rack.persistence = REORDERING_PERSISTENCE;
        }
        if let Some(probe) = &mut self.probe
            && probe.repeated
        {
            // RFC 8985 §7.4: the probe was a needless copy, so nothing had been lost.
            self.probe = None;
        }
    }

    /// Detect lost segments by RFC 8985 §6.2 step 5. Returns the time of the next check.
    pub(crate) fn detect(
        &mut self,
        now: Instant,
        board: &mut Scoreboard,
        rtt: &RttEstimator,
        mss: u64,
    ) -> Option<Instant> {
        let newest = self.rack.newest?;
        let sacked = board.bytes_sacked();
        board.detect_lost(|sent_at, order| {
            if order >= newest {
                return LossVerdict::InFlight;
            }
            // Few records are older than the newest delivery.
            let deadline = sent_at + self.reach(sacked, rtt, mss);
            if deadline <= now { LossVerdict::Lost } else { LossVerdict::At(deadline) }
        })
    }

    /// When the last of the segments is lost that were sent before one that has arrived. RFC 8985
    /// §6.2 step 5.
    pub(crate) fn latest_deadline(
        &self,
        board: &Scoreboard,
        rtt: &RttEstimator,
        mss: u64,
    ) -> Option<Instant> {
        let last = board.last_sent_before(self.rack.newest?)?;
        Some(last + self.reach(board.bytes_sacked(), rtt, mss))
    }

    /// Time after its transmission at which a segment is lost, with `sacked` bytes SACKed. RFC 8985
    /// §6.2 step 5.
    fn reach(&self, sacked: u64, rtt: &RttEstimator, mss: u64) -> Duration {
        self.rack.rtt + self.reordering_window(sacked, rtt, mss)
    }

    /// Returns `true` if a segment was overtaken by more than indicate a loss. RFC 5681 §3.2.
    pub(crate) fn is_much_reordered(&self, mss: u32) -> bool {
        u64::from(self.rack.extent) > DUP_THRESHOLD * u64::from(mss)
    }

    /// The reordering window of RFC 8985 §6.2 step 4.
    fn reordering_window(&self, sacked: u64, rtt: &RttEstimator, mss: u64) -> Duration {
        if !self.rack.reordering_seen
            && (self.phase != RecoveryPhase::Open || sacked >= DUP_THRESHOLD * mss)
        {
            return Duration::ZERO;
        }
        let window = Duration::from_nanos(
            rtt.min_rtt().as_nanos().min(u64::MAX / 64) / 4
                * u64::from(self.rack.window_multiplier),
        );
        window.min(rtt.srtt().unwrap_or(window))
    }

    /// Bytes that have arrived beyond the hole at a peer without SACK: one segment for each
    /// duplicate acknowledgement. RFC 6937 §3.
    pub(crate) fn arrived_unreported(&self) -> u64 {
        self.arrived_unreported
    }

    /// A duplicate acknowledgement without SACK arrived. RFC 5681 §3.2: each one shows that a
    /// segment has left the network, so another may be sent (step 1, RFC 3042; step 4). The third
    /// consecutive one shows that the oldest segment is lost (step 2). Returns the number of bytes
    /// that have arrived.
    pub(crate) fn on_duplicate_ack(&mut self, una: u64, board: &mut Scoreboard, mss: u64) -> u64 {
        // RFC 6582 §3.2 step 1, §4: duplicate ACKs for data sent before the last loss may answer
        // spurious retransmissions.
        if self.phase == RecoveryPhase::Loss
            || (self.phase == RecoveryPhase::Open && una <= self.point)
        {
            return 0;
        }
        self.duplicate_acks += 1;
        if self.phase == RecoveryPhase::Open
            && u64::from(self.duplicate_acks) == DUP_THRESHOLD
            && let Some(front) = board.front_in_flight()
        {
            board.mark_lost(front);
        }
        let arrived = mss.min(board.bytes_in_flight().saturating_sub(self.arrived_unreported));
        self.arrived_unreported += arrived;
        arrived
    }

    /// `acked` bytes up to `una` were newly acknowledged. Returns how many of them duplicate
    /// acknowledgements had already counted as arrived. RFC 6937 §3.
    pub(crate) fn on_advance(&mut self, una: u64, acked: u64, mss: u64) -> u64 {
        self.duplicate_acks = 0;
        if self.phase != RecoveryPhase::Recovery || una >= self.point {
            return std::mem::take(&mut self.arrived_unreported).min(acked);
        }
        // The segment that filled the hole had not arrived before.
        let counted = self.arrived_unreported.min(acked.saturating_sub(mss));
        self.arrived_unreported -= counted;
        counted
    }

    /// RFC 6582 §3.2 step 3: a partial acknowledgement shows the next hole to a sender without
    /// SACK.
    pub(crate) fn on_partial_ack(&mut self, una: u64, board: &mut Scoreboard) {
        if self.phase == RecoveryPhase::Recovery
            && una < self.point
            && let Some(front) = board.front_in_flight()
        {
            board.mark_lost(front);
        }
    }

    /// The first loss was detected: begin fast recovery.
    pub(crate) fn enter_recovery(&mut self, una: u64, nxt: u64, from: Reduced, resent: Resent) {
        self.phase = RecoveryPhase::Recovery;
        self.point = nxt;
        let flight_at_start = from.flight.max(1);
        self.prr = ProportionalRate { flight_at_start, ..Default::default() };
        self.unit = from.unit;
        self.begin_undo(una, resent);
    }

    /// The retransmission timer expired.
    pub(crate) fn enter_loss(&mut self, una: u64, nxt: u64) {
        if self.phase != RecoveryPhase::Loss {
            self.begin_undo(una, Resent::default());
        }
        self.phase = RecoveryPhase::Loss;
        self.point = nxt;
        self.probe = None;
        self.duplicate_acks = 0;
        self.arrived_unreported = 0;
    }

    /// Segments are too large for the path and are sent again in pieces. The window is not reduced, so
    /// there is nothing to undo. Linux: `tcp_simple_retransmit`.
    pub(crate) fn enter_loss_by_size(&mut self, nxt: u64) {
        if self.phase != RecoveryPhase::Loss {
            self.undo = None;
        }
        self.phase = RecoveryPhase::Loss;
        self.point = nxt;
        self.probe = None;
        self.duplicate_acks = 0;
        self.arrived_unreported = 0;
    }

    /// Remember the state that undoing the reduction needs. An acknowledgement of earlier
    /// retransmissions does not answer an original, even if the reduction's own retransmissions are
    /// sent later.
    fn begin_undo(&mut self, una: u64, resent: Resent) {
        self.on_congestion(una);
        let Resent { segments, oldest } = resent;
        self.undo = Some(Undo { una, first_retransmission: oldest, unreported: segments });
    }

    /// Leave recovery if all data outstanding at its start is acknowledged. Returns true in that
    /// case.
    pub(crate) fn leave_if_done(&mut self, una: u64) -> bool {
        let done = self.phase != RecoveryPhase::Open && una >= self.point;
        if done {
            self.phase = RecoveryPhase::Open;
            self.rack.persistence = self.rack.persistence.saturating_sub(1);
            if self.rack.persistence == 0 {
                self.rack.window_multiplier = 1;
            }
        }
        done
    }

    /// A segment was retransmitted when this host's timestamp clock was `timestamp`.
    pub(crate) fn on_retransmission(&mut self, timestamp: u32) {
        if let Some(undo) = &mut self.undo {
            undo.first_retransmission.get_or_insert(timestamp);
            undo.unreported += 1;
        }
    }

    /// Returns the judgement whether an acknowledgement up to `una` that echoes `echo` proves that
    /// the reduction was spurious. RFC 3522: it answers a transmission made before the first
    /// retransmission. RFC 3708: all retransmissions arrived as duplicates. If `waits`, the first
    /// of these must wait until recovery ends.
    pub(crate) fn judge_reduction(
        &mut self,
        una: u64,
        echo: Option<u32>,
        waits: impl FnOnce() -> bool,
    ) -> Judgement {
        let Some(undo) = self.undo else { return Judgement::Justified };
        let Some(first) = undo.first_retransmission else { return Judgement::Justified };
        let answered_original =
            echo.is_some_and(|echo| (echo.wrapping_sub(first) as i32) < 0 && una > undo.una);
        let all_duplicates = undo.unreported <= 0 && una > undo.una;
        if all_duplicates || answered_original {
            let recovering = self.phase == RecoveryPhase::Recovery && una < self.point;
            if !all_duplicates && recovering && waits() {
                return Judgement::SpuriousOnceAllArrived;
            }
            self.undo = None;
            self.phase = RecoveryPhase::Open;
            self.point = 0;
            return Judgement::Spurious;
        }
        if self.phase == RecoveryPhase::Open && una > self.point {
            self.undo = None;
        }
        Judgement::Justified
    }

    /// RFC 6937 §3: update the number of bytes that may be sent, after `delivered` bytes arrived.
    /// While less than `ssthresh` is in flight, `extra` bytes may be sent besides what arrived.
    pub(crate) fn on_progress(
        &mut self,
        delivered: u64,
        in_flight: u64,
        ssthresh: u64,
        mss: u64,
        extra: u64,
    ) {
        if self.phase != RecoveryPhase::Recovery {
            return;
        }
        let prr = &mut self.prr;
        prr.delivered += delivered;
        let quota = if in_flight > ssthresh {
            let share = u128::from(prr.delivered) * u128::from(ssthresh);
            let unit = u128::from(self.unit);
            let share = share.div_ceil(u128::from(prr.flight_at_start) * unit) * unit;
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(prr.sent)
        } else {
            // Slow-start reduction bound: catch up by at most one segment per acknowledgement.
            let catch_up = prr.delivered.saturating_sub(prr.sent).max(delivered) + extra;
            (ssthresh - in_flight).min(catch_up)
        };
        // The first retransmission is sent regardless of the formula.
        prr.quota = if prr.sent == 0 { quota.max(mss) } else { quota };
    }

    /// `bytes` were sent, as new data or as retransmissions.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.prr.sent += bytes;
        self.prr.quota = self.prr.quota.saturating_sub(bytes);
    }

    /// Returns `true` if the subflow may schedule a tail loss probe. RFC 8985 §7.2.
    pub(crate) fn may_probe(&self, board: &Scoreboard) -> bool {
        self.phase == RecoveryPhase::Open && self.probe.is_none() && board.bytes_sacked() == 0
    }

    /// The timer for a tail loss probe has expired.
    pub(crate) fn demand_probe(&mut self) {
        self.probe_due = true;
    }

    /// Returns `true` if a tail loss probe waits for something to send.
    #[inline]
    pub(crate) fn probe_is_due(&self) -> bool {
        self.probe_due
    }

    /// There is nothing to probe with, or no longer anything to probe for.
    #[inline]
    pub(crate) fn cancel_probe(&mut self) {
        self.probe_due = false;
    }

    /// A tail loss probe was sent. RFC 8985 §7.3.
    pub(crate) fn on_probe_sent(&mut self, end: u64, repeated: bool) {
        self.probe = Some(TailLossProbe { end, repeated });
    }

    /// Returns `true` if the acknowledgement shows that the probe repaired a loss. RFC 8985 §7.4.2.
    /// Congestion control must then respond to the loss.
    pub(crate) fn probe_repaired_loss(&mut self, answer: &ProbeAnswer) -> bool {
        let Some(probe) = self.probe.filter(|probe| answer.una >= probe.end) else {
            return false;
        };
        let needless = answer.duplicate_reported || answer.plain_duplicate;
        if !probe.repeated || needless {
            self.probe = None;
            return false;
        }
        // An acknowledgement of exactly the end may still answer the original.
        let repaired = answer.una > probe.end;
        if repaired {
            self.probe = None;
        }
        repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;
    use anabranch_wire::{Flags, Payload, Piece};

    const MSS: u64 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for n in 0..segments {
            let payload = Payload::from(Piece::pattern(0, MSS as u32));
            board.push(1 + n * MSS, payload, None, Flags::ACK, at(n));
        }
        board
    }

    fn delivered(number: u64, retransmitted: bool) -> Delivered {
        let end = 1 + (number + 1) * MSS;
        Delivered { len: MSS, end, sent_at: at(number), order: number, retransmitted }
    }

    /// Returns `true` if the reduction is spurious for a host that does not wait.
    fn is_spurious(recovery: &mut Recovery, una: u64, echo: Option<u32>) -> bool {
        recovery.judge_reduction(una, echo, || false) == Judgement::Spurious
    }

    fn recovering(una: u64, nxt: u64) -> Recovery {
        let mut recovery = Recovery::new();
        recovery.enter_recovery(
            una,
            nxt,
            Reduced { flight: nxt - una, unit: 1 },
            Resent::default(),
        );
        recovery
    }

    #[test]
    fn a_segment_that_arrives_after_a_later_one_is_reordered_unless_it_was_sent_again() {
        // RFC 8985 §6.2 step 3
        let mut recovery = Recovery::new();
        for record in [delivered(2, false), delivered(3, false), delivered(1, true)] {
            recovery.on_delivered(at(40), &record, Duration::ZERO);
            assert!(!recovery.rack.reordering_seen);
        }
        recovery.on_delivered(at(40), &delivered(0, false), Duration::ZERO);
        assert!(recovery.rack.reordering_seen);
    }

    #[test]
    fn the_reordering_window_is_a_quarter_of_the_least_round_trip_and_grows_with_reports() {
        // RFC 8985 §6.2 step 4
        let (mut board, mut rtt) = (board(5), RttEstimator::new(Platform::default().timeouts));
        rtt.update(Duration::from_millis(40), Duration::from_millis(40));
        let window = |recovery: &Recovery, board: &Scoreboard| {
            recovery.reordering_window(board.bytes_sacked(), &rtt, MSS).as_nanos() / 1_000_000
        };
        let mut recovery = Recovery::new();
        assert_eq!(window(&recovery, &board), 10);
        assert_eq!(window(&recovering(1, 5001), &board), 0, "nothing is reordered on this path");
        board.sack(1001, 3001, |_| {});
        assert_eq!(window(&recovery, &board), 10, "two segments beyond a hole");
        board.sack(3001, 4001, |_| {});
        assert_eq!(window(&recovery, &board), 0, "three segments beyond a hole");
        recovery.rack.reordering_seen = true;
        assert_eq!(window(&recovery, &board), 10);
        for una in [1, 5001, 9001] {
            recovery.on_duplicate_report(1001, una, una + 4000);
        }
        assert_eq!(window(&recovery, &board), 40, "each round trip adds a quarter");
        recovery.on_duplicate_report(1001, 13_001, 17_001);
        assert_eq!(window(&recovery, &board), 40, "never more than a round trip");
    }

    #[test]
    fn what_was_sent_before_is_lost_once_the_reordering_window_has_passed() {
        // RFC 8985 §6.2 step 5: the second segment took 40 ms, and the window is 10 ms.
        let (mut board, mut rtt) = (board(2), RttEstimator::new(Platform::default().timeouts));
        rtt.update(Duration::from_millis(40), Duration::from_millis(40));
        let mut recovery = Recovery::new();
        board.sack(1001, 2001, |record| recovery.on_delivered(at(41), &record, rtt.min_rtt()));
        for (now, again, lost) in [(49, Some(at(50)), None), (50, None, Some(0))] {
            assert_eq!(recovery.detect(at(now), &mut board, &rtt, MSS), again);
            assert_eq!(board.next_lost(), lost);
        }
    }

    #[test]
    fn the_loss_interval_is_the_longer_of_the_last_two() {
        let mut recovery = Recovery::new();
        recovery.on_congestion(5_000);
        recovery.on_congestion(20_000);
        assert_eq!(recovery.loss_interval(21_000), 15_000);
        assert_eq!(recovery.loss_interval(50_000), 30_000);
    }

    #[test]
    fn a_reduction_is_spurious_once_all_repeats_were_reported_as_duplicates() {
        // RFC 3708
        let mut recovery = recovering(1, 5001);
        recovery.on_retransmission(10);
        recovery.on_retransmission(11);
        for end in [1, 1001] {
            recovery.on_duplicate_report(end, 1, 5001);
            assert!(
                !is_spurious(&mut recovery, 3001, Some(20)),
                "the report of segment 1 does not count"
            );
        }
        recovery.on_duplicate_report(2001, 1, 5001);
        assert!(
            !is_spurious(&mut recovery, 1, Some(20)),
            "nothing was acknowledged since the reduction"
        );
        assert!(is_spurious(&mut recovery, 3001, Some(20)));
        assert_eq!(recovery.phase(), RecoveryPhase::Open);
        assert!(!is_spurious(&mut recovery, 3001, Some(20)), "the reduction is undone only once");
    }

    #[test]
    fn recovery_ends_at_its_point_and_beyond_it_nothing_is_undone() {
        // RFC 6675 §5, RFC 4015 §3.2
        let mut recovery = recovering(1, 5001);
        recovery.on_retransmission(10);
        assert!(!recovery.leave_if_done(5000));
        assert!(recovery.leave_if_done(5001));
        assert!(!recovery.leave_if_done(5001));
        assert_eq!(recovery.phase(), RecoveryPhase::Open);
        assert!(!is_spurious(&mut recovery, 6001, None));
        recovery.on_duplicate_report(1001, 6001, 7001);
        assert!(!is_spurious(&mut recovery, 6001, None));
    }

    #[test]
    fn what_is_reported_just_after_recovery_still_undoes_it() {
        // RFC 3708: the last retransmission arrives after the original that ended recovery.
        let mut recovery = recovering(1, 5001);
        recovery.on_retransmission(10);
        assert!(!is_spurious(&mut recovery, 5001, None));
        assert!(recovery.leave_if_done(5001));
        assert!(!is_spurious(&mut recovery, 5001, None));
        recovery.on_duplicate_report(1001, 5001, 5001);
        assert!(is_spurious(&mut recovery, 5001, None));
    }

    #[test]
    fn a_repeat_answered_sooner_than_any_round_trip_was_not_what_arrived() {
        // RFC 8985 §6.2 step 2
        let (mut recovery, min_rtt) = (Recovery::new(), Duration::from_millis(40));
        for (now, newest) in [(139, None), (140, Some(100))] {
            recovery.on_delivered(at(now), &delivered(100, true), min_rtt);
            assert_eq!(recovery.rack.newest, newest);
        }
    }

    #[test]
    fn a_wide_reordering_window_lasts_for_sixteen_recoveries() {
        // RFC 8985 §6.2 step 4
        let mut recovery = Recovery::new();
        recovery.on_duplicate_report(1001, 1, 5001);
        for n in 1..=16 {
            assert_eq!(recovery.rack.window_multiplier, 2, "{n}");
            recovery.enter_recovery(1, 5001, Reduced { flight: 5000, unit: 1 }, Resent::default());
            recovery.leave_if_done(5001);
        }
        assert_eq!(recovery.rack.window_multiplier, 1);
    }

    #[test]
    fn a_host_may_wait_for_retransmissions_before_it_undoes_a_reduction() {
        // Linux: `tcp_try_undo_partial` waits, `tcp_try_undo_recovery` does not.
        let judge = |una, duplicates: u64| {
            let mut recovery = recovering(1, 5001);
            recovery.on_retransmission(10);
            for n in 1..=duplicates {
                recovery.on_duplicate_report(1 + n as i64 * 1000, 1, 5001);
            }
            recovery.judge_reduction(una, Some(9), || true)
        };
        assert_eq!(judge(3001, 0), Judgement::SpuriousOnceAllArrived);
        assert_eq!(judge(5001, 0), Judgement::Spurious, "recovery is over");
        assert_eq!(judge(3001, 1), Judgement::Spurious, "the retransmission was a duplicate");
    }

    #[test]
    fn the_reordering_timer_waits_for_the_latest_segment() {
        // RFC 8985 §6.2 step 5: segments are sent at 0, 1, 2 and 3 ms, and the last took 40 ms.
        let (mut board, mut rtt) = (board(4), RttEstimator::new(Platform::default().timeouts));
        rtt.update(Duration::from_millis(40), Duration::from_millis(40));
        let mut recovery = Recovery::new();
        board.sack(3001, 4001, |record| recovery.on_delivered(at(43), &record, rtt.min_rtt()));
        assert_eq!(recovery.detect(at(43), &mut board, &rtt, MSS), Some(at(50)));
        assert_eq!(recovery.latest_deadline(&board, &rtt, MSS), Some(at(52)));
    }

    #[test]
    fn the_round_trip_time_is_that_of_whatever_arrived_last() {
        // RFC 8985 §6.2 step 2, also of a segment sent before the newest that has arrived.
        let mut recovery = Recovery::new();
        for (sent, arrived) in [(20, 60), (0, 70)] {
            recovery.on_delivered(at(arrived), &delivered(sent, false), Duration::ZERO);
        }
        assert_eq!(recovery.rack.rtt, Duration::from_millis(70));
        assert_eq!(recovery.rack.newest, Some(20));
    }

    #[test]
    fn a_path_is_much_reordered_when_more_than_three_segments_were_overtaken() {
        for (overtaking, much) in [(3, false), (4, true)] {
            let (mut board, mut recovery) = (board(5), Recovery::new());
            let first = 1 + (overtaking - 1) * MSS;
            for start in [first, 1] {
                board.sack(start, start + MSS, |record| {
                    recovery.on_delivered(at(50), &record, Duration::ZERO);
                });
            }
            assert_eq!(recovery.is_much_reordered(MSS as u32), much, "{overtaking}");
        }
    }

    #[test]
    fn a_partial_acknowledgement_shows_the_next_hole_and_a_full_one_none() {
        // RFC 6582 §3.2 step 3
        for (una, lost) in [(3000, Some(0)), (3001, None)] {
            let mut board = board(5);
            recovering(1, 3001).on_partial_ack(una, &mut board);
            assert_eq!(board.next_lost(), lost, "{una}");
        }
    }

    #[test]
    fn a_host_that_counts_segments_sends_whole_ones_in_recovery() {
        // Linux: `tcp_cwnd_reduction`. Of 20 segments, 14 should remain: 1.4 are 2.
        for (unit, quota) in [(1, 400), (MSS as u16, 1000)] {
            let mut recovery = Recovery::new();
            let from = Reduced { flight: 20_000, unit };
            recovery.enter_recovery(1, 20_001, from, Resent::default());
            recovery.on_sent(1000);
            recovery.on_progress(2000, 18_000, 14_000, MSS, MSS);
            assert_eq!(recovery.quota(), quota);
        }
    }

    #[test]
    fn what_may_be_sent_in_recovery_is_the_share_of_what_arrived_or_fills_up_to_the_threshold() {
        // RFC 6937 §3: of 10 segments, 5 should remain. One was sent, and 4 have arrived.
        for (in_flight, quota) in [(5001, 1000), (5000, 0), (4500, 500), (0, 4000)] {
            let mut recovery = recovering(1, 10_001);
            recovery.on_sent(1000);
            recovery.on_progress(1000, 9000, 5000, MSS, MSS);
            recovery.on_progress(3000, in_flight, 5000, MSS, MSS);
            assert_eq!(recovery.quota(), quota, "{in_flight}");
        }
    }

    #[test]
    fn a_probe_repaired_a_loss_only_if_it_repeated_data_and_was_needed() {
        // RFC 8985 §7.4.2
        let answer = |una, duplicate_reported, plain_duplicate| ProbeAnswer {
            una,
            duplicate_reported,
            plain_duplicate,
        };
        for (repeated, answer, repaired) in [
            (true, answer(6001, false, false), true),
            (true, answer(5001, false, false), false),
            (true, answer(6001, true, false), false),
            (true, answer(6001, false, true), false),
            (false, answer(6001, false, false), false),
        ] {
            let mut recovery = Recovery::new();
            recovery.on_probe_sent(5001, repeated);
            assert_eq!(recovery.probe_repaired_loss(&answer), repaired, "{repeated} {answer:?}");
        }
    }
}
