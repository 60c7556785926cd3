//! Timers for data that stays unacknowledged at the data level, and for windows that stay shut: the
//! connection waits, retransmits or probes, and finally gives up.

use std::ops::RangeInclusive;

use anabranch_wire::{Duration, Instant};

use super::Connection;
use super::timer::ConnectionTimer;
use crate::error::ConnectionError;
use crate::platform::{DataRetransmission, Pause};

/// Time that data may go unacknowledged at the data level (this project; RFC 8684 §3.3 leaves it
/// open): about twice what TCP's timeouts take. Subflows that fail may be replaced by others
/// without end.
const SEND_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Time that a small window waits to grow before it is used: the timeout, within these bounds. RFC
/// 9293 §3.8.6.2.1: 0.1 to 1 seconds.
const SMALL_WINDOW_PAUSES: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(1);

impl Connection {
    /// Something is outstanding: its timer runs from the oldest on.
    pub(super) fn start_retransmission(&mut self, now: Instant) {
        if !self.timers.is_running(ConnectionTimer::Retransmission) {
            self.arm_retransmission(now);
        }
    }

    /// RFC 8684 §3.3.6 and §4: data counts as delivered only when the data level acknowledges it.
    pub(super) fn arm_retransmission(&mut self, now: Instant) {
        self.begin_period(now);
        self.timers.set_if_earlier(ConnectionTimer::GiveUp, now + SEND_TIMEOUT);
    }

    fn begin_period(&mut self, now: Instant) {
        let rule = self.data_retransmission().pause;
        let only_data_fin = self.send.queue.una() == self.send.queue.end();
        let pause = self.data_rto.pause(rule, only_data_fin, || self.subflows.longest_timeout());
        self.timers
            .set(ConnectionTimer::Retransmission, self.config.platform.expiry.fires(now, pause));
    }

