//! Reads big-endian fields from the front of a slice.

use crate::ParseError;

/// The unread remainder of a header or an option.
pub(crate) struct Reader<'a> {
    /// Name of the header or option, for error messages.
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { what, rest: bytes }
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ParseError::Truncated {
            what: self.what,
            needed: N,
            available: self.rest.len(),
        })?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ParseError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ParseError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// All bytes not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
