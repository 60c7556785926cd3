//! Platforms: what hosts do differently from each other, where RFCs leave a choice or an
//! implementation departs from them.
//!
//! A [`Platform`] is a set of such choices, as data. The engine reads them and knows no platform by
//! name; each platform's values, with their sources, are in its own file or folder. Another platform
//! is such a folder, and a line in [`PlatformConfig`].

mod buffer_model;
mod cwnd_usage;
mod deferral;
mod expiry;
mod facts;
mod linux;
mod mptcp_org;
mod nagle;
mod receive_window;
mod rfc;
mod segment_memory;
mod send_buffer;
mod socket_memory;

pub(crate) use cwnd_usage::CwndUsage;
pub use expiry::{ExpiryRule, TimerWheel};
pub use linux::{LinuxConfig, LinuxVersion};
pub use mptcp_org::MptcpOrgConfig;
pub use rfc::RfcConfig;
pub use socket_memory::{Charge, FirstWindow, SocketMemory};

pub(crate) use facts::{
    Burst, Cwnd, Incoming, OwnMss, RcvSsthresh, RecvQueueState, SendOffsets, ShortSegments, Unsent,
};
pub(crate) use linux::{FRAGMENT, socket_buffer};
pub(crate) use receive_window::ReceiveWindow;
pub(crate) use segment_memory::SegmentMemory;
pub(crate) use send_buffer::SendBuffer;

use anabranch_config::parts;
use anabranch_wire::Duration;

use crate::view::SubflowView;

/// Behaviour of a host where hosts differ. Each connection has a copy, so larger facts are static.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Platform {
    /// Rule by which the retransmission timeout follows from the estimators.
    pub timeouts: &'static RtoRule,
    /// Time at which the timers of retransmissions fire.
    pub expiry: ExpiryRule,
    /// Timeouts in the handshake after which the congestion window still begins in full.
    /// RFC 5681 §3.1.
    pub lost_syns_forgiven: u32,
    /// When acknowledgements are delayed.
    pub acknowledging: AckRule,
    /// Event that a short segment waits for.
    pub nagle: Nagle,
    /// Base of a reduction of the congestion window.
    pub reduction: Reduction,
    /// When the congestion window counts as used, so that it may grow.
    pub growth: Growth,
    /// Behaviour of a sender while segments arrive out of order.
    pub reordering: ReorderingRule,
    /// Whether segments are dropped if they lack the timestamps that were agreed. RFC 7323 §3.2.
    pub requires_timestamps: bool,
    /// Whether the application may read data that had arrived in order before the connection ended
    /// with an error. RFC 9293 §3.10.7.4 has all queues flushed.
    pub keeps_unread_data: bool,
    /// Meaning of buffer sizes, and of the receive window's relation to the buffer.
    pub buffers: BufferModel,
    /// Room that options take.
    pub options: OptionForm,
    /// Behaviour while subflows join.
    pub joins: JoinRule,
    /// Unit in which the congestion window counts, and its behaviour in fast recovery.
    pub recovery: RecoveryRule,
    /// When a sender waits for more room in the congestion window before it sends more. `None`: it
    /// never does.
    pub deferral: Option<&'static Deferral>,
    /// When data is retransmitted at the data level on a connection with several subflows.
    pub data_retransmission: &'static DataRetransmission,
    /// Event that takes a subflow that does not answer out of use.
    pub silence: SilenceRule,
    /// Event at which a host gives up a subflow that does not answer, or a connection without
    /// subflows.
    pub give_up: GiveUpRule,
    /// When a host announces its addresses.
    pub announcing: AnnounceRule,
    /// Reaction to lost SYNs with MP_CAPABLE.
    pub syn_fallback: SynFallbackRule,
    /// Whether a DATA_ACK counts with the larger window that the subflow had before, where its
    /// segment advertises less and acknowledges nothing new on the subflow.
    pub keeps_larger_window: bool,
    /// Whether the acknowledgement that opens a connection or a further subflow is sent before the
    /// application can write.
    pub acknowledges_opening_early: bool,
    /// Whether a listener acknowledges the segment that completes the handshake of a connection. The
    /// acknowledgement has the first data sequence signal.
    pub acknowledges_third_ack: bool,
    /// Whether a host closes a subflow at once when the peer says that it has lost the subflow's address.
    /// RFC 8684 §3.4.2 has the host find out first whether the subflow still answers.
    pub closes_removed: bool,
    /// Whether the host's kernel opens another subflow in place of one that has ended or failed. A host
    /// whose kernel does not keeps a connection without subflows until an interface comes up again, or
    /// for [`GiveUpRule::orphaned`].
    pub reopens_subflows: bool,
    /// Whether a receiver takes a smaller sample as the round-trip time at once, rather than as part
    /// of an average.
    pub takes_smaller_receive_rtt: bool,
    /// Whether the host sends the data of a write before the application's next write.
    pub sends_each_write: bool,
    /// Order in which a segment's acknowledgement and its DATA_ACK are processed.
    pub data_ack: DataAckRule,
    /// The peer's window for a subflow.
    pub own_window: OwnWindow,
    /// Whether a subflow of Multipath TCP may count as limited by the application, so that its delivery
    /// rate says little about the path. A connection of TCP always may.
    pub subflows_are_application_limited: bool,
}

