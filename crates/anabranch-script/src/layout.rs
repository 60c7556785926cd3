//! Addresses and ports of host and peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The port that the host under test listens on.
pub const PORT: u16 = 8080;
/// The port that the peer listens on.
pub const PEER_PORT: u16 = 8080;
/// The port of the peer's first connection. Each further connection uses the next port.
pub(crate) const PEER_EPHEMERAL: u16 = 40_000;
/// Number of addresses on each side.
pub(crate) const ADDRESSES: u8 = 4;

/// The addresses of a script: `host0` to `host3` and `peer0` to `peer3`.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Whether to use IPv6 instead of IPv4.
    pub ipv6: bool,
}

impl Layout {
    /// All addresses of the host under test.
    pub fn hosts(self) -> impl Iterator<Item = IpAddr> {
        (0..ADDRESSES).map(move |number| self.host(number))
    }

    /// Address `number` of the host under test.
    pub fn host(self, number: u8) -> IpAddr {
        self.address(77, number)
    }

    /// Address `number` of the peer.
    pub fn peer(self, number: u8) -> IpAddr {
        self.address(78, number)
    }

    /// The number of an address of the host.
    pub(crate) fn host_number(self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|number| self.host(*number) == address)
    }

    /// The number of an address of the peer.
    pub(crate) fn peer_number(self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|number| self.peer(*number) == address)
    }

    fn address(self, side: u8, number: u8) -> IpAddr {
        if self.ipv6 {
            Ipv6Addr::new(0xfd00, u16::from(side), u16::from(number), 0, 0, 0, 0, 1).into()
        } else {
            Ipv4Addr::new(10, side, number, 1).into()
        }
    }
}
