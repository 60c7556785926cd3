//! Families of addresses, and the host's support for them.

use std::net::IpAddr;

use super::sysctl::{self, is_on};

/// Switch below `/proc/sys` with which an interface forwards IPv6 packets on a host that is no router
/// (Linux 6.17).
const FORCE: &str = "force_forwarding";

/// Family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, the preferred one first: an uplink with both uses IPv4.
    pub(crate) const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// The first address of this family.
    pub(crate) fn find(self, addresses: &[IpAddr]) -> Option<IpAddr> {
        addresses.iter().copied().find(|address| Family::of(*address) == self)
    }

    /// Option of `ip` that selects the family.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Family::V4 => "-4",
            Family::V6 => "-6",
        }
    }

    /// Name of the family in nftables, also that of its addresses.
    pub(super) fn nft(self) -> &'static str {
        match self {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }

    /// Returns `true` if this host has addresses of the family. A kernel may lack IPv6 altogether.
    pub(crate) fn exists(self) -> bool {
        self == Family::V4 || sysctl::exists("net/ipv6")
    }

    /// The key below `/proc/sys` that lets an interface forward packets. `None` if there is none: the
    /// whole host forwards IPv6, or no interface does.
    pub(super) fn forwarding(self, interface: &str) -> Option<String> {
        match self {
            Family::V4 => Some(format!("net/ipv4/conf/{interface}/forwarding")),
            Family::V6 if !sysctl::exists("net/ipv6/conf/all/force_forwarding") => None,
            Family::V6 => Some(format!("net/ipv6/conf/{interface}/{FORCE}")),
        }
    }

    /// Returns `true` if an interface forwards packets. One that does not exist yet will follow the
    /// host's default.
    pub(crate) fn forwards(self, interface: &str) -> bool {
        let key = |name| self.forwarding(name).filter(|key| sysctl::exists(key));
        let own = key(interface).or_else(|| key("default"));
        own.is_some_and(|key| is_on(&key)) || self == Family::V6 && self.is_router()
    }

    /// The key below `/proc/sys` that makes the whole host a router.
    pub(super) fn router(self) -> &'static str {
        match self {
            Family::V4 => "net/ipv4/conf/all/forwarding",
            Family::V6 => "net/ipv6/conf/all/forwarding",
        }
    }

    /// Returns `true` if all interfaces forward packets, unless one is told not to.
    pub(super) fn is_router(self) -> bool {
        is_on(self.router())
    }

    /// Returns `true` if this host can forward packets of the family between two interfaces.
    pub(crate) fn is_supported(self) -> bool {
        self == Family::V4 || self.forwarding("all").is_some() || self.is_router()
    }
}

/// Reason why a host cannot use IPv6.
pub(crate) const NO_IPV6: &str = "IPv6 needs Linux 6.17, or a host that is a router \
                                  (net.ipv6.conf.all.forwarding=1)";
