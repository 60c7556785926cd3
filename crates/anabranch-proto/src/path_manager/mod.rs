//! Path managers decide which subflows exist, and which of them are backups. RFC 8684 §3.4 leaves
//! the policy to the host.

mod backup;
mod drepas;
mod full_mesh;
mod initial_only;
mod ndiffports;
mod single_path;
mod upkeep;

pub use backup::{Backup, BackupConfig};
pub use drepas::{DRePaS, DRePaSConfig};
pub use full_mesh::{FullMesh, FullMeshConfig};
pub use initial_only::{InitialOnly, InitialOnlyConfig};
pub use ndiffports::{NDiffPorts, NDiffPortsConfig};
pub use single_path::{SinglePath, SinglePathConfig};

use upkeep::Upkeep;

use core::fmt::Debug;
use std::net::IpAddr;

use anabranch_config::{PathRef, parts};
use anabranch_wire::{Instant, SocketAddress};

use crate::view::{SubflowId, SubflowView};

parts! {
    /// A path manager with its parameters. The first is the default.
    pub enum PathManagerConfig: "path manager", dyn BuildPathManager {
        FullMesh(FullMeshConfig),
        InitialOnly(InitialOnlyConfig),
        NDiffPorts(NDiffPortsConfig),
        Backup(BackupConfig),
        SinglePath(SinglePathConfig),
        DRePaS(DRePaSConfig),
    }
}

#[cfg(feature = "serde")]
anabranch_config::written_by_name!(PathManagerConfig);

impl Default for PathManagerConfig {
    fn default() -> Self {
        FullMeshConfig {}.into()
    }
}

impl PathManagerConfig {
    /// The parameter that is one of the connection's paths, and its name.
    pub fn path_mut(&mut self) -> Option<(&'static str, &mut PathRef)> {
        match self {
            PathManagerConfig::Backup(backup) => Some(("regular", &mut backup.regular)),
            _ => None,
        }
    }
}

/// Parameters of a path manager: its constructor, and facts that other crates need.
pub trait BuildPathManager {
    /// Returns `true` if it opens subflows to the addresses that the peer announces. A connection can
    /// then use paths of both address families.
    fn heeds_announcements(&self) -> bool {
        false
    }

    /// Returns `true` if Linux has an equivalent.
    fn is_in_kernel(&self) -> bool {
        false
    }

    /// The endpoint that Linux's equivalent needs on the client, for the address of a path, by the
    /// path's index in the connection.
    fn endpoint(&self, _path: usize) -> Option<InKernel> {
        None
    }

    /// Creates the path manager.
    fn build(&self) -> Box<dyn PathManager>;
}

/// An endpoint of Linux's path manager, from which Linux opens a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InKernel {
    /// An ordinary endpoint.
    Regular,
    /// An endpoint whose subflow is a backup.
    Backup,
}

/// An address of this host, with its identifier within the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Identifier; 0 is the address from which the connection was opened. RFC 8684 §3.2.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
}

/// An address of the peer, with its identifier within the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Identifier; 0 is the address to which the connection was opened. RFC 8684 §3.2.
    pub id: u8,
    /// The address, and the port that accepts joins.
    pub end: SocketAddress,
}

/// An event that the engine reports to a path manager.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathEvent<'a> {
    /// The connection can carry further subflows.
    Established {
        /// Whether this host opened the connection.
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
        /// The subflow.
        id: SubflowId,
        /// Consecutive expiries since the last acknowledgement of new data, from 1.
        in_a_row: u32,
    },
    /// A subflow has ended, or could not be opened.
    SubflowClosed {
        /// The subflow; `None` if it was never created.
        id: Option<SubflowId>,
        /// Identifier of the local address.
        local_address_id: u8,
        /// Remote address and port.
        remote: SocketAddress,
        /// Time at which the path manager should open another subflow between the same addresses,
        /// if at all.
        retry: Retry,
        /// Whether this host's kernel would open another subflow. If not, the path managers that kernels
        /// have wait until the interface comes up again.
        reopens: bool,
    },
    /// The peer has announced an address. RFC 8684 §3.4.1.
    AddressAnnounced {
        /// The address, and the port that accepts joins.
        remote: SocketAddress,
        /// Identifier of the address.
        remote_address_id: u8,
    },
    /// The peer has withdrawn an address that it had announced. RFC 8684 §3.4.2.
    AddressWithdrawn {
        /// Identifier of the address.
        remote_address_id: u8,
    },
    /// This host has a further address.
    AddressAdded {
        /// The address, with an identifier that no earlier address had.
        local: LocalAddress,
        /// The peer's addresses, beginning with the address to which the connection was opened.
        remote: &'a [RemoteAddress],
    },
    /// The interface of a local address went down or came up. Interfaces that are already down are
    /// reported before [`PathEvent::Established`].
    AddressChanged {
        /// Identifier of the address.
        local_address_id: u8,
        /// Whether the address is usable now.
        usable: bool,
    },
}

