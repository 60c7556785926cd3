//! The settings of a script's header.

use anabranch_proto::platform::Platform;
use anabranch_wire::Duration;

/// The settings of a script's header, with defaults for missing ones.
#[derive(Clone, Debug)]
pub struct ScriptSettings {
    /// Tolerance for the times of the kernel's segments.
    pub tolerance: Duration,
    /// Use IPv6 instead of IPv4.
    pub ipv6: bool,
    /// The engine's set of TCP parameters.
    pub platform: Platform,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Allow a fallback to TCP after data was acknowledged at the data level.
    pub late_fallback: bool,
    /// Require DSS checksums.
    pub checksum: bool,
    /// Idle time in seconds after which the host sends keep-alive probes.
    pub keep_alive: Option<u32>,
    /// Offer selective acknowledgements.
    pub sack: bool,
    /// Offer timestamps.
    pub timestamps: bool,
    /// Offer ECN.
    pub ecn: bool,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Let the peer join the address and port of the first subflow.
    pub allow_join: bool,
    /// Further addresses of the host, with their uses.
    pub endpoints: Vec<(u8, EndpointUse)>,
    /// The initial sequence number of the peer's first subflow.
    pub peer_isn: u32,
    /// Reason why the script cannot be run against the kernel.
    pub skip_live: Option<String>,
    /// Reason why the kernel is known to fail the script.
    pub differs_live: Option<String>,
}

/// A congestion control that both the engine and Linux have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// NewReno. RFC 5681, RFC 6582.
    Reno,
    /// CUBIC. RFC 9438.
    Cubic,
}

/// The use of a further address of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointUse {
    /// Open a subflow from the address.
    Subflow,
    /// Open a backup subflow from the address.
    Backup,
    /// Announce the address with ADD_ADDR.
    Signal,
}

impl Default for ScriptSettings {
    fn default() -> Self {
        ScriptSettings {
            tolerance: Duration::from_millis(20),
            ipv6: false,
            platform: Platform::default(),
            mtu: 1500,
            late_fallback: false,
            checksum: false,
            keep_alive: None,
            sack: true,
            timestamps: true,
            ecn: false,
            initial_window: 10,
            congestion: Congestion::Reno,
            allow_join: true,
            endpoints: Vec::new(),
            peer_isn: 1_000_000,
            skip_live: None,
            differs_live: None,
        }
    }
}
