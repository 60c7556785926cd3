//! TCP options inside a Connect TLV.

use super::error::ParseError;

/// Kinds without a length, and the padding. RFC 8803 §6.2.5 forbids them in a Connect TLV.
pub(super) const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// A TCP option that a client wants a relay to offer to the destination. RFC 8803 §6.2.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOption {
    /// Kind, as in IANA's registry of TCP parameters.
    pub kind: u8,
    /// Value. An empty one leaves it to the relay.
    pub value: Vec<u8>,
}

impl TcpOption {
    /// MP_CAPABLE without a value. RFC 8803 §7.5.
    pub const MPTCP: u8 = 30;

    pub(super) fn wire_len(&self) -> usize {
        2 + self.value.len()
    }

    /// Append the option to `out`.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.kind, self.wire_len() as u8]);
        out.extend(&self.value);
    }
}

/// Parse options up to the padding, which consists of zeros.
pub(super) fn parse(mut bytes: &[u8]) -> Result<Vec<TcpOption>, ParseError> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        if *kind == END_OF_OPTIONS {
            let is_padding = bytes.len() < 4 && bytes.iter().all(|byte| *byte == 0);
            return if is_padding { Ok(options) } else { Err(ParseError::Options) };
        }
        let length = usize::from(*rest.first().ok_or(ParseError::Options)?);
        if *kind == NO_OPERATION || length < 2 || length > bytes.len() {
            return Err(ParseError::Options);
        }
        options.push(TcpOption { kind: *kind, value: bytes[2..length].to_vec() });
        bytes = &bytes[length..];
    }
    Ok(options)
}