    #[inline]
    pub(super) fn data_retransmission(&self) -> &'static DataRetransmission {
        self.config.platform.data_retransmission(self.subflows.len())
    }

    /// The scheduler is asked about new data. Linux asks after each write (`__mptcp_push_pending`), and
    /// otherwise only while the peer's window has room (`ack_update_msk`).
    #[inline]
    pub(super) fn note_pending_timers(&mut self, now: Instant) {
        let written = self.send.take_written();
        if written || self.send.available_window() > 0 {
            self.note_timers_of_progressing(now);
        }
    }

    #[inline]
    fn note_timers_of_progressing(&mut self, now: Instant) {
        if let Pause::PendingTimers { .. } = self.data_retransmission().pause {
            self.data_rto.note_pending(self.subflows.longest_loss_timer(now));
        }
    }

    /// The peer's window has `available`, which is nothing or not worth using.
    pub(super) fn arm_persist(&mut self, now: Instant, available: u64) {
        if available > 0 {
            let (least, most) = SMALL_WINDOW_PAUSES.into_inner();
            self.timers.set_if_earlier(
                ConnectionTimer::Persist,
                now + self.subflows.shortest_rto().clamp(least, most),
            );
        } else if !self.timers.is_running(ConnectionTimer::Persist) {
            self.timers.set(ConnectionTimer::Persist, now + self.probe_pause());
        }
    }

    /// Time from the last window probe to the next one.
    fn probe_pause(&self) -> Duration {
        self.data_rto.probe_pause(self.subflows.shortest_rto())
    }

    /// DATA_ACK moved on.
    pub(super) fn on_data_acknowledged(&mut self, now: Instant) {
        self.data_rto.on_progress();
        self.timers.stop(ConnectionTimer::Persist);
        self.send.on_progress();
        self.timers.stop(ConnectionTimer::GiveUp);
        if self.send.queue.all_acknowledged() {
            self.data_rto.on_all_acknowledged();
            self.timers.stop(ConnectionTimer::Retransmission);
            return self.await_unsent(now);
        }
        if !self.subflows.have_outstanding() {
            self.send.queue.reinject_first(self.data_rto.widen_repetition());
        }
        // Linux asks the scheduler before it restarts the timer (`ack_update_msk`).
        if self.send.queue.unsent() > 0 {
            self.note_pending_timers(now);
        }
        self.arm_retransmission(now);
    }

    /// On a connection's only subflow, TCP delivers everything. A copy of data would prevent the
    /// fallback to TCP: without its mapping, the peer would read it as the next data. So the host
    /// repeats data only for a peer that dropped it after the TCP acknowledgement, and whose
    /// DATA_ACKs still exclude it. A peer without DATA_ACKs may have fallen back to TCP.
    pub(super) fn may_repeat_on_only_subflow(&self) -> bool {
        !self.subflows.have_outstanding()
            && self.data_rto.timeouts() > 1
            && self.subflows.iter().any(|ctx| ctx.signs.last_dss() > self.data_rto.since())
    }

    pub(super) fn handle_data_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                ConnectionTimer::Retransmission => self.on_data_retransmission(now),
                ConnectionTimer::Persist if self.send.available_window() > 0 => {
                    self.send.use_small_window()
                }
                ConnectionTimer::Persist => self.probe_window(now),
                ConnectionTimer::Unmapped => self.on_unmapped_timeout(now),
                ConnectionTimer::Fail => self.tell_failure(now),
                ConnectionTimer::GiveUp if self.waits_only_for_peer() => self.give_up_released(),
                ConnectionTimer::GiveUp if self.session.is_mptcp() => {
                    self.give_up(ConnectionError::TimedOut);
                }
                ConnectionTimer::Orphan => self.give_up(ConnectionError::NoSubflow),
                ConnectionTimer::GiveUp | ConnectionTimer::Scheduler => {}
            }
        }
    }

    /// Ask the peer for its window. Probes continue while the peer answers them (RFC 9293
    /// §3.8.6.1). If the application has released the connection, they stop once their interval has
    /// reached the longest timeout, as in Linux (`tcp_probe_timer`).
    fn probe_window(&mut self, now: Instant) {
        let probed_at = now - self.probe_pause();
        let silent = self.subflows.iter().all(|ctx| ctx.signs.last_dss() <= probed_at);
        let longest = self.config.platform.timeouts.maximum;
        let is_abandoned = self.recv.is_released()
            && self.data_rto.has_backed_off(self.subflows.shortest_rto(), longest);
        self.subflows.probe_peer(self.data_rto.probes());
        let optionless = self.data_rto.on_probe(silent);
        self.arm_persist(now, 0);
        if self.data_rto.unanswered() > self.config.tcp.retries {
            self.give_up(ConnectionError::TimedOut);
        } else if is_abandoned {
            self.give_up_released();
        } else if self.session.is_mptcp() {
            self.give_up_on_window(optionless);
        }
    }

    /// Nothing is outstanding. Linux lets the timer run while written data waits
    /// (`__mptcp_clean_una`), and thus finds subflows that make no progress.
    fn await_unsent(&mut self, now: Instant) {
        if self.data_retransmission().needs_idle_subflow && self.send.queue.unsent() > 0 {
            self.begin_period(now);
        }
    }

    /// The timer expires while nothing is outstanding (`__mptcp_retrans`).
    fn on_unsent_timeout(&mut self, now: Instant) {
        if self.data_retransmission().needs_idle_subflow && self.send.queue.unsent() > 0 {
            self.count_silence();
            self.data_rto.count_timeout(now);
            self.begin_period(now);
            self.note_timers_of_progressing(now);
        }
    }

    fn on_data_retransmission(&mut self, now: Instant) {
        if self.send.queue.all_acknowledged() {
            return self.on_unsent_timeout(now);
        }
        self.give_up_on_optionless_acks();
        self.give_up_on_data_fin();
        if !self.session.is_mptcp() {
            return;
        }
        if self.send.queue.fin_outstanding() {
            self.data_fin.send();
        }
        let resends_fragments = self.data_retransmission().needs_idle_subflow;
        if !resends_fragments || !self.subflows.have_several() {
            self.send.queue.reinject_uncarried();
        }
        let under_way = self.subflows.have_outstanding();
        if self.data_rto.on_expired(under_way) > self.config.tcp.retries {
            // RFC 8684 §3.3 leaves a send timeout to the connection: no subflow has anything
            // outstanding that it could give up for.
            return self.give_up(ConnectionError::TimedOut);
        }
        if self.data_retransmission().needs_idle_subflow {
            self.resend_on_idle();
        } else if self.subflows.len() > 1 || !under_way {
            self.send.queue.reinject_first(1);
        }
        self.data_rto.begin_repetition(under_way);
        if !self.fallback.may_repeat() {
            self.subflows.probe_peer(self.data_rto.timeouts());
        }
        self.data_rto.count_timeout(now);
        self.arm_retransmission(now);
        // Linux asks the scheduler once the timer runs (`mptcp_check_and_set_pending`).
        if self.send.queue.unsent() > 0 {
            self.note_timers_of_progressing(now);
        }
    }
}
