//! Permits for clients' connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use super::lock;

/// A host may use all addresses of its IPv6 network. RFC 4291 §2.5.1: the rest of an address is the
/// interface's.
const NETWORK: u128 = u128::MAX << 64;

/// Limits of the permits, and the number that each IPv4 address or /64 network of IPv6 holds.
pub(super) struct Clients {
    most: usize,
    most_of_each: usize,
    held: Mutex<BTreeMap<IpAddr, usize>>,
}

/// The permit for one connection of a client, until it is dropped.
pub(super) struct ConnectionPermit<'a> {
    clients: &'a Clients,
    client: IpAddr,
}

impl Clients {
    pub(super) fn new(most: usize, most_of_each: usize) -> Self {
        Clients { most, most_of_each, held: Mutex::default() }
    }

    /// A permit for one more connection of a client, unless a limit is reached.
    pub(super) fn permit(&self, client: IpAddr) -> Option<ConnectionPermit<'_>> {
        let client = network(client);
        let mut held = lock(&self.held);
        let total: usize = held.values().sum();
        let own = held.get(&client).copied().unwrap_or(0);
        if total >= self.most || own >= self.most_of_each {
            return None;
        }
        held.insert(client, own + 1);
        Some(ConnectionPermit { clients: self, client })
    }

    /// Places for connections without an admitted request: as many as there are permits left, and at
    /// least a quarter of all.
    pub(super) fn places_for_others(&self) -> usize {
        let held: usize = lock(&self.held).values().sum();
        self.most.saturating_sub(held).max(self.most.div_ceil(4)).max(1)
    }
}

impl Drop for ConnectionPermit<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.clients.held);
        if let Some(own) = held.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.client);
            }
        }
    }
}

/// The address of IPv4, or the network of IPv6.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_ipv6_network_share_its_permits() {
        let clients = Clients::new(4, 2);
        let permit = |text: &str| clients.permit(text.parse().expect("an address"));
        let first = permit("2001:db8::1");
        let second = permit("2001:db8:0:0:ffff::2");
        assert!(first.is_some() && second.is_some());
        assert!(permit("2001:db8::3").is_none());
        let other = permit("2001:db8:0:1::1");
        let ipv4 = permit("192.0.2.1");
        assert!(other.is_some() && ipv4.is_some());
        assert!(permit("192.0.2.2").is_none(), "all permits are held");
        drop(first);
        assert!(permit("2001:db8::3").is_some());
    }
}
