//! Statistics of a host's connections, whatever its transport. Recorder and ledger know a host only
//! through them.

use anabranch_proto::view::Bottleneck;
use anabranch_proto::{ConnectionStats, Fallback, SubflowStats};
use anabranch_table::Named;
use anabranch_wire::{Duration, Instant, SocketAddress};

use crate::workload::{Sender, Sink};

/// Totals of a connection at one host.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionTotals {
    /// Whether the connection uses several paths, or could.
    pub is_mptcp: bool,
    /// Reason for a fallback to TCP that the peer or the path caused.
    pub fallback: FallbackReason,
    /// Bytes that the application wrote and the connection accepted.
    pub bytes_written: u64,
    /// Bytes that arrived in order.
    pub bytes_delivered: u64,
    /// Bytes that wait for earlier data.
    pub out_of_order_bytes: u64,
    /// Segments that had to wait for earlier data.
    pub out_of_order_segments: u64,
    /// Segments of these whose place required a search.
    pub stray_segments: u64,
    /// Bytes that the receive window still admits.
    pub available_window: u64,
    /// Bytes written but never sent.
    pub unsent_bytes: u64,
    /// Time during which a subflow had room, but the receive window was full.
    pub window_limited: Duration,
    /// Time during which a subflow had room, but all data was sent and the application waited for room
    /// in the send buffer.
    pub send_buffer_limited: Duration,
    /// Segments reinjected on another subflow.
    pub reinjections: u64,
    /// Segments copied because the scheduler wanted them on several subflows.
    pub copies: u64,
    /// Segments copied because the path manager probed a subflow.
    pub path_probes: u64,
    /// Decisions of the scheduler that were impossible, or would have stalled the connection.
    pub bad_decisions: u64,
    /// Size of the send buffer in bytes.
    pub send_buffer: u64,
    /// Size of the receive buffer in bytes.
    pub receive_buffer: u64,
}

/// Totals of a subflow at one host.
#[derive(Clone, Copy, Debug)]
pub struct SubflowTotals {
    /// Identity of the subflow.
    pub key: SubflowKey,
    /// Local address and port.
    pub local: SocketAddress,
    /// Remote address and port.
    pub remote: SocketAddress,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Bottleneck that the subflow shares with others: 0 if it is unknown, 1 if there is none, and a
    /// number from 2 on otherwise.
    pub bottleneck: u32,
    /// Data segments sent for the first time.
    pub segments_sent: u64,
    /// Payload bytes of these segments.
    pub bytes_sent: u64,
    /// Segments retransmitted on this subflow.
    pub segments_retransmitted: u64,
    /// Payload bytes of the retransmissions.
    pub bytes_retransmitted: u64,
    /// Payload bytes that another subflow had carried before.
    pub bytes_reinjected: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Spurious reductions that were undone.
    pub undone: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Restarts after an idle time.
    pub idle_restarts: u64,
    /// Acknowledgements that echoed a mark of ECN.
    pub ece_received: u64,
    /// Reductions because of marks.
    pub ecn_reductions: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Bytes that wait for earlier bytes of the subflow.
    pub out_of_order_bytes: u64,
}

/// Identity of a subflow within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowKey {
    /// Index, which is used again after the subflow has ended.
    pub slot: u8,
    /// Number of earlier subflows with this index.
    pub generation: u32,
}

/// Reason why a connection uses TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FallbackReason {
    /// It does not.
    #[default]
    None,
    /// The peer's SYN has no option.
    Syn,
    /// The peer's SYN/ACK has no option.
    SynAck,
    /// The third ACK has no option.
    ThirdAck,
    /// Options vanished later.
    OptionsLost,
    /// A checksum was wrong.
    Checksum,
    /// The peer fell back.
    Peer,
}

impl Named for FallbackReason {
    const NAMES: &'static [&'static str] =
        &["", "syn", "syn_ack", "third_ack", "options_lost", "checksum", "peer"];

    fn index(self) -> u8 {
        self as u8
    }
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionProgress {
    /// The connection is open or will be opened.
    Underway,
    /// Both directions were closed, and all data was acknowledged.
    Closed,
    /// A program reset the connection.
    Aborted,
    /// The connection ended in another way.
    Failed,
}

/// Client and server.
pub type Hosts<'a> = [&'a dyn Observed; 2];

