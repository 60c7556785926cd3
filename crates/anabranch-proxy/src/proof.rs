//! Proofs that a client knows the relay's secret. They travel as cookies of the Convert Protocol.
//!
//! A proof covers the request, a time and a number that is used once. A relay remembers the proofs
//! of the last minutes, so a recorded request opens no second connection.

use std::collections::BTreeSet;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::convert::{Message, Request, Tlv};

/// Shortest secret in bytes. A recorded proof lets an attacker test guesses without the relay, so a
/// secret must be random: 32 characters of base64 have 192 bits.
pub(crate) const LEAST_SECRET_BYTES: usize = 32;
/// Longest difference between the clocks of client and relay, in milliseconds (this project).
pub(crate) const MOST_CLOCK_DIFFERENCE: u64 = 120_000;
/// Proofs that a relay remembers at most (this project). They take about 64 bytes each.
const MOST_REMEMBERED: usize = 1 << 18;

/// Separates this key from others that are derived from the same secret.
const SALT: &[u8] = b"anabranch-proxy";
const INFO: &[u8] = b"convert proof 1";
const NONCE_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// The layout of the proof, and three zeros that align it.
const LAYOUT: [u8; 4] = [1, 0, 0, 0];
const PROOF_BYTES: usize = LAYOUT.len() + 8 + NONCE_BYTES + MAC_BYTES;

/// A number that a client uses once.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// The key that follows from a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ProofKey([u8; 32]);

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProofKey")
    }
}

/// Reason why a text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the secret has {0} characters; write at least {LEAST_SECRET_BYTES} random ones, \
     for example with: openssl rand -base64 32"
)]
pub(crate) struct TooShort(usize);

impl ProofKey {
    /// The key of a secret, without white space around it. RFC 5869 §2.
    ///
    /// # Errors
    /// If the secret is too short.
    pub(crate) fn derive(secret: &[u8]) -> Result<Self, TooShort> {
        let secret = secret.trim_ascii();
        if secret.len() < LEAST_SECRET_BYTES {
            return Err(TooShort(secret.len()));
        }
        let extracted = mac(SALT, &[secret]);
        Ok(ProofKey(mac(&extracted, &[INFO, &[1]])))
    }

    /// The key with these bytes.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        ProofKey(bytes)
    }

    /// The bytes of the key.
    pub(crate) fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The proof for a request with these TLVs at `time`, in milliseconds since 1970.
    pub(crate) fn prove(&self, tlvs: &[Tlv], time: u64, nonce: Nonce) -> Tlv {
        let mut proof = [&LAYOUT[..], &time.to_be_bytes(), &nonce].concat();
        let covered = Message::new(tlvs).to_bytes();
        let mac = mac(&self.0, &[&proof, &covered]);
        proof.extend(mac);
        Tlv::Cookie(proof)
    }
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    keyed(key, parts).finalize().into_bytes().into()
}

/// Reason why a proof does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// There is none.
    #[error("the request has no proof")]
    Missing,
    /// The client does not know the secret, or the request was changed.
    #[error("the proof is wrong")]
    Wrong,
    /// The clocks differ, the request was recorded long ago, or the relay has started since.
    #[error("the proof is from another time")]
    OtherTime,
    /// The proof was used before.
    #[error("the proof was used before")]
    Used,
    /// The relay cannot remember more proofs for now.
    #[error("too many proofs within two minutes")]
    TooMany,
}

/// A relay's memory of proofs.
#[derive(Debug)]
pub(crate) struct Verifier {
    key: ProofKey,
    /// Proofs of this time or earlier, in milliseconds since 1970, may be unknown to this relay: they are
    /// from before its start, or it has forgotten them. A clock that is set back does not change that.
    unknown_until: u64,
    used: BTreeSet<(u64, Nonce)>,
}

impl Verifier {
    /// A relay that has started at `time`, in milliseconds since 1970.
    pub(crate) fn new(key: ProofKey, time: u64) -> Self {
        Verifier { key, unknown_until: time, used: BTreeSet::new() }
    }