/// Whether to try again between the same addresses after a subflow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The subflow carried data, or the peer reset it in order to start again.
    Soon,
    /// The subflow failed: it carried no data, or the peer reports a temporary obstacle.
    Later,
    /// The peer reports a permanent obstacle. RFC 8684 §3.6: the host should not open the subflow
    /// again.
    Never,
}

/// An action that a path manager requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAction {
    /// Open a subflow. [`PathEvent::SubflowEstablished`] or [`PathEvent::SubflowClosed`] reports
    /// the result.
    Open {
        /// Local address.
        local: LocalAddress,
        /// Remote address and port.
        remote: SocketAddress,
        /// Identifier of the remote address.
        remote_address_id: u8,
        /// Open it as a backup. RFC 8684 §3.3.8.
        backup: bool,
    },
    /// Close a subflow.
    Close {
        /// The subflow.
        subflow: SubflowId,
        /// Reset it instead of closing it in order, because the path has become useless.
        reset: bool,
    },
    /// Make a subflow a backup, or a regular one.
    SetPriority {
        /// The subflow.
        subflow: SubflowId,
        /// Whether it should carry data only if no regular subflow is usable.
        backup: bool,
        /// Tell the peer to do the same with MP_PRIO (RFC 8684 §3.3.8). Otherwise the change
        /// affects only the data that this host sends.
        signalled: bool,
    },
    /// Announce an address of this host, and repeat this until the peer echoes it. RFC 8684 §3.4.1.
    Announce {
        /// The address.
        local: LocalAddress,
    },
    /// Tell the peer on a remaining subflow that an address is no longer usable. RFC 8684 §3.4.2.
    Remove {
        /// Identifier of the address.
        local_address_id: u8,
    },
    /// Send copies of the newest data in flight on a subflow as its congestion window permits,
    /// independently of the scheduler. Their loss costs nothing. Probes are meant for a subflow
    /// that carries no data of its own; otherwise they could be copies of its own data.
    Probe {
        /// The subflow.
        subflow: SubflowId,
        /// Number of segments; fewer if less data is in flight.
        count: u32,
        /// Payload bytes of each segment.
        bytes: u32,
    },
}

/// Decides which subflows exist. After each call, the engine polls actions until `None`.
pub trait PathManager: Debug + Send {
    /// Something changed.
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]);
    /// The deadline of [`PathManager::poll_timeout`] has passed.
    fn handle_timeout(&mut self, now: Instant, subflows: &[SubflowView]);
    /// The next action.
    fn poll_action(&mut self) -> Option<PathAction>;
    /// When to call [`PathManager::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Slot;
    use std::net::Ipv4Addr;

    pub(super) fn local(id: u8) -> LocalAddress {
        LocalAddress { id, address: Ipv4Addr::new(10, 0, id, 1).into() }
    }

    pub(super) fn remote() -> SocketAddress {
        SocketAddress::new(Ipv4Addr::new(10, 9, 0, 1).into(), 80)
    }

    pub(super) fn id(slot: u8) -> SubflowId {
        SubflowId { slot: Slot(slot), generation: 0 }
    }

    pub(super) fn closed(slot: u8) -> PathEvent<'static> {
        closed_for(slot, Retry::Later)
    }

    pub(super) fn closed_for(slot: u8, retry: Retry) -> PathEvent<'static> {
        let (id, remote) = (Some(id(slot)), remote());
        PathEvent::SubflowClosed { id, local_address_id: slot, remote, retry, reopens: true }
    }

    pub(super) fn address(local_address_id: u8, usable: bool) -> PathEvent<'static> {
        PathEvent::AddressChanged { local_address_id, usable }
    }

    /// The actions after a further address of this host was reported, while the peer has announced
    /// another address of its own.
    pub(super) fn added(manager: &mut dyn PathManager, local: LocalAddress) -> Vec<PathAction> {
        let other = SocketAddress::new(Ipv4Addr::new(10, 9, 0, 2).into(), 80);
        let remote = [remote(), other].into_iter().zip(0..);
        let remote: Vec<_> = remote.map(|(end, id)| RemoteAddress { id, end }).collect();
        let event = PathEvent::AddressAdded { local, remote: &remote };
        manager.handle_event(Instant::ZERO, &event, &[]);
        actions(manager)
    }

    /// The actions after the connection was established.
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

    /// Local addresses of the subflows to open, and whether each is a backup.
    pub(super) fn opened(actions: &[PathAction]) -> Vec<(u8, bool)> {
        let opened = actions.iter().filter_map(|action| match action {
            PathAction::Open { local, backup, .. } => Some((local.id, *backup)),
            _ => None,
        });
        opened.collect()
    }
}
