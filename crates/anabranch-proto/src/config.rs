//! Configuration of an endpoint's connections.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::Duration;

use crate::congestion::{self, CongestionControl};
use crate::path_manager::{FullMesh, PathManager};
use crate::platform::Platform;
use crate::remedy::Remedy;
use crate::scheduler::{MinRtt, Scheduler};

/// Smallest MTU in bytes: the headers take up to 100.
const LEAST_MTU: u16 = 128;

/// TCP parameters of a subflow. Each field has a setter of the same name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TcpConfig {
    /// Largest IP packet in bytes. Values below 128 count as 128.
    pub mtu: u16,
    /// Initial window in segments. RFC 6928 §2.
    pub initial_window_segments: u32,
    /// Offer timestamps. RFC 7323 §3.
    pub timestamps: bool,
    /// Offer selective acknowledgements. RFC 2018.
    pub sack: bool,
    /// Use explicit congestion notification if the peer does so as well. Queues that support it
    /// then mark packets instead of dropping them. RFC 3168.
    pub ecn: bool,
    /// Delay a short segment while earlier data is unacknowledged. [`Platform::nagle`] selects the
    /// variant. RFC 9293 §3.7.4.
    pub nagle: bool,
    /// SYN retransmissions before the engine gives up the attempt.
    pub syn_retries: u32,
    /// SYN retransmissions with MP_CAPABLE before the engine omits it: a middlebox may drop the SYN
    /// because of the option. RFC 8684 §3.1.
    pub syn_retries_before_fallback: u32,
    /// Consecutive retransmission timeouts before the engine gives up a subflow.
    pub retries: u32,
    /// Time without acknowledgement of outstanding data before the engine gives up a subflow;
    /// `None` means that only `retries` limits it. RFC 9293 §3.8.3.
    pub user_timeout: Option<Duration>,
    /// Idle time before each keep-alive probe; `None` sends no probes. The engine gives up a
    /// subflow when `retries` probes in a row remain unanswered. RFC 9293 §3.8.4.
    pub keep_alive: Option<Duration>,
    /// Time that a closed subflow stays in TIME-WAIT. RFC 9293 §3.6.1.
    pub time_wait: Duration,
    /// Reduce the window after an idle period. RFC 5681 §4.1.
    pub idle_restart: bool,
    /// When subflows search for the path MTU with their own data.
    pub mtu_probing: MtuProbing,
    /// Send segments at a rate that follows from the congestion window, rather than as
    /// acknowledgements arrive. Congestion controls that have a rate of their own always pace. Linux:
    /// the queue discipline fq, `SO_MAX_PACING_RATE`.
    pub pacing: bool,
    /// Accept data in SYNs, and answer it before the handshake is complete. SYNs need a cookie, which
    /// the host issues on request. RFC 7413. Data of a SYN may arrive twice, as two connections, so
    /// the application must tolerate that. Clients use
    /// [`Endpoint::connect_with_data`](crate::Endpoint::connect_with_data).
    pub fast_open: bool,
}

/// Packetization layer path MTU discovery. RFC 4821, RFC 8899. Linux: `tcp_mtu_probing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuProbing {
    /// Never: only routers' reports reduce the size of segments.
    #[default]
    Off,
    /// Once retransmissions have remained unanswered for three seconds.
    OnBlackHole,
    /// From the start of each subflow, with segments of 1024 bytes.
    Always,
}

/// The protocol of a connection: Multipath TCP or plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Offer and accept MP_CAPABLE; fall back to TCP when the peer does not.
    Mptcp,
    /// Never use Multipath TCP options.
    Tcp,
}

/// Creates the congestion control of a new subflow.
pub type CongestionControlFactory =
    Arc<dyn Fn(&congestion::Start) -> Box<dyn CongestionControl> + Send + Sync>;
/// Creates the scheduler of a new connection.
pub type SchedulerFactory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;
/// Creates the remedies of a new connection, in the order in which the engine asks them.
pub type RemedyFactory = Arc<dyn Fn() -> Vec<Box<dyn Remedy>> + Send + Sync>;
/// Creates the path manager of a new connection.
pub type PathManagerFactory = Arc<dyn Fn() -> Box<dyn PathManager> + Send + Sync>;

/// MTUs and routes of a host's interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// MTUs in bytes, by the interfaces' addresses. Other interfaces have [`TcpConfig::mtu`].
    pub mtus: Vec<(IpAddr, u16)>,
    /// Pairs of a local and a remote address without a route between them. A connection opens no
    /// subflow there.
    pub unreachable: Vec<(IpAddr, IpAddr)>,
}