    /// Check a request at `now`, in milliseconds since 1970. A proof counts once.
    ///
    /// # Errors
    /// If the request has no proof that counts.
    pub(crate) fn verify(&mut self, request: &Request, now: u64) -> Result<(), Refusal> {
        let proof = request.cookie.as_ref().ok_or(Refusal::Missing)?;
        let proof: &[u8; PROOF_BYTES] = proof.as_slice().try_into().map_err(|_| Refusal::Wrong)?;
        let (head, mac) = proof.split_at(PROOF_BYTES - MAC_BYTES);
        let covered = request.without_cookie().to_bytes();
        // The comparison takes the same time wherever the bytes differ.
        let correct = keyed(&self.key.0, &[head, &covered]).verify_slice(mac).is_ok();
        if !correct || head[..LAYOUT.len()] != LAYOUT {
            return Err(Refusal::Wrong);
        }
        let (time, nonce) = head[LAYOUT.len()..].split_at(8);
        let time = u64::from_be_bytes(time.try_into().expect("eight bytes"));
        let nonce: Nonce = nonce.try_into().expect("sixteen bytes");
        let oldest = now.saturating_sub(MOST_CLOCK_DIFFERENCE);
        self.unknown_until = self.unknown_until.max(oldest.saturating_sub(1));
        if time.abs_diff(now) > MOST_CLOCK_DIFFERENCE || time <= self.unknown_until {
            return Err(Refusal::OtherTime);
        }
        self.used = self.used.split_off(&(self.unknown_until + 1, [0; 16]));
        if self.used.contains(&(time, nonce)) {
            return Err(Refusal::Used);
        }
        if self.used.len() >= MOST_REMEMBERED {
            return Err(Refusal::TooMany);
        }
        self.used.insert((time, nonce));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{Connect, Relay, RelayStep};

    const NOW: u64 = 1_800_000_000_000;

    fn key() -> ProofKey {
        ProofKey::derive(b"  0123456789abcdef0123456789abcdef\n").expect("long enough")
    }

    fn tlvs(remote: &str) -> Vec<Tlv> {
        let remote = remote.parse().expect("an address");
        vec![Tlv::Connect(Connect { remote, options: None })]
    }

    /// The bytes that a client sends.
    fn opening(time: u64, nonce: u8) -> Vec<u8> {
        let mut tlvs = tlvs("192.0.2.1:443");
        tlvs.push(key().prove(&tlvs, time, [nonce; 16]));
        Message { tlvs }.to_bytes()
    }

    fn request(bytes: &[u8]) -> Request {
        match Relay::default().handle_data(bytes) {
            RelayStep::Decide(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_recorded_opening_is_refused() {
        let recorded = opening(NOW, 1);
        let mut relay = Verifier::new(key(), NOW - 1);
        assert_eq!(relay.verify(&request(&recorded), NOW), Ok(()));
        assert_eq!(relay.verify(&request(&recorded), NOW), Err(Refusal::Used));
        // Until its time has passed, and after that.
        let last = NOW + MOST_CLOCK_DIFFERENCE;
        assert_eq!(relay.verify(&request(&recorded), last), Err(Refusal::Used));
        assert_eq!(relay.verify(&request(&recorded), last + 1), Err(Refusal::OtherTime));
        assert_eq!(relay.verify(&request(&opening(last, 2)), last), Ok(()));
    }

    #[test]
    fn a_restart_lets_no_recorded_opening_pass() {
        let recorded = opening(NOW, 1);
        let mut restarted = Verifier::new(key(), NOW);
        assert_eq!(restarted.verify(&request(&recorded), NOW + 2), Err(Refusal::OtherTime));
    }

    #[test]
    fn a_changed_opening_is_refused() {
        let bytes = opening(NOW, 1);
        let mut relay = Verifier::new(key(), 0);
        // Port and address of the destination, then time, nonce and code of the proof.
        for at in [6, 7, 20, 32, 40, 60, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(relay.verify(&request(&changed), NOW), Err(Refusal::Wrong), "byte {at}");
        }
        let with_info = [tlvs("192.0.2.1:443"), vec![Tlv::Info]].concat();
        let cookie = request(&bytes).cookie.expect("it has one");
        let message = Message { tlvs: [with_info, vec![Tlv::Cookie(cookie)]].concat() };
        assert_eq!(relay.verify(&request(&message.to_bytes()), NOW), Err(Refusal::Wrong));
    }

    #[test]
    fn clocks_may_differ_by_two_minutes() {
        let mut relay = Verifier::new(key(), 0);
        let near = [NOW - MOST_CLOCK_DIFFERENCE, NOW + MOST_CLOCK_DIFFERENCE];
        for time in near {
            assert_eq!(relay.verify(&request(&opening(time, 3)), NOW), Ok(()));
        }
        for time in [near[0] - 1, near[1] + 1] {
            let refused = relay.verify(&request(&opening(time, 4)), NOW);
            assert_eq!(refused, Err(Refusal::OtherTime));
        }
    }

    #[test]
    fn other_secrets_and_no_secret_are_refused() {
        let mut relay = Verifier::new(ProofKey::derive(&[b'x'; 32]).expect("long enough"), 0);
        assert_eq!(relay.verify(&request(&opening(NOW, 1)), NOW), Err(Refusal::Wrong));
        let bare = Message { tlvs: tlvs("192.0.2.1:443") }.to_bytes();
        assert_eq!(relay.verify(&request(&bare), NOW), Err(Refusal::Missing));
        assert_eq!(ProofKey::derive(&[b'x'; 31]), Err(TooShort(31)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_repeat_a_time() {
        let recorded = request(&opening(NOW, 1));
        let mut relay = Verifier::new(key(), NOW - 1);
        assert_eq!(relay.verify(&recorded, NOW), Ok(()));
        let later = NOW + 300_000;
        assert_eq!(relay.verify(&request(&opening(later, 2)), later), Ok(()));
        assert_eq!(relay.verify(&recorded, NOW), Err(Refusal::OtherTime));
        assert_eq!(relay.verify(&request(&opening(later, 2)), NOW + 200_000), Err(Refusal::Used));
    }

    #[test]
    fn used_proofs_are_forgotten_with_their_time() {
        let mut relay = Verifier::new(key(), 0);
        for second in 0..1000 {
            let now = NOW + 1000 * second;
            assert_eq!(relay.verify(&request(&opening(now, 1)), now), Ok(()));
            assert!(relay.used.len() <= 121);
        }
    }
}
