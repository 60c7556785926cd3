//! Behaviour of Linux: of version 6.18 unless another one is named.

mod autotuning;
mod buffers;
mod cwnd_usage;
mod fragments;
mod send_memory;
pub(crate) mod socket_buffer;

pub(super) use autotuning::{
    ReadRounds, Reading, segments_at_a_time, send_memory, shared_send_memory,
};
pub(super) use buffers::{early_edge, send_buffer, waiting_beyond_holes, window_scale};
pub(super) use cwnd_usage::CwndUsage;
pub(crate) use fragments::FRAGMENT;
pub(super) use fragments::Fragments;
pub(super) use send_memory::SendMemory;

use anabranch_config::Part;
use anabranch_config::units::ByteCount;
use anabranch_wire::Duration;

use super::{
    AckRule, AnnounceRule, BufferModel, Buffers, BuildPlatform, Charge, Counts, DataRetransmission,
    Deferral, ExpiryRule, FirstWindow, GiveUpRule, Growth, JoinRule, Nagle, OptionForm, Pause,
    Platform, RecoveryRule, Reduction, ReorderingRule, RtoRule, SilenceRule, SocketMemory,
    SynFallbackRule, TimerWheel, Tuning,
};

/// Parameters of the platform of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct LinuxConfig {
    /// Meaning of buffer sizes: bytes of payload, or the size that a program requests of a socket.
    /// Linux doubles that size, and charges memory to it.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub buffers: Buffers,
    /// Version of the kernel, where the model knows a difference: growth of the receive buffers that
    /// Linux tunes.
    #[cfg_attr(
        feature = "serde",
        schemars(extend("x-origin" = "this project", "x-only-with" = { "buffers": "socket" }))
    )]
    pub version: LinuxVersion,
    /// Memory of a receive buffer that Linux tunes, at first: the second number of the sysctl
    /// net.ipv4.tcp_rmem.
    #[cfg_attr(
        feature = "serde",
        serde(with = "Memory"),
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_rmem_default: ByteCount,
    /// Largest memory of a receive buffer that Linux tunes: the third number of
    /// net.ipv4.tcp_rmem.
    #[cfg_attr(
        feature = "serde",
        serde(with = "Memory"),
        schemars(extend("x-origin" = "Linux up to 2025; later kernels have 32 MiB", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_rmem_max: ByteCount,
    /// Largest memory of a subflow's send buffer that Linux tunes: the third number of
    /// net.ipv4.tcp_wmem.
    #[cfg_attr(
        feature = "serde",
        serde(with = "Memory"),
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_wmem_max: ByteCount,
    /// Retransmissions after which Linux gives up a subflow: net.ipv4.tcp_retries2. Linux turns the
    /// number into a time, with timeouts that begin at 200 ms and double up to 2 minutes.
    #[cfg_attr(
        feature = "serde",
        schemars(range(min = 1), extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_retries2: u8,
    /// SYN retransmissions after which Linux gives up opening a connection or a subflow:
    /// net.ipv4.tcp_syn_retries.
    #[cfg_attr(
        feature = "serde",
        schemars(range(min = 1, max = 127), extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_syn_retries: u8,
    /// Timeouts of a SYN before the timeout doubles, and further SYN retransmissions:
    /// net.ipv4.tcp_syn_linear_timeouts.
    #[cfg_attr(
        feature = "serde",
        schemars(range(max = 127), extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub tcp_syn_linear_timeouts: u8,
    /// Periods without progress after which a subflow goes out of use while another one works:
    /// net.mptcp.stale_loss_cnt. With 0, it stays in use.
    #[cfg_attr(
        feature = "serde",
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub stale_loss_cnt: u8,
    /// Time that a connection without subflows waits for another one: net.mptcp.close_timeout, in whole
    /// seconds.
    #[cfg_attr(
        feature = "serde",
        serde(with = "anabranch_config::written::WithUnit::<Duration>"),
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub close_timeout: Duration,
    /// Longest time before Linux repeats the announcement of an address that the peer has not echoed:
    /// net.mptcp.add_addr_timeout, in whole seconds. Linux waits for the longest retransmission timeout
    /// of a subflow if that is shorter, doubles the time twice, and then announces the next address.
    /// With 0, it neither repeats an announcement nor announces a further address without an echo.
    #[cfg_attr(
        feature = "serde",
        serde(with = "anabranch_config::written::WithUnit::<Duration>"),
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub add_addr_timeout: Duration,
    /// SYN retransmissions with MP_CAPABLE before Linux omits it:
    /// net.mptcp.syn_retrans_before_tcp_fallback. From 128 on, it never omits it.
    #[cfg_attr(
        feature = "serde",
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub syn_retrans_before_tcp_fallback: u8,
    /// Time during which the host opens connections without Multipath TCP after it found that SYNs with
    /// MP_CAPABLE are lost and others are not: net.mptcp.blackhole_timeout, in whole seconds. It doubles
    /// each time, up to 64 times, until a peer answers MP_CAPABLE. With 0, the host does not do so.
    #[cfg_attr(
        feature = "serde",
        serde(with = "anabranch_config::written::WithUnit::<Duration>"),
        schemars(extend("x-origin" = "Linux 6.18", "x-only-with" = { "buffers": "socket" }))
    )]
    pub blackhole_timeout: Duration,
}

/// A version of Linux whose rules the model has where versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    schemars(inline)
)]
pub enum LinuxVersion {
    /// A window that grows has room for 16 more segments (`mptcp_rcv_space_adjust`).
    #[cfg_attr(feature = "serde", serde(rename = "v6.12"))]
    V6_12,
    /// A window that grows has no such room (`mptcp_rcvbuf_grow`, `tcp_rcvbuf_grow`).
    #[cfg_attr(feature = "serde", serde(rename = "v6.18"))]
    V6_18,
}