/// Parameters of a connection. Each field has a setter of the same name.
///
/// ```
/// use anabranch_proto::config::{ConnectionConfig, TcpConfig};
/// use anabranch_proto::scheduler::RoundRobin;
///
/// let config = ConnectionConfig::default()
///     .send_buffer(1 << 20)
///     .scheduler(|| Box::new(RoundRobin::default()))
///     .tcp(TcpConfig::default().nagle(false));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectionConfig {
    /// Multipath TCP or plain TCP.
    pub protocol: Protocol,
    /// Platform that the host imitates where hosts differ.
    pub platform: Platform,
    /// TCP parameters of the subflows.
    pub tcp: TcpConfig,
    /// Send buffer in bytes, counted as in [`Platform::buffers`]. It holds data that the
    /// application has written and the peer has not acknowledged at the data level. The platform
    /// decides if it is `None`: 4 MiB, or with [`Buffers::Socket`] a size that follows the
    /// congestion windows.
    ///
    /// [`Buffers::Socket`]: crate::platform::Buffers::Socket
    pub send_buffer: Option<u64>,
    /// Receive buffer in bytes, counted as in [`Platform::buffers`]. It limits how far the peer may
    /// send beyond the data that the application has read. All subflows share it. The platform
    /// decides if it is `None`: 6 MiB, or with [`Buffers::Socket`] a size that follows what the
    /// application reads, up to as much memory.
    ///
    /// [`Buffers::Socket`]: crate::platform::Buffers::Socket
    pub receive_buffer: Option<u64>,
    /// Receive buffer in bytes of payload until [`Endpoint::open_receive_buffer`]. It bounds the data of
    /// a peer that the application does not trust yet. `None` is all of `receive_buffer`.
    ///
    /// [`Endpoint::open_receive_buffer`]: crate::Endpoint::open_receive_buffer
    pub first_receive_buffer: Option<u32>,
    /// Require DSS checksums; both hosts then use them. Checksums reveal middleboxes that change
    /// the payload. They cost computing time and two bytes in each segment. RFC 8684 §3.1.
    pub dss_checksum: bool,
    /// Fall back to TCP instead of resetting a sole subflow whose payload loses its mappings after
    /// data was DATA_ACKed. RFC 8684 §3.7 requires the reset. Use this only with peers that detect
    /// the loss by acknowledgements without DATA_ACK, as this engine does. Other peers (Linux)
    /// resend data at the data level, and the resent bytes would then pass for new ones.
    pub late_fallback: bool,
    /// Let the peer open further subflows to the address and port of the first subflow. Turn this
    /// off if they belong to a load balancer. RFC 8684 §3.1, the "C" flag.
    pub allow_join_initial_addr_port: bool,
    /// Addresses that the connection may use; `None` means all addresses of the endpoint.
    /// Identifier 0 is the address from which the connection is opened. The other addresses are
    /// numbered in the order of this list, then those added to the endpoint later in the order of
    /// their addition.
    pub local_addresses: Option<Vec<IpAddr>>,
    /// Interfaces that differ from each other; `None` if all have the same MTU and routes.
    pub interfaces: Option<Arc<Interfaces>>,
    /// Maximum number of simultaneous subflows, at most [`SubflowSet::CAPACITY`]. Linux: `subflows` of
    /// `ip mptcp limits` is one less.
    ///
    /// [`SubflowSet::CAPACITY`]: crate::view::SubflowSet::CAPACITY
    pub max_subflows: u8,
    /// Maximum number of the peer's announced addresses that the path manager learns; `None` sets no
    /// maximum. Further addresses are echoed. Linux: `add_addr_accepted` of `ip mptcp limits`.
    pub add_addr_accepted: Option<u8>,
    /// Congestion control of each subflow.
    pub congestion_control: CongestionControlFactory,
    /// Detect which subflows share bottlenecks (RFC 8382), and couple only those. The value is the
    /// loss rate, 0 to 1, above which a subflow counts as congested whatever its delays (p_l).
    /// `None` turns detection off.
    pub shared_bottleneck_detection: Option<f64>,
    /// Scheduler: which subflow carries the next data.
    pub scheduler: SchedulerFactory,
    /// Receive-window remedies.
    pub remedies: RemedyFactory,
    /// Path manager: which subflows exist.
    pub path_manager: PathManagerFactory,
    /// Process usual segments by header prediction (Linux: `tcp_rcv_established`), look for data only if
    /// there may be some to send, and hand over mapped payload at once. This is faster, and has the same
    /// result.
    pub header_prediction: bool,
    /// Record [`crate::TraceEvent`]s for [`crate::Endpoint::poll_trace`].
    pub trace: bool,
}

