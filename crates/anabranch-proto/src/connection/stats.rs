//! Totals of a connection and its subflows.

use anabranch_wire::{Duration, Instant, SocketAddress};

use super::Connection;
use crate::config::Protocol;
use crate::counters::Counters;
use crate::view::SubflowView;

/// Why a host that would have spoken Multipath TCP speaks TCP, as far as it knows; in the order of
/// a connection's life. RFC 8684 §3.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fallback {
    /// It speaks Multipath TCP, or was not to.
    #[default]
    None,
    /// The SYN had no MP_CAPABLE that it can speak.
    Syn,
    /// The SYN/ACK had none.
    SynAck,
    /// Neither the third ACK nor the first data had one.
    ThirdAck,
    /// Options went missing from data or acknowledgements.
    OptionsLost,
    /// The checksum of a mapping was wrong.
    Checksum,
    /// The other host said so, by an infinite mapping.
    Peer,
}

/// Totals of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStats {
    /// Does it speak Multipath TCP?
    pub is_mptcp: bool,
    /// Why not.
    pub fallback: Fallback,
    /// Bytes that the application wrote and the connection accepted.
    pub bytes_written: u64,
    /// Bytes that the peer acknowledged at data level.
    pub bytes_acknowledged: u64,
    /// Bytes that arrived in order at data level.
    pub bytes_delivered: u64,
    /// Bytes held at data level until something earlier arrives.
    pub out_of_order_bytes: u64,
    /// Segments that had to wait at data level.
    pub out_of_order_segments: u64,
    /// Those of them that did not follow what their subflow brought before, and had to be put in
    /// their place by a search.
    pub stray_segments: u64,
    /// Bytes that the shared receive window still admits.
    pub window_room: u64,
    /// Bytes written and never sent.
    pub unsent_bytes: u64,
    /// Time during which a subflow could have sent but the shared window was full.
    pub window_limited: Duration,
    /// Segments sent again on another subflow.
    pub reinjections: u64,
    /// Copies of segments that the scheduler wanted on several subflows.
    pub copies: u64,
    /// Copies of segments that the path manager had sent to try a subflow.
    pub path_probes: u64,
    /// Scheduler decisions that could not be carried out, or would have halted the connection.
    pub bad_decisions: u64,
    /// Present size of the send buffer in bytes.
    pub send_buffer: u64,
    /// Present size of the receive buffer in bytes.
    pub receive_buffer: u64,
}

/// Totals of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct SubflowStats {
    /// Its present state.
    pub view: SubflowView,
    /// Address and port of this end.
    pub local: SocketAddress,
    /// Address and port of the other end.
    pub remote: SocketAddress,
    /// Data segments sent for the first time.
    pub segments_sent: u64,
    /// Their payload bytes.
    pub bytes_sent: u64,
    /// Segments sent again on this subflow.
    pub segments_retransmitted: u64,
    /// Their bytes.
    pub bytes_retransmitted: u64,
    /// Payload bytes that this subflow carried although another had before.
    pub bytes_reinjected: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Acknowledgements sent without data.
    pub acks_sent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Reductions found needless and undone.
    pub undone: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// How often an idle time made the congestion window smaller. RFC 5681 §4.1.
    pub idle_restarts: u64,
    /// Bytes held on this subflow beyond a hole.
    pub out_of_order_bytes: u64,
    /// Segments received that were marked on their way (CE). RFC 3168.
    pub ce_received: u64,
    /// Acknowledgements received that echo marks (ECE), if ECN is in use.
    pub ece_received: u64,
    /// How often marks made the congestion window smaller.
    pub ecn_reductions: u64,
}

impl Connection {
    /// Totals up to `now`.
    pub(crate) fn stats(&self, now: Instant) -> ConnectionStats {
        ConnectionStats {
            is_mptcp: self.session.is_mptcp(),
            fallback: self.why_tcp(),
            bytes_written: self.send.queue.end() - 1,
            bytes_acknowledged: self.send.queue.una().min(self.send.queue.end()) - 1,
            bytes_delivered: self.recv.queue.nxt() - 1 - u64::from(self.recv.queue.is_complete()),
            out_of_order_bytes: self.recv.queue.out_of_order_bytes(),
            out_of_order_segments: self.counters.ofo_queue,
            stray_segments: self.recv.queue.strays_so_far(),
            window_room: self.send.window_room(),
            unsent_bytes: self.send.queue.unsent() + self.send.queue.assigned().iter().sum::<u64>(),
            window_limited: self.scheduling.window_limited(now),
            reinjections: self.counters.data_level_retransmits,
            copies: self.counters.copies,
            path_probes: self.counters.path_probes,
            bad_decisions: self.counters.bad_decisions,
            send_buffer: self.send.queue.buffer().capacity(),
            receive_buffer: self.recv.queue.window().capacity(),
        }
    }

    /// Add up how often things happened to the connection and all its subflows.
    pub(crate) fn add_to(&self, sum: &mut Counters) {
        sum.add_connection(&self.counters);
        self.lanes.add_to(sum);
    }

    fn why_tcp(&self) -> Fallback {
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

    /// Totals of each subflow, by slot.
    pub(crate) fn subflow_stats(&self) -> impl Iterator<Item = SubflowStats> + '_ {
        self.lanes.iter().zip(self.lanes.views()).map(|(lane, view)| {
            let totals = lane.subflow.totals;
            SubflowStats {
                view: *view,
                local: lane.subflow.local,
                remote: lane.subflow.remote,
                segments_sent: totals.segments_sent,
                bytes_sent: totals.bytes_sent,
                segments_retransmitted: totals.segments_retransmitted,
                bytes_retransmitted: totals.bytes_retransmitted,
                bytes_reinjected: lane.reinjected_bytes,
                segments_received: totals.segments_received,
                bytes_received: totals.bytes_received,
                acks_sent: totals.acks_sent,
                timeouts: totals.timeouts.into(),
                recoveries: u64::from(totals.recoveries),
                undone: u64::from(totals.undone),
                probes: u64::from(totals.probes),
                idle_restarts: totals.idle_restarts.into(),
                out_of_order_bytes: lane.subflow.out_of_order_bytes(),
                ce_received: totals.ce_received,
                ece_received: totals.ece_received,
                ecn_reductions: totals.ecn_reductions,
            }
        })
    }
}
