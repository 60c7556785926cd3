//! Addresses and routes. The client has an interface on each path, and the server is behind all
//! paths.
//!
//! The client's address on path `p` is 10.1.`p` (two bytes) or 2001:db8:1::`p`, and it determines the
//! path of a segment in both directions. The server has one address of each family in use, like a host
//! with a public address, unless the paths name several. A middlebox that translates addresses uses
//! 10.`n`.`p` or 2001:db8:`n`::`p`, with `n` from 2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::scenario::{Family, Path};

/// The server's address to which connections over a path open.
pub fn server_address(path: &Path) -> IpAddr {
    numbered(path.family, path.routing.server_addresses.first())
}

/// The server's first address of a family.
pub fn server_address_in(family: Family) -> IpAddr {
    numbered(family, 1)
}

fn numbered(family: Family, number: u8) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::new(10, 0, 0, number).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into()).into(),
    }
}

/// The server's addresses that a path leads to.
fn reached(path: &Path) -> impl Iterator<Item = IpAddr> + '_ {
    path.routing.server_addresses.numbers().iter().map(|number| numbered(path.family, *number))
}

/// Pairs of an address of the client and an address of the server that the path of the first does not
/// lead to.
pub(crate) fn unreachable(paths: &[Path]) -> Vec<(IpAddr, IpAddr)> {
    let leads_alike =
        |pair: &[Path]| pair[0].routing.server_addresses == pair[1].routing.server_addresses;
    if paths.windows(2).all(leads_alike) {
        return Vec::new();
    }
    let servers = server_addresses(paths);
    let clients = (0..paths.len()).map(|path| (path, client_address(paths, path)));
    let pairs = clients
        .flat_map(|(path, client)| servers.iter().map(move |server| (path, client, *server)));
    let without_route = pairs.filter(|(path, client, server)| {
        client.is_ipv4() == server.is_ipv4() && !reached(&paths[*path]).any(|each| each == *server)
    });
    without_route.map(|(_, client, server)| (client, server)).collect()
}

/// The server's addresses, those of each family in the order of their numbers.
pub fn server_addresses(paths: &[Path]) -> Vec<IpAddr> {
    let mut addresses: Vec<_> = paths.iter().flat_map(reached).collect();
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