/// Sizes of tuned buffers. Linux refuses sizes of less than a page.
#[cfg(feature = "serde")]
type Memory = anabranch_config::written::Bytes<4096, { 1 << 30 }>;

impl Default for LinuxConfig {
    fn default() -> Self {
        let Tuning { first_receive, largest_receive, largest_send, .. } = Tuning::DEFAULT;
        LinuxConfig {
            buffers: Buffers::Payload,
            version: LinuxVersion::V6_12,
            tcp_rmem_default: ByteCount::new(first_receive.into()),
            tcp_rmem_max: ByteCount::new(largest_receive.into()),
            tcp_wmem_max: ByteCount::new(largest_send.into()),
            tcp_retries2: 15,
            tcp_syn_retries: 6,
            tcp_syn_linear_timeouts: SYN_LINEAR_TIMEOUTS,
            stale_loss_cnt: STALE_LOSS_CNT,
            close_timeout: GIVE_UP.orphaned,
            add_addr_timeout: ADD_ADDR_TIMEOUT,
            syn_retrans_before_tcp_fallback: SYN_RETRANS_BEFORE_TCP_FALLBACK,
            blackhole_timeout: BLACKHOLE_TIMEOUT,
        }
    }
}

impl Part for LinuxConfig {
    const NAME: &'static str = "linux";
    const SUMMARY: &'static str =
        "Linux's constants and habits: minimum RTO 200 ms, acknowledgements delayed by 40 ms.";
    const SOURCE: &'static str = "Linux 6.18";
}

impl BuildPlatform for LinuxConfig {
    fn build(&self) -> Platform {
        let base = match self.buffers {
            Buffers::Payload => Platform::linux(),
            Buffers::Socket => Platform {
                silence: SilenceRule::Periods(self.stale_loss_cnt),
                give_up: GiveUpRule {
                    syn_retries: Some(self.tcp_syn_retries),
                    syn_linear_timeouts: self.tcp_syn_linear_timeouts,
                    retries: Some(self.tcp_retries2),
                    orphaned: self.close_timeout,
                },
                announcing: AnnounceRule::OneAtATime { most: self.add_addr_timeout },
                syn_fallback: SynFallbackRule {
                    syn_retries: Some(self.syn_retrans_before_tcp_fallback),
                    disabled: self.blackhole_timeout,
                },
                ..Platform::linux_socket()
            },
        };
        let tuning = Tuning {
            first_receive: self.tcp_rmem_default.as_u64() as u32,
            largest_receive: self.tcp_rmem_max.as_u64() as u32,
            largest_send: self.tcp_wmem_max.as_u64() as u32,
            spare_segments: match self.version {
                LinuxVersion::V6_12 => Tuning::DEFAULT.spare_segments,
                LinuxVersion::V6_18 => 0,
            },
        };
        Platform { buffers: BufferModel { tuning, ..base.buffers }, ..base }
    }
}

