//! The kernel's information about connections, which rustix lacks.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use super::check;

/// `SOL_MPTCP`.
const SOL_MPTCP: c_int = 284;
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
#[derive(Default)]
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
pub(crate) fn mptcp_info(socket: impl AsFd) -> io::Result<(MptcpInfo, Vec<KernelSubflow>)> {
    let empty = SubflowAddresses { id: 0, _align: 0, local: [0; 128], remote: [0; 128] };
    let mut addresses = [empty; MAX_SUBFLOWS];
    let mut tcp = [TcpInfo::default(); MAX_SUBFLOWS];
    let mut full = FullInfo {
        size_tcpinfo_user: size_of::<TcpInfo>() as u32,
        size_sfinfo_user: size_of::<SubflowAddresses>() as u32,
        size_arrays_user: MAX_SUBFLOWS as u32,
        subflow_info: (&raw mut addresses).expose_provenance() as u64,
        tcp_info: (&raw mut tcp).expose_provenance() as u64,
        ..FullInfo::default()
    };
    get_info(socket, SOL_MPTCP, MPTCP_FULL_INFO, &mut full)?;
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
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = TcpInfo::default();
    get_info(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(info)
}

/// Let the kernel fill in a structure of integers.
fn get_info<T>(socket: impl AsFd, level: c_int, name: c_int, info: &mut T) -> io::Result<()> {
    let (fd, info): (_, *mut T) = (socket.as_fd().as_raw_fd(), info);
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the structure consists of integers, is as long as stated, and outlives the call; so
    // do the arrays that it points to, whose lengths it states.
    check(unsafe { libc::getsockopt(fd, level, name, info.cast(), &raw mut len) })?;
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
