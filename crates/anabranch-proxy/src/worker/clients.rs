//! Places for clients' connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use super::lock;

/// A host may use all addresses of its IPv6 network. RFC 4291 §2.5.1: the rest of an address is the
/// interface's.
const NETWORK: u128 = u128::MAX << 64;

/// The places, and the number taken by each IPv4 address or /64 network of IPv6.
pub(super) struct Clients {
    most: usize,
    most_of_each: usize,
    taken: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place, until it is dropped.
pub(super) struct Place<'a> {
    clients: &'a Clients,
    client: IpAddr,
}

impl Clients {
    pub(super) fn new(most: usize, most_of_each: usize) -> Self {
        Clients { most, most_of_each, taken: Mutex::default() }
    }

    /// A place for one more connection of a client, if there is one.
    pub(super) fn enter(&self, client: IpAddr) -> Option<Place<'_>> {
        let client = network(client);
        let mut taken = lock(&self.taken);
        let total: usize = taken.values().sum();
        let own = taken.get(&client).copied().unwrap_or(0);
        if total >= self.most || own >= self.most_of_each {
            return None;
        }
        taken.insert(client, own + 1);
        Some(Place { clients: self, client })
    }

    /// Places for connections without an admitted request: those that clients leave free, and at least
    /// a quarter of all.
    pub(super) fn places_for_others(&self) -> usize {
        let taken: usize = lock(&self.taken).values().sum();
        self.most.saturating_sub(taken).max(self.most.div_ceil(4)).max(1)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.clients.taken);
        if let Some(own) = taken.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.client);
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
    fn clients_of_one_ipv6_network_share_its_places() {
        let clients = Clients::new(4, 2);
        let enter = |text: &str| clients.enter(text.parse().expect("an address"));
        let first = enter("2001:db8::1");
        let second = enter("2001:db8:0:0:ffff::2");
        assert!(first.is_some() && second.is_some());
        assert!(enter("2001:db8::3").is_none());
        let other = enter("2001:db8:0:1::1");
        let ipv4 = enter("192.0.2.1");
        assert!(other.is_some() && ipv4.is_some());
        assert!(enter("192.0.2.2").is_none(), "all places are taken");
        drop(first);
        assert!(enter("2001:db8::3").is_some());
    }
}