/// TCP_TIMEOUT_INIT, TCP_RTO_MIN and TCP_RTO_MAX; `tcp_rtt_estimator` bounds the variance.
const TIMEOUTS: RtoRule = RtoRule {
    initial: Duration::from_secs(1),
    minimum: Duration::from_millis(200),
    minimum_bounds_variance: true,
    maximum: Duration::from_secs(120),
    tick: None,
};

/// 1448 of the 2304 bytes of a full segment of TCP that came through a veth device are payload, and
/// 1424 with Multipath TCP (`tcp_measure_rcv_mss`). The window is that share of the free memory
/// (`__tcp_select_window`).
pub(super) const SOCKET_MEMORY: SocketMemory = SocketMemory {
    offered: [160, 158],
    charge: Charge::Payload,
    first: FirstWindow::Half,
    opens_together: false,
    least_free: Some(16),
    whole_segments: false,
    counts_remaining: false,
    segment: None,
};

/// `tcp_tso_should_defer` as of 6.12.117; `tcp_tso_win_divisor`.
const DEFERRAL: Deferral =
    Deferral { recent: Duration::from_millis(1), soon: Duration::from_millis(1), enough: 3 };

/// `retransmits_timed_out`; `net.mptcp.close_timeout`
const GIVE_UP: GiveUpRule = GiveUpRule {
    syn_retries: None,
    syn_linear_timeouts: SYN_LINEAR_TIMEOUTS,
    retries: Some(15),
    orphaned: Duration::from_secs(60),
};

/// `net.ipv4.tcp_syn_linear_timeouts` (`tcp_retransmit_timer`, `tcp_write_timeout`)
const SYN_LINEAR_TIMEOUTS: u8 = 4;

/// `net.mptcp.add_addr_timeout` (`mptcp_adjust_add_addr_timeout`)
const ADD_ADDR_TIMEOUT: Duration = Duration::from_secs(120);
/// `net.mptcp.syn_retrans_before_tcp_fallback` (`mptcp_active_detect_blackhole`)
const SYN_RETRANS_BEFORE_TCP_FALLBACK: u8 = 2;
/// `net.mptcp.blackhole_timeout` (`mptcp_active_should_disable`)
const BLACKHOLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// `net.mptcp.stale_loss_cnt` (`mptcp_pm_nl_subflow_chk_stale`)
const STALE_LOSS_CNT: u8 = 4;

/// The data-level retransmission timer follows the timers of the subflows, and resends the oldest
/// fragment on a subflow whose queues are empty (`mptcp_timeout_from_subflow`, `__mptcp_retrans`,
/// `mptcp_subflow_get_retrans`). Linux does not back off. The engine does from the third time on if
/// the subflows have delivered everything, so that it gives up on such a peer after minutes.
const DATA_RETRANSMISSION: DataRetransmission = DataRetransmission {
    // TCP_RTO_MIN
    pause: Pause::PendingTimers { none: Duration::from_millis(200) },
    needs_idle_subflow: true,
};

