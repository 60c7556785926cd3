//! Addresses and routes. The client has an interface on each path, and the server is behind all
//! paths.
//!
//! The client's address on path `p` is 10.1.`p` (two bytes) or 2001:db8:1::`p`. The server has one
//! address of each family in use, like a host with a public address. The client's address in a
//! segment therefore determines its path in both directions. A middlebox that translates addresses
//! uses 10.`n`.`p` or 2001:db8:`n`::`p`, with `n` from 2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::scenario::{Family, Path};

/// The server's address on a path.
pub fn server_address(path: &Path) -> IpAddr {
    server_address_in(path.family)
}

/// The server's address of a family.
pub fn server_address_in(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::new(10, 0, 0, 1).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// The server's addresses: one of each family in use.
pub fn server_addresses(paths: &[Path]) -> Vec<IpAddr> {
    let mut addresses: Vec<_> = paths.iter().map(server_address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Server port of the first connection. Further connections use the next ports.
const FIRST_PORT: u16 = 5_001;

/// The client's address on path number `path`.
pub fn client_address(paths: &[Path], path: usize) -> IpAddr {
    client_address_in(paths[path].family, path)
}

/// The address of a family that the client has on path number `path`. Networks carry packets of both
/// families, whatever the family of the path in the scenario.
pub fn client_address_in(family: Family, path: usize) -> IpAddr {
    address_on(family, path, 1)
}

/// The address that middlebox number `index` of a path can use instead of the client's.
pub(crate) fn translated_address(paths: &[Path], path: usize, index: usize) -> IpAddr {
    address_on(paths[path].family, path, 2 + index as u8)
}

fn address_on(family: Family, path: usize, net: u8) -> IpAddr {
    let number = path as u16;
    match family {
        Family::Ipv4 => {
            let [high, low] = number.to_be_bytes();
            Ipv4Addr::new(10, net, high, low).into()
        }
        Family::Ipv6 => Ipv6Addr::new(0x2001, 0xdb8, net.into(), 0, 0, 0, 0, number).into(),
    }
}

/// The path of a client address, translated or not.
pub fn path_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [10, 1..=u8::MAX, high, low] => Some(usize::from(u16::from_be_bytes([high, low]))),
            _ => None,
        },
        IpAddr::V6(address) => match address.segments() {
            [0x2001, 0xdb8, 1..=u16::MAX, 0, 0, 0, 0, number] => Some(usize::from(number)),
            _ => None,
        },
    }
}

/// The server port of connection number `connection`.
pub fn port_of(connection: usize) -> u16 {
    FIRST_PORT + connection as u16
}

/// The connection that uses a server port.
pub(crate) fn connection_of(port: u16) -> usize {
    usize::from(port - FIRST_PORT)
}
