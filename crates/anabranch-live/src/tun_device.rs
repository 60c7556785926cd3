//! A TUN device as the interface of a host of `anabranch-host`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use anabranch_host::Device;
use anabranch_wire::{Packet, Payload};
use bytes::{Bytes, BytesMut};
use tokio::io::unix::AsyncFd;

use crate::super_segment::{self, HEADER_BYTES, SuperSegment};
use crate::sys::{self, LONGEST_FRAME, Tun};

/// Buffers for arriving frames, used in turn. A buffer is reused after its payload was read.
const BUFFERS: usize = 64;
/// Shorter frames are copied, because a payload keeps its whole buffer alive: at most twice its size.
const WORTH_SHARING: usize = LONGEST_FRAME / 2;

/// A TUN device of this system as a [`Device`], in real time. The kernel is the router: it forwards
/// the packets that [`Host`](anabranch_host::Host) sends, and routes those for the host's addresses
/// to the interface. Give the interface one address of the kernel for each address of the host.
///
/// `examples/tun_echo.rs` is a whole program.
pub struct TunDevice {
    tun: Tun,
    /// Says when frames wait; a second descriptor of the device.
    readiness: AsyncFd<OwnedFd>,
    arrived: Vec<BytesMut>,
    turn: usize,
    leaving: Vec<u8>,
    /// Present if frames begin with a virtio header.
    offload: Option<Gathering>,
}

/// Segments that leave in one frame.
#[derive(Default)]
struct Gathering {
    segments: Option<SuperSegment>,
    /// Memory for their payloads.
    payloads: Vec<Payload>,
}

impl TunDevice {
    /// Open the TUN device `name` in this thread's network namespace, for packets as on a wire. A
    /// device that does not exist is created, which needs `CAP_NET_ADMIN`; other users need one that
    /// `ip tuntap add dev NAME mode tun user USER` has made. Call this in a runtime of Tokio.
    ///
    /// # Errors
    /// If `/dev/net/tun` is missing, or the system refuses the device.
    pub fn open(name: &str) -> io::Result<Self> {
        TunDevice::new(Tun::open(name, false)?)
    }

    /// Like [`open`](TunDevice::open), for frames of up to 64 kB, whose segmentation and checksums
    /// are left to the kernel (`IFF_VNET_HDR`). This takes less processor time for each byte.
    ///
    /// # Errors
    /// As [`open`](TunDevice::open).
    pub fn open_with_offload(name: &str) -> io::Result<Self> {
        let device = TunDevice::new(Tun::open(name, true)?)?;
        Ok(TunDevice { offload: Some(Gathering::default()), ..device })
    }

    /// A device that is open already, in a runtime of Tokio.
    pub(crate) fn new(tun: Tun) -> io::Result<Self> {
        let readiness = sys::watch(tun.as_fd().try_clone_to_owned()?)?;
        let arrived = vec![BytesMut::new(); BUFFERS];
        Ok(TunDevice { tun, readiness, arrived, turn: 0, leaving: Vec::new(), offload: None })
    }

    /// Write the frame in `leaving`. If the device has no room, the frame is lost.
    fn write(&self) -> io::Result<()> {
        match self.tun.send(&self.leaving) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// Write gathered segments.
    fn write_segments(&mut self, segments: SuperSegment) -> io::Result<()> {
        self.leaving.clear();
        let payloads = segments.emit(&mut self.leaving).map_err(io::Error::other)?;
        if let Some(offload) = &mut self.offload {
            offload.payloads = payloads;
        }
        self.write()
    }

    /// The packet in the current buffer. `None` if it is not a valid packet for the engine.
    fn parse(&mut self) -> Option<Packet> {
        let buffer = &mut self.arrived[self.turn];
        if self.offload.is_none() {
            return Packet::parse(buffer).ok();
        }
        let frame = take(buffer);
        if buffer.is_empty() {
            self.turn = (self.turn + 1) % BUFFERS;
        }
        match super_segment::parse(&frame) {
            Ok(segment) => Some(Packet::Tcp(segment.into())),
            Err(_) => Packet::parse(frame.get(HEADER_BYTES..)?).ok(),
        }
    }
}

impl Device for TunDevice {
    fn send(&mut self, packet: Packet) -> io::Result<()> {
        let Some(offload) = &mut self.offload else {
            self.leaving.clear();
            packet.emit(&mut self.leaving).map_err(io::Error::other)?;
            return self.write();
        };
        let Packet::Tcp(segment) = packet else {
            self.flush()?;
            self.leaving.clear();
            self.leaving.resize(HEADER_BYTES, 0);
            packet.emit(&mut self.leaving).map_err(io::Error::other)?;
            return self.write();
        };
        let left = match &mut offload.segments {
            Some(segments) => segments.push(segment),
            None => Some(segment),
        };
        let Some(segment) = left else { return Ok(()) };
        let gathered = offload.segments.take();
        if let Some(gathered) = gathered {
            self.write_segments(gathered)?;
        }
        if let Some(offload) = &mut self.offload {
            let payloads = mem::take(&mut offload.payloads);
            offload.segments = Some(SuperSegment::new(segment, payloads));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let gathered = self.offload.as_mut().and_then(|offload| offload.segments.take());
        gathered.map_or(Ok(()), |segments| self.write_segments(segments))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        loop {
            let mut ready = ready!(self.readiness.poll_read_ready(context))?;
            let buffer = &mut self.arrived[self.turn];
            buffer.clear();
            buffer.reserve(LONGEST_FRAME);
            if !self.tun.receive(buffer)? {
                ready.clear_ready();
                continue;
            }
            if let Some(packet) = self.parse() {
                return Poll::Ready(Ok(packet));
            }
        }
    }
}

impl fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunDevice").field("tun", &self.tun).finish_non_exhaustive()
    }
}

/// The frame in `buffer`, which is empty afterwards if the frame shares its memory.
fn take(buffer: &mut BytesMut) -> Bytes {
    match buffer.len() < WORTH_SHARING {
        true => Bytes::copy_from_slice(buffer),
        false => buffer.split().freeze(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_at_most_twice_its_size_alive() {
        for len in [1, LONGEST_FRAME / 4, LONGEST_FRAME / 2 - 1, LONGEST_FRAME / 2, LONGEST_FRAME] {
            let mut buffer = BytesMut::with_capacity(LONGEST_FRAME);
            buffer.resize(len, 7);
            let frame = take(&mut buffer);
            assert_eq!(frame, vec![7; len]);
            drop(buffer);
            let mut memory = frame.try_into_mut().expect("nothing else shares it");
            assert!(!memory.try_reclaim(len + 1), "{len}: more than twice as much is allocated");
        }
    }
}
