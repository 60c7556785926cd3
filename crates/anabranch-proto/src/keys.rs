//! Keys, tokens, HMACs and other secrets. RFC 8684 §3.1, §3.2; RFC 6528.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::{DataSeq, SeqNumber, SocketAddress};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The source of an endpoint's keys, nonces and initial sequence numbers. All of them follow from
/// one secret: runs are repeatable, and nobody can guess them without the secret.
#[derive(Clone)]
pub(crate) struct Secrets {
    /// The secret, which all connections of an endpoint share.
    secret: Arc<[u8; 32]>,
    stream: u64,
    drawn: u64,
}

impl Secrets {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Secrets { secret: Arc::new(secret), stream: 0, drawn: 0 }
    }

    /// The source for one connection. Its random numbers do not depend on those of other
    /// connections.
    pub(crate) fn for_connection(&self, number: u64) -> Self {
        Secrets { secret: Arc::clone(&self.secret), stream: 1 + number, drawn: 0 }
    }

    /// The next 64 random bits of the stream `label`.
    pub(crate) fn draw(&mut self, label: &str) -> u64 {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(*self.secret);
        hash.update(label.as_bytes());
        hash.update(self.stream.to_be_bytes());
        hash.update(self.drawn.to_be_bytes());
        leading_u64(&hash.finalize())
    }

    /// The part of the initial sequence number that depends on the addresses.
    /// RFC 6528 §3: ISN = M + F(addresses, ports, secret); the caller adds the timer M.
    pub(crate) fn initial_sequence(
        &self,
        local: SocketAddress,
        remote: SocketAddress,
    ) -> SeqNumber {
        SeqNumber(self.of_addresses("isn", local, remote, &[]) as u32)
    }

    /// 64 bits that follow from the addresses and `numbers`, unpredictable without the secret.
    pub(crate) fn of_addresses(
        &self,
        label: &str,
        local: SocketAddress,
        remote: SocketAddress,
        numbers: &[u32],
    ) -> u64 {
        let mut hash = Sha256::new();
        hash.update(*self.secret);
        hash.update(label.as_bytes());
        for SocketAddress { address, port } in [local, remote] {
            match address {
                IpAddr::V4(address) => hash.update(address.octets()),
                IpAddr::V6(address) => hash.update(address.octets()),
            }
            hash.update(port.to_be_bytes());
        }
        for number in numbers {
            hash.update(number.to_be_bytes());
        }
        leading_u64(&hash.finalize())
    }
}

/// The token of `key`: the most significant 32 bits of its SHA-256. RFC 8684 §3.2.
pub(crate) fn token(key: u64) -> u32 {
    (leading_u64(&Sha256::digest(key.to_be_bytes())) >> 32) as u32
}

/// The initial data sequence number: the least significant 64 bits of the key's SHA-256.
/// RFC 8684 §3.1.
pub(crate) fn initial_data_seq(key: u64) -> DataSeq {
    #[cfg(test)]
    if let Some(chosen) = CHOSEN.get() {
        return chosen;
    }
    let digest = Sha256::digest(key.to_be_bytes());
    let tail: [u8; 8] = digest[24..].try_into().expect("SHA-256 gives 32 bytes");
    DataSeq(u64::from_be_bytes(tail))
}

#[cfg(test)]
thread_local! {
    /// Initial data sequence number for tests. No key is known whose hash gives a number close to
    /// 2^64.
    pub(crate) static CHOSEN: std::cell::Cell<Option<DataSeq>> = const { std::cell::Cell::new(None) };
}

/// HMAC-SHA256 with key `local ‖ remote` over `local_nonce ‖ remote_nonce`, as the host with
/// `local` key and nonce sends it. RFC 8684 §3.2.
pub(crate) fn join_hmac(local: u64, remote: u64, local_nonce: u32, remote_nonce: u32) -> [u8; 32] {
    let mut mac = keyed(local, remote);
    mac.update(&local_nonce.to_be_bytes());
    mac.update(&remote_nonce.to_be_bytes());
    mac.finalize().into_bytes().into()
}

