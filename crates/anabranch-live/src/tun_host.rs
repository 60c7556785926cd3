//! The engine at the far end of a TUN device: its host is whoever writes and reads there.

use std::io;
use std::time::Duration;

use anabranch_proto::Endpoint;
use anabranch_wire::{Instant, Segment};

use crate::sys::{self, LONGEST_FRAME, Tun};

/// Frames read before the host acts on them: acknowledgements are not to wait for the queue's end.
const BATCH: usize = 64;

/// An endpoint and the device that is its only interface.
pub(crate) struct TunHost {
    pub(crate) endpoint: Endpoint,
    tun: Tun,
    frame: Vec<u8>,
}

impl TunHost {
    pub(crate) fn new(endpoint: Endpoint, tun: Tun) -> Self {
        TunHost { endpoint, tun, frame: vec![0; LONGEST_FRAME] }
    }

    /// Take what has arrived, and do what is due; was there anything?
    pub(crate) fn handle_input(&mut self, now: Instant) -> io::Result<bool> {
        let mut frames = 0;
        while frames < BATCH {
            self.frame.resize(LONGEST_FRAME, 0);
            let Some(len) = self.tun.receive(&mut self.frame)? else { break };
            frames += 1;
            // What is no TCP (the kernel looks for routers and neighbours) is nobody's.
            if let Ok(segment) = Segment::parse(&self.frame[..len]) {
                self.endpoint.handle_segment(now, segment);
            }
        }
        self.endpoint.handle_timeout(now);
        Ok(frames > 0)
    }

    /// Send what there is to send; was there anything?
    pub(crate) fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        let mut sent = false;
        while let Some(segment) = self.endpoint.poll_transmit(now) {
            self.frame.clear();
            segment.emit(&mut self.frame).map_err(io::Error::other)?;
            self.tun.send(&self.frame)?;
            sent = true;
        }
        Ok(sent)
    }

    /// Wait for a frame, for what is due next, or for `most`.
    pub(crate) fn wait(&self, now: Instant, most: Duration) -> io::Result<()> {
        let due = self.endpoint.poll_timeout().map(|at| at.saturating_since(now).as_nanos());
        let timeout = due.map_or(most, |left| most.min(Duration::from_nanos(left)));
        sys::poll(&mut [sys::poll_fd(self.tun.as_raw_fd(), libc::POLLIN)], timeout)
    }
}
