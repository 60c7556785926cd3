//! MP_FAIL (subtype 6): a checksum failed, or a fallback. RFC 8684 §3.7.

use crate::DataSeq;

/// MP_FAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFail {
    /// Data sequence number at the start of the failed mapping.
    pub data_seq: DataSeq,
}
