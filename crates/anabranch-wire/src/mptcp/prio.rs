//! MP_PRIO (subtype 5): changes the priority of a subflow. RFC 8684 §3.3.8.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_PRIO: the sender asks the peer to use this subflow as a backup or as a regular subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpPrio {
    /// B: use this subflow only as a backup.
    pub backup: bool,
}

impl MpPrio {
    /// Parse one whole option, including kind and length.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_PRIO.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (flags, _) = open(bytes, Subtype::Prio, LENGTHS)?;
        Ok(MpPrio { backup: flags & BACKUP != 0 })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        3
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Prio, self.bytes_len(), u8::from(self.backup)));
    }
}

/// The only valid length of MP_PRIO. RFC 8684 §3.3.8, figure 11.
const LENGTHS: Lengths = Lengths(&[3]);

/// The B flag, in the byte of the subtype.
const BACKUP: u8 = 0x01;
