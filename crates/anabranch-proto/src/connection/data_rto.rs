//! Timers for data that stays unacknowledged at the data level, and for windows that stay shut: the
//! connection waits, retransmits or probes, and finally gives up.

use std::ops::RangeInclusive;

use anabranch_wire::{Duration, Instant};

use super::Connection;
use super::timer::Timer;
use crate::error::ConnectionError;
use crate::platform::{DataRetransmission, Pause};
use crate::view::{SubflowView, Usability};

/// State of the data-level timers: for data that stays unacknowledged, and for a window that stays
/// shut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataRto {
    /// Expiries of the retransmission timer since the last progress.
    timeouts: u16,
    /// Number of the latest ones that expired while no subflow had anything outstanding.
    unexplained: u16,
    /// When the first timeout since the last progress was.
    since: Instant,
    /// Segments to be sent again at a time: data that subflows have acknowledged is not there.
    repeating: u16,
    /// Window probes since the last progress.
    probes: u16,
    /// Window probes since anything came from the peer.
    unanswered: u16,
    /// Consecutive window probes that the peer answered without a data sequence signal.
    optionless_probes: u16,
    /// Longest time to the next timer of a subflow when the scheduler was asked last, in ms.
    pending_ms: u32,
}

/// Time that data may go unacknowledged at the data level (this project; RFC 8684 §3.3 leaves it
/// open): about twice what TCP's timeouts take. Subflows that fail may be replaced by others
/// without end.
const SEND_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Time that a small window waits to grow before it is used: the timeout, within these bounds. RFC
/// 9293 §3.8.6.2.1: 0.1 to 1 seconds.
const SMALL_WINDOW_PAUSES: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(1);
/// Longest pause between data-level retransmissions, and between window probes.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl DataRto {
    /// Expiries of the retransmission timer since the last progress.
    #[inline]
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts.into()
    }

    /// Something acceptable came from the peer.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.unanswered = 0;
    }
}

impl Connection {
    /// Something is outstanding: its timer runs from the oldest on.
    pub(super) fn start_retransmission(&mut self, now: Instant) {
        if !self.timers.is_running(Timer::Retransmission) {
            self.arm_retransmission(now);
        }
    }

