//! A TCP segment in an IP packet, as a value.

use core::fmt;
use std::net::IpAddr;

use crate::{Payload, TcpHeader, TcpOptions};

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// A TCP segment and what the IP header says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes; of the same address family as `source`.
    pub destination: Endpoint,
    /// Fixed part of the TCP header.
    pub header: TcpHeader,
    /// TCP options.
    pub options: TcpOptions,
    /// Payload octets.
    pub payload: Payload,
    /// ECN field of the IP header, 2 bits. RFC 3168 §5.
    pub ecn: u8,
    /// Would the TCP checksum hold? A node that corrupts a segment in flight clears it.
    pub checksum_ok: bool,
}

impl Endpoint {
    /// The endpoint `address`:`port`.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        Endpoint { address, port }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
