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

/// Parameters of TCP, per subflow. Each field has a setter of the same name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TcpConfig {
    /// Largest IP packet in bytes.
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
    /// Hold back a short segment while data is unacknowledged, as [`Platform::nagle`] says which.
    /// RFC 9293 §3.7.4.
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
    /// Idle time after which keep-alive probes are sent, one each time, until `retries` of them
    /// stay without an answer and the subflow is given up; `None` for never. RFC 9293 §3.8.4.
    pub keep_alive: Option<Duration>,
    /// How long a closed subflow lingers in TIME-WAIT. RFC 9293 §3.6.1.
    pub time_wait: Duration,
    /// Reduce the window after an idle period. RFC 5681 §4.1.
    pub idle_restart: bool,
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
    /// What its host does where hosts differ.
    pub platform: Platform,
    /// TCP parameters of its subflows.
    pub tcp: TcpConfig,
    /// Send buffer in bytes, as [`Platform::buffers`] counts them: written by the application and
    /// not yet acknowledged at data level.
    pub send_buffer: u64,
    /// Receive buffer in bytes, as [`Platform::buffers`] counts them: the most that the peer may
    /// send beyond what the application has read, at data level, shared by all subflows.
    pub receive_buffer: u64,
    /// Require checksums of mappings: both hosts then use them. They reveal a middlebox that
    /// changes the payload, and cost time and two bytes in each segment. RFC 8684 §3.1.
    pub dss_checksum: bool,
    /// Go back to TCP on the only subflow also when its payload loses the mappings after some was
    /// DATA_ACKed, in place of a reset. For peers that notice such a loss by acknowledgements
    /// without DATA_ACK, as this engine does: others (Linux) send again at data level, which passes
    /// for new bytes then. RFC 8684 §3.7 asks for the reset.
    pub late_fallback: bool,
    /// Let the peer open further subflows to the address and port of the first; not if these are a
    /// load balancer's. RFC 8684 §3.1, the "C" flag.
    pub allow_join_initial_addr_port: bool,
    /// Addresses that the connection may use; `None` for all of the endpoint's. The address that
    /// it is opened from has identifier 0. Others get theirs in the order of this list, and those
    /// that the endpoint gets later in the order in which they come.
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

macro_rules! setters {
    ($config:ident { $($field:ident: $type:ty,)+ }) => {
        impl $config {
            $(
                #[doc = concat!("Set [`", stringify!($config), "::", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

setters!(TcpConfig {
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
});

setters!(ConnectionConfig {
    protocol: Protocol,
    platform: Platform,
    tcp: TcpConfig,
    send_buffer: u64,
    receive_buffer: u64,
    dss_checksum: bool,
    late_fallback: bool,
    allow_join_initial_addr_port: bool,
    local_addresses: Option<Vec<IpAddr>>,
    max_subflows: usize,
    shared_bottleneck_detection: Option<f64>,
    trace: bool,
});

impl ConnectionConfig {
    /// Set what makes the congestion control of each subflow.
    #[must_use]
    pub fn congestion_control(
        mut self,
        make: impl Fn(&congestion::Start) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        self.congestion_control = Arc::new(make);
        self
    }

    /// Set what makes the scheduler of each connection.
    #[must_use]
    pub fn scheduler(
        mut self,
        make: impl Fn() -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.scheduler = Arc::new(make);
        self
    }

    /// Set what makes the remedies of each connection, in the order in which they are asked.
    #[must_use]
    pub fn remedies(
        mut self,
        make: impl Fn() -> Vec<Box<dyn Remedy>> + Send + Sync + 'static,
    ) -> Self {
        self.remedies = Arc::new(make);
        self
    }

    /// Set what makes the path manager of each connection.
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
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig {
            protocol: Protocol::Mptcp,
            platform: Platform::default(),
            tcp: TcpConfig::default(),
            send_buffer: 4 << 20,
            receive_buffer: 6 << 20,
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
            .field("platform", &self.platform)
            .field("tcp", &self.tcp)
            .field("send_buffer", &self.send_buffer)
            .field("receive_buffer", &self.receive_buffer)
            .field("max_subflows", &self.max_subflows)
            .finish_non_exhaustive()
    }
}
