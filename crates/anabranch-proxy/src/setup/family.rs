//! Families of addresses, and the host's support for them.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

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
        self == Family::V4 || sysctl("net/ipv6").exists()
    }

    /// The key below `/proc/sys` that lets an interface forward packets. `None` if there is none: the
    /// whole host forwards IPv6, or no interface does.
    pub(super) fn forwarding(self, interface: &str) -> Option<String> {
        match self {
            Family::V4 => Some(format!("net/ipv4/conf/{interface}/forwarding")),
            Family::V6 if !sysctl("net/ipv6/conf/all/force_forwarding").exists() => None,
            Family::V6 => Some(format!("net/ipv6/conf/{interface}/{FORCE}")),
        }
    }

    /// Returns `true` if an interface forwards packets. One that does not exist yet will follow the
    /// host's default.
    pub(super) fn forwards(self, interface: &str) -> bool {
        let is_on = |name: &str| {
            let key = self.forwarding(name)?;
            fs::read_to_string(sysctl(&key)).ok().map(|value| value.trim() == "1")
        };
        let own = is_on(interface).or_else(|| is_on("default"));
        own == Some(true) || self == Family::V6 && is_ipv6_router()
    }

    /// Returns `true` if this host can forward packets of the family between two interfaces.
    pub(crate) fn is_supported(self) -> bool {
        self == Family::V4 || self.forwarding("all").is_some() || is_ipv6_router()
    }
}

/// Reason why a host cannot use IPv6.
pub(crate) const NO_IPV6: &str = "IPv6 needs Linux 6.17, or a host that is a router \
                                  (net.ipv6.conf.all.forwarding=1)";

/// Returns `true` if all interfaces forward IPv6 packets.
fn is_ipv6_router() -> bool {
    let value = fs::read_to_string(sysctl("net/ipv6/conf/all/forwarding"));
    value.is_ok_and(|value| value.trim() == "1")
}

fn sysctl(key: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(key)
}
