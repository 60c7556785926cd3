//! ADD_ADDR (subtype 3) and REMOVE_ADDR (subtype 4). RFC 8684 §3.4.

use std::net::IpAddr;

/// ADD_ADDR: an address of the sender's, or the echo of one. RFC 8684 §3.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddr {
    /// Identifier of the address within the connection.
    pub address_id: u8,
    /// The address announced.
    pub address: IpAddr,
    /// Port, when it is not the one of the subflow the option came on.
    pub port: Option<u16>,
    /// Rightmost 64 bits of the HMAC; absent in an echo (the E flag).
    pub truncated_hmac: Option<u64>,
}

/// REMOVE_ADDR: addresses no longer available. RFC 8684 §3.4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveAddr {
    len: u8,
    ids: [u8; RemoveAddr::MAX_IDS],
}

impl RemoveAddr {
    /// Most identifiers that fit into 40 octets of options.
    pub const MAX_IDS: usize = 37;

    /// From 1 to 37 address identifiers; `None` for any other number.
    pub fn new(address_ids: &[u8]) -> Option<Self> {
        if address_ids.is_empty() || address_ids.len() > Self::MAX_IDS {
            return None;
        }
        let mut ids = [0; Self::MAX_IDS];
        ids[..address_ids.len()].copy_from_slice(address_ids);
        Some(RemoveAddr { len: address_ids.len() as u8, ids })
    }

    /// The identifiers.
    pub fn address_ids(&self) -> &[u8] {
        &self.ids[..usize::from(self.len)]
    }
}
