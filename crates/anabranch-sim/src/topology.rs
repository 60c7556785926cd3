//! Addresses and routes: a client with an interface on each path, a server behind all of them.
//!
//! The client's address on path `p` is 10.1.`p` (two octets) and the server has one address, as
//! a host with a public address would; so a segment's path follows from the client's address in
//! it, whichever way it goes.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_wire::Segment;

/// The server's address.
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// The port of the first connection; the others follow.
const FIRST_PORT: u16 = 5_001;

/// Client and server, by which the two directions of a path are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The client's address on path number `path`.
pub(crate) fn client_address(path: usize) -> IpAddr {
    let [high, low] = (path as u16).to_be_bytes();
    Ipv4Addr::new(10, 1, high, low).into()
}

/// The path that belongs to a client address.
pub(crate) fn path_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [10, 1, high, low] => Some(usize::from(u16::from_be_bytes([high, low]))),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// The server's port for connection number `connection`.
pub(crate) fn port_of(connection: usize) -> u16 {
    FIRST_PORT + connection as u16
}

/// The connection that a server port belongs to.
pub(crate) fn connection_of(port: u16) -> usize {
    usize::from(port - FIRST_PORT)
}

/// The path that a segment from `side` takes.
pub(crate) fn route(side: Side, segment: &Segment) -> Option<usize> {
    path_of(match side {
        Side::Client => segment.source.address,
        Side::Server => segment.destination.address,
    })
}
