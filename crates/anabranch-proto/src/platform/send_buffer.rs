//! Limit on the data that the application may write ahead of the peer's acknowledgements.

use super::linux::{self, Fragments, SendMemory};
use super::{BufferModel, Buffers, SegmentMemory, SendOffsets};

/// The send buffer of a connection.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Most bytes, of payload or of memory, that may be written and not acknowledged.
    capacity: u64,
    /// Upper bound of the capacity.
    most: u64,
    /// `None`: data is charged with its bytes.
    charging: Option<Box<Charging>>,
    /// Linux tunes the capacity, since no size was requested.
    autotuned: bool,
    /// Most memory of a subflow's autotuned share.
    largest_share: u32,
}

/// Unit in which data is charged, which sets how far a write may exceed the capacity.
#[derive(Debug)]
enum Charging {
    /// By socket buffers, as TCP is.
    Memory(SendMemory),
    /// By page fragments, as Multipath TCP is.
    Fragments(Fragments),
    /// By socket buffers of one segment each.
    Segments(SegmentMemory),
}

impl SendBuffer {
    /// A buffer of `requested` bytes, as the model counts them. `is_tcp`: the connection is
    /// plain TCP.
    pub(crate) fn new(buffers: &BufferModel, is_tcp: bool, requested: Option<u64>) -> Self {
        let BufferModel { sizes, memory, tuning } = *buffers;
        let charging = match (sizes, memory.segment) {
            (Buffers::Payload, _) => None,
            (Buffers::Socket, Some(segment)) => {
                let segment = segment[usize::from(!is_tcp)];
                Some(Charging::Segments(SegmentMemory::new(segment)))
            }
            (Buffers::Socket, None) if is_tcp => Some(Charging::Memory(SendMemory::default())),
            (Buffers::Socket, None) => Some(Charging::Fragments(Fragments::default())),
        }
        .map(Box::new);
        let autotuned = sizes == Buffers::Socket && requested.is_none();
        let (capacity, most) = match requested {
            _ if autotuned => (0, u64::MAX),
            Some(bytes) if sizes == Buffers::Socket => [linux::send_buffer(bytes); 2].into(),
            _ => [requested.unwrap_or(tuning.largest_send.into()); 2].into(),
        };
        let mut buffer =
            SendBuffer { capacity, most, charging, autotuned, largest_share: tuning.largest_send };
        buffer.tune(buffer.share(0));
        buffer
    }

    /// Returns `true` if the buffer is tuned.
    pub(crate) fn is_autotuned(&self) -> bool {
        self.autotuned
    }

    /// Returns `true` if the shares of all subflows grow while any of them has room, before the
    /// writer is woken, as in the original kernel (`mptcp_should_expand_sndbuf`).
    pub(crate) fn grows_with_any_subflow(&self) -> bool {
        self.autotuned && matches!(self.charging.as_deref(), Some(Charging::Segments(_)))
    }

    /// Memory of a subflow's autotuned send buffer, in bytes, where its congestion window had so
    /// many segments.
    pub(crate) fn share(&self, segments: u16) -> u64 {
        linux::send_memory(segments, self.largest_share)
    }

    /// Returns `true` if a subflow's share of the buffer is full, so that it takes no more data
    /// until the peer acknowledges some (`sk_stream_memory_free`). `queued` bytes of memory hold
    /// its data, and its congestion window has `segments` segments.
    pub(crate) fn share_is_full(&self, queued: u64, segments: u16) -> bool {
        let share = if self.autotuned { self.share(segments) } else { self.capacity };
        queued >= share
    }

    /// Adapt to the memory for data to send of all subflows together, in bytes.
    pub(crate) fn tune(&mut self, subflows: u64) {
        if self.autotuned {
            self.grow_to(match self.fragments() {
                Some(_) => linux::shared_send_memory(subflows),
                None => subflows,
            });
        }
    }

    /// The same buffer, with at most `bytes` bytes until it grows.
    pub(crate) fn beginning_with(self, bytes: u64) -> Self {
        SendBuffer { capacity: self.capacity.min(bytes), ..self }
    }

    /// Bytes of payload that may be written at once.
    pub(crate) fn space(&self, offsets: SendOffsets) -> u64 {
        match self.charging.as_deref() {
            None => self.capacity.saturating_sub(offsets.end - offsets.una),
            Some(Charging::Memory(memory)) => memory.space(self.capacity, offsets),
            Some(Charging::Segments(memory)) => memory.space(self.capacity, offsets),
            Some(Charging::Fragments(fragments)) => fragments.space(self.capacity, offsets),
        }
    }

