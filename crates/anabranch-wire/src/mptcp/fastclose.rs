//! MP_FASTCLOSE (subtype 7): closes the connection abruptly. RFC 8684 §3.5.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_FASTCLOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFastclose {
    /// Key of the receiving host. It proves that the sender took part in the handshake.
    pub receiver_key: u64,
}

impl MpFastclose {
    /// Parse one whole option, including kind and length.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_FASTCLOSE.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, mut reader) = open(bytes, Subtype::Fastclose, LENGTHS)?;
        let _reserved = reader.u8()?;
        Ok(MpFastclose { receiver_key: reader.u64()? })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        12
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Fastclose, self.bytes_len(), 0));
        out.push(0);
        out.extend(self.receiver_key.to_be_bytes());
    }
}

/// The only valid length of MP_FASTCLOSE. RFC 8684 §3.5, figure 14.
const LENGTHS: Lengths = Lengths(&[12]);
