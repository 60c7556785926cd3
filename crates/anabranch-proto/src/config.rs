//! Configuration of an endpoint's connections.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::Duration;

use crate::congestion::{self, CongestionControl};
use crate::path_manager::{FullMesh, PathManager};
use crate::remedy::Remedy;
use crate::scheduler::{MinRtt, Scheduler};

/// A named set of TCP parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// What Linux does: 200 ms minimum RTO, 40 ms delayed ACK after a run of immediate ones and not
    /// for short segments, reductions of the congestion window whatever part of it is in use.
    Linux,
    /// The RFCs' defaults: 1 s minimum RTO, 200 ms delayed ACK.
    Rfc,
}

/// How the retransmission timeout follows from the estimators. RFC 6298.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoRule {
    /// Timeout before the first sample.
    pub initial: Duration,
    /// Lower bound.
    pub minimum: Duration,
    /// Linux bounds the variance term 4·RTTVAR from below, the RFC bounds the sum.
    pub minimum_bounds_variance: bool,
    /// Upper bound, after back-off.
    pub maximum: Duration,
}

/// When acknowledgements are delayed. RFC 9293 §3.8.6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRule {
    /// Longest delay of an acknowledgement.
    pub delay: Duration,
    /// Segments that are acknowledged at once, after [`TcpConfig::quick_ack_octets`].
    pub quick_acks: u32,
    /// Acknowledge as soon as more than one full-sized segment's octets wait, and a short segment
    /// once the application has read everything, unless it answers: as Linux does. If not, every
    /// second full-sized segment.
    pub prompt: bool,
}

/// Parameters of TCP, per subflow.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Where the defaults below come from.
    pub profile: Profile,
    /// Largest IP packet in octets.
    pub mtu: u16,
    /// Initial window in segments. RFC 6928 §2.
    pub initial_window_segments: u32,
    /// Offer timestamps. RFC 7323 §3.
    pub timestamps: bool,
    /// Offer selective acknowledgements. RFC 2018.
    pub sack: bool,
    /// Use explicit congestion notification where the peer does too: packets are marked instead of
    /// dropped by queues that can. RFC 3168.
    pub ecn: bool,
    /// Hold back a short segment while data is unacknowledged (`Profile::Linux`: while another
    /// short segment is). RFC 9293 §3.7.4.
    pub nagle: bool,
    /// SYN retransmissions before the attempt is given up.
    pub syn_retries: u32,
    /// SYN retransmissions with MP_CAPABLE before it is left out. RFC 8684 §3.1: the option may
    /// be what a middlebox drops the SYN for.
    pub syn_retries_before_fallback: u32,
    /// Consecutive retransmission timeouts before a subflow is given up.
    pub retries: u32,
    /// Time without acknowledgement of outstanding data before a subflow is given up; `None`
    /// leaves it to `retries`. RFC 9293 §3.8.3.
    pub user_timeout: Option<Duration>,
    /// Idle time after which keep-alive probes are sent, one each time, until `retries` of them stay
    /// without an answer and the subflow is given up; `None` for never. RFC 9293 §3.8.4.
    pub keep_alive: Option<Duration>,
    /// How long a closed subflow lingers in TIME-WAIT. RFC 9293 §3.6.1.
    pub time_wait: Duration,
    /// Octets at the start of a subflow that are acknowledged segment by segment, unless the
    /// application answers, before the profile's `quick_acks` begin to count: Linux does so while
    /// its receive window opens, with full segments by two octets for each that arrives
    /// (`tcp_grow_window`).
    pub quick_ack_octets: u64,
    /// Reduce the window after an idle period. RFC 5681 §4.1.
    pub idle_restart: bool,
    /// Judge as Linux does whether the congestion window is in use (`tcp_cwnd_validate`): it may grow on
    /// all acknowledgements of a window of data that filled it once, and in slow start to twice the
    /// data that was outstanding; when it was not in use for a retransmission timeout, it shrinks half
    /// of the way to what was in use (RFC 2861). If not, it grows only where it was full when the
    /// acknowledgement came (RFC 7661's spirit).
    pub linux_window_validation: bool,
    /// Is the window, rather than what is outstanding, the basis of a reduction, as Linux has it?
    /// RFC 5681 §3.1 takes the latter; RFC 9438 §4.6 allows both. They differ for a sender that the
    /// application or the receiver limits.
    pub reduce_from_cwnd: bool,
}

