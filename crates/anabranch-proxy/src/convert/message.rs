//! Messages: a fixed header and TLVs. RFC 8803 §6.

use super::error::ParseError;
use super::tlv::{Tlv, WORD};

/// Bytes of the fixed header. RFC 8803 §6.1.
pub const HEADER_BYTES: usize = 4;
/// Bytes of the longest message: 255 words. RFC 8803 §6.1.
pub const MOST_BYTES: usize = 1020;
/// The version of the protocol. RFC 8803 §6.1.
pub const VERSION: u8 = 1;
/// The number that identifies the protocol. RFC 8803 §6.1.
pub const MAGIC_NUMBER: u16 = 0x2263;

/// A Convert message, the first bytes of a connection in each direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The TLVs, each type at most once.
    pub tlvs: Vec<Tlv>,
}

/// The length in bytes of the message with this header.
///
/// # Errors
/// If the header is not one of this version of Convert.
pub fn message_bytes(header: [u8; HEADER_BYTES]) -> Result<usize, ParseError> {
    let magic = u16::from_be_bytes([header[2], header[3]]);
    match header {
        _ if magic != MAGIC_NUMBER => Err(ParseError::NotConvert(magic)),
        [version, ..] if version != VERSION => Err(ParseError::Version(version)),
        [_, 0, ..] => Err(ParseError::ZeroLength),
        [_, words, ..] => Ok(usize::from(words) * WORD),
    }
}

impl Message {
    /// A message with these TLVs.
    pub fn new(tlvs: impl Into<Vec<Tlv>>) -> Self {
        Message { tlvs: tlvs.into() }
    }

    /// The bytes of the message.
    ///
    /// # Panics
    /// If it is longer than [`MOST_BYTES`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let len = HEADER_BYTES + self.tlvs.iter().map(Tlv::wire_len).sum::<usize>();
        assert!(len <= MOST_BYTES, "a message has at most {MOST_BYTES} bytes");
        let mut out = Vec::with_capacity(len);
        out.extend([VERSION, (len / WORD) as u8]);
        out.extend(MAGIC_NUMBER.to_be_bytes());
        self.tlvs.iter().for_each(|tlv| tlv.emit(&mut out));
        out
    }

    /// Parse a whole message.
    ///
    /// # Errors
    /// If `bytes` are not exactly one message of this version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let wrong = ParseError::Length(bytes.len());
        let header = bytes.first_chunk().ok_or(wrong)?;
        if message_bytes(*header)? != bytes.len() {
            return Err(wrong);
        }
        let (mut rest, mut tlvs) = (&bytes[HEADER_BYTES..], Vec::<Tlv>::new());
        while !rest.is_empty() {
            let (tlv, len) = Tlv::parse(rest)?;
            if tlvs.iter().any(|other| other.kind() == tlv.kind()) {
                return Err(ParseError::Duplicate(tlv.kind()));
            }
            tlvs.push(tlv);
            rest = &rest[len..];
        }
        Ok(Message { tlvs })
    }
}
