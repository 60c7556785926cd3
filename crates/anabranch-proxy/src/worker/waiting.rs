//! Places for connections whose request has not arrived or was refused.
//!
//! Anybody may open a connection to a relay, so these places are few. If there is none, a connection
//! takes the oldest one: a client's request arrives within a round-trip time, and those that send none
//! wait longer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use tokio::sync::oneshot;

use super::lock;

/// Places in all (this project).
const PLACES: usize = 256;
/// Places of one network (this project).
const PLACES_OF_A_NETWORK: usize = 16;

/// The places, in the order in which they were taken.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Places>);

#[derive(Default)]
struct Places {
    next: u64,
    taken: BTreeMap<u64, Taken>,
}

struct Taken {
    network: IpAddr,
    /// Dropped when another connection takes the place.
    _kept: oneshot::Sender<()>,
}

/// A place, until it is dropped or another connection takes it.
pub(super) struct WaitingPlace<'a> {
    waiting: &'a Waiting,
    number: u64,
    lost: oneshot::Receiver<()>,
}

impl Waiting {
    /// A place for a connection of `client`.
    pub(super) fn enter(&self, client: IpAddr) -> WaitingPlace<'_> {
        let network = network(client);
        let (kept, lost) = oneshot::channel();
        let mut places = lock(&self.0);
        let of_network = || places.taken.iter().filter(|(_, it)| it.network == network);
        let oldest = if of_network().count() >= PLACES_OF_A_NETWORK {
            of_network().next()
        } else {
            places.taken.iter().next().filter(|_| places.taken.len() >= PLACES)
        };
        if let Some(oldest) = oldest.map(|(number, _)| *number) {
            places.taken.remove(&oldest);
        }
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, Taken { network, _kept: kept });
        WaitingPlace { waiting: self, number, lost }
    }
}

impl WaitingPlace<'_> {
    /// Wait for another connection to take the place.
    pub(super) async fn lost(&mut self) {
        let _ = (&mut self.lost).await;
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        lock(&self.waiting.0).taken.remove(&self.number);
    }
}

/// The addresses of one customer: an IPv4 address, or an IPv6 network of 64 bits.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl WaitingPlace<'_> {
        fn is_lost(&mut self) -> bool {
            self.lost.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        }
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn a_network_takes_its_own_oldest_place() {
        let waiting = Waiting::default();
        let mut other = waiting.enter(address(1));
        let mut own: Vec<_> =
            (0..=PLACES_OF_A_NETWORK).map(|_| waiting.enter(address(2))).collect();
        assert!(own[0].is_lost());
        assert!(own[1..].iter_mut().all(|place| !place.is_lost()));
        assert!(!other.is_lost());
        // A connection that lost its place takes nobody else's when it ends.
        own.remove(0);
        assert!(own.iter_mut().all(|place| !place.is_lost()));
    }

    #[test]
    fn with_all_places_taken_the_oldest_is_lost() {
        let waiting = Waiting::default();
        let mut places: Vec<_> =
            (0..=PLACES as u32).map(|number| waiting.enter(address(number))).collect();
        assert!(places[0].is_lost());
        assert!(places[1..].iter_mut().all(|place| !place.is_lost()));
        // A place that is given back is free.
        places.truncate(PLACES);
        let _new = waiting.enter(address(1 << 20));
        assert!(places[1..].iter_mut().all(|place| !place.is_lost()));
    }

    #[test]
    fn an_ipv6_network_has_64_bits() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
