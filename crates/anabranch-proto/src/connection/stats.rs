//! Totals of a connection and its subflows.

use anabranch_wire::Instant;

use super::Connection;
use crate::config::Protocol;
use crate::counters::Counters;
use crate::stats::{ConnectionStats, Fallback, SubflowStats};
use crate::view::Slot;

impl Connection {
    /// Totals until `now`.
    pub(crate) fn stats(&self, now: Instant) -> ConnectionStats {
        ConnectionStats {
            is_mptcp: self.session.is_mptcp(),
            fallback: self.why_tcp(),
            bytes_written: self.send.queue.end() - 1,
            bytes_acknowledged: self.send.queue.una() - 1,
            bytes_delivered: self.recv.queue.nxt() - 1 - u64::from(self.recv.queue.is_complete()),
            out_of_order_bytes: self.recv.queue.out_of_order_bytes(),
            out_of_order_segments: self.counters.ofo_queue,
            stray_segments: self.recv.queue.strays_so_far(),
            available_window: self.send.available_window(),
            unsent_bytes: self.send.queue.unsent() + self.send.queue.assigned().iter().sum::<u64>(),
            window_limited: self.scheduling.window_limited(now),
            send_buffer_limited: self.scheduling.send_buffer_limited(now),
            reinjections: self.counters.data_level_retransmits,
            copies: self.counters.copies,
            path_probes: self.counters.path_probes,
            bad_decisions: self.counters.bad_decisions,
            send_buffer: self.send.queue.buffer().capacity(),
            receive_buffer: self.recv.queue.window().capacity(),
        }
    }

    /// Add the counters of the connection and all its subflows.
    pub(crate) fn add_to(&self, sum: &mut Counters) {
        sum.add_connection(&self.counters);
        self.subflows.add_to(sum);
    }

    pub(super) fn why_tcp(&self) -> Fallback {
        let counters = &self.counters;
        if !self.session.is_tcp() || self.config.protocol == Protocol::Tcp {
            return Fallback::None;
        }
        let reasons = [
            (counters.mp_capable_fallback_syn_ack, Fallback::SynAck),
            (counters.mp_capable_fallback_ack, Fallback::ThirdAck),
            (counters.dss_corruption_fallback, Fallback::Checksum),
            (counters.dss_fallback, Fallback::OptionsLost),
            (counters.infinite_map_rx, Fallback::Peer),
            (u64::from(self.session.is_listener()), Fallback::Syn),
        ];
        reasons.into_iter().find(|(count, _)| *count > 0).map_or(Fallback::None, |(_, why)| why)
    }

    /// Totals of each subflow, by slot, also of those that have ended.
    pub(crate) fn subflow_stats(&self) -> impl Iterator<Item = SubflowStats> + '_ {
        self.subflows.slots().map(|slot| self.stats_of(slot))
    }

    /// Totals of the subflow in `slot`, which may have ended.
    pub(super) fn stats_of(&self, slot: Slot) -> SubflowStats {
        let ctx = &self.subflows[slot];
        let totals = ctx.subflow.totals();
        SubflowStats {
            view: *self.subflows.view(slot),
            local: ctx.subflow.identity().local,
            remote: ctx.subflow.identity().remote,
            segments_sent: totals.segments_sent,
            bytes_sent: totals.bytes_sent,
            segments_retransmitted: totals.segments_retransmitted,
            bytes_retransmitted: totals.bytes_retransmitted,
            bytes_reinjected: ctx.carried.reinjected(),
            segments_received: totals.segments_received,
            bytes_received: totals.bytes_received,
            acks_sent: totals.acks_sent,
            timeouts: totals.timeouts.into(),
            recoveries: u64::from(totals.recoveries),
            undone: u64::from(totals.undone),
            probes: u64::from(totals.probes),
            idle_restarts: totals.idle_restarts.into(),
            out_of_order_bytes: ctx.subflow.receiver().out_of_order_bytes(),
            ce_received: totals.ce_received,
            ece_received: totals.ece_received,
            ecn_reductions: totals.ecn_reductions,
        }
    }
}