/// Behaviour while subflows join. RFC 8684 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRule {
    /// Whether subflows may join once one of the hosts has closed its direction of the connection.
    /// RFC 8684 §3.2 allows it.
    pub after_close: bool,
    /// Whether a host resets a subflow that it has opened, if data overtakes the acknowledgement
    /// that completes the join.
    pub resets_overtaken: bool,
    /// Whether the host that accepts a subflow next to others sends data on it only from the next segment
    /// of the peer on, which may arrive on any subflow.
    pub used_from_next_segment: bool,
}

/// Unit in which the congestion window counts, and its behaviour in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRule {
    /// Whether the congestion window counts segments, whatever their length. RFC 5681 counts bytes.
    pub counts_segments: bool,
    /// Whether a sender that has less in flight than the slow-start threshold may send a segment
    /// more than has arrived only after an acknowledgement that advances and shows no further loss.
    /// RFC 6937 §3 allows it with each acknowledgement.
    pub catches_up_if_safe: bool,
    /// Whether the acknowledgement that ends a fast recovery lets the window grow.
    pub grows_at_the_end: bool,
}

/// Order in which a segment's acknowledgement and its DATA_ACK are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum DataAckRule {
    /// The acknowledgement of the subflow first.
    AfterAck,
    /// The DATA_ACK first. The host at once sends the data that it admits, while the subflow still
    /// has the acknowledged data in flight.
    BeforeAck,
}

/// The peer's window for new data on a subflow. RFC 8684 §3.3.5 has a window for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum OwnWindow {
    /// Its edge is the farthest that the subflow was offered.
    Farthest,
    /// Its edge follows the latest acknowledgement of the subflow, as in TCP, and may move back.
    AsTcp,
    /// A subflow has no window of its own. Only the connection's window limits it.
    Ignored,
}

/// Rule by which the retransmission timeout follows from the estimators. RFC 6298.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoRule {
    /// Timeout before the first sample.
    pub initial: Duration,
    /// Lower bound.
    pub minimum: Duration,
    /// Whether the variance term 4·RTTVAR is bounded from below. The RFC bounds the sum.
    pub minimum_bounds_variance: bool,
    /// Upper bound, after back-off.
    pub maximum: Duration,
    /// Granularity of the clock that measures round-trip times; `None` if it is exact.
    pub tick: Option<Duration>,
}

/// When acknowledgements are delayed. RFC 9293 §3.8.6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRule {
    /// Longest delay of an acknowledgement.
    pub delay: Duration,
    /// Segments that are acknowledged at once, at the start of a subflow.
    pub quick_acks: u32,
    /// Whether to acknowledge as soon as more than one full-sized segment's bytes wait, and to
    /// acknowledge a segment that is short or has PSH once the application has read everything,
    /// unless it answers. If `false`, the host acknowledges every second full-sized segment.
    pub prompt: bool,
    /// Whether a full segment with PSH counts as a short one.
    pub heeds_push: bool,
    /// Whether unread data in the buffer keeps the window from opening.
    pub held_data_counts: bool,
    /// Whether small segments take up less memory than full ones.
    pub small_take_less: bool,
    /// Whether data that is out of order at the data level starts quick acknowledgements on its
    /// subflow, for half a window of segments (`tcp_enter_quickack_mode`).
    pub quick_beyond_data_hole: bool,
}

/// Event that a short segment waits for. RFC 9293 §3.7.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Until all that was sent is acknowledged.
    All,
    /// Until the short segments are that were sent (Minshall's variant), so that the end of a large
    /// write does not wait for a delayed acknowledgement.
    Short,
}

/// Base of a reduction of the congestion window. RFC 5681 §3.1 takes the data outstanding; RFC 9438
/// §4.6 allows both. They differ for a sender that the application or the receiver limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The data outstanding.
    Flight,
    /// The congestion window, whatever part of it is in use.
    Cwnd,
}

/// When the congestion window counts as used, so that it may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// If at most this many segments of it were free when the acknowledgement came (RFC 7661's
    /// spirit).
    WhileFull(u8),
    /// On all acknowledgements of a window of data that filled it once, and in slow start to twice
    /// the data that was outstanding. When it was not in use for a retransmission timeout, it
    /// shrinks half of the way to the part that was in use. RFC 2861.
    OnceFull,
}

