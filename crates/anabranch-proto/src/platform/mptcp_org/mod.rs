//! Behaviour of the original kernel of multipath-tcp.org: Linux 3.14 with Multipath TCP 0.89.5, which
//! the papers of 2012 to 2015 ran. Parameters have the facts in which other versions differ. Behaviour
//! that later kernels share comes from [`Platform::linux_socket`].

use anabranch_config::Part;
use anabranch_wire::Duration;

use super::{
    AckRule, AnnounceRule, BufferModel, BuildPlatform, Charge, Counts, DataAckRule,
    DataRetransmission, ExpiryRule, FirstWindow, GiveUpRule, Growth, JoinRule, OptionForm,
    OwnWindow, Platform, RecoveryRule, ReorderingRule, RtoRule, SilenceRule, SocketMemory,
    SynFallbackRule,
};

/// Parameters of the platform of multipath-tcp.org.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct MptcpOrgConfig {
    /// Order in which a segment's acknowledgement on the subflow and its DATA_ACK are processed.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "mptcp_input.c, version 0.89.5")))]
    pub data_ack: DataAckRule,
    /// The peer's window for a subflow: that of TCP, the farthest edge that was advertised, or none.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "mptcp_sched.c, version 0.89.5")))]
    pub own_window: OwnWindow,
    /// Whether round-trip times are measured in ticks of 4 ms. Later versions measure microseconds.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "version 0.89.5, with 250 Hz")))]
    pub coarse_rtt: bool,
    /// Whether out-of-order data takes up the receive buffer. From Linux 3.12 until 2017, netem sets
    /// the memory of each segment that it delays to one byte. If sender and receiver share a kernel,
    /// as in Mininet, out-of-order data then takes up almost nothing.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "a real network")))]
    pub charges_delayed_segments: bool,
    /// Whether hosts use segmentation offload. The send buffer of TCP then holds more data, because
    /// segments share memory. Multipath TCP with checksums does not use offload.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project: off, as in the recorded runs")))]
    pub offload: bool,
}

impl Default for MptcpOrgConfig {
    fn default() -> Self {
        MptcpOrgConfig {
            data_ack: DataAckRule::BeforeAck,
            own_window: OwnWindow::AsTcp,
            coarse_rtt: true,
            charges_delayed_segments: true,
            offload: false,
        }
    }
}

impl Part for MptcpOrgConfig {
    const NAME: &'static str = "mptcp.org-0.89";
    const SUMMARY: &'static str =
        "The original kernel of 2012 to 2015: its windows, buffers and order of acknowledgements.";
    const SOURCE: &'static str = "Linux 3.14.33 with Multipath TCP 0.89.5";
}

impl BuildPlatform for MptcpOrgConfig {
    fn build(&self) -> Platform {
        let MptcpOrgConfig { data_ack, own_window, coarse_rtt, charges_delayed_segments, offload } =
            *self;
        let memory = match (charges_delayed_segments, offload) {
            (true, false) => &SOCKET_MEMORY,
            (true, true) => &const { with_offload(SOCKET_MEMORY) },
            (false, false) => &DELAYED_BY_NETEM,
            (false, true) => &const { with_offload(DELAYED_BY_NETEM) },
        };
        let buffers = BufferModel { memory, ..BufferModel::SOCKET };
        let timeouts =
            if coarse_rtt { &TIMEOUTS } else { &const { RtoRule { tick: None, ..TIMEOUTS } } };
        Platform { timeouts, data_ack, own_window, buffers, ..Platform::mptcp_org() }
    }
}

/// `TCP_TIMEOUT_INIT`, `TCP_RTO_MIN`, `TCP_RTO_MAX`; timestamps of 250 Hz.
const TIMEOUTS: RtoRule = RtoRule {
    initial: Duration::from_secs(1),
    minimum: Duration::from_millis(200),
    minimum_bounds_variance: true,
    maximum: Duration::from_secs(120),
    tick: Some(Duration::from_millis(4)),
};

/// Memory of a full segment (`truesize`), in which checksums leave room for one segment only.
const SEGMENT: u64 = 2304;
/// Payload of a full segment of Multipath TCP. TCP, which has 1448 bytes, rarely holds data back.
const PAYLOAD: u64 = 1428;

/// Half of the free memory is the window (`tcp_adv_win_scale` = 1). Every segment is charged,
/// out-of-order segments included.
const SOCKET_MEMORY: SocketMemory = SocketMemory {
    offered: [128, 128],
    charge: Charge::Segments { window: SEGMENT / 2, payload: PAYLOAD },
    // `tcp_default_init_rwnd`
    first: FirstWindow::Segments(20),
    opens_together: true,
    least_free: None,
    whole_segments: true,
    counts_remaining: true,
    segment: Some([SEGMENT; 2]),
};

/// The same, where a segment counts as one byte (`skb_orphan_partial`).
const DELAYED_BY_NETEM: SocketMemory =
    SocketMemory { charge: Charge::Segments { window: 0, payload: PAYLOAD }, ..SOCKET_MEMORY };

/// The same with segmentation offload. A send buffer of 400 KiB then holds 323 kB, seen with version
/// 0.89.5.
const fn with_offload(memory: SocketMemory) -> SocketMemory {
    SocketMemory { segment: Some([1836, SEGMENT]), ..memory }
}

impl Platform {
    /// Behaviour of the original kernel.
    pub const fn mptcp_org() -> Self {
        let linux = Platform::linux_socket();
        Platform {
            timeouts: &TIMEOUTS,
            expiry: ExpiryRule::EXACT,
            // `__tcp_ack_snd_check`
            acknowledging: AckRule {
                heeds_push: false,
                held_data_counts: false,
                small_take_less: false,
                quick_beyond_data_hole: true,
                ..linux.acknowledging
            },
            // `tcp_is_cwnd_limited`, `tcp_max_tso_deferred_mss`
            growth: Growth::WhileFull(3),
            // `tcp_cong_avoid_ai`
            reordering: ReorderingRule { counts: Counts::EachAcknowledgement, ..linux.reordering },
            // DSS of 20 bytes with data: 32-bit numbers and a checksum.
            options: OptionForm::Short,
            joins: JoinRule {
                after_close: true,
                resets_overtaken: false,
                used_from_next_segment: false,
            },
            recovery: RecoveryRule { counts_segments: true, ..linux.recovery },
            deferral: None,
            // `mptcp_retransmit_timer`: 2 RTOs of the slowest subflow.
            data_retransmission: &DataRetransmission::RARE,
            // `mptcp_reinject_data`
            silence: SilenceRule::FirstTimeout,
            give_up: GiveUpRule::BY_CONFIGURATION,
            announcing: AnnounceRule::Together,
            syn_fallback: SynFallbackRule::BY_CONFIGURATION,
            keeps_larger_window: false,
            acknowledges_opening_early: false,
            acknowledges_third_ack: true,
            // `mptcp_send_reset_rem_id`
            closes_removed: true,
            // Version 0.89 lacks `create_on_err`, which is off by default in later ones.
            reopens_subflows: false,
            takes_smaller_receive_rtt: false,
            sends_each_write: true,
            data_ack: DataAckRule::BeforeAck,
            own_window: OwnWindow::AsTcp,
            ..linux
        }
    }
}
