//! MP_TCPRST (subtype 8): why a subflow is reset. RFC 8684 §3.6.

/// MP_TCPRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpTcprst {
    /// Flags U, V, W, unassigned, as they were received (mask 0x0e).
    pub unassigned: u8,
    /// T: the condition is transient; the peer may try again.
    pub transient: bool,
    /// Why.
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
