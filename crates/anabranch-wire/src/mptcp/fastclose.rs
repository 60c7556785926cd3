//! MP_FASTCLOSE (subtype 7): abrupt close of the connection. RFC 8684 §3.5.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_FASTCLOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFastclose {
    /// The receiving host's key: proof that the sender took part in the handshake.
    pub receiver_key: u64,
}

impl MpFastclose {
    /// Parse one whole option, kind and length included.
    ///
    /// # Errors
    /// If kind, subtype or length are not those of MP_FASTCLOSE.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, mut reader) = open(bytes, Subtype::Fastclose, LENGTHS)?;
        let _reserved = reader.u8()?;
        Ok(MpFastclose { receiver_key: reader.u64()? })
    }

    /// Bytes of the option, kind and length included.
    pub const fn bytes_len(&self) -> usize {
        12
    }

    /// Append the option, kind and length included.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Fastclose, self.bytes_len(), 0));
        out.push(0);
        out.extend(self.receiver_key.to_be_bytes());
    }
}

/// The one length of MP_FASTCLOSE. RFC 8684 §3.5, figure 14.
const LENGTHS: Lengths = Lengths(&[12]);
