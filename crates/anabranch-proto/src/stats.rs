//! Totals of connections and subflows.

use anabranch_wire::{Duration, SocketAddress};

use crate::view::{SubflowView, Usability};

/// Reason why a host that wanted Multipath TCP uses TCP, as far as it knows. The order is that of a
/// connection's life. RFC 8684 §3.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fallback {
    /// It uses Multipath TCP, or was configured for TCP.
    #[default]
    None,
    /// The SYN had no MP_CAPABLE that the host supports.
    Syn,
    /// The SYN/ACK had none.
    SynAck,
    /// The third ACK and the first data had none.
    ThirdAck,
    /// The path dropped options from data or acknowledgements.
    OptionsLost,
    /// The checksum of a mapping was wrong.
    Checksum,
    /// The peer announced the fallback by an infinite mapping.
    Peer,
}

/// Totals of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionStats {
    /// Whether the connection uses Multipath TCP.
    pub is_mptcp: bool,
    /// Reason for the fallback to TCP.
    pub fallback: Fallback,
    /// Bytes that the application wrote and the connection accepted.
    pub bytes_written: u64,
    /// Bytes that the peer acknowledged at the data level.
    pub bytes_acknowledged: u64,
    /// Bytes that arrived in order at the data level.
    pub bytes_delivered: u64,
    /// Bytes that wait for earlier data at the data level.
    pub out_of_order_bytes: u64,
    /// Segments that had to wait for earlier data at the data level.
    pub out_of_order_segments: u64,
    /// Segments of these that did not follow earlier data of their subflow, and required a search
    /// for their place.
    pub stray_segments: u64,
    /// Bytes that the shared receive window still admits.
    pub available_window: u64,
    /// Bytes written but never sent.
    pub unsent_bytes: u64,
    /// Time during which a subflow had room, but the shared window was full.
    pub window_limited: Duration,
    /// Time during which a subflow had room, but everything written was sent and the application
    /// waited for room in the send buffer.
    pub send_buffer_limited: Duration,
    /// Segments reinjected on another subflow.
    pub reinjections: u64,
    /// Segments copied because the scheduler wanted them on several subflows.
    pub copies: u64,
    /// Segments copied because the path manager probed a subflow.
    pub path_probes: u64,
    /// Scheduler decisions that were impossible, or would have stalled the connection.
    pub bad_decisions: u64,
    /// Current size of the send buffer in bytes.
    pub send_buffer: u64,
    /// Current size of the receive buffer in bytes.
    pub receive_buffer: u64,
}

/// Totals of one subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowStats {
    /// Current state of the subflow.
    pub view: SubflowView,
    /// Local address and port.
    pub local: SocketAddress,
    /// Remote address and port.
    pub remote: SocketAddress,
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
    /// Spurious reductions that were undone.
    pub undone: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions of the congestion window after an idle time. RFC 5681 §4.1.
    pub idle_restarts: u64,
    /// Bytes held on this subflow beyond a hole.
    pub out_of_order_bytes: u64,
    /// Segments received with a congestion mark (CE). RFC 3168.
    pub ce_received: u64,
    /// Acknowledgements received that echo congestion marks (ECE), if ECN is in use.
    pub ece_received: u64,
    /// Reductions of the congestion window because of congestion marks.
    pub ecn_reductions: u64,
}

impl SubflowStats {
    /// Returns `true` if the subflow is opening or open, `false` once it is closing or has ended.
    pub fn is_open(&self) -> bool {
        self.view.usability != Usability::Closed
    }
}
