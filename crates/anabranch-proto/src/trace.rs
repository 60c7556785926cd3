//! What the engine did and why, for whoever listens. Off by default, free when off.

use anabranch_wire::{DataSeq, Instant};

use crate::view::SubflowId;

/// One decision or change of state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent {
    /// When.
    pub at: Instant,
    /// What.
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
    /// Data that was sent before goes out on another subflow.
    Reinjected {
        /// The subflow that now carries it too.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
        /// A remedy asked for it (opportunistic retransmission), not a timeout.
        opportunistic: bool,
    },
    /// New data that the scheduler wants on several subflows goes out on one more.
    Copied {
        /// The subflow that now carries it too.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
    },
    /// The path manager tries a subflow with a copy of data that another carries.
    Probed {
        /// The subflow that is tried.
        subflow: SubflowId,
        /// First data sequence number.
        data_seq: DataSeq,
        /// Bytes.
        len: u32,
    },
    /// A remedy had the congestion window of a subflow reduced.
    Penalised {
        /// The subflow.
        subflow: SubflowId,
        /// Its congestion window afterwards, in bytes.
        cwnd: u64,
    },
    /// A subflow had room, but the shared receive window did not.
    WindowLimited {
        /// The subflow that could have sent.
        subflow: SubflowId,
    },
    /// A scheduler named a subflow that does not exist or cannot send, or would have waited for
    /// ever.
    BadDecision,
}
