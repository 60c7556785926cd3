//! MP_TCPRST (subtype 8): states why a subflow is reset. RFC 8684 §3.6.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_TCPRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpTcprst {
    /// Flags U, V and W, which are unassigned, as received (mask 0x0e).
    pub unassigned: u8,
    /// T: the condition is transient, so the peer may try again.
    pub transient: bool,
    /// Reason code.
    pub reason: ResetReason,
}

/// Reason codes of MP_TCPRST. RFC 8684 §3.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetReason(pub u8);

impl ResetReason {
    /// Unspecified error.
    pub const UNSPECIFIED: ResetReason = ResetReason(0x00);
    /// MPTCP-specific error.
    pub const MPTCP_SPECIFIC: ResetReason = ResetReason(0x01);
    /// Lack of resources.
    pub const LACK_OF_RESOURCES: ResetReason = ResetReason(0x02);
    /// Administratively prohibited.
    pub const PROHIBITED: ResetReason = ResetReason(0x03);
    /// Too much outstanding data.
    pub const TOO_MUCH_OUTSTANDING_DATA: ResetReason = ResetReason(0x04);
    /// Unacceptable performance.
    pub const UNACCEPTABLE_PERFORMANCE: ResetReason = ResetReason(0x05);
    /// Middlebox interference.
    pub const MIDDLEBOX_INTERFERENCE: ResetReason = ResetReason(0x06);
}

impl MpTcprst {
    /// Parse one whole option, including kind and length.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_TCPRST.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (flags, mut reader) = open(bytes, Subtype::Tcprst, LENGTHS)?;
        Ok(MpTcprst {
            unassigned: flags & UNASSIGNED,
            transient: flags & TRANSIENT != 0,
            reason: ResetReason(reader.u8()?),
        })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        4
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = self.unassigned & UNASSIGNED | u8::from(self.transient);
        out.extend(opening(Subtype::Tcprst, self.bytes_len(), flags));
        out.push(self.reason.0);
    }
}

/// The only valid length of MP_TCPRST. RFC 8684 §3.6, figure 15.
const LENGTHS: Lengths = Lengths(&[4]);

/// The U, V and W flags, in the byte of the subtype.
const UNASSIGNED: u8 = 0x0e;
/// The T flag, in the byte of the subtype.
const TRANSIENT: u8 = 0x01;
