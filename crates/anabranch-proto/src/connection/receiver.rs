//! The receiving side of the data level: the data that has arrived, and how this host acknowledges
//! it.

use super::recv_queue::RecvQueue;
use crate::subflow::Subflow;
use crate::view::Slot;

pub(super) struct DataReceiver {
    pub(super) queue: RecvQueue,
    /// Shift of the windows advertised on new subflows. RFC 7323 §2.3.
    scale: u8,
    /// The peer sends 8-byte data sequence numbers.
    wide_acks: bool,
    early: Option<EarlyAcknowledgement>,
    /// The application reads no more.
    released: bool,
}

/// An acknowledgement sent before the application has read all data.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyAcknowledgement {
    /// Slot of the subflow that sends it.
    pub(super) slot: Slot,
    /// Edge of the window that it advertises. `None`: the window that has been advertised.
    pub(super) edge: Option<u64>,
}

impl DataReceiver {
    pub(super) fn new(queue: RecvQueue, scale: u8) -> Self {
        DataReceiver { queue, scale, wide_acks: false, early: None, released: false }
    }

    #[inline]
    pub(super) fn scale(&self) -> u8 {
        self.scale
    }

    /// Returns `true` if this host sends 8-byte DATA_ACKs.
    #[inline]
    pub(super) fn wide_acks(&self) -> bool {
        self.wide_acks
    }

    /// RFC 8684 §3.3.2: this host acknowledges 8-byte data sequence numbers with 8 bytes. Returns
    /// true if this is new.
    #[inline]
    pub(super) fn widen_acks(&mut self) -> bool {
        !std::mem::replace(&mut self.wide_acks, true)
    }

    /// The application reads no more.
    pub(super) fn release(&mut self) {
        self.released = true;
    }

    /// Returns `true` if the application reads no more.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.released
    }

    /// Returns `true` if data has arrived that nobody will read.
    #[inline]
    pub(super) fn has_lost_data(&self) -> bool {
        self.released && self.queue.has_data()
    }

    /// This host may acknowledge the data that arrived on the subflow in `slot` before the
    /// application has read it, or after its first read. Data that filled a large hole takes several
    /// reads.
    #[inline]
    pub(super) fn plan_early_acknowledgement(&mut self, slot: Slot, subflow: &Subflow) {
        if let Some(edge) = self.queue.early_edge(subflow.receiver().full_segment())
            && subflow.acknowledges_early(edge.saturating_sub(self.queue.nxt()))
        {
            self.early = Some(EarlyAcknowledgement { slot, edge: Some(edge) });
        }
    }

    /// Acknowledge on the subflow in `slot` before the application can write.
    pub(super) fn acknowledge_early(&mut self, slot: Slot) {
        self.early = Some(EarlyAcknowledgement { slot, edge: None });
    }

    #[inline]
    pub(super) fn take_early_acknowledgement(&mut self) -> Option<EarlyAcknowledgement> {
        self.early.take()
    }
}
