//! ADD_ADDR (subtype 3) and REMOVE_ADDR (subtype 4). RFC 8684 §3.4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// ADD_ADDR: announces an address of the sender, or echoes an announcement. RFC 8684 §3.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddr {
    /// Address identifier, unique within the connection.
    pub address_id: u8,
    /// The announced address.
    pub address: IpAddr,
    /// Port, if it differs from the port of the subflow that carried the option.
    pub port: Option<u16>,
    /// Rightmost 64 bits of the HMAC. Absent if the option is an echo (E flag).
    pub truncated_hmac: Option<u64>,
}

/// REMOVE_ADDR: addresses that are no longer available. RFC 8684 §3.4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveAddr {
    len: u8,
    ids: [u8; RemoveAddr::MAX_IDS],
}

impl RemoveAddr {
    /// Maximum number of identifiers in 40 bytes of options.
    pub const MAX_IDS: usize = 37;

    /// An option with 1 to 37 address identifiers; `None` for any other number.
    pub fn new(address_ids: &[u8]) -> Option<Self> {
        if address_ids.is_empty() || address_ids.len() > Self::MAX_IDS {
            return None;
        }
        let mut ids = [0; Self::MAX_IDS];
        ids[..address_ids.len()].copy_from_slice(address_ids);
        Some(RemoveAddr { len: address_ids.len() as u8, ids })
    }

    /// The address identifiers.
    pub fn address_ids(&self) -> &[u8] {
        &self.ids[..usize::from(self.len)]
    }
}

impl AddAddr {
    /// Parse one whole option, including kind and length. The E flag says whether there is an HMAC.
    /// The length then determines address family and port.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for ADD_ADDR.
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

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        let address = match self.address {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 16,
        };
        let port = if self.port.is_some() { 2 } else { 0 };
        let hmac = if self.truncated_hmac.is_some() { HMAC } else { 0 };
        FIXED + address + port + hmac
    }

    /// Append the option, including kind and length.
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
    /// Parse one whole option, including kind and length.
    ///
    /// # Errors
    /// If kind or subtype is not valid for REMOVE_ADDR, or if there are no identifiers or more than
    /// fit into a TCP header.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, reader) = open(bytes, Subtype::RemoveAddr, REMOVE_ADDR_LENGTHS)?;
        RemoveAddr::new(reader.rest()).ok_or(ParseError::MptcpLength {
            subtype: Subtype::RemoveAddr,
            found: bytes.len(),
            expected: REMOVE_ADDR_LENGTHS,
        })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        3 + self.len as usize
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::RemoveAddr, self.bytes_len(), 0));
        out.extend(self.address_ids());
    }
}

/// The E flag, in the byte of the subtype. RFC 8684 §3.4.1, figure 12.
const ECHO: u8 = 0x01;

/// Bytes before the address: kind, length, subtype and flags, address identifier.
const FIXED: usize = 4;

/// Bytes of the truncated HMAC.
const HMAC: usize = 8;

/// Lengths with E = 0: IPv4 without and with a port, IPv6 without and with a port.
const ADD_ADDR_LENGTHS: Lengths = Lengths(&[16, 18, 28, 30]);

/// Lengths with E = 1: the same forms without the HMAC.
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
