//! The receiving side of the data level: what has come, and how this host acknowledges it.

use super::recv_queue::RecvQueue;

pub(super) struct Receiver {
    pub(super) queue: RecvQueue,
    /// What the windows announced on new subflows are shifted by. RFC 7323 §2.3.
    scale: u8,
    /// The peer sends data sequence numbers of 8 bytes.
    wide_acks: bool,
    early: Option<EarlyAcknowledgement>,
}

/// An acknowledgement that goes out before the application has read all data.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyAcknowledgement {
    /// Slot of the subflow that carries it.
    pub(super) slot: u8,
    /// The edge of the window that it announces.
    pub(super) edge: u64,
}

impl Receiver {
    pub(super) fn new(queue: RecvQueue, scale: u8) -> Self {
        Receiver { queue, scale, wide_acks: false, early: None }
    }

    #[inline]
    pub(super) fn scale(&self) -> u8 {
        self.scale
    }

    /// Has a DATA_ACK 8 bytes?
    #[inline]
    pub(super) fn wide_acks(&self) -> bool {
        self.wide_acks
    }

    /// RFC 8684 §3.3.2: data with a number of 8 bytes is acknowledged with 8. True if that is new.
    #[inline]
    pub(super) fn widen_acks(&mut self) -> bool {
        !std::mem::replace(&mut self.wide_acks, true)
    }

    /// What came on the subflow in `slot` may be acknowledged when the application has read for the
    /// first time, which takes several reads if it filled a large hole.
    #[inline]
    pub(super) fn plan_early_acknowledgement(&mut self, slot: u8) {
        if let Some(edge) = self.queue.early_edge() {
            self.early = Some(EarlyAcknowledgement { slot, edge });
        }
    }

    #[inline]
    pub(super) fn take_early_acknowledgement(&mut self) -> Option<EarlyAcknowledgement> {
        self.early.take()
    }
}
