//! ADD_ADDR options with a valid HMAC. RFC 8684 §3.4.1.

use std::net::IpAddr;

use anabranch_wire::mptcp::{AddAddr, CapableKeys};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Pair;

/// The keys of client and server from the handshake.
pub fn keys(pair: &Pair) -> (u64, u64) {
    let keys =
        pair.log.iter().find_map(|segment| match segment.options.control.as_ref()?.capable?.keys {
            CapableKeys::Both { sender, receiver }
            | CapableKeys::WithData { sender, receiver, .. } => Some((sender, receiver)),
            _ => None,
        });
    keys.expect("keys were exchanged")
}

/// The ADD_ADDR option with which the server would announce this address. RFC 8684 §3.4.1.
pub fn announced(pair: &Pair, address_id: u8, address: IpAddr, port: Option<u16>) -> AddAddr {
    let (client, server) = keys(pair);
    let key = [server.to_be_bytes(), client.to_be_bytes()].concat();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
    mac.update(&[address_id]);
    match address {
        IpAddr::V4(address) => mac.update(&address.octets()),
        IpAddr::V6(address) => mac.update(&address.octets()),
    }
    mac.update(&port.unwrap_or(0).to_be_bytes());
    let hmac: [u8; 32] = mac.finalize().into_bytes().into();
    let proof = u64::from_be_bytes(hmac[24..].try_into().expect("8 bytes"));
    AddAddr { address_id, address, port, truncated_hmac: Some(proof) }
}
