//! Destinations that a relay connects to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

use rustix::io::Errno;

/// A range of addresses, written as a prefix: `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    address: IpAddr,
    bits: u32,
}

impl Prefix {
    /// Returns `true` if the range contains an address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let same = |width: u32, own: u128, other: u128| {
            self.bits == 0 || (own ^ other) >> (width - self.bits) == 0
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same(32, u32::from(own).into(), u32::from(other).into())
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same(128, own.into(), other.into()),
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no range of addresses; write 10.1.0.0/16, for example");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits: u32 = if bits.is_empty() { width } else { bits.parse().map_err(|_| wrong())? };
        if bits > width {
            return Err(wrong());
        }
        if address != address.to_canonical() {
            let bits = bits.checked_sub(96).ok_or_else(wrong)?;
            let address = address.to_canonical();
            return Err(format!("{text:?} is a range of IPv4; write {address}/{bits}"));
        }
        Ok(Prefix { address, bits })
    }
}

/// The destinations that a relay serves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Destinations {
    /// Addresses that are refused in any case.
    pub(crate) denied: Vec<Prefix>,
    /// Special addresses that are nevertheless allowed.
    pub(crate) allowed: Vec<Prefix>,
}

impl Destinations {
    /// Returns `true` if the relay connects to an address: a global one, or an allowed one. The
    /// relay's own host is refused, because its firewall may trust itself.
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_in = |ranges: &[Prefix]| ranges.iter().any(|range| range.contains(address));
        !is_in(&self.denied)
            && (is_in(&self.allowed) || is_global(address) && !is_of_this_host(address))
    }
}

/// Returns `true` if the kernel delivers packets for an address to this host, now, or if that cannot
/// be found out. A socket can have only such an address as its own, unless the host lets its sockets
/// have any.
fn is_of_this_host(address: IpAddr) -> bool {
    let binds = |address: IpAddr| match UdpSocket::bind((address, 0)) {
        Ok(_) => true,
        Err(error) => {
            let errno = Errno::from_io_error(&error);
            !matches!(errno, Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
        }
    };
    // Addresses for documentation (RFC 5737, RFC 3849), which no host has.
    let foreign: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    if binds(foreign) { is_source_for(address) } else { binds(address) }
}

/// Returns `true` if packets to an address would have it as their source, as those to most addresses
/// of this host have. For the others, the kernel chooses another address of the host.
fn is_source_for(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    // Connecting a socket of UDP sends nothing.
    let source = socket.connect((address, 9)).and_then(|()| socket.local_addr());
    source.is_ok_and(|source| source.ip() == address)
}

/// Returns `true` if an address is outside the special ranges of RFC 6890, so that the Internet reaches it.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_ipv4(address),
        IpAddr::V6(address) => is_global_ipv6(address),
    }
}

fn is_global_ipv4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Shared by carriers (RFC 6598), protocol assignments, benchmarks (RFC 2544).
        || (a == 100 && b & 0xc0 == 64)
        || (a, b, c) == (192, 0, 0)
        // Relays of 6to4, which are no more (RFC 7526).
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && b & 0xfe == 18);
    !special
}

fn is_global_ipv6(address: Ipv6Addr) -> bool {
    let [first, second, third, ..] = address.segments();
    // Only 2000::/3 is global unicast.
    let unicast = first & 0xe000 == 0x2000;
    let special = (first, second) == (0x2001, 0xdb8)
        // Protocol assignments, with Teredo; documentation.
        || (first == 0x2001 && second < 0x200)
        || (first == 0x3fff && second < 0x1000);
    if first == 0x2002 {
        // 6to4: the IPv4 address is inside. RFC 3056.
        return is_global_ipv4(Ipv4Addr::from((u32::from(second) << 16) | u32::from(third)));
    }
    unicast && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(destinations: &Destinations, address: &str) -> bool {
        destinations.admits(address.parse().expect("an address"))
    }

    #[test]
    fn only_global_addresses_are_admitted() {
        let all = Destinations::default();
        for global in
            ["1.1.1.1", "192.0.1.1", "100.128.0.1", "198.20.0.1", "2606:4700::1", "3fff:1000::1"]
        {
            assert!(admits(&all, global), "{global}");
        }
        for special in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.77.2",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2002:7f00:1::",
            "192.88.99.1",
            "3fff:fff::1",
        ] {
            assert!(!admits(&all, special), "{special}");
        }
    }

    #[test]
    fn ranges_are_allowed_by_prefix() {
        let allowed = ["10.1.0.0/16", "fd00::/8", "192.168.7.7"].map(|text| text.parse().unwrap());
        let some = Destinations { allowed: allowed.into(), denied: Vec::new() };
        for yes in ["10.1.255.1", "fd12::1", "192.168.7.7", "::ffff:10.1.0.1"] {
            assert!(admits(&some, yes), "{yes}");
        }
        for no in ["10.2.0.1", "fc00::1", "192.168.7.8"] {
            assert!(!admits(&some, no), "{no}");
        }
    }

    #[test]
    fn denied_ranges_are_refused_even_if_they_are_allowed() {
        let denied = vec!["168.63.129.16".parse().unwrap(), "10.1.0.0/24".parse().unwrap()];
        let some = Destinations { denied, allowed: vec!["10.1.0.0/16".parse().unwrap()] };
        for no in ["168.63.129.16", "10.1.0.7", "::ffff:10.1.0.7"] {
            assert!(!admits(&some, no), "{no}");
        }
        assert!(admits(&some, "168.63.129.17") && admits(&some, "10.1.1.7"));
    }

    #[test]
    fn the_kernel_knows_the_addresses_of_this_host() {
        assert!(is_of_this_host("127.0.0.1".parse().unwrap()));
        assert!(!is_of_this_host("192.0.2.1".parse().unwrap()));
        let allowed = vec!["127.0.0.0/8".parse().unwrap()];
        assert!(admits(&Destinations { allowed, denied: Vec::new() }, "127.0.0.1"));
    }

    #[test]
    fn other_texts_are_no_ranges() {
        for text in ["10.0.0.0/33", "::/129", "ten", "10.0.0.0/", "10.0.0.0/x", "/8"] {
            let range = text.parse::<Prefix>();
            assert!(range.is_err() || text == "10.0.0.0/", "{text}");
        }
        let mapped = "::ffff:10.0.0.0/104".parse::<Prefix>().expect_err("it would contain nothing");
        assert!(mapped.ends_with("is a range of IPv4; write 10.0.0.0/8"), "{mapped}");
        assert!("::ffff:10.0.0.0/90".parse::<Prefix>().is_err());
    }
}
