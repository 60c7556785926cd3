//! How much the application may write ahead of what the peer has acknowledged.

use super::linux::{self, SendMemory};
use super::{Buffers, Extent};

/// The send buffer of a connection.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Most bytes, of payload or of memory, that may be written and not acknowledged.
    capacity: u64,
    /// What the capacity may grow to.
    most: u64,
    charging: Charging,
}

/// How data is charged, and how far a write may exceed the capacity.
#[derive(Debug)]
enum Charging {
    /// With its bytes, up to the capacity.
    Bytes,
    /// With its bytes, by page fragments.
    Fragments,
    /// With the memory that it takes.
    Memory(Box<SendMemory>),
}

impl SendBuffer {
    /// A buffer of `asked` bytes, as `buffers` counts them. `is_tcp`: the connection is plain TCP.
    pub(crate) fn new(buffers: Buffers, is_tcp: bool, asked: u64) -> Self {
        let (most, charging) = match buffers {
            Buffers::Payload => (asked, Charging::Bytes),
            Buffers::Socket if is_tcp => {
                (linux::send_buffer(asked), Charging::Memory(Box::default()))
            }
            Buffers::Socket => (linux::send_buffer(asked), Charging::Fragments),
        };
        SendBuffer { capacity: most, most, charging }
    }

    /// The same, with no more than so many bytes until it grows.
    pub(crate) fn beginning_with(self, bytes: u64) -> Self {
        SendBuffer { capacity: bytes.min(self.most), ..self }
    }

    /// Bytes of payload that may be written at once.
    pub(crate) fn room(&self, extent: Extent) -> u64 {
        match &self.charging {
            Charging::Bytes => self.capacity.saturating_sub(extent.end - extent.una),
            Charging::Fragments => linux::fragments::room(self.capacity, extent),
            Charging::Memory(memory) => memory.room(self.capacity, extent),
        }
    }

    /// So many bytes are written, no more than there is room for.
    pub(crate) fn take(&mut self, bytes: u64, extent: Extent) {
        if let Charging::Memory(memory) = &mut self.charging {
            memory.take(bytes, extent);
        }
    }

    /// Does what data takes up depend on [`SendBuffer::measure`]?
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.charging, Charging::Memory(_))
    }

    /// Segments have `mss` bytes, and the peer's window had at most `window`.
    pub(crate) fn measure(&mut self, mss: u64, window: u64) {
        if let Charging::Memory(memory) = &mut self.charging {
            memory.measure(mss, window);
        }
    }

    /// Most bytes, of payload or of memory, that may be written and not acknowledged.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Grow to so many bytes, within what was asked for; it never shrinks.
    pub(crate) fn grow_to(&mut self, bytes: u64) {
        self.capacity = self.capacity.max(bytes.min(self.most));
    }
}
