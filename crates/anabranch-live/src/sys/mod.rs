//! System calls that the standard library lacks, each wrapped in a safe function.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::time::Duration;

use bytes::BytesMut;
use libc::{c_int, c_void, socklen_t};

mod fd_passing;

pub(crate) use fd_passing::*;

/// `IPPROTO_MPTCP`.
pub(crate) const MPTCP: c_int = 262;
/// `SOL_MPTCP`.
const SOL_MPTCP: c_int = 284;

/// Namespaces to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unshare {
    /// The network namespace.
    Network,
    /// The user namespace and the network namespace. This needs no privilege if user namespaces are
    /// allowed.
    UserAndNetwork,
}

impl Unshare {
    fn flags(self) -> c_int {
        match self {
            Unshare::Network => libc::CLONE_NEWNET,
            Unshare::UserAndNetwork => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
        }
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Move this thread into new namespaces. Only a process with one thread can leave its user namespace.
pub(crate) fn unshare(unshared: Unshare) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::unshare(unshared.flags()) })?;
    Ok(())
}

/// The user and the group of this process.
pub(crate) fn user_and_group() -> (u32, u32) {
    // SAFETY: take no pointers and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// The files that map one user and one group of a new user namespace to those outside, and their
/// contents.
fn maps(inside: (u32, u32), outside: (u32, u32)) -> [(&'static std::ffi::CStr, String); 3] {
    [
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", format!("{} {} 1", inside.0, outside.0)),
        (c"/proc/self/gid_map", format!("{} {} 1", inside.1, outside.1)),
    ]
}

/// Make `command` start in new namespaces, as root inside them.
pub(crate) fn start_in_namespaces(command: &mut Command, unshared: Unshare, preferred: bool) {
    use std::os::unix::process::CommandExt;
    let maps = maps((0, 0), user_and_group());
    let enter = move || {
        if preferred {
            prefer_this_thread();
        }
        unshare(unshared)?;
        if unshared == Unshare::UserAndNetwork {
            for (file, text) in &maps {
                write_file(file, text)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made. Their arguments were allocated
    // before.
    unsafe { command.pre_exec(enter) };
}

/// Move this process from a user namespace in which it is root into one in which it is `user`
/// without any privilege.
pub(crate) fn become_user(user: (u32, u32)) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    maps(user, (0, 0)).iter().try_for_each(|(file, text)| write_file(file, text))
}

/// Request real-time priority for this thread, and what it starts later. Only a privileged process
/// gets it, and no process inside a user namespace. An emulator that waits for a processor is late.
pub(crate) fn prefer_this_thread() {
    schedule(libc::SCHED_RR, 1);
}

/// Whether this thread has real-time priority.
pub(crate) fn is_preferred() -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) as c_int == libc::SCHED_RR }
}

/// Return this thread to normal priority for good. Threads that it has started keep their priority.
pub fn stop_preferring() {
    schedule(libc::SCHED_OTHER, 0);
}

/// Give this thread idle priority (`SCHED_IDLE`), and return whether that worked.
pub(crate) fn give_way() -> bool {
    schedule(libc::SCHED_IDLE, 0)
}

/// Set this thread's scheduling policy and priority. This calls the kernel directly: musl refuses the
/// call, because POSIX applies it to the process and Linux to the thread.
fn schedule(policy: c_int, priority: c_int) -> bool {
    // The kernel's `sched_param` is one number. The further fields of musl's are never read.
    // SAFETY: the priority outlives the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// A set of processors.
pub(crate) type Processors = libc::cpu_set_t;

/// Pin this thread, and the threads that it starts, to its current processor. Returns the processors
/// that it could run on before.
pub(crate) fn stay_on_this_processor() -> io::Result<Processors> {
    // SAFETY: a set of processors is plain bytes.
    let (mut before, mut this): (Processors, Processors) = unsafe { (zeroed(), zeroed()) };
    // SAFETY: the set is as long as stated.
    check(unsafe { libc::sched_getaffinity(0, size_of::<Processors>(), &mut before) })?;
    // SAFETY: takes no pointers.
    let this_processor = check(unsafe { libc::sched_getcpu() })? as usize;
    // SAFETY: if there were more processors than a set can hold, the call above would have failed.
    unsafe { libc::CPU_SET(this_processor, &mut this) };
    stay_on(&this);
    Ok(before)
}

/// Let this thread, and the threads that it starts, run on these processors. On failure nothing
/// changes.
pub(crate) fn stay_on(processors: &Processors) {
    // SAFETY: the set is as long as stated.
    unsafe { libc::sched_setaffinity(0, size_of::<Processors>(), processors) };
}

/// Write a file with nothing but system calls.
fn write_file(file: &std::ffi::CStr, text: &str) -> io::Result<()> {
    // SAFETY: `file` ends in a NUL, and `text` is as long as stated; the descriptor is new.
    unsafe {
        let fd = OwnedFd::from_raw_fd(check(libc::open(file.as_ptr(), libc::O_WRONLY))?);
        let written = libc::write(fd.as_raw_fd(), text.as_ptr().cast(), text.len());
        check(written as c_int)?;
    }
    Ok(())
}

/// Move this thread into the network namespace of the file `namespace`.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Let this thread's timers expire in time. By default Linux may delay them by 50 µs.
pub(crate) fn set_timer_slack() {
    // SAFETY: takes no pointers. On failure the default slack remains.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// The time of a clock in nanoseconds.
pub(crate) fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A descriptor, and the events to wait for.
pub(crate) type PollFd = libc::pollfd;

pub(crate) fn poll_fd(fd: RawFd, events: i16) -> PollFd {
    PollFd { fd, events, revents: 0 }
}

/// Wait until one of `fds` is ready, but at most for `timeout`.
pub(crate) fn poll(fds: &mut [PollFd], timeout: Duration) -> io::Result<()> {
    let timeout =
        libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: `fds` is as long as stated, `timeout` outlives the call, no signal mask is given.
    let result = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &timeout, std::ptr::null())
    };
    match check(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Set a socket option whose value is an integer.
pub(crate) fn set_option(fd: RawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the value is an int and its size is stated.
    check(unsafe {
        let value: *const c_int = &value;
        libc::setsockopt(fd, level, name, value.cast(), size_of::<c_int>() as socklen_t)
    })?;
    Ok(())
}

/// Make a socket reset its connection when it is closed.
pub(crate) fn reset_when_closed(fd: RawFd) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the value is a linger and its size is stated.
    check(unsafe {
        let len = size_of::<libc::linger>() as socklen_t;
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), len)
    })?;
    Ok(())
}