    /// RFC 8684 §3.3.6 and §4: data counts as delivered only when the data level acknowledges it.
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        let DataRto { timeouts, pending_ms, .. } = self.data_rto;
        let pause = match self.data_retransmission().pause {
            Pause::PendingTimers { none } => {
                let pending = Duration::from_millis(pending_ms.into());
                let first = if pending_ms > 0 { pending } else { none };
                match timeouts {
                    0 | 1 => first,
                    _ => first.max(self.longest_timeout()) * (1 << (timeouts - 1).min(16)),
                }
            }
            Pause::Timeouts => self.longest_timeout() * 2 * (1 << timeouts.min(16)),
        };
        self.timers.set(Timer::Retransmission, now + pause.min(LONGEST_PAUSE));
        self.timers.set_if_earlier(Timer::GiveUp, now + SEND_TIMEOUT);
    }

    pub(super) fn data_retransmission(&self) -> DataRetransmission {
        self.config.platform.data_retransmission(self.subflows.len())
    }

    /// Retransmission timeout of the slowest usable subflow.
    fn longest_timeout(&self) -> Duration {
        let subflows = self.subflows.iter().zip(self.subflows.views());
        let usable = subflows.filter(|(_, view)| view.usability == Usability::Usable);
        let timeouts = usable.map(|(ctx, _)| ctx.subflow.rto_without_backoff());
        timeouts.max().unwrap_or(Duration::from_secs(1))
    }

    /// The scheduler is asked about new data. Linux asks only while the peer's window has room
    /// (`ack_update_msk`).
    pub(super) fn note_pending_timers(&mut self, now: Instant) {
        if let Pause::PendingTimers { .. } = self.data_retransmission().pause
            && self.send.available_window() > 0
        {
            let subflows = self.subflows.iter().zip(self.subflows.views());
            let usable = subflows.filter(|(_, view)| view.usability == Usability::Usable);
            let pending = usable.filter_map(|(ctx, _)| ctx.subflow.next_loss_timer());
            let longest = pending.max().map_or(Duration::ZERO, |at| at.saturating_since(now));
            self.data_rto.pending_ms = longest.as_millis() as u32;
        }
    }

    /// The peer's window has `available`, which is nothing or not worth using.
    pub(super) fn arm_persist(&mut self, now: Instant, available: u64) {
        if available > 0 {
            let (least, most) = SMALL_WINDOW_PAUSES.into_inner();
            self.timers
                .set_if_earlier(Timer::Persist, now + self.shortest_rto().clamp(least, most));
        } else if !self.timers.is_running(Timer::Persist) {
            self.timers.set(Timer::Persist, now + self.probe_pause());
        }
    }

    fn shortest_rto(&self) -> Duration {
        self.subflows.iter().map(|ctx| ctx.subflow.rto()).min().unwrap_or(LONGEST_PAUSE)
    }

    /// Time from the last window probe to the next one.
    fn probe_pause(&self) -> Duration {
        (self.shortest_rto() * (1 << self.data_rto.probes.min(16))).min(LONGEST_PAUSE)
    }

    /// DATA_ACK moved on.
    pub(super) fn on_data_acknowledged(&mut self, now: Instant) {
        (self.data_rto.timeouts, self.data_rto.probes) = (0, 0);
        self.data_rto.unexplained = 0;
        self.timers.stop(Timer::Persist);
        self.send.on_progress();
        self.timers.stop(Timer::GiveUp);
        if self.send.queue.all_acknowledged() {
            self.data_rto.repeating = 0;
            self.timers.stop(Timer::Retransmission);
            return;
        }
        if !self.has_data_under_way() {
            // The peer lacked this data, so it may lack the data after it as well.
            self.data_rto.repeating = self.data_rto.repeating.saturating_mul(2);
            self.send.queue.reinject_first(self.data_rto.repeating.into());
        }
        self.arm_retransmission(now);
    }

    /// On a connection's only subflow, TCP delivers everything. A copy of data would prevent the
    /// fallback to TCP: without its mapping, the peer would read it as the next data. So the host
    /// repeats data only for a peer that dropped it after the TCP acknowledgement, and whose
    /// DATA_ACKs still exclude it. A peer without DATA_ACKs may have fallen back to TCP.
    pub(super) fn may_repeat_on_only_subflow(&self) -> bool {
        !self.has_data_under_way()
            && self.data_rto.timeouts > 1
            && self.subflows.iter().any(|ctx| ctx.dss_seen_at > self.data_rto.since)
    }

    fn has_data_under_way(&self) -> bool {
        self.subflows.iter().any(|ctx| ctx.subflow.has_outstanding())
    }

    /// Returns `true` if some subflow has nothing to send and nothing outstanding.
    fn has_idle_subflow(&self) -> bool {
        let assigned = self.send.queue.assigned();
        self.subflows.iter().zip(self.subflows.views()).any(|(ctx, view)| {
            view.usability == Usability::Usable
                && !ctx.subflow.has_outstanding()
                && assigned.get(view.id.slot.index()).is_none_or(|bytes| *bytes == 0)
        })
    }

    pub(super) fn handle_data_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::Retransmission => self.on_data_retransmission(now),
                Timer::Persist if self.send.available_window() > 0 => self.send.use_small_window(),
                Timer::Persist => self.probe_window(now),
                Timer::Unmapped => self.on_unmapped_timeout(now),
                Timer::Fail => self.tell_failure(now),
                Timer::GiveUp if self.session.is_mptcp() => {
                    self.give_up(ConnectionError::TimedOut);
                }
                Timer::Orphan => self.give_up(ConnectionError::NoSubflow),
                Timer::GiveUp | Timer::Scheduler => {}
            }
        }
    }

    /// Ask the peer for its window. RFC 9293 §3.8.6.1 has probes go on as long as they are
    /// answered.
    fn probe_window(&mut self, now: Instant) {
        let probed_at = now - self.probe_pause();
        let is_optionless = self.data_rto.probes > 0
            && self.data_rto.unanswered == 0
            && self.subflows.iter().all(|ctx| ctx.dss_seen_at <= probed_at);
        self.data_rto.optionless_probes =
            if is_optionless { self.data_rto.optionless_probes.saturating_add(1) } else { 0 };
        self.probe_peer(self.data_rto.probes.into());
        self.data_rto.probes = self.data_rto.probes.saturating_add(1);
        self.data_rto.unanswered = self.data_rto.unanswered.saturating_add(1);
        self.arm_persist(now, 0);
        if u32::from(self.data_rto.unanswered) > self.config.tcp.retries {
            self.give_up(ConnectionError::TimedOut);
        } else if self.session.is_mptcp() {
            self.give_up_on_window(self.data_rto.optionless_probes);
        }
    }

    fn on_data_retransmission(&mut self, now: Instant) {
        if self.send.queue.all_acknowledged() {
            return;
        }
        self.give_up_on_optionless_acks();
        self.give_up_on_data_fin();
        if !self.session.is_mptcp() {
            return;
        }
        if self.send.queue.fin_outstanding() {
            self.data_fin.send();
        }
        self.send.queue.reinject_uncarried();
        let under_way = self.has_data_under_way();
        self.data_rto.unexplained =
            if under_way { 0 } else { self.data_rto.unexplained.saturating_add(1) };
        if u32::from(self.data_rto.unexplained) > self.config.tcp.retries {
            // RFC 8684 §3.3 leaves a send timeout to the connection: no subflow has anything
            // outstanding that it could give up for.
            return self.give_up(ConnectionError::TimedOut);
        }
        let rule = self.data_retransmission();
        let possible = match rule.needs_idle_subflow {
            true => self.has_idle_subflow(),
            false => self.subflows.len() > 1 || !under_way,
        };
        if !possible && rule.needs_idle_subflow && under_way {
            // The data may just wait behind other data.
            return self.timers.set(Timer::Retransmission, now + self.longest_timeout());
        }
        if possible {
            match rule.whole_fragments {
                true => self.send.queue.reinject_fragment(),
                false => self.send.queue.reinject_first(1),
            }
        }
        self.data_rto.repeating = u16::from(!under_way);
        if !self.fallback.may_repeat() {
            self.probe_peer(self.data_rto.timeouts());
        }
        if self.data_rto.timeouts == 0 {
            self.data_rto.since = now;
        }
        self.data_rto.timeouts = self.data_rto.timeouts.saturating_add(1);
        self.arm_retransmission(now);
    }

    /// Have the peer say its DATA_ACK and its window. RFC 8684 §3.3.5: any subflow will do. The
    /// best first, and then in turn: no other sign comes from a dead path on which nothing is
    /// outstanding.
    fn probe_peer(&mut self, attempt: u32) {
        let usable =
            || self.subflows.views().iter().filter(|view| view.usability == Usability::Usable);
        let key = |view: &SubflowView| (view.srtt_or_max(), view.id.slot);
        let turn = attempt as usize % usable().count().max(1);
        let next =
            |view: &&SubflowView| usable().filter(|other| key(other) < key(view)).count() == turn;
        if let Some(id) = usable().find(next).map(|view| view.id) {
            self.subflows[id.slot].subflow.demand_probe();
        }
    }
}
