//! A record of the engine's decisions. It is off by default, and then costs nothing.

use anabranch_wire::{DataSeq, Instant};

use crate::view::SubflowId;

/// One decision or change of state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent {
    /// When it happened.
    pub at: Instant,
    /// The recorded event.
    pub kind: TraceKind,
}

/// The kinds of trace events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceKind {
    /// New data was mapped to a subflow.
    Scheduled {
        /// The chosen subflow.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
    },
    /// Data was reinjected: another subflow sends it again.
    Reinjected {
        /// The subflow that now carries the data as well.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
        /// A remedy requested it (opportunistic retransmission), not a timeout.
        opportunistic: bool,
    },
    /// The scheduler wants new data on several subflows, and a further subflow sends a copy.
    Copied {
        /// The subflow that now carries the data as well.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
    },
    /// The path manager probes a subflow with a copy of data that another subflow carries.
    Probed {
        /// The probed subflow.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
    },
    /// The congestion window of a subflow was reduced at the request of a remedy.
    Penalised {
        /// The subflow.
        subflow: SubflowId,
        /// Its congestion window afterwards, in bytes.
        cwnd: u64,
    },
    /// A subflow had room, but the shared receive window was full.
    WindowLimited {
        /// The subflow that could have sent.
        subflow: SubflowId,
    },
    /// The scheduler chose a subflow that does not exist or cannot send, or its decision would have
    /// stalled the connection.
    BadDecision,
}