anabranch_config::setters! { [] TcpConfig {
    mtu: u16,
    initial_window_segments: u32,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    nagle: bool,
    syn_retries: u32,
    syn_retries_before_fallback: u32,
    retries: u32,
    user_timeout: Option<Duration>,
    keep_alive: Option<Duration>,
    time_wait: Duration,
    idle_restart: bool,
    mtu_probing: MtuProbing,
    pacing: bool,
    fast_open: bool,
} }

anabranch_config::setters! { [] ConnectionConfig {
    protocol: Protocol,
    platform: Platform,
    tcp: TcpConfig,
    first_receive_buffer: Option<u32>,
    dss_checksum: bool,
    late_fallback: bool,
    allow_join_initial_addr_port: bool,
    local_addresses: Option<Vec<IpAddr>>,
    interfaces: Option<Arc<Interfaces>>,
    max_subflows: u8,
    add_addr_accepted: Option<u8>,
    shared_bottleneck_detection: Option<f64>,
    header_prediction: bool,
    trace: bool,
    send_buffer: impl Into<Option<u64>> => send_buffer.into(),
    receive_buffer: impl Into<Option<u64>> => receive_buffer.into(),
} }

impl ConnectionConfig {
    /// Largest IP packet in bytes that the interface with this address sends; at least 128.
    pub fn mtu_of(&self, local: IpAddr) -> u16 {
        let mut mtus = self.interfaces.iter().flat_map(|interfaces| &interfaces.mtus);
        let own = mtus.find(|(address, _)| *address == local);
        own.map_or(self.tcp.mtu, |(_, mtu)| *mtu).max(LEAST_MTU)
    }

    /// Returns `true` if there is a route between a local and a remote address.
    pub fn has_route(&self, local: IpAddr, remote: IpAddr) -> bool {
        let interfaces = self.interfaces.as_ref();
        interfaces.is_none_or(|interfaces| !interfaces.unreachable.contains(&(local, remote)))
    }

    /// Set the function that creates the congestion control of each subflow.
    #[must_use]
    pub fn congestion_control(
        mut self,
        make: impl Fn(&congestion::Start) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        self.congestion_control = Arc::new(make);
        self
    }

    /// Set the function that creates the scheduler of each connection.
    #[must_use]
    pub fn scheduler(
        mut self,
        make: impl Fn() -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.scheduler = Arc::new(make);
        self
    }

    /// Set the function that creates the remedies of each connection, in the order in which the
    /// engine asks them.
    #[must_use]
    pub fn remedies(
        mut self,
        make: impl Fn() -> Vec<Box<dyn Remedy>> + Send + Sync + 'static,
    ) -> Self {
        self.remedies = Arc::new(make);
        self
    }

    /// Set the function that creates the path manager of each connection.
    #[must_use]
    pub fn path_manager(
        mut self,
        make: impl Fn() -> Box<dyn PathManager> + Send + Sync + 'static,
    ) -> Self {
        self.path_manager = Arc::new(make);
        self
    }
}

impl Default for TcpConfig {
    fn default() -> Self {
        TcpConfig {
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
            idle_restart: true,
            mtu_probing: MtuProbing::Off,
            pacing: false,
            fast_open: false,
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig {
            protocol: Protocol::Mptcp,
            platform: Platform::default(),
            tcp: TcpConfig::default(),
            send_buffer: None,
            receive_buffer: None,
            first_receive_buffer: None,
            dss_checksum: false,
            late_fallback: false,
            allow_join_initial_addr_port: true,
            local_addresses: None,
            interfaces: None,
            max_subflows: 8,
            add_addr_accepted: None,
            congestion_control: Arc::new(|start| Box::new(congestion::Lia::new(start))),
            shared_bottleneck_detection: None,
            scheduler: Arc::new(|| Box::new(MinRtt)),
            remedies: Arc::new(Vec::new),
            path_manager: Arc::new(|| Box::new(FullMesh::default())),
            header_prediction: true,
            trace: false,
        }
    }
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionConfig")
            .field("protocol", &self.protocol)
            .field("platform", &self.platform)
            .field("tcp", &self.tcp)
            .field("send_buffer", &self.send_buffer)
            .field("receive_buffer", &self.receive_buffer)
            .field("max_subflows", &self.max_subflows)
            .finish_non_exhaustive()
    }
}
