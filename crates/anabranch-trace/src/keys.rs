//! Tokens, initial data sequence numbers and HMACs, derived from the keys of a handshake.

use std::net::IpAddr;

use anabranch_wire::DataSeq;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// RFC 8684 §3.2: the most significant 32 bits of the key's SHA-256.
pub(crate) fn token(key: u64) -> u32 {
    let digest = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// RFC 8684 §3.1: the least significant 64 bits of the key's SHA-256.
pub(crate) fn initial_data_seq(key: u64) -> DataSeq {
    DataSeq(rightmost(&Sha256::digest(key.to_be_bytes()).into()))
}

/// RFC 8684 §3.2: HMAC-SHA256 with the sender's key first and the sender's nonce first.
pub(crate) fn join_hmac(keys: [u64; 2], nonces: [u32; 2]) -> [u8; 32] {
    let mut mac = keyed(keys);
    mac.update(&nonces[0].to_be_bytes());
    mac.update(&nonces[1].to_be_bytes());
    mac.finalize().into_bytes().into()
}

/// RFC 8684 §3.4.1: the rightmost 64 bits of the HMAC over identifier, address and port.
pub(crate) fn address_hmac(keys: [u64; 2], id: u8, address: IpAddr, port: u16) -> u64 {
    let mut mac = keyed(keys);
    mac.update(&[id]);
    match address {
        IpAddr::V4(address) => mac.update(&address.octets()),
        IpAddr::V6(address) => mac.update(&address.octets()),
    }
    mac.update(&port.to_be_bytes());
    rightmost(&mac.finalize().into_bytes().into())
}

fn keyed(keys: [u64; 2]) -> Hmac<Sha256> {
    let key = keys.map(u64::to_be_bytes);
    Hmac::<Sha256>::new_from_slice(key.as_flattened()).expect("HMAC takes a key of any length")
}

fn rightmost(digest: &[u8; 32]) -> u64 {
    let tail = digest.last_chunk().expect("a digest has more than 8 bytes");
    u64::from_be_bytes(*tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values computed with Python's hashlib and hmac.
    #[test]
    fn tokens_and_numbers_are_the_two_ends_of_the_digest() {
        assert_eq!(token(0), 0xaf55_70f5);
        assert_eq!(initial_data_seq(0), DataSeq(0xe5b2_328d_e0e8_3dfc));
    }

    #[test]
    fn hmacs_are_those_of_the_rfc() {
        assert_eq!(join_hmac([1, 2], [3, 4])[..8], 0xe5c5_265e_f877_e594_u64.to_be_bytes());
        let four = "10.0.0.1".parse().unwrap();
        assert_eq!(address_hmac([1, 2], 3, four, 443), 0xd150_7c67_38c6_7b1f);
    }
}
