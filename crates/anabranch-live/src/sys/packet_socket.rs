//! AF_PACKET sockets.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, SendFlags, SocketType, sockopt};

use super::{ClockId, clock, interface_index, set_option, socket_flags};

/// Size of a socket's buffer in bytes.
const PACKET_BUFFER: usize = 8 << 20;

/// A socket that receives and sends IP packets at one end of a veth pair.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    interface: u32,
    /// Link-layer address of the interface at the other end.
    station: [u8; 6],
}

impl PacketSocket {
    /// Open a socket on an interface of this thread's network namespace. The interface at the other
    /// end has the link-layer address `station`.
    pub(crate) fn open(interface: &str, station: [u8; 6]) -> io::Result<Self> {
        let interface = interface_index(interface)?;
        // Without a protocol, no packet arrives before the socket is bound.
        let (family, kind) = (AddressFamily::PACKET, SocketType::DGRAM);
        let fd = rustix::net::socket_with(family, kind, socket_flags(), None)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Privileged processes get the requested size, and others the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&fd, PACKET_BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, PACKET_BUFFER)?;
        }
        let socket = PacketSocket { fd, interface, station };
        rustix::net::bind(&socket.fd, &socket.address(libc::ETH_P_ALL))?;
        Ok(socket)
    }

    /// A socket that another process has opened on an interface whose other end has the link-layer
    /// address `station`.
    pub(crate) fn from_fd(fd: OwnedFd, station: [u8; 6]) -> io::Result<Self> {
        let address = rustix::net::getsockname(&fd)?;
        if address.address_family() != AddressFamily::PACKET {
            return Err(Errno::AFNOSUPPORT.into());
        }
        // SAFETY: the kernel has written an address of this family. The storage holds all of it.
        let address = unsafe { address.as_ptr().cast::<libc::sockaddr_ll>().read_unaligned() };
        Ok(PacketSocket { fd, interface: address.sll_ifindex as u32, station })
    }

    fn address(&self, protocol: libc::c_int) -> LinkAddress {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.station);
        LinkAddress(libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (protocol as u16).to_be(),
            sll_ifindex: self.interface as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: bytes,
        })
    }

    /// Send an IP packet to the host at the other end.
    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
        let protocol = if is_ipv4 { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        rustix::net::sendto(&self.fd, packet, SendFlags::empty(), &self.address(protocol))?;
        Ok(())
    }

    /// Receive the next packet of the host into `buffer`. Returns its length, and the time of day in
    /// nanoseconds at which the host sent it. `None` if there is no packet.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, u64)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0u64; 8];
        // SAFETY: a msghdr may be all zeros. Its buffers are as long as it states and outlive the
        // call. Rustix does not read the timestamp of a message.
        let (received, message) = unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of::<[u64; 8]>() as _;
            (libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0), message)
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            let none =
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if none { Ok(None) } else { Err(error) };
        }
        let stamp = timestamp(&message).unwrap_or_else(|| clock(ClockId::Realtime));
        Ok(Some((received as usize, stamp)))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The link-layer address of an interface and its index.
struct LinkAddress(libc::sockaddr_ll);

// SAFETY: the address is lent with its own length.
unsafe impl SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(
        &self,
        f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        f((&raw const self.0).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}

/// The time of arrival in a message's control data.
fn timestamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled in the control data, whose buffer is alive and aligned; the macros
    // stay within its stated length.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = next.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time: libc::timespec =
                    libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            next = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}
