//! MP_JOIN (subtype 1): adding a subflow. RFC 8684 §3.2.

/// MP_JOIN in one of its three forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// SYN (length 12).
    Syn {
        /// B: this subflow is a backup.
        backup: bool,
        /// Identifier of the source address.
        address_id: u8,
        /// The receiver's token: names the connection to join.
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