pub(crate) fn option(fd: RawFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: the value is an int, its size is stated, and both outlive the call.
    check(unsafe {
        let value: *mut c_int = &mut value;
        libc::getsockopt(fd, level, name, value.cast(), &mut len)
    })?;
    Ok(value)
}

/// Request a congestion control for a socket, and return the name of the one in use.
pub(crate) fn set_congestion_control(fd: RawFd, name: &str) -> io::Result<String> {
    // SAFETY: the name is as long as stated.
    check(unsafe {
        let (value, len) = (name.as_ptr().cast(), name.len() as socklen_t);
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, len)
    })?;
    let mut bytes = [0u8; 16];
    let mut len = bytes.len() as socklen_t;
    // SAFETY: the buffer is as long as stated and outlives the call.
    check(unsafe {
        let value = bytes.as_mut_ptr().cast();
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, &mut len)
    })?;
    let used = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(used).into_owned())
}

/// Number of bytes that were written but not acknowledged.
pub(crate) fn unacknowledged(fd: RawFd) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the request writes one int, which outlives the call.
    let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { 0 } else { bytes as usize }
}

/// Create a non-blocking stream socket, for IPv4 or for both families.
pub(crate) fn stream_socket(ipv4_only: bool, protocol: c_int) -> io::Result<OwnedFd> {
    let family = if ipv4_only { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers; the descriptor is new.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(family, kind, protocol))?)) }
}

pub(crate) fn bind(fd: RawFd, address: SocketAddr) -> io::Result<()> {
    with_address(address, |address, len| {
        // SAFETY: `with_address` lends an address of the stated length.
        check(unsafe { libc::bind(fd, address, len) })
    })?;
    Ok(())
}

pub(crate) fn listen(fd: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::listen(fd, 64) })?;
    Ok(())
}

