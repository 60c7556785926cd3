//! Values that RFC 8684 derives from keys. This code is independent of the engine, which it judges.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The token of a key. RFC 8684 §3.2.
pub(crate) fn token(key: u64) -> u32 {
    let digest = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes(digest[..4].try_into().expect("SHA-256 gives 32 bytes"))
}

/// The initial data sequence number. RFC 8684 §3.1.
pub(crate) fn initial_data_seq(key: u64) -> u64 {
    let digest = Sha256::digest(key.to_be_bytes());
    u64::from_be_bytes(digest[24..].try_into().expect("SHA-256 gives 32 bytes"))
}

/// HMAC of a join from the host that owns the first key and nonce of each pair. RFC 8684 §3.2.
pub(crate) fn join_hmac(keys: (u64, u64), nonces: (u32, u32)) -> [u8; 32] {
    let message = [nonces.0.to_be_bytes(), nonces.1.to_be_bytes()].concat();
    hmac(keys, &message)
}

/// HMAC of ADD_ADDR: the rightmost 64 bits. RFC 8684 §3.4.1.
pub(crate) fn address_hmac(keys: (u64, u64), id: u8, address: IpAddr, port: u16) -> u64 {
    let mut message = vec![id];
    match address {
        IpAddr::V4(address) => message.extend(address.octets()),
        IpAddr::V6(address) => message.extend(address.octets()),
    }
    message.extend(port.to_be_bytes());
    u64::from_be_bytes(hmac(keys, &message)[24..].try_into().expect("an HMAC has 32 bytes"))
}

fn hmac((sender, receiver): (u64, u64), message: &[u8]) -> [u8; 32] {
    let key = [sender.to_be_bytes(), receiver.to_be_bytes()].concat();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}