/// Multipath TCP or plain TCP?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Offer and accept MP_CAPABLE; fall back to TCP when the peer does not.
    Mptcp,
    /// Never use Multipath TCP options.
    Tcp,
}

/// Makes the congestion controller of a new subflow.
pub type CongestionControlFactory =
    Arc<dyn Fn(&congestion::Start) -> Box<dyn CongestionControl> + Send + Sync>;
/// Makes the scheduler of a new connection.
pub type SchedulerFactory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;
/// Makes the remedies of a new connection, in the order they are asked.
pub type RemedyFactory = Arc<dyn Fn() -> Vec<Box<dyn Remedy>> + Send + Sync>;
/// Makes the path manager of a new connection.
pub type PathManagerFactory = Arc<dyn Fn() -> Box<dyn PathManager> + Send + Sync>;

/// Parameters of a connection.
#[derive(Clone)]
pub struct ConnectionConfig {
    /// Multipath TCP or plain TCP.
    pub protocol: Protocol,
    /// TCP parameters of its subflows.
    pub tcp: TcpConfig,
    /// Send buffer in payload octets: written by the application and not yet acknowledged at
    /// data level. (Linux counts buffer memory, overhead included, and doubles what is set.)
    pub send_buffer: u64,
    /// Is the send buffer charged with the memory that data lies in, as Linux' TCP has it? Data under
    /// way then costs more than data that waits, and the limit is passed by up to 64 KiB. Without effect
    /// on Multipath TCP, whose sockets in Linux count octets.
    pub send_charges_memory: bool,
    /// Receive buffer in payload octets: the most that the peer may send beyond what the
    /// application has read, at data level, shared by all subflows.
    pub receive_buffer: u64,
    /// Octets that are offered of it while a subflow, those that are opening included, has not brought
    /// data yet, at least 1; `None` for all. Linux' window is a share of its buffer, the lowest of its
    /// subflows' shares of payload in memory, and without data it takes a half for granted
    /// (`msk->scaling_ratio` in net/mptcp/protocol.c of Linux 6.18).
    pub receive_buffer_at_first: Option<u64>,
    /// Is the receive window what the buffer has free, counted from DATA_ACK on, as Linux has it? Data
    /// beyond a hole at data level then takes up room twice, in the buffer and in the window, which
    /// does not move on while such data waits for a slower subflow. RFC 9293 §3.8.6.2.2 has the window
    /// reach to the end of the buffer. And what fills a hole of Multipath TCP is acknowledged when the application
    /// has read 64 KiB, with what is free then.
    pub window_charges_out_of_order: bool,
    /// Require checksums of mappings: both hosts then use them. They reveal a middlebox that
    /// changes the payload, and cost time and two octets in each segment. RFC 8684 §3.1.
    pub dss_checksum: bool,
    /// Go back to TCP on the only subflow also when its payload loses the mappings after some was
    /// DATA_ACKed, in place of a reset. For peers that notice such a loss by acknowledgements
    /// without DATA_ACK, as this engine does: others (Linux) send again at data level, which passes
    /// for new octets then. RFC 8684 §3.7 asks for the reset.
    pub late_fallback: bool,
    /// Let the peer open further subflows to the address and port of the first; not if these are a
    /// load balancer's. RFC 8684 §3.1, the "C" flag.
    pub allow_join_initial_addr_port: bool,
    /// Addresses that the connection may use, in the order of their identifiers; `None` for all
    /// of the endpoint's.
    pub local_addresses: Option<Vec<IpAddr>>,
    /// Most subflows at a time.
    pub max_subflows: usize,
    /// Congestion control of each subflow.
    pub congestion_control: CongestionControlFactory,
    /// Find out which subflows share bottlenecks (RFC 8382), so that only those are coupled: the
    /// rate of losses, 0 to 1, above which a subflow passes through one whatever its delays
    /// (p_l). `None` for not.
    pub shared_bottleneck_detection: Option<f64>,
    /// Which subflow carries the next data.
    pub scheduler: SchedulerFactory,
    /// Receive-window remedies.
    pub remedies: RemedyFactory,
    /// Which subflows exist.
    pub path_manager: PathManagerFactory,
    /// Record [`crate::TraceEvent`]s for [`crate::Endpoint::poll_trace`].
    pub trace: bool,
}

