//! MP_CAPABLE (subtype 0): opening a connection. RFC 8684 §3.1.

/// MP_CAPABLE in one of its four forms, told apart by what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Protocol version, 4 bits; 1 in RFC 8684.
    pub version: u8,
    /// Negotiated properties.
    pub flags: CapableFlags,
    /// Keys and first mapping, by the step of the handshake.
    pub keys: CapableKeys,
}

/// The flag octet of MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapableFlags {
    /// A: DSS checksums are required.
    pub checksum_required: bool,
    /// B: extensibility; a receiver that does not understand it must ignore the option.
    pub extensibility: bool,
    /// C: the peer must not open subflows to the source address of this segment.
    pub deny_join_to_source: bool,
    /// Bits D to G, unassigned, as they were received (mask 0x1e).
    pub unassigned: u8,
    /// H: HMAC-SHA256, the one algorithm defined.
    pub hmac_sha256: bool,
}

/// What MP_CAPABLE carries at each step. RFC 8684 §3.1, figure 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapableKeys {
    /// SYN (length 4): no key.
    None,
    /// SYN/ACK (length 12): the listener's key.
    Sender(u64),
    /// Third ACK (length 20): the initiator's key, then the listener's.
    Both {
        /// Key of the host that sends this option.
        sender: u64,
        /// Key of its peer.
        receiver: u64,
    },
    /// First data segment (length 22, or 24 with a checksum): both keys and an implicit mapping
    /// of `data_len` octets from DSN IDSN + 1 at subflow sequence 1.
    WithData {
        /// Key of the host that sends this option.
        sender: u64,
        /// Key of its peer.
        receiver: u64,
        /// Data-level length in octets.
        data_len: u16,
        /// DSS checksum when checksums are in use.
        checksum: Option<u16>,
    },
}
