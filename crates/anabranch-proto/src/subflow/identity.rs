//! Identity of a subflow: its identifier, its origin and its ends.

use anabranch_wire::SocketAddress;

use crate::view::SubflowId;

/// Origin of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It opened the connection.
    Initial,
    /// It joined an existing connection. RFC 8684 §3.2.
    Join,
}

/// Identifier, origin and ends of a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubflowIdentity {
    pub(crate) id: SubflowId,
    pub(crate) purpose: Purpose,
    pub(crate) local: SocketAddress,
    pub(crate) remote: SocketAddress,
    pub(crate) local_address_id: u8,
    pub(crate) remote_address_id: u8,
}

impl SubflowIdentity {
    /// Bytes of the IP and TCP headers without options.
    pub(super) fn header_bytes(&self) -> u32 {
        if self.local.address.is_ipv4() { 40 } else { 60 }
    }

    pub(super) fn is_join(&self) -> bool {
        self.purpose == Purpose::Join
    }
}
