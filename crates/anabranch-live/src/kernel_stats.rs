//! The kernel's statistics of its connections. Values that the kernel does not report are 0.

use std::net::TcpStream;

use anabranch_sim::driver::{ConnectionTotals, FallbackReason, SubflowKey, SubflowTotals};
use anabranch_wire::Duration;
use rustix::net::sockopt;

use crate::sys::{self, KernelSubflow, TcpInfo};

/// `MPTCP_INFO_FLAG_FALLBACK`.
const FALLBACK: u32 = 1;
/// `MPTCP_INFO_FLAG_REMOTE_KEY_RECEIVED`.
const REMOTE_KEY: u32 = 2;
/// `TCP_INFINITE_SSTHRESH`.
const UNLIMITED: u32 = 0x7fff_ffff;

/// Totals of a connection whose application wrote and read the given numbers of bytes.
pub(crate) fn connection(stream: &TcpStream, written: u64, read: u64) -> ConnectionTotals {
    let mptcp = sys::mptcp_info(stream).ok().map(|(info, _)| info);
    let tcp = sys::tcp_info(stream).unwrap_or_default();
    let info = mptcp.unwrap_or_default();
    let is_mptcp = mptcp.is_some() && info.flags & FALLBACK == 0;
    ConnectionTotals {
        is_mptcp,
        fallback: match mptcp {
            Some(info) if info.flags & FALLBACK == 0 => FallbackReason::None,
            Some(info) if info.flags & REMOTE_KEY == 0 => FallbackReason::SynAck,
            Some(_) => FallbackReason::OptionsLost,
            None => FallbackReason::None,
        },
        bytes_written: written,
        bytes_delivered: read,
        unsent_bytes: if is_mptcp { 0 } else { tcp.notsent_bytes.into() },
        reinjections: info.retransmits.into(),
        send_buffer: sockopt::socket_send_buffer_size(stream).unwrap_or(0) as u64,
        receive_buffer: sockopt::socket_recv_buffer_size(stream).unwrap_or(0) as u64,
        ..ConnectionTotals::default()
    }
}

/// Totals of the subflows of a connection.
pub(crate) fn subflows(stream: &TcpStream) -> Vec<SubflowTotals> {
    match sys::mptcp_info(stream) {
        Ok((_, subflows)) => subflows.iter().map(subflow).collect(),
        Err(_) => plain(stream).iter().map(subflow).collect(),
    }
}

/// The single subflow of a TCP connection.
fn plain(stream: &TcpStream) -> Option<KernelSubflow> {
    let (local, remote) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    Some(KernelSubflow { id: 0, local, remote, tcp: sys::tcp_info(stream).ok()? })
}

fn subflow(each: &KernelSubflow) -> SubflowTotals {
    let tcp = &each.tcp;
    let TcpInfo { snd_mss, snd_cwnd, snd_ssthresh, .. } = *tcp;
    let resent = u64::from(tcp.total_retrans);
    let bytes = |segments: u32| u64::from(segments) * u64::from(snd_mss);
    let micros = |micros: u32| Duration::from_micros(micros.into());
    let outstanding =
        (tcp.unacked + tcp.retrans).saturating_sub(tcp.sacked.saturating_add(tcp.lost));
    SubflowTotals {
        key: SubflowKey { slot: each.id as u8, generation: 0 },
        local: each.local.into(),
        remote: each.remote.into(),
        cwnd: bytes(snd_cwnd),
        ssthresh: if snd_ssthresh < UNLIMITED { bytes(snd_ssthresh) } else { u64::MAX },
        bytes_in_flight: bytes(outstanding),
        srtt: Some(micros(tcp.rtt)).filter(|rtt| !rtt.is_zero()),
        min_rtt: micros(tcp.min_rtt),
        bottleneck: 0,
        segments_sent: u64::from(tcp.data_segs_out).saturating_sub(resent),
        bytes_sent: tcp.bytes_sent.saturating_sub(tcp.bytes_retrans),
        segments_retransmitted: resent,
        bytes_retransmitted: tcp.bytes_retrans,
        bytes_reinjected: 0,
        timeouts: 0,
        recoveries: 0,
        undone: 0,
        probes: 0,
        idle_restarts: 0,
        ece_received: 0,
        ecn_reductions: 0,
        bytes_received: tcp.bytes_received,
        out_of_order_bytes: 0,
    }
}
