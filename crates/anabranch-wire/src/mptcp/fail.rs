//! MP_FAIL (subtype 6): reports a failed checksum, or a fallback. RFC 8684 §3.7.

use super::{Subtype, open, opening};
use crate::{DataSeq, Lengths, ParseError};

/// MP_FAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFail {
    /// Data sequence number at the start of the failed mapping.
    pub data_seq: DataSeq,
}

impl MpFail {
    /// Parse one whole option, including kind and length.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_FAIL.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, mut reader) = open(bytes, Subtype::Fail, LENGTHS)?;
        let _reserved = reader.u8()?;
        Ok(MpFail { data_seq: DataSeq(reader.u64()?) })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        12
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Fail, self.bytes_len(), 0));
        out.push(0);
        out.extend(self.data_seq.0.to_be_bytes());
    }
}

/// The only valid length of MP_FAIL. RFC 8684 §3.7, figure 16.
const LENGTHS: Lengths = Lengths(&[12]);