/// Accept the next connection of a listener as a non-blocking socket.
pub(crate) fn accept(fd: RawFd) -> io::Result<OwnedFd> {
    let (none, flags) = (std::ptr::null_mut(), libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    // SAFETY: no address is requested; the descriptor is new.
    unsafe {
        let accepted = libc::accept4(fd, none, std::ptr::null_mut(), flags);
        Ok(OwnedFd::from_raw_fd(check(accepted)?))
    }
}

/// Start to connect. The socket becomes writable when the connection is established.
pub(crate) fn connect(fd: RawFd, address: SocketAddr) -> io::Result<()> {
    let begun = with_address(address, |address, len| {
        // SAFETY: `with_address` lends an address of the stated length.
        check(unsafe { libc::connect(fd, address, len) })
    });
    match begun {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(|_| ()),
    }
}

fn with_address<T>(address: SocketAddr, f: impl Fn(*const libc::sockaddr, socklen_t) -> T) -> T {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            f((&raw const raw).cast(), size_of::<libc::sockaddr_in>() as socklen_t)
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: 0,
            };
            f((&raw const raw).cast(), size_of::<libc::sockaddr_in6>() as socklen_t)
        }
    }
}

/// The index of an interface of this thread's network namespace.
fn interface_index(name: &str) -> io::Result<c_int> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name ends in a NUL.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as c_int),
    }
}

/// Size of a socket's buffer in bytes.
const PACKET_BUFFER: c_int = 8 << 20;

/// A socket that receives and sends IP packets at one end of a veth pair.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    interface: c_int,
    /// Link-layer address of the interface at the other end.
    station: [u8; 6],
}

impl PacketSocket {
    /// Open a socket on an interface of this thread's network namespace. The interface at the other
    /// end has the link-layer address `station`.
    pub(crate) fn open(interface: &str, station: [u8; 6]) -> io::Result<Self> {
        let interface = interface_index(interface)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: takes no pointers; the descriptor is new. With protocol 0, no packet arrives before
        // the socket is bound.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let raw = fd.as_raw_fd();
        set_option(raw, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        set_option(raw, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Privileged processes get the requested size, and others the system's limit.
        if set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, PACKET_BUFFER).is_err() {
            set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUF, PACKET_BUFFER)?;
        }
        let socket = PacketSocket { fd, interface, station };
        let address = socket.address(libc::ETH_P_ALL as u16);
        // SAFETY: the address is as long as stated.
        check(unsafe {
            let len = size_of::<libc::sockaddr_ll>() as socklen_t;
            libc::bind(raw, (&raw const address).cast(), len)
        })?;
        Ok(socket)
    }

    /// A socket that another process has opened on an interface whose other end has the link-layer
    /// address `station`.
    pub(crate) fn from_fd(fd: OwnedFd, station: [u8; 6]) -> io::Result<Self> {
        // SAFETY: an address may be all zeros.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        let mut len = size_of::<libc::sockaddr_ll>() as socklen_t;
        // SAFETY: the address is as long as stated and outlives the call.
        check(unsafe {
            libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len)
        })?;
        Ok(PacketSocket { fd, interface: address.sll_ifindex, station })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn address(&self, protocol: u16) -> libc::sockaddr_ll {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.station);
        libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.to_be(),
            sll_ifindex: self.interface,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: bytes,
        }
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Send an IP packet to the host at the other end.
    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
        let protocol = if is_ipv4 { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        let address = self.address(protocol as u16);
        // SAFETY: packet and address are as long as stated.
        let sent = unsafe {
            let (data, len) = (packet.as_ptr().cast(), packet.len());
            let to_len = size_of::<libc::sockaddr_ll>() as socklen_t;
            libc::sendto(self.fd.as_raw_fd(), data, len, 0, (&raw const address).cast(), to_len)
        };
        check(sent as c_int)?;
        Ok(())
    }

    /// Receive the next packet of the host into `buffer`. Returns its length, and the time of day in
    /// nanoseconds at which the host sent it. `None` if there is no packet.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, u64)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0u64; 8];
        // SAFETY: a msghdr may be all zeros.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[u64; 8]>() as _;
        // SAFETY: the message's buffers are as long as it states and outlive the call.
        let received = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0) };
        if received < 0 {
            let error = io::Error::last_os_error();
            let none =
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if none { Ok(None) } else { Err(error) };
        }
        let stamp = timestamp(&message).unwrap_or_else(|| clock(libc::CLOCK_REALTIME));
        Ok(Some((received as usize, stamp)))
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

