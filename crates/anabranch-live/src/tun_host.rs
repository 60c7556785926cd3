//! The engine at the far end of a TUN device: its host is whoever writes and reads there.

use std::io;
use std::time::Duration;

use anabranch_proto::Endpoint;
use anabranch_wire::{Instant, Payload, Segment};
use bytes::{Bytes, BytesMut};

use crate::super_segment::{self, SuperSegment};
use crate::sys::{self, LONGEST_FRAME, Tun};

/// Frames read before the host acts on them: acknowledgements are not to wait for the queue's end.
const BATCH: usize = 64;

/// A shorter frame is copied: its payload is not to hold the memory of the longest.
const WORTH_SHARING: usize = LONGEST_FRAME / 4;

/// An endpoint and the device that is its only interface.
pub(crate) struct TunHost {
    pub(crate) endpoint: Endpoint,
    tun: Tun,
    /// Frames begin with a header of virtio's.
    offload: bool,
    /// For a frame each, in turn: one whose payload was read long since takes the next.
    arrived: Vec<BytesMut>,
    turn: usize,
    leaving: Vec<u8>,
    payloads: Vec<Payload>,
    /// Frames with payload, in either direction.
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

    /// Take what has arrived, and do what is due; was there anything?
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
            // What is no TCP is nobody's.
            if let Ok(segment) = segment {
                self.frames += u64::from(!segment.payload.is_empty());
                self.endpoint.handle_segment(now, segment);
            }
        }
        self.endpoint.handle_timeout(now);
        Ok(frames > 0)
    }

    /// Send what there is to send; was there anything?
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

    /// Make one frame of `first` and what can follow it there; the segment that could not.
    fn gather(&mut self, now: Instant, first: Segment) -> io::Result<Option<Segment>> {
        let mut all = SuperSegment::new(first, std::mem::take(&mut self.payloads));
        let mut left = None;
        while left.is_none() {
            let Some(segment) = self.endpoint.poll_transmit(now) else { break };
            left = all.push(segment);
        }
        self.payloads = all.emit(&mut self.leaving).map_err(io::Error::other)?;
        Ok(left)
    }

    /// Wait for a frame, for what is due next, or for `most`.
    pub(crate) fn wait(&self, now: Instant, most: Duration) -> io::Result<()> {
        let due = self.endpoint.poll_timeout().map(|at| at.saturating_since(now).as_nanos());
        let timeout = due.map_or(most, |left| most.min(Duration::from_nanos(left)));
        sys::poll(&mut [sys::poll_fd(self.tun.as_raw_fd(), libc::POLLIN)], timeout)
    }
}
