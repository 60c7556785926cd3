//! An engine host behind a TUN device.

use std::io;
use std::time::Duration;

use anabranch_proto::Endpoint;
use anabranch_wire::{Instant, Payload, PooledSegment, Segment};
use bytes::{Bytes, BytesMut};

use crate::super_segment::{self, SuperSegment};
use crate::sys::{self, LONGEST_FRAME, PollFlags, Tun};

/// Number of frames read before the host acts, so that acknowledgements do not wait for a long queue.
const BATCH: usize = 64;

/// Shorter frames are copied, so that a small payload does not keep a large buffer alive.
const WORTH_SHARING: usize = LONGEST_FRAME / 4;

/// An endpoint and the device that is its only interface.
pub(crate) struct TunHost {
    pub(crate) endpoint: Endpoint,
    tun: Tun,
    /// Whether frames begin with a virtio header.
    offload: bool,
    /// Buffers for one frame each, used in turn. A buffer is reused after its payload was read.
    arrived: Vec<BytesMut>,
    turn: usize,
    leaving: Vec<u8>,
    payloads: Vec<Payload>,
    /// Number of frames with payload in both directions.
    pub(crate) frames: u64,
}

impl TunHost {
    pub(crate) fn new(endpoint: Endpoint, tun: Tun, offload: bool) -> Self {
        TunHost {
            endpoint,
            tun,
            offload,
            arrived: vec![BytesMut::new(); BATCH],
            turn: 0,
            leaving: Vec::with_capacity(LONGEST_FRAME),
            payloads: Vec::new(),
            frames: 0,
        }
    }

    /// Process arrived frames and expired timers. Returns whether there were any.
    pub(crate) fn handle_input(&mut self, now: Instant) -> io::Result<bool> {
        let mut frames = 0;
        while frames < BATCH {
            let buffer = &mut self.arrived[self.turn];
            buffer.clear();
            buffer.reserve(LONGEST_FRAME);
            if !self.tun.receive(buffer)? {
                break;
            }
            frames += 1;
            let segment = if !self.offload {
                Segment::parse(buffer)
            } else if buffer.len() < WORTH_SHARING {
                super_segment::parse(&Bytes::copy_from_slice(buffer))
            } else {
                self.turn = (self.turn + 1) % BATCH;
                super_segment::parse(&buffer.split().freeze())
            };
            // Ignore packets other than TCP.
            if let Ok(segment) = segment {
                self.frames += u64::from(!segment.payload.is_empty());
                self.endpoint.handle_segment(now, segment);
            }
        }
        self.endpoint.handle_timeout(now);
        Ok(frames > 0)
    }

    /// Send pending segments. Returns whether there were any.
    pub(crate) fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        let mut next = self.endpoint.poll_transmit(now);
        let sent = next.is_some();
        while let Some(segment) = next.take() {
            self.frames += u64::from(!segment.payload.is_empty());
            self.leaving.clear();
            if self.offload {
                next = self.gather(now, segment)?;
            } else {
                segment.emit(&mut self.leaving).map_err(io::Error::other)?;
                next = self.endpoint.poll_transmit(now);
            }
            self.tun.send(&self.leaving)?;
        }
        Ok(sent)
    }

    /// Send one frame with `first` and the segments that can join it. Returns the first segment that
    /// could not.
    fn gather(&mut self, now: Instant, first: PooledSegment) -> io::Result<Option<PooledSegment>> {
        let mut all = SuperSegment::new(first, std::mem::take(&mut self.payloads));
        let mut left = None;
        while left.is_none() {
            let Some(segment) = self.endpoint.poll_transmit(now) else { break };
            left = all.push(segment);
        }
        self.payloads = all.emit(&mut self.leaving).map_err(io::Error::other)?;
        Ok(left)
    }

    /// Wait for a frame, for the next timer, or for at most `most`.
    pub(crate) fn wait(&self, now: Instant, most: Duration) -> io::Result<()> {
        let due = self.endpoint.poll_timeout().map(|at| at.saturating_since(now).as_nanos());
        let timeout = due.map_or(most, |left| most.min(Duration::from_nanos(left)));
        sys::poll(&mut [sys::poll_fd(&self.tun, PollFlags::IN)], timeout)
    }
}
