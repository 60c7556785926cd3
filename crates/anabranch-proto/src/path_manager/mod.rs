//! Path managers: which subflows exist, and which are backups. RFC 8684 §3.4 leaves the policy to
//! the host.

mod backup;
mod drepas;
mod full_mesh;
mod initial_only;
mod ndiffports;
mod single_path;
mod upkeep;

pub use backup::Backup;
pub use drepas::{DRePaS, DRePaSConfig};
pub use full_mesh::FullMesh;
pub use initial_only::InitialOnly;
pub use ndiffports::NDiffPorts;
pub use single_path::SinglePath;

use upkeep::Upkeep;

use core::fmt::Debug;
use std::net::IpAddr;

use anabranch_wire::{Instant, SocketAddress};

use crate::policy::{Entry, Values};
use crate::view::{SubflowId, SubflowView};

/// A path manager that can be chosen by name.
pub type PathManagerEntry = Entry<Making>;

/// How a path manager is made, and what others have to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Are subflows opened to the addresses that the peer announces? Then paths of both address
    /// families can be used.
    pub heeds_announcements: bool,
    /// How Linux' path manager does the same: the endpoint that the client has for the address of
    /// each of the connection's paths, by the path's index. `None` if it cannot.
    pub in_kernel: Option<fn(&Values, usize) -> Option<InKernel>>,
    /// Makes one.
    pub make: fn(&Values) -> Box<dyn PathManager>,
}

/// An endpoint of Linux' path manager, from which it opens a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InKernel {
    /// An ordinary one.
    Regular,
    /// One whose subflow is a backup.
    Backup,
}

/// All path managers, the default first.
pub const ALL: &[PathManagerEntry] = &[
    full_mesh::ENTRY,
    initial_only::ENTRY,
    ndiffports::ENTRY,
    backup::ENTRY,
    single_path::ENTRY,
    drepas::ENTRY,
];

/// An address of this host, with its identifier within the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Identifier; 0 is the address the connection was opened from. RFC 8684 §3.2.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
}

/// An address of the peer's, with its identifier within the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Identifier; 0 is the address the connection was opened to. RFC 8684 §3.2.
    pub id: u8,
    /// The address, and the port that takes joins.
    pub end: SocketAddress,
}

/// What a path manager is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathEvent<'a> {
    /// The connection can carry further subflows.
    Established {
        /// Did this host open the connection?
        initiator: bool,
        /// This host's addresses.
        local: &'a [LocalAddress],
        /// The peer's address and port, identifier 0.
        remote: SocketAddress,
    },
    /// A further subflow can carry data.
    SubflowEstablished(SubflowId),
    /// The retransmission timer of a subflow expired.
    SubflowTimeout {
        /// Which.
        id: SubflowId,
        /// How often since anything was acknowledged, from 1.
        in_a_row: u32,
    },
    /// A subflow has ended, or could not be opened.
    SubflowClosed {
        /// Which; `None` if it never came to exist.
        id: Option<SubflowId>,
        /// Identifier of its local address.
        local_address_id: u8,
        /// Its remote end.
        remote: SocketAddress,
        /// Is another to be tried between the same addresses?
        retry: Retry,
    },
    /// The peer has announced an address. RFC 8684 §3.4.1.
    AddressAnnounced {
        /// The address, and the port that takes joins.
        remote: SocketAddress,
        /// Its identifier.
        remote_address_id: u8,
    },
    /// The peer takes an address back that it had announced. RFC 8684 §3.4.2.
    AddressWithdrawn {
        /// Its identifier.
        remote_address_id: u8,
    },
    /// This host has a further address.
    AddressAdded {
        /// The address, with an identifier that no other has had.
        local: LocalAddress,
        /// The peer's addresses, the one that the connection was opened to first.
        remote: &'a [RemoteAddress],
    },
    /// The interface with a local address went down, or came back up. Told before
    /// [`PathEvent::Established`] of those that are down then.
    AddressChanged {
        /// Identifier of the address.
        local_address_id: u8,
        /// Can it be used?
        usable: bool,
    },
}

/// Whether a subflow that has ended is worth another attempt between the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It carried data, or the peer reset it to start again.
    Soon,
    /// It failed: it carried no data, or the peer says that something stands in the way for now.
    Later,
    /// The peer says that something stands in the way for good. RFC 8684 §3.6: it should not be
    /// opened again.
    Never,
}

