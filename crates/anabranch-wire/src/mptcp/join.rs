//! MP_JOIN (subtype 1): adds a subflow. RFC 8684 §3.2.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_JOIN in one of its three forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// SYN (length 12).
    Syn {
        /// B: this subflow is a backup.
        backup: bool,
        /// Identifier of the source address.
        address_id: u8,
        /// The receiver's token, which identifies the connection to join.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// SYN/ACK (length 16).
    SynAck {
        /// B: this subflow is a backup.
        backup: bool,
        /// Identifier of the source address.
        address_id: u8,
        /// Leftmost 64 bits of the HMAC.
        truncated_hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// Third ACK (length 24).
    Ack {
        /// Leftmost 160 bits of the HMAC.
        hmac: [u8; 20],
    },
}

impl MpJoin {
    /// Parse one whole option, including kind and length. The length alone determines the form. The
    /// caller must check that the form fits the flags of the segment.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_JOIN.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (flags, mut reader) = open(bytes, Subtype::Join, LENGTHS)?;
        let (backup, address_id) = (flags & BACKUP != 0, reader.u8()?);
        Ok(match bytes.len() {
            SYN => {
                let (token, nonce) = (reader.u32()?, reader.u32()?);
                MpJoin::Syn { backup, address_id, token, nonce }
            }
            SYN_ACK => {
                let (truncated_hmac, nonce) = (reader.u64()?, reader.u32()?);
                MpJoin::SynAck { backup, address_id, truncated_hmac, nonce }
            }
            _ => MpJoin::Ack { hmac: reader.array()? },
        })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        match self {
            MpJoin::Syn { .. } => SYN,
            MpJoin::SynAck { .. } => SYN_ACK,
            MpJoin::Ack { .. } => ACK,
        }
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            MpJoin::Syn { backup, address_id, token, nonce } => {
                self.emit_opening(backup, address_id, out);
                out.extend(token.to_be_bytes());
                out.extend(nonce.to_be_bytes());
            }
            MpJoin::SynAck { backup, address_id, truncated_hmac, nonce } => {
                self.emit_opening(backup, address_id, out);
                out.extend(truncated_hmac.to_be_bytes());
                out.extend(nonce.to_be_bytes());
            }
            MpJoin::Ack { hmac } => {
                self.emit_opening(false, 0, out);
                out.extend(hmac);
            }
        }
    }

    fn emit_opening(&self, backup: bool, address_id: u8, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Join, self.bytes_len(), u8::from(backup)));
        out.push(address_id);
    }
}

/// Length in bytes of the form in a SYN. RFC 8684 §3.2, figure 5.
const SYN: usize = 12;
/// Length in bytes of the form in a SYN/ACK. RFC 8684 §3.2, figure 6.
const SYN_ACK: usize = 16;
/// Length in bytes of the form in the third ACK. RFC 8684 §3.2, figure 7.
const ACK: usize = 24;

const LENGTHS: Lengths = Lengths(&[SYN, SYN_ACK, ACK]);

/// The B flag, in the byte of the subtype.
const BACKUP: u8 = 0x01;