/// Commands of `SIOCETHTOOL` that turn offloads on and off: receive and transmit checksums,
/// scatter-gather, TSO, GSO, GRO.
const OFFLOADS: [u32; 6] = [0x15, 0x17, 0x19, 0x1f, 0x24, 0x2c];
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Turn offloads off for an interface of this thread's network namespace. Its packets are then as on
/// a wire, with complete checksums and no larger than the MTU.
pub(crate) fn disable_offloads(interface: &str) -> io::Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let socket = control_socket()?;
    for command in OFFLOADS {
        let mut value = Value { command, data: 0 };
        let mut request = interface_request(interface);
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names an interface and points to an `ethtool_value`, both of which
        // outlive the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    }
    Ok(())
}

/// Whether an interface of this thread's network namespace forwards packets. A new interface may drop
/// packets at first.
pub(crate) fn is_running(interface: &str) -> io::Result<bool> {
    let socket = control_socket()?;
    let mut request = interface_request(interface);
    // SAFETY: the request names an interface and outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) })?;
    // SAFETY: SIOCGIFFLAGS has filled in the flags.
    Ok(unsafe { request.ifr_ifru.ifru_flags } & libc::IFF_RUNNING as libc::c_short != 0)
}

/// Create a socket for requests about interfaces of this thread's network namespace.
fn control_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers; the descriptor is new.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?) })
}

/// Largest size of a frame in bytes: a `virtio_net_hdr` and the largest IP packet.
pub(crate) const LONGEST_FRAME: usize = 10 + (1 << 16);
/// The reader computes checksums and segments packets (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const TUN_OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04;

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
        let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path ends in a NUL; the descriptor is new.
        let fd = unsafe {
            let opened = check(libc::open(c"/dev/net/tun".as_ptr(), flags));
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("/dev/net/tun: {error}"));
            OwnedFd::from_raw_fd(opened.map_err(named)?)
        };
        let header = if offload { libc::IFF_VNET_HDR } else { 0 };
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as i16;
        // SAFETY: the request names an interface, holds flags, and outlives the call.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
        if offload {
            // SAFETY: the argument is a number.
            check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as _, TUN_OFFLOADS) })?;
        }
        Ok(Tun { fd })
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A device that another process has opened.
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Tun { fd }
    }

    /// Write a frame, which arrives at the interface.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame is as long as stated.
        let sent = unsafe { libc::write(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
        check(sent as c_int)?;
        Ok(())
    }

    /// Append the next frame from the interface to `buffer`, truncated at the buffer's capacity.
    /// Returns `false` if there is no frame.
    pub(crate) fn receive(&self, buffer: &mut BytesMut) -> io::Result<bool> {
        let room = buffer.spare_capacity_mut();
        let (data, len) = (room.as_mut_ptr().cast(), room.len());
        // SAFETY: the room is as long as stated and outlives the call.
        let received = unsafe { libc::read(self.fd.as_raw_fd(), data, len) };
        match check(received as c_int) {
            Ok(received) => {
                // SAFETY: the kernel has written this number of bytes.
                unsafe { buffer.set_len(buffer.len() + received as usize) };
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> Self {
        tun.fd
    }
}

/// A request about the interface `name`.
fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: an ifreq may be all zeros.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request
}

/// The number of `MPTCP_FULL_INFO`.
const MPTCP_FULL_INFO: c_int = 4;
/// Largest number of subflows that the kernel is asked for.
pub(crate) const MAX_SUBFLOWS: usize = 32;

/// `struct mptcp_info` of Linux 6.18.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MptcpInfo {
    pub(crate) subflows: u8,
    pub(crate) add_addr_signal: u8,
    pub(crate) add_addr_accepted: u8,
    pub(crate) maxima: [u8; 3],
    pub(crate) flags: u32,
    pub(crate) token: u32,
    pub(crate) write_seq: u64,
    pub(crate) snd_una: u64,
    pub(crate) rcv_nxt: u64,
    pub(crate) local_addr: [u8; 2],
    pub(crate) csum_enabled: u8,
    pub(crate) retransmits: u32,
    pub(crate) bytes_retrans: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) subflows_total: u8,
    pub(crate) endpoints: [u8; 3],
    pub(crate) last_times: [u32; 3],
}

