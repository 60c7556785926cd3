//! Subflows to a relay that has an IPv4 address and an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_proto::path_manager::{LocalAddress, PathAction, PathEvent, PathManager};
use anabranch_proto::view::SubflowView;
use anabranch_wire::{Instant, SocketAddress};

/// A path manager for a peer whose addresses are known: `inner` decides as if all addresses were of
/// one family, and each subflow goes to the peer's address of its own family.
///
/// The relay could announce its other address (RFC 8684 §3.4.1), but knows only that of its engine,
/// which the kernel translates.
#[derive(Debug)]
pub(super) struct TwoFamilies {
    inner: Box<dyn PathManager>,
    /// The peer's addresses, one of each family.
    peer: Vec<SocketAddress>,
    /// The peer's address to which the connection was opened.
    first: Option<SocketAddress>,
    local: Vec<LocalAddress>,
}

impl TwoFamilies {
    pub(super) fn new(inner: Box<dyn PathManager>, peer: &[SocketAddr]) -> Self {
        let peer = peer.iter().copied().map(SocketAddress::from).collect();
        TwoFamilies { inner, peer, first: None, local: Vec::new() }
    }

    /// The local address with its own family, and the peer's address of this family.
    fn between(&self, local: LocalAddress, remote: SocketAddress) -> (LocalAddress, SocketAddress) {
        let own = self.local.iter().find(|own| own.id == local.id).copied().unwrap_or(local);
        let is_same = |it: &&SocketAddress| it.address.is_ipv4() == own.address.is_ipv4();
        (own, self.peer.iter().find(is_same).copied().unwrap_or(remote))
    }
}

impl PathManager for TwoFamilies {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator, local, remote } => {
                self.local = local.to_vec();
                self.first = Some(remote);
                let any: IpAddr = match remote.address {
                    IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let local: Vec<_> =
                    local.iter().map(|own| LocalAddress { address: any, ..*own }).collect();
                let event = PathEvent::Established { initiator, local: &local, remote };
                self.inner.handle_event(now, &event, subflows);
            }
            PathEvent::SubflowClosed { id, local_address_id, remote, retry, reopens } => {
                let remote = self.first.unwrap_or(remote);
                let event =
                    PathEvent::SubflowClosed { id, local_address_id, remote, retry, reopens };
                self.inner.handle_event(now, &event, subflows);
            }
            _ => self.inner.handle_event(now, event, subflows),
        }
    }

    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]) {
        self.inner.handle_timeout(now, subflows);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        let action = self.inner.poll_action()?;
        let PathAction::Open { local, remote, remote_address_id, backup } = action else {
            return Some(action);
        };
        let (local, remote) = self.between(local, remote);
        Some(PathAction::Open { local, remote, remote_address_id, backup })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_proto::path_manager::{FullMesh, Retry};
    use anabranch_wire::Duration;

    use super::*;

    fn opened(manager: &mut TwoFamilies) -> Vec<(String, String)> {
        let actions = std::iter::from_fn(|| manager.poll_action());
        let ends = actions.map(|action| match action {
            PathAction::Open { local, remote, .. } => {
                (local.address.to_string(), remote.address.to_string())
            }
            other => panic!("{other:?}"),
        });
        ends.collect()
    }

    #[test]
    fn each_subflow_goes_to_the_address_of_its_family_also_when_it_is_opened_again() {
        let peer = ["192.0.2.1:5124", "[2001:db8::1]:5124"].map(|it| it.parse().expect("right"));
        let mut manager = TwoFamilies::new(Box::new(FullMesh::default()), &peer);
        let local = ["198.18.77.1", "2001:2:0:77::2", "198.18.77.3"];
        let local: Vec<_> = local
            .iter()
            .zip(0..)
            .map(|(address, id)| LocalAddress { id, address: address.parse().expect("right") })
            .collect();
        let remote = SocketAddress::new(peer[0].ip(), peer[0].port());
        let event = PathEvent::Established { initiator: true, local: &local, remote };
        manager.handle_event(Instant::ZERO, &event, &[]);
        let expected = [("2001:2:0:77::2", "2001:db8::1"), ("198.18.77.3", "192.0.2.1")];
        let expected = expected.map(|(own, peer)| (own.to_owned(), peer.to_owned()));
        assert_eq!(opened(&mut manager), expected);
        let remote = SocketAddress::new(peer[1].ip(), peer[1].port());
        let (id, retry) = (None, Retry::Soon);
        let event =
            PathEvent::SubflowClosed { id, local_address_id: 1, remote, retry, reopens: true };
        manager.handle_event(Instant::ZERO, &event, &[]);
        let at = manager.poll_timeout().expect("another attempt");
        manager.handle_timeout(at + Duration::from_millis(1), &[]);
        assert_eq!(opened(&mut manager), [expected[0].clone()]);
    }
}
