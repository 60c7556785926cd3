//! The kernel's statistics of its connections, in the engine's terms. Values that the kernel does not
//! report are 0.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use anabranch_proto::view::{Bottleneck, Phase, Slot, SubflowId, SubflowView, Usability};
use anabranch_proto::{ConnectionStats, Fallback, SubflowStats};
use anabranch_sim::driver;
use anabranch_wire::{Duration, SocketAddress};

use crate::sys::{self, KernelSubflow, TcpInfo};

/// `MPTCP_INFO_FLAG_FALLBACK`.
const FALLBACK: u32 = 1;
/// `MPTCP_INFO_FLAG_REMOTE_KEY_RECEIVED`.
const REMOTE_KEY: u32 = 2;
/// `TCP_INFINITE_SSTHRESH`.
const UNLIMITED: u32 = 0x7fff_ffff;
/// `TCP_CA_Recovery`, `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;
/// `TCP_ESTABLISHED`, `TCP_SYN_SENT`, `TCP_SYN_RECV`.
const ESTABLISHED: u8 = 1;
const OPENING: [u8; 2] = [2, 3];

/// Totals of a connection whose application wrote and read the given numbers of bytes.
pub(crate) fn connection(stream: &TcpStream, written: u64, read: u64) -> ConnectionStats {
    let fd = stream.as_raw_fd();
    let mptcp = sys::mptcp_info(fd).ok().map(|(info, _)| info);
    let tcp = sys::tcp_info(fd).unwrap_or_default();
    let info = mptcp.unwrap_or_default();
    let buffer = |name| sys::option(fd, libc::SOL_SOCKET, name).unwrap_or(0) as u64;
    let is_mptcp = mptcp.is_some() && info.flags & FALLBACK == 0;
    ConnectionStats {
        is_mptcp,
        fallback: match mptcp {
            Some(info) if info.flags & FALLBACK == 0 => Fallback::None,
            Some(info) if info.flags & REMOTE_KEY == 0 => Fallback::SynAck,
            Some(_) => Fallback::OptionsLost,
            None => Fallback::None,
        },
        bytes_written: written,
        bytes_acknowledged: written.saturating_sub(sys::unacknowledged(fd) as u64),
        bytes_delivered: read,
        out_of_order_bytes: 0,
        out_of_order_segments: 0,
        stray_segments: 0,
        available_window: 0,
        unsent_bytes: if is_mptcp { 0 } else { tcp.notsent_bytes.into() },
        window_limited: Duration::ZERO,
        send_buffer_limited: Duration::ZERO,
        reinjections: info.retransmits.into(),
        copies: 0,
        path_probes: 0,
        bad_decisions: 0,
        send_buffer: buffer(libc::SO_SNDBUF),
        receive_buffer: buffer(libc::SO_RCVBUF),
    }
}

/// Totals of the subflows of a connection over `paths`.
pub(crate) fn subflows(stream: &TcpStream, paths: &[usize]) -> Vec<SubflowStats> {
    match sys::mptcp_info(stream.as_raw_fd()) {
        Ok((_, subflows)) => subflows.iter().map(|each| subflow(each, paths)).collect(),
        Err(_) => plain(stream).iter().map(|each| subflow(each, paths)).collect(),
    }
}

/// The single subflow of a TCP connection.
fn plain(stream: &TcpStream) -> Option<KernelSubflow> {
    let (local, remote) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    Some(KernelSubflow { id: 0, local, remote, tcp: sys::tcp_info(stream.as_raw_fd()).ok()? })
}

fn subflow(each: &KernelSubflow, paths: &[usize]) -> SubflowStats {
    let endpoint = |address: SocketAddr| SocketAddress::new(address.ip(), address.port());
    let tcp = &each.tcp;
    let resent = u64::from(tcp.total_retrans);
    SubflowStats {
        view: view(each, paths),
        local: endpoint(each.local),
        remote: endpoint(each.remote),
        segments_sent: u64::from(tcp.data_segs_out).saturating_sub(resent),
        bytes_sent: tcp.bytes_sent.saturating_sub(tcp.bytes_retrans),
        segments_retransmitted: resent,
        bytes_retransmitted: tcp.bytes_retrans,
        bytes_reinjected: 0,
        segments_received: tcp.segs_in.into(),
        bytes_received: tcp.bytes_received,
        acks_sent: u64::from(tcp.segs_out.saturating_sub(tcp.data_segs_out)),
        timeouts: 0,
        recoveries: 0,
        undone: 0,
        probes: 0,
        idle_restarts: 0,
        out_of_order_bytes: 0,
        ce_received: 0,
        ece_received: 0,
        ecn_reductions: 0,
    }
}

fn view(each: &KernelSubflow, paths: &[usize]) -> SubflowView {
    let TcpInfo { snd_mss, snd_cwnd, snd_ssthresh, .. } = each.tcp;
    let bytes = |segments: u32| u64::from(segments) * u64::from(snd_mss);
    let micros = |micros: u32| Duration::from_micros(micros.into());
    let outstanding = (each.tcp.unacked + each.tcp.retrans)
        .saturating_sub(each.tcp.sacked.saturating_add(each.tcp.lost));
    let in_flight = bytes(outstanding);
    let ssthresh = if snd_ssthresh < UNLIMITED { bytes(snd_ssthresh) } else { u64::MAX };
    // At both ends, the client's address identifiers are indices into the connection's paths.
    let path = driver::path_of(each.local.ip()).or_else(|| driver::path_of(each.remote.ip()));
    let number = paths.iter().position(|each| Some(*each) == path).unwrap_or(0) as u8;
    SubflowView {
        id: SubflowId { slot: Slot(each.id as u8), generation: 0 },
        local_address_id: number,
        remote_address_id: number,
        usability: match each.tcp.state {
            ESTABLISHED => Usability::Usable,
            state if OPENING.contains(&state) => Usability::Opening,
            _ => Usability::Closed,
        },
        backup: false,
        phase: match each.tcp.ca_state {
            RECOVERY => Phase::Recovery,
            LOSS => Phase::Loss,
            _ => Phase::Open,
        },
        mss: snd_mss,
        cwnd: bytes(snd_cwnd),
        ssthresh,
        bytes_in_flight: in_flight,
        available_cwnd: bytes(snd_cwnd).saturating_sub(in_flight),
        srtt: Some(micros(each.tcp.rtt)).filter(|rtt| !rtt.is_zero()),
        rttvar: micros(each.tcp.rttvar),
        min_rtt: micros(each.tcp.min_rtt),
        min_srtt: Duration::MAX,
        receive_rtt: Some(micros(each.tcp.rcv_rtt)).filter(|rtt| !rtt.is_zero()),
        loss_interval: 0,
        bottleneck: Bottleneck::Unknown,
    }
}