/// Statistics of a host. Connections are numbered as in the scenario.
pub trait Observed {
    /// The receiving half of the connection's application.
    fn sink(&self, connection: usize) -> &Sink;
    /// The sending half of the connection's application, if it has one.
    fn sender(&self, connection: usize) -> Option<&dyn Sender>;
    /// Bytes of the data that have arrived for the connection's application, each counted once. By
    /// default these are the ones that it has read; a host that knows more also counts what waits
    /// for earlier data.
    fn arrived(&self, connection: usize) -> u64 {
        self.sink(connection).received()
    }
    /// State of the connection.
    fn progress(&self, connection: usize) -> ConnectionProgress;
    /// When the connection was opened, and when it ended if it has, if that is the time to measure it
    /// for. By default the scenario says when measuring begins, and the workload when it ends.
    fn lifetime(&self, _connection: usize) -> Option<(Instant, Option<Instant>)> {
        None
    }
    /// Current totals of the connection, if it exists.
    fn stats(&self, now: Instant, connection: usize) -> Option<ConnectionTotals>;
    /// Final totals of the connection, if it has ended.
    fn last_stats(&self, connection: usize) -> Option<ConnectionTotals>;
    /// The subflows of the connection, by slot. Closed ones are among them until others take their slots.
    fn subflows(&self, connection: usize) -> Vec<SubflowTotals>;
    /// The closed subflows of the connection.
    fn past_subflows(&self, connection: usize) -> Vec<SubflowTotals>;
}

impl From<Fallback> for FallbackReason {
    fn from(fallback: Fallback) -> Self {
        match fallback {
            Fallback::None => FallbackReason::None,
            Fallback::Syn => FallbackReason::Syn,
            Fallback::SynAck => FallbackReason::SynAck,
            Fallback::ThirdAck => FallbackReason::ThirdAck,
            Fallback::OptionsLost => FallbackReason::OptionsLost,
            Fallback::Checksum => FallbackReason::Checksum,
            Fallback::Peer => FallbackReason::Peer,
        }
    }
}

impl From<ConnectionStats> for ConnectionTotals {
    fn from(stats: ConnectionStats) -> Self {
        ConnectionTotals {
            is_mptcp: stats.is_mptcp,
            fallback: stats.fallback.into(),
            bytes_written: stats.bytes_written,
            bytes_delivered: stats.bytes_delivered,
            out_of_order_bytes: stats.out_of_order_bytes,
            out_of_order_segments: stats.out_of_order_segments,
            stray_segments: stats.stray_segments,
            available_window: stats.available_window,
            unsent_bytes: stats.unsent_bytes,
            window_limited: stats.window_limited,
            send_buffer_limited: stats.send_buffer_limited,
            reinjections: stats.reinjections,
            copies: stats.copies,
            path_probes: stats.path_probes,
            bad_decisions: stats.bad_decisions,
            send_buffer: stats.send_buffer,
            receive_buffer: stats.receive_buffer,
        }
    }
}

impl From<SubflowStats> for SubflowTotals {
    fn from(stats: SubflowStats) -> Self {
        let view = &stats.view;
        SubflowTotals {
            key: SubflowKey { slot: view.id.slot.into(), generation: view.id.generation },
            local: stats.local,
            remote: stats.remote,
            cwnd: view.cwnd,
            ssthresh: view.ssthresh,
            bytes_in_flight: view.bytes_in_flight,
            srtt: view.srtt,
            min_rtt: view.min_rtt,
            bottleneck: match view.bottleneck {
                Bottleneck::Unknown => 0,
                Bottleneck::None => 1,
                Bottleneck::Shared(number) => 2 + u32::from(number),
            },
            segments_sent: stats.segments_sent,
            bytes_sent: stats.bytes_sent,
            segments_retransmitted: stats.segments_retransmitted,
            bytes_retransmitted: stats.bytes_retransmitted,
            bytes_reinjected: stats.bytes_reinjected,
            timeouts: stats.timeouts,
            recoveries: stats.recoveries,
            undone: stats.undone,
            probes: stats.probes,
            idle_restarts: stats.idle_restarts,
            ece_received: stats.ece_received,
            ecn_reductions: stats.ecn_reductions,
            bytes_received: stats.bytes_received,
            out_of_order_bytes: stats.out_of_order_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fallback_has_its_name() {
        use Fallback::{Checksum, None, OptionsLost, Peer, Syn, SynAck, ThirdAck};
        let all = [None, Syn, SynAck, ThirdAck, OptionsLost, Checksum, Peer];
        let name = |each| FallbackReason::NAMES[usize::from(FallbackReason::from(each).index())];
        assert_eq!(all.map(name)[..3], ["", "syn", "syn_ack"]);
        for reason in &all[1..] {
            assert_eq!(format!("{reason:?}").to_lowercase(), name(*reason).replace('_', ""));
        }
    }
}
