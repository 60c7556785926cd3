//! Tokens, initial data sequence numbers and HMACs, derived from the keys of a handshake.

use std::net::IpAddr;

use anabranch_wire::{DataSeq, mptcp};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A version of the protocol. It decides the hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// RFC 6824: SHA-1.
    V0,
    /// RFC 8684: SHA-256.
    V1,
}

impl Version {
    /// The version of MP_CAPABLE's field; `None` if no RFC defines it.
    pub(crate) fn of(field: u8) -> Option<Self> {
        match field {
            0 => Some(Version::V0),
            mptcp::VERSION => Some(Version::V1),
            _ => None,
        }
    }

    /// The number of the version.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Version::V0 => 0,
            Version::V1 => mptcp::VERSION,
        }
    }

    /// The RFC that defines the version.
    pub(crate) const fn rfc(self) -> &'static str {
        match self {
            Version::V0 => "RFC 6824",
            Version::V1 => "RFC 8684",
        }
    }

    /// RFC 8684 §3.2 and RFC 6824 §3.2: the most significant 32 bits of the key's digest.
    pub(crate) fn token(self, key: u64) -> u32 {
        let digest = self.digest(key);
        u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
    }

    /// RFC 8684 §3.1 and RFC 6824 §3.1: the least significant 64 bits of the key's digest.
    pub(crate) fn initial_data_seq(self, key: u64) -> DataSeq {
        DataSeq(rightmost(&self.digest(key)))
    }

    fn digest(self, key: u64) -> Vec<u8> {
        match self {
            Version::V0 => Sha1::digest(key.to_be_bytes()).to_vec(),
            Version::V1 => Sha256::digest(key.to_be_bytes()).to_vec(),
        }
    }

    /// The first 160 bits of the HMAC of a join, with the sender's key first and the sender's nonce
    /// first. RFC 8684 §3.2, RFC 6824 §3.2.
    pub(crate) fn join_hmac(self, keys: [u64; 2], nonces: [u32; 2]) -> [u8; 20] {
        let text = nonces.map(u32::to_be_bytes);
        let code = match self {
            Version::V0 => mac::<Hmac<Sha1>>(keys, text.as_flattened()),
            Version::V1 => mac::<Hmac<Sha256>>(keys, text.as_flattened()),
        };
        *code.first_chunk().expect("both HMACs have at least 20 bytes")
    }
}

/// RFC 8684 §3.4.1: the rightmost 64 bits of the HMAC over identifier, address and port. Version 0
/// has none.
pub(crate) fn address_hmac(keys: [u64; 2], id: u8, address: IpAddr, port: u16) -> u64 {
    let mut text = vec![id];
    match address {
        IpAddr::V4(address) => text.extend(address.octets()),
        IpAddr::V6(address) => text.extend(address.octets()),
    }
    text.extend(port.to_be_bytes());
    rightmost(&mac::<Hmac<Sha256>>(keys, &text))
}

fn mac<M: Mac + KeyInit>(keys: [u64; 2], text: &[u8]) -> Vec<u8> {
    let key = keys.map(u64::to_be_bytes);
    let mut mac =
        <M as KeyInit>::new_from_slice(key.as_flattened()).expect("HMAC takes a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn rightmost(digest: &[u8]) -> u64 {
    let tail = digest.last_chunk().expect("a digest has more than 8 bytes");
    u64::from_be_bytes(*tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values computed with Python's hashlib and hmac.
    #[test]
    fn tokens_and_numbers_are_the_two_ends_of_the_digest() {
        assert_eq!(Version::V1.token(0), 0xaf55_70f5);
        assert_eq!(Version::V1.initial_data_seq(0), DataSeq(0xe5b2_328d_e0e8_3dfc));
        assert_eq!(Version::V0.token(0), 0x05fe_4057);
        assert_eq!(Version::V0.initial_data_seq(0), DataSeq(0xac55_8654_f107_c7e9));
    }

    #[test]
    fn hmacs_are_those_of_the_rfcs() {
        let hmac = Version::V1.join_hmac([1, 2], [3, 4]);
        assert_eq!(hmac[..8], 0xe5c5_265e_f877_e594_u64.to_be_bytes());
        let hmac = Version::V0.join_hmac([1, 2], [3, 4]);
        assert_eq!(hmac[..8], 0x3e9d_3c46_3abd_55f7_u64.to_be_bytes());
        let four = "10.0.0.1".parse().unwrap();
        assert_eq!(address_hmac([1, 2], 3, four, 443), 0xd150_7c67_38c6_7b1f);
    }
}
