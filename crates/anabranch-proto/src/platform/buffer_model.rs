//! Meaning of buffer sizes, and the receive window with which a subflow begins.

use super::linux::{self, Tuning};
use super::{BufferModel, OwnMss, RcvSsthresh, Unit};

impl BufferModel {
    /// Bytes of payload.
    pub(crate) const PAYLOAD: BufferModel =
        BufferModel { unit: Unit::Payload, tuning: Tuning::DEFAULT };
    /// The memory of Linux's sockets.
    pub(crate) const SOCKET: BufferModel =
        BufferModel { unit: Unit::Memory, tuning: Tuning::DEFAULT };

    /// Largest window of a SYN, where `requested` is the size of the receive buffer.
    pub(crate) fn first_window(&self, requested: Option<u64>, mss: OwnMss) -> u32 {
        match self.unit {
            Unit::Payload => u32::MAX,
            Unit::Memory => linux::first_window(&self.tuning, requested, mss),
        }
    }

    /// Opening of the receive window on a new subflow, where `requested` is the size of the receive
    /// buffer.
    pub(crate) fn opening(&self, requested: Option<u64>, mss: OwnMss, is_tcp: bool) -> RcvSsthresh {
        match self.unit {
            Unit::Payload => RcvSsthresh::default(),
            Unit::Memory => linux::opening(&self.tuning, requested, mss, is_tcp),
        }
    }
}
