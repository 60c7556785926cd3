//! A connection: keys, addresses, and data in both directions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_wire::mptcp::CapableFlags;
use anabranch_wire::{Instant, SocketAddress};

use crate::keys::Version;
use crate::stream::Stream;
use crate::watch::At;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Multipath TCP; the version is unknown if the handshake is.
    Mptcp(Option<Version>),
    /// A version of Multipath TCP that no RFC defines, which is not decoded.
    Other,
    Tcp,
}

/// A connection with its subflows. Host 0 opened it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) protocol: Protocol,
    /// Addresses of the first subflow.
    pub(crate) ends: [SocketAddress; 2],
    pub(crate) keys: [Option<u64>; 2],
    /// Flags of MP_CAPABLE in the SYNs.
    pub(crate) flags: [Option<CapableFlags>; 2],
    /// Whether the third ACK was seen.
    pub(crate) is_confirmed: bool,
    /// The data that each host sends.
    pub(crate) streams: [Stream; 2],
    pub(crate) fallback: Option<ObservedFallback>,
    /// Time at which each host announced its fallback to TCP.
    pub(crate) gave_up: [Option<Instant>; 2],
    /// Addresses that each host announced, by identifier.
    pub(crate) announced: [BTreeMap<u8, Announced>; 2],
    pub(crate) subflows: u32,
    pub(crate) begin: At,
    pub(crate) end: Instant,
    /// Times of the first and (`last_data`) the last payload of each host.
    pub(crate) first_data: [Option<Instant>; 2],
    pub(crate) last_data: [Option<Instant>; 2],
    pub(crate) fastclosed: bool,
    pub(crate) reset: bool,
    pub(crate) checksums_right: u64,
    pub(crate) hmacs_right: u64,
    pub(crate) tokens_right: u64,
    pub(crate) is_incomplete: bool,
}

/// The reason of a connection's fallback to TCP.
#[derive(Debug)]
pub(crate) struct ObservedFallback {
    pub(crate) at: At,
    pub(crate) why: &'static str,
}

/// An address that was announced.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
    pub(crate) copies: u32,
    pub(crate) first: At,
    pub(crate) last: Instant,
    pub(crate) subflow: u32,
    pub(crate) is_settled: bool,
}

impl Connection {
    pub(crate) fn new(protocol: Protocol, ends: [SocketAddress; 2], begin: At) -> Self {
        Connection {
            protocol,
            ends,
            keys: [None; 2],
            flags: [None; 2],
            is_confirmed: false,
            streams: Default::default(),
            fallback: None,
            gave_up: [None; 2],
            announced: Default::default(),
            subflows: 0,
            begin,
            end: begin.time,
            first_data: [None; 2],
            last_data: [None; 2],
            fastclosed: false,
            reset: false,
            checksums_right: 0,
            hmacs_right: 0,
            tokens_right: 0,
            is_incomplete: false,
        }
    }

    /// Set the key of `host`.
    pub(crate) fn set_key(&mut self, host: usize, key: u64, version: Version) {
        self.keys[host] = Some(key);
        // RFC 8684 §3.1: the first byte of data follows the IDSN, which numbers the SYN.
        self.streams[host].set_base(version.initial_data_seq(key) + 1);
    }

    /// The version of Multipath TCP, if it is known.
    pub(crate) const fn version(&self) -> Option<Version> {
        match self.protocol {
            Protocol::Mptcp(version) => version,
            Protocol::Other | Protocol::Tcp => None,
        }
    }

    pub(crate) const fn is_mptcp(&self) -> bool {
        matches!(self.protocol, Protocol::Mptcp(_))
    }

    /// Both keys, starting with the host's own, if both are known.
    pub(crate) fn keys_of(&self, host: usize) -> Option<[u64; 2]> {
        Some([self.keys[host]?, self.keys[1 - host]?])
    }

    /// Returns `Some(true)` if DSS checksums are in use. `None` if the SYNs were not seen.
    pub(crate) fn has_checksums(&self) -> Option<bool> {
        // RFC 8684 §3.1: checksums are used if either host requires them.
        let [initiator, listener] = self.flags;
        Some(initiator?.checksum_required || listener?.checksum_required)
    }

    pub(crate) fn fall_back(&mut self, at: At, why: &'static str) -> bool {
        let first = self.fallback.is_none();
        if first {
            self.fallback = Some(ObservedFallback { at, why });
        }
        first
    }

    /// Returns `true` if the rules about data apply to the connection.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_mptcp() && self.fallback.is_none()
    }
}