/// `struct mptcp_subflow_info`.
#[repr(C)]
#[derive(Clone, Copy)]
struct SubflowAddresses {
    id: u32,
    _align: u32,
    local: [u8; 128],
    remote: [u8; 128],
}

/// `struct mptcp_full_info`.
#[repr(C)]
struct FullInfo {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    info: MptcpInfo,
}

/// The kernel's information about a subflow.
pub(crate) struct KernelSubflow {
    pub(crate) id: u32,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) tcp: TcpInfo,
}

/// `struct tcp_info` of the kernel's headers, up to the retransmitted bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpInfo {
    pub(crate) state: u8,
    pub(crate) ca_state: u8,
    pub(crate) bytes: [u8; 6],
    pub(crate) rto: u32,
    pub(crate) ato: u32,
    pub(crate) snd_mss: u32,
    pub(crate) rcv_mss: u32,
    pub(crate) unacked: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    pub(crate) fackets: u32,
    pub(crate) last: [u32; 4],
    pub(crate) pmtu: u32,
    pub(crate) rcv_ssthresh: u32,
    pub(crate) rtt: u32,
    pub(crate) rttvar: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    pub(crate) advmss: u32,
    pub(crate) reordering: u32,
    pub(crate) rcv_rtt: u32,
    pub(crate) rcv_space: u32,
    pub(crate) total_retrans: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) segs_out: u32,
    pub(crate) segs_in: u32,
    pub(crate) notsent_bytes: u32,
    pub(crate) min_rtt: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) data_segs_out: u32,
    pub(crate) delivery_rate: u64,
    pub(crate) times: [u64; 3],
    pub(crate) delivered: [u32; 2],
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retrans: u64,
}

/// The kernel's information about a connection and its subflows. Returns an error for a connection
/// that uses plain TCP, also after a fallback.
pub(crate) fn mptcp_info(fd: RawFd) -> io::Result<(MptcpInfo, Vec<KernelSubflow>)> {
    let empty = SubflowAddresses { id: 0, _align: 0, local: [0; 128], remote: [0; 128] };
    let mut addresses = [empty; MAX_SUBFLOWS];
    let mut tcp = [TcpInfo::default(); MAX_SUBFLOWS];
    // SAFETY: integers may be all zeros.
    let mut full: FullInfo = unsafe { zeroed() };
    full.size_tcpinfo_user = size_of::<TcpInfo>() as u32;
    full.size_sfinfo_user = size_of::<SubflowAddresses>() as u32;
    full.size_arrays_user = MAX_SUBFLOWS as u32;
    full.subflow_info = (&raw mut addresses) as u64;
    full.tcp_info = (&raw mut tcp) as u64;
    get_info(fd, SOL_MPTCP, MPTCP_FULL_INFO, &mut full)?;
    let count = (full.num_subflows as usize).min(MAX_SUBFLOWS);
    let subflows = addresses.iter().zip(tcp).take(count).map(|(at, tcp)| KernelSubflow {
        id: at.id,
        local: socket_address(&at.local),
        remote: socket_address(&at.remote),
        tcp,
    });
    Ok((full.info, subflows.collect()))
}

/// The kernel's information about a TCP connection.
pub(crate) fn tcp_info(fd: RawFd) -> io::Result<TcpInfo> {
    let mut info = TcpInfo::default();
    get_info(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(info)
}

/// Let the kernel fill in a structure of integers.
fn get_info<T>(fd: RawFd, level: c_int, name: c_int, info: &mut T) -> io::Result<()> {
    let mut len = size_of::<T>() as socklen_t;
    let info: *mut T = info;
    // SAFETY: the structure consists of integers, is as long as stated, and outlives the call; so
    // do the arrays that it points to, whose lengths it states.
    check(unsafe { libc::getsockopt(fd, level, name, info.cast::<c_void>(), &mut len) })?;
    Ok(())
}

/// A `sockaddr` of either family.
fn socket_address(bytes: &[u8; 128]) -> SocketAddr {
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    if family == libc::AF_INET {
        let address: [u8; 4] = bytes[4..8].try_into().expect("four bytes");
        return SocketAddr::new(IpAddr::from(address), port);
    }
    let address: [u8; 16] = bytes[8..24].try_into().expect("sixteen bytes");
    SocketAddr::new(Ipv6Addr::from(address).to_canonical(), port)
}