/// Proof that the host with `local` key announces an address: the rightmost 64 bits of HMAC-SHA256
/// with key `local ‖ remote` over identifier, address and port (0 if no port is announced). RFC
/// 8684 §3.4.1.
pub(crate) fn address_hmac(local: u64, remote: u64, id: u8, address: IpAddr, port: u16) -> u64 {
    let mut mac = keyed(local, remote);
    mac.update(&[id]);
    match address {
        IpAddr::V4(address) => mac.update(&address.octets()),
        IpAddr::V6(address) => mac.update(&address.octets()),
    }
    mac.update(&port.to_be_bytes());
    let hmac: [u8; 32] = mac.finalize().into_bytes().into();
    leading_u64(&hmac[24..])
}

/// HMAC-SHA256 with key `local ‖ remote`.
fn keyed(local: u64, remote: u64) -> Hmac<Sha256> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&local.to_be_bytes());
    key[8..].copy_from_slice(&remote.to_be_bytes());
    Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes a key of any length")
}

/// The leftmost 64 bits of `hmac`, as the SYN/ACK of a join carries them. RFC 8684 §3.2.
pub(crate) fn truncated_64(hmac: &[u8; 32]) -> u64 {
    leading_u64(hmac)
}

/// The leftmost 160 bits of `hmac`, as the third ACK of a join carries them. RFC 8684 §3.2.
pub(crate) fn truncated_160(hmac: &[u8; 32]) -> [u8; 20] {
    hmac[..20].try_into().expect("an HMAC has 32 bytes")
}

/// Compare in a time that does not depend on the position of the first difference.
pub(crate) fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

fn leading_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("a digest has at least 8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_and_initial_data_sequence_are_the_two_ends_of_the_digest() {
        // SHA-256 of eight zero bytes, computed with another implementation:
        // af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc
        assert_eq!(token(0), 0xaf55_70f5);
        assert_eq!(initial_data_seq(0), DataSeq(0xe5b2_328d_e0e8_3dfc));
    }

    const HMAC_FROM_A: u64 = 0xe5c5265ef877e594;

    #[test]
    fn an_address_is_proved_by_identifier_address_and_port() {
        // RFC 8684 §3.4.1. Computed with another implementation: HMAC-SHA256, key 0…01 ‖ 0…02,
        // message 03 ‖ 2001:db8::9 ‖ 0000, and 03 ‖ 10.0.0.1 ‖ 01bb.
        let six = "2001:db8::9".parse().expect("an address");
        assert_eq!(address_hmac(1, 2, 3, six, 0), 0x04a2_6b05_5fe2_079a);
        let four = "10.0.0.1".parse().expect("an address");
        assert_eq!(address_hmac(1, 2, 3, four, 443), 0xd150_7c67_38c6_7b1f);
    }

    #[test]
    fn both_ends_of_a_join_agree_on_each_others_hmac() {
        // RFC 8684 §3.2: HMAC(Key = (Key-A ‖ Key-B), Msg = (R-A ‖ R-B)) from A.
        // Computed with another implementation: HMAC-SHA256, key 0…01 ‖ 0…02, message
        // 00000003 ‖ 00000004.
        let from_a = join_hmac(1, 2, 3, 4);
        assert_eq!(truncated_64(&from_a), HMAC_FROM_A);
        let from_b = join_hmac(2, 1, 4, 3);
        assert_ne!(from_a, from_b);
        assert!(equal_in_constant_time(&from_a, &{ from_a }));
        assert!(!equal_in_constant_time(&from_a, &from_b));
    }

    #[test]
    fn draws_differ_and_repeat_with_the_secret() {
        let (mut a, mut b) = (Secrets::new([7; 32]), Secrets::new([7; 32]));
        let first = a.draw("key");
        assert_eq!(first, b.draw("key"));
        assert_ne!(first, a.draw("key"));
    }
}
