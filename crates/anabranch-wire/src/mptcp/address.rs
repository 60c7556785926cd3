//! ADD_ADDR (subtype 3) and REMOVE_ADDR (subtype 4). RFC 8684 §3.4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

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
    /// Most identifiers that fit into 40 bytes of options.
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

impl AddAddr {
    /// Parse one whole option, kind and length included. Address family and port follow from
    /// the length, given whether the E flag says that there is no HMAC.
    ///
    /// # Errors
    /// If kind, subtype or length are not those of ADD_ADDR.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let echo = bytes.get(2).is_some_and(|byte| byte & ECHO != 0);
        let expected = if echo { ECHO_LENGTHS } else { ADD_ADDR_LENGTHS };
        let (_, mut reader) = open(bytes, Subtype::AddAddr, expected)?;
        let address_id = reader.u8()?;
        let hmac = if echo { 0 } else { HMAC };
        let address_and_port = bytes.len() - FIXED - hmac;
        let address = match address_and_port {
            4 | 6 => IpAddr::from(Ipv4Addr::from(reader.array::<4>()?)),
            _ => IpAddr::from(Ipv6Addr::from(reader.array::<16>()?)),
        };
        let has_port = matches!(address_and_port, 6 | 18);
        let port = has_port.then(|| reader.u16()).transpose()?;
        let truncated_hmac = (!echo).then(|| reader.u64()).transpose()?;
        Ok(AddAddr { address_id, address, port, truncated_hmac })
    }

    /// Bytes of the option, kind and length included.
    pub const fn bytes_len(&self) -> usize {
        let address = match self.address {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 16,
        };
        let port = if self.port.is_some() { 2 } else { 0 };
        let hmac = if self.truncated_hmac.is_some() { HMAC } else { 0 };
        FIXED + address + port + hmac
    }

    /// Append the option, kind and length included.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = if self.truncated_hmac.is_none() { ECHO } else { 0 };
        out.extend(opening(Subtype::AddAddr, self.bytes_len(), flags));
        out.push(self.address_id);
        match self.address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        }
        out.extend(self.port.into_iter().flat_map(u16::to_be_bytes));
        out.extend(self.truncated_hmac.into_iter().flat_map(u64::to_be_bytes));
    }
}

impl RemoveAddr {
    /// Parse one whole option, kind and length included.
    ///
    /// # Errors
    /// If kind or subtype are not those of REMOVE_ADDR, or there is no identifier, or more than
    /// fit into a TCP header.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, reader) = open(bytes, Subtype::RemoveAddr, REMOVE_ADDR_LENGTHS)?;
        RemoveAddr::new(reader.rest()).ok_or(ParseError::MptcpLength {
            subtype: Subtype::RemoveAddr,
            found: bytes.len(),
            expected: REMOVE_ADDR_LENGTHS,
        })
    }

    /// Bytes of the option, kind and length included.
    pub const fn bytes_len(&self) -> usize {
        3 + self.len as usize
    }

    /// Append the option, kind and length included.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::RemoveAddr, self.bytes_len(), 0));
        out.extend(self.address_ids());
    }
}

/// E, in the byte of the subtype. RFC 8684 §3.4.1, figure 12.
const ECHO: u8 = 0x01;

/// Bytes before the address: kind, length, subtype and flags, address identifier.
const FIXED: usize = 4;

/// Bytes of the truncated HMAC.
const HMAC: usize = 8;

/// With E = 0: IPv4 without and with a port, IPv6 without and with a port.
const ADD_ADDR_LENGTHS: Lengths = Lengths(&[16, 18, 28, 30]);

/// With E = 1: the same without the HMAC.
const ECHO_LENGTHS: Lengths = Lengths(&[8, 10, 20, 22]);

/// RFC 8684 §3.4.2, figure 13: 3 bytes and at least one identifier.
const REMOVE_ADDR_LENGTHS: Lengths = Lengths(&{
    let mut lengths = [0; RemoveAddr::MAX_IDS];
    let mut ids = 1;
    while ids <= RemoveAddr::MAX_IDS {
        lengths[ids - 1] = 3 + ids;
        ids += 1;
    }
    lengths
});
