//! TUN devices.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::BytesMut;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, ioctl};

use super::interfaces::InterfaceRequest;

/// Largest size of a frame in bytes: a `virtio_net_hdr` and the largest IP packet.
pub(crate) const LONGEST_FRAME: usize = 10 + (1 << 16);
/// The reader computes checksums and segments packets (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const TUN_OFFLOADS: usize = 0x01 | 0x02 | 0x04;
const TUNSETIFF: Opcode = libc::TUNSETIFF as Opcode;
const TUNSETOFFLOAD: Opcode = libc::TUNSETOFFLOAD as Opcode;

/// A process's end of a TUN device. Frames written here arrive at the interface, and frames sent
/// through the interface are read here, one at a time. Closing this removes the interface.
#[derive(Debug)]
pub(crate) struct Tun {
    fd: OwnedFd,
}

impl Tun {
    /// Create an interface `name` in this thread's network namespace. With `offload`, each frame is a
    /// `virtio_net_hdr` and a packet of up to 64 kB, possibly unsegmented and without TCP checksum.
    /// Without `offload`, each frame is a packet as on a wire.
    pub(crate) fn open(name: &str, offload: bool) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("/dev/net/tun: {error}"));
        let fd = rustix::fs::open(c"/dev/net/tun", flags, Mode::empty())
            .map_err(|error| named(error.into()))?;
        let header = if offload { libc::IFF_VNET_HDR } else { 0 };
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as u16;
        InterfaceRequest::new(name, &flags.to_ne_bytes()).make::<TUNSETIFF>(&fd)?;
        if offload {
            // SAFETY: the argument is a number.
            unsafe { ioctl(&fd, IntegerSetter::<TUNSETOFFLOAD>::new_usize(TUN_OFFLOADS)) }?;
        }
        Ok(Tun { fd })
    }

    /// A device that another process has opened.
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Tun { fd }
    }

    /// Write a frame, which arrives at the interface.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.fd, frame)?;
        Ok(())
    }

    /// Append the next frame from the interface to `buffer`, truncated at the buffer's capacity.
    /// Returns `false` if there is no frame.
    pub(crate) fn receive(&self, buffer: &mut BytesMut) -> io::Result<bool> {
        match rustix::io::read(&self.fd, buffer.spare_capacity_mut()) {
            Ok((frame, _)) => {
                let len = frame.len();
                // SAFETY: the kernel has written this number of bytes.
                unsafe { buffer.set_len(buffer.len() + len) };
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> Self {
        tun.fd
    }
}
