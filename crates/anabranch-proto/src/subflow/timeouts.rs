//! Expiry of a subflow's timers. RFC 6298 §5, RFC 9293 §3.8.

use anabranch_wire::{Duration, Instant};

use super::{State, Subflow, SubflowEnd, SubflowTimer};
use crate::congestion::CongestionEvent;
use crate::platform::{GiveUpRule, Reduction};
use crate::view::{RecoveryPhase, SubflowView};

/// Pause before a SYN is repeated that an earlier connection has answered. Linux: `TCP_TIMEOUT_MIN`, two
/// ticks of 4 ms.
const PAUSE_AFTER_RESET: Duration = Duration::from_millis(8);

impl Subflow {
    /// An earlier connection of the peer has answered the first SYN, and the host resets it. The SYN need
    /// not wait for its timeout. Linux: `tcp_rcv_synsent_state_process`.
    pub(crate) fn repeat_syn_soon(&mut self, now: Instant) {
        if self.state == State::SynSent && self.handshake.syns_sent() == 1 {
            self.handshake.on_earlier_connection();
            let at = self.config.platform.expiry.fires(now, PAUSE_AFTER_RESET);
            self.timers.set(SubflowTimer::Retransmission, at);
        }
    }

    /// The earliest deadline that was set since the last call. It may no longer count. Departures also have
    /// deadlines if segments are `paced`.
    #[inline]
    pub(crate) fn take_earliest_set(&mut self, paced: bool) -> Instant {
        let departure = if paced { self.congestion.departure() } else { Instant::FAR_FUTURE };
        self.timers.take_earliest_set().min(departure)
    }

    /// Time at which [`Subflow::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.timers.next().min(self.congestion.departure())
    }

    /// Process the timers whose deadline has passed. `orphaned`: no application has the connection any
    /// more. Returns true if the retransmission timer expired with data outstanding.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        views: &[SubflowView],
        orphaned: bool,
    ) -> bool {
        if self.congestion.departure() <= now {
            self.congestion.depart();
        }
        let mut timed_out = false;
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                SubflowTimer::Retransmission => {
                    timed_out |= self.on_retransmission_timeout(now, views, orphaned);
                }
                SubflowTimer::TailLossProbe => {
                    self.recovery.demand_probe();
                    self.arm_retransmission(now);
                }
                SubflowTimer::Reordering => self.on_reordering_timer(now, views),
                SubflowTimer::DelayedAck => {
                    if self.receiver.ack_is_delayed() {
                        self.receiver.demand_ack();
                    }
                    self.receiver.application_is_silent();
                }
                SubflowTimer::KeepAlive => self.on_keep_alive(now),
                SubflowTimer::UserTimeout => self.give_up(),
                SubflowTimer::Verification => self.reset(None),
                SubflowTimer::TimeWait => self.close(SubflowEnd::Finished),
            }
        }
        timed_out
    }

    fn on_syn_timeout(&mut self) {
        // Answers to retransmitted SYNs do not count.
        let timeouts = self.totals.expiries;
        let GiveUpRule { syn_retries, syn_linear_timeouts, .. } = self.config.platform.give_up;
        let linear = if self.state == State::SynSent { syn_linear_timeouts.into() } else { 0 };
        if timeouts > syn_retries.map_or(self.config.tcp.syn_retries, u32::from) + linear {
            return self.give_up();
        }
        if timeouts > linear {
            self.rtt.back_off();
        }
        self.handshake.demand_syn();
    }

    fn on_retransmission_timeout(
        &mut self,
        now: Instant,
        views: &[SubflowView],
        orphaned: bool,
    ) -> bool {
        self.ecn.release();
        match self.state {
            State::SynSent | State::SynReceived => {
                self.totals.expiries += 1;
                self.on_syn_timeout();
                false
            }
            _ if self.board.is_empty() => {
                self.repeat_third_ack(now);
                false
            }
            _ => {
                self.totals.expiries += 1;
                let answered = self.liveness.take_answered();
                // The peer may answer other segments, so an answer alone says nothing about this one.
                // Linux (`tcp_retransmit_timer`): a host that keeps its window closed must not keep an
                // orphan alive.
                let is_held = answered && self.is_refused() && !orphaned;
                match is_held {
                    true => self.liveness.on_answered_timeout(now),
                    false => self.liveness.on_timeout(now),
                }
                if self.is_given_up(now) {
                    self.give_up();
                    return false;
                }
                self.begin_loss_recovery(now, views);
                if !is_held {
                    self.look_for_black_hole(now, views);
                }
                true
            }
        }
    }

    /// Returns `true` if the retransmission timer has expired too often, or for too long, since the last
    /// progress.
    fn is_given_up(&self, now: Instant) -> bool {
        let timeouts = self.liveness.timeouts_in_a_row();
        match self.config.platform.give_up.unanswered(self.config.platform.timeouts) {
            None => timeouts > self.config.tcp.retries,
            Some(wait) => timeouts > 1 && self.liveness.unanswered_since() + wait <= now,
        }
    }

    /// Returns `true` if the peer has withdrawn the window for the oldest outstanding segment. RFC
    /// 9293 §3.8.6: retransmissions then act as probes, and unacknowledged data must not end the
    /// connection.
    pub(super) fn is_refused(&self) -> bool {
        self.board.front_end().is_some_and(|end| self.send_window.refuses(end))
    }

    /// RFC 8684 §3.2: retransmit the third ACK of a join until the peer acknowledges it.
    fn repeat_third_ack(&mut self, now: Instant) {
        if !self.awaits_confirmation() {
            return;
        }
        self.liveness.on_timeout(now);
        if self.liveness.timeouts_in_a_row() > self.config.tcp.syn_retries {
            self.give_up();
            return;
        }
        self.rtt.back_off();
        self.receiver.demand_ack();
        self.arm_retransmission(now);
    }

    /// RFC 6298 §5, RFC 5681 §3.1.
    fn begin_loss_recovery(&mut self, now: Instant, views: &[SubflowView]) {
        let flight_size = match self.config.platform.reduction {
            Reduction::Cwnd => self.congestion.cwnd(),
            Reduction::Flight => self.nxt - self.una,
        };
        let first = self.recovery.phase() != RecoveryPhase::Loss;
        if self.liveness.timeouts_in_a_row() > 1 {
            self.board.forget_sacks();
        }
        self.board.mark_all_lost();
        self.recovery.enter_loss(self.una, self.nxt);
        self.notify(&CongestionEvent::Timeout { now, flight_size, first }, views);
        self.ecn.on_reduction(self.nxt);
        self.rtt.back_off();
        self.totals.timeouts += 1;
        self.timers.stop(SubflowTimer::TailLossProbe);
        self.timers.stop(SubflowTimer::Reordering);
        self.arm_retransmission(now);
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let Some(idle) = self.config.tcp.keep_alive else { return };
        self.timers.set(SubflowTimer::KeepAlive, now + idle);
        // RFC 9293 §3.8.4: outstanding data shows by itself whether the peer is alive.
        if !self.board.is_empty() {
            return;
        }
        if !self.liveness.keep_alive(self.config.tcp.retries) {
            self.give_up();
            return;
        }
        self.totals.keep_alive_probes += 1;
    }

    fn give_up(&mut self) {
        self.close(SubflowEnd::TimedOut);
    }
}
