//! Path managers: which subflows exist. RFC 8684 §3.4 leaves the policy to the host.

mod full_mesh;
mod single;

pub use full_mesh::FullMesh;
pub use single::Single;

use core::fmt::Debug;
use std::net::IpAddr;

use anabranch_wire::{Endpoint, Instant};

use crate::view::{SubflowId, SubflowView};

/// An address of this host, with its identifier within the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Identifier; 0 is the address the connection was opened from. RFC 8684 §3.2.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
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
        remote: Endpoint,
    },
    /// A subflow can carry data.
    SubflowEstablished(SubflowId),
    /// A subflow has ended, or could not be opened.
    SubflowClosed {
        /// Which.
        id: SubflowId,
        /// Identifier of its local address.
        local_address_id: u8,
        /// Its remote end.
        remote: Endpoint,
    },
}

/// What a path manager wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAction {
    /// Open a subflow.
    Open {
        /// Local address.
        local: LocalAddress,
        /// Remote end.
        remote: Endpoint,
        /// Identifier of the remote address.
        remote_address_id: u8,
        /// Ask for it to be a backup. RFC 8684 §3.3.8.
        backup: bool,
    },
    /// Close a subflow.
    Close(SubflowId),
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
