//! MP_CAPABLE (subtype 0): opens a connection. RFC 8684 §3.1.

use super::{Subtype, open, opening};
use crate::{Lengths, ParseError};

/// MP_CAPABLE. `keys` determines which of its forms it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Protocol version, 4 bits. RFC 8684 defines version 1.
    pub version: u8,
    /// Negotiated properties.
    pub flags: CapableFlags,
    /// Keys and first mapping, depending on the step of the handshake.
    pub keys: CapableKeys,
}

/// The flag byte of MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapableFlags {
    /// A: DSS checksums are required.
    pub checksum_required: bool,
    /// B: extensibility. A receiver that does not understand this bit must ignore the option.
    pub extensibility: bool,
    /// C: the peer must not open subflows to the source address of this segment.
    pub deny_join_to_source: bool,
    /// Bits D to G, which are unassigned, as received (mask 0x1e).
    pub unassigned: u8,
    /// H: HMAC-SHA256, the only defined algorithm.
    pub hmac_sha256: bool,
}

impl CapableFlags {
    /// HMAC-SHA256 and no other flag.
    pub const PLAIN: Self = Self {
        checksum_required: false,
        extensibility: false,
        deny_join_to_source: false,
        unassigned: 0,
        hmac_sha256: true,
    };
}

/// Contents of MP_CAPABLE at each step of the handshake. RFC 8684 §3.1, figure 4.
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
    /// First data segment (length 22, or 24 with a checksum): both keys and an implicit mapping of
    /// `data_len` bytes. The mapping starts at DSN IDSN + 1 and subflow sequence number 1.
    WithData {
        /// Key of the host that sends this option.
        sender: u64,
        /// Key of its peer.
        receiver: u64,
        /// Data-level length in bytes.
        data_len: u16,
        /// DSS checksum, if checksums are in use.
        checksum: Option<u16>,
    },
}

impl MpCapable {
    /// Parse one whole option, including kind and length. The length alone determines the form. The
    /// caller must check that the form fits the flags of the segment, and that the version is
    /// supported.
    ///
    /// # Errors
    /// If kind, subtype or length is not valid for MP_CAPABLE.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (version, mut reader) = open(bytes, Subtype::Capable, LENGTHS)?;
        let flags = CapableFlags::from_byte(reader.u8()?);
        let keys = match bytes.len() {
            SYN => CapableKeys::None,
            SYN_ACK => CapableKeys::Sender(reader.u64()?),
            ACK => CapableKeys::Both { sender: reader.u64()?, receiver: reader.u64()? },
            length => CapableKeys::WithData {
                sender: reader.u64()?,
                receiver: reader.u64()?,
                data_len: reader.u16()?,
                checksum: (length == DATA_AND_CHECKSUM).then(|| reader.u16()).transpose()?,
            },
        };
        Ok(MpCapable { version, flags, keys })
    }

    /// Length of the option in bytes, including kind and length.
    pub const fn bytes_len(&self) -> usize {
        match self.keys {
            CapableKeys::None => SYN,
            CapableKeys::Sender(_) => SYN_ACK,
            CapableKeys::Both { .. } => ACK,
            CapableKeys::WithData { checksum: None, .. } => DATA,
            CapableKeys::WithData { checksum: Some(_), .. } => DATA_AND_CHECKSUM,
        }
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(opening(Subtype::Capable, self.bytes_len(), self.version));
        out.push(self.flags.to_byte());
        match self.keys {
            CapableKeys::None => {}
            CapableKeys::Sender(key) => out.extend(key.to_be_bytes()),
            CapableKeys::Both { sender, receiver } => {
                out.extend(sender.to_be_bytes());
                out.extend(receiver.to_be_bytes());
            }
            CapableKeys::WithData { sender, receiver, data_len, checksum } => {
                out.extend(sender.to_be_bytes());
                out.extend(receiver.to_be_bytes());
                out.extend(data_len.to_be_bytes());
                out.extend(checksum.into_iter().flat_map(u16::to_be_bytes));
            }
        }
    }
}

impl CapableFlags {
    const A: u8 = 0x80;
    const B: u8 = 0x40;
    const C: u8 = 0x20;
    const D_TO_G: u8 = 0x1e;
    const H: u8 = 0x01;

    const fn from_byte(byte: u8) -> Self {
        CapableFlags {
            checksum_required: byte & Self::A != 0,
            extensibility: byte & Self::B != 0,
            deny_join_to_source: byte & Self::C != 0,
            unassigned: byte & Self::D_TO_G,
            hmac_sha256: byte & Self::H != 0,
        }
    }

    const fn to_byte(self) -> u8 {
        (self.checksum_required as u8 * Self::A)
            | (self.extensibility as u8 * Self::B)
            | (self.deny_join_to_source as u8 * Self::C)
            | (self.unassigned & Self::D_TO_G)
            | (self.hmac_sha256 as u8 * Self::H)
    }
}

/// Length in bytes of the form in a SYN. Each later form adds a field of RFC 8684 §3.1, figure 4.
const SYN: usize = 4;
const SYN_ACK: usize = SYN + 8;
const ACK: usize = SYN_ACK + 8;
const DATA: usize = ACK + 2;
const DATA_AND_CHECKSUM: usize = DATA + 2;

const LENGTHS: Lengths = Lengths(&[SYN, SYN_ACK, ACK, DATA, DATA_AND_CHECKSUM]);
