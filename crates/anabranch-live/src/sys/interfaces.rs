//! Requests about interfaces of this thread's network namespace.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// `struct ifreq` on the largest machines: the name of an interface, and a value whose type depends on
/// the request.
#[repr(C, align(8))]
pub(super) struct InterfaceRequest {
    name: [u8; 16],
    pub(super) value: [u8; 24],
}

impl InterfaceRequest {
    /// A request about the interface `name` with a value.
    pub(super) fn new(name: &str, value: &[u8]) -> Self {
        let mut request = InterfaceRequest { name: [0; 16], value: [0; 24] };
        for (to, from) in request.name.iter_mut().zip(name.bytes().take(15)) {
            *to = from;
        }
        request.value[..value.len()].copy_from_slice(value);
        request
    }

    /// Make the request `CODE`, which must take a `struct ifreq`. If its value is a pointer, it
    /// points to something that outlives the call.
    pub(super) fn make<const CODE: Opcode>(&mut self, fd: impl AsFd) -> io::Result<()> {
        // SAFETY: the kernel reads and writes a `struct ifreq`, which is no longer than this one.
        // All callers are in this crate, and keep to the conditions above.
        Ok(unsafe { ioctl(fd, Updater::<CODE, Self>::new(self)) }?)
    }
}

/// Commands of `SIOCETHTOOL` that turn offloads on and off: receive and transmit checksums,
/// scatter-gather, TSO, GSO, GRO.
const OFFLOADS: [u32; 6] = [0x15, 0x17, 0x19, 0x1f, 0x24, 0x2c];
const SIOCETHTOOL: Opcode = 0x8946;
const SIOCGIFFLAGS: Opcode = libc::SIOCGIFFLAGS as Opcode;

/// Turn offloads off for an interface of this thread's network namespace. Its packets are then as on
/// a wire, with complete checksums and no larger than the MTU.
pub(crate) fn disable_offloads(interface: &str) -> io::Result<()> {
    let socket = control_socket()?;
    for command in OFFLOADS {
        // `struct ethtool_value`: the command, and whether the offload is on.
        let mut value = [command, 0];
        let at = (&raw mut value).expose_provenance();
        InterfaceRequest::new(interface, &at.to_ne_bytes()).make::<SIOCETHTOOL>(&socket)?;
    }
    Ok(())
}

/// Returns `true` if an interface of this thread's network namespace forwards packets. A new
/// interface may drop packets at first.
pub(crate) fn is_running(interface: &str) -> io::Result<bool> {
    let mut request = InterfaceRequest::new(interface, &[]);
    request.make::<SIOCGIFFLAGS>(control_socket()?)?;
    let flags = u16::from_ne_bytes([request.value[0], request.value[1]]);
    Ok(i32::from(flags) & libc::IFF_RUNNING != 0)
}

/// The index of an interface of this thread's network namespace.
pub(super) fn interface_index(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(control_socket()?, name)?)
}

/// Create a socket for requests about interfaces of this thread's network namespace.
fn control_socket() -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?)
}