impl Profile {
    /// The profile's rule for the retransmission timeout.
    pub fn rto_rule(self) -> RtoRule {
        let (minimum, minimum_bounds_variance, maximum) = match self {
            Profile::Linux => (Duration::from_millis(200), true, Duration::from_secs(120)),
            Profile::Rfc => (Duration::from_secs(1), false, Duration::from_secs(60)),
        };
        // RFC 6298 §2: 1 second until there is a sample.
        RtoRule { initial: Duration::from_secs(1), minimum, minimum_bounds_variance, maximum }
    }

    /// Timeouts in the handshake after which the window still begins in full. RFC 5681 §3.1: none;
    /// Linux (`tcp_init_transfer`) forgives one, since it waits for 1 s only and not for 3.
    pub(crate) fn lost_syns_forgiven(self) -> u32 {
        match self {
            Profile::Linux => 1,
            Profile::Rfc => 0,
        }
    }

    /// Must segments bear timestamps once these are agreed? RFC 7323 §3.2 has others dropped; Linux takes
    /// them.
    pub(crate) fn requires_timestamps(self) -> bool {
        matches!(self, Profile::Rfc)
    }

    /// May the application read what had arrived in order before the connection ended with an error? In
    /// Linux it may (`tcp_reset` and `tcp_write_err` leave the receive queue alone). RFC 9293
    /// §3.10.7.4 has all queues flushed.
    pub(crate) fn keeps_unread_data(self) -> bool {
        matches!(self, Profile::Linux)
    }

    /// The profile's rule for acknowledgements.
    pub fn ack_rule(self) -> AckRule {
        match self {
            Profile::Linux => {
                AckRule { delay: Duration::from_millis(40), quick_acks: 16, prompt: true }
            }
            Profile::Rfc => {
                AckRule { delay: Duration::from_millis(200), quick_acks: 0, prompt: false }
            }
        }
    }

    /// The profile's TCP parameters.
    pub fn tcp(self) -> TcpConfig {
        TcpConfig {
            profile: self,
            mtu: 1500,
            initial_window_segments: 10,
            timestamps: true,
            sack: true,
            ecn: false,
            nagle: true,
            syn_retries: 6,
            syn_retries_before_fallback: 2,
            retries: 15,
            user_timeout: None,
            keep_alive: None,
            time_wait: Duration::from_secs(60),
            quick_ack_octets: 0,
            idle_restart: true,
            linux_window_validation: matches!(self, Profile::Linux),
            reduce_from_cwnd: matches!(self, Profile::Linux),
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig {
            protocol: Protocol::Mptcp,
            tcp: Profile::Linux.tcp(),
            send_buffer: 4 << 20,
            receive_buffer: 6 << 20,
            send_charges_memory: false,
            receive_buffer_at_first: None,
            window_charges_out_of_order: false,
            dss_checksum: false,
            late_fallback: false,
            allow_join_initial_addr_port: true,
            local_addresses: None,
            max_subflows: 8,
            congestion_control: Arc::new(|start| Box::new(congestion::Lia::new(start))),
            shared_bottleneck_detection: None,
            scheduler: Arc::new(|| Box::new(MinRtt)),
            remedies: Arc::new(Vec::new),
            path_manager: Arc::new(|| Box::new(FullMesh::default())),
            trace: false,
        }
    }
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionConfig")
            .field("protocol", &self.protocol)
            .field("tcp", &self.tcp)
            .field("send_buffer", &self.send_buffer)
            .field("receive_buffer", &self.receive_buffer)
            .field("max_subflows", &self.max_subflows)
            .finish_non_exhaustive()
    }
}