/// What a path manager wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAction {
    /// Open a subflow. What becomes of it is told by [`PathEvent::SubflowEstablished`] or
    /// [`PathEvent::SubflowClosed`].
    Open {
        /// Local address.
        local: LocalAddress,
        /// Remote end.
        remote: SocketAddress,
        /// Identifier of the remote address.
        remote_address_id: u8,
        /// Ask for it to be a backup. RFC 8684 §3.3.8.
        backup: bool,
    },
    /// Close a subflow.
    Close {
        /// Which.
        subflow: SubflowId,
        /// Reset it, because the path is of no use any more, rather than finish in order.
        reset: bool,
    },
    /// Make a subflow a backup, or a regular one.
    SetPriority {
        /// Which.
        subflow: SubflowId,
        /// Is it to carry data only when no regular subflow is usable?
        backup: bool,
        /// Have the peer do likewise, by MP_PRIO (RFC 8684 §3.3.8); otherwise only what this
        /// host sends is concerned.
        signalled: bool,
    },
    /// Tell the peer an address of this host, until it says that it heard. RFC 8684 §3.4.1.
    Announce {
        /// The address.
        local: LocalAddress,
    },
    /// Tell the peer that an address can be used no more, on whatever subflow remains.
    /// RFC 8684 §3.4.2.
    Remove {
        /// Identifier of the address.
        local_address_id: u8,
    },
    /// Send copies of the newest data under way on a subflow, whatever the scheduler does, as
    /// its congestion window has room. Nothing depends on them; meant for a subflow that carries
    /// no data of its own, whose copies these would be too.
    Probe {
        /// Which.
        subflow: SubflowId,
        /// Segments; fewer if less data is under way.
        count: u32,
        /// Payload bytes of each.
        bytes: u32,
    },
}

/// Decides which subflows exist. After each call the engine polls actions until `None`.
pub trait PathManager: Debug + Send {
    /// Something changed.
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]);
    /// The deadline of [`PathManager::poll_timeout`] has passed.
    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]);
    /// The next thing to do.
    fn poll_action(&mut self) -> Option<PathAction>;
    /// When to call [`PathManager::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    pub(super) fn local(id: u8) -> LocalAddress {
        LocalAddress { id, address: Ipv4Addr::new(10, 0, id, 1).into() }
    }

    pub(super) fn remote() -> SocketAddress {
        SocketAddress::new(Ipv4Addr::new(10, 9, 0, 1).into(), 80)
    }

    pub(super) fn id(slot: u8) -> SubflowId {
        SubflowId { slot, generation: 0 }
    }

    pub(super) fn closed(slot: u8) -> PathEvent<'static> {
        closed_for(slot, Retry::Later)
    }

    pub(super) fn closed_for(slot: u8, retry: Retry) -> PathEvent<'static> {
        let (id, remote) = (Some(id(slot)), remote());
        PathEvent::SubflowClosed { id, local_address_id: slot, remote, retry }
    }

    pub(super) fn address(local_address_id: u8, usable: bool) -> PathEvent<'static> {
        PathEvent::AddressChanged { local_address_id, usable }
    }

    /// The manager is told of a further address of this host's, while the peer has announced another
    /// of its own.
    pub(super) fn added(manager: &mut dyn PathManager, local: LocalAddress) -> Vec<PathAction> {
        let other = SocketAddress::new(Ipv4Addr::new(10, 9, 0, 2).into(), 80);
        let remote = [remote(), other].into_iter().zip(0..);
        let remote: Vec<_> = remote.map(|(end, id)| RemoteAddress { id, end }).collect();
        let event = PathEvent::AddressAdded { local, remote: &remote };
        manager.handle_event(Instant::ZERO, &event, &[]);
        actions(manager)
    }

    /// What the manager wants after it was told that the connection is there.
    pub(super) fn established(
        manager: &mut dyn PathManager,
        initiator: bool,
        addresses: &[LocalAddress],
    ) -> Vec<PathAction> {
        let event = PathEvent::Established { initiator, local: addresses, remote: remote() };
        manager.handle_event(Instant::ZERO, &event, &[]);
        actions(manager)
    }

    pub(super) fn actions(manager: &mut dyn PathManager) -> Vec<PathAction> {
        std::iter::from_fn(|| manager.poll_action()).collect()
    }

    /// Local addresses of the subflows to be opened, and whether as backups.
    pub(super) fn opened(actions: &[PathAction]) -> Vec<(u8, bool)> {
        let opened = actions.iter().filter_map(|action| match action {
            PathAction::Open { local, backup, .. } => Some((local.id, *backup)),
            _ => None,
        });
        opened.collect()
    }
}