    /// Memory of the data that was never sent if each segment is charged, or the number of its bytes.
    pub(crate) fn unsent_memory(&self, offsets: SendOffsets) -> u64 {
        match self.charging.as_deref() {
            Some(Charging::Segments(memory)) => {
                memory.charged(SendOffsets { una: offsets.nxt, ..offsets })
            }
            None | Some(Charging::Memory(_) | Charging::Fragments(_)) => offsets.end - offsets.nxt,
        }
    }

    /// Bytes in the first socket buffer of which something was not sent, on a host that has them.
    pub(crate) fn first_unsent(&self, offsets: SendOffsets) -> u64 {
        match self.charging.as_deref() {
            Some(Charging::Memory(memory)) => memory.first(offsets),
            None | Some(Charging::Fragments(_) | Charging::Segments(_)) => {
                offsets.end - offsets.nxt
            }
        }
    }

    /// Returns `true` if there is enough room to wake an application that waits for it. Linux wakes
    /// it when a third of the buffer is free (`sk_stream_is_writeable`).
    pub(crate) fn wakes_writer(&self, offsets: SendOffsets) -> bool {
        let charged = match self.charging.as_deref() {
            // The original kernel's writers continued as soon as they could.
            None | Some(Charging::Segments(_)) => return self.space(offsets) > 0,
            Some(Charging::Memory(memory)) => memory.charged(offsets),
            Some(Charging::Fragments(fragments)) => fragments.charged(offsets),
        };
        charged.saturating_mul(3) <= self.capacity.saturating_mul(2)
    }

    /// The application writes `bytes` bytes, which fit into the buffer.
    pub(crate) fn charge(&mut self, bytes: u64, offsets: SendOffsets) {
        match self.charging.as_deref_mut() {
            None | Some(Charging::Segments(_)) => {}
            Some(Charging::Memory(memory)) => memory.charge(bytes, offsets),
            Some(Charging::Fragments(fragments)) => fragments.charge(bytes, offsets),
        }
    }

    /// The page fragments that hold written data, on a host that has them.
    pub(crate) fn fragments(&self) -> Option<&Fragments> {
        match self.charging.as_deref() {
            Some(Charging::Fragments(fragments)) => Some(fragments),
            _ => None,
        }
    }

    /// The same, for changes.
    pub(crate) fn fragments_mut(&mut self) -> Option<&mut Fragments> {
        match self.charging.as_deref_mut() {
            Some(Charging::Fragments(fragments)) => Some(fragments),
            _ => None,
        }
    }

    /// Returns `true` if the memory that data takes up depends on [`SendBuffer::measure`].
    pub(crate) fn is_measured(&self) -> bool {
        self.charging.is_some()
    }

    /// Segments have `mss` bytes, and the peer's window had at most `window`.
    pub(crate) fn measure(&mut self, mss: u64, window: u64) {
        match self.charging.as_deref_mut() {
            None => {}
            Some(Charging::Memory(memory)) => memory.measure(mss, window),
            Some(Charging::Segments(memory)) => memory.measure(mss),
            Some(Charging::Fragments(fragments)) => fragments.measure(mss, window),
        }
    }

    /// Most bytes, of payload or of memory, that may be written and not acknowledged.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Grow to `bytes` bytes, within the requested size; it never shrinks.
    pub(crate) fn grow_to(&mut self, bytes: u64) {
        self.capacity = self.capacity.max(bytes.min(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{BuildPlatform, MptcpOrgConfig};

    #[test]
    fn unsent_data_has_the_memory_of_its_segments_or_its_bytes() {
        // 2,304 bytes for each segment of 1,428 bytes, and for the part of one.
        let offsets = SendOffsets { una: 1, nxt: 20_001, end: 20_001 + 2 * 1_428 + 1 };
        let unsent = |model: &BufferModel| {
            let mut buffer = SendBuffer::new(model, false, Some(150_000));
            buffer.measure(1_428, 0);
            buffer.unsent_memory(offsets)
        };
        assert_eq!(unsent(&MptcpOrgConfig::default().build().buffers), 3 * 2_304);
        assert_eq!(unsent(&BufferModel::PAYLOAD), 2_857);
        assert_eq!(unsent(&BufferModel::SOCKET), 2_857);
    }

    #[test]
    fn a_writer_is_woken_when_a_third_of_a_socket_s_buffer_is_free() {
        // The requested size is doubled.
        let wakes = |model, end: u64| {
            let buffer = SendBuffer::new(&model, false, Some(150_000));
            buffer.wakes_writer(SendOffsets { una: 1, nxt: 1, end: 1 + end })
        };
        assert!(wakes(BufferModel::SOCKET, 200_000) && !wakes(BufferModel::SOCKET, 200_001));
        assert!(wakes(BufferModel::PAYLOAD, 149_999) && !wakes(BufferModel::PAYLOAD, 150_000));
    }
}