/// Behaviour of a sender while segments arrive out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderingRule {
    /// Time that the timers of RFC 8985 wait beyond the times of its §6.2 and §7.2.
    pub timer_slack: Duration,
    /// Whether a reduction that was spurious lasts until no retransmission is outstanding, unless
    /// all of them are known to have been needless. RFC 4015 undoes it at once.
    pub undo_awaits_retransmissions: bool,
    /// Which bytes let the congestion window grow.
    pub counts: Counts,
}

/// Which bytes let the congestion window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Those that an acknowledgement covers cumulatively. RFC 5681 §3.1.
    Acknowledged,
    /// In slow start as above. In congestion avoidance, each acknowledgement of new data counts as one
    /// segment.
    EachAcknowledgement,
    /// Those that an acknowledgement reports for the first time, cumulatively or selectively. What
    /// arrived beyond a hole counts only on a path that was seen to reorder by more than three
    /// segments.
    Delivered,
}

/// Room that options take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// As little as possible: 4-byte data sequence numbers unless they could wrap too soon (RFC 8684
    /// §3.3.1).
    Short,
    /// 8-byte data sequence numbers, and whole words of 4 bytes for every option of an established
    /// subflow.
    Long,
}

/// Meaning of buffer sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum Buffers {
    /// Bytes of payload, at the connection level. RFC 8684 §3.3.5.
    Payload,
    /// Sizes that a program asks the sockets of this host for. The sockets grant other sizes, and
    /// charge data with the memory that holds it.
    Socket,
}

/// Rules by which Linux tunes buffers. Sizes are bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Size with which a receive buffer begins (`tcp_rmem[1]`).
    pub first_receive: u32,
    /// Largest receive buffer (`tcp_rmem[2]`).
    pub largest_receive: u32,
    /// Largest send buffer of a subflow (`tcp_wmem[2]`).
    pub largest_send: u32,
    /// Full segments that a receive window has beyond twice the data that the application reads in a
    /// round-trip time.
    pub spare_segments: u8,
}

/// Rules by which a host counts its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferModel {
    /// Meaning of their sizes.
    pub sizes: Buffers,
    /// Rules by which windows follow from the memory of sockets.
    pub memory: &'static SocketMemory,
    /// Bounds of the buffers that no size was requested for.
    pub tuning: Tuning,
}

/// When a sender waits until it can send as much as it sends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// It waits only if it has sent something no longer than this ago.
    pub recent: Duration,
    /// It waits only if the next acknowledgement is due within this time, or is late.
    pub soon: Duration,
    /// It does not wait if such a part of the congestion window is free: a third if this is 3.
    pub enough: u64,
}

/// Rules for retransmitting data that subflows have delivered and the peer does not acknowledge at
/// the data level. RFC 8684 §3.3.6 leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRetransmission {
    /// Time that the sender waits.
    pub pause: Pause,
    /// Whether the sender retransmits all of the oldest page fragment at a time, on a subflow that has
    /// nothing to send and nothing outstanding. Otherwise, it retransmits a segment.
    pub needs_idle_subflow: bool,
}

impl DataRetransmission {
    /// A segment at a time, after some timeouts: the fewest copies.
    pub(crate) const RARE: DataRetransmission =
        DataRetransmission { pause: Pause::Timeouts, needs_idle_subflow: false };
}

/// Times and counts after which a host gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveUpRule {
    /// SYN retransmissions before it gives up the attempt. `None`: as many as the configuration says.
    pub syn_retries: Option<u8>,
    /// Timeouts of a SYN that its host sends before the timeout doubles. As many retransmissions are added
    /// to `syn_retries`. RFC 6298 §5.5 doubles it from the first one on.
    pub syn_linear_timeouts: u8,
    /// It gives up a subflow if its retransmissions have remained unanswered for as long as this number
    /// of them takes with a timeout of [`RtoRule::minimum`], which doubles up to [`RtoRule::maximum`].
    /// `None`: it counts timeouts, as the configuration says. RFC 9293 §3.8.3.
    pub retries: Option<u8>,
    /// Time that a connection without subflows waits for another one.
    pub orphaned: Duration,
}

impl GiveUpRule {
    pub(crate) const BY_CONFIGURATION: GiveUpRule = GiveUpRule {
        syn_retries: None,
        syn_linear_timeouts: 0,
        retries: None,
        orphaned: Duration::from_secs(60),
    };

    /// Time after the first retransmission at which the host gives up a subflow, if the rule has one.
    pub(crate) fn unanswered(&self, timeouts: &RtoRule) -> Option<Duration> {
        let mut pause = timeouts.minimum;
        let pauses = (0..=self.retries?).map(|_| {
            let this = pause;
            pause = (pause * 2).min(timeouts.maximum);
            this
        });
        Some(pauses.fold(Duration::ZERO, |sum, pause| sum + pause))
    }
}

