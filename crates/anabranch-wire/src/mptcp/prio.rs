//! MP_PRIO (subtype 5): changing a subflow's priority. RFC 8684 §3.3.8.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_PRIO: the sender asks for this subflow to be used as backup, or as a regular one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpPrio {
    /// B: use as backup only.
    pub backup: bool,
}

impl MpPrio {
    /// Parse one whole option, kind and length included.
    ///
    /// # Errors
    /// If kind, subtype or length are not those of MP_PRIO.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (flags, _) = open(bytes, Subtype::Prio, LENGTHS)?;
        Ok(MpPrio { backup: flags & BACKUP != 0 })
    }

    /// Bytes of the option, kind and length included.
    pub const fn bytes_len(&self) -> usize {
        3
    }

    /// Append the option, kind and length included.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Prio, self.bytes_len(), u8::from(self.backup)));
    }
}

/// The one length of MP_PRIO. RFC 8684 §3.3.8, figure 11.
const LENGTHS: Lengths = Lengths(&[3]);

/// B, in the byte of the subtype.
const BACKUP: u8 = 0x01;
