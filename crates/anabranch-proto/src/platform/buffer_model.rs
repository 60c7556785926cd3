//! Meaning of buffer sizes, and the receive window with which a subflow begins.

use super::linux::SOCKET_MEMORY;
use super::{BufferModel, Buffers, OwnMss, RcvSsthresh, Tuning};

impl BufferModel {
    /// Bytes of payload.
    pub(crate) const PAYLOAD: BufferModel =
        BufferModel { sizes: Buffers::Payload, memory: &SOCKET_MEMORY, tuning: Tuning::DEFAULT };
    /// The memory of Linux's sockets.
    pub(crate) const SOCKET: BufferModel =
        BufferModel { sizes: Buffers::Socket, memory: &SOCKET_MEMORY, tuning: Tuning::DEFAULT };

    /// Largest window of a SYN, where `requested` is the size of the receive buffer.
    pub(crate) fn first_window(&self, requested: Option<u64>, mss: OwnMss) -> u32 {
        match self.sizes {
            Buffers::Payload => u32::MAX,
            Buffers::Socket => self.memory.first_window(&self.tuning, requested, mss),
        }
    }

    /// Opening of the receive window on a new subflow, where `requested` is the size of the receive
    /// buffer.
    pub(crate) fn opening(&self, requested: Option<u64>, mss: OwnMss, is_tcp: bool) -> RcvSsthresh {
        match self.sizes {
            Buffers::Payload => RcvSsthresh::default(),
            Buffers::Socket => self.memory.opening(&self.tuning, requested, mss, is_tcp),
        }
    }
}
