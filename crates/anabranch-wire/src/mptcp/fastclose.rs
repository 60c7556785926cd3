//! MP_FASTCLOSE (subtype 7): abrupt close of the connection. RFC 8684 §3.5.

/// MP_FASTCLOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpFastclose {
    /// The receiving host's key: proof that the sender took part in the handshake.
    pub receiver_key: u64,
}
