//! The option of TCP Fast Open: a cookie, or a request for one. RFC 7413 §4.1.1.

use crate::ParseError;

/// Option kind of TCP Fast Open. RFC 7413 §4.1.1.
pub(crate) const KIND: u8 = 34;
/// Bytes of kind and length.
const FIXED: usize = 2;

/// A cookie, with which a client may send data in a SYN. The empty one asks for a cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenCookie {
    len: u8,
    bytes: [u8; FastOpenCookie::LONGEST],
}

impl FastOpenCookie {
    /// Bytes of the longest cookie. RFC 7413 §4.1.1.
    pub const LONGEST: usize = 16;
    /// Bytes of the shortest cookie. RFC 7413 §4.1.1.
    pub const SHORTEST: usize = 4;
    /// Asks for a cookie.
    pub const REQUEST: Self = FastOpenCookie { len: 0, bytes: [0; FastOpenCookie::LONGEST] };

    /// The cookie with these bytes, or the request if there are none. `None` if the length is not
    /// right: an even number from 4 to 16 (RFC 7413 §4.1.1).
    pub fn new(cookie: &[u8]) -> Option<Self> {
        let len = cookie.len();
        let is_right =
            len == 0 || ((Self::SHORTEST..=Self::LONGEST).contains(&len) && len.is_multiple_of(2));
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..len).filter(|_| is_right)?.copy_from_slice(cookie);
        Some(FastOpenCookie { len: len as u8, bytes })
    }

    /// The bytes of the cookie, none for the request.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns `true` if it asks for a cookie.
    pub fn is_request(&self) -> bool {
        self.len == 0
    }

    /// Length in bytes of the option.
    pub(crate) fn bytes_len(&self) -> usize {
        FIXED + usize::from(self.len)
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([KIND, self.bytes_len() as u8]);
        out.extend(self.as_bytes());
    }

    pub(crate) fn parse(option: &[u8]) -> Result<Self, ParseError> {
        let wrong = ParseError::OptionLength { kind: KIND, found: option.len(), expected: LENGTHS };
        option.get(FIXED..).and_then(FastOpenCookie::new).ok_or(wrong)
    }
}

/// Lengths that the option may have.
const LENGTHS: crate::Lengths = crate::Lengths(&[2, 6, 8, 10, 12, 14, 16, 18]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_4_to_16_bytes_and_an_even_number_of_them() {
        // RFC 7413 §4.1.1
        let lengths: Vec<_> =
            (0..=20).filter(|len| FastOpenCookie::new(&vec![7; *len]).is_some()).collect();
        assert_eq!(lengths, [0, 4, 6, 8, 10, 12, 14, 16]);
        let cookie = FastOpenCookie::new(&[1, 2, 3, 4, 5, 6]).expect("6 bytes");
        let mut out = Vec::new();
        cookie.emit(&mut out);
        assert_eq!(out, [34, 8, 1, 2, 3, 4, 5, 6]);
        assert_eq!(FastOpenCookie::parse(&out).expect("the same"), cookie);
        assert!(FastOpenCookie::parse(&[34, 5, 1, 2, 3]).is_err());
        assert!(FastOpenCookie::parse(&[34, 2]).expect("the request").is_request());
    }
}