/// When a host announces its addresses. RFC 8684 §3.4.1 leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnounceRule {
    /// All addresses at once. Without an echo, the host repeats each after a second, and the pause doubles
    /// each time (this project).
    Together,
    /// One address at a time: the next one follows the echo of this one, or its last announcement. Without
    /// an echo, the host repeats it after the longest retransmission timeout of a subflow, and the pause
    /// doubles each time.
    OneAtATime {
        /// Longest first pause. With 0, the host does not repeat an announcement.
        most: Duration,
    },
}

impl AnnounceRule {
    /// Time before an announcement is repeated that was `told` so often before, if it is. `timeout` is the
    /// longest retransmission timeout of a subflow.
    pub(crate) fn pause(self, timeout: Duration, told: u32) -> Option<Duration> {
        let first = match self {
            AnnounceRule::Together => Duration::from_secs(1),
            AnnounceRule::OneAtATime { most: Duration::ZERO } => return None,
            AnnounceRule::OneAtATime { most } => most.min(timeout),
        };
        Some(first * (1 << told))
    }
}

/// Reaction to lost SYNs with MP_CAPABLE. A middlebox may have dropped them because of the option. RFC
/// 8684 §3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynFallbackRule {
    /// SYN retransmissions with MP_CAPABLE, before the host omits it. From 128 on, it never does. `None`: as
    /// many as the configuration says.
    pub syn_retries: Option<u8>,
    /// Time during which the host opens no further connection with MP_CAPABLE after the first SYN without
    /// it was answered. The time doubles with each such connection, up to 64 times. With 0, the host
    /// continues to offer Multipath TCP.
    pub disabled: Duration,
}

impl SynFallbackRule {
    pub(crate) const BY_CONFIGURATION: SynFallbackRule =
        SynFallbackRule { syn_retries: None, disabled: Duration::ZERO };
}

/// Event that takes a subflow that does not answer out of use until it answers, so that other subflows
/// resend its data. RFC 8684 §3.3.6 leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceRule {
    /// At its first retransmission timeout. Other subflows resend the data that it has outstanding.
    FirstTimeout,
    /// After more than this number of periods of the data-level retransmission timer in which it
    /// had data to send or outstanding and nothing arrived on it, if another subflow does better.
    /// Other subflows then resend all data without a DATA_ACK. Until then, the scheduler may use
    /// it. With 0, it never goes out of use.
    Periods(u8),
}

/// Time that a sender waits for a DATA_ACK before it retransmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Two retransmission timeouts of the slowest subflow. The pause doubles each time.
    Timeouts,
    /// The longest time to the next timer of a subflow when the scheduler was asked last: a
    /// retransmission timeout or a tail loss probe. While nothing is outstanding on any subflow, the
    /// pause doubles from the third time on.
    PendingTimers {
        /// The pause if no such timer was running.
        none: Duration,
    },
}

parts! {
    /// A platform with its parameters. The first is the default.
    pub enum PlatformConfig: "host", dyn BuildPlatform {
        Linux(LinuxConfig),
        Rfc(RfcConfig),
        MptcpOrg(MptcpOrgConfig),
    }
}

#[cfg(feature = "serde")]
anabranch_config::written_by_name!(PlatformConfig);

impl Default for PlatformConfig {
    fn default() -> Self {
        LinuxConfig::default().into()
    }
}

/// Parameters of a platform.
pub trait BuildPlatform {
    /// The platform.
    fn build(&self) -> Platform;
}

impl Default for Platform {
    /// Linux, with buffers in bytes of payload.
    fn default() -> Self {
        Platform::linux()
    }
}

impl Platform {
    /// Rules for retransmitting at the data level with this number of subflows. Copies on a sole
    /// subflow would make fallback impossible, so all platforms send few.
    pub(crate) fn data_retransmission(&self, subflows: usize) -> &'static DataRetransmission {
        if subflows > 1 { self.data_retransmission } else { &DataRetransmission::RARE }
    }

    /// Segments that a subflow sends at a time if its congestion window allows it: at least `fewest`,
    /// which is 2 unless the congestion control says otherwise.
    pub(crate) fn segments_at_a_time(
        &self,
        view: &SubflowView,
        paced_window: u64,
        fewest: u64,
    ) -> u64 {
        linux::segments_at_a_time(view, paced_window, fewest)
    }

    /// Bytes that pacing would send in a round-trip time, whether the host paces or not. No RFC
    /// says how many: every platform has the rule of Linux.
    pub(crate) fn paced_window(&self, cwnd: u64, ssthresh: u64, bytes_in_flight: u64) -> u64 {
        linux::paced_window(cwnd, ssthresh, bytes_in_flight)
    }
}