impl Platform {
    /// Behaviour of Linux: a minimum RTO of 200 ms, acknowledgements delayed by 40 ms after a run
    /// of immediate ones and not for short segments, reductions of the congestion window whatever
    /// part of it is in use. Buffers count payload, and segments have the same size as on other
    /// platforms.
    pub const fn linux() -> Self {
        Platform {
            timeouts: &TIMEOUTS,
            // `tcp_init_transfer` forgives one, since it waits for 1 s only and not for 3.
            lost_syns_forgiven: 1,
            // TCP_DELACK_MIN and TCP_MAX_QUICKACKS; `__tcp_ack_snd_check` and `tcp_cleanup_rbuf`.
            acknowledging: AckRule {
                delay: Duration::from_millis(40),
                quick_acks: 16,
                prompt: true,
                heeds_push: true,
                held_data_counts: true,
                small_take_less: true,
                quick_beyond_data_hole: false,
            },
            // `tcp_minshall_check`
            nagle: Nagle::Short,
            // `tcp_init_cwnd_reduction` and `tcp_enter_loss`
            reduction: Reduction::Cwnd,
            // `tcp_cwnd_validate`
            growth: Growth::OnceFull,
            // `tcp_rack_mark_lost` and `tcp_schedule_loss_probe`: TCP_TIMEOUT_MIN, with 250 Hz;
            // `tcp_try_undo_partial`; `tcp_cong_control` and `tcp_may_raise_cwnd`.
            reordering: ReorderingRule {
                timer_slack: Duration::from_millis(8),
                undo_awaits_retransmissions: true,
                counts: Counts::Delivered,
            },
            requires_timestamps: false,
            // `tcp_reset` and `tcp_write_err` leave the receive queue alone.
            keeps_unread_data: true,
            // Nothing in mptcp/ calls `tcp_rate_check_app_limited`.
            subflows_are_application_limited: false,
            // Buffers count payload, as on the platform `rfc`.
            ..Platform::rfc()
        }
    }

    /// The same platform, with the accounting of socket memory. A socket's buffer is not the size
    /// that the program requests, and segments have the kernel's lengths.
    pub const fn linux_socket() -> Self {
        Platform {
            buffers: BufferModel::SOCKET,
            // `calc_wheel_index`, with the 250 Hz of distributions; `tcp_schedule_loss_probe`
            expiry: ExpiryRule { wheel: Some(TimerWheel { hertz: 250 }), probe_heeds_oldest: true },
            // `mptcp_established_options_dss` and `tcp_options_write`
            options: OptionForm::Long,
            joins: JoinRule {
                // `mptcp_is_fully_established` requires TCP_ESTABLISHED. A sender with a large
                // buffer then uses only its first path.
                after_close: false,
                // `check_fully_established`
                resets_overtaken: true,
                // `mptcp_finish_join` pushes nothing.
                used_from_next_segment: true,
            },
            recovery: RecoveryRule {
                // `tcp_cwnd_test`, `tcp_cong_control` and `tcp_cwnd_reduction`
                counts_segments: true,
                // `tcp_cwnd_reduction`
                catches_up_if_safe: true,
                // `tcp_cong_control`: it grows as with later ones.
                grows_at_the_end: true,
            },
            deferral: Some(&DEFERRAL),
            data_retransmission: &DATA_RETRANSMISSION,
            silence: SilenceRule::Periods(STALE_LOSS_CNT),
            give_up: GIVE_UP,
            announcing: AnnounceRule::OneAtATime { most: ADD_ADDR_TIMEOUT },
            syn_fallback: SynFallbackRule {
                syn_retries: Some(SYN_RETRANS_BEFORE_TCP_FALLBACK),
                disabled: BLACKHOLE_TIMEOUT,
            },
            // A duplicate acknowledgement on a subflow does not shrink its window
            // (`tcp_may_update_window`), and its DATA_ACK is added to the window that is kept
            // (`ack_update_msk`). The sender then exceeds the peer's edge by the data that other
            // subflows have delivered since. The peer acknowledges that data on the subflow, and
            // then drops it.
            keeps_larger_window: true,
            // `tcp_rcv_synsent_state_process`
            acknowledges_opening_early: true,
            // `tcp_rcv_state_process` answers the last segment of a join only
            // (`subflow_finish_connect`, `check_fully_established`).
            acknowledges_third_ack: false,
            closes_removed: false,
            // `mptcp_pm_create_subflow_or_signal_addr` uses each endpoint once.
            reopens_subflows: false,
            // `tcp_rcv_rtt_update`
            takes_smaller_receive_rtt: true,
            // `__mptcp_push_pending`: a burst does not extend beyond written data.
            sends_each_write: true,
            ..Platform::linux()
        }
    }
}

/// Bytes paced out in a round-trip time: twice the window while that is below half of the
/// slow-start threshold, and 1.2 times afterwards. What acknowledgements change counts; a window
/// that is reduced after idling does not until then. `tcp_update_pacing_rate`.
pub(super) fn paced_window(cwnd: u64, ssthresh: u64, bytes_in_flight: u64) -> u64 {
    let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
    cwnd.max(bytes_in_flight).saturating_mul(percent) / 100
}
